/* SPDX-License-Identifier: BSD-3-Clause */
/* The HIP backend's vtable: devices, launches, kernels that stay. */
#include "hip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ARGS_BYTES = 65536, ARGS_ALIGNMENT = 64, MASK_BITS = 32, MOST_MASK_WORDS = 64 };

static const struct weir_backend_ops hip_ops;

static void hip_close(struct weir_backend *base)
{
	struct hip_backend *backend = hip_of(base);

	(void)hipSetDevice(backend->device);
	if (backend->launches)
		(void)hipStreamSynchronize(backend->launches);
	hip_gates_end(backend);
	hip_let_go(backend, HIP_DEVICE_MEMORY, backend->args, backend->args_bytes);
	hip_let_go(backend, HIP_HOST_MEMORY, backend->staging, backend->args_bytes);
	hip_kernels_unload(backend);
	if (backend->ended)
		(void)hipEventDestroy(backend->ended);
	if (backend->copies)
		(void)hipStreamDestroy(backend->copies);
	if (backend->launches)
		(void)hipStreamDestroy(backend->launches);
	(void)hipGetLastError();
	free(backend);
}

static int count_devices(int *count)
{
	hipError_t code = hipGetDeviceCount(count);

	(void)hipGetLastError();
	if (code || *count == 0)
		return hip_no_device(code ? code : hipErrorNoDevice);
	return 0;
}

static int hip_devices(uint32_t *count)
{
	int number = 0;
	int error = count_devices(&number);

	*count = (uint32_t)number;
	return error;
}

/* "" is device 0; else a number below @count. */
static int choose_device(const char *selector, int count, int *device)
{
	char *end;
	unsigned long number = strtoul(selector, &end, 10);

	*device = 0;
	if (!*selector)
		return 0;
	if (*selector < '0' || *selector > '9' || *end)
		return weir_fail(ENODEV, "\"hip:%s\" is no device: write hip or hip:N with a number, such as hip:0", selector);
	if (number >= (unsigned long)count)
		return weir_fail(ENODEV, "there is no hip:%s: this process sees %d device%s, hip:0%s", selector, count,
				 count == 1 ? "" : "s", count == 1 ? "" : " and on");
	*device = (int)number;
	return 0;
}

/* What the backend needs of a device, and what it tells of it. */
static int examine(struct hip_backend *backend)
{
	hipDeviceProp_t properties;
	hipError_t code = hipGetDeviceProperties(&properties, backend->device);

	if (code)
		return hip_fail(code, "cannot examine hip:%d", backend->device);
	backend->compute_units = (uint32_t)properties.multiProcessorCount;
	backend->block_lanes = (uint32_t)properties.maxThreadsPerBlock;
	backend->wave_lanes = (uint32_t)properties.warpSize;
	snprintf(backend->architecture, sizeof(backend->architecture), "%.63s", properties.gcnArchName);
	snprintf(backend->name, sizeof(backend->name), "hip:%d %.40s %.30s (%u compute units)", backend->device,
		 properties.name, backend->architecture, backend->compute_units);
	return 0;
}

/* Room for the largest arguments; waits for launches that still read the old ones. */
static int make_args(struct hip_backend *backend, size_t bytes)
{
	size_t room = bytes < LEAST_ARGS_BYTES ? LEAST_ARGS_BYTES : bytes;
	hipError_t code;

	if (backend->args_bytes >= bytes)
		return 0;
	code = hipStreamSynchronize(backend->launches);
	hip_let_go(backend, HIP_DEVICE_MEMORY, backend->args, backend->args_bytes);
	hip_let_go(backend, HIP_HOST_MEMORY, backend->staging, backend->args_bytes);
	backend->args = backend->staging = NULL;
	backend->args_bytes = backend->staged = 0;
	if (!code)
		code = hip_memory(backend, HIP_DEVICE_MEMORY, room, &backend->args);
	if (!code)
		code = hip_memory(backend, HIP_HOST_MEMORY, room, &backend->staging);
	if (code)
		return hip_fail(code, "cannot allocate %zu bytes for arguments on %s", room, backend->name);
	backend->args_bytes = room;
	return 0;
}

/*
 * The run time lets streams of one priority share few hardware queues, where one waits for
 * the other. Copies have a priority of their own, so that none lies behind a kernel.
 */
static int make_streams(struct hip_backend *backend)
{
	int least = 0, greatest = 0;
	hipError_t code = hipSetDevice(backend->device);

	if (!code)
		code = hipDeviceGetStreamPriorityRange(&least, &greatest);
	if (!code)
		code = hipStreamCreateWithPriority(&backend->copies, hipStreamNonBlocking, greatest);
	if (!code)
		code = hipStreamCreateWithFlags(&backend->launches, hipStreamNonBlocking);
	/* The host sleeps while it waits: controllers may need its core. */
	if (!code)
		code = hipEventCreateWithFlags(&backend->ended, hipEventBlockingSync | hipEventDisableTiming);
	return code ? hip_fail(code, "cannot set up %s", backend->name) : 0;
}

