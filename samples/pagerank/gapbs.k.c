/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in a .sg or .wsg file, read where it lies. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_KERNEL(pagerank_gapbs_rows, struct pagerank_args)
{
	edges_find_rows(&args->graph);
}

WEIR_KERNEL(pagerank_gapbs_degrees, struct pagerank_args)
{
	pagerank_find_degrees(args);
}

WEIR_KERNEL(pagerank_gapbs_gather, struct pagerank_args)
{
	edges_walk(args);
}
