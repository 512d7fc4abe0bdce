/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_thread.c: the rings one controller thread works with.
 *
 * A polled ring takes nothing but O_DIRECT reads and writes, so a second, plain
 * one stands beside it for everything else. The rings belong to the controller
 * thread's number, not to a host thread: another may take the number over.
 */
#include <unistd.h>

#include "file.h"

static int create_rings(struct file_medium *file, struct file_thread *thread)
{
	const int fds[FILE_WAYS] = { file->target.fds[FILE_BUFFERED], file->target.fds[FILE_DIRECT],
				     thread->sync };
	int error = file_ring_create(&thread->data, file->depth, file->polled, fds);

	if (!error && file->polled)
		error = file_ring_create(&thread->side, file->depth, false, fds);
	return error;
}

int file_thread_create(struct file_medium *file, struct file_thread *thread)
{
	thread->sync = file_target_sync(&file->target);
	thread->owns_sync = thread->sync != file->target.fds[FILE_BUFFERED];
	return file->pool ? file_ring_create_by(file->pool, &thread->data, file->depth, thread->sync)
			  : create_rings(file, thread);
}

void file_thread_destroy(struct file_thread *thread)
{
	file_ring_destroy(&thread->data);
	file_ring_destroy(&thread->side);
	file_buffers_release(&thread->buffers);
	if (thread->owns_sync)
		close(thread->sync);
	thread->owns_sync = false;
}
