/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the CUDA backend.
 *
 * Controllers that are host threads can reach host memory only, so what they read and
 * write (WEIR_MEMORY_DEVICE, WEIR_MEMORY_RING) is pinned host memory that lanes see
 * under the same address; words of lanes alone lie in the device's own memory.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../runtime/error.h"
#include "cuda.h"

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

int cuda_map_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);
	void *seen = NULL;
	cudaError_t code;

	if (error)
		return error;
	code = cudaHostRegister(host, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
	if (code)
		return cuda_fail(backend, code, "cuda:%d cannot pin %zu bytes of host memory", backend->device, bytes);
	code = cudaHostGetDevicePointer(&seen, host, 0);
	if (code) {
		(void)cudaHostUnregister(host);
		return cuda_fail(backend, code, "cuda:%d does not see pinned host memory", backend->device);
	}
	*device = (uint64_t)(uintptr_t)seen;
	return 0;
}

void cuda_unmap_host(struct weir_backend *base, void *host, size_t bytes)
{
	(void)bytes;
	if (cuda_enter(cuda_of(base)) == 0 && cudaHostUnregister(host) != cudaSuccess)
		(void)cudaGetLastError();
}

/* Pages of the host: shared ones, so that a fork() does not part lanes from the host. */
static int allocate_host(struct weir_backend *base, size_t bytes, void **host, uint64_t *device)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int error;

	if (memory == MAP_FAILED)
		return weir_fail(ENOMEM, "cannot allocate %zu bytes: %s", bytes, strerror(errno));
	error = cuda_map_host(base, memory, bytes, device);
	if (error) {
		munmap(memory, bytes);
		return error;
	}
	*host = memory; /* cuda_open() made sure that the addresses are the same */
	return 0;
}

/* cudaMalloc() and cudaFree() may wait for all kernels; one that stays never ends. */
cudaError_t cuda_device_memory(struct cuda_backend *backend, size_t bytes, void **memory)
{
	cudaError_t code = cudaMallocAsync(memory, bytes, backend->copies);

	return code ? code : cudaStreamSynchronize(backend->copies);
}

void cuda_device_release(struct cuda_backend *backend, void *memory)
{
	if (memory && cudaFreeAsync(memory, backend->copies) != cudaSuccess)
		(void)cudaGetLastError();
}

static int allocate_device(struct cuda_backend *backend, size_t bytes, uint64_t *device)
{
	void *memory = NULL;
	cudaError_t code = cuda_device_memory(backend, bytes, &memory);

	if (code)
		return cuda_fail(backend, code, "cannot allocate %zu bytes on cuda:%d", bytes, backend->device);
	code = cudaMemsetAsync(memory, 0, bytes, backend->copies);
	if (!code)
		code = cudaStreamSynchronize(backend->copies);
	if (code) {
		cuda_device_release(backend, memory);
		return cuda_fail(backend, code, "cannot clear %zu bytes on cuda:%d", bytes, backend->device);
	}
	*device = (uint64_t)(uintptr_t)memory;
	return 0;
}

int cuda_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host, uint64_t *device)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);

	*host = NULL;
	if (error)
		return error;
	return kind == WEIR_MEMORY_CONTROL ? allocate_device(backend, bytes, device) :
					     allocate_host(base, bytes, host, device);
}

void cuda_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	if (kind != WEIR_MEMORY_CONTROL) {
		cuda_unmap_host(base, pointer(device), bytes);
		munmap(pointer(device), bytes);
	} else if (cuda_enter(cuda_of(base)) == 0) {
		cuda_device_release(cuda_of(base), pointer(device));
	}
}

/* Either side may be pinned host memory: the run time sees by the address. */
static int copy(struct cuda_backend *backend, void *to, const void *from, size_t bytes)
{
	int error = cuda_enter(backend);
	cudaError_t code;

	if (error || bytes == 0)
		return error;
	code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, backend->copies);
	if (!code)
		code = cudaStreamSynchronize(backend->copies);
	return code ? cuda_fail(backend, code, "cannot copy %zu bytes from %p to %p", bytes, from, to) : 0;
}

int cuda_copy_in(struct weir_backend *base, uint64_t device, const void *host, size_t bytes)
{
	return copy(cuda_of(base), pointer(device), host, bytes);
}

int cuda_copy_out(struct weir_backend *base, void *host, uint64_t device, size_t bytes)
{
	return copy(cuda_of(base), host, pointer(device), bytes);
}
