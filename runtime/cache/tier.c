/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiers in host memory, the host's side: their size, their memory, their counters. */
#include "tier.h"

#include <errno.h>
#include <string.h>

#include "../backend/error.h"

/* Sets of either level, so that their product is a number. */
static const uint64_t MOST_SETS = (uint64_t)1 << 31;

/* 0, or a sentence about what is wrong with the options. */
static int check(const struct weir_cache *cache, const struct weir_cache_options *options)
{
	uint64_t line_bytes = (uint64_t)1 << cache->line_log2, set_bytes = WEIR_WAYS * line_bytes;
	uint64_t sets = options->tier_bytes / set_bytes;

	if (options->tier_inclusive > 1)
		return weir_fail(EINVAL, "cache: tier_inclusive is %u; it must be 0 or 1",
				 options->tier_inclusive);
	if (options->tier_inclusive && !options->tier_bytes)
		return weir_fail(EINVAL, "cache: tier_inclusive without a tier; give tier_bytes, too");
	if (options->tier_bytes % line_bytes)
		return weir_fail(
			EINVAL, "cache: tier_bytes is %llu; it must be a multiple of the lines of %llu bytes",
			(unsigned long long)options->tier_bytes, (unsigned long long)line_bytes);
	if (options->tier_bytes && !sets)
		return weir_fail(EINVAL,
				 "cache: a tier of %llu bytes: one set of %d lines of %llu bytes needs %llu",
				 (unsigned long long)options->tier_bytes, WEIR_WAYS,
				 (unsigned long long)line_bytes, (unsigned long long)set_bytes);
	if (options->tier_inclusive && sets < cache->sets)
		return weir_fail(EINVAL,
				 "cache: an inclusive tier of %llu lines has copies of less than the %llu "
				 "lines before it; "
				 "give it %llu bytes at least, or make it exclusive",
				 (unsigned long long)(sets * WEIR_WAYS),
				 (unsigned long long)(cache->sets * WEIR_WAYS),
				 (unsigned long long)(cache->sets * set_bytes));
	if (sets && (sets > MOST_SETS || cache->sets > MOST_SETS))
		return weir_fail(
			EINVAL,
			"cache: a tier of %llu lines behind %llu: at most %llu each; use longer lines",
			(unsigned long long)(sets * WEIR_WAYS), (unsigned long long)(cache->sets * WEIR_WAYS),
			(unsigned long long)(MOST_SETS * WEIR_WAYS));
	return 0;
}

int weir_tier_create(struct weir_cache *cache, const struct weir_cache_options *options)
{
	struct weir_context *context = cache->context;
	struct weir_tier tier;
	int error = check(cache, options);

	if (error || !options->tier_bytes)
		return error;
	memset(&tier, 0, sizeof(tier));
	tier.abi_version = WEIR_ABI_VERSION;
	tier.inclusive = options->tier_inclusive;
	tier.sets = options->tier_bytes / WEIR_WAYS >> cache->line_log2;
	if (weir_memory_allocate(context, (tier.sets * WEIR_WAYS) << cache->line_log2, WEIR_MEMORY_HOST,
				 &cache->tier_data, NULL) != 0)
		return weir_fail(
			ENOMEM,
			"cache: no %llu bytes of host memory for its tier (%s); make tier_bytes smaller",
			(unsigned long long)((tier.sets * WEIR_WAYS) << cache->line_log2), weir_last_error());
	error = weir_memory_get(context, sizeof(tier), &cache->tier);
	if (!error)
		error = weir_memory_get(context, tier.sets * sizeof(struct weir_set), &cache->tier_words);
	if (error)
		return error;
	cache->bytes += sizeof(tier) + tier.sets * sizeof(struct weir_set);
	tier.words = cache->tier_words;
	tier.data = cache->tier_data;
	return weir_copy_to_device(context, cache->tier, &tier, sizeof(tier));
}

void weir_tier_release(struct weir_cache *cache)
{
	(void)weir_memory_put(cache->context, cache->tier_data);
	(void)weir_memory_put(cache->context, cache->tier_words);
	(void)weir_memory_put(cache->context, cache->tier);
}

int weir_tier_stats(struct weir_cache *cache, struct weir_cache_stats *stats)
{
	struct weir_tier tier;
	int error;

	stats->tier_lines = stats->tier_hits = stats->tier_stored = stats->tier_kept = stats->tier_dropped =
		0;
	if (!cache->tier)
		return 0;
	error = weir_copy_from_device(cache->context, &tier, cache->tier, sizeof(tier));
	if (error)
		return error;
	stats->tier_lines = tier.sets * WEIR_WAYS;
	stats->tier_hits = weir_load_u64_relaxed_sys(&tier.hits);
	stats->tier_stored = weir_load_u64_relaxed_sys(&tier.stored);
	stats->tier_kept = weir_load_u64_relaxed_sys(&tier.kept);
	stats->tier_dropped = weir_load_u64_relaxed_sys(&tier.dropped);
	return 0;
}
