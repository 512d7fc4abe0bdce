/* SPDX-License-Identifier: BSD-3-Clause */
/* opened.h: a medium on top of a storage that the runtime opened. */
#ifndef WEIR_TARGET_OPENED_H
#define WEIR_TARGET_OPENED_H

#include "../transport/medium/medium.h"

/**
 * weir_medium_opened() - open a storage of any scheme, and make a medium of it
 * @uri: as weir_storage_open() has it
 * @read_only: it is not written
 * @threads: controller threads that will submit
 */
int weir_medium_opened(const char *uri, bool read_only, unsigned threads, struct weir_medium **out);

#endif
