/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/queue.c: the front of rings and doorbells in memory.
 *
 * Owns: which entry is next on either ring, and the belief in doorbell values.
 * A doorbell is the host's memory: any value may stand in it at any time.
 */
#include "parts.h"

static u32 ring_distance(u32 from, u32 to, u32 size)
{
	return to >= from ? to - from : to + size - from;
}

void virtual_sq_open(struct weir_virtual *controller, u32 id, u64 entries, u32 size, u32 cq)
{
	struct virtual_sq *sq = &controller->sqs[id];

	*sq = (struct virtual_sq){
		.entries = (const unsigned char *)(uintptr_t)entries,
		.cq = &controller->cqs[cq],
		.cids = controller->cids + (size_t)id * VIRTUAL_CID_WORDS,
		.size = size,
		.queue.id = id,
	};
	virtual_doorbell_open(controller, 2 * id, &sq->doorbell, &sq->doorbell_seen, VIRTUAL_DOORBELL_ARMED);
}

void virtual_cq_open(struct weir_virtual *controller, u32 id, u64 entries, u32 size)
{
	struct virtual_cq *cq = &controller->cqs[id];

	*cq = (struct virtual_cq){
		.entries = (struct nvme_cqe *)(uintptr_t)entries,
		.size = size,
		.free = size - 1,
		.phase = 1,
		.id = id,
	};
	virtual_doorbell_open(controller, 2 * id + 1, &cq->doorbell, &cq->doorbell_seen,
			      VIRTUAL_DOORBELL_POLLED);
}

static void bad_doorbell(struct virtual_thread *thread)
{
	count_u64(&thread->counters.bad_doorbells, 1);
	fetch_or_u32(&thread->controller->events, VIRTUAL_EVENT_DOORBELL_VALUE);
}

static void cq_poll(struct virtual_thread *thread, struct virtual_cq *cq)
{
	u32 value = load_relaxed_u32(virtual_doorbell_word(thread, 2 * cq->id + 1, cq->doorbell)), moved;

	if (value == cq->doorbell_seen)
		return;
	/*
	 * doorbell.D2: pairs with the lane's store of the CQ head in core/queue/cq.h: it has
	 * read the entries that we may overwrite from here on.
	 */
	value = virtual_doorbell_take(thread, 2 * cq->id + 1, &cq->doorbell);
	cq->doorbell_seen = value;
	moved = value < cq->size ? ring_distance(cq->head, value, cq->size) : cq->size;
	if (moved > ring_distance(cq->head, cq->tail, cq->size)) {
		bad_doorbell(thread);
		return;
	}
	cq->head = value;
	cq->free += moved;
}

u32 virtual_cq_room(struct virtual_thread *thread, struct virtual_cq *cq)
{
	if (cq->free < cq->size / 2 || cq->free < VIRTUAL_FETCH_BATCH)
		cq_poll(thread, cq);
	if (!cq->free && cq->doorbell == VIRTUAL_DOORBELL_POLLED &&
	    !virtual_doorbell_arm(thread, 2 * cq->id + 1, &cq->doorbell, &cq->doorbell_seen, cq->head))
		cq_poll(thread, cq);
	return cq->free;
}

void virtual_view_refresh(struct virtual_thread *thread)
{
	const struct weir_virtual *controller = thread->controller;
	struct weir_medium *medium = controller->options.medium;

	if (!weir_dma_view_refresh(controller->options.dma, &thread->view))
		return;
	if (medium->ops->memory_changed)
		medium->ops->memory_changed(medium, thread->index, &thread->view);
	if (!thread->index && controller->phase == VIRTUAL_ENABLED)
		virtual_queue_check(thread, &controller->sqs[0]);
	for (u32 i = 0; i < thread->queue_count; i++)
		virtual_queue_check(thread, thread->queues[i]);
}

static void sq_poll(struct virtual_thread *thread, struct virtual_sq *sq)
{
	u32 value = load_relaxed_u32(virtual_doorbell_word(thread, 2 * sq->queue.id, sq->doorbell));

	if (value == sq->doorbell_seen)
		return;
	/*
	 * doorbell.D1: pairs with the lane's store of the SQ tail in core/queue/sq.h: the
	 * entries before it, and the memory they name, are as the lane left them.
	 */
	value = virtual_doorbell_take(thread, 2 * sq->queue.id, &sq->doorbell);
	sq->doorbell_seen = value;
	if (value >= sq->size) {
		bad_doorbell(thread);
		return;
	}
	sq->tail = value;
	/* What was taken from the DMA map before the doorbell rang is seen as gone (dma.G1). */
	virtual_view_refresh(thread);
}

void virtual_queue_poll(struct virtual_thread *thread, struct virtual_sq *sq)
{
	sq_poll(thread, sq);
	cq_poll(thread, sq->cq);
}

/* Nothing is left to fetch: a host with shadow doorbells is to ring for the next command, unless it is there
 * already. */
static void sq_sleep(struct virtual_thread *thread, struct virtual_sq *sq)
{
	if (sq->head == sq->tail && sq->doorbell == VIRTUAL_DOORBELL_POLLED &&
	    !virtual_doorbell_arm(thread, 2 * sq->queue.id, &sq->doorbell, &sq->doorbell_seen, sq->tail))
		sq_poll(thread, sq);
}

