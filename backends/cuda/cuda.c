/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA backend's vtable: devices, kernels, launches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/error.h"
#include "cuda.h"

enum { LEAST_ARGS_BYTES = 4096, MOST_BLOCKS = 0x7fffffff };

static const struct weir_backend_ops cuda_ops;

static void cuda_close(struct weir_backend *base)
{
	struct cuda_backend *backend = cuda_of(base);

	(void)cudaSetDevice(backend->device);
	if (backend->launches)
		(void)cudaStreamSynchronize(backend->launches);
	cuda_gates_end(backend);
	cuda_device_release(backend, backend->args);
	if (backend->ended)
		(void)cudaEventDestroy(backend->ended);
	if (backend->copies)
		(void)cudaStreamDestroy(backend->copies);
	if (backend->launches)
		(void)cudaStreamDestroy(backend->launches);
	(void)cudaGetLastError();
	free(backend);
}

/* How many devices there are, or why none can be used. */
static int count_devices(int *count)
{
	int driver = 0;
	cudaError_t code = cudaGetDeviceCount(count);

	(void)cudaGetLastError();
	if (code == cudaErrorInsufficientDriver && (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0))
		return weir_fail(ENODEV, "no CUDA device: the NVIDIA driver is not installed or not loaded here");
	if (code == cudaErrorInsufficientDriver)
		return weir_fail(ENODEV, "no CUDA device: the driver knows CUDA %d.%d, this build needs %d.%d; update the driver",
				 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
	if (code)
		return weir_fail(ENODEV, "no CUDA device: %s (%s)", cudaGetErrorString(code), cudaGetErrorName(code));
	if (*count == 0)
		return weir_fail(ENODEV, "no CUDA device: the driver shows none to this process");
	return 0;
}

static int cuda_devices(uint32_t *count)
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
		return weir_fail(ENODEV, "\"cuda:%s\" is no device: write cuda or cuda:N with a number, such as cuda:0",
				 selector);
	if (number >= (unsigned long)count)
		return weir_fail(ENODEV, "there is no cuda:%s: this process sees %d device%s, cuda:0%s", selector, count,
				 count == 1 ? "" : "s", count == 1 ? "" : " and on");
	*device = (int)number;
	return 0;
}

static cudaError_t attribute(const struct cuda_backend *backend, enum cudaDeviceAttr which, uint32_t *value)
{
	int number = 0;
	cudaError_t code = cudaDeviceGetAttribute(&number, which, backend->device);

	*value = (uint32_t)number;
	return code;
}

/* What the backend needs of a device, and what it tells of it. */
static int examine(struct cuda_backend *backend)
{
	struct cudaDeviceProp properties;
	uint32_t unified = 0, same = 0;
	cudaError_t code = cudaGetDeviceProperties(&properties, backend->device);

	if (!code)
		code = attribute(backend, cudaDevAttrUnifiedAddressing, &unified);
	if (!code)
		code = attribute(backend, cudaDevAttrCanUseHostPointerForRegisteredMem, &same);
	if (!code)
		code = attribute(backend, cudaDevAttrMultiProcessorCount, &backend->multiprocessors);
	if (!code)
		code = attribute(backend, cudaDevAttrMaxThreadsPerBlock, &backend->block_lanes);
	if (code)
		return cuda_fail(backend, code, "cannot examine cuda:%d", backend->device);
	if (!unified || !same)
		return weir_fail(ENODEV, "cuda:%d (%s) sees pinned host memory under other addresses than the host; "
				 "weir needs the same", backend->device, properties.name);
	snprintf(backend->name, sizeof(backend->name), "cuda:%d %.80s (%u multiprocessors)", backend->device,
		 properties.name, backend->multiprocessors);
	return 0;
}

/* Room for the largest arguments; waits for launches that still read the old ones. */
static int make_args(struct cuda_backend *backend, size_t bytes)
{
	size_t room = bytes < LEAST_ARGS_BYTES ? LEAST_ARGS_BYTES : bytes;
	cudaError_t code;

	if (backend->args_bytes >= bytes)
		return 0;
	code = cudaStreamSynchronize(backend->launches);
	cuda_device_release(backend, backend->args);
	backend->args = NULL;
	backend->args_bytes = 0;
	if (!code)
		code = cuda_device_memory(backend, room, &backend->args);
	if (code)
		return cuda_fail(backend, code, "cannot allocate %zu bytes for arguments on %s", room, backend->name);
	backend->args_bytes = room;
	return 0;
}

