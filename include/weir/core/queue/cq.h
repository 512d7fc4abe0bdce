/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/cq.h: taking completions out of a completion ring.
 *
 * Owns: the CQ head, phases, slots from filled to free, the CQ doorbell. Any wave
 * may reap for everybody; the ring's lock is tried, never waited for, and never
 * kept beyond one call.
 */
#ifndef WEIR_CORE_CQ_H
#define WEIR_CORE_CQ_H

#include <weir/core/queue/copy.h>
#include <weir/core/queue/event.h>
#include <weir/core/queue/reach.h>
#include <weir/core/volume/capsule.h>

/* Windows one call may read: bounds the work done under the lock. */
enum { WEIR_CQ_WINDOWS = 32 };

WEIR_FN WEIR_GLOBAL struct nvme_cqe *weir_cq_entry(WEIR_GLOBAL struct weir_queue *queue, u64 position)
{
	return weir_at(queue->cq, struct nvme_cqe, position & (queue->depth - 1));
}

/*
 * dw3 of the entry at @position if the controller has written it in this lap of
 * the ring, else 0. The phase is 1 in the first lap (Base 2.0, section 4.2.4).
 */
WEIR_FN u32 weir_cq_fresh(WEIR_GLOBAL struct weir_queue *queue, u64 position, u32 dw3)
{
	u32 expected = (u32)(~(position >> queue->depth_log2)) & 1;

	return ((dw3 >> 16) & 1) == expected;
}

WEIR_FN u32 weir_cq_load(WEIR_GLOBAL struct weir_queue *queue, u64 position)
{
	/* doorbell.C1: pairs with the controller's write of dw3: data and dw0..dw2 before the phase */
	return weir_queue_load_acquire(queue,
				       (WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, position)->dw3);
}

/* dw2 of an entry found fresh: the submission queue in its upper half. */
WEIR_FN u32 weir_cq_submitter(WEIR_GLOBAL struct weir_queue *queue, u64 position)
{
	/* relaxed: doorbell.C1 came before */
	return weir_load_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, position)->dw2);
}

/*
 * Is the completion (@dw2, @dw3) the answer to the command of its slot, which has @sequence, of queue pair
 * @id of 2^@depth_log2 entries?
 *
 * A CID is the low half of its ticket: the slot in its low bits, above them the lap.
 * So an answer that comes again, or late, or was made up, or is another queue's,
 * finds a free slot or another lap (of 65536 / depth), and touches nothing.
 */
WEIR_FN u32 weir_cq_answers(u32 id, u32 depth_log2, u32 dw2, u32 dw3, u32 sequence)
{
	u32 lap = ((sequence >> 1) << depth_log2) & 0xffff;

	return (sequence & 1) && lap == (dw3 & 0xffff & ~((1u << depth_log2) - 1)) && dw2 >> 16 == id;
}

/* The sequence of the slot that awaits the completion (@dw2, @dw3), or 0: nobody does. */
WEIR_FN u32 weir_cq_awaited(WEIR_GLOBAL struct weir_queue *queue, u32 dw2, u32 dw3)
{
	/* cq.R2: pairs with sq.S1: the continuation was written before the slot was filled */
	u32 sequence = weir_load_u32_acquire_dev(
		&weir_at(queue->slots, struct weir_slot, dw3 & (queue->depth - 1))->sequence);

	return weir_cq_answers(queue->id, queue->depth_log2, dw2, dw3, sequence) ? sequence : 0;
}

/* WEIR_PATH_PULL: where the data of the entry at @position lies, whose command has slot @index. */
WEIR_FN weir_addr weir_cq_source(WEIR_GLOBAL struct weir_queue *queue, u64 position, u32 index)
{
	/* relaxed: doorbell.C1 orders it, and, of a medium, the data of writes that ended before */
	u32 place = queue->medium
			    ? weir_load_u32_relaxed_sys(
				      (WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, position)->dw0)
			    : 0;

	return place ? queue->medium + ((u64)(place - 1) << queue->block_log2)
		     : queue->staging + ((u64)index << queue->staging_log2);
}

/* WEIR_PATH_PULL: what was read goes to where its issuers want it. */
WEIR_FN void weir_cq_pull(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u32 mine, u64 position, u32 dw3)
{
	u32 index = dw3 & (queue->depth - 1), bytes = 0;
	weir_addr buffer = 0, source = 0;

	if (mine && weir_status_from_nvme(dw3) == WEIR_OK) {
		WEIR_GLOBAL struct weir_slot *slot = weir_at(queue->slots, struct weir_slot, index);

		bytes = (u32)slot->pull_blocks << queue->block_log2;
		buffer = slot->buffer;
		source = weir_cq_source(queue, position, index);
	}
	weir_wave_sync(lanes); /* what each lane acquired at doorbell.C1 and cq.R2 is every lane's */
	weir_fence_to_lanes(); /* line.L3: as a controller's data, after the claim */
	weir_wave_copy(lanes, buffer, source, bytes);
	weir_wave_sync(lanes); /* every lane's part before an issuer is told (event.E0, line.L0) and sq.S2 */
}

