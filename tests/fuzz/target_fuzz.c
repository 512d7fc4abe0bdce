/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_fuzz.c: a target whose host sends anything: raw bytes, or PDUs that are well-formed but for
 * what they ask. The first
 * byte of the input says how far the connection has come before: nothing, ICReq, an admin queue, an I/O
 * queue. Once the host
 * has gone the target has no connection left, and serves the next one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/target.h"
#include "transport/fabrics/tcp_pdu.h"

#include "fuzz.h"

#define NQN "nqn.2026-11.org.example:fuzz"

enum { RAW_MOST = 255, STEPS_MOST = 64, RECORDS_MOST = 64, SINK_BYTES = 1 << 16 };

static struct weir_target *target;
static const struct weir_tcp_rules plain = { .most_data = 1 << 20 };
static uint8_t sink[SINK_BYTES], payload[8192];

/* A target of threads of ours alone: each step is one iteration of it. */
static void make_target(void)
{
	const struct weir_target_namespace_options spaces[] = { { .uri = "virt:256K?block=512&mdts=16K" },
								{ .uri = "virt:64K", .read_only = true } };
	const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
								 .namespaces = spaces,
								 .namespace_count = 2 };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};

	fuzz_must(weir_target_create(&options, &target) == 0);
}

/* What the target answered, into the sink. */
static size_t drain(int socket)
{
	size_t total = 0;
	ssize_t got;

	while ((got = recv(socket, sink, sizeof(sink), MSG_DONTWAIT)) > 0)
		total += (size_t)got;
	return total;
}

static void settle(int socket)
{
	for (unsigned i = 0; i < STEPS_MOST; i++)
		if (!weir_target_step(target, 0) && (socket < 0 || !drain(socket)))
			return;
}

static void put(int socket, const void *bytes, size_t count)
{
	(void)!send(socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void put_pdu(int socket, union nvme_tcp_header *header, uint8_t type, uint32_t bytes)
{
	put(socket, header, weir_tcp_build(header, type, bytes, &plain));
	if (bytes)
		put(socket, payload, bytes);
	settle(-1);
}

static int adopt(void)
{
	int pair[2];

	fuzz_must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	fuzz_must(weir_target_adopt(target, pair[1]) == 0);
	settle(-1);
	return pair[0];
}

static void hello(int socket)
{
	union nvme_tcp_header header = { .icreq = { .pfv = 0 } };

	put_pdu(socket, &header, NVME_TCP_ICREQ, 0);
	(void)drain(socket);
}

/* Its CNTLID. */
static uint16_t connect_queue(int socket, uint16_t qid, uint16_t cntlid)
{
	struct nvme_fabrics_connect connect = { .opcode = NVME_OPCODE_FABRICS,
						.psdt = 0x40,
						.fctype = NVME_FCTYPE_CONNECT,
						.sgl1 = { .bytes = 1024, .type = NVME_SGL_DATA_BLOCK_OFFSET },
						.qid = qid,
						.sqsize = 15 };
	struct nvme_fabrics_connect_data data = { .cntlid = cntlid, .subnqn = NQN, .hostnqn = "nqn.fuzz" };
	union nvme_tcp_header header = { .bytes = { 0 } };
	struct nvme_cqe cqe;

	memcpy(header.cmd.sqe, &connect, sizeof(connect));
	memcpy(payload, &data, sizeof(data));
	put_pdu(socket, &header, NVME_TCP_CAPSULE_CMD, sizeof(data));
	memset(payload, 0x5a, sizeof(data));
	fuzz_must(drain(socket) == sizeof(struct nvme_tcp_resp));
	memcpy(&cqe, sink + sizeof(struct nvme_tcp_common), sizeof(cqe));
	fuzz_must(cqe.dw3 >> 17 == 0);
	return (uint16_t)cqe.dw0;
}

static void enable(int socket)
{
	struct nvme_fabrics_property set = { .opcode = NVME_OPCODE_FABRICS,
					     .psdt = 0x40,
					     .fctype = NVME_FCTYPE_PROPERTY_SET,
					     .offset = NVME_PROPERTY_CC,
					     .value =
						     NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16 };
	union nvme_tcp_header header = { .bytes = { 0 } };

	memcpy(header.cmd.sqe, &set, sizeof(set));
	put_pdu(socket, &header, NVME_TCP_CAPSULE_CMD, 0);
	(void)drain(socket);
}

static void put_record(int socket, uint8_t kind, struct fuzz *fuzz)
{
	union nvme_tcp_header header = { .bytes = { 0 } };
	uint8_t raw[RAW_MOST];
	uint16_t bytes = 0;

	switch (kind % 4) {
	case 0:
		(void)fuzz_take(fuzz, &bytes, 1);
		(void)fuzz_take(fuzz, raw, bytes);
		put(socket, raw, bytes);
		break;
	case 1:
		(void)fuzz_take(fuzz, header.cmd.sqe, sizeof(header.cmd.sqe));
		(void)fuzz_take(fuzz, &bytes, sizeof(bytes));
		put_pdu(socket, &header, NVME_TCP_CAPSULE_CMD, bytes % (sizeof(payload) + 1));
		break;
	case 2:
		(void)fuzz_take(fuzz, &header.common.flags, 1);
		(void)fuzz_take(fuzz, &header.data.cccid, 8);
		(void)fuzz_take(fuzz, &bytes, sizeof(bytes));
		bytes = bytes % (sizeof(payload) + 1);
		header.data.datal = bytes;
		put_pdu(socket, &header, NVME_TCP_H2C_DATA, bytes);
		break;
	default: settle(socket);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz fuzz = { data, size };
	struct weir_target_stats stats;
	uint8_t stage = 0, kind;
	int admin = -1, socket;
	uint16_t cntlid;

	if (!target)
		make_target();
	(void)fuzz_take(&fuzz, &stage, 1);
	socket = adopt();
	if (stage % 4)
		hello(socket);
	if (stage % 4 >= 2) {
		cntlid = connect_queue(socket, 0, NVME_CNTLID_DYNAMIC);
		enable(socket);
		admin = stage % 4 == 3 ? socket : -1;
		if (admin >= 0) {
			socket = adopt();
			hello(socket);
			(void)connect_queue(socket, 1, cntlid);
		}
	}
	for (unsigned i = 0; i < RECORDS_MOST && fuzz_take(&fuzz, &kind, 1); i++)
		put_record(socket, kind, &fuzz);
	settle(socket);
	close(socket);
	if (admin >= 0)
		close(admin);
	settle(-1);
	weir_target_stats(target, &stats);
	fuzz_must(stats.connections == 0);
	return 0;
}
