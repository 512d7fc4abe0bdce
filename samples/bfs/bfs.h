/* SPDX-License-Identifier: BSD-3-Clause */
/* bfs.h: arguments of the breadth-first search kernels, shared by host and lanes. */
#ifndef BFS_H
#define BFS_H

#include "../common/frontier.h"

/* Depth of a vertex nobody has reached. */
#define BFS_UNREACHED 0xffffffffu

/**
 * struct bfs_args - one level of a search
 * @graph: where it is
 * @frontier: the vertices of this level and the next
 * @depth: u32 per vertex
 * @level: depth of the vertices of this level
 */
struct bfs_args {
	struct graph_data graph;
	struct frontier frontier;
	weir_addr depth;
	u32 level;
	u32 padding;
};

#endif
