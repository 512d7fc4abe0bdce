/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_reg_mr

enum { ENTRIES = 1024, MESSAGE_BYTES = 16384, LIMIT = 16 };

struct completions {
	struct ibv_wc entries[ENTRIES];
	unsigned head;
	unsigned tail;
};

struct notifier {
	struct ibv_comp_channel base;
	struct ibv_cq *cq;
};

struct cq {
	struct ibv_cq base;
	struct completions now;
	struct completions late;
	bool armed;
};

struct message {
	struct message *next;
	uint32_t bytes;
	unsigned char data[MESSAGE_BYTES];
};

struct receive {
	uint64_t wr_id;
	struct ibv_sge part;
};

struct qp {
	struct ibv_qp base;
	struct id *id;
	struct receive receives[ENTRIES];
	unsigned head;
	unsigned tail;
	struct message *waiting; /* for memory to go to */
	bool failed;
};

struct mr {
	struct ibv_mr base;
	struct mr *next;
	int access;
};

struct fake_verbs fake_verbs;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct ibv_context fake_device;
static struct mr *regions;
static uint32_t last_key = 100;

void *fake_make(size_t bytes)
{
	pthread_mutex_lock(&fake_lock);
	fake_verbs.live++;
	pthread_mutex_unlock(&fake_lock);
	return calloc(1, bytes);
}

void fake_unmake(void *object)
{
	pthread_mutex_lock(&fake_lock);
	fake_verbs.live--;
	pthread_mutex_unlock(&fake_lock);
	free(object);
}

void fake_count(int file)
{
	uint64_t one = 1;

	(void)!write(file, &one, sizeof(one));
}

/* ---- completions ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct notifier *notifier = fake_make(sizeof(*notifier));

	notifier->base.context = context;
	notifier->base.fd = eventfd(0, EFD_CLOEXEC);
	return &notifier->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	(void)close(channel->fd);
	fake_unmake(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = fake_make(sizeof(*cq));

	(void)vector;
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.cqe = entries;
	((struct notifier *)channel)->cq = &cq->base;
	return &cq->base;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	fake_unmake(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	uint64_t ignored;

	if (read(channel->fd, &ignored, sizeof(ignored)) < 0)
		return -1;
	*cq = ((struct notifier *)channel)->cq;
	*context = NULL;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events)
{
	(void)cq;
	(void)events;
}

static void finish(struct ibv_cq *base, uint64_t wr_id, struct qp *qp, enum ibv_wc_status status,
		   uint32_t bytes, bool late)
{
	struct cq *cq = (struct cq *)base;
	struct completions *to = late && fake_verbs.late ? &cq->late : &cq->now;

	to->entries[to->tail++ % ENTRIES] = (struct ibv_wc){
		.wr_id = wr_id, .status = status, .byte_len = bytes, .qp_num = qp->base.qp_num
	};
	if (cq->armed)
		fake_count(cq->base.channel->fd);
	cq->armed = false;
}

static int take(struct completions *from, int most, struct ibv_wc *out)
{
	int taken = 0;

	while (taken < most && from->head != from->tail)
		out[taken++] = from->entries[from->head++ % ENTRIES];
	return taken;
}

static int poll_cq(struct ibv_cq *base, int most, struct ibv_wc *out)
{
	struct cq *cq = (struct cq *)base;
	int taken;

	pthread_mutex_lock(&fake_lock);
	taken = take(&cq->now, most, out);
	if (!taken)
		taken = take(&cq->late, most, out);
	pthread_mutex_unlock(&fake_lock);
	return taken;
}

static int notify(struct ibv_cq *base, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&fake_lock);
	((struct cq *)base)->armed = true;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* ---- memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_make(sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	fake_unmake(pd);
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
	struct mr *mr = fake_make(sizeof(*mr));

	mr->access = access;
	mr->base = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = address, .length = bytes };
	pthread_mutex_lock(&fake_lock);
	mr->base.lkey = mr->base.rkey = ++last_key;
	mr->next = regions;
	regions = mr;
	fake_verbs.registrations++;
	pthread_mutex_unlock(&fake_lock);
	return &mr->base;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
				unsigned access)
{
	(void)iova;
	return ibv_reg_mr(pd, address, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct mr **link = &regions;

	pthread_mutex_lock(&fake_lock);
	while (&(*link)->base != base)
		link = &(*link)->next;
	*link = (*link)->next;
	pthread_mutex_unlock(&fake_lock);
	fake_unmake(base);
	return 0;
}

static bool allowed(const struct ibv_pd *pd, uint64_t address, uint64_t bytes, uint32_t key, int access)
{
	for (const struct mr *at = regions; at; at = at->next) {
		uint64_t begin = (uintptr_t)at->base.addr;

		if (at->base.rkey == key && at->base.pd == pd)
			return (at->access & access) == access && address >= begin &&
			       bytes <= at->base.length && address - begin <= at->base.length - bytes;
	}
	return false;
}

/* ---- queue pairs ---- */

static struct qp *other(const struct qp *qp)
{
	return qp->id && qp->id->peer ? (struct qp *)qp->id->peer->base.qp : NULL;
}

static void fail(struct qp *qp)
{
	if (!qp || qp->failed)
		return;
	qp->failed = true;
	while (qp->head != qp->tail)
		finish(qp->base.recv_cq, qp->receives[qp->head++ % ENTRIES].wr_id, qp, IBV_WC_WR_FLUSH_ERR, 0,
		       false);
}

