/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { FIRST_PORT = 40000, NOBODY_LISTENS = 8, BY_PROGRAM = 28 };

struct event {
	struct rdma_cm_event base;
	struct event *next;
	unsigned char data[FAKE_PRIVATE_BYTES];
};

struct channel {
	struct rdma_event_channel base;
	struct event *first;
};

static struct id *listeners;
static unsigned last_port = FIRST_PORT;

/* ---- events ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *channel = fake_make(sizeof(*channel));

	channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return &channel->base;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	(void)close(channel->fd);
	fake_unmake(channel);
}

/* The lock is held, here and in what follows. */
void fake_push(struct id *to, enum rdma_cm_event_type type, int status, const void *data, size_t bytes)
{
	struct channel *channel = (struct channel *)to->base.channel;
	struct event *event = calloc(1, sizeof(*event)), **link = &channel->first;

	event->base.id = &to->base;
	event->base.event = type;
	event->base.status = status;
	if (data)
		memcpy(event->data, data, bytes);
	event->base.param.conn.private_data = data ? event->data : NULL;
	event->base.param.conn.private_data_len = (uint8_t)bytes;
	while (*link)
		link = &(*link)->next;
	*link = event;
	fake_count(channel->base.fd);
}

static struct event *last_of(struct id *id)
{
	struct event *at = ((struct channel *)id->base.channel)->first;

	while (at->next)
		at = at->next;
	return at;
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
	struct channel *channel = (struct channel *)base;
	struct event *event;
	uint64_t one;

	if (read(base->fd, &one, sizeof(one)) < 0)
		return -1;
	pthread_mutex_lock(&fake_lock);
	event = channel->first;
	if (event)
		channel->first = event->next;
	pthread_mutex_unlock(&fake_lock);
	if (!event) {
		errno = EAGAIN;
		return -1;
	}
	*out = &event->base;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

static void drop_events(struct id *id)
{
	struct event **link = &((struct channel *)id->base.channel)->first;

	while (*link) {
		struct event *event = *link;

		if (event->base.id != &id->base) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		free(event);
	}
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	pthread_mutex_lock(&fake_lock);
	id->channel = channel;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* ---- connections ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space ps)
{
	struct id *id = fake_make(sizeof(*id));

	fake_device_begin();
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	*out = &id->base;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct id *id = (struct id *)base, **link = &listeners;

	pthread_mutex_lock(&fake_lock);
	while (*link && *link != id)
		link = &(*link)->next;
	if (*link)
		*link = id->next;
	if (id->peer)
		id->peer->peer = NULL;
	drop_events(id);
	pthread_mutex_unlock(&fake_lock);
	fake_unmake(id);
	return 0;
}

static uint16_t port_of(const struct sockaddr *address)
{
	return ((const struct sockaddr_in *)address)->sin_port;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	struct sockaddr_in *own = (struct sockaddr_in *)&id->route.addr.src_addr;

	if (fake_verbs.no_device) {
		errno = ENODEV;
		return -1;
	}
	memcpy(own, address, sizeof(*own));
	if (!own->sin_port)
		own->sin_port = htons((uint16_t)last_port++);
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	pthread_mutex_lock(&fake_lock);
	((struct id *)id)->next = listeners;
	listeners = (struct id *)id;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
	(void)from;
	(void)ms;
	pthread_mutex_lock(&fake_lock);
	memcpy(&id->route.addr.dst_addr, to, sizeof(struct sockaddr_in));
	id->verbs = &fake_device;
	fake_push((struct id *)id,
		  fake_verbs.no_device ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
		  fake_verbs.no_device ? -ENODEV : 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	pthread_mutex_lock(&fake_lock);
	fake_push((struct id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static struct id *child_of(struct id *listener, struct id *host)
{
	struct id *child = calloc(1, sizeof(*child));

	fake_verbs.live++;
	child->base.channel = listener->base.channel;
	child->base.verbs = &fake_device;
	child->base.route.addr.src_addr = host->base.route.addr.dst_addr;
	child->peer = host;
	host->peer = child;
	return child;
}

static void request(struct id *listener, struct id *host, const struct rdma_conn_param *param)
{
	struct id *child = child_of(listener, host);
	unsigned char data[FAKE_PRIVATE_BYTES] = { 0 };
	size_t bytes = param->private_data_len;

	memcpy(data, param->private_data, bytes);
	if (fake_verbs.damage_request)
		fake_verbs.damage_request(data, &bytes);
	fake_push(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, bytes);
	last_of(child)->base.param.conn.initiator_depth = param->responder_resources;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct id *host = (struct id *)base, *at;

	pthread_mutex_lock(&fake_lock);
	for (at = listeners; at; at = at->next)
		if (port_of(&at->base.route.addr.src_addr) == port_of(&base->route.addr.dst_addr))
			break;
	if (at)
		request(at, host, param);
	else
		fake_push(host, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct id *child = (struct id *)base;
	unsigned char data[FAKE_PRIVATE_BYTES] = { 0 };
	size_t bytes = param->private_data_len;

	pthread_mutex_lock(&fake_lock);
	memcpy(data, param->private_data, bytes);
	if (fake_verbs.damage_accept)
		fake_verbs.damage_accept(data, &bytes);
	if (child->peer) {
		child->connected = child->peer->connected = true;
		fake_push(child->peer, RDMA_CM_EVENT_ESTABLISHED, 0, data, bytes);
	}
	fake_push(child, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
	struct id *child = (struct id *)base;

	pthread_mutex_lock(&fake_lock);
	if (child->peer)
		fake_push(child->peer, RDMA_CM_EVENT_REJECTED, BY_PROGRAM, data, bytes);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
	pthread_mutex_lock(&fake_lock);
	fake_part((struct id *)base);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
