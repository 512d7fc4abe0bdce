/* SPDX-License-Identifier: BSD-3-Clause */
/* Has a graph in a .sg or .wsg file each edge both ways? */
#include "../common/graph_gapbs.h"
#include "both_ways.h"

WEIR_KERNEL(pagerank_gapbs_both_ways, struct pagerank_args)
{
	edges_walk(args);
}
