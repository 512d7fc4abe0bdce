/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_file_thread.c: which host thread a controller thread's rings obey.
 *
 * A ring obeys one host thread only, the one that first uses it. Controller
 * threads may move to another host thread (stopped and started again, say): then
 * the rings are made anew, once the kernel has answered all it was given.
 */
#include <errno.h>
#include <stdlib.h>
#include <weir/nvme.h>

#include "medium_file.h"

uint64_t file_host_mark(void)
{
	static _Thread_local uint64_t mark;
	static struct file_words next;

	if (!mark) /* relaxed: only uniqueness matters */
		mark = __atomic_add_fetch(&next.value, 1, __ATOMIC_RELAXED);
	return mark;
}

int file_thread_create(struct file_medium *file, struct file_thread *thread)
{
	int error = file_ring_create(&thread->data, file->depth, file->polled, file->target.fds);

	if (!error && file->polled)
		error = file_ring_create(&thread->side, file->depth, false, file->target.fds);
	return error;
}

static void rings_destroy(struct file_thread *thread)
{
	file_ring_destroy(&thread->data);
	file_ring_destroy(&thread->side);
}

void file_thread_destroy(struct file_thread *thread)
{
	rings_destroy(thread);
	file_buffers_release(&thread->buffers);
}

static int rings_enable(struct file_thread *thread)
{
	int error = file_ring_enable(&thread->data);

	return error ? error : file_ring_enable(&thread->side);
}

static int rings_replace(struct file_medium *file, struct file_thread *thread)
{
	int error;

	rings_destroy(thread);
	error = file_thread_create(file, thread);
	if (!error)
		error = rings_enable(thread);
	if (!error)
		file_buffers_again(&thread->buffers, &thread->data.uring);
	return error;
}

/* Requests whose entry the kernel has not seen, into @ios (or only counted). */
static unsigned ring_prepared(const struct file_ring *ring, struct weir_io **ios)
{
	unsigned left = ring->made ? io_uring_sq_ready(&ring->uring) : 0;

	for (unsigned i = 0; ios && i < left; i++)
		ios[i] = file_ring_prepared(ring, i);
	return left;
}

static void restart(struct file_medium *file, struct file_thread *thread, struct weir_io *io)
{
	if (!thread->error) {
		file_request_resume(file, thread, io);
		return;
	}
	thread->in_flight--;
	io->status = NVME_STATUS_INTERNAL_ERROR;
	io->done(io);
}

/* New rings, and what was only prepared on the old ones prepared again. */
static bool take_over(struct file_medium *file, struct file_thread *thread)
{
	unsigned count = thread->in_flight;
	struct weir_io **ios = calloc(count + 1, sizeof(struct weir_io *));
	unsigned data;

	if (!ios)
		return false;
	data = ring_prepared(&thread->data, ios);
	ring_prepared(&thread->side, ios + data);
	thread->error = rings_replace(file, thread);
	thread->owner = file_host_mark();
	for (unsigned i = 0; i < count; i++)
		restart(file, thread, ios[i]);
	free(ios);
	return true;
}

bool file_thread_adopt(struct file_medium *file, struct file_thread *thread)
{
	if (!thread->owner) {
		thread->error = rings_enable(thread);
		thread->owner = file_host_mark();
		return true;
	}
	if (thread->in_flight !=
	    ring_prepared(&thread->data, NULL) + ring_prepared(&thread->side, NULL))
		return false; /* what the kernel has taken ends first */
	return take_over(file, thread);
}
