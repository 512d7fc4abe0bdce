/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.c: a CUDA device that is none, for tests where there is no GPU.
 *
 * Preloaded into a test program, it stands in front of libcudart and libweir. Its
 * kernels are the cpu backend's of the same names, run at their launch, lane after
 * lane, in waves of one. So it shows the backend's host side, not the port: kinds of
 * memory, doorbells, arguments, teardown. Memory of the device can be touched by its
 * own copies and kernels only: anyone else who does dies of it.
 *
 * It shows itself as two. Whoever mixes them up dies of that: a stream, an event or
 * memory of the one while the other is the thread's current device.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/port.h>

#include "kernels.h"

enum {
	MOST_KERNELS = 128, PAGE = 4096, MULTIPROCESSORS = 3, BLOCK_LANES = 1024, REGISTERS = 40, LOCAL_BYTES = 16,
	DEVICES = 2, EVERY_DEVICE = -1,
};

#define MEMORY_BYTES ((size_t)16 << 30)

/** struct kernel - one of either backend: the entry of the cpu's, or the stand-in of ours */
struct kernel {
	const char *name;
	void (*entry)(void *);
	const void *stand_in;
	bool loaded[DEVICES];
};

/** struct area - device memory, or pinned host memory */
struct area {
	void *address;
	size_t bytes;
	int device; /* EVERY_DEVICE: all see it */
	struct area *next;
};

/** struct owned - what a stream or an event is: something of a device */
struct owned {
	int device;
};

static struct kernel kernels[MOST_KERNELS];
static unsigned kernel_count;
static struct area *device_memory, *pinned;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around all of the above, and kernels */
static __thread int current;

static void complain(const char *what, const void *address)
{
	fprintf(stderr, "pretended device: %s: %p\n", what, address);
	signal(SIGABRT, SIG_DFL); /* no test goes on after this: locks are held */
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
	note((struct kernel){ .name = name, .entry = entry });
	next(name, entry, args_bytes);
}

void weir_cuda_register_kernel(const char *name, const void *entry, size_t args_bytes, uint32_t block_lanes)
{
	void (*next)(const char *, const void *, size_t, uint32_t);

	*(void **)&next = dlsym(RTLD_NEXT, "weir_cuda_register_kernel");
	note((struct kernel){ .name = name, .stand_in = entry });
	next(name, entry, args_bytes, block_lanes);
}

static struct kernel *find(const void *stand_in, const char *name)
{
	for (unsigned i = 0; i < kernel_count; i++)
		if (stand_in ? kernels[i].stand_in == stand_in : kernels[i].entry && !strcmp(kernels[i].name, name))
			return &kernels[i];
	return NULL;
}

/* Memory of the current device, which alone its copies and kernels may touch. */
static void protect(int access)
{
	for (struct area *area = device_memory; area; area = area->next)
		if (area->device == current)
			mprotect(area->address, area->bytes, access);
}

/* Let copies and kernels in, one at a time, and out again. */
static void enter(void)
{
	pthread_mutex_lock(&mutex);
	signal(SIGSEGV, SIG_DFL); /* as for complain() */
	protect(PROT_READ | PROT_WRITE);
}

static void leave(void)
{
	protect(PROT_NONE);
	pthread_mutex_unlock(&mutex);
}

static void add(struct area **list, void *address, size_t bytes, int device)
{
	struct area *area = malloc(sizeof(*area));

	if (!area)
		complain("no memory", address);
	*area = (struct area){ address, bytes, device, *list };
	*list = area;
}

static void must_be_current(int device, const void *what)
{
	if (device != current && device != EVERY_DEVICE)
		complain("of another device than the thread's current one", what);
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
	must_be_current(found->device, address);
	bytes = found->bytes;
	*list = found->next;
	free(found);
	return bytes;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = DEVICES;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	(void)device;
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "pretended");
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%c1:00.0", 'A' + device);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
	*total = MEMORY_BYTES;
	*unused = MEMORY_BYTES;
	pthread_mutex_lock(&mutex);
	for (struct area *area = device_memory; area; area = area->next)
		*unused -= area->device == current ? area->bytes : 0;
	pthread_mutex_unlock(&mutex);
	return cudaSuccess;
}

