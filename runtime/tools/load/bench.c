/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/error.h"
#include "check.h"
#include "zipf.h"

enum {
	DEFAULT_LANES = 128,
	HIT_LANES = 2048,
	LEAST_TRANSFER = 65536,
	WORD_LANES = 65536,
	STRIPE = 64 << 10,
	ZERO_WORDS = 8192
};

void perf_bench_grid(const struct perf_bench *bench, uint32_t lanes, uint32_t *blocks, uint32_t *threads)
{
	uint32_t wave = bench->device.wave_lanes;

	*threads = lanes < PERF_BLOCK_LANES ? lanes : PERF_BLOCK_LANES;
	if (bench->options->hit != PERF_HIT_NONE)
		*threads = (*threads + wave - 1) / wave * wave;
	*blocks = (lanes + *threads - 1) / *threads;
}

/* Storages are opened for writing only if something will be written. */
static bool needs_writing(const struct perf_options *options, const char *uri)
{
	return perf_writes(options) || options->verify ||
	       (options->hit != PERF_HIT_NONE && perf_is_blank(uri));
}

static int open_storages(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	uint64_t transfer = LEAST_TRANSFER, need = options->bs > options->line ? options->bs : options->line;

	while (transfer < need && transfer < (uint64_t)1 << 31)
		transfer *= 2;
	for (uint32_t i = 0; i < options->uri_count; i++) {
		bench->info[i].size = sizeof(bench->info[i]);
		if (weir_storage_open(bench->context, options->uris[i],
				      WEIR_OPTIONS(storage, .queues = options->queues,
						   .depth = options->depth,
						   .max_transfer_bytes = (uint32_t)transfer,
						   .read_only = !needs_writing(options, options->uris[i])),
				      &bench->storages[i]) != 0 ||
		    weir_storage_info(bench->storages[i], &bench->info[i]) != 0 ||
		    weir_storage_disk(bench->storages[i], &bench->raw.disk[i]) != 0)
			return -1;
	}
	return 0;
}

/* What follows from the options once the storages are known. */
static void settle(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	uint64_t least = bench->info[0].bytes, block = bench->info[0].block_bytes;

	for (uint32_t i = 1; i < options->uri_count; i++)
		least = bench->info[i].bytes < least ? bench->info[i].bytes : least;
	bench->range_bytes = options->size             ? options->size
			     : least > options->offset ? least - options->offset
						       : 0;
	bench->range_bytes -= bench->range_bytes % block;
	if (options->uri_count > 1 && options->cached)
		bench->range_bytes -= bench->range_bytes % STRIPE;
	bench->unit_bytes = options->stride ? options->stride : options->bs;
	bench->line_bytes = options->line;
	if (!options->line && options->cached) /* the longest line of which a request is a multiple */
		bench->line_bytes = options->bs & (~options->bs + 1);
	if (!options->line && options->hit != PERF_HIT_NONE)
		bench->line_bytes = 4096;
	if (bench->line_bytes > 65536)
		bench->line_bytes = 65536;
	bench->lanes = options->iodepth                ? options->iodepth
		       : options->hit != PERF_HIT_NONE ? HIT_LANES * bench->device.workers
						       : DEFAULT_LANES;
	perf_bench_grid(bench, bench->lanes, &bench->blocks, &bench->threads);
	if (options->hit != PERF_HIT_NONE)
		bench->lanes = bench->blocks * bench->threads;
}

static void set_places(const struct perf_bench *bench, struct perf_load *load, uint64_t spans, uint32_t lanes)
{
	const struct perf_options *options = bench->options;

	load->indices.spans = spans;
	load->indices.kind = !perf_is_random(options) ? PERF_SEQUENTIAL
			     : options->zipf > 0      ? PERF_ZIPF
						      : PERF_RANDOM;
	if (options->zipf > 0)
		perf_zipf_prepare(&load->indices.zipf, spans, options->zipf);
	load->results = bench->results;
	load->lanes = lanes;
	load->reads_percent = !perf_writes(options) ? 100 : !perf_reads_any(options) ? 0 : options->mix;
	load->flags = options->no_latency ? 0 : PERF_LATENCY;
}

static uint64_t count_places(uint64_t bytes, uint64_t unit, uint64_t length)
{
	return (bytes - length) / unit + 1;
}

