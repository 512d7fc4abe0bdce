/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/lines.h: misses. Lines come and go without held locks.
 *
 * Owns: claims, and the flat wait loop of every access that is not a hit. A miss takes
 * the set's try-lock, re-probes, claims a victim (BUSY, new key, next version, one pin for
 * its issuer), unlocks and submits with the line as continuation. If no slot comes free for
 * a few turns the claim is taken back, so nothing is held across a full queue for long.
 *
 * Only a clean line is claimed. Where there is none, whoever finds that begins the write-back
 * of a dirty one, and looks again later; a claim that leaves no more than one clean line begins one
 * ahead of need, behind its own command: with only one left, what was fetched ahead would make room unread.
 * The lane owns such a write-back until it is submitted, or taken back; after that nobody does.
 *
 * The issuer's pin keeps the line until it has accessed what it asked for; without it
 * a cache smaller than the number of lanes would evict every line unread.
 */
#ifndef WEIR_CORE_LINES_H
#define WEIR_CORE_LINES_H

#include <weir/core/cache/access.h>
#include <weir/core/queue/copy.h>
#include <weir/core/share/share.h>
#include <weir/core/cache/tier.h>
#include <weir/core/cache/writeback.h>

enum {
	/*
	 * Turns that a command waits for a queue slot before it is taken back. Slots come free
	 * whatever lines are claimed, so waiting is safe; only for ever it must not be.
	 */
	WEIR_UNSENT_TURNS = 8,
	/* Turns after which a lane does not trust in the write-back that somebody began in its set. */
	WEIR_WRITING_TURNS = 64,
	/* Turns between two looks at whether dead storages keep all lines of a set. */
	WEIR_LOST_TURNS = 64,
	/* What a claim is told beside who may write back: all of the line will be overwritten. */
	WEIR_CLAIM_WHOLE = 4,
};

/* More turns than any wait has: its deadline ends it. */
#define WEIR_LINES_FOREVER ((u32)~0u)

/* The ways of a set that have some property, as bits. */
WEIR_FN u32 weir_look_dirty(struct weir_look look)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_look_word(look, way);

		ways |= (u32)(weir_line_state(word) == WEIR_LINE_MODIFIED && weir_line_evictable(word)) << way;
	}
	return ways;
}

WEIR_FN u32 weir_look_clean(struct weir_look look)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_look_word(look, way);

		ways |= (u32)(weir_line_state(word) != WEIR_LINE_MODIFIED && weir_line_evictable(word)) << way;
	}
	return ways;
}

WEIR_FN u32 weir_look_writing(struct weir_look look)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_look_word(look, way);

		ways |= (u32)(weir_line_readable(word) && weir_line_under_way(word)) << way;
	}
	return ways;
}

WEIR_FN u32 weir_look_used(struct weir_look look)
{
	u32 ways = 0;

	for (u32 way = 0; way < WEIR_WAYS; way++)
		ways |= (u32)((weir_look_word(look, way) & WEIR_LINE_USED) != 0) << way;
	return ways;
}

/*
 * Might a claim get something done? @writing: bit 0: this lane could submit a write-back; bit 1: even if
 * another one of the set is under way. Where not, the set's lock is left to others.
 */
WEIR_FN u32 weir_look_promises(struct weir_look look, u32 writing)
{
	return weir_look_clean(look) || (weir_look_dirty(look) && (weir_look_writing(look) ? writing & 2 : writing & 1));
}

/* Those of the dirty lines @ways whose last write-back failed, untold so far. */
WEIR_FN u32 weir_set_stuck(WEIR_GLOBAL struct weir_set_policy *policy, u32 ways)
{
	u32 stuck = 0;

	/* relaxed: a hint; who begins a write-back looks again (W3) */
	for (u32 way = 0; way < WEIR_WAYS; way++)
		if ((ways >> way) & 1)
			stuck |= weir_status_sticky(weir_load_u32_relaxed_dev(&policy->status[way])) << way;
	return stuck;
}

/**
 * struct weir_claim - what a lane got done under a set's lock
 * @way: claimed, BUSY and pinned once by this lane; WEIR_WAYS: none
 * @writing: way whose write-back this lane began, plus 1; 0: none
 * @word: of the line claimed
 * @stuck: every line of the set is dirty and cannot be written: the status of one of them, whose
 *         word is @word; or why the Share Table, or a tier, does not let the line be claimed
 * @down: for weir_tier_move()
 * @up: the same; not 0: no command is needed, the line is filled after that
 */
