/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of the CUDA backend: copies and kernels of their own order, and streams that wait for the host.
 *
 * A stream waits by a word in pinned memory, as its driver lets it: no thread of the run time's waits with it. The call
 * that tells the host that the stream has come so far is one of the run time's, and only notes that.
 */
#include <errno.h>
#include <stdlib.h>

#include <cuda.h>

#include "../../runtime/error.h"
#include "../gate.h"
#include "cuda.h"

/** struct cuda_gates - those of a device, made when first needed; their words are in pinned @memory */
struct cuda_gates {
	uint64_t memory;
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	CUresult (*write)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	struct weir_gates all;
};

int cuda_stream_open(struct weir_backend *base, void **stream)
{
	struct cuda_backend *backend = cuda_of(base);
	cudaStream_t made = NULL;
	int error = cuda_enter(backend);
	cudaError_t code;

	if (error)
		return error;
	code = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
	*stream = made;
	return code ? cuda_fail(backend, code, "cannot make a stream on cuda:%d", backend->device) : 0;
}

void cuda_stream_close(struct weir_backend *base, void *stream)
{
	if (cuda_enter(cuda_of(base)))
		return;
	(void)cudaStreamSynchronize(stream);
	(void)cudaStreamDestroy(stream);
	(void)cudaGetLastError();
}

int cuda_stream_copy(struct weir_backend *base, void *stream, const struct weir_move *moves, size_t count)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);

	for (size_t i = 0; i < count && !error; i++) {
		cudaError_t code = cudaMemcpyAsync((void *)(uintptr_t)moves[i].to, (const void *)(uintptr_t)moves[i].from,
						   moves[i].bytes, cudaMemcpyDefault, stream);

		if (code)
			error = cuda_fail(backend, code, "cannot copy %llu bytes from %#llx to %#llx",
					  (unsigned long long)moves[i].bytes, (unsigned long long)moves[i].from,
					  (unsigned long long)moves[i].to);
	}
	return error;
}

int cuda_stream_launch(struct weir_backend *base, void *stream, const char *name, uint32_t blocks, uint32_t threads,
		       uint64_t args)
{
	struct cuda_backend *backend = cuda_of(base);
	const struct cuda_kernel *kernel = cuda_kernel_find(name);
	void *parameters[] = { &args };
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };
	int error = kernel ? cuda_enter(backend) : weir_no_kernel("cuda", name);
	cudaError_t code;

	if (error)
		return error;
	code = cudaLaunchKernel(kernel->entry, grid, block, parameters, 0, stream);
	return code ? cuda_fail(backend, code, "cannot launch kernel \"%s\" on %s", name, backend->name) : 0;
}

int cuda_stream_wait(struct weir_backend *base, void *stream)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);
	cudaError_t code;

	if (error)
		return error;
	code = cudaStreamSynchronize(stream);
	return code ? cuda_fail(backend, code, "copies failed on %s", backend->name) : 0;
}

int cuda_stream_join(struct weir_backend *base, void *stream, enum weir_join join)
{
	struct cuda_backend *backend = cuda_of(base);
	cudaStream_t first = join == WEIR_JOIN_AFTER ? stream : backend->launches;
	int error = cuda_enter(backend);
	cudaError_t code;

	if (error)
		return error;
	/* A wait is for what the event stands for when it is queued: the event is free at once. */
	code = cudaEventRecord(backend->ended, first);
	if (!code)
		code = cudaStreamWaitEvent(join == WEIR_JOIN_AFTER ? backend->launches : stream, backend->ended, 0);
	return code ? cuda_fail(backend, code, "cannot launch in the order of stream %p on %s", stream, backend->name) : 0;
}

/* One byte's owner: the range is looked at by its ends, since nobody puts two allocations of a kind side by side by chance. */
static int owner(struct cuda_backend *backend, uint64_t address, struct cudaPointerAttributes *attributes)
{
	cudaError_t code = cudaPointerGetAttributes(attributes, (const void *)(uintptr_t)address);

	if (code)
		return cuda_fail(backend, code, "cannot tell what memory is at %#llx", (unsigned long long)address);
	if (attributes->type == cudaMemoryTypeUnregistered)
		return weir_fail(EFAULT, "the memory at %#llx is neither a GPU's nor pinned: take what cudaMalloc() gave, or pin it with "
				 "cudaHostRegister()", (unsigned long long)address);
	if (attributes->type == cudaMemoryTypeDevice && attributes->device != backend->device)
		return weir_fail(EFAULT, "the memory at %#llx is that of cuda:%d, the context is on cuda:%d", (unsigned long long)address,
				 attributes->device, backend->device);
	return 0;
}

