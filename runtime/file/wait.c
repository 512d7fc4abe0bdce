/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls: one request, many, without waiting, in the order of a stream. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "../backend/error.h"
#include "files.h"

/* Requests, checked, and threads for them; @least: so many. */
static int prepare(struct weir_context *context, struct weir_file_io *io, size_t count, unsigned least,
		   struct weir_file_batch **out)
{
	struct weir_files *files;
	uint64_t bytes = 0;
	int error = count ? weir_given(io, "requests", "io") : 0;

	if (error)
		return error;
	files = weir_files_get(context);
	error = files ? file_batch_make(files, io, count, out) : -ENOMEM;

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

/* acquire, batch.E1: pairs with batch.E0 in batch.c */
static size_t ended(const struct weir_file_batch *batch)
{
	return atomic_load_explicit(&batch->ended, memory_order_acquire);
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
	while (ended(batch) < batch->count)
		pthread_cond_wait(&files->ended, &files->mutex);
	pthread_mutex_unlock(&files->mutex);
}

/* The caller's part of the work: all, if there is little. What others submit behind it is not its work. */
static void help(struct file_worker *caller, struct weir_file_batch *batch)
{
	if (caller)
		file_worker_help(caller, batch);
	weir_files_caller_ends(caller);
	if (!batch->own) /* else it has ended */
		wait_for(batch);
}

/* Somebody waits for it now: its handle is his alone. */
static void take_submitted(struct weir_file_batch *batch)
{
	struct weir_files *files = batch->files;
	struct weir_file_batch **link = &files->submitted;

	pthread_mutex_lock(&files->mutex);
	while (*link && *link != batch)
		link = &(*link)->next_submitted;
	if (*link)
		*link = batch->next_submitted;
	pthread_mutex_unlock(&files->mutex);
}

int weir_file_wait(struct weir_file_batch *batch)
{
	int error = weir_handle_check(batch, WEIR_HANDLE_BATCH, "weir_file_wait");
	struct file_worker *caller;

	if (error)
		return error;
	take_submitted(batch);
	if (ended(batch) < batch->count) {
		(void)weir_files_caller(batch->files, false, &caller); /* without one the threads do it all */
		help(caller, batch);
	}
	wait_for(batch); /* whoever ended it is done with it, too */
	return end(batch);
}

int weir_file_batch(struct weir_context *context, struct weir_file_io *io, size_t count)
{
	struct weir_file_batch *batch;
	struct file_worker *caller;
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_batch");

	if (error || (error = prepare(context, io, count, 0, &batch)) != 0)
		return error;
	error = weir_files_caller(batch->files, true, &caller);
	if (error) {
		file_batch_drop(batch);
		return error;
	}
	file_batch_begin(batch);
	help(caller, batch);
	return end(batch);
}

int weir_file_submit(struct weir_context *context, struct weir_file_io *io, size_t count,
		     struct weir_file_batch **out)
{
	struct weir_file_batch *batch;
	int error = weir_given(out, "weir_file_submit", "out");

	if (error)
		return error;
	*out = NULL;
	error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_submit");
	if (error || (error = prepare(context, io, count, 1, &batch)) != 0)
		return error;
	error = weir_handle_add(batch, WEIR_HANDLE_BATCH, "");
	if (error) {
		file_batch_drop(batch);
		return error;
	}
	batch->listed = true;
	pthread_mutex_lock(&batch->files->mutex);
	batch->next_submitted = batch->files->submitted;
	batch->files->submitted = batch;
	pthread_mutex_unlock(&batch->files->mutex);
	file_batch_begin(batch);
	*out = batch;
	return 0;
}

size_t weir_file_ended(const struct weir_file_batch *batch)
{
	return weir_handle_check(batch, WEIR_HANDLE_BATCH, "weir_file_ended") ? SIZE_MAX : ended(batch);
}

/* Whether a request is one system call, with its bytes going straight to their place or from it. */
static bool is_plain(struct weir_registration *registration, struct file_target *target, uint32_t operation,
		     size_t bytes, off_t offset, size_t at)
{
	int access = target->flags & O_ACCMODE;
	uintptr_t index = (uintptr_t)registration->host + at;

	if (at > registration->bytes || bytes > registration->bytes - at || bytes > FILES_LEAST_SHARE ||
	    !bytes || offset < 0)
		return false;
	if (operation == WEIR_FILE_READ ? access == O_WRONLY
					: access == O_RDONLY || (target->flags & O_APPEND))
		return false;
	if (target->direct && ((uint64_t)offset | bytes | index) % FILES_ALIGN)
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

	atomic_fetch_add_explicit(operation == WEIR_FILE_READ ? &files->plain_read : &files->plain_written,
				  bytes, memory_order_relaxed);
	if (registration->pin)
		atomic_fetch_add_explicit(&files->plain_module, bytes, memory_order_relaxed);
}

/* The shortest way. False: the request is not that plain, or did not do all: then it is done the long way. */
static bool plainly(struct weir_registration *registration, uint32_t operation, int file, size_t bytes,
		    off_t offset, size_t at)
{
	struct file_target target;
	ssize_t did;

	if (!file_target_kept(registration->context->files, file, &target) ||
	    !is_plain(registration, &target, operation, bytes, offset, at))
		return false;
	did = operation == WEIR_FILE_READ ? pread(file, registration->host + at, bytes, offset)
					  : pwrite(file, registration->host + at, bytes, offset);
	if (did != (ssize_t)bytes)
		return false;
	if (operation == WEIR_FILE_READ && registration->pin &&
	    file_module_arrived(registration->context->files))
		return false;
	count_plain(registration, operation, bytes);
	return true;
}

static ssize_t transfer(struct weir_registration *registration, uint32_t operation, int file, size_t bytes,
			off_t offset, size_t at)
{
	struct weir_file_io io = { .registration = registration,
				   .file = file,
				   .operation = operation,
				   .at = at,
				   .offset = (uint64_t)offset,
				   .bytes = bytes };
	int error = weir_handle_check(registration, WEIR_HANDLE_REGISTRATION,
				      operation == WEIR_FILE_READ ? "weir_file_read" : "weir_file_write");

	if (error)
		return error;
	if (offset < 0)
		return weir_fail(EINVAL, "offset %lld of a file is negative", (long long)offset);
	if (plainly(registration, operation, file, bytes, offset, at))
		return (ssize_t)bytes;
	error = weir_file_batch(registration->context, &io, 1);
	return error ? error : (ssize_t)io.result;
}

ssize_t weir_file_read(struct weir_registration *registration, int file, size_t bytes, off_t offset,
		       size_t at)
{
	return transfer(registration, WEIR_FILE_READ, file, bytes, offset, at);
}

ssize_t weir_file_write(struct weir_registration *registration, int file, size_t bytes, off_t offset,
			size_t at)
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
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_enqueue");
	const struct weir_backend_ops *ops;
	struct weir_file_batch *batch;

	if (error)
		return error;
	ops = context->backend->ops;
	if (!ops->defer)
		return weir_fail(ENOTSUP,
				 "the %s backend cannot have a stream wait for the host: weir_sync(), then "
				 "weir_file_batch()",
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
