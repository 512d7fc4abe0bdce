/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the graph in plain device memory: no cache, no storage. The limit. */
#include "../common/graph_plain.h"
#include "walk.h"

WEIR_KERNEL(pagerank_plain_gather, struct pagerank_args)
{
	edges_walk(args);
}
