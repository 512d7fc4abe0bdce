/* SPDX-License-Identifier: BSD-3-Clause */
/* What CUDA's memory is: pinned pages of the host, and the device's pool. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

void gpu_free(enum gpu_held kind, void *what, size_t bytes)
{
	if (cudaHostUnregister(what) != cudaSuccess)
		(void)cudaGetLastError();
	if (kind == GPU_HOST_MEMORY)
		munmap(what, bytes);
}

/* The device sees pinned memory under the host's own address: gpu_device_examine() made sure. */
static int pin(struct gpu_backend *backend, void *memory, size_t bytes)
{
	void *seen = NULL;
	gpuError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);

	if (code)
		return gpu_fail(backend, code, "cuda:%d cannot pin %zu bytes of host memory", backend->device,
				bytes);
	code = cudaHostGetDevicePointer(&seen, memory, 0);
	if (code)
		(void)cudaHostUnregister(memory);
	return code ? gpu_fail(backend, code, "cuda:%d does not see pinned host memory", backend->device) : 0;
}

/* Shared pages, so that a fork() does not part lanes from the host. */
int gpu_host_memory(struct gpu_backend *backend, size_t bytes, void **host)
{
	void *memory = gpu_take_kept(backend, GPU_HOST_MEMORY, bytes);
	int error;

	if (memory) {
		*host = memset(memory, 0, bytes);
		return 0;
	}
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return weir_fail(ENOMEM, "cannot allocate %zu bytes: %s", bytes, strerror(errno));
	error = pin(backend, memory, bytes);
	if (error)
		munmap(memory, bytes);
	else
		*host = memory;
	return error;
}

/*
 * cudaMalloc() and cudaFree() may wait for all kernels; one that stays never ends. The
 * pool packs what it gives out; as long as all of it is whole pages, all begins at one.
 */
gpuError_t gpu_memory_make(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory)
{
	cudaError_t code = kind == GPU_DEVICE_MEMORY ? cudaMallocAsync(memory, bytes, backend->copies)
						     : cudaErrorInvalidValue;

	return code ? code : cudaStreamSynchronize(backend->copies);
}

bool gpu_frees_at_once(struct gpu_backend *backend, enum gpu_held kind, void *what)
{
	if (kind != GPU_DEVICE_MEMORY)
		return false;
	if (cudaFreeAsync(what, backend->copies) != cudaSuccess)
		(void)cudaGetLastError();
	return true;
}

gpuError_t gpu_queue_copy(struct gpu_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	(void)in;
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, backend->copies);
}
