/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the CUDA backend.
 *
 * What lanes and host threads both see is pinned host memory, under the same address for
 * both; everything else lies in the device's own memory, which the host reaches by copies.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/nvme.h>

#include "../../runtime/error.h"
#include "cuda.h"

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/*
 * Unpinning waits for all kernels that see the memory, and all devices do: one that
 * stays, in whichever context, would never let it end. So how many stay and what was
 * released meanwhile is known to all contexts together.
 */
static struct {
	pthread_mutex_t mutex;
	unsigned services;
	struct cuda_pinned *kept;
	struct registered *registered;
} shared = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/** struct cuda_pinned - in the first bytes of pinned memory that nobody uses */
struct cuda_pinned {
	struct cuda_pinned *next;
	size_t bytes;
};

/** struct registered - pages of somebody else's that are unregistered later; their addresses are not used again until then */
struct registered {
	void *host;
	struct registered *next;
};

static void unregister(void *host)
{
	if (cudaHostUnregister(host) != cudaSuccess)
		(void)cudaGetLastError();
}

static void unpin(void *memory, size_t bytes)
{
	unregister(memory);
	munmap(memory, bytes);
}

void cuda_unregister_when_free(void *host)
{
	struct registered *later;

	pthread_mutex_lock(&shared.mutex);
	later = shared.services ? malloc(sizeof(*later)) : NULL;
	if (later) {
		*later = (struct registered){ host, shared.registered };
		shared.registered = later;
	} else {
		unregister(host);
	}
	pthread_mutex_unlock(&shared.mutex);
}

/* Under the mutex: no kernel stays any more. */
static void unregister_all(void)
{
	struct registered *first;

	while ((first = shared.registered)) {
		shared.registered = first->next;
		unregister(first->host);
		free(first);
	}
}

/* Under the mutex until it is unpinned, so that no kernel that stays begins meanwhile. */
static void release_host(struct cuda_backend *backend, void *memory, size_t bytes)
{
	struct cuda_pinned *pinned = memory;

	if (cuda_enter(backend))
		return;
	pthread_mutex_lock(&shared.mutex);
	if (!shared.services) {
		unpin(memory, bytes);
	} else {
		*pinned = (struct cuda_pinned){ shared.kept, bytes };
		shared.kept = pinned;
	}
	pthread_mutex_unlock(&shared.mutex);
}

void cuda_service_begins(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services++;
	pthread_mutex_unlock(&shared.mutex);
}

void cuda_service_ended(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services--;
	while (!shared.services && shared.kept) {
		struct cuda_pinned *pinned = shared.kept;

		shared.kept = pinned->next;
		unpin(pinned, pinned->bytes);
	}
	if (!shared.services)
		unregister_all();
	pthread_mutex_unlock(&shared.mutex);
}

/* Whichever context pinned it: it is portable. */
static void *take_kept(size_t bytes)
{
	struct cuda_pinned **link, *pinned;

	pthread_mutex_lock(&shared.mutex);
	link = &shared.kept;
	while (*link && (*link)->bytes != bytes)
		link = &(*link)->next;
	pinned = *link;
	if (pinned)
		*link = pinned->next;
	pthread_mutex_unlock(&shared.mutex);
	return pinned ? memset(pinned, 0, bytes) : NULL;
}

/* The device sees pinned memory under the host's own address: cuda_open() made sure. */
static int pin(struct cuda_backend *backend, void *memory, size_t bytes)
{
	void *seen = NULL;
	cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);

	if (code)
		return cuda_fail(backend, code, "cuda:%d cannot pin %zu bytes of host memory", backend->device, bytes);
	code = cudaHostGetDevicePointer(&seen, memory, 0);
	if (code)
		(void)cudaHostUnregister(memory);
	return code ? cuda_fail(backend, code, "cuda:%d does not see pinned host memory", backend->device) : 0;
}

/* Pages of the host: shared ones, so that a fork() does not part lanes from the host. */
static int allocate_host(struct cuda_backend *backend, size_t bytes, void **host, uint64_t *device)
{
	void *memory = take_kept(bytes);
	int error;

	if (!memory) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return weir_fail(ENOMEM, "cannot allocate %zu bytes: %s", bytes, strerror(errno));
		error = pin(backend, memory, bytes);
		if (error) {
			munmap(memory, bytes);
			return error;
		}
	}
	*host = memory;
	*device = (uint64_t)(uintptr_t)memory;
	return 0;
}

/*
 * cudaMalloc() and cudaFree() may wait for all kernels; one that stays never ends. The
 * pool packs what it gives out; as long as all of it is whole pages, all begins at one.
 */
cudaError_t cuda_device_memory(struct cuda_backend *backend, size_t bytes, void **memory)
{
	size_t pages = (bytes + NVME_PAGE_BYTES - 1) & ~(size_t)(NVME_PAGE_BYTES - 1);
	cudaError_t code = cudaMallocAsync(memory, pages, backend->copies);

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
	return kind == WEIR_MEMORY_DEVICE ? allocate_device(backend, bytes, device) :
					    allocate_host(backend, bytes, host, device);
}

void cuda_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	if (kind != WEIR_MEMORY_DEVICE) {
		release_host(cuda_of(base), pointer(device), bytes);
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
