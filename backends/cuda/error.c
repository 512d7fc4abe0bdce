/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CUDA run time says, as weir's sentences; what it has to say of the driver. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "../../runtime/error.h"
#include "cuda.h"

enum { TRIED_BYTES = 400 };

/*
 * Is the device of no more use to this process? An error of a call is forgotten once
 * it was asked for; one that a kernel met comes back from every later call.
 */
static bool spoilt(struct cuda_backend *backend)
{
	cudaError_t again;

	(void)cudaGetLastError();
	if (!backend || !backend->copies)
		return false;
	again = cudaStreamQuery(backend->copies);
	(void)cudaGetLastError();
	return again != cudaSuccess && again != cudaErrorNotReady;
}

int cuda_fail(struct cuda_backend *backend, cudaError_t code, const char *format, ...)
{
	const char *more = spoilt(backend) ? "; the device is lost to this process: end it and start it again" : "";
	char tried[TRIED_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(tried, sizeof(tried), format, arguments);
	va_end(arguments);
	return weir_fail(code == cudaErrorMemoryAllocation ? ENOMEM : code == cudaErrorNotSupported ? ENOTSUP : EIO,
			 "%s: %s (%s)%s", tried, cudaGetErrorString(code), cudaGetErrorName(code), more);
}

void *cuda_driver_entry(const char *name, unsigned version)
{
	enum cudaDriverEntryPointQueryResult found;
	void *function = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found) != cudaSuccess) {
		(void)cudaGetLastError();
		return NULL;
	}
	return found == cudaDriverEntryPointSuccess ? function : NULL;
}

int cuda_enter(struct cuda_backend *backend)
{
	cudaError_t code = cudaSetDevice(backend->device);

	return code ? cuda_fail(backend, code, "cannot go on with cuda:%d (latest kernel: \"%s\")", backend->device,
				backend->latest ? backend->latest : "none") : 0;
}
