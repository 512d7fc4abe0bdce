/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_raw.h: a host of NVMe/RDMA that sends whatever a test wants, over the verbs of fake_verbs.h, to a
 * target without threads of its own: each step is one iteration of it.
 */
#ifndef WEIR_TESTS_RDMA_RAW_H
#define WEIR_TESTS_RDMA_RAW_H

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fake_verbs.h"
#include "target/target.h"
#include "transport/fabrics/rdma_link.h"
#include "transport/fabrics/rdma_message.h"

enum { RAW_ENTRIES = 32, RAW_STEPS = 64, RAW_CAPSULE = 16384, RAW_DATA = 16384 };

/**
 * struct raw - a host
 * @capsule: sent from here
 * @data: memory under @key
 * @responses: received
 * @came: how many; the last one is @last
 * @ended: the target has ended the connection
 */
struct raw {
	struct weir_target *target;
	struct weir_rdma_link link;
	struct ibv_pd *domain;
	unsigned char capsule[RAW_CAPSULE];
	unsigned char data[RAW_DATA];
	struct nvme_cqe responses[RAW_ENTRIES];
	struct ibv_mr *capsules;
	struct ibv_mr *memory;
	struct ibv_mr *answers;
	uint32_t key;
	unsigned came;
	struct nvme_cqe last;
	bool ended;
	bool refused;
};

static void raw_receive(struct raw *raw, uint64_t index)
{
	(void)weir_rdma_receive(&raw->link, index, &raw->responses[index], sizeof(*raw->responses),
				raw->answers->lkey);
}

/* What came. */
static void raw_poll(struct raw *raw)
{
	struct rdma_cm_event *event;
	struct ibv_wc done;

	while (rdma_get_cm_event(raw->link.events, &event) == 0) {
		raw->ended |= event->event == RDMA_CM_EVENT_DISCONNECTED;
		raw->refused |= event->event == RDMA_CM_EVENT_REJECTED;
		(void)rdma_ack_cm_event(event);
	}
	while (ibv_poll_cq(raw->link.cq, 1, &done) == 1) {
		if (done.status || done.wr_id >= RAW_ENTRIES)
			continue;
		raw->last = raw->responses[done.wr_id];
		raw->came++;
		raw_receive(raw, done.wr_id);
	}
}

static void raw_settle(struct raw *raw)
{
	for (unsigned i = 0; i < RAW_STEPS; i++)
		(void)weir_target_step(raw->target, 0);
	if (raw->link.id)
		raw_poll(raw);
}

/* Connect to @port, with these bytes of private data. */
static void raw_begin(struct raw *raw, struct weir_target *target, unsigned port, const void *data,
		      uint8_t bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = bytes,
					 .responder_resources = 1 };

	memset(raw, 0, sizeof(*raw));
	raw->target = target;
	raw->link.events = weir_rdma_events();
	(void)rdma_create_id(raw->link.events, &raw->link.id, NULL, RDMA_PS_TCP);
	(void)rdma_resolve_addr(raw->link.id, NULL, (struct sockaddr *)&to, 0);
	raw->domain = ibv_alloc_pd(raw->link.id->verbs);
	raw->capsules = ibv_reg_mr(raw->domain, raw->capsule, sizeof(raw->capsule), 0);
	raw->answers =
		ibv_reg_mr(raw->domain, raw->responses, sizeof(raw->responses), IBV_ACCESS_LOCAL_WRITE);
	raw->memory = ibv_reg_mr(raw->domain, raw->data, sizeof(raw->data),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	raw->key = raw->memory->rkey;
	(void)weir_rdma_queues(&raw->link, raw->domain, RAW_ENTRIES, RAW_ENTRIES);
	for (uint64_t i = 0; i < RAW_ENTRIES; i++)
		raw_receive(raw, i);
	(void)rdma_connect(raw->link.id, &param);
	raw_settle(raw);
}

static void raw_end(struct raw *raw)
{
	weir_rdma_end(&raw->link);
	(void)ibv_dereg_mr(raw->capsules);
	(void)ibv_dereg_mr(raw->answers);
	(void)ibv_dereg_mr(raw->memory);
	(void)ibv_dealloc_pd(raw->domain);
	raw_settle(raw);
}

/* @bytes of raw->capsule, without a step of the target. */
static void raw_send(struct raw *raw, uint32_t bytes)
{
	struct ibv_sge part = { .addr = (uintptr_t)raw->capsule,
				.length = bytes,
				.lkey = raw->capsules->lkey };
	struct ibv_send_wr send = { .wr_id = RAW_ENTRIES,
				    .sg_list = &part,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND },
			   *bad;

	(void)ibv_post_send(raw->link.id->qp, &send, &bad);
}

/* A command whose data is @bytes of raw->data. */
static void raw_command(struct raw *raw, struct nvme_sqe *sqe, uint32_t bytes, uint32_t key)
{
	sqe->cdw0 |= NVME_PSDT_SGL;
	weir_rdma_put_keyed(sqe, (uintptr_t)raw->data, bytes, key);
	memcpy(raw->capsule, sqe, sizeof(*sqe));
	raw_send(raw, sizeof(*sqe));
}

/* Connect of NVMe; CNTLID is in raw->last.dw0 then. */
static void raw_connect(struct raw *raw, const char *nqn, uint16_t qid, uint16_t cntlid)
{
	struct nvme_fabrics_connect connect = { .opcode = NVME_OPCODE_FABRICS,
						.fctype = NVME_FCTYPE_CONNECT,
						.qid = qid,
						.sqsize = RAW_ENTRIES - 1 };
	struct nvme_fabrics_connect_data *data = (void *)raw->data;
	struct nvme_sqe sqe;

	memset(raw->data, 0, sizeof(*data));
	data->cntlid = cntlid;
	strcpy(data->subnqn, nqn);
	strcpy(data->hostnqn, "nqn.raw");
	memcpy(&sqe, &connect, sizeof(sqe));
	raw_command(raw, &sqe, sizeof(*data), raw->key);
	raw_settle(raw);
}

/* A connection for queue @qid. */
static void raw_open(struct raw *raw, struct weir_target *target, unsigned port, uint16_t qid)
{
	const struct nvme_rdma_request request = { .qid = qid,
						   .hrqsize = RAW_ENTRIES,
						   .hsqsize = RAW_ENTRIES - 1 };

	raw_begin(raw, target, port, &request, sizeof(request));
}

/* CC.EN = 1, on the admin queue. */
static void raw_enable(struct raw *raw)
{
	const struct nvme_fabrics_property set = { .opcode = NVME_OPCODE_FABRICS,
						   .fctype = NVME_FCTYPE_PROPERTY_SET,
						   .offset = NVME_PROPERTY_CC,
						   .value = NVME_CC_ENABLE | NVME_CC_IOSQES_64 |
							    NVME_CC_IOCQES_16 };
	struct nvme_sqe sqe;

	memcpy(&sqe, &set, sizeof(sqe));
	raw_command(raw, &sqe, 0, 0);
	raw_settle(raw);
}

#endif
