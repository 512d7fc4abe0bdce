/* SPDX-License-Identifier: BSD-3-Clause */
/* tier.h: arguments of the kernels in tier.k.c. */
#ifndef WEIR_TESTS_TIER_H
#define WEIR_TESTS_TIER_H

#include "writer_kernels.h"

enum test_tier_kind { TEST_TIER_GET, TEST_TIER_SPAN, TEST_TIER_ASYNC, TEST_TIER_PREFETCH, TEST_TIER_KINDS };

/**
 * struct test_tier_args - lanes read lines, and compare them with a copy in plain memory
 * @array: 8-byte elements from the storage's first on
 * @kind: how
 * @rounds: how often
 * @first: line
 * @count: lines, which the lanes share out
 * @model: what the storage has
 * @buffers: a line per lane; for TEST_TIER_SPAN, _ASYNC
 * @events: struct weir_event per lane; for TEST_TIER_ASYNC
 * @verdict: good: lines; sum: of these, those whose event told WEIR_PATH_TIER
 */
struct test_tier_args {
	struct weir_array array;
	u32 kind;
	u32 rounds;
	u64 first;
	u64 count;
	weir_addr model;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

/** struct test_mix_args - lanes read and write what is theirs, in random order
 * @writer: 8-byte elements
 * @each: elements of a lane, or with @whole lines of it
 * @steps: how often
 * @whole: lines, by spans and by copies; else single elements
 * @seed: which
 * @shadow: u64 per element, or with @whole per line the seed of all its elements: what must be there
 * @buffers: a line per lane
 * @events: struct weir_event per lane
 */
struct test_mix_args {
	struct weir_writer writer;
	u64 each;
	u32 steps;
	u32 whole;
	u64 seed;
	weir_addr shadow;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

#endif
