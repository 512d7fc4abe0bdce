/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retry.h: arguments of the kernel in retry.k.c.
 */
#ifndef WEIR_TESTS_RETRY_H
#define WEIR_TESTS_RETRY_H

#include <weir/abi.h>

/* How a lane goes to the storage. */
enum test_way {
	TEST_WAY_READ,  /* weir_read() */
	TEST_WAY_WRITE, /* weir_write() */
	TEST_WAY_FLUSH, /* weir_flush() */
	TEST_WAY_LOAD,  /* a word through the cache */
	TEST_WAY_BYTES, /* a block through the cache, into a buffer */
	TEST_WAY_COPY,  /* weir_async_read() and weir_async_finish() */
	TEST_WAY_AHEAD, /* weir_prefetch() by the first lane, then a word by all */
	TEST_WAY_EVICT, /* one element in each of six lines */
	TEST_WAY_PUT,   /* one element in the first line, then weir_writer_flush() */
	TEST_WAY_WAIT,  /* weir_read_async() and weir_wait() */
	TEST_WAY_ALL,   /* ... weir_wait_all() */
	TEST_WAY_ANY,   /* ... weir_wait_any() */
	TEST_WAY_TEST,  /* ... weir_test() until it is done */
	TEST_WAYS,
};

/**
 * struct test_retry_args - each lane makes one request of block 0 (TEST_WAY_WRITE: of its own)
 * @writer: 8-byte elements of the disk
 * @way: TEST_WAY_...
 * @timeout_us: of a raw request
 * @buffers: a block each
 * @events: struct weir_event each
 * @results: u64[2] each: status, first word
 */
struct test_retry_args {
	struct weir_disk disk;
	struct weir_writer writer;
	u64 timeout_us;
	weir_addr buffers;
	weir_addr events;
	weir_addr results;
	u32 way;
	u32 reserved;
};

#endif
