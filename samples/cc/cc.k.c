/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected components of a graph on storage; labels are in device memory. */
#include "../common/graph_stored.h"
#include "walk.h"

WEIR_KERNEL(cc_rows, struct cc_args)
{
	edges_find_rows(&args->graph);
}

/* Every vertex by itself. */
WEIR_KERNEL(cc_start, struct cc_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads())
		weir_store_u32_relaxed_dev(cc_label(args, (u32)v), (u32)v);
}

WEIR_KERNEL(cc_sample, struct cc_args)
{
	cc_link_first(args);
}

WEIR_KERNEL(cc_edges, struct cc_args)
{
	edges_walk(args);
}

/* Every label becomes the root that it leads to; roots stay. */
WEIR_KERNEL(cc_flatten, struct cc_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads()) {
		u32 label = (u32)v, next;

		while ((next = weir_load_u32_relaxed_dev(cc_label(args, label))) != label)
			label = next;
		weir_store_u32_relaxed_dev(cc_label(args, (u32)v), label);
	}
}
