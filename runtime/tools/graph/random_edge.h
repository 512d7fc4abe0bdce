/* SPDX-License-Identifier: BSD-3-Clause */
/* The edges of the random graphs, each a function of its number. */
#ifndef WEIR_TOOLS_GRAPH_RANDOM_EDGE_H
#define WEIR_TOOLS_GRAPH_RANDOM_EDGE_H

#include "edge.h"
#include "graph.h"
#include "rng.h"

/** struct graph_random_edges - all that drawing an edge needs; read-only once made, so threads share it */
struct graph_random_edges {
	enum graph_kind kind;
	unsigned scale;
	uint64_t key;
	struct graph_permutation permutation;
};

/** graph_random_edges_init() - for 2^@scale vertices */
void graph_random_edges_init(struct graph_random_edges *edges, enum graph_kind kind, unsigned scale,
			     uint64_t seed);

/** graph_random_edge() - edge number @index, below 2^52; it may be a self loop or a repetition */
struct graph_edge graph_random_edge(const struct graph_random_edges *edges, uint64_t index);

#endif
