/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/engine.c: an engine's process: commands come, are admitted, and go to the engine's medium.
 *
 * Owns: what the controller core does in front of an engine (runtime/transport/virtual/engine.c), without its
 * queues; one task for I/O, one for admin commands, and the engine's own thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "cluster.h"
#include "engine/parts.h"

enum { RANGE_BLOCKS = 4, RANGE_LBA = 8, IDLE_MS = 300, BACKLOG_MS = 2, KIND = 0xff };

/** struct request - a command that the engine's medium has, or does not take yet; @next: of those */
struct request {
	struct weir_io io;
	struct iovec iov;
	struct sim_message *message;
	struct request *next;
};

static struct engine_node *node_of(const struct sim_node *node)
{
	return (struct engine_node *)node;
}

static void append(struct sim_message **first, struct sim_message **last, struct sim_message *message)
{
	message->next = NULL;
	if (*first)
		(*last)->next = message;
	else
		*first = message;
	*last = message;
}

static struct sim_message *take(struct sim_message **first)
{
	struct sim_message *message = *first;

	if (message)
		*first = message->next;
	return message;
}

void engine_receive(struct sim_message *message)
{
	struct engine_node *node = node_of(message->connection->server);

	intruder_overhears(message);
	if (!node->ready) {
		sim_reply(message, NVME_STATUS_INTERNAL_ERROR, NULL, false);
		return;
	}
	if (message->admin) {
		append(&node->admins, &node->admins_last, message);
		sim_wake(node->admin);
	} else {
		append(&node->commands, &node->commands_last, message);
		sim_wake(node->controller);
	}
}

static void trace_end(const struct engine_node *node, const struct sim_message *message, u32 status)
{
	sim_trace("engine %llu, from %llu: command %llx, volume and client %llx, block %llu, version %llx, "
		  "lease %llu, map %llu: status %llx",
		  (unsigned long long)node->node.id, (unsigned long long)message->connection->client->id,
		  (unsigned long long)(message->sqe.cdw0 & 0xff), (unsigned long long)message->sqe.cdw11,
		  (unsigned long long)message->sqe.cdw10,
		  (unsigned long long)message->sqe.cdw3 << 32 | message->sqe.cdw2,
		  (unsigned long long)message->sqe.cdw14, (unsigned long long)message->sqe.cdw15,
		  (unsigned long long)status);
}

static void answer(struct sim_message *message, u32 status)
{
	struct engine_node *node = node_of(message->connection->server);
	bool read = (message->sqe.cdw0 & KIND) == NVME_OPCODE_READ;

	trace_end(node, message, status);
	message->by_outsider = node->is_out;
	if (message->connection->client == &cluster.daemon.node)
		status &= NVME_STATUS_CODE_MASK; /* as link_nvmf.c gives it to the daemon */
	sim_reply(message, status, NULL, read && !status);
}

static void request_done(struct weir_io *io)
{
	struct request *request = (struct request *)io;

	answer(request->message, io->status);
	free(request);
}

static bool changes(u32 opcode)
{
	return opcode == NVME_OPCODE_WRITE || opcode == NVME_OPCODE_WRITE_ZEROES || opcode == NVME_OPCODE_DSM;
}

static u64 slba_of(const struct sim_message *message)
{
	u64 slba = (u64)message->sqe.cdw11 << 32 | message->sqe.cdw10;

	if ((message->sqe.cdw0 & KIND) == NVME_OPCODE_DSM)
		memcpy(&slba, message->data + RANGE_LBA, sizeof(slba));
	return slba;
}

static u64 blocks_of(const struct sim_message *message)
{
	u32 blocks = (message->sqe.cdw12 & 0xffff) + 1;

	if ((message->sqe.cdw0 & KIND) == NVME_OPCODE_DSM)
		memcpy(&blocks, message->data + RANGE_BLOCKS, sizeof(blocks));
	return blocks;
}

static u32 admit(struct weir_engine *engine, const struct sim_message *message, struct weir_io *io)
{
	u32 opcode = message->sqe.cdw0 & KIND, status;
	struct weir_engine_access access = { .host = message->connection->client->host,
					     .changes = changes(opcode),
					     .blocks = blocks_of(message),
					     .lease_epoch = message->sqe.cdw14,
					     .map_epoch = message->sqe.cdw15 };

	weir_engine_slba(slba_of(message), &access);
	if (opcode == NVME_OPCODE_FLUSH)
		return weir_engine_admit_flush(engine, &access);
	status = weir_engine_admit(engine, &access);
	io->offset_bytes = weir_engine_offset(access.vid, access.vba);
	io->bytes = access.blocks << NVME_VOLUME_BLOCK_LOG2;
	io->epochs = weir_engine_epochs(&access);
	io->version = access.changes || access.client == NVME_VOLUME_MANAGER
			      ? (u64)message->sqe.cdw3 << 32 | message->sqe.cdw2
			      : 0;
	return status;
}

static enum weir_io_kind kind_of(u32 opcode)
{
	switch (opcode) {
	case NVME_OPCODE_READ: return WEIR_IO_READ;
	case NVME_OPCODE_WRITE: return WEIR_IO_WRITE;
	case NVME_OPCODE_FLUSH: return WEIR_IO_FLUSH;
	case NVME_OPCODE_DSM: return WEIR_IO_DISCARD;
	default: return WEIR_IO_ZERO;
	}
}

