/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls: one request, many, without waiting, in the order of a stream. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "../error.h"
#include "files.h"

/* Requests, checked, and threads for them; @least: so many. */
static int prepare(struct weir_context *context, struct weir_file_io *io, size_t count, unsigned least,
		   struct weir_file_batch **out)
{
	struct weir_files *files = weir_files_get(context);
	uint64_t bytes = 0;
	int error = files ? file_batch_make(files, io, count, out) : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++)
		bytes += io[i].bytes; /* of which there is not so much that it would overflow */
	if (error)
		return error;
	(*out)->own = !least && bytes <= FILES_LEAST_SHARE && count <= FILES_MOST_PIECES;
	error = (*out)->own ? 0 : weir_files_threads(files, bytes, least);
	if (error)
		file_batch_drop(*out);
	return error;
}

/* What the batch ended with, as the calling thread's own failure. */
static int end(struct weir_file_batch *batch)
{
	int error = batch->error ? weir_fail(-batch->error, "%s", batch->sentence) : 0;

	file_batch_drop(batch);
	return error;
}

static void wait_for(struct weir_file_batch *batch)
{
	struct weir_files *files = batch->files;

	pthread_mutex_lock(&files->mutex);
	while (weir_file_ended(batch) < batch->count)
		pthread_cond_wait(&files->ended, &files->mutex);
	pthread_mutex_unlock(&files->mutex);
}

/* The caller's part of the work: all, if there is little. */
static void help(struct file_worker *caller, struct weir_file_batch *batch)
{
	if (caller)
		file_worker_help(caller, batch->own ? batch : NULL);
	weir_files_caller_ends(caller);
	if (!batch->own) /* else it has ended */
		wait_for(batch);
}

int weir_file_wait(struct weir_file_batch *batch)
{
	if (weir_file_ended(batch) < batch->count) /* without a caller's own means the threads do it all */
		help(weir_files_caller(batch->files), batch);
	wait_for(batch); /* whoever ended it is done with it, too */
	return end(batch);
}

int weir_file_batch(struct weir_context *context, struct weir_file_io *io, size_t count)
{
	struct weir_file_batch *batch;
	struct file_worker *caller;
	int error = prepare(context, io, count, 0, &batch);

	if (error)
		return error;
	caller = weir_files_caller(batch->files);
	if (!caller) {
		file_batch_drop(batch);
		return -EAGAIN;
	}
	file_batch_begin(batch);
	help(caller, batch);
	return end(batch);
}

int weir_file_submit(struct weir_context *context, struct weir_file_io *io, size_t count, struct weir_file_batch **out)
{
	int error;

	*out = NULL;
	error = prepare(context, io, count, 1, out);
	if (!error)
		file_batch_begin(*out);
	return error;
}

size_t weir_file_ended(const struct weir_file_batch *batch)
{
	/* acquire, E1: pairs with E0 in batch.c */
	return atomic_load_explicit(&batch->ended, memory_order_acquire);
}

/* Whether a request is one system call, with its bytes going straight to their place or from it. */
static bool is_plain(struct weir_registration *registration, struct file_target *target, uint32_t operation, size_t bytes, off_t offset,
		     size_t at)
{
	int access = target->flags & O_ACCMODE;
	uintptr_t place = (uintptr_t)registration->host + at;

	if (at > registration->bytes || bytes > registration->bytes - at || bytes > FILES_LEAST_SHARE || !bytes || offset < 0)
		return false;
	if (operation == WEIR_FILE_READ ? access == O_WRONLY : access == O_RDONLY || (target->flags & O_APPEND))
		return false;
	if (target->direct && ((uint64_t)offset | bytes | place) % FILES_ALIGN)
		return false;
	if (registration->path == WEIR_FILE_MODULE)
		return target->direct && file_module_reaches(registration->context->files, target, NULL) &&
		       (operation == WEIR_FILE_READ || file_module_took(target));
	return registration->path == WEIR_FILE_DIRECT;
}

/* Relaxed: counters, exact when nothing is under way. */
static void count_plain(struct weir_registration *registration, uint32_t operation, uint64_t bytes)
{
	struct weir_files *files = registration->context->files;

	atomic_fetch_add_explicit(operation == WEIR_FILE_READ ? &files->plain_read : &files->plain_written, bytes, memory_order_relaxed);
	if (registration->pin)
		atomic_fetch_add_explicit(&files->plain_module, bytes, memory_order_relaxed);
}

/* The shortest way. False: the request is not that plain, or did not do all: then it is done the long way. */
static bool plainly(struct weir_registration *registration, uint32_t operation, int file, size_t bytes, off_t offset, size_t at)
{
	struct file_target target;
	ssize_t did;

	if (!file_target_kept(registration->context->files, file, &target) ||
	    !is_plain(registration, &target, operation, bytes, offset, at))
		return false;
	did = operation == WEIR_FILE_READ ? pread(file, registration->host + at, bytes, offset) :
					    pwrite(file, registration->host + at, bytes, offset);
	if (did != (ssize_t)bytes)
		return false;
	if (operation == WEIR_FILE_READ && registration->pin && file_module_arrived(registration->context->files))
		return false;
	count_plain(registration, operation, bytes);
	return true;
}

static ssize_t transfer(struct weir_registration *registration, uint32_t operation, int file, size_t bytes, off_t offset,
			size_t at)
{
	struct weir_file_io io = { .registration = registration, .file = file, .operation = operation, .at = at,
				   .offset = (uint64_t)offset, .bytes = bytes };
	int error;

	if (!registration)
		return weir_fail(EINVAL, "there is no registration: NULL was given");
	if (offset < 0)
		return weir_fail(EINVAL, "offset %lld of a file is negative", (long long)offset);
	if (plainly(registration, operation, file, bytes, offset, at))
		return (ssize_t)bytes;
	error = weir_file_batch(registration->context, &io, 1);
	return error ? error : (ssize_t)io.result;
}

ssize_t weir_file_read(struct weir_registration *registration, int file, size_t bytes, off_t offset, size_t at)
{
	return transfer(registration, WEIR_FILE_READ, file, bytes, offset, at);
}

ssize_t weir_file_write(struct weir_registration *registration, int file, size_t bytes, off_t offset, size_t at)
{
	return transfer(registration, WEIR_FILE_WRITE, file, bytes, offset, at);
}

/* On whatever thread: the stream has come to the requests. */
static void reached(void *of)
{
	struct weir_file_batch *batch = of;
	struct weir_files *files = batch->files;

	file_batch_begin(batch); /* which may free it */
	pthread_mutex_lock(&files->mutex);
	files->deferred--;
	pthread_cond_broadcast(&files->ended);
	pthread_mutex_unlock(&files->mutex);
}

int weir_file_enqueue(struct weir_context *context, void *stream, struct weir_file_io *io, size_t count)
{
	const struct weir_backend_ops *ops = context->backend->ops;
	struct weir_file_batch *batch;
	int error;

	if (!ops->defer)
		return weir_fail(ENOTSUP, "the %s backend cannot have a stream wait for the host: weir_sync(), then weir_file_batch()",
				 ops->name);
	error = prepare(context, io, count, 1, &batch);
	if (error)
		return error;
	batch->enqueued = true;
	file_batch_defer(batch, 1);
	error = ops->defer(context->backend, stream, reached, batch, &batch->gate);
	if (error) {
		file_batch_defer(batch, -1);
		file_batch_drop(batch);
	}
	return error;
}