static int hip_open(const char *selector, const struct weir_context_options *options, struct weir_backend **out)
{
	struct hip_backend *backend;
	int count = 0, device = 0;
	int error = count_devices(&count);

	(void)options; /* all of them are the cpu's */
	if (!error)
		error = choose_device(selector, count, &device);
	if (error)
		return error;
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return weir_fail(ENOMEM, "no memory for the hip backend");
	backend->base.ops = &hip_ops;
	backend->device = device;
	error = examine(backend);
	if (!error)
		error = make_streams(backend);
	if (!error)
		error = hip_kernels_load(backend);
	if (!error)
		error = make_args(backend, LEAST_ARGS_BYTES);
	if (error) {
		hip_close(&backend->base);
		return error;
	}
	*out = &backend->base;
	return 0;
}

/*
 * Find a kernel that may be launched like this. Kernels of a library that was loaded since the
 * context opened are put on the device first.
 */
static int take_kernel(struct hip_backend *backend, const char *name, uint32_t blocks, uint32_t threads, size_t bytes,
		       const struct hip_kernel **kernel)
{
	const struct weir_image *image = weir_image_find("hip", name);
	int error = weir_launch_check(&(struct weir_launch_check){
		.backend = "hip", .kernel = name, .known = image, .takes_bytes = image ? image->args_bytes : 0,
		.given_bytes = bytes, .blocks = blocks, .threads = threads,
		.most_threads = image ? image->block_lanes : 0 });

	if (!error && (uint64_t)blocks * threads > UINT32_MAX)
		error = weir_fail(EINVAL, "kernel \"%s\" launched with %u blocks of %u lanes; %s takes %u lanes at most",
				  name, blocks, threads, backend->name, UINT32_MAX);
	if (!error)
		error = hip_enter(backend);
	if (!error)
		error = hip_kernels_load(backend);
	if (!error)
		*kernel = hip_kernel_find(backend, name);
	return error;
}

