/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receive.c: PDUs from the host.
 *
 * Owns: where the bytes of a connection go, and what may come when. Data goes straight to its command's
 * buffer. Whatever a
 * length, an offset or a tag says, it is compared with what was granted before a byte is stored.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "../base/crc32c.h"
#include "parts.h"

enum { ITERATION_BYTES = 1 << 18 }; /* before other connections have their turn */

static bool refuse(struct connection *connection, u16 fes, size_t fei)
{
	struct weir_tcp_error error = { .fes = fes, .fei = (u32)fei };

	target_connection_refuse(connection, &error);
	return false;
}

static void expect(struct connection *connection, enum receive_phase phase, u8 *into, u32 bytes)
{
	connection->phase = phase;
	connection->into = into;
	connection->left = bytes;
}

static void expect_pdu(struct connection *connection)
{
	connection->subject = NULL;
	expect(connection, RECEIVE_COMMON, connection->header.bytes, sizeof(struct nvme_tcp_common));
}

/* ---- what PDUs mean ---- */

static bool icreq(struct connection *connection)
{
	const struct nvme_tcp_icreq *request = &connection->header.icreq;
	union nvme_tcp_header answer = { .icresp = { .dgst = request->dgst,
						     .maxh2cdata = TARGET_TRANSFER_BYTES } };
	size_t bytes;

	bytes = weir_tcp_build(&answer, NVME_TCP_ICRESP, 0,
			       &connection->to_host); /* before digests are in force */
	target_send_note(connection, &answer, (u32)bytes);
	connection->to_host.alignment = ((u32)request->hpda + 1) * 4;
	connection->to_host.header_digest = connection->to_us.header_digest =
		request->dgst & NVME_TCP_HDGST_ENABLE;
	connection->to_host.data_digest = connection->to_us.data_digest =
		request->dgst & NVME_TCP_DDGST_ENABLE;
	connection->state = CONNECTION_OPEN;
	return true;
}

static bool capsule(struct connection *connection)
{
	struct command *command = connection->free;

	if (!command) /* more commands than the queue has entries */
		return refuse(connection, NVME_TCP_FES_SEQUENCE, 0);
	if (connection->layout.data_bytes > TARGET_IN_CAPSULE_BYTES)
		return refuse(connection, NVME_TCP_FES_LIMIT, 0);
	connection->free = command->next;
	memcpy(&command->sqe, connection->header.cmd.sqe, sizeof(command->sqe));
	target_command_start(command, connection->layout.data_bytes);
	connection->subject = command->state == COMMAND_RECEIVING ? command : NULL;
	connection->data_begin = connection->subject ? command->data : NULL;
	return true;
}

static bool data(struct connection *connection)
{
	const struct nvme_tcp_data *header = &connection->header.data;
	struct command *command =
		header->ttag < connection->entries ? &connection->commands[header->ttag] : NULL;

	if (!command || command->state != COMMAND_GRANTED)
		return refuse(connection, NVME_TCP_FES_INVALID_HEADER, offsetof(struct nvme_tcp_data, ttag));
	if (header->cccid != command->cid)
		return refuse(connection, NVME_TCP_FES_INVALID_HEADER, offsetof(struct nvme_tcp_data, cccid));
	if (header->datao != command->received || header->datal > command->data_bytes - command->received)
		return refuse(connection, NVME_TCP_FES_OUT_OF_RANGE, offsetof(struct nvme_tcp_data, datao));
	if (!(header->common.flags & NVME_TCP_LAST_PDU) !=
	    (header->datal < command->data_bytes - command->received))
		return refuse(connection, NVME_TCP_FES_INVALID_HEADER,
			      offsetof(struct nvme_tcp_common, flags));
	connection->subject = command;
	connection->data_begin = command->data + command->received;
	return true;
}

/* A whole header: what it announces may come now? */
static bool header_done(struct connection *connection)
{
	struct weir_tcp_error error;

	if (!weir_tcp_check_header(&connection->header, &connection->layout, &error)) {
		target_connection_refuse(connection, &error);
		return false;
	}
	switch (connection->layout.type) {
	case NVME_TCP_ICREQ: return icreq(connection);
	case NVME_TCP_CAPSULE_CMD: return capsule(connection);
	case NVME_TCP_H2C_DATA: return data(connection);
	default: /* H2CTermReq: it gives up */ target_connection_end(connection); return false;
	}
}

/* All of a PDU is here. */
static void pdu_done(struct connection *connection)
{
	struct command *command = connection->subject;
	bool is_data = connection->layout.type == NVME_TCP_H2C_DATA;

	expect_pdu(connection);
	if (!command)
		return;
	if (connection->qid) /* relaxed: statistics */
		atomic_fetch_add_explicit(&connection->server->counters.bytes_in,
					  connection->layout.data_bytes, memory_order_relaxed);
	command->received += is_data ? connection->header.data.datal : command->data_bytes;
	if (command->received >= command->data_bytes)
		target_command_run(command);
}

