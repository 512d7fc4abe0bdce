/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels in a process and on its devices: the image of a kernel file is nvcc's bundle of code, of
 * which the driver takes what fits.
 *
 * The run time has one of each for all devices and contexts. They stay as long as the process:
 * unloading would wait for persistent kernels.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "../../runtime/backend/error.h"
#include "../gpu/gpu.h"
#include "driver.h"

enum { DRIVER_VERSION = 12040 }; /* the first that loads a kernel when told so */

/** struct library - a kernel file's image, and what the run time knows it by */
struct library {
	const void *code;
	cudaLibrary_t library;
	struct library *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around both lists */
static struct library *libraries;
static struct gpu_kernel *kernels;

static int cannot_load(struct gpu_backend *backend, const struct weir_image *image, gpuError_t code)
{
	if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion)
		return gpu_fail(backend, code,
				"kernel \"%s\" was not built for %s; build with a matching -Dnvcc_arch",
				image->kernel, backend->name);
	return gpu_fail(backend, code, "cannot load kernel \"%s\" on %s", image->kernel, backend->name);
}

/* The library of an image, which all kernels of a file share; loaded if it is not yet. */
static int take_library(struct gpu_backend *backend, const struct weir_image *image, cudaLibrary_t *out)
{
	struct library *library = libraries;
	gpuError_t code;

	while (library && library->code != image->code)
		library = library->next;
	if (!library) {
		library = malloc(sizeof(*library));
		if (!library)
			return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
		*library = (struct library){ .code = image->code, .next = libraries };
		code = cudaLibraryLoadData(&library->library, image->code, NULL, NULL, 0, NULL, NULL, 0);
		if (code) {
			free(library);
			return cannot_load(backend, image, code);
		}
		libraries = library;
	}
	*out = library->library;
	return 0;
}

static struct gpu_kernel *known(const struct weir_image *image)
{
	struct gpu_kernel *kernel = kernels;

	while (kernel && kernel->image != image)
		kernel = kernel->next;
	return kernel;
}

static int add_kernel(struct gpu_backend *backend, const struct weir_image *image)
{
	cudaLibrary_t library = NULL;
	struct gpu_kernel *kernel;
	cudaKernel_t entry;
	gpuError_t code;
	int error = take_library(backend, image, &library);

	if (error)
		return error;
	code = cudaLibraryGetKernel(&entry, library, image->kernel);
	if (code)
		return cannot_load(backend, image, code);
	kernel = malloc(sizeof(*kernel));
	if (!kernel)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
	*kernel = (struct gpu_kernel){ image, (const void *)entry, kernels };
	kernels = kernel;
	return 0;
}

/*
 * Put a kernel into the current device's memory. Unless told so, the driver does that at its first
 * launch, which then waits for kernels that run, and one of these may wait for what is launched next.
 */
static int load_kernel(struct gpu_backend *backend, const struct weir_image *image)
{
	CUresult (*function_of)(CUfunction *, CUkernel), (*load)(CUfunction);
	CUfunction function;
	CUresult code;

	*(void **)&function_of = cuda_driver_entry("cuKernelGetFunction", DRIVER_VERSION);
	*(void **)&load = cuda_driver_entry("cuFuncLoad", DRIVER_VERSION);
	if (!function_of || !load)
		return weir_fail(ENOTSUP, "the CUDA driver does not load kernels ahead of their launch; "
					  "update it to 12.4 or later");
	code = function_of(&function, (CUkernel)known(image)->function);
	if (!code)
		code = load(function);
	return code ? cannot_load(backend, image, (gpuError_t)code)
		    : 0; /* errors have the same numbers in both */
}

/* All when a context opens, and those of a library that was loaded since before the next launch. */
int gpu_kernels_load(struct gpu_backend *backend)
{
	const struct weir_image *first = weir_image_next("cuda", NULL);
	int error = 0;

	pthread_mutex_lock(&mutex);
	for (const struct weir_image *image = first; !error && image && image != backend->loaded;
	     image = weir_image_next("cuda", image)) {
		if (weir_image_find("cuda", image->kernel) != image) /* a later one has its name */
			continue;
		if (!known(image))
			error = add_kernel(backend, image);
		if (!error)
			error = load_kernel(backend, image);
	}
	pthread_mutex_unlock(&mutex);
	if (!error)
		backend->loaded = first;
	return error;
}

const struct gpu_kernel *gpu_kernel_find(const struct gpu_backend *backend, const char *name)
{
	const struct weir_image *image = weir_image_find("cuda", name);
	const struct gpu_kernel *kernel;

	(void)backend;
	pthread_mutex_lock(&mutex);
	kernel = image ? known(image) : NULL;
	pthread_mutex_unlock(&mutex);
	return kernel;
}

/* They are the process's. */
void gpu_kernels_unload(struct gpu_backend *backend)
{
	(void)backend;
}

gpuError_t gpu_kernel_start(const struct gpu_kernel *kernel, uint32_t blocks, uint32_t threads, void *args,
			    gpuStream_t stream)
{
	void *parameters[] = { &args };
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };

	return cudaLaunchKernel(kernel->function, grid, block, parameters, 0, stream);
}

gpuError_t gpu_kernel_measure(const struct gpu_kernel *kernel, struct weir_kernel_info *info)
{
	struct cudaFuncAttributes attributes;
	cudaError_t code = cudaFuncGetAttributes(&attributes, kernel->function);

	if (!code) {
		info->registers = (uint32_t)attributes.numRegs;
		info->local_bytes = (uint32_t)attributes.localSizeBytes;
	}
	return code;
}
