/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/sharing.h: lines on their way between the cache, the Share Table and storage.
 *
 * Owns: registering a buffer, propagating a changed one, and leaving it. Accesses to a line that is in a
 * buffer are in core/share/access.h, which this never looks at. Each try is one iteration: the set's lock is
 * taken, the line changes sides, and the lock is freed, or nothing has happened. No entry is ever seen in
 * between, so no lane waits for another one's next iteration: not for one of its own wave, either.
 *
 * Only lanes built with WEIR_SHARE_TABLE have code for it (-Dshare_table=true, or <weir/share.h> included
 * first): it costs a miss registers. Others are refused the misses of a cache that has a table, with
 * WEIR_E_SHARE_TABLE, so that none of them reads past a buffer.
 */
#ifndef WEIR_CORE_SHARING_H
#define WEIR_CORE_SHARING_H

#include <weir/core/cache/fetch.h>
#include <weir/core/queue/copy.h>
#include <weir/core/queue/retry.h>

/* The bytes of line @line that its storage has. */
WEIR_FN u32 weir_extent_bytes(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_extent *extent,
			      u64 line)
{
	return weir_extent_blocks(lines, extent, line) << weir_extent_disk(extent, line)->block_log2;
}

/* The write-back that a claim began: submitted, or taken back. */
WEIR_FN void weir_lines_write_back(u64 wave, WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 writing)
{
	u32 way = writing ? writing - 1 : 0, sent;
	WEIR_GLOBAL struct weir_extent *extent;
	WEIR_GLOBAL struct weir_disk *disk;
	u64 key, line;

	if (weir_ballot(wave, writing) == 0)
		return;
	/* relaxed: nobody may put another occupant there while it is being written back */
	key = weir_line_key(weir_load_u64_relaxed_dev(weir_line_word(lines, index, way)));
	extent = weir_extent_of(lines, key);
	line = key - extent->key_base;
	disk = weir_extent_disk(extent, line);
	if (writing && weir_disk_dead(disk) != WEIR_OK) {
		weir_line_refuse(lines, index, way, weir_disk_dead(disk));
		writing = 0;
	}
	sent = weir_disk_try_submit(wave, writing != 0, disk,
				    weir_line_request(lines, extent, line, index, way, NVME_OPCODE_WRITE));
	if (writing && !sent)
		weir_line_take_back(lines, index, way);
}

WEIR_FN WEIR_GLOBAL struct weir_share *weir_lines_share(WEIR_GLOBAL struct weir_lines *lines)
{
	return weir_at(lines->share, struct weir_share, 0);
}

/* Is the set's lock this lane's now? Who has it must free it in the same iteration. */
WEIR_FN u32 weir_set_try_lock(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	/* policy.P0: pairs with policy.P1 of the previous holder */
	return weir_cas_u32_acquire_dev(&weir_lines_policy(lines, index)->lock, 0, 1) == 0;
}

WEIR_FN void weir_set_unlock(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	weir_store_u32_release_dev(&weir_lines_policy(lines, index)->lock, 0); /* policy.P1 */
}

/* What a lane got done with a set's lock held. */
enum {
	WEIR_SHARE_RETRY, /* nothing: the lock was not free, or the line or its set is busy */
	WEIR_SHARE_DONE,
	WEIR_SHARE_FULL, /* the bucket has no empty entry */
};

/**
 * struct weir_share_take - a line that left the cache, or was not there
 * @outcome: WEIR_SHARE_...
 * @way: where its data still is; WEIR_WAYS: storage has it, or @tier
 * @tier: where in the cache's tier it is, from weir_tier_take()
 * @dirty: WEIR_SHARE_DIRTY if storage does not have that
 * @position: reserved for it
 */
struct weir_share_take {
	u32 outcome;
	u32 way;
	weir_addr tier;
	u64 dirty;
	u64 position;
};

/*
 * With the set's lock held: reserve an entry for @key, and take its line out of the cache and its tier, if it
 * is there and nobody is at it. What the line holds stays until the lock is free.
 */
