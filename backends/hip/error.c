/* SPDX-License-Identifier: BSD-3-Clause */
/* What the HIP run time says, as weir's sentences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hip.h"

enum { TRIED_BYTES = 400 };

/* Older run times have no more to say than the error's name. */
static int fail(int error, const char *tried, const char *says, const char *name)
{
	return !strcmp(says, name) ? weir_fail(error, "%s: %s", tried, name) :
				     weir_fail(error, "%s: %s (%s)", tried, says, name);
}

int hip_fail(hipError_t code, const char *format, ...)
{
	char tried[TRIED_BYTES];
	va_list arguments;

	(void)hipGetLastError();
	va_start(arguments, format);
	vsnprintf(tried, sizeof(tried), format, arguments);
	va_end(arguments);
	return fail(code == hipErrorOutOfMemory ? ENOMEM : code == hipErrorNotSupported ? ENOTSUP : EIO, tried,
		    hipGetErrorString(code), hipGetErrorName(code));
}

int hip_enter(struct hip_backend *backend)
{
	hipError_t code = hipSetDevice(backend->device);

	return code ? hip_fail(code, "cannot go on with hip:%d (latest kernel: \"%s\")", backend->device,
			       backend->latest ? backend->latest : "none") : 0;
}
