/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_bytes_test.c: PDUs by a socket that takes and gives a part of them at a time, and memory in many
 * pieces: every byte is where it belongs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "transport/fabrics/paths.h"

enum { ENTRIES = 4, CID = 2, TTAG = 7, PIECES = 90, APART = 8192, QUEUE = 1, STREAM = 1 << 20 };

static struct {
	struct nvmf nvmf;
	struct nvmf_queue queue;
	struct nvmf_request requests[ENTRIES];
	struct nvme_cqe cqes[ENTRIES];
	struct iovec segments[PIECES];
} made;

static unsigned char memory[PIECES * APART], stream[STREAM];
static struct nvmf_request *const request = &made.requests[CID];
static int far_end;

/* Bytes of piece @index: none is as long as the next, none is another's neighbour. */
static u32 piece_bytes(u32 index)
{
	return index % 7 ? 4100 + 4 * index : 4 * index + 4;
}

static unsigned char byte_at(u32 offset)
{
	return (unsigned char)(offset / 3 + offset / 4099 + 1);
}

static u32 make(u8 opcode, enum nvmf_way way, const struct weir_tcp_rules *rules)
{
	struct nvmf_connection *connection = &made.queue.connection;
	int ends[2], small = 1;
	u32 bytes = 0;

	memset(&made, 0, sizeof(made));
	memset(memory, 0, sizeof(memory));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	made.nvmf = (struct nvmf){ .wire = &nvmf_wire_tcp,
				   .queues = &made.queue,
				   .queue_count = 1,
				   .associated = true,
				   .epoll = -1 };
	made.queue = (struct nvmf_queue){ .nvmf = &made.nvmf,
					  .id = QUEUE,
					  .size = ENTRIES,
					  .most = ENTRIES,
					  .requests = made.requests,
					  .cq = made.cqes,
					  .phase = 1 };
	assert_int_equal(nvmf_wire_tcp.create(&made.queue, ENTRIES), 0);
	connection->socket = ends[0];
	far_end = ends[1];
	connection->open = true;
	connection->in = connection->out = *rules;
	connection->in.most_data = UINT32_MAX;
	for (u32 i = 0; i < PIECES; bytes += piece_bytes(i++))
		made.segments[i] = (struct iovec){ memory + (size_t)i * APART, piece_bytes(i) };
	*request = (struct nvmf_request){ .sqe.cdw0 = opcode,
					  .cid = CID,
					  .way = (u8)way,
					  .state = NVMF_SENT,
					  .carrier = &made.queue,
					  .segments = made.segments,
					  .segment_count = PIECES,
					  .bytes = bytes };
	made.queue.inflight = made.queue.carried = made.nvmf.under_way = 1;
	return bytes;
}

static void end(void)
{
	nvmf_wire_tcp.close(&made.queue);
	nvmf_wire_tcp.destroy(&made.queue);
	close(far_end);
}

/* ---- to the controller ---- */

/* All that is in line, which the far end reads in parts of an odd length. Return: bytes. */
static u32 sent(void)
{
	u32 have = 0;

	for (u32 step = 1; request->sending; step = step % 8191 + 611) {
		ssize_t got;

		made.queue.connection.writable = true;
		(void)nvmf_wire_tcp.send(&made.queue);
		assert_false(made.nvmf.lost);
		got = read(far_end, stream + have, step);
		have += got > 0 ? (u32)got : 0;
		assert_true(have < STREAM - 8191);
	}
	for (ssize_t got; (got = read(far_end, stream + have, STREAM - have)) > 0; have += (u32)got)
		;
	return have;
}

/* The PDU at @at is data of @bytes at most for that R2T, from @offset on, each byte of it right. Return:
 * where the next one is. */
static u32 check_pdu(u32 at, u32 offset, u32 end_offset, const struct weir_tcp_rules *rules, u32 *bytes)
{
	union nvme_tcp_header header;
	struct weir_tcp_layout layout;
	struct weir_tcp_error error;
	u32 begin, digest;

	memcpy(header.bytes, stream + at, sizeof(header.bytes));
	assert_true(weir_tcp_check(&header.common, false, rules, &layout, &error));
	assert_true(weir_tcp_check_header(&header, &layout, &error));
	assert_int_equal(layout.type, NVME_TCP_H2C_DATA);
	assert_int_equal(header.data.cccid, CID);
	assert_int_equal(header.data.ttag, TTAG);
	assert_int_equal(header.data.datao, offset);
	*bytes = header.data.datal;
	assert_true(offset + *bytes <= end_offset);
	assert_int_equal((header.common.flags & NVME_TCP_LAST_PDU) != 0, offset + *bytes == end_offset);
	begin = at + layout.header_bytes + (layout.header_digest ? NVME_TCP_DIGEST_BYTES : 0) +
		layout.pad_bytes;
	for (u32 i = 0; i < *bytes; i++)
		if (stream[begin + i] != byte_at(offset + i))
			fail_msg("byte %u", offset + i);
	if (layout.data_digest) {
		memcpy(&digest, stream + begin + *bytes, sizeof(digest));
		assert_int_equal(digest, weir_crc32c(0, stream + begin, *bytes));
	}
	return at + header.common.plen;
}

static const struct weir_tcp_rules rules[] = {
	{ .most_data = 4096 },
	{ .most_data = 65536, .header_digest = true, .data_digest = true, .alignment = 64 },
	{ .most_data = 1 << 20, .data_digest = true },
};

