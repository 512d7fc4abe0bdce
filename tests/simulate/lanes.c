/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/lanes.c: a client whose lanes place blocks themselves: a virtual controller in front of the
 * volume, and rings to engines.
 *
 * Owns: what stands in the place of storages, of contexts, and of the transport that brings commands from
 * rings to engines. The controller, the placing, the core that lanes run, and what tells lanes of maps and
 * leases are the product's.
 */
#include "lanes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "device/context.h"
#include "storage/admin.h"
#include "storage/closed.h"
#include "storage/dma.h"
#include "transport/virtual/virtual.h"

enum {
	LEAST_DEPTH_LOG2 = 2,
	MOST_DEPTH_LOG2 = 4,
	MOST_DEPTH = 1 << MOST_DEPTH_LOG2,
	QUEUE = 1, /* its number */
	PRP_ENTRIES = 8,
	AGAIN_MS = 500,
	ANSWER_MS = 8000, /* as of struct weir_lanes_options' storages */
	POLL_MS = 5,
	LANE_TIMEOUT_S = 100,
	FEW_ONCE_OF = 20,
	SOME_ONCE_OF = 2,
	RESET_OF = 120, /* times that there are commands */
};

/** struct memory - of one queue pair; pages that the controller takes addresses of come first */
struct memory {
	struct nvme_sqe sq[NVME_PAGE_BYTES / sizeof(struct nvme_sqe)] __attribute__((aligned(4096)));
	struct nvme_cqe cq[NVME_PAGE_BYTES / sizeof(struct nvme_cqe)];
	u64 lists[MOST_DEPTH][PRP_ENTRIES] __attribute__((aligned(4096)));
	struct weir_slot slots[MOST_DEPTH] __attribute__((aligned(64)));
	struct weir_retry_record records[MOST_DEPTH];
	u32 doorbells[2];
};

/**
 * struct ring - a queue pair to an engine, and who brings its commands there
 * @flying: of each slot, since when; 0: nothing
 * @ended: its task has
 */
struct ring {
	struct weir_storage storage; /* as runtime/volume/lanes.c sees it */
	struct client_lanes *lanes;
	struct engine_node *engine;
	struct weir_queue *queue;
	struct memory memory;
	struct sim_connection *connection;
	struct sim_task *task;
	u64 flying[MOST_DEPTH];
	u32 head;
	u32 cq_tail;
	u32 phase;
	bool closing;
	bool ended;
	struct ring *next;
};

/** struct client_lanes - @front, @queue, @memory: the volume's own controller; @rings: of engines; @once_of:
 * requests, of which one is not tried again */
struct client_lanes {
	struct client *client;
	struct weir_transport front;
	struct weir_virtual *controller;
	struct weir_dma_map *dma;
	struct weir_admin admin;
	u8 *admin_memory;
	struct weir_backend backend;
	struct weir_context context;
	struct weir_storage storage;
	struct weir_queue *queue;
	struct memory *memory;
	struct ring *rings;
	struct sim_task *poller;
	struct weir_event events[MOST_OPS];
	struct sim_task *lanes[MOST_OPS];
	u64 once_of;
	bool closing;
	bool poller_ended;
};

int __wrap_weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address);
int __wrap_weir_memory_put(struct weir_context *context, uint64_t address);
int __wrap_weir_storage_open_at(struct weir_context *context, const char *uri,
				const struct weir_storage_options *options, uint64_t queues,
				struct weir_storage **out);
int __wrap_weir_storage_shut(struct weir_storage *storage);

static void *zeros(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!memory)
		abort();
	return memset(memory, 0, bytes);
}

/* ---- memory and storages ---- */

static int copy_to(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	(void)backend;
	memcpy((void *)(uintptr_t)device, host, bytes);
	return 0;
}

static int copy_from(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	memcpy(host, (const void *)(uintptr_t)device, bytes);
	return 0;
}

static const struct weir_backend_ops backend_ops = { .h2d = copy_to, .d2h = copy_from };

int __wrap_weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address)
{
	(void)context;
	*address = (uintptr_t)zeros(bytes);
	return 0;
}

