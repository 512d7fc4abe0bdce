/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of the HIP backend: copies and kernels of their own order.
 *
 * None waits for the host: what a stream may look at is signal memory, which not every device has, and the host's calls
 * in a stream all come from one thread, which must not wait.
 */
#include "hip.h"

int hip_stream_open(struct weir_backend *base, void **stream)
{
	struct hip_backend *backend = hip_of(base);
	hipStream_t made = NULL;
	int error = hip_enter(backend);
	hipError_t code;

	if (error)
		return error;
	code = hipStreamCreateWithFlags(&made, hipStreamNonBlocking);
	*stream = made;
	return code ? hip_fail(code, "cannot make a stream on %s", backend->name) : 0;
}

void hip_stream_close(struct weir_backend *base, void *stream)
{
	if (hip_enter(hip_of(base)))
		return;
	(void)hipStreamSynchronize(stream);
	(void)hipStreamDestroy(stream);
	(void)hipGetLastError();
}

int hip_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count)
{
	int error = hip_enter(hip_of(base));

	for (size_t i = 0; i < count && !error; i++) {
		hipError_t code = hipMemcpyAsync((void *)(uintptr_t)moves[i].to, (const void *)(uintptr_t)moves[i].from, moves[i].bytes,
						 hipMemcpyDefault, stream);

		if (code)
			error = hip_fail(code, "cannot copy %llu bytes from %#llx to %#llx", (unsigned long long)moves[i].bytes,
					 (unsigned long long)moves[i].from, (unsigned long long)moves[i].to);
	}
	return error;
}

int hip_stream_launch(struct weir_backend *base, void *stream, const char *name, uint32_t blocks, uint32_t threads,
		      uint64_t args)
{
	struct hip_backend *backend = hip_of(base);
	const struct hip_kernel *kernel = hip_kernel_find(backend, name);
	void *parameters[] = { &args };
	int error = kernel ? hip_enter(backend) : weir_no_kernel("hip", name);
	hipError_t code;

	if (error)
		return error;
	code = hipModuleLaunchKernel(kernel->function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
	return code ? hip_fail(code, "cannot launch kernel \"%s\" on %s", name, backend->name) : 0;
}

int hip_stream_wait(struct weir_backend *base, void *stream)
{
	struct hip_backend *backend = hip_of(base);
	int error = hip_enter(backend);
	hipError_t code;

	if (error)
		return error;
	code = hipStreamSynchronize(stream);
	return code ? hip_fail(code, "copies failed on %s", backend->name) : 0;
}
