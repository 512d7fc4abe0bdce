/* SPDX-License-Identifier: BSD-3-Clause */
/* The run time takes pageable memory at once, and goes on; pinned memory it takes later. So arguments, which
 * may lie in any, are copied to pageable memory first. */
#include <stdlib.h>
#include <string.h>

#include "../gpu/gpu.h"

gpuError_t gpu_staging_begin(struct gpu_backend *backend, size_t bytes)
{
	backend->staging = malloc(bytes);
	return backend->staging ? cudaSuccess : cudaErrorMemoryAllocation;
}

void gpu_staging_end(struct gpu_backend *backend)
{
	free(backend->staging);
	backend->staging = NULL;
}

gpuError_t gpu_stage(struct gpu_backend *backend, size_t bytes, const void **args)
{
	if (bytes)
		*args = memcpy(backend->staging, *args, bytes);
	return cudaSuccess;
}
