/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where streams of a HIP device wait for the host: signal memory, of which each word is an allocation
 * of its own, and which not every device has. The host's calls in a stream all come from one thread of
 * the run time's, which must not wait: they note, and return.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

enum { GATES = 64, SIGNAL_BYTES = 8, ALL_BITS = -1 };

void gpu_gates_end(struct gpu_backend *backend)
{
	if (!backend->gates)
		return;
	for (unsigned i = 0; i < GATES; i++)
		gpu_let_go(backend, GPU_SIGNAL_MEMORY, backend->gates->gates[i].word, SIGNAL_BYTES);
	if (backend->gates->count)
		weir_gates_end(backend->gates);
	free(backend->gates);
	backend->gates = NULL;
}

int gpu_gates_make(struct gpu_backend *backend)
{
	gpuError_t code = hipSuccess;
	int can = 0;

	if (hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, backend->device) || !can) {
		(void)hipGetLastError();
		return weir_fail(
			ENOTSUP,
			"%s cannot have a stream wait for the host: weir_sync(), then weir_file_batch()",
			backend->name);
	}
	backend->gates = calloc(1, sizeof(*backend->gates));
	if (!backend->gates)
		return weir_fail(ENOMEM, "no memory for gates in streams");
	for (unsigned i = 0; i < GATES && !code; i++)
		code = hipExtMallocWithFlags((void **)&backend->gates->gates[i].word, SIGNAL_BYTES,
					     hipMallocSignalMemory);
	if (code) {
		gpu_gates_end(backend);
		return gpu_fail(backend, code, "cannot allocate signals for streams of %s", backend->name);
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

gpuError_t gpu_gate_call(gpuStream_t stream, struct weir_gate *gate)
{
	return hipStreamAddCallback(stream, reached, gate, 0);
}

bool gpu_gate_queue(struct gpu_backend *backend, gpuStream_t stream, uint32_t *word)
{
	bool waits = hipStreamWaitValue32(stream, word, WEIR_GATE_OPEN, hipStreamWaitValueEq,
					  (uint32_t)ALL_BITS) == hipSuccess;

	(void)backend;
	if (waits) /* a failure leaves one gate less */
		(void)hipStreamWriteValue32(stream, word, WEIR_GATE_FREE, 0);
	(void)hipGetLastError();
	return waits;
}
