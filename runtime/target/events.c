/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c: what hosts are notified of: the ANA state of the path they came by, and changes of namespaces and
 * of the discovery log.
 *
 * Owns: Asynchronous Event Requests, and the log pages that hosts read behind an event. Base 2.0,
 * sections 5.2, 5.16.1.5, 5.16.1.13 and 8.1. Any thread raises an event; the admin connection's thread alone
 * sends it. A host is notified once of each kind until it has read that kind's log.
 */
#include <endian.h>
#include <string.h>

#include "events.h"
#include "parts.h"

enum {
	FEATURE_ASYNC_EVENTS = 0x0b,
	EVENT_TYPE_NOTICE = 2,
	LOG_CHANGED_NAMESPACES = 0x04,
};

/** struct kind - @enable: of the feature Asynchronous Event Configuration; @result: dword 0 */
struct kind {
	u32 event;
	u32 enable;
	u32 result;
};

static const struct kind kinds[] = {
	{ TARGET_EVENT_NAMESPACE, 1u << 8, EVENT_TYPE_NOTICE | LOG_CHANGED_NAMESPACES << 16 },
	{ TARGET_EVENT_ANA, 1u << 11, EVENT_TYPE_NOTICE | 3 << 8 | NVME_LOG_ANA << 16 },
	{ TARGET_EVENT_DISCOVERY, 1u << 31, EVENT_TYPE_NOTICE | 0xf0 << 8 | NVME_LOG_DISCOVERY << 16 },
};

u32 target_ana_state(const struct weir_target *target, const struct target_controller *controller)
{
	/* Relaxed: a host that was notified asks by a command, which orders it (target.E1). */
	return controller->listener < target->listener_count
		       ? atomic_load_explicit(&target->listeners[controller->listener].ana,
					      memory_order_relaxed)
		       : NVME_ANA_OPTIMIZED;
}

u32 target_ana_status(u32 state)
{
	switch (state) {
	case NVME_ANA_INACCESSIBLE: return NVME_STATUS_PATH_INACCESSIBLE;
	case NVME_ANA_PERSISTENT_LOSS: return NVME_STATUS_PATH_PERSISTENT_LOSS;
	case NVME_ANA_CHANGE: return NVME_STATUS_PATH_TRANSITION;
	default: return NVME_STATUS_SUCCESS;
	}
}

void target_ana_log(const struct connection *connection, bool groups_only, u8 *page)
{
	const struct weir_target *target = connection->server->target;
	const struct target_controller *controller = connection->controller;
	/* Relaxed: a count, read by whoever asks what has changed. */
	u64 changes = atomic_load_explicit(&target->ana_changes, memory_order_relaxed);
	struct nvme_ana_log log = { .change = htole64(changes), .groups = htole16(1) };
	struct nvme_ana_group group = { .group = htole32(TARGET_ANA_GROUP),
					.change = htole64(changes),
					.state = (u8)target_ana_state(target, controller) };
	u32 count = 0;

	for (u32 nsid = 1; !groups_only && nsid <= target_namespaces(controller->subsystem); nsid++) {
		u32 number = htole32(nsid);

		if (!target_namespace_of(controller->subsystem, nsid))
			continue;
		memcpy(page + sizeof(log) + sizeof(group) + 4 * count++, &number, sizeof(number));
	}
	group.nsids = htole32(count);
	memcpy(page, &log, sizeof(log));
	memcpy(page + sizeof(log), &group, sizeof(group));
}

void target_changed_list(struct target_controller *controller, bool keep, u8 *page)
{
	/* Relaxed: the event orders it (target.E1); a change behind that is in the next list. */
	u64 changed = keep ? atomic_load_explicit(&controller->changed, memory_order_relaxed)
			   : atomic_exchange_explicit(&controller->changed, 0, memory_order_relaxed);
	u32 count = 0;

	for (u32 i = 0; i < WEIR_TARGET_NAMESPACES_MAX; i++) {
		u32 nsid = htole32(i + 1);

		if (changed >> i & 1)
			memcpy(page + 4 * count++, &nsid, sizeof(nsid));
	}
}

static struct command *kept_of(struct connection *connection, u32 *count)
{
	struct command *kept = NULL;

	*count = 0;
	for (u32 i = 0; i < connection->entries; i++) {
		if (connection->commands[i].state != COMMAND_KEPT)
			continue;
		kept = &connection->commands[i];
		(*count)++;
	}
	return kept;
}

/* False: the host has no request left for it. */
static bool send_one(struct connection *connection, const struct kind *kind)
{
	struct target_controller *controller = connection->controller;
	u32 count;
	struct command *kept = kept_of(connection, &count);

	if (!kept)
		return false;
	controller->reported |= kind->event;
	target_send_response(kept, NVME_STATUS_SUCCESS, kind->result, false);
	return true;
}

void target_events_send(struct connection *connection)
{
	struct target_controller *controller = connection->controller;
	u32 events;

	if (!controller || connection->qid || connection->state != CONNECTION_CONNECTED)
		return;
	/* target.E1: pairs with target_events_raise(): what has changed is seen by whoever is notified */
	events = atomic_load_explicit(&controller->events, memory_order_acquire);
	for (unsigned i = 0; events && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *kind = &kinds[i];
		bool wanted = controller->features[FEATURE_ASYNC_EVENTS] & kind->enable;

		if (!(events & kind->event) || (controller->reported & kind->event) ||
		    (wanted && !send_one(connection, kind)))
			continue;
		/* Relaxed: one that is raised meanwhile finds its bit cleared, or is in the log already. */
		atomic_fetch_and_explicit(&controller->events, ~kind->event, memory_order_relaxed);
	}
}

void target_event_seen(struct target_controller *controller, u32 event)
{
	controller->reported &= ~event;
}

void target_event_request(struct command *command)
{
	u32 kept;

	(void)kept_of(command->connection, &kept);
	if (kept >= WEIR_PAGE_AERS) {
		target_send_response(command, NVME_STATUS_ASYNC_EVENT_LIMIT, 0, false);
		return;
	}
	target_command_set(command, COMMAND_KEPT);
	target_events_send(command->connection);
}

void target_events_raise(struct weir_target *target, const struct target_subsystem *subsystem, u16 listener,
			 u32 event, u64 changed)
{
	pthread_mutex_lock(&target->lock);
	for (struct target_controller *at = target->controllers; at; at = at->next) {
		if (!at->subsystem != (event == TARGET_EVENT_DISCOVERY) ||
		    (subsystem && at->subsystem != subsystem) ||
		    (listener != TARGET_NO_LISTENER && at->listener != listener))
			continue;
		atomic_fetch_or_explicit(&at->changed, changed, memory_order_relaxed); /* relaxed: E1 */
		/* target.E1: pairs with target_events_send() */
		atomic_fetch_or_explicit(&at->events, event, memory_order_release);
	}
	pthread_mutex_unlock(&target->lock);
	for (unsigned i = 0; i < target->threads; i++)
		target_server_wake(&target->servers[i]);
}

void weir_target_set_ana(struct weir_target *target, size_t index, unsigned state)
{
	/* Relaxed: target_events_raise() orders it (target.E1). */
	if (index >= target->listener_count ||
	    atomic_exchange_explicit(&target->listeners[index].ana, state, memory_order_relaxed) == state)
		return;
	atomic_fetch_add_explicit(&target->ana_changes, 1, memory_order_relaxed);
	target_events_raise(target, NULL, (u16)index, TARGET_EVENT_ANA, 0);
}
