/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches, the host's side: sizes, memory, counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "../storage/closed.h"
#include "../backend/error.h"
#include "../observe/publish.h"
#include "tier.h"

enum {
	DEFAULT_LINE_BYTES = 4096,
	LEAST_LINE_BYTES = 512,
	MOST_LINE_BYTES = 65536,
};

static uint64_t set_bytes(uint64_t line_bytes)
{
	return WEIR_WAYS * line_bytes + sizeof(struct weir_set) + sizeof(struct weir_set_policy);
}

/* Sets that fit the options; 0 with a sentence if not one does. */
static uint64_t count_sets(const struct weir_cache_options *options, uint64_t line_bytes)
{
	uint64_t sets = options->lines ? options->lines / WEIR_WAYS + (options->lines % WEIR_WAYS != 0)
				       : (options->bytes - (options->bytes > sizeof(struct weir_lines)
								    ? sizeof(struct weir_lines)
								    : options->bytes)) /
						 set_bytes(line_bytes);

	if (options->lines && options->bytes)
		(void)weir_fail(EINVAL, "cache: give bytes or lines, not both");
	else if (!options->lines && !options->bytes)
		(void)weir_fail(EINVAL, "cache of zero lines: give bytes, or lines of 4 at least");
	else if (sets > SIZE_MAX / set_bytes(line_bytes) - 1)
		(void)weir_fail(EINVAL, "cache of %llu lines of %llu bytes: no memory has room for them",
				(unsigned long long)options->lines, (unsigned long long)line_bytes);
	else if (!sets)
		(void)weir_fail(EINVAL, "cache of %llu bytes: one set of %d lines of %llu bytes needs %llu",
				(unsigned long long)options->bytes, WEIR_WAYS, (unsigned long long)line_bytes,
				(unsigned long long)(set_bytes(line_bytes) + sizeof(struct weir_lines)));
	else
		return sets;
	return 0;
}

static int check_line_bytes(uint64_t line_bytes)
{
	if (line_bytes < LEAST_LINE_BYTES || line_bytes > MOST_LINE_BYTES || (line_bytes & (line_bytes - 1)))
		return weir_fail(EINVAL, "cache: line_bytes is %llu; it must be a power of two from %d to %d",
				 (unsigned long long)line_bytes, LEAST_LINE_BYTES, MOST_LINE_BYTES);
	return 0;
}

static int allocate(struct weir_cache *cache, const struct weir_cache_options *options)
{
	struct weir_context *context = cache->context;
	struct weir_lines lines;
	int error = weir_memory_get(context, sizeof(lines), &cache->lines);

	if (!error)
		error = weir_memory_get(context, cache->sets * sizeof(struct weir_set), &cache->words);
	if (!error)
		error = weir_memory_get(context, cache->sets * sizeof(struct weir_set_policy),
					&cache->policies);
	if (!error)
		error = weir_memory_get(context, (cache->sets * WEIR_WAYS) << cache->line_log2, &cache->data);
	if (!error)
		error = weir_tier_create(cache, options);
	if (error)
		return error;
	memset(&lines, 0, sizeof(lines));
	lines.abi_version = WEIR_ABI_VERSION;
	lines.line_log2 = cache->line_log2;
	lines.sets = cache->sets;
	lines.set_magic = UINT64_MAX / cache->sets;
	lines.words = cache->words;
	lines.policies = cache->policies;
	lines.data = cache->data;
	lines.tier = cache->tier;
	lines.fault = context->fault;
	lines.policy = options->policy;
	lines.policy_parameter = options->policy_parameter;
	return weir_copy_to_device(context, cache->lines, &lines, sizeof(lines));
}

/* @quiet: no command can touch its memory any more; else that stays until the context is closed. */
static void release(struct weir_cache *cache, bool quiet)
{
	bool kept = weir_closed_cache(cache);

	if (quiet) {
		(void)weir_memory_put(cache->context, cache->data);
		(void)weir_memory_put(cache->context, cache->policies);
		(void)weir_memory_put(cache->context, cache->words);
		if (!kept)
			(void)weir_memory_put(cache->context, cache->lines);
	}
	weir_tier_release(cache);
	weir_cache_layouts_free(cache, kept);
}

