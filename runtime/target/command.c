/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.c: a command from its capsule to its end.
 *
 * Owns: the slots of a queue, the checks of an SGL, and the border to the controller core. A slot keeps
 * its buffer, so that a
 * host that is slow, or dead, occupies what is its own queue's.
 */
#include <stdlib.h>
#include <string.h>

#include "../transport/fabrics/rdma_message.h"
#include "../transport/opcode.h"
#include "events.h"
#include "failed.h"
#include "parts.h"
#include "shutdown.h"

enum {
	FLAGS_FUSED = 3u << 8,
	FLAGS_PSDT = 3u << 14,
	DATA_FROM_HOST = 1, /* opcode or fabrics command type, bits 1:0 */
	DATA_TO_HOST = 2,
	BUFFER_ALIGN = 4096,
	STRANGER_BYTES = 8192, /* data of a command at most, before its host has authenticated */
};

static void fill_slots(struct connection *connection, u32 first)
{
	for (u32 i = connection->entries; i-- > first;) {
		connection->commands[i].connection = connection;
		connection->commands[i].next = connection->free;
		connection->free = &connection->commands[i];
	}
}

bool target_commands_create(struct connection *connection, u32 entries)
{
	connection->commands = calloc(entries, sizeof(*connection->commands));
	if (!connection->commands)
		return false;
	connection->entries = entries;
	fill_slots(connection, 0);
	return true;
}

struct command *target_commands_grow(struct connection *connection, u32 entries, struct command *command)
{
	struct command *slots = calloc(entries, sizeof(*slots));

	if (!slots)
		return NULL;
	slots[0] = *command;
	free(connection->commands);
	connection->commands = slots;
	connection->entries = entries;
	connection->free = NULL;
	fill_slots(connection, 1);
	return slots;
}

static void free_data(struct command *command)
{
	if (command->region)
		command->connection->wire->unregister(command);
	free(command->data);
}

void target_commands_destroy(struct connection *connection)
{
	for (u32 i = 0; i < connection->entries; i++)
		free_data(&connection->commands[i]);
	free(connection->commands);
}

static void leave_waiting(struct connection *connection)
{
	struct command_list *waiting = &connection->server->waiting;
	struct command *command = waiting->first, *next;

	waiting->first = NULL;
	for (; command; command = next) {
		next = command->next;
		if (command->connection == connection)
			target_command_free(command);
		else
			target_list_add(waiting, command);
	}
}

void target_commands_cancel(struct connection *connection)
{
	const struct target_controller *controller = connection->controller;

	if (!controller || !controller->subsystem)
		return;
	leave_waiting(connection);
	for (size_t i = 0; i < target_namespaces(controller->subsystem); i++)
		weir_virtual_abort(controller->subsystem->namespaces[i].core, connection->server->index,
				   &connection->queue, ~0u, NVME_STATUS_ABORT_REQUESTED);
}

void target_command_free(struct command *command)
{
	struct connection *connection = command->connection;

	target_command_set(command, COMMAND_FREE);
	if (target_shutdown_has(command))
		return;
	command->next = connection->free;
	connection->free = command;
}

