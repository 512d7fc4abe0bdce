/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: option and result structures that begin with their size, so that they can grow.
 *
 * Owns: taking one from a caller that is older or newer, and filling one.
 */
#ifndef WEIR_RUNTIME_OPTIONS_H
#define WEIR_RUNTIME_OPTIONS_H

#include <stddef.h>

/**
 * weir_options_take() - copy an option structure whose caller may be older or newer
 * @to: ours, zeroed where the caller's is shorter
 * @bytes: sizeof(*to)
 * @from: the caller's, or NULL
 * @what: for the message
 *
 * Return: 0, or -EINVAL if size is nonsense or options we do not know are set.
 */
int weir_options_take(void *to, size_t bytes, const void *from, const char *what);

/** weir_result_check() - weir_result_give() would fill a caller's structure; else -EINVAL, for calls that do
 * something before they do */
int weir_result_check(const void *to, const char *what);

/** weir_result_give() - fill a caller's structure as far as it reaches; keeps its size */
int weir_result_give(void *to, const void *from, size_t bytes, const char *what);

#endif
