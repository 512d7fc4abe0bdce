/* SPDX-License-Identifier: BSD-3-Clause */
#include "radix.h"

#include <string.h>

#define DIGIT_VALUES  256u
#define KEY_DIGITS    8u
#define WEIGHT_DIGITS 4u

/* Digits from the least significant: those of the weight first, then those of the key. */
static inline unsigned digit_of(const uint64_t *record, unsigned words, unsigned digit)
{
	if (words == 1)
		return record[0] >> (8 * digit) & 255;
	return digit < WEIGHT_DIGITS ? record[1] >> (8 * digit) & 255
				     : record[0] >> (8 * (digit - WEIGHT_DIGITS)) & 255;
}

static inline void count_digits(const uint64_t *records, size_t count, unsigned words, unsigned digits,
				size_t (*counts)[DIGIT_VALUES])
{
	for (size_t i = 0; i < count; i++)
		for (unsigned digit = 0; digit < digits; digit++)
			counts[digit][digit_of(records + i * words, words, digit)]++;
}

static inline void scatter(const uint64_t *from, uint64_t *to, size_t count, unsigned words, unsigned digit,
			   size_t *counts)
{
	size_t position = 0;

	for (unsigned value = 0; value < DIGIT_VALUES; value++) {
		size_t here = counts[value];
		counts[value] = position;
		position += here;
	}
	for (size_t i = 0; i < count; i++) {
		const uint64_t *record = from + i * words;
		uint64_t *location = to + counts[digit_of(record, words, digit)]++ * words;
		location[0] = record[0];
		if (words == 2)
			location[1] = record[1];
	}
}

/* Inlined twice, so that each record size gets loops of its own. */
static inline __attribute__((always_inline)) uint64_t *sort_words(uint64_t *records, uint64_t *scratch,
								  size_t count, unsigned words)
{
	size_t counts[KEY_DIGITS + WEIGHT_DIGITS][DIGIT_VALUES];
	const unsigned digits = words == 1 ? KEY_DIGITS : KEY_DIGITS + WEIGHT_DIGITS;

	memset(counts, 0, sizeof(counts));
	count_digits(records, count, words, digits, counts);
	for (unsigned digit = 0; digit < digits; digit++) {
		/* A digit that is the same everywhere moves nothing: small graphs skip most passes. */
		if (counts[digit][digit_of(records, words, digit)] == count)
			continue;
		scatter(records, scratch, count, words, digit, counts[digit]);
		uint64_t *swap = records;
		records = scratch;
		scratch = swap;
	}
	return records;
}

uint64_t *graph_radix_sort(uint64_t *records, uint64_t *scratch, size_t count, unsigned words)
{
	if (count < 2)
		return records;
	return words == 1 ? sort_words(records, scratch, count, 1) : sort_words(records, scratch, count, 2);
}
