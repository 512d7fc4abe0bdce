/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/sq.h: putting commands into a submission ring.
 *
 * Owns: tickets, slots from free to filled, the SQ doorbell. Scheme of DESIGN
 * section 3: reserve for a whole group of lanes with one compare-and-swap, fill,
 * commit by flat combining. Nothing here waits: a try either owns slots that are
 * free already or owns nothing.
 *
 * Who waits for a slot holds nothing, so others may always be faster. A submission that has waited for some
 * iterations makes itself known, by its deadline: of two submissions with the same time to wait the older one
 * has the earlier deadline. Once it was overtaken WEIR_OVERTAKES times, younger ones leave free slots to it.
 * It is a hint, and no reservation: the slots are nobody's, and where the one that is waited for does not
 * come, others go on.
 *
 * Lane rule for every function with a `lanes` mask: all lanes of the mask call it
 * together, for the same queue.
 */
#ifndef WEIR_CORE_SQ_H
#define WEIR_CORE_SQ_H

#include <weir/core/queue/copy.h>
#include <weir/core/queue/reach.h>
#include <weir/core/volume/capsule.h>

/* Tries to take tickets before a wave looks after something else. */
enum { WEIR_RESERVE_TRIES = 4 };

/* Iterations that a submission waits before it makes itself known. */
enum { WEIR_FIRST_ITERATIONS = 8 };

/* How often it is overtaken then; and how many tries to take a free slot are refused for its sake before it
 * counts as gone. */
enum { WEIR_OVERTAKES = 8, WEIR_FIRST_REFUSES = 16384 };

/**
 * struct weir_age - of a submission that waits for a slot, the same in all lanes that began to wait together
 * @deadline: of its wait, clock value; 0: it takes no part, and overtakes whom it likes
 * @iteration: how often it has tried
 */
struct weir_age {
	u64 deadline;
	u32 iteration;
};

/** weir_age_none() - of a submission that is given up soon, and begun anew */
WEIR_FN struct weir_age weir_age_none(void)
{
	struct weir_age age;

	age.deadline = 0;
	age.iteration = 0;
	return age;
}

/** weir_age() - of a submission with @deadline that has tried @iteration times */
WEIR_FN struct weir_age weir_age(u64 deadline, u32 iteration)
{
	struct weir_age age;

	age.deadline = deadline;
	age.iteration = iteration;
	return age;
}

/**
 * struct weir_request - one command before it has a slot
 * @opcode: NVME_OPCODE_...
 * @blocks: length in blocks; 0 for commands without data
 * @flags: bits for cdw12, such as NVME_RW_FUA
 * @target_kind: WEIR_TARGET_...
 * @lba: first block
 * @buffer: device address of the data, 4-byte aligned, in memory from weir_alloc()
 * @target: where the completion goes
 * @status: WEIR_TARGET_LINE, _WRITTEN: where the status goes
 */
struct weir_request {
	u32 opcode;
	u32 blocks;
	u32 flags;
	u32 target_kind;
	u64 lba;
	weir_addr buffer;
	weir_addr target;
	weir_addr status;
};

/** weir_bus_of() - where @queue's controller sees memory of lanes; the one place that maps it */
WEIR_FN struct weir_bus weir_bus_of(WEIR_GLOBAL struct weir_queue *queue, weir_addr address)
{
	struct weir_bus bus;

	bus.address = address + queue->bus_offset;
	return bus;
}

WEIR_FN WEIR_GLOBAL struct weir_slot *weir_sq_slot(WEIR_GLOBAL struct weir_queue *queue, u64 ticket)
{
	return weir_at(queue->slots, struct weir_slot, ticket & (queue->depth - 1));
}

/* Sequence of @ticket's slot while free; one more once filled. Modulo 2^32. */
WEIR_FN u32 weir_sq_free_sequence(WEIR_GLOBAL struct weir_queue *queue, u64 ticket)
{
	return (u32)((ticket >> queue->depth_log2) << 1);
}

WEIR_FN u32 weir_sq_is_free(WEIR_GLOBAL struct weir_queue *queue, u64 ticket)
{
	/* sq.S3: pairs with sq.S2 in core/queue/cq.h: the old continuation was read before this lap */
	return weir_load_u32_acquire_dev(&weir_sq_slot(queue, ticket)->sequence) ==
	       weir_sq_free_sequence(queue, ticket);
}

