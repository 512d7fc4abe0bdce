/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/share.h: the host side of a Share Table; lanes use <weir/share.h>.
 *
 * Owns: options, counters. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_SHARE_H
#define WEIR_HOST_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_cache;

/**
 * struct weir_share_options - a Share Table
 * @size: sizeof the structure
 * @entries: lines that can be in shared buffers at once, rounded up to a multiple of 4; 0: 1024.
 *           48 bytes of device memory each. A request that finds its bucket of 4 full is not
 *           shared, so give a few times as many as will be held.
 */
struct weir_share_options {
	size_t size;
	uint64_t entries;
};

/**
 * weir_share_create() - let lanes share buffers with lines of a cache (<weir/share.h>; AGILE, section 3.4.1)
 * @cache: the cache; no kernel that uses it may be running
 * @options: NULL for the defaults
 *
 * From the next launch on its arrays look for lines in shared buffers, too. It goes with the cache.
 *
 * Return: 0; -EEXIST; -EINVAL; -ENOMEM.
 */
WEIR_API int weir_share_create(struct weir_cache *cache, const struct weir_share_options *options);

/**
 * weir_share_destroy() - free a cache's Share Table; weir_cache_destroy() does so, too; without one it does
 * nothing
 *
 * Return: 0; -EINVAL for a handle that is not an open cache; -EBUSY: lanes hold lines still: their buffers
 * are as they are, but what was changed in them did not reach the cache. The sentence names one of them. The
 * table is gone in any case.
 */
WEIR_API int weir_share_destroy(struct weir_cache *cache);

/**
 * struct weir_share_stats - what a Share Table did since it was made
 * @size: sizeof the structure
 * @entries: lines it has room for
 * @held: lines in buffers that lanes hold, and changed ones that no lane could take to the cache
 * @changed: of these, changed ones
 * @registered: buffers that lines were brought to
 * @joined: requests that were given the pointer of another's buffer
 * @unshared: requests that got a copy for want of room
 * @declined: requests that got a copy because the policy said so
 * @propagated: changed buffers that went to the cache
 */
struct weir_share_stats {
	size_t size;
	uint64_t entries;
	uint64_t held;
	uint64_t changed;
	uint64_t registered;
	uint64_t joined;
	uint64_t unshared;
	uint64_t declined;
	uint64_t propagated;
};

/** weir_share_stats() - read the counters; exact when no kernel runs; -ENOENT without a table */
WEIR_API int weir_share_stats(struct weir_cache *cache, struct weir_share_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
