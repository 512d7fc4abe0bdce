/* SPDX-License-Identifier: BSD-3-Clause */
/* What the run time says, as weir's sentences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../runtime/backend/error.h"
#include "gpu.h"

enum { TRIED_BYTES = 400 };

int gpu_fail(const struct gpu_backend *backend, gpuError_t code, const char *format, ...)
{
	int error = code == gpuErrorMemoryAllocation ? ENOMEM : code == gpuErrorNotSupported ? ENOTSUP : EIO;
	const char *says = gpuGetErrorString(code), *name = gpuGetErrorName(code), *more;
	char tried[TRIED_BYTES];
	va_list arguments;

	(void)gpuGetLastError();
	more = gpu_is_lost(backend) ? "; the device is lost to this process: end it and start it again" : "";
	va_start(arguments, format);
	vsnprintf(tried, sizeof(tried), format, arguments);
	va_end(arguments);
	if (!strcmp(says, name)) /* older run times have no more to say than the error's name */
		return weir_fail(error, "%s: %s%s", tried, name, more);
	return weir_fail(error, "%s: %s (%s)%s", tried, says, name, more);
}

int gpu_enter(struct gpu_backend *backend)
{
	gpuError_t code = gpuSetDevice(backend->device);

	return code ? gpu_fail(backend, code, "cannot go on with " GPU_NAME ":%d (latest kernel: \"%s\")",
			       backend->device, backend->latest ? backend->latest : "none")
		    : 0;
}
