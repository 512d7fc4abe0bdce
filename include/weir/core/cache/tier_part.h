/* SPDX-License-Identifier: BSD-3-Clause */
/* core/cache/tier_part.h: what this lane's code knows of a cache's tier: a build option says which file it
 * is. */
#ifndef WEIR_CORE_TIER_PART_H
#define WEIR_CORE_TIER_PART_H

#ifdef WEIR_TIER
#include <weir/core/cache/tier_on.h>
#else
#include <weir/core/cache/tier_off.h>
#endif

#endif
