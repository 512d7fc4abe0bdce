/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

enum { BLOCK_LANES = 128, CHUNK_LINES = 2048 };

static int fill(struct bed *bed)
{
	uint64_t *words = calloc(CHUNK_LINES, REPLAY_LINE_BYTES);
	int error = words ? 0 : -ENOMEM;

	for (uint64_t first = 0; first < bed->span && !error; first += CHUNK_LINES) {
		uint64_t count = bed->span - first < CHUNK_LINES ? bed->span - first : CHUNK_LINES;

		for (uint64_t i = 0; i < count; i++)
			words[i * REPLAY_LINE_WORDS] = replay_word(first + i);
		error = weir_storage_write(bed->storage, first * REPLAY_LINE_BYTES, words, count * REPLAY_LINE_BYTES);
	}
	free(words);
	return error;
}

int bed_open(struct bed *bed, const struct bed_options *options)
{
	char uri[64];
	int error;

	memset(bed, 0, sizeof(*bed));
	bed->span = options->span;
	snprintf(uri, sizeof(uri), "virt:%llu?block=512", (unsigned long long)bed->span * REPLAY_LINE_BYTES);
	error = weir_context_open(options->backend, options->context, &bed->context);
	if (!error)
		error = weir_storage_open(bed->context, uri, NULL, &bed->storage);
	if (!error)
		error = weir_alloc(bed->context, sizeof(struct replay_verdict), &bed->verdict);
	return error ? error : fill(bed);
}

int bed_close(struct bed *bed)
{
	return weir_context_close(bed->context);
}

/* Everything is laid out: run it. */
static int launch(struct bed *bed, struct replay_args *args, uint32_t lanes)
{
	uint32_t threads = lanes < BLOCK_LANES ? lanes : BLOCK_LANES;
	struct replay_verdict verdict;
	int error;

	memset(&verdict, 0, sizeof(verdict));
	error = weir_copy_in(bed->context, bed->verdict, &verdict, sizeof(verdict));
	if (!error)
		error = weir_launch(bed->context, "replay", (lanes + threads - 1) / threads, threads, args, sizeof(*args));
	if (!error)
		error = weir_sync(bed->context);
	if (!error)
		error = weir_copy_out(bed->context, &verdict, bed->verdict, sizeof(verdict));
	return error ? error : weir_load_u64_relaxed_sys(&verdict.wrong) ? -EBADMSG : 0;
}

static int replay(struct bed *bed, struct weir_cache *cache, const struct trace *trace, uint32_t lanes, uint64_t *misses)
{
	struct replay_args args = { .count = trace->count, .verdict = bed->verdict };
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	int error = weir_array_open(cache, &bed->storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &args.array);

	if (!error)
		error = weir_alloc(bed->context, trace->count * sizeof(uint64_t), &args.lines);
	if (error)
		return error;
	error = weir_copy_in(bed->context, args.lines, trace->lines, trace->count * sizeof(uint64_t));
	if (!error)
		error = launch(bed, &args, lanes);
	if (!error)
		error = weir_cache_stats(cache, &stats);
	*misses = stats.misses;
	(void)weir_free(bed->context, args.lines);
	return error;
}

int bed_replay(struct bed *bed, const struct bed_cache *options, const struct trace *trace, uint64_t *misses)
{
	struct weir_cache *cache;
	int closed;
	int error = weir_cache_create(bed->context,
				      WEIR_OPTIONS(cache, .lines = options->lines, .line_bytes = REPLAY_LINE_BYTES,
						   .policy = options->policy),
				      &cache);

	if (error)
		return error;
	error = replay(bed, cache, trace, options->lanes, misses);
	closed = weir_cache_destroy(cache);
	return error ? error : closed;
}
