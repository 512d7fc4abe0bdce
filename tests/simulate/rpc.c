/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/rpc.c: the daemon's calls over the simulated network, in the place of volume/rpc.c's sockets: the
 * linker leads calls of its functions here (--wrap).
 */
#include <errno.h>
#include <stdlib.h>

#include "backend/error.h"
#include "cluster.h"
#include "volume/rpc.h"

/** struct weir_rpc - a connection with the daemon */
struct weir_rpc {
	struct sim_connection *connection;
	bool broken;
};

int __wrap_weir_rpc_open(const char *address, const struct weir_rpc_identity *identity, unsigned ms,
			 struct weir_rpc **out);
void __wrap_weir_rpc_close(struct weir_rpc *rpc);
int __wrap_weir_rpc_broken(const struct weir_rpc *rpc);
int __wrap_weir_rpc_call(struct weir_rpc *rpc, const char *method, json_t *params, unsigned ms,
			 json_t **result);

int __wrap_weir_rpc_open(const char *address, const struct weir_rpc_identity *identity, unsigned ms,
			 struct weir_rpc **out)
{
	struct sim_connection *connection = NULL;

	(void)identity;
	if (sim.current)
		connection = sim_connect(&cluster.daemon.node, ms * SIM_MS);
	if (!connection)
		return weir_fail(ECONNREFUSED, "daemon \"%s\" is not reached", address);
	*out = calloc(1, sizeof(**out));
	if (!*out)
		abort();
	(*out)->connection = connection;
	return 0;
}

void __wrap_weir_rpc_close(struct weir_rpc *rpc)
{
	if (!rpc)
		return;
	sim_disconnect(rpc->connection);
	free(rpc);
}

int __wrap_weir_rpc_broken(const struct weir_rpc *rpc)
{
	return rpc->broken || rpc->connection->lost;
}

static int judge(const char *method, json_t *answer, json_t **result)
{
	json_t *error = json_object_get(answer, "error"), *found = json_object_get(answer, "result");
	json_int_t code = json_integer_value(json_object_get(error, "code"));

	if (error)
		return weir_fail(code < 0 && code > -4096 ? (int)-code : EPROTO, "the daemon refuses %s: %s",
				 method, json_string_value(json_object_get(error, "message")));
	if (result)
		*result = json_incref(found);
	return 0;
}

int __wrap_weir_rpc_call(struct weir_rpc *rpc, const char *method, json_t *params, unsigned ms,
			 json_t **result)
{
	struct sim_message *message, *reply = NULL;
	int error;

	if (!sim.current) {
		json_decref(params);
		rpc->broken = true;
		return -ENOTCONN;
	}
	message = sim_message(rpc->connection, true);
	message->json = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method", method,
				  "params", params ? params : json_object());
	reply = sim_call(message, ms * SIM_MS);
	if (!reply) {
		rpc->broken = true;
		return weir_fail(ETIMEDOUT, "the daemon does not answer %s", method);
	}
	error = judge(method, reply->json, result);
	sim_message_free(reply);
	return error;
}

int call_daemon(const char *method, json_t *params, json_t **result)
{
	struct weir_rpc *rpc = NULL;
	int error = __wrap_weir_rpc_open("sim", NULL, 2000, &rpc);

	if (error) {
		json_decref(params);
		return error;
	}
	error = __wrap_weir_rpc_call(rpc, method, params, 20000, result);
	__wrap_weir_rpc_close(rpc);
	return error;
}