struct weir_claim {
	u32 way;
	u32 writing;
	u64 word;
	weir_status stuck;
	weir_addr down;
	weir_addr up;
};

WEIR_FN struct weir_claim weir_claim_none(void)
{
	struct weir_claim claim;

	claim.way = WEIR_WAYS;
	claim.writing = 0;
	claim.word = 0;
	claim.stuck = WEIR_OK;
	claim.down = 0;
	claim.up = 0;
	return claim;
}

/* Begin the write-back of one of the dirty lines @ways; rather one that was not used lately. */
WEIR_FN u32 weir_set_write_one(WEIR_GLOBAL struct weir_lines *lines, u64 index, struct weir_look look, u32 ways)
{
	u32 cold = ways & ~weir_look_used(look), way = weir_lowest_bit(cold ? cold : ways);

	return weir_line_try_write_back(lines, index, way, weir_look_word(look, way)) ? way + 1 : 0;
}

/* What the claimer of a line leaves there: no error of an earlier occupant. */
WEIR_FN void weir_line_forget_error(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u32 *status = weir_line_status(lines, index, way);

	/* L4: the claim before the status goes: whoever reads a FAILED line's status looks at its word again */
	if (weir_load_u32_relaxed_dev(status) != 0)
		weir_store_u32_release_dev(status, 0);
}

/* Every line that @key could take the place of is dirty and cannot be written: the status of one of them. */
WEIR_FN struct weir_claim weir_claim_stuck(WEIR_GLOBAL struct weir_lines *lines, u64 index, struct weir_look look,
					   u32 places)
{
	struct weir_claim claim = weir_claim_none();
	u32 way = weir_lowest_bit(places);

	claim.word = weir_look_word(look, way);
	claim.stuck = weir_load_u32_relaxed_dev(weir_line_status(lines, index, way)) & ~WEIR_STATUS_TAKEN;
	return claim;
}

/*
 * With the set's lock held: make the line of the choice BUSY for @key. A pin or a mark set meanwhile
 * makes the exchange fail, and the caller looks again in its next turn.
 */
WEIR_FN struct weir_claim weir_set_replace(WEIR_GLOBAL struct weir_lines *lines, u64 index,
					   WEIR_GLOBAL struct weir_set_policy *policy, struct weir_miss miss,
					   struct weir_choice choice, u32 whole)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	u64 old = weir_look_word(miss.look, choice.way);
	weir_addr down = weir_tier_reserve(lines, index, old);
	struct weir_claim claim = weir_claim_none();

	claim.word = (miss.key << WEIR_LINE_KEY_SHIFT) | ((old + WEIR_LINE_VERSION) & WEIR_LINE_VERSIONS) |
		     WEIR_LINE_PIN | (choice.mark ? WEIR_LINE_USED : 0) | WEIR_LINE_BUSY;
	/*
	 * L3: pairs with L2 of readers: the word turns before any byte of the line does, because the
	 * command that brings them is released later (S1). Acquire: after the reads of whoever let go.
	 */
	if (weir_cas_u64_acquire_dev(&set->word[choice.way], old, claim.word) != old) {
		weir_tier_unreserve(lines, down);
		return claim;
	}
	claim.way = choice.way;
	claim.down = weir_tier_leaves(lines, down);
	claim.up = weir_tier_take(lines, index, miss.key, whole);
	weir_policy_chosen(lines, set, policy, miss, choice);
	weir_line_forget_error(lines, index, claim.way);
	if (weir_line_readable(old))
		weir_add_u64_relaxed_dev(&lines->evictions, 1);
	return claim;
}

/*
 * With the set's lock held: claim a clean line for @key; where there is none, begin the write-back
 * of the one that would go, unless somebody is at that already.
 */
