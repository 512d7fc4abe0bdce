/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_move.c: capsules out, responses in.
 *
 * Owns: how a request's data is described. The controller reads and writes it by itself, where lanes have it;
 * data in several pieces, or in memory that no device may reach, goes through the slot's. NVMe/RDMA
 * Transport 1.0, section 3.3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "rdma_queue.h"

enum { COMPLETIONS = 32, COPY_ALIGN = 4096 };

static u32 slot_of(const struct nvmf_queue *queue, const struct nvmf_request *request)
{
	u32 rings = queue->connection.rdma->count - NVMF_INTERNAL;

	return request >= queue->internal && request < queue->internal + NVMF_INTERNAL
		       ? rings + (u32)(request - queue->internal)
		       : (u32)(request - nvmf_requests(queue));
}

static struct nvmf_request *request_in(struct nvmf_queue *queue, u32 slot)
{
	u32 rings = queue->connection.rdma->count - NVMF_INTERNAL;

	return slot >= rings ? &queue->internal[slot - rings] : &nvmf_requests(queue)[slot];
}

static int receive_at(struct nvmf_rdma_queue *rdma, u32 index)
{
	return weir_rdma_receive(&rdma->link, rdma->count + index, &rdma->responses[index],
				 sizeof(*rdma->responses), rdma->responses_region->lkey);
}

int nvmf_rdma_receive_all(struct nvmf_rdma_queue *rdma)
{
	int error = 0;

	for (u32 i = 0; i < rdma->count && !error; i++)
		error = receive_at(rdma, i);
	return error;
}

/* ---- data ---- */

/* Its data is one piece of registered memory. */
static bool find_key(const struct nvmf_queue *queue, const struct nvmf_request *request, u32 *key)
{
	const struct iovec *first = request->segments;
	const char *end = first->iov_base;

	for (u32 i = 0; i < request->segment_count; i++) {
		if (request->segments[i].iov_base != end)
			return false;
		end += request->segments[i].iov_len;
	}
	return nvmf_rdma_memory_key(queue->nvmf->memory, (uintptr_t)first->iov_base, request->bytes, key);
}

