/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What CUDA's and HIP's run times call the default stream where NULL has another meaning. */
static void *const default_stream = (void *)1;

static int open_context(struct shim *shim, const char *name)
{
	const char *asked = getenv("WEIR_BACKEND");
	struct weir_context_info info = { .size = sizeof(info) };
	int error = weir_context_open(asked && *asked ? asked : name, NULL, &shim->context);

	if (!error)
		error = weir_context_info(shim->context, &info);
	shim->has_streams = !error && strncmp(info.name, "cpu", 3) != 0;
	return error;
}

/* Mutex held. */
static int one_more(struct shim *shim, const char *name)
{
	int error = shim->users ? 0 : open_context(shim, name);

	if (!error)
		shim->users++;
	return error;
}

int shim_open(struct shim *shim, const char *name)
{
	int error;

	pthread_mutex_lock(&shim->mutex);
	error = one_more(shim, name);
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

int shim_begin(struct shim *shim, const char *name)
{
	int error;

	pthread_mutex_lock(&shim->mutex);
	error = shim->users ? 0 : one_more(shim, name);
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

unsigned shim_users(struct shim *shim)
{
	unsigned users;

	pthread_mutex_lock(&shim->mutex);
	users = shim->users;
	pthread_mutex_unlock(&shim->mutex);
	return users;
}

int shim_info(struct shim *shim, struct weir_context_info *info)
{
	int error;

	pthread_mutex_lock(&shim->mutex);
	error = shim->context ? weir_context_info(shim->context, info) : -ENODEV;
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

/* Requests in streams that have ended; their memory is not looked at any more. Mutex held. */
static void sweep(struct shim *shim)
{
	struct shim_async **link = &shim->asyncs;

	while (*link) {
		struct shim_async *async = *link;

		/* acquire: pairs with batch.E2 in runtime/file/batch.c */
		if (__atomic_load_n(&async->io.result, __ATOMIC_ACQUIRE) == -EINPROGRESS) {
			link = &async->next;
			continue;
		}
		*link = async->next;
		if (async->buffer) {
			(void)weir_deregister(async->buffer->registration);
			free(async->buffer);
		}
		free(async);
	}
}

/* The context waits for what is under way. Mutex held. */
static void close_context(struct shim *shim)
{
	weir_context_close(shim->context);
	shim->context = NULL;
	while (shim->asyncs) {
		struct shim_async *next = shim->asyncs->next;

		free(shim->asyncs->buffer);
		free(shim->asyncs);
		shim->asyncs = next;
	}
	while (shim->buffers) {
		struct shim_buffer *next = shim->buffers->next;

		free(shim->buffers);
		shim->buffers = next;
	}
}

int shim_close(struct shim *shim)
{
	int error = 0;

	pthread_mutex_lock(&shim->mutex);
	if (shim->users == 0)
		error = -EINVAL;
	else if (--shim->users == 0)
		close_context(shim);
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

/* Mutex held. */
static int make_buffer(struct shim *shim, uint64_t address, uint64_t bytes, struct shim_buffer **out)
{
	struct weir_registration_info info = { .size = sizeof(info) };
	struct shim_buffer *buffer = calloc(1, sizeof(*buffer));
	int error;

	if (!buffer)
		return -ENOMEM;
	*buffer = (struct shim_buffer){ .address = address, .bytes = bytes };
	error = shim->context ? weir_register(shim->context, address, bytes, NULL, &buffer->registration)
			      : -ENODEV;
	if (!error)
		error = weir_registration_info(buffer->registration, &info);
	if (error) {
		free(buffer);
		return error;
	}
	buffer->host = info.host;
	*out = buffer;
	return 0;
}

static struct shim_buffer **find_start(struct shim *shim, uint64_t address)
{
	struct shim_buffer **link = &shim->buffers;

	while (*link && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

int shim_register(struct shim *shim, const void *address, size_t bytes, void **host)
{
	struct shim_buffer *buffer = NULL;
	int error = -EEXIST;

	pthread_mutex_lock(&shim->mutex);
	if (!*find_start(shim, (uint64_t)(uintptr_t)address))
		error = make_buffer(shim, (uint64_t)(uintptr_t)address, bytes, &buffer);
	if (!error) {
		buffer->next = shim->buffers;
		shim->buffers = buffer;
		*host = buffer->host;
	}
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

int shim_deregister(struct shim *shim, const void *address)
{
	struct shim_buffer **link, *buffer;
	int error = -ENOENT;

	pthread_mutex_lock(&shim->mutex);
	sweep(shim);
	link = find_start(shim, (uint64_t)(uintptr_t)address);
	buffer = *link;
	if (buffer)
		error = weir_deregister(buffer->registration);
	if (buffer && !error) {
		*link = buffer->next;
		free(buffer);
	}
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

static bool holds(uint64_t begin, uint64_t length, uint64_t address, uint64_t bytes)
{
	return begin && address >= begin && address - begin <= length && bytes <= length - (address - begin);
}

int shim_io(struct shim *shim, const void *base, off_t at, struct weir_file_io *io,
	    struct shim_buffer **temporary)
{
	uint64_t address = (uint64_t)(uintptr_t)base + (uint64_t)at, host = 0;
	struct shim_buffer *buffer;
	int error = 0;

	*temporary = NULL;
	pthread_mutex_lock(&shim->mutex);
	sweep(shim); /* what was registered for others may have been freed since */
	for (buffer = shim->buffers; buffer; buffer = buffer->next) {
		host = (uint64_t)(uintptr_t)buffer->host;
		if (holds(buffer->address, buffer->bytes, address, io->bytes) ||
		    holds(host, buffer->bytes, address, io->bytes))
			break;
	}
	if (!buffer) { /* a request of no bytes has a place, too */
		error = make_buffer(shim, address, io->bytes ? io->bytes : 1, temporary);
		buffer = *temporary;
		host = 0;
	}
	if (buffer) {
		io->registration = buffer->registration;
		io->at = holds(buffer->address, buffer->bytes, address, io->bytes) ? address - buffer->address
										   : address - host;
	}
	pthread_mutex_unlock(&shim->mutex);
	return error;
}

void shim_io_ends(struct shim *shim, struct shim_buffer *buffer)
{
	if (!buffer)
		return;
	pthread_mutex_lock(&shim->mutex);
	(void)weir_deregister(buffer->registration);
	pthread_mutex_unlock(&shim->mutex);
	free(buffer);
}

ssize_t shim_transfer(struct shim *shim, int file, enum weir_file_operation operation, const void *address,
		      off_t at, size_t bytes, off_t offset)
{
	struct weir_file_io io = {
		.file = file, .operation = operation, .offset = (uint64_t)offset, .bytes = bytes
	};
	struct shim_buffer *buffer;
	int error;

	if (bytes == 0)
		return 0;
	error = shim_io(shim, address, at, &io, &buffer);
	if (!error)
		error = weir_file_batch(shim->context, &io, 1);
	shim_io_ends(shim, buffer);
	errno = error ? -error : errno;
	return error ? -1 : (ssize_t)io.result;
}

int shim_enqueue(struct shim *shim, int file, enum weir_file_operation operation, const void *address,
		 off_t at, size_t bytes, off_t offset, ssize_t *done, void *stream)
{
	struct shim_async *async = calloc(1, sizeof(*async));
	int error;

	_Static_assert(sizeof(ssize_t) == sizeof(int64_t), "results are written where the caller wants them");
	if (!async)
		return -ENOMEM;
	async->io = (struct weir_file_io){ .file = file,
					   .operation = operation,
					   .offset = (uint64_t)offset,
					   .bytes = bytes,
					   .result = -EINPROGRESS,
					   .report = (int64_t *)(void *)done };
	error = shim_io(shim, address, at, &async->io, &async->buffer);
	if (error) {
		free(async);
		return error;
	}
	pthread_mutex_lock(&shim->mutex);
	error = weir_file_enqueue(shim->context, stream || !shim->has_streams ? stream : default_stream,
				  &async->io, 1);
	if (!error) {
		async->next = shim->asyncs;
		shim->asyncs = async;
	}
	pthread_mutex_unlock(&shim->mutex);
	if (error) {
		shim_io_ends(shim, async->buffer);
		free(async);
	}
	return error;
}
