/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: breadth-first search, level by level, wherever the graph is.
 *
 * Owns: what happens to a neighbour. Included after graph_stored.h or graph_plain.h.
 * Depths and frontiers are in device memory, a word and two bits per vertex.
 */
#ifndef BFS_WALK_H
#define BFS_WALK_H

#include "bfs.h"

#define FRONTIER_ARGS struct bfs_args

WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct bfs_args *args, u64 vertex, u64 begin, struct weir_run run);

#include "../common/frontier_walk.h"

/* Reach @vertex from this level. Return: 1 if this lane was the first. */
WEIR_FN u32 bfs_reach(WEIR_GLOBAL struct bfs_args *args, u64 vertex)
{
	WEIR_GLOBAL weir_shared_u32 *depth = weir_at(args->depth, weir_shared_u32, vertex);

	/* relaxed: levels are separate launches, nothing else hangs on a depth */
	if (weir_load_u32_relaxed_dev(depth) != BFS_UNREACHED ||
	    weir_cas_u32_relaxed_dev(depth, BFS_UNREACHED, args->level + 1) != BFS_UNREACHED)
		return 0;
	frontier_add(args->frontier.next, vertex);
	return 1;
}

/* A few neighbours of @vertex. */
WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct bfs_args *args, u64 vertex, u64 begin, struct weir_run run)
{
	u32 found = 0;

	(void)begin;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (i < run.count && graph_knows(&args->graph, vertex, run.value[i]))
			found += bfs_reach(args, run.value[i]);
	return found;
}

#endif
