/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/fetch.h: the steps of an access that is not a hit.
 *
 * Owns: how far a lane is (struct weir_fetch), and each step from there: look, claim, submit with the line
 * as continuation, take back, give up. If no slot comes free for a few turns the claim is taken back, so
 * nothing is held across a full queue for long. Never loops until something happens, and never touches what
 * a line holds but to load words: the wait loop, stores and copies are in core/cache/access.h.
 *
 * The issuer's pin keeps the line until it has accessed what it asked for; without it a cache smaller than
 * the number of lanes would evict every line unread.
 */
#ifndef WEIR_CORE_FETCH_H
#define WEIR_CORE_FETCH_H

#include <weir/core/cache/reserve.h>

enum {
	/*
	 * Iterations that a command waits for a queue slot before it is taken back. Slots come free
	 * whatever lines are claimed, so waiting is safe; only for ever it must not be.
	 */
	WEIR_UNSENT_ITERATIONS = 8,
	/* Iterations after which a lane does not trust in the write-back that somebody began in its set. */
	WEIR_WRITING_ITERATIONS = 64,
	/* Iterations between two looks at whether dead storages keep all lines of a set. */
	WEIR_LOST_ITERATIONS = 64,
};

/**
 * struct weir_fetch - one lane's progress in weir_lines_access()
 * @words: the result
 * @found: the line where it is
 * @mine: way this lane claimed and pinned, WEIR_WAYS if none
 * @unsent: iterations that the claim has waited for a queue slot, from 1 on; 0: its command is under way
 * @writing: 0, or in 2:0 one more than the way whose write-back this lane began and has yet to
 *           submit, in 31:3 iterations that it has waited for a slot
 * @there: the line can be accessed just now
 * @absent: nobody brings the line as far as this lane saw just now
 * @reserves: and there might be room for it
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
	u32 reserves;
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

	/* line.L1: pairs with line.L0 */
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
	struct weir_probe probe = weir_set_probe(set);
	struct weir_found found = weir_probe_find(probe, key);
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
		fetch.reserves = weir_probe_promises(probe, may_write);
	}
	return fetch;
}

/* The same for accesses that follow in this iteration, with the wave: only where the line is. */
WEIR_FN struct weir_fetch weir_fetch_find(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, u64 key, u32 may_write)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_probe probe = weir_set_probe(set);
	u32 owns = fetch.mine != WEIR_WAYS, state;

	if (owns) {
		fetch.found.way = fetch.mine;
		/* line.L1: pairs with line.L0 */
		fetch.found.word =
			weir_poll_u64_dev(&set->word[fetch.mine], WEIR_LINE_BIT_READY | WEIR_LINE_BIT_FAILED);
	} else {
		fetch.found = weir_probe_find(probe, key);
	}
	state = weir_line_state(fetch.found.word);
	fetch.there = weir_line_readable(fetch.found.word);
	fetch.waited |= state == WEIR_LINE_BUSY;
	fetch.absent = !fetch.there && !owns && state != WEIR_LINE_BUSY &&
		       !(state == WEIR_LINE_FAILED && fetch.waited);
	fetch.reserves = fetch.absent && weir_probe_promises(probe, may_write);
	fetch.failed = state == WEIR_LINE_FAILED && !fetch.absent ? fetch.found.word : 0;
	return fetch;
}

/*
 * fetch.failed: a fetch that this lane waited for failed. If that is worth another try, whoever issued it
 * decides about that as long as its pin is there; after one who did not stay for the outcome (a prefetch),
 * this lane may claim the line.
 */
WEIR_FN struct weir_fetch weir_fetch_notified(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					      WEIR_GLOBAL struct weir_disk *disk, u64 index)
{
	weir_status status = weir_load_u32_relaxed_dev(weir_line_status(lines, index, fetch.found.way));
	u64 word;

	weir_order_loads(); /* line.L4: the status before the second look */
	word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, fetch.found.way));
	if (weir_status_retryable(status) && !(status & WEIR_STATUS_CONSUMED) &&
	    (disk->retry & WEIR_RETRIES_MASK)) {
		fetch.absent = (fetch.failed & WEIR_LINE_PINS) == 0;
		fetch.reserves = fetch.absent;
		return fetch;
	}
	return weir_line_same(word, fetch.failed) ? weir_fetch_fail(fetch, status & ~WEIR_STATUS_CONSUMED)
						  : fetch;
}

/* fetch.failed: if it is this lane's own, it is submitted again, now or later, or the lane tells its status.
 */
WEIR_FN struct weir_fetch weir_fetch_failed(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					    WEIR_GLOBAL struct weir_disk *disk, u64 index, u64 deadline)
{
	weir_status status;
	u32 again;

	if (fetch.mine == WEIR_WAYS)
		return weir_fetch_notified(fetch, lines, disk, index);
	again = weir_line_refetch(lines, disk, index, fetch.mine, fetch.waited, deadline);
	if (again) {
		fetch.waited = again;
		fetch.unsent = weir_retry_now(again);
		return fetch;
	}
	status =
		weir_load_u32_relaxed_dev(weir_line_status(lines, index, fetch.mine)) & ~WEIR_STATUS_CONSUMED;
	weir_line_unpin(weir_lines_set(lines, index), fetch.mine);
	fetch.mine = WEIR_WAYS;
	return weir_fetch_fail(fetch, status);
}

/*
 * Lanes of @wave that found the same line absent go as one: the first of them claims it,
 * and the others will find it on its way. (Two caches' keys may fall together; then one
 * of them goes in the next iteration.)
 */
