/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels on a device: the image of a kernel file is a bundle of code objects, one per
 * kind of device, of which the run time takes the one that fits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"
#include "clock.h"

/**
 * struct hip_module - a kernel file on the device
 * @code: its image
 * @module: what the run time knows it by
 * @next: one loaded earlier
 */
struct hip_module {
	const void *code;
	hipModule_t module;
	struct hip_module *next;
};

/* Tell the code how fast the device's counter runs: what weir_clock_ns() of <weir/port/hip.h> reads. */
static gpuError_t set_clock(struct gpu_backend *backend, hipModule_t module)
{
	uint32_t khz = hip_clock_khz(backend);
	uint64_t ns_per_tick = khz ? (1000000ull << 32) / khz : 0;
	hipDeviceptr_t location;
	size_t bytes;
	gpuError_t code;

	if (!khz)
		return hipSuccess;
	code = hipModuleGetGlobal(&location, &bytes, module, "weir_hip_ns_per_tick");
	if (!code)
		code = hipMemcpyAsync(location, &ns_per_tick, sizeof(ns_per_tick), hipMemcpyHostToDevice,
				      backend->copies);
	return code ? code : hipStreamSynchronize(backend->copies);
}

static int cannot_load(const struct gpu_backend *backend, const struct weir_image *image, gpuError_t code)
{
	if (code == hipErrorNoBinaryForGpu || code == hipErrorInvalidImage)
		return gpu_fail(
			backend, code,
			"kernel \"%s\" was not built for %s; build with a matching -D" HIP_ARCH_OPTION,
			image->kernel, backend->name);
	return gpu_fail(backend, code, "cannot load kernel \"%s\" on %s", image->kernel, backend->name);
}

static int load_module(struct gpu_backend *backend, const struct weir_image *image)
{
	struct hip_module *module = calloc(1, sizeof(*module));
	gpuError_t code;

	if (!module)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
	code = hipModuleLoadData(&module->module, image->code);
	if (!code && (code = set_clock(backend, module->module)) != hipSuccess)
		gpu_let_go(backend, GPU_MODULE, module->module, 0);
	if (code) {
		free(module);
		return cannot_load(backend, image, code);
	}
	module->code = image->code;
	module->next = backend->modules;
	backend->modules = module;
	return 0;
}

/* The module of an image, which all kernels of a file share; loaded if it is not yet. */
static int take_module(struct gpu_backend *backend, const struct weir_image *image, hipModule_t *out)
{
	struct hip_module *module = backend->modules;
	int error = 0;

	while (module && module->code != image->code)
		module = module->next;
	if (!module)
		error = load_module(backend, image);
	*out = error ? NULL : module ? module->module : backend->modules->module;
	return error;
}

static int load_kernel(struct gpu_backend *backend, const struct weir_image *image)
{
	struct gpu_kernel *kernel;
	hipModule_t module;
	gpuError_t code;
	int error = take_module(backend, image, &module);

	if (error)
		return error;
	kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
	kernel->image = image;
	code = hipModuleGetFunction(&kernel->function, module, image->kernel);
	if (code) {
		free(kernel);
		return gpu_fail(backend, code,
				"the image of kernel \"%s\" does not hold it; rebuild the program",
				image->kernel);
	}
	kernel->next = backend->kernels;
	backend->kernels = kernel;
	return 0;
}

/*
 * All when a context opens: loading may wait for kernels that run, and one may wait for what is launched
 * next.
 */
int gpu_kernels_load(struct gpu_backend *backend)
{
	const struct weir_image *first = weir_image_next("hip", NULL);
	int error = 0;

	for (const struct weir_image *image = first; !error && image && image != backend->loaded;
	     image = weir_image_next("hip", image))
		if (weir_image_find("hip", image->kernel) == image) /* else a later one has its name */
			error = load_kernel(backend, image);
	if (!error)
		backend->loaded = first;
	return error;
}

const struct gpu_kernel *gpu_kernel_find(const struct gpu_backend *backend, const char *name)
{
	const struct gpu_kernel *kernel = backend->kernels;

	while (kernel && strcmp(kernel->image->kernel, name))
		kernel = kernel->next;
	return kernel;
}

void gpu_kernels_unload(struct gpu_backend *backend)
{
	while (backend->kernels) {
		struct gpu_kernel *kernel = backend->kernels;

		backend->kernels = kernel->next;
		free(kernel);
	}
	while (backend->modules) {
		struct hip_module *module = backend->modules;

		backend->modules = module->next;
		gpu_let_go(backend, GPU_MODULE, module->module, 0);
		free(module);
	}
}

gpuError_t gpu_kernel_start(const struct gpu_kernel *kernel, uint32_t blocks, uint32_t threads, void *args,
			    gpuStream_t stream)
{
	void *parameters[] = { &args };

	return hipModuleLaunchKernel(kernel->function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
				     NULL);
}

gpuError_t gpu_kernel_measure(const struct gpu_kernel *kernel, struct weir_kernel_info *info)
{
	int registers = 0, spilled = 0;
	hipError_t code = hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, kernel->function);

	if (!code)
		code = hipFuncGetAttribute(&spilled, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel->function);
	if (!code) {
		info->registers = (uint32_t)registers;
		info->local_bytes = (uint32_t)spilled;
	}
	return code;
}