bool target_command_room(struct command *command, u32 bytes)
{
	u32 rounded = (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;

	if (bytes <= command->data_room)
		return true;
	free_data(command);
	command->data = aligned_alloc(BUFFER_ALIGN, rounded);
	command->data_room = command->data ? rounded : 0;
	return command->data;
}

/* ---- its data ---- */

static u32 direction(const struct command *command)
{
	u8 opcode = target_opcode(command);

	return (opcode == NVME_OPCODE_FABRICS ? command->sqe.nsid & 0xff : opcode) & 3;
}

/* Its host has not connected, or is to authenticate. */
static bool is_of_a_stranger(const struct connection *connection)
{
	return !connection->controller || !target_may_command(connection);
}

/* A stranger has fabrics commands alone, and no buffers for others; an NVMe status. */
static u32 admit(const struct command *command)
{
	const struct connection *connection = command->connection;

	if (target_opcode(command) == NVME_OPCODE_FABRICS || !is_of_a_stranger(connection))
		return NVME_STATUS_SUCCESS;
	return target_refuse(connection->controller ? NVME_STATUS_AUTHENTICATION_REQUIRED
						    : NVME_STATUS_COMMAND_SEQUENCE);
}

/* What a stranger has to say is short: Connect's data, messages of an authentication. */
static u32 most_bytes(const struct connection *connection)
{
	const struct target_controller *controller = connection->controller;

	if (is_of_a_stranger(connection))
		return STRANGER_BYTES;
	return connection->qid && controller->subsystem ? controller->subsystem->transfer_bytes
							: TARGET_TRANSFER_BYTES;
}

static u32 check_sgl(struct command *command, u32 in_capsule)
{
	struct weir_rdma_keyed keyed;
	struct nvme_sgl sgl;

	memcpy(&sgl, &command->sqe.prp1, sizeof(sgl));
	if ((command->sqe.cdw0 & FLAGS_PSDT) != NVME_PSDT_SGL)
		return target_refuse(NVME_STATUS_INVALID_FIELD);
	if (command->connection->wire->keyed && weir_rdma_take_keyed(&command->sqe, &keyed)) {
		sgl.bytes = keyed.bytes;
		sgl.type = NVME_SGL_TRANSPORT_DATA_BLOCK; /* as its transport describes data */
	} else if (command->connection->wire->keyed && sgl.type != NVME_SGL_DATA_BLOCK_OFFSET) {
		return target_refuse(NVME_STATUS_SGL_INVALID_TYPE);
	}
	if (sgl.bytes > most_bytes(command->connection))
		return target_refuse(NVME_STATUS_INVALID_FIELD);
	command->data_bytes = sgl.bytes;
	if (sgl.type == NVME_SGL_DATA_BLOCK_OFFSET) {
		if (!command->from_host)
			return target_refuse(NVME_STATUS_SGL_INVALID_TYPE);
		return sgl.address || sgl.bytes > in_capsule ? target_refuse(NVME_STATUS_SGL_INVALID_OFFSET)
							     : 0;
	}
	if (sgl.type != NVME_SGL_TRANSPORT_DATA_BLOCK)
		return target_refuse(NVME_STATUS_SGL_INVALID_TYPE);
	return in_capsule ? target_refuse(NVME_STATUS_INVALID_FIELD) : 0;
}

/* What it is to move, and a buffer for that; an NVMe status. */
static u32 prepare(struct command *command, u32 in_capsule)
{
	u32 way = direction(command), status = admit(command), bytes;

	command->from_host = way == DATA_FROM_HOST;
	command->data_bytes = 0;
	if (status)
		return status;
	if (command->sqe.cdw0 & FLAGS_FUSED)
		return target_refuse(NVME_STATUS_INVALID_FIELD);
	if (way != DATA_FROM_HOST && way != DATA_TO_HOST)
		return in_capsule || way ? target_refuse(NVME_STATUS_INVALID_FIELD) : 0;
	status = check_sgl(command, in_capsule);
	if (status)
		return status;
	bytes = in_capsule > command->data_bytes ? in_capsule : command->data_bytes;
	return target_command_room(command, bytes) ? 0 : NVME_STATUS_INTERNAL_ERROR;
}

void target_command_start(struct command *command, u32 in_capsule)
{
	struct connection *connection = command->connection;
	u32 status;

	connection->sq_head = connection->sq_head + 1 >= connection->entries ? 0 : connection->sq_head + 1;
	command->cid = (u16)(command->sqe.cdw0 >> 16);
	command->received = 0;
	command->since_ms = connection->server->now_ms;
	command->bad_digest = command->twice = false;
	target_command_set(command, COMMAND_RECEIVING);
	status = prepare(command, in_capsule);
	if (status)
		target_send_response(command, status, 0, false);
	else if (command->from_host && command->data_bytes && !in_capsule)
		connection->wire->grant(command);
	else if (!in_capsule)
		target_command_run(command);
}

/* ---- to the core and back ---- */

/* Engines know by themselves which write is old. */
static bool changes(const struct command *command)
{
	return command->connection->qid && weir_opcode_changes(target_opcode(command)) &&
	       !command->connection->controller->subsystem->engine;
}

/* Release: whoever reads that there are fewer sees what the core did of them. Nobody else writes. */
static void count_changing(const struct command *command, unsigned more)
{
	atomic_uint *changing = &command->connection->changing;

	if (changes(command))
		atomic_store_explicit(changing, atomic_load_explicit(changing, memory_order_relaxed) + more,
				      memory_order_release);
}

static bool begin(struct command *command)
{
	struct connection *connection = command->connection;
	struct weir_virtual *core = command->space->core;
	struct nvme_sqe sqe = command->sqe;

	/* What this host sent before would land behind this, though this is answered. */
	if (changes(command) && target_controller_follows(connection->server->target, connection->controller))
		return false;
	if (!weir_virtual_may_begin(core, connection->server->index, &connection->queue))
		return false;
	count_changing(command, 1);
	sqe.cdw0 &= ~(u32)FLAGS_PSDT;
	sqe.nsid = 1;
	target_command_set(command, COMMAND_RUNNING);
	weir_virtual_begin(core, connection->server->index, &connection->queue, &sqe, command);
	return true;
}

/* Its storage has failed, which its host has to learn by its commands. */
static bool fails(const struct command *command)
{
	return target_namespace_failed(command->connection->controller->subsystem, command->space);
}

static void end_failed(struct command *command)
{
	u32 status = target_refuse(NVME_STATUS_NAMESPACE_NOT_READY);

	if (target_shutdown_has(command))
		target_shutdown_end(command, status);
	else
		target_send_response(command, status, 0, false);
}

bool target_command_begin(struct command *command)
{
	if (begin(command))
		return true;
	if (fails(command)) {
		end_failed(command);
		return true;
	}
	target_command_set(command, COMMAND_WAITING);
	target_list_add(&command->connection->server->waiting, command);
	return false;
}

/* Flush of all namespaces is offered where there is one. */
static struct target_namespace *space_of(const struct command *command)
{
	const struct target_subsystem *subsystem = command->connection->controller->subsystem;
	u32 nsid = command->sqe.nsid;

	if (nsid == NVME_NSID_BROADCAST && target_opcode(command) == NVME_OPCODE_FLUSH &&
	    target_namespaces(subsystem) == 1)
		nsid = 1;
	return target_namespace_of(subsystem, nsid);
}

static void begin_io(struct command *command)
{
	target_shutdown_note(command);
	(void)target_command_begin(command);
}

static void run_io(struct command *command)
{
	const struct target_controller *controller = command->connection->controller;
	u32 status = target_ana_status(target_ana_state(command->connection->server->target, controller));

	/* Relaxed: a host that has its answer to Property Set sees the value it set. */
	if (!atomic_load_explicit(&controller->ready, memory_order_relaxed)) {
		target_send_response(command, target_refuse(NVME_STATUS_COMMAND_SEQUENCE), 0, false);
		return;
	}
	command->space = space_of(command);
	if (status)
		target_send_response(command, status, 0, false);
	else if (!command->space)
		target_send_response(command, target_refuse(NVME_STATUS_INVALID_NAMESPACE), 0, false);
	else
		begin_io(command);
}

void target_command_run(struct command *command)
{
	const struct connection *connection = command->connection;

	if (command->bad_digest)
		target_send_response(command, NVME_STATUS_TRANSIENT_TRANSPORT, 0, false);
	else if (target_opcode(command) == NVME_OPCODE_FABRICS)
		target_fabrics_run(command);
	else if (connection->qid)
		run_io(command);
	else
		target_admin_run(command);
}

/* ---- the front ---- */

static u32 front_segments(struct virtual_thread *thread, const struct nvme_sqe *sqe, u64 bytes,
			  struct iovec *segments, u32 *count, void *of)
{
	struct command *command = of;

	(void)thread;
	*count = 0;
	/* Of Dataset Management hosts send a whole page. */
	if (bytes > command->data_bytes || (bytes < command->data_bytes && (u8)sqe->cdw0 != NVME_OPCODE_DSM))
		return target_refuse(NVME_STATUS_SGL_INVALID_LENGTH);
	segments[0] = (struct iovec){ command->data, (size_t)bytes };
	*count = 1;
	return NVME_STATUS_SUCCESS;
}

static void front_release(struct virtual_request *request)
{
	struct command *command = weir_virtual_command(request);

	count_changing(command, -1u);
	if (command->connection->state != CONNECTION_DEAD && fails(command))
		end_failed(command);
	else
		target_command_free(command);
}

static void front_complete(struct virtual_request *request, u32 status)
{
	struct command *command = weir_virtual_command(request);

	count_changing(command, -1u);
	weir_virtual_count(request, status);
	if (target_shutdown_has(command))
		target_shutdown_end(command, status);
	else if (command->connection->state == CONNECTION_DEAD)
		target_command_free(command);
	else
		target_send_response(command, status, 0, !command->from_host && command->data_bytes);
}

/*
 * One that is answered twice is; responses have neither phases nor queues, so that no other fault befalls
 * them.
 */
static void front_complete_wrong(struct virtual_request *request, u32 status)
{
	struct command *command = weir_virtual_command(request);

	command->twice = weir_virtual_fault(request, WEIR_VIRTUAL_FAULT_DUPLICATE);
	front_complete(request, status);
}

static void front_withhold(struct virtual_request *request)
{
	(void)request;
}

static const char *front_host(const struct virtual_request *request)
{
	const struct command *command = weir_virtual_command(request);

	return command->connection->controller->hostnqn;
}

const struct virtual_front target_front = {
	.segments = front_segments,
	.complete = front_complete,
	.complete_wrong = front_complete_wrong,
	.release = front_release,
	.withhold = front_withhold,
	.host = front_host,
};
