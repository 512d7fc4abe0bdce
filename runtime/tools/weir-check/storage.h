/* SPDX-License-Identifier: BSD-3-Clause */
/* storage.h: storages that weir-check is given by URI. */
#ifndef WEIR_CHECK_STORAGE_H
#define WEIR_CHECK_STORAGE_H

#include <stdbool.h>

/** storages_report() - each of @uris opened as a program would, and what came of it, printed; STATUS_FAST or
 * STATUS_NONE */
int storages_report(const char *const *uris, unsigned count, bool json);

#endif
