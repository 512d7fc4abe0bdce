/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>

#include "cufile.h"

enum { WHY_BYTES = 256 };

static void *open_library(void)
{
	static const char *const names[] = { "libcufile.so.0", "libcufile.so",
					     "/usr/local/cuda/lib64/libcufile.so.0" };
	void *library = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

bool cufile_load(struct cufile *cufile, char *why)
{
	const struct {
		const char *name;
		void *position;
	} functions[] = {
		{ "cuFileDriverOpen", &cufile->driver_open },
		{ "cuFileDriverClose_v2", &cufile->driver_close },
		{ "cuFileHandleRegister", &cufile->handle_register },
		{ "cuFileHandleDeregister", &cufile->handle_deregister },
		{ "cuFileBufRegister", &cufile->buffer_register },
		{ "cuFileBufDeregister", &cufile->buffer_deregister },
		{ "cuFileRead", &cufile->read },
	};
	void *library = open_library();

	if (!library) {
		snprintf(why, WHY_BYTES, "libcufile.so.0 is not installed (%s)", dlerror());
		return false;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].position = dlsym(library, functions[i].name);
		if (*(void **)functions[i].position)
			continue;
		snprintf(why, WHY_BYTES, "libcufile.so has no %s; it is too old", functions[i].name);
		return false;
	}
	return true;
}

const char *cufile_error_name(int code)
{
	static const char *const names[] = {
		"DRIVER_NOT_INITIALIZED",
		"DRIVER_INVALID_PROPS",
		"DRIVER_UNSUPPORTED_LIMIT",
		"DRIVER_VERSION_MISMATCH",
		"DRIVER_VERSION_READ_ERROR",
		"DRIVER_CLOSING",
		"PLATFORM_NOT_SUPPORTED",
		"IO_NOT_SUPPORTED",
		"DEVICE_NOT_SUPPORTED",
		"NVFS_DRIVER_ERROR",
		"CUDA_DRIVER_ERROR",
		"CUDA_POINTER_INVALID",
		"CUDA_MEMORY_TYPE_INVALID",
		"CUDA_POINTER_RANGE_ERROR",
		"CUDA_CONTEXT_MISMATCH",
		"INVALID_MAPPING_SIZE",
		"INVALID_MAPPING_RANGE",
		"INVALID_FILE_TYPE",
		"INVALID_FILE_OPEN_FLAG",
		"DIO_NOT_SET",
		NULL,
		"INVALID_VALUE",
		"MEMORY_ALREADY_REGISTERED",
		"MEMORY_NOT_REGISTERED",
		"PERMISSION_DENIED",
		"DRIVER_ALREADY_OPEN",
		"HANDLE_NOT_REGISTERED",
		"HANDLE_ALREADY_REGISTERED",
		"DEVICE_NOT_FOUND",
		"INTERNAL_ERROR",
		"GETNEWFD_FAILED",
		NULL,
		"NVFS_SETUP_ERROR",
		"IO_DISABLED",
		"BATCH_SUBMIT_FAILED",
		"GPU_MEMORY_PINNING_FAILED",
		"BATCH_FULL",
		"ASYNC_NOT_SUPPORTED",
	};
	static __thread char text[64];
	int count = (int)(sizeof(names) / sizeof(names[0]));
	int index = code - CUFILE_LEAST_ERROR;
	bool known = index >= 0 && index < count && names[index];

	snprintf(text, sizeof(text), "%s%s", known ? "CU_FILE_" : "an unknown error",
		 known ? names[index] : "");
	return text;
}
