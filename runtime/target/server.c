/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c: a server thread: it waits for its sockets and storages, and for nothing else.
 *
 * Owns: the order of an iteration. No connection is waited for: one that sends half a PDU, or reads no
 * answer, keeps its own
 * buffers and delays nobody. A thread with nothing to do sleeps.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../backend/error.h"
#include "../base/timeout.h"
#include "events.h"
#include "parts.h"

enum {
	EVENTS = 64,
	CHECK_MS = 500,         /* between two looks at deadlines */
	DRAIN_MS = 5,           /* the same while it drains */
	ACCEPTS = 16,           /* at a time */
	ACCEPT_PAUSE_MS = 100,  /* after the process ran out of descriptors */
	WAITING_NS = 50 * 1000, /* between two tries of what the core does not take */
	BUSY_NS = 100 * 1000 * 1000,
};

/* What epoll's data mean that are no connection: odd numbers. */
enum { MARK_LISTENER = 1, MARK_WAKE = 3, MARK_STORAGE = 5, MARK_BITS = 3 };

u64 target_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

static int watch(struct target_server *server, int descriptor, u64 mark)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = mark };

	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0)
		return 0;
	return weir_fail(errno, "a server thread cannot wait for a descriptor: %s", strerror(errno));
}

static int watch_storage(struct target_server *server, const struct target_namespace *space)
{
	const struct weir_medium *medium = weir_virtual_medium(space->core);
	int fd = medium->ops->descriptor ? medium->ops->descriptor(medium, server->index) : -1;

	return fd < 0 ? 0 : watch(server, fd, MARK_STORAGE);
}

int target_server_watch_storage(struct weir_target *target, const struct target_namespace *space)
{
	int error = 0;

	for (unsigned i = 0; i < target->threads && !error; i++)
		error = watch_storage(&target->servers[i], space);
	return error;
}

static int watch_storages(struct target_server *server)
{
	struct weir_target *target = server->target;

	for (size_t i = 0; i < target->subsystem_count; i++)
		for (size_t j = 0; j < target_namespaces(&target->subsystems[i]); j++) {
			int error = watch_storage(server, &target->subsystems[i].namespaces[j]);

			if (error)
				return error;
		}
	return 0;
}

int target_server_create(struct weir_target *target, unsigned index, struct target_server *server)
{
	int error;

	server->target = target;
	server->index = index;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	server->buffer = malloc(TARGET_RECEIVE_BYTES);
	if (!server->buffer)
		return weir_fail(ENOMEM, "no memory for a server thread");
	if (server->epoll < 0 || server->wake < 0)
		return weir_fail(errno, "a server thread cannot be set up: %s", strerror(errno));
	error = watch(server, server->wake, MARK_WAKE);
	for (size_t i = 0; !error && !index && i < target->listener_count; i++)
		error = watch(server, target->listeners[i].socket, MARK_LISTENER | (u64)i << MARK_BITS);
	return error ? error : watch_storages(server);
}

void target_server_end(struct target_server *server)
{
	for (struct connection *at = server->connections; at; at = at->next)
		target_connection_end(at);
	for (struct connection *at = server->arrived; at; at = at->next)
		target_connection_end(at);
}

static void free_all(struct connection *connection)
{
	struct connection *next;

	for (; connection; connection = next) {
		next = connection->next;
		connection->queue.inflight = 0; /* the storages are closed */
		connection->in_unsent = false;
		target_connection_collect(connection);
	}
}

void target_server_destroy(struct target_server *server)
{
	free_all(server->connections);
	free_all(server->arrived);
	free(server->buffer);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->wake >= 0)
		close(server->wake);
}

void target_server_wake(struct target_server *server)
{
	u64 one = 1;

	if (write(server->wake, &one, sizeof(one)) < 0) /* full: it wakes anyway */
		return;
}

void target_server_watch(struct connection *connection, bool write)
{
	struct epoll_event event = { .events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = connection };

	if (connection->wants_write == write)
		return;
	connection->wants_write = write;
	epoll_ctl(connection->server->epoll, EPOLL_CTL_MOD, connection->socket, &event);
}

