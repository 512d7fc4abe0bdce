/* SPDX-License-Identifier: BSD-3-Clause */
/* The one thing that flows between readers, sorter and writers: batches of edges. */
#ifndef WEIR_TOOLS_GRAPH_EDGE_H
#define WEIR_TOOLS_GRAPH_EDGE_H

#include <stdint.h>

/** struct graph_edge - one stored edge; @weight is 0 in graphs without weights */
struct graph_edge {
	uint64_t source;
	uint64_t target;
	uint32_t weight;
};

/** GRAPH_BATCH_EDGES - edges handed on at a time: 48 KiB, which stays in the second-level cache */
#define GRAPH_BATCH_EDGES 2048u

#endif
