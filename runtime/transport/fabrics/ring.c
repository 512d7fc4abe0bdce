/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c: lanes' end of a queue pair: entries of their submission ring to requests, responses to their
 * completion ring.
 *
 * Owns: the belief in doorbell values, PRPs and I/O commands, which are lanes' memory: anything may stand
 * there.
 */
#include <string.h>

#include "../prp.h"
#include "paths.h"

enum { RANGE_BYTES = 16, MOST_RANGES = 256 };

void nvmf_ring_open(struct nvmf_queue *queue, u64 sq, u64 cq, u32 size)
{
	queue->sq = (const unsigned char *)(uintptr_t)sq;
	queue->cq = (struct nvme_cqe *)(uintptr_t)cq;
	queue->size = size;
	queue->head = queue->tail = queue->cq_tail = queue->cq_head = 0;
	queue->cq_free = size - 1;
	queue->phase = 1;
	queue->lost = false;
}

static bool mapped(struct nvmf *nvmf, const void *ring, u64 bytes)
{
	return weir_dma_view_find(&nvmf->view, (u64)(uintptr_t)ring, bytes) != NULL;
}

void nvmf_ring_check(struct nvmf *nvmf)
{
	for (u32 i = 0; i < nvmf->queue_count; i++) {
		struct nvmf_queue *queue = &nvmf->queues[i];

		if (queue->has_sq && !(mapped(nvmf, queue->sq, queue->size * sizeof(struct nvme_sqe)) &&
				       mapped(nvmf, queue->cq, queue->size * sizeof(struct nvme_cqe))))
			queue->lost = true;
	}
}

static u32 distance(u32 from, u32 to, u32 size)
{
	return to >= from ? to - from : to + size - from;
}

/* doorbell.D2: pairs with the lane's store of the CQ head in core/queue/cq.h: it has read the entries that
 * may be overwritten from here on. */
static u32 cq_moved(const struct nvmf_queue *queue)
{
	u32 value = load_acquire_u32(&queue->nvmf->doorbells[2 * queue->id + 1]), moved;

	if (value >= queue->size)
		return 0;
	moved = distance(queue->cq_head, value, queue->size);
	return moved <= distance(queue->cq_head, queue->cq_tail, queue->size) ? moved : 0;
}

static void poll_cq(struct nvmf_queue *queue)
{
	u32 moved = cq_moved(queue);

	if (!moved)
		return;
	queue->cq_free += moved;
	queue->cq_head = (queue->cq_head + moved) % queue->size;
}

/* doorbell.D1: pairs with the lane's store of the SQ tail in core/queue/sq.h: the entries before it, and
 * their memory, are as the lane left them. */
static u32 sq_tail(const struct nvmf_queue *queue)
{
	u32 value = load_acquire_u32(&queue->nvmf->doorbells[2 * queue->id]);

	return value < queue->size ? value : queue->tail;
}

static void poll_sq(struct nvmf_queue *queue)
{
	u32 value = sq_tail(queue);

	if (value == queue->tail)
		return;
	queue->tail = value;
	/* What was taken from the DMA map before the doorbell rang is seen as gone. */
	if (weir_dma_view_refresh(queue->nvmf->dma, &queue->nvmf->view))
		nvmf_ring_check(queue->nvmf);
}

void nvmf_ring_post(struct nvmf_queue *queue, u16 cid, u32 status, u32 dw0, u32 dw1)
{
	struct nvme_cqe *entry = &queue->cq[queue->cq_tail];

	if (queue->lost)
		return;
	entry->dw0 = dw0;
	entry->dw1 = dw1;
	entry->dw2 = queue->head | queue->id << 16;
	/* doorbell.C1: pairs with the acquire load of dw3 in core/queue/cq.h: the rest of the entry and the
	 * command's data come before the phase. */
	__atomic_store_n(&entry->dw3, cid | queue->phase << 16 | status << 17, __ATOMIC_RELEASE);
	if (++queue->cq_tail == queue->size) {
		queue->cq_tail = 0;
		queue->phase ^= 1;
	}
}

struct nvmf_request *nvmf_ring_take(struct nvmf_queue *queue, const struct nvme_sqe *sqe)
{
	u16 cid = (u16)(sqe->cdw0 >> 16);
	u32 index = cid % queue->size, segments = (u32)(queue->nvmf->keys.mdts / NVME_PAGE_BYTES) + 1;
	struct nvmf_request *request = &queue->requests[index];

