/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: components of linked vertices, as a forest in the labels. Included after
 * graph_stored.h, graph_gapbs.h or graph_plain.h.
 *
 * A label points to a vertex of the same component with a lower number, or is the
 * vertex's own: then it is a root. To link two vertices, the higher of their roots gets
 * the lower one as its label. So labels only fall, in the end to the component's lowest
 * vertex. All accesses are relaxed: a label read late is an older one, which still leads
 * to the same root, and a root is changed by compare-and-swap alone.
 */
#ifndef CC_WALK_H
#define CC_WALK_H

#include "../common/edges.h"
#include "cc.h"

#define EDGES_ARGS struct cc_args
#define EDGES_SUM  u32

WEIR_FN WEIR_GLOBAL weir_shared_u32 *cc_label(WEIR_GLOBAL struct cc_args *args, u32 vertex)
{
	return weir_at(args->label, weir_shared_u32, vertex);
}

/* One step for two labels: 1 once the components are one. */
WEIR_FN u32 cc_try_link(WEIR_GLOBAL struct cc_args *args, u32 a, u32 b)
{
	u32 high = a > b ? a : b, low = a > b ? b : a, seen;

	if (a == b)
		return 1;
	seen = weir_load_u32_relaxed_dev(cc_label(args, high));
	return seen == low ||
	       (seen == high && weir_cas_u32_relaxed_dev(cc_label(args, high), high, low) == high);
}

/* Each turn follows a label, or another lane has changed one: it cannot go on for ever. */
WEIR_FN void cc_link(WEIR_GLOBAL struct cc_args *args, u32 from, u32 to)
{
	u32 a = weir_load_u32_relaxed_dev(cc_label(args, from)),
	    b = weir_load_u32_relaxed_dev(cc_label(args, to));

	while (!cc_try_link(args, a, b)) {
		a = weir_load_u32_relaxed_dev(cc_label(args, a));
		b = weir_load_u32_relaxed_dev(cc_label(args, b));
	}
}

WEIR_FN u32 edges_zero(void)
{
	return 0;
}

WEIR_FN u32 edges_wants(WEIR_GLOBAL struct cc_args *args, u64 vertex)
{
	return args->skip == CC_NONE || weir_load_u32_relaxed_dev(cc_label(args, (u32)vertex)) != args->skip;
}

/* Nothing to sum up. */
WEIR_FN u32 edges_take(WEIR_GLOBAL struct cc_args *args, u32 sum, u64 vertex, u64 begin, struct weir_run run)
{
	u32 known = graph_known(&args->graph, vertex, run);
	(void)begin;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (known >> i & 1)
			cc_link(args, (u32)vertex, (u32)run.value[i]);
	return sum;
}

WEIR_FN void edges_end(WEIR_GLOBAL struct cc_args *args, u64 vertex, u32 sum, u32 whole)
{
	(void)args;
	(void)vertex;
	(void)sum;
	(void)whole;
}

#include "../common/edges_walk.h"

/* The first neighbours of every vertex: enough to join most of a large component. */
WEIR_FN void cc_link_first(WEIR_GLOBAL struct cc_args *args)
{
	WEIR_GLOBAL struct graph_data *graph = &args->graph;

	for (u64 v = weir_thread(); v < graph->vertices && !graph_failed(graph); v += weir_threads()) {
		u64 begin = edges_offset(graph, v), end = edges_offset(graph, v + 1);

		if (begin < end)
			(void)edges_take(args, 0, v, begin,
					 graph_neighbours(graph, begin,
							  end - begin > CC_SAMPLE ? begin + CC_SAMPLE : end));
	}
}

#endif
