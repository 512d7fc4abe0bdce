/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.h: what a run time calls the things that backends/gpu/ is written with, which is a stand-in here
 * (stand_in.h). HIP's names are of the one file of its folder that comes along.
 */
#ifndef WEIR_TESTS_GPU_NAMES_H
#define WEIR_TESTS_GPU_NAMES_H

#include <stddef.h>

#define GPU_NAME "plain"

enum { GPU_LEAST_ARGS_BYTES = 128 };
enum { GPU_POOLS_MEMORY = 0 };
#define GPU_OWN_OPS /* nothing */

typedef enum gpu_error {
	gpuSuccess,
	gpuErrorMemoryAllocation,
	gpuErrorNotSupported,
	gpuErrorUnknown,
} gpuError_t;
typedef struct stand_in_stream *gpuStream_t;
typedef struct stand_in_event *gpuEvent_t;
typedef const void *gpuFunction_t;

enum { gpuStreamNonBlocking = 1, gpuEventBlockingSync = 1, gpuEventDisableTiming = 2 };
enum { gpuHostRegisterMapped = 1, gpuHostRegisterPortable = 2, gpuHostRegisterIoMemory = 4 };
enum gpu_copy { gpuMemcpyDefault, gpuMemcpyHostToDevice };

const char *gpuGetErrorName(gpuError_t code);
const char *gpuGetErrorString(gpuError_t code);
gpuError_t gpuGetLastError(void);
gpuError_t gpuGetDeviceCount(int *count);
gpuError_t gpuSetDevice(int device);
gpuError_t gpuDeviceGetPCIBusId(char *text, int bytes, int device);
gpuError_t gpuMemGetInfo(size_t *unused, size_t *total);
gpuError_t gpuStreamCreateWithFlags(gpuStream_t *stream, unsigned flags);
gpuError_t gpuStreamDestroy(gpuStream_t stream);
gpuError_t gpuStreamSynchronize(gpuStream_t stream);
gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned flags);
gpuError_t gpuEventCreateWithFlags(gpuEvent_t *event, unsigned flags);
gpuError_t gpuEventDestroy(gpuEvent_t event);
gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream);
gpuError_t gpuEventSynchronize(gpuEvent_t event);
gpuError_t gpuHostGetDevicePointer(void **device, void *host, unsigned flags);
gpuError_t gpuHostRegister(void *host, size_t bytes, unsigned flags);
gpuError_t gpuHostUnregister(void *host);
gpuError_t gpuMemcpyAsync(void *to, const void *from, size_t bytes, enum gpu_copy kind, gpuStream_t stream);
gpuError_t gpuMemsetAsync(void *to, int value, size_t bytes, gpuStream_t stream);

#define hipError_t           gpuError_t
#define hipSuccess           gpuSuccess
#define hipStreamSynchronize gpuStreamSynchronize

#endif