int cuda_examine(struct weir_backend *base, uint64_t address, uint64_t bytes, void **host)
{
	struct cuda_backend *backend = cuda_of(base);
	struct cudaPointerAttributes first, last;
	int error = cuda_enter(backend);

	if (!error)
		error = owner(backend, address, &first);
	if (!error)
		error = owner(backend, address + bytes - 1, &last);
	if (!error && first.type != last.type)
		error = weir_fail(EFAULT, "%llu bytes at %#llx are more than one allocation", (unsigned long long)bytes,
				  (unsigned long long)address);
	if (!error && first.type != cudaMemoryTypeDevice)
		*host = (void *)(uintptr_t)address; /* pinned or managed: cuda_open() made sure that addresses are the same */
	return error;
}

static int driver_entry(const char *name, void **function)
{
	*function = cuda_driver_entry(name, 12000);
	return *function ? 0 : weir_fail(ENOTSUP, "streams cannot wait for the host: the CUDA driver has no %s; update it, or use "
					 "weir_file_batch()", name);
}

static int make_gates(struct cuda_backend *backend)
{
	struct cuda_gates *gates = calloc(1, sizeof(*gates));
	void *host = NULL;
	int error = gates ? 0 : weir_fail(ENOMEM, "no memory for gates in streams");

	if (!error)
		error = driver_entry("cuStreamWaitValue32", (void **)&gates->wait);
	if (!error)
		error = driver_entry("cuStreamWriteValue32", (void **)&gates->write);
	if (!error)
		error = cuda_allocate(&backend->base, WEIR_GATES_MOST * sizeof(uint32_t), WEIR_MEMORY_HOST, &host, &gates->memory);
	if (error) {
		free(gates);
		return error;
	}
	for (unsigned i = 0; i < WEIR_GATES_MOST; i++)
		gates->all.gates[i].word = (uint32_t *)host + i;
	weir_gates_begin(&gates->all, WEIR_GATES_MOST);
	backend->gates = gates;
	return 0;
}

void cuda_gates_end(struct cuda_backend *backend)
{
	if (!backend->gates)
		return;
	cuda_release(&backend->base, backend->gates->memory, WEIR_GATES_MOST * sizeof(uint32_t), WEIR_MEMORY_HOST);
	weir_gates_end(&backend->gates->all);
	free(backend->gates);
}

int cuda_defer(struct weir_backend *base, void *given, void (*call)(void *of), void *of, void **out)
{
	struct cuda_backend *backend = cuda_of(base);
	cudaStream_t stream = given ? given : backend->launches;
	struct weir_gate *gate;
	CUdeviceptr word;
	cudaError_t code;
	int error = cuda_enter(backend);

	if (!error && !backend->gates)
		error = make_gates(backend);
	if (error)
		return error;
	gate = weir_gate_take(&backend->gates->all, call, of);
	if (!gate)
		return weir_fail(EAGAIN, "%d requests wait in streams of %s already; synchronise one of them", WEIR_GATES_MOST,
				 backend->name);
	*out = gate;
	word = (CUdeviceptr)(uintptr_t)gate->word;
	code = cudaLaunchHostFunc(stream, weir_gate_reached, gate);
	if (code) {
		weir_gate_give_back(gate);
		return cuda_fail(backend, code, "cannot queue a call in a stream of %s", backend->name);
	}
	if (backend->gates->wait(stream, word, WEIR_GATE_OPEN, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS)
		weir_gate_wait(gate);
	else /* a failure leaves one gate less */
		(void)backend->gates->write(stream, word, WEIR_GATE_FREE, CU_STREAM_WRITE_VALUE_DEFAULT);
	return 0;
}

void cuda_resume(struct weir_backend *base, void *gate)
{
	(void)base;
	weir_gate_open(gate);
}
