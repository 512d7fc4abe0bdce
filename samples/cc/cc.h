/* SPDX-License-Identifier: BSD-3-Clause */
/* cc.h: arguments of the connected components kernels, shared by host and lanes. */
#ifndef CC_H
#define CC_H

#include "../common/graph_data.h"

/* Neighbours of each vertex that are linked first, with --sample. */
#define CC_SAMPLE 2

/* No component is left out. */
#define CC_NONE (~(u64)0)

/**
 * struct cc_args - one step
 * @graph: edges count in both directions, however they are stored
 * @label: u32 per vertex: a vertex of the same component with no higher number; its own in the end
 * @skip: vertices with this label need not be looked at (CC_NONE: all are)
 */
struct cc_args {
	struct graph_data graph;
	weir_addr label;
	u64 skip;
};

#endif
