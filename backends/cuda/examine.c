/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose memory an address is. */
#include <errno.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

/*
 * One byte's owner: the range is looked at by its ends, since nobody puts two allocations of a kind side by
 * side by chance.
 */
static int owner(struct gpu_backend *backend, uint64_t address, struct cudaPointerAttributes *attributes)
{
	gpuError_t code = cudaPointerGetAttributes(attributes, (const void *)(uintptr_t)address);

	if (code)
		return gpu_fail(backend, code, "cannot find out what memory is at %#llx",
				(unsigned long long)address);
	if (attributes->type == cudaMemoryTypeUnregistered)
		return weir_fail(EFAULT,
				 "the memory at %#llx is neither a GPU's nor pinned: take what cudaMalloc() "
				 "gave, or pin it with "
				 "cudaHostRegister()",
				 (unsigned long long)address);
	if (attributes->type == cudaMemoryTypeDevice && attributes->device != backend->device)
		return weir_fail(EFAULT, "the memory at %#llx is that of cuda:%d, the context is on cuda:%d",
				 (unsigned long long)address, attributes->device, backend->device);
	return 0;
}

int gpu_examine(struct weir_backend *base, uint64_t address, uint64_t bytes, void **host)
{
	struct gpu_backend *backend = gpu_of(base);
	struct cudaPointerAttributes first, last;
	int error = gpu_enter(backend);

	if (!error)
		error = owner(backend, address, &first);
	if (!error)
		error = owner(backend, address + bytes - 1, &last);
	if (!error && first.type != last.type)
		error = weir_fail(EFAULT, "%llu bytes at %#llx are more than one allocation",
				  (unsigned long long)bytes, (unsigned long long)address);
	if (!error && first.type != cudaMemoryTypeDevice)
		*host = (void *)(uintptr_t)
			address; /* pinned or managed: cuda_open() made sure that addresses are the same */
	return error;
}
