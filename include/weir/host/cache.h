/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/cache.h: the host side of a cache between arrays and storages.
 *
 * Owns: options, policies by name, flushes, counters. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_CACHE_H
#define WEIR_HOST_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>
#include <weir/policies.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;
struct weir_cache;

/**
 * struct weir_cache_options - a cache between arrays and storages
 * @size: sizeof the structure
 * @bytes: device memory for lines and their bookkeeping together
 * @lines: instead of @bytes: number of lines, rounded up to a multiple of 4
 * @line_bytes: 512 to 65536, a power of two, not below the block size of its
 *              storages; 0: 4096
 * @policy: which line of a full set makes room; docs/cache-policies.md compares them
 * @policy_parameter: what a policy of the user's makes of it; others take 0 only
 * @tier_bytes: host memory for a second tier of lines behind the first (docs/cache.md), a multiple of
 *              @line_bytes, rounded down to whole sets of 4 lines; best a multiple of the first one's lines.
 * 0: none. Its bookkeeping, 8 bytes per line, is device memory, beside @bytes
 * @tier_inclusive: 0: a line is in one tier or the other; 1: a line that goes up leaves a copy, so that
 *                  it need not be copied when it comes down again
 * @invalidate_on_flush: 1: weir_cache_flush() and weir_array_flush() also drop the lines that they cover, so
 * that what other devices have written to their storages meanwhile is read from there; caches are not
 * coherent with each other
 */
struct weir_cache_options {
	size_t size;
	uint64_t bytes;
	uint64_t lines;
	uint32_t line_bytes;
	enum weir_policy policy;
	uint64_t policy_parameter;
	uint64_t tier_bytes;
	uint32_t tier_inclusive;
	uint32_t invalidate_on_flush;
};

/** weir_policy_name() - "clock" and so on; NULL if there is no policy @policy */
WEIR_API const char *weir_policy_name(enum weir_policy policy);

/**
 * weir_policy_of_name() - the policy that is called @name
 * @name: one of weir_policy_name()
 * @policy: receives it
 *
 * Return: 0; -EINVAL, and the sentence lists the names there are.
 */
WEIR_API int weir_policy_of_name(const char *name, enum weir_policy *policy);

/**
 * weir_user_policy_built() - this program has kernels with a policy of the user's
 *
 * WEIR_KERNEL() calls it before main() where WEIR_USER_POLICY is defined (core/cache/policy.h).
 */
WEIR_API void weir_user_policy_built(void);

/**
 * weir_cache_create() - make a cache
 *
 * Return: 0; -EINVAL if not even one set of 4 lines fits, for a policy that this program has not, or a tier
 * that cannot be; -ENOMEM.
 */
WEIR_API int weir_cache_create(struct weir_context *context, const struct weir_cache_options *options,
			       struct weir_cache **out);

/**
 * weir_cache_destroy() - write back what is dirty, then free a cache; its arrays are void; NULL is fine
 *
 * Waits for the kernels launched so far. Closing its storages makes what was written durable. Lines of
 * storages that are closed were written back when those were. Lanes that use an array or a writer of it get
 * WEIR_E_CLOSED.
 *
 * Return: 0; -EINVAL for a handle that is not an open cache; -EIO with a sentence that counts and names the
 * blocks that could not be written and are lost, or for a device that failed. The cache is gone in any case.
 */
WEIR_API int weir_cache_destroy(struct weir_cache *cache);

/**
 * weir_cache_flush() - write back every line that is dirty
 * @cache: the cache
 * @durable: not 0: also tell the storages to make it durable (NVMe Flush)
 *
 * Waits for the kernels launched so far. Storage then holds what they wrote.
 *
 * Return: 0; -EIO with a sentence that counts and names the blocks that could not be written. They
 * stay dirty, and the next flush tries them again. -EINVAL for a handle that is not an open cache.
 */
WEIR_API int weir_cache_flush(struct weir_cache *cache, int durable);

/**
 * struct weir_cache_stats - what a cache did since it was made
 * @size: sizeof the structure
 * @lines: lines it has
 * @line_bytes: size of one
 * @bytes: device memory it takes, bookkeeping included
 * @misses: lines fetched from storage
 * @evictions: lines that made room for another
 * @retracted: fetches put off because no queue slot was free
 * @writebacks: write-backs begun
 * @write_errors: failed ones that somebody was told of
 * @dirty: lines that storage does not have yet; counted anew by each call, if the cache has a writer
 * @tier_lines: lines that its tier in host memory has; 0: it has none, and the rest is 0, too
 * @tier_hits: lines that came from there instead of storage
 * @tier_stored: of @evictions: were copied there
 * @tier_kept: of @evictions: were there still
 * @tier_dropped: of @evictions: found no place at once, and are on storage only
 */
struct weir_cache_stats {
	size_t size;
	uint64_t lines;
	uint64_t line_bytes;
	uint64_t bytes;
	uint64_t misses;
	uint64_t evictions;
	uint64_t retracted;
	uint64_t writebacks;
	uint64_t write_errors;
	uint64_t dirty;
	uint64_t tier_lines;
	uint64_t tier_hits;
	uint64_t tier_stored;
	uint64_t tier_kept;
	uint64_t tier_dropped;
};

/** weir_cache_stats() - read the counters; exact when no kernel runs */
WEIR_API int weir_cache_stats(struct weir_cache *cache, struct weir_cache_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
