/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.c: a connection from accept to end.
 *
 * Owns: its states and deadlines. One whose socket is closed stays until the core has ended its
 * commands, whose buffers a
 * storage may still be writing to.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

struct connection *target_connection_new(struct target_server *server, const struct target_wire *wire)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->server = server;
	connection->wire = wire;
	connection->socket = -1;
	connection->flow_control = true;
	connection->deadline_ms = target_now_ms() + TARGET_HELLO_MS;
	if (!target_commands_create(connection, 1)) {
		free(connection);
		return NULL;
	}
	atomic_fetch_add_explicit(&server->counters.open, 1, memory_order_relaxed); /* relaxed: statistics */
	atomic_fetch_add_explicit(&server->counters.accepted, 1, memory_order_relaxed);
	return connection;
}

void target_connection_heard(struct connection *connection)
{
	struct target_controller *controller = connection->controller;
	unsigned long long now = connection->server->now_ms, heard;

	if (!controller)
		return;
	/*
	 * Relaxed: a time, and nothing goes with it. Compared first, so that queues do not fight for the
	 * line. A thread whose iteration takes long has an older clock than who heard the host meanwhile.
	 */
	heard = atomic_load_explicit(&controller->alive_ms, memory_order_relaxed);
	if (heard < now)
		(void)atomic_compare_exchange_strong_explicit(&controller->alive_ms, &heard, now,
							      memory_order_relaxed, memory_order_relaxed);
}

void target_connection_end(struct connection *connection)
{
	if (connection->state == CONNECTION_DEAD)
		return;
	target_controller_leave(connection); /* before the descriptor may be another's */
	connection->wire->close(connection);
	connection->state = CONNECTION_DEAD;
	connection->server->dead++;
	atomic_fetch_sub_explicit(&connection->server->counters.open, 1, memory_order_relaxed);
	target_commands_cancel(connection);
}

bool target_connection_collect(struct connection *connection)
{
	/* One that ended while it was flushed may be in its server's list again. */
	if (connection->state != CONNECTION_DEAD || connection->queue.inflight || connection->in_unsent)
		return false;
	connection->server->dead--;
	target_controller_drop(connection);
	target_commands_destroy(connection);
	target_authenticate_end(connection);
	connection->wire->release(connection);
	free(connection);
	return true;
}

/* What was answered still goes out, then why, and then it ends. */
static void close_soon(struct connection *connection)
{
	connection->state = CONNECTION_CLOSING;
	connection->deadline_ms = connection->server->now_ms + TARGET_LINGER_MS;
	target_send_soon(connection);
}

void target_connection_refuse(struct connection *connection, const struct weir_tcp_error *error)
{
	u8 term[sizeof(struct nvme_tcp_term_req) + NVME_TCP_LONGEST_HEADER];
	size_t header = connection->phase == RECEIVE_COMMON ? sizeof(struct nvme_tcp_common)
							    : connection->layout.header_bytes;
	size_t bytes = weir_tcp_build_term(term, true, error, connection->header.bytes, header);

	atomic_fetch_add_explicit(&connection->server->counters.bad_pdus, 1,
				  memory_order_relaxed); /* relaxed: statistics */
	target_send_note(connection, term, (u32)bytes);
	close_soon(connection);
}

void target_connection_close(struct connection *connection)
{
	close_soon(connection);
}

/*
 * Nothing that it sends is of interest any more; it is read so that our last words are not lost to a reset.
 */
static void discard(struct connection *connection)
{
	ssize_t got =
		recv(connection->socket, connection->server->buffer, TARGET_RECEIVE_BYTES, MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		target_connection_end(connection);
}

static void ready(struct connection *connection)
{
	switch (connection->state) {
	case CONNECTION_DEAD: return;
	case CONNECTION_CLOSING:
	case CONNECTION_LINGERING: discard(connection); break;
	default:
		if (!atomic_load_explicit(&connection->server->target->stopping, memory_order_relaxed))
			(void)target_receive(connection);
	}
	if (connection->wants_write && connection->hailed && connection->state != CONNECTION_DEAD)
		target_send_soon(connection);
}

static bool is_idle(struct connection *connection)
{
	return !connection->running && !connection->out.first &&
	       connection->note_bytes == connection->note_sent && target_controller_can_end(connection);
}

static bool has_expired(const struct connection *connection)
{
	return connection->controller && !connection->qid &&
	       target_controller_expired(connection->controller, connection->server->now_ms);
}

/* A thread that was not here for long takes what came meanwhile before it says that nothing did. */
static bool is_silent(struct connection *connection)
{
	if (!has_expired(connection))
		return false;
	connection->wire->ready(connection);
	return connection->state != CONNECTION_DEAD && has_expired(connection);
}

void target_connection_check(struct connection *connection)
{
	const struct target_server *server = connection->server;
	unsigned stopping = atomic_load_explicit(&server->target->stopping, memory_order_relaxed);

	if (connection->state == CONNECTION_DEAD)
		return;
	if (stopping > 1 || (stopping && is_idle(connection)) ||
	    (connection->deadline_ms && server->now_ms >= connection->deadline_ms) || is_silent(connection))
		target_connection_end(connection);
}

/* ---- a socket ---- */

static int watch(struct connection *connection)
{
	return target_server_poll(connection, connection->socket);
}

static void close_socket(struct connection *connection)
{
	close(connection->socket);
	connection->socket = -1;
}

static void shut_down(struct connection *connection)
{
	shutdown(connection->socket, SHUT_RDWR);
}

static void release(struct connection *connection)
{
	weir_tls_free(connection->tls);
}

static void local(const struct connection *connection, struct sockaddr_storage *address)
{
	socklen_t length = sizeof(*address);

	if (getsockname(connection->socket, (struct sockaddr *)address, &length) != 0)
		address->ss_family = AF_UNSPEC;
}

static const struct target_wire tcp = {
	.watch = watch,
	.ready = ready,
	.grant = target_tcp_grant,
	.respond = target_tcp_respond,
	.flush = target_tcp_flush,
	.close = close_socket,
	.shutdown = shut_down,
	.release = release,
	.local = local,
};

struct connection *target_connection_create(struct target_server *server, int socket)
{
	struct connection *connection = target_connection_new(server, &tcp);
	int one = 1;

	if (!connection)
		return NULL;
	connection->socket = socket;
	connection->to_us.most_data = TARGET_TRANSFER_BYTES;
	connection->left = sizeof(struct nvme_tcp_common);
	connection->into = connection->header.bytes;
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	return connection;
}
