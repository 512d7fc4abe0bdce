/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/flush.h: writing lines back because somebody asks for it, and dropping them.
 *
 * Owns: the walk over the lines of a range of keys, and what a flush of one line is: when it
 * has ended, storage holds whatever was written to the line before it began, or an error was
 * told. What is written meanwhile may or may not be there.
 *
 * A line is followed from a look to the next; nothing is held in between. One that somebody
 * else is writing back is waited for; if it was written to again since, it is written back again.
 */
#ifndef WEIR_CORE_FLUSH_H
#define WEIR_CORE_FLUSH_H

#include <weir/core/cache/access.h>

/* Places of a range that a lane looks at before the wave meets again. */
enum { WEIR_SWEEP_POLLS = 64 };

/* What a sweep does with lines. */
enum {
	WEIR_SWEEP_FLUSH, /* write back what is dirty */
	WEIR_SWEEP_DRAIN, /* that, and wait for lines that are being filled */
	WEIR_SWEEP_DROP,  /* forget them, written back or not; where there is a tier, by weir_lines_drop() */
};

/**
 * struct weir_sweep - a range of keys that some lanes sweep together, each its share
 * @first_key: first
 * @end_key: first behind it
 * @first: this lane's first place, counted from 0 on
 * @stride: lanes that share the range
 * @kind: WEIR_SWEEP_...
 * @flags: of the commands' cdw12, such as NVME_RW_FUA
 * @note: struct weir_sweep_note, or 0
 */
struct weir_sweep {
	u64 first_key;
	u64 end_key;
	u64 first;
	u64 stride;
	u32 kind;
	u32 flags;
	weir_addr note;
};

/**
 * struct weir_swept - how a lane's share ended
 * @status: WEIR_OK, or the first error
 * @key: the line that it was
 */
struct weir_swept {
	weir_status status;
	u64 key;
};

/**
 * struct weir_sweeper - one lane on its way
 * @result: so far
 * @slot: next one to look at
 * @key: line that it is at; 0: none
 * @deadline: for that line
 * @unsent: iterations that the write-back it began has waited for a slot; 0: none
 * @way: of that write-back
 * @again: as of weir_retry(), for the line's write-back
 * @joined: a write-back is under way, or was, that takes with it all that was written before the sweep began
 */
struct weir_sweeper {
	struct weir_swept result;
	u64 slot;
	u64 key;
	u64 deadline;
	u32 unsent;
	u32 way;
	u32 again;
	u32 joined;
};

/* Places of the range: its keys, or if those are more, the lines of the cache. */
WEIR_FN u64 weir_sweep_slots(WEIR_GLOBAL struct weir_lines *lines, struct weir_sweep sweep)
{
	u64 keys = sweep.end_key - sweep.first_key, all = lines->sets * WEIR_WAYS;

	return keys < all ? keys : all;
}

/* Has a sweep anything to do with a line whose word is @word? */
WEIR_FN u32 weir_sweep_minds(struct weir_sweep sweep, u64 word)
{
	if (weir_line_key(word) < sweep.first_key || weir_line_key(word) >= sweep.end_key)
		return 0;
	if (sweep.kind == WEIR_SWEEP_DROP)
		return weir_line_state(word) != WEIR_LINE_INVALID;
	return weir_line_dirty(word) ||
	       (weir_line_under_way(word) && (weir_line_readable(word) || sweep.kind == WEIR_SWEEP_DRAIN));
}

/* The key at @slot if there is something to do, else 0. */
WEIR_FN u64 weir_sweep_poll(WEIR_GLOBAL struct weir_lines *lines, struct weir_sweep sweep, u64 slot)
{
	u64 key = sweep.first_key + slot, word;

	/* relaxed: what this lane wrote it sees; what others write meanwhile is not asked for */
	if (sweep.end_key - sweep.first_key >= lines->sets * WEIR_WAYS)
		word = weir_load_u64_relaxed_dev(weir_line_word(lines, slot / WEIR_WAYS, slot % WEIR_WAYS));
	else
		word = weir_set_find(weir_lines_set(lines, weir_lines_index(lines, key)), key).word;
	return weir_sweep_minds(sweep, word) ? weir_line_key(word) : 0;
}

