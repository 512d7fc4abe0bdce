/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/event.h: telling an issuer how its command ended.
 *
 * Owns: the encoding of weir_event and the continuation of a completion. Touches
 * neither rings nor slots.
 */
#ifndef WEIR_CORE_EVENT_H
#define WEIR_CORE_EVENT_H

#include <weir/abi.h>

/* An event's word while its request is under way. */
#ifdef WEIR_DEBUG
#define WEIR_EVENT_STARTED WEIR_EVENT_PENDING
#else
#define WEIR_EVENT_STARTED ((u64)0)
#endif

/** weir_event_reset() - make @event pending; before the command is submitted */
WEIR_FN void weir_event_reset(WEIR_GLOBAL struct weir_event *event)
{
	/* relaxed: the slot's release (sq.S1 in core/queue/sq.h) publishes it with the command */
	weir_store_u64_relaxed_dev(&event->word, 0);
}

#ifdef WEIR_DEBUG
/**
 * weir_event_start() - weir_event_reset(), refused for an event whose command is still under way
 *
 * In lanes built with WEIR_DEBUG a pending event is marked, and of two lanes that start one
 * only the first may; without it this is weir_event_reset(), and nothing is looked at.
 *
 * Return: WEIR_OK, or WEIR_E_EVENT and the event stays as it was.
 */
WEIR_FN weir_status weir_event_start(WEIR_GLOBAL struct weir_event *event)
{
	/* relaxed: as above; who is first is the compare-and-swap's matter */
	u64 word = weir_load_u64_relaxed_dev(&event->word);

	if ((word & (WEIR_EVENT_PENDING | WEIR_EVENT_DONE)) == WEIR_EVENT_PENDING ||
	    weir_cas_u64_relaxed_dev(&event->word, word, WEIR_EVENT_PENDING) != word)
		return WEIR_E_EVENT;
	return WEIR_OK;
}
#else
WEIR_FN weir_status weir_event_start(WEIR_GLOBAL struct weir_event *event)
{
	weir_event_reset(event);
	return WEIR_OK;
}
#endif

/* How the request of an event ended whose word has WEIR_EVENT_RETRY. */
WEIR_FN weir_status weir_event_retry_status(u64 word)
{
	u32 code = weir_status_retry_code((u32)(word >> WEIR_EVENT_KIND_SHIFT) & 0xf);
	u32 delay = ((u32)(word >> WEIR_EVENT_CRD_SHIFT) & NVME_STATUS_CRD_MASK) << NVME_STATUS_CRD_SHIFT;

	return (u32)WEIR_STATUS_NVME | (u32)WEIR_GROUP_REQUEST | delay | code;
}

/* A completed event's word, or what it says with WEIR_EVENT_RETRY. */
WEIR_FN u64 weir_event_plain(u64 word)
{
	return word & WEIR_EVENT_RETRY
		       ? (word & (WEIR_EVENT_DONE | WEIR_EVENT_CONSUMED)) | weir_event_retry_status(word)
		       : word;
}

/* weir_event_test(), for those who can submit a request again. */
WEIR_FN u64 weir_event_peek(WEIR_GLOBAL struct weir_event *event)
{
	/* event.E1: pairs with event.E0 in weir_complete() */
	u64 word = weir_poll_u64_dev(&event->word, WEIR_EVENT_DONE);

	return word & WEIR_EVENT_DONE ? word : 0;
}

/**
 * weir_event_test() - look at an event without waiting
 *
 * Acquire: what the command wrote is visible to this lane once it returns non-zero.
 *
 * Return: 0 while pending, else the event's word (weir_event_status() reads it).
 */
WEIR_FN u64 weir_event_test(WEIR_GLOBAL struct weir_event *event)
{
	return weir_event_plain(weir_event_peek(event));
}

/** weir_event_status() - the status in a completed event's word */
WEIR_FN weir_status weir_event_status(u64 word)
{
	return (weir_status)word;
}

/** weir_event_path() - the WEIR_PATH_ in a completed event's word */
WEIR_FN u32 weir_event_path(u64 word)
{
	return (u32)(word >> 32) & 0xff;
}

/**
 * weir_event_refuse() - complete an event whose request was not submitted
 * @event: the event, started by this lane
 * @status: why
 *
 * Every wait then returns at once, with @status, as it does for a request that the controller has ended.
 */
