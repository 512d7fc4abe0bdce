/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subsystem.c: what is served, and to whom.
 *
 * Owns: names, identifiers and storages of subsystems. Identifiers come of the names alone, so that a
 * target that is
 * started again serves the same namespaces to a host that has kept its disks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "../backend/error.h"
#include "../engine/engine.h"
#include "opened.h"
#include "parts.h"

int target_nqn_check(const char *nqn)
{
	size_t length = strlen(nqn);

	if (!length || length > NVME_NQN_LONGEST)
		return weir_fail(EINVAL, "\"%s\": an NQN has 1 to %d characters", nqn, NVME_NQN_LONGEST);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)nqn[i] <= ' ' || nqn[i] == 127)
			return weir_fail(EINVAL,
					 "the NQN \"%.*s\" goes on with a character that is none of an NQN",
					 (int)i, nqn);
	if (strncmp(nqn, "nqn.", 4) != 0)
		return weir_fail(EINVAL, "\"%s\" is no NQN; write one such as nqn.2026-11.org.example:disk1",
				 nqn);
	if (!strcmp(nqn, NVME_DISCOVERY_NQN))
		return weir_fail(EINVAL,
				 "%s is the discovery subsystem, which is served anyway; choose another NQN",
				 nqn);
	return 0;
}