/*
 * How many tickets from @tail on the lanes @takers may take; each looks at the slot that would be its own.
 * The slot after the last one must be free too: a ring with all its entries pending looks empty to the
 * controller (Base 2.0, section 3.3.1.5), and a freed slot proves it was fetched.
 */
WEIR_FN u32 weir_sq_room(WEIR_GLOBAL struct weir_queue *queue, u64 wave, u64 takers, u64 tail)
{
	u32 width = weir_popcount(takers), takes = weir_is_in(takers), behind = 1, free;

	/* relaxed: the slot behind theirs is not written */
	if (weir_elected(wave))
		behind = weir_load_u32_relaxed_dev(&weir_sq_slot(queue, tail + width)->sequence) ==
			 weir_sq_free_sequence(queue, tail + width);
	free = weir_prefix(
		takers,
		weir_ballot(wave, takes && weir_sq_is_free(queue, tail + weir_rank(takers, weir_lane()))));
	behind = (u32)weir_broadcast_u64(wave, behind);
	return free == width && behind ? width : free - (free != 0);
}

/* One lane, whose submission is younger than that with deadline @first: may it take tickets? */
WEIR_COLD u32 weir_sq_may_overtake(WEIR_GLOBAL struct weir_queue *queue, u64 first)
{
	/* relaxed, like all of this: a hint, and whoever loses a race comes again */
	u64 tail = weir_load_u64_relaxed_dev(&queue->tail);

	if (weir_load_u64_relaxed_dev(&queue->overtaken) < WEIR_OVERTAKES)
		return 1;
	if (!weir_sq_is_free(queue, tail)) /* there is nothing to leave to anybody */
		return 0;
	if (weir_add_u64_relaxed_dev(&queue->overtaken, 1) < WEIR_FIRST_REFUSES)
		return 0;
	(void)weir_cas_u64_relaxed_dev(&queue->first, first, 0);
	return 1;
}

/* One lane, whose submission got @served tickets where @first was known to wait, or has waited for some
 * iterations itself. */
WEIR_COLD void weir_sq_note_age(WEIR_GLOBAL struct weir_queue *queue, struct weir_age age, u64 first,
				u32 served)
{
	if (served && age.deadline == first)
		(void)weir_cas_u64_relaxed_dev(&queue->first, first, 0);
	else if (served && age.deadline > first)
		(void)weir_add_u64_relaxed_dev(&queue->overtaken, served);
	else if (!served && (first == 0 || age.deadline < first) && age.iteration >= WEIR_FIRST_ITERATIONS &&
		 weir_cas_u64_relaxed_dev(&queue->first, first, age.deadline) == first)
		weir_store_u64_relaxed_dev(&queue->overtaken, 0);
}

/**
 * weir_sq_withdraw() - submissions wait no longer, and were not made: nobody leaves slots to them from now on
 * @wave: lanes that waited together
 * @leaves: this lane's submission is one of them
 * @queue: this lane's
 * @deadline: of its wait; the elected lane's is meant, as it was in weir_sq_try_submit()
 */
WEIR_FN void weir_sq_withdraw(u64 wave, u32 leaves, WEIR_GLOBAL struct weir_queue *queue, u64 deadline)
{
	if (weir_ballot(wave, leaves) == 0)
		return;
	deadline = weir_broadcast_u64(wave, deadline);
	/* relaxed: a hint */
	if (leaves && weir_load_u64_relaxed_dev(&queue->first) == deadline)
		(void)weir_cas_u64_relaxed_dev(&queue->first, deadline, 0);
	weir_reconverge();
}

/**
 * weir_sq_try_reserve() - take tickets for the first lanes of a group
 * @queue: the queue
 * @wave: lanes calling together
 * @takers: those of them that want a ticket each
 * @may: the elected lane's is meant: 0: none of them just now
 *
 * Return: ticket of the first taker plus one in bits 63:8, number of takers
 * served in 7:0; 0 when nothing is free or other waves were faster every time. They are
 * served in rank order. Whoever is served must fill and commit without waiting.
 */
