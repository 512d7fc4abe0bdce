/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/access.h: the flat wait loop of every access that is not a hit.
 *
 * Owns: the loop, its deadline and whom a waiting wave helps; and what the wave does with lines that are
 * there: loads, stores, copies. Never claims a line or submits a command by itself: each iteration is a list
 * of the tries of core/cache/fetch.h, and one lane's word is changed only by core/cache/word.h and
 * core/cache/writeback.h.
 */
#ifndef WEIR_CORE_ACCESS_H
#define WEIR_CORE_ACCESS_H

#include <weir/core/cache/element.h>
#include <weir/core/cache/fetch.h>
#include <weir/core/queue/copy.h>

/* More iterations than any wait has: its deadline ends it. */
#define WEIR_LINES_FOREVER ((u32)~0u)

/*
 * Those of @wave that found their line write to it. Lanes with the same line share a pin and a
 * mark, whose lane is the issuer if it is among them; all from the pin to the mark is one iteration.
 */
WEIR_FN WEIR_FORCE_INLINE struct weir_fetch weir_fetch_write(u32 kind, struct weir_fetch fetch, u64 wave,
							     WEIR_GLOBAL struct weir_lines *lines, u64 index,
							     u64 key, struct weir_access access)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_line_word(lines, index, fetch.found.way % WEIR_WAYS);
	weir_addr data = weir_line_data(lines, index, fetch.found.way % WEIR_WAYS) + access.offset;
	u64 able = weir_ballot(wave, fetch.there), matches, owners, pinned = 0;
	u32 fresh = weir_line_state(fetch.found.word) == WEIR_LINE_BUSY, first, head, part;

	if (able == 0) /* the same in all lanes */
		return fetch;
	matches = weir_match_mask_u64(wave, able, WEIR_ADDR(word));
	owners = weir_ballot(wave, fetch.there && fetch.mine != WEIR_WAYS) & matches;
	first = fetch.there ? weir_lowest_bit(owners ? owners : matches) : weir_lane();
	head = fetch.there && weir_lane() == first;
	if (head)
		pinned = owners ? fetch.found.word : weir_line_try_pin(word, fetch.found.word);
	weir_reconverge();
	/* a mate that saw the line with an earlier occupant looks again */
	pinned = weir_shuffle_u64(wave, pinned, first);
	part = fetch.there && weir_line_holds(pinned, key);
	/* what a head acquired is its mates'; what a lane wrote to its buffer is all lanes' */
	weir_wave_sync(wave);
	if (kind == WEIR_ACCESS_WRITE) {
		/* line.L3: the word of a line that is overwritten turns before any byte of it does */
		if (weir_ballot(wave, fetch.there && fresh))
			weir_fence_to_lanes();
		weir_wave_move(wave, data, access.buffer, part ? access.length : 0);
	} else if (part) {
		fetch.words.word[0] = weir_access_element(kind, data, access);
	}
	weir_wave_sync(wave); /* every lane's part before the mark (writeback.W0) */
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
WEIR_FN struct weir_fetch weir_fetch_read(struct weir_fetch fetch, u64 wave,
					  WEIR_GLOBAL struct weir_lines *lines, u64 index,
					  struct weir_access access)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	weir_addr data = weir_line_data(lines, index, fetch.found.way % WEIR_WAYS) + access.offset;

	if (weir_ballot(wave, fetch.there) == 0)
		return fetch;
	weir_order_loads();
	weir_wave_sync(wave); /* what a lane's look guards (line.L1) is all lanes' to load */
	weir_wave_move(wave, access.buffer, data, fetch.there ? access.length : 0);
	weir_order_loads(); /* line.L2: every lane's loads before the second look */
	weir_wave_sync(wave);
	if (fetch.there && fetch.mine != WEIR_WAYS) {
		weir_line_unpin(set, fetch.mine);
		fetch.mine = WEIR_WAYS;
		fetch.done = 1;
	} else if (fetch.there) {
		fetch.done = weir_line_same(weir_load_u64_relaxed_dev(&set->word[fetch.found.way]),
					    fetch.found.word);
	}
	weir_reconverge();
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
 * @begun: how many iterations of this access were made by calls before
 * @iterations: after so many the lane gives up, with WEIR_E_LOCKED; WEIR_LINES_FOREVER: only at the storage's
 * timeout
 *
 * Different arguments in each lane, but for the first and @kind. The flat wait loop of
 * everything that is not a hit; the data is accessed inside it, while the line is known to be there.
 *
 * Return: words, and WEIR_OK; the completion's status; that of a line which cannot be
 * written back and has to; WEIR_E_TIMEOUT after the storage's timeout; WEIR_E_SHARED: the line is
 * in a buffer of the cache's Share Table (weir_lines_reach() goes there).
 */
