/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_cuda.h: what the backend uses of HIP, on CUDA's run time and driver. For tests only
 * (-Dhip_platform=nvidia): so the host side, the same files as for AMD GPUs, runs on a real device.
 *
 * Modules, kernels and stores to a word are the driver's calls, everything else the run time's.
 * Both are about one context: the primary one of the device that cudaSetDevice() names, which it
 * also makes current. Their errors have the same numbers. What has no counterpart is refused as
 * a HIP run time refuses it, never pretended.
 */
#ifndef WEIR_HIP_ON_CUDA_H
#define WEIR_HIP_ON_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#if CUDART_VERSION < 12080
#error "weir: HIP on CUDA needs CUDA 12.8 or later, as weir's kernels do"
#endif

#define HIP_ARCH_OPTION "nvcc_arch"

typedef cudaError_t hipError_t;
typedef cudaStream_t hipStream_t;
typedef cudaEvent_t hipEvent_t;
typedef CUmodule hipModule_t;
typedef CUfunction hipFunction_t;
typedef void *hipDeviceptr_t;
typedef enum cudaMemcpyKind hipMemcpyKind;
typedef CUfunction_attribute hipFunction_attribute;

#define hipSuccess             cudaSuccess
#define hipErrorInvalidValue   cudaErrorInvalidValue
#define hipErrorOutOfMemory    cudaErrorMemoryAllocation
#define hipErrorNoDevice       cudaErrorNoDevice
#define hipErrorNotSupported   cudaErrorNotSupported
#define hipErrorNoBinaryForGpu cudaErrorNoKernelImageForDevice
#define hipErrorInvalidImage   cudaErrorInvalidKernelImage

#define hipStreamNonBlocking                cudaStreamNonBlocking
#define hipEventBlockingSync                cudaEventBlockingSync
#define hipEventDisableTiming               cudaEventDisableTiming
#define hipMemcpyHostToDevice               cudaMemcpyHostToDevice
#define hipMemcpyDefault                    cudaMemcpyDefault
#define HIP_FUNC_ATTRIBUTE_NUM_REGS         CU_FUNC_ATTRIBUTE_NUM_REGS
#define HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES

#define hipHostRegisterPortable cudaHostRegisterPortable
#define hipHostRegisterMapped   cudaHostRegisterMapped
#define hipHostRegisterIoMemory cudaHostRegisterIoMemory
#define hipHostRegister         cudaHostRegister
#define hipHostUnregister       cudaHostUnregister

/* Pinned memory is coherent without being asked. */
enum {
	hipHostMallocPortable = cudaHostRegisterPortable,
	hipHostMallocMapped = cudaHostRegisterMapped,
	hipHostMallocCoherent = 0x40000000,
};

enum { HIP_ON_CUDA_PAGE_BYTES = 4096, hipMallocSignalMemory = 2, hipStreamWaitValueEq = 1 };

/** enum hipDeviceAttribute_t - those that the backend asks for */
typedef enum {
	hipDeviceAttributeWallClockRate,
	hipDeviceAttributeIsLargeBar,
	hipDeviceAttributeHdpMemFlushCntl,
	hipDeviceAttributeCanUseStreamWaitValue,
} hipDeviceAttribute_t;

/** struct hipDeviceProp_t - those that the backend looks at */
typedef struct {
	char name[256];
	char gcnArchName[256];
	int multiProcessorCount;
	int maxThreadsPerBlock;
	int warpSize;
} hipDeviceProp_t;

_Static_assert((int)CUDA_ERROR_INVALID_VALUE == (int)cudaErrorInvalidValue &&
		       (int)CUDA_ERROR_OUT_OF_MEMORY == (int)cudaErrorMemoryAllocation &&
		       (int)CUDA_ERROR_NO_BINARY_FOR_GPU == (int)cudaErrorNoKernelImageForDevice &&
		       (int)CUDA_ERROR_INVALID_IMAGE == (int)cudaErrorInvalidKernelImage &&
		       (int)CUDA_ERROR_NOT_SUPPORTED == (int)cudaErrorNotSupported &&
		       (int)CUDA_ERROR_LAUNCH_FAILED == (int)cudaErrorLaunchFailure,
	       "the driver's errors are the run time's");

