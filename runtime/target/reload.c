/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload.c: a target goes on with other options, while it serves.
 *
 * Owns: which options may change. First all is compared and all that can fail is done; then it is put into
 * force, and hosts are notified. What cannot change refuses the whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "events.h"
#include "parts.h"

static int check_listeners(const struct weir_target *target, const struct weir_target_options *options)
{
	for (size_t i = 0; i < target->listener_count || i < options->listen_count; i++)
		if (i >= options->listen_count || i >= target->listener_count ||
		    strcmp(target->listeners[i].text, options->listen[i]) != 0)
			return weir_fail(
				EBUSY, "address %s cannot come or go while the target serves; start it anew",
				i < options->listen_count ? options->listen[i] : target->listeners[i].text);
	return 0;
}

static int check_namespaces(const struct target_subsystem *subsystem,
			    const struct weir_target_subsystem_options *options)
{
	const char *before = subsystem->manager ? subsystem->manager : "";
	size_t count = target_namespaces(subsystem);

	if (options->engine != subsystem->engine ||
	    strcmp(before, options->manager ? options->manager : "") != 0)
		return weir_fail(EBUSY,
				 "\"engine\" and \"manager\" of %s cannot change while the target serves",
				 subsystem->nqn);
	if (options->namespace_count < count)
		return weir_fail(EBUSY,
				 "namespace %zu of %s cannot leave the list while the target serves: give it "
				 "\"attached\": false",
				 options->namespace_count + 1, subsystem->nqn);
	if (options->namespace_count > WEIR_TARGET_NAMESPACES_MAX)
		return weir_fail(EINVAL, "subsystem %s has %zu namespaces; give 1 to %d", subsystem->nqn,
				 options->namespace_count, WEIR_TARGET_NAMESPACES_MAX);
	for (size_t i = 0; i < count; i++)
		if (strcmp(subsystem->namespaces[i].uri, options->namespaces[i].uri) != 0 ||
		    subsystem->namespaces[i].read_only != options->namespaces[i].read_only)
			return weir_fail(EBUSY,
					 "namespace %zu of %s is %s, and cannot become %s%s while the target "
					 "serves",
					 i + 1, subsystem->nqn, subsystem->namespaces[i].uri,
					 options->namespaces[i].uri,
					 options->namespaces[i].read_only ? ", read only," : "");
	if (options->namespace_count > count && subsystem->engine)
		return weir_fail(EBUSY, "an engine cannot get a namespace while it serves: %s",
				 subsystem->nqn);
	return 0;
}

static int check(const struct weir_target *target, const struct weir_target_options *options)
{
	int error = check_listeners(target, options);

	if (!error && ((options->threads ? options->threads : 1) != target->threads ||
		       (options->queues ? options->queues : 64) != target->queues))
		error = weir_fail(EBUSY, "\"threads\" and \"queues\" cannot change while the target serves");
	if (!error && options->subsystem_count != target->subsystem_count)
		error = weir_fail(EBUSY, "subsystems cannot come or go while the target serves: it has %zu",
				  target->subsystem_count);
	for (size_t i = 0; i < target->subsystem_count && !error; i++)
		error = strcmp(target->subsystems[i].nqn, options->subsystems[i].nqn) == 0
				? check_namespaces(&target->subsystems[i], &options->subsystems[i])
				: weir_fail(
					  EBUSY,
					  "subsystem %s cannot take the place of %s while the target serves",
					  options->subsystems[i].nqn, target->subsystems[i].nqn);
	return error;
}

/** struct change - of a subsystem: its next hosts, and how many namespaces were opened behind those it has */
struct change {
	struct target_hosts hosts;
	size_t opened;
};

static int open_spaces(struct weir_target *target, const struct weir_target_subsystem_options *options,
		       struct target_subsystem *subsystem, struct change *change)
{
	size_t count = target_namespaces(subsystem);
	int error = 0;

