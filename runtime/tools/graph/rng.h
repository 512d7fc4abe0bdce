/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that are a function of (key, counter): any thread can make any part of a graph, in any
 * order. Integers only, so that every machine makes the same graph.
 */
#ifndef WEIR_TOOLS_GRAPH_RNG_H
#define WEIR_TOOLS_GRAPH_RNG_H

#include <stdint.h>

/** graph_mix() - a bijection on 64 bits in which each input bit moves about half of the output bits */
static inline uint64_t graph_mix(uint64_t x)
{
	/* Two rounds of xor-shift and multiply, with the constants of "Mix13" (Stafford 2011), which
	 * Steele, Lea and Flood (OOPSLA 2014) use as the output function of SplitMix. */
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/** enum graph_purpose - each use of the seed draws from its own stream */
enum graph_purpose { GRAPH_FOR_EDGES = 1, GRAPH_FOR_PERMUTATION, GRAPH_FOR_WEIGHTS };

/** graph_key() - the key of one stream */
static inline uint64_t graph_key(uint64_t seed, enum graph_purpose purpose)
{
	return graph_mix(graph_mix(seed) + (uint64_t)purpose * UINT64_C(0xd1342543de82ef95));
}

/** graph_random() - the 64 bits number @counter of a stream (a Weyl sequence through graph_mix()) */
static inline uint64_t graph_random(uint64_t key, uint64_t counter)
{
	return graph_mix(key + counter * UINT64_C(0x9e3779b97f4a7c15));
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
