/* SPDX-License-Identifier: BSD-3-Clause */
/* extent.h: what the kernels of extent_test.c are given. */
#ifndef WEIR_TESTS_EXTENT_H
#define WEIR_TESTS_EXTENT_H

#include "kernels.h"

/* The element at @index of a dataset made with @seed. */
WEIR_FN u32 extent_value(u64 seed, u64 index)
{
	return (u32)test_mix(seed + index);
}

/** struct extent_elements_args - every element of an array, by all lanes */
struct extent_elements_args {
	struct weir_writer writer;
	u64 seed;
	weir_addr verdict;
};

/** struct extent_block_args - blocks of a storage, past the cache, by one lane; @statuses: u32[2]: read, write */
struct extent_block_args {
	struct weir_disk disk;
	u64 lba;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
	u32 write;
	u32 blocks;
};

#endif
