/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_link.h"

#include <errno.h>
#include <fcntl.h>

static int unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

struct rdma_event_channel *weir_rdma_events(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();

	if (events && unblock(events->fd) != 0) {
		rdma_destroy_event_channel(events);
		events = NULL;
	}
	return events;
}

int weir_rdma_queues(struct weir_rdma_link *link, struct ibv_pd *pd, uint32_t receives, uint32_t sends)
{
	struct ibv_qp_init_attr queues = { .qp_type = IBV_QPT_RC,
					   .cap = { .max_send_wr = sends,
						    .max_recv_wr = receives,
						    .max_send_sge = 1,
						    .max_recv_sge = 1,
						    .max_inline_data = WEIR_RDMA_INLINE_BYTES } };

	link->armed = false;
	link->channel = ibv_create_comp_channel(link->id->verbs);
	if (!link->channel || unblock(link->channel->fd) != 0)
		return -ENOMEM;
	link->cq = ibv_create_cq(link->id->verbs, (int)(receives + sends), NULL, link->channel, 0);
	if (!link->cq)
		return -ENOMEM;
	queues.send_cq = queues.recv_cq = link->cq;
	return rdma_create_qp(link->id, pd, &queues) == 0 ? 0 : -errno;
}

void weir_rdma_end(struct weir_rdma_link *link)
{
	if (link->id && link->id->qp) {
		(void)rdma_disconnect(link->id);
		rdma_destroy_qp(link->id);
	}
	if (link->cq)
		(void)ibv_destroy_cq(link->cq);
	if (link->channel)
		(void)ibv_destroy_comp_channel(link->channel);
	if (link->id)
		(void)rdma_destroy_id(link->id);
	if (link->events)
		rdma_destroy_event_channel(link->events);
	*link = (struct weir_rdma_link){ .events = NULL };
}

int weir_rdma_receive(struct weir_rdma_link *link, uint64_t wr_id, void *memory, uint32_t bytes, uint32_t key)
{
	struct ibv_sge part = { .addr = (uintptr_t)memory, .length = bytes, .lkey = key };
	struct ibv_recv_wr wanted = { .wr_id = wr_id, .sg_list = &part, .num_sge = 1 }, *bad;

	return -ibv_post_recv(link->id->qp, &wanted, &bad);
}

int weir_rdma_poll(struct weir_rdma_link *link, struct ibv_wc *completions, int most)
{
	int count = ibv_poll_cq(link->cq, most, completions);

	if (count || link->armed)
		return count;
	if (ibv_req_notify_cq(link->cq, 0) != 0)
		return -EIO;
	link->armed = true;
	return ibv_poll_cq(link->cq, most, completions); /* one may have come before that */
}

void weir_rdma_notified(struct weir_rdma_link *link)
{
	struct ibv_cq *cq;
	void *ignored;

	while (ibv_get_cq_event(link->channel, &cq, &ignored) == 0) {
		ibv_ack_cq_events(cq, 1);
		link->armed = false;
	}
}

uint8_t weir_rdma_reads(int wanted, int device)
{
	int reads = wanted < device ? wanted : device;

	return reads < UINT8_MAX ? (uint8_t)reads : UINT8_MAX;
}
