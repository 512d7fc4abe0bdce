/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.h: what HIP calls the things that ../gpu/ is written with.
 *
 * Owns: names and constants alone; what is done in another way is in files of the same folder.
 */
#ifndef WEIR_HIP_NAMES_H
#define WEIR_HIP_NAMES_H

/* The run time, or what stands for it (tests/backends/hip/on_cuda.h). */
#ifndef WEIR_HIP_HEADER
#define WEIR_HIP_HEADER <hip/hip_runtime_api.h>
#endif
#include WEIR_HIP_HEADER

/* The build's option that says which devices kernels are compiled for. */
#ifndef HIP_ARCH_OPTION
#define HIP_ARCH_OPTION "hip_arch"
#endif

#define GPU_NAME "hip"

/* Room for a launch's arguments from the first on. */
enum { GPU_LEAST_ARGS_BYTES = 65536 };

/* Device memory is kept while a kernel stays. */
enum { GPU_POOLS_MEMORY = 0 };

/* What only this one has in the vtable. */
#define GPU_OWN_OPS /* nothing */

typedef hipError_t gpuError_t;
typedef hipEvent_t gpuEvent_t;
typedef hipStream_t gpuStream_t;
typedef hipFunction_t gpuFunction_t;

#define gpuErrorMemoryAllocation hipErrorOutOfMemory
#define gpuErrorNotSupported     hipErrorNotSupported
#define gpuSuccess               hipSuccess
#define gpuGetErrorName          hipGetErrorName
#define gpuGetErrorString        hipGetErrorString
#define gpuGetLastError          hipGetLastError

#define gpuGetDeviceCount    hipGetDeviceCount
#define gpuSetDevice         hipSetDevice
#define gpuDeviceGetPCIBusId hipDeviceGetPCIBusId
#define gpuMemGetInfo        hipMemGetInfo

#define gpuStreamCreateWithFlags hipStreamCreateWithFlags
#define gpuStreamDestroy         hipStreamDestroy
#define gpuStreamNonBlocking     hipStreamNonBlocking
#define gpuStreamSynchronize     hipStreamSynchronize
#define gpuStreamWaitEvent       hipStreamWaitEvent

#define gpuEventBlockingSync    hipEventBlockingSync
#define gpuEventCreateWithFlags hipEventCreateWithFlags
#define gpuEventDestroy         hipEventDestroy
#define gpuEventDisableTiming   hipEventDisableTiming
#define gpuEventRecord          hipEventRecord
#define gpuEventSynchronize     hipEventSynchronize

#define gpuHostGetDevicePointer hipHostGetDevicePointer
#define gpuHostRegister         hipHostRegister
#define gpuHostRegisterIoMemory hipHostRegisterIoMemory
#define gpuHostRegisterMapped   hipHostRegisterMapped
#define gpuHostRegisterPortable hipHostRegisterPortable
#define gpuHostUnregister       hipHostUnregister

#define gpuMemcpyAsync        hipMemcpyAsync
#define gpuMemcpyDefault      hipMemcpyDefault
#define gpuMemcpyHostToDevice hipMemcpyHostToDevice
#define gpuMemsetAsync        hipMemsetAsync

#endif
