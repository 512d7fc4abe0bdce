/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What controllers on PCI Express need of CUDA's driver: registers mapped for lanes, and the device's
 * memory as a dma-buf.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#include <weir/nvme.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"
#include "driver.h"
#include "../gpu/pages.h"

int gpu_no_registers(const struct gpu_backend *backend, gpuError_t code)
{
	return weir_fail(
		ENOTSUP,
		"cuda:%d maps no device registers: %s (%s); run with CAP_SYS_ADMIN, or load the driver with "
		"PeerMappingOverride=1",
		backend->device, cudaGetErrorString(code), cudaGetErrorName(code));
}

/*
 * The driver exports whole pages of one allocation; of an address within a page the offset says where it
 * is.
 */
int gpu_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset)
{
	CUresult (*export_range)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);
	struct gpu_backend *backend = gpu_of(base);
	uint64_t before = device % NVME_PAGE_BYTES,
		 pages = (before + bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
	CUresult code;
	int error = gpu_enter(backend);

	if (error)
		return error;
	*(void **)&export_range = cuda_driver_entry("cuMemGetHandleForAddressRange", 11070);
	if (!export_range)
		return weir_fail(ENOTSUP, "cuda:%d exports no memory: its driver is older than CUDA 11.7",
				 backend->device);
	code = export_range(file, device - before, pages * NVME_PAGE_BYTES,
			    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (code)
		return weir_fail(code == CUDA_ERROR_NOT_SUPPORTED ? ENOTSUP : EIO,
				 "cuda:%d exports no dma-buf of %zu bytes at %#llx: the driver's error %d",
				 backend->device, bytes, (unsigned long long)device, (int)code);
	*offset = before;
	return 0;
}

static bool is_overridden(const char *rest)
{
	return strstr(rest, "PeerMappingOverride=1") != NULL;
}

void gpu_abilities(struct gpu_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->register_host.has = true;
	out->map_registers.has = weir_pages_admin() || weir_pages_has_line("/proc/driver/nvidia/params",
									   "RegistryDwords:", is_overridden);
	if (!out->map_registers.has)
		snprintf(out->map_registers.why, sizeof(out->map_registers.why),
			 "the driver maps device registers for CAP_SYS_ADMIN alone, or with its option "
			 "PeerMappingOverride=1");
	out->export_memory.has = out->dma_buf;
	if (!out->export_memory.has)
		snprintf(out->export_memory.why, sizeof(out->export_memory.why),
			 "the driver exports no dma-bufs of this device's memory");
}
