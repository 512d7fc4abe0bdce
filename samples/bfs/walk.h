/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: breadth-first search, level by level, wherever the graph is.
 *
 * Owns: the search. Where offsets and neighbours come from is the business of the
 * kernel file that includes this, after defining
 *   bfs_offsets(), bfs_neighbours()   some elements from an index on: a weir_run
 *   bfs_failed()                      true once a read has failed
 * Its kernels are bfs_walk_level() and bfs_walk_hubs().
 * Depths and frontiers are in device memory, a word and two bits per vertex.
 */
#ifndef BFS_WALK_H
#define BFS_WALK_H

#include <weir/array.h>

#include "bfs.h"

/** struct bfs_tally - what one lane did, kept in registers until it ends */
struct bfs_tally {
	u64 found;
	u64 edges;
	u64 lookups;
};

WEIR_FN WEIR_GLOBAL struct bfs_counters *bfs_counters_of(WEIR_GLOBAL struct bfs_args *args)
{
	return weir_at(args->counters, struct bfs_counters, 0);
}

/* The first lane to meet nonsense writes it down; the host makes it a sentence. */
WEIR_FN void bfs_report_bad(WEIR_GLOBAL struct bfs_args *args, u32 kind, u64 vertex, u64 value)
{
	WEIR_GLOBAL struct bfs_counters *counters = bfs_counters_of(args);

	if (weir_cas_u32_relaxed_dev(&counters->bad, 0, 1) != 0)
		return;
	counters->bad_kind = kind;
	counters->bad_vertex = vertex;
	counters->bad_value = value;
}

/* Reach @vertex from this level. Return: 1 if this lane was the first. */
WEIR_FN u32 bfs_visit(WEIR_GLOBAL struct bfs_args *args, u64 vertex)
{
	WEIR_GLOBAL weir_shared_u32 *depth = weir_at(args->depth, weir_shared_u32, vertex);

	/* relaxed: levels are separate launches, nothing else hangs on a depth */
	if (weir_load_u32_relaxed_dev(depth) != BFS_UNREACHED ||
	    weir_cas_u32_relaxed_dev(depth, BFS_UNREACHED, args->level + 1) != BFS_UNREACHED)
		return 0;
	(void)weir_or_u64_relaxed_dev(weir_at(args->next, weir_shared_u64, vertex / 64), (u64)1 << (vertex % 64));
	return 1;
}

/* Follow edges [begin, end) of @vertex. */
WEIR_FN struct bfs_tally bfs_follow(WEIR_GLOBAL struct bfs_args *args, struct bfs_tally tally, u64 vertex,
				    u64 begin, u64 end)
{
	while (begin < end) {
		struct weir_run run = bfs_neighbours(args, begin, end);

		tally.lookups++;
		for (u32 i = 0; i < WEIR_RUN; i++) {
			if (i >= run.count)
				continue;
			if (run.value[i] < args->vertices)
				tally.found += bfs_visit(args, run.value[i]);
			else
				bfs_report_bad(args, BFS_BAD_NEIGHBOUR, vertex, run.value[i]);
		}
		tally.edges += run.count;
		begin = run.count ? begin + run.count : end; /* an error ends the list */
	}
	return tally;
}

WEIR_FN void bfs_store_hub(WEIR_GLOBAL struct bfs_args *args, u64 vertex, u64 begin, u64 end)
{
	/* relaxed: an index dispenser; the list is read by a later launch */
	u64 place = weir_add_u64_relaxed_dev(&bfs_counters_of(args)->hubs, 1);
	WEIR_GLOBAL struct bfs_hub *hub = weir_at(args->hub_list, struct bfs_hub, place);

	if (place >= args->hub_limit)
		return; /* more hubs than edges allow: bad offsets, reported by the host */
	hub->vertex = vertex;
	hub->begin = begin;
	hub->end = end;
}

WEIR_FN struct bfs_tally bfs_expand(WEIR_GLOBAL struct bfs_args *args, struct bfs_tally tally, u64 vertex)
{
	struct weir_run bounds = bfs_offsets(args, vertex, vertex + 2);
	u64 begin = bounds.value[0];
	u64 end = bounds.value[1];

	tally.lookups++;
	if (bounds.count == 1) { /* the two lie on different lines */
		end = bfs_offsets(args, vertex + 1, vertex + 2).value[0];
		tally.lookups++;
	}
	if (bounds.count == 0 || bfs_failed(args))
		return tally;
	if (begin > end || end > args->edges)
		bfs_report_bad(args, BFS_BAD_OFFSETS, vertex, begin > end ? begin : end);
	else if (end - begin > BFS_HUB_DEGREE)
		bfs_store_hub(args, vertex, begin, end);
	else
		tally = bfs_follow(args, tally, vertex, begin, end);
	return tally;
}

WEIR_FN void bfs_add_tally(WEIR_GLOBAL struct bfs_args *args, struct bfs_tally tally)
{
	WEIR_GLOBAL struct bfs_counters *counters = bfs_counters_of(args);

	/* relaxed: sums, read by the host after the launch */
	if (tally.found)
		(void)weir_add_u64_relaxed_dev(&counters->found, tally.found);
	if (tally.edges)
		(void)weir_add_u64_relaxed_dev(&counters->edges, tally.edges);
	if (tally.lookups)
		(void)weir_add_u64_relaxed_dev(&counters->lookups, tally.lookups);
}

/* Every lane takes words of the current bitmap, 64 vertices at a time. */
WEIR_FN void bfs_walk_level(WEIR_GLOBAL struct bfs_args *args)
{
	u64 words = (args->vertices + 63) / 64;
	struct bfs_tally tally;

	tally.found = tally.edges = tally.lookups = 0;
	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->current, weir_shared_u64, i);
		u64 bits = weir_load_u64_relaxed_dev(word); /* relaxed: written by an earlier launch */

		if (bits == 0)
			continue;
		weir_store_u64_relaxed_dev(word, 0);
		for (; bits; bits &= bits - 1)
			tally = bfs_expand(args, tally, i * 64 + weir_lowest_bit(bits));
	}
	bfs_add_tally(args, tally);
}

/* All lanes share each hub's neighbours, a stretch of BFS_HUB_DEGREE / 8 at a time. */
WEIR_FN void bfs_walk_hubs(WEIR_GLOBAL struct bfs_args *args)
{
	u64 stretch = BFS_HUB_DEGREE / 8;
	struct bfs_tally tally;

	tally.found = tally.edges = tally.lookups = 0;
	for (u64 h = 0; h < args->hub_count; h++) {
		WEIR_GLOBAL struct bfs_hub *hub = weir_at(args->hub_list, struct bfs_hub, h);

		for (u64 at = hub->begin + weir_thread() * stretch; at < hub->end; at += weir_threads() * stretch) {
			u64 end = hub->end - at < stretch ? hub->end : at + stretch;

			tally = bfs_follow(args, tally, hub->vertex, at, end);
		}
	}
	bfs_add_tally(args, tally);
}

#endif