WEIR_FN struct weir_share_take weir_share_take_locked(WEIR_GLOBAL struct weir_lines *lines, u64 index,
						      u64 key, weir_addr buffer)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_found found = weir_set_find(set, key);
	struct weir_share_take take;
	u64 left = (found.word & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID;

	take.outcome = WEIR_SHARE_RETRY;
	take.way = weir_line_readable(found.word) ? found.way : (u32)WEIR_WAYS;
	take.tier = 0;
	take.dirty = weir_line_dirty(found.word) ? WEIR_SHARE_DIRTY : 0;
	take.position = ~(u64)0;
	if (weir_share_find(share, key).word != 0 || (found.word != 0 && !weir_line_evictable(found.word)) ||
	    weir_tier_moving(lines, index, key))
		return take;
	take.position = weir_share_reserve(share, key, buffer);
	take.outcome = take.position == ~(u64)0 ? WEIR_SHARE_FULL : WEIR_SHARE_DONE;
	/* writeback.W1: pairs with writeback.W0: what marked the line is what is copied from it */
	if (take.outcome == WEIR_SHARE_DONE && found.word != 0 &&
	    weir_cas_u64_acquire_dev(&set->word[found.way], found.word, left) != found.word) {
		weir_share_forget(share, take.position); /* pinned, or marked as used */
		take.outcome = WEIR_SHARE_RETRY;
	}
	if (take.outcome == WEIR_SHARE_DONE) /* a copy of what the cache had just goes */
		take.tier = weir_tier_take(lines, index, key, take.way != WEIR_WAYS);
	return take;
}

/*
 * Is @key's line neither in the cache nor in the table, at a moment within this call? Then storage has
 * all that was written to it before. One try, and 0 if the lock is not free.
 */
WEIR_FN u32 weir_share_try_absent(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	u64 index = weir_lines_index(lines, key);
	u32 absent = 0;

	if (weir_set_try_lock(lines, index)) {
		absent = !weir_share_holds(lines, key) &&
			 !weir_line_readable(weir_set_find(weir_lines_set(lines, index), key).word);
		weir_set_unlock(lines, index);
	}
	weir_reconverge();
	return absent;
}

/**
 * struct weir_registered - what weir_share_try_register() did
 * @outcome: WEIR_SHARE_...
 * @position: of the entry
 */
struct weir_registered {
	u32 outcome;
	u64 position;
};

/**
 * weir_share_try_register() - make @buffer the place of a line
 * @wave: lanes calling together
 * @want: this lane has a buffer to register
 * @lines: the cache
 * @extent: whose line
 * @line: line of @extent
 * @buffer: this lane's
 *
 * One iteration. A line of the cache or its tier is moved to the buffer, dirty or not; any other is being
 * read into it from storage when this returns: one command, whose continuation is the entry.
 */