static void check_digest(struct connection *connection)
{
	if (connection->subject &&
	    connection->digest != weir_crc32c(0, connection->data_begin, connection->layout.data_bytes))
		connection->subject->bad_digest = true;
}

/* ---- phases ---- */

static bool common_done(struct connection *connection)
{
	const struct nvme_tcp_common *common = &connection->header.common;
	bool first = connection->state == CONNECTION_NEW;
	struct weir_tcp_error error;

	if (!weir_tcp_check(common, false, &connection->to_us, &connection->layout, &error)) {
		target_connection_refuse(connection, &error);
		return false;
	}
	if (first != (common->type == NVME_TCP_ICREQ) && common->type != NVME_TCP_H2C_TERM_REQ)
		return refuse(connection, NVME_TCP_FES_SEQUENCE, 0);
	expect(connection, RECEIVE_HEADER, connection->header.bytes + sizeof(*common),
	       connection->layout.header_bytes - (u32)sizeof(*common) +
		       (connection->layout.header_digest ? NVME_TCP_DIGEST_BYTES : 0));
	return true;
}

/* The phase behind one of which nothing is left; false: the connection is to receive no more. */
static bool phase_done(struct connection *connection)
{
	switch (connection->phase) {
	case RECEIVE_COMMON: return common_done(connection);
	case RECEIVE_HEADER:
		if (!header_done(connection))
			return false;
		expect(connection, RECEIVE_PAD, NULL, connection->layout.pad_bytes);
		return true;
	case RECEIVE_PAD:
		expect(connection, RECEIVE_DATA, connection->data_begin, connection->layout.data_bytes);
		if (!connection->subject)
			connection->into = NULL;
		return true;
	case RECEIVE_DATA:
		expect(connection, RECEIVE_DIGEST, (u8 *)&connection->digest,
		       connection->layout.data_digest ? NVME_TCP_DIGEST_BYTES : 0);
		return true;
	case RECEIVE_DIGEST:
		if (connection->layout.data_digest)
			check_digest(connection);
		pdu_done(connection);
		return true;
	}
	return false;
}

static void advance(struct connection *connection, u32 bytes)
{
	if (connection->into)
		connection->into += bytes;
	connection->left -= bytes;
}

/* What lies in the buffer. */
static bool parse(struct connection *connection)
{
	while (connection->state <= CONNECTION_CONNECTED) {
		u32 there = connection->end - connection->begin,
		    bytes = connection->left < there ? connection->left : there;

		if (connection->left && !there)
			return true;
		if (bytes && connection->into)
			memcpy(connection->into, connection->server->buffer + connection->begin, bytes);
		connection->begin += bytes;
		advance(connection, bytes);
		if (!connection->left && !phase_done(connection))
			return false;
	}
	return false;
}

/* Data that is awaited goes where it belongs, what is behind it into the buffer. */
static ssize_t receive_some(struct connection *connection, u32 *direct)
{
	struct iovec parts[2] = { { connection->into, connection->left },
				  { connection->server->buffer, TARGET_RECEIVE_BYTES } };
	bool has_data = connection->phase == RECEIVE_DATA && connection->into && connection->left;
	struct msghdr message = { .msg_iov = parts + !has_data, .msg_iovlen = has_data ? 2 : 1 };

	*direct = has_data ? connection->left : 0;
	connection->begin = connection->end = 0;
	return weir_tls_or_recvmsg(connection->tls, connection->socket, &message);
}

/* What TLS has and the socket does not report is received in any case. */
static bool may_go_on(const struct connection *connection, u32 total)
{
	return total < ITERATION_BYTES || (connection->tls && weir_tls_pending(connection->tls));
}

bool target_receive(struct connection *connection)
{
	if (!connection->hailed && !target_hail(connection))
		return connection->state != CONNECTION_DEAD;
	for (u32 total = 0; may_go_on(connection, total);) {
		u32 direct, data;
		ssize_t got = receive_some(connection, &direct);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (got <= 0) {
			target_connection_end(connection);
			return false;
		}
		target_connection_heard(connection);
		data = (u32)got < direct ? (u32)got : direct;
		advance(connection, data);
		connection->end = (u32)got - data;
		total += (u32)got;
		if ((!connection->left || connection->end) && !parse(connection))
			return connection->state != CONNECTION_DEAD;
		if ((u32)got < direct + TARGET_RECEIVE_BYTES)
			return true; /* the socket is empty; if not, epoll says so */
	}
	return true;
}
