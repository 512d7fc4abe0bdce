/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c: option and result structures that begin with their size. */
#include <errno.h>
#include <string.h>

#include "../backend/error.h"
#include "options.h"

int weir_options_take(void *to, size_t bytes, const void *from, const char *what)
{
	size_t size;

	memset(to, 0, bytes);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size) || size > 4096)
		return weir_fail(EINVAL, "%s: size is %zu; make them with WEIR_OPTIONS()", what, size);
	for (size_t i = bytes; i < size; i++)
		if (((const char *)from)[i])
			return weir_fail(EINVAL, "%s: set an option this version does not know (byte %zu)",
					 what, i);
	memcpy(to, from, size < bytes ? size : bytes);
	return 0;
}

int weir_result_check(const void *to, const char *what)
{
	size_t size;

	memcpy(&size, to, sizeof(size));
	return size < sizeof(size) || size > 4096
		       ? weir_fail(EINVAL, "%s: size is %zu; set it to sizeof the structure first", what,
				   size)
		       : 0;
}

int weir_result_give(void *to, const void *from, size_t bytes, const char *what)
{
	int error = weir_result_check(to, what);
	size_t size;

	if (error)
		return error;
	memcpy(&size, to, sizeof(size));
	if (size > bytes)
		memset((char *)to + bytes, 0, size - bytes);
	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
	       (size < bytes ? size : bytes) - sizeof(size));
	return 0;
}