static int make_streams(struct cuda_backend *backend)
{
	cudaError_t code = cudaSetDevice(backend->device);

	if (!code)
		code = cudaStreamCreateWithFlags(&backend->copies, cudaStreamNonBlocking);
	if (!code)
		code = cudaStreamCreateWithFlags(&backend->launches, cudaStreamNonBlocking);
	/* The host sleeps while it waits: controllers may need its core. */
	if (!code)
		code = cudaEventCreateWithFlags(&backend->ended, cudaEventBlockingSync | cudaEventDisableTiming);
	return code ? cuda_fail(backend, code, "cannot set up %s", backend->name) : 0;
}

static int cuda_open(const char *selector, const struct weir_context_options *options, struct weir_backend **out)
{
	struct cuda_backend *backend;
	int count = 0, device = 0;
	int error = count_devices(&count);

	(void)options; /* all of them are the cpu's */
	if (!error)
		error = choose_device(selector, count, &device);
	if (error)
		return error;
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return weir_fail(ENOMEM, "no memory for the cuda backend");
	backend->base.ops = &cuda_ops;
	backend->device = device;
	error = examine(backend);
	if (!error)
		error = make_streams(backend);
	if (!error)
		error = cuda_kernels_load(backend);
	if (!error)
		error = make_args(backend, LEAST_ARGS_BYTES);
	if (error) {
		cuda_close(&backend->base);
		return error;
	}
	*out = &backend->base;
	return 0;
}

/*
 * Find a kernel that may be launched like this. Kernels of a library that was loaded since the
 * context opened are put on the device first.
 */
static int take_kernel(struct cuda_backend *backend, const char *name, uint32_t blocks, uint32_t threads, size_t bytes,
		       const struct cuda_kernel **kernel)
{
	const struct weir_image *image = weir_image_find("cuda", name);
	int error = weir_launch_check(&(struct weir_launch_check){
		.backend = "cuda", .kernel = name, .known = image, .takes_bytes = image ? image->args_bytes : 0,
		.given_bytes = bytes, .blocks = blocks, .threads = threads,
		.most_threads = image ? image->block_lanes : 0 });

	if (!error && blocks > MOST_BLOCKS)
		error = weir_fail(EINVAL, "kernel \"%s\" launched with %u blocks; %s takes %d at most", name, blocks,
				  backend->name, MOST_BLOCKS);
	if (!error)
		error = cuda_enter(backend);
	if (!error)
		error = cuda_kernels_load(backend);
	if (!error)
		*kernel = cuda_kernel_find(name);
	return error;
}

/* Arguments go ahead of their kernel in its stream, behind the kernel before, which read the same place. */
static cudaError_t enqueue(struct cuda_backend *backend, const struct cuda_kernel *kernel, uint32_t blocks,
			   uint32_t threads, const void *args)
{
	void *parameters[] = { &backend->args };
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };
	cudaError_t code = cudaMemcpyAsync(backend->args, args, kernel->image->args_bytes, cudaMemcpyHostToDevice,
					   backend->launches);

	return code ? code : cudaLaunchKernel(kernel->entry, grid, block, parameters, 0, backend->launches);
}

static int cuda_launch(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
		       const void *args, size_t bytes)
{
	struct cuda_backend *backend = cuda_of(base);
	const struct cuda_kernel *kernel = NULL;
	cudaError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (!error)
		error = make_args(backend, bytes);
	if (error)
		return error;
	code = enqueue(backend, kernel, blocks, threads, args);
	if (code)
		return cuda_fail(backend, code, "cannot launch kernel \"%s\" on %s", name, backend->name);
	backend->latest = kernel->image->kernel;
	return 0;
}

/** struct cuda_service - a kernel that stays: its own stream, its own arguments */
struct cuda_service {
	cudaStream_t stream;
	void *args;
};

static void cuda_serve_end(struct weir_backend *base, void *service)
{
	struct cuda_backend *backend = cuda_of(base);
	struct cuda_service *staying = service;

	if (cuda_enter(backend))
		return;
	if (staying->stream) {
		(void)cudaStreamSynchronize(staying->stream);
		(void)cudaStreamDestroy(staying->stream);
	}
	cuda_device_release(backend, staying->args);
	(void)cudaGetLastError();
	free(staying);
	cuda_service_ended();
}

