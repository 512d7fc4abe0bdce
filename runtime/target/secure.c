/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure.c: connections that TLS protects.
 *
 * Owns: which hosts must come by TLS, with which key, and in whose name they then are. One that begins with
 * TLS is served so wherever it comes in; a host that has a key is not served without. NVMe/TCP Transport 1.1,
 * section 3.6.1.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "parts.h"

bool target_tls_key(struct weir_target *target, const struct target_subsystem *subsystem, const char *hostnqn,
		    struct weir_tls_key *out)
{
	pthread_mutex_lock(&target->lock);
	*out = subsystem->hosts.tls;
	for (size_t i = 0; i < subsystem->hosts.count; i++)
		if (!strcmp(subsystem->hosts.names[i], hostnqn) && subsystem->hosts.secrets[i].tls.bytes)
			*out = subsystem->hosts.secrets[i].tls;
	pthread_mutex_unlock(&target->lock);
	return out->bytes != 0;
}

/* The key of the host and subsystem that an identity names, if that derives to the same identity. */
static bool find_key(void *of, const char *identity, struct weir_tls_psk *out)
{
	struct weir_target *target = of;
	char hostnqn[NVME_NQN_BYTES], subnqn[NVME_NQN_BYTES];
	const struct target_subsystem *subsystem;
	struct weir_tls_key key;
	bool good;

	if (!weir_tls_names(identity, hostnqn, subnqn))
		return false;
	subsystem = target_subsystem_find(target, subnqn);
	if (!subsystem)
		return false;
	good = target_tls_key(target, subsystem, hostnqn, &key) &&
	       weir_tls_derive(&key, hostnqn, subnqn, out) && !strcmp(out->identity, identity);
	explicit_bzero(&key, sizeof(key));
	if (!good)
		explicit_bzero(out, sizeof(*out));
	return good;
}

static bool has_keys(struct weir_target *target)
{
	bool any = false;

	pthread_mutex_lock(&target->lock);
	for (size_t i = 0; i < target->subsystem_count && !any; i++) {
		const struct target_hosts *hosts = &target->subsystems[i].hosts;

		any = hosts->tls.bytes;
		for (size_t j = 0; j < hosts->count; j++)
			any |= hosts->secrets[j].tls.bytes != 0;
	}
	pthread_mutex_unlock(&target->lock);
	return any;
}

/* Its first byte says what it is. False: there is none yet, or it has ended. */
static bool begin(struct connection *connection)
{
	struct weir_target *target = connection->server->target;
	u8 first;
	ssize_t got = recv(connection->socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		target_connection_end(connection);
		return false;
	}
	if (first == WEIR_TLS_HANDSHAKE && has_keys(target)) {
		connection->tls = weir_tls_server(connection->socket, find_key, target);
		if (!connection->tls)
			target_connection_end(connection);
		return connection->tls;
	}
	connection->hailed = true;
	return true;
}

bool target_hail(struct connection *connection)
{
	bool write;
	int error;

	if (!connection->tls && !begin(connection))
		return false;
	if (connection->hailed)
		return true;
	error = weir_tls_handshake(connection->tls, &write);
	if (error == -EAGAIN)
		target_server_watch(connection, write);
	else if (error)
		target_connection_end(connection);
	connection->hailed = !error;
	if (connection->hailed)
		target_server_watch(connection, false);
	return connection->hailed;
}

bool target_may_connect(struct connection *connection, const struct target_subsystem *subsystem,
			const char *hostnqn)
{
	char name[NVME_NQN_BYTES], subnqn[NVME_NQN_BYTES];
	struct weir_tls_key key;
	bool needed = target_tls_key(connection->server->target, subsystem, hostnqn, &key);

	explicit_bzero(&key, sizeof(key));
	if (!connection->tls)
		return !needed;
	return weir_tls_names(weir_tls_identity(connection->tls), name, subnqn) && !strcmp(name, hostnqn) &&
	       !strcmp(subnqn, subsystem->nqn);
}
