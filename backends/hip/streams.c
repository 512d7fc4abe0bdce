/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of the HIP backend: copies and kernels of their own order, and streams that wait for the host.
 *
 * What a stream may look at is signal memory, of which each word is an allocation of its own, and which not every device
 * has. The host's calls in a stream all come from one thread of the run time's, which must not wait: they note, and return.
 */
#include "hip.h"

#include <errno.h>
#include <stdlib.h>

enum { GATES = 64, SIGNAL_BYTES = 8, ALL_BITS = -1 };

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

int hip_stream_join(struct weir_backend *base, void *stream, enum weir_join join)
{
	struct hip_backend *backend = hip_of(base);
	hipStream_t first = join == WEIR_JOIN_AFTER ? stream : backend->launches;
	int error = hip_enter(backend);
	hipError_t code;

	if (error)
		return error;
	/* A wait is for what the event stands for when it is queued: the event is free at once. */
	code = hipEventRecord(backend->ended, first);
	if (!code)
		code = hipStreamWaitEvent(join == WEIR_JOIN_AFTER ? backend->launches : stream, backend->ended, 0);
	return code ? hip_fail(code, "cannot launch in the order of stream %p on %s", stream, backend->name) : 0;
}

void hip_gates_end(struct hip_backend *backend)
{
	if (!backend->gates)
		return;
	for (unsigned i = 0; i < GATES; i++)
		hip_let_go(backend, HIP_SIGNAL_MEMORY, backend->gates->gates[i].word, SIGNAL_BYTES);
	if (backend->gates->count)
		weir_gates_end(backend->gates);
	free(backend->gates);
	backend->gates = NULL;
}

static int make_gates(struct hip_backend *backend)
{
	hipError_t code = hipSuccess;
	int can = 0;

	if (hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, backend->device) || !can) {
		(void)hipGetLastError();
		return weir_fail(ENOTSUP, "%s cannot have a stream wait for the host: weir_sync(), then weir_file_batch()", backend->name);
	}
	backend->gates = calloc(1, sizeof(*backend->gates));
	if (!backend->gates)
		return weir_fail(ENOMEM, "no memory for gates in streams");
	for (unsigned i = 0; i < GATES && !code; i++)
		code = hipExtMallocWithFlags((void **)&backend->gates->gates[i].word, SIGNAL_BYTES, hipMallocSignalMemory);
	if (code) {
		hip_gates_end(backend);
		return hip_fail(code, "cannot allocate signals for streams of %s", backend->name);
	}
	weir_gates_begin(backend->gates, GATES);
	return 0;
}

/* ROCm 5.2's headers have hipLaunchHostFunc(), its library does not. */
static void reached(hipStream_t stream, hipError_t status, void *gate)
{
	(void)stream;
	(void)status; /* of work before, which weir_sync() tells of */
	weir_gate_reached(gate);
}

int hip_defer(struct weir_backend *base, void *given, void (*call)(void *of), void *of, void **out)
{
	struct hip_backend *backend = hip_of(base);
	hipStream_t stream = given ? given : backend->launches;
	struct weir_gate *gate;
	hipError_t code;
	int error = hip_enter(backend);

	if (!error && !backend->gates)
		error = make_gates(backend);
	if (error)
		return error;
	gate = weir_gate_take(backend->gates, call, of);
	if (!gate)
		return weir_fail(EAGAIN, "%d requests wait in streams of %s already; synchronise one of them", GATES, backend->name);
	*out = gate;
	code = hipStreamAddCallback(stream, reached, gate, 0);
	if (code) {
		weir_gate_give_back(gate);
		return hip_fail(code, "cannot queue a call in a stream of %s", backend->name);
	}
	if (hipStreamWaitValue32(stream, gate->word, WEIR_GATE_OPEN, hipStreamWaitValueEq, (uint32_t)ALL_BITS) != hipSuccess)
		weir_gate_wait(gate);
	else /* a failure leaves one gate less */
		(void)hipStreamWriteValue32(stream, gate->word, WEIR_GATE_FREE, 0);
	(void)hipGetLastError();
	return 0;
}

void hip_resume(struct weir_backend *base, void *gate)
{
	(void)base;
	weir_gate_open(gate);
}
