/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.c: listening by RDMA, and hosts that connect so.
 *
 * Owns: who is accepted, before a connection is a server thread's. NVMe/RDMA Transport 1.0, section 3.2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "rdma_connection.h"

enum {
	BACKLOG = 512,
	SENDS = 3,    /* of a command at most: data and two responses */
	ACCEPTS = 16, /* at a time */
};

/** struct coming - a host that wants to connect */
struct coming {
	struct rdma_cm_id *id;
	struct nvme_rdma_request request;
	u16 status;
	u8 reads;
};

int target_rdma_listen(const char *text, const struct addrinfo *info, struct target_listener *listener)
{
	struct rdma_event_channel *events = weir_rdma_events();
	const struct sockaddr *bound;

	if (!events || rdma_create_id(events, &listener->rdma, NULL, RDMA_PS_TCP) != 0) {
		int error = errno;

		if (events)
			rdma_destroy_event_channel(events);
		return weir_fail(
			error,
			"cannot listen at %s: RDMA cannot be used here: %s; is there a device (rdma link)?",
			text, strerror(error));
	}
	if (rdma_bind_addr(listener->rdma, info->ai_addr) != 0 || rdma_listen(listener->rdma, BACKLOG) != 0)
		return weir_fail(errno,
				 "cannot listen at %s: %s; is it the address of an RDMA device (rdma link)?",
				 text, strerror(errno));
	listener->socket = events->fd;
	bound = rdma_get_local_addr(listener->rdma);
	return target_listen_describe(listener, "rdma://", bound,
				      bound->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								   : sizeof(struct sockaddr_in));
}

void target_rdma_listen_end(struct target_listener *listener)
{
	struct rdma_event_channel *events = listener->rdma->channel;

	(void)rdma_destroy_id(listener->rdma);
	rdma_destroy_event_channel(events);
}

/* ---- a host ---- */

static void refuse(struct weir_target *target, struct rdma_cm_id *id, u16 status)
{
	const struct nvme_rdma_reject reject = { .status = status };

	atomic_fetch_add_explicit(&target->servers[0].counters.refused, 1,
				  memory_order_relaxed); /* relaxed: statistics */
	if (id->qp)
		rdma_destroy_qp(id);
	(void)rdma_reject(id, &reject, sizeof(reject));
	(void)rdma_destroy_id(id);
}

void target_rdma_free(struct target_rdma *rdma)
{
	weir_rdma_end(&rdma->link);
	if (rdma->region)
		(void)ibv_dereg_mr(rdma->region);
	if (rdma->domain)
		(void)ibv_dealloc_pd(rdma->domain);
	free(rdma->capsules);
	free(rdma->kept);
	free(rdma->kept_bytes);
	free(rdma);
}

static bool allocate(struct target_rdma *rdma, struct ibv_context *verbs, u32 entries)
{
	size_t bytes = (size_t)entries * TARGET_RDMA_CAPSULE_BYTES;

	rdma->count = entries;
	rdma->capsules = malloc(bytes);
	rdma->kept = calloc(entries, sizeof(*rdma->kept));
	rdma->kept_bytes = calloc(entries, sizeof(*rdma->kept_bytes));
	rdma->domain = ibv_alloc_pd(verbs);
	if (rdma->capsules && rdma->domain)
		rdma->region = ibv_reg_mr(rdma->domain, rdma->capsules, bytes, IBV_ACCESS_LOCAL_WRITE);
	return rdma->region && rdma->kept && rdma->kept_bytes;
}

/* All that a connection needs; NULL: there is not enough of it, and the host was not answered. */
static struct target_rdma *prepare(struct rdma_cm_id *id, u32 entries)
{
	struct target_rdma *rdma = calloc(1, sizeof(*rdma));
	struct rdma_event_channel *events = rdma ? weir_rdma_events() : NULL;
	bool good;

	if (!events || rdma_migrate_id(id, events) != 0) {
		if (events)
			rdma_destroy_event_channel(events);
		free(rdma);
		return NULL;
	}
	rdma->link.id = id;
	good = allocate(rdma, id->verbs, entries) &&
	       weir_rdma_queues(&rdma->link, rdma->domain, entries, SENDS * entries) == 0;
	for (u32 i = 0; i < entries && good; i++)
		good = target_rdma_receive(rdma, i) == 0;
	rdma->link.events = events;
	if (good)
		return rdma;
	rdma->link.id = NULL; /* it is still to be refused, and then destroyed before its channel */
	return rdma;
}

static int answer(struct target_rdma *rdma, const struct coming *host)
{
	const struct nvme_rdma_accept accept = { .crqsize = (u16)rdma->count };
	struct rdma_conn_param param = { .private_data = &accept,
					 .private_data_len = sizeof(accept),
					 .flow_control = 1,
					 .rnr_retry_count = WEIR_RDMA_RETRIES };
	struct ibv_device_attr device;

	if (ibv_query_device(host->id->verbs, &device) != 0)
		return -EIO;
	rdma->invalidates = device.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	param.initiator_depth = weir_rdma_reads(host->reads, device.max_qp_init_rd_atom);
	return rdma_accept(host->id, &param) == 0 ? 0 : -errno;
}

static void come(struct weir_target *target, u16 index, const struct coming *host)
{
	struct target_rdma *rdma = prepare(host->id, host->request.hsqsize + 1u);
	struct connection *connection = NULL;

	if (rdma && rdma->link.id)
		connection = target_connection_new(target_next_server(target), &target_rdma_wire);
	if (!connection) {
		if (rdma)
			rdma->link.id = NULL;
		refuse(target, host->id, NVME_RDMA_NO_RESOURCES);
		if (rdma)
			target_rdma_free(rdma);
		return;
	}
	connection->rdma = rdma;
	connection->state = CONNECTION_OPEN;
	connection->hailed = true;
	rdma->broken = answer(rdma, host) != 0;
	target_arrive(connection, index);
}

/* Its event. False: there is none. */
static bool next(struct target_listener *listener, struct coming *host)
{
	struct rdma_cm_event *event;
	const struct rdma_conn_param *param;

	if (rdma_get_cm_event(listener->rdma->channel, &event) != 0)
		return false;
	param = &event->param.conn;
	*host = (struct coming){ .id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL,
				 .reads = param->initiator_depth };
	if (host->id)
		host->status = weir_rdma_check_request(param->private_data, param->private_data_len,
						       TARGET_QUEUE_ENTRIES, &host->request);
	if (host->id && !host->status && !host->reads) /* writes could not be carried out */
		host->status = NVME_RDMA_INVALID_IRD;
	(void)rdma_ack_cm_event(event);
	return true;
}

void target_rdma_accept(struct weir_target *target, u16 index)
{
	struct coming host;

	for (unsigned i = 0; i < ACCEPTS && next(&target->listeners[index], &host); i++) {
		if (host.id && host.status)
			refuse(target, host.id, host.status);
		else if (host.id)
			come(target, index, &host);
	}
}
