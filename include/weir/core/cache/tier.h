/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/tier.h: lines in host memory behind those of a cache (docs/cache.md).
 *
 * Owns: the words of the tier's lines, and the copies between them and the cache's. Each set of
 * the cache has its own sets of the tier (where those are fewer, several share one), so what
 * a set's lock covers, both levels of it do: a line goes down, or up, or is dropped, by
 * changes of words with that lock held, and is seen on one side or the other, or under way. The bytes are
 * copied with nothing held, by the lane that missed and its wave, in the iteration in which it claimed.
 *
 * The tier only ever has clean lines, so whatever it does with them loses nothing:
 *
 *   INVALID  nothing                        BUSY  a line is coming down; its claimer's alone
 *   READY    as storage has it; with a pin: it is being copied up
 *
 * The version of a word tells how long ago its line came, or in an inclusive tier was used, compared
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

/** weir_tier_refuses() - WEIR_E_TIER: the cache has a tier, and this lane's code no notion of one */
WEIR_FN weir_status weir_tier_refuses(WEIR_GLOBAL struct weir_lines *lines)
{
#ifdef WEIR_TIER
	(void)lines;
	return WEIR_OK;
#else
	return lines->tier ? WEIR_E_TIER : WEIR_OK;
#endif
}

/* What becomes of a line that makes room, if it is not the address of its place: */
#define WEIR_TIER_DROPPED (~(u64)0) /* no place was to be had at once */
#define WEIR_TIER_KEPT    (~(u64)1) /* a copy of it is there still */

#ifdef WEIR_TIER

/* Half of the versions there are: of two lines the newer one is that which is ahead by less. */
#define WEIR_TIER_HALF (WEIR_LINE_VERSION << 11)

/* How new the line of way @way is, compared with others of its set: the larger, the newer. */
WEIR_FN u32 weir_tier_age(struct weir_probe probe, u32 way)
{
	u64 apart = (weir_probe_word(probe, way) & WEIR_LINE_VERSIONS) -
		    (weir_probe_word(probe, 0) & WEIR_LINE_VERSIONS);

	return (u32)((apart + WEIR_TIER_HALF) & WEIR_LINE_VERSIONS);
}

/* The version of the line that comes next, or is used: newer than all of them. */
WEIR_FN u64 weir_tier_stamp(struct weir_probe probe)
{
	u32 newest = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++)
		newest = weir_tier_age(probe, way) > newest ? weir_tier_age(probe, way) : newest;
	return (weir_probe_word(probe, 0) + newest + WEIR_LINE_VERSION - WEIR_TIER_HALF) & WEIR_LINE_VERSIONS;
}

/* The way that an arriving line takes: an empty one, else the oldest; WEIR_WAYS: all are being copied. */
WEIR_FN u32 weir_tier_choose(struct weir_probe probe)
{
	u32 chosen = WEIR_WAYS, oldest = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_probe_word(probe, way);
		u32 age = weir_line_empty(word) ? 0 : weir_tier_age(probe, way) + 1;

		if (weir_line_evictable(word) && (chosen == WEIR_WAYS || age < oldest)) {
			chosen = way;
			oldest = age;
		}
	}
	return chosen;
}

/** weir_tier_moving() - line @key is on its way down; with the lock of set @index held */
WEIR_FN u32 weir_tier_moving(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	return lines->tier && weir_line_under_way(weir_tier_find(lines, index, key).word);
}

/**
 * weir_tier_reserve() - a place for the line that is about to make room
 * @lines: the cache
 * @index: its set, whose lock this lane holds
 * @old: the line's word
 *
 * Before the line's word turns, so that whoever finds it gone finds it here, or not at all.
 *
 * Return: 0: nothing; the address of its place, WEIR_TIER_DROPPED or _KEPT.
 */
