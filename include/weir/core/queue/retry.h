/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/retry.h: commands that are submitted again because the controller says so.
 *
 * Owns: how often, and from when on. Whoever waits for a command decides when it sees how it
 * ended, from its own wait, which goes on as before: nobody sleeps, every iteration helps
 * others, and nothing but what the command itself had is kept meanwhile. The reaper of the completion
 * decides nothing: of a command that failed it notes what it was (core/queue/cq.h). One that succeeds costs
 * nothing.
 *
 * Base 2.0, sections 3.3.3.2.1 (CRD, DNR) and 5.17.2.1 (CRDT1 to CRDT3).
 */
#ifndef WEIR_CORE_RETRY_H
#define WEIR_CORE_RETRY_H

#include <weir/abi.h>

/*
 * How far a lane is with a command, in one word, so that a wait keeps it in a register or less: bit 0 is
 * always set; 7:1 how often it was submitted again; 31:8 when that may be done next, in ticks of 2^24 ns
 * modulo 2^24 (78 hours), or 0: now.
 */
enum {
	WEIR_RETRY_ONE = 2,
	WEIR_RETRY_COUNTS = 0xff,
	WEIR_RETRY_AT_SHIFT = 8,
	WEIR_RETRY_TICK_LOG2 = 24,
	WEIR_RETRY_TICKS = 0xffffff
};

/** weir_retry_now() - @state, from weir_retry(), says: submit it now */
WEIR_FN u32 weir_retry_now(u32 state)
{
	return state != 0 && (state >> WEIR_RETRY_AT_SHIFT) == 0;
}

/* How long the controller wants to be left alone after @status. @terms: as struct weir_disk.retry. */
WEIR_FN u64 weir_retry_delay_ns(u64 terms, weir_status status)
{
	u32 which = (status >> NVME_STATUS_CRD_SHIFT) & NVME_STATUS_CRD_MASK;

	return which ? ((terms >> (16 * which)) & 0xffff) * NVME_CRDT_NS : 0;
}

/* The tick at or behind clock value @ns, never 0. */
WEIR_FN u32 weir_retry_tick(u64 ns)
{
	u32 tick = (u32)(ns >> WEIR_RETRY_TICK_LOG2) + 1;

	return tick & WEIR_RETRY_TICKS ? tick & WEIR_RETRY_TICKS : 1;
}

/**
 * weir_retry_by() - shall a command be submitted again that may be carried out twice?
 * @terms: struct weir_disk.retry of its storage
 * @status: how it ended
 * @state: what this call gave last; at first 0, or 1
 * @deadline: of the wait: clock value
 *
 * Called when a command has ended, and then, while the answer is neither 0 nor weir_retry_now(), in every
 * iteration of the wait. What would have to wait past the deadline is not tried.
 *
 * Return: 0: no, @status is the outcome; else the new state.
 */
WEIR_COLD u32 weir_retry_by(u64 terms, weir_status status, u32 state, u64 deadline)
{
	u64 now = weir_clock_ns(), delay;
	u32 at = state >> WEIR_RETRY_AT_SHIFT;

	if (at != 0)
		return (((u32)(now >> WEIR_RETRY_TICK_LOG2) - at) & WEIR_RETRY_TICKS) <= WEIR_RETRY_TICKS / 2
			       ? state & WEIR_RETRY_COUNTS
			       : state;
	if (!weir_status_retryable(status) ||
	    (state & WEIR_RETRY_COUNTS) / WEIR_RETRY_ONE >= (terms & WEIR_RETRIES_MASK))
		return 0;
	delay = weir_retry_delay_ns(terms, status);
	if (now > deadline || (delay != 0 && deadline - now < delay + ((u64)2 << WEIR_RETRY_TICK_LOG2)))
		return 0;
	state = (state | 1) + WEIR_RETRY_ONE;
	return delay ? state | (weir_retry_tick(now + delay) << WEIR_RETRY_AT_SHIFT) : state;
}

/** weir_retry() - weir_retry_by() the terms of @disk */
WEIR_FN u32 weir_retry(WEIR_GLOBAL struct weir_disk *disk, weir_status status, u32 state, u64 deadline)
{
	return weir_retry_by(disk->retry, status, state, deadline);
}

/** weir_retry_count() - a command of @disk is submitted again: for weir_stats() */
WEIR_FN void weir_retry_count(WEIR_GLOBAL struct weir_disk *disk)
{
	/* relaxed: the host reads a snapshot */
	(void)weir_add_u64_relaxed_dev(
		&weir_at(disk->queues, struct weir_queue, (u32)weir_wave() % disk->queue_count)->retried, 1);
}

#endif
