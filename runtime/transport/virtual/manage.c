/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/manage.c: creating and deleting I/O queues, and Abort.
 *
 * Owns: which queues exist. A submission queue is served by the thread of its
 * completion queue, so that each completion queue has one writer.
 */
#include "parts.h"

#define QUEUE_CONTIGUOUS 0x1u /* cdw11 of Create I/O SQ and CQ */

static u32 owner_of(const struct weir_virtual *controller, u32 cq)
{
	return (cq - 1) % controller->options.threads;
}

static u32 owner_of_sq(const struct weir_virtual *controller, u32 sq)
{
	return owner_of(controller, controller->sqs[sq].cq->id);
}

static u32 ring_entries(const struct nvme_sqe *sqe)
{
	return (sqe->cdw10 >> 16) + 1;
}

static u32 check_ring(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 entry_bytes)
{
	u32 entries = ring_entries(sqe);

	if (entries < 2 || entries > controller->options.max_queue_entries)
		return virtual_refuse(NVME_STATUS_INVALID_QUEUE_SIZE);
	if (!(sqe->cdw11 & QUEUE_CONTIGUOUS))
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (sqe->prp1 % NVME_PAGE_BYTES)
		return virtual_refuse(NVME_STATUS_INVALID_PRP_OFFSET);
	if (!weir_dma_view_find(&controller->threads[0].view, sqe->prp1, (u64)entries * entry_bytes))
		return virtual_refuse(NVME_STATUS_DATA_TRANSFER_ERROR);
	return NVME_STATUS_SUCCESS;
}

u32 virtual_create_cq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;
	u32 id = sqe->cdw10 & 0xffff, status;

	(void)result;
	if (!id || id > admin->cq_allowed || admin->cq_live[id])
		return virtual_refuse(NVME_STATUS_INVALID_QID);
	status = check_ring(controller, sqe, sizeof(struct nvme_cqe));
	if (status)
		return status;
	if (sqe->cdw11 >> 16)
		return virtual_refuse(NVME_STATUS_INVALID_VECTOR);
	virtual_cq_open(controller, id, sqe->prp1, ring_entries(sqe));
	admin->cq_live[id] = true;
	admin->cq_users[id] = 0;
	admin->live++;
	return NVME_STATUS_SUCCESS;
}

static u32 check_sq(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	struct virtual_admin *admin = &controller->admin;
	u32 id = sqe->cdw10 & 0xffff, cq = sqe->cdw11 >> 16;

	if (!id || id > admin->sq_allowed || admin->sq_live[id])
		return virtual_refuse(NVME_STATUS_INVALID_QID);
	if (!cq || cq > admin->cq_allowed)
		return virtual_refuse(NVME_STATUS_INVALID_QID);
	if (!admin->cq_live[cq])
		return virtual_refuse(NVME_STATUS_INVALID_CQ);
	return check_ring(controller, sqe, sizeof(struct nvme_sqe));
}

u32 virtual_create_sq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;
	u32 id = sqe->cdw10 & 0xffff, cq = sqe->cdw11 >> 16, owner;
	u32 status = check_sq(controller, sqe);

	(void)result;
	if (status)
		return status;
	virtual_sq_open(controller, id, sqe->prp1, ring_entries(sqe), cq);
	admin->sq_live[id] = true;
	admin->cq_users[cq]++;
	admin->live++;
	owner = owner_of(controller, cq);
	virtual_message_send(&controller->threads[owner], VIRTUAL_MESSAGE_ADOPT, id, 0);
	return virtual_admin_pending(controller, sqe, owner);
}

u32 virtual_delete_cq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;
	u32 id = sqe->cdw10 & 0xffff;

	(void)result;
	if (!id || id > controller->options.max_queue_pairs || !admin->cq_live[id])
		return virtual_refuse(NVME_STATUS_INVALID_QID);
	if (admin->cq_users[id])
		return virtual_refuse(NVME_STATUS_INVALID_QUEUE_DELETION);
	store_relaxed_u32(&controller->doorbells[2 * id + 1], 0);
	admin->cq_live[id] = false;
	admin->live--;
	return NVME_STATUS_SUCCESS;
}

u32 virtual_delete_sq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	u32 id = sqe->cdw10 & 0xffff, owner;

	(void)result;
	if (!id || id > controller->options.max_queue_pairs || !controller->admin.sq_live[id])
		return virtual_refuse(NVME_STATUS_INVALID_QID);
	owner = owner_of_sq(controller, id);
	virtual_message_send(&controller->threads[owner], VIRTUAL_MESSAGE_DROP, id, 0);
	return virtual_admin_pending(controller, sqe, owner);
}

/* Completion dword 0, bit 0: the command was not aborted. */
enum { NOT_ABORTED = 1 };

u32 virtual_abort(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	u32 id = sqe->cdw10 & 0xffff, cid = sqe->cdw10 >> 16, owner;

	*result = NOT_ABORTED;
	if (!id && virtual_event_abort(controller, cid))
		*result = 0;
	if (!id || id > controller->options.max_queue_pairs || !controller->admin.sq_live[id])
		return NVME_STATUS_SUCCESS;
	owner = owner_of_sq(controller, id);
	virtual_message_send(&controller->threads[owner], VIRTUAL_MESSAGE_ABORT, id, cid);
	return virtual_admin_pending(controller, sqe, owner);
}

static void deleted(struct weir_virtual *controller, u32 id)
{
	struct virtual_admin *admin = &controller->admin;

	store_relaxed_u32(&controller->doorbells[2 * id], 0);
	admin->cq_users[controller->sqs[id].cq->id]--;
	admin->sq_live[id] = false;
	admin->live--;
}

u32 virtual_manage_answered(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	const struct virtual_thread *thread = &controller->threads[controller->admin.pending_thread];

	*result = 0;
	if ((u8)sqe->cdw0 == NVME_ADMIN_DELETE_SQ)
		deleted(controller, sqe->cdw10 & 0xffff);
	else if ((u8)sqe->cdw0 == NVME_ADMIN_ABORT && !thread->message.result)
		*result = NOT_ABORTED;
	return NVME_STATUS_SUCCESS;
}

void virtual_manage_scan(struct weir_virtual *controller)
{
	const struct virtual_admin *admin = &controller->admin;

	for (u32 i = 2; i < controller->doorbell_count; i++) {
		struct shared_u32 *doorbell = &controller->doorbells[i];
		u32 id = i / 2;
		bool live = id <= controller->options.max_queue_pairs &&
			    (i % 2 ? admin->cq_live[id] : admin->sq_live[id]);

		/* Relaxed: the word means nothing but that it was written. */
		if (live || !load_relaxed_u32(doorbell))
			continue;
		store_relaxed_u32(doorbell, 0);
		count_u64(&controller->threads[0].counters.bad_doorbells, 1);
		fetch_or_u32(&controller->events, VIRTUAL_EVENT_DOORBELL_REGISTER);
	}
}