WEIR_FN struct weir_registered weir_share_try_register(u64 wave, u32 want,
						       WEIR_GLOBAL struct weir_lines *lines,
						       WEIR_GLOBAL struct weir_extent *extent, u64 line,
						       weir_addr buffer)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	u64 key = extent->key_base + line, index = weir_lines_index(lines, key);
	struct weir_request request = weir_line_request(lines, extent, line, index, 0, NVME_OPCODE_READ);
	u32 locked = want && weir_set_try_lock(lines, index), moves, reads, sent;
	struct weir_share_take take;
	struct weir_registered registered;
	weir_addr from;

	take.outcome = WEIR_SHARE_RETRY;
	take.way = WEIR_WAYS;
	take.tier = 0;
	take.dirty = 0;
	take.position = ~(u64)0;
	if (locked)
		take = weir_share_take_locked(lines, index, key, buffer);
	from = take.tier ? take.tier : weir_line_data(lines, index, take.way % WEIR_WAYS);
	weir_reconverge();
	moves = take.outcome == WEIR_SHARE_DONE && (take.way != WEIR_WAYS || take.tier);
	reads = take.outcome == WEIR_SHARE_DONE && !moves;
	if (weir_ballot(wave, moves)) {
		weir_order_loads();
		weir_wave_sync(wave); /* what each lane acquired with its line is all lanes' */
		weir_wave_copy(wave, buffer, from, moves ? weir_extent_bytes(lines, extent, line) : 0);
		weir_wave_sync(wave); /* every lane's part before share.T0 and tier.Y3 */
	}
	if (take.tier)
		weir_tier_consumed(lines, take.tier);
	if (moves)
		weir_share_publish(share, take.position, key, WEIR_LINE_BIT_READY | take.dirty);
	weir_reconverge();
	request.buffer = buffer;
	request.target = reads ? WEIR_ADDR(weir_share_word(share, take.position)) : 0;
	request.status = reads ? WEIR_ADDR(&weir_share_slot(share, take.position)->status) : 0;
	sent = weir_disk_try_submit(wave, reads, weir_extent_disk(extent, line), request);
	if (reads && sent) {
		weir_share_publish(share, take.position, key, 0);
	} else if (reads) {
		weir_share_forget(share, take.position);
		take.outcome = WEIR_SHARE_RETRY;
	}
	if (locked)
		weir_set_unlock(lines, index);
	weir_reconverge();
	registered.outcome = take.outcome;
	registered.position = take.position;
	return registered;
}

/* A claim that comes to nothing: nobody else may change the word. */
WEIR_FN void weir_line_unreserve(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_line_word(lines, index, way);

	/* relaxed: its own claim */
	weir_store_u64_release_dev(word, (weir_load_u64_relaxed_dev(word) & WEIR_LINE_VERSIONS) |
						 WEIR_LINE_INVALID);
}

/**
 * weir_share_try_propagate() - move a changed buffer, whose last holder this lane is, to the cache
 * @wave: lanes calling together
 * @want: this lane has one
 * @lines: the cache
 * @extent: whose line
 * @line: line of @extent
 * @position: of the entry
 * @writing: as of weir_set_try_reserve(), without WEIR_RESERVE_WHOLE
 *
 * One iteration: nothing, or the line is in the cache, dirty, and the entry is gone. Where every line
 * of the set is dirty, it begins the write-back of one; the next iterations will find it clean.
 *
 * Return: WEIR_E_LOCKED: look again (another lane may have joined); WEIR_OK: done; else why the
 * set's lines cannot be written.
 */
WEIR_FN weir_status weir_share_try_propagate(u64 wave, u32 want, WEIR_GLOBAL struct weir_lines *lines,
					     WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 position,
					     u32 writing)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	u64 key = extent->key_base + line, index = weir_lines_index(lines, key);
	/* a lane that has none may have no table, either: it looks at a word that is there */
	WEIR_GLOBAL weir_shared_u64 *entry =
		want ? weir_share_word(share, position) : weir_line_word(lines, index, 0);
	u32 locked = want && weir_set_try_lock(lines, index), mine;
	/* share.T1: pairs with share.T3: what those that left had changed */
	u64 seen = weir_load_u64_acquire_dev(entry);
	struct weir_reservation reservation = weir_reservation_none();
	weir_status status = WEIR_E_LOCKED;

	if (locked && weir_share_refs(seen) == 1)
		reservation = weir_set_reserve_locked(lines, index, weir_lines_policy(lines, index), key,
						      writing | WEIR_RESERVE_WHOLE);
	weir_reconverge();
	weir_tier_move(wave, lines, index, reservation.way, reservation.down, reservation.up);
	mine = reservation.way != WEIR_WAYS;
	/* as if it were being filled: who joins now waits until it is known whether the buffer stays */
	if (mine && weir_cas_u64_acquire_dev(entry, seen, seen - 1) != seen) {
		weir_line_unreserve(lines, index, reservation.way);
		mine = 0;
	}
	weir_reconverge();
	if (weir_ballot(wave, mine)) {
		weir_fence_to_lanes(); /* line.L3: the word of the line turns before any byte of it does */
		weir_wave_sync(wave);
		weir_wave_move(wave, weir_line_data(lines, index, reservation.way % WEIR_WAYS),
			       mine ? weir_load_u64_relaxed_dev(&weir_share_slot(share, position)->buffer)
				    : 0,
			       mine ? weir_extent_bytes(lines, extent, line) : 0);
		weir_wave_sync(wave); /* every lane's part before the mark (line.L0) */
	}
	/* share.T3: the buffer was read before it is its owner's again */
	if (mine && weir_cas_u64_acq_rel_dev(entry, seen - 1, seen & WEIR_SHARE_VERSIONS) == seen - 1) {
		weir_line_modified(weir_line_word(lines, index, reservation.way), reservation.word);
		weir_add_u64_relaxed_dev(&share->propagated, 1);
		status = WEIR_OK;
	} else if (mine) {
		weir_line_unreserve(lines, index, reservation.way);
		(void)weir_or_u64_acq_rel_dev(entry,
					      WEIR_LINE_BIT_READY); /* somebody joined: it stays as it was */
	} else if (reservation.unwritable != WEIR_OK) {
		weir_line_blame(lines, weir_line_key(reservation.word), reservation.unwritable);
		status = reservation.unwritable;
	}
	if (locked)
		weir_set_unlock(lines, index);
	weir_reconverge();
	weir_lines_write_back(wave, lines, index, reservation.writing);
	return status;
}