WEIR_FN struct weir_reservation weir_fetch_reserve(u64 wave, u32 reserves,
						   WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key,
						   u32 writing)
{
	u64 wanting = weir_ballot(wave, reserves);
	struct weir_reservation reservation = weir_reservation_none();
	u64 matches;

	if (wanting == 0) /* as in most iterations of a wait */
		return reservation;
	matches = weir_match_mask_u64(wave, wanting, WEIR_ADDR(lines) + key);
	if (reserves && weir_elected(matches))
		reservation = weir_set_try_reserve(lines, index, key, writing);
	weir_reconverge();
	weir_tier_move(wave, lines, index, reservation.way, reservation.down, reservation.up);
	return reservation;
}

/* What the lock's holder got goes into its progress: a line to fetch, or to overwrite (@whole). */
WEIR_FN struct weir_fetch weir_fetch_reserved(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					      u64 index, struct weir_reservation reservation, u32 whole,
					      u64 deadline)
{
	u32 again;

	fetch.writing = reservation.writing ? reservation.writing : fetch.writing;
	if (reservation.unwritable == WEIR_E_SHARED || reservation.unwritable == WEIR_E_SHARE_TABLE ||
	    reservation.unwritable == WEIR_E_TIER)
		return weir_fetch_fail(fetch, reservation.unwritable);
	if (reservation.unwritable != WEIR_OK) {
		again = weir_line_rewrite(lines, index, weir_line_key(reservation.word),
					  reservation.unwritable, fetch.waited, deadline);
		if (again) {
			fetch.waited = again;
			return fetch;
		}
		weir_line_blame(lines, weir_line_key(reservation.word), reservation.unwritable);
		return weir_fetch_fail(fetch, reservation.unwritable);
	}
	if (reservation.way == WEIR_WAYS)
		return fetch;
	fetch.waited &= WEIR_RETRY_COUNTS; /* whatever it waited for to write again */
	fetch.mine = reservation.way;
	fetch.unsent = !whole && !reservation.up;
	fetch.there = whole;
	fetch.found.way = reservation.way;
	fetch.found.word = reservation.word;
	if (fetch.unsent)
		weir_add_u64_relaxed_dev(&lines->misses, 1);
	return fetch;
}

/* After a submission was tried: a command that has waited long enough is taken back. */
WEIR_FN struct weir_fetch weir_fetch_sent(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, u32 submitted)
{
	if (fetch.unsent) {
		fetch.unsent = submitted ? 0 : fetch.unsent + 1;
		if (fetch.unsent > WEIR_UNSENT_ITERATIONS) {
			weir_line_cancel(lines, index, fetch.mine);
			fetch.mine = WEIR_WAYS;
			fetch.unsent = 0;
		}
	} else {
		fetch.writing = submitted ? 0 : fetch.writing + 8;
		if (fetch.writing >> 3 > WEIR_UNSENT_ITERATIONS) {
			weir_line_take_back(lines, index, (fetch.writing & 7) - 1);
			fetch.writing = 0;
		}
	}
	return fetch;
}

/* One command per lane that has one: its claim's, else the write-back that it began. */
WEIR_FN struct weir_fetch weir_fetch_send(struct weir_fetch fetch, u64 wave,
					  WEIR_GLOBAL struct weir_lines *lines,
					  WEIR_GLOBAL struct weir_extent *extent, u64 key, u64 index)
{
	u32 writes = !fetch.unsent && fetch.writing, way = writes ? (fetch.writing & 7) - 1 : fetch.mine,
	    submitted;
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
	submitted = weir_disk_try_submit(
		wave, sends, disk,
		weir_line_request(lines, extent, line, index, way,
				  writes ? (u32)NVME_OPCODE_WRITE : (u32)NVME_OPCODE_READ));
	return sends ? weir_fetch_sent(fetch, lines, index, submitted) : fetch;
}

/* Deadline or a dead storage: let go of the pin; a command in flight still ends. */
WEIR_FN struct weir_fetch weir_fetch_give_up(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					     u64 index, weir_status status)
{
	if (fetch.unsent)
		weir_line_cancel(lines, index, fetch.mine);
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
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_set_disk(WEIR_GLOBAL struct weir_lines *lines, u64 index,
						    u32 iteration, WEIR_GLOBAL struct weir_disk *disk)
{
	for (u32 i = 0; i < WEIR_WAYS; i++) {
		/* relaxed: a hint; whatever key it names, its storage can be helped */
		u64 word = weir_load_u64_relaxed_dev(
			weir_line_word(lines, index, (i + (iteration >> 3)) % WEIR_WAYS));

		if (weir_line_under_way(word)) {
			WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, weir_line_key(word));

			return weir_extent_disk(extent, weir_line_key(word) - extent->key_base);
		}
	}
	return disk;
}

/*
 * Dead storages keep every line that @key could have: commands on them never end, since a controller may
 * still touch them (WEIR_QUEUE_UNSAFE), or they are dirty and cannot be written. Return: the status of one of
 * them; 0 if any may come free.
 */
WEIR_COLD weir_status weir_set_lost(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	u32 slots = weir_policy_ways(lines, key);
	weir_status unsafe = WEIR_OK;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		/* relaxed: a hint, as in weir_set_disk() */
		u64 word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, way));
		WEIR_GLOBAL struct weir_extent *extent;
		weir_status kept = WEIR_OK;

		if (!((slots >> way) & 1))
			continue;
		if (weir_line_under_way(word)) {
			extent = weir_extent_of(lines, weir_line_key(word));
			kept = unsafe = weir_disk_unsafe(
				weir_extent_disk(extent, weir_line_key(word) - extent->key_base));
		} else if (weir_line_dirty(word) && weir_status_sticky(weir_load_u32_relaxed_dev(
							    weir_line_status(lines, index, way)))) {
			kept = weir_load_u32_relaxed_dev(weir_line_status(lines, index, way));
		}
		if (kept == WEIR_OK)
			return kept;
	}
	return unsafe;
}

#endif
