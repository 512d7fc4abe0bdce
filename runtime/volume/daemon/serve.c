/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../../backend/error.h"
#include "../../transport/fabrics/tls.h"
#include "../rpc.h"
#include "methods.h"

enum {
	MOST_CONNECTIONS = 4096,
	SEND_MS = 1000,
	BETWEEN_MS = 5, /* from one poll of sockets to the next while the daemon is at work */
	PUT_OFF_MS = 250,
	REST_MS = 100, /* of listeners, while there is no file for one more connection */
};

/**
 * struct connection - a client's
 * @local: it came by a local socket; @detected: its first byte is there
 * @waiting: a call that came while the daemon was at work, since @waiting_ms; or NULL
 * @served: a call of it is being answered
 * @over: it is to be closed
 */
struct connection {
	struct weir_rpc *rpc;
	bool local;
	bool detected;
	struct volumed_caller caller;
	json_t *waiting;
	uint64_t waiting_ms;
	bool served;
	bool over;
};

/** struct server - @rested_ms: until then nobody is accepted */
struct server {
	struct volumed *d;
	const int *sockets;
	unsigned listeners;
	struct volumed_hosts *hosts;
	int signals;
	struct connection connections[MOST_CONNECTIONS];
	unsigned count;
	struct pollfd polls[1 + VOLUMED_LISTENERS + MOST_CONNECTIONS];
	bool at_work; /* all of this happens between two commands to engines */
	uint64_t polled_ms;
	uint64_t rested_ms;
};

static bool is_local(int socket)
{
	struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
	socklen_t bytes = sizeof(name);

	return getsockname(socket, (struct sockaddr *)&name, &bytes) == 0 && name.ss_family == AF_UNIX;
}

