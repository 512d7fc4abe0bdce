/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_file_ring.c: an io_uring that is never waited for.
 *
 * Owns: set-up with the best flags the kernel has, and the one system call that
 * both submits and collects. Knows nothing of requests.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../error.h"
#include "medium_file.h"

#define RING_POLITE (IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_R_DISABLED)

/*
 * Best first. DEFER_TASKRUN (6.1) posts completions only when the owner asks,
 * COOP_TASKRUN (5.19) never interrupts it; either tells by a flag that there is
 * something to collect, so that an idle poll stays out of the kernel. A ring is
 * born disabled because the thread that will own it does not exist yet.
 */
static const unsigned ring_flags[] = {
	RING_POLITE | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	RING_POLITE | IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_R_DISABLED,
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

int file_ring_create(struct file_ring *ring, unsigned depth, bool polled,
		     const int fds[FILE_WAYS])
{
	int error;

	memset(ring, 0, sizeof(*ring));
	error = ring_setup(ring, depth, polled ? IORING_SETUP_IOPOLL : 0);
	if (error)
		return error;
	ring->made = true;
	ring->polled = polled;
	error = io_uring_register_files(&ring->uring, fds, FILE_WAYS);
	if (error)
		file_ring_destroy(ring);
	return error;
}

/* liburing 2.3 declares a function for this and does not export it. */
static int ring_enable_call(struct io_uring *uring)
{
	int error = io_uring_register((unsigned)uring->ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);

	return error < 0 ? error : 0;
}

int file_ring_enable(struct file_ring *ring)
{
	int error = 0;

	if (ring->made && (ring->uring.flags & IORING_SETUP_R_DISABLED))
		error = ring_enable_call(&ring->uring);
	if (!error)
		ring->uring.flags &= ~IORING_SETUP_R_DISABLED;
	return error;
}

void file_ring_destroy(struct file_ring *ring)
{
	if (ring->made)
		io_uring_queue_exit(&ring->uring);
	memset(ring, 0, sizeof(*ring));
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
		return weir_fail(-error,
				 "file:%s: io_uring is switched off here by sysctl kernel.io_uring_disabled=%d: "
				 "set it to 0%s",
				 name, sysctl,
				 sysctl == 1 ? ", or join the group in kernel.io_uring_group" : "");
	return weir_fail(-error,
			 "file:%s: io_uring is forbidden here (%s), probably by the seccomp profile of a "
			 "container or by a security policy: allow io_uring_setup, io_uring_enter and "
			 "io_uring_register in it",
			 name, strerror(-error));
}

int file_ring_fail(const char *name, int error)
{
	if (error == -EPERM || error == -EACCES)
		return ring_forbidden(name, error);
	if (error == -ENOSYS)
		return weir_fail(ENOSYS,
				 "file:%s: there is no io_uring here (%s): the kernel is older than 5.10 or built "
				 "without it, or a seccomp profile hides it: allow io_uring_setup, io_uring_enter "
				 "and io_uring_register in that",
				 name, strerror(ENOSYS));
	if (error == -ENOMEM)
		return weir_fail(ENOMEM,
				 "file:%s: no memory for an io_uring (%s): ask for fewer threads or a smaller "
				 "depth, or raise the locked-memory limit (ulimit -l)",
				 name, strerror(ENOMEM));
	return weir_fail(-error, "file:%s: an io_uring cannot be set up (%s)", name, strerror(-error));
}
