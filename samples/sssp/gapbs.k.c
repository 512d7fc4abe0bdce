/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in a .wsg file, read where it lies. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_KERNEL(sssp_gapbs_level, struct sssp_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(sssp_gapbs_hubs, struct sssp_args)
{
	frontier_walk_hubs(args, 0);
}
