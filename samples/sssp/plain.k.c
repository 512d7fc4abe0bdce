/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in plain device memory: no cache, no storage. The limit. */
#include "../common/graph_plain.h"
#include "walk.h"

WEIR_KERNEL(sssp_plain_level, struct sssp_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(sssp_plain_hubs, struct sssp_args)
{
	frontier_walk_hubs(args, 0);
}
