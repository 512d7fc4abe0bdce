/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_move.c: capsules in, data either way, responses out.
 *
 * Owns: which completion means what. The host's memory is read and written under the key of the command,
 * which is checked by the device; a host that gives a wrong one loses its connection. NVMe/RDMA
 * Transport 1.0, section 3.3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_connection.h"

enum {
	COMPLETIONS = 32,
	ITERATIONS = 16, /* as many, before other connections have their turn */
};

/* What a completion is of, above the index of a capsule or a slot. */
enum { OF_CAPSULE, OF_READ, OF_RESPONSE, KIND_SHIFT = 32 };

static u64 mark(u64 kind, u64 index)
{
	return kind << KIND_SHIFT | index;
}

static u64 mark_of(u64 kind, const struct command *command)
{
	return mark(kind, (u64)(command - command->connection->commands));
}

int target_rdma_receive(struct target_rdma *rdma, u32 index)
{
	return weir_rdma_receive(&rdma->link, mark(OF_CAPSULE, index),
				 rdma->capsules + (size_t)index * TARGET_RDMA_CAPSULE_BYTES,
				 TARGET_RDMA_CAPSULE_BYTES, rdma->region->lkey);
}

/* It ends in its thread, where nothing else is being done with it. */
static void give_up(struct connection *connection)
{
	connection->rdma->broken = true;
	target_send_soon(connection);
}

/* ---- data and responses ---- */

static bool describe(struct command *command, struct ibv_sge *part)
{
	if (!command->region)
		command->region = ibv_reg_mr(command->connection->rdma->domain, command->data,
					     command->data_room, IBV_ACCESS_LOCAL_WRITE);
	if (!command->region)
		return false;
	*part = (struct ibv_sge){ .addr = (uintptr_t)command->data,
				  .length = command->data_bytes,
				  .lkey = command->region->lkey };
	return true;
}

static void unregister(struct command *command)
{
	(void)ibv_dereg_mr(command->region);
	command->region = NULL;
}

