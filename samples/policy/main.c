/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-policy: a replacement policy of one's own (keep.h) beside clock: a small array that is
 * read at random, while a large one goes by through the same cache.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "keep.h"
#include "policy.h"

enum {
	LINE_BYTES = 512,
	LINE_WORDS = 64,
	CACHE_LINES = 256,
	INDEX_LINES = 128,
	STREAM_LINES = 8192,
	LANES = 64,
	READS = STREAM_LINES * LINE_WORDS / POLICY_STRIDE,
	INDEX_SEED = 1,
	STREAM_SEED = 2
};

/** struct context - what both runs share */
struct setup {
	struct weir_context *context;
	struct weir_storage *index, *stream;
	uint64_t range, sum;
};

static int fill(struct weir_storage *storage, uint64_t lines, uint64_t seed)
{
	uint64_t *words = malloc(lines * LINE_BYTES);
	int error = words ? 0 : -1;

	for (uint64_t i = 0; words && i < lines * LINE_WORDS; i++)
		words[i] = policy_word(seed, i);
	if (!error)
		error = weir_storage_write(storage, 0, words, lines * LINE_BYTES);
	free(words);
	return error;
}

static int open_setup(struct setup *setup, const char *device)
{
	char uri[64];
	int error = weir_context_open(device, NULL, &setup->context);

	snprintf(uri, sizeof(uri), "virt:%d?block=512", INDEX_LINES * LINE_BYTES);
	if (!error)
		error = weir_storage_open(setup->context, uri, NULL, &setup->index);
	snprintf(uri, sizeof(uri), "virt:%d?block=512", STREAM_LINES * LINE_BYTES);
	if (!error)
		error = weir_storage_open(setup->context, uri, NULL, &setup->stream);
	if (!error)
		error = weir_alloc(setup->context, sizeof(struct keep_range), &setup->range);
	if (!error)
		error = weir_alloc(setup->context, sizeof(uint64_t), &setup->sum);
	if (!error)
		error = fill(setup->index, INDEX_LINES, INDEX_SEED);
	return error ? error : fill(setup->stream, STREAM_LINES, STREAM_SEED);
}

/* The sum of all that lanes are to read, whichever of them reads what. */
static uint64_t expected(void)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < READS; at++)
		sum += policy_word(STREAM_SEED, at * POLICY_STRIDE) +
		       policy_word(INDEX_SEED, policy_mix(at) % (INDEX_LINES * LINE_WORDS));
	return sum;
}

/* Both arrays in @cache, the policy told which keys to keep, and the kernel run. */
static int find_named(struct setup *setup, struct weir_cache *cache, uint64_t *sum)
{
	struct policy_args args = { .rounds = READS / LANES, .sum = setup->sum };
	uint64_t zero = 0;
	struct keep_range range;
	int error = weir_array_open(cache, &setup->index, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				    &args.index);

	if (!error)
		error = weir_array_open(cache, &setup->stream, 1, WEIR_OPTIONS(array, .element_bytes = 8),
					&args.stream);
	range.first = args.index.extent.key_base;
	range.end = range.first + args.index.extent.lines;
	if (!error)
		error = weir_copy_to_device(setup->context, setup->range, &range, sizeof(range));
	if (!error)
		error = weir_copy_to_device(setup->context, setup->sum, &zero, sizeof(zero));
	if (!error)
		error = weir_launch(setup->context, "policy_lookups", 1, LANES, &args, sizeof(args));
	if (!error)
		error = weir_sync(setup->context);
	return error ? error : weir_copy_from_device(setup->context, sum, setup->sum, sizeof(*sum));
}

static int run(struct setup *setup, enum weir_policy policy, uint64_t *sum)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	struct weir_cache *cache;
	int error = weir_cache_create(
		setup->context,
		WEIR_OPTIONS(cache, .lines = CACHE_LINES, .line_bytes = LINE_BYTES, .policy = policy,
			     .policy_parameter = policy == WEIR_POLICY_USER ? setup->range : 0),
		&cache);

	if (error)
		return error;
	error = find_named(setup, cache, sum);
	if (!error)
		error = weir_cache_stats(cache, &stats);
	if (weir_cache_destroy(cache) != 0 && !error)
		error = -EIO;
	if (!error)
		printf("%-6s %d reads, %llu misses: %.1f%% hits\n", weir_policy_name(policy), 2 * READS,
		       (unsigned long long)stats.misses, 100.0 - 100.0 * (double)stats.misses / (2 * READS));
	return error;
}

int main(int argc, char **argv)
{
	struct setup setup = { .context = NULL };
	uint64_t sums[2] = { 0, 0 };
	bool wrong;
	int error = open_setup(&setup, argc > 1 ? argv[1] : "cpu");

	if (!error)
		error = run(&setup, WEIR_POLICY_CLOCK, &sums[0]);
	if (!error)
		error = run(&setup, WEIR_POLICY_USER, &sums[1]);
	wrong = sums[0] != expected() || sums[1] != expected();
	if (error)
		fprintf(stderr, "weir-policy: %s\n", weir_last_error());
	else if (wrong)
		fprintf(stderr, "weir-policy: a run read other data than was written; please report this\n");
	if (weir_context_close(setup.context) != 0) { /* with its storages */
		fprintf(stderr, "weir-policy: %s\n", weir_last_error());
		error = -EIO;
	}
	if (fflush(stdout) != 0) {
		fprintf(stderr, "weir-policy: cannot write to standard output\n");
		error = -EIO;
	}
	return error || wrong;
}