WEIR_FN weir_addr weir_tier_reserve(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 old)
{
	u64 key = old >> WEIR_LINE_KEY_SHIFT, slot, word;
	struct weir_probe probe;
	u32 way;

	if (!lines->tier || !weir_line_readable(old))
		return 0;
	slot = weir_tier_slot(lines, index, key);
	probe = weir_set_probe(weir_tier_set(weir_lines_tier(lines), slot));
	if (weir_probe_find(probe, key).word != 0)
		return WEIR_TIER_KEPT;
	way = weir_tier_choose(probe);
	if (way == WEIR_WAYS)
		return WEIR_TIER_DROPPED;
	word = weir_probe_word(probe, way);
	key = (key << WEIR_LINE_KEY_SHIFT) | weir_tier_stamp(probe) | WEIR_LINE_BUSY;
	/* tier.Y2: pairs with tier.Y3: after the reads of whoever copied it up */
	return weir_cas_u64_acquire_dev(weir_tier_word(weir_lines_tier(lines), slot + way), word, key) == word
		       ? weir_tier_data(lines, slot + way)
		       : WEIR_TIER_DROPPED;
}

/* The word of the tier's line whose bytes are at @data. */
WEIR_FN WEIR_GLOBAL weir_shared_u64 *weir_tier_word_of(WEIR_GLOBAL struct weir_lines *lines, weir_addr data)
{
	return weir_tier_word(weir_lines_tier(lines),
			      (data - weir_lines_tier(lines)->data) >> lines->line_log2);
}

/* A line of the tier that is this lane's, BUSY or pinned, becomes empty. */
WEIR_FN void weir_tier_empty(WEIR_GLOBAL struct weir_lines *lines, weir_addr data)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_tier_word_of(lines, data);

	/* tier.Y3: pairs with tier.Y2. relaxed: nobody else changes it */
	weir_store_u64_release_dev(word, weir_load_u64_relaxed_dev(word) & WEIR_LINE_VERSIONS);
}

/** weir_tier_unreserve() - the line did not make room after all */
WEIR_FN void weir_tier_unreserve(WEIR_GLOBAL struct weir_lines *lines, weir_addr down)
{
	if (down && down < WEIR_TIER_KEPT)
		weir_tier_empty(lines, down);
}

/** weir_tier_leaves() - it did. Return: the address of its place if it is to be copied, else 0 */
WEIR_FN weir_addr weir_tier_leaves(WEIR_GLOBAL struct weir_lines *lines, weir_addr down)
{
	if (down == WEIR_TIER_KEPT)
		weir_add_u64_relaxed_dev(&weir_lines_tier(lines)->kept, 1);
	else if (down == WEIR_TIER_DROPPED)
		weir_add_u64_relaxed_dev(&weir_lines_tier(lines)->dropped, 1);
	return down < WEIR_TIER_KEPT ? down : 0;
}

/**
 * weir_tier_take() - the tier's copy of a line that was just claimed
 * @lines: the cache
 * @index: its set, whose lock this lane holds
 * @key: the line
 * @whole: it is overwritten, so the copy goes
 *
 * Return: the address of its bytes, pinned; 0: storage has it.
 */
WEIR_FN weir_addr weir_tier_take(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key, u32 whole)
{
	WEIR_GLOBAL struct weir_tier *tier = weir_lines_tier(lines);
	struct weir_probe probe;
	struct weir_found found;
	u64 slot, pinned;

	if (!lines->tier)
		return 0;
	slot = weir_tier_slot(lines, index, key);
	probe = weir_set_probe(weir_tier_set(tier, slot));
	found = weir_probe_find(probe, key);
	if (!weir_line_readable(found.word))
		return 0;
	slot += found.way % WEIR_WAYS;
	pinned = whole ? found.word & WEIR_LINE_VERSIONS
		       : (found.word & ~(u64)WEIR_LINE_VERSIONS) | weir_tier_stamp(probe) | WEIR_LINE_PIN;
	/* tier.Y1: pairs with tier.Y0: the bytes that came down */
	if (weir_cas_u64_acquire_dev(weir_tier_word(tier, slot), found.word, pinned) != found.word || whole)
		return 0; /* another set's line took its place just now */
	return weir_tier_data(lines, slot);
}

