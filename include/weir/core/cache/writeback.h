/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/writeback.h: dirty lines: how they become so, and clean again.
 *
 * Owns: the transitions among the states of a readable line, and the commands of lines.
 * A writer pins the line, stores its data, and marks the line; a write-back is begun by
 * one exchange and ended by its completion (core/queue/event.h), whoever reaps it. Nobody
 * holds anything meanwhile: the line can be read and written to while it is being written
 * back, and is dirty again if it was. docs/cache.md has the table.
 *
 * A write-back that failed leaves its status with the line. The line stays dirty, and is
 * not written back again until somebody has taken the status (weir_line_take_error()).
 */
#ifndef WEIR_CORE_WRITEBACK_H
#define WEIR_CORE_WRITEBACK_H

#include <weir/core/cache/extent.h>
#include <weir/core/queue/fault.h>
#include <weir/core/cache/tier_part.h>

/* How often a change of a word that others change, too, is tried in one iteration. */
enum { WEIR_LINE_TRIES = 4 };

WEIR_FN WEIR_GLOBAL weir_shared_u64 *weir_line_word(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	return &weir_lines_set(lines, index)->word[way];
}

WEIR_FN WEIR_GLOBAL weir_shared_u32 *weir_line_status(WEIR_GLOBAL struct weir_lines *lines, u64 index,
						      u32 way)
{
	return &weir_lines_policy(lines, index)->status[way];
}

/** weir_line_key() - whose line @word is */
WEIR_FN u64 weir_line_key(u64 word)
{
	return word >> WEIR_LINE_KEY_SHIFT;
}

/** weir_line_dirty() - @word is of a line with data that storage does not have */
WEIR_FN u32 weir_line_dirty(u64 word)
{
	return (word & (WEIR_LINE_BIT_READY | WEIR_LINE_BIT_CLEAN)) == WEIR_LINE_BIT_READY;
}

/** weir_status_sticky() - @status, a line's status word, keeps the line from being written back */
WEIR_FN u32 weir_status_sticky(u32 status)
{
	return status != 0 && (status & WEIR_STATUS_CONSUMED) == 0;
}

/**
 * weir_line_try_pin() - keep the readable line whose word was seen as @seen
 *
 * Return: its word from then on, or 0: look again. Never past 255 pins.
 */
WEIR_FN u64 weir_line_try_pin(WEIR_GLOBAL weir_shared_u64 *word, u64 seen)
{
	u64 pinned = (seen + WEIR_LINE_PIN) | WEIR_LINE_USED;

	if ((seen & WEIR_LINE_PINS) == WEIR_LINE_PINS)
		return 0;
	/* line.L1: pairs with line.L0: what is stored next lands on what the fill brought */
	return weir_cas_u64_acquire_dev(word, seen, pinned) == seen ? pinned : 0;
}

/**
 * weir_line_modified() - a pin of this lane goes, and the line is dirty from here on
 * @word: the line's word
 * @pinned: as it was with the pin, perhaps some time ago
 *
 * After the data was stored, by this lane or by others that it met in weir_wave_sync().
 * One exchange where nobody else changed the word, else two changes that cannot fail. A line
 * that was claimed to be overwritten (BUSY) becomes readable by it.
 */
WEIR_FN void weir_line_modified(WEIR_GLOBAL weir_shared_u64 *word, u64 pinned)
{
	u64 dirty = (pinned - WEIR_LINE_PIN) & ~(u64)WEIR_LINE_BIT_CLEAN;

	if (weir_line_state(pinned) == WEIR_LINE_BUSY) {
		/* line.L0: pairs with line.L1: the data before the state; BUSY minus 1 is MODIFIED */
		(void)weir_add_u64_acq_rel_dev(word,
					       (u64)0 - WEIR_LINE_PIN - WEIR_LINE_BUSY + WEIR_LINE_MODIFIED);
		return;
	}
	/* writeback.W0: pairs with writeback.W1: the data before the mark */
	if (weir_cas_u64_acq_rel_dev(word, pinned, dirty) == pinned)
		return;
	(void)weir_and_u64_acq_rel_dev(word, ~(u64)WEIR_LINE_BIT_CLEAN); /* writeback.W0 */
	(void)weir_add_u64_acq_rel_dev(word, (u64)0 - WEIR_LINE_PIN);
}