/* On to the next line with something to do; it gets the storage's time. */
WEIR_FN struct weir_sweeper weir_sweep_next(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
					    struct weir_sweep sweep, u64 slots)
{
	lane.joined = 0;
	lane.again = 0;
	for (u32 i = 0; i < WEIR_SWEEP_POLLS && lane.key == 0 && lane.slot < slots; i++) {
		lane.key = weir_sweep_poll(lines, sweep, lane.slot);
		lane.slot += sweep.stride;
	}
	if (lane.key != 0) {
		WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, lane.key);

		lane.deadline = weir_deadline(weir_extent_disk(extent, lane.key - extent->key_base), 0);
	}
	return lane;
}

/* Tell of a line that could not be written; the first one is the result. */
WEIR_FN struct weir_sweeper weir_sweep_error(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
					     struct weir_sweep sweep, weir_status status)
{
	if (lane.result.status == WEIR_OK) {
		lane.result.status = status;
		lane.result.key = lane.key;
	}
	if (sweep.note) {
		WEIR_GLOBAL struct weir_sweep_note *note = weir_at(sweep.note, struct weir_sweep_note, 0);
		WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, lane.key);
		u64 number = weir_add_u64_relaxed_dev(&note->failed, 1);

		if (number < WEIR_SWEEP_NAMED) {
			note->named[number].disk = weir_extent_disk(extent, lane.key - extent->key_base)->id;
			note->named[number].status = status;
			note->named[number].lba = weir_extent_lba(lines, extent, lane.key - extent->key_base);
		}
	}
	lane.key = 0;
	return lane;
}

/*
 * A write-back that this lane waited for, or found, ended with @status: shall the lane begin one again? As
 * weir_retry(); if weir_retry_now(), nothing keeps the line from being written back any more.
 */
WEIR_COLD u32 weir_sweep_retry(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way, u64 key,
			       weir_status status, u32 state, u64 deadline)
{
	WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, key - extent->key_base);

	state = weir_retry(disk, status, state, deadline);
	if (weir_retry_now(state))
		weir_line_retake(lines, disk, index, way);
	return state;
}

/* A line that a sweep flushes, as it is just now. */
WEIR_FN struct weir_sweeper weir_sweep_flush(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
					     struct weir_sweep sweep, u64 index, struct weir_found found)
{
	weir_status status;

	if (weir_line_under_way(found.word)) {
		lane.joined |= weir_line_state(found.word) == WEIR_LINE_WRITING;
		if (!weir_line_readable(found.word) && sweep.kind != WEIR_SWEEP_DRAIN)
			lane.key = 0;
		return lane;
	}
	if (!weir_line_dirty(found.word)) {
		lane.key = 0;
		return lane;
	}
	/*
	 * How the last write-back ended that has: perhaps one that was begun after the word was seen, but if
	 * the lane waited for one, that one or a later one. writeback.W4: pairs with writeback.W2; relaxed:
	 * the way depends on the word. An error is told once by whoever takes it, and by all who waited.
	 */
	status = weir_load_u32_relaxed_dev(weir_line_status(lines, index, found.way));
	if (weir_status_sticky(status) ||
	    (lane.joined && status != WEIR_OK && status != WEIR_STATUS_UNSENT)) {
		/* line.L4: the status before the second look: it may be of another block, which came since */
		weir_order_loads();
		if (!weir_line_same(weir_load_u64_relaxed_dev(weir_line_word(lines, index, found.way)),
				    found.word))
			return lane;
		lane.again = weir_sweep_retry(lines, index, found.way, lane.key,
					      status & ~WEIR_STATUS_CONSUMED, lane.again, lane.deadline);
		if (lane.again == 0) {
			weir_status taken = weir_line_take_error(lines, index, found.way);

			/* 0: another lane has taken it, and begun once more */
			return weir_sweep_error(lane, lines, sweep,
						taken != WEIR_OK ? taken : status & ~WEIR_STATUS_CONSUMED);
		}
		if (!weir_retry_now(lane.again))
			return lane;
		lane.joined = 0;
	}
	if (lane.joined && status == WEIR_OK) { /* written to again since */
		lane.key = 0;
		return lane;
	}
	for (u32 i = 0; i < WEIR_LINE_TRIES && !lane.unsent; i++) {
		u64 word = weir_load_u64_relaxed_dev(weir_line_word(lines, index, found.way));

		if (weir_line_key(word) != lane.key || weir_line_state(word) != WEIR_LINE_MODIFIED)
			break;
		lane.way = found.way;
		lane.unsent = weir_line_try_write_back(lines, index, found.way, word);
	}
	lane.joined = lane.unsent;
	return lane;
}