WEIR_FN u64 weir_sq_try_reserve(WEIR_GLOBAL struct weir_queue *queue, u64 wave, u64 takers, u32 may)
{
	/* relaxed: only a guess; the compare-and-swap decides */
	u64 tail = weir_broadcast_u64(
		wave, weir_elected(wave) && may ? weir_load_u64_relaxed_dev(&queue->tail) : ~(u64)0);

	if (tail == ~(u64)0) /* the same in all lanes */
		return 0;
	for (u32 i = 0; i < WEIR_RESERVE_TRIES; i++) {
		u32 room = weir_sq_room(queue, wave, takers, tail);
		u64 seen = 0;

		/* relaxed: the slots' own sequence words (sq.S3) carry the order */
		if (weir_elected(wave))
			seen = room ? weir_cas_u64_relaxed_dev(&queue->tail, tail, tail + room)
				    : weir_load_u64_relaxed_dev(&queue->tail);
		seen = weir_broadcast_u64(wave, seen);
		if (seen == tail)
			return room ? ((tail + 1) << 8) | room : 0;
		tail = seen; /* another wave was faster */
		weir_reconverge();
	}
	return 0;
}

/* PRP list of a slot: entries for every page after the first. Base 2.0, 4.1.1. */
WEIR_FN u64 weir_sq_fill_prp_list(WEIR_GLOBAL struct weir_queue *queue, u64 ticket, weir_addr page, u64 pages)
{
	u64 index = (ticket & (queue->depth - 1)) * queue->prp_entries;
	WEIR_GLOBAL u64 *list = weir_at(queue->prp_lists, u64, index);

	for (u64 i = 0; i < pages; i++)
		list[i] = weir_bus_of(queue, page + i * NVME_PAGE_BYTES).address;
	return weir_bus_of(queue, queue->prp_lists + index * sizeof(u64)).address;
}

/* Second PRP field for @bytes at @buffer: nothing, the second page, or a list. */
WEIR_FN u64 weir_sq_prp2(WEIR_GLOBAL struct weir_queue *queue, u64 ticket, weir_addr buffer, u64 bytes)
{
	u64 first = NVME_PAGE_BYTES - (buffer & (NVME_PAGE_BYTES - 1));
	u64 pages;

	if (bytes <= first)
		return 0;
	pages = (bytes - first + NVME_PAGE_BYTES - 1) >> NVME_PAGE_LOG2;
	if (pages == 1)
		return weir_bus_of(queue, buffer + first).address;
	return weir_sq_fill_prp_list(queue, ticket, buffer + first, pages);
}

/* The part of the staging that is @ticket's; WEIR_PATH_PULL only. */
WEIR_FN weir_addr weir_sq_staging(WEIR_GLOBAL struct weir_queue *queue, u64 ticket)
{
	return queue->staging + ((ticket & (queue->depth - 1)) << queue->staging_log2);
}

/* WEIR_PATH_PULL: what the served lanes write goes to where the controller reaches it; all of the wave copy.
 */
WEIR_FN void weir_sq_stage(WEIR_GLOBAL struct weir_queue *queue, u64 wave, u64 ticket, u32 served,
			   struct weir_request request)
{
	u32 bytes = served && (request.opcode & NVME_OPCODE_TO_CONTROLLER)
			    ? request.blocks << queue->block_log2
			    : 0;

	weir_wave_sync(wave); /* what each lane wrote to its buffer is every lane's to copy */
	weir_wave_copy(wave, weir_sq_staging(queue, ticket), request.buffer, bytes);
	weir_wave_sync(wave); /* every lane's part before anybody's sq.S1 */
}

/* The command of @request in the slot of @ticket, whose PRP list is written if it needs one. */
WEIR_FN struct nvme_sqe weir_sq_command(WEIR_GLOBAL struct weir_queue *queue, u64 ticket,
					struct weir_request request)
{
	u32 cid = (u32)ticket & 0xffff; /* a CID out of its lap is recognised: weir_cq_expects() */
	u64 bytes = (u64)request.blocks << queue->block_log2;
	weir_addr data = queue->staging ? weir_sq_staging(queue, ticket) : request.buffer;
	struct nvme_sqe sqe;

