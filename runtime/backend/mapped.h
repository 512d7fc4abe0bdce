/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.h: device memory that is a file's, such as a BAR of another device: cpu:memory=PATH. Any thread. */
#ifndef WEIR_MAPPED_H
#define WEIR_MAPPED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "window.h"

#define WEIR_MAPPED_PAGE ((size_t)4096)

struct weir_mapped;

/** weir_mapped_open() - map all of the file, or of the module's window, @path; a negative errno with a
 * sentence */
int weir_mapped_open(const char *path, struct weir_mapped **out);
/** weir_mapped_close() - unmap it; NULL is fine */
void weir_mapped_close(struct weir_mapped *memory);
/** weir_mapped_take() - zeroed pages of it; -ENOMEM with a sentence */
int weir_mapped_take(struct weir_mapped *memory, size_t bytes, void **out);
/** weir_mapped_give() - what weir_mapped_take() gave at @address is free again */
void weir_mapped_give(struct weir_mapped *memory, void *address);
/** weir_mapped_window() - the module's window that it is; NULL: it is none */
const struct weir_window *weir_mapped_window(const struct weir_mapped *memory);
/** weir_mapped_room() - how much it has, and how much of that is free */
void weir_mapped_room(struct weir_mapped *memory, uint64_t *bytes, uint64_t *free_bytes);

#endif
