/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of CUDA's and HIP's backends: what is kept while kernels stay, and copies.
 *
 * What lanes and host threads both see is memory of the host, under the same address for both.
 * Everything else lies in the device's own, which the host reaches by copies.
 */
#include <pthread.h>
#include <stdlib.h>

#include <weir/nvme.h>

#include "../../runtime/backend/error.h"
#include "gpu.h"

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
	enum gpu_held kind;
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

/* Under the mutex until it is freed, so that no persistent kernel begins meanwhile. */
void gpu_let_go(struct gpu_backend *backend, enum gpu_held kind, void *what, size_t bytes)
{
	struct kept *kept;

	if (!what || gpu_frees_at_once(backend, kind, what) || gpu_enter(backend))
		return;
	pthread_mutex_lock(&shared.mutex);
	if (!shared.services) {
		gpu_free(kind, what, bytes);
	} else {
		kept = malloc(sizeof(*kept));
		if (kept) {
			*kept = (struct kept){ kind, backend->device, what, whole_pages(bytes), shared.kept };
			shared.kept = kept;
		} else {
			weir_report("no memory to note what " GPU_NAME ":%d could free later: it is lost",
				    backend->device);
		}
	}
	pthread_mutex_unlock(&shared.mutex);
}

void gpu_service_begins(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services++;
	pthread_mutex_unlock(&shared.mutex);
}

void gpu_service_ended(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.services--;
	while (!shared.services && shared.kept) {
		struct kept *kept = shared.kept;

		shared.kept = kept->next;
		if (gpuSetDevice(kept->device) == gpuSuccess)
			gpu_free(kept->kind, kept->what, kept->bytes);
		free(kept);
	}
	pthread_mutex_unlock(&shared.mutex);
}

/* Memory that is kept can as well be used: host memory by every context. */
static bool fits(const struct kept *kept, const struct gpu_backend *backend, enum gpu_held kind, size_t bytes)
{
	return kept->kind == kind && kept->bytes == bytes &&
	       (kind == GPU_HOST_MEMORY || kept->device == backend->device);
}

void *gpu_take_kept(const struct gpu_backend *backend, enum gpu_held kind, size_t bytes)
{
	struct kept **link, *kept;
	void *what = NULL;

	bytes = whole_pages(bytes);
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

gpuError_t gpu_memory(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory)
{
	*memory = GPU_POOLS_MEMORY && kind == GPU_DEVICE_MEMORY ? NULL : gpu_take_kept(backend, kind, bytes);
	return *memory ? gpuSuccess : gpu_memory_make(backend, kind, whole_pages(bytes), memory);
}

static int allocate_host(struct gpu_backend *backend, size_t bytes, void **host, uint64_t *device)
{
	int error = gpu_host_memory(backend, bytes, host);

	if (!error)
		*device = (uint64_t)(uintptr_t)*host;
	return error;
}

static int allocate_device(struct gpu_backend *backend, size_t bytes, uint64_t *device)
{
	void *memory = NULL;
	gpuError_t code = gpu_memory(backend, GPU_DEVICE_MEMORY, bytes, &memory);

	if (code)
		return gpu_fail(backend, code, "cannot allocate %zu bytes on " GPU_NAME ":%d", bytes,
				backend->device);
	code = gpuMemsetAsync(memory, 0, bytes, backend->copies);
	if (!code)
		code = gpuStreamSynchronize(backend->copies);
	if (code) {
		gpu_let_go(backend, GPU_DEVICE_MEMORY, memory, bytes);
		return gpu_fail(backend, code, "cannot clear %zu bytes on " GPU_NAME ":%d", bytes,
				backend->device);
	}
	*device = (uint64_t)(uintptr_t)memory;
	return 0;
}

int gpu_allocate(struct weir_backend *base, size_t bytes, enum weir_memory kind, void **host,
		 uint64_t *device)
{
	struct gpu_backend *backend = gpu_of(base);
	int error = gpu_enter(backend);

	*host = NULL;
	if (error)
		return error;
	return kind == WEIR_MEMORY_DEVICE ? allocate_device(backend, bytes, device)
					  : allocate_host(backend, bytes, host, device);
}

void gpu_release(struct weir_backend *base, uint64_t device, size_t bytes, enum weir_memory kind)
{
	if (gpu_enter(gpu_of(base)) == 0)
		gpu_let_go(gpu_of(base), kind == WEIR_MEMORY_DEVICE ? GPU_DEVICE_MEMORY : GPU_HOST_MEMORY,
			   pointer(device), bytes);
}

/* Either side may be memory of the host that the device sees: the run time knows by the address. */
static int copy(struct gpu_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	int error = gpu_enter(backend);
	gpuError_t code;

	if (error || bytes == 0)
		return error;
	code = gpu_queue_copy(backend, to, from, bytes, in);
	if (!code)
		code = gpuStreamSynchronize(backend->copies);
	return code ? gpu_fail(backend, code, "cannot copy %zu bytes from %p to %p", bytes, from, to) : 0;
}

int gpu_h2d(struct weir_backend *base, uint64_t device, const void *host, size_t bytes)
{
	return copy(gpu_of(base), pointer(device), host, bytes, true);
}

int gpu_d2h(struct weir_backend *base, void *host, uint64_t device, size_t bytes)
{
	return copy(gpu_of(base), host, pointer(device), bytes, false);
}
