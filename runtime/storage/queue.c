/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: their memory, their structure, the controller's side. */
#include <string.h>

#include <weir/core/queue/sq.h>

#include "../device/context.h"
#include "doorbells.h"
#include "../backend/window.h"

enum { RECORDS_AT_ONCE = 128 };

static uint64_t pages(uint64_t bytes)
{
	return (bytes + NVME_PAGE_BYTES - 1) & ~(uint64_t)(NVME_PAGE_BYTES - 1);
}

/* PRP entries a list needs: every page but the first, if the buffer is not aligned. */
static uint32_t prp_entries(uint32_t max_transfer_bytes)
{
	return max_transfer_bytes / NVME_PAGE_BYTES;
}

static uint64_t ring_bytes(uint32_t depth, uint32_t max_transfer_bytes)
{
	return pages((uint64_t)depth * sizeof(struct nvme_sqe)) +
	       pages((uint64_t)depth * sizeof(struct nvme_cqe)) +
	       pages((uint64_t)depth * prp_entries(max_transfer_bytes) * NVME_PRP_BYTES);
}

/* Slots, and behind them their records. */
static uint64_t slots_bytes(uint32_t depth)
{
	return (uint64_t)depth * (sizeof(struct weir_slot) + sizeof(struct weir_retry_record));
}

bool weir_queue_has_records(const struct weir_storage *storage, uint32_t index)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_retry_record records[RECORDS_AT_ONCE];
	uint64_t first = storage->slots[index] + (uint64_t)storage->depth * sizeof(struct weir_slot);
	bool some = false;

	for (uint32_t i = 0; storage->slots[index] && !some && i < storage->depth; i += RECORDS_AT_ONCE) {
		uint32_t left = storage->depth - i, count = left < RECORDS_AT_ONCE ? left : RECORDS_AT_ONCE;

		some = backend->ops->d2h(backend, records, first + i * sizeof(records[0]),
					 count * sizeof(records[0])) != 0;
		for (uint32_t k = 0; !some && k < count; k++) /* relaxed: the host's own copy */
			some = weir_load_u64_relaxed_sys(&records[k].event) != 0;
	}
	return some;
}

uint64_t weir_queue_cq_offset(uint32_t depth)
{
	return pages((uint64_t)depth * sizeof(struct nvme_sqe));
}

uint64_t weir_queue_memory_bytes(uint32_t depth, uint32_t max_transfer_bytes, bool pull)
{
	return ring_bytes(depth, max_transfer_bytes) + pages(slots_bytes(depth)) + sizeof(struct weir_queue) +
	       (pull ? (uint64_t)depth * max_transfer_bytes : 0);
}

static uint32_t log2_of(uint64_t power)
{
	return (uint32_t)__builtin_ctzll(power);
}

unsigned weir_queue_id(const struct weir_storage *storage, uint32_t index)
{
	const struct weir_transport_ops *ops = storage->transport->ops;

	return ops->queue_id ? ops->queue_id(storage->transport, index) : index + 1;
}

/* Let the transport know of a pair, where it has to. */
static int adopt(const struct weir_storage *storage, uint32_t index)
{
	struct weir_transport *transport = storage->transport;
	uint64_t sq = storage->rings[index];

	if (!transport->ops->adopt)
		return 0;
	return transport->ops->adopt(
		transport, &(struct weir_rings){ .index = index,
						 .sq = sq,
						 .sq_bytes = storage->depth * sizeof(struct nvme_sqe),
						 .cq = sq + weir_queue_cq_offset(storage->depth),
						 .cq_bytes = storage->depth * sizeof(struct nvme_cqe) });
}

