/* SPDX-License-Identifier: BSD-3-Clause */
/* config.h: lines of the kernel's configuration, which may be compressed. */
#ifndef WEIR_CHECK_CONFIG_H
#define WEIR_CHECK_CONFIG_H

#include <stdbool.h>

/** config_each() - call @take with each line of the file at @path. Return: false: it cannot be read, or not
 * unpacked. */
bool config_each(const char *path, void (*take)(const char *line, void *user), void *user);

#endif
