/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * async.h: arguments of the kernels in async.k.c.
 */
#ifndef WEIR_TESTS_ASYNC_H
#define WEIR_TESTS_ASYNC_H

#include "../rig/kernels.h"

enum test_wait_kind { TEST_WAIT_ALL, TEST_WAIT_ANY, TEST_WAIT_TEST, TEST_WAIT_TOGETHER, TEST_WAIT_KINDS };

/**
 * struct test_waits_args - every lane starts reads of single blocks, then waits for them
 * @disk: block b holds test_block_word(b, 1, w)
 * @kind: how it waits; TEST_WAIT_TOGETHER: for all events of all lanes, shared out
 * @outstanding: reads of a lane
 * @blocks: of the disk
 * @buffers: a block each
 */
struct test_waits_args {
	struct weir_disk disk;
	u32 kind;
	u32 outstanding;
	u64 blocks;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

/**
 * struct test_prefetch_args - lanes fetch elements ahead
 * @each: elements of a lane
 * @list: u64[] of indices, or 0 for ranges
 * @started: u64: commands that the lanes say they started
 */
struct test_prefetch_args {
	struct weir_array array;
	u64 each;
	weir_addr list;
	weir_addr started;
};

/**
 * struct test_copies_args - every lane copies lines into buffers, more than the queues hold
 * @array: 8-byte elements; word w is test_word(seed, w)
 * @outstanding: lines of a lane
 * @lines: of the array
 * @line_bytes: of a line; of the last one @tail_bytes
 * @path: WEIR_PATH_... that every event must tell, or 0
 * @salt: which lines
 */
struct test_copies_args {
	struct weir_array array;
	u64 seed;
	u32 outstanding;
	u32 path;
	u64 lines;
	u64 line_bytes;
	u64 tail_bytes;
	u64 salt;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

/** struct test_copy_args - lane 0 starts one copy; @statuses: u32[2]: of the start, of the wait */
struct test_copy_args {
	struct weir_array array;
	u64 line;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
};

/** struct test_copy_out_args - lane 0 kills a storage by a read, and then copies to it; @statuses: u32[3]: of
 * the read, of the copy's start, of its event, 0: it is pending */
struct test_copy_out_args {
	struct weir_writer writer;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
};

/** struct test_help_args - lanes wait for storages by turns, each for one block that @queue queue pairs from
 * their wave's have; all of them count as waiting to the end */
struct test_help_args {
	struct weir_disk disks[2];
	u32 iterations;
	u32 queue;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

/** struct test_reuse_args - two reads with one event; @leave: nobody waits for them; @statuses: u32[4] */
struct test_reuse_args {
	struct weir_disk disk;
	u32 leave;
	u32 reserved;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
};

#endif
