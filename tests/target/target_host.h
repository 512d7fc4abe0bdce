/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_host.h: a host of NVMe/TCP for tests of the target: one PDU at a time, each field as the test
 * wants it.
 *
 * Owns: one socket, blocking, and what its ICResp agreed to. What comes is checked as strictly as the
 * target checks.
 */
#ifndef WEIR_TESTS_TARGET_HOST_H
#define WEIR_TESTS_TARGET_HOST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "target/target.h"
#include "base/crc32c.h"
#include "transport/fabrics/tcp_pdu.h"

#define HOST_SUBSYSTEM "nqn.2026-11.org.example:disk1"
#define HOST_OTHER     "nqn.2026-11.org.example:disk2"
#define HOST_NAME      "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"

enum {
	HOST_DATA_BYTES = 1 << 20,
	HOST_TIMEOUT_S = 100, /* a last resort */
	HOST_MOST_STEPS = 100000,
	HOST_RECORD_BYTES = 1 << 16
};

/**
 * struct host - @socket; @rules: agreed; @flow_control: Connect left it on; @header, @data, @data_bytes: of
 * the PDU received last
 */
struct host {
	int socket;
	struct weir_tcp_rules rules;
	union nvme_tcp_header header;
	struct weir_tcp_layout layout;
	u32 data_bytes;
	u16 next_cid;
	bool flow_control;
	u8 data[HOST_DATA_BYTES];
};

static inline struct weir_target *host_target_of(unsigned threads, const char *listen, const char *uri)
{
	const struct weir_target_namespace_options first[] = { { .uri = "virt:4M?block=512" },
							       { .uri = uri } };
	static const struct weir_target_namespace_options second[] = { { .uri = "virt:1M",
									 .read_only = true } };
	static const char *const hosts[] = { "nqn.2026-11.org.example:only-this" };
	const struct weir_target_subsystem_options subsystems[] = {
		{ .nqn = HOST_SUBSYSTEM, .namespaces = first, .namespace_count = 2 },
		{ .nqn = HOST_OTHER,
		  .namespaces = second,
		  .namespace_count = 1,
		  .hosts = hosts,
		  .host_count = 1 },
	};
	struct weir_target_options options = { .size = sizeof(options),
					       .listen = &listen,
					       .listen_count = listen != NULL,
					       .subsystems = subsystems,
					       .subsystem_count = 2,
					       .threads = threads };
	struct weir_target *target;

	if (weir_target_create(&options, &target) != 0)
		abort();
	return target;
}

static inline struct weir_target *host_target(unsigned threads, const char *listen)
{
	return host_target_of(threads, listen, "virt:1M?block=4096");
}

/* A target without threads of its own, which is stepped while a host waits; how often it was,
 * and how many events and completions it dealt with. */
static struct weir_target *host_stepped;
static unsigned host_steps;

static inline ssize_t host_recv(struct host *host, void *to, size_t bytes)
{
	ssize_t got = recv(host->socket, to, bytes, host_stepped ? MSG_DONTWAIT : 0);

	for (unsigned i = 0; host_stepped && got < 0 && errno == EAGAIN && i < HOST_MOST_STEPS; i++) {
		host_steps += 1 + weir_target_step(host_stepped, 0);
		got = recv(host->socket, to, bytes, MSG_DONTWAIT);
	}
	return got;
}

static inline bool host_bytes(struct host *host, void *to, size_t bytes)
{
	while (bytes) {
		ssize_t got = host_recv(host, to, bytes);

		if (got < 0 && errno == EAGAIN)
			abort(); /* nothing for HOST_TIMEOUT_S */
		if (got <= 0)
			return false;
		to = (u8 *)to + got;
		bytes -= (size_t)got;
	}
	return true;
}

/** struct host_record - what hosts sent, for who sends it again */
struct host_record {
	size_t count;
	u8 bytes[HOST_RECORD_BYTES];
};

/* Where all that hosts send is kept; NULL: nowhere. */
static struct host_record *host_record;

static inline void host_send(const struct host *host, const void *bytes, size_t count)
{
	if (host_record && bytes) {
		if (count > HOST_RECORD_BYTES - host_record->count)
			abort();
		memcpy(host_record->bytes + host_record->count, bytes, count);
		host_record->count += count;
	}
	(void)!send(host->socket, bytes, count, MSG_NOSIGNAL); /* the target may have ended it */
}

/** host_receive() - the next PDU; false: the connection was closed */
static inline bool host_receive(struct host *host)
{
	struct weir_tcp_error error;
	u8 skip[NVME_TCP_LONGEST_HEADER];
	u32 digest;

	if (!host_bytes(host, &host->header, sizeof(host->header.common)))
		return false;
	if (!weir_tcp_check(&host->header.common, true, &host->rules, &host->layout, &error))
		abort();
	if (!host_bytes(host, host->header.bytes + 8,
			host->layout.header_bytes - 8 + (host->layout.header_digest ? 4 : 0)) ||
	    !weir_tcp_check_header(&host->header, &host->layout, &error))
		abort();
	host->data_bytes = host->layout.data_bytes;
	if (!host_bytes(host, skip, host->layout.pad_bytes) ||
	    !host_bytes(host, host->data, host->data_bytes))
		abort();
	if (host->layout.data_digest &&
	    (!host_bytes(host, &digest, 4) || digest != weir_crc32c(0, host->data, host->data_bytes)))
		abort();
	return true;
}

