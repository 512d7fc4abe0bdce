/* SPDX-License-Identifier: BSD-3-Clause */
/* Is each edge stored both ways? Answered in one pass, without memory. */
#ifndef WEIR_TOOLS_GRAPH_SYMMETRY_H
#define WEIR_TOOLS_GRAPH_SYMMETRY_H

#include "edge.h"
#include "rng.h"

#include <stdbool.h>
#include <stddef.h>

/**
 * struct graph_symmetry - sum over all edges of hash(edge) - hash(edge back)
 *
 * The edges and the edges turned around are the same multiset exactly when each edge is stored both ways
 * equally often, and then the sum is 0. Otherwise it is 0 with a chance of 2^-64.
 */
struct graph_symmetry {
	uint64_t sum;
};

static inline uint64_t graph_symmetry_hash(uint64_t from, uint64_t to, uint32_t weight)
{
	return weir_mix_u64(weir_mix_u64(weir_mix_u64(from + WEIR_MIX_STEP) + to) + weight);
}

/** graph_symmetry_add() - account for some edges */
static inline void graph_symmetry_add(struct graph_symmetry *symmetry, const struct graph_edge *edges,
				      size_t count)
{
	for (size_t i = 0; i < count; i++)
		symmetry->sum += graph_symmetry_hash(edges[i].source, edges[i].target, edges[i].weight) -
				 graph_symmetry_hash(edges[i].target, edges[i].source, edges[i].weight);
}

/** graph_is_symmetric() - the answer, once all edges were added */
static inline bool graph_is_symmetric(const struct graph_symmetry *symmetry)
{
	return symmetry->sum == 0;
}

#endif