static CUresult driver_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED && device == 0;
	return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
					     unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
	(void)version;
	(void)flags;
	*found = strcmp(symbol, "cuDeviceGetAttribute") ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
	*(CUresult(**)(int *, CUdevice_attribute, CUdevice))function =
		*found == cudaDriverEntryPointSuccess ? driver_attribute : NULL;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	switch (attribute) {
	case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
	case cudaDevAttrMaxThreadsPerBlock: *value = BLOCK_LANES; break;
	case cudaDevAttrHostNumaId: *value = device; break;
	/* The one orders what others write, the other has to be flushed. */
	case cudaDevAttrGPUDirectRDMAWritesOrdering:
		*value = device ? cudaGPUDirectRDMAWritesOrderingNone : cudaGPUDirectRDMAWritesOrderingOwner;
		break;
	case cudaDevAttrGPUDirectRDMAFlushWritesOptions: *value = cudaFlushGPUDirectRDMAWritesOptionHost; break;
	default: *value = 1;
	}
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= DEVICES)
		return cudaErrorInvalidDevice;
	current = device;
	return cudaSuccess;
}

static void *own(void)
{
	struct owned *owned = malloc(sizeof(*owned));

	if (owned)
		owned->device = current;
	return owned;
}

/* What is queued has to be of the current device. */
static cudaError_t check_owned(const void *owned)
{
	if (!owned)
		return cudaErrorInvalidResourceHandle;
	must_be_current(((const struct owned *)owned)->device, owned);
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	*stream = own();
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
	*event = own();
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

	return code ? code : check_owned(stream);
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

	if (memory == MAP_FAILED || check_owned(stream))
		return cudaErrorMemoryAllocation;
	memset(memory, 0xa5, rounded);
	pthread_mutex_lock(&mutex);
	add(&device_memory, memory, rounded, current);
	leave();
	*address = memory;
	return cudaSuccess;
}

/* The peers' way: at once, and waiting for everything. */
cudaError_t cudaMalloc(void **address, size_t bytes)
{
	struct owned stream = { .device = current };

	return cudaMallocAsync(address, bytes, (cudaStream_t)&stream);
}

cudaError_t cudaFree(void *address)
{
	struct owned stream = { .device = current };

	return cudaFreeAsync(address, (cudaStream_t)&stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	struct owned stream = { .device = current };

	return cudaMemcpyAsync(to, from, bytes, kind, (cudaStream_t)&stream);
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
	pthread_mutex_lock(&mutex);
	if (address)
		munmap(address, take(&device_memory, address));
	pthread_mutex_unlock(&mutex);
	return check_owned(stream);
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
	enter();
	memset(address, value, bytes);
	leave();
	return check_owned(stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind;
	enter();
	memcpy(to, from, bytes);
	leave();
	return check_owned(stream);
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	if (((uintptr_t)address | bytes) % PAGE || !(flags & cudaHostRegisterMapped))
		complain("pinned, but not in whole pages or not mapped", address);
	pthread_mutex_lock(&mutex);
	add(&pinned, address, bytes, flags & cudaHostRegisterPortable ? EVERY_DEVICE : current);
	pthread_mutex_unlock(&mutex);
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *address)
{
	pthread_mutex_lock(&mutex);
	(void)take(&pinned, address);
	pthread_mutex_unlock(&mutex);
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
	struct kernel *kernel = find(function, NULL);

	memset(attributes, 0, sizeof(*attributes));
	attributes->numRegs = REGISTERS;
	attributes->localSizeBytes = LOCAL_BYTES;
	attributes->maxThreadsPerBlock = BLOCK_LANES;
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	kernel->loaded[current] = true;
	return cudaSuccess;
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
	if (!kernel || !self || check_owned(stream))
		return cudaErrorInvalidDeviceFunction;
	/* Those stay, and here nothing runs beside them. */
	if (!strcmp(ours->name, "weir_controller") || !strcmp(ours->name, "weir_service"))
		return cudaErrorNotSupported;
	if (!ours->loaded[current]) /* a real one would load it now, and wait for those that run */
		complain("launched before it was loaded", ours->name);
	before = **self;
	enter();
	for (u64 i = 0; i < lanes; i++) {
		**self = (struct weir_cpu_lane){ .lane = 0, .lanes = 1, .thread = i, .threads = lanes, .wave = i };
		kernel->entry(*(void **)parameters[0]);
	}
	leave();
	**self = before;
	return cudaSuccess;
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
