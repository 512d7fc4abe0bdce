/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * permute.h: a keyed permutation of 0 .. count - 1, and random numbers from the same key.
 *
 * Owns: the arithmetic behind the orders. Any rank computes any index of it, without memory or messages: a
 * Feistel network over the next even number of bits, walked until the result is below count.
 */
#ifndef WEIR_DATASET_PERMUTE_H
#define WEIR_DATASET_PERMUTE_H

#include <stdint.h>

#include <weir/core/mix.h>

enum { WEIR_DATASET_ROUNDS = 6 };

/** struct weir_dataset_permute - one permutation */
struct weir_dataset_permute {
	uint64_t count;
	uint64_t keys[WEIR_DATASET_ROUNDS];
	uint32_t half_bits;
};

/** weir_dataset_below() - a random number below @bound, 2^32 at most */
static inline uint64_t weir_dataset_below(uint64_t *state, uint64_t bound)
{
	return (weir_mix_next(state) >> 32) * bound >> 32;
}

/** weir_dataset_permute_open() - permutation of @count numbers that belongs to @seed, @epoch and @purpose */
void weir_dataset_permute_open(struct weir_dataset_permute *permute, uint64_t count, uint64_t seed,
			       uint64_t epoch, uint64_t purpose);

/** weir_dataset_permute_at() - number at @index, which is below count */
uint64_t weir_dataset_permute_at(const struct weir_dataset_permute *permute, uint64_t index);

/** weir_dataset_permute_index() - the index of @number: the inverse */
uint64_t weir_dataset_permute_index(const struct weir_dataset_permute *permute, uint64_t number);

#endif
