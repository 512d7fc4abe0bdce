/* SPDX-License-Identifier: BSD-3-Clause */
#include "rng.h"

void graph_permutation_init(struct graph_permutation *permutation, uint64_t seed, unsigned bits)
{
	uint64_t key = graph_key(seed, GRAPH_FOR_PERMUTATION) + bits;

	permutation->bits = bits;
	for (unsigned i = 0; i < GRAPH_PERMUTATION_ROUNDS; i++) {
		permutation->factor[i] = graph_random(key, 2 * i) | 1;
		permutation->addend[i] = graph_random(key, 2 * i + 1);
	}
}

/*
 * Each step can be undone on `bits` bits: an odd factor has an inverse modulo 2^bits, and folding the upper
 * half onto the lower half leaves the upper half to undo it with. The fold carries the well mixed upper bits
 * down, the next product carries them up again.
 */
uint32_t graph_permute(const struct graph_permutation *permutation, uint32_t id)
{
	const uint64_t mask = (UINT64_C(1) << permutation->bits) - 1;
	const unsigned half = (permutation->bits + 1) / 2;
	uint64_t x = id;

	for (unsigned i = 0; i < GRAPH_PERMUTATION_ROUNDS; i++) {
		x = (x * permutation->factor[i] + permutation->addend[i]) & mask;
		x ^= x >> half;
	}
	return (uint32_t)x;
}

uint32_t graph_edge_weight(uint64_t key, uint64_t a, uint64_t b)
{
	uint64_t low = a < b ? a : b;
	uint64_t high = a < b ? b : a;
	uint64_t hash = graph_random(key ^ weir_mix_u64(low), high);

	return 1 + (uint32_t)((hash >> 32) * 255 >> 32);
}
