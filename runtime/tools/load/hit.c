/* SPDX-License-Identifier: BSD-3-Clause */
/* --hit: a cache that holds everything, against plain memory, the same loop over both. */
#include <errno.h>
#include <string.h>

#include "backend/error.h"
#include "check.h"
#include "run.h"

enum { FIRST_ROUNDS = 16, CALIBRATIONS = 40, FILL_LANES = 1024 };

static const struct {
	const char *weir, *plain;
} hit_kernels[] = {
	[PERF_HIT_RANDOM8] = { "hit_random8", "hit_random8_plain" },
	[PERF_HIT_WAVE256] = { "hit_wave256", "hit_wave256_plain" },
	[PERF_HIT_LINE4K] = { "hit_line4k", "hit_line4k_plain" },
};

/* The range in whole lines and whole wave reads. */
static uint64_t usable_bytes(const struct perf_bench *bench)
{
	uint64_t bytes = bench->range_bytes - bench->range_bytes % bench->line_bytes;

	return bytes - bytes % (8 * bench->device.wave_lanes);
}

static int open_arrays(struct perf_bench *bench, struct perf_hit_args *args, uint64_t bytes)
{
	uint64_t lines = (bytes + bench->line_bytes - 1) / bench->line_bytes;

	/* consecutive lines fill the sets one after the other: as many lines as data is all it takes */
	if (weir_cache_create(bench->context,
			      WEIR_OPTIONS(cache, .lines = lines, .line_bytes = (uint32_t)bench->line_bytes,
					   .policy = (enum weir_policy)bench->options->policy),
			      &bench->cache) != 0 ||
	    weir_array_open(bench->cache, bench->storages, 1,
			    WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = bench->options->offset,
					 .count = bytes / 8),
			    &args->array) != 0 ||
	    weir_alloc(bench->context, bytes, &args->plain) != 0)
		return weir_fail(EINVAL, "%s; --hit holds the range twice, --size makes it smaller",
				 weir_last_error());
	args->wide = args->array; /* the same lines, seen as elements of 16 bytes */
	args->wide.element_bytes = 16;
	args->wide.count = args->array.count / 2;
	return 0;
}

/* Both memories filled: storage by the pattern if that is allowed, cache by reading, plain memory likewise.
 */
static int fill(struct perf_bench *bench, struct perf_hit_args *args)
{
	struct perf_words_args words = { .address = args->plain,
					 .words = args->words,
					 .seed = bench->options->seed,
					 .array = args->array,
					 .first_word = bench->options->offset / 8,
					 .pattern = bench->pattern };
	struct perf_launch launch = { "hit_fill", bench->blocks, bench->threads, &words, sizeof(words) };
	struct perf_results found;
	double seconds;

	return perf_bench_launch(bench, launch, &found, &seconds);
}

/* Storages that may be written get the pattern; the fill's buffers are not needed afterwards. */
static int write_pattern(struct perf_bench *bench)
{
	struct perf_args *raw = &bench->raw;
	uint64_t block = bench->info[0].block_bytes, bs = bench->options->bs;
	uint32_t lanes = bench->lanes < FILL_LANES ? bench->lanes : FILL_LANES;

	if (!bench->options->verify && !perf_is_blank(bench->options->uris[0]))
		return 0;
	raw->disks = 1;
	raw->blocks = (uint32_t)(bs / block);
	raw->first_lba = bench->options->offset / block;
	raw->chunks = (bench->range_bytes + bs - 1) / bs;
	raw->last_lba = (bench->options->offset + bench->range_bytes - bs) / block;
	raw->stride_bytes = (bs + 4095) & ~(uint64_t)4095;
	raw->pattern_seed = bench->options->seed;
	raw->load.lanes = lanes;
	raw->load.results = bench->results;
	if (weir_alloc(bench->context, raw->stride_bytes * lanes, &raw->buffers) != 0 ||
	    weir_alloc(bench->context, sizeof(struct weir_event) * lanes, &raw->events) != 0)
		return -1;
	return perf_bench_fill(bench);
}