int __wrap_weir_memory_put(struct weir_context *context, uint64_t address)
{
	(void)context;
	free((void *)(uintptr_t)address);
	return 0;
}

/* As runtime/storage/queue.c describes one. */
static void lay_out(struct weir_queue *queue, struct memory *memory, u32 id, u32 depth_log2)
{
	*queue = (struct weir_queue){ .sq = (uintptr_t)memory->sq,
				      .cq = (uintptr_t)memory->cq,
				      .slots = (uintptr_t)memory->slots,
				      .records = (uintptr_t)memory->records,
				      .prp_lists = (uintptr_t)memory->lists,
				      .sq_doorbell = (uintptr_t)&memory->doorbells[0],
				      .cq_doorbell = (uintptr_t)&memory->doorbells[1],
				      .depth = 1u << depth_log2,
				      .depth_log2 = depth_log2,
				      .prp_entries = PRP_ENTRIES,
				      .nsid = 1,
				      .block_log2 = NVME_VOLUME_BLOCK_LOG2,
				      .path = WEIR_PATH_DIRECT,
				      .id = id };
}

/* ---- rings to engines ---- */

static void wake_lanes(struct client_lanes *lanes)
{
	for (u32 i = 0; i < MOST_OPS; i++)
		if (lanes->client->ops[i].used)
			sim_wake(lanes->lanes[i]);
}

static void post(struct ring *ring, u32 cid, u32 status)
{
	struct nvme_cqe *entry = &ring->memory.cq[ring->cq_tail];

	ring->flying[cid & (ring->queue->depth - 1)] = 0;
	entry->dw2 = ring->head | ring->queue->id << 16;
	entry->dw3 = (cid & 0xffff) | ring->phase << 16 | status << 17;
	if (++ring->cq_tail == ring->queue->depth) {
		ring->cq_tail = 0;
		ring->phase ^= 1;
	}
	wake_lanes(ring->lanes);
}

static bool fetch(struct ring *ring)
{
	u32 depth = ring->queue->depth;
	bool any = ring->head != ring->memory.doorbells[0];

	for (; ring->head != ring->memory.doorbells[0]; ring->head = (ring->head + 1) % depth) {
		const struct nvme_sqe *sqe = &ring->memory.sq[ring->head];
		struct sim_message *message = sim_message(ring->connection, true);

		message->sqe = *sqe;
		client_take_data(message);
		ring->flying[sqe->cdw0 >> 16 & (depth - 1)] = sim.now;
		sim_send(message);
	}
	return any;
}

static void take_answers(struct ring *ring)
{
	struct sim_message *reply;

	while ((reply = sim_take(ring->connection)) != NULL) {
		if (reply->data)
			client_give_data(ring->lanes->client, reply,
					 (const void *)(uintptr_t)reply->sqe.prp1);
		post(ring, reply->sqe.cdw0 >> 16, reply->status);
		sim_message_free(reply);
	}
}

static bool is_lost(const struct ring *ring)
{
	bool late = false;

	for (u32 i = 0; i < ring->queue->depth; i++)
		late |= ring->flying[i] && sim.now - ring->flying[i] > ANSWER_MS * SIM_MS;
	return late || ring->connection->lost;
}

/* Nothing comes any more. What was under way fails, or, where the storage is given up, lanes end it. */
static void lose(struct ring *ring)
{
	bool dies = sim_chance(1, 4);

	sim_trace("the ring of client %llu to engine %llu is lost, dies %llu",
		  (unsigned long long)ring->lanes->client->node.id, (unsigned long long)ring->engine->node.id,
		  (unsigned long long)dies);
	sim_disconnect(ring->connection);
	ring->connection = NULL;
	if (dies)
		ring->queue->dead.value_ = WEIR_E_CLOSED;
	for (u32 i = 0; i < ring->queue->depth && !dies; i++)
		if (ring->flying[i])
			post(ring, ring->memory.sq[i].cdw0 >> 16, NVME_STATUS_PATH_INTERNAL);
	wake_lanes(ring->lanes);
}