static inline hipError_t hip_of_driver(CUresult code)
{
	return (hipError_t)code;
}

static inline hipError_t hipGetLastError(void)
{
	return cudaGetLastError();
}

static inline const char *hipGetErrorString(hipError_t code)
{
	return cudaGetErrorString(code);
}

static inline const char *hipGetErrorName(hipError_t code)
{
	return cudaGetErrorName(code);
}

/* ---- devices ---- */

static inline hipError_t hipGetDeviceCount(int *count)
{
	return cudaGetDeviceCount(count);
}

static inline hipError_t hipSetDevice(int device)
{
	return cudaSetDevice(device);
}

/* Of an image with code for several architectures the driver takes what fits, as HIP does by this name. */
static inline hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
	struct cudaDeviceProp found;
	cudaError_t code = cudaGetDeviceProperties(&found, device);

	memset(properties, 0, sizeof(*properties));
	if (code)
		return code;
	memcpy(properties->name, found.name, sizeof(properties->name) - 1);
	snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "sm_%d%d", found.major,
		 found.minor);
	properties->multiProcessorCount = found.multiProcessorCount;
	properties->maxThreadsPerBlock = found.maxThreadsPerBlock;
	properties->warpSize = found.warpSize;
	return cudaSuccess;
}

/*
 * Lanes read a counter of nanoseconds, whose rate nobody needs to tell them; CUDA does not say what the host
 * can reach, and has no memory for signals.
 */
static inline hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
	(void)value;
	(void)attribute;
	(void)device;
	return cudaErrorNotSupported;
}

static inline hipError_t hipDeviceGetPCIBusId(char *text, int bytes, int device)
{
	return cudaDeviceGetPCIBusId(text, bytes, device);
}

static inline hipError_t hipMemGetInfo(size_t *unused, size_t *total)
{
	return cudaMemGetInfo(unused, total);
}

/* ---- streams and events ---- */

static inline hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	return cudaDeviceGetStreamPriorityRange(least, greatest);
}

static inline hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority)
{
	return cudaStreamCreateWithPriority(stream, flags, priority);
}

static inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
	return cudaStreamCreateWithFlags(stream, flags);
}

/* A mask can only be that of all units: no stream is confined to some of them. */
static inline hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words,
						      const uint32_t *mask)
{
	int device = 0, units = 0;
	cudaError_t code = cudaGetDevice(&device);

	if (!code)
		code = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
	for (uint32_t word = 0; word < words; word++)
		units -= __builtin_popcount(mask[word]);
	if (!code && units != 0)
		code = cudaErrorNotSupported;
	return code ? code : cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

static inline hipError_t hipStreamDestroy(hipStream_t stream)
{
	return cudaStreamDestroy(stream);
}

static inline hipError_t hipStreamSynchronize(hipStream_t stream)
{
	return cudaStreamSynchronize(stream);
}

static inline hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	return cudaEventCreateWithFlags(event, flags);
}

static inline hipError_t hipEventDestroy(hipEvent_t event)
{
	return cudaEventDestroy(event);
}

static inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	return cudaEventRecord(event, stream);
}

static inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	return cudaStreamWaitEvent(stream, event, flags);
}

static inline hipError_t hipEventSynchronize(hipEvent_t event)
{
	return cudaEventSynchronize(event);
}

/* ---- memory ---- */

/* HIP's allocations do not wait for kernels. CUDA's plain ones may, and one that stays never ends; those of
 * its pool do not. */
static inline hipError_t hipMalloc(void **address, size_t bytes)
{
	cudaError_t code = cudaMallocAsync(address, bytes, cudaStreamPerThread);

	return code ? code : cudaStreamSynchronize(cudaStreamPerThread);
}

