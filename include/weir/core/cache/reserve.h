/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/reserve.h: a line of the set becomes another key's. Lines come and go without held locks.
 *
 * Owns: claims, made with the set's try-lock held for one iteration: re-probe, claim a victim (BUSY, new key,
 * next version, one pin for its issuer), unlock. Never submits a command and never waits:
 * core/cache/fetch.h does the one, core/cache/access.h the other.
 *
 * Only a clean line is claimed. Where there is none, whoever finds that begins the write-back of a dirty
 * one, and looks again later; a claim that leaves no more than one clean line begins one ahead of need,
 * behind its own command: with only one left, what was fetched ahead would make room unread. The lane owns
 * such a write-back until it is submitted, or taken back; after that nobody does.
 */
#ifndef WEIR_CORE_RESERVE_H
#define WEIR_CORE_RESERVE_H

#include <weir/core/cache/probe.h>
#include <weir/core/cache/word.h>
#include <weir/core/share/share_part.h>

/* What a claim is told beside who may write back: all of the line will be overwritten. */
enum { WEIR_RESERVE_WHOLE = 4 };

/**
 * struct weir_reservation - what a lane got done under a set's lock
 * @way: claimed, BUSY and pinned once by this lane; WEIR_WAYS: none
 * @writing: way whose write-back this lane began, plus 1; 0: none
 * @word: of the line claimed
 * @unwritable: every line of the set is dirty and cannot be written: the status of one of them, whose
 *         word is @word; or why the Share Table, or a tier, does not let the line be claimed
 * @down: for weir_tier_move()
 * @up: the same; not 0: no command is needed, the line is filled after that
 */
struct weir_reservation {
	u32 way;
	u32 writing;
	u64 word;
	weir_status unwritable;
	weir_addr down;
	weir_addr up;
};

WEIR_FN struct weir_reservation weir_reservation_none(void)
{
	struct weir_reservation reservation;

	reservation.way = WEIR_WAYS;
	reservation.writing = 0;
	reservation.word = 0;
	reservation.unwritable = WEIR_OK;
	reservation.down = 0;
	reservation.up = 0;
	return reservation;
}

/* Begin the write-back of one of the dirty lines @ways; rather one that was not used lately. */
WEIR_FN u32 weir_set_write_one(WEIR_GLOBAL struct weir_lines *lines, u64 index, struct weir_probe probe,
			       u32 ways)
{
	u32 cold = ways & ~weir_probe_used(probe), way = weir_lowest_bit(cold ? cold : ways);

	return weir_line_try_write_back(lines, index, way, weir_probe_word(probe, way)) ? way + 1 : 0;
}

/* Every line that @key could take the place of is dirty and cannot be written: the status of one of them. */
WEIR_FN struct weir_reservation weir_reserve_unwritable(WEIR_GLOBAL struct weir_lines *lines, u64 index,
							struct weir_probe probe, u32 slots)
{
	struct weir_reservation reservation = weir_reservation_none();
	u32 way = weir_lowest_bit(slots);

	reservation.word = weir_probe_word(probe, way);
	reservation.unwritable =
		weir_load_u32_relaxed_dev(weir_line_status(lines, index, way)) & ~WEIR_STATUS_CONSUMED;
	return reservation;
}

/*
 * With the set's lock held: make the line of the choice BUSY for @key. A pin or a mark set meanwhile
 * makes the exchange fail, and the caller looks again in its next iteration.
 */
WEIR_FN struct weir_reservation weir_set_replace(WEIR_GLOBAL struct weir_lines *lines, u64 index,
						 WEIR_GLOBAL struct weir_set_policy *policy,
						 struct weir_miss miss, struct weir_choice choice, u32 whole)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	u64 old = weir_probe_word(miss.probe, choice.way);
	weir_addr down = weir_tier_reserve(lines, index, old);
	struct weir_reservation reservation = weir_reservation_none();

	reservation.word = (miss.key << WEIR_LINE_KEY_SHIFT) |
			   ((old + WEIR_LINE_VERSION) & WEIR_LINE_VERSIONS) | WEIR_LINE_PIN |
			   (choice.mark ? WEIR_LINE_USED : 0) | WEIR_LINE_BUSY;
	/*
	 * line.L3: pairs with line.L2 of readers: the word turns before any byte of the line does, because
	 * the command that brings them is released later (sq.S1); a lane that brings them itself
	 * (WEIR_PATH_PULL) has a fence before. Acquire: after the reads of whoever let go.
	 */
	if (weir_cas_u64_acquire_dev(&set->word[choice.way], old, reservation.word) != old) {
		weir_tier_unreserve(lines, down);
		return reservation;
	}
	reservation.way = choice.way;
	reservation.down = weir_tier_leaves(lines, down);
	reservation.up = weir_tier_take(lines, index, miss.key, whole);
	weir_policy_chosen(lines, set, policy, miss, choice);
	weir_line_forget_error(lines, index, reservation.way);
	if (weir_line_readable(old))
		weir_add_u64_relaxed_dev(&lines->evictions, 1);
	return reservation;
}