/* Whoever waits to be accepted goes on waiting, and would have poll() return at once. */
static bool is_exhausted(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void accept_one(struct server *server, int listener)
{
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct connection *connection = &server->connections[server->count];

	if (socket < 0) {
		if (is_exhausted(errno))
			server->rested_ms = volumed_now_ms(server->d) + REST_MS;
		return;
	}
	if (server->count == MOST_CONNECTIONS) {
		(void)close(socket);
		return;
	}
	*connection = (struct connection){ .local = is_local(socket) };
	if (weir_rpc_of(socket, "a client", &connection->rpc) == 0)
		server->count++;
}

/* Its first byte says whether it comes with TLS. Whether it goes on. */
static bool detect_tls(struct server *server, struct connection *connection)
{
	bool guarded = server->hosts && server->hosts->count && !connection->local, tls;
	u8 first;
	ssize_t got = recv(weir_rpc_socket(connection->rpc), &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	connection->detected = true;
	tls = first == WEIR_TLS_HANDSHAKE;
	connection->caller.unauthenticated = guarded && !tls;
	if (!tls)
		return true;
	return guarded && weir_rpc_secure(connection->rpc, volumed_host_psk, server->hosts) == 0;
}

/* Whoever has proved to be a host is it. */
static void identify(const struct server *server, struct connection *connection)
{
	const char *host = weir_rpc_host(connection->rpc);
	const struct volumed_host *known = host ? volumed_host_find(server->hosts, host) : NULL;

	connection->caller.host = host;
	connection->caller.manager = known && known->manager;
}

/* Whether @request is not answered now; it is the connection's then. */
static bool waits(const struct server *server, struct connection *connection, json_t *request)
{
	enum volumed_urgency urgency = volumed_urgency_of(request);
	uint64_t now = volumed_now_ms(server->d);

	if (!server->at_work || urgency == VOLUMED_AT_ONCE)
		return false;
	if (connection->waiting != request)
		connection->waiting_ms = now;
	connection->waiting = request;
	return urgency == VOLUMED_WAITS || now - connection->waiting_ms < PUT_OFF_MS;
}

/* It sends nothing more: it was closed, or ends without the answer. */
static bool has_gone(const struct connection *connection)
{
	struct pollfd end = { .fd = weir_rpc_socket(connection->rpc), .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

/* A lease that nobody hears of is given back. */
static json_t *unless_lost(struct volumed *d, const struct connection *connection, json_t *reply)
{
	const json_t *lease = json_object_get(json_object_get(reply, "result"), "lease");

	if (!json_is_object(lease) || !has_gone(connection))
		return reply;
	volumed_lease_take_back(d, json_string_value(json_object_get(lease, "name")),
				(u16)json_integer_value(json_object_get(lease, "client")),
				(u32)json_integer_value(json_object_get(lease, "epoch")));
	json_decref(reply);
	return NULL;
}

static json_t *answer(const struct server *server, struct connection *connection, json_t *request)
{
	json_t *reply;

	connection->waiting = NULL;
	connection->served = true;
	identify(server, connection);
	reply = server->at_work ? volumed_answer_between(server->d, &connection->caller, request)
				: volumed_answer(server->d, &connection->caller, request);
	reply = unless_lost(server->d, connection, reply);
	connection->served = false;
	json_decref(request);
	return reply;
}

/* Whoever waits for an answer that is too long for a message hears of that instead. */
static int send_reply(struct connection *connection, json_t *reply)
{
	int error = weir_rpc_send(connection->rpc, json_incref(reply), SEND_MS);

	if (error == -EMSGSIZE) {
		weir_fail(EMSGSIZE,
			  "the call is done, but its answer has more than %d bytes, the most of a message",
			  WEIR_RPC_LINE_BYTES);
		error = weir_rpc_send(connection->rpc, weir_rpc_error(reply, error, weir_last_error()),
				      SEND_MS);
	}
	json_decref(reply);
	return error;
}

/* Whether the connection goes on. */
static bool serve_one(struct server *server, struct connection *connection)
{
	if (!connection->detected && !detect_tls(server, connection))
		return false;
	if (!connection->detected)
		return true;
	do {
		json_t *reply, *request = connection->waiting;
		int error = request ? 0 : weir_rpc_receive(connection->rpc, 0, &request);

		if (error == -EAGAIN)
			return true;
		if (error && (error != -EPROTO || weir_rpc_broken(connection->rpc)))
			return false;
		if (!error && waits(server, connection, request))
			return true;
		reply = error ? weir_rpc_error(NULL, WEIR_RPC_PARSE_ERROR, "the line is no JSON object")
			      : answer(server, connection, request);
		if (reply && send_reply(connection, reply) != 0)
			return false;
	} while (weir_rpc_pending(connection->rpc));
	return true;
}

static uint64_t left_to_rest(const struct server *server)
{
	uint64_t now = volumed_now_ms(server->d);

	return server->rested_ms > now ? server->rested_ms - now : 0;
}

/* Of connections that are being served, or wait, no more is read: poll() passes over negative numbers. */
static void fill_polls(struct server *server)
{
	bool rests = left_to_rest(server) > 0;

	server->polls[0] = (struct pollfd){ .fd = server->signals, .events = POLLIN };
	for (unsigned i = 0; i < server->listeners; i++)
		server->polls[1 + i] =
			(struct pollfd){ .fd = rests ? -1 : server->sockets[i], .events = POLLIN };
	for (unsigned i = 0; i < server->count; i++) {
		const struct connection *connection = &server->connections[i];
		bool reads = !connection->waiting && !connection->served && !connection->over;

		server->polls[1 + server->listeners + i] =
			(struct pollfd){ .fd = reads ? weir_rpc_socket(connection->rpc) : -1,
					 .events = POLLIN };
	}
}

static void close_ended(struct server *server)
{
	for (unsigned i = server->count; i-- > 0;) {
		if (!server->connections[i].over)
			continue;
		json_decref(server->connections[i].waiting);
		weir_rpc_close(server->connections[i].rpc);
		server->connections[i] = server->connections[--server->count];
		server->rested_ms = 0; /* there is a file again */
	}
}

/* While it is at work, connections stay where they are: one of them is being served. */
static void serve_ready(struct server *server)
{
	unsigned count = server->count;

	for (unsigned i = 0; i < count; i++) {
		struct connection *connection = &server->connections[i];

		bool ready = connection->waiting || server->polls[1 + server->listeners + i].revents;

		if (ready && !connection->served && !connection->over)
			connection->over = !serve_one(server, connection);
	}
	for (unsigned i = 0; i < server->listeners; i++)
		if (server->polls[1 + i].revents)
			accept_one(server, server->sockets[i]);
}

static bool is_any_waiting(const struct server *server)
{
	for (unsigned i = 0; i < server->count; i++)
		if (server->connections[i].waiting)
			return true;
	return false;
}

/* Before each command to an engine. What poll() says is then no longer what volumed_serve() was told, but at
 * least as new; nobody waits for a socket that has nothing. */
static void serve_between(void *argument)
{
	struct server *server = argument;
	uint64_t now = volumed_now_ms(server->d);

	if (server->at_work || now - server->polled_ms < BETWEEN_MS)
		return;
	server->polled_ms = now;
	server->at_work = true;
	fill_polls(server);
	if (poll(server->polls, 1 + server->listeners + server->count, 0) >= 0)
		serve_ready(server);
	server->at_work = false;
}

/* How long to wait for a socket, if there is something to do after @ms. */
static int wait_ms(const struct server *server, unsigned ms)
{
	uint64_t rest = left_to_rest(server);

	if (is_any_waiting(server))
		return 0;
	return (int)(rest && rest < ms ? rest : ms);
}

static void begin(struct server *server, struct volumed *d, const struct volumed_listeners *listeners,
		  int signals)
{
	*server = (struct server){ .d = d,
				   .sockets = listeners->sockets,
				   .listeners = listeners->count,
				   .hosts = listeners->hosts,
				   .signals = signals };
	for (unsigned i = 0; i < listeners->count; i++)
		(void)fcntl(listeners->sockets[i], F_SETFL, O_NONBLOCK);
	d->between = (struct volume_between){ serve_between, server };
}

/* Until a socket has something, for @ms at most; 0 or a negative errno with a sentence. */
static int wait_for_sockets(struct server *server, unsigned ms)
{
	nfds_t count = 1 + server->listeners + server->count;

	fill_polls(server);
	if (poll(server->polls, count, wait_ms(server, ms)) >= 0 || errno == EINTR)
		return 0;
	return weir_fail(errno, "the daemon cannot wait for its %u connections, and ends: %s", server->count,
			 strerror(errno));
}

int volumed_serve(struct volumed *d, const struct volumed_listeners *listeners, int signals)
{
	static struct server server;
	struct signalfd_siginfo signal = { .ssi_signo = 0 };
	int error;

	begin(&server, d, listeners, signals);
	while ((error = wait_for_sockets(&server, volumed_step(d))) == 0) {
		if (server.polls[0].revents && read(signals, &signal, sizeof(signal)) == sizeof(signal))
			break;
		serve_ready(&server);
		close_ended(&server);
	}
	d->between.call = NULL;
	for (unsigned i = 0; i < server.count; i++)
		server.connections[i].over = true;
	close_ended(&server);
	return error ? error : (int)signal.ssi_signo;
}
