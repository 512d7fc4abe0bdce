/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receive.c: bytes from the socket to PDUs, and their data to where lanes want it.
 *
 * Owns: what a controller's PDUs may do: every field is checked against the request it names, before a byte
 * goes anywhere. NVMe/TCP Transport 1.0, sections 3.3 and 3.6.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "../../base/crc32c.h"
#include "paths.h"

enum { LEAST_DIRECT = 4096, MOST_IOVS = 64, LEAST_ROOM = 4096 };

/* Say why to the controller, as far as the socket takes it, and give the connection up. */
static bool refuse(struct nvmf_queue *queue, const struct weir_tcp_error *error, const char *what)
{
	const struct nvmf_reader *reader = &queue->connection.reader;
	u8 pdu[sizeof(struct nvme_tcp_term_req) + NVME_TCP_LONGEST_HEADER];
	struct iovec iov = { .iov_base = pdu };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	iov.iov_len = weir_tcp_build_term(pdu, false, error, reader->header.bytes,
					  reader->have < NVME_TCP_LONGEST_HEADER ? reader->have
										 : NVME_TCP_LONGEST_HEADER);

	if (queue->connection.socket >= 0 && queue->connection.batch->at == queue->connection.batch->count)
		(void)weir_tls_or_sendmsg(queue->connection.tls, queue->connection.socket, &message);
	nvmf_lose(queue->nvmf, "the controller sent a wrong PDU to queue %u: %s (type %#x, FES %u, FEI %u)",
		  queue->id, what, reader->header.common.type, error->fes, error->fei);
	return false;
}

static bool refuse_field(struct nvmf_queue *queue, size_t offset, const char *what)
{
	return refuse(queue, &(struct weir_tcp_error){ NVME_TCP_FES_INVALID_HEADER, (u32)offset }, what);
}

static bool refuse_range(struct nvmf_queue *queue, const char *what)
{
	return refuse(queue, &(struct weir_tcp_error){ NVME_TCP_FES_OUT_OF_RANGE, 0 }, what);
}

/* Move what is there, up to @bytes in all, behind *@have of @to. True: all of it is there. */
static bool gather(struct nvmf_reader *reader, u8 *to, u32 *have, u32 bytes)
{
	u32 there = reader->end - reader->begin, want = bytes - *have, part = there < want ? there : want;

	memcpy(to + *have, reader->buffer + reader->begin, part);
	reader->begin += part;
	*have += part;
	return *have == bytes;
}

static bool take_response(struct nvmf_queue *queue, const struct nvme_tcp_resp *resp)
{
	struct nvmf_request *request;
	struct nvme_cqe cqe;

	memcpy(&cqe, resp->cqe, sizeof(cqe));
	request = nvmf_request_of(queue, (u16)cqe.dw3);
	if (!request)
		return refuse_field(queue, sizeof(resp->common) + 12, "a response to no command");
	nvmf_request_end(queue, request, &cqe);
	return true;
}

/* Ready to Transfer: the next part of a command's data, which may be sent at once. */
static bool take_r2t(struct nvmf_queue *queue, const struct nvme_tcp_r2t *r2t)
{
	struct nvmf_request *request = nvmf_request_of(queue, r2t->cccid);

	if (!request || request->way != NVMF_TO_CONTROLLER)
		return refuse_field(queue, offsetof(struct nvme_tcp_r2t, cccid),
				    "R2T for no command that sends data");
	if (r2t->r2to != request->granted || r2t->r2tl > request->bytes - request->granted)
		return refuse_range(queue, "R2T for data that the command does not have, or has sent");
	if (request->sending > 2 * NVMF_MOST_R2T || /* one that was sent may still be counted */
	    !nvmf_line_room(&queue->connection))
		return refuse(queue, &(struct weir_tcp_error){ NVME_TCP_FES_LIMIT, 0 },
			      "more R2Ts at a time than were agreed");
	request->granted += r2t->r2tl;
	nvmf_line_put(&queue->connection, &(struct nvmf_pdu){ .request = request,
							      .offset = r2t->r2to,
							      .bytes = r2t->r2tl,
							      .ttag = r2t->ttag,
							      .type = NVME_TCP_H2C_DATA });
	return true;
}

