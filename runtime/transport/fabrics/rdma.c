/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.c: a queue's connection of NVMe/RDMA.
 *
 * Owns: the steps of connecting, and the memory of a queue. NVMe/RDMA Transport 1.0, section 3.2.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../../backend/error.h"
#include "rdma_queue.h"

enum {
	MOST_CAPSULE_DATA = 8192,
	REJECTED_BY_PROGRAM = 28, /* InfiniBand 1.3, section 12.6.7.2: the other end's program refuses it */
};

static int no_memory(const struct nvmf_queue *queue)
{
	return weir_fail(ENOMEM, "storage \"%s\": no memory for queue %u, or no RDMA device takes more of it",
			 queue->nvmf->uri, queue->id);
}

/* ---- memory ---- */

/* What is registered with the device: it belongs to its domain. */
static void unregister(struct nvmf_rdma_queue *rdma)
{
	for (u32 i = 0; i < rdma->count; i++) {
		if (rdma->slots[i].region)
			(void)ibv_dereg_mr(rdma->slots[i].region);
		rdma->slots[i].region = NULL;
	}
	if (rdma->capsules_region)
		(void)ibv_dereg_mr(rdma->capsules_region);
	if (rdma->responses_region)
		(void)ibv_dereg_mr(rdma->responses_region);
	rdma->capsules_region = rdma->responses_region = NULL;
}

static void close_queue(struct nvmf_queue *queue)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;

	nvmf_connection_note(queue, false);
	queue->connection.readable = false;
	if (!rdma)
		return;
	weir_rdma_end(&rdma->link);
	unregister(rdma);
}

static void destroy(struct nvmf_queue *queue)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;

	if (!rdma)
		return;
	for (u32 i = 0; i < rdma->count && rdma->slots; i++)
		free(rdma->slots[i].copy);
	free(rdma->slots);
	free(rdma->capsules);
	free(rdma->responses);
	free(rdma);
	queue->connection.rdma = NULL;
}

static int create(struct nvmf_queue *queue, u32 entries)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;

	if (rdma && rdma->count == entries + NVMF_INTERNAL)
		return 0;
	close_queue(queue);
	destroy(queue);
	rdma = queue->connection.rdma = calloc(1, sizeof(*rdma));
	if (!rdma)
		return no_memory(queue);
	rdma->capsule_bytes = NVME_CAPSULE_COMMAND_BYTES + (queue->id ? MOST_CAPSULE_DATA : 0);
	rdma->slots = calloc(entries + NVMF_INTERNAL, sizeof(*rdma->slots));
	rdma->capsules = calloc(entries + NVMF_INTERNAL, rdma->capsule_bytes);
	rdma->responses = calloc(entries + NVMF_INTERNAL, sizeof(*rdma->responses));
	rdma->count = rdma->slots ? entries + NVMF_INTERNAL : 0;
	if (rdma->slots && rdma->capsules && rdma->responses)
		return 0;
	destroy(queue);
	return no_memory(queue);
}

static void release(struct nvmf *nvmf)
{
	nvmf_rdma_memory_destroy(nvmf->memory);
	nvmf->memory = NULL;
}

/* Registrations are a device's. With another one than before none of the old one's connections is left. */
static int use_device(struct nvmf_queue *queue, struct ibv_context *verbs)
{
	struct nvmf *nvmf = queue->nvmf;

	if (nvmf->memory && nvmf_rdma_memory_domain(nvmf->memory)->context == verbs)
		return 0;
	for (u32 i = 0; i < nvmf->queue_count; i++)
		if (nvmf->queues[i].connection.open)
			return weir_fail(EXDEV, "storage \"%s\": its queues would be on several RDMA devices",
					 nvmf->uri);
	release(nvmf);
	return nvmf_rdma_memory_create(verbs, nvmf->dma, &nvmf->memory) == 0 ? 0 : no_memory(queue);
}

/* ---- connecting ---- */

/** struct step - one that connecting takes; @done: the event that ends it well */
struct step {
	const char *what;
	enum rdma_cm_event_type done;
};

