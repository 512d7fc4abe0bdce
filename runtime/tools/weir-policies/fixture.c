/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

enum { BLOCK_LANES = 128, CHUNK_LINES = 2048 };

static int fill(struct fixture *fixture)
{
	uint64_t *words = calloc(CHUNK_LINES, REPLAY_LINE_BYTES);
	int error = words ? 0 : -ENOMEM;

	for (uint64_t first = 0; first < fixture->span && !error; first += CHUNK_LINES) {
		uint64_t count = fixture->span - first < CHUNK_LINES ? fixture->span - first : CHUNK_LINES;

		for (uint64_t i = 0; i < count; i++)
			words[i * REPLAY_LINE_WORDS] = replay_word(first + i);
		error = weir_storage_write(fixture->storage, first * REPLAY_LINE_BYTES, words,
					   count * REPLAY_LINE_BYTES);
	}
	free(words);
	return error;
}

int fixture_open(struct fixture *fixture, const struct fixture_options *options)
{
	char uri[64];
	int error;

	memset(fixture, 0, sizeof(*fixture));
	fixture->span = options->span;
	snprintf(uri, sizeof(uri), "virt:%llu?block=512",
		 (unsigned long long)fixture->span * REPLAY_LINE_BYTES);
	error = weir_context_open(options->backend, options->context, &fixture->context);
	if (!error)
		error = weir_storage_open(fixture->context, uri, NULL, &fixture->storage);
	if (!error)
		error = weir_alloc(fixture->context, sizeof(struct replay_verdict), &fixture->verdict);
	return error ? error : fill(fixture);
}

int fixture_close(struct fixture *fixture)
{
	return weir_context_close(fixture->context);
}

/* Everything is laid out: run it. */
static int launch(struct fixture *fixture, struct replay_args *args, uint32_t lanes)
{
	uint32_t threads = lanes < BLOCK_LANES ? lanes : BLOCK_LANES;
	struct replay_verdict verdict;
	int error;

	memset(&verdict, 0, sizeof(verdict));
	error = weir_copy_to_device(fixture->context, fixture->verdict, &verdict, sizeof(verdict));
	if (!error)
		error = weir_launch(fixture->context, "replay", (lanes + threads - 1) / threads, threads,
				    args, sizeof(*args));
	if (!error)
		error = weir_sync(fixture->context);
	if (!error)
		error = weir_copy_from_device(fixture->context, &verdict, fixture->verdict, sizeof(verdict));
	return error ? error : weir_load_u64_relaxed_sys(&verdict.wrong) ? -EBADMSG : 0;
}

static int replay(struct fixture *fixture, struct weir_cache *cache, const struct trace *trace,
		  uint32_t lanes, uint64_t *misses)
{
	struct replay_args args = { .count = trace->count, .verdict = fixture->verdict };
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	int error = weir_array_open(cache, &fixture->storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				    &args.array);

	if (!error)
		error = weir_alloc(fixture->context, trace->count * sizeof(uint64_t), &args.lines);
	if (error)
		return error;
	error = weir_copy_to_device(fixture->context, args.lines, trace->lines,
				    trace->count * sizeof(uint64_t));
	if (!error)
		error = launch(fixture, &args, lanes);
	if (!error)
		error = weir_cache_stats(cache, &stats);
	*misses = stats.misses;
	(void)weir_free(fixture->context, args.lines);
	return error;
}

int fixture_replay(struct fixture *fixture, const struct fixture_cache *options, const struct trace *trace,
		   uint64_t *misses)
{
	struct weir_cache *cache;
	int closed;
	int error =
		weir_cache_create(fixture->context,
				  WEIR_OPTIONS(cache, .lines = options->lines,
					       .line_bytes = REPLAY_LINE_BYTES, .policy = options->policy),
				  &cache);

	if (error)
		return error;
	error = replay(fixture, cache, trace, options->lanes, misses);
	closed = weir_cache_destroy(cache);
	return error ? error : closed;
}
