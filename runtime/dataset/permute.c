/* SPDX-License-Identifier: BSD-3-Clause */
/* permute.c: the keyed permutation of permute.h. */
#include "permute.h"

void weir_dataset_permute_open(struct weir_dataset_permute *permute, uint64_t count, uint64_t seed,
			       uint64_t epoch, uint64_t purpose)
{
	uint64_t state = weir_mix_u64(weir_mix_u64(weir_mix_u64(seed + 1) + epoch) + purpose);

	permute->count = count;
	permute->half_bits = 1;
	while (permute->half_bits < 32 && (UINT64_C(1) << 2 * permute->half_bits) < count)
		permute->half_bits++;
	for (unsigned i = 0; i < WEIR_DATASET_ROUNDS; i++)
		permute->keys[i] = weir_mix_next(&state);
}

static uint64_t round_of(uint64_t half, uint64_t key, uint64_t mask)
{
	return (weir_mix_u64(half + key) >> 17) & mask;
}

static uint64_t forward(const struct weir_dataset_permute *permute, uint64_t value)
{
	uint64_t mask = (UINT64_C(1) << permute->half_bits) - 1, left = value >> permute->half_bits,
		 right = value & mask;

	for (unsigned i = 0; i < WEIR_DATASET_ROUNDS; i++) {
		uint64_t next = left ^ round_of(right, permute->keys[i], mask);

		left = right;
		right = next;
	}
	return left << permute->half_bits | right;
}

static uint64_t backward(const struct weir_dataset_permute *permute, uint64_t value)
{
	uint64_t mask = (UINT64_C(1) << permute->half_bits) - 1, left = value >> permute->half_bits,
		 right = value & mask;

	for (unsigned i = WEIR_DATASET_ROUNDS; i-- > 0;) {
		uint64_t previous = right ^ round_of(left, permute->keys[i], mask);

		right = left;
		left = previous;
	}
	return left << permute->half_bits | right;
}

uint64_t weir_dataset_permute_at(const struct weir_dataset_permute *permute, uint64_t index)
{
	do
		index = forward(permute, index);
	while (index >= permute->count);
	return index;
}

uint64_t weir_dataset_permute_index(const struct weir_dataset_permute *permute, uint64_t number)
{
	do
		number = backward(permute, number);
	while (number >= permute->count);
	return number;
}
