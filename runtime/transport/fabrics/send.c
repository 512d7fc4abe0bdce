/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c: PDUs from the line to the socket.
 *
 * Owns: what is being sent. Data goes from where lanes have it, without a copy of ours.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "../../base/crc32c.h"
#include "nvmf.h"

u32 nvmf_slice(const struct iovec *segments, u32 count, u32 offset, u32 *bytes, struct iovec *to, u32 room)
{
	u32 used = 0, left = *bytes;

	for (u32 i = 0; i < count && left && used < room; i++) {
		size_t length = segments[i].iov_len, part;

		if (offset >= length) {
			offset -= (u32)length;
			continue;
		}
		part = length - offset < left ? length - offset : left;
		to[used++] = (struct iovec){ (char *)segments[i].iov_base + offset, part };
		left -= (u32)part;
		offset = 0;
	}
	*bytes -= left;
	return used;
}

u32 nvmf_line_room(const struct nvmf_connection *connection)
{
	return connection->line_size - (connection->line_tail - connection->line_head);
}

void nvmf_line_put(struct nvmf_connection *connection, const struct nvmf_pdu *pdu)
{
	connection->line[connection->line_tail++ % connection->line_size] = *pdu;
	pdu->request->sending++;
}

struct nvme_sqe nvmf_capsule(const struct nvmf_request *request)
{
	struct nvme_sqe sqe = request->sqe;

	sqe.cdw0 = (sqe.cdw0 & 0x03ffu) | NVME_PSDT_SGL | (u32)request->cid << 16;
	sqe.mptr = 0;
	return sqe;
}

/* An SGL where lanes wrote PRPs. */
static void make_capsule(const struct nvmf_pdu *pdu, struct nvme_tcp_cmd *cmd)
{
	struct nvme_sqe sqe = nvmf_capsule(pdu->request);
	struct nvme_sgl sgl = { .bytes = pdu->request->bytes,
				.type = pdu->bytes ? NVME_SGL_DATA_BLOCK_OFFSET
						   : NVME_SGL_TRANSPORT_DATA_BLOCK };

	memcpy(&sqe.prp1, &sgl, sizeof(sgl));
	memcpy(cmd->sqe, &sqe, sizeof(sqe));
}

/* H2CData's header; of a command's last part for this R2T, LAST_PDU is set. */
static void make_data(const struct nvmf_pdu *pdu, u32 bytes, struct nvme_tcp_data *data)
{
	data->cccid = pdu->request->cid;
	data->ttag = pdu->ttag;
	data->datao = pdu->offset;
	data->datal = bytes;
	data->common.flags = bytes == pdu->bytes ? NVME_TCP_LAST_PDU : 0;
}

static void add_digest(struct nvmf_batch *batch, u32 first)
{
	u32 crc = 0;

	for (u32 i = first; i < batch->count; i++)
		crc = weir_crc32c(crc, batch->iovs[i].iov_base, batch->iovs[i].iov_len);
	batch->digests[batch->pdus] = crc;
	batch->iovs[batch->count++] = (struct iovec){ &batch->digests[batch->pdus], NVME_TCP_DIGEST_BYTES };
}

/* One PDU of the first in line, which leaves the line with its last one. False: there is no room. */
static bool add_pdu(struct nvmf_connection *connection)
{
	struct nvmf_batch *batch = connection->batch;
	struct nvmf_pdu *pdu = &connection->line[connection->line_head % connection->line_size];
	union nvme_tcp_header *header = &batch->headers[batch->pdus];
	/* MAXH2CDATA is of H2CData alone. */
	bool whole = pdu->type == NVME_TCP_CAPSULE_CMD || pdu->bytes < connection->out.most_data;
	u32 bytes = whole ? pdu->bytes : connection->out.most_data;
	u32 first, room = NVMF_BATCH_IOVS - batch->count;

	if (room < pdu->request->segment_count + 3)
		return false;
	memset(&header->common, 0, sizeof(struct nvme_tcp_data));
	if (pdu->type == NVME_TCP_CAPSULE_CMD)
		make_capsule(pdu, &header->cmd);
	else
		make_data(pdu, bytes, &header->data);
	batch->iovs[batch->count++] =
		(struct iovec){ header, weir_tcp_build(header, pdu->type, bytes, &connection->out) };
	first = batch->count;
	batch->count += nvmf_slice(pdu->request->segments, pdu->request->segment_count, pdu->offset, &bytes,
				   batch->iovs + batch->count, room - 2);
	if (bytes && connection->out.data_digest)
		add_digest(batch, first);
	pdu->offset += bytes;
	pdu->bytes -= bytes;
	batch->requests[batch->pdus++] = pdu->bytes ? NULL : pdu->request;
	if (!pdu->bytes)
		connection->line_head++;
	return true;
}

static bool fill(struct nvmf_connection *connection)
{
	struct nvmf_batch *batch = connection->batch;

	batch->at = batch->count = batch->pdus = 0;
	while (connection->line_head != connection->line_tail && batch->pdus < NVMF_BATCH &&
	       add_pdu(connection))
		;
	return batch->count > 0;
}

/* @sent bytes of the batch left. */
static void advance(struct nvmf_batch *batch, size_t sent)
{
	while (sent && batch->at < batch->count) {
		struct iovec *iov = &batch->iovs[batch->at];

		if (sent < iov->iov_len) {
			iov->iov_base = (char *)iov->iov_base + sent;
			iov->iov_len -= sent;
			return;
		}
		sent -= iov->iov_len;
		batch->at++;
	}
}

static void finish(struct nvmf_queue *queue)
{
	struct nvmf_batch *batch = queue->connection.batch;
	u32 pdus = batch->pdus;

	batch->pdus = 0;
	for (u32 i = 0; i < pdus; i++)
		if (batch->requests[i])
			nvmf_request_sent(queue, batch->requests[i]);
}

bool nvmf_tcp_send(struct nvmf_queue *queue)
{
	struct nvmf_connection *connection = &queue->connection;
	struct nvmf_batch *batch = connection->batch;
	bool any = false;

	while (connection->writable && (batch->at < batch->count || fill(connection))) {
		struct msghdr message = { .msg_iov = batch->iovs + batch->at,
					  .msg_iovlen = batch->count - batch->at };
		ssize_t sent = weir_tls_or_sendmsg(connection->tls, connection->socket, &message);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			connection->writable = false;
			break;
		}
		if (sent < 0) {
			nvmf_lose(queue->nvmf, "sending failed: %s", strerror(errno));
			break;
		}
		any = true;
		advance(batch, (size_t)sent);
		if (batch->at == batch->count)
			finish(queue);
	}
	return any;
}
