/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.c: a HIP device that is none (../pretended.h): the run time's calls that the backend makes.
 *
 * Its two devices are of the first and the last architecture that the program's kernels were
 * built for, or of that which WEIR_PRETENDED_ARCHITECTURE names.
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/port/image.h>

#include "../pretended.h"

enum { HSA_INVALID_ALLOCATION = 0x1003 };

enum { CLOCK_KHZ = 25000, NAME_BYTES = 64, SIGNAL_BYTES = 8, PAGE_BYTES = 4096 };

/** struct bundle - how an image begins; as many places of code objects follow, each with a name */
struct bundle {
	char magic[24];
	uint64_t count;
};

struct location {
	uint64_t offset;
	uint64_t bytes;
	uint64_t name_bytes;
};

/** struct function - a kernel of a module */
struct function {
	void (*entry)(void *);
	const char *name;
	int device;
	struct function *next;
};

/** struct module - an image on a device */
struct module {
	int device;
	uint64_t *clock;
	struct function *functions;
};

static const struct weir_image *any_image(void)
{
	const struct weir_image *(*next)(const char *, const struct weir_image *);

	*(void **)&next = dlsym(RTLD_DEFAULT, "weir_image_next");
	return next ? next("hip", NULL) : NULL;
}

/* What the @index-th code object of an image was made for: "gfx90a" of "hipv4-amdgcn-amd-amdhsa--gfx90a". */
static bool target(const void *image, uint64_t index, char name[NAME_BYTES])
{
	const struct bundle *bundle = image;
	const char *at = (const char *)(bundle + 1);
	struct location location;
	size_t length;

	if (memcmp(bundle->magic, "__CLANG_OFFLOAD_BUNDLE__", sizeof(bundle->magic)) ||
	    index >= bundle->count)
		return false;
	for (uint64_t i = 0;; i++, at += sizeof(location) + location.name_bytes) {
		memcpy(&location, at, sizeof(location));
		if (i == index)
			break;
	}
	length = strlen("hipv4-amdgcn-amd-amdhsa--");
	if (location.name_bytes <= length ||
	    memcmp(at + sizeof(location), "hipv4-amdgcn-amd-amdhsa--", length) ||
	    memcmp((const char *)image + location.offset, "\177ELF", 4))
		return false;
	snprintf(name, NAME_BYTES, "%.*s", (int)(location.name_bytes - length),
		 at + sizeof(location) + length);
	return true;
}

static void architecture(int device, char name[NAME_BYTES])
{
	const struct weir_image *image = any_image();
	const char *forced = getenv("WEIR_PRETENDED_ARCHITECTURE");

	snprintf(name, NAME_BYTES, "%s", forced ? forced : "none");
	for (uint64_t i = 1; image && !forced && target(image->code, i, name); i++)
		if (device == 0)
			return;
}

static bool fits(const void *image)
{
	char ours[NAME_BYTES], name[NAME_BYTES];

	architecture(pretended_current, ours);
	for (uint64_t i = 1; target(image, i, name); i++)
		if (!strcmp(name, ours))
			return true;
	return false;
}

hipError_t hipGetDeviceCount(int *count)
{
	*count = PRETENDED_DEVICES;
	return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
	char name[NAME_BYTES];

	architecture(device, name);
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "pretended");
	snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "%s:xnack-", name);
	properties->multiProcessorCount = PRETENDED_UNITS;
	properties->maxThreadsPerBlock = PRETENDED_BLOCK_LANES;
	properties->warpSize = device == 0 ? 64 : 32;
	return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%c1:00.0", 'A' + device);
	return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *unused, size_t *total)
{
	*total = PRETENDED_MEMORY_BYTES;
	*unused = pretended_unused();
	return hipSuccess;
}

