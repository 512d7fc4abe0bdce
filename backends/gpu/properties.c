/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device of CUDA's or HIP's backend is. */
#include <string.h>

#include "gpu.h"

int gpu_pci_address(uint32_t ordinal, char *text, size_t bytes)
{
	if (gpuDeviceGetPCIBusId(text, (int)bytes, (int)ordinal) != gpuSuccess) {
		(void)gpuGetLastError();
		memset(text, 0, bytes);
	}
	for (char *c = text; *c; c++) /* as lspci and sysfs write it */
		*c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
	return 0;
}

void gpu_properties(struct weir_backend *base, struct weir_backend_properties *out)
{
	struct gpu_backend *backend = gpu_of(base);
	size_t total = 0, unused = 0;

	memcpy(out->name, backend->name, sizeof(out->name));
	out->wave_lanes = backend->wave_lanes;
	out->workers = backend->units;
	out->block_lanes = backend->block_lanes;
	out->shared_memory = false;
	out->copies_while_running = true; /* a stream of their own */
	(void)gpu_pci_address((uint32_t)backend->device, out->pci_address, sizeof(out->pci_address));
	gpu_peers(backend, out);
	gpu_abilities(backend, out);
	if (gpu_enter(backend) == 0 && gpuMemGetInfo(&unused, &total) == gpuSuccess) {
		out->memory_bytes = total;
		out->memory_free_bytes = unused;
	}
	(void)gpuGetLastError();
}
