/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/alone.h: a queue pair that one lane drives by itself.
 *
 * Owns: nothing. A lane that is a wave of its own, and meets nobody at the queue, submits and reaps here in
 * straight lines. The same words change as in core/queue/sq.h and core/queue/cq.h, under the same roles, in
 * the same order and with the same edges; but what a step needs is loaded side by side instead of one load
 * behind the other, one fence does for a slot and for its doorbell, and no slot and no entry is looked at
 * for others. Where others are met, all is left to those files.
 *
 * One lane calls; no function here has collectives, so a port may have them called rather than inlined.
 */
#ifndef WEIR_CORE_ALONE_H
#define WEIR_CORE_ALONE_H

#include <weir/core/queue/cq.h>
#include <weir/core/queue/sq.h>

/* What a lane came to that tried alone. */
enum {
	WEIR_ALONE_NOTHING = 0,   /* nothing was done: there is nothing, or it is not for one lane */
	WEIR_ALONE_DONE = 1,      /* submitted and announced; reaped */
	WEIR_ALONE_FILLED = 2,    /* a slot was filled, and is to be announced: weir_sq_commit() */
	WEIR_ALONE_COMBINING = 3, /* likewise, and this lane has the combiner's role: weir_sq_combine() */
	WEIR_ALONE_OTHERS = 4,    /* there is something that weir_cq_reap() is to look after */
};

/* How often a wave of one lane tries to reap before it waits as any other does. */
enum { WEIR_ALONE_TRIES = 32 };

/**
 * struct weir_alone - what a lane came to, as it is in registers
 * @found: WEIR_ALONE_...
 * @word: weir_alone_submit(): the command's ticket; weir_alone_reap(): address of the event whose command has
 * ended, 0 of anything else
 */
struct weir_alone {
	u32 found;
	u64 word;
};

WEIR_FN struct weir_alone weir_alone_found(u32 found, u64 word)
{
	struct weir_alone alone;

	alone.found = found;
	alone.word = word;
	return alone;
}

/* Tell of @ticket, which this lane has filled, if it finds nobody else. Behind weir_fence_to_lanes(). */
WEIR_FN u32 weir_alone_announce(WEIR_GLOBAL struct weir_queue *queue, u64 ticket)
{
	weir_addr doorbell = queue->sq_doorbell;
	u32 on_device = queue->doorbell_kind == WEIR_DOORBELL_DEVICE, mask = queue->depth - 1;
	u64 committed, tail;

	/* sq.S6: pairs with sq.S7 of the last combiner. sq.S5 is not needed: whoever raises pending from 0
	 * tells nobody but itself of its slot */
	if (weir_cas_u64_acquire_dev(&queue->pending, 0, 1) != 0)
		return WEIR_ALONE_FILLED;
	/* relaxed: the role passes through pending, which orders them */
	committed = weir_load_u64_relaxed_dev(&queue->committed);
	tail = weir_load_u64_relaxed_dev(&queue->tail);
	if (committed != ticket || tail != ticket + 1)
		return WEIR_ALONE_COMBINING;
	weir_store_u64_relaxed_dev(&queue->committed, ticket + 1);
	if (on_device) /* doorbell.D0: the caller's fence; doorbell.D1: sq.S7 */
		weir_store_u32_fenced_dev(weir_at(doorbell, weir_shared_u32, 0), (u32)(ticket + 1) & mask);
	else
		weir_queue_ring(queue, doorbell, ticket, ticket + 1);
	/* sq.S7: pairs with the next combiner's sq.S5 and sq.S6 */
	return weir_add_u64_acq_rel_dev(&queue->pending, ~(u64)0) == 1 ? WEIR_ALONE_DONE
								       : WEIR_ALONE_COMBINING;
}

/**
 * weir_alone_submit() - one lane submits a command, if it meets nobody
 * @queue: the queue
 * @request: already checked; of two pages at most and without a NIC, or nothing is done
 *
 * Return: WEIR_ALONE_NOTHING, _DONE, _FILLED or _COMBINING.
 */
WEIR_COLD struct weir_alone weir_alone_submit(WEIR_GLOBAL struct weir_queue *queue,
					      struct weir_request request)
{
	/* relaxed, like all of these: guesses; the compare-and-swap decides */
	u64 next = weir_load_u64_relaxed_dev(&queue->tail), first = weir_load_u64_relaxed_dev(&queue->first);
	u64 pending = weir_load_u64_relaxed_dev(&queue->pending);
	u32 dead = weir_load_u32_relaxed_sys(&queue->dead);
	u64 bytes = (u64)request.blocks << queue->block_log2;
	WEIR_GLOBAL struct weir_slot *slot = weir_sq_slot(queue, next);
	WEIR_GLOBAL struct nvme_sqe *entry = weir_at(queue->sq, struct nvme_sqe, next & (queue->depth - 1));
	u32 expected = weir_sq_free_sequence(queue, next);
	u32 behind = weir_sq_free_sequence(queue, next + 1);
	u32 room = weir_load_u32_fenced_dev(&slot->sequence) == expected &&
		   weir_load_u32_relaxed_dev(&weir_sq_slot(queue, next + 1)->sequence) == behind;
	struct nvme_sqe sqe;

