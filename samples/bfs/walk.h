/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: breadth-first search, level by level, wherever the graph is.
 *
 * Owns: what happens to a neighbour. Included after graph_stored.h, graph_gapbs.h or graph_plain.h.
 * Depths and frontiers are in device memory, a word and two bits per vertex.
 */
#ifndef BFS_WALK_H
#define BFS_WALK_H

#include "bfs.h"

#define FRONTIER_ARGS struct bfs_args

WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct bfs_args *args, u64 vertex, u64 begin, struct weir_run run);

#include "../common/frontier_walk.h"

WEIR_FN WEIR_GLOBAL weir_shared_u32 *bfs_depth(WEIR_GLOBAL struct bfs_args *args, u64 vertex)
{
	return weir_at(args->depth, weir_shared_u32, vertex);
}

/* Reach @vertex from this level. Return: 1 if this lane was the first. */
WEIR_FN u32 bfs_reach(WEIR_GLOBAL struct bfs_args *args, u64 vertex)
{
	/* relaxed: whoever comes later stores the same depth */
	weir_store_u32_relaxed_dev(bfs_depth(args, vertex), args->level + 1);
	return frontier_add(args->frontier.next, vertex);
}

/* A few neighbours of @vertex. All are looked at before any is reached, so that the looks are under way
 * together. */
WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct bfs_args *args, u64 vertex, u64 begin, struct weir_run run)
{
	u32 known = graph_known(&args->graph, vertex, run), seen[WEIR_RUN], found = 0;
	weir_addr depth = args->depth;

	(void)begin;
	/* relaxed: levels are separate launches, nothing else hangs on a depth */
	for (u32 i = 0; i < WEIR_RUN; i++)
		seen[i] = known >> i & 1
				  ? weir_load_u32_relaxed_dev(weir_at(depth, weir_shared_u32, run.value[i]))
				  : 0;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (seen[i] == BFS_UNREACHED)
			found += bfs_reach(args, run.value[i]);
	return found;
}

#endif