void fake_part(struct id *id)
{
	struct id *peer = id->peer;

	if (!id->connected)
		return;
	id->connected = false;
	fail((struct qp *)id->base.qp);
	fake_push(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	if (!peer || !peer->connected)
		return;
	peer->connected = false;
	fail((struct qp *)peer->base.qp);
	fake_push(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

static void deliver(struct qp *to, const struct message *message)
{
	const struct receive *receive = &to->receives[to->head++ % ENTRIES];

	if (message->bytes > receive->part.length) {
		finish(to->base.recv_cq, receive->wr_id, to, IBV_WC_LOC_LEN_ERR, 0, false);
		fake_part(to->id);
		return;
	}
	memcpy((void *)(uintptr_t)receive->part.addr, message->data, message->bytes);
	finish(to->base.recv_cq, receive->wr_id, to, IBV_WC_SUCCESS, message->bytes, false);
}

static void deliver_waiting(struct qp *to)
{
	while (to->waiting && to->head != to->tail && !to->failed) {
		struct message *message = to->waiting;

		to->waiting = message->next;
		deliver(to, message);
		free(message);
	}
}

static int post_receive(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = (struct qp *)base;

	(void)bad;
	pthread_mutex_lock(&fake_lock);
	if (qp->failed)
		finish(base->recv_cq, wr->wr_id, qp, IBV_WC_WR_FLUSH_ERR, 0, false);
	else
		qp->receives[qp->tail++ % ENTRIES] = (struct receive){ wr->wr_id, *wr->sg_list };
	deliver_waiting(qp);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static void send_message(struct qp *to, const struct ibv_send_wr *wr)
{
	struct message *message = calloc(1, sizeof(*message)), **link = &to->waiting;

	message->bytes = wr->sg_list->length;
	memcpy(message->data, (void *)(uintptr_t)wr->sg_list->addr, message->bytes);
	while (*link)
		link = &(*link)->next;
	*link = message;
	deliver_waiting(to);
}

/* At the other end's memory. */
static enum ibv_wc_status access_memory(const struct qp *qp, const struct qp *to,
					const struct ibv_send_wr *wr)
{
	void *own = (void *)(uintptr_t)wr->sg_list->addr, *there = (void *)(uintptr_t)wr->wr.rdma.remote_addr;
	bool reads = wr->opcode == IBV_WR_RDMA_READ;
	uint32_t bytes = wr->sg_list->length;

	if (!allowed(to->base.pd, wr->wr.rdma.remote_addr, bytes, wr->wr.rdma.rkey,
		     reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE) ||
	    !allowed(qp->base.pd, wr->sg_list->addr, bytes, wr->sg_list->lkey,
		     reads ? IBV_ACCESS_LOCAL_WRITE : 0)) {
		fake_verbs.bad_accesses++;
		return IBV_WC_REM_ACCESS_ERR;
	}
	memcpy(reads ? own : there, reads ? there : own, bytes);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status carry_out(struct qp *qp, const struct ibv_send_wr *wr)
{
	struct qp *to = other(qp);

	if (qp->failed || !to || to->failed)
		return IBV_WC_WR_FLUSH_ERR;
	if (fake_verbs.break_in && !--fake_verbs.break_in) {
		fake_verbs.broken++;
		return IBV_WC_RETRY_EXC_ERR;
	}
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_INV)
		return access_memory(qp, to, wr);
	if (!(wr->send_flags & IBV_SEND_INLINE) &&
	    !allowed(qp->base.pd, wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey, 0))
		return IBV_WC_LOC_PROT_ERR;
	if (wr->opcode == IBV_WR_SEND_WITH_INV)
		fake_verbs.invalidated = wr->invalidate_rkey;
	send_message(to, wr);
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = (struct qp *)base;

	(void)bad;
	pthread_mutex_lock(&fake_lock);
	for (; wr; wr = wr->next) {
		enum ibv_wc_status status = carry_out(qp, wr);

		if (status || (wr->send_flags & IBV_SEND_SIGNALED))
			finish(base->send_cq, wr->wr_id, qp, status, wr->sg_list->length, true);
		if (status)
			fake_part(qp->id);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct qp *qp = fake_make(sizeof(*qp));

	qp->id = (struct id *)base;
	qp->base = (struct ibv_qp){
		.context = base->verbs, .pd = pd, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq
	};
	pthread_mutex_lock(&fake_lock);
	base->qp = &qp->base;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *base)
{
	struct qp *qp = (struct qp *)base->qp;

	pthread_mutex_lock(&fake_lock);
	fake_part((struct id *)base);
	base->qp = NULL;
	while (qp->waiting) {
		struct message *message = qp->waiting;

		qp->waiting = message->next;
		free(message);
	}
	pthread_mutex_unlock(&fake_lock);
	fake_unmake(qp);
}

void fake_device_begin(void)
{
	fake_device.ops.poll_cq = poll_cq;
	fake_device.ops.req_notify_cq = notify;
	fake_device.ops.post_send = post_send;
	fake_device.ops.post_recv = post_receive;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){ .max_qp_rd_atom = LIMIT,
					  .max_qp_init_rd_atom = LIMIT,
					  .device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS };
	return 0;
}
