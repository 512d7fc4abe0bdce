/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h: arguments of the kernels in batch.k.c.
 */
#ifndef WEIR_TESTS_BATCH_H
#define WEIR_TESTS_BATCH_H

#include <weir/volume.h>

/* What is to be done with a request of test_batch that has ended. */
enum { TEST_BATCH_WRITTEN = 1, TEST_BATCH_READ = 2 };

/**
 * struct test_batch_args - each lane writes blocks of its own and reads them again
 * @batches: with a pool, out of which the buffers come
 * @results: u64[4] each: requests that ended well, ended otherwise, wrong words, requests given up
 * @rounds: blocks per lane
 * @past: lanes ask for blocks past the storage's end instead
 */
struct test_batch_args {
	struct weir_batches batches;
	weir_addr results;
	u32 rounds;
	u32 past;
};

#endif
