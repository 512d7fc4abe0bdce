/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * both_ways.h: has the graph each edge both ways? One look at each edge. Included after graph_stored.h or
 * graph_gapbs.h.
 */
#ifndef PAGERANK_BOTH_WAYS_H
#define PAGERANK_BOTH_WAYS_H

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

/* A number for an edge that has little to do with that of any other. */
WEIR_FN u64 both_ways_number(u64 from, u64 to)
{
	u64 mixed = (from * 0x9e3779b97f4a7c15u ^ (to + 0x7f4a7c15u)) * 0xbf58476d1ce4e5b9u;

	mixed = (mixed ^ (mixed >> 31)) * 0x94d049bb133111ebu;
	return (mixed ^ (mixed >> 29)) * 0x9e3779b97f4a7c15u;
}

WEIR_FN u64 edges_take(WEIR_GLOBAL struct pagerank_args *args, u64 sum, u64 vertex, u64 begin,
		       struct weir_run run)
{
	u32 known = graph_known(&args->graph, vertex, run);

	(void)begin;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (known >> i & 1)
			sum += both_ways_number(vertex, run.value[i]) -
			       both_ways_number(run.value[i], vertex);
	return sum;
}

WEIR_FN void edges_end(WEIR_GLOBAL struct pagerank_args *args, u64 vertex, u64 sum, u32 whole)
{
	(void)vertex;
	(void)whole;
	if (sum) /* relaxed: a sum, read after the launch */
		(void)weir_add_u64_relaxed_dev(&weir_at(args->sums, struct pagerank_sums, 0)->apart, sum);
}

#include "../common/edges_walk.h"

#endif
