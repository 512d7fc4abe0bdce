/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/event.c: asynchronous events, Base 2.0 section 5.2.
 *
 * Owns: the held requests, and when one is answered. After an error event no
 * other is reported until the host has read the error log.
 */
#include "parts.h"

enum { EVENT_LOG_PAGE_ERROR = 0x01 };

u32 virtual_event_request(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;

	(void)result;
	if (admin->aer_count == VIRTUAL_AER_LIMIT)
		return NVME_STATUS_ASYNC_EVENT_LIMIT;
	admin->aer_cids[admin->aer_count++] = (u16)(sqe->cdw0 >> 16);
	return VIRTUAL_HELD;
}

/* Complete the held request at @index, when the admin queue has room for it. */
static bool answer(struct weir_virtual *controller, u32 index, u32 status, u32 result)
{
	struct virtual_thread *thread = &controller->threads[0];
	struct virtual_admin *admin = &controller->admin;
	struct virtual_sq *sq = &controller->sqs[0];
	u32 cid = admin->aer_cids[index];

	if (!virtual_cq_room(thread, sq->cq))
		return false;
	sq->cq->free--;
	admin->aer_count--;
	for (u32 i = index; i < admin->aer_count; i++)
		admin->aer_cids[i] = admin->aer_cids[i + 1];
	virtual_sq_unclaim(sq, cid);
	virtual_post(thread, sq, cid, status, result);
	return true;
}

bool virtual_event_abort(struct weir_virtual *controller, u32 cid)
{
	const struct virtual_admin *admin = &controller->admin;

	for (u32 i = 0; i < admin->aer_count; i++)
		if (admin->aer_cids[i] == cid)
			return answer(controller, i, NVME_STATUS_ABORT_REQUESTED, 0);
	return false;
}

static void collect(struct weir_virtual *controller)
{
	u32 events;

	if (!load_relaxed_u32(&controller->events))
		return;
	events = exchange_u32(&controller->events, 0);
	if (events & VIRTUAL_EVENT_RING_LOST)
		virtual_control_fatal(controller);
	controller->admin.events |= events & ~VIRTUAL_EVENT_RING_LOST;
}

unsigned virtual_event_step(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	u32 information;

	collect(controller);
	if (!admin->events || admin->masked || !admin->aer_count)
		return 0;
	information = (u32)__builtin_ctz(admin->events);
	/* Type 0 (error) in 2:0, information in 15:8, log page in 23:16. */
	if (!answer(controller, 0, NVME_STATUS_SUCCESS, EVENT_LOG_PAGE_ERROR << 16 | information << 8))
		return 0;
	admin->events &= admin->events - 1;
	admin->masked = true;
	return 1;
}
