/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placed.h: arguments of the kernels in placed.k.c.
 */
#ifndef WEIR_TESTS_PLACED_H
#define WEIR_TESTS_PLACED_H

#include <weir/array.h>

/**
 * struct test_placed_args - lanes write or read each block of a storage once
 * @disk: the storage
 * @buffers: a buffer of @blocks blocks for each lane
 * @events: struct weir_event for each lane
 * @results: weir_shared_u64[3]: commands that ended well, ended otherwise, words that were wrong
 * @count: blocks from 0 on, a multiple of @blocks
 * @generation: of what is written, or is expected
 * @blocks: of a command
 * @opcode: NVME_OPCODE_READ or NVME_OPCODE_WRITE
 * @leaves: not 0: no lane waits for what it wrote
 */
struct test_placed_args {
	struct weir_disk disk;
	weir_addr buffers;
	weir_addr events;
	weir_addr results;
	u64 count;
	u64 generation;
	u32 blocks;
	u32 opcode;
	u32 leaves;
	u32 reserved;
};

/** struct test_placed_cached_args - lanes get the first word of each block by @array; the rest as above */
struct test_placed_cached_args {
	struct test_placed_args of;
	struct weir_array array;
};

#endif
