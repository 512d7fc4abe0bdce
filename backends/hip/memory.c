/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What HIP's memory is: of the host, coherent, so that lanes do not cache it; of the device, coarse
 * grained: coherent among its lanes, and with copies when kernels begin and end.
 */
#include <errno.h>
#include <string.h>

#include <weir/nvme.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

void gpu_free(enum gpu_held kind, void *what, size_t bytes)
{
	gpuError_t code = kind == GPU_HOST_MEMORY  ? hipHostFree(what)
			  : kind == GPU_MODULE     ? hipModuleUnload(what)
			  : kind == GPU_REGISTERED ? hipHostUnregister(what)
						   : hipFree(what);

	(void)bytes;
	if (code != hipSuccess)
		(void)hipGetLastError();
}

gpuError_t gpu_memory_make(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory)
{
	hipError_t code =
		kind == GPU_DEVICE_MEMORY
			? hipMalloc(memory, bytes)
			: hipHostMalloc(memory, bytes,
					hipHostMallocMapped | hipHostMallocPortable | hipHostMallocCoherent);

	(void)backend;
	if (!code && (uintptr_t)*memory %
			     NVME_PAGE_BYTES) { /* what weir_alloc() promises, and the run time does not */
		gpu_free(kind, *memory, bytes);
		*memory = NULL;
		code = hipErrorInvalidValue;
	}
	return code;
}

/* All of it may wait for kernels. */
bool gpu_frees_at_once(struct gpu_backend *backend, enum gpu_held kind, void *what)
{
	(void)backend;
	(void)kind;
	(void)what;
	return false;
}

int gpu_host_memory(struct gpu_backend *backend, size_t bytes, void **host)
{
	void *seen = NULL;
	gpuError_t code = gpu_memory(backend, GPU_HOST_MEMORY, bytes, host);

	if (!code && (code = hipHostGetDevicePointer(&seen, *host, 0)) != hipSuccess)
		gpu_let_go(backend, GPU_HOST_MEMORY, *host, bytes);
	if (code)
		return gpu_fail(backend, code, "cannot allocate %zu bytes of host memory that hip:%d sees",
				bytes, backend->device);
	if (seen != *host) {
		gpu_let_go(backend, GPU_HOST_MEMORY, *host, bytes);
		return weir_fail(
			ENOTSUP,
			"hip:%d sees host memory under other addresses than the host; weir needs the same",
			backend->device);
	}
	memset(*host, 0, bytes);
	return 0;
}

/*
 * A word that stands alone may be what a persistent kernel looks at. Copies pass by the
 * device's caches, which then need not show it; this store is made by a lane, at system scope.
 */
gpuError_t gpu_queue_copy(struct gpu_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	uint32_t word;

	if (!in || bytes != sizeof(word) || (uintptr_t)to % sizeof(word))
		return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, backend->copies);
	memcpy(&word, from, sizeof(word));
	return hipStreamWriteValue32(backend->copies, to, word, 0);
}