static int refused(const struct nvmf_queue *queue, const struct rdma_cm_event *event, const char *where)
{
	const struct nvmf *nvmf = queue->nvmf;
	u16 status =
		weir_rdma_check_reject(event->param.conn.private_data, event->param.conn.private_data_len);

	if (event->status == REJECTED_BY_PROGRAM)
		return weir_fail(ECONNREFUSED, "storage \"%s\": %s refuses queue %u's connection: %s (%u)",
				 nvmf->uri, where, queue->id, weir_rdma_reject_text(status), status);
	return weir_fail(
		ECONNREFUSED,
		"storage \"%s\": cannot connect to %s by RDMA: it is refused (%d); is a target listening "
		"there by rdma://?",
		nvmf->uri, where, event->status);
}

static int no_way(const struct nvmf_queue *queue, const struct step *step, const char *where, int error)
{
	return weir_fail(
		error,
		"storage \"%s\": cannot connect to %s by RDMA: %s: %s; does an RDMA device lead there?",
		queue->nvmf->uri, where, step->what, strerror(error));
}

static int step_failed(const struct nvmf_queue *queue, const struct step *step,
		       const struct rdma_cm_event *event, const char *where)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return refused(queue, event, where);
	return no_way(queue, step, where, event->status < 0 ? -event->status : EHOSTUNREACH);
}

static int accepted(const struct nvmf_queue *queue, const struct rdma_cm_event *event, const char *where)
{
	if (event->event != RDMA_CM_EVENT_ESTABLISHED ||
	    weir_rdma_check_accept(event->param.conn.private_data, event->param.conn.private_data_len))
		return 0;
	return weir_fail(
		EPROTO,
		"storage \"%s\": %s is no NVMe/RDMA controller: what it accepts the connection with is wrong",
		queue->nvmf->uri, where);
}

/* Its event. */
static int wait_step(struct nvmf_queue *queue, struct weir_rdma_link *link, const struct step *step,
		     const char *where, uint64_t end_ns)
{
	struct rdma_cm_event *event;
	int error = 0;

	while (rdma_get_cm_event(link->events, &event) != 0) {
		error = errno == EAGAIN ? nvmf_connection_wait(queue->nvmf, link->events->fd, POLLIN, end_ns)
					: -errno;
		if (error)
			return weir_fail(-error, "storage \"%s\": cannot connect to %s by RDMA: %s: %s",
					 queue->nvmf->uri, where, step->what, strerror(-error));
	}
	error = event->event == step->done ? accepted(queue, event, where)
					   : step_failed(queue, step, event, where);
	(void)rdma_ack_cm_event(event);
	return error;
}

static int resolve(struct nvmf_queue *queue, const struct addrinfo *info, const char *where, uint64_t end_ns)
{
	static const struct step address = { "its address", RDMA_CM_EVENT_ADDR_RESOLVED },
				 route = { "the route", RDMA_CM_EVENT_ROUTE_RESOLVED };
	struct weir_rdma_link *link = &queue->connection.rdma->link;
	int ms = (int)queue->nvmf->keys.connect_ms, error;

	link->events = weir_rdma_events();
	if (!link->events || rdma_create_id(link->events, &link->id, NULL, RDMA_PS_TCP) != 0)
		return weir_fail(
			errno, "storage \"%s\": RDMA cannot be used here: %s; is there a device (rdma link)?",
			queue->nvmf->uri, strerror(errno));
	if (rdma_resolve_addr(link->id, NULL, info->ai_addr, ms) != 0)
		return no_way(queue, &address, where, errno);
	error = wait_step(queue, link, &address, where, end_ns);
	if (error)
		return error;
	if (rdma_resolve_route(link->id, ms) != 0)
		return no_way(queue, &route, where, errno);
	return wait_step(queue, link, &route, where, end_ns);
}

static int register_queue(struct nvmf_queue *queue)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;
	struct ibv_pd *domain = nvmf_rdma_memory_domain(queue->nvmf->memory);

	rdma->capsules_region =
		ibv_reg_mr(domain, rdma->capsules, (size_t)rdma->count * rdma->capsule_bytes, 0);
	rdma->responses_region = ibv_reg_mr(domain, rdma->responses, rdma->count * sizeof(*rdma->responses),
					    IBV_ACCESS_LOCAL_WRITE);
	if (!rdma->capsules_region || !rdma->responses_region ||
	    weir_rdma_queues(&rdma->link, domain, rdma->count, rdma->count) != 0 ||
	    nvmf_rdma_receive_all(rdma) != 0)
		return no_memory(queue);
	return 0;
}