static hipError_t start(const struct hip_kernel *kernel, uint32_t blocks, uint32_t threads, void *args, hipStream_t stream)
{
	void *parameters[] = { &args };

	return hipModuleLaunchKernel(kernel->function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

/*
 * Arguments go ahead of their kernel in its stream, behind the kernel before, which read the same
 * place. They wait in pinned memory, from which alone a copy does not keep the host waiting.
 */
static hipError_t enqueue(struct hip_backend *backend, const struct hip_kernel *kernel, uint32_t blocks, uint32_t threads,
			  const void *args)
{
	size_t bytes = kernel->image->args_bytes;
	hipError_t code = hipSuccess;
	char *staged;

	if (backend->args_bytes - backend->staged < bytes) {
		code = hipStreamSynchronize(backend->launches);
		backend->staged = 0;
	}
	staged = (char *)backend->staging + backend->staged;
	memcpy(staged, args, bytes);
	if (!code)
		code = hipMemcpyAsync(backend->args, staged, bytes, hipMemcpyHostToDevice, backend->launches);
	backend->staged += (bytes + ARGS_ALIGNMENT - 1) & ~(size_t)(ARGS_ALIGNMENT - 1);
	if (backend->staged > backend->args_bytes)
		backend->staged = backend->args_bytes;
	return code ? code : start(kernel, blocks, threads, backend->args, backend->launches);
}

static int hip_launch(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads, const void *args,
		      size_t bytes)
{
	struct hip_backend *backend = hip_of(base);
	const struct hip_kernel *kernel = NULL;
	hipError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (!error)
		error = make_args(backend, bytes);
	if (error)
		return error;
	code = enqueue(backend, kernel, blocks, threads, args);
	if (code)
		return hip_fail(code, "cannot launch kernel \"%s\" on %s", name, backend->name);
	backend->latest = kernel->image->kernel;
	return 0;
}

/** struct hip_service - a kernel that stays: its own stream, its own arguments */
struct hip_service {
	hipStream_t stream;
	void *args;
	size_t args_bytes;
};

static void hip_serve_end(struct weir_backend *base, void *service)
{
	struct hip_backend *backend = hip_of(base);
	struct hip_service *staying = service;

	if (hip_enter(backend))
		return;
	if (staying->stream) {
		(void)hipStreamSynchronize(staying->stream);
		(void)hipStreamDestroy(staying->stream);
	}
	hip_let_go(backend, HIP_DEVICE_MEMORY, staying->args, staying->args_bytes);
	(void)hipGetLastError();
	free(staying);
	hip_service_ended();
}

/* One with a mask of compute units, be it all of them, has a hardware queue that it shares with no other stream. */
static hipError_t make_own_stream(const struct hip_backend *backend, hipStream_t *stream)
{
	uint32_t mask[MOST_MASK_WORDS] = { 0 };
	uint32_t units = backend->compute_units < MASK_BITS * MOST_MASK_WORDS ? backend->compute_units :
										  MASK_BITS * MOST_MASK_WORDS;

	for (uint32_t unit = 0; unit < units; unit++)
		mask[unit / MASK_BITS] |= 1u << unit % MASK_BITS;
	return hipExtStreamCreateWithCUMask(stream, (units + MASK_BITS - 1) / MASK_BITS, mask);
}

/* Arguments are in place before the launch, so that its stream has nothing but the kernel. */
static hipError_t start_service(struct hip_backend *backend, struct hip_service *service, const struct hip_kernel *kernel,
				uint32_t blocks, uint32_t threads, const void *args)
{
	hipError_t code = make_own_stream(backend, &service->stream);

	service->args_bytes = kernel->image->args_bytes;
	if (!code)
		code = hip_memory(backend, HIP_DEVICE_MEMORY, service->args_bytes, &service->args);
	if (!code)
		code = hipMemcpyAsync(service->args, args, kernel->image->args_bytes, hipMemcpyHostToDevice,
				      backend->copies);
	if (!code)
		code = hipStreamSynchronize(backend->copies);
	hip_service_begins(); /* hip_serve_end() is the end, whatever follows */
	return code ? code : start(kernel, blocks, threads, service->args, service->stream);
}

static int hip_serve(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads, const void *args,
		     size_t bytes, void **out)
{
	struct hip_backend *backend = hip_of(base);
	const struct hip_kernel *kernel = NULL;
	struct hip_service *service;
	hipError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (error)
		return error;
	service = calloc(1, sizeof(*service));
	if (!service)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", name);
	code = start_service(backend, service, kernel, blocks, threads, args);
	if (code) {
		error = hip_fail(code, "cannot start kernel \"%s\" on %s", name, backend->name);
		hip_serve_end(base, service);
		return error;
	}
	*out = service;
	return 0;
}

static int hip_kernel_info(struct weir_backend *base, const char *name, struct weir_kernel_info *info)
{
	struct hip_backend *backend = hip_of(base);
	const struct hip_kernel *kernel;
	int registers = 0, spilled = 0;
	hipError_t code;
	int error = weir_image_find("hip", name) ? hip_enter(backend) : weir_no_kernel("hip", name);

	if (!error)
		error = hip_kernels_load(backend);
	if (error)
		return error;
	kernel = hip_kernel_find(backend, name);
	code = hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, kernel->function);
	if (!code)
		code = hipFuncGetAttribute(&spilled, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel->function);
	if (code)
		return hip_fail(code, "cannot examine kernel \"%s\" on %s", name, backend->name);
	info->registers = (uint32_t)registers;
	info->local_bytes = (uint32_t)spilled;
	info->block_lanes = kernel->image->block_lanes;
	return 0;
}

static int hip_synchronise(struct weir_backend *base)
{
	struct hip_backend *backend = hip_of(base);
	int error = hip_enter(backend);
	hipError_t code;

	if (error)
		return error;
	code = hipEventRecord(backend->ended, backend->launches);
	if (!code)
		code = hipEventSynchronize(backend->ended);
	return code ? hip_fail(code, "a kernel failed on %s (latest launched: \"%s\")", backend->name,
			       backend->latest ? backend->latest : "none") : 0;
}

static const struct weir_backend_ops hip_ops = {
	.size = sizeof(struct weir_backend_ops),
	.name = "hip",
	.devices = hip_devices,
	.pci_address = hip_pci_address,
	.open = hip_open,
	.close = hip_close,
	.allocate = hip_allocate,
	.release = hip_release,
	.copy_in = hip_copy_in,
	.copy_out = hip_copy_out,
	.launch = hip_launch,
	.kernel_info = hip_kernel_info,
	.synchronise = hip_synchronise,
	.serve = hip_serve,
	.serve_end = hip_serve_end,
	.properties = hip_properties,
	.stream_open = hip_stream_open,
	.stream_close = hip_stream_close,
	.stream_copy = hip_stream_copy,
	.stream_launch = hip_stream_launch,
	.stream_wait = hip_stream_wait,
	.stream_join = hip_stream_join,
	.defer = hip_defer,
	.resume = hip_resume,
	.map_registers = hip_map_registers,
	.unmap_registers = hip_unregister,
	.register_host = hip_register_host,
	.unregister_host = hip_unregister,
	.export_memory = hip_export_memory,
};

const struct weir_backend_ops *const weir_backend_module = &hip_ops;