static int loop(struct perf_bench *bench, struct perf_hit_args *args, const char *kernel, uint64_t *sum,
		double *seconds)
{
	struct perf_launch launch = { kernel, bench->blocks, bench->threads, args, sizeof(*args) };
	struct perf_results found;

	if (perf_bench_launch(bench, launch, &found, seconds))
		return -1;
	*sum = perf_word(&found.checksum);
	return 0;
}

/* As many turns as take the time of a run. */
static int calibrate(struct perf_bench *bench, struct perf_hit_args *args)
{
	const char *kernel = hit_kernels[bench->options->hit].weir;
	double seconds = 0, wanted = bench->options->runtime;
	uint64_t sum;

	args->rounds = FIRST_ROUNDS;
	for (unsigned i = 0; i < CALIBRATIONS; i++) {
		if (loop(bench, args, kernel, &sum, &seconds))
			return -1;
		if (seconds >= wanted / 8)
			break;
		args->rounds *= 2;
	}
	args->rounds = (uint64_t)((double)args->rounds * wanted / seconds) + 1;
	return 0;
}

static int misses(struct perf_bench *bench, uint64_t *count)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	if (weir_cache_stats(bench->cache, &stats) != 0)
		return -1;
	*count = stats.misses;
	return 0;
}

static int hit_round(struct perf_bench *bench, struct perf_hit_args *args, struct perf_outcome *outcome)
{
	uint64_t readers = outcome->options.hit == PERF_HIT_RANDOM8 ? bench->lanes
								    : bench->lanes / bench->device.wave_lanes;
	uint64_t weir, plain;
	double seconds;

	if (loop(bench, args, hit_kernels[outcome->options.hit].weir, &weir, &seconds))
		return -1;
	perf_series_add(&outcome->weir, (double)readers * (double)args->rounds / seconds);
	if (loop(bench, args, hit_kernels[outcome->options.hit].plain, &plain, &seconds))
		return -1;
	perf_series_add(&outcome->plain, (double)readers * (double)args->rounds / seconds);
	if (weir != plain)
		return weir_fail(
			EINVAL,
			"the sum of what the cache gave is %016llx, of the plain memory %016llx: the "
			"cache returned wrong data",
			(unsigned long long)weir, (unsigned long long)plain);
	outcome->checksum = weir;
	return 0;
}

static int measure(struct perf_bench *bench, struct perf_hit_args *args, struct perf_outcome *outcome)
{
	uint64_t before = 0, after = 0;

	if (perf_kernel_note(outcome, bench->context, hit_kernels[outcome->options.hit].weir) ||
	    perf_kernel_note(outcome, bench->context, hit_kernels[outcome->options.hit].plain) ||
	    misses(bench, &before) || calibrate(bench, args))
		return -1;
	for (uint32_t i = 1; i <= bench->options->runs; i++) {
		args->seed = (uint64_t)bench->options->seed + i;
		if (hit_round(bench, args, outcome))
			return -1;
	}
	if (misses(bench, &after))
		return -1;
	outcome->hit_misses = after - before;
	return 0;
}

int perf_hit_run(struct perf_bench *bench, struct perf_outcome *outcome)
{
	struct perf_hit_args args;
	uint64_t bytes = usable_bytes(bench);

	memset(&args, 0, sizeof(args));
	args.words = bytes / 8;
	args.results = bench->results;
	args.line_bytes = bench->line_bytes;
	args.seed = bench->options->seed;
	outcome->bs = outcome->options.hit == PERF_HIT_RANDOM8   ? 8
		      : outcome->options.hit == PERF_HIT_WAVE256 ? 8 * bench->device.wave_lanes
								 : bench->line_bytes;
	if (write_pattern(bench) || open_arrays(bench, &args, bytes) || fill(bench, &args))
		return -1;
	outcome->filled = bench->pattern;
	return measure(bench, &args, outcome);
}