/* Where no engine is reached, commands fail: they were not sent. */
static void refuse_all(struct ring *ring)
{
	while (ring->head != ring->memory.doorbells[0]) {
		u32 cid = ring->memory.sq[ring->head].cdw0 >> 16;

		ring->head = (ring->head + 1) % ring->queue->depth;
		post(ring, cid, NVME_STATUS_PATH_INTERNAL);
	}
}

static bool is_reset(const struct ring *ring)
{
	return !cluster.quiet && ring->head != ring->memory.doorbells[0] && sim_chance(1, RESET_OF);
}

static void move(struct ring *ring)
{
	bool fetched;

	if (!ring->connection) {
		ring->connection = sim_connect(&ring->engine->node, ENGINE_CONNECT_MS * SIM_MS);
		if (!ring->connection) {
			refuse_all(ring);
			sim_sleep(sim_between(1, AGAIN_MS) * SIM_MS);
			return;
		}
		ring->connection->waiter = ring->task;
	}
	if (is_reset(ring)) {
		lose(ring);
		if (!ring->queue->dead.value_)
			refuse_all(ring);
		return;
	}
	fetched = fetch(ring);
	take_answers(ring);
	if (is_lost(ring))
		lose(ring);
	else if (!fetched)
		sim_sleep(POLL_MS * SIM_MS);
}

static void run_ring(void *argument)
{
	struct ring *ring = argument;

	while (!ring->closing)
		if (ring->queue->dead.value_)
			sim_sleep(SIM_S);
		else
			move(ring);
	ring->ended = true;
	ring->task = NULL;
}

int __wrap_weir_storage_open_at(struct weir_context *context, const char *uri,
				const struct weir_storage_options *options, uint64_t queues,
				struct weir_storage **out)
{
	struct client_lanes *lanes =
		(struct client_lanes *)((char *)context - offsetof(struct client_lanes, context));
	struct ring *ring;

	if (options->queues != 1)
		abort();
	if (sim_chance(1, 12))
		return -ENOTCONN;
	ring = zeros(sizeof(*ring));
	*ring = (struct ring){ .lanes = lanes,
			       .engine = engine_node_at(uri),
			       .queue = (struct weir_queue *)(uintptr_t)queues,
			       .phase = 1,
			       .next = lanes->rings };
	ring->storage.disk.queue_count = 1;
	ring->storage.disk.block_log2 = NVME_VOLUME_BLOCK_LOG2;
	ring->storage.disk.max_blocks = options->max_transfer_bytes >> NVME_VOLUME_BLOCK_LOG2;
	lay_out(ring->queue, &ring->memory, QUEUE, (u32)sim_between(LEAST_DEPTH_LOG2, MOST_DEPTH_LOG2));
	lanes->rings = ring;
	ring->task = sim_spawn(&lanes->client->node, run_ring, ring);
	*out = &ring->storage;
	return 0;
}

int __wrap_weir_storage_shut(struct weir_storage *storage)
{
	struct ring *ring = (struct ring *)storage, **at = &ring->lanes->rings;

	ring->closing = true;
	while (sim.current && !ring->ended) {
		sim_wake(ring->task);
		sim_sleep(SIM_MS);
	}
	sim_disconnect(ring->connection);
	while (*at != ring)
		at = &(*at)->next;
	*at = ring->next;
	free(ring);
	return 0;
}

/* ---- the volume's own controller ---- */

static struct client_lanes *lanes_of(struct weir_transport *front)
{
	return (struct client_lanes *)((char *)front - offsetof(struct client_lanes, front));
}

static uint64_t front_read64(struct weir_transport *front, uint32_t offset)
{
	return weir_virtual_read64(lanes_of(front)->controller, offset);
}

static uint32_t front_read32(struct weir_transport *front, uint32_t offset)
{
	return weir_virtual_read32(lanes_of(front)->controller, offset);
}

static void front_write64(struct weir_transport *front, uint32_t offset, uint64_t value)
{
	weir_virtual_write64(lanes_of(front)->controller, offset, value);
}

static void front_write32(struct weir_transport *front, uint32_t offset, uint32_t value)
{
	weir_virtual_write32(lanes_of(front)->controller, offset, value);
}

