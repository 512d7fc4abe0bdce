/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of CUDA's and HIP's backends: copies and kernels of their own order, and streams that wait
 * for the host.
 */
#include "gpu.h"

#include <errno.h>

#include "../../runtime/backend/error.h"

int gpu_stream_open(struct weir_backend *base, void **stream)
{
	struct gpu_backend *backend = gpu_of(base);
	gpuStream_t made = NULL;
	int error = gpu_enter(backend);
	gpuError_t code;

	if (error)
		return error;
	code = gpuStreamCreateWithFlags(&made, gpuStreamNonBlocking);
	*stream = made;
	return code ? gpu_fail(backend, code, "cannot make a stream on %s", backend->name) : 0;
}

void gpu_stream_close(struct weir_backend *base, void *stream)
{
	if (gpu_enter(gpu_of(base)))
		return;
	(void)gpuStreamSynchronize(stream);
	(void)gpuStreamDestroy(stream);
	(void)gpuGetLastError();
}

int gpu_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count)
{
	struct gpu_backend *backend = gpu_of(base);
	int error = gpu_enter(backend);

	for (size_t i = 0; i < count && !error; i++) {
		gpuError_t code =
			gpuMemcpyAsync((void *)(uintptr_t)moves[i].to, (const void *)(uintptr_t)moves[i].from,
				       moves[i].bytes, gpuMemcpyDefault, stream);

		if (code)
			error = gpu_fail(backend, code, "cannot copy %llu bytes from %#llx to %#llx",
					 (unsigned long long)moves[i].bytes,
					 (unsigned long long)moves[i].from, (unsigned long long)moves[i].to);
	}
	return error;
}

int gpu_stream_launch(struct weir_backend *base, void *stream, const char *name, uint32_t blocks,
		      uint32_t threads, uint64_t args)
{
	struct gpu_backend *backend = gpu_of(base);
	const struct gpu_kernel *kernel = gpu_kernel_find(backend, name);
	int error = kernel ? gpu_enter(backend) : weir_no_kernel(GPU_NAME, name);
	gpuError_t code;

	if (error)
		return error;
	code = gpu_kernel_start(kernel, blocks, threads, (void *)(uintptr_t)args, stream);
	return code ? gpu_fail(backend, code, "cannot launch kernel \"%s\" on %s", name, backend->name) : 0;
}

int gpu_stream_wait(struct weir_backend *base, void *stream)
{
	struct gpu_backend *backend = gpu_of(base);
	int error = gpu_enter(backend);
	gpuError_t code;

	if (error)
		return error;
	code = gpuStreamSynchronize(stream);
	return code ? gpu_fail(backend, code, "copies failed on %s", backend->name) : 0;
}

int gpu_stream_join(struct weir_backend *base, void *stream, enum weir_join join)
{
	struct gpu_backend *backend = gpu_of(base);
	gpuStream_t first = join == WEIR_JOIN_AFTER ? stream : backend->launches;
	int error = gpu_enter(backend);
	gpuError_t code;

	if (error)
		return error;
	/* A wait is for what the event stands for when it is queued: the event is free at once. */
	code = gpuEventRecord(backend->ended, first);
	if (!code)
		code = gpuStreamWaitEvent(join == WEIR_JOIN_AFTER ? backend->launches : stream,
					  backend->ended, 0);
	return code ? gpu_fail(backend, code, "cannot launch in the order of stream %p on %s", stream,
			       backend->name)
		    : 0;
}

int gpu_defer(struct weir_backend *base, void *given, void (*call)(void *of), void *of, void **out)
{
	struct gpu_backend *backend = gpu_of(base);
	gpuStream_t stream = given ? given : backend->launches;
	struct weir_gate *gate;
	gpuError_t code;
	int error = gpu_enter(backend);

	if (!error && !backend->gates)
		error = gpu_gates_make(backend);
	if (error)
		return error;
	gate = weir_gate_take(backend->gates, call, of);
	if (!gate)
		return weir_fail(EAGAIN, "%u requests wait in streams of %s already; synchronise one of them",
				 backend->gates->count, backend->name);
	*out = gate;
	code = gpu_gate_call(stream, gate);
	if (code) {
		weir_gate_give_back(gate);
		return gpu_fail(backend, code, "cannot queue a call in a stream of %s", backend->name);
	}
	if (!gpu_gate_queue(backend, stream, gate->word))
		weir_gate_wait(gate);
	return 0;
}

void gpu_resume(struct weir_backend *base, void *gate)
{
	(void)base;
	weir_gate_open(gate);
}
