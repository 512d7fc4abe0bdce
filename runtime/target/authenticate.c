/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * authenticate.c: hosts prove who they are, connection by connection, before any other command of theirs is
 * taken.
 *
 * Owns: the way of chap.h's messages: Authentication Send and Receive, Base 2.0 sections 6.1 and 6.2. A
 * connection whose host fails gets nothing more, and is closed.
 */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

/* A copy, to be wiped: others may be read while this host authenticates. False: it need not. */
static bool secrets_of(struct connection *connection, struct target_secrets *out)
{
	const struct target_controller *controller = connection->controller;
	const struct target_subsystem *subsystem = controller->subsystem;
	struct weir_target *target = connection->server->target;

	out->host.bytes = 0;
	pthread_mutex_lock(&target->lock);
	for (size_t i = 0; subsystem && i < subsystem->hosts.count; i++)
		if (!strcmp(subsystem->hosts.names[i], controller->hostnqn))
			*out = subsystem->hosts.secrets[i];
	pthread_mutex_unlock(&target->lock);
	return out->host.bytes != 0;
}

static bool begin(struct connection *connection, const struct target_secrets *secrets, u32 *authreq)
{
	const struct target_controller *controller = connection->controller;
	struct weir_chap_names names = { controller->hostnqn, controller->subsystem->nqn };

	connection->chap = malloc(sizeof(*connection->chap));
	if (!connection->chap)
		return false;
	weir_chap_begin(connection->chap, &names, &secrets->host, &secrets->controller);
	connection->deadline_ms = target_now_ms() + TARGET_HELLO_MS;
	*authreq = NVME_CONNECT_ATR;
	return true;
}

bool target_authenticate_begin(struct connection *connection, u32 *authreq)
{
	struct target_secrets secrets;
	bool good;

	*authreq = 0;
	good = !secrets_of(connection, &secrets) || begin(connection, &secrets, authreq);
	explicit_bzero(&secrets, sizeof(secrets));
	return good;
}

void target_authenticate_end(struct connection *connection)
{
	if (!connection->chap)
		return;
	weir_chap_end(connection->chap);
	free(connection->chap);
	connection->chap = NULL;
}

static bool is_ours(const struct nvme_fabrics_authentication *request)
{
	return request->secp == NVME_AUTH_SECP && request->spsp0 == 1 && request->spsp1 == 1;
}

static void give(struct command *command)
{
	struct weir_chap *chap = command->connection->chap;
	u8 message[WEIR_CHAP_MESSAGE_BYTES];
	u32 bytes = weir_chap_give(chap, message);

	if (!bytes) {
		target_send_response(command, target_refuse(NVME_STATUS_COMMAND_SEQUENCE), 0, false);
		return;
	}
	memset(command->data, 0, command->data_bytes);
	memcpy(command->data, message, bytes < command->data_bytes ? bytes : command->data_bytes);
	target_send_response(command, NVME_STATUS_SUCCESS, 0, true);
}

/* What failed is told first: the host asks for it. */
static bool is_over(const struct weir_chap *chap)
{
	return chap->failed && chap->pending != NVME_AUTH_FAILURE1;
}

void target_authenticate_run(struct command *command)
{
	struct connection *connection = command->connection;
	struct nvme_fabrics_authentication request;
	bool was_over;

	memcpy(&request, &command->sqe, sizeof(request));
	if (!connection->chap || !is_ours(&request) || !command->data_bytes) {
		target_send_response(command, target_refuse(NVME_STATUS_INVALID_FIELD), 0, false);
		return;
	}
	was_over = is_over(connection->chap);
	if (request.fctype == NVME_FCTYPE_AUTHENTICATION_RECEIVE) {
		give(command);
	} else {
		weir_chap_take(connection->chap, command->data, command->data_bytes);
		target_send_response(command, NVME_STATUS_SUCCESS, 0, false);
	}
	if (connection->chap->done)
		connection->deadline_ms = 0;
	if (is_over(connection->chap) && !was_over) { /* once: more of its messages win no time */
		atomic_fetch_add_explicit(&connection->server->counters.refused, 1,
					  memory_order_relaxed); /* relaxed: statistics */
		connection->deadline_ms =
			target_now_ms() + TARGET_LINGER_MS; /* the host hears why, and closes */
	}
}