static bool begin_data(struct nvmf_queue *queue, const struct nvme_tcp_data *data)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	struct nvmf_request *request = nvmf_request_of(queue, data->cccid);

	if (!request || request->way != NVMF_TO_HOST)
		return refuse_field(queue, offsetof(struct nvme_tcp_data, cccid),
				    "data for no command that wants any");
	if (data->datao != request->received || data->datal > request->bytes - request->received)
		return refuse_range(queue, "data outside what the command asked for, or out of order");
	if ((data->common.flags & NVME_TCP_SUCCESS) && data->datal != request->bytes - request->received)
		return refuse_range(queue, "success before all data");
	reader->request = request;
	reader->at = data->datao;
	reader->left = reader->layout.pad_bytes;
	reader->crc = 0;
	reader->stage = NVMF_STAGE_PAD;
	return true;
}

static bool take_header(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	struct weir_tcp_error error;

	if (!weir_tcp_check_header(&reader->header, &reader->layout, &error))
		return refuse(queue, &error,
			      error.fes == NVME_TCP_FES_HEADER_DIGEST ? "its header digest is wrong"
								      : "its header is wrong");
	reader->stage = NVMF_STAGE_COMMON;
	reader->have = 0;
	switch (reader->layout.type) {
	case NVME_TCP_CAPSULE_RESP: return take_response(queue, &reader->header.resp);
	case NVME_TCP_R2T: return take_r2t(queue, &reader->header.r2t);
	case NVME_TCP_C2H_DATA: return begin_data(queue, &reader->header.data);
	case NVME_TCP_C2H_TERM_REQ:
		nvmf_lose(queue->nvmf,
			  "the controller ended queue %u's connection: it met a wrong PDU (FES %u, FEI %u)",
			  queue->id, reader->header.term_req.fes, reader->header.term_req.fei_low);
		return false;
	default:
		return refuse(queue, &(struct weir_tcp_error){ NVME_TCP_FES_SEQUENCE, 0 },
			      "one that does not belong here");
	}
}

/* All of the PDU's data is where it belongs. */
static void end_data(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	struct nvmf_request *request = reader->request;

	request->received += reader->header.data.datal;
	if (queue->id)
		count_u64(&nvmf_storage(queue)->counters.bytes_in, reader->header.data.datal);
	reader->request = NULL;
	reader->stage = NVMF_STAGE_COMMON;
	reader->have = 0;
	if (reader->header.common.flags & NVME_TCP_SUCCESS)
		nvmf_request_end(queue, request, &(struct nvme_cqe){ .dw3 = request->cid });
}

/* @bytes of data arrived where they belong, in @iovs. */
static void note_data(struct nvmf_reader *reader, const struct iovec *iovs, u32 count, u32 bytes)
{
	for (u32 i = 0; i < count && reader->layout.data_digest; i++)
		reader->crc = weir_crc32c(reader->crc, iovs[i].iov_base, iovs[i].iov_len);
	reader->at += bytes;
	reader->left -= bytes;
}

/* From the buffer to the request's memory. True: no data is left of the PDU. */
static bool copy_data(struct nvmf_reader *reader)
{
	const struct nvmf_request *request = reader->request;
	struct iovec iovs[MOST_IOVS];

	while (reader->left && reader->begin < reader->end) {
		u32 there = reader->end - reader->begin, bytes = there < reader->left ? there : reader->left;
		u32 count = nvmf_slice(request->segments, request->segment_count, reader->at, &bytes, iovs,
				       MOST_IOVS);

		for (u32 i = 0; i < count; i++) {
			memcpy(iovs[i].iov_base, reader->buffer + reader->begin, iovs[i].iov_len);
			reader->begin += (u32)iovs[i].iov_len;
		}
		note_data(reader, iovs, count, bytes);
	}
	return !reader->left;
}

static bool skip(struct nvmf_reader *reader)
{
	u32 there = reader->end - reader->begin, part = there < reader->left ? there : reader->left;

	reader->begin += part;
	reader->left -= part;
	return !reader->left;
}

static void check_digest(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	u32 digest;

	memcpy(&digest, reader->digest, sizeof(digest));
	if (digest == reader->crc)
		return;
	reader->request->corrupt =
		true; /* the command ends with an error that passes; the connection is good */
	count_u64(&nvmf_storage(queue)->counters.digest_errors, 1);
}

/* The common header is there: how long is the whole? */
static bool begin_pdu(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	struct weir_tcp_error error;

	if (!weir_tcp_check(&reader->header.common, true, &queue->connection.in, &reader->layout, &error))
		return refuse(queue, &error, "its common header is wrong");
	reader->stage = NVMF_STAGE_HEADER;
	return true;
}

static u32 header_bytes(const struct nvmf_reader *reader)
{
	return reader->layout.header_bytes + (reader->layout.header_digest ? NVME_TCP_DIGEST_BYTES : 0);
}

static void after_data(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;

	reader->left = 0; /* counts up, here */
	if (reader->layout.data_digest)
		reader->stage = NVMF_STAGE_DIGEST;
	else
		end_data(queue);
}

