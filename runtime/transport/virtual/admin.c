/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/admin.c: the admin queue: fetch, find the handler, complete.
 *
 * Owns: the table of admin commands. One at a time: while one waits for an
 * owner's answer no other is fetched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "parts.h"

#define ADMIN_GET_LOG_PAGE 0x02
#define ADMIN_FLAGS        0xc300u /* fused (9:8) and PSDT (15:14): both must be 0 */

enum {
	ADMIN_BATCH = 16,
	SCAN_POLLS = 4096, /* polls between two looks at doorbells of no queue */
};

typedef u32 (*handler)(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);

static const struct {
	u8 opcode;
	handler run;
} commands[] = {
	{ NVME_ADMIN_DELETE_SQ, virtual_delete_sq },
	{ NVME_ADMIN_CREATE_SQ, virtual_create_sq },
	{ ADMIN_GET_LOG_PAGE, virtual_get_log_page },
	{ NVME_ADMIN_DELETE_CQ, virtual_delete_cq },
	{ NVME_ADMIN_CREATE_CQ, virtual_create_cq },
	{ NVME_ADMIN_IDENTIFY, virtual_identify },
	{ NVME_ADMIN_ABORT, virtual_abort },
	{ NVME_ADMIN_SET_FEATURES, virtual_set_features },
	{ NVME_ADMIN_GET_FEATURES, virtual_get_features },
	{ NVME_ADMIN_ASYNC_EVENT, virtual_event_request },
	{ NVME_ADMIN_DOORBELL_BUFFER_CONFIG, virtual_doorbell_buffer_config },
};

int virtual_admin_create(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	size_t queues = (size_t)controller->options.max_queue_pairs + 1;

	admin->sq_live = calloc(queues, sizeof(*admin->sq_live));
	admin->cq_live = calloc(queues, sizeof(*admin->cq_live));
	admin->cq_users = calloc(queues, sizeof(*admin->cq_users));
	admin->segments = calloc(controller->segments_max, sizeof(*admin->segments));
	admin->reply = calloc(1, controller->options.max_transfer_bytes);
	if (!admin->sq_live || !admin->cq_live || !admin->cq_users || !admin->segments || !admin->reply)
		return weir_fail(ENOMEM, "no memory for a virtual controller of %zu queues", queues);
	return 0;
}

void virtual_admin_destroy(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;

	free(admin->reply);
	free(admin->segments);
	free(admin->cq_users);
	free(admin->cq_live);
	free(admin->sq_live);
}

void virtual_admin_reset(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	size_t queues = (size_t)controller->options.max_queue_pairs + 1;

	memset(admin->sq_live, 0, queues * sizeof(*admin->sq_live));
	memset(admin->cq_live, 0, queues * sizeof(*admin->cq_live));
	memset(admin->cq_users, 0, queues * sizeof(*admin->cq_users));
	memset(admin->features, 0, sizeof(admin->features));
	memset(controller->cids, 0, VIRTUAL_CID_WORDS * sizeof(u64)); /* the admin queue's */
	admin->pending = false;
	admin->live = 0;
	admin->aer_count = 0;
	admin->events = 0;
	admin->masked = false;
	admin->shadow = (struct virtual_shadow){ .words = NULL };
	admin->shadow_there = false;
	admin->sq_allowed = controller->options.max_queue_pairs;
	admin->cq_allowed = controller->options.max_queue_pairs;
	store_relaxed_u32(&controller->write_through, 0);
	store_relaxed_u32(&controller->retry_delays, 0);
}

u32 virtual_admin_pending(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 thread)
{
	struct virtual_admin *admin = &controller->admin;

	admin->pending = true;
	admin->pending_sqe = *sqe;
	admin->pending_thread = thread;
	admin->pending_all = false;
	return VIRTUAL_PENDING;
}

u32 virtual_admin_pending_all(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u32 status = virtual_admin_pending(controller, sqe, 0);

	controller->admin.pending_all = true;
	return status;
}

u32 virtual_admin_send(struct weir_virtual *controller, const struct nvme_sqe *sqe, const void *data,
		       u32 bytes)
{
	struct virtual_admin *admin = &controller->admin;
	u32 count, status;

	status = virtual_prp_walk(&controller->threads[0], sqe, bytes, admin->segments, &count);
	if (!status)
		virtual_scatter(data, admin->segments, count);
	return status;
}

u32 virtual_admin_receive(struct weir_virtual *controller, const struct nvme_sqe *sqe, void *data, u32 bytes)
{
	struct virtual_admin *admin = &controller->admin;
	u32 count, status;

	status = virtual_prp_walk(&controller->threads[0], sqe, bytes, admin->segments, &count);
	if (!status)
		virtual_gather(data, admin->segments, count);
	return status;
}

static u32 dispatch(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (commands[i].opcode != (u8)sqe->cdw0)
			continue;
		if (sqe->cdw0 & ADMIN_FLAGS)
			return virtual_refuse(NVME_STATUS_INVALID_FIELD);
		return commands[i].run(controller, sqe, result);
	}
	if (controller->options.engine)
		return virtual_engine_admin(controller, sqe);
	return virtual_refuse(NVME_STATUS_INVALID_OPCODE);
}

static void complete(struct weir_virtual *controller, u32 cid, u32 status, u32 result)
{
	virtual_post(&controller->threads[0], &controller->sqs[0], cid, status, result);
}

static void run_one(struct weir_virtual *controller)
{
	struct virtual_sq *sq = &controller->sqs[0];
	struct nvme_sqe sqe;
	u32 cid, status, result = 0;

	virtual_sq_fetch(sq, &sqe);
	cid = sqe.cdw0 >> 16;
	if (!virtual_sq_claim(sq, cid)) {
		complete(controller, cid, NVME_STATUS_CID_CONFLICT, 0);
		return;
	}
	status = dispatch(controller, &sqe, &result);
	if (status == VIRTUAL_HELD)
		sq->cq->free++; /* promised again when the event comes */
	if (status == VIRTUAL_HELD || status == VIRTUAL_PENDING)
		return;
	virtual_sq_unclaim(sq, cid);
	complete(controller, cid, status, result);
}

static bool pending_answered(const struct weir_virtual *controller)
{
	const struct virtual_admin *admin = &controller->admin;

	return admin->pending_all ? virtual_message_all_acknowledged(controller)
				  : virtual_message_acknowledged(&controller->threads[admin->pending_thread]);
}

static unsigned finish_pending(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	u32 cid = admin->pending_sqe.cdw0 >> 16, result, status;

	if (!admin->pending || !pending_answered(controller))
		return 0;
	admin->pending = false;
	status = virtual_manage_answered(controller, &admin->pending_sqe, &result);
	virtual_sq_unclaim(&controller->sqs[0], cid);
	complete(controller, cid, status, result);
	return 1;
}

unsigned virtual_admin_step(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	unsigned done;

	if (controller->phase != VIRTUAL_ENABLED)
		return 0;
	if (!admin->scan--) {
		admin->scan = SCAN_POLLS;
		virtual_manage_scan(controller);
	}
	virtual_shadow_admin(controller);
	done = finish_pending(controller) + virtual_event_step(controller);
	while (!admin->pending && done < ADMIN_BATCH &&
	       virtual_sq_ready(&controller->threads[0], &controller->sqs[0])) {
		run_one(controller);
		done++;
	}
	return done;
}
