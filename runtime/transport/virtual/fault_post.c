/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault_post.c: completion entries that are wrong, or too many.
 *
 * Owns: their content. Each takes an entry of its own: the command's is the one
 * it was promised, any other must find room first.
 */
#include "parts.h"

/* A neighbour, one that exists where that can be. */
static u32 other_queue(u32 id)
{
	return id == 1 ? 2 : id - 1;
}

static u32 idle_cid(const struct virtual_sq *sq)
{
	for (u32 i = 0; i < VIRTUAL_CID_WORDS; i++)
		if (~sq->cids[i])
			return 64 * i + (u32)__builtin_ctzll(~sq->cids[i]);
	return 0xffff;
}

static void post_extra(struct virtual_request *request, enum weir_virtual_fault_kind kind,
		       const struct nvme_cqe *entry, u32 wrong)
{
	struct virtual_thread *thread = request->thread;
	struct virtual_cq *cq = virtual_sq_of(request->queue)->cq;

	if (!virtual_fault_of(request, kind))
		return;
	if (!virtual_cq_room(thread, cq)) {
		virtual_fault_spare(request, kind);
		return;
	}
	virtual_fault_take(request, kind);
	cq->free--;
	if (thread->ready > cq->free)
		thread->ready = cq->free; /* a turn was granted all the room there was */
	virtual_put(cq, entry, cq->phase ^ wrong);
}

static void post_stray(struct virtual_request *request)
{
	const struct weir_fault_row *row = virtual_fault_of(request, WEIR_VIRTUAL_FAULT_STRAY);
	const struct virtual_sq *sq = virtual_sq_of(request->queue);
	struct nvme_cqe entry = { 0, 0, sq->head | sq->queue.id << 16, 0 };

	if (!row)
		return;
	entry.dw3 = row->cid == WEIR_FAULT_IDLE_CID ? idle_cid(sq) : row->cid;
	post_extra(request, WEIR_VIRTUAL_FAULT_STRAY, &entry, 0);
}

static void post(struct virtual_request *request, u32 status)
{
	struct virtual_sq *sq = virtual_sq_of(request->queue);
	struct nvme_cqe entry = { 0, 0, sq->head | sq->queue.id << 16, request->cid | status << 17 };
	u32 wrong = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_PHASE) != NULL;

	post_stray(request);
	if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_MISROUTE))
		entry.dw2 = sq->head | other_queue(sq->queue.id) << 16;
	virtual_count_command(request->thread, status);
	virtual_put(sq->cq, &entry, sq->cq->phase ^ wrong);
	post_extra(request, WEIR_VIRTUAL_FAULT_DUPLICATE, &entry, wrong);
}

void virtual_post_wrong(struct virtual_request *request, u32 status)
{
	struct virtual_sq *sq = virtual_sq_of(request->queue);

	if (!sq->cq->lost)
		post(request, status);
	if (request->owns_cid)
		virtual_sq_unclaim(sq, request->cid);
}
