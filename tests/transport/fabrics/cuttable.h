/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuttable.h: a path to a target that tests cut, silence and mend: a listening socket, and a thread that
 * carries bytes both ways.
 *
 * Owns: one thread for each path. A path that is cut resets its connections and refuses new ones; one that is
 * silent keeps them, and carries nothing.
 */
#ifndef WEIR_TESTS_CUTTABLE_H
#define WEIR_TESTS_CUTTABLE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CUTTABLE_PAIRS = 32, CUTTABLE_BYTES = 1 << 16, CUTTABLE_STEP_MS = 5 };

enum cuttable_mode { CUTTABLE_WORKS, CUTTABLE_SILENT, CUTTABLE_CUT, CUTTABLE_ENDED };

/** struct cuttable - @port: where hosts connect; @holder: bound there, so that no other program gets it while
 * the path is cut; @to: the target's; @mode, @is: wanted, in force: enum cuttable_mode; @late_ms: each time
 * that the target's bytes are carried, after so long; @ends: of each pair, the host's and the target's;
 * @bytes: carried */
struct cuttable {
	unsigned port;
	unsigned to;
	atomic_uint mode;
	atomic_uint is;
	atomic_uint late_ms;
	atomic_ullong bytes;
	int holder;
	int listener;
	int ends[CUTTABLE_PAIRS][2];
	pthread_t thread;
};

static inline struct sockaddr_in cuttable_address(unsigned port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				     .sin_port = htons((uint16_t)port) };
}

/* A socket at the path's port (0: any, which it then is). */
static inline int cuttable_bind(struct cuttable *path)
{
	int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct sockaddr_in at = cuttable_address(path->port);
	socklen_t length = sizeof(at);

	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(file, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    getsockname(file, (struct sockaddr *)&at, &length) != 0)
		abort();
	path->port = ntohs(at.sin_port);
	return file;
}

static inline void cuttable_listen(struct cuttable *path)
{
	path->listener = cuttable_bind(path);
	if (listen(path->listener, CUTTABLE_PAIRS) != 0)
		abort();
}

static inline void cuttable_reset(int *ends)
{
	static const struct linger at_once = { .l_onoff = 1 };

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i] < 0)
			continue;
		setsockopt(ends[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(ends[i]);
		ends[i] = -1;
	}
}

static inline void cuttable_accept(struct cuttable *path)
{
	struct sockaddr_in to = cuttable_address(path->to);
	int one = 1, *ends = path->ends[0];

	for (unsigned i = 0; i < CUTTABLE_PAIRS && ends[0] >= 0; i++)
		ends = path->ends[i];
	cuttable_reset(ends);
	ends[0] = accept4(path->listener, NULL, NULL, SOCK_CLOEXEC);
	ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends[0] < 0 || connect(ends[1], (struct sockaddr *)&to, sizeof(to)) != 0) {
		cuttable_reset(ends);
		return;
	}
	setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static inline void cuttable_carry(struct cuttable *path, int *ends, unsigned from)
{
	static _Thread_local char bytes[CUTTABLE_BYTES];
	unsigned late_ms = from == 1 ? atomic_load(&path->late_ms) : 0;
	ssize_t got = recv(ends[from], bytes, sizeof(bytes), 0);

	if (late_ms)
		poll(NULL, 0, (int)late_ms);
	if (got <= 0 || send(ends[!from], bytes, (size_t)got, MSG_NOSIGNAL) != got)
		cuttable_reset(ends);
	else
		atomic_fetch_add(&path->bytes, (unsigned long long)got);
}

static inline void cuttable_step(struct cuttable *path)
{
	struct pollfd wanted[1 + 2 * CUTTABLE_PAIRS] = { { .fd = path->listener, .events = POLLIN } };

	for (unsigned i = 0; i < 2 * CUTTABLE_PAIRS; i++)
		wanted[1 + i] = (struct pollfd){ .fd = path->ends[i / 2][i % 2], .events = POLLIN };
	if (poll(wanted, 1 + 2 * CUTTABLE_PAIRS, CUTTABLE_STEP_MS) <= 0)
		return;
	for (unsigned i = 0; i < 2 * CUTTABLE_PAIRS; i++)
		if (wanted[1 + i].revents && path->ends[i / 2][i % 2] == wanted[1 + i].fd)
			cuttable_carry(path, path->ends[i / 2], i % 2);
	if (wanted[0].revents)
		cuttable_accept(path);
}

static inline void *cuttable_run(void *argument)
{
	struct cuttable *path = argument;
	unsigned mode;

	while ((mode = atomic_load(&path->mode)) != CUTTABLE_ENDED) {
		if (mode == CUTTABLE_WORKS && path->listener < 0)
			cuttable_listen(path);
		for (unsigned i = 0; mode == CUTTABLE_CUT && i < CUTTABLE_PAIRS; i++)
			cuttable_reset(path->ends[i]);
		if (mode == CUTTABLE_CUT && path->listener >= 0) {
			close(path->listener);
			path->listener = -1;
		}
		atomic_store(&path->is, mode);
		if (mode == CUTTABLE_WORKS)
			cuttable_step(path);
		else
			poll(NULL, 0, CUTTABLE_STEP_MS);
	}
	for (unsigned i = 0; i < CUTTABLE_PAIRS; i++)
		cuttable_reset(path->ends[i]);
	if (path->listener >= 0)
		close(path->listener);
	return NULL;
}

/** cuttable_start() - a path that works, to port @to of this machine */
static inline void cuttable_start(struct cuttable *path, unsigned to)
{
	memset(path, 0, sizeof(*path));
	path->to = to;
	for (unsigned i = 0; i < CUTTABLE_PAIRS; i++)
		path->ends[i][0] = path->ends[i][1] = -1;
	path->holder = cuttable_bind(path);
	cuttable_listen(path);
	if (pthread_create(&path->thread, NULL, cuttable_run, path) != 0)
		abort();
}

/** cuttable_set() - have @mode in force */
static inline void cuttable_set(struct cuttable *path, enum cuttable_mode mode)
{
	atomic_store(&path->mode, mode);
	while (atomic_load(&path->is) != mode)
		poll(NULL, 0, 1);
}

static inline void cuttable_end(struct cuttable *path)
{
	atomic_store(&path->mode, CUTTABLE_ENDED);
	pthread_join(path->thread, NULL);
	close(path->holder);
}

#endif