/*
 * A request of an event failed: note what it was for whoever waits, if it can be submitted again. With the
 * slot, which is not free yet, and the ring's lock: nobody else writes the record. Before
 * weir_fence_to_lanes(), and that before the event's word.
 *
 * Return: that word; 0: it cannot.
 */
WEIR_COLD u64 weir_cq_note(WEIR_GLOBAL struct weir_queue *queue, u32 index, weir_addr event,
			   weir_status status)
{
	WEIR_GLOBAL struct weir_slot *slot = weir_at(queue->slots, struct weir_slot, index);
	WEIR_GLOBAL struct nvme_sqe *sqe = weir_at(queue->sq, struct nvme_sqe, index);
	WEIR_GLOBAL struct weir_retry_record *record;
	u32 opcode = sqe->cdw0 & 0xff, kind = weir_status_retry_kind(status);

	if (!queue->records || kind == 0 ||
	    (opcode == NVME_OPCODE_WRITE && !weir_status_is_retryable(status)))
		return 0;
	record = weir_at(queue->records, struct weir_retry_record, index);
	weir_store_u64_relaxed_dev(&record->event, 0);
	weir_fence_to_lanes(); /* disk.V0: pairs with disk.V1: who sees any of what follows sees the record go
				*/
	/* relaxed: disk.V2 publishes them */
	weir_store_u64_relaxed_dev(&record->queue, weir_capsule_again(queue));
	weir_store_u64_relaxed_dev(&record->lba, weir_capsule_block(queue, sqe));
	weir_store_u64_relaxed_dev(&record->buffer, slot->buffer);
	weir_store_u32_relaxed_dev(&record->cdw12, sqe->cdw12);
	weir_store_u32_relaxed_dev(&record->opcode, opcode);
	weir_store_u32_relaxed_dev(&record->state, (u32)slot->status);
	weir_store_u64_release_dev(&record->event, event); /* disk.V2: pairs with disk.V3 */
	return WEIR_EVENT_DONE | WEIR_EVENT_RETRY | (u64)kind << WEIR_EVENT_KIND_SHIFT |
	       (u64)((status >> NVME_STATUS_CRD_SHIFT) & NVME_STATUS_CRD_MASK) << WEIR_EVENT_CRD_SHIFT |
	       WEIR_ADDR(record) >> 3;
}

/*
 * The command of slot @index has ended: tell the issuer, then free the slot.
 *
 * Return: bit 0 a command ended, bit 1 with an error.
 */
WEIR_FN u32 weir_cq_end(WEIR_GLOBAL struct weir_queue *queue, u32 index, u32 sequence, weir_status status)
{
	WEIR_GLOBAL struct weir_slot *slot = weir_at(queue->slots, struct weir_slot, index);
	weir_addr target = slot->target, status_word = slot->status;
	u32 kind = slot->target_kind, outcome = status == WEIR_OK ? 1 : 3;
	u64 retry;

	if (queue->placed == WEIR_QUEUE_ENGINE && (status != WEIR_OK || kind == WEIR_TARGET_JOIN)) {
		struct weir_answer answer = weir_capsule_end(queue, index, status);

		kind = answer.kind;
		status = answer.status;
		target = answer.target;
		status_word = answer.target_status;
	}
	retry = status != WEIR_OK && kind == WEIR_TARGET_EVENT ? weir_cq_note(queue, index, target, status)
							       : 0;
	weir_line_outcome(kind, status_word, status);
	weir_fence_to_lanes(); /* one for event.E0, line.L0 or writeback.W2, and sq.S2 */
	if (retry)
		/* event.E0: pairs with event.E1: the record before the event */
		weir_store_u64_fenced_dev(&weir_at(target, struct weir_event, 0)->word, retry);
	else
		weir_complete(kind, target, status_word, status, queue->path);
	/* sq.S2: pairs with sq.S3: the continuation is read before the next lap writes it */
	weir_store_u32_fenced_dev(&slot->sequence, sequence + 1);
	return outcome;
}

/* Handle a completion that is awaited. Return: as weir_cq_end(). */
WEIR_FN u32 weir_cq_handle(WEIR_GLOBAL struct weir_queue *queue, u32 dw3, u32 sequence)
{
	return weir_cq_end(queue, dw3 & (queue->depth - 1), sequence, weir_status_from_nvme(dw3));
}

