/* SPDX-License-Identifier: BSD-3-Clause */
/* Share Tables, the host's side: their memory, their counters, and what was never released. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/core/share/share.h>

#include "cache.h"
#include "../backend/error.h"

enum { DEFAULT_ENTRIES = 1024 };

static const uint64_t MOST_ENTRIES = (uint64_t)1 << 32;

static int allocate(struct weir_cache *cache, uint64_t buckets, struct weir_share *share)
{
	struct weir_context *context = cache->context;
	uint64_t words, slots;
	int error = weir_memory_get(context, sizeof(*share), &cache->share);

	memset(share, 0, sizeof(*share));
	if (!error)
		error = weir_memory_get(context, buckets * sizeof(struct weir_set), &words);
	if (error)
		return error;
	share->words = words;
	error = weir_memory_get(context, buckets * WEIR_WAYS * sizeof(struct weir_share_slot), &slots);
	share->slots = slots;
	share->abi_version = WEIR_ABI_VERSION;
	share->buckets = buckets;
	return error;
}

/* The cache's lanes see the table at @address from the next launch on; 0: none. */
static int attach(struct weir_cache *cache, uint64_t address)
{
	return weir_copy_to_device(cache->context, cache->lines + offsetof(struct weir_lines, share),
				   &address, sizeof(address));
}

/* What commands tell their end to goes only where none is under way with it; else it stays until the context
 * is closed. */
static void release(struct weir_cache *cache, const struct weir_share *share)
{
	if (!weir_inflight(cache->context, share->words, share->buckets * sizeof(struct weir_set))) {
		(void)weir_memory_put(cache->context, share->slots);
		(void)weir_memory_put(cache->context, share->words);
	}
	(void)weir_memory_put(cache->context, cache->share);
	cache->share = 0;
}

int weir_share_create(struct weir_cache *cache, const struct weir_share_options *given)
{
	struct weir_share_options options;
	struct weir_share share;
	uint64_t entries;
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_share_create");

	if (error ||
	    (error = weir_options_take(&options, sizeof(options), given, "share table options")) != 0)
		return error;
	entries = options.entries ? options.entries : DEFAULT_ENTRIES;
	if (cache->share)
		return weir_fail(EEXIST, "share table: the cache has one already; destroy it first");
	if (entries > MOST_ENTRIES)
		return weir_fail(EINVAL, "share table of %llu entries: at most %llu",
				 (unsigned long long)entries, (unsigned long long)MOST_ENTRIES);
	error = allocate(cache, (entries + WEIR_WAYS - 1) / WEIR_WAYS, &share);
	if (!error)
		error = weir_copy_to_device(cache->context, cache->share, &share, sizeof(share));
	if (!error)
		error = attach(cache, cache->share);
	if (error)
		release(cache, &share);
	return error;
}

/* Entries that lanes hold still, of them changed ones; and the key of one of these, else of one of those. */
static int count_held(struct weir_cache *cache, const struct weir_share *share,
		      struct weir_share_stats *stats, uint64_t *key)
{
	uint64_t bytes = share->buckets * sizeof(struct weir_set), count = share->buckets * WEIR_WAYS;
	uint64_t *words = malloc(bytes);
	int error = words ? weir_copy_from_device(cache->context, words, share->words, bytes)
			  : weir_fail(ENOMEM, "share table: no memory");

	for (uint64_t i = 0; !error && i < count; i++) {
		/* an entry without a holder is one that could not be propagated (weir_share_abandon()) */
		bool held = words[i] & ~(uint64_t)WEIR_SHARE_VERSIONS,
		     changed = held && (words[i] & WEIR_SHARE_DIRTY);

		if (held && (changed || !stats->changed))
			*key = words[i] >> WEIR_LINE_KEY_SHIFT;
		stats->held += held;
		stats->changed += changed;
	}
	free(words);
	return error;
}

static int read_stats(struct weir_cache *cache, struct weir_share *share, struct weir_share_stats *stats,
		      uint64_t *key)
{
	int error;

	memset(stats, 0, sizeof(*stats));
	if (!cache->share)
		return weir_fail(ENOENT, "share table: the cache has none; weir_share_create() makes one");
	error = weir_copy_from_device(cache->context, share, cache->share, sizeof(*share));
	if (error)
		return error;
	stats->entries = share->buckets * WEIR_WAYS;
	stats->registered = weir_load_u64_relaxed_sys(&share->registered);
	stats->joined = weir_load_u64_relaxed_sys(&share->joined);
	stats->unshared = weir_load_u64_relaxed_sys(&share->unshared);
	stats->declined = weir_load_u64_relaxed_sys(&share->declined);
	stats->propagated = weir_load_u64_relaxed_sys(&share->propagated);
	return count_held(cache, share, stats, key);
}

int weir_share_stats(struct weir_cache *cache, struct weir_share_stats *stats)
{
	struct weir_share_stats filled;
	struct weir_share share;
	uint64_t key;
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_share_stats");

	if (error || (error = weir_given(stats, "weir_share_stats", "stats")) != 0)
		return error;
	error = read_stats(cache, &share, &filled, &key);
	return error ? error : weir_result_give(stats, &filled, sizeof(filled), "weir_share_stats");
}

/* Where the line of @key lies, for people. */
static const struct weir_cache_disks *layout_of(const struct weir_cache *cache, uint64_t key)
{
	const struct weir_cache_disks *disks = cache->disks;

	while (disks && (key < disks->extent.key_base || key - disks->extent.key_base >= disks->extent.lines))
		disks = disks->next;
	return disks;
}

int weir_share_destroy(struct weir_cache *cache)
{
	struct weir_share_stats stats;
	struct weir_share share;
	const struct weir_cache_disks *disks;
	uint64_t key = 0;
	int error = weir_handle_check(cache, WEIR_HANDLE_CACHE, "weir_share_destroy");

	if (error || !cache->share)
		return error;
	error = cache->context->backend->ops->synchronise(cache->context->backend);
	if (!error)
		error = read_stats(cache, &share, &stats, &key);
	if (error)
		return error;
	disks = layout_of(cache, key);
	if (stats.held)
		error = weir_fail(EBUSY,
				  "share table: lanes never released %llu lines, %llu of them changed; one "
				  "is line %llu of \"%s\": "
				  "its buffer was not written to the cache. Call weir_share_release() for "
				  "each weir_share_acquire()",
				  (unsigned long long)stats.held, (unsigned long long)stats.changed,
				  (unsigned long long)(disks ? key - disks->extent.key_base : key),
				  disks ? disks->members[0].uri : "?");
	if (attach(cache, 0) == 0)
		release(cache, &share);
	return error;
}