WEIR_FN struct weir_claim weir_set_claim_locked(WEIR_GLOBAL struct weir_lines *lines, u64 index,
						WEIR_GLOBAL struct weir_set_policy *policy, u64 key, u32 writing)
{
	struct weir_look look = weir_set_look(weir_lines_set(lines, index));
	struct weir_found found = weir_look_find(look, key);
	struct weir_miss miss = weir_policy_miss(lines, policy, look, key);
	u32 failed = weir_line_state(found.word) == WEIR_LINE_FAILED && weir_line_evictable(found.word);
	u32 places = weir_policy_places(lines, key), dirty = weir_look_dirty(look) & places;
	u32 clean = weir_look_clean(look) & places, stuck = dirty ? weir_set_stuck(policy, dirty) : 0;
	u32 whole = writing & WEIR_CLAIM_WHOLE;
	struct weir_claim claim = weir_claim_none();
	struct weir_choice choice;

	if ((found.word != 0 && !failed) || weir_tier_moving(lines, index, key)) /* there, or about to be */
		return claim;
	writing &= 3;
	if (stuck == places)
		return weir_claim_stuck(lines, index, look, places);
	if (weir_look_writing(look)) /* one at a time, unless it takes long */
		writing &= 2;
	miss.evictable &= clean ? ~dirty : ~stuck;
	choice = weir_policy_choose(lines, policy, miss);
	/* A failed fetch is tried again in its place. */
	choice.way = failed ? found.way : choice.way;
	choice.unmark = failed ? 0 : choice.unmark;
	choice.state = failed ? miss.state : choice.state;
	if (choice.way == WEIR_WAYS)
		return claim;
	if ((dirty >> choice.way) & 1) {
		if (writing && weir_line_try_write_back(lines, index, choice.way, weir_look_word(look, choice.way)))
			claim.writing = choice.way + 1;
		return claim;
	}
	claim = weir_set_replace(lines, index, policy, miss, choice, whole);
	clean &= ~(1u << claim.way);
	if (claim.way != WEIR_WAYS && (clean & (clean - 1)) == 0 && (dirty & ~stuck) && writing)
		claim.writing = weir_set_write_one(lines, index, look, dirty & ~stuck);
	return claim;
}

/**
 * weir_set_try_claim() - claim a line for @key if the set's lock is free
 * @lines: the cache
 * @index: the set
 * @key: whose line
 * @writing: bit 0: this lane could submit a write-back; bit 1: even if another is under way; WEIR_CLAIM_WHOLE
 *
 * Lock, bounded work and unlock in one turn. Then comes weir_tier_move(), by all lanes of the wave.
 */
WEIR_FN struct weir_claim weir_set_try_claim(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key, u32 writing)
{
	WEIR_GLOBAL struct weir_set_policy *policy = weir_lines_policy(lines, index);
	struct weir_claim claim = weir_claim_none();

	/* P0: pairs with P1 of the previous holder */
	if (weir_cas_u32_acquire_dev(&policy->lock, 0, 1) == 0) {
		claim.stuck = weir_share_refuses(lines, key); /* it stays in its buffer */
		if (claim.stuck == WEIR_OK)
			claim.stuck = weir_tier_refuses(lines);
		if (claim.stuck == WEIR_OK)
			claim = weir_set_claim_locked(lines, index, policy, key, writing);
		weir_store_u32_release_dev(&policy->lock, 0); /* P1 */
	}
	weir_converge();
	return claim;
}

/* Take a claim back: no command was submitted, so nobody else may change the word. */
WEIR_FN void weir_line_retract(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u64 *word = &weir_lines_set(lines, index)->word[way];
	u64 busy = weir_load_u64_relaxed_dev(word);

	weir_store_u64_release_dev(word, (busy & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID);
	weir_add_u64_relaxed_dev(&lines->misses, ~(u64)0);
	weir_add_u64_relaxed_dev(&lines->retracted, 1);
}

WEIR_FN void weir_line_unpin(WEIR_GLOBAL struct weir_set *set, u32 way)
{
	/* release: this lane's reads stay before the line can be claimed again */
	weir_add_u64_acq_rel_dev(&set->word[way], (u64)0 - WEIR_LINE_PIN);
}

/**
 * struct weir_fetch - one lane's progress in weir_lines_access()
 * @words: the result
 * @found: the line where it is
 * @mine: way this lane claimed and pinned, WEIR_WAYS if none
 * @unsent: turns that the claim has waited for a queue slot, from 1 on; 0: its command is under way
 * @writing: 0, or in 2:0 one more than the way whose write-back this lane began and has yet to
 *           submit, in 31:3 turns that it has waited for a slot
 * @there: the line can be accessed just now
 * @absent: nobody brings the line as far as this lane saw just now
 * @claims: and there might be room for it
 * @waited: bit 0: a fetch that was under way while this lane waited may report its error to it; with it, as a
 *          whole, how far this lane is with submitting its own again (weir_retry())
 * @done: ended
 * @failed: word of a line that could not be fetched, this lane's or one it waited for; 0: none just now
 */
struct weir_fetch {
	struct weir_words words;
	struct weir_found found;
	u32 mine;
	u32 unsent;
	u32 writing;
	u32 there;
	u32 absent;
	u32 claims;
	u32 waited;
	u32 done;
	u64 failed;
};

WEIR_FN struct weir_fetch weir_fetch_fail(struct weir_fetch fetch, weir_status status)
{
	fetch.words.status = status;
	fetch.done = 1;
	return fetch;
}

/* A lane that claimed the line: the pin holds it still, so no second look is needed. */
WEIR_FN struct weir_fetch weir_fetch_mine(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, u32 offset, u32 count)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	u64 word;

	/* L1: pairs with L0 */
	word = weir_poll_u64_dev(&set->word[fetch.mine], WEIR_LINE_BIT_READY | WEIR_LINE_BIT_FAILED);
	if (!weir_line_readable(word)) {
		fetch.failed = weir_line_state(word) == WEIR_LINE_FAILED ? word : 0;
		return fetch;
	}
	fetch.words = weir_line_load(weir_line_data(lines, index, fetch.mine) + offset, count);
	weir_line_unpin(set, fetch.mine);
	fetch.mine = WEIR_WAYS;
	fetch.done = 1;
	return fetch;
}

