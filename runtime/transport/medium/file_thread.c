/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_thread.c: the rings one controller thread works with.
 *
 * A polled ring takes nothing but O_DIRECT reads and writes, so a second, plain
 * one stands beside it for everything else. The rings belong to the controller
 * thread's number, not to a host thread: another may take the number over.
 */
#include "file.h"

int file_thread_create(struct file_medium *file, struct file_thread *thread)
{
	int error;

	if (file->pool)
		return file_ring_create_by(file->pool, &thread->data, file->depth);
	error = file_ring_create(&thread->data, file->depth, file->polled, file->target.fds);
	if (!error && file->polled)
		error = file_ring_create(&thread->side, file->depth, false, file->target.fds);
	return error;
}

void file_thread_destroy(struct file_thread *thread)
{
	file_ring_destroy(&thread->data);
	file_ring_destroy(&thread->side);
	file_buffers_release(&thread->buffers);
}
