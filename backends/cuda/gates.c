/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where streams of a CUDA device wait for the host: words in pinned memory, as the driver lets them.
 * No thread of the run time's waits with a stream.
 */
#include <errno.h>
#include <stdlib.h>

#include <cuda.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"
#include "driver.h"

/**
 * struct cuda_gates - those of a device, made when first needed; their words are in pinned @memory; @all
 * comes first
 */
struct cuda_gates {
	struct weir_gates all;
	uint64_t memory;
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	CUresult (*write)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
};

static struct cuda_gates *gates_of(struct gpu_backend *backend)
{
	return (struct cuda_gates *)backend->gates;
}

static int driver_entry(const char *name, void **function)
{
	*function = cuda_driver_entry(name, 12000);
	return *function ? 0
			 : weir_fail(ENOTSUP,
				     "streams cannot wait for the host: the CUDA driver has no %s; update "
				     "it, or use "
				     "weir_file_batch()",
				     name);
}

int gpu_gates_make(struct gpu_backend *backend)
{
	struct cuda_gates *gates = calloc(1, sizeof(*gates));
	void *host = NULL;
	int error = gates ? 0 : weir_fail(ENOMEM, "no memory for gates in streams");

	if (!error)
		error = driver_entry("cuStreamWaitValue32", (void **)&gates->wait);
	if (!error)
		error = driver_entry("cuStreamWriteValue32", (void **)&gates->write);
	if (!error)
		error = gpu_allocate(&backend->base, WEIR_GATES_MOST * sizeof(uint32_t), WEIR_MEMORY_HOST,
				     &host, &gates->memory);
	if (error) {
		free(gates);
		return error;
	}
	for (unsigned i = 0; i < WEIR_GATES_MOST; i++)
		gates->all.gates[i].word = (uint32_t *)host + i;
	weir_gates_begin(&gates->all, WEIR_GATES_MOST);
	backend->gates = &gates->all;
	return 0;
}

void gpu_gates_end(struct gpu_backend *backend)
{
	if (!backend->gates)
		return;
	gpu_release(&backend->base, gates_of(backend)->memory, WEIR_GATES_MOST * sizeof(uint32_t),
		    WEIR_MEMORY_HOST);
	weir_gates_end(backend->gates);
	free(backend->gates);
}

static void reached(cudaStream_t stream, cudaError_t status, void *gate)
{
	(void)stream;
	(void)status; /* of work before, which weir_sync() tells of */
	weir_gate_reached(gate);
}

/* Not cudaLaunchHostFunc(): what is queued by that is not called once a kernel has failed, and whoever waits
 * for the gate would wait for ever. */
gpuError_t gpu_gate_call(gpuStream_t stream, struct weir_gate *gate)
{
	return cudaStreamAddCallback(stream, reached, gate, 0);
}

bool gpu_gate_queue(struct gpu_backend *backend, gpuStream_t stream, uint32_t *word)
{
	struct cuda_gates *gates = gates_of(backend);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)word;

	if (gates->wait(stream, at, WEIR_GATE_OPEN, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS)
		return false;
	(void)gates->write(stream, at, WEIR_GATE_FREE,
			   CU_STREAM_WRITE_VALUE_DEFAULT); /* a failure leaves one gate less */
	return true;
}