/*
 * Add this window's outcome (bit 0 ended, 1 failed, 2 rogue) to the counters. Nothing
 * waits for the sums, which a load and a store would.
 */
WEIR_FN void weir_cq_count(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u32 outcome)
{
	u32 ended = weir_popcount(weir_ballot(lanes, outcome & 1));
	u32 failed = weir_popcount(weir_ballot(lanes, outcome & 2));
	u32 rogue = weir_popcount(weir_ballot(lanes, outcome & 4));

	if (!weir_elected(lanes))
		return;
	/* relaxed: the host reads a snapshot */
	(void)weir_add_u64_relaxed_dev(&queue->completed, ended);
	if (failed)
		(void)weir_add_u64_relaxed_dev(&queue->failed, failed);
	if (rogue)
		(void)weir_add_u64_relaxed_dev(&queue->rogue, rogue);
}

/* Read one window of entries at @head. Return: how many were fresh. */
WEIR_FN u32 weir_cq_window(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 head)
{
	u32 rank = weir_rank(lanes, weir_lane());
	u32 dw3 = rank < queue->depth ? weir_cq_load(queue, head + rank) : 0;
	u32 fresh = rank < queue->depth && weir_cq_fresh(queue, head + rank, dw3);
	u32 found = weir_prefix(lanes, weir_ballot(lanes, fresh));
	u32 sequence = 0, outcome = 0, mine;
	u64 awaited, matches;

	if (found == 0) /* the same in all lanes */
		return 0;
	if (rank < found) {
		outcome = 4; /* rogue, unless somebody awaits it */
		sequence = weir_cq_awaited(queue, weir_cq_submitter(queue, head + rank), dw3);
	}
	awaited = weir_ballot(lanes, sequence != 0);
	/* of two entries with one CID the first is meant */
	matches = weir_match_mask_u64(lanes, awaited, dw3 & 0xffff);
	mine = sequence && weir_elected(matches);
	if (queue->staging)
		weir_cq_pull(queue, lanes, mine, head + rank, dw3);
	if (mine)
		outcome = weir_cq_handle(queue, dw3, sequence);
	weir_reconverge(); /* else a compiler may send the lanes that handled straight into the ballots */
	weir_cq_count(queue, lanes, outcome);
	return found;
}

/* Tell the controller how far we read: every quarter ring, or when nothing came. */
WEIR_FN void weir_cq_ring(WEIR_GLOBAL struct weir_queue *queue, u64 head, u32 idle)
{
	u64 rung = weir_load_u64_relaxed_dev(&queue->rung); /* relaxed: the lock orders it */

	if (head == rung || (!idle && head - rung < (queue->depth + 3) / 4))
		return;
	weir_queue_ring(queue, queue->cq_doorbell, rung,
			head); /* entries were read before they may be overwritten */
	weir_store_u64_relaxed_dev(&queue->rung, head);
}

/* Is there an entry at @head, or a head that the controller was not told? */
WEIR_FN u32 weir_cq_worth_a_poll(WEIR_GLOBAL struct weir_queue *queue, u64 head)
{
	/* relaxed: a hint; whoever has the lock reads the entries with acquire */
	u64 rung = weir_load_u64_relaxed_dev(&queue->rung);
	u32 dw3 = weir_load_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&weir_cq_entry(queue, head)->dw3);

	return rung != head || weir_cq_fresh(queue, head, dw3) ||
	       (queue->doorbell_kind == WEIR_DOORBELL_NIC && weir_nic_arrived(queue, head));
}

/*
 * One lane tries to become the reaper, where there is something to reap. Where lanes
 * pull, the ring is host memory: all waves looking at it would fill the bus, so only the
 * lock's holder does.
 *
 * Return: what it holds, the reap word; 0 if nothing.
 */
WEIR_FN u64 weir_cq_try_lock(WEIR_GLOBAL struct weir_queue *queue)
{
	/* relaxed: only a guess; the compare-and-swap decides */
	u64 reap = weir_load_u64_relaxed_dev(&queue->reap);
	u32 far = queue->staging != 0;

	if ((reap & 1) || (!far && !weir_cq_worth_a_poll(queue, reap >> 1)))
		return 0;
	/* cq.R0: pairs with cq.R1 of the previous reaper */
	if (weir_cas_u64_acquire_dev(&queue->reap, reap, reap | 1) != reap)
		return 0;
	if (far && !weir_cq_worth_a_poll(queue, reap >> 1)) {
		weir_store_u64_release_dev(&queue->reap, reap); /* cq.R1 */
		return 0;
	}
	return reap | 1;
}

/* The status that commands of a dead queue end with, the same in all lanes; 0: it lives, or its controller
 * may touch memory. */
