/* SPDX-License-Identifier: BSD-3-Clause */
#include "error.h"

#include <errno.h>
#include <stdarg.h>

int graph_fail(struct graph_error *error, int code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return code;
}

int graph_fail_memory(struct graph_error *error, uint64_t bytes, const char *what)
{
	return graph_fail(error, -ENOMEM,
			  "no memory for %s (%llu bytes): give a smaller --memory or free some", what,
			  (unsigned long long)bytes);
}

int graph_error_copy(const struct graph_error *error, int code, char *text, size_t text_bytes)
{
	if (code && text && text_bytes)
		snprintf(text, text_bytes, "%s", error->text);
	return code;
}
