/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in plain device memory: no cache, no storage. The limit. */
#include "../common/graph_plain.h"
#include "walk.h"

WEIR_KERNEL(cc_plain_sample, struct cc_args)
{
	cc_link_first(args);
}

WEIR_KERNEL(cc_plain_edges, struct cc_args)
{
	edges_walk(args);
}
