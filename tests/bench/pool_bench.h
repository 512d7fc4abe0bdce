/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_bench.h: arguments of the kernel in pool_bench.k.c.
 */
#ifndef WEIR_TESTS_POOL_BENCH_H
#define WEIR_TESTS_POOL_BENCH_H

#include <weir/core/volume/allocator.h>

enum { POOL_BENCH_LIVE = 4, POOL_BENCH_ORDERS = 15, POOL_BENCH_RESULTS = 6 };

/** enum pool_bench_allocator - who gives memory */
enum pool_bench_allocator { POOL_BENCH_LEVELS, POOL_BENCH_BITMAP, POOL_BENCH_BUDDY, POOL_BENCH_ALLOCATORS };

/** enum pool_bench_mix - sizes: rows of table 1 of GNStor */
enum pool_bench_mix {
	POOL_BENCH_GRAPH,
	POOL_BENCH_CACHE,
	POOL_BENCH_TRAINING,
	POOL_BENCH_ALL,
	POOL_BENCH_MIXES
};

/**
 * struct pool_bench_args - each lane takes and gives back buffers, some at a time
 * @pool: struct weir_pool; of the others only its size is meant
 * @words: POOL_BENCH_BITMAP: u64 for each 64 pages, a bit for each free one; POOL_BENCH_BUDDY: the same of
 *         each order, one behind the other, which all have as much room as the first
 * @lock: u64 of POOL_BENCH_BUDDY
 * @used: u64: pages in buffers
 * @results: u64[POOL_BENCH_RESULTS] each: taken, failed, of these with as many pages free, pages asked for,
 *           pages given, wrong
 * @pages: of the pool
 * @rounds: per lane
 */
struct pool_bench_args {
	weir_addr pool;
	weir_addr words;
	weir_addr lock;
	weir_addr used;
	weir_addr results;
	u32 allocator;
	u32 mix;
	u32 pages;
	u32 rounds;
};

#endif