WEIR_FN void weir_line_not_writing(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	/* writeback.W2: pairs with writeback.W3: the status word before the line can be written back again */
	(void)weir_and_u64_acq_rel_dev(weir_line_word(lines, index, way),
				       ~(u64)(WEIR_LINE_BIT_WRITING | WEIR_LINE_BIT_CLEAN));
	weir_add_u64_relaxed_dev(&lines->writebacks, ~(u64)0);
}

/**
 * weir_line_take_back() - a write-back that was begun was not submitted: as if it had not been
 *
 * But for whoever has seen it begun, and waits: its outcome is that nothing was written.
 */
WEIR_FN void weir_line_take_back(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	weir_store_u32_relaxed_dev(weir_line_status(lines, index, way), WEIR_STATUS_UNSENT);
	weir_line_not_writing(lines, index, way);
}

/**
 * weir_line_try_write_back() - begin the write-back of a dirty line
 * @lines: the cache
 * @index: its set
 * @way: its way
 * @seen: its word, of a MODIFIED line
 *
 * Return: 1: the lane must submit it (weir_line_request()) or take it back.
 */
WEIR_FN u32 weir_line_try_write_back(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way, u64 seen)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_line_word(lines, index, way);
	u64 writing = seen | WEIR_LINE_BIT_WRITING | WEIR_LINE_BIT_CLEAN;

	/* writeback.W1: pairs with writeback.W0: what marked the line is what the command takes from it */
	if (weir_cas_u64_acquire_dev(word, seen, writing) != seen)
		return 0;
	weir_add_u64_relaxed_dev(&lines->writebacks, 1);
	/* writeback.W3: pairs with writeback.W2, by way of the exchange; relaxed: nobody makes it an error
	 * while this lane owns the write-back */
	if (weir_status_sticky(weir_load_u32_relaxed_dev(weir_line_status(lines, index, way)))) {
		weir_line_not_writing(lines, index, way);
		return 0;
	}
	weir_tier_outdated(lines, index, weir_line_key(seen));
	return 1;
}

/** weir_line_refuse() - a write-back that was begun is not submitted, since its storage is dead: it has
 * failed with @status */
WEIR_FN void weir_line_refuse(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way, weir_status status)
{
	weir_line_outcome(WEIR_TARGET_WRITTEN, WEIR_ADDR(weir_line_status(lines, index, way)), status);
	weir_fence_to_lanes(); /* for writeback.W2 */
	weir_line_written(WEIR_ADDR(weir_line_word(lines, index, way)), status);
}

/**
 * weir_line_take_error() - the error that keeps a line from being written back, if any
 * @lines: the cache
 * @index: its set
 * @way: its way
 *
 * Whoever takes it must tell; the line can be written back again then.
 *
 * Return: the status of the last write-back if that failed, perhaps taken before.
 */
WEIR_FN weir_status weir_line_take_error(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u32 *word = weir_line_status(lines, index, way);
	u32 status = weir_load_u32_relaxed_dev(word); /* relaxed: the exchange decides */

	if (weir_status_sticky(status) &&
	    weir_cas_u32_acq_rel_dev(word, status, status | WEIR_STATUS_CONSUMED) == status)
		weir_add_u64_relaxed_dev(&lines->write_errors, 1);
	return status & ~WEIR_STATUS_CONSUMED;
}

/*
 * The same of a lane that will see to it that the line is written back again, so that there is nothing to
 * tell yet.
 */
WEIR_FN void weir_line_retake(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_disk *disk,
			      u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u32 *word = weir_line_status(lines, index, way);
	u32 status = weir_load_u32_relaxed_dev(word); /* relaxed: the exchange decides */

	if (weir_status_sticky(status) && weir_status_retryable(status) &&
	    weir_cas_u32_acq_rel_dev(word, status, status | WEIR_STATUS_CONSUMED) == status)
		weir_retry_count(disk);
}