static bool make_room(const struct nvmf_queue *queue, struct nvmf_rdma_slot *slot, u32 bytes)
{
	u32 rounded = (bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;

	if (slot->region && bytes <= slot->bytes)
		return true;
	if (slot->region)
		(void)ibv_dereg_mr(slot->region);
	free(slot->copy);
	slot->bytes = rounded;
	slot->region = NULL;
	slot->copy = aligned_alloc(COPY_ALIGN, rounded);
	if (slot->copy)
		slot->region =
			ibv_reg_mr(nvmf_rdma_memory_domain(queue->nvmf->memory), slot->copy, rounded,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return slot->region;
}

/* Between the request's memory and @at. */
static void copy(const struct nvmf_request *request, u8 *at, bool to_request)
{
	for (u32 i = 0; i < request->segment_count; i++) {
		const struct iovec *part = &request->segments[i];

		memcpy(to_request ? part->iov_base : at, to_request ? at : part->iov_base, part->iov_len);
		at += part->iov_len;
	}
}

static bool describe(struct nvmf_queue *queue, struct nvmf_request *request, struct nvmf_rdma_slot *slot,
		     struct nvme_sqe *sqe)
{
	u32 key;

	if (find_key(queue, request, &key)) {
		weir_rdma_put_keyed(sqe, (uintptr_t)request->segments[0].iov_base, request->bytes, key);
		return true;
	}
	if (!make_room(queue, slot, request->bytes))
		return false;
	slot->copied = true;
	if (request->way == NVMF_TO_CONTROLLER)
		copy(request, slot->copy, false);
	weir_rdma_put_keyed(sqe, (uintptr_t)slot->copy, request->bytes, slot->region->rkey);
	return true;
}

/* The capsule in its slot. Return: its bytes; 0: no memory. */
static u32 fill(struct nvmf_queue *queue, struct nvmf_request *request, u32 index)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;
	u8 *capsule = rdma->capsules + (size_t)index * rdma->capsule_bytes;
	struct nvme_sqe sqe = nvmf_capsule(request);
	bool inside = request->way == NVMF_TO_CONTROLLER && request->bytes <= queue->connection.capsule_data;
	const struct nvme_sgl within = { .bytes = request->bytes, .type = NVME_SGL_DATA_BLOCK_OFFSET };

	rdma->slots[index].copied = false;
	if (!request->bytes)
		weir_rdma_put_keyed(&sqe, 0, 0, 0);
	else if (inside)
		memcpy(&sqe.prp1, &within, sizeof(within));
	else if (!describe(queue, request, &rdma->slots[index], &sqe))
		return 0;
	memcpy(capsule, &sqe, sizeof(sqe));
	if (inside)
		copy(request, capsule + sizeof(sqe), false);
	return (u32)sizeof(sqe) + (inside ? request->bytes : 0);
}

void nvmf_rdma_begin(struct nvmf_queue *queue, struct nvmf_request *request)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;
	u32 index = slot_of(queue, request);
	struct ibv_sge part = { .addr = (uintptr_t)rdma->capsules + (u64)index * rdma->capsule_bytes };
	struct ibv_send_wr capsule = { .wr_id = index,
				       .sg_list = &part,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	int error = ENOTCONN;

	if (queue->connection.open) {
		part.length = fill(queue, request, index);
		part.lkey = rdma->capsules_region->lkey;
		error = part.length ? ibv_post_send(rdma->link.id->qp, &capsule, &bad) : ENOMEM;
	}
	request->granted = request->bytes; /* the controller reads them without a word */
	if (error)
		nvmf_lose(queue->nvmf, "a command could not be sent by RDMA: %s", strerror(error));
	else
		request->sending++;
}

/* ---- completions ---- */

/* What a read brought is there before its response; RDMA does not count it. */
static void end(struct nvmf_queue *queue, struct nvmf_request *request, const struct nvme_cqe *cqe)
{
	const struct nvmf_rdma_slot *slot = &queue->connection.rdma->slots[slot_of(queue, request)];

	if (request->way == NVMF_TO_HOST && !(cqe->dw3 >> 17)) {
		if (slot->copied)
			copy(request, slot->copy, true);
		request->received = request->bytes;
		if (queue->id)
			count_u64(&nvmf_storage(queue)->counters.bytes_in, request->bytes);
	}
	nvmf_request_end(queue, request, cqe);
}

static void take_response(struct nvmf_queue *queue, u32 index, u32 bytes)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;
	struct nvme_cqe cqe = rdma->responses[index];
	struct nvmf_request *request = nvmf_request_of(queue, (u16)cqe.dw3);

	if (bytes != sizeof(cqe))
		nvmf_lose(queue->nvmf, "the controller sent a response of %u bytes to queue %u", bytes,
			  queue->id);
	else if (!request)
		nvmf_lose(queue->nvmf, "the controller sent a response to no command to queue %u", queue->id);
	else if (receive_at(rdma, index) != 0)
		nvmf_lose(queue->nvmf, "queue %u's connection takes no more responses", queue->id);
	else
		end(queue, request, &cqe);
}

static void complete(struct nvmf_queue *queue, const struct ibv_wc *completion)
{
	const struct nvmf_rdma_queue *rdma = queue->connection.rdma;

	if (completion->status != IBV_WC_SUCCESS)
		nvmf_lose(queue->nvmf, "queue %u's connection broke: %s", queue->id,
			  ibv_wc_status_str(completion->status));
	else if (completion->wr_id < rdma->count)
		nvmf_request_sent(queue, request_in(queue, (u32)completion->wr_id));
	else
		take_response(queue, (u32)completion->wr_id - rdma->count, completion->byte_len);
}

static void take_events(struct nvmf_queue *queue)
{
	struct weir_rdma_link *link = &queue->connection.rdma->link;
	struct rdma_cm_event *event;

	queue->connection.readable = false;
	while (rdma_get_cm_event(link->events, &event) == 0) {
		enum rdma_cm_event_type type = event->event;

		(void)rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT)
			nvmf_lose(queue->nvmf, "the controller closed queue %u's connection", queue->id);
		else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			nvmf_lose(queue->nvmf, "the RDMA device of queue %u's connection is gone", queue->id);
	}
}

/* What came before an end is taken before that is noticed. */
bool nvmf_rdma_receive(struct nvmf_queue *queue)
{
	struct weir_rdma_link *link = &queue->connection.rdma->link;
	struct ibv_wc completions[COMPLETIONS];
	bool any = false, notified = queue->connection.readable;
	int count;

	if (notified)
		weir_rdma_notified(link);
	while (!queue->nvmf->lost && (count = weir_rdma_poll(link, completions, COMPLETIONS)) != 0) {
		if (count < 0)
			nvmf_lose(queue->nvmf, "queue %u's completions cannot be read", queue->id);
		for (int i = 0; i < count && !queue->nvmf->lost; i++)
			complete(queue, &completions[i]);
		any = true;
	}
	if (notified && !queue->nvmf->lost)
		take_events(queue);
	return any;
}
