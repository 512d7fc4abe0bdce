/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of launches: copies of what callers gave, in memory that lanes see, until their kernels
 * have ended. Lanes hand addresses inside them to each other, and some of it is words they contend for:
 * it is memory of the device's own where there is such memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { ARGS_BYTES = 64 << 10, ARGS_ALIGN = 128 };

void opencl_args_end(struct opencl_backend *backend)
{
	if (backend->args_host != backend->args)
		free(backend->args_host);
	if (backend->args)
		opencl_memory_unshare(backend, backend->args);
	backend->args = backend->args_host = NULL;
	backend->args_bytes = 0;
}

static int make_room(struct opencl_backend *backend, size_t bytes)
{
	size_t room = bytes > ARGS_BYTES ? bytes : ARGS_BYTES;

	if (backend->args_bytes >= bytes)
		return 0;
	opencl_args_end(backend);
	backend->args = opencl_memory_shared(backend, room, ARGS_ALIGN);
	backend->args_host = backend->memory == OPENCL_MEMORY_FINE ? backend->args : malloc(room);
	if (!backend->args || !backend->args_host) {
		opencl_args_end(backend);
		return weir_fail(ENOMEM, "cannot allocate %zu bytes for arguments on opencl:%u", room,
				 backend->device->number);
	}
	backend->args_bytes = room;
	return 0;
}

/* A slot's place. When there is no room, launches before have to end. */
static int take_slot(struct opencl_backend *backend, size_t bytes, size_t *location)
{
	cl_int code = CL_SUCCESS;
	int error;

	if (backend->args && backend->args_bytes - backend->args_used < bytes) {
		code = clFinish(backend->queue);
		backend->args_used = 0;
	}
	if (code)
		return opencl_fail(code, "a kernel failed on opencl:%u", backend->device->number);
	error = make_room(backend, bytes);
	if (error)
		return error;
	*location = backend->args_used;
	backend->args_used += (bytes + ARGS_ALIGN - 1) & ~(size_t)(ARGS_ALIGN - 1);
	if (backend->args_used > backend->args_bytes)
		backend->args_used = backend->args_bytes;
	return 0;
}

int opencl_args_put(struct opencl_backend *backend, const void *args, size_t bytes, void **slot)
{
	size_t location = 0;
	cl_int code = CL_SUCCESS;
	int error = take_slot(backend, bytes, &location);

	if (error)
		return error;
	*slot = backend->args + location;
	memcpy(backend->args_host + location, args, bytes);
	/* Ahead of its kernel in the queue; what it copies from stays until the queue is empty. */
	if (backend->args_host != backend->args)
		code = clEnqueueSVMMemcpy(backend->queue, CL_FALSE, *slot, backend->args_host + location,
					  bytes, 0, NULL, NULL);
	return code ? opencl_fail(code, "cannot copy arguments to opencl:%u", backend->device->number) : 0;
}
