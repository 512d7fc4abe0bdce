/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c: PDUs to the host.
 *
 * Owns: what is to be sent on a connection, in order, and how far that is. Many answers go with one
 * system call; a host that
 * reads none keeps the slots of its own queue, and no more.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "../base/crc32c.h"
#include "parts.h"

enum { PARTS = 64 };

void target_send_soon(struct connection *connection)
{
	struct target_server *server = connection->server;

	if (connection->in_unsent)
		return;
	connection->in_unsent = true;
	connection->next_unsent = server->unsent;
	server->unsent = connection;
}

static void enqueue(struct command *command)
{
	command->sent = 0;
	target_list_add(&command->connection->out, command);
	target_send_soon(command->connection);
}

void target_tcp_grant(struct command *command)
{
	command->head.r2t = (struct nvme_tcp_r2t){ .cccid = command->cid,
						   .ttag = (u16)(command - command->connection->commands),
						   .r2tl = command->data_bytes };
	command->head_bytes =
		(u8)weir_tcp_build(&command->head, NVME_TCP_R2T, 0, &command->connection->to_host);
	command->sends_data = command->tail_bytes = 0;
	target_command_set(command, COMMAND_GRANTING);
	enqueue(command);
}

struct nvme_cqe target_cqe(const struct command *command)
{
	const struct connection *connection = command->connection;
	u32 head = connection->flow_control ? connection->sq_head : 0xffff;

	return (struct nvme_cqe){ (u32)command->result, (u32)(command->result >> 32), head,
				  command->cid | command->status << 17 };
}

static void add_response(struct command *command)
{
	const struct connection *connection = command->connection;
	union nvme_tcp_header response = { .bytes = { 0 } };
	struct nvme_cqe cqe = target_cqe(command);
	size_t bytes;

	memcpy(response.resp.cqe, &cqe, sizeof(cqe));
	bytes = weir_tcp_build(&response, NVME_TCP_CAPSULE_RESP, 0, &connection->to_host);
	memcpy(command->tail + command->tail_bytes, &response, bytes);
	command->tail_bytes = (u8)(command->tail_bytes + bytes);
}

/*
 * Without flow control the data says that the command has ended well, and no response follows. NVMe/TCP
 * 1.0, section 3.3.2.1
 */
static bool add_data(struct command *command)
{
	const struct connection *connection = command->connection;
	bool success = !connection->flow_control && !command->result && !command->twice;

	command->head.data =
		(struct nvme_tcp_data){ .common.flags = NVME_TCP_LAST_PDU | (success ? NVME_TCP_SUCCESS : 0),
					.cccid = command->cid,
					.datal = command->sends_data };
	command->head_bytes = (u8)weir_tcp_build(&command->head, NVME_TCP_C2H_DATA, command->sends_data,
						 &connection->to_host);
	if (connection->to_host.data_digest) {
		u32 digest = weir_crc32c(0, command->data, command->sends_data);

		memcpy(command->tail, &digest, sizeof(digest));
		command->tail_bytes = sizeof(digest);
	}
	return success;
}

void target_send_response(struct command *command, u32 status, u64 result, bool sends_data)
{
	struct connection *connection = command->connection;

	command->status = status;
	command->result = result;
	command->sends_data = sends_data && !status ? command->data_bytes : 0;
	target_command_set(command, COMMAND_SENDING);
	if (connection->qid) /* relaxed: statistics */
		atomic_fetch_add_explicit(&connection->server->counters.bytes_out, command->sends_data,
					  memory_order_relaxed);
	atomic_fetch_add_explicit(&connection->server->counters.commands, 1,
				  memory_order_relaxed); /* relaxed: statistics */
	connection->wire->respond(command);
}

void target_tcp_respond(struct command *command)
{
	bool success = false;

	command->head_bytes = command->tail_bytes = 0;
	if (command->sends_data)
		success = add_data(command);
	if (!success)
		add_response(command);
	if (command->twice)
		add_response(command);
	enqueue(command);
}

void target_send_note(struct connection *connection, const void *bytes, u32 count)
{
	if (connection->note_sent == connection->note_bytes)
		connection->note_bytes = connection->note_sent = 0;
	if (count > sizeof(connection->note) - connection->note_bytes)
		return;
	memcpy(connection->note + connection->note_bytes, bytes, count);
	connection->note_bytes += count;
	target_send_soon(connection);
}

static u32 length_of(const struct command *command)
{
	return command->head_bytes + command->sends_data + command->tail_bytes;
}

static void add_part(struct iovec *parts, u32 *count, void *bytes, u32 length, u32 *skip)
{
	u32 left_out = *skip < length ? *skip : length;

	*skip -= left_out;
	if (length > left_out)
		parts[(*count)++] = (struct iovec){ (u8 *)bytes + left_out, length - left_out };
}

static u32 gather(struct connection *connection, struct iovec *parts)
{
	struct command *command = connection->out.first;
	u32 count = 0, skip;

	for (; command && count + 3 <= PARTS; command = command->next) {
		skip = command->sent;
		add_part(parts, &count, command->head.bytes, command->head_bytes, &skip);
		add_part(parts, &count, command->data, command->sends_data, &skip);
		add_part(parts, &count, command->tail, command->tail_bytes, &skip);
	}
	skip = connection->note_sent;
	if (!command && count < PARTS)
		add_part(parts, &count, connection->note, connection->note_bytes, &skip);
	return count;
}

static void command_sent(struct command *command)
{
	if (command->state == COMMAND_GRANTING)
		target_command_set(command, COMMAND_GRANTED);
	else
		target_command_free(command);
}

static void account(struct connection *connection, u32 sent)
{
	while (sent && connection->out.first) {
		struct command *command = connection->out.first;
		u32 left = length_of(command) - command->sent, bytes = sent < left ? sent : left;

		command->sent += bytes;
		sent -= bytes;
		if (command->sent == length_of(command))
			command_sent(target_list_take(&connection->out));
	}
	connection->note_sent += sent;
}

bool target_send_last(struct connection *connection)
{
	struct command *last = connection->leaving;

	if (!last || connection->running || connection->state != CONNECTION_CLOSING)
		return false;
	connection->leaving = NULL;
	connection->deadline_ms = connection->server->now_ms + TARGET_LINGER_MS;
	target_send_response(last, NVME_STATUS_SUCCESS, 0, false);
	return true;
}

static void all_sent(struct connection *connection)
{
	target_server_watch(connection, false);
	if (connection->state != CONNECTION_CLOSING || connection->running)
		return;
	shutdown(connection->socket, SHUT_WR);
	connection->state = CONNECTION_LINGERING;
}

bool target_tcp_flush(struct connection *connection)
{
	struct iovec parts[PARTS];
	struct msghdr message = { .msg_iov = parts };

	while ((message.msg_iovlen = gather(connection, parts)) != 0) {
		ssize_t sent = weir_tls_or_sendmsg(connection->tls, connection->socket, &message);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			target_server_watch(connection, true);
			return true;
		}
		if (sent < 0) {
			target_connection_end(connection);
			return false;
		}
		account(connection, (u32)sent);
	}
	if (target_send_last(connection))
		return target_tcp_flush(connection);
	all_sent(connection);
	return true;
}