/* Two R2Ts, of which neither begins or ends where a piece does. */
static void data_leaves_in_parts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		u32 all = make(NVME_OPCODE_WRITE, NVMF_TO_CONTROLLER, &rules[i]), cut = all / 2 + 1, have;
		const u32 ends[] = { cut, all };
		u32 at = 0, offset = 0;

		for (u32 piece = 0; piece < PIECES; piece++)
			for (u32 j = 0; j < piece_bytes(piece); j++)
				memory[(size_t)piece * APART + j] = byte_at(offset++);
		offset = 0;
		for (unsigned part = 0; part < 2; part++)
			nvmf_line_put(&made.queue.connection,
				      &(struct nvmf_pdu){ .request = request,
							  .offset = part ? cut : 0,
							  .bytes = part ? all - cut : cut,
							  .ttag = TTAG,
							  .type = NVME_TCP_H2C_DATA });
		assert_int_equal(request->sending, 2);
		have = sent();
		for (unsigned part = 0; part < 2; part++)
			while (offset < ends[part]) {
				u32 bytes;

				at = check_pdu(at, offset, ends[part], &rules[i], &bytes);
				assert_true(bytes <= rules[i].most_data);
				offset += bytes;
			}
		assert_int_equal(at, have);
		assert_int_equal(request->state, NVMF_SENT); /* it waits for its answer */
		end();
	}
}

/* ---- from the controller ---- */

/* A PDU behind those of @have bytes. */
static u32 put(u32 have, union nvme_tcp_header *header, u8 type, u32 offset, u32 bytes,
	       const struct weir_tcp_rules *of)
{
	size_t head = weir_tcp_build(header, type, bytes, of);
	u32 digest;

	memcpy(stream + have, header->bytes, head);
	have += (u32)head;
	for (u32 i = 0; i < bytes; i++)
		stream[have + i] = byte_at(offset + i);
	digest = weir_crc32c(0, stream + have, bytes);
	have += bytes;
	if (bytes && of->data_digest) {
		memcpy(stream + have, &digest, sizeof(digest));
		have += NVME_TCP_DIGEST_BYTES;
	}
	return have;
}

/* Data of a read in PDUs of @step bytes, and its response. */
static u32 answer_of(u32 all, u32 step, const struct weir_tcp_rules *of)
{
	const struct nvme_cqe cqe = { .dw3 = CID };
	union nvme_tcp_header header;
	u32 have = 0;

	for (u32 offset = 0, bytes; offset < all; offset += bytes) {
		bytes = all - offset < step ? all - offset : step;
		memset(&header, 0, sizeof(header));
		header.data.cccid = CID;
		header.data.datao = offset;
		header.data.datal = bytes;
		header.common.flags = offset + bytes == all ? NVME_TCP_LAST_PDU : 0;
		have = put(have, &header, NVME_TCP_C2H_DATA, offset, bytes, of);
	}
	memset(&header, 0, sizeof(header));
	memcpy(header.resp.cqe, &cqe, sizeof(cqe));
	return put(have, &header, NVME_TCP_CAPSULE_RESP, 0, 0, of);
}

static void data_arrives_in_parts(void **state)
{
	static const u32 steps[] = { 5000, 100000, STREAM };

	(void)state;
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]) * 3; i++) {
		const struct weir_tcp_rules *of = &rules[i / 3];
		u32 all = make(NVME_OPCODE_READ, NVMF_TO_HOST, of), have = answer_of(all, steps[i % 3], of);
		u32 offset = 0,
		    part = i % 2 ? 1 : STREAM; /* little at a time, or all that the socket takes */

		for (u32 at = 0; at < have; part = i % 2 ? part % 30011 + 977 : STREAM) {
			ssize_t put_bytes = write(far_end, stream + at, part < have - at ? part : have - at);

			at += put_bytes > 0 ? (u32)put_bytes : 0;
			made.queue.connection.readable = true;
			(void)nvmf_wire_tcp.receive(&made.queue);
			assert_false(made.nvmf.lost);
			assert_false(made.queue.connection.readable); /* all that has come was taken */
		}
		for (u32 piece = 0; piece < PIECES; piece++) {
			for (u32 j = 0; j < piece_bytes(piece); j++)
				if (memory[(size_t)piece * APART + j] != byte_at(offset++))
					fail_msg("byte %u of %u", offset - 1, all);
			for (u32 j = piece_bytes(piece); j < APART; j++)
				assert_int_equal(memory[(size_t)piece * APART + j], 0);
		}
		assert_int_equal(request->state, NVMF_FREE);
		assert_int_equal(request->received, all);
		assert_int_equal(made.cqes[0].dw3, 1u << 16 | CID);
		assert_int_equal(load_relaxed_u64(&made.nvmf.counters.bytes_in), all);
		assert_int_equal(load_relaxed_u64(&made.nvmf.counters.digest_errors), 0);
		end();
	}
}

/* An end behind an answer: what came before it counts, and then the connection is lost. */
static void an_end_behind_an_answer(void **state)
{
	u32 all = make(NVME_OPCODE_READ, NVMF_TO_HOST, &rules[0]), have = answer_of(all, 1000, &rules[0]);

	(void)state;
	for (u32 at = 0; at < have;) {
		ssize_t put_bytes = write(far_end, stream + at, have - at < 4000 ? have - at : 4000);

		at += put_bytes > 0 ? (u32)put_bytes : 0;
		if (at == have)
			assert_int_equal(shutdown(far_end, SHUT_WR), 0);
		made.queue.connection.ending = at == have; /* as epoll says once */
		made.queue.connection.readable = true;
		(void)nvmf_wire_tcp.receive(&made.queue);
	}
	assert_int_equal(request->state, NVMF_FREE);
	assert_int_equal(made.cqes[0].dw3, 1u << 16 | CID);
	assert_true(made.nvmf.lost);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_leaves_in_parts),
		cmocka_unit_test(data_arrives_in_parts),
		cmocka_unit_test(an_end_behind_an_answer),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_bytes", tests, NULL, NULL);
}