WEIR_FN weir_status weir_cq_dead(WEIR_GLOBAL struct weir_queue *queue, u64 lanes)
{
	/* dead.Q1: pairs with dead.Q0 (runtime/recovery/watchdog.c): what the controller did with memory came
	 * before */
	u32 dead = (u32)weir_broadcast_u64(lanes,
					   weir_elected(lanes) ? weir_load_u32_acquire_sys(&queue->dead) : 0);

	return dead & WEIR_QUEUE_UNSAFE ? (u32)WEIR_OK : dead & WEIR_QUEUE_DEAD_STATUS;
}

/*
 * One lane ends the commands of a dead queue with @status: no completion will. Their slots, lines and events
 * are as after any error, so that nothing that others share with a dead storage stays taken. One that is
 * submitted meanwhile is ended by whoever helps next. Return: how many.
 */
WEIR_COLD u32 weir_cq_end_all(WEIR_GLOBAL struct weir_queue *queue, weir_status status)
{
	/* relaxed: only a guess; the compare-and-swap decides */
	u64 reap = weir_load_u64_relaxed_dev(&queue->reap);
	u32 total = 0;

	/* cq.R0: pairs with cq.R1 of the previous reaper */
	if ((reap & 1) || weir_cas_u64_acquire_dev(&queue->reap, reap, reap | 1) != reap)
		return 0;
	for (u32 index = 0; index < queue->depth; index++) {
		/* cq.R2: pairs with sq.S1 */
		u32 sequence =
			weir_load_u32_acquire_dev(&weir_at(queue->slots, struct weir_slot, index)->sequence);

		if (sequence & 1) {
			(void)weir_cq_end(queue, index, sequence, status);
			total++;
		}
	}
	/* relaxed: the host reads a snapshot */
	(void)weir_add_u64_relaxed_dev(&queue->completed, total);
	(void)weir_add_u64_relaxed_dev(&queue->failed, total);
	weir_store_u32_release_sys(&queue->dead,
				   status | WEIR_QUEUE_ENDED); /* dead.Q0: for whoever reads it instead */
	weir_store_u64_release_dev(&queue->reap, reap);        /* cq.R1: pairs with cq.R0 */
	return total;
}

/* weir_cq_reap() where nothing was found: all commands of a dead queue end. */
WEIR_FN u32 weir_cq_reap_dead(WEIR_GLOBAL struct weir_queue *queue, u64 lanes)
{
	weir_status dead = weir_cq_dead(queue, lanes); /* the same in all lanes */
	u32 total = 0;

	if (dead == WEIR_OK)
		return 0;
	if (weir_elected(lanes))
		total = weir_cq_end_all(queue, dead);
	weir_reconverge();
	return (u32)weir_broadcast_u64(lanes, total);
}

/**
 * weir_cq_reap() - handle the completions that are there, if nobody else does
 * @queue: the queue
 * @lanes: all lanes of it call together
 *
 * Never waits; bounded. Every issuer is told before its slot is freed. Of a dead queue all commands end.
 *
 * Return: completions handled, the same value in all lanes.
 */
WEIR_FN u32 weir_cq_reap(WEIR_GLOBAL struct weir_queue *queue, u64 lanes)
{
	u32 width = weir_popcount(lanes), kind = queue->doorbell_kind; /* before the fences */
	u32 total = 0, found = 0;
	u64 reap = weir_broadcast_u64(lanes, weir_elected(lanes) ? weir_cq_try_lock(queue) : 0),
	    head = reap >> 1;

	if (!reap) /* as in most iterations of a wait */
		return weir_cq_reap_dead(queue, lanes);
	if (kind == WEIR_DOORBELL_NIC) /* the same in all lanes */
		weir_nic_receive(queue, lanes, head);
	weir_wave_sync(lanes); /* what the elected lane acquired at cq.R0 is every lane's: no entry of an
				  older lap */
	for (u32 i = 0; i < WEIR_CQ_WINDOWS; i++) {
		found = weir_cq_window(queue, lanes, head + total);
		total += found;
		/* every lane's reads and frees before the next window (an entry may come twice) and before
		 * cq.R1 */
		weir_wave_sync(lanes);
		if (found < width)
			break;
	}
	if (weir_elected(lanes)) {
		weir_cq_ring(queue, head + total, total == 0);
		/* cq.R1: pairs with cq.R0; behind the doorbell, which orders itself before the next one's */
		weir_store_u64_release_dev(&queue->reap, (head + total) << 1);
	}
	weir_reconverge();
	/* a message whose command the NIC has never done with is there for good, and never an entry */
	return total == 0 && queue->doorbell_kind == WEIR_DOORBELL_NIC ? weir_cq_reap_dead(queue, lanes)
								       : total;
}

#endif
