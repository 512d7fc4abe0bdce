/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../rpc.h"
#include "methods.h"

enum { MOST_CONNECTIONS = 1024, SEND_MS = 1000 };

struct server {
	struct volumed *d;
	const int *sockets;
	unsigned listeners;
	int signals;
	struct weir_rpc *connections[MOST_CONNECTIONS];
	unsigned count;
	struct pollfd polls[1 + VOLUMED_LISTENERS + MOST_CONNECTIONS];
};

static void accept_one(struct server *server, int listener)
{
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (socket < 0)
		return;
	if (server->count == MOST_CONNECTIONS)
		(void)close(socket);
	else if (weir_rpc_of(socket, "a client", &server->connections[server->count]) == 0)
		server->count++;
}

/* Whether the connection goes on. */
static bool serve_one(struct server *server, struct weir_rpc *rpc)
{
	do {
		json_t *request, *reply;
		int error = weir_rpc_receive(rpc, 0, &request);

		if (error == -EAGAIN)
			return true;
		if (error && error != -EPROTO)
			return false;
		reply = error ? weir_rpc_error(NULL, WEIR_RPC_PARSE_ERROR, "the line is no JSON object")
			      : volumed_answer(server->d, request);
		if (!error)
			json_decref(request);
		if (reply && weir_rpc_send(rpc, reply, SEND_MS) != 0)
			return false;
	} while (weir_rpc_pending(rpc));
	return true;
}

static void fill_polls(struct server *server)
{
	server->polls[0] = (struct pollfd){ .fd = server->signals, .events = POLLIN };
	for (unsigned i = 0; i < server->listeners; i++)
		server->polls[1 + i] = (struct pollfd){ .fd = server->sockets[i], .events = POLLIN };
	for (unsigned i = 0; i < server->count; i++)
		server->polls[1 + server->listeners + i] =
			(struct pollfd){ .fd = weir_rpc_socket(server->connections[i]), .events = POLLIN };
}

/* From the last on, so that one that ends is replaced by one that was served. */
static void serve_ready(struct server *server)
{
	for (unsigned i = server->count; i-- > 0;) {
		if (!server->polls[1 + server->listeners + i].revents ||
		    serve_one(server, server->connections[i]))
			continue;
		weir_rpc_close(server->connections[i]);
		server->connections[i] = server->connections[--server->count];
	}
	for (unsigned i = 0; i < server->listeners; i++)
		if (server->polls[1 + i].revents)
			accept_one(server, server->sockets[i]);
}

int volumed_serve(struct volumed *d, const int *sockets, unsigned count, int signals)
{
	static struct server server;
	struct signalfd_siginfo signal = { .ssi_signo = 0 };

	server = (struct server){ .d = d, .sockets = sockets, .listeners = count, .signals = signals };
	for (;;) {
		unsigned ms = volumed_step(d);

		fill_polls(&server);
		if (poll(server.polls, 1 + count + server.count, (int)ms) < 0 && errno != EINTR)
			break;
		if (server.polls[0].revents && read(signals, &signal, sizeof(signal)) == sizeof(signal))
			break;
		serve_ready(&server);
	}
	for (unsigned i = 0; i < server.count; i++)
		weir_rpc_close(server.connections[i]);
	return (int)signal.ssi_signo;
}