/*
 * With the set's lock held: claim a clean line for @key; where there is none, begin the write-back
 * of the one that would go, unless somebody is at that already.
 */
WEIR_FN struct weir_reservation weir_set_reserve_locked(WEIR_GLOBAL struct weir_lines *lines, u64 index,
							WEIR_GLOBAL struct weir_set_policy *policy, u64 key,
							u32 writing)
{
	struct weir_probe probe = weir_set_probe(weir_lines_set(lines, index));
	struct weir_found found = weir_probe_find(probe, key);
	struct weir_miss miss = weir_policy_miss(lines, policy, probe, key);
	u32 failed = weir_line_state(found.word) == WEIR_LINE_FAILED && weir_line_evictable(found.word);
	u32 slots = weir_policy_ways(lines, key), dirty = weir_probe_dirty(probe) & slots;
	u32 clean = weir_probe_clean(probe) & slots,
	    unwritable = dirty ? weir_set_unwritable(policy, dirty) : 0;
	u32 whole = writing & WEIR_RESERVE_WHOLE;
	struct weir_reservation reservation = weir_reservation_none();
	struct weir_choice choice;

	if ((found.word != 0 && !failed) || weir_tier_moving(lines, index, key)) /* there, or about to be */
		return reservation;
	writing &= 3;
	if (unwritable == slots)
		return weir_reserve_unwritable(lines, index, probe, slots);
	if (weir_probe_writing(probe)) /* one at a time, unless it takes long */
		writing &= 2;
	miss.evictable &= clean ? ~dirty : ~unwritable;
	choice = weir_policy_choose(lines, policy, miss);
	/* A failed fetch is tried again in its place. */
	choice.way = failed ? found.way : choice.way;
	choice.unmark = failed ? 0 : choice.unmark;
	choice.state = failed ? miss.state : choice.state;
	if (choice.way == WEIR_WAYS)
		return reservation;
	if ((dirty >> choice.way) & 1) {
		if (writing &&
		    weir_line_try_write_back(lines, index, choice.way, weir_probe_word(probe, choice.way)))
			reservation.writing = choice.way + 1;
		return reservation;
	}
	reservation = weir_set_replace(lines, index, policy, miss, choice, whole);
	clean &= ~(1u << reservation.way);
	if (reservation.way != WEIR_WAYS && (clean & (clean - 1)) == 0 && (dirty & ~unwritable) && writing)
		reservation.writing = weir_set_write_one(lines, index, probe, dirty & ~unwritable);
	return reservation;
}

/**
 * weir_set_try_reserve() - claim a line for @key if the set's lock is free
 * @lines: the cache
 * @index: the set
 * @key: whose line
 * @writing: bit 0: this lane could submit a write-back; bit 1: even if another is under way;
 * WEIR_RESERVE_WHOLE
 *
 * Lock, bounded work and unlock in one iteration. Then comes weir_tier_move(), by all lanes of the wave.
 */
WEIR_FN struct weir_reservation weir_set_try_reserve(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key,
						     u32 writing)
{
	WEIR_GLOBAL struct weir_set_policy *policy = weir_lines_policy(lines, index);
	struct weir_reservation reservation = weir_reservation_none();

	/* policy.P0: pairs with policy.P1 of the previous holder */
	if (weir_cas_u32_acquire_dev(&policy->lock, 0, 1) == 0) {
		reservation.unwritable = weir_share_refuses(lines, key); /* it stays in its buffer */
		if (reservation.unwritable == WEIR_OK)
			reservation.unwritable = weir_tier_refuses(lines);
		if (reservation.unwritable == WEIR_OK)
			reservation = weir_set_reserve_locked(lines, index, policy, key, writing);
		weir_store_u32_release_dev(&policy->lock, 0); /* policy.P1 */
	}
	weir_reconverge();
	return reservation;
}

#endif