u32 virtual_sq_ready(struct virtual_thread *thread, struct virtual_sq *sq)
{
	u32 ready, room;

	sq_poll(thread, sq);
	sq_sleep(thread, sq);
	ready = ring_distance(sq->head, sq->tail, sq->size);
	if (!ready) {
		cq_poll(thread, sq->cq);
		return 0;
	}
	if (sq->lost || sq->cq->lost)
		return 0;
	room = virtual_cq_room(thread, sq->cq);
	return ready < room ? ready : room;
}

/* What it will look at first; after some entries in a row the caches follow by themselves. */
void virtual_sq_expect(const struct virtual_sq *sq)
{
	const unsigned char *next = sq->entries + (size_t)sq->head * sizeof(struct nvme_sqe);

	for (u32 i = 0; i < 3; i++)
		__builtin_prefetch(next + i * sizeof(struct nvme_sqe));
	__builtin_prefetch(&sq->cq->entries[sq->cq->tail], 1);
}

void virtual_sq_copy(const struct virtual_sq *sq, u32 ahead, struct nvme_sqe *sqe)
{
	u32 at = sq->head + ahead;

	if (at >= sq->size)
		at -= sq->size;
	virtual_copy_from(sqe, sq->entries + (size_t)at * sizeof(*sqe), sizeof(*sqe));
}

void virtual_sq_take(struct virtual_sq *sq)
{
	sq->head = sq->head + 1 == sq->size ? 0 : sq->head + 1;
	sq->cq->free--;
}

void virtual_sq_fetch(struct virtual_sq *sq, struct nvme_sqe *sqe)
{
	virtual_sq_copy(sq, 0, sqe);
	virtual_sq_take(sq);
}

bool virtual_sq_claim(struct virtual_sq *sq, u32 cid)
{
	u64 bit = (u64)1 << (cid % 64);
	u64 *word = &sq->cids[cid / 64];

	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

void virtual_sq_unclaim(struct virtual_sq *sq, u32 cid)
{
	sq->cids[cid / 64] &= ~((u64)1 << (cid % 64));
}

void virtual_count_command(struct virtual_thread *thread, u32 status)
{
	count_u64(&thread->counters.commands, 1);
	if (status)
		count_u64(&thread->counters.errors, 1);
}

static inline void put(struct virtual_cq *cq, struct nvme_cqe from, u32 phase)
{
	struct nvme_cqe *entry = &cq->entries[cq->tail];

	entry->dw0 = from.dw0;
	entry->dw1 = from.dw1;
	entry->dw2 = from.dw2;
	/*
	 * doorbell.C1: pairs with the acquire load of dw3 in core/queue/cq.h: the rest of the
	 * entry and the command's data come before the phase.
	 */
	__atomic_store_n(&entry->dw3, from.dw3 | phase << 16, __ATOMIC_RELEASE);
	if (++cq->tail == cq->size) {
		cq->tail = 0;
		cq->phase ^= 1;
	}
}

void virtual_put(struct virtual_cq *cq, const struct nvme_cqe *from, u32 phase)
{
	put(cq, *from, phase);
}

static inline void post(struct virtual_thread *thread, const struct virtual_sq *sq, u32 cid, u32 status,
			u32 result)
{
	struct virtual_cq *cq = sq->cq;
	struct nvme_cqe entry = { result, 0, sq->head | sq->queue.id << 16, cid | status << 17 };

	if (cq->lost)
		return;
	virtual_count_command(thread, status);
	put(cq, entry, cq->phase);
}

void virtual_post(struct virtual_thread *thread, struct virtual_sq *sq, u32 cid, u32 status, u32 result)
{
	if (!thread->discard)
		post(thread, sq, cid, status, result);
}

static bool mapped(struct virtual_thread *thread, const void *entries, u64 bytes)
{
	return weir_dma_view_find(&thread->view, (u64)(uintptr_t)entries, bytes) != NULL;
}

void virtual_queue_check(struct virtual_thread *thread, struct virtual_sq *sq)
{
	struct virtual_cq *cq = sq->cq;

	virtual_shadow_check(thread, sq);
	if (!mapped(thread, sq->entries, (u64)sq->size * sizeof(struct nvme_sqe)))
		sq->lost = true;
	if (!mapped(thread, cq->entries, (u64)cq->size * sizeof(struct nvme_cqe)))
		cq->lost = true;
	if (sq->lost || cq->lost)
		fetch_or_u32(&thread->controller->events, VIRTUAL_EVENT_RING_LOST);
}

static u32 rings_segments(struct virtual_thread *thread, const struct nvme_sqe *sqe, u64 bytes,
			  struct iovec *segments, u32 *count, void *command)
{
	(void)command;
	return virtual_prp_walk(thread, sqe, bytes, segments, count);
}

static void rings_release(struct virtual_request *request)
{
	if (request->owns_cid)
		virtual_sq_unclaim(virtual_sq_of(request->queue), request->cid);
}

static void rings_complete(struct virtual_request *request, u32 status)
{
	post(request->thread, virtual_sq_of(request->queue), request->cid, status, request->place);
	rings_release(request);
}

/* It gives back the completion entry that it was promised. */
static void rings_withhold(struct virtual_request *request)
{
	virtual_sq_of(request->queue)->cq->free++;
}

const struct virtual_front virtual_rings = {
	.segments = rings_segments,
	.complete = rings_complete,
	.complete_wrong = virtual_post_wrong,
	.release = rings_release,
	.withhold = rings_withhold,
};
