/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: a row's sum, wherever matrix and vector are.
 *
 * Included after graph_stored.h, graph_gapbs.h or graph_plain.h, and after spmv_x() is defined, which
 * gives an element of the vector.
 */
#ifndef SPMV_WALK_H
#define SPMV_WALK_H

#include "../common/edges.h"
#include "spmv.h"

#define EDGES_ARGS struct spmv_args
#define EDGES_SUM  float

WEIR_FN float spmv_x(WEIR_GLOBAL struct spmv_args *args, u64 column);

/* A float and its bits: the portable atomics are those of integers. */
union spmv_pun {
	u32 bits;
	float value;
};

WEIR_FN float edges_zero(void)
{
	return 0;
}

WEIR_FN u32 edges_wants(WEIR_GLOBAL struct spmv_args *args, u64 row)
{
	(void)args;
	(void)row;
	return 1;
}

WEIR_FN float edges_take(WEIR_GLOBAL struct spmv_args *args, float sum, u64 row, u64 begin,
			 struct weir_run run)
{
	u32 known = graph_known(&args->graph, row, run);
	struct weir_run weights = graph_weights(&args->graph, begin, run.count);

	for (u32 i = 0; i < WEIR_RUN; i++)
		if (known >> i & 1)
			sum += (float)weights.value[i] * spmv_x(args, run.value[i]);
	return sum;
}

/* A part of a row that other lanes have parts of, too. */
WEIR_FN void spmv_add(WEIR_GLOBAL weir_shared_u32 *word, float part)
{
	union spmv_pun old, sum;
	u32 seen;

	/* relaxed: a sum, read after the launch */
	for (old.bits = weir_load_u32_relaxed_dev(word);; old.bits = seen) {
		sum.value = old.value + part;
		seen = weir_cas_u32_relaxed_dev(word, old.bits, sum.bits);
		if (seen == old.bits)
			break;
	}
}

WEIR_FN void edges_end(WEIR_GLOBAL struct spmv_args *args, u64 row, float sum, u32 whole)
{
	WEIR_GLOBAL weir_shared_u32 *word = weir_at(args->y, weir_shared_u32, row);
	union spmv_pun pun;

	pun.value = sum;
	if (whole)
		weir_store_u32_relaxed_dev(word, pun.bits); /* relaxed: nobody else has this row */
	else
		spmv_add(word, sum);
}

#include "../common/edges_walk.h"

#endif