/* Of the words that are checked: another one in every run, lest what an older one left be taken for them. */
static uint64_t choose_seed(const struct perf_options *options)
{
	struct timespec now;

	if (!options->verify)
		return options->seed;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int prepare_raw(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	struct perf_args *args = &bench->raw;
	uint64_t block = bench->info[0].block_bytes, slots = (uint64_t)bench->lanes * options->window;

	args->disks = options->uri_count;
	args->window = options->window;
	args->blocks = (uint32_t)(options->bs / block);
	args->unit_blocks = (uint32_t)(bench->unit_bytes / block);
	args->first_lba = options->offset / block;
	args->chunks = (bench->range_bytes + options->bs - 1) / options->bs;
	args->last_lba = (options->offset + bench->range_bytes - options->bs) / block;
	args->stride_bytes = (options->bs + 4095) & ~(uint64_t)4095;
	args->pattern_seed = bench->pattern_seed = choose_seed(options);
	if (weir_alloc(bench->context, args->stride_bytes * slots, &args->buffers) != 0 ||
	    weir_alloc(bench->context, sizeof(struct weir_event) * slots, &args->events) != 0 ||
	    weir_alloc(bench->context, sizeof(uint64_t) * slots, &args->begins) != 0)
		return -1;
	set_places(bench, &args->load, count_places(bench->range_bytes, bench->unit_bytes, options->bs),
		   bench->lanes);
	return perf_bench_words(bench, args->buffers, args->stride_bytes * slots);
}

static int open_array(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	struct weir_array_options array = { .size = sizeof(array),
					    .element_bytes = 8,
					    .stripe_bytes = STRIPE,
					    .first_byte = options->offset * options->uri_count,
					    .count = bench->range_bytes * options->uri_count / 8 };
	int code = perf_writes(options) ? weir_writer_open(bench->cache, bench->storages, options->uri_count,
							   &array, &bench->cached.writer)
					: weir_array_open(bench->cache, bench->storages, options->uri_count,
							  &array, &bench->cached.writer.array);

	return code ? -1 : 0;
}

/* Where loads that only write note what they wrote, to be read back. */
static int prepare_written(struct perf_bench *bench)
{
	uint64_t raw = bench->raw.load.indices.spans * bench->options->uri_count,
		 cached = bench->cached.load.indices.spans;
	uint64_t words = ((raw > cached ? raw : cached) + 31) / 32, address;

	if (!perf_reads_back(bench->options))
		return 0;
	if (weir_alloc(bench->context, words * sizeof(uint64_t), &address) != 0)
		return weir_fail(
			EINVAL,
			"no %llu bytes to note for --verify what was written (%s); give a smaller --size",
			(unsigned long long)(words * sizeof(uint64_t)), weir_last_error());
	bench->raw.load.written = bench->cached.load.written = address;
	bench->written_words = words;
	return 0;
}

int perf_bench_renew(struct perf_bench *bench)
{
	static const uint64_t none[ZERO_WORDS];

	if (!bench->written_words)
		return 0;
	bench->raw.pattern_seed = bench->cached.pattern_seed = ++bench->pattern_seed;
	for (uint64_t i = 0; i < bench->written_words; i += ZERO_WORDS) {
		uint64_t words =
			bench->written_words - i < ZERO_WORDS ? bench->written_words - i : ZERO_WORDS;

		if (weir_copy_to_device(bench->context, bench->raw.load.written + i * 8, none, words * 8) !=
		    0)
			return -1;
	}
	return 0;
}

static int prepare_cache(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	uint64_t bytes = bench->range_bytes * options->uri_count;
	struct perf_cached_args *args = &bench->cached;

	if (weir_cache_create(
		    bench->context,
		    WEIR_OPTIONS(cache, .bytes = options->cached, .line_bytes = (uint32_t)bench->line_bytes,
				 .policy = (enum weir_policy)options->policy, .tier_bytes = options->tier,
				 .tier_inclusive = options->tier_inclusive),
		    &bench->cache) != 0)
		return -1;
	if (open_array(bench))
		return -1;
	args->buffers = bench->raw.buffers;
	args->events = bench->raw.events;
	args->stride_bytes = bench->raw.stride_bytes;
	args->pattern_seed = bench->pattern_seed;
	args->unit_words = bench->unit_bytes / 8;
	args->words = (uint32_t)(options->bs / 8);
	args->line_words = (uint32_t)(bench->line_bytes / 8);
	set_places(bench, &args->load, count_places(bytes, bench->unit_bytes, options->bs), bench->lanes);
	return 0;
}

/* What the baseline copies from, unless it was said. */
static enum perf_plain choose_plain(const struct perf_bench *bench)
{
	if (bench->options->plain != PERF_PLAIN_AUTO)
		return (enum perf_plain)bench->options->plain;
	if (perf_on_cpu(bench))
		return PERF_PLAIN_OFF;
	return perf_in_device(bench) ? PERF_PLAIN_DEVICE : PERF_PLAIN_HOST;
}

static int prepare_plain(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	struct perf_plain_args *args = &bench->alongside;
	uint64_t spans = count_places(bench->range_bytes * options->uri_count, bench->unit_bytes,
				      options->bs),
		 most;
	uint32_t lanes;
	void *host;
	int code;

	bench->plain = choose_plain(bench);
	if (bench->plain == PERF_PLAIN_OFF)
		return 0;
	if (options->plain_bytes < options->bs)
		return weir_fail(EINVAL, "--plain-bytes=%llu: not even one request of %llu bytes fits",
				 (unsigned long long)options->plain_bytes, (unsigned long long)options->bs);
	most = count_places(options->plain_bytes, bench->unit_bytes, options->bs);
	spans = spans < most ? spans : most;
	bench->plain_bytes = (spans - 1) * bench->unit_bytes + options->bs;
	code = bench->plain == PERF_PLAIN_HOST
		       ? weir_alloc_host(bench->context, bench->plain_bytes, &args->source, &host)
		       : weir_alloc(bench->context, bench->plain_bytes, &args->source);
	if (code)
		return weir_fail(EINVAL,
				 "no %llu bytes for the plain kernel to copy from (%s); give less by "
				 "--plain-bytes, or --plain=off",
				 (unsigned long long)bench->plain_bytes, weir_last_error());
	bench->plain_blocks = options->plain_blocks ? options->plain_blocks : bench->blocks;
	bench->plain_threads = options->plain_threads ? options->plain_threads : bench->threads;
	lanes = options->plain_blocks ? bench->plain_blocks * bench->plain_threads : bench->lanes;
	args->buffers = bench->raw.buffers;
	args->buffer_count = bench->lanes;
	args->stride_bytes = bench->raw.stride_bytes;
	args->unit_bytes = bench->unit_bytes;
	args->bytes = (uint32_t)options->bs;
	set_places(bench, &args->load, spans, lanes);
	return perf_bench_words(bench, args->source, bench->plain_bytes);
}

static int open_device(struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;

	bench->device.size = sizeof(bench->device);
	if (weir_context_open(options->backend,
			      WEIR_OPTIONS(context, .workers = options->workers, .wave_lanes = options->wave,
					   .service_waves = options->service),
			      &bench->context) != 0 ||
	    weir_context_info(bench->context, &bench->device) != 0 ||
	    weir_alloc(bench->context, sizeof(struct perf_results), &bench->results) != 0)
		return -1;
	return 0;
}

int perf_bench_open(struct perf_bench *bench, const struct perf_options *options)
{
	bool hit = options->hit != PERF_HIT_NONE;

	memset(bench, 0, sizeof(*bench));
	bench->options = options;
	bench->plain = PERF_PLAIN_OFF;
	if (open_device(bench) || open_storages(bench))
		return -1;
	settle(bench);
	if (perf_check_storages(bench) || (!hit && prepare_raw(bench)))
		return -1;
	if (options->verify && !hit && !perf_reads_back(options) && perf_bench_fill(bench))
		return -1;
	if (options->cached && prepare_cache(bench))
		return -1;
	if (!hit && prepare_written(bench))
		return -1;
	return hit ? 0 : prepare_plain(bench);
}

int perf_bench_close(struct perf_bench *bench)
{
	return weir_context_close(bench->context) ? -1 : 0; /* with its cache and storages */
}

int perf_bench_launch(struct perf_bench *bench, struct perf_launch launch, struct perf_results *found,
		      double *seconds)
{
	uint64_t begin;
	int code;

	memset(found, 0, sizeof(*found));
	code = weir_copy_to_device(bench->context, bench->results, found, sizeof(*found));
	begin = weir_clock_ns();
	if (!code)
		code = weir_launch(bench->context, launch.kernel, launch.blocks, launch.threads, launch.args,
				   launch.args_bytes);
	if (!code)
		code = weir_sync(bench->context);
	*seconds = (double)(weir_clock_ns() - begin) / 1e9;
	if (!code)
		code = weir_copy_from_device(bench->context, found, bench->results, sizeof(*found));
	if (code)
		return -1;
	if (perf_word(&found->stuck))
		return weir_fail(
			EINVAL,
			"%llu requests had no answer within the storage's time limit; its controller "
			"hangs or lost them",
			(unsigned long long)perf_word(&found->stuck));
	return 0;
}

int perf_bench_words(struct perf_bench *bench, uint64_t address, uint64_t bytes)
{
	struct perf_words_args args = { .address = address,
					.words = bytes / 8,
					.seed = bench->options->seed };
	uint64_t lanes = args.words < WORD_LANES ? args.words : WORD_LANES;
	struct perf_launch launch = { "perf_words",
				      (uint32_t)((lanes + PERF_BLOCK_LANES - 1) / PERF_BLOCK_LANES),
				      PERF_BLOCK_LANES, &args, sizeof(args) };
	struct perf_results found;
	double seconds;

	return perf_bench_launch(bench, launch, &found, &seconds);
}

int perf_bench_fill(struct perf_bench *bench)
{
	uint32_t blocks = (uint32_t)((bench->raw.load.lanes + bench->threads - 1) / bench->threads);
	struct perf_launch launch = { "perf_fill", blocks, bench->threads, &bench->raw, sizeof(bench->raw) };
	struct perf_results found;
	char text[80];
	double seconds;

	if (perf_bench_launch(bench, launch, &found, &seconds))
		return -1;
	weir_status_text((uint32_t)perf_word(&found.status), text);
	if (perf_word(&found.errors))
		return weir_fail(EINVAL,
				 "cannot fill the storage before it is verified: %llu of %llu writes failed, "
				 "one of them with: %s",
				 (unsigned long long)perf_word(&found.errors),
				 (unsigned long long)(perf_word(&found.writes) + perf_word(&found.errors)),
				 text);
	bench->pattern = true;
	return 0;
}
