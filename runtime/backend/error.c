/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c: each thread's latest sentence about why a call failed, and sentences that are printed. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_BYTES = 1024 };

static _Thread_local char sentence[SENTENCE_BYTES];

const char *weir_last_error(void) __attribute__((visibility("default")));

int weir_fail(int error, const char *format, ...)
{
	/* Composed aside: an argument may well be the previous sentence. */
	char composed[SENTENCE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(composed, sizeof(composed), format, arguments);
	va_end(arguments);
	snprintf(sentence, sizeof(sentence), "%s", composed);
	return -error;
}

void weir_report(const char *format, ...)
{
	char composed[2 * SENTENCE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(composed, sizeof(composed), format, arguments);
	va_end(arguments);
	fprintf(stderr, "weir: %s\n", composed); /* one line, whatever other threads and processes print */
}

const char *weir_last_error(void)
{
	return sentence;
}