WEIR_FN void weir_event_refuse(WEIR_GLOBAL struct weir_event *event, weir_status status)
{
	/* relaxed: no data came, and the word says all there is to know */
	weir_store_u64_relaxed_dev(&event->word, WEIR_EVENT_DONE | status);
}

/**
 * weir_event_finish() - complete an event whose request the issuer has carried out itself
 * @event: the event
 * @path: WEIR_PATH_...
 *
 * What this lane did, and lanes it met in weir_wave_sync(), is visible to whoever finds it done.
 */
WEIR_FN void weir_event_finish(WEIR_GLOBAL struct weir_event *event, u32 path)
{
	/* event.E0: pairs with event.E1 */
	weir_store_u64_release_dev(&event->word, WEIR_EVENT_DONE | ((u64)path << 32));
}

/*
 * A completed line: one bit turns BUSY into READY or FAILED and leaves pins alone.
 * The status is stored first, so whoever sees FAILED reads the right one.
 */
WEIR_FN void weir_line_complete(weir_addr word, weir_addr status_word, weir_status status)
{
	/* line.L0: pairs with line.L1 (core/cache/fetch.h): data and status before the state */
	if (status == WEIR_OK) {
		(void)weir_or_u64_fenced_dev(weir_at(word, weir_shared_u64, 0), (u64)WEIR_LINE_BIT_READY);
	} else {
		weir_store_u32_relaxed_dev(weir_at(status_word, weir_shared_u32, 0), status);
		(void)weir_or_u64_acq_rel_dev(weir_at(word, weir_shared_u64, 0), (u64)WEIR_LINE_BIT_FAILED);
	}
}

/**
 * weir_line_outcome() - how the write-back of a line ended goes into its status word
 * @kind: WEIR_TARGET_..., of which only WEIR_TARGET_WRITTEN is meant
 * @status_word: the slot's status address
 * @status: how it ended, 0 included: until the next one ends, the word tells of this one
 *
 * Before weir_fence_to_lanes(), and that before weir_complete().
 */
WEIR_FN void weir_line_outcome(u32 kind, weir_addr status_word, weir_status status)
{
	if (kind == WEIR_TARGET_WRITTEN)
		weir_store_u32_relaxed_dev(weir_at(status_word, weir_shared_u32, 0), status);
}

/*
 * A line whose write-back ended: it is clean unless it was written to again (WRITING to READY,
 * REWRITTEN to MODIFIED), or, after an error, dirty in any case. Pins stay.
 */
WEIR_FN void weir_line_written(weir_addr word, weir_status status)
{
	u64 gone = status == WEIR_OK ? (u64)WEIR_LINE_BIT_WRITING
				     : (u64)(WEIR_LINE_BIT_WRITING | WEIR_LINE_BIT_CLEAN);

	/* line.L0: pairs with line.L3: the controller has read the line before another command fills it */
	/* writeback.W2: pairs with writeback.W3 (core/cache/writeback.h) and writeback.W4
	 * (core/cache/flush.h): the outcome before the state */
	(void)weir_and_u64_fenced_dev(weir_at(word, weir_shared_u64, 0), ~gone);
}

/** weir_event_word() - the word of an event whose request ended with @status, by @path */
WEIR_FN u64 weir_event_word(weir_status status, u32 path)
{
	return WEIR_EVENT_DONE | ((u64)path << 32) | status;
}

/**
 * weir_complete() - hand a completion to who asked for it
 * @kind: WEIR_TARGET_...
 * @target: the slot's target
 * @status_word: the slot's status address
 * @status: how the command ended
 * @path: WEIR_PATH_... of the queue
 *
 * Any lane; bounded; behind weir_fence_to_lanes(), which publishes data and outcome; the slot
 * must not be freed before the arguments were read.
 */
WEIR_FN void weir_complete(u32 kind, weir_addr target, weir_addr status_word, weir_status status, u32 path)
{
	u64 word = weir_event_word(status, path);

	if (kind == WEIR_TARGET_EVENT)
		/* event.E0: pairs with event.E1: the data before the event */
		weir_store_u64_fenced_dev(&weir_at(target, struct weir_event, 0)->word, word);
	else if (kind == WEIR_TARGET_LINE)
		weir_line_complete(target, status_word, status);
	else if (kind == WEIR_TARGET_WRITTEN)
		weir_line_written(target, status);
}

#endif
