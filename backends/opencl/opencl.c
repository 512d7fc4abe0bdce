/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The OpenCL backend's vtable: devices, launches.
 *
 * A work-group is one lane. Lanes wait for each other's requests, and an implementation may run the
 * work-items of a group one after the other, or in lockstep, of which the port knows nothing. But NVIDIA's
 * devices, from compute capability 7.0 on, run all lanes of a block, each making progress whatever
 * the others wait for: there a work-group is a block.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static const struct weir_backend_ops opencl_ops;
const struct weir_backend_ops *const weir_backend_module = &opencl_ops;

static int opencl_devices(uint32_t *count)
{
	struct opencl_device *device;
	enum opencl_memory memory;

	*count = opencl_device_count();
	return *count ? 0 : opencl_device_choose("", &device, &memory);
}

static void opencl_close(struct weir_backend *base)
{
	struct opencl_backend *backend = opencl_of(base);

	if (backend->queue) {
		(void)clFinish(backend->queue);
		(void)clReleaseCommandQueue(backend->queue);
	}
	opencl_kernels_end(backend);
	opencl_args_end(backend);
	opencl_memory_end(backend);
	if (backend->copies)
		(void)clReleaseCommandQueue(backend->copies);
	pthread_mutex_destroy(&backend->mutex);
	free(backend);
}

bool opencl_grouped(const struct opencl_backend *backend)
{
	return backend->device->record.nvidia;
}

static int choose_lanes(struct opencl_backend *backend)
{
	const char *asked = getenv("WEIR_OPENCL_LANES");

	backend->lanes = opencl_wave_lanes(&backend->device->record, asked);
	return backend->lanes
		       ? 0
		       : weir_fail(EINVAL, "WEIR_OPENCL_LANES=%.20s: the waves of opencl:%u (%.60s) are %s",
				   asked, backend->device->number, backend->device->name,
				   backend->device->record.nvidia ? "32 lanes wide, or 1" : "1 lane wide");
}

static int compose_options(struct opencl_backend *backend)
{
	const char *more = getenv("WEIR_OPENCL_OPTIONS");
	const struct opencl_record *record = &backend->device->record;
	char port[64] = "";
	int length;

	if (record->nvidia)
		snprintf(port, sizeof(port), " -DWEIR_OPENCL_PTX=1 -DWEIR_OPENCL_LANES=%u", backend->lanes);
	else if (opencl_device_is_system(record))
		snprintf(port, sizeof(port), " -DWEIR_OPENCL_DEVICE_IS_SYSTEM=1");
	length = snprintf(backend->options, sizeof(backend->options), "-cl-std=CL3.0%s%s%s", port,
			  more ? " " : "", more ? more : "");
	return length < (int)sizeof(backend->options)
		       ? 0
		       : weir_fail(EINVAL, "WEIR_OPENCL_OPTIONS has %zu characters, too many", strlen(more));
}

static int set_up(struct opencl_backend *backend)
{
	struct opencl_device *device = backend->device;
	cl_int code = CL_SUCCESS;

	pthread_mutex_lock(&device->mutex);
	if (!device->context)
		device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
	pthread_mutex_unlock(&device->mutex);
	if (!code)
		backend->queue = clCreateCommandQueueWithProperties(device->context, device->id, NULL, &code);
	if (!code && backend->memory == OPENCL_MEMORY_COARSE)
		backend->copies =
			clCreateCommandQueueWithProperties(device->context, device->id, NULL, &code);
	return code ? opencl_fail(code, "cannot set up opencl:%u (%s)", device->number, device->name) : 0;
}

static int opencl_open(const char *selector, const struct weir_context_options *options,
		       struct weir_backend **out)
{
	struct opencl_backend *backend = calloc(1, sizeof(*backend));
	int error;