/* A lane without a line of its own: read it, wait for it, take its error, or find it absent. */
WEIR_FN struct weir_fetch weir_fetch_other(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					   u64 index, u64 key, u32 offset, u32 count, u32 may_write)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_look look = weir_set_look(set);
	struct weir_found found = weir_look_find(look, key);
	u32 state = weir_line_state(found.word);

	if (weir_line_readable(found.word)) {
		fetch.words = weir_line_load(weir_line_data(lines, index, found.way) + offset, count);
		fetch.done = weir_line_unchanged(set, found);
	} else if (state == WEIR_LINE_BUSY) {
		fetch.waited |= 1;
	} else if (state == WEIR_LINE_FAILED && fetch.waited) {
		fetch.failed = found.word;
		fetch.found.way = found.way;
	} else {
		fetch.absent = 1;
		fetch.claims = weir_look_promises(look, may_write);
	}
	return fetch;
}

/* The same for accesses that follow in this turn, with the wave: only where the line is. */
WEIR_FN struct weir_fetch weir_fetch_find(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, u64 key, u32 may_write)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_look look = weir_set_look(set);
	u32 owns = fetch.mine != WEIR_WAYS, state;

	if (owns) {
		fetch.found.way = fetch.mine;
		/* L1: pairs with L0 */
		fetch.found.word = weir_poll_u64_dev(&set->word[fetch.mine], WEIR_LINE_BIT_READY | WEIR_LINE_BIT_FAILED);
	} else {
		fetch.found = weir_look_find(look, key);
	}
	state = weir_line_state(fetch.found.word);
	fetch.there = weir_line_readable(fetch.found.word);
	fetch.waited |= state == WEIR_LINE_BUSY;
	fetch.absent = !fetch.there && !owns && state != WEIR_LINE_BUSY && !(state == WEIR_LINE_FAILED && fetch.waited);
	fetch.claims = fetch.absent && weir_look_promises(look, may_write);
	fetch.failed = state == WEIR_LINE_FAILED && !fetch.absent ? fetch.found.word : 0;
	return fetch;
}

/*
 * fetch.failed: a fetch that this lane waited for failed. If that is worth another try, whoever issued it decides about
 * that as long as its pin is there; after one who did not stay for the outcome (a prefetch), this lane may claim the line.
 */
WEIR_FN struct weir_fetch weir_fetch_told(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  WEIR_GLOBAL struct weir_disk *disk, u64 index)
{
	weir_status status = weir_load_u32_relaxed_dev(weir_line_status(lines, index, fetch.found.way));
	u64 word;

	weir_order_loads(); /* L4: the status before the second look */
	word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, fetch.found.way));
	if (weir_status_retryable(status) && !(status & WEIR_STATUS_TAKEN) && (disk->retry & WEIR_RETRIES_MASK)) {
		fetch.absent = (fetch.failed & WEIR_LINE_PINS) == 0;
		fetch.claims = fetch.absent;
		return fetch;
	}
	return weir_line_same(word, fetch.failed) ? weir_fetch_fail(fetch, status & ~WEIR_STATUS_TAKEN) : fetch;
}