/* A line that a sweep drops: not under a command's or a pin's feet. */
WEIR_FN struct weir_sweeper weir_sweep_drop(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
					    u64 index, struct weir_found found)
{
	u64 empty = (found.word & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID;

	/* release: as a claim, after whatever was done with the line */
	if (weir_line_evictable(found.word) &&
	    weir_cas_u64_acq_rel_dev(weir_line_word(lines, index, found.way), found.word, empty) ==
		    found.word)
		lane.key = 0;
	return lane;
}

/* One look at this lane's line. */
WEIR_FN struct weir_sweeper weir_sweep_iteration(struct weir_sweeper lane,
						 WEIR_GLOBAL struct weir_lines *lines,
						 struct weir_sweep sweep, u64 index)
{
	struct weir_found found = weir_set_find(weir_lines_set(lines, index), lane.key);

	if (found.word == 0) /* written back, then replaced */
		lane.key = 0;
	else if (sweep.kind == WEIR_SWEEP_DROP)
		return weir_sweep_drop(lane, lines, index, found);
	else
		return weir_sweep_flush(lane, lines, sweep, index, found);
	return lane;
}

WEIR_FN struct weir_sweeper weir_sweep_send(struct weir_sweeper lane, u64 wave,
					    WEIR_GLOBAL struct weir_lines *lines,
					    WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 index,
					    u32 flags)
{
	struct weir_request request =
		weir_line_request(lines, extent, line, index, lane.way, NVME_OPCODE_WRITE);
	u32 submitted;

	request.flags = flags;
	submitted = weir_disk_try_submit(wave, lane.unsent != 0, weir_extent_disk(extent, line), request);
	if (lane.unsent)
		lane.unsent = submitted ? 0 : lane.unsent + 1;
	if (lane.unsent > WEIR_UNSENT_ITERATIONS) {
		weir_line_take_back(lines, index, lane.way);
		lane.unsent = 0;
		lane.joined = 0;
	}
	return lane;
}

/*
 * Deadline, or a dead storage. One that is late once is not waited for again. Of a line that is not dirty, or
 * not being written back, nothing is lost: it was being read.
 */
WEIR_FN struct weir_sweeper weir_sweep_give_up(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
					       struct weir_sweep sweep, u64 index, weir_status status)
{
	u64 word;

	if (lane.unsent)
		weir_line_take_back(lines, index, lane.way);
	lane.unsent = 0;
	word = weir_set_find(weir_lines_set(lines, index), lane.key).word;
	if (sweep.kind == WEIR_SWEEP_DROP || weir_line_dirty(word) ||
	    (weir_line_readable(word) && weir_line_under_way(word)))
		return weir_sweep_error(lane, lines, sweep, status);
	lane.key = 0;
	return lane;
}

/* A command is on the lane's line, and ends although its storage is dead: whoever helps ends it
 * (core/queue/cq.h). */
WEIR_FN u32 weir_sweep_ends(struct weir_sweeper lane, WEIR_GLOBAL struct weir_lines *lines,
			    WEIR_GLOBAL struct weir_disk *disk, u64 index)
{
	return weir_disk_unsafe(disk) == WEIR_OK &&
	       weir_line_under_way(weir_set_find(weir_lines_set(lines, index), lane.key).word);
}

/* Has somebody waited in vain for the storage @id already? */
WEIR_FN u32 weir_sweep_expired(struct weir_sweep sweep, u32 id)
{
	WEIR_GLOBAL struct weir_sweep_note *note = weir_at(sweep.note, struct weir_sweep_note, 0);

	u32 there = ~(u32)0;

	/* relaxed: a hint that saves time */
	for (u32 i = 0; sweep.note && i < WEIR_SWEEP_LATE && there != 0 && there != id + 1; i++)
		there = weir_load_u32_relaxed_dev(&note->waited[(id + i) % WEIR_SWEEP_LATE]);
	return there == id + 1;
}

WEIR_FN void weir_sweep_was_expired(struct weir_sweep sweep, u32 id)
{
	WEIR_GLOBAL struct weir_sweep_note *note = weir_at(sweep.note, struct weir_sweep_note, 0);
	u32 there = ~(u32)0;

	if (!sweep.note)
		return;
	weir_store_u64_relaxed_dev(&note->late, 1);
	for (u32 i = 0; i < WEIR_SWEEP_LATE && there != 0 && there != id + 1; i++)
		there = weir_cas_u32_relaxed_dev(&note->waited[(id + i) % WEIR_SWEEP_LATE], 0, id + 1);
}

WEIR_FN struct weir_sweeper weir_sweep_begin(struct weir_sweep sweep)
{
	struct weir_sweeper lane;

	lane.result.status = WEIR_OK;
	lane.result.key = 0;
	lane.slot = sweep.first;
	lane.key = 0;
	lane.deadline = 0;
	lane.unsent = 0;
	lane.way = 0;
	lane.again = 0;
	lane.joined = 0;
	return lane;
}

/* One word of a set whose lock is held. Return: its key if it is one of the range and cannot be dropped just
 * now, else 0. */
WEIR_FN u64 weir_word_try_drop(WEIR_GLOBAL weir_shared_u64 *word, struct weir_sweep sweep)
{
	u64 seen = weir_load_u64_relaxed_dev(word),
	    key = weir_line_key(seen); /* relaxed: the exchange decides */

	if (key < sweep.first_key || key >= sweep.end_key)
		return 0;
	/* release: as a claim, after whatever was done with the line */
	if (weir_line_evictable(seen) &&
	    weir_cas_u64_acq_rel_dev(word, seen, seen & WEIR_LINE_VERSIONS) == seen)
		return 0;
	return key;
}

/*
 * Forget the lines of the range that set @index has, and its tier: with its lock held, none of them goes from
 * one to the other.
 *
 * Return: 0: none is left; else one that is, or if the lock was not free the range's first.
 */
WEIR_FN u64 weir_set_try_drop(WEIR_GLOBAL struct weir_lines *lines, struct weir_sweep sweep, u64 index)
{
	WEIR_GLOBAL struct weir_set_policy *policy = weir_lines_policy(lines, index);
	WEIR_GLOBAL struct weir_tier *tier = weir_lines_tier(lines);
	u64 left = sweep.first_key, stays;

	/* policy.P0: pairs with policy.P1 of the previous holder */
	if (weir_cas_u32_acquire_dev(&policy->lock, 0, 1) == 0) {
		u64 first = weir_tier_first(lines, index) * WEIR_WAYS,
		    end = first + weir_tier_count(lines, index) * WEIR_WAYS;

		left = 0;
		for (u32 way = 0; way < WEIR_WAYS; way++) {
			stays = weir_word_try_drop(weir_line_word(lines, index, way), sweep);
			left = stays ? stays : left;
		}
		for (u64 slot = first; slot < end; slot++) {
			stays = weir_word_try_drop(weir_tier_word(tier, slot), sweep);
			left = stays ? stays : left;
		}
		weir_store_u32_release_dev(&policy->lock, 0); /* policy.P1 */
	}
	weir_reconverge();
	return left;
}

/**
 * weir_lines_drop() - WEIR_SWEEP_DROP for a cache with a tier
 * @wave: lanes calling together
 * @lines: the cache
 * @sweep: this lane's share, of the range's sets rather than its lines
 *
 * Return: this lane's first error: WEIR_E_TIMEOUT: a line was being read or written for longer than its
 * storage's time.
 */
WEIR_FN struct weir_swept weir_lines_drop(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					  struct weir_sweep sweep)
{
	u64 keys = sweep.end_key - sweep.first_key, slots = keys < lines->sets ? keys : lines->sets;
	struct weir_sweeper lane = weir_sweep_begin(sweep);
	u32 vain = 0; /* iterations since any lane went on to another line */

	WEIR_WAIT_LOOP(wave, lane.slot < slots, iteration) {
		u64 key = sweep.first_key;
		WEIR_GLOBAL struct weir_extent *extent;
		WEIR_GLOBAL struct weir_disk *disk;

		if (lane.slot < slots)
			key = weir_set_try_drop(lines, sweep,
						keys < lines->sets
							? weir_lines_index(lines, sweep.first_key + lane.slot)
							: lane.slot);
		weir_reconverge();
		lane.key = lane.slot < slots ? key : 0;
		extent = weir_extent_of(lines, key ? key : sweep.first_key);
		disk = weir_extent_disk(extent, (key ? key : sweep.first_key) - extent->key_base);
		if (lane.key && !lane.deadline)
			lane.deadline = weir_deadline(disk, 0);
		if (lane.key &&
		    (weir_sweep_expired(sweep, disk->id) || weir_expired(lane.deadline, iteration))) {
			weir_sweep_was_expired(sweep, disk->id);
			lane = weir_sweep_error(lane, lines, sweep, WEIR_E_TIMEOUT);
		}
		if (!lane.key) {
			lane.slot += sweep.stride;
			lane.deadline = 0;
		}
		weir_reconverge();
		vain = weir_ballot(wave, lane.key == 0 && lane.slot < slots) ? 0 : vain + 1;
		weir_wait_help(wave, lane.key != 0, disk, iteration, vain);
	}
	return lane.result;
}

/**
 * weir_lines_sweep() - flush or drop the lines of a range
 * @wave: lanes calling together
 * @lines: the cache
 * @sweep: this lane's share
 *
 * A flat wait loop in which each lane goes from line to line by itself. An error does not end
 * it: all that can be written is.
 *
 * Return: this lane's first error. WEIR_E_TIMEOUT: a write-back did not end within the storage's time.
 */
WEIR_FN struct weir_swept weir_lines_sweep(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					   struct weir_sweep sweep)
{
	u64 slots = weir_sweep_slots(lines, sweep);
	struct weir_sweeper lane = weir_sweep_begin(sweep);
	u32 vain = 0; /* iterations since any lane went on to another line */

	WEIR_WAIT_LOOP(wave, lane.key != 0 || lane.slot < slots, iteration) {
		WEIR_GLOBAL struct weir_extent *extent;
		WEIR_GLOBAL struct weir_disk *disk;
		weir_status dead;
		u64 key, line, index;
		u32 over;

		if (lane.key == 0)
			lane = weir_sweep_next(lane, lines, sweep, slots);
		/* Lanes without a line look like the first key's, and do nothing with it. */
		key = lane.key ? lane.key : sweep.first_key;
		extent = weir_extent_of(lines, key);
		line = key - extent->key_base;
		index = weir_lines_index(lines, key);
		disk = weir_extent_disk(extent, line);
		dead = sweep.kind == WEIR_SWEEP_DROP ? (u32)WEIR_OK : weir_disk_dead(disk);
		over = lane.key && dead != WEIR_OK && !weir_sweep_ends(lane, lines, disk, index);
		if (lane.key && !lane.unsent && !lane.joined && weir_sweep_expired(sweep, disk->id))
			lane = weir_sweep_give_up(lane, lines, sweep, index,
						  dead != WEIR_OK ? dead : (u32)WEIR_E_TIMEOUT);
		else if (lane.key && !lane.unsent && !over)
			lane = weir_sweep_iteration(lane, lines, sweep, index);
		if (weir_ballot(wave, lane.unsent))
			lane = weir_sweep_send(lane, wave, lines, extent, line, index, sweep.flags);
		if (over && lane.key == key) {
			weir_sweep_was_expired(sweep, disk->id);
			lane = weir_sweep_give_up(lane, lines, sweep, index, dead);
		} else if (lane.key == key && weir_expired(lane.deadline, iteration)) {
			weir_sweep_was_expired(sweep, disk->id);
			lane = weir_sweep_give_up(lane, lines, sweep, index, WEIR_E_TIMEOUT);
		}
		vain = weir_ballot(wave, lane.key == 0 && lane.slot < slots) ? 0 : vain + 1;
		weir_wait_help(wave, lane.key != 0, disk, iteration, vain);
	}
	return lane.result;
}

#endif
