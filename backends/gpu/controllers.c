/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers of other PCI devices, and pages of the host, for a device's lanes. */
#include "gpu.h"

#include "pages.h"

#define MAPPED (gpuHostRegisterMapped | gpuHostRegisterPortable)

/* The driver's range of registers, or of pages, for this device. */
static gpuError_t add(void *host, size_t bytes, unsigned flags, uint64_t *device)
{
	void *seen = NULL;
	gpuError_t code = gpuHostRegister(host, bytes, flags);

	if (code)
		return code;
	code = gpuHostGetDevicePointer(&seen, host, 0);
	if (code)
		(void)gpuHostUnregister(host);
	*device = (uint64_t)(uintptr_t)seen;
	return code;
}

int gpu_map_registers(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	struct gpu_backend *backend = gpu_of(base);
	gpuError_t code;
	int error = weir_pages_check(backend->name, "device registers", host, bytes);

	if (!error)
		error = gpu_enter(backend);
	if (error)
		return error;
	code = add(host, bytes, gpuHostRegisterIoMemory | MAPPED, device);
	(void)gpuGetLastError();
	return code ? gpu_no_registers(backend, code) : 0;
}

int gpu_register_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	struct gpu_backend *backend = gpu_of(base);
	gpuError_t code;
	int error = weir_pages_check(backend->name, "host memory", host, bytes);

	if (!error)
		error = gpu_enter(backend);
	if (error)
		return error;
	code = add(host, bytes, MAPPED, device);
	return code ? gpu_fail(backend, code, GPU_NAME ":%d cannot register %zu bytes of host memory at %p",
			       backend->device, bytes, host)
		    : 0;
}

void gpu_unregister(struct weir_backend *base, void *host, size_t bytes)
{
	gpu_let_go(gpu_of(base), GPU_REGISTERED, host, bytes);
}
