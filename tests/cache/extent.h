/* SPDX-License-Identifier: BSD-3-Clause */
/* extent.h: what the kernels of extent_test.c are given. */
#ifndef WEIR_TESTS_EXTENT_H
#define WEIR_TESTS_EXTENT_H

#include "../rig/kernels.h"

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

/** struct extent_block_args - blocks of a storage, past the cache, by one lane; @statuses: u32[2]: read,
 * write */
struct extent_block_args {
	struct weir_disk disk;
	u64 lba;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
	u32 write;
	u32 blocks;
};

/* What one lane does with an array of elements of another size, or past its extent. */
enum {
	EXTENT_GET_U8,
	EXTENT_GET_U16,
	EXTENT_GET_U32,
	EXTENT_GET_U64,
	EXTENT_GET_U128,
	EXTENT_GET_STRUCT, /* of 24 bytes */
	EXTENT_GET_FOUR,
	EXTENT_RUN,
	EXTENT_TRY_RUN,
	EXTENT_VIEW_U32,
	EXTENT_VIEW_U64,
	EXTENT_VIEW_U128,
	EXTENT_VIEW_OF,
	EXTENT_CURSOR_U32,
	EXTENT_CURSOR_U64,
	EXTENT_GATHER_U32,
	EXTENT_GATHER_U64,
	EXTENT_STRIDED_U64,
	EXTENT_READS, /* those from here on write */
	EXTENT_PUT_U8 = EXTENT_READS,
	EXTENT_PUT_U16,
	EXTENT_PUT_U32,
	EXTENT_PUT_U64,
	EXTENT_PUT_U128,
	EXTENT_ADD_U32,
	EXTENT_ADD_U64,
	EXTENT_ACCESSORS,
};

/** struct extent_record - a structure of 24 bytes */
struct extent_record {
	u64 a, b, c;
};

/** struct extent_misuse_args - element @index by accessor @kind; @buffer: room for what it reads, then what
 * it has got, u64 */
struct extent_misuse_args {
	struct weir_writer writer;
	u64 index;
	u32 kind;
	u32 reserved;
	weir_addr buffer;
};

/** struct extent_none_args - even lanes read element 0 of @array, odd ones no element of @none; @statuses:
 * u32 each */
struct extent_none_args {
	struct weir_array array;
	struct weir_array none;
	weir_addr buffers;
	weir_addr statuses;
};

#endif
