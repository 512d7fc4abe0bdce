/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_bench.c: buffers for lanes: the pool's three levels of bitmaps, a single bitmap of pages, and a buddy
 * allocator behind a lock, on the request sizes of table 1 of GNStor. One JSON object per line.
 *
 * The three of a mix run one after the other, and that several times: the figure is the median.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "pool_bench.h"

enum { BLOCK_LANES = 64, MOST_RUNS = 15, ROUNDS_OF_ALL = 500000, LEAST_ROUNDS = 20 };

static const char *const allocators[POOL_BENCH_ALLOCATORS] = { "levels", "bitmap", "buddy" };
static const char *const mixes[POOL_BENCH_MIXES] = { "graph", "kv-cache", "training", "all" };

/** struct bench - what is measured: lanes on a context, one pool of @pages pages for each mix */
struct bench {
	struct weir_context *context;
	uint32_t lanes;
	uint32_t rounds;
	uint32_t runs;
	uint32_t pages;
	uint64_t results;
};

/** struct run - sums over lanes, and how long it took */
struct run {
	double seconds;
	uint64_t sums[POOL_BENCH_RESULTS];
};

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "pool-bench: %s\n", weir_last_error());
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Pages that all lanes have at a time when each has half of its slots full, and a tenth more: it is tight. */
static uint32_t pages_for(uint32_t lanes, enum pool_bench_mix mix)
{
	static const uint32_t mean_tenths[POOL_BENCH_MIXES] = { 15, 1690, 5010, 1270 };
	uint64_t pages = (uint64_t)lanes * POOL_BENCH_LIVE / 2 * mean_tenths[mix] / 10 * 11 / 10;

	return (uint32_t)((pages + WEIR_POOL_CHUNK_PAGES - 1) / WEIR_POOL_CHUNK_PAGES *
			  WEIR_POOL_CHUNK_PAGES);
}

/* All is free: pages of the bitmap, units of the buddy, as large as they can be. */
static uint64_t *free_words(uint32_t pages, enum pool_bench_allocator allocator, size_t *bytes)
{
	uint64_t *words;

	*bytes = (size_t)pages / 8 * (allocator == POOL_BENCH_BUDDY ? POOL_BENCH_ORDERS : 1);
	words = calloc(1, *bytes);
	if (!words)
		exit(1);
	if (allocator == POOL_BENCH_BITMAP)
		memset(words, 0xff, *bytes);
	for (uint32_t page = 0, order; allocator == POOL_BENCH_BUDDY && page < pages; page += 1u << order) {
		order = POOL_BENCH_ORDERS - 1;
		while ((page & ((1u << order) - 1)) || page + (1u << order) > pages)
			order--;
		words[order * (pages / 64) + (page >> order) / 64] |= (uint64_t)1 << (page >> order) % 64;
	}
	return words;
}

static struct run measure(struct bench *bench, enum pool_bench_mix mix, enum pool_bench_allocator allocator)
{
	struct pool_bench_args args = {
		.allocator = allocator, .mix = mix, .pages = bench->pages, .rounds = bench->rounds
	};
	struct weir_pool_options options = { .size = sizeof(options),
					     .bytes = (uint64_t)bench->pages << WEIR_POOL_PAGE_LOG2 };
	size_t result_bytes = (size_t)bench->lanes * POOL_BENCH_RESULTS * 8, word_bytes;
	uint64_t *words = free_words(bench->pages, allocator, &word_bytes), *results = malloc(result_bytes);
	struct weir_buffer_pool *pool = NULL;
	struct run run = { .seconds = 0 };

	if (!results)
		exit(1);
	if (allocator == POOL_BENCH_LEVELS)
		must(weir_pool_create(bench->context, &options, &pool));
	args.pool = pool ? weir_pool_address(pool) : 0;
	must(weir_alloc(bench->context, word_bytes, &args.words));
	must(weir_alloc(bench->context, 256, &args.lock));
	must(weir_alloc(bench->context, result_bytes, &args.results));
	must(weir_copy_to_device(bench->context, args.words, words, word_bytes));
	args.used = args.lock + 128;
	must(weir_sync(bench->context));
	run.seconds = -now();
	must(weir_launch(bench->context, "pool_bench", bench->lanes / BLOCK_LANES, BLOCK_LANES, &args,
			 sizeof(args)));
	must(weir_sync(bench->context));
	run.seconds += now();
	must(weir_copy_from_device(bench->context, results, args.results, result_bytes));
	for (size_t i = 0; i < (size_t)bench->lanes * POOL_BENCH_RESULTS; i++)
		run.sums[i % POOL_BENCH_RESULTS] += results[i];
	must(weir_free(bench->context, args.words));
	must(weir_free(bench->context, args.lock));
	must(weir_free(bench->context, args.results));
	must(weir_pool_destroy(pool));
	free(results);
	free(words);
	return run;
}

