/* SPDX-License-Identifier: BSD-3-Clause */
/* tier.h: the lines in host memory behind a cache's, as the runtime's own files see them. */
#ifndef WEIR_RUNTIME_TIER_H
#define WEIR_RUNTIME_TIER_H

#include "cache.h"

/**
 * weir_tier_create() - the tier that the options ask for, if any
 * @cache: a cache whose sizes are known; weir_tier_release() after an error, too
 * @options: checked here, as far as they are about the tier
 *
 * Return: 0; -EINVAL, -ENOMEM with a sentence.
 */
int weir_tier_create(struct weir_cache *cache, const struct weir_cache_options *options);

/** weir_tier_release() - free it; no command and no lane is at it: only clean lines are there */
void weir_tier_release(struct weir_cache *cache);

/** weir_tier_stats() - its counters, zeros without one */
int weir_tier_stats(struct weir_cache *cache, struct weir_cache_stats *stats);

#endif