	if (first != 0 || pending != 0 || dead != 0 || !room || queue->staging != 0 ||
	    queue->doorbell_kind == WEIR_DOORBELL_NIC ||
	    bytes > 2 * NVME_PAGE_BYTES - (request.buffer & (NVME_PAGE_BYTES - 1)))
		return weir_alone_found(WEIR_ALONE_NOTHING, 0);
	sqe = weir_sq_command(queue, next, request);
	/* sq.S3: pairs with sq.S2 in core/queue/cq.h: the old continuation was read before this lap */
	weir_order_loads();
	if (weir_cas_u64_relaxed_dev(&queue->tail, next, next + 1) != next)
		return weir_alone_found(WEIR_ALONE_NOTHING, 0);
	*entry = sqe;
	weir_sq_continue(slot, request);
	weir_fence_to_lanes(); /* one for sq.S1 and for the doorbell of a controller on the device */
	/* sq.S1: pairs with sq.S4 and cq.R2 */
	weir_store_u32_fenced_dev(&slot->sequence, expected + 1);
	return weir_alone_found(weir_alone_announce(queue, next), next);
}

/**
 * weir_alone_reap() - one lane takes the one completion that has come
 * @queue: the queue, which does not pull, and has no NIC
 *
 * Return: WEIR_ALONE_NOTHING, _DONE, or _OTHERS: an error, several completions, a quarter of the ring to tell
 * of.
 */
WEIR_COLD struct weir_alone weir_alone_reap(WEIR_GLOBAL struct weir_queue *queue)
{
	/* relaxed: only a guess; the compare-and-swap decides */
	u64 reap = weir_load_u64_relaxed_dev(&queue->reap), rung = weir_load_u64_relaxed_dev(&queue->rung);
	u64 head = reap >> 1;
	/* what never changes is loaded before the fences, which make a GPU forget it */
	u32 id = queue->id, depth_log2 = queue->depth_log2, path = queue->path;
	u32 on_device = queue->doorbell_kind == WEIR_DOORBELL_DEVICE;
	u32 fresh, next, dw2, dw3, sequence, kind;
	WEIR_GLOBAL struct weir_slot *slot;
	weir_addr target, status_word;

	/* the fence behind the lock is doorbell.C1; relaxed: only whether another one has come */
	dw3 = weir_load_u32_fenced_sys((WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, head)->dw3);
	next = weir_load_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, head + 1)->dw3);
	fresh = weir_cq_fresh(queue, head, dw3);
	slot = weir_at(queue->slots, struct weir_slot, dw3 & (queue->depth - 1));
	if ((reap & 1) || !fresh)
		return weir_alone_found(WEIR_ALONE_NOTHING, 0);
	if (weir_cq_fresh(queue, head + 1, next) || weir_status_from_nvme(dw3) != WEIR_OK ||
	    head + 1 - rung >= (queue->depth + 3) / 4)
		return weir_alone_found(WEIR_ALONE_OTHERS, 0);
	/* cq.R0: pairs with cq.R1 of the previous reaper */
	if (weir_cas_u64_acquire_dev(&queue->reap, reap, reap | 1) != reap)
		return weir_alone_found(WEIR_ALONE_NOTHING, 0);
	if (on_device)
		weir_order_loads(); /* doorbell.C1 */
	else
		weir_fence_from_controller(); /* doorbell.C1 */
	/* relaxed: the fence came between the phase and them. It is cq.R2 as well: the controller answers
	 * what sq.S1 has published */
	sequence = weir_load_u32_relaxed_dev(&slot->sequence);
	dw2 = weir_cq_submitter(queue, head);
	target = slot->target;
	status_word = slot->status;
	kind = slot->target_kind;
	if (!weir_cq_answers(id, depth_log2, dw2, dw3, sequence)) {
		weir_store_u64_release_dev(&queue->reap, reap); /* cq.R1: pairs with cq.R0 */
		return weir_alone_found(WEIR_ALONE_OTHERS, 0);
	}
	weir_line_outcome(kind, status_word, WEIR_OK);
	weir_fence_to_lanes(); /* one for event.E0, line.L0 or writeback.W2, and sq.S2 */
	weir_complete(kind, target, status_word, WEIR_OK, path);
	/* sq.S2: pairs with sq.S3: the continuation is read before the next lap writes it */
	weir_store_u32_fenced_dev(&slot->sequence, sequence + 1);
	(void)weir_add_u64_relaxed_dev(&queue->completed, 1);      /* relaxed: the host reads a snapshot */
	weir_store_u64_release_dev(&queue->reap, (head + 1) << 1); /* cq.R1: pairs with cq.R0 */
	return weir_alone_found(WEIR_ALONE_DONE, kind == WEIR_TARGET_EVENT ? target : 0);
}

#endif
