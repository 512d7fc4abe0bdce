/* SPDX-License-Identifier: BSD-3-Clause */
/* What an OpenCL implementation says, as weir's sentences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "opencl.h"

enum { TRIED_BYTES = 400 };

static const char *name_of(cl_int code)
{
	static const struct {
		cl_int code;
		const char *name;
	} NAMES[] = {
#define NAME(code) { code, #code }
		NAME(CL_DEVICE_NOT_FOUND),        NAME(CL_DEVICE_NOT_AVAILABLE),
		NAME(CL_COMPILER_NOT_AVAILABLE),  NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
		NAME(CL_OUT_OF_RESOURCES),        NAME(CL_OUT_OF_HOST_MEMORY),
		NAME(CL_BUILD_PROGRAM_FAILURE),   NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
		NAME(CL_LINKER_NOT_AVAILABLE),    NAME(CL_INVALID_VALUE),
		NAME(CL_INVALID_DEVICE),          NAME(CL_INVALID_BINARY),
		NAME(CL_INVALID_BUILD_OPTIONS),   NAME(CL_INVALID_PROGRAM_EXECUTABLE),
		NAME(CL_INVALID_KERNEL_NAME),     NAME(CL_INVALID_KERNEL),
		NAME(CL_INVALID_ARG_VALUE),       NAME(CL_INVALID_KERNEL_ARGS),
		NAME(CL_INVALID_WORK_GROUP_SIZE), NAME(CL_INVALID_GLOBAL_WORK_SIZE),
		NAME(CL_INVALID_OPERATION),
#undef NAME
	};

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (NAMES[i].code == code)
			return NAMES[i].name;
	return "an error";
}

int opencl_fail(cl_int code, const char *format, ...)
{
	bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
	char tried[TRIED_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(tried, sizeof(tried), format, arguments);
	va_end(arguments);
	return weir_fail(memory ? ENOMEM : EIO, "%s: %s (%d)", tried, name_of(code), code);
}