static uint64_t front_doorbell(struct weir_transport *front, unsigned index)
{
	return (uintptr_t)(weir_virtual_doorbells(lanes_of(front)->controller) + index);
}

static const struct weir_transport_ops front_ops = { .size = sizeof(front_ops),
						     .scheme = "vol",
						     .read64 = front_read64,
						     .read32 = front_read32,
						     .write64 = front_write64,
						     .write32 = front_write32,
						     .doorbell = front_doorbell };

static void poll(void *argument)
{
	struct client_lanes *lanes = argument;

	while (!lanes->closing) {
		if (weir_virtual_poll(lanes->controller, 0))
			wake_lanes(lanes);
		sim_sleep(POLL_MS * SIM_MS);
	}
	lanes->poller_ended = true;
	lanes->poller = NULL;
}

static int create_queue(struct client_lanes *lanes)
{
	u32 depth_log2 = (u32)sim_between(LEAST_DEPTH_LOG2, MOST_DEPTH_LOG2);
	unsigned granted;
	int error = weir_admin_enable(&lanes->admin, &lanes->front, lanes->admin_memory,
				      (uintptr_t)lanes->admin_memory);

	lay_out(lanes->queue, lanes->memory, QUEUE, depth_log2);
	lanes->queue->sq_doorbell = front_doorbell(&lanes->front, 2 * QUEUE);
	lanes->queue->cq_doorbell = front_doorbell(&lanes->front, 2 * QUEUE + 1);
	if (!error)
		error = weir_admin_queue_count(&lanes->admin, 1, &granted);
	return error ? error
		     : weir_admin_create_queue(&lanes->admin, QUEUE, lanes->queue->depth, lanes->queue->sq,
					       lanes->queue->cq);
}

static void describe(struct client_lanes *lanes, const struct weir_medium *medium)
{
	lanes->backend.ops = &backend_ops;
	lanes->context = (struct weir_context){ .backend = &lanes->backend, .shared_memory = true };
	lanes->storage.context = &lanes->context;
	lanes->storage.uri = lanes->client->name;
	lanes->storage.queues = (uintptr_t)lanes->queue;
	lanes->storage.depth = lanes->queue->depth;
	lanes->storage.disk = (struct weir_disk){ .abi_version = WEIR_ABI_VERSION,
						  .queues = (uintptr_t)lanes->queue,
						  .queue_count = 1,
						  .block_log2 = NVME_VOLUME_BLOCK_LOG2,
						  .blocks = medium->bytes / NVME_VOLUME_BLOCK_BYTES,
						  .max_blocks = MOST_OP_BLOCKS,
						  .flags = lanes->client->writes ? 0 : WEIR_DISK_READ_ONLY,
						  .timeout_ns = LANE_TIMEOUT_S * SIM_S };
}

static void create_controller(struct client_lanes *lanes, struct weir_medium *medium)
{
	const struct weir_virtual_options options = { .size = sizeof(options),
						      .medium = medium,
						      .dma = lanes->dma,
						      .threads = 1,
						      .max_queue_pairs = 1,
						      .max_queue_entries = MOST_DEPTH };

	if (weir_virtual_create(&options, &lanes->controller) != 0)
		abort();
	lanes->front.ops = &front_ops;
	lanes->front.doorbell_bytes = sizeof(u32);
}

void client_lanes_open(struct client *client)
{
	struct client_lanes *lanes = zeros(sizeof(*lanes));

	*lanes = (struct client_lanes){ .client = client,
					.once_of = sim_chance(1, 3) ? SOME_ONCE_OF : FEW_ONCE_OF,
					.queue = zeros(sizeof(struct weir_queue)),
					.memory = zeros(sizeof(struct memory)),
					.admin_memory = zeros(WEIR_ADMIN_MEMORY_BYTES) };
	client->lanes = lanes;
	if (weir_dma_map_create(&lanes->dma) ||
	    weir_dma_map_add(lanes->dma, lanes->admin_memory, WEIR_ADMIN_MEMORY_BYTES) ||
	    weir_dma_map_add(lanes->dma, lanes->memory, sizeof(struct memory)))
		abort();
	for (u32 i = 0; i < MOST_OPS; i++)
		if (weir_dma_map_add(lanes->dma, client_data(&client->ops[i]), MOST_OP_BYTES) != 0)
			abort();
	create_controller(lanes, client->medium);
	lanes->poller = sim_spawn(&client->node, poll, lanes);
	if (create_queue(lanes) != 0)
		abort();
	describe(lanes, client->medium);
	if (weir_closed_prepare(&lanes->context) ||
	    volume_attach(weir_volume_from(client->medium), &lanes->storage))
		abort();
	sim_trace("client %llu has lanes", (unsigned long long)client->node.id);
}

