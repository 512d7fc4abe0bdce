/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h: arguments of the kernels in pool.k.c.
 */
#ifndef WEIR_TESTS_POOL_H
#define WEIR_TESTS_POOL_H

#include <weir/core/volume/allocator.h>

/**
 * struct test_pool_args - lanes take buffers of a pool
 * @pool: struct weir_pool
 * @results: u64[4] each: buffers that it got, that it did not get, wrong words found in them, statuses that
 *           were not as they should be
 * @rounds: how often
 * @pages: of a buffer at most; test_pool_hold: of each
 * @timeout_us: of weir_pool_take()
 * @held: weir_addr each: the buffer that it keeps; 0: none
 * @given_back: what is in @held is no buffer any more
 */
struct test_pool_args {
	weir_addr pool;
	weir_addr results;
	weir_addr held;
	u64 timeout_us;
	u32 rounds;
	u32 pages;
	u32 given_back;
};

#endif
