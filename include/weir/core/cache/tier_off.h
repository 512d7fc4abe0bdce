/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/tier_off.h: what stands for the tier in lanes built without WEIR_TIER.
 *
 * Owns: calls that do nothing. tier_part.h includes one of the two.
 */
#ifndef WEIR_CORE_TIER_OFF_H
#define WEIR_CORE_TIER_OFF_H

#include <weir/core/cache/tier.h>

/* Has this lane's code a notion of tiers? A constant: what it excludes is not compiled. */
enum { WEIR_TIER_KNOWN = 0 };

/* The cache has a tier, and this lane's code no notion of one. */
WEIR_FN weir_status weir_tier_refuses(WEIR_GLOBAL struct weir_lines *lines)
{
	return lines->tier ? WEIR_E_TIER : WEIR_OK;
}

WEIR_FN u32 weir_tier_moving(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	(void)lines;
	(void)index;
	(void)key;
	return 0;
}

WEIR_FN weir_addr weir_tier_reserve(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 old)
{
	(void)lines;
	(void)index;
	(void)old;
	return 0;
}

WEIR_FN void weir_tier_unreserve(WEIR_GLOBAL struct weir_lines *lines, weir_addr down)
{
	(void)lines;
	(void)down;
}

WEIR_FN weir_addr weir_tier_leaves(WEIR_GLOBAL struct weir_lines *lines, weir_addr down)
{
	(void)lines;
	(void)down;
	return 0;
}

WEIR_FN weir_addr weir_tier_take(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key, u32 whole)
{
	(void)lines;
	(void)index;
	(void)key;
	(void)whole;
	return 0;
}

WEIR_FN void weir_tier_consumed(WEIR_GLOBAL struct weir_lines *lines, weir_addr up)
{
	(void)lines;
	(void)up;
}

WEIR_FN void weir_tier_move(u64 wave, WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way,
			    weir_addr down, weir_addr up)
{
	(void)wave;
	(void)lines;
	(void)index;
	(void)way;
	(void)down;
	(void)up;
}

#endif
