/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.c: the driver's part of a device that is none, for the HIP backend on CUDA. The run
 * time's is ../../cuda/pretended.c. Both are one library by the driver's name: so what wants the
 * driver starts without one. With WEIR_PRETENDED_ARCHITECTURE its devices are of one that no image has code
 * for.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "../../pretended.h"

enum { FATBIN_MAGIC = 0x3a55ed50 }; /* but for the highest bit */

/** struct function - a kernel of a module */
struct function {
	void (*entry)(void *);
	const char *name;
	int device;
	bool loaded;
	struct function *next;
};

/** struct module - an image on a device */
struct module {
	int device;
	struct function *functions;
};

cudaError_t cudaGetDevice(int *device)
{
	*device = pretended_current;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	return priority > 0 || priority < -5 ? cudaErrorInvalidValue
					     : cudaStreamCreateWithFlags(stream, flags);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	struct module *module = calloc(1, sizeof(*module));
	uint32_t magic;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(&magic, image, sizeof(magic));
	if ((magic & 0x7fffffff) != FATBIN_MAGIC || getenv("WEIR_PRETENDED_ARCHITECTURE")) {
		free(module);
		return getenv("WEIR_PRETENDED_ARCHITECTURE") ? CUDA_ERROR_NO_BINARY_FOR_GPU
							     : CUDA_ERROR_INVALID_IMAGE;
	}
	module->device = pretended_current;
	*out = (CUmodule)module;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule of)
{
	struct module *module = (struct module *)of;

	if (module->device != pretended_current)
		pretended_complain("unloaded while another device than its own is current", module);
	while (module->functions) {
		struct function *function = module->functions;

		module->functions = function->next;
		free(function);
	}
	free(module);
	return CUDA_SUCCESS;
}

/* No variable is in what nvcc makes of the kernels. */
CUresult cuModuleGetGlobal(CUdeviceptr *location, size_t *bytes, CUmodule module, const char *name)
{
	(void)location;
	(void)bytes;
	(void)module;
	(void)name;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule of, const char *name)
{
	struct module *module = (struct module *)of;
	struct function *function = calloc(1, sizeof(*function));

	if (!function || module->device != pretended_current)
		pretended_complain("a module of another device than the thread's current one", module);
	*function = (struct function){ .entry = pretended_kernel(name),
				       .name = name,
				       .device = module->device,
				       .next = module->functions };
	module->functions = function;
	*out = (CUfunction)function;
	return function->entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncLoad(CUfunction function)
{
	((struct function *)function)->loaded = true;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	(void)function;
	*value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? PRETENDED_REGISTERS : PRETENDED_LOCAL_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction of, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
			unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
			CUstream stream, void **parameters, void **extra)
{
	const struct function *function = (const struct function *)of;

	if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || shared_bytes || extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (function->device != pretended_current)
		pretended_complain("a kernel of another device than the thread's current one",
				   function->name);
	if (!function->loaded) /* a real one would load it now, and wait for those that run */
		pretended_complain("launched before it was loaded", function->name);
	if (!pretended_owned(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (pretended_stays(function->name))
		return CUDA_ERROR_NOT_SUPPORTED;
	return pretended_run(function->entry, blocks, threads, *(void **)parameters[0])
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || address % sizeof(value))
		return CUDA_ERROR_INVALID_VALUE;
	pretended_copy((void *)(uintptr_t)address, &value, sizeof(value));
	return pretended_owned(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
