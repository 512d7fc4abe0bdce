/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h: one sentence per failure, kept per thread for weir_last_error(). */
#ifndef WEIR_RUNTIME_ERROR_H
#define WEIR_RUNTIME_ERROR_H

/* What backends that are modules may call: exported, and no part of the public interface. */
#define WEIR_MODULE_API extern __attribute__((visibility("default")))

/**
 * weir_fail() - record why a call fails
 * @error: positive errno value
 * @format: one sentence: what failed, where, why, what to do
 *
 * The function that first decides on an error calls this, once; callers pass
 * the value on.
 *
 * Return: -@error.
 */
WEIR_MODULE_API int weir_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
