/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels on a device: the image of a kernel file is a bundle of code objects, one per
 * kind of device, of which the run time takes the one that fits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

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
static hipError_t set_clock(struct hip_backend *backend, hipModule_t module)
{
	uint32_t khz = hip_clock_khz(backend);
	uint64_t ns_per_tick = khz ? (1000000ull << 32) / khz : 0;
	hipDeviceptr_t place;
	size_t bytes;
	hipError_t code;

	if (!khz)
		return hipSuccess;
	code = hipModuleGetGlobal(&place, &bytes, module, "weir_hip_ns_per_tick");
	if (!code)
		code = hipMemcpyAsync(place, &ns_per_tick, sizeof(ns_per_tick), hipMemcpyHostToDevice, backend->copies);
	return code ? code : hipStreamSynchronize(backend->copies);
}

static int cannot_load(const struct hip_backend *backend, const struct weir_image *image, hipError_t code)
{
	if (code == hipErrorNoBinaryForGpu || code == hipErrorInvalidImage)
		return hip_fail(code, "kernel \"%s\" was not built for %s; build with a matching -D" HIP_ARCH_OPTION,
				image->kernel, backend->name);
	return hip_fail(code, "cannot load kernel \"%s\" on %s", image->kernel, backend->name);
}

static int load_module(struct hip_backend *backend, const struct weir_image *image)
{
	struct hip_module *module = calloc(1, sizeof(*module));
	hipError_t code;

	if (!module)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
	code = hipModuleLoadData(&module->module, image->code);
	if (!code && (code = set_clock(backend, module->module)) != hipSuccess)
		hip_let_go(backend, HIP_MODULE, module->module, 0);
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
static int take_module(struct hip_backend *backend, const struct weir_image *image, hipModule_t *out)
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

static int load_kernel(struct hip_backend *backend, const struct weir_image *image)
{
	struct hip_kernel *kernel;
	hipModule_t module;
	hipError_t code;
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
		return hip_fail(code, "the image of kernel \"%s\" does not hold it; rebuild the program", image->kernel);
	}
	kernel->next = backend->kernels;
	backend->kernels = kernel;
	return 0;
}

/* All when a context opens: loading may wait for kernels that run, and one may wait for what is launched next. */
int hip_kernels_load(struct hip_backend *backend)
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

const struct hip_kernel *hip_kernel_find(const struct hip_backend *backend, const char *name)
{
	const struct hip_kernel *kernel = backend->kernels;

	while (kernel && strcmp(kernel->image->kernel, name))
		kernel = kernel->next;
	return kernel;
}

void hip_kernels_unload(struct hip_backend *backend)
{
	while (backend->kernels) {
		struct hip_kernel *kernel = backend->kernels;

		backend->kernels = kernel->next;
		free(kernel);
	}
	while (backend->modules) {
		struct hip_module *module = backend->modules;

		backend->modules = module->next;
		hip_let_go(backend, HIP_MODULE, module->module, 0);
		free(module);
	}
}
