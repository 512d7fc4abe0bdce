/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h: one sentence per failure, kept per thread for weir_last_error(); or printed, where no call fails.
 */
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

/**
 * weir_report() - print one sentence to the standard error output
 * @format: one sentence: what happened, where, why, what to do
 *
 * For what no call can return: a downgrade, a loss, what a thread of weir's own found. Each is printed once,
 * by the function that decides on it.
 */
WEIR_MODULE_API void weir_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