int target_server_poll(struct connection *connection, int descriptor)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };

	return epoll_ctl(connection->server->epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/* ---- new connections ---- */

static void add(struct target_server *server, struct connection *connection)
{
	connection->next = server->connections;
	server->connections = connection;
	if (connection->state != CONNECTION_DEAD && connection->wire->watch(connection) != 0)
		target_connection_end(connection);
}

static void take_arrived(struct target_server *server)
{
	struct connection *connection, *next;

	pthread_mutex_lock(&server->target->lock);
	connection = server->arrived;
	server->arrived = NULL;
	pthread_mutex_unlock(&server->target->lock);
	for (; connection; connection = next) {
		next = connection->next;
		add(server, connection);
	}
}

struct target_server *target_next_server(struct weir_target *target)
{
	unsigned iteration = atomic_fetch_add_explicit(&target->next_server, 1,
						       memory_order_relaxed); /* relaxed: any order will do */

	return &target->servers[iteration % target->threads];
}

void target_arrive(struct connection *connection, u16 listener)
{
	struct target_server *server = connection->server;

	connection->listener = listener;
	pthread_mutex_lock(&server->target->lock);
	connection->next = server->arrived;
	server->arrived = connection;
	pthread_mutex_unlock(&server->target->lock);
	target_server_wake(server);
}

int target_adopt(struct weir_target *target, int socket, u16 listener)
{
	struct connection *connection = target_connection_create(target_next_server(target), socket);

	if (!connection) {
		close(socket);
		return weir_fail(ENOMEM, "no memory for a connection");
	}
	target_arrive(connection, listener);
	return 0;
}

int weir_target_adopt(struct weir_target *target, int socket)
{
	return target_adopt(target, socket, TARGET_NO_LISTENER);
}

static void pause_accept(struct target_server *server)
{
	struct weir_target *target = server->target;

	server->accept_retry_ms = server->now_ms + ACCEPT_PAUSE_MS;
	for (size_t i = 0; i < target->listener_count; i++)
		epoll_ctl(server->epoll, EPOLL_CTL_DEL, target->listeners[i].socket, NULL);
}

static void resume_accept(struct target_server *server)
{
	struct weir_target *target = server->target;

	server->accept_retry_ms = 0;
	for (size_t i = 0; i < target->listener_count; i++)
		(void)watch(server, target->listeners[i].socket, MARK_LISTENER | (u64)i << MARK_BITS);
}

static void accept_some(struct target_server *server, size_t index)
{
	if (server->target->listeners[index].rdma) {
		target_rdma_accept(server->target, (u16)index);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(server->target->listeners[index].socket, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			target_adopt(server->target, fd, (u16)index);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accept(server);
		return;
	}
}

/* ---- an iteration ---- */

static u64 storages_wait_ns(const struct target_server *server)
{
	const struct weir_target *target = server->target;
	u64 wait = UINT64_MAX;

	for (size_t i = 0; i < target->subsystem_count; i++)
		for (size_t j = 0; j < target_namespaces(&target->subsystems[i]); j++) {
			struct weir_virtual *core = target->subsystems[i].namespaces[j].core;
			u64 due = weir_virtual_wait_ns(core, server->index);

			if (due == UINT64_MAX && weir_virtual_busy(core, server->index))
				due = BUSY_NS; /* its descriptor will tell; this is a last resort */
			wait = due < wait ? due : wait;
		}
	return wait;
}

static u64 wait_ns(const struct target_server *server, int ms)
{
	u64 wait = storages_wait_ns(server), most = ms < 0 ? UINT64_MAX : (u64)ms * 1000000;

	/* Relaxed: whoever sets it wakes this thread. */
	if (atomic_load_explicit(&server->target->stopping, memory_order_relaxed))
		most = most < DRAIN_MS * 1000000ULL ? most : DRAIN_MS * 1000000ULL;
	if ((server->connections || server->accept_retry_ms) && most > CHECK_MS * 1000000ULL)
		most = CHECK_MS * 1000000ULL;
	if (server->waiting.first && wait > WAITING_NS)
		wait = WAITING_NS;
	return wait < most ? wait : most;
}

static int wait_events(struct target_server *server, int ms, struct epoll_event *events)
{
	u64 ns = wait_ns(server, ms);
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	return epoll_pwait2(server->epoll, events, EVENTS, ns == UINT64_MAX ? NULL : &until, NULL);
}

static void handle(struct target_server *server, const struct epoll_event *event)
{
	u64 mark = event->data.u64, count;

	if (!(mark & 1)) {
		struct connection *connection = event->data.ptr;

		connection->wire->ready(connection);
	} else if ((mark & 7) == MARK_LISTENER) {
		accept_some(server, mark >> MARK_BITS);
	} else if ((mark & 7) == MARK_WAKE) {
		if (read(server->wake, &count, sizeof(count)) <= 0)
			return;
		take_arrived(server);
		for (struct connection *at = server->connections; at; at = at->next)
			target_events_send(at);
	}
}

/* Of an I/O queue whose association has ended. */
static bool comes_too_late(const struct command *command)
{
	const struct connection *connection = command->connection;

	/* Relaxed: as in target_controller_leave() */
	return connection->qid && !atomic_load_explicit(&connection->controller->ready, memory_order_relaxed);
}

static void begin_waiting(struct target_server *server)
{
	struct command *command = server->waiting.first, *next;

	server->waiting.first = NULL;
	for (; command; command = next) {
		next = command->next;
		if (comes_too_late(command))
			target_send_response(command, target_refuse(NVME_STATUS_COMMAND_SEQUENCE), 0, false);
		else
			(void)target_command_begin(command); /* or it waits in the list once more */
	}
}

static unsigned poll_storages(struct target_server *server)
{
	struct weir_target *target = server->target;
	unsigned done = 0;

	for (size_t i = 0; i < target->subsystem_count; i++)
		for (size_t j = 0; j < target_namespaces(&target->subsystems[i]); j++)
			done += weir_virtual_poll(target->subsystems[i].namespaces[j].core, server->index);
	return done;
}

/* Since when the oldest command is here. */
static void note_oldest(struct target_server *server)
{
	u64 oldest = 0;

	for (struct connection *at = server->connections; at; at = at->next)
		for (u32 i = 0; at->running && i < at->entries; i++)
			if (target_is_running(at->commands[i].state) &&
			    (!oldest || at->commands[i].since_ms < oldest))
				oldest = at->commands[i].since_ms;
	atomic_store_explicit(&server->counters.oldest_ms, oldest, memory_order_relaxed); /* statistics */
}

static void check(struct target_server *server)
{
	bool stopping = atomic_load_explicit(&server->target->stopping, memory_order_relaxed);

	if (!stopping && server->now_ms < server->next_check_ms)
		return;
	server->next_check_ms = server->now_ms + CHECK_MS;
	if (server->accept_retry_ms && server->now_ms >= server->accept_retry_ms)
		resume_accept(server);
	for (struct connection *at = server->connections; at; at = at->next)
		target_connection_check(at);
	note_oldest(server);
}

static void flush(struct target_server *server)
{
	struct connection *connection = server->unsent, *next;

	server->unsent = NULL;
	for (; connection; connection = next) {
		next = connection->next_unsent;
		connection->in_unsent = false;
		if (connection->state != CONNECTION_DEAD)
			(void)connection->wire->flush(connection);
	}
}

static void collect(struct target_server *server)
{
	struct connection **link = &server->connections;

	if (!server->dead)
		return;
	while (*link) {
		struct connection *connection = *link, *next = connection->next;

		if (target_connection_collect(connection))
			*link = next;
		else
			link = &connection->next;
	}
}

unsigned target_server_step(struct target_server *server, int ms)
{
	struct epoll_event events[EVENTS];
	int count = wait_events(server, ms, events);
	unsigned done = count > 0 ? (unsigned)count : 0;

	server->now_ms = target_now_ms();
	for (int i = 0; i < count; i++)
		handle(server, &events[i]);
	begin_waiting(server);
	done += poll_storages(server);
	check(server);
	flush(server);
	collect(server);
	return done;
}

/* With nobody left; in the end those do not count whose storage has lost a command for good. */
static bool is_over(const struct target_server *server)
{
	/* Relaxed: whoever sets it wakes this thread. */
	unsigned stopping = atomic_load_explicit(&server->target->stopping, memory_order_relaxed);

	if (!stopping)
		return false;
	return !server->connections ||
	       (stopping > 1 && !atomic_load_explicit(&server->counters.open, memory_order_relaxed));
}

static void *run(void *argument)
{
	struct target_server *server = argument;

	while (!is_over(server))
		target_server_step(server, -1);
	return NULL;
}

int weir_target_start(struct weir_target *target)
{
	for (unsigned i = 0; i < target->threads; i++) {
		struct target_server *server = &target->servers[i];
		int error = pthread_create(&server->handle, NULL, run, server);
		char name[16];

		if (error) {
			weir_target_stop(target, 0);
			return weir_fail(error, "cannot start server thread %u: %s", i, strerror(error));
		}
		server->started = true;
		snprintf(name, sizeof(name), "weir-serve-%u", i % 1000);
		pthread_setname_np(server->handle, name);
	}
	return 0;
}

static void announce(struct weir_target *target, unsigned how)
{
	atomic_store_explicit(&target->stopping, how, memory_order_relaxed);
	for (unsigned i = 0; i < target->threads; i++)
		target_server_wake(&target->servers[i]);
}

void weir_target_stop(struct weir_target *target, unsigned ms)
{
	struct timespec until = weir_timeout_to_join(ms);

	announce(target, 1);
	for (unsigned i = 0; i < target->threads; i++)
		if (target->servers[i].started &&
		    pthread_timedjoin_np(target->servers[i].handle, NULL, &until) == 0)
			target->servers[i].started = false;
	announce(target, 2);
	for (unsigned i = 0; i < target->threads; i++)
		if (target->servers[i].started)
			pthread_join(target->servers[i].handle, NULL);
	for (unsigned i = 0; i < target->threads; i++)
		target->servers[i].started = false;
}

unsigned weir_target_step(struct weir_target *target, int ms)
{
	return target_server_step(&target->servers[0], ms);
}