/* fetch.failed: if it is this lane's own, it is submitted again, now or later, or the lane tells its status. */
WEIR_FN struct weir_fetch weir_fetch_failed(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					    WEIR_GLOBAL struct weir_disk *disk, u64 index, u64 deadline)
{
	weir_status status;
	u32 again;

	if (fetch.mine == WEIR_WAYS)
		return weir_fetch_told(fetch, lines, disk, index);
	again = weir_line_refetch(lines, disk, index, fetch.mine, fetch.waited, deadline);
	if (again) {
		fetch.waited = again;
		fetch.unsent = weir_retry_now(again);
		return fetch;
	}
	status = weir_load_u32_relaxed_dev(weir_line_status(lines, index, fetch.mine)) & ~WEIR_STATUS_TAKEN;
	weir_line_unpin(weir_lines_set(lines, index), fetch.mine);
	fetch.mine = WEIR_WAYS;
	return weir_fetch_fail(fetch, status);
}

/*
 * Lanes of @wave that found the same line absent go as one: the first of them claims it,
 * and the others will find it on its way. (Two caches' keys may fall together; then one
 * of them goes in the next turn.)
 */
WEIR_FN struct weir_claim weir_fetch_claim(u64 wave, u32 claims, WEIR_GLOBAL struct weir_lines *lines, u64 index,
					   u64 key, u32 writing)
{
	u64 wanting = weir_ballot(wave, claims);
	struct weir_claim claim = weir_claim_none();
	u64 mates;

	if (wanting == 0) /* as in most turns of a wait */
		return claim;
	mates = weir_mates_u64(wave, wanting, WEIR_ADDR(lines) + key);
	if (claims && weir_leader(mates))
		claim = weir_set_try_claim(lines, index, key, writing);
	weir_converge();
	weir_tier_move(wave, lines, index, claim.way, claim.down, claim.up);
	return claim;
}

/* What the lock's holder got goes into its progress: a line to fetch, or to overwrite (@whole). */
WEIR_FN struct weir_fetch weir_fetch_claimed(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines, u64 index,
					     struct weir_claim claim, u32 whole, u64 deadline)
{
	u32 again;

	fetch.writing = claim.writing ? claim.writing : fetch.writing;
	if (claim.stuck == WEIR_E_SHARED || claim.stuck == WEIR_E_SHARE_TABLE || claim.stuck == WEIR_E_TIER)
		return weir_fetch_fail(fetch, claim.stuck);
	if (claim.stuck != WEIR_OK) {
		again = weir_line_rewrite(lines, index, weir_line_key(claim.word), claim.stuck, fetch.waited, deadline);
		if (again) {
			fetch.waited = again;
			return fetch;
		}
		weir_line_blame(lines, weir_line_key(claim.word), claim.stuck);
		return weir_fetch_fail(fetch, claim.stuck);
	}
	if (claim.way == WEIR_WAYS)
		return fetch;
	fetch.waited &= WEIR_RETRY_COUNTS; /* whatever it waited for to write again */
	fetch.mine = claim.way;
	fetch.unsent = !whole && !claim.up;
	fetch.there = whole;
	fetch.found.way = claim.way;
	fetch.found.word = claim.word;
	if (fetch.unsent)
		weir_add_u64_relaxed_dev(&lines->misses, 1);
	return fetch;
}

/* After a submission was tried: a command that has waited long enough is taken back. */
WEIR_FN struct weir_fetch weir_fetch_sent(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines, u64 index,
					  u32 submitted)
{
	if (fetch.unsent) {
		fetch.unsent = submitted ? 0 : fetch.unsent + 1;
		if (fetch.unsent > WEIR_UNSENT_TURNS) {
			weir_line_retract(lines, index, fetch.mine);
			fetch.mine = WEIR_WAYS;
			fetch.unsent = 0;
		}
	} else {
		fetch.writing = submitted ? 0 : fetch.writing + 8;
		if (fetch.writing >> 3 > WEIR_UNSENT_TURNS) {
			weir_line_take_back(lines, index, (fetch.writing & 7) - 1);
			fetch.writing = 0;
		}
	}
	return fetch;
}

