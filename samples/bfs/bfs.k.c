/* SPDX-License-Identifier: BSD-3-Clause */
/* The search with offsets and neighbours on storage: they come through weir_array. */
#include "../common/graph_stored.h"
#include "walk.h"

WEIR_KERNEL(bfs_level, struct bfs_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(bfs_hubs, struct bfs_args)
{
	frontier_walk_hubs(args, 0);
}

/* What is in the cache, before the two above. */
WEIR_KERNEL(bfs_try_level, struct bfs_args)
{
	frontier_walk_level(args, 1);
}

WEIR_KERNEL(bfs_try_hubs, struct bfs_args)
{
	frontier_walk_hubs(args, 1);
}

/* Every depth unreached. */
WEIR_KERNEL(bfs_clear, struct bfs_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads())
		weir_store_u32_relaxed_dev(weir_at(args->depth, weir_shared_u32, v), BFS_UNREACHED);
}
