/* SPDX-License-Identifier: BSD-3-Clause */
/* A HIP device: what it is, its streams, and how other PCI devices get on with its memory. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"

enum { MASK_BITS = 32, MOST_MASK_WORDS = 64 };

int gpu_device_examine(struct gpu_backend *backend)
{
	hipDeviceProp_t properties;
	gpuError_t code = hipGetDeviceProperties(&properties, backend->device);

	if (code)
		return gpu_fail(backend, code, "cannot examine hip:%d", backend->device);
	backend->units = (uint32_t)properties.multiProcessorCount;
	backend->block_lanes = (uint32_t)properties.maxThreadsPerBlock;
	backend->wave_lanes = (uint32_t)properties.warpSize;
	snprintf(backend->name, sizeof(backend->name), "hip:%d %.40s %.30s (%u compute units)",
		 backend->device, properties.name, properties.gcnArchName, backend->units);
	return 0;
}

bool gpu_is_lost(const struct gpu_backend *backend)
{
	(void)backend;
	return false; /* nothing tells */
}

int gpu_launch_limit(const struct gpu_backend *backend, const char *name, uint32_t blocks, uint32_t threads)
{
	return (uint64_t)blocks * threads <= UINT32_MAX
		       ? 0
		       : weir_fail(EINVAL,
				   "kernel \"%s\" launched with %u blocks of %u lanes; %s takes %u lanes at "
				   "most",
				   name, blocks, threads, backend->name, UINT32_MAX);
}

/*
 * The run time lets streams of one priority share few hardware queues, where one waits for
 * the other. Copies have a priority of their own, so that none lies behind a kernel.
 */
gpuError_t gpu_copies_stream(gpuStream_t *stream)
{
	int least = 0, greatest = 0;
	hipError_t code = hipDeviceGetStreamPriorityRange(&least, &greatest);

	return code ? code : hipStreamCreateWithPriority(stream, hipStreamNonBlocking, greatest);
}

/*
 * One with a mask of compute units, be it all of them, has a hardware queue that it shares with no other
 * stream.
 */
gpuError_t gpu_service_stream(const struct gpu_backend *backend, gpuStream_t *stream)
{
	uint32_t mask[MOST_MASK_WORDS] = { 0 };
	uint32_t units =
		backend->units < MASK_BITS * MOST_MASK_WORDS ? backend->units : MASK_BITS * MOST_MASK_WORDS;

	for (uint32_t unit = 0; unit < units; unit++)
		mask[unit / MASK_BITS] |= 1u << unit % MASK_BITS;
	return hipExtStreamCreateWithCUMask(stream, (units + MASK_BITS - 1) / MASK_BITS, mask);
}

/*
 * Is there a register by which the host flushes what others wrote? The run time gives its address, for an
 * int.
 */
static bool has_flush(const struct gpu_backend *backend)
{
	union {
		int value;
		void *address;
	} register_at = { .address = NULL };

	if (hipDeviceGetAttribute(&register_at.value, hipDeviceAttributeHdpMemFlushCntl, backend->device) !=
	    hipSuccess) {
		(void)hipGetLastError();
		return false;
	}
	return register_at.address != NULL;
}

/*
 * Others reach memory that a BAR shows in full. What they wrote is behind the host data path's
 * buffers until these are flushed; that a completion says more was tried on no device yet.
 */
void gpu_peers(struct gpu_backend *backend, struct weir_backend_properties *out)
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