/* Is a wait at its end? WEIR_E_LOCKED: not yet. */
WEIR_FN weir_status weir_share_over(WEIR_GLOBAL struct weir_disk *disk, u64 deadline, u32 iteration)
{
	weir_status dead = weir_disk_dead(disk);

	if (dead != WEIR_OK)
		return dead;
	return weir_expired(deadline, iteration) ? WEIR_E_TIMEOUT : WEIR_E_LOCKED;
}

/**
 * weir_share_leave() - give up a reference; whoever is last takes a changed buffer to the cache
 * @wave: lanes calling together
 * @held: this lane has one
 * @lines: the cache
 * @extent: whose line
 * @line: line of @extent
 * @position: of the entry
 *
 * Return: WEIR_OK; else the changed buffer could not be propagated, and this lane holds it still.
 */
WEIR_FN weir_status weir_share_leave(u64 wave, u32 held, WEIR_GLOBAL struct weir_lines *lines,
				     WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 position)
{
	u64 key = extent->key_base + line, index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0);
	weir_status status = WEIR_OK, moved;

	WEIR_WAIT_LOOP(wave, held, iteration) {
		u32 left = WEIR_LEAVE_RETRY,
		    late = iteration % WEIR_WRITING_ITERATIONS == WEIR_WRITING_ITERATIONS - 1;
		WEIR_GLOBAL struct weir_disk *helped = disk;

		if (held)
			left = weir_share_try_leave(weir_lines_share(lines), position);
		weir_reconverge();
		moved = weir_share_try_propagate(wave, left == WEIR_LEAVE_CHANGED, lines, extent, line,
						 position, 1 | late << 1);
		if (left == WEIR_LEAVE_LEFT || left == WEIR_LEAVE_LAST)
			moved = WEIR_OK;
		/* a dead storage is no reason to stay that another lane came first */
		if (held && moved == WEIR_E_LOCKED &&
		    (left != WEIR_LEAVE_RETRY || weir_expired(deadline, iteration)))
			moved = weir_share_over(disk, deadline, iteration);
		if (left == WEIR_LEAVE_CHANGED && moved == WEIR_E_LOCKED && late) {
			weir_status lost = weir_set_lost(lines, index, key);

			moved = lost != WEIR_OK ? lost : moved;
		}
		status = held && moved != WEIR_E_LOCKED ? moved : status;
		held = held && moved == WEIR_E_LOCKED;
		/* its buffer may still be being filled, or wait for room in its set */
		if (weir_popcount(iteration) & 1)
			helped = weir_set_disk(lines, index, iteration, disk);
		weir_wait_help(wave, held, helped, iteration, iteration);
	}
	return status;
}

#endif
