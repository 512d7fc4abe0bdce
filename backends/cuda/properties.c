/* SPDX-License-Identifier: BSD-3-Clause */
/* What a CUDA device is and how other PCI devices get on with its memory. */
#include <string.h>

#include <cuda.h>

#include "cuda.h"

/* 0 for what the run time or the driver does not know. */
static int attribute(const struct cuda_backend *backend, enum cudaDeviceAttr which)
{
	int value = 0;

	if (cudaDeviceGetAttribute(&value, which, backend->device) != cudaSuccess)
		(void)cudaGetLastError();
	return value;
}

/* Asked of the driver, since the run time has no name for it; without linking the driver's library. */
static bool exports_dma_buf(const struct cuda_backend *backend)
{
	CUresult (*ask)(int *, CUdevice_attribute, CUdevice);
	int value = 0;

	*(void **)&ask = cuda_driver_entry("cuDeviceGetAttribute", 11070);
	/* Devices have the same numbers in both. */
	return ask && ask(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, backend->device) == CUDA_SUCCESS && value;
}

static enum weir_peer_writes peer_writes(const struct cuda_backend *backend)
{
	int order = attribute(backend, cudaDevAttrGPUDirectRDMAWritesOrdering);

	if (order >= cudaGPUDirectRDMAWritesOrderingAllDevices)
		return WEIR_PEER_WRITES_ORDERED_ALL;
	if (order >= cudaGPUDirectRDMAWritesOrderingOwner)
		return WEIR_PEER_WRITES_ORDERED;
	return attribute(backend, cudaDevAttrGPUDirectRDMAFlushWritesOptions) ? WEIR_PEER_WRITES_FLUSHED :
										 WEIR_PEER_WRITES_UNKNOWN;
}

int cuda_peer_flush(struct weir_backend *base)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);
	cudaError_t code = error ? cudaSuccess : cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
										    cudaFlushGPUDirectRDMAWritesToOwner);

	return code ? cuda_fail(backend, code, "cannot flush what other devices wrote to the memory of cuda:%d", backend->device) : error;
}

int cuda_pci_address(uint32_t ordinal, char *text, size_t bytes)
{
	if (cudaDeviceGetPCIBusId(text, (int)bytes, (int)ordinal) != cudaSuccess) {
		(void)cudaGetLastError();
		memset(text, 0, bytes);
	}
	for (char *c = text; *c; c++) /* as lspci and sysfs write it */
		*c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
	return 0;
}

static void place(struct cuda_backend *backend, struct weir_backend_properties *out)
{
	int node = -1;

	(void)cuda_pci_address((uint32_t)backend->device, out->pci_address, sizeof(out->pci_address));
	if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, backend->device) == cudaSuccess)
		out->numa_node = node;
	(void)cudaGetLastError();
}

void cuda_properties(struct weir_backend *base, struct weir_backend_properties *out)
{
	struct cuda_backend *backend = cuda_of(base);
	size_t total = 0, unused = 0;

	memcpy(out->name, backend->name, sizeof(out->name));
	out->wave_lanes = 32;
	out->workers = backend->multiprocessors;
	out->block_lanes = backend->block_lanes;
	out->shared_memory = false;
	out->copies_beside = true; /* a stream of their own */
	place(backend, out);
	out->peer_dma = attribute(backend, cudaDevAttrGPUDirectRDMASupported) != 0;
	if (out->peer_dma)
		out->peer_writes = peer_writes(backend);
	out->dma_buf = exports_dma_buf(backend);
	cuda_abilities(backend, out);
	if (cuda_enter(backend) == 0 && cudaMemGetInfo(&unused, &total) == cudaSuccess) {
		out->memory_bytes = total;
		out->memory_free_bytes = unused;
	}
	(void)cudaGetLastError();
}
