/* SPDX-License-Identifier: BSD-3-Clause */
/* The search with offsets and neighbours on storage: they come through weir_array. */
#include <weir/array.h>

#include "bfs.h"

WEIR_FN struct weir_run bfs_offsets(WEIR_GLOBAL struct bfs_args *args, u64 index, u64 end)
{
	return weir_array_run_u64(&args->offsets, index, end);
}

WEIR_FN struct weir_run bfs_neighbours(WEIR_GLOBAL struct bfs_args *args, u64 index, u64 end)
{
	return weir_array_run_u64(&args->neighbours, index, end);
}

WEIR_FN u32 bfs_failed(WEIR_GLOBAL struct bfs_args *args)
{
	return weir_array_failed(&args->offsets);
}

#include "walk.h"

WEIR_KERNEL(bfs_level, struct bfs_args)
{
	bfs_walk_level(args);
}

WEIR_KERNEL(bfs_hubs, struct bfs_args)
{
	bfs_walk_hubs(args);
}

/* Every depth unreached. */
WEIR_KERNEL(bfs_clear, struct bfs_args)
{
	for (u64 v = weir_thread(); v < args->vertices; v += weir_threads())
		weir_store_u32_relaxed_dev(weir_at(args->depth, weir_shared_u32, v), BFS_UNREACHED);
}
