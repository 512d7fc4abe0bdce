/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.c: the target as a whole: its making and its end.
 */
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../backend/error.h"
#include "parts.h"

static int open_subsystems(struct weir_target *target, const struct weir_target_options *options)
{
	target->subsystems = calloc(options->subsystem_count, sizeof(*target->subsystems));
	if (!target->subsystems)
		return weir_fail(ENOMEM, "no memory for %zu subsystems", options->subsystem_count);
	for (size_t i = 0; i < options->subsystem_count; i++) {
		int error = target_subsystem_open(target, &options->subsystems[i], &target->subsystems[i]);

		target->subsystem_count = i + 1; /* what a failed one has open is closed with it */
		if (error)
			return error;
	}
	return 0;
}

static int open_listeners(struct weir_target *target, const struct weir_target_options *options)
{
	target->listeners = calloc(options->listen_count + 1, sizeof(*target->listeners));
	if (!target->listeners)
		return weir_fail(ENOMEM, "no memory for %zu listening sockets", options->listen_count);
	for (size_t i = 0; i < options->listen_count; i++) {
		int error = target_listen(options->listen[i], &target->listeners[i]);

		atomic_init(&target->listeners[i].ana, options->ana ? options->ana[i] : NVME_ANA_OPTIMIZED);
		target->listener_count = i + 1;
		if (error)
			return error;
	}
	return 0;
}

static int create_servers(struct weir_target *target)
{
	size_t bytes = target->threads * sizeof(*target->servers);

	target->servers = aligned_alloc(64, bytes);
	if (!target->servers)
		return weir_fail(ENOMEM, "no memory for %u server threads", target->threads);
	memset(target->servers, 0, bytes);
	for (unsigned i = 0; i < target->threads; i++)
		target->servers[i].epoll = target->servers[i].wake = -1;
	for (unsigned i = 0; i < target->threads; i++) {
		int error = target_server_create(target, i, &target->servers[i]);

		if (error)
			return error;
	}
	return 0;
}

static int create(struct weir_target *target, const struct weir_target_options *options)
{
	int error = weir_dma_map_create(&target->dma);

	if (!error)
		error = open_subsystems(target, options);
	if (!error)
		error = open_listeners(target, options);
	return error ? error : create_servers(target);
}

int weir_target_create(const struct weir_target_options *options, struct weir_target **out)
{
	struct weir_target *target;
	int error;

	if (options->threads > WEIR_TARGET_THREADS_MAX)
		return weir_fail(EINVAL, "%u server threads: give 1 to %d", options->threads,
				 WEIR_TARGET_THREADS_MAX);
	if (options->queues > WEIR_TARGET_QUEUES_MAX)
		return weir_fail(EINVAL, "%u I/O queues: give 1 to %d", options->queues,
				 WEIR_TARGET_QUEUES_MAX);
	if (!options->subsystem_count)
		return weir_fail(EINVAL, "a target without subsystems serves nothing; give one");
	target = calloc(1, sizeof(*target));
	if (!target)
		return weir_fail(ENOMEM, "no memory for a target");
	target->threads = options->threads ? options->threads : 1;
	target->queues = options->queues ? options->queues : 64;
	pthread_mutex_init(&target->lock, NULL);
	/* Not the same for two targets of one subsystem, which a host takes for one. */
	if (getrandom(&target->last_cntlid, sizeof(target->last_cntlid), GRND_NONBLOCK) !=
	    sizeof(target->last_cntlid))
		target->last_cntlid = 0;
	error = create(target, options);
	if (error) {
		weir_target_destroy(target);
		return error;
	}
	weir_publish_target(&target->published, (uintptr_t)&target->servers[0].counters, target->threads,
			    sizeof(*target->servers));
	*out = target;
	return 0;
}

void weir_target_destroy(struct weir_target *target)
{
	if (!target)
		return;
	weir_publish_target_end(&target->published);
	for (unsigned i = 0; target->servers && i < target->threads; i++)
		target_server_end(&target->servers[i]);
	for (size_t i = 0; i < target->listener_count; i++)
		target_listen_end(&target->listeners[i]);
	for (size_t i = 0; i < target->subsystem_count; i++)
		/* what it was still doing with their buffers has ended */
		target_subsystem_close(&target->subsystems[i]);
	for (unsigned i = 0; target->servers && i < target->threads; i++)
		target_server_destroy(&target->servers[i]);
	if (target->dma)
		weir_dma_map_destroy(target->dma);
	pthread_mutex_destroy(&target->lock);
	free(target->servers);
	free(target->listeners);
	free(target->subsystems);
	free(target);
}

const char *weir_target_address(const struct weir_target *target, size_t index)
{
	return index < target->listener_count ? target->listeners[index].address : "";
}

void weir_target_describe(const struct weir_target *target, size_t index, char *text, size_t bytes)
{
	const struct target_subsystem *subsystem = &target->subsystems[index];
	size_t at = (size_t)snprintf(text, bytes, "%s:", subsystem->nqn);

	for (size_t i = 0; i < target_namespaces(subsystem) && at < bytes; i++) {
		const struct target_namespace *space = &subsystem->namespaces[i];
		char size[WEIR_SIZE_TEXT_BYTES];

		/* An engine's addresses are many more than its blocks. */
		at += (size_t)snprintf(
			text + at, bytes - at, "%s namespace %u is %s (%s%s, %s)", i ? "," : "", space->nsid,
			space->uri,
			weir_virtual_engine(space->core) ? "volumes"
							 : weir_size_text(space->medium->bytes, size),
			space->medium->read_only ? ", read only" : "", weir_medium_path(space->medium));
	}
}

void weir_target_stats(struct weir_target *target, struct weir_target_stats *stats)
{
	*stats = (struct weir_target_stats){ 0 };
	for (unsigned i = 0; i < target->threads; i++) {
		struct target_server *server = &target->servers[i];

		/* Relaxed: each counter is true by itself. */
		stats->connections += atomic_load_explicit(&server->counters.open, memory_order_relaxed);
		stats->accepted += atomic_load_explicit(&server->counters.accepted, memory_order_relaxed);
		stats->refused += atomic_load_explicit(&server->counters.refused, memory_order_relaxed);
		stats->bad_pdus += atomic_load_explicit(&server->counters.bad_pdus, memory_order_relaxed);
		stats->reconnects += atomic_load_explicit(&server->counters.reconnects, memory_order_relaxed);
		stats->commands += atomic_load_explicit(&server->counters.commands, memory_order_relaxed);
	}
}