static void fill_uuid(const char *nqn, u32 nsid, u8 *uuid)
{
	char text[NVME_NQN_BYTES + 16];
	int length = snprintf(text, sizeof(text), "%s %u", nqn, nsid);
	XXH128_canonical_t hash;

	XXH128_canonicalFromHash(&hash, XXH3_128bits(text, (size_t)length));
	memcpy(uuid, hash.digest, WEIR_PAGE_UUID_BYTES);
	uuid[6] = (uuid[6] & 0x0f) | 0x80; /* version 8: of our own making */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static int open_transport(struct weir_target *target, const struct weir_target_subsystem_options *of,
			  const struct weir_target_namespace_options *options, struct weir_uri *uri,
			  struct weir_transport **out)
{
	struct weir_transport_request request = {
		.uri = uri,
		.dma = target->dma,
		.read_only = options->read_only,
		.queues = target->threads,
		.depth = TARGET_DEPTH,
		.front = &target_front,
		.front_threads = target->threads,
		.engine = of->engine,
		.manager = of->manager,
	};

	return weir_transport_open(&request, out);
}

/* A storage whose commands go elsewhere: a core of our own in front of it. */
static int open_other(struct weir_target *target, const struct weir_target_subsystem_options *of,
		      const struct weir_target_namespace_options *options, struct target_namespace *space)
{
	struct weir_virtual_options core = {
		.size = sizeof(core),
		.dma = target->dma,
		.threads = target->threads,
		.max_queue_pairs = target->threads,
		.max_queue_entries = TARGET_DEPTH,
		.front = &target_front,
	};
	struct weir_medium *opened;
	int error =
		weir_medium_opened(options->uri, options->read_only, target->threads + of->engine, &opened);

	if (error)
		return error;
	core.medium = opened;
	if (of->engine)
		error = weir_engine_open(&(struct weir_engine_options){ .behind = opened,
									.threads = target->threads,
									.manager = of->manager,
									.own_thread = true },
					 &core.engine);
	if (error) {
		opened->ops->close(opened);
		return error;
	}
	if (core.engine)
		core.medium = weir_engine_medium(core.engine);
	space->medium = core.medium;
	error = weir_virtual_create(&core, &space->core);
	if (error)
		core.medium->ops->close(core.medium);
	return error;
}

/* virt:, file: and vol: are cores themselves. */
static int open_core(struct weir_target *target, const struct weir_target_subsystem_options *of,
		     const struct weir_target_namespace_options *options, struct weir_uri *uri,
		     struct target_namespace *space)
{
	int error;

	if (strcmp(uri->scheme, "virt") != 0 && strcmp(uri->scheme, "file") != 0 &&
	    strcmp(uri->scheme, "vol") != 0)
		return open_other(target, of, options, space);
	error = open_transport(target, of, options, uri, &space->transport);
	if (error)
		return error;
	if (space->transport->device_controller.on)
		return weir_fail(ENOTSUP, "storage \"%s\": a target has no device; leave on=device out",
				 options->uri);
	space->core = weir_transport_core(space->transport, &space->medium);
	return 0;
}

static int space_open(struct weir_target *target, const struct weir_target_subsystem_options *of,
		      const struct weir_target_namespace_options *options, struct target_namespace *space)
{
	struct weir_uri uri;
	int error = weir_uri_parse(options->uri, &uri);

	if (error)
		return error;
	error = open_core(target, of, options, &uri, space);
	weir_uri_release(&uri);
	if (error)
		return error;
	fill_uuid(of->nqn, space->nsid, space->uuid);
	space->uri = strdup(options->uri);
	return space->uri ? 0 : weir_fail(ENOMEM, "storage \"%s\": no memory", options->uri);
}

static int copy_names(const struct weir_target_subsystem_options *options, struct target_hosts *hosts)
{
	hosts->names = calloc(options->host_count + 1, sizeof(*hosts->names));
	for (size_t i = 0; hosts->names && i < options->host_count; i++) {
		int error = target_nqn_check(options->hosts[i]);

		if (error)
			return error;
		hosts->names[i] = strdup(options->hosts[i]);
		if (!hosts->names[i])
			break;
		hosts->count++;
	}
	return hosts->count == options->host_count && hosts->names
		       ? 0
		       : weir_fail(ENOMEM, "no memory for %zu hosts", options->host_count);
}

static int load_secret(const char *const *paths, size_t i, struct weir_chap_secret *secret)
{
	return paths && paths[i] ? weir_chap_secret_load(paths[i], secret) : 0;
}

static int load_secrets(const struct weir_target_subsystem_options *options, struct target_hosts *hosts)
{
	int error = 0;

	hosts->secrets = calloc(options->host_count + 1, sizeof(*hosts->secrets));
	if (!hosts->secrets)
		return weir_fail(ENOMEM, "no memory for %zu hosts", options->host_count);
	for (size_t i = 0; i < options->host_count && !error; i++) {
		struct target_secrets *secrets = &hosts->secrets[i];

		error = load_secret(options->secrets, i, &secrets->host);
		if (!error)
			error = load_secret(options->controller_secrets, i, &secrets->controller);
		if (!error && options->tls_keys && options->tls_keys[i])
			error = weir_tls_key_load(options->tls_keys[i], &secrets->tls);
		if (!error && secrets->controller.bytes && !secrets->host.bytes)
			error = weir_fail(
				EINVAL,
				"host %s: a secret of the subsystem's without one of the host's; give both",
				options->hosts[i]);
	}
	return error;
}

int target_hosts_load(const struct weir_target_subsystem_options *options, struct target_hosts *hosts)
{
	int error = copy_names(options, hosts);

	if (!error)
		error = load_secrets(options, hosts);
	if (!error && options->tls_key)
		error = weir_tls_key_load(options->tls_key, &hosts->tls);
	if (error)
		target_hosts_free(hosts);
	return error;
}

void target_hosts_free(struct target_hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		free(hosts->names[i]);
	free(hosts->names);
	if (hosts->secrets)
		explicit_bzero(hosts->secrets, hosts->count * sizeof(*hosts->secrets));
	free(hosts->secrets);
	explicit_bzero(hosts, sizeof(*hosts));
}

static void fill_serial(struct target_subsystem *subsystem)
{
	snprintf(subsystem->serial, sizeof(subsystem->serial), "%016llx",
		 (unsigned long long)XXH3_64bits(subsystem->nqn, strlen(subsystem->nqn)));
}

int target_namespace_open(struct weir_target *target, const struct weir_target_subsystem_options *of,
			  const struct weir_target_namespace_options *options,
			  struct target_subsystem *subsystem, size_t at)
{
	struct target_namespace *space = &subsystem->namespaces[at];

	space->nsid = (u32)at + 1;
	space->read_only = options->read_only;
	atomic_init(&space->detached, options->detached);
	return space_open(target, of, options, space);
}

void target_namespace_close(struct target_namespace *space)
{
	if (space->transport)
		space->transport->ops->close(space->transport);
	else if (space->core)
		weir_virtual_destroy(space->core);
	free(space->uri);
	memset(space, 0, sizeof(*space));
}

static int spaces_open(struct weir_target *target, const struct weir_target_subsystem_options *options,
		       struct target_subsystem *subsystem)
{
	subsystem->namespaces = calloc(WEIR_TARGET_NAMESPACES_MAX, sizeof(*subsystem->namespaces));
	if (!subsystem->namespaces)
		return weir_fail(ENOMEM, "no memory for %zu namespaces", options->namespace_count);
	subsystem->transfer_bytes = TARGET_TRANSFER_BYTES;
	for (size_t i = 0; i < options->namespace_count; i++) {
		u32 transfer_bytes;
		int error = target_namespace_open(target, options, &options->namespaces[i], subsystem, i);

		atomic_store_explicit(&subsystem->namespace_count, i + 1, memory_order_relaxed);
		if (error)
			return error;
		transfer_bytes = weir_virtual_transfer_bytes(subsystem->namespaces[i].core);
		if (transfer_bytes < subsystem->transfer_bytes)
			subsystem->transfer_bytes = transfer_bytes;
	}
	return 0;
}

int target_subsystem_open(struct weir_target *target, const struct weir_target_subsystem_options *options,
			  struct target_subsystem *subsystem)
{
	int error = target_nqn_check(options->nqn);

	if (error)
		return error;
	if (target_subsystem_find(target, options->nqn))
		return weir_fail(EEXIST,
				 "subsystem %s is named twice; several storages of one are its namespaces",
				 options->nqn);
	if (!options->namespace_count || options->namespace_count > WEIR_TARGET_NAMESPACES_MAX)
		return weir_fail(EINVAL, "subsystem %s has %zu namespaces; give 1 to %d", options->nqn,
				 options->namespace_count, WEIR_TARGET_NAMESPACES_MAX);
	subsystem->nqn = strdup(options->nqn);
	if (!subsystem->nqn)
		return weir_fail(ENOMEM, "no memory for a subsystem");
	fill_serial(subsystem);
	error = options->manager ? target_nqn_check(options->manager) : 0;
	subsystem->engine = options->engine;
	if (!error && options->manager && !(subsystem->manager = strdup(options->manager)))
		error = weir_fail(ENOMEM, "no memory for a subsystem");
	if (!error)
		error = target_hosts_load(options, &subsystem->hosts);
	return error ? error : spaces_open(target, options, subsystem);
}

void target_subsystem_close(struct target_subsystem *subsystem)
{
	for (size_t i = 0; subsystem->namespaces && i < WEIR_TARGET_NAMESPACES_MAX; i++)
		target_namespace_close(&subsystem->namespaces[i]);
	target_hosts_free(&subsystem->hosts);
	free(subsystem->namespaces);
	free(subsystem->manager);
	free(subsystem->nqn);
}

const struct target_subsystem *target_subsystem_find(const struct weir_target *target, const char *nqn)
{
	for (size_t i = 0; i < target->subsystem_count; i++)
		if (target->subsystems[i].nqn && !strcmp(target->subsystems[i].nqn, nqn))
			return &target->subsystems[i];
	return NULL;
}

bool target_host_allowed(struct weir_target *target, const struct target_subsystem *subsystem,
			 const char *hostnqn)
{
	const struct target_hosts *hosts = &subsystem->hosts;
	bool allowed;

	pthread_mutex_lock(&target->lock);
	allowed = !hosts->count;
	for (size_t i = 0; i < hosts->count && !allowed; i++)
		allowed = !strcmp(hosts->names[i], hostnqn);
	pthread_mutex_unlock(&target->lock);
	return allowed;
}

struct target_namespace *target_namespace_of(const struct target_subsystem *subsystem, u32 nsid)
{
	struct target_namespace *space =
		nsid && nsid <= target_namespaces(subsystem) ? &subsystem->namespaces[nsid - 1] : NULL;

	/* Relaxed: whoever sees it late carries out a command that could have come before. */
	return space && !atomic_load_explicit(&space->detached, memory_order_relaxed) ? space : NULL;
}