	sqe.cdw0 = request.opcode | (cid << 16);
	sqe.nsid = queue->nsid;
	sqe.cdw2 = 0;
	sqe.cdw3 = 0;
	sqe.mptr = 0;
	sqe.prp1 = bytes ? weir_bus_of(queue, data).address : 0;
	sqe.prp2 = bytes ? weir_sq_prp2(queue, ticket, data, bytes) : 0;
	sqe.cdw10 = (u32)request.lba;
	sqe.cdw11 = (u32)(request.lba >> 32);
	sqe.cdw12 = request.flags | (bytes ? request.blocks - 1 : 0);
	sqe.cdw13 = 0;
	sqe.cdw14 = 0;
	sqe.cdw15 = 0;
	return sqe;
}

/* How @slot's command continues; its sequence word comes after. */
WEIR_FN void weir_sq_continue(WEIR_GLOBAL struct weir_slot *slot, struct weir_request request)
{
	slot->target_kind = (u16)request.target_kind;
	slot->pull_blocks = request.opcode & NVME_OPCODE_FROM_CONTROLLER ? (u16)request.blocks : 0;
	slot->target = request.target;
	slot->status = request.status;
	slot->buffer = request.buffer;
}

/**
 * weir_sq_fill() - write one lane's command into its reserved slot
 *
 * The release of the sequence word publishes command, PRP list and continuation.
 */
WEIR_FN void weir_sq_fill(WEIR_GLOBAL struct weir_queue *queue, u64 ticket, struct weir_request request)
{
	WEIR_GLOBAL struct weir_slot *slot = weir_sq_slot(queue, ticket);
	struct nvme_sqe sqe = weir_sq_command(queue, ticket, request);

	if (queue->placed) {
		struct weir_capsule capsule =
			weir_capsule_of(queue, request.opcode, request.blocks, request.lba,
					request.target_kind == WEIR_TARGET_JOIN ? request.target : 0);

		sqe.cdw2 = (u32)capsule.version;
		sqe.cdw3 = (u32)(capsule.version >> 32);
		sqe.cdw11 = capsule.cdw11;
		sqe.cdw14 = capsule.cdw14;
		sqe.cdw15 = capsule.cdw15;
	}
	*weir_at(queue->sq, struct nvme_sqe, ticket & (queue->depth - 1)) = sqe;
	weir_sq_continue(slot, request);
	/* sq.S1: pairs with sq.S4 (the combiner) and cq.R2 (the reaper) */
	weir_store_u32_release_dev(&slot->sequence, weir_sq_free_sequence(queue, ticket) + 1);
}

/* Extend @committed over the filled slots, a group's width at a time. */
WEIR_FN u64 weir_sq_scan(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 committed)
{
	u32 width = weir_popcount(lanes);
	u32 found;

	do {
		u64 mine = committed + weir_rank(lanes, weir_lane());
		/* sq.S4: pairs with sq.S1 */
		u32 filled = weir_load_u32_acquire_dev(&weir_sq_slot(queue, mine)->sequence) ==
			     weir_sq_free_sequence(queue, mine) + 1;

		found = weir_prefix(lanes, weir_ballot(lanes, filled));
		committed += found;
		weir_reconverge();
	} while (found == width);
	return committed;
}

/*
 * One iteration of the combiner: announce what is filled, then leave unless more came. Called with the role
 * held (pending was raised from 0 by this group). @count tickets from @first on are what the group has just
 * filled; where there are no other tickets that were not announced, no slot is looked at. 0: it does not
 * know.
 */
