/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in a .sg or .wsg file, read where it lies. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_KERNEL(cc_gapbs_rows, struct cc_args)
{
	edges_find_rows(&args->graph);
}

WEIR_KERNEL(cc_gapbs_sample, struct cc_args)
{
	cc_link_first(args);
}

WEIR_KERNEL(cc_gapbs_edges, struct cc_args)
{
	edges_walk(args);
}
