/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_edge.h"

/*
 * The Kronecker generator of the GAP benchmark suite (Beamer, Asanovic, Patterson, arXiv:1508.03619) and of
 * Graph500: at each of `scale` levels the edge falls into one quarter of the adjacency matrix, upper left
 * with probability A = 0.57, upper right with B = 0.19, lower left with C = 0.19, lower right with the rest.
 * The bounds are these sums times 2^32, rounded, and are held against 32 random bits.
 */
#define BOUND_A   UINT32_C(2448131359) /* 0.57 */
#define BOUND_AB  UINT32_C(3264175145) /* 0.76 */
#define BOUND_ABC UINT32_C(4080218931) /* 0.95 */

/* 64 random bits serve two levels, so 32 levels need 16 draws. */
#define DRAWS_PER_EDGE 16u

void graph_random_edges_init(struct graph_random_edges *edges, enum graph_kind kind, unsigned scale,
			     uint64_t seed)
{
	edges->kind = kind;
	edges->scale = scale;
	edges->key = graph_key(seed, GRAPH_FOR_EDGES);
	graph_permutation_init(&edges->permutation, seed, scale);
}

/* Without branches: which quarter it is cannot be predicted. */
static struct graph_edge kronecker(const struct graph_random_edges *edges, uint64_t index)
{
	uint32_t source = 0, target = 0;
	uint64_t bits = 0;

	for (unsigned level = 0; level < edges->scale; level++) {
		bits = level % 2 ? bits >> 32 : graph_random(edges->key, index * DRAWS_PER_EDGE + level / 2);
		const uint32_t point = (uint32_t)bits;
		const uint32_t lower = point >= BOUND_AB;
		const uint32_t right = (point >= BOUND_A) ^ lower ^ (point >= BOUND_ABC);
		source = source << 1 | lower;
		target = target << 1 | right;
	}
	return (struct graph_edge){ graph_permute(&edges->permutation, source),
				    graph_permute(&edges->permutation, target), 0 };
}

static struct graph_edge uniform(const struct graph_random_edges *edges, uint64_t index)
{
	uint64_t bits = graph_random(edges->key, index);
	return (struct graph_edge){ bits >> 32 >> (32 - edges->scale), (uint32_t)bits >> (32 - edges->scale),
				    0 };
}

struct graph_edge graph_random_edge(const struct graph_random_edges *edges, uint64_t index)
{
	return edges->kind == GRAPH_KRONECKER ? kronecker(edges, index) : uniform(edges, index);
}