static struct request *begin(struct engine_node *node, struct sim_message *message)
{
	struct request *request = calloc(1, sizeof(*request));
	u32 opcode = message->sqe.cdw0 & KIND, status;

	if (!request)
		abort();
	request->message = message;
	request->io = (struct weir_io){ .kind = kind_of(opcode),
					.force_unit_access = opcode != NVME_OPCODE_FLUSH &&
							     opcode != NVME_OPCODE_DSM &&
							     (message->sqe.cdw12 & NVME_RW_FUA),
					.done = request_done };
	status = admit(node->engine, message, &request->io);
	if (status) {
		answer(message, status);
		free(request);
		return NULL;
	}
	if (opcode == NVME_OPCODE_READ || opcode == NVME_OPCODE_WRITE) {
		request->iov = (struct iovec){ message->data, message->bytes };
		request->io.iov = &request->iov;
		request->io.iov_count = 1;
	}
	return request;
}

static void controller_run(void *argument)
{
	struct engine_node *node = argument;
	struct weir_medium *medium = weir_engine_medium(node->engine);
	struct request *backlog = NULL;
	struct sim_message *message;

	for (;;) {
		while (!backlog && (message = take(&node->commands)) != NULL) {
			struct request *request = begin(node, message);

			if (request && !medium->ops->submit(medium, &request->io))
				backlog = request;
		}
		(void)medium->ops->poll(medium, 0);
		if (backlog && medium->ops->submit(medium, &backlog->io))
			backlog = NULL;
		else if (backlog)
			sim_sleep(BACKLOG_MS * SIM_MS);
		if (!backlog && !node->commands) {
			sim.current->condition = &node->engine->changed;
			sim_sleep(IDLE_MS * SIM_MS);
			sim.current->condition = NULL;
		}
	}
}

static void admin_run(void *argument)
{
	struct engine_node *node = argument;
	struct sim_message *message;

	for (;;) {
		u8 page[NVME_VOLUME_BLOCK_BYTES] = { 0 };
		u32 status;

		message = take(&node->admins);
		if (!message) {
			sim_sleep(SIM_S);
			continue;
		}
		if (message->data)
			memcpy(page, message->data, sizeof(page));
		status = weir_engine_admin(node->engine, message->connection->client->host, &message->sqe,
					   page);
		trace_end(node, message, status);
		if (!message->data) {
			message->data = malloc(sizeof(page));
			message->bytes = sizeof(page);
		}
		memcpy(message->data, page, sizeof(page));
		sim_reply(message, status & NVME_STATUS_CODE_MASK, NULL, true);
	}
}

static void boot(void *argument)
{
	struct engine_node *node = argument;
	int error = weir_engine_open(&(struct weir_engine_options){ .behind = &node->disk.medium,
								    .threads = 1,
								    .manager = cluster.daemon.node.host,
								    .own_thread = true },
				     &node->engine);

	if (error) {
		sim_fail("engine %u does not open again: %s", node->node.id, weir_last_error());
		return;
	}
	node->ready = true;
	node->controller = sim_spawn(&node->node, controller_run, node);
	node->admin = sim_spawn(&node->node, admin_run, node);
	sim_trace("engine %llu is there", (unsigned long long)node->node.id);
}

void engine_node_start(struct engine_node *node)
{
	node->disk.full = false; /* else it does not start */
	node->node.alive = true;
	(void)sim_spawn(&node->node, boot, node);
}

static void forget(struct sim_message **first)
{
	struct sim_message *message;

	while ((message = take(first)) != NULL)
		sim_message_free(message);
}

void engine_node_kill(struct engine_node *node, bool lossy)
{
	struct weir_medium *medium;

	sim_trace("engine %llu ends, its disk's power with it: %llu", (unsigned long long)node->node.id,
		  (unsigned long long)lossy);
	sim_kill(&node->node);
	sim_network_died(&node->node);
	sim_disk_off(&node->disk);
	if (node->ready) {
		medium = weir_engine_medium(node->engine);
		(void)medium->ops->poll(medium, 0);
		medium->ops->close(medium);
	}
	node->engine = NULL;
	node->ready = false;
	node->controller = node->admin = NULL;
	forget(&node->commands);
	forget(&node->admins);
	sim_disk_on(&node->disk, lossy);
}

struct engine_node *engine_node_at(const char *uri)
{
	unsigned number;

	if (sscanf(uri, "nvmf:tcp://sim:%u/", &number) != 1)
		abort();
	return &cluster.engines[number - 1];
}

void engine_node_create(unsigned index, u64 bytes)
{
	struct engine_node *node = &cluster.engines[index];

	snprintf(node->name, sizeof(node->name), "engine%u", index + 1);
	snprintf(node->address, sizeof(node->address), "sim:%u", index + 1);
	sim_network_add(&node->node, node->name, "nqn.engine", engine_receive);
	node->node.alive = false;
	sim_disk_create(&node->disk, bytes, &node->controller);
}

void engine_node_destroy(struct engine_node *node)
{
	if (node->node.alive)
		engine_node_kill(node, false);
	sim_disk_destroy(&node->disk);
}
