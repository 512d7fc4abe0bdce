/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in a .sg or .wsg file, read where it lies. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_KERNEL(bfs_gapbs_level, struct bfs_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(bfs_gapbs_hubs, struct bfs_args)
{
	frontier_walk_hubs(args, 0);
}

WEIR_KERNEL(bfs_gapbs_try_level, struct bfs_args)
{
	frontier_walk_level(args, 1);
}

WEIR_KERNEL(bfs_gapbs_try_hubs, struct bfs_args)
{
	frontier_walk_hubs(args, 1);
}
