/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h: what a measurement runs on: context, storages, cache, memory, kernel arguments.
 *
 * Owns: their making and their end. The runs are run.c's and hit.c's.
 */
#ifndef WEIR_PERF_BENCH_H
#define WEIR_PERF_BENCH_H

#include <weir/weir.h>

#include "options.h"

/**
 * struct perf_bench - everything that is open during one measurement
 * @options: what was asked for
 * @context: the device
 * @device: what it is
 * @storages: open ones
 * @info: of each of them; the first one's block size is everybody's
 * @cache: of a cached load or a hit loop, or NULL
 * @range_bytes: of each storage
 * @unit_bytes: from one place to the next
 * @line_bytes: of the cache
 * @lanes: that work
 * @blocks: of the load's grid
 * @threads: lanes per block
 * @plain: where the baseline copies from, settled
 * @plain_blocks: of its grid
 * @plain_threads: lanes of each
 * @plain_bytes: size of what it copies from
 * @pattern: storages hold the pattern
 * @written_words: of perf_load.written; 0: nothing is read back
 * @pattern_seed: of the words that are checked, and of what the last run wrote that is read back: another one
 * in every run of every process, lest what an older one left be taken for what this one wrote
 * @results: device address of struct perf_results
 * @raw: arguments of the load on raw blocks
 * @cached: arguments of the cached load
 * @alongside: arguments of the baseline
 */
struct perf_bench {
	const struct perf_options *options;
	struct weir_context *context;
	struct weir_context_info device;
	struct weir_storage *storages[PERF_DISKS];
	struct weir_storage_info info[PERF_DISKS];
	struct weir_cache *cache;
	uint64_t range_bytes, unit_bytes, line_bytes;
	uint32_t lanes, blocks, threads;
	enum perf_plain plain;
	uint32_t plain_blocks, plain_threads;
	uint64_t plain_bytes;
	bool pattern;
	uint64_t written_words, pattern_seed;
	uint64_t results;
	struct perf_args raw;
	struct perf_cached_args cached;
	struct perf_plain_args alongside;
};

/** perf_bench_open() - 0, or -1 with one sentence; perf_bench_close() it in either case */
int perf_bench_open(struct perf_bench *bench, const struct perf_options *options);

/** perf_bench_close() - all that was opened; -1 with one sentence that says what is lost */
int perf_bench_close(struct perf_bench *bench);

/** perf_bench_grid() - @lanes as blocks of at most PERF_BLOCK_LANES lanes, whole waves where a block has
 * several */
void perf_bench_grid(const struct perf_bench *bench, uint32_t lanes, uint32_t *blocks, uint32_t *threads);

/** struct perf_launch - a kernel, its grid and its arguments */
struct perf_launch {
	const char *kernel;
	uint32_t blocks;
	uint32_t threads;
	const void *args;
	size_t args_bytes;
};

/**
 * perf_bench_launch() - one kernel, from its launch to its end
 * @bench: where
 * @launch: what
 * @found: what the lanes added up
 * @seconds: how long it took, as the host sees it
 *
 * Return: 0; -1 too if a request was left without an answer: nothing may run on its buffer.
 */
int perf_bench_launch(struct perf_bench *bench, struct perf_launch launch, struct perf_results *found,
		      double *seconds);

/** perf_bench_words() - @bytes at @address filled with random words by lanes */
int perf_bench_words(struct perf_bench *bench, uint64_t address, uint64_t bytes);

/** perf_bench_fill() - the pattern into the range of every storage, and bench->pattern */
int perf_bench_fill(struct perf_bench *bench);

/** perf_bench_renew() - before a run that is read back: nothing is written yet, and the pattern is a new one
 */
int perf_bench_renew(struct perf_bench *bench);

/** perf_word() - a word of the results; the lanes have ended */
static inline uint64_t perf_word(const weir_shared_u64 *word)
{
	return weir_load_u64_relaxed_sys(word);
}

#endif