	(void)options; /* all of them are the cpu's */
	if (!backend)
		return weir_fail(ENOMEM, "no memory for the opencl backend");
	backend->base.ops = &opencl_ops;
	pthread_mutex_init(&backend->mutex, NULL);
	error = opencl_device_choose(selector, &backend->device, &backend->memory);
	if (!error)
		error = choose_lanes(backend);
	if (!error)
		error = compose_options(backend);
	if (!error)
		error = set_up(backend);
	if (error) {
		opencl_close(&backend->base);
		return error;
	}
	*out = &backend->base;
	return 0;
}

static cl_int enqueue(struct opencl_backend *backend, struct opencl_kernel *kernel, void *args, size_t blocks,
		      size_t threads)
{
	const size_t lanes = blocks * threads, group = opencl_grouped(backend) ? threads : 1;
	cl_int code = opencl_memory_notify(backend, kernel);

	if (!code)
		code = clSetKernelArgSVMPointer(kernel->kernel, 0, args);
	if (!code)
		code = clEnqueueNDRangeKernel(backend->queue, kernel->kernel, 1, NULL, &lanes, &group, 0,
					      NULL, NULL);
	return code ? code : clFlush(backend->queue);
}

static int opencl_launch(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
			 const void *args, size_t bytes)
{
	struct opencl_backend *backend = opencl_of(base);
	const struct weir_image *image = weir_image_find("opencl", name);
	struct opencl_kernel *kernel = NULL;
	void *slot = NULL;
	cl_int code;
	int error = image ? opencl_kernel_get(backend, image, &kernel) : 0;

	if (!error)
		error = weir_launch_check(
			&(struct weir_launch_check){ .backend = "opencl",
						     .kernel = name,
						     .known = image,
						     .takes_bytes = image ? image->args_bytes : 0,
						     .given_bytes = bytes,
						     .blocks = blocks,
						     .threads = threads,
						     .most_threads = kernel ? kernel->block_lanes : 0 });
	if (!error)
		error = opencl_args_put(backend, args, bytes, &slot);
	if (error)
		return error;
	code = enqueue(backend, kernel, slot, blocks, threads);
	if (code)
		return opencl_fail(code, "cannot launch kernel \"%s\" on opencl:%u", name,
				   backend->device->number);
	backend->latest = image->kernel;
	return 0;
}

/* OpenCL does not tell of registers. */
static int opencl_kernel_info(struct weir_backend *base, const char *name, struct weir_kernel_info *info)
{
	struct opencl_backend *backend = opencl_of(base);
	const struct weir_image *image = weir_image_find("opencl", name);
	struct opencl_kernel *kernel;
	int error = image ? opencl_kernel_get(backend, image, &kernel) : weir_no_kernel("opencl", name);

	if (!error)
		info->block_lanes = kernel->block_lanes;
	return error;
}

static int opencl_synchronise(struct weir_backend *base)
{
	struct opencl_backend *backend = opencl_of(base);
	cl_int code = clFinish(backend->queue);

	backend->args_used = 0;
	return code ? opencl_fail(code, "a kernel failed on opencl:%u (latest launched: \"%s\")",
				  backend->device->number, backend->latest ? backend->latest : "none")
		    : 0;
}

/*
 * Not unasked: the device may be this processor, and has never been anything else yet.
 *
 * No serve: nothing in OpenCL says that kernels run side by side. On a processor one that stays keeps
 * one of few threads for each of its lanes, and with the last of them everybody waits for ever.
 */
static const struct weir_backend_ops opencl_ops = {
	.size = sizeof(struct weir_backend_ops),
	.name = "opencl",
	.devices = opencl_devices,
	.open = opencl_open,
	.close = opencl_close,
	.allocate = opencl_allocate,
	.release = opencl_release,
	.h2d = opencl_h2d,
	.d2h = opencl_d2h,
	.launch = opencl_launch,
	.kernel_info = opencl_kernel_info,
	.synchronise = opencl_synchronise,
	.pci_address = opencl_pci_address,
	.properties = opencl_properties,
	.map_registers = opencl_map,
	.unmap_registers = opencl_unmap,
	.register_host = opencl_map,
	.unregister_host = opencl_unmap,
};
