/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c: the life of a command between its ring, or the host, and its response. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "../../backend/error.h"
#include "../opcode.h"
#include "paths.h"

enum { STEP_NS = 5000000 };

static bool is_internal(const struct nvmf_queue *queue, const struct nvmf_request *request)
{
	return request >= queue->internal && request < queue->internal + NVMF_INTERNAL;
}

struct nvmf_request *nvmf_request_of(struct nvmf_queue *queue, u16 cid)
{
	const struct nvmf_queue *home = nvmf_home(queue);
	struct nvmf_request *request = NULL;

	/* What connects queues at another path has no part in a ring. */
	if (home->requests && home->size && (home == queue || queue->nvmf->associated))
		request = &home->requests[cid % home->size];
	if (request && request->state == NVMF_SENT && request->carrier == queue && request->cid == cid &&
	    !request->answered)
		return request;
	for (u32 i = 0; i < NVMF_INTERNAL; i++) {
		request = &queue->internal[i];
		if (request->state == NVMF_SENT && request->cid == cid && !request->answered)
			return request;
	}
	return NULL;
}

/* One more of a ring that @queue's controller has, or one less. */
static void count_carried(struct nvmf_queue *queue, bool more)
{
	queue->carried += more ? 1 : (u32)-1;
	if (queue->id)
		queue->nvmf->under_way += more ? 1 : (u32)-1;
}

void nvmf_request_hold(struct nvmf_request *request)
{
	count_carried(request->carrier, false);
	request->state = NVMF_HELD;
}

void nvmf_request_send(struct nvmf_queue *queue, struct nvmf_request *request)
{
	if (!is_internal(queue, request))
		count_carried(queue, true);
	request->carrier = queue;
	request->state = NVMF_SENT;
	request->received = request->granted = 0;
	request->sending = 0;
	request->answered = request->corrupt = false;
	queue->nvmf->wire->begin(queue, request);
}

/* The controller has not asked for all that it was to write. Hints it may leave where they are. */
static bool is_untaken(const struct nvmf_request *request)
{
	return request->way == NVMF_TO_CONTROLLER && request->granted < request->bytes &&
	       (request->sqe.cdw0 & 0xff) != NVME_OPCODE_DSM;
}

/*
 * What its issuer gets to see: a read that brought too little, or other bytes than were sent, was no success,
 * and neither was a write whose data stayed here.
 */
static u32 status_of(const struct nvmf_request *request)
{
	u32 status = request->cqe.dw3 >> 17;

	if (status)
		return status;
	if (request->corrupt)
		return NVME_STATUS_TRANSIENT_TRANSPORT;
	if ((request->way == NVMF_TO_HOST && request->received < request->bytes) || is_untaken(request))
		return NVME_STATUS_DATA_TRANSFER_ERROR;
	return NVME_STATUS_SUCCESS;
}

static void note_written(const struct nvmf_queue *home, const struct nvmf_request *request)
{
	if (!home->id)
		return;
	if (request->way == NVMF_TO_CONTROLLER)
		count_u64(&home->nvmf->counters.bytes_out, request->bytes);
	if (!weir_opcode_changes((u8)request->sqe.cdw0))
		return;
	home->nvmf->wrote = true;
	store_relaxed_u32(&home->nvmf->registers.changed, 1); /* relaxed: who asks has its completion */
}

static void finish_internal(struct nvmf_queue *queue, struct nvmf_request *request)
{
	request->state = request->waited ? NVMF_SENT : NVMF_FREE;
	if (request == &queue->internal[NVMF_KEEP_ALIVE]) /* any answer will do */
		queue->nvmf->silent_ns = 0;
	else if (request == &queue->internal[NVMF_EVENT] && !(request->cqe.dw3 >> 17))
		queue->nvmf->event = request->cqe.dw0;
	else if (request == &queue->internal[NVMF_STATUS] && !(request->cqe.dw3 >> 17) &&
		 (request->cqe.dw0 & NVME_CSTS_FATAL))
		nvmf_lose(queue->nvmf, "the controller reports a fatal status (CSTS %#x)", request->cqe.dw0);
}

/* The namespace cannot be reached by this path now; the command was not carried out. Base 2.0, section 8.1.3
 */
static bool is_of_path(u32 status)
{
	switch (status & NVME_STATUS_CODE_MASK) {
	case NVME_STATUS_PATH_PERSISTENT_LOSS:
	case NVME_STATUS_PATH_INACCESSIBLE:
	case NVME_STATUS_PATH_TRANSITION: return true;
	default: return false;
	}
}

static bool may_reroute(struct nvmf *nvmf)
{
	u64 now = nvmf_now_ns();

	if (!nvmf->rerouted_ns)
		nvmf->rerouted_ns = now;
	return now - nvmf->rerouted_ns <= nvmf->keys.ctrl_loss_ms * 1000000;
}