void client_lanes_close(struct client_lanes *lanes, struct weir_medium *medium)
{
	volume_detach(weir_volume_from(medium));
	lanes->closing = true;
	while (sim.current && !lanes->poller_ended) {
		sim_wake(lanes->poller);
		sim_sleep(SIM_MS);
	}
	if (!sim.current) { /* it was killed: what a controller was doing ends nowhere */
		medium->ops->close(medium);
		return;
	}
	weir_virtual_destroy(lanes->controller); /* and the medium */
	weir_dma_map_destroy(lanes->dma);
	free(lanes->memory);
	free((void *)(uintptr_t)lanes->context.fault);
	free(lanes->queue);
	free(lanes->admin_memory);
	free(lanes);
}

struct sim_task *client_lanes_poller(const struct client *client)
{
	return client->lanes ? client->lanes->poller : NULL;
}

/* ---- lanes ---- */

/* The lanes that the current task is one of. */
static struct client_lanes *current_lanes(void)
{
	return ((struct op *)sim.current->argument)->client->lanes;
}

u64 lane_map(void)
{
	const struct client_lanes *lanes = current_lanes();

	return ((const struct weir_placed *)(uintptr_t)lanes->queue->volume)->map.value_;
}

void lane_rang(void *address, u32 value)
{
	struct client_lanes *lanes = current_lanes();

	__atomic_store_n((u32 *)address, value, __ATOMIC_RELEASE);
	sim_wake(lanes->poller);
	for (struct ring *ring = lanes->rings; ring; ring = ring->next)
		if (address == &ring->memory.doorbells[0])
			sim_wake(ring->task);
}

static u32 opcode_of(enum weir_io_kind kind)
{
	return kind == WEIR_IO_READ    ? NVME_OPCODE_READ
	       : kind == WEIR_IO_WRITE ? NVME_OPCODE_WRITE
	       : kind == WEIR_IO_ZERO  ? NVME_OPCODE_WRITE_ZEROES
				       : NVME_OPCODE_FLUSH;
}

/* What no controller said is as bad as an engine that is not reached. */
static u16 status_of(weir_status status)
{
	u32 code = weir_status_nvme(status);

	if (status == WEIR_E_RANGE)
		return NVME_STATUS_LBA_OUT_OF_RANGE;
	return (u16)(status == WEIR_OK ? 0 : code ? code : NVME_STATUS_PATH_INTERNAL);
}

static void run_lane(void *argument)
{
	struct op *op = argument;
	struct client *client = op->client;
	struct client_lanes *lanes = client->lanes;
	u64 index = (u64)(op - client->ops);
	struct lane_request request = { .disk = (uintptr_t)&lanes->storage.disk,
					.event = (uintptr_t)&lanes->events[index],
					.buffer = (uintptr_t)op->data,
					.vba = op->vba,
					.blocks = op->blocks,
					.opcode = opcode_of(op->io.kind),
					.flags = op->io.force_unit_access && op->io.kind != WEIR_IO_FLUSH
							 ? NVME_RW_FUA
							 : 0,
					.timeout_us = LANE_TIMEOUT_S * SIM_S / SIM_US,
					.once = sim_chance(1, lanes->once_of) };

	op->well = op->well && !request.once && !request.flags;
	lane_request_run(&request, index, client->most_ops);
	op->io.status = status_of(request.status);
	op->ended = true;
	sim_wake(client->task);
}

void client_lanes_begin(struct client *client, struct op *op)
{
	op->client = client;
	client->lanes->lanes[op - client->ops] = sim_spawn(&client->node, run_lane, op);
}
