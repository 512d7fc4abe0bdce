/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.c: a CUDA device that is none, for tests where there is no GPU.
 *
 * Preloaded into a test program, it stands in front of libcudart and libweir. Its
 * kernels are the cpu backend's of the same names, run at their launch, lane after
 * lane, in waves of one. So it shows the backend's host side, not the port: kinds of
 * memory, doorbells, arguments, teardown. Memory of the device can be touched by its
 * own copies and kernels only: anyone else who does dies of it.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/port.h>

#include "kernels.h"

enum {
	MOST_KERNELS = 64, PAGE = 4096, MULTIPROCESSORS = 3, BLOCK_LANES = 1024, REGISTERS = 40, LOCAL_BYTES = 16,
};

/** struct kernel - one of either backend: the entry of the cpu's, or the stand-in of ours */
struct kernel {
	const char *name;
	void (*entry)(void *);
	const void *stand_in;
};

/** struct area - device memory, or pinned host memory */
struct area {
	void *address;
	size_t bytes;
	struct area *next;
};

static struct kernel kernels[MOST_KERNELS];
static unsigned kernel_count;
static struct area *device_memory, *pinned;

static void complain(const char *what, const void *address)
{
	fprintf(stderr, "pretended device: %s: %p\n", what, address);
	abort();
}

static void note(struct kernel kernel)
{
	if (kernel_count == MOST_KERNELS)
		complain("too many kernels", kernel.name);
	kernels[kernel_count++] = kernel;
}

/* Both backends' registrations pass by here on their way to the library. */
void weir_cpu_register_kernel(const char *name, void (*entry)(void *), size_t args_bytes)
{
	void (*next)(const char *, void (*)(void *), size_t);

	*(void **)&next = dlsym(RTLD_NEXT, "weir_cpu_register_kernel");
	note((struct kernel){ name, entry, NULL });
	next(name, entry, args_bytes);
}

void weir_cuda_register_kernel(const char *name, const void *entry, size_t args_bytes, uint32_t block_lanes)
{
	void (*next)(const char *, const void *, size_t, uint32_t);

	*(void **)&next = dlsym(RTLD_NEXT, "weir_cuda_register_kernel");
	note((struct kernel){ name, NULL, entry });
	next(name, entry, args_bytes, block_lanes);
}

static const struct kernel *find(const void *stand_in, const char *name)
{
	for (unsigned i = 0; i < kernel_count; i++)
		if (stand_in ? kernels[i].stand_in == stand_in : kernels[i].entry && !strcmp(kernels[i].name, name))
			return &kernels[i];
	return NULL;
}

static void protect(int access)
{
	for (struct area *area = device_memory; area; area = area->next)
		mprotect(area->address, area->bytes, access);
}

static void add(struct area **list, void *address, size_t bytes)
{
	struct area *area = malloc(sizeof(*area));

	if (!area)
		complain("no memory", address);
	*area = (struct area){ address, bytes, *list };
	*list = area;
}

static size_t take(struct area **list, const void *address)
{
	struct area *found;
	size_t bytes;

	while (*list && (*list)->address != address)
		list = &(*list)->next;
	found = *list;
	if (!found)
		complain("freed, but never allocated or pinned", address);
	bytes = found->bytes;
	*list = found->next;
	free(found);
	return bytes;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = 1;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	(void)device;
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "pretended");
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	(void)device;
	*value = attribute == cudaDevAttrMultiProcessorCount ? MULTIPROCESSORS :
		 attribute == cudaDevAttrMaxThreadsPerBlock  ? BLOCK_LANES : 1;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return device ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	*stream = malloc(1);
	return flags == cudaStreamNonBlocking && *stream ? cudaSuccess : cudaErrorInvalidValue;
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
	*event = malloc(1);
	return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	free(event);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return event && stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

/* Full of rubbish, as memory of a real one may be. */
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
	size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
	void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	(void)stream;
	memset(memory, 0xa5, rounded);
	add(&device_memory, memory, rounded);
	protect(PROT_NONE);
	*address = memory;
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
	(void)stream;
	if (address)
		munmap(address, take(&device_memory, address));
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
	protect(PROT_READ | PROT_WRITE);
	memset(address, value, bytes);
	protect(PROT_NONE);
	return cudaStreamSynchronize(stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind;
	protect(PROT_READ | PROT_WRITE);
	memcpy(to, from, bytes);
	protect(PROT_NONE);
	return cudaStreamSynchronize(stream);
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	if (((uintptr_t)address | bytes) % PAGE || !(flags & cudaHostRegisterMapped))
		complain("pinned, but not in whole pages or not mapped", address);
	add(&pinned, address, bytes);
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *address)
{
	(void)take(&pinned, address);
	return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	(void)flags;
	*device = host;
	return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
	memset(attributes, 0, sizeof(*attributes));
	attributes->numRegs = REGISTERS;
	attributes->localSizeBytes = LOCAL_BYTES;
	attributes->maxThreadsPerBlock = BLOCK_LANES;
	return find(function, NULL) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters, size_t shared_bytes,
			     cudaStream_t stream)
{
	struct weir_cpu_lane **self = dlsym(RTLD_DEFAULT, "weir_cpu_self"); /* this thread's */
	const struct kernel *ours = find(function, NULL);
	const struct kernel *kernel = ours ? find(NULL, ours->name) : NULL;
	struct weir_cpu_lane before;
	u64 lanes = (u64)grid.x * block.x;

	(void)shared_bytes;
	if (!kernel || !self)
		return cudaErrorInvalidDeviceFunction;
	before = **self;
	protect(PROT_READ | PROT_WRITE);
	for (u64 i = 0; i < lanes; i++) {
		**self = (struct weir_cpu_lane){ .lane = 0, .lanes = 1, .thread = i, .threads = lanes, .wave = i };
		kernel->entry(*(void **)parameters[0]);
	}
	protect(PROT_NONE);
	**self = before;
	return cudaStreamSynchronize(stream);
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

__attribute__((destructor)) static void count_leaks(void)
{
	if (device_memory)
		complain("device memory was never freed", device_memory->address);
	if (pinned)
		complain("host memory stayed pinned", pinned->address);
}
