/* SPDX-License-Identifier: BSD-3-Clause */
/* stored.h: blocks of the file that are to be written: spoiled before, compared afterwards. */
#ifndef KVCACHE_STORED_H
#define KVCACHE_STORED_H

#include "trace.h"

/** stored_spoil() - write to the blocks of @trace what they are not to have; 0 or a negative errno with a
 * sentence */
int stored_spoil(const char *path, const struct kvcache_trace *trace, uint64_t block_bytes, char *error);

/** stored_check() - read the blocks of @trace, without what the page cache had of them; @bad grows by the
 * wrong words */
int stored_check(const char *path, const struct kvcache_trace *trace, uint64_t block_bytes, uint64_t *bad,
		 char *error);

#endif