static inline void host_adopt(struct host *host, struct weir_target *target)
{
	struct timeval retry_limit = { .tv_sec = HOST_TIMEOUT_S };
	int pair[2];

	memset(host, 0, offsetof(struct host, data));
	host->rules.most_data = HOST_DATA_BYTES;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || weir_target_adopt(target, pair[1]) != 0)
		abort();
	host->socket = pair[0];
	setsockopt(host->socket, SOL_SOCKET, SO_RCVTIMEO, &retry_limit, sizeof(retry_limit));
}

static inline void host_hello(struct host *host, u8 digests, u8 hpda)
{
	union nvme_tcp_header header = { .icreq = { .dgst = digests, .hpda = hpda } };
	size_t bytes = weir_tcp_build(&header, NVME_TCP_ICREQ, 0, &host->rules);

	host_send(host, &header, bytes);
	if (!host_receive(host) || host->header.common.type != NVME_TCP_ICRESP)
		abort();
	host->rules.header_digest = digests & NVME_TCP_HDGST_ENABLE;
	host->rules.data_digest = digests & NVME_TCP_DDGST_ENABLE;
	host->rules.alignment = ((u32)hpda + 1) * 4;
}

/** host_again() - another connection: one that tries to connect has TARGET_HELLO_MS for all of its tries */
static inline void host_again(struct host *host, struct weir_target *target)
{
	close(host->socket);
	host_adopt(host, target);
	host_hello(host, 0, 0);
}

/** host_capsule() - send a command; its data, where @bytes is not 0, in the capsule */
static inline void host_capsule(struct host *host, const struct nvme_sqe *sqe, const void *data, u32 bytes)
{
	struct weir_tcp_rules rules = host->rules;
	union nvme_tcp_header header = { .bytes = { 0 } };
	u32 digest;
	size_t head;

	rules.alignment = 4; /* CPDA */
	memcpy(header.cmd.sqe, sqe, sizeof(*sqe));
	head = weir_tcp_build(&header, NVME_TCP_CAPSULE_CMD, bytes, &rules);
	host_send(host, &header, head);
	host_send(host, data, bytes);
	if (bytes && rules.data_digest) {
		digest = weir_crc32c(0, data, bytes);
		host_send(host, &digest, 4);
	}
}

/** host_h2c() - data of a write; @wrong: bits of its digest that are */
static inline void host_h2c(struct host *host, u16 cid, u16 ttag, u32 offset, const void *data, u32 bytes,
			    bool last, u32 wrong)
{
	struct weir_tcp_rules rules = host->rules;
	union nvme_tcp_header header = { .data = { .common.flags = last ? NVME_TCP_LAST_PDU : 0,
						   .cccid = cid,
						   .ttag = ttag,
						   .datao = offset,
						   .datal = bytes } };
	u32 digest = weir_crc32c(0, data, bytes) ^ wrong;
	size_t head;

	rules.alignment = 4;
	head = weir_tcp_build(&header, NVME_TCP_H2C_DATA, bytes, &rules);
	host_send(host, &header, head);
	host_send(host, data, bytes);
	if (rules.data_digest)
		host_send(host, &digest, 4);
}

static inline void host_sgl(struct nvme_sqe *sqe, u8 type, u32 bytes)
{
	struct nvme_sgl sgl = { .bytes = bytes, .type = type };

	memcpy(&sqe->prp1, &sgl, sizeof(sgl));
	sqe->cdw0 |= NVME_PSDT_SGL;
}

/* The status of a response capsule, and its result. */
static inline u32 host_status(const struct host *host, u64 *result)
{
	struct nvme_cqe cqe;

	memcpy(&cqe, host->header.resp.cqe, sizeof(cqe));
	if (result)
		*result = cqe.dw0 | (u64)cqe.dw1 << 32;
	return cqe.dw3 >> 17;
}

static inline u32 host_response(struct host *host, u64 *result)
{
	if (!host_receive(host) || host->header.common.type != NVME_TCP_CAPSULE_RESP)
		abort();
	return host_status(host, result);
}

static inline u32 host_connect(struct host *host, u16 qid, u16 sqsize, u16 cntlid, u8 cattr, const char *nqn,
			       const char *name, u64 *result)
{
	struct nvme_fabrics_connect connect = { .opcode = NVME_OPCODE_FABRICS,
						.cid = host->next_cid++,
						.fctype = NVME_FCTYPE_CONNECT,
						.qid = qid,
						.sqsize = sqsize,
						.cattr = cattr,
						.kato = qid ? 0 : 60000 };
	struct nvme_fabrics_connect_data data = { .cntlid = cntlid, .hostid = { 1, 2, 3 } };
	struct nvme_sqe sqe;

	host->flow_control = !(cattr & NVME_CATTR_SQ_FLOW_DISABLE);
	snprintf(data.subnqn, sizeof(data.subnqn), "%s", nqn);
	snprintf(data.hostnqn, sizeof(data.hostnqn), "%s", name);
	memcpy(&sqe, &connect, sizeof(sqe));
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, sizeof(data));
	host_capsule(host, &sqe, &data, sizeof(data));
	return host_response(host, result);
}

