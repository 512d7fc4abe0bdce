/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.c: a CUDA device that is none (../pretended.h): the run time's calls that the backend makes.
 *
 * A program of one's own with <<<>>> (docs/guide/from-cuda.md) registers its kernels as nvcc has it do; each
 * runs as the kernel that was registered with the cpu backend under its mangled name.
 *
 * With WEIR_PRETENDED_ARCHITECTURE its devices are of one that no image has code for; with WEIR_PRETENDED_OLD
 * its driver is one that loads no kernel when told so; with WEIR_PRETENDED_FAILED a kernel has failed before
 * what is put into a stream.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pretended.h"

enum { PAGE = 4096, FATBIN_MAGIC = 0x3a55ed50 /* but for the highest bit */ };

/** struct library - an image, and its kernels that were asked for; of all devices */
struct library {
	struct kernel *kernels;
};

/** struct kernel - one of a library, and which devices have it in their memory */
struct kernel {
	const char *name;
	void (*entry)(void *);
	bool loaded[PRETENDED_DEVICES];
	struct kernel *next;
};

/* The thread's own stream is on whichever device is current. */
static cudaError_t check_owned(const void *owned)
{
	return owned == cudaStreamPerThread || pretended_owned(owned) ? cudaSuccess
								      : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = PRETENDED_DEVICES;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	(void)device;
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "pretended");
	properties->major = 9;
	properties->multiProcessorCount = PRETENDED_UNITS;
	properties->maxThreadsPerBlock = PRETENDED_BLOCK_LANES;
	properties->warpSize = 32;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%c1:00.0", 'A' + device);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
	*total = PRETENDED_MEMORY_BYTES;
	*unused = pretended_unused();
	return cudaSuccess;
}

/* A kernel has one function on each device: which, the current one tells. */
static CUresult driver_function(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)kernel;
	return getenv("WEIR_PRETENDED_ARCHITECTURE") ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

static CUresult driver_load(CUfunction function)
{
	((struct kernel *)function)->loaded[pretended_current] = true;
	return CUDA_SUCCESS;
}

static CUresult driver_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED && device == 0;
	return CUDA_SUCCESS;
}

/* Everything is done at once here, so that there is nothing but the wait itself. */
static CUresult stream_wait(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	(void)stream;
	if (flags != CU_STREAM_WAIT_VALUE_EQ || !pretended_is_pinned((void *)(uintptr_t)address))
		return CUDA_ERROR_INVALID_VALUE;
	while (__atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE) !=
	       value) /* pairs with whoever lets it go on */
		sched_yield();
	return CUDA_SUCCESS;
}

static CUresult stream_write(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	(void)stream;
	(void)flags;
	__atomic_store_n((uint32_t *)(uintptr_t)address, value,
			 __ATOMIC_RELEASE); /* pairs with whoever takes the word next */
	return CUDA_SUCCESS;
}

static CUresult export_range(void *file, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
			     unsigned long long flags)
{
	if ((address | bytes) % PAGE || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)file = pretended_export(address, bytes, NULL);
	return *(int *)file < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *found)
{
	(void)version;
	(void)flags;
	*function = NULL;
	if (!strcmp(symbol, "cuDeviceGetAttribute"))
		*(CUresult(**)(int *, CUdevice_attribute, CUdevice))function = driver_attribute;
	else if (!strcmp(symbol, "cuKernelGetFunction"))
		*(CUresult(**)(CUfunction *, CUkernel))function = driver_function;
	else if (!strcmp(symbol, "cuFuncLoad") && !getenv("WEIR_PRETENDED_OLD"))
		*(CUresult(**)(CUfunction))function = driver_load;
	else if (!strcmp(symbol, "cuStreamWaitValue32"))
		*(CUresult(**)(CUstream, CUdeviceptr, cuuint32_t, unsigned))function = stream_wait;
	else if (!strcmp(symbol, "cuStreamWriteValue32"))
		*(CUresult(**)(CUstream, CUdeviceptr, cuuint32_t, unsigned))function = stream_write;
	else if (!strcmp(symbol, "cuMemGetHandleForAddressRange"))
		*(CUresult(**)(void *, CUdeviceptr, size_t, CUmemRangeHandleType,
			       unsigned long long))function = export_range;
	*found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}

