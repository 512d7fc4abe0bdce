/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller.c: associations of hosts: which connections make one controller.
 *
 * Owns: their list and numbers, under target.lock. An association ends with its admin connection, or
 * when its host has been
 * silent for too long; the other connections are then shut down, and end on their own threads.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "failed.h"
#include "parts.h"
#include "shutdown.h"

enum { GRACE_MS = 1000 };

static struct target_controller *find(const struct weir_target *target, u16 cntlid)
{
	struct target_controller *at = target->controllers;

	while (at && at->cntlid != cntlid)
		at = at->next;
	return at;
}

/* Numbers are not reused soon; 0 and those from FFF0h on are no controller's. */
static u16 next_cntlid(struct weir_target *target)
{
	u16 id = target->last_cntlid;

	do {
		id = id >= 0xffef ? 1 : (u16)(id + 1);
	} while (find(target, id));
	target->last_cntlid = id;
	return id;
}

static void join(struct target_controller *controller, struct connection *connection)
{
	connection->controller = controller;
	connection->sibling = controller->first;
	controller->first = connection;
	controller->references++;
}

static unsigned count(const struct weir_target *target)
{
	unsigned count = 0;

	for (const struct target_controller *at = target->controllers; at; at = at->next)
		count++;
	return count;
}

/* Under target.lock, as note_lost(). */
static bool was_lost(struct weir_target *target, const struct target_controller *controller)
{
	for (unsigned i = 0; i < TARGET_LOST_KEPT; i++) {
		struct target_lost *lost = &target->lost[i];

		if (!lost->subsystem || lost->subsystem != controller->subsystem ||
		    memcmp(lost->hostid, controller->hostid, sizeof(lost->hostid)) != 0)
			continue;
		lost->subsystem = NULL;
		return true;
	}
	return false;
}

static void note_lost(struct weir_target *target, const struct target_controller *controller)
{
	struct target_lost *lost = &target->lost[target->lost_next++ % TARGET_LOST_KEPT];

	if (!controller->subsystem || (controller->cc & NVME_CC_SHUTDOWN_MASK))
		return;
	lost->subsystem = controller->subsystem;
	memcpy(lost->hostid, controller->hostid, sizeof(lost->hostid));
}

static bool unlink_controller(struct target_controller **link, const struct target_controller *controller)
{
	while (*link && *link != controller)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = controller->next;
	return true;
}

/* Under target.lock. Nobody joins it any more. */
static void end_controller(struct weir_target *target, struct target_controller *controller)
{
	if (!unlink_controller(&target->controllers, controller))
		return;
	controller->next = target->ended;
	target->ended = controller;
	/* Release: whoever sees it takes the lock. */
	atomic_fetch_add_explicit(&target->ended_count, 1, memory_order_release);
	note_lost(target, controller);
	/* Relaxed: threads of the others see it before the host has come by target.lock again. What their
	 * sockets still hold begins nothing. */
	atomic_store_explicit(&controller->ready, 0, memory_order_relaxed);
	for (struct connection *at = controller->first; at; at = at->sibling)
		at->wire->shutdown(at);
}

static bool is_of_host(const struct target_controller *controller, const struct target_controller *other)
{
	return controller->subsystem == other->subsystem &&
	       !memcmp(controller->hostid, other->hostid, sizeof(other->hostid)) &&
	       !strcmp(controller->hostnqn, other->hostnqn);
}

/* Its host has closed the admin connection, which its thread has yet to learn. */
static bool is_left(const struct target_controller *controller)
{
	const struct connection *at = controller->first;
	struct pollfd admin = { .events = POLLRDHUP };

	while (at && at->qid)
		at = at->sibling;
	admin.fd = at ? at->socket : -1;
	return poll(&admin, 1, 0) > 0;
}

/* A host that comes again has what it left ended before it begins anything. */
static void end_left(struct weir_target *target, const struct target_controller *controller)
{
	struct target_controller *at = target->controllers, *next;

	for (; at; at = next) {
		next = at->next;
		if (is_of_host(at, controller) && is_left(at))
			end_controller(target, at);
	}
}

static bool enlist(struct weir_target *target, struct target_controller *controller,
		   struct connection *connection)
{
	bool room;

	pthread_mutex_lock(&target->lock);
	end_left(target, controller);
	room = count(target) < TARGET_CONTROLLERS_MAX;
	if (room) {
		controller->cntlid = next_cntlid(target);
		controller->next = target->controllers;
		target->controllers = controller;
		join(controller, connection);
		if (was_lost(target, controller)) /* relaxed: statistics */
			atomic_fetch_add_explicit(&connection->server->counters.reconnects, 1,
						  memory_order_relaxed);
	}
	pthread_mutex_unlock(&target->lock);
	return room;
}

static void destroy(struct target_controller *controller)
{
	free(controller->shutdown);
	free(controller);
}

struct target_controller *target_controller_create(struct connection *connection,
						   const struct target_subsystem *subsystem,
						   const struct nvme_fabrics_connect_data *data, u32 kato_ms)
{
	struct target_controller *controller = calloc(1, sizeof(*controller));

	if (!controller)
		return NULL;
	controller->shutdown = target_shutdown_new();
	controller->subsystem = subsystem;
	controller->listener = connection->listener;
	controller->kato_ms = kato_ms;
	atomic_init(&controller->queues, connection->server->target->queues);
	memcpy(controller->hostid, data->hostid, sizeof(controller->hostid));
	memcpy(controller->hostnqn, data->hostnqn, strnlen(data->hostnqn, NVME_NQN_LONGEST));
	atomic_init(&controller->alive_ms, target_now_ms());
	if (controller->shutdown && enlist(connection->server->target, controller, connection))
		return controller;
	destroy(controller);
	return NULL;
}