WEIR_FN WEIR_FORCE_INLINE struct weir_words weir_lines_access_within(
	u64 wave, WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_extent *extent, u64 line,
	u32 kind, struct weir_access access, u32 begun, u32 iterations)
{
	u64 key = extent->key_base + line;
	u64 index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0);
	struct weir_fetch fetch;

	fetch.words = weir_line_load(0, 0);
	fetch.found.word = 0;
	fetch.found.way = 0;
	fetch.mine = WEIR_WAYS;
	fetch.unsent = 0;
	fetch.writing = 0;
	fetch.there = 0;
	fetch.absent = 0;
	fetch.reserves = 0;
	fetch.waited = 0;
	fetch.done = access.length == 0;
	if (WEIR_ONLY_SERVICE && !(disk->flags & WEIR_DISK_SERVICE))
		fetch = weir_fetch_fail(fetch, WEIR_E_SERVICE);
	if (!weir_policy_known(lines->policy))
		fetch = weir_fetch_fail(fetch, WEIR_E_POLICY);
	WEIR_WAIT_LOOP(wave, !fetch.done || fetch.writing, iteration) {
		u32 may_write = fetch.writing ? 0
					      : 1 | (u32)((begun + iteration) % WEIR_WRITING_ITERATIONS ==
							  WEIR_WRITING_ITERATIONS - 1)
								<< 1;
		u32 whole = kind == WEIR_ACCESS_WRITE && access.offset == 0;
		WEIR_GLOBAL struct weir_disk *helped;
		struct weir_reservation reservation;
		weir_status over = WEIR_OK;

		fetch.absent = 0;
		fetch.reserves = 0;
		fetch.there = 0;
		fetch.failed = 0;
		if (kind != WEIR_ACCESS_LOAD && !fetch.done && !fetch.unsent)
			fetch = weir_fetch_find(fetch, lines, index, key, may_write);
		else if (!fetch.done && !fetch.unsent && fetch.mine != WEIR_WAYS)
			fetch = weir_fetch_mine(fetch, lines, index, access.offset, access.length);
		else if (!fetch.done && !fetch.unsent)
			fetch = weir_fetch_other(fetch, lines, index, key, access.offset, access.length,
						 may_write);
		if (fetch.failed)
			fetch = weir_fetch_failed(fetch, lines, disk, index, deadline);
		if (WEIR_SHARE_KNOWN && fetch.absent && weir_share_holds(lines, key)) {
			fetch = weir_fetch_fail(fetch, WEIR_E_SHARED); /* it needs no room, and no storage */
			fetch.reserves = 0;
		}
		if (fetch.reserves &&
		    weir_disk_dead(disk) != WEIR_OK) /* nobody would fill the line, nor write it back */
			fetch.reserves = 0;
		if (whole) /* as far as the storage has the line */
			whole = access.length >= weir_extent_blocks(lines, extent, line) << disk->block_log2;
		reservation = weir_fetch_reserve(wave, fetch.reserves, lines, index, key,
						 may_write | (whole ? (u32)WEIR_RESERVE_WHOLE : 0));
		fetch = weir_fetch_reserved(fetch, lines, index, reservation, whole, deadline);
		if (kind == WEIR_ACCESS_READ)
			fetch = weir_fetch_read(fetch, wave, lines, index, access);
		else if (kind != WEIR_ACCESS_LOAD)
			fetch = weir_fetch_write(kind, fetch, wave, lines, index, key, access);
		fetch = weir_fetch_send(fetch, wave, lines, extent, key, index);
		if (!fetch.done)
			over = weir_disk_dead(disk);
		/* one look: another may find it otherwise */
		if (!fetch.done && over == WEIR_OK && fetch.absent &&
		    (begun + iteration) % WEIR_LOST_ITERATIONS == WEIR_LOST_ITERATIONS - 1)
			over = weir_set_lost(lines, index, key);
		if (over != WEIR_OK)
			fetch = weir_fetch_give_up(fetch, lines, index, over);
		else if (!fetch.done && weir_expired(deadline, iteration))
			fetch = weir_fetch_give_up(fetch, lines, index, WEIR_E_TIMEOUT);
		else if (iterations != WEIR_LINES_FOREVER && !fetch.done &&
			 iteration + 1 >= iterations) /* a constant: no code where there is no limit */
			fetch = weir_fetch_give_up(fetch, lines, index, WEIR_E_LOCKED);
		helped = disk;
		/* By iterations that fall on every queue: who waits for another line's command helps
		 * its storage. */
		if (fetch.absent && fetch.mine == WEIR_WAYS && (weir_popcount(iteration) & 1))
			helped = weir_set_disk(lines, index, iteration, disk);
		weir_wait_help(wave, !fetch.done || fetch.writing, helped, iteration, iteration);
	}
	return fetch.words;
}

/** weir_lines_access() - weir_lines_access_within() any number of iterations */
WEIR_FN WEIR_FORCE_INLINE struct weir_words weir_lines_access(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
							      WEIR_GLOBAL struct weir_extent *extent,
							      u64 line, u32 kind, struct weir_access access)
{
	return weir_lines_access_within(wave, lines, extent, line, kind, access, 0, WEIR_LINES_FOREVER);
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
