/* SPDX-License-Identifier: BSD-3-Clause */
/* What a HIP device is and how other PCI devices get on with its memory. */
#include <dlfcn.h>
#include <string.h>

#include "hip.h"

/* Is there a register by which the host flushes what others wrote? The run time gives its address, for an int. */
static bool has_flush(const struct hip_backend *backend)
{
	union {
		int value;
		void *address;
	} register_at = { .address = NULL };

	if (hipDeviceGetAttribute(&register_at.value, hipDeviceAttributeHdpMemFlushCntl, backend->device) != hipSuccess) {
		(void)hipGetLastError();
		return false;
	}
	return register_at.address != NULL;
}

int hip_pci_address(uint32_t ordinal, char *text, size_t bytes)
{
	if (hipDeviceGetPCIBusId(text, (int)bytes, (int)ordinal) != hipSuccess) {
		(void)hipGetLastError();
		memset(text, 0, bytes);
	}
	for (char *c = text; *c; c++) /* as lspci and sysfs write it */
		*c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
	return 0;
}

/*
 * Others reach memory that a BAR shows in full. What they wrote is behind the host data path's
 * buffers until these are flushed; that a completion says more was tried on no device yet.
 */
static void peers(struct hip_backend *backend, struct weir_backend_properties *out)
{
	int large = 0;

	if (hipDeviceGetAttribute(&large, hipDeviceAttributeIsLargeBar, backend->device) != hipSuccess)
		(void)hipGetLastError();
	out->peer_dma = large != 0;
	if (out->peer_dma && has_flush(backend))
		out->peer_writes = WEIR_PEER_WRITES_FLUSHED;
	/* The layer below the run time, in the process because the run time is. */
	out->dma_buf = dlsym(RTLD_DEFAULT, "hsa_amd_portable_export_dmabuf") != NULL;
}

void hip_properties(struct weir_backend *base, struct weir_backend_properties *out)
{
	struct hip_backend *backend = hip_of(base);
	size_t total = 0, unused = 0;

	memcpy(out->name, backend->name, sizeof(out->name));
	out->wave_lanes = backend->wave_lanes;
	out->workers = backend->compute_units;
	out->block_lanes = backend->block_lanes;
	out->shared_memory = false;
	out->copies_beside = true; /* a stream of their own */
	(void)hip_pci_address((uint32_t)backend->device, out->pci_address, sizeof(out->pci_address));
	peers(backend, out);
	hip_abilities(backend, out);
	if (hip_enter(backend) == 0 && hipMemGetInfo(&unused, &total) == hipSuccess) {
		out->memory_bytes = total;
		out->memory_free_bytes = unused;
	}
	(void)hipGetLastError();
}
