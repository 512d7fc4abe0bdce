/* SPDX-License-Identifier: BSD-3-Clause */
/* The vtable of CUDA's backend and of HIP's: devices, launches, persistent kernels. */
#include "gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "../../runtime/backend/error.h"

static const struct weir_backend_ops gpu_ops;

static void gpu_close(struct weir_backend *base)
{
	struct gpu_backend *backend = gpu_of(base);

	(void)gpuSetDevice(backend->device);
	if (backend->launches)
		(void)gpuStreamSynchronize(backend->launches);
	gpu_gates_end(backend);
	gpu_let_go(backend, GPU_DEVICE_MEMORY, backend->args, backend->args_bytes);
	gpu_staging_end(backend);
	gpu_kernels_unload(backend);
	if (backend->ended)
		(void)gpuEventDestroy(backend->ended);
	if (backend->copies)
		(void)gpuStreamDestroy(backend->copies);
	if (backend->launches)
		(void)gpuStreamDestroy(backend->launches);
	(void)gpuGetLastError();
	free(backend);
}

static int count_devices(int *count)
{
	gpuError_t code = gpuGetDeviceCount(count);

	(void)gpuGetLastError();
	if (code || *count == 0)
		return gpu_no_device(code);
	return 0;
}

static int gpu_devices(uint32_t *count)
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
		return weir_fail(ENODEV,
				 "\"" GPU_NAME ":%s\" is no device: write " GPU_NAME " or " GPU_NAME
				 ":N with a number, such as " GPU_NAME ":0",
				 selector);
	if (number >= (unsigned long)count)
		return weir_fail(ENODEV,
				 "there is no " GPU_NAME ":%s: this process sees %d device%s, " GPU_NAME
				 ":0%s",
				 selector, count, count == 1 ? "" : "s", count == 1 ? "" : " and on");
	*device = (int)number;
	return 0;
}

/* Room for the largest arguments; waits for launches that still read the old ones. */
static int make_args(struct gpu_backend *backend, size_t bytes)
{
	size_t room = bytes < GPU_LEAST_ARGS_BYTES ? GPU_LEAST_ARGS_BYTES : bytes;
	gpuError_t code;

	if (backend->args_bytes >= bytes)
		return 0;
	code = gpuStreamSynchronize(backend->launches);
	gpu_let_go(backend, GPU_DEVICE_MEMORY, backend->args, backend->args_bytes);
	gpu_staging_end(backend);
	backend->args = NULL;
	backend->args_bytes = 0;
	if (!code)
		code = gpu_memory(backend, GPU_DEVICE_MEMORY, room, &backend->args);
	if (!code)
		code = gpu_staging_begin(backend, room);
	if (code)
		return gpu_fail(backend, code, "cannot allocate %zu bytes for arguments on %s", room,
				backend->name);
	backend->args_bytes = room;
	return 0;
}

static int make_streams(struct gpu_backend *backend)
{
	gpuError_t code = gpuSetDevice(backend->device);

	if (!code)
		code = gpu_copies_stream(&backend->copies);
	if (!code)
		code = gpuStreamCreateWithFlags(&backend->launches, gpuStreamNonBlocking);
	/* The host sleeps while it waits: controllers may need its core. */
	if (!code)
		code = gpuEventCreateWithFlags(&backend->ended, gpuEventBlockingSync | gpuEventDisableTiming);
	return code ? gpu_fail(backend, code, "cannot set up %s", backend->name) : 0;
}

static int gpu_open(const char *selector, const struct weir_context_options *options,
		    struct weir_backend **out)
{
	struct gpu_backend *backend;
	int count = 0, device = 0;
	int error = count_devices(&count);

	(void)options; /* all of them are the cpu's */
	if (!error)
		error = choose_device(selector, count, &device);
	if (error)
		return error;
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return weir_fail(ENOMEM, "no memory for the " GPU_NAME " backend");
	backend->base.ops = &gpu_ops;
	backend->device = device;
	error = gpu_device_examine(backend);
	if (!error)
		error = make_streams(backend);
	if (!error)
		error = gpu_kernels_load(backend);
	if (!error)
		error = make_args(backend, GPU_LEAST_ARGS_BYTES);
	if (error) {
		gpu_close(&backend->base);
		return error;
	}
	*out = &backend->base;
	return 0;
}

/*
 * Find a kernel that may be launched like this. Kernels of a library that was loaded since the
 * context opened are put on the device first.
 */
static int take_kernel(struct gpu_backend *backend, const char *name, uint32_t blocks, uint32_t threads,
		       size_t bytes, const struct gpu_kernel **kernel)
{
	const struct weir_image *image = weir_image_find(GPU_NAME, name);
	int error = weir_launch_check(
		&(struct weir_launch_check){ .backend = GPU_NAME,
					     .kernel = name,
					     .known = image,
					     .takes_bytes = image ? image->args_bytes : 0,
					     .given_bytes = bytes,
					     .blocks = blocks,
					     .threads = threads,
					     .most_threads = image ? image->block_lanes : 0 });

	if (!error)
		error = gpu_launch_limit(backend, name, blocks, threads);
	if (!error)
		error = gpu_enter(backend);
	if (!error)
		error = gpu_kernels_load(backend);
	if (!error)
		*kernel = gpu_kernel_find(backend, name);
	return error;
}

/* Arguments go ahead of their kernel in its stream, behind the kernel before, which read the same place. */
static gpuError_t enqueue(struct gpu_backend *backend, const struct gpu_kernel *kernel, uint32_t blocks,
			  uint32_t threads, const void *args)
{
	size_t bytes = kernel->image->args_bytes;
	gpuError_t code = gpu_stage(backend, bytes, &args);

	if (!code)
		code = gpuMemcpyAsync(backend->args, args, bytes, gpuMemcpyHostToDevice, backend->launches);
	return code ? code : gpu_kernel_start(kernel, blocks, threads, backend->args, backend->launches);
}