/* The one has all of its memory in a BAR and streams that wait, unless the environment says no; the other has
 * neither. */
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
	static int flush;

	if (attribute == hipDeviceAttributeHdpMemFlushCntl)
		memcpy(value, &(void *){ device == 0 ? &flush : NULL }, sizeof(void *));
	else if (attribute == hipDeviceAttributeIsLargeBar)
		*value = device == 0;
	else if (attribute == hipDeviceAttributeCanUseStreamWaitValue)
		*value = device == 0 && !getenv("WEIR_PRETENDED_STREAMS_GO_ON");
	else
		*value = CLOCK_KHZ;
	return hipSuccess;
}

hipError_t hipSetDevice(int device)
{
	if (device < 0 || device >= PRETENDED_DEVICES)
		return hipErrorInvalidDevice;
	pretended_current = device;
	return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 1;
	*greatest = -1;
	return hipSuccess;
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority)
{
	*stream = pretended_own();
	return flags == hipStreamNonBlocking && priority >= -1 && priority <= 1 && *stream
		       ? hipSuccess
		       : hipErrorInvalidValue;
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
	return hipStreamCreateWithPriority(stream, flags, 0);
}

hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words, const uint32_t *mask)
{
	if (words != 1 || mask[0] != (1u << PRETENDED_UNITS) - 1)
		pretended_complain("a mask that is not of all units", mask);
	return hipStreamCreateWithPriority(stream, hipStreamNonBlocking, 0);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
	free(stream);
	return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
	return stream ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	(void)flags;
	*event = pretended_own();
	return *event ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipEventDestroy(hipEvent_t event)
{
	free(event);
	return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	pretended_recorded(event, stream);
	return pretended_owned(event) && pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	if (flags || !pretended_awaits(stream, event))
		return hipErrorInvalidValue;
	return pretended_owned(event) && pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
	return event ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipMalloc(void **address, size_t bytes)
{
	*address = pretended_allocate(bytes);
	return *address ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipFree(void *address)
{
	if (pretended_is_pinned(address)) /* a signal */
		return hipHostFree(address);
	pretended_release(address);
	return hipSuccess;
}

/* A word that the host sees, too, alone in its page. */
hipError_t hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags)
{
	if (flags != hipMallocSignalMemory || bytes != SIGNAL_BYTES)
		return hipErrorInvalidValue;
	*address = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (*address == MAP_FAILED)
		return hipErrorOutOfMemory;
	pretended_pin(*address, PAGE_BYTES, false);
	return hipSuccess;
}

hipError_t hipHostMalloc(void **address, size_t bytes, unsigned flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return hipErrorOutOfMemory;
	if (!(flags & hipHostMallocMapped) || !(flags & hipHostMallocCoherent))
		pretended_complain("host memory that a kernel that runs does not see change", memory);
	memset(memory, 0x5a, bytes);
	pretended_pin(memory, bytes, (flags & hipHostMallocPortable) != 0);
	*address = memory;
	return hipSuccess;
}

hipError_t hipHostFree(void *address)
{
	munmap(address, pretended_unpin(address));
	return hipSuccess;
}

hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	(void)flags;
	*device = host;
	return hipSuccess;
}

hipError_t hipMemsetAsync(void *address, int value, size_t bytes, hipStream_t stream)
{
	pretended_set(address, value, bytes);
	return pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
	(void)kind;
	pretended_copy(to, from, bytes);
	return pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
}

/* Streams here do what they are told at once: the caller waits. */
hipError_t hipStreamWaitValue32(hipStream_t stream, void *address, uint32_t value, unsigned flags,
				uint32_t mask)
{
	if (flags != hipStreamWaitValueEq || mask != UINT32_MAX || !pretended_is_pinned(address))
		return hipErrorInvalidValue;
	while (__atomic_load_n((uint32_t *)address, __ATOMIC_ACQUIRE) !=
	       value) /* pairs with whoever lets it go on */
		sched_yield();
	return pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void *of, unsigned flags)
{
	if (!pretended_owned(stream) || flags)
		return hipErrorInvalidHandle;
	call(stream, hipSuccess, of);
	return hipSuccess;
}

hipError_t hipStreamWriteValue32(hipStream_t stream, void *address, uint32_t value, unsigned flags)
{
	(void)flags;
	if (pretended_is_pinned(address)) {
		__atomic_store_n((uint32_t *)address, value,
				 __ATOMIC_RELEASE); /* pairs with whoever takes the word next */
		return pretended_owned(stream) ? hipSuccess : hipErrorInvalidHandle;
	}
	return hipMemcpyAsync(address, &value, sizeof(value), hipMemcpyHostToDevice, stream);
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image)
{
	struct module *module;

	if (!fits(image))
		return hipErrorNoBinaryForGpu;
	module = calloc(1, sizeof(*module));
	if (!module)
		return hipErrorOutOfMemory;
	module->device = pretended_current;
	module->clock = pretended_allocate(sizeof(*module->clock));
	*out = (hipModule_t)module;
	return hipSuccess;
}

/* The only variable there is: what the clock of kernels goes by. */
hipError_t hipModuleGetGlobal(hipDeviceptr_t *location, size_t *bytes, hipModule_t of, const char *name)
{
	struct module *module = (struct module *)of;

	if (strcmp(name, "weir_hip_ns_per_tick"))
		return hipErrorNotFound;
	*location = module->clock;
	*bytes = sizeof(*module->clock);
	return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t of, const char *name)
{
	struct module *module = (struct module *)of;
	struct function *function = calloc(1, sizeof(*function));

	if (!function || module->device != pretended_current)
		pretended_complain("a module of another device than the thread's current one", module);
	*function = (struct function){ pretended_kernel(name), name, module->device, module->functions };
	module->functions = function;
	*out = (hipFunction_t)function;
	return function->entry ? hipSuccess : hipErrorNotFound;
}

hipError_t hipModuleUnload(hipModule_t of)
{
	struct module *module = (struct module *)of;

	while (module->functions) {
		struct function *function = module->functions;

		module->functions = function->next;
		free(function);
	}
	pretended_release(module->clock);
	free(module);
	return hipSuccess;
}

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute, hipFunction_t function)
{
	(void)function;
	*value = attribute == HIP_FUNC_ATTRIBUTE_NUM_REGS ? PRETENDED_REGISTERS : PRETENDED_LOCAL_BYTES;
	return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t of, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
				 unsigned threads, unsigned threads_y, unsigned threads_z,
				 unsigned shared_bytes, hipStream_t stream, void **parameters, void **extra)
{
	const struct function *function = (const struct function *)of;

	if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || shared_bytes || extra)
		return hipErrorInvalidValue;
	if (function->device != pretended_current)
		pretended_complain("a kernel of another device than the thread's current one",
				   function->name);
	if (!pretended_owned(stream))
		return hipErrorInvalidHandle;
	if (pretended_stays(function->name))
		return hipErrorNotSupported;
	return pretended_run(function->entry, blocks, threads, *(void **)parameters[0]) ? hipErrorInvalidValue
											: hipSuccess;
}

int hsa_amd_portable_export_dmabuf(const void *address, size_t bytes, int *file, uint64_t *offset)
{
	*file = pretended_export((uintptr_t)address, bytes, offset);
	return *file < 0 ? HSA_INVALID_ALLOCATION : 0;
}

hipError_t hipHostRegister(void *address, size_t bytes, unsigned flags)
{
	if (!(flags & hipHostRegisterMapped))
		pretended_complain("registered, but not mapped", address);
	switch (pretended_register(address, bytes, flags & hipHostRegisterIoMemory,
				   flags & hipHostRegisterPortable)) {
	case PRETENDED_GOOD: return hipSuccess;
	case PRETENDED_TWICE: return hipErrorHostMemoryAlreadyRegistered;
	case PRETENDED_REFUSED: return hipErrorNotSupported;
	default: return hipErrorInvalidValue;
	}
}

hipError_t hipHostUnregister(void *address)
{
	return pretended_unregister(address) ? hipSuccess : hipErrorHostMemoryNotRegistered;
}

hipError_t hipGetLastError(void)
{
	return hipSuccess;
}