/** weir_tier_consumed() - a line that was taken lives elsewhere from now on, and is not here any more */
WEIR_FN void weir_tier_consumed(WEIR_GLOBAL struct weir_lines *lines, weir_addr up)
{
	weir_add_u64_relaxed_dev(&weir_lines_tier(lines)->hits, 1);
	weir_tier_empty(lines, up);
}

/*
 * Lines that made room go down, from what is the claimer's now. (Nothing is decided by lane before the copy:
 * a compiler may send lanes that know how it was decided through copies of these collectives, each without
 * the others.)
 */
WEIR_FN void weir_tier_down(u64 wave, WEIR_GLOBAL struct weir_lines *lines, weir_addr data, weir_addr down)
{
	weir_order_loads();
	weir_wave_sync(wave);  /* what each lane acquired with its claims is all lanes' */
	weir_fence_to_lanes(); /* line.L3: the word of the tier's line turned before any byte of it does */
	weir_wave_move(wave, down, data, (u32)(down != 0) << lines->line_log2);
	weir_wave_sync(wave); /* every lane's part before tier.Y0 */
	if (down) {
		/* tier.Y0: pairs with tier.Y1: the data before the state */
		(void)weir_or_u64_acq_rel_dev(weir_tier_word_of(lines, down), WEIR_LINE_BIT_READY);
		weir_add_u64_relaxed_dev(&weir_lines_tier(lines)->stored, 1);
	}
	weir_reconverge();
}

/* Lines that are wanted come up, and are readable then. */
WEIR_FN void weir_tier_up(u64 wave, WEIR_GLOBAL struct weir_lines *lines, weir_addr data, weir_addr up,
			  WEIR_GLOBAL weir_shared_u64 *word)
{
	weir_order_loads();
	weir_wave_sync(wave);
	weir_fence_to_lanes(); /* line.L3: as a command's data, after the claim */
	weir_wave_move(wave, data, up, (u32)(up != 0) << lines->line_log2);
	weir_wave_sync(wave); /* every lane's part before line.L0, every lane's loads before tier.Y3 */
	if (up) {
		WEIR_GLOBAL struct weir_tier *tier = weir_lines_tier(lines);

		if (tier->inclusive) {
			(void)weir_add_u64_acq_rel_dev(weir_tier_word_of(lines, up),
						       (u64)0 - WEIR_LINE_PIN); /* tier.Y3 */
			weir_add_u64_relaxed_dev(&tier->hits, 1);
		} else {
			weir_tier_consumed(lines, up);
		}
		/* line.L0: pairs with line.L1: the data before the state */
		(void)weir_or_u64_acq_rel_dev(word, WEIR_LINE_BIT_READY);
	}
	weir_reconverge();
}

/**
 * weir_tier_move() - the copies that claims left to be done, of all lanes of @wave together
 * @wave: lanes calling together
 * @lines: the cache
 * @index: the set
 * @way: the line that this lane claimed, if one of the next is not 0
 * @down: from weir_tier_leaves(): what was in it goes there first
 * @up: from weir_tier_take(): then this comes into it
 *
 * Where nothing of a cache with a tier was claimed, one test that is the same in all lanes. Bounded; with
 * nothing held.
 */
WEIR_FN void weir_tier_move(u64 wave, WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way,
			    weir_addr down, weir_addr up)
{
	weir_addr data;

	if (weir_ballot(wave, (down | up) != 0) == 0)
		return;
	data = weir_line_data(lines, index, way % WEIR_WAYS);
	if (weir_ballot(wave, down != 0))
		weir_tier_down(wave, lines, data, down);
	if (weir_ballot(wave, up != 0))
		weir_tier_up(wave, lines, data, up, &weir_lines_set(lines, index)->word[way % WEIR_WAYS]);
}

#else

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

#endif
