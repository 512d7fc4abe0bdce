/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What controllers on PCI Express need of a HIP device: their registers mapped for lanes, host pages that both reach, and
 * the device's memory as a dma-buf.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../pages.h"
#include "hip.h"

/* amdgpu has a version where it is AMD's own module (amdgpu-dkms), whose amdkfd maps registers; upstream's refuses. */
#define DRIVER_VERSION "/sys/module/amdgpu/version"

static hipError_t add(void *host, size_t bytes, unsigned flags, uint64_t *device)
{
	void *seen = NULL;
	hipError_t code = hipHostRegister(host, bytes, flags | hipHostRegisterMapped | hipHostRegisterPortable);

	if (code)
		return code;
	code = hipHostGetDevicePointer(&seen, host, 0);
	if (code)
		(void)hipHostUnregister(host);
	*device = (uint64_t)(uintptr_t)seen;
	return code;
}

int hip_map_registers(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	struct hip_backend *backend = hip_of(base);
	hipError_t code;
	int error = weir_pages_check(backend->name, "device registers", host, bytes);

	if (!error)
		error = hip_enter(backend);
	if (error)
		return error;
	code = add(host, bytes, hipHostRegisterIoMemory, device);
	(void)hipGetLastError();
	return code ? weir_fail(ENOTSUP, "hip:%d maps no device registers: %s; upstream amdkfd refuses, the one of amdgpu-dkms does not",
				backend->device, hipGetErrorName(code)) : 0;
}

int hip_register_host(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	struct hip_backend *backend = hip_of(base);
	hipError_t code;
	int error = weir_pages_check(backend->name, "host memory", host, bytes);

	if (!error)
		error = hip_enter(backend);
	if (error)
		return error;
	code = add(host, bytes, 0, device);
	return code ? hip_fail(code, "hip:%d cannot register %zu bytes of host memory at %p", backend->device, bytes, host) : 0;
}

void hip_unregister(struct weir_backend *base, void *host, size_t bytes)
{
	hip_let_go(hip_of(base), HIP_REGISTERED, host, bytes);
}

/* The layer below the run time has it; a dma-buf there is of the whole buffer object, so the offset counts. */
int hip_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset)
{
	int (*export_buffer)(const void *, size_t, int *, uint64_t *);
	struct hip_backend *backend = hip_of(base);
	int status, error = hip_enter(backend);

	if (error)
		return error;
	*(void **)&export_buffer = dlsym(RTLD_DEFAULT, "hsa_amd_portable_export_dmabuf");
	if (!export_buffer)
		return weir_fail(ENOTSUP, "hip:%d exports no memory: this ROCm has no hsa_amd_portable_export_dmabuf", backend->device);
	status = export_buffer((const void *)(uintptr_t)device, bytes, file, offset);
	return status ? weir_fail(EIO, "hip:%d exports no dma-buf of %zu bytes at %#llx: HSA status %#x", backend->device, bytes,
				  (unsigned long long)device, (unsigned)status) : 0;
}

void hip_abilities(struct hip_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->register_host.has = true;
	out->map_registers.has = access(DRIVER_VERSION, F_OK) == 0;
	if (!out->map_registers.has)
		snprintf(out->map_registers.why, sizeof(out->map_registers.why),
			 "upstream amdkfd maps no registers of other devices (no " DRIVER_VERSION "); amdgpu-dkms does");
	out->export_memory.has = out->dma_buf;
	if (!out->export_memory.has)
		snprintf(out->export_memory.why, sizeof(out->export_memory.why),
			 "this ROCm has no hsa_amd_portable_export_dmabuf (5.6 and later have)");
}