/* Arguments are in place before the launch, so that its stream has nothing but the kernel. */
static cudaError_t start_service(struct cuda_backend *backend, struct cuda_service *service,
				 const struct cuda_kernel *kernel, uint32_t blocks, uint32_t threads, const void *args)
{
	void *parameters[] = { &service->args };
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };
	cudaError_t code = cudaStreamCreateWithFlags(&service->stream, cudaStreamNonBlocking);

	if (!code)
		code = cuda_device_memory(backend, kernel->image->args_bytes, &service->args);
	if (!code)
		code = cudaMemcpyAsync(service->args, args, kernel->image->args_bytes, cudaMemcpyHostToDevice, backend->copies);
	if (!code)
		code = cudaStreamSynchronize(backend->copies);
	cuda_service_begins(); /* cuda_serve_end() is the end, whatever follows */
	return code ? code : cudaLaunchKernel(kernel->entry, grid, block, parameters, 0, service->stream);
}

static int cuda_serve(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
		      const void *args, size_t bytes, void **out)
{
	struct cuda_backend *backend = cuda_of(base);
	const struct cuda_kernel *kernel = NULL;
	struct cuda_service *service;
	cudaError_t code;
	int error = take_kernel(backend, name, blocks, threads, bytes, &kernel);

	if (error)
		return error;
	service = calloc(1, sizeof(*service));
	if (!service)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", name);
	code = start_service(backend, service, kernel, blocks, threads, args);
	if (code) {
		error = cuda_fail(backend, code, "cannot start kernel \"%s\" on %s", name, backend->name);
		cuda_serve_end(base, service);
		return error;
	}
	*out = service;
	return 0;
}

static int cuda_kernel_info(struct weir_backend *base, const char *name, struct weir_kernel_info *info)
{
	struct cuda_backend *backend = cuda_of(base);
	struct cudaFuncAttributes attributes;
	const struct cuda_kernel *kernel;
	cudaError_t code;
	int error = weir_image_find("cuda", name) ? cuda_enter(backend) : weir_no_kernel("cuda", name);

	if (!error)
		error = cuda_kernels_load(backend);
	if (error)
		return error;
	kernel = cuda_kernel_find(name);
	code = cudaFuncGetAttributes(&attributes, kernel->entry);
	if (code)
		return cuda_fail(backend, code, "cannot examine kernel \"%s\" on %s", name, backend->name);
	info->registers = (uint32_t)attributes.numRegs;
	info->local_bytes = (uint32_t)attributes.localSizeBytes;
	info->block_lanes = kernel->image->block_lanes;
	return 0;
}

static int cuda_synchronise(struct weir_backend *base)
{
	struct cuda_backend *backend = cuda_of(base);
	int error = cuda_enter(backend);
	cudaError_t code;

	if (error)
		return error;
	code = cudaEventRecord(backend->ended, backend->launches);
	if (!code)
		code = cudaEventSynchronize(backend->ended);
	return code ? cuda_fail(backend, code, "a kernel failed on %s (latest launched: \"%s\")", backend->name,
				backend->latest ? backend->latest : "none") : 0;
}

static const struct weir_backend_ops cuda_ops = {
	.size = sizeof(struct weir_backend_ops),
	.name = "cuda",
	.unasked = true,
	.devices = cuda_devices,
	.pci_address = cuda_pci_address,
	.open = cuda_open,
	.close = cuda_close,
	.allocate = cuda_allocate,
	.release = cuda_release,
	.copy_in = cuda_copy_in,
	.copy_out = cuda_copy_out,
	.launch = cuda_launch,
	.kernel_info = cuda_kernel_info,
	.synchronise = cuda_synchronise,
	.serve = cuda_serve,
	.serve_end = cuda_serve_end,
	.properties = cuda_properties,
	.examine = cuda_examine,
	.stream_open = cuda_stream_open,
	.stream_close = cuda_stream_close,
	.stream_copy = cuda_stream_copy,
	.stream_launch = cuda_stream_launch,
	.stream_wait = cuda_stream_wait,
	.stream_join = cuda_stream_join,
	.defer = cuda_defer,
	.resume = cuda_resume,
	.peer_flush = cuda_peer_flush,
	.map_registers = cuda_map_registers,
	.unmap_registers = cuda_unregister,
	.register_host = cuda_register_host,
	.unregister_host = cuda_unregister,
	.export_memory = cuda_export_memory,
};

const struct weir_backend_ops *const weir_backend_module = &cuda_ops;