/* One command per lane that has one: its claim's, else the write-back that it began. */
WEIR_FN struct weir_fetch weir_fetch_send(struct weir_fetch fetch, u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					  WEIR_GLOBAL struct weir_extent *extent, u64 key, u64 index)
{
	u32 writes = !fetch.unsent && fetch.writing, way = writes ? (fetch.writing & 7) - 1 : fetch.mine, submitted;
	u32 sends = fetch.unsent || writes;
	WEIR_GLOBAL struct weir_disk *disk;
	u64 line;

	if (writes) {
		/* relaxed: nobody else may put another occupant there */
		key = weir_line_key(weir_load_u64_relaxed_dev(weir_line_word(lines, index, way)));
		extent = weir_extent_of(lines, key);
	}
	line = key - extent->key_base;
	disk = weir_extent_disk(extent, line);
	if (writes && weir_disk_dead(disk) != WEIR_OK) {
		weir_line_refuse(lines, index, way, weir_disk_dead(disk));
		fetch.writing = 0;
		sends = 0;
	}
	submitted = weir_disk_try_submit(wave, sends, disk,
					 weir_line_request(lines, extent, line, index, way,
							   writes ? (u32)NVME_OPCODE_WRITE : (u32)NVME_OPCODE_READ));
	return sends ? weir_fetch_sent(fetch, lines, index, submitted) : fetch;
}

/* Deadline or a dead storage: let go of the pin; a command in flight still ends. */
WEIR_FN struct weir_fetch weir_fetch_give_up(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					     u64 index, weir_status status)
{
	if (fetch.unsent)
		weir_line_retract(lines, index, fetch.mine);
	else if (fetch.mine != WEIR_WAYS)
		weir_line_unpin(weir_lines_set(lines, index), fetch.mine);
	if (fetch.writing)
		weir_line_take_back(lines, index, (fetch.writing & 7) - 1);
	fetch.unsent = 0;
	fetch.writing = 0;
	fetch.mine = WEIR_WAYS;
	return weir_fetch_fail(fetch, status);
}

/* The storage of a line of the set that a command is on; @disk if there is none. */
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_set_disk(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 turn,
						    WEIR_GLOBAL struct weir_disk *disk)
{
	for (u32 i = 0; i < WEIR_WAYS; i++) {
		/* relaxed: a hint; whatever key it names, its storage can be helped */
		u64 word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, (i + (turn >> 3)) % WEIR_WAYS));

		if (weir_line_under_way(word)) {
			WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, weir_line_key(word));

			return weir_extent_disk(extent, weir_line_key(word) - extent->key_base);
		}
	}
	return disk;
}

/*
 * Dead storages keep every line that @key could have: commands on them never end, since a controller may still touch them
 * (WEIR_QUEUE_UNSAFE), or they are dirty and cannot be written. Return: the status of one of them; 0 if any may come free.
 */
WEIR_RARE weir_status weir_set_lost(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	u32 places = weir_policy_places(lines, key);
	weir_status unsafe = WEIR_OK;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, way)); /* relaxed: a hint, as in weir_set_disk() */
		WEIR_GLOBAL struct weir_extent *extent;
		weir_status kept = WEIR_OK;

		if (!((places >> way) & 1))
			continue;
		if (weir_line_under_way(word)) {
			extent = weir_extent_of(lines, weir_line_key(word));
			kept = unsafe = weir_disk_unsafe(weir_extent_disk(extent, weir_line_key(word) - extent->key_base));
		} else if (weir_line_dirty(word) && weir_status_sticky(weir_load_u32_relaxed_dev(weir_line_status(lines, index, way)))) {
			kept = weir_load_u32_relaxed_dev(weir_line_status(lines, index, way));
		}
		if (kept == WEIR_OK)
			return kept;
	}
	return unsafe;
}

/*
 * Those of @wave that found their line write to it. Lanes with the same line share a pin and a
 * mark, whose lane is the issuer if it is among them; all from the pin to the mark is one turn.
 */
