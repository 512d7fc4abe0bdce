/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier_walk.h: the lanes' side of frontier.h.
 *
 * A kernel file includes it after graph_stored.h or graph_plain.h, and after defining
 *   FRONTIER_ARGS       its arguments: a structure with members graph and frontier
 *   frontier_visit()    what to do with a few edges of a vertex, after graph_knows(); returns
 *                       how many vertices it found
 * Its kernels are frontier_walk_level() and frontier_walk_hubs().
 */
#ifndef SAMPLE_FRONTIER_WALK_H
#define SAMPLE_FRONTIER_WALK_H

#include "frontier.h"

/* Into the next level; the same vertex more than once does no harm. */
WEIR_FN void frontier_add(weir_addr bitmap, u64 vertex)
{
	/* relaxed: levels are separate launches */
	(void)weir_or_u64_relaxed_dev(weir_at(bitmap, weir_shared_u64, vertex / 64), (u64)1 << (vertex % 64));
}

/* Follow edges [begin, end) of @vertex. */
WEIR_FN struct graph_tally frontier_follow(WEIR_GLOBAL FRONTIER_ARGS *args, struct graph_tally tally, u64 vertex,
					   u64 begin, u64 end)
{
	while (begin < end) {
		struct weir_run run = graph_neighbours(&args->graph, begin, end);

		tally.lookups++;
		tally.found += frontier_visit(args, vertex, begin, run);
		tally.edges += run.count;
		begin = run.count ? begin + run.count : end; /* an error ends the list */
	}
	return tally;
}

WEIR_FN void frontier_store_hub(WEIR_GLOBAL FRONTIER_ARGS *args, u64 vertex, u64 begin, u64 end)
{
	/* relaxed: an index dispenser; the list is read by a later launch */
	u64 place = weir_add_u64_relaxed_dev(&graph_counters_of(&args->graph)->hubs, 1);
	WEIR_GLOBAL struct frontier_hub *hub = weir_at(args->frontier.hub_list, struct frontier_hub, place);

	if (place >= args->frontier.hub_limit)
		return; /* more hubs than edges allow: bad offsets, reported by the host */
	hub->vertex = vertex;
	hub->begin = begin;
	hub->end = end;
}

WEIR_FN struct graph_tally frontier_expand(WEIR_GLOBAL FRONTIER_ARGS *args, struct graph_tally tally, u64 vertex)
{
	struct weir_run bounds = graph_offsets(&args->graph, vertex, vertex + 2);
	u64 begin = bounds.value[0];
	u64 end = bounds.value[1];

	tally.lookups++;
	if (bounds.count == 1) { /* the two lie on different lines */
		end = graph_offsets(&args->graph, vertex + 1, vertex + 2).value[0];
		tally.lookups++;
	}
	if (bounds.count == 0 || graph_failed(&args->graph))
		return tally;
	if (begin > end || end > args->graph.edges)
		graph_report_bad(&args->graph, GRAPH_BAD_OFFSETS, vertex, begin > end ? begin : end);
	else if (end - begin > FRONTIER_HUB_DEGREE)
		frontier_store_hub(args, vertex, begin, end);
	else
		tally = frontier_follow(args, tally, vertex, begin, end);
	return tally;
}

/* Every lane takes words of the current bitmap, 64 vertices at a time. */
WEIR_FN void frontier_walk_level(WEIR_GLOBAL FRONTIER_ARGS *args)
{
	u64 words = (args->graph.vertices + 63) / 64;
	struct graph_tally tally = graph_no_tally();

	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->frontier.current, weir_shared_u64, i);
		u64 bits = weir_load_u64_relaxed_dev(word); /* relaxed: written by an earlier launch */

		if (bits == 0)
			continue;
		weir_store_u64_relaxed_dev(word, 0);
		for (; bits; bits &= bits - 1)
			tally = frontier_expand(args, tally, i * 64 + weir_lowest_bit(bits));
	}
	graph_add_tally(&args->graph, tally);
}

/* All lanes share each hub's neighbours, a stretch of FRONTIER_HUB_DEGREE / 8 at a time. */
WEIR_FN void frontier_walk_hubs(WEIR_GLOBAL FRONTIER_ARGS *args)
{
	u64 stretch = FRONTIER_HUB_DEGREE / 8;
	struct graph_tally tally = graph_no_tally();

	for (u64 h = 0; h < args->frontier.hub_count; h++) {
		WEIR_GLOBAL struct frontier_hub *hub = weir_at(args->frontier.hub_list, struct frontier_hub, h);

		for (u64 at = hub->begin + weir_thread() * stretch; at < hub->end; at += weir_threads() * stretch) {
			u64 end = hub->end - at < stretch ? hub->end : at + stretch;

			tally = frontier_follow(args, tally, hub->vertex, at, end);
		}
	}
	graph_add_tally(&args->graph, tally);
}

#endif