/* One stage further. *@more: there may be more to do; false: the connection is lost. */
static bool step(struct nvmf_queue *queue, bool *more)
{
	struct nvmf_reader *reader = &queue->connection.reader;

	*more = false;
	switch (reader->stage) {
	case NVMF_STAGE_COMMON:
		*more = gather(reader, reader->header.bytes, &reader->have, sizeof(struct nvme_tcp_common));
		return !*more || begin_pdu(queue);
	case NVMF_STAGE_HEADER:
		*more = gather(reader, reader->header.bytes, &reader->have, header_bytes(reader));
		return !*more || take_header(queue);
	case NVMF_STAGE_PAD:
		if (!skip(reader))
			return true;
		reader->stage = NVMF_STAGE_DATA;
		reader->left = reader->layout.data_bytes;
		*more = true;
		return true;
	case NVMF_STAGE_DATA:
		*more = copy_data(reader);
		if (*more)
			after_data(queue);
		return true;
	case NVMF_STAGE_DIGEST:
		*more = gather(reader, reader->digest, &reader->left, NVME_TCP_DIGEST_BYTES);
		if (*more) {
			check_digest(queue);
			end_data(queue);
		}
		return true;
	}
	return true;
}

bool nvmf_take(struct nvmf_queue *queue)
{
	struct nvmf_reader *reader = &queue->connection.reader;
	bool more = true;

	while (more)
		if (!step(queue, &more))
			return false;
	if (reader->begin == reader->end)
		reader->begin = reader->end = 0;
	return true;
}

/* A long payload goes straight to its place; what follows it, to the buffer. */
static u32 prepare(struct nvmf_reader *reader, struct iovec iovs[MOST_IOVS + 1], u32 *direct)
{
	const struct nvmf_request *request = reader->request;
	u32 count = 0;

	*direct = 0;
	if (reader->stage == NVMF_STAGE_DATA && reader->left >= LEAST_DIRECT &&
	    reader->begin == reader->end) {
		*direct = reader->left;
		count = nvmf_slice(request->segments, request->segment_count, reader->at, direct, iovs,
				   MOST_IOVS);
	}
	if (*direct < reader->left && *direct) /* not all segments fit: nothing behind them may come first */
		return count;
	if (NVMF_BUFFER_BYTES - reader->end < LEAST_ROOM) {
		memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
		reader->end -= reader->begin;
		reader->begin = 0;
	}
	iovs[count++] = (struct iovec){ reader->buffer + reader->end, NVMF_BUFFER_BYTES - reader->end };
	return count;
}

/* @got bytes came: @direct of them at most straight to their place. */
static void account(struct nvmf_reader *reader, struct iovec *iovs, u32 direct, u32 got)
{
	u32 placed = got < direct ? got : direct, left = placed, count = 0;

	while (left) {
		if (iovs[count].iov_len > left)
			iovs[count].iov_len = left;
		left -= (u32)iovs[count++].iov_len;
	}
	note_data(reader, iovs, count, placed);
	reader->end += got - placed;
}

/* Return: false: nothing more for now. */
static bool receive_once(struct nvmf_queue *queue)
{
	struct nvmf_connection *connection = &queue->connection;
	struct iovec iovs[MOST_IOVS + 1];
	struct msghdr message = { .msg_iov = iovs };
	u32 direct, asked = 0;
	ssize_t got;

	message.msg_iovlen = prepare(&connection->reader, iovs, &direct);
	for (u32 i = 0; i < message.msg_iovlen; i++)
		asked += (u32)iovs[i].iov_len;
	got = weir_tls_or_recvmsg(connection->tls, connection->socket, &message);
	if (got > 0) {
		account(&connection->reader, iovs, direct, (u32)got);
		/* Fewer: epoll tells when more comes; but an end that it told of already it does not tell of
		 * again. */
		connection->readable = (u32)got == asked || connection->ending;
		return nvmf_take(queue);
	}
	if (got < 0 && errno == EINTR)
		return true;
	connection->readable = false;
	if (got == 0)
		nvmf_lose(queue->nvmf, "the controller closed queue %u's connection", queue->id);
	else if (errno != EAGAIN && errno != EWOULDBLOCK)
		nvmf_lose(queue->nvmf, "queue %u's connection broke: %s", queue->id, strerror(errno));
	return false;
}

bool nvmf_tcp_receive(struct nvmf_queue *queue)
{
	bool any = false;

	while (queue->connection.readable && !queue->nvmf->lost && receive_once(queue))
		any = true;
	return any;
}