WEIR_FN WEIR_ALWAYS struct weir_fetch weir_fetch_write(u32 kind, struct weir_fetch fetch, u64 wave,
						       WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key,
						       struct weir_access access)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_line_word(lines, index, fetch.found.way % WEIR_WAYS);
	weir_addr data = weir_line_data(lines, index, fetch.found.way % WEIR_WAYS) + access.offset;
	u64 able = weir_ballot(wave, fetch.there), mates, owners, pinned = 0;
	u32 fresh = weir_line_state(fetch.found.word) == WEIR_LINE_BUSY, first, head, part;

	if (able == 0) /* the same in all lanes */
		return fetch;
	mates = weir_mates_u64(wave, able, WEIR_ADDR(word));
	owners = weir_ballot(wave, fetch.there && fetch.mine != WEIR_WAYS) & mates;
	first = fetch.there ? weir_lowest_bit(owners ? owners : mates) : weir_lane();
	head = fetch.there && weir_lane() == first;
	if (head)
		pinned = owners ? fetch.found.word : weir_line_try_pin(word, fetch.found.word);
	weir_converge();
	/* a mate that saw the line with an earlier occupant looks again */
	pinned = weir_shuffle_u64(wave, pinned, first);
	part = fetch.there && weir_line_holds(pinned, key);
	weir_wave_sync(wave); /* what a head acquired is its mates'; what a lane wrote to its buffer is all lanes' */
	if (kind == WEIR_ACCESS_WRITE) {
		/* L3: the word of a line that is overwritten turns before any byte of it does */
		if (weir_ballot(wave, fetch.there && fresh))
			weir_fence_to_lanes();
		weir_wave_move(wave, data, access.buffer, part ? access.length : 0);
	} else if (part) {
		fetch.words.word[0] = weir_access_element(kind, data, access);
	}
	weir_wave_sync(wave); /* every lane's part before the mark (W0) */
	if (head && pinned)
		weir_line_modified(word, pinned);
	if (part) {
		fetch.mine = WEIR_WAYS;
		fetch.done = 1;
	}
	weir_wave_sync(wave); /* a lane's own flush sees the mark that a head made for it */
	return fetch;
}

/* Those of @wave that found their line have it copied by all; who holds no pin looks again. */
WEIR_FN struct weir_fetch weir_fetch_read(struct weir_fetch fetch, u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, struct weir_access access)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	weir_addr data = weir_line_data(lines, index, fetch.found.way % WEIR_WAYS) + access.offset;

	if (weir_ballot(wave, fetch.there) == 0)
		return fetch;
	weir_order_loads();
	weir_wave_sync(wave); /* what a lane's look guards (L1) is all lanes' to load */
	weir_wave_move(wave, access.buffer, data, fetch.there ? access.length : 0);
	weir_order_loads(); /* L2: every lane's loads before the second look */
	weir_wave_sync(wave);
	if (fetch.there && fetch.mine != WEIR_WAYS) {
		weir_line_unpin(set, fetch.mine);
		fetch.mine = WEIR_WAYS;
		fetch.done = 1;
	} else if (fetch.there) {
		fetch.done = weir_line_same(weir_load_u64_relaxed_dev(&set->word[fetch.found.way]), fetch.found.word);
	}
	weir_converge();
	return fetch;
}

/**
 * weir_lines_access_within() - do something with a line, bringing it in if it is not there
 * @wave: lanes calling together
 * @lines: the cache
 * @extent: where the line comes from
 * @line: line of @extent, below extent->lines
 * @kind: WEIR_ACCESS_..., a constant, the same in all lanes
 * @access: what exactly
 * @turns: after so many the lane gives up, with WEIR_E_LOCKED; WEIR_LINES_FOREVER: only at the storage's timeout
 *
 * Different arguments in each lane, but for the first and @kind. The flat wait loop of
 * everything that is not a hit; the data is accessed inside it, while the line is known to be there.
 *
 * Return: words, and WEIR_OK; the completion's status; that of a line which cannot be
 * written back and has to; WEIR_E_TIMEOUT after the storage's timeout; WEIR_E_SHARED: the line is
 * in a buffer of the cache's Share Table (weir_lines_reach() goes there).
 */