static bool is_in(const struct connection *at, u16 qid)
{
	while (at && at->qid != qid)
		at = at->sibling;
	return at;
}

/* A queue that is gone has its number until the storage is done with its commands: whoever gets that again
 * may count on it. */
static bool has_queue(const struct target_controller *controller, u16 qid)
{
	return is_in(controller->first, qid) || is_in(controller->ended, qid);
}

/* An NVMe status; of invalid parameters @offset says which. */
static u32 check_join(const struct target_controller *controller, const struct target_subsystem *subsystem,
		      const struct nvme_fabrics_connect_data *data, u16 qid, u32 *offset)
{
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, cntlid);
	if (!controller || controller->subsystem != subsystem ||
	    strcmp(controller->hostnqn, data->hostnqn) != 0)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, hostid);
	if (memcmp(controller->hostid, data->hostid, sizeof(controller->hostid)) != 0)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	*offset = offsetof(struct nvme_fabrics_connect, qid);
	if (!subsystem || qid > atomic_load_explicit(&controller->queues,
						     memory_order_relaxed)) /* relaxed: as ready, below */
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	if (has_queue(controller, qid)) /* perhaps of a connection whose end its thread is about to learn */
		return NVME_STATUS_COMMAND_SEQUENCE;
	/* Relaxed: the host has its answer to the Property Set that made it ready. */
	if (!atomic_load_explicit(&controller->ready, memory_order_relaxed))
		return target_refuse(NVME_STATUS_COMMAND_SEQUENCE);
	return NVME_STATUS_SUCCESS;
}

u32 target_controller_join(struct connection *connection, const struct target_subsystem *subsystem,
			   const struct nvme_fabrics_connect_data *data, u16 qid, u32 *offset)
{
	struct weir_target *target = connection->server->target;
	struct target_controller *controller;
	u32 status;

	pthread_mutex_lock(&target->lock);
	controller = find(target, data->cntlid);
	status = check_join(controller, subsystem, data, qid, offset);
	if (!status) {
		connection->qid = qid;
		connection->queue.id = qid;
		join(controller, connection);
	}
	pthread_mutex_unlock(&target->lock);
	return status;
}

static void unlink_connection(struct connection **link, const struct connection *connection)
{
	while (*link && *link != connection)
		link = &(*link)->sibling;
	if (*link)
		*link = connection->sibling;
}

static void note_ended(struct target_controller *controller, struct connection *connection)
{
	unlink_connection(&controller->first, connection);
	if (!connection->queue.inflight)
		return;
	connection->sibling = controller->ended;
	controller->ended = connection;
}

void target_controller_leave(struct connection *connection)
{
	struct target_controller *controller = connection->controller;
	struct weir_target *target = connection->server->target;

	if (!controller)
		return;
	pthread_mutex_lock(&target->lock);
	note_ended(controller, connection);
	if (!connection->qid)
		end_controller(target, controller);
	pthread_mutex_unlock(&target->lock);
}

/* Acquire: what the core did of them comes before what waited for it. */
static bool are_changing(const struct connection *at)
{
	while (at && !atomic_load_explicit(&at->changing, memory_order_acquire))
		at = at->sibling;
	return at;
}

bool target_controller_follows(struct weir_target *target, const struct target_controller *controller)
{
	const struct target_controller *at;

	/* Acquire: with none left what they did has ended. */
	if (!atomic_load_explicit(&target->ended_count, memory_order_acquire))
		return false;
	pthread_mutex_lock(&target->lock);
	at = target->ended;
	while (at && !(is_of_host(at, controller) && (are_changing(at->first) || are_changing(at->ended))))
		at = at->next;
	pthread_mutex_unlock(&target->lock);
	return at;
}

bool target_controller_can_end(struct connection *connection)
{
	struct weir_target *target = connection->server->target;
	bool alone;

	if (!connection->controller || connection->qid)
		return true;
	pthread_mutex_lock(&target->lock);
	alone = connection->controller->first == connection && !connection->sibling;
	pthread_mutex_unlock(&target->lock);
	return alone;
}

void target_controller_drop(struct connection *connection)
{
	struct target_controller *controller = connection->controller;
	struct weir_target *target = connection->server->target;
	bool last;

	if (!controller)
		return;
	connection->controller = NULL;
	pthread_mutex_lock(&target->lock);
	unlink_connection(&controller->ended, connection);
	last = --controller->references == 0;
	if (last && unlink_controller(&target->ended, controller))
		atomic_fetch_sub_explicit(&target->ended_count, 1, memory_order_release); /* as above */
	pthread_mutex_unlock(&target->lock);
	if (last)
		destroy(controller);
}

bool target_controller_expired(const struct target_controller *controller, u64 now_ms)
{
	/* Relaxed: a time, and nothing goes with it. */
	u64 alive = atomic_load_explicit(&controller->alive_ms, memory_order_relaxed);

	return controller->kato_ms && now_ms > alive && now_ms - alive > controller->kato_ms + GRACE_MS;
}

u32 target_controller_csts(const struct target_controller *controller)
{
	const struct target_subsystem *subsystem = controller->subsystem;

	return controller->csts | (subsystem && target_subsystem_failed(subsystem) ? NVME_CSTS_FATAL : 0);
}