/* On a device that has failed: not called, as CUDA says of it. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *of)
{
	cudaError_t code = check_owned(stream);

	if (!code && !getenv("WEIR_PRETENDED_FAILED"))
		call(of);
	return code;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void *of, unsigned flags)
{
	cudaError_t code = flags ? cudaErrorInvalidValue : check_owned(stream);

	if (!code)
		call(stream, getenv("WEIR_PRETENDED_FAILED") ? cudaErrorIllegalAddress : cudaSuccess, of);
	return code;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
	int device = pretended_device_of(address);

	memset(attributes, 0, sizeof(*attributes));
	attributes->device = device < 0 ? 0 : device;
	attributes->type = device >= 0                    ? cudaMemoryTypeDevice
			   : pretended_is_pinned(address) ? cudaMemoryTypeHost
							  : cudaMemoryTypeUnregistered;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	switch (attribute) {
	case cudaDevAttrMultiProcessorCount: *value = PRETENDED_UNITS; break;
	case cudaDevAttrMaxThreadsPerBlock: *value = PRETENDED_BLOCK_LANES; break;
	case cudaDevAttrHostNumaId: *value = device; break;
	/* The one orders what others write, the other has to be flushed. */
	case cudaDevAttrGPUDirectRDMAWritesOrdering:
		*value = device ? cudaGPUDirectRDMAWritesOrderingNone : cudaGPUDirectRDMAWritesOrderingOwner;
		break;
	case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
		*value = cudaFlushGPUDirectRDMAWritesOptionHost;
		break;
	default: *value = 1;
	}
	return cudaSuccess;
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
					       enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	(void)target;
	(void)scope;
	return cudaSuccess; /* nobody else writes to its memory */
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= PRETENDED_DEVICES)
		return cudaErrorInvalidDevice;
	pretended_current = device;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	*stream = pretended_own();
	return flags == cudaStreamNonBlocking && *stream ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	*stream = pretended_own();
	return *stream ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	free(stream);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return cudaStreamSynchronize(stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	(void)flags;
	*event = pretended_own();
	return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	free(event);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t code = check_owned(event);

	if (!code)
		code = check_owned(stream);
	pretended_recorded(event, stream);
	return code;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	cudaError_t code =
		flags == 0 && pretended_awaits(stream, event) ? check_owned(event) : cudaErrorInvalidValue;

	return code ? code : check_owned(stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
	*address = pretended_allocate(bytes);
	return *address && !check_owned(stream) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The peers' way: at once, and waiting for everything. */
cudaError_t cudaMalloc(void **address, size_t bytes)
{
	*address = pretended_allocate(bytes);
	return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *address)
{
	pretended_release(address);
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	(void)kind;
	pretended_copy(to, from, bytes);
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	(void)flags;
	*address = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *address)
{
	free(address);
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
	pretended_release(address);
	return check_owned(stream);
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
	pretended_set(address, value, bytes);
	return check_owned(stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	(void)kind;
	pretended_copy(to, from, bytes);
	return check_owned(stream);
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	if (!(flags & cudaHostRegisterMapped))
		pretended_complain("pinned, but not mapped", address);
	switch (pretended_register(address, bytes, flags & cudaHostRegisterIoMemory,
				   flags & cudaHostRegisterPortable)) {
	case PRETENDED_GOOD: return cudaSuccess;
	case PRETENDED_TWICE: return cudaErrorHostMemoryAlreadyRegistered;
	case PRETENDED_REFUSED: return cudaErrorNotPermitted;
	default: return cudaErrorInvalidValue;
	}
}

cudaError_t cudaHostUnregister(void *address)
{
	return pretended_unregister(address) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	(void)flags;
	*device = host;
	return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *image, enum cudaJitOption *options,
				void **values, unsigned count, enum cudaLibraryOption *more,
				void **more_values, unsigned more_count)
{
	struct library *library = calloc(1, sizeof(*library));
	uint32_t magic;

	if (options || values || count || more || more_values || more_count)
		pretended_complain("options of a library that are not known here", image);
	memcpy(&magic, image, sizeof(magic));
	if (!library || (magic & 0x7fffffff) != FATBIN_MAGIC) {
		free(library);
		return cudaErrorInvalidKernelImage;
	}
	*out = (cudaLibrary_t)library;
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t of, const char *name)
{
	struct library *library = (struct library *)of;
	struct kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return cudaErrorMemoryAllocation;
	*kernel = (struct kernel){ .name = name, .entry = pretended_kernel(name), .next = library->kernels };
	library->kernels = kernel;
	*out = (cudaKernel_t)kernel;
	return kernel->entry ? cudaSuccess : cudaErrorSymbolNotFound;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
	memset(attributes, 0, sizeof(*attributes));
	attributes->numRegs = PRETENDED_REGISTERS;
	attributes->localSizeBytes = PRETENDED_LOCAL_BYTES;
	attributes->maxThreadsPerBlock = PRETENDED_BLOCK_LANES;
	return function ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/* Kernels of the program: the address of the host's function that stands for each, and what it stands for. */
static struct {
	const void *function;
	struct kernel kernel;
} own_kernels[16];
static unsigned own_kernel_count;

void **__cudaRegisterFatBinary(void *image);
void **__cudaRegisterFatBinary(void *image)
{
	static void *handle;

	handle = image;
	return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *function, char *device_function, const char *name,
			    int limit, void *thread, void *block, void *block_dim, void *grid_dim, int *warp);
void __cudaRegisterFunction(void **handle, const char *function, char *device_function, const char *name,
			    int limit, void *thread, void *block, void *block_dim, void *grid_dim, int *warp)
{
	(void)handle, (void)device_function, (void)limit, (void)thread, (void)block, (void)block_dim,
		(void)grid_dim, (void)warp;
	if (own_kernel_count == sizeof(own_kernels) / sizeof(own_kernels[0]))
		pretended_complain("too many kernels of the program's own", function);
	own_kernels[own_kernel_count].function = function;
	own_kernels[own_kernel_count++].kernel.name = name;
}

/* What stands between <<< and >>>, for the launch that follows in this thread. */
static __thread struct {
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared_bytes = shared_bytes;
	configuration.stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared_bytes = configuration.shared_bytes;
	*(cudaStream_t *)stream = configuration.stream;
	return cudaSuccess;
}

/* A kernel of the program's, loaded on its first launch as CUDA does; or what a library gave. */
static const struct kernel *kernel_of(const void *function)
{
	for (unsigned i = 0; i < own_kernel_count; i++)
		if (own_kernels[i].function == function) {
			own_kernels[i].kernel.entry = pretended_kernel(own_kernels[i].kernel.name);
			if (!own_kernels[i].kernel.entry)
				pretended_complain(own_kernels[i].kernel.name, function);
			own_kernels[i].kernel.loaded[pretended_current] = true;
			return &own_kernels[i].kernel;
		}
	return function;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters,
			     size_t shared_bytes, cudaStream_t stream)
{
	const struct kernel *kernel = kernel_of(function);

	if (!kernel || shared_bytes || check_owned(stream))
		return cudaErrorInvalidDeviceFunction;
	if (pretended_stays(kernel->name))
		return cudaErrorNotSupported;
	if (!kernel->loaded[pretended_current]) /* a real one would load it now, and wait for those that run
						 */
		pretended_complain("launched before it was loaded", kernel->name);
	return pretended_run(kernel->entry, grid.x, block.x, *(void **)parameters[0])
		       ? cudaErrorInvalidDeviceFunction
		       : cudaSuccess;
}

/* CUDA 13's <<<>>> goes by way of these. */
char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
	return handle != NULL;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	*kernel = (cudaKernel_t)function;
	return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
			       size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **parameters,
			       size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream);
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}
