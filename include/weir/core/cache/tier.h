/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/tier.h: lines in host memory behind those of a cache (docs/cache.md).
 *
 * Owns: the words of the tier's lines, and the copies between them and the cache's. Each set of
 * the cache has its own sets of the tier (where those are fewer, several share one), so what
 * a set's lock covers, both levels of it do: a line goes down, or up, or is dropped, by
 * changes of words with that lock held, and is seen on one side or the other, or under way. The bytes are
 * copied with nothing held, by the lane that missed and its wave, in the iteration that reserved the line.
 *
 * The tier only ever has clean lines, so whatever it does with them loses nothing:
 *
 *   INVALID  nothing                        BUSY  a line is coming down; the lane's alone that reserved it
 *   READY    as storage has it; with a pin: it is being copied up
 *
 * The version of a word says how long ago its line came, or in an inclusive tier was used, compared
 * with the others of its set; the oldest goes. A lane that finds no place at once drops its line.
 *
 * Only lanes built with WEIR_TIER have code for misses of a cache with a tier (-Dtier=true): it costs a
 * miss registers. Others are refused them, with WEIR_E_TIER, so that none of them reads past a copy.
 */
#ifndef WEIR_CORE_TIER_H
#define WEIR_CORE_TIER_H

#include <weir/core/queue/copy.h>
#include <weir/core/cache/line.h>

WEIR_FN WEIR_GLOBAL struct weir_tier *weir_lines_tier(WEIR_GLOBAL struct weir_lines *lines)
{
	return weir_at(lines->tier, struct weir_tier, 0);
}

WEIR_FN WEIR_GLOBAL struct weir_set *weir_tier_set(WEIR_GLOBAL struct weir_tier *tier, u64 slot)
{
	return weir_at(tier->words, struct weir_set, slot / WEIR_WAYS);
}

WEIR_FN WEIR_GLOBAL weir_shared_u64 *weir_tier_word(WEIR_GLOBAL struct weir_tier *tier, u64 slot)
{
	return &weir_tier_set(tier, slot)->word[slot % WEIR_WAYS];
}

WEIR_FN weir_addr weir_tier_data(WEIR_GLOBAL struct weir_lines *lines, u64 slot)
{
	return weir_lines_tier(lines)->data + (slot << lines->line_log2);
}

/** weir_tier_first() - first set of the tier for set @index of the cache; for the number of sets: the end of
 * all */
WEIR_FN u64 weir_tier_first(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	return weir_lines_round(lines, index * weir_lines_tier(lines)->sets);
}

/** weir_tier_count() - how many of them there are, 1 at least */
WEIR_FN u64 weir_tier_count(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	u64 count = weir_tier_first(lines, index + 1) - weir_tier_first(lines, index);

	return count ? count : 1;
}

/** struct weir_tier_found - a line of the tier: its word as seen, and its place; word 0: none */
struct weir_tier_found {
	u64 word;
	u64 slot;
};

/* The first place of the set of the tier that line @key of set @index would be in. */
WEIR_FN u64 weir_tier_slot(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	return (weir_tier_first(lines, index) +
		weir_lines_round(lines, key) % weir_tier_count(lines, index)) *
	       WEIR_WAYS;
}

/**
 * weir_tier_find() - look for line @key of set @index in the tier
 *
 * What a readable line guards may be loaded afterwards, by way of the place.
 */
WEIR_FN struct weir_tier_found weir_tier_find(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	u64 slot = weir_tier_slot(lines, index, key);
	struct weir_found seen = weir_set_find(weir_tier_set(weir_lines_tier(lines), slot), key);
	struct weir_tier_found found;

	found.word = seen.word;
	found.slot = slot + seen.way % WEIR_WAYS;
	return found;
}

/**
 * weir_tier_try_drop() - forget line @key of set @index
 *
 * For good as long as no lane can bring it here: because the caller holds the lock of the set, or has just
 * begun to write the line back (nobody claims it then). One look, one exchange; who else changes the word of
 * a READY line without a pin has another line take its place.
 *
 * Return: 0: it is being copied, so look again.
 */
WEIR_FN u32 weir_tier_try_drop(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	struct weir_tier_found found = weir_tier_find(lines, index, key);

	if (found.word == 0)
		return 1;
	if (!weir_line_evictable(found.word))
		return 0;
	/* tier.Y1: the lane's later release (policy.P1, or sq.S1 of a write-back) publishes it */
	(void)weir_cas_u64_acq_rel_dev(weir_tier_word(weir_lines_tier(lines), found.slot), found.word,
				       found.word & WEIR_LINE_VERSIONS);
	return 1;
}

/** weir_tier_outdated() - the write-back of line @key of set @index begins: no copy of before may be taken
 * later */
WEIR_FN void weir_tier_outdated(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	/* of a line that can be written back nothing is being copied */
	if (lines->tier && weir_lines_tier(lines)->inclusive)
		(void)weir_tier_try_drop(lines, index, key);
}

/* What becomes of a line that makes room, if it is not the address of its place: */
#define WEIR_TIER_DROPPED (~(u64)0) /* no place was to be had at once */
#define WEIR_TIER_KEPT    (~(u64)1) /* a copy of it is there still */

#endif
