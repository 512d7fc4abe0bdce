/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the HIP backend.
 *
 * What lanes and host threads both see is coherent host memory, which lanes do not cache,
 * under the same address for both. Everything else lies in the device's own memory, coarse
 * grained: coherent among its lanes, and with copies when kernels begin and end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

#include "hip.h"

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + NVME_PAGE_BYTES - 1) & ~(size_t)(NVME_PAGE_BYTES - 1);
}

/**
 * struct kept - memory or a module that nobody uses, not yet freed
 * @kind: what it is
 * @device: whose; host memory is everybody's
 * @what: itself
 * @bytes: size of memory
 * @next: one kept earlier
 */
struct kept {
	enum hip_held kind;
	int device;
	void *what;
	size_t bytes;
	struct kept *next;
};

/*
 * Freeing waits for all kernels of the device: one that stays, in whichever context, would
 * never let it end. So how many stay and what was let go of meanwhile is known to all
 * contexts together.
 */
static struct {
	pthread_mutex_t mutex;
	unsigned services;
	struct kept *kept;
} shared = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void free_now(enum hip_held kind, void *what)
{
	hipError_t code = kind == HIP_HOST_MEMORY ? hipHostFree(what) :
			  kind == HIP_MODULE	  ? hipModuleUnload(what) :
			  kind == HIP_REGISTERED  ? hipHostUnregister(what) :
						    hipFree(what);

	if (code != hipSuccess)
		(void)hipGetLastError();
}

/* Under the mutex until it is freed, so that no kernel that stays begins meanwhile. */
void hip_let_go(struct hip_backend *backend, enum hip_held kind, void *what, size_t bytes)
{
	struct kept *kept;

	if (!what || hip_enter(backend))
		return;
	pthread_mutex_lock(&shared.mutex);
	if (!shared.services) {
		free_now(kind, what);
	} else {
		kept = malloc(sizeof(*kept));
		if (kept) {
			*kept = (struct kept){ kind, backend->device, what, whole_pages(bytes), shared.kept };
			shared.kept = kept;
		} else {
			fprintf(stderr, "weir: no memory to note what hip:%d could free later: it is lost\n", backend->device);
		}
	}
	pthread_mutex_unlock(&shared.mutex);
}

void hip_service_begins(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services++;
	pthread_mutex_unlock(&shared.mutex);
}

void hip_service_ended(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services--;
	while (!shared.services && shared.kept) {
		struct kept *kept = shared.kept;

		shared.kept = kept->next;
		if (hipSetDevice(kept->device) == hipSuccess)
			free_now(kept->kind, kept->what);
		free(kept);
	}
	pthread_mutex_unlock(&shared.mutex);
}

/* Memory that is kept can as well be used: host memory by every context. */
static bool fits(const struct kept *kept, const struct hip_backend *backend, enum hip_held kind, size_t bytes)
{
	return kept->kind == kind && kept->bytes == bytes &&
	       (kind == HIP_HOST_MEMORY || kept->device == backend->device);
}

static void *take_kept(const struct hip_backend *backend, enum hip_held kind, size_t bytes)
{
	struct kept **link, *kept;
	void *what = NULL;

	pthread_mutex_lock(&shared.mutex);
	link = &shared.kept;
	while (*link && !fits(*link, backend, kind, bytes))
		link = &(*link)->next;
	kept = *link;
	if (kept) {
		what = kept->what;
		*link = kept->next;
		free(kept);
	}
	pthread_mutex_unlock(&shared.mutex);
	return what;
}

hipError_t hip_memory(struct hip_backend *backend, enum hip_held kind, size_t bytes, void **memory)
{
	size_t pages = whole_pages(bytes);
	hipError_t code;

	*memory = take_kept(backend, kind, pages);
	if (*memory)
		return hipSuccess;
	code = kind == HIP_DEVICE_MEMORY ? hipMalloc(memory, pages) :
					   hipHostMalloc(memory, pages, hipHostMallocMapped | hipHostMallocPortable |
									hipHostMallocCoherent);
	if (!code && (uintptr_t)*memory % NVME_PAGE_BYTES) { /* what weir_alloc() promises, and the run time does not */
		free_now(kind, *memory);
		code = hipErrorInvalidValue;
	}
	return code;
}

static int allocate_host(struct hip_backend *backend, size_t bytes, void **host, uint64_t *device)
{
	void *seen = NULL;
	hipError_t code = hip_memory(backend, HIP_HOST_MEMORY, bytes, host);

	if (!code && (code = hipHostGetDevicePointer(&seen, *host, 0)) != hipSuccess)
		hip_let_go(backend, HIP_HOST_MEMORY, *host, bytes);
	if (code)
		return hip_fail(code, "cannot allocate %zu bytes of host memory that hip:%d sees", bytes, backend->device);
	if (seen != *host) {
		hip_let_go(backend, HIP_HOST_MEMORY, *host, bytes);
		return weir_fail(ENOTSUP, "hip:%d sees host memory under other addresses than the host; weir needs the same",
				 backend->device);
	}
	memset(*host, 0, bytes);
	*device = (uint64_t)(uintptr_t)*host;
	return 0;
}

static int allocate_device(struct hip_backend *backend, size_t bytes, uint64_t *device)
{
	void *memory = NULL;
	hipError_t code = hip_memory(backend, HIP_DEVICE_MEMORY, bytes, &memory);

	if (code)
		return hip_fail(code, "cannot allocate %zu bytes on hip:%d", bytes, backend->device);
	code = hipMemsetAsync(memory, 0, bytes, backend->copies);
	if (!code)
		code = hipStreamSynchronize(backend->copies);
	if (code) {
		hip_let_go(backend, HIP_DEVICE_MEMORY, memory, bytes);
		return hip_fail(code, "cannot clear %zu bytes on hip:%d", bytes, backend->device);
	}
	*device = (uint64_t)(uintptr_t)memory;
	return 0;
}

int hip_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host, uint64_t *device)
{
	struct hip_backend *backend = hip_of(base);
	int error = hip_enter(backend);

	*host = NULL;
	if (error)
		return error;
	return kind == WEIR_MEMORY_DEVICE ? allocate_device(backend, bytes, device) :
					    allocate_host(backend, bytes, host, device);
}

void hip_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	hip_let_go(hip_of(base), kind == WEIR_MEMORY_DEVICE ? HIP_DEVICE_MEMORY : HIP_HOST_MEMORY, pointer(device), bytes);
}

/*
 * A word that stands alone may be what a kernel that stays looks at. Copies pass by the
 * device's caches, which then need not show it; this store is made by a lane, at system scope.
 */
static hipError_t queue_copy(struct hip_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	uint32_t word;

	if (!in || bytes != sizeof(word) || (uintptr_t)to % sizeof(word))
		return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, backend->copies);
	memcpy(&word, from, sizeof(word));
	return hipStreamWriteValue32(backend->copies, to, word, 0);
}

static int copy(struct hip_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	int error = hip_enter(backend);
	hipError_t code;

	if (error || bytes == 0)
		return error;
	code = queue_copy(backend, to, from, bytes, in);
	if (!code)
		code = hipStreamSynchronize(backend->copies);
	return code ? hip_fail(code, "cannot copy %zu bytes from %p to %p", bytes, from, to) : 0;
}

int hip_copy_in(struct weir_backend *base, uint64_t device, const void *host, size_t bytes)
{
	return copy(hip_of(base), pointer(device), host, bytes, true);
}

int hip_copy_out(struct weir_backend *base, void *host, uint64_t device, size_t bytes)
{
	return copy(hip_of(base), host, pointer(device), bytes, false);
}