/* Waits for kernels, as HIP's does. */
static inline hipError_t hipFree(void *address)
{
	return cudaFree(address);
}

static inline hipError_t hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags)
{
	(void)address;
	(void)bytes;
	(void)flags;
	return cudaErrorNotSupported;
}

/* Pages of the host, pinned: which does not wait for kernels either. The page before the first tells how many
 * bytes. */
static inline hipError_t hipHostMalloc(void **address, size_t bytes, unsigned flags)
{
	size_t whole = bytes + HIP_ON_CUDA_PAGE_BYTES;
	char *pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cudaError_t code;

	if (pages == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	memcpy(pages, &whole, sizeof(whole));
	*address = pages + HIP_ON_CUDA_PAGE_BYTES;
	code = cudaHostRegister(*address, bytes, flags & ~(unsigned)hipHostMallocCoherent);
	if (code)
		munmap(pages, whole);
	return code;
}

static inline hipError_t hipHostFree(void *address)
{
	char *pages = (char *)address - HIP_ON_CUDA_PAGE_BYTES;
	cudaError_t code = cudaHostUnregister(address);
	size_t whole;

	memcpy(&whole, pages, sizeof(whole));
	munmap(pages, whole);
	return code;
}

static inline hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	return cudaHostGetDevicePointer(device, host, flags);
}

static inline hipError_t hipMemsetAsync(void *address, int value, size_t bytes, hipStream_t stream)
{
	return cudaMemsetAsync(address, value, bytes, stream);
}

static inline hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
					hipStream_t stream)
{
	return cudaMemcpyAsync(to, from, bytes, kind, stream);
}

/* A copy: CUDA writes values only to memory that is none of its pool's, and lanes see it in any case. */
static inline hipError_t hipStreamWriteValue32(hipStream_t stream, void *address, uint32_t value,
					       unsigned flags)
{
	return flags ? cudaErrorInvalidValue
		     : cudaMemcpyAsync(address, &value, sizeof(value), cudaMemcpyHostToDevice, stream);
}

static inline hipError_t hipStreamWaitValue32(hipStream_t stream, void *address, uint32_t value,
					      unsigned flags, uint32_t mask)
{
	(void)stream;
	(void)address;
	(void)value;
	(void)flags;
	(void)mask;
	return cudaErrorNotSupported;
}

static inline hipError_t hipStreamAddCallback(hipStream_t stream, cudaStreamCallback_t call, void *of,
					      unsigned flags)
{
	return cudaStreamAddCallback(stream, call, of, flags);
}

/* ---- kernels ---- */

static inline hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	return hip_of_driver(cuModuleLoadData(module, image));
}

static inline hipError_t hipModuleUnload(hipModule_t module)
{
	return hip_of_driver(cuModuleUnload(module));
}

static inline hipError_t hipModuleGetGlobal(hipDeviceptr_t *location, size_t *bytes, hipModule_t module,
					    const char *name)
{
	CUdeviceptr found = 0;
	CUresult code = cuModuleGetGlobal(&found, bytes, module, name);

	*location = (void *)(uintptr_t)found;
	return hip_of_driver(code);
}

/* HIP has a kernel on the device from here on; CUDA would put it there at its first launch, waiting for those
 * that run. */
static inline hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
	CUresult code = cuModuleGetFunction(function, module, name);

	return hip_of_driver(code ? code : cuFuncLoad(*function));
}

static inline hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute,
					     hipFunction_t function)
{
	return hip_of_driver(cuFuncGetAttribute(value, attribute, function));
}

static inline hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned blocks, unsigned blocks_y,
					       unsigned blocks_z, unsigned threads, unsigned threads_y,
					       unsigned threads_z, unsigned shared_bytes, hipStream_t stream,
					       void **parameters, void **extra)
{
	return hip_of_driver(cuLaunchKernel(function, blocks, blocks_y, blocks_z, threads, threads_y,
					    threads_z, shared_bytes, stream, parameters, extra));
}

#endif