	if (request->state != NVMF_FREE) {
		nvmf_ring_post(queue, cid, NVME_STATUS_CID_CONFLICT, 0, 0);
		return NULL;
	}
	*request = (struct nvmf_request){ .sqe = *sqe,
					  .segments = queue->segments + (size_t)index * segments,
					  .cid = cid };
	return request;
}

u32 nvmf_ring_data(struct nvmf_queue *queue, struct nvmf_request *request, u32 bytes, enum nvmf_way way)
{
	request->bytes = bytes;
	request->way = (u8)way;
	if (!bytes)
		return NVME_STATUS_SUCCESS;
	if (bytes > queue->nvmf->keys.mdts)
		return NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR;
	return weir_prp_walk(&queue->nvmf->view, queue->nvmf->list, &request->sqe, bytes, request->segments,
			     &request->segment_count);
}

/* What an I/O command carries, by its opcode. Return: an NVMe status. */
static u32 find_data(struct nvmf_queue *queue, struct nvmf_request *request)
{
	const struct nvme_sqe *sqe = &request->sqe;
	u32 log2 = queue->nvmf->controller.block_log2;

	if (sqe->cdw0 & 0xff00u) /* fused, or not by PRPs */
		return NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR;
	switch (sqe->cdw0 & 0xff) {
	case NVME_OPCODE_FLUSH: return nvmf_ring_data(queue, request, 0, NVMF_NO_DATA);
	case NVME_OPCODE_WRITE_ZEROES:
		return sqe->nsid == queue->nvmf->controller.nsid
			       ? 0
			       : NVME_STATUS_INVALID_NAMESPACE | NVME_STATUS_DNR;
	case NVME_OPCODE_DSM:
		return nvmf_ring_data(queue, request, ((sqe->cdw10 & (MOST_RANGES - 1)) + 1) * RANGE_BYTES,
				      NVMF_TO_CONTROLLER);
	case NVME_OPCODE_READ:
	case NVME_OPCODE_WRITE:
	case NVME_OPCODE_COMPARE:
		if (sqe->nsid !=
		    queue->nvmf->controller.nsid) /* only of that one it is known how long blocks are */
			return NVME_STATUS_INVALID_NAMESPACE | NVME_STATUS_DNR;
		return nvmf_ring_data(queue, request, ((sqe->cdw12 & 0xffff) + 1) << log2,
				      (sqe->cdw0 & 0xff) == NVME_OPCODE_READ ? NVMF_TO_HOST
									     : NVMF_TO_CONTROLLER);
	default: return NVME_STATUS_INVALID_OPCODE | NVME_STATUS_DNR;
	}
}

static void begin(struct nvmf_queue *queue, const struct nvme_sqe *sqe, struct nvmf_queue *carrier)
{
	struct nvmf_request *request = nvmf_ring_take(queue, sqe);
	u32 status;

	if (!request)
		return;
	status = find_data(queue, request);
	if (status) {
		nvmf_ring_post(queue, request->cid, status, 0, 0);
		return;
	}
	queue->inflight++;
	if (nvmf_must_wait(queue->nvmf, request))
		request->state = NVMF_HELD;
	else
		nvmf_carry(carrier, request);
}

/* By which queue the next command goes; NULL: none is taken now. */
static struct nvmf_queue *ready(struct nvmf_queue *queue)
{
	if (queue->head == queue->tail)
		poll_sq(queue);
	if (queue->cq_free <= queue->size / 2)
		poll_cq(queue);
	if (queue->nvmf->moving || (queue->id && queue->nvmf->resent_open))
		return NULL;
	if (queue->head == queue->tail || !queue->cq_free || queue->lost || !queue->connection.open)
		return NULL;
	return nvmf_carrier(queue);
}

unsigned nvmf_ring_fetch(struct nvmf_queue *queue)
{
	struct nvmf_queue *carrier;
	unsigned count = 0;

	while (queue->has_sq && count < queue->size && (carrier = ready(queue))) {
		struct nvme_sqe sqe;

		memcpy(&sqe, queue->sq + (size_t)queue->head * sizeof(sqe), sizeof(sqe));
		__asm__ volatile("" ::: "memory"); /* keeps the compiler from reading the ring twice */
		queue->head = queue->head + 1 == queue->size ? 0 : queue->head + 1;
		queue->cq_free--;
		count++;
		if (queue->id)
			begin(queue, &sqe, carrier);
		else
			nvmf_bridge_begin(queue, &sqe);
	}
	return count;
}

bool nvmf_ring_rung(const struct nvmf_queue *queue)
{
	if (!queue->has_sq || !queue->connection.open)
		return false;
	if (queue->head == queue->tail)
		return sq_tail(queue) != queue->tail;
	return !queue->cq_free && cq_moved(queue);
}