/**
 * weir_line_refetch() - a fetch failed, and this lane, who issued it, holds the line: shall it be submitted
 * again?
 * @lines: the cache
 * @disk: the line's storage
 * @index: its set
 * @way: its way
 * @state: as of weir_retry()
 * @deadline: the same
 *
 * Lanes that wait for the line go on waiting as long as the status is worth another try, is not marked as
 * taken, and the line is pinned. The status stays: by it core/volume/place.h knows a second try.
 *
 * Return: as weir_retry(): 0: no, and the status is marked; if weir_retry_now(), the line is BUSY again,
 * and the lane must submit its command, or retract it.
 */
WEIR_COLD u32 weir_line_refetch(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_disk *disk,
				u64 index, u32 way, u32 state, u64 deadline)
{
	WEIR_GLOBAL weir_shared_u32 *word = weir_line_status(lines, index, way);
	weir_status status = weir_load_u32_relaxed_dev(word); /* relaxed: line.L1 came before */

	state = weir_retry(disk, status, state, deadline);
	if (state == 0 && weir_status_retryable(status)) {
		/* relaxed: the pin goes with a release */
		weir_store_u32_relaxed_dev(word, status | WEIR_STATUS_CONSUMED);
	} else if (weir_retry_now(state)) {
		weir_retry_count(disk);
		/* acquire and release: as a claim, between what the last command did and the next */
		(void)weir_and_u64_acq_rel_dev(weir_line_word(lines, index, way), ~(u64)WEIR_LINE_BIT_FAILED);
	}
	return state;
}

/**
 * weir_line_rewrite() - every line that could make room is dirty and cannot be written: shall one of them be,
 * again?
 * @lines: the cache
 * @index: the set
 * @key: whose line it is
 * @status: how its last write-back ended
 * @state: as of weir_retry()
 * @deadline: the same
 *
 * Return: as weir_retry(); if weir_retry_now(), the line can be written back again, by anybody.
 */
WEIR_COLD u32 weir_line_rewrite(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key, weir_status status,
				u32 state, u64 deadline)
{
	WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, key - extent->key_base);
	struct weir_found found = weir_set_find(weir_lines_set(lines, index), key);

	state = weir_retry(disk, status, state, deadline);
	if (weir_retry_now(state) && found.way != WEIR_WAYS)
		weir_line_retake(lines, disk, index, found.way);
	return state;
}

/**
 * weir_line_request() - the command that fills line (@index, @way), or writes it back
 * @lines: the cache
 * @extent: whose line it is
 * @line: which line of @extent
 * @index: set
 * @way: way
 * @opcode: NVME_OPCODE_READ or NVME_OPCODE_WRITE
 */
WEIR_FN struct weir_request weir_line_request(WEIR_GLOBAL struct weir_lines *lines,
					      WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 index,
					      u32 way, u32 opcode)
{
	struct weir_request request;

	request.opcode = opcode;
	request.flags = 0;
	request.target_kind = opcode == NVME_OPCODE_READ ? (u32)WEIR_TARGET_LINE : (u32)WEIR_TARGET_WRITTEN;
	request.lba = weir_extent_lba(lines, extent, line);
	request.blocks = weir_extent_blocks(lines, extent, line);
	request.buffer = weir_line_data(lines, index, way % WEIR_WAYS);
	request.target = WEIR_ADDR(weir_line_word(lines, index, way % WEIR_WAYS));
	request.status = WEIR_ADDR(weir_line_status(lines, index, way % WEIR_WAYS));
	return request;
}

/** weir_line_blame() - tell the context that the line of @key could not be written */
WEIR_FN void weir_line_blame(WEIR_GLOBAL struct weir_lines *lines, u64 key, weir_status status)
{
	WEIR_GLOBAL struct weir_extent *extent = weir_extent_of(lines, key);
	u64 line = key - extent->key_base;
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);

	weir_fault_report(lines->fault, status, disk->id, WEIR_FAULT_WRITE,
			  weir_extent_lba(lines, extent, line), disk->blocks);
}

#endif