	for (size_t i = count; i < options->namespace_count && !error; i++) {
		struct target_namespace *space = &subsystem->namespaces[i];

		error = target_namespace_open(target, options, &options->namespaces[i], subsystem, i);
		change->opened = i + 1 - count;
		if (!error && weir_virtual_transfer_bytes(space->core) < subsystem->transfer_bytes)
			error = weir_fail(EBUSY,
					  "namespace %zu of %s, %s, takes shorter transfers than hosts were "
					  "promised",
					  i + 1, subsystem->nqn, options->namespaces[i].uri);
		if (!error)
			error = target_server_watch_storage(target, space);
	}
	return error;
}

static void undo(struct target_subsystem *subsystem, struct change *change)
{
	size_t count = target_namespaces(subsystem);

	for (size_t i = 0; i < change->opened; i++)
		target_namespace_close(&subsystem->namespaces[count + i]);
	target_hosts_free(&change->hosts);
}

/* Namespaces that hosts see otherwise than before. */
static u64 show_spaces(struct target_subsystem *subsystem,
		       const struct weir_target_subsystem_options *options)
{
	size_t count = target_namespaces(subsystem);
	u64 changed = 0;

	for (size_t i = 0; i < options->namespace_count; i++) {
		struct target_namespace *space = &subsystem->namespaces[i];
		bool detached = options->namespaces[i].detached;

		/* Relaxed: target_events_raise() orders it (target.E1). */
		if (atomic_exchange_explicit(&space->detached, detached, memory_order_relaxed) != detached ||
		    (i >= count && !detached))
			changed |= (u64)1 << i;
	}
	/* target.N1: pairs with target_namespaces() */
	atomic_store_explicit(&subsystem->namespace_count, options->namespace_count, memory_order_release);
	return changed;
}

static void apply(struct weir_target *target, struct target_subsystem *subsystem,
		  const struct weir_target_subsystem_options *options, struct change *change)
{
	struct target_hosts before;
	u64 changed = show_spaces(subsystem, options);

	pthread_mutex_lock(&target->lock);
	before = subsystem->hosts;
	subsystem->hosts = change->hosts;
	pthread_mutex_unlock(&target->lock);
	target_hosts_free(&before);
	if (changed)
		target_events_raise(target, subsystem, TARGET_NO_LISTENER, TARGET_EVENT_NAMESPACE, changed);
}

static int prepare(struct weir_target *target, const struct weir_target_options *options,
		   struct change *changes)
{
	int error = 0;

	for (size_t i = 0; i < options->subsystem_count && !error; i++) {
		error = target_hosts_load(&options->subsystems[i], &changes[i].hosts);
		if (!error)
			error = open_spaces(target, &options->subsystems[i], &target->subsystems[i],
					    &changes[i]);
	}
	return error;
}

int weir_target_reload(struct weir_target *target, const struct weir_target_options *options)
{
	struct change *changes = calloc(options->subsystem_count + 1, sizeof(*changes));
	int error = changes ? check(target, options) : weir_fail(ENOMEM, "no memory for a reload");

	if (!error)
		error = prepare(target, options, changes);
	for (size_t i = 0; changes && i < options->subsystem_count; i++) {
		if (!error)
			apply(target, &target->subsystems[i], &options->subsystems[i], &changes[i]);
		else if (changes[i].opened || changes[i].hosts.names)
			undo(&target->subsystems[i], &changes[i]);
	}
	if (!error) { /* relaxed: target_events_raise() orders it (target.E1) */
		atomic_fetch_add_explicit(&target->reloads, 1, memory_order_relaxed);
		target_events_raise(target, NULL, TARGET_NO_LISTENER, TARGET_EVENT_DISCOVERY, 0);
	}
	for (size_t i = 0; !error && i < options->listen_count; i++)
		weir_target_set_ana(target, i, options->ana ? options->ana[i] : NVME_ANA_OPTIMIZED);
	free(changes);
	return error;
}