/* What lanes see of the pair: addresses and counters that start at @first_ticket. */
static void describe(const struct weir_storage *storage, uint32_t index, uint64_t first_ticket,
		     uint32_t max_transfer_bytes, struct weir_queue *queue)
{
	uint32_t depth = storage->depth;
	uint32_t doorbell = storage->transport->doorbell_bytes;
	unsigned id = weir_queue_id(storage, index);

	memset(queue, 0, sizeof(*queue));
	queue->sq = storage->rings[index];
	queue->cq = queue->sq + weir_queue_cq_offset(depth);
	queue->prp_lists = queue->cq + pages((uint64_t)depth * sizeof(struct nvme_cqe));
	queue->slots = storage->slots[index];
	queue->records = queue->slots + (uint64_t)depth * sizeof(struct weir_slot);
	queue->retry = storage->disk.retry;
	queue->sq_doorbell = weir_doorbells_at(storage, index, 0);
	queue->cq_doorbell = weir_doorbells_at(storage, index, 1);
	queue->shadow = storage->shadow_memory && !weir_doorbells_forwarded(storage)
				? storage->shadow_memory + 2 * id * doorbell
				: 0;
	queue->depth = depth;
	queue->depth_log2 = log2_of(depth);
	queue->prp_entries = prp_entries(max_transfer_bytes);
	queue->nsid = storage->space.nsid;
	queue->block_log2 = storage->space.block_log2;
	queue->path = storage->pull ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	queue->staging = storage->pull ? storage->staging[index] : 0;
	queue->medium = storage->places ? storage->medium_memory : 0;
	queue->staging_log2 = log2_of(max_transfer_bytes);
	queue->doorbell_kind =
		storage->transport->device_controller.on ? WEIR_DOORBELL_DEVICE : WEIR_DOORBELL_BUS;
	queue->id = id;
	queue->bus_offset = storage->transport->bus_offset;
	if (storage->transport->window) {
		queue->window = WEIR_ADDR(storage->transport->window->host);
		queue->window_bytes = storage->transport->window->bytes;
	}
	weir_store_u64_relaxed_sys(&queue->tail, first_ticket);
	weir_store_u64_relaxed_sys(&queue->committed, first_ticket);
	weir_store_u64_relaxed_sys(&queue->reap, first_ticket << 1);
	weir_store_u64_relaxed_sys(&queue->rung, first_ticket);
}

/* Slots begin free for the turn of @first_ticket. */
static int fill_slots(struct weir_storage *storage, uint32_t index, uint64_t first_ticket)
{
	struct weir_backend *backend = storage->context->backend;
	uint32_t iteration = (uint32_t)((first_ticket >> log2_of(storage->depth)) << 1);

	for (uint32_t i = 0; iteration && i < storage->depth; i++) {
		struct weir_slot slot;
		int error;

		memset(&slot, 0, sizeof(slot));
		weir_store_u32_relaxed_sys(&slot.sequence, iteration);
		error = backend->ops->h2d(backend, storage->slots[index] + i * sizeof(slot), &slot,
					  sizeof(slot));
		if (error)
			return error;
	}
	return 0;
}

int weir_queue_create(struct weir_storage *storage, uint32_t index, uint64_t first_ticket,
		      uint32_t max_transfer_bytes)
{
	struct weir_context *context = storage->context;
	struct weir_queue queue;
	bool device_controller = storage->transport->device_controller.on;
	bool on_device = device_controller || storage->transport->gpu_memory == WEIR_GPU_MEMORY_QUEUES;
	int error = weir_memory_allocate(context, ring_bytes(storage->depth, max_transfer_bytes),
					 on_device ? WEIR_MEMORY_DEVICE : WEIR_MEMORY_HOST,
					 &storage->rings[index], NULL);

	if (!error && storage->pull)
		error = weir_memory_allocate(context, (size_t)storage->depth * max_transfer_bytes,
					     WEIR_MEMORY_HOST, &storage->staging[index], NULL);
	if (!error)
		error = weir_memory_get(context, slots_bytes(storage->depth), &storage->slots[index]);
	if (!error)
		error = fill_slots(storage, index, first_ticket);
	if (!error)
		error = adopt(storage, index);
	if (error)
		return error;
	weir_doorbells_add(storage, index);
	describe(storage, index, first_ticket, max_transfer_bytes, &queue);
	error = context->backend->ops->h2d(
		context->backend, storage->queues + index * sizeof(struct weir_queue), &queue, sizeof(queue));
	if (error || device_controller) /* a controller on the device is told of all queues at once */
		return error;
	if (!error)
		error = weir_admin_create_queue(&storage->admin, queue.id, storage->depth, queue.sq,
						queue.cq);
	if (!error)
		storage->created++;
	return error;
}