static void grant(struct command *command)
{
	struct connection *connection = command->connection;
	struct ibv_sge part;
	struct ibv_send_wr read = { .wr_id = mark_of(OF_READ, command),
				    .sg_list = &part,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_READ,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct weir_rdma_keyed keyed;

	(void)weir_rdma_take_keyed(&command->sqe, &keyed);
	read.wr.rdma.remote_addr = keyed.address;
	read.wr.rdma.rkey = keyed.key;
	target_command_set(command, COMMAND_GRANTED);
	if (!describe(command, &part) || ibv_post_send(connection->rdma->link.id->qp, &read, &bad) != 0)
		give_up(connection);
}

/* The data, if there is any, then the response, which ends the key where the host asks for that. */
static bool post(struct command *command, bool last)
{
	struct connection *connection = command->connection;
	struct nvme_cqe cqe = target_cqe(command);
	struct ibv_sge data, response = { .addr = (uintptr_t)&cqe, .length = sizeof(cqe) };
	struct ibv_send_wr send = { .wr_id = mark_of(OF_RESPONSE, command),
				    .sg_list = &response,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE | (last ? IBV_SEND_SIGNALED : 0) };
	struct ibv_send_wr write = {
		.next = &send, .sg_list = &data, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE
	};
	struct ibv_send_wr *bad;
	struct weir_rdma_keyed keyed;
	bool with_data = command->sends_data && last;

	if (weir_rdma_take_keyed(&command->sqe, &keyed) && keyed.invalidate && keyed.bytes && last &&
	    connection->rdma->invalidates) {
		send.opcode = IBV_WR_SEND_WITH_INV;
		send.invalidate_rkey = keyed.key;
	}
	write.wr_id = send.wr_id;
	write.wr.rdma.remote_addr = keyed.address;
	write.wr.rdma.rkey = keyed.key;
	return (!with_data || describe(command, &data)) &&
	       ibv_post_send(connection->rdma->link.id->qp, with_data ? &write : &send, &bad) == 0;
}

static void respond(struct command *command)
{
	struct connection *connection = command->connection;

	if (connection->rdma->broken || (command->twice && !post(command, false)) || !post(command, true))
		give_up(connection);
}

/* ---- completions ---- */

static void count_in(const struct connection *connection, u32 bytes)
{
	if (connection->qid) /* relaxed: statistics */
		atomic_fetch_add_explicit(&connection->server->counters.bytes_in, bytes,
					  memory_order_relaxed);
}

/* A capsule, for which there is a slot. */
static void start(struct connection *connection, u32 index, u32 bytes)
{
	struct target_rdma *rdma = connection->rdma;
	const u8 *capsule = rdma->capsules + (size_t)index * TARGET_RDMA_CAPSULE_BYTES;
	struct command *command = connection->free;
	u32 inside = bytes - NVME_CAPSULE_COMMAND_BYTES;

	connection->free = command->next;
	memcpy(&command->sqe, capsule, sizeof(command->sqe));
	target_command_start(command, inside);
	if (inside && command->state == COMMAND_RECEIVING) {
		memcpy(command->data, capsule + NVME_CAPSULE_COMMAND_BYTES, inside);
		command->received = command->data_bytes;
		count_in(connection, command->data_bytes);
		target_command_run(command);
	}
	if (!rdma->broken && target_rdma_receive(rdma, index) != 0)
		give_up(connection);
}

static void take_capsule(struct connection *connection, u32 index, u32 bytes)
{
	struct target_rdma *rdma = connection->rdma;

	if (bytes < NVME_CAPSULE_COMMAND_BYTES) {
		atomic_fetch_add_explicit(&connection->server->counters.bad_pdus, 1,
					  memory_order_relaxed); /* relaxed: statistics */
		give_up(connection);
		return;
	}
	target_connection_heard(connection);
	if (connection->free && rdma->kept_head == rdma->kept_tail) {
		start(connection, index, bytes);
		return;
	}
	rdma->kept[rdma->kept_tail % rdma->count] = index; /* as many as capsules at most */
	rdma->kept_bytes[rdma->kept_tail++ % rdma->count] = bytes;
}

static bool may_start(const struct connection *connection)
{
	return connection->state <= CONNECTION_CONNECTED && !connection->rdma->broken &&
	       !atomic_load_explicit(&connection->server->target->stopping, memory_order_relaxed);
}

/* Slots are free again. */
static void start_kept(struct connection *connection)
{
	struct target_rdma *rdma = connection->rdma;

	while (connection->free && rdma->kept_head != rdma->kept_tail && may_start(connection)) {
		u32 at = (u32)(rdma->kept_head++ % rdma->count);

		start(connection, rdma->kept[at], rdma->kept_bytes[at]);
	}
}

static void data_came(struct command *command)
{
	command->received = command->data_bytes;
	count_in(command->connection, command->data_bytes);
	target_command_run(command);
}

static void complete(struct connection *connection, const struct ibv_wc *completion)
{
	u32 index = (u32)completion->wr_id;

	if (completion->status != IBV_WC_SUCCESS) {
		give_up(connection);
		return;
	}
	switch (completion->wr_id >> KIND_SHIFT) {
	case OF_CAPSULE:
		if (may_start(connection))
			take_capsule(connection, index, completion->byte_len);
		return;
	case OF_READ: data_came(&connection->commands[index]); return;
	default: target_command_free(&connection->commands[index]); start_kept(connection);
	}
}

static void poll_completions(struct connection *connection)
{
	struct target_rdma *rdma = connection->rdma;
	struct ibv_wc completions[COMPLETIONS];
	int count = 0;

	rdma->more = false;
	for (unsigned i = 0; i < ITERATIONS; i++) {
		count = weir_rdma_poll(&rdma->link, completions, COMPLETIONS);
		if (count < 0)
			give_up(connection);
		for (int j = 0; j < count && !rdma->broken; j++)
			complete(connection, &completions[j]);
		if (count <= 0 || rdma->broken)
			return;
	}
	rdma->more = true;
	target_send_soon(connection);
	target_server_wake(connection->server); /* the next iteration does not sleep */
}

static void take_events(struct connection *connection)
{
	struct weir_rdma_link *link = &connection->rdma->link;
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(link->events, &event) == 0) {
		enum rdma_cm_event_type type = event->event;

		(void)rdma_ack_cm_event(event);
		if (type != RDMA_CM_EVENT_ESTABLISHED)
			give_up(connection);
	}
}

/* True: it has ended. */
static bool end_if_over(struct connection *connection)
{
	if (!connection->rdma->broken &&
	    (connection->state != CONNECTION_CLOSING || connection->running || target_send_last(connection)))
		return false;
	target_connection_end(connection);
	return true;
}

static void ready(struct connection *connection)
{
	if (connection->state == CONNECTION_DEAD)
		return;
	weir_rdma_notified(&connection->rdma->link);
	poll_completions(connection);
	take_events(connection);
	(void)end_if_over(connection);
}

static bool flush(struct connection *connection)
{
	if (end_if_over(connection))
		return false;
	if (connection->rdma->more)
		poll_completions(connection);
	return true;
}

/* ---- its life ---- */

static int watch(struct connection *connection)
{
	const struct weir_rdma_link *link = &connection->rdma->link;

	if (connection->rdma->broken || target_server_poll(connection, link->events->fd) != 0)
		return -1;
	connection->rdma->more = true; /* what came before it was waited for */
	target_send_soon(connection);
	return target_server_poll(connection, link->channel->fd);
}

static void close_link(struct connection *connection)
{
	weir_rdma_end(&connection->rdma->link);
}

static void shut_down(struct connection *connection)
{
	(void)rdma_disconnect(connection->rdma->link.id);
}

static void release(struct connection *connection)
{
	target_rdma_free(connection->rdma);
}

static void local(const struct connection *connection, struct sockaddr_storage *address)
{
	const struct sockaddr *from = rdma_get_local_addr(connection->rdma->link.id);

	memcpy(address, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

const struct target_wire target_rdma_wire = {
	.keyed = true,
	.watch = watch,
	.ready = ready,
	.grant = grant,
	.respond = respond,
	.flush = flush,
	.close = close_link,
	.shutdown = shut_down,
	.unregister = unregister,
	.release = release,
	.local = local,
};