/* Hold it, for another path or another time. */
static void reroute(struct nvmf_request *request, u32 status)
{
	static const u32 states[] = { 0, NVME_ANA_PERSISTENT_LOSS, NVME_ANA_INACCESSIBLE, NVME_ANA_CHANGE };
	struct nvmf *nvmf = nvmf_storage(request->carrier);

	nvmf_request_hold(request);
	nvmf_path_set(nvmf, nvmf_host_of(request->carrier), states[status & 3]);
	if (!nvmf->rerouted)
		nvmf->retry_ns = nvmf_now_ns() + (nvmf_takes_commands(request->carrier) ? 0 : NVMF_RETRY_NS);
	nvmf->rerouted = true;
}

/* @request is of @home's ring. */
static void complete(struct nvmf_queue *home, struct nvmf_request *request, u32 status)
{
	count_carried(request->carrier, false);
	if (!home->id && !status)
		nvmf_bridge_end(home, request);
	else if (!status)
		note_written(home, request);
	if (request->resent)
		home->nvmf->resent_open--;
	request->resent = false;
	if (home->id && (!status || (!home->nvmf->resent_open && !home->nvmf->rerouted)))
		home->nvmf->rerouted_ns = 0; /* none is left of those that were rerouted */
	request->state = NVMF_FREE;
	home->inflight--;
	nvmf_ring_post(home, request->cid, request->cqe.dw3 >> 17, request->cqe.dw0, request->cqe.dw1);
}

static void finish(struct nvmf_queue *queue, struct nvmf_request *request)
{
	u32 status = status_of(request);

	request->cqe.dw3 = (request->cqe.dw3 & 0xffff) | status << 17;
	if (is_internal(queue, request))
		finish_internal(queue, request);
	else if (queue->id && is_of_path(status) && may_reroute(nvmf_storage(queue)))
		reroute(request, status);
	else
		complete(nvmf_home(queue), request, status);
}

void nvmf_request_end(struct nvmf_queue *queue, struct nvmf_request *request, const struct nvme_cqe *cqe)
{
	request->cqe = *cqe;
	request->answered = true;
	if (!request->sending)
		finish(queue, request);
}

void nvmf_request_sent(struct nvmf_queue *queue, struct nvmf_request *request)
{
	request->sending--;
	if (!request->sending && request->answered)
		finish(queue, request);
}

void nvmf_command_start(struct nvmf_queue *queue, unsigned which, const struct nvme_sqe *sqe, void *data,
			u32 bytes, enum nvmf_way way)
{
	struct nvmf_request *request = &queue->internal[which];

	*request = (struct nvmf_request){ .sqe = *sqe,
					  .own = { data, bytes },
					  .segment_count = bytes != 0,
					  .bytes = bytes,
					  .cid = (u16)(NVMF_INTERNAL_CID + which),
					  .way = way };
	request->segments = &request->own;
	nvmf_request_send(queue, request);
}

/* The keeper waits for an I/O queue: nobody else sends its Keep Alive, nor reads the answer. */
static bool keep_association(struct nvmf_queue *queue)
{
	struct nvmf *nvmf = queue->nvmf;
	bool moved;

	if (!queue->id || nvmf->storage || !nvmf->associated)
		return false;
	nvmf_keep_alive(nvmf, nvmf_now_ns());
	moved = nvmf_send(&nvmf->queues[0]);
	return nvmf_receive(&nvmf->queues[0]) || moved;
}

/* Of one connection, and the admin queue's beside an I/O queue's, until @request has ended. */
static int wait_for(struct nvmf_queue *queue, const struct nvmf_request *request, const char *what,
		    uint64_t ms)
{
	struct nvmf *nvmf = queue->nvmf;
	uint64_t end_ns = nvmf_now_ns() + ms * 1000000;

	while (!request->answered || request->sending) {
		bool moved = nvmf_send(queue);

		moved = nvmf_receive(queue) || moved;
		moved = keep_association(queue) || moved;
		if (nvmf->lost)
			return weir_fail(EIO, "%s: %s", what, nvmf->reason);
		if (nvmf_stopping(nvmf))
			return weir_fail(ECANCELED, "%s: given up, since the storage is reset or closed",
					 what);
		if (moved)
			continue;
		if (nvmf_now_ns() > end_ns)
			return weir_fail(ETIMEDOUT, "%s: no answer within %llu ms", what,
					 (unsigned long long)ms);
		nvmf_poll(nvmf, STEP_NS);
	}
	return 0;
}

int nvmf_command(struct nvmf_queue *queue, const struct nvme_sqe *sqe, void *data, u32 bytes,
		 enum nvmf_way way, const char *what, struct nvme_cqe *cqe, uint64_t ms)
{
	struct nvmf_request *request = &queue->internal[0];
	int error;

	nvmf_command_start(queue, 0, sqe, data, bytes, way);
	request->waited = true;
	error = wait_for(queue, request, what, ms);
	request->state = NVMF_FREE;
	if (!error) {
		*cqe = request->cqe;
	} else if (!queue->nvmf->lost) { /* a late answer would be one to no command */
		queue->nvmf->silent = error == -ETIMEDOUT;
		nvmf_lose(queue->nvmf, "%s", weir_last_error());
	}
	return error;
}
