/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What controllers on PCI Express need of HIP's drivers: registers mapped for lanes, and the device's
 * memory as a dma-buf.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

/*
 * amdgpu has a version where it is AMD's own module (amdgpu-dkms), whose amdkfd maps registers; upstream's
 * refuses.
 */
#define DRIVER_VERSION "/sys/module/amdgpu/version"

int gpu_no_registers(const struct gpu_backend *backend, gpuError_t code)
{
	return weir_fail(ENOTSUP,
			 "hip:%d maps no device registers: %s; upstream amdkfd refuses, the one of "
			 "amdgpu-dkms does not",
			 backend->device, hipGetErrorName(code));
}

/*
 * The layer below the run time has it; a dma-buf there is of the whole buffer object, so the offset counts.
 */
int gpu_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset)
{
	int (*export_buffer)(const void *, size_t, int *, uint64_t *);
	struct gpu_backend *backend = gpu_of(base);
	int status, error = gpu_enter(backend);

	if (error)
		return error;
	*(void **)&export_buffer = dlsym(RTLD_DEFAULT, "hsa_amd_portable_export_dmabuf");
	if (!export_buffer)
		return weir_fail(ENOTSUP,
				 "hip:%d exports no memory: this ROCm has no hsa_amd_portable_export_dmabuf",
				 backend->device);
	status = export_buffer((const void *)(uintptr_t)device, bytes, file, offset);
	return status ? weir_fail(EIO, "hip:%d exports no dma-buf of %zu bytes at %#llx: HSA status %#x",
				  backend->device, bytes, (unsigned long long)device, (unsigned)status)
		      : 0;
}

void gpu_abilities(struct gpu_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->register_host.has = true;
	out->map_registers.has = access(DRIVER_VERSION, F_OK) == 0;
	if (!out->map_registers.has)
		snprintf(out->map_registers.why, sizeof(out->map_registers.why),
			 "upstream amdkfd maps no registers of other devices (no " DRIVER_VERSION
			 "); amdgpu-dkms does");
	out->export_memory.has = out->dma_buf;
	if (!out->export_memory.has)
		snprintf(out->export_memory.why, sizeof(out->export_memory.why),
			 "this ROCm has no hsa_amd_portable_export_dmabuf (5.6 and later have)");
}
