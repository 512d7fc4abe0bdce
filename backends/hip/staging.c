/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments wait for their launch's turn in pinned memory, from which alone a copy does not keep the host
 * waiting.
 */
#include <string.h>

#include "../gpu/gpu.h"

enum { ARGS_ALIGNMENT = 64 };

gpuError_t gpu_staging_begin(struct gpu_backend *backend, size_t bytes)
{
	return gpu_memory(backend, GPU_HOST_MEMORY, bytes, &backend->staging);
}

void gpu_staging_end(struct gpu_backend *backend)
{
	gpu_let_go(backend, GPU_HOST_MEMORY, backend->staging, backend->args_bytes);
	backend->staging = NULL;
	backend->staged = 0;
}

gpuError_t gpu_stage(struct gpu_backend *backend, size_t bytes, const void **args)
{
	hipError_t code = hipSuccess;
	char *staged;

	if (backend->args_bytes - backend->staged < bytes) {
		code = hipStreamSynchronize(backend->launches);
		backend->staged = 0;
	}
	staged = (char *)backend->staging + backend->staged;
	*args = memcpy(staged, *args, bytes);
	backend->staged += (bytes + ARGS_ALIGNMENT - 1) & ~(size_t)(ARGS_ALIGNMENT - 1);
	if (backend->staged > backend->args_bytes)
		backend->staged = backend->args_bytes;
	return code;
}