static int agree(struct nvmf_queue *queue, const char *where, uint64_t end_ns)
{
	static const struct step step = { "the connection", RDMA_CM_EVENT_ESTABLISHED };
	struct weir_rdma_link *link = &queue->connection.rdma->link;
	u16 entries = (u16)(queue->id ? queue->size : NVMF_ADMIN_ENTRIES);
	struct nvme_rdma_request request = { .qid = (u16)queue->id,
					     .hrqsize = entries,
					     .hsqsize = (u16)(entries - 1),
					     .cntlid = queue->id ? queue->nvmf->controller.cntlid : 0 };
	struct rdma_conn_param param = { .private_data = &request,
					 .private_data_len = sizeof(request),
					 .flow_control = 1,
					 .retry_count = WEIR_RDMA_RETRIES,
					 .rnr_retry_count = WEIR_RDMA_RETRIES };
	struct ibv_device_attr device;

	if (ibv_query_device(link->id->verbs, &device) != 0)
		return no_memory(queue);
	param.responder_resources = weir_rdma_reads(entries, device.max_qp_rd_atom);
	if (rdma_connect(link->id, &param) != 0)
		return no_way(queue, &step, where, errno);
	return wait_step(queue, link, &step, where, end_ns);
}

static int watch(struct nvmf_queue *queue)
{
	const struct weir_rdma_link *link = &queue->connection.rdma->link;
	int error = nvmf_watch(queue, link->events->fd, EPOLLIN);

	return error ? error : nvmf_watch(queue, link->channel->fd, EPOLLIN);
}

static int connect_to(struct nvmf_queue *queue, const struct addrinfo *info, const char *where,
		      uint64_t end_ns)
{
	struct nvmf_rdma_queue *rdma = queue->connection.rdma;
	int error = resolve(queue, info, where, end_ns);

	if (!error)
		error = use_device(queue, rdma->link.id->verbs);
	if (!error)
		error = register_queue(queue);
	if (!error)
		error = agree(queue, where, end_ns);
	return error ? error : watch(queue);
}

/** struct attempt - to connect @queue; @where: for people */
struct attempt {
	struct nvmf_queue *queue;
	char where[WEIR_ADDRESS_BYTES + 16];
};

static int connect_one(void *of, const struct addrinfo *info, uint64_t end_ns)
{
	struct attempt *attempt = of;
	int error = connect_to(attempt->queue, info, attempt->where, end_ns);

	if (error)
		close_queue(attempt->queue);
	return error;
}

static int open_queue(struct nvmf_queue *queue, const struct weir_address *address)
{
	struct nvmf *nvmf = queue->nvmf;
	uint64_t end_ns = nvmf_now_ns() + nvmf->keys.connect_ms * 1000000;
	struct attempt attempt = { .queue = queue };
	struct addrinfo *list;
	int error = nvmf_connection_resolve(nvmf, address, &list);

	if (error)
		return error;
	weir_address_text(address, attempt.where);
	close_queue(queue);
	error = nvmf_connection_each(list, end_ns, connect_one, &attempt);
	freeaddrinfo(list);
	if (error)
		return error;
	queue->connection.readable = true;
	queue->connection.capsule_data = queue->id ? nvmf->controller.capsule_data : 0;
	if (queue->connection.capsule_data > MOST_CAPSULE_DATA)
		queue->connection.capsule_data = MOST_CAPSULE_DATA;
	nvmf_connection_note(queue, true);
	return 0;
}

static u32 room(const struct nvmf_queue *queue)
{
	return queue->connection.rdma->count; /* each request has a slot of its own */
}

/* Capsules leave at once. */
static bool nothing_to_send(struct nvmf_queue *queue)
{
	(void)queue;
	return false;
}

static const struct nvmf_wire wire = {
	.name = "NVMe/RDMA",
	.create = create,
	.destroy = destroy,
	.open = open_queue,
	.close = close_queue,
	.release = release,
	.room = room,
	.begin = nvmf_rdma_begin,
	.send = nothing_to_send,
	.receive = nvmf_rdma_receive,
};

const struct nvmf_wire *const nvmf_wire_rdma = &wire;
