/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.h: what vertices get from their neighbours. Included after graph_stored.h, graph_gapbs.h or
 * graph_plain.h. */
#ifndef PAGERANK_WALK_H
#define PAGERANK_WALK_H

#include "../common/edges.h"
#include "pagerank.h"

#define EDGES_ARGS struct pagerank_args
#define EDGES_SUM  u64

WEIR_FN u64 edges_zero(void)
{
	return 0;
}

WEIR_FN u32 edges_wants(WEIR_GLOBAL struct pagerank_args *args, u64 vertex)
{
	(void)args;
	(void)vertex;
	return 1;
}

WEIR_FN u64 edges_take(WEIR_GLOBAL struct pagerank_args *args, u64 sum, u64 vertex, u64 begin,
		       struct weir_run run)
{
	u32 known = graph_known(&args->graph, vertex, run);
	(void)begin;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (known >> i & 1)
			sum += *weir_at(args->share, u64, run.value[i]);
	return sum;
}

WEIR_FN void edges_end(WEIR_GLOBAL struct pagerank_args *args, u64 vertex, u64 sum, u32 whole)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->sum, weir_shared_u64, vertex);

	/* relaxed: sums, read by a later launch */
	if (whole)
		weir_store_u64_relaxed_dev(word, sum);
	else
		(void)weir_add_u64_relaxed_dev(word, sum);
}

#include "../common/edges_walk.h"

/* How many edges each vertex has. */
WEIR_FN void pagerank_find_degrees(WEIR_GLOBAL struct pagerank_args *args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads())
		*weir_at(args->degree, u64, v) =
			edges_offset(&args->graph, v + 1) - edges_offset(&args->graph, v);
}

#endif
