/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CUDA device: why there is none, what it is, what is asked of its driver, and how other PCI devices
 * get on with its memory.
 */
#include <errno.h>
#include <stdio.h>

#include <cuda.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"
#include "driver.h"

enum { MOST_BLOCKS = 0x7fffffff };

int gpu_no_device(cudaError_t code)
{
	int driver = 0;

	if (code == cudaErrorInsufficientDriver &&
	    (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0))
		return weir_fail(ENODEV,
				 "no CUDA device: the NVIDIA driver is not installed or not loaded here");
	if (code == cudaErrorInsufficientDriver)
		return weir_fail(ENODEV,
				 "no CUDA device: the driver knows CUDA %d.%d, this build needs %d.%d; "
				 "update the driver",
				 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
				 CUDART_VERSION % 1000 / 10);
	if (code)
		return weir_fail(ENODEV, "no CUDA device: %s (%s)", cudaGetErrorString(code),
				 cudaGetErrorName(code));
	return weir_fail(ENODEV, "no CUDA device: the driver shows none to this process");
}

int gpu_launch_limit(const struct gpu_backend *backend, const char *name, uint32_t blocks, uint32_t threads)
{
	(void)threads;
	return blocks <= MOST_BLOCKS
		       ? 0
		       : weir_fail(EINVAL, "kernel \"%s\" launched with %u blocks; %s takes %d at most", name,
				   blocks, backend->name, MOST_BLOCKS);
}

static gpuError_t require(const struct gpu_backend *backend, enum cudaDeviceAttr which, uint32_t *value)
{
	int number = 0;
	gpuError_t code = cudaDeviceGetAttribute(&number, which, backend->device);

	*value = (uint32_t)number;
	return code;
}

int gpu_device_examine(struct gpu_backend *backend)
{
	struct cudaDeviceProp properties;
	uint32_t unified = 0, same = 0;
	gpuError_t code = cudaGetDeviceProperties(&properties, backend->device);

	if (!code)
		code = require(backend, cudaDevAttrUnifiedAddressing, &unified);
	if (!code)
		code = require(backend, cudaDevAttrCanUseHostPointerForRegisteredMem, &same);
	if (!code)
		code = require(backend, cudaDevAttrMultiProcessorCount, &backend->units);
	if (!code)
		code = require(backend, cudaDevAttrMaxThreadsPerBlock, &backend->block_lanes);
	if (code)
		return gpu_fail(backend, code, "cannot examine cuda:%d", backend->device);
	if (!unified || !same)
		return weir_fail(ENODEV,
				 "cuda:%d (%s) sees pinned host memory under other addresses than the host; "
				 "weir needs the same",
				 backend->device, properties.name);
	backend->wave_lanes = 32;
	snprintf(backend->name, sizeof(backend->name), "cuda:%d %.80s (%u multiprocessors)", backend->device,
		 properties.name, backend->units);
	return 0;
}

gpuError_t gpu_copies_stream(gpuStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

gpuError_t gpu_service_stream(const struct gpu_backend *backend, gpuStream_t *stream)
{
	(void)backend;
	return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

/*
 * Is the device of no more use to this process? An error of a call is forgotten once
 * it was asked for; one that a kernel met comes back from every later call.
 */
bool gpu_is_lost(const struct gpu_backend *backend)
{
	gpuError_t again;

	if (!backend->copies)
		return false;
	again = cudaStreamQuery(backend->copies);
	(void)cudaGetLastError();
	return again != cudaSuccess && again != cudaErrorNotReady;
}

void *cuda_driver_entry(const char *name, unsigned version)
{
	enum cudaDriverEntryPointQueryResult found;
	void *function = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found) !=
	    cudaSuccess) {
		(void)cudaGetLastError();
		return NULL;
	}
	return found == cudaDriverEntryPointSuccess ? function : NULL;
}

/* 0 for what the run time or the driver does not know. */
static int attribute(const struct gpu_backend *backend, enum cudaDeviceAttr which)
{
	int value = 0;

	if (cudaDeviceGetAttribute(&value, which, backend->device) != cudaSuccess)
		(void)cudaGetLastError();
	return value;
}

/* Asked of the driver, since the run time has no name for it; without linking the driver's library. */
static bool exports_dma_buf(const struct gpu_backend *backend)
{
	CUresult (*ask)(int *, CUdevice_attribute, CUdevice);
	int value = 0;

	*(void **)&ask = cuda_driver_entry("cuDeviceGetAttribute", 11070);
	/* Devices have the same numbers in both. */
	return ask && ask(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, backend->device) == CUDA_SUCCESS &&
	       value;
}

static enum weir_peer_writes peer_writes(const struct gpu_backend *backend)
{
	int order = attribute(backend, cudaDevAttrGPUDirectRDMAWritesOrdering);

	if (order >= cudaGPUDirectRDMAWritesOrderingAllDevices)
		return WEIR_PEER_WRITES_ORDERED_ALL;
	if (order >= cudaGPUDirectRDMAWritesOrderingOwner)
		return WEIR_PEER_WRITES_ORDERED;
	return attribute(backend, cudaDevAttrGPUDirectRDMAFlushWritesOptions) ? WEIR_PEER_WRITES_FLUSHED
									      : WEIR_PEER_WRITES_UNKNOWN;
}

int gpu_peer_flush(struct weir_backend *base)
{
	struct gpu_backend *backend = gpu_of(base);
	int error = gpu_enter(backend);
	gpuError_t code =
		error ? cudaSuccess
		      : cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
							   cudaFlushGPUDirectRDMAWritesToOwner);

	return code ? gpu_fail(backend, code,
			       "cannot flush what other devices wrote to the memory of cuda:%d",
			       backend->device)
		    : error;
}

void gpu_peers(struct gpu_backend *backend, struct weir_backend_properties *out)
{
	int node = -1;

	if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, backend->device) == cudaSuccess)
		out->numa_node = node;
	(void)cudaGetLastError();
	out->peer_dma = attribute(backend, cudaDevAttrGPUDirectRDMASupported) != 0;
	if (out->peer_dma)
		out->peer_writes = peer_writes(backend);
	out->dma_buf = exports_dma_buf(backend);
}
