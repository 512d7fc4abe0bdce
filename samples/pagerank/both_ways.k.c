/* SPDX-License-Identifier: BSD-3-Clause */
/* Has the graph each edge both ways? */
#include "../common/graph_stored.h"
#include "both_ways.h"

WEIR_KERNEL(pagerank_both_ways, struct pagerank_args)
{
	edges_walk(args);
}