static inline u32 host_property(struct host *host, bool set, u32 offset, u8 attrib, u64 value, u64 *result)
{
	struct nvme_fabrics_property property = { .opcode = NVME_OPCODE_FABRICS,
						  .psdt = 0x40,
						  .cid = host->next_cid++,
						  .attrib = attrib,
						  .fctype = set ? NVME_FCTYPE_PROPERTY_SET
								: NVME_FCTYPE_PROPERTY_GET,
						  .offset = offset,
						  .value = value };
	struct nvme_sqe sqe;

	memcpy(&sqe, &property, sizeof(sqe));
	host_capsule(host, &sqe, NULL, 0);
	return host_response(host, result);
}

/** host_admin() - an admin queue that is connected and enabled; its CNTLID */
static inline u16 host_admin(struct host *host, struct weir_target *target, u8 digests)
{
	u64 cntlid;

	host_adopt(host, target);
	host_hello(host, digests, 0);
	if (host_connect(host, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME, &cntlid) != 0 ||
	    host_property(host, true, NVME_PROPERTY_CC, 0,
			  NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL) != 0)
		abort();
	return (u16)cntlid;
}

/** host_queue() - I/O queue @qid of controller @cntlid */
static inline void host_queue(struct host *host, struct weir_target *target, u16 cntlid, u16 qid, u8 digests,
			      u8 cattr)
{
	host_adopt(host, target);
	host_hello(host, digests, 0);
	if (host_connect(host, qid, 31, cntlid, cattr, HOST_SUBSYSTEM, HOST_NAME, NULL) != 0)
		abort();
}

static inline struct nvme_sqe host_command(struct host *host, u8 opcode, u32 nsid)
{
	return (struct nvme_sqe){ .cdw0 = opcode | (u32)host->next_cid++ << 16, .nsid = nsid };
}

static inline struct nvme_sqe host_io(struct host *host, u8 opcode, u32 nsid, u64 lba, u32 blocks)
{
	struct nvme_sqe sqe = host_command(host, opcode, nsid);

	sqe.cdw10 = (u32)lba;
	sqe.cdw11 = (u32)(lba >> 32);
	sqe.cdw12 = blocks - 1;
	return sqe;
}

/** host_take() - a command whose data comes back: its status, the data in host->data */
static inline u32 host_take(struct host *host, struct nvme_sqe sqe, u32 bytes)
{
	u32 status;

	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, bytes);
	host_capsule(host, &sqe, NULL, 0);
	if (!host_receive(host))
		abort();
	if (host->header.common.type == NVME_TCP_CAPSULE_RESP)
		return host_status(host, NULL);
	if (host->header.common.type != NVME_TCP_C2H_DATA || host->data_bytes != bytes)
		abort();
	if ((host->header.common.flags & NVME_TCP_SUCCESS) && host->flow_control)
		abort();
	if (host->header.common.flags & NVME_TCP_SUCCESS)
		return 0;
	if (!host_bytes(host, &host->header, 24 + (host->rules.header_digest ? 4 : 0)))
		abort();
	status = host_status(host, NULL);
	return status;
}

/** host_give() - a command with data, in its capsule or in answer to R2T in two parts; its status */
static inline u32 host_give(struct host *host, struct nvme_sqe sqe, const void *data, u32 bytes,
			    bool in_capsule)
{
	struct nvme_tcp_r2t r2t;
	u32 half = bytes / 2;

	host_sgl(&sqe, in_capsule ? NVME_SGL_DATA_BLOCK_OFFSET : NVME_SGL_TRANSPORT_DATA_BLOCK, bytes);
	host_capsule(host, &sqe, data, in_capsule ? bytes : 0);
	if (!host_receive(host))
		abort();
	if (host->header.common.type == NVME_TCP_CAPSULE_RESP)
		return host_status(host, NULL);
	r2t = host->header.r2t;
	if (r2t.common.type != NVME_TCP_R2T || r2t.r2tl != bytes || r2t.r2to || r2t.cccid != sqe.cdw0 >> 16)
		abort();
	host_h2c(host, r2t.cccid, r2t.ttag, 0, data, half, false, 0);
	host_h2c(host, r2t.cccid, r2t.ttag, half, (const u8 *)data + half, bytes - half, true, 0);
	return host_response(host, NULL);
}

/** host_ended() - the target ends the connection, with a TermReq of @fes */
static inline bool host_ended(struct host *host, u16 fes)
{
	bool said = false;

	while (host_receive(host))
		said = said || (host->header.common.type == NVME_TCP_C2H_TERM_REQ &&
				host->header.term_req.fes == fes);
	return said;
}

#endif