int weir_cache_create(struct weir_context *context, const struct weir_cache_options *given,
		      struct weir_cache **out)
{
	struct weir_cache_options options;
	uint64_t line_bytes;
	struct weir_cache *cache;
	int error = weir_given(out, "weir_cache_create", "out");

	if (error)
		return error;
	*out = NULL;
	error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_cache_create");
	if (error || (error = weir_options_take(&options, sizeof(options), given, "cache options")) != 0)
		return error;
	line_bytes = options.line_bytes ? options.line_bytes : DEFAULT_LINE_BYTES;
	if (options.invalidate_on_flush > 1)
		return weir_fail(EINVAL, "cache: invalidate_on_flush is %u; it must be 0 or 1",
				 options.invalidate_on_flush);
	if ((error = check_line_bytes(line_bytes)) != 0 || (error = weir_policy_check(&options)) != 0)
		return error;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return weir_fail(ENOMEM, "no memory for a cache");
	cache->next_key = 1; /* 0 is nobody's */
	cache->context = context;
	cache->line_log2 = (uint32_t)__builtin_ctzll(line_bytes);
	cache->invalidates = options.invalidate_on_flush != 0;
	cache->sets = count_sets(&options, line_bytes);
	cache->bytes = cache->sets * set_bytes(line_bytes) + sizeof(struct weir_lines);
	error = cache->sets ? allocate(cache, &options) : -EINVAL;
	if (!error)
		error = weir_handle_add(cache, WEIR_HANDLE_CACHE, "");
	if (error) {
		release(cache, true);
		free(cache);
		return error;
	}
	cache->next = context->open_caches;
	context->open_caches = cache;
	weir_publish(context);
	*out = cache;
	return 0;
}

/* Out of the context's list. */
static void leave(struct weir_cache *cache)
{
	struct weir_cache **link = &cache->context->open_caches;

	while (*link != cache)
		link = &(*link)->next;
	*link = cache->next;
}

int weir_cache_shut(struct weir_cache *cache)
{
	bool quiet = true;
	char lost[1024] = "";
	int error, drained = 0;

	error = cache->context->backend->ops->synchronise(cache->context->backend);
	if (!error && cache->written)
		drained = weir_cache_drain(cache, &quiet);
	else
		/* What was fetched ahead, or belongs to a storage that died, may be under way with its lines.
		 */
		quiet = !weir_inflight(cache->context, cache->words, cache->sets * sizeof(struct weir_set));
	if (drained)
		snprintf(lost, sizeof(lost), "%s", weir_last_error());
	if (!error)
		error = weir_share_destroy(cache);
	if (drained) /* what is lost matters more than what was never released */
		error = weir_fail(-drained, "%s", lost);
	leave(cache);
	weir_publish(cache->context);
	release(cache, quiet);
	weir_handle_retire(cache);
	return error;
}

int weir_cache_destroy(struct weir_cache *cache)
{
	int error = cache ? weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_cache_destroy") : 0;

	return error || !cache ? error : weir_cache_shut(cache);
}

int weir_cache_stats(struct weir_cache *cache, struct weir_cache_stats *stats)
{
	struct weir_lines lines;
	struct weir_cache_stats filled;
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_cache_stats");

	if (error || (error = weir_given(stats, "weir_cache_stats", "stats")) != 0)
		return error;
	error = weir_copy_from_device(cache->context, &lines, cache->lines, sizeof(lines));
	if (!error)
		error = weir_cache_dirty(cache, &filled.dirty);
	if (!error)
		error = weir_tier_stats(cache, &filled);
	if (error)
		return error;
	filled.lines = cache->sets * WEIR_WAYS;
	filled.line_bytes = (uint64_t)1 << cache->line_log2;
	filled.bytes = cache->bytes;
	filled.misses = weir_load_u64_relaxed_sys(&lines.misses);
	filled.evictions = weir_load_u64_relaxed_sys(&lines.evictions);
	filled.retracted = weir_load_u64_relaxed_sys(&lines.retracted);
	filled.writebacks = weir_load_u64_relaxed_sys(&lines.writebacks);
	filled.write_errors = weir_load_u64_relaxed_sys(&lines.write_errors);
	return weir_result_give(stats, &filled, sizeof(filled), "weir_cache_stats");
}