WEIR_FN WEIR_ALWAYS struct weir_words weir_lines_access_within(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
							       WEIR_GLOBAL struct weir_extent *extent, u64 line,
							       u32 kind, struct weir_access access, u32 turns)
{
	u64 key = extent->key_base + line;
	u64 index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0);
	struct weir_fetch fetch;
	u64 needy;

	fetch.words = weir_line_load(0, 0);
	fetch.found.word = 0;
	fetch.found.way = 0;
	fetch.mine = WEIR_WAYS;
	fetch.unsent = 0;
	fetch.writing = 0;
	fetch.there = 0;
	fetch.absent = 0;
	fetch.claims = 0;
	fetch.waited = 0;
	fetch.done = access.length == 0;
	if (WEIR_ONLY_SERVICE && !(disk->flags & WEIR_DISK_SERVICE))
		fetch = weir_fetch_fail(fetch, WEIR_E_SERVICE);
	if (!weir_policy_known(lines->policy))
		fetch = weir_fetch_fail(fetch, WEIR_E_POLICY);
	for (u32 turn = 0; (needy = weir_ballot(wave, !fetch.done || fetch.writing)) != 0; turn++) {
		u32 may_write = fetch.writing ? 0 : 1 | (u32)(turn % WEIR_WRITING_TURNS == WEIR_WRITING_TURNS - 1) << 1;
		u32 whole = kind == WEIR_ACCESS_WRITE && access.offset == 0;
		struct weir_claim claim;

		weir_converge();
		fetch.absent = 0;
		fetch.claims = 0;
		fetch.there = 0;
		fetch.failed = 0;
		if (kind != WEIR_ACCESS_LOAD && !fetch.done && !fetch.unsent)
			fetch = weir_fetch_find(fetch, lines, index, key, may_write);
		else if (!fetch.done && !fetch.unsent && fetch.mine != WEIR_WAYS)
			fetch = weir_fetch_mine(fetch, lines, index, access.offset, access.length);
		else if (!fetch.done && !fetch.unsent)
			fetch = weir_fetch_other(fetch, lines, index, key, access.offset, access.length, may_write);
		if (fetch.failed)
			fetch = weir_fetch_failed(fetch, lines, disk, index, deadline);
		if (fetch.claims && weir_disk_dead(disk) != WEIR_OK) /* nobody would fill the line, nor write it back */
			fetch.claims = 0;
		if (whole) /* as far as the storage has the line */
			whole = access.length >= weir_extent_blocks(lines, extent, line) << disk->block_log2;
		claim = weir_fetch_claim(wave, fetch.claims, lines, index, key, may_write | (whole ? (u32)WEIR_CLAIM_WHOLE : 0));
		fetch = weir_fetch_claimed(fetch, lines, index, claim, whole, deadline);
		if (kind == WEIR_ACCESS_READ)
			fetch = weir_fetch_read(fetch, wave, lines, index, access);
		else if (kind != WEIR_ACCESS_LOAD)
			fetch = weir_fetch_write(kind, fetch, wave, lines, index, key, access);
		fetch = weir_fetch_send(fetch, wave, lines, extent, key, index);
		if (!fetch.done && weir_disk_dead(disk) != WEIR_OK)
			fetch = weir_fetch_give_up(fetch, lines, index, weir_disk_dead(disk));
		else if (!fetch.done && fetch.absent && turn % WEIR_LOST_TURNS == WEIR_LOST_TURNS - 1 &&
			 weir_set_lost(lines, index, key) != WEIR_OK)
			fetch = weir_fetch_give_up(fetch, lines, index, weir_set_lost(lines, index, key));
		else if (!fetch.done && weir_expired(deadline, turn))
			fetch = weir_fetch_give_up(fetch, lines, index, WEIR_E_TIMEOUT);
		else if (turns != WEIR_LINES_FOREVER && !fetch.done && turn + 1 >= turns) /* a constant: no code where there is no limit */
			fetch = weir_fetch_give_up(fetch, lines, index, WEIR_E_LOCKED);
		needy = weir_ballot(wave, !fetch.done || fetch.writing);
		if (needy) {
			WEIR_GLOBAL struct weir_disk *helped = disk;

			/* By turns that fall on every queue: who waits for another line's command helps its storage. */
			if (fetch.absent && fetch.mine == WEIR_WAYS && (weir_popcount(turn) & 1))
				helped = weir_set_disk(lines, index, turn, disk);
			if (weir_disk_help(wave, needy, helped, turn) == 0)
				weir_relax(turn);
		}
	}
	return fetch.words;
}

/** weir_lines_access() - weir_lines_access_within() any number of turns */
WEIR_FN WEIR_ALWAYS struct weir_words weir_lines_access(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
							WEIR_GLOBAL struct weir_extent *extent, u64 line,
							u32 kind, struct weir_access access)
{
	return weir_lines_access_within(wave, lines, extent, line, kind, access, WEIR_LINES_FOREVER);
}

/**
 * weir_lines_fetch() - read words of a line, bringing it in if it is not there
 * @lines: the cache
 * @extent: where the line comes from
 * @line: line of @extent, below extent->lines
 * @offset: byte offset in the line, a multiple of 8
 * @count: words, 1 to WEIR_RUN
 *
 * weir_lines_access() of any subset of a wave.
 */
WEIR_FN struct weir_words weir_lines_fetch(WEIR_GLOBAL struct weir_lines *lines,
					   WEIR_GLOBAL struct weir_extent *extent, u64 line, u32 offset,
					   u32 count)
{
	struct weir_access access;

	access.offset = offset;
	access.length = count;
	access.buffer = 0;
	access.value.low = 0;
	access.value.high = 0;
	return weir_lines_access(weir_active(), lines, extent, line, WEIR_ACCESS_LOAD, access);
}

#endif