WEIR_FN u64 weir_sq_combine(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 first, u32 count)
{
	/* what never changes is loaded before the fences, which make a GPU forget it */
	u32 kind = queue->doorbell_kind;
	/* sq.S6: pairs with sq.S5: slots filled by whoever raised pending are seen below */
	u64 seen = weir_broadcast_u64(lanes,
				      weir_elected(lanes) ? weir_load_u64_acquire_dev(&queue->pending) : 0);
	u64 before = 0, tail = 0, after = first + count, left = 0;

	if (weir_elected(lanes)) {
		/* relaxed: the role passes through pending (sq.S5, sq.S7), which orders it */
		before = weir_load_u64_relaxed_dev(&queue->committed);
		/* relaxed: likewise: whoever filled a slot and was counted by another combiner took its
		 * ticket before */
		tail = weir_load_u64_relaxed_dev(&queue->tail);
	}
	before = weir_broadcast_u64(lanes, before);
	tail = weir_broadcast_u64(lanes, tail);
	weir_wave_sync(lanes); /* what the elected lane acquired at sq.S6 is every lane's: none misses a
				  filled slot */
	if (count == 0 || before != first || tail != after) /* the same in all lanes */
		after = weir_sq_scan(queue, lanes, before);
	weir_wave_sync(lanes);           /* what each lane acquired at sq.S4 is every lane's now */
	if (kind == WEIR_DOORBELL_NIC) { /* the same in all lanes */
		weir_nic_put(queue, lanes, before, after);
		weir_reconverge();
		weir_wave_sync(lanes); /* what each lane put is there before the elected lane's mlx5.D0 */
	}
	if (weir_elected(lanes)) {
		if (after != before) {
			weir_store_u64_relaxed_dev(&queue->committed, after);
			weir_queue_ring(queue, queue->sq_doorbell, before, after);
		}
		/* sq.S7: pairs with the next combiner's sq.S5 */
		left = weir_add_u64_acq_rel_dev(&queue->pending, (u64)0 - seen) - seen;
	}
	return weir_broadcast_u64(lanes, left);
}

/**
 * weir_sq_commit() - announce what was filled
 * @queue: the queue
 * @lanes: as many lanes as can come: together they look for filled slots, one each
 * @first: the first ticket of theirs
 * @count: how many they filled
 *
 * Flat combining: whoever raises pending from 0 rings the doorbell for everybody;
 * the others are done at once. Nobody waits.
 */
WEIR_FN void weir_sq_commit(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 first, u32 count)
{
	u64 before = 0;

	weir_wave_sync(lanes); /* every lane's sq.S1 before the elected lane's sq.S5 */
	/* sq.S5: pairs with sq.S6 and sq.S7 */
	if (weir_elected(lanes))
		before = weir_add_u64_acq_rel_dev(&queue->pending, 1);
	if (weir_broadcast_u64(lanes, before) != 0)
		return;
	while (weir_sq_combine(queue, lanes, first, count) != 0) {
		count = 0;
		weir_reconverge();
	}
}

/* weir_sq_try_reserve(), unless an older submission has been overtaken too often. The elected lane's @age is
 * meant. */
WEIR_FN u64 weir_sq_try_reserve_by(WEIR_GLOBAL struct weir_queue *queue, u64 wave, u64 takers,
				   struct weir_age age)
{
	u64 first = 0, reserved;
	u32 leads = weir_elected(wave) && age.deadline != 0, may = 1;

	if (leads) {
		first = weir_load_u64_relaxed_dev(&queue->first); /* relaxed: a hint */
		may = first == 0 || age.deadline <= first || weir_sq_may_overtake(queue, first);
	}
	weir_reconverge();
	reserved = weir_sq_try_reserve(queue, wave, takers, may);
	if (leads && (first != 0 || (reserved == 0 && age.iteration >= WEIR_FIRST_ITERATIONS)))
		weir_sq_note_age(queue, age, first, (u32)reserved & 0xff);
	weir_reconverge();
	return reserved;
}

/**
 * weir_sq_try_submit() - one command per lane that has one, as far as slots are free
 * @queue: the queue
 * @wave: lanes calling together, with or without a command: all help
 * @takers: those that have one
 * @request: this lane's, if it has
 * @age: how long it has waited
 *
 * Nobody waits: what is filled is announced before this returns.
 *
 * Return: 1 in lanes whose command was submitted, 0 in the others.
 */
WEIR_FN u32 weir_sq_try_submit(WEIR_GLOBAL struct weir_queue *queue, u64 wave, u64 takers,
			       struct weir_request request, struct weir_age age)
{
	u64 reserved = weir_sq_try_reserve_by(queue, wave, takers, age);
	u32 rank = weir_rank(takers, weir_lane());
	u32 served = weir_is_in(takers) && rank < ((u32)reserved & 0xff);
	u64 ticket = (reserved >> 8) - 1 + rank;

	if (reserved == 0)
		return 0;
	if (queue->staging)
		weir_sq_stage(queue, wave, ticket, served, request);
	if (served)
		weir_sq_fill(queue, ticket, request);
	weir_reconverge();
	weir_sq_commit(queue, wave, (reserved >> 8) - 1, (u32)reserved & 0xff);
	return served;
}

#endif
