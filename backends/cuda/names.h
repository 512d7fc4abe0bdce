/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.h: what CUDA calls the things that ../gpu/ is written with.
 *
 * Owns: names and constants alone; what is done in another way is in files of the same folder.
 */
#ifndef WEIR_CUDA_NAMES_H
#define WEIR_CUDA_NAMES_H

#include <cuda_runtime_api.h>

#define GPU_NAME "cuda"

/* Room for a launch's arguments from the first on. */
enum { GPU_LEAST_ARGS_BYTES = 4096 };

/* Device memory comes from a pool and goes back at once: none is ever kept. */
enum { GPU_POOLS_MEMORY = 1 };

/* What only this one has in the vtable. */
#define GPU_OWN_OPS .unasked = true, .examine = gpu_examine, .peer_flush = gpu_peer_flush,

typedef cudaError_t gpuError_t;
typedef cudaEvent_t gpuEvent_t;
typedef cudaStream_t gpuStream_t;
typedef const void *gpuFunction_t;

#define gpuErrorMemoryAllocation cudaErrorMemoryAllocation
#define gpuErrorNotSupported     cudaErrorNotSupported
#define gpuSuccess               cudaSuccess
#define gpuGetErrorName          cudaGetErrorName
#define gpuGetErrorString        cudaGetErrorString
#define gpuGetLastError          cudaGetLastError

#define gpuGetDeviceCount    cudaGetDeviceCount
#define gpuSetDevice         cudaSetDevice
#define gpuDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define gpuMemGetInfo        cudaMemGetInfo

#define gpuStreamCreateWithFlags cudaStreamCreateWithFlags
#define gpuStreamDestroy         cudaStreamDestroy
#define gpuStreamNonBlocking     cudaStreamNonBlocking
#define gpuStreamSynchronize     cudaStreamSynchronize
#define gpuStreamWaitEvent       cudaStreamWaitEvent

#define gpuEventBlockingSync    cudaEventBlockingSync
#define gpuEventCreateWithFlags cudaEventCreateWithFlags
#define gpuEventDestroy         cudaEventDestroy
#define gpuEventDisableTiming   cudaEventDisableTiming
#define gpuEventRecord          cudaEventRecord
#define gpuEventSynchronize     cudaEventSynchronize

#define gpuHostGetDevicePointer cudaHostGetDevicePointer
#define gpuHostRegister         cudaHostRegister
#define gpuHostRegisterIoMemory cudaHostRegisterIoMemory
#define gpuHostRegisterMapped   cudaHostRegisterMapped
#define gpuHostRegisterPortable cudaHostRegisterPortable
#define gpuHostUnregister       cudaHostUnregister

#define gpuMemcpyAsync        cudaMemcpyAsync
#define gpuMemcpyDefault      cudaMemcpyDefault
#define gpuMemcpyHostToDevice cudaMemcpyHostToDevice
#define gpuMemsetAsync        cudaMemsetAsync

#endif