static int by_seconds(const void *a, const void *b)
{
	double x = ((const struct run *)a)->seconds, y = ((const struct run *)b)->seconds;

	return x < y ? -1 : x > y;
}

static void print(const struct bench *bench, enum pool_bench_mix mix, enum pool_bench_allocator allocator,
		  const struct run *run)
{
	const uint64_t *sums = run->sums;
	double tried = (double)(sums[0] + sums[1]);

	printf("{\"mix\": \"%s\", \"allocator\": \"%s\", \"lanes\": %u, \"pool_mib\": %u, \"calls_per_s\": "
	       "%.0f, "
	       "\"failed\": %.4f, \"failed_fragmented\": %.4f, \"given_per_asked\": %.3f, \"wrong\": %llu}\n",
	       mixes[mix], allocators[allocator], bench->lanes, bench->pages / WEIR_POOL_CHUNK_PAGES,
	       (tried + (double)sums[0]) / run->seconds, (double)sums[1] / tried, (double)sums[2] / tried,
	       (double)sums[4] / (double)(sums[3] ? sums[3] : 1), (unsigned long long)sums[5]);
}

static void measure_mix(struct bench *bench, enum pool_bench_mix mix)
{
	static struct run runs[POOL_BENCH_ALLOCATORS][MOST_RUNS];

	bench->pages = pages_for(bench->lanes, mix);
	for (uint32_t i = 0; i < bench->runs; i++)
		for (unsigned a = 0; a < POOL_BENCH_ALLOCATORS; a++) {
			runs[a][i] = measure(bench, mix, a);
			fprintf(stderr, "pool-bench: %s, %s, run %u of %u: %.3f s\n", mixes[mix],
				allocators[a], i + 1, bench->runs, runs[a][i].seconds);
		}
	for (unsigned a = 0; a < POOL_BENCH_ALLOCATORS; a++) {
		qsort(runs[a], bench->runs, sizeof(struct run), by_seconds);
		print(bench, mix, a, &runs[a][bench->runs / 2]);
	}
	(void)fflush(stdout);
}

/* pool-bench [CONTEXT [LANES [ROUNDS [RUNS]]]] */
int main(int argc, char **argv)
{
	struct bench bench = { .lanes = 1024, .runs = 5 };
	struct weir_context_options options = { .size = sizeof(options), .wave_lanes = 32 };
	const char *name = argc > 1 ? argv[1] : "cpu";

	if (argc > 2)
		bench.lanes = (uint32_t)strtoul(argv[2], NULL, 10) / BLOCK_LANES * BLOCK_LANES;
	/* Behind a lock one lane goes after the other: as many calls, however many lanes there are. */
	bench.rounds = bench.lanes ? ROUNDS_OF_ALL / bench.lanes + LEAST_ROUNDS : 0;
	if (argc > 3)
		bench.rounds = (uint32_t)strtoul(argv[3], NULL, 10);
	if (argc > 4)
		bench.runs = (uint32_t)strtoul(argv[4], NULL, 10);
	if (!bench.lanes || !bench.rounds || !bench.runs || bench.runs > MOST_RUNS) {
		fprintf(stderr,
			"pool-bench [CONTEXT [LANES (a multiple of 64) [ROUNDS [RUNS (15 at most)]]]]\n");
		return 2;
	}
	must(weir_context_open(name, strcmp(name, "cpu") ? NULL : &options, &bench.context));
	for (unsigned mix = 0; mix < POOL_BENCH_MIXES; mix++)
		measure_mix(&bench, mix);
	must(weir_context_close(bench.context));
	return 0;
}
