/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_ring.c: an io_uring that is never waited for.
 *
 * Owns: set-up with the best flags the kernel has, and the one system call that
 * both submits and collects; or leaves both to a pool. Knows nothing of requests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "file.h"

/*
 * Best first. COOP_TASKRUN (5.19): completions do not interrupt the thread, and a
 * flag tells that there are some, so that an idle poll stays out of the kernel.
 *
 * Not DEFER_TASKRUN: it binds the ring to one host thread, and what is in flight
 * when that thread ends is never reported. Controller threads may be stopped and
 * started with requests in flight; measured, it brought nothing here either.
 */
static const unsigned ring_flags[] = {
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
	0,
};

static int ring_setup(struct file_ring *ring, unsigned depth, unsigned more)
{
	int error = -EINVAL;

	for (size_t i = 0; i < sizeof(ring_flags) / sizeof(ring_flags[0]); i++) {
		struct io_uring_params params = { .flags = ring_flags[i] | more };

		error = io_uring_queue_init_params(depth, &ring->uring, &params);
		if (error != -EINVAL)
			return error;
	}
	return error;
}

int file_ring_create(struct file_ring *ring, unsigned depth, bool polled, const int fds[FILE_WAYS])
{
	int error;

	memset(ring, 0, sizeof(*ring));
	error = ring_setup(ring, depth, polled ? IORING_SETUP_IOPOLL : 0);
	if (error)
		return error;
	ring->made = true;
	ring->polled = polled;
	error = io_uring_register_files(&ring->uring, fds, FILE_WAYS);
	if (!error)
		/* of nothing: a profile may forbid that alone */
		error = io_uring_submit_and_get_events(&ring->uring);
	if (error < 0)
		file_ring_destroy(ring);
	return error < 0 ? error : 0;
}

int file_ring_create_by(struct file_pool *pool, struct file_ring *ring, unsigned depth, int sync)
{
	memset(ring, 0, sizeof(*ring));
	return file_queue_create(pool, depth, sync, &ring->queue);
}

void file_ring_destroy(struct file_ring *ring)
{
	if (ring->made) {
		/* By hand: the kernel takes a ring apart later, and a device stays claimed until then. */
		io_uring_unregister_files(&ring->uring);
		io_uring_queue_exit(&ring->uring);
	}
	free(ring->queue);
	memset(ring, 0, sizeof(*ring));
}

struct io_uring_sqe *file_ring_take(struct file_ring *ring)
{
	ring->waiting++;
	return ring->queue ? file_queue_take(ring->queue) : io_uring_get_sqe(&ring->uring);
}

struct weir_io *file_ring_prepared(const struct file_ring *ring, unsigned index)
{
	const struct io_uring_sq *sq = &ring->uring.sq;
	unsigned first = sq->sqe_tail - io_uring_sq_ready(&ring->uring);

	return (struct weir_io *)(uintptr_t)sq->sqes[(first + index) & *sq->kring_mask].user_data;
}

/* Whether the kernel holds something back until it is entered. */
static bool ring_wants_kernel(const struct file_ring *ring)
{
	/* relaxed: a flag seen late is seen at the next poll */
	unsigned flags = __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED);

	if (ring->polled && ring->waiting)
		return true;
	return flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

int file_ring_push(struct file_ring *ring)
{
	int error;

	if (ring->queue) {
		file_queue_push(ring->queue);
		return 0;
	}
	if (!io_uring_sq_ready(&ring->uring) && !ring_wants_kernel(ring))
		return 0;
	error = io_uring_submit_and_get_events(&ring->uring);
	if (error >= 0 || error == -EAGAIN || error == -EBUSY || error == -EINTR)
		return 0; /* what was not taken goes with the next push */
	return error;
}

/* The value of kernel.io_uring_disabled, 0 if there is no such thing. */
static int ring_sysctl(void)
{
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static int ring_forbidden(const char *name, int error)
{
	int sysctl = ring_sysctl();

	if (sysctl)
		return weir_fail(
			-error,
			"file:%s: io_uring is switched off here by sysctl kernel.io_uring_disabled=%d: "
			"set it to 0%s",
			name, sysctl, sysctl == 1 ? ", or join the group in kernel.io_uring_group" : "");
	return weir_fail(-error,
			 "file:%s: io_uring is forbidden here (%s), probably by the seccomp profile of a "
			 "container or by a security policy: allow io_uring_setup, io_uring_enter and "
			 "io_uring_register in it",
			 name, strerror(-error));
}

bool file_ring_forbidden(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

int file_ring_fail(const char *name, int error)
{
	if (error == -EPERM || error == -EACCES)
		return ring_forbidden(name, error);
	if (error == -ENOSYS)
		return weir_fail(
			ENOSYS,
			"file:%s: there is no io_uring here (%s): the kernel is older than 5.10 or built "
			"without it, or a seccomp profile hides it: allow io_uring_setup, io_uring_enter "
			"and io_uring_register in that",
			name, strerror(ENOSYS));
	if (error == -ENOMEM)
		return weir_fail(
			ENOMEM,
			"file:%s: no memory for an io_uring (%s): ask for fewer threads or a smaller "
			"depth, or raise the locked-memory limit (ulimit -l)",
			name, strerror(ENOMEM));
	return weir_fail(-error, "file:%s: an io_uring cannot be set up (%s)", name, strerror(-error));
}
