/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * discovery.c: the discovery log: which subsystems a host may connect to, and where. Base 2.0, section
 * 5.16.1.23.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

/** struct slice - the part of the log that is wanted; @at: where the next bytes lie in the log */
struct slice {
	u64 offset;
	u8 *to;
	u32 bytes;
	u64 at;
};

static void put(struct slice *slice, const void *from, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++, slice->at++)
		if (slice->at >= slice->offset && slice->at - slice->offset < slice->bytes)
			slice->to[slice->at - slice->offset] = ((const u8 *)from)[i];
}

/* Where the host is connected to, for sockets that listen at any address. */
static void local_address(const struct connection *connection, char *host, size_t bytes)
{
	struct sockaddr_storage local = { .ss_family = AF_UNSPEC };

	connection->wire->local(connection, &local);
	if (getnameinfo((struct sockaddr *)&local,
			local.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						    : sizeof(struct sockaddr_in),
			host, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(host, bytes, "127.0.0.1");
}

static void fill_address(const struct connection *connection, const struct target_listener *listener,
			 struct nvme_discovery_entry *entry)
{
	char local[64], host[80];
	const char *colon = strrchr(listener->address, ':');
	const char *begin = strstr(listener->address, "://") + strlen("://");
	bool brackets = *begin == '[';
	size_t length = (size_t)(colon - (begin += brackets)) - brackets;

	snprintf(host, sizeof(host), "%.*s", (int)length, begin);
	if (!strcmp(host, "0.0.0.0") || !strcmp(host, "::")) {
		local_address(connection, local, sizeof(local));
		snprintf(host, sizeof(host), "%s", strncmp(local, "::ffff:", 7) ? local : local + 7);
	}
	entry->adrfam = strchr(host, ':') ? NVME_ADRFAM_IPV6 : NVME_ADRFAM_IPV4;
	memset(entry->trsvcid, ' ', sizeof(entry->trsvcid));
	memset(entry->traddr, ' ', sizeof(entry->traddr));
	memcpy(entry->trsvcid, colon + 1, strlen(colon + 1));
	memcpy(entry->traddr, host, strlen(host));
}

/* RDMA_QPTYPE: reliable connected; RDMA_PRTYPE: any provider; RDMA_CMS: RDMA_CM. */
static const u8 rdma_connected[] = { 1, 1, 1 };

static void put_entry(const struct connection *connection, const struct target_subsystem *subsystem, u16 port,
		      struct slice *slice)
{
	const struct weir_target *target = connection->server->target;
	bool rdma = target->listeners[port].rdma;
	struct nvme_discovery_entry entry = {
		.trtype = rdma ? NVME_TRTYPE_RDMA : NVME_TRTYPE_TCP,
		.subtype = NVME_SUBTYPE_NVM,
		.treq = NVME_TREQ_SECURE_NOT_REQUIRED,
		.portid = port,
		.cntlid = NVME_CNTLID_DYNAMIC,
		.asqsz = NVME_ASQSZ_LEAST,
	};
	struct weir_tls_key key;

	if (target_tls_key(connection->server->target, subsystem, connection->controller->hostnqn, &key)) {
		entry.treq = NVME_TREQ_SECURE_REQUIRED;
		entry.tsas[0] = NVME_SECTYPE_TLS13;
	}
	if (rdma)
		memcpy(entry.tsas, rdma_connected, sizeof(rdma_connected));
	explicit_bzero(&key, sizeof(key));
	memcpy(entry.subnqn, subsystem->nqn, strlen(subsystem->nqn));
	fill_address(connection, &target->listeners[port], &entry);
	put(slice, &entry, sizeof(entry));
}

void target_discovery_log(const struct connection *connection, u64 offset, u8 *to, u32 bytes)
{
	struct weir_target *target = connection->server->target;
	struct slice slice = { offset, to, bytes, sizeof(struct nvme_discovery_log) };
	/* Relaxed: a count, read again by hosts behind the entries. */
	struct nvme_discovery_log head = { .genctr = 1 + atomic_load_explicit(&target->reloads,
									      memory_order_relaxed) };

	memset(to, 0, bytes);
	for (size_t i = 0; i < target->subsystem_count; i++) {
		if (!target_host_allowed(target, &target->subsystems[i], connection->controller->hostnqn))
			continue;
		for (size_t port = 0; port < target->listener_count; port++, head.numrec++)
			put_entry(connection, &target->subsystems[i], (u16)port, &slice);
	}
	slice.at = 0;
	put(&slice, &head, sizeof(head));
}
