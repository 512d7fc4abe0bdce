/* SPDX-License-Identifier: BSD-3-Clause */
/* The same search with offsets and neighbours in plain device memory: no cache, no storage. The limit. */
#include "../common/graph_plain.h"
#include "walk.h"

WEIR_KERNEL(bfs_plain_level, struct bfs_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(bfs_plain_hubs, struct bfs_args)
{
	frontier_walk_hubs(args, 0);
}
