/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that are a function of (key, counter): any thread can make any part of a graph, in any
 * order. Integers only, so that every machine makes the same graph.
 */
#ifndef WEIR_TOOLS_GRAPH_RNG_H
#define WEIR_TOOLS_GRAPH_RNG_H

#include <stdint.h>

#include <weir/core/mix.h>

/** enum graph_purpose - each use of the seed draws from its own stream */
enum graph_purpose { GRAPH_FOR_EDGES = 1, GRAPH_FOR_PERMUTATION, GRAPH_FOR_WEIGHTS };

/** graph_key() - the key of one stream */
static inline uint64_t graph_key(uint64_t seed, enum graph_purpose purpose)
{
	return weir_mix_u64(weir_mix_u64(seed) + (uint64_t)purpose * UINT64_C(0xd1342543de82ef95));
}

/** graph_random() - the 64 bits number @counter of a stream (a Weyl sequence through weir_mix_u64()) */
static inline uint64_t graph_random(uint64_t key, uint64_t counter)
{
	return weir_mix_u64(key + counter * WEIR_MIX_STEP);
}

#define GRAPH_PERMUTATION_ROUNDS 5

/** struct graph_permutation - a keyed bijection on the numbers of @bits bits, 1 to 32 */
struct graph_permutation {
	unsigned bits;
	uint64_t factor[GRAPH_PERMUTATION_ROUNDS];
	uint64_t addend[GRAPH_PERMUTATION_ROUNDS];
};

/** graph_permutation_init() - choose the bijection for (@seed, @bits) */
void graph_permutation_init(struct graph_permutation *permutation, uint64_t seed, unsigned bits);

/** graph_permute() - where the bijection sends @id, which is below 2^bits */
uint32_t graph_permute(const struct graph_permutation *permutation, uint32_t id);

/** graph_edge_weight() - 1 to 255, the same for (a, b) and (b, a); @key from GRAPH_FOR_WEIGHTS */
uint32_t graph_edge_weight(uint64_t key, uint64_t a, uint64_t b);

#endif