static int gpu_launch(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
		      const void *args, size_t bytes)
{
	struct gpu_backend *backend = gpu_of(base);
	const struct gpu_kernel *kernel = NULL;
	gpuError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (!error)
		error = make_args(backend, bytes);
	if (error)
		return error;
	code = enqueue(backend, kernel, blocks, threads, args);
	if (code)
		return gpu_fail(backend, code, "cannot launch kernel \"%s\" on %s", name, backend->name);
	backend->latest = kernel->image->kernel;
	return 0;
}

/** struct gpu_service - a persistent kernel: its own stream, its own arguments */
struct gpu_service {
	gpuStream_t stream;
	void *args;
	size_t args_bytes;
};

static void gpu_serve_end(struct weir_backend *base, void *service)
{
	struct gpu_backend *backend = gpu_of(base);
	struct gpu_service *persistent = service;

	/* Nothing runs any more on a device that is lost: what others let go of does not wait for it. */
	bool there = gpuSetDevice(backend->device) == gpuSuccess;

	if (there && persistent->stream) {
		(void)gpuStreamSynchronize(persistent->stream);
		(void)gpuStreamDestroy(persistent->stream);
	}
	if (there)
		gpu_let_go(backend, GPU_DEVICE_MEMORY, persistent->args, persistent->args_bytes);
	(void)gpuGetLastError();
	free(persistent);
	gpu_service_ended();
}

/* Arguments are in place before the launch, so that its stream has nothing but the kernel. */
static gpuError_t start_service(struct gpu_backend *backend, struct gpu_service *service,
				const struct gpu_kernel *kernel, uint32_t blocks, uint32_t threads,
				const void *args)
{
	gpuError_t code = gpu_service_stream(backend, &service->stream);

	service->args_bytes = kernel->image->args_bytes;
	if (!code)
		code = gpu_memory(backend, GPU_DEVICE_MEMORY, service->args_bytes, &service->args);
	if (!code)
		code = gpuMemcpyAsync(service->args, args, kernel->image->args_bytes, gpuMemcpyHostToDevice,
				      backend->copies);
	if (!code)
		code = gpuStreamSynchronize(backend->copies);
	gpu_service_begins(); /* gpu_serve_end() is the end, whatever follows */
	return code ? code : gpu_kernel_start(kernel, blocks, threads, service->args, service->stream);
}

static int gpu_serve(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
		     const void *args, size_t bytes, void **out)
{
	struct gpu_backend *backend = gpu_of(base);
	const struct gpu_kernel *kernel = NULL;
	struct gpu_service *service;
	gpuError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (error)
		return error;
	service = calloc(1, sizeof(*service));
	if (!service)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", name);
	code = start_service(backend, service, kernel, blocks, threads, args);
	if (code) {
		error = gpu_fail(backend, code, "cannot start kernel \"%s\" on %s", name, backend->name);
		gpu_serve_end(base, service);
		return error;
	}
	*out = service;
	return 0;
}

static int gpu_kernel_info(struct weir_backend *base, const char *name, struct weir_kernel_info *info)
{
	struct gpu_backend *backend = gpu_of(base);
	const struct gpu_kernel *kernel;
	gpuError_t code;
	int error = weir_image_find(GPU_NAME, name) ? gpu_enter(backend) : weir_no_kernel(GPU_NAME, name);

	if (!error)
		error = gpu_kernels_load(backend);
	if (error)
		return error;
	kernel = gpu_kernel_find(backend, name);
	code = gpu_kernel_measure(kernel, info);
	if (code)
		return gpu_fail(backend, code, "cannot examine kernel \"%s\" on %s", name, backend->name);
	info->block_lanes = kernel->image->block_lanes;
	return 0;
}

static int gpu_synchronise(struct weir_backend *base)
{
	struct gpu_backend *backend = gpu_of(base);
	int error = gpu_enter(backend);
	gpuError_t code;

	if (error)
		return error;
	code = gpuEventRecord(backend->ended, backend->launches);
	if (!code)
		code = gpuEventSynchronize(backend->ended);
	return code ? gpu_fail(backend, code, "a kernel failed on %s (latest launched: \"%s\")",
			       backend->name, backend->latest ? backend->latest : "none")
		    : 0;
}

static const struct weir_backend_ops gpu_ops = {
	.size = sizeof(struct weir_backend_ops),
	.name = GPU_NAME,
	GPU_OWN_OPS.devices = gpu_devices,
	.pci_address = gpu_pci_address,
	.open = gpu_open,
	.close = gpu_close,
	.allocate = gpu_allocate,
	.release = gpu_release,
	.h2d = gpu_h2d,
	.d2h = gpu_d2h,
	.launch = gpu_launch,
	.kernel_info = gpu_kernel_info,
	.synchronise = gpu_synchronise,
	.serve = gpu_serve,
	.serve_end = gpu_serve_end,
	.properties = gpu_properties,
	.stream_open = gpu_stream_open,
	.stream_close = gpu_stream_close,
	.stream_copy = gpu_stream_copy,
	.stream_launch = gpu_stream_launch,
	.stream_wait = gpu_stream_wait,
	.stream_join = gpu_stream_join,
	.defer = gpu_defer,
	.resume = gpu_resume,
	.map_registers = gpu_map_registers,
	.unmap_registers = gpu_unregister,
	.register_host = gpu_register_host,
	.unregister_host = gpu_unregister,
	.export_memory = gpu_export_memory,
};

const struct weir_backend_ops *const weir_backend_module = &gpu_ops;
