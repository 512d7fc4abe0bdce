/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/tier_on.h: the tier of lanes built with WEIR_TIER.
 *
 * Owns: the choice of slots, the changes of words, and the copies. tier_part.h includes one of the two.
 */
#ifndef WEIR_CORE_TIER_ON_H
#define WEIR_CORE_TIER_ON_H

#include <weir/core/cache/tier.h>

/* Has this lane's code a notion of tiers? A constant: what it excludes is not compiled. */
enum { WEIR_TIER_KNOWN = 1 };

/** weir_tier_refuses() - why a miss of this lane is refused: it is not */
WEIR_FN weir_status weir_tier_refuses(WEIR_GLOBAL struct weir_lines *lines)
{
	(void)lines;
	return WEIR_OK;
}

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

#endif
