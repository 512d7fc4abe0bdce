/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h: arguments of the test kernels, and the contents they agree on.
 *
 * Owns: what a word of a test storage holds. Every kernel counts what was wrong
 * in test_verdict.bad and keeps one example.
 */
#ifndef WEIR_TESTS_KERNELS_H
#define WEIR_TESTS_KERNELS_H

#include <weir/abi.h>

/** struct test_verdict - what lanes found; @bad mistakes, the first one's details */
struct test_verdict {
	weir_shared_u64 bad;
	weir_shared_u64 good;
	weir_shared_u64 sum;
	u64 where;
	u64 found;
	u64 expected;
	u64 reserved[2];
};

WEIR_ASSERT_SIZE(struct test_verdict, 64);

/* A word nobody gets by accident (the finaliser of MurmurHash3). */
WEIR_FN u64 test_mix(u64 x)
{
	x = (x ^ (x >> 33)) * (u64)0xff51afd7ed558ccdu;
	x = (x ^ (x >> 33)) * (u64)0xc4ceb9fe1a85ec53u;
	return x ^ (x >> 33);
}

/** test_word() - 8-byte word @word of a dataset */
WEIR_FN u64 test_word(u64 seed, u64 word)
{
	return test_mix(word + seed * (u64)0x9e3779b97f4a7c15u + 1);
}

/** test_block_word() - 4-byte word @word of block @lba in generation @generation */
WEIR_FN u32 test_block_word(u64 lba, u64 generation, u32 word)
{
	return (u32)test_mix((lba << 24) ^ (generation << 12) ^ word);
}

/** struct test_location - what one lane said about itself */
struct test_location {
	weir_shared_u64 visits;
	u64 threads;
	u64 wave;
	u32 lane;
	u32 lanes;
};

struct test_grid_args {
	weir_addr locations; /* struct test_location per thread */
	u64 count;
	weir_addr verdict;
};

struct test_count_args {
	weir_addr verdict;
	u64 adds;
	u64 launch;
	u64 relaxes;
};

/**
 * struct test_blocks_args - write, read back and compare
 * @disk: lane t uses disk t % @disk_count
 * @first_lba: where the blocks of all lanes begin
 * @blocks: blocks per request
 * @span: bytes of buffer per request
 * @offset: where in it the data begins
 * @outstanding: requests a lane starts before it waits
 * @flush: flush between writing and reading
 * @path: WEIR_PATH_... that every event must tell
 */
struct test_blocks_args {
	struct weir_disk disk[2];
	u64 first_lba;
	u32 disk_count;
	u32 blocks;
	u64 span;
	u64 offset;
	u32 outstanding;
	u32 rounds;
	u32 flush;
	u32 path;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

/** struct test_request_args - one request by one lane; @statuses: of the first and a later wait */
struct test_request_args {
	struct weir_disk disk;
	u32 opcode;
	u32 blocks;
	u64 lba;
	u64 timeout_us;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
};

/* Who is told of a refused request. */
enum test_reported {
	TEST_REPORTED_WAIT,
	TEST_REPORTED_ALL,
	TEST_REPORTED_ANY,
	TEST_REPORTED_TEST,
	TEST_REPORTED_BLOCK,
	TEST_REPORTED
};

/**
 * struct test_service_args - a read, an element, a flush of it
 * @results: u64[4]: status, first word, element 64, the flush's status
 */
struct test_service_args {
	struct weir_disk disk;
	struct weir_writer writer;
	weir_addr buffer;
	weir_addr event;
	weir_addr results;
};

enum { TEST_ROW = 8 }; /* words of a row in test_rows */

enum test_read_kind { TEST_READ_RANDOM, TEST_READ_SEQUENTIAL };

/** struct test_record - a 24-byte element */
struct test_record {
	u64 a, b, c;
};

/** struct test_array_args - compare elements with test_word(seed[i]) */
struct test_array_args {
	struct weir_array array[2];
	u64 seed[2];
	u32 array_count;
	u32 kind;
	u64 reads;
	u64 salt;
	weir_addr verdict;
};

/** struct test_sum_args - the sum of all 8-byte elements; @by_view: by views, else by runs */
struct test_sum_args {
	struct weir_array array;
	u32 by_view;
	u32 reserved;
	weir_addr verdict;
};

struct test_get_args {
	struct weir_array array;
	u64 index;
	u64 lane;
	weir_addr verdict;
};

#endif
