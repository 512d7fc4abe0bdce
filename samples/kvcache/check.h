/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h: device memory that blocks are loaded to, and the look at every byte of it. */
#ifndef KVCACHE_CHECK_H
#define KVCACHE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "../common/device.h"

/**
 * struct kvcache_pool - room for some blocks
 * @address: of it
 * @list: the caller writes here which blocks are to be there
 */
struct kvcache_pool {
	struct weir_context *context;
	uint64_t address;
	uint64_t list_address;
	uint64_t verdict;
	uint64_t *list;
	uint64_t block_bytes;
	size_t blocks;
};

/** kvcache_pool_open() - room for @blocks; 0 or a negative errno with a sentence */
int kvcache_pool_open(struct kvcache_pool *pool, struct weir_context *context, size_t blocks,
		      uint64_t block_bytes, char *error);

/** kvcache_pool_check() - lanes compare the first @count blocks with @list's and poison them; @bad grows by
 * the wrong words */
int kvcache_pool_check(struct kvcache_pool *pool, size_t count, uint64_t *bad, char *error);

/** kvcache_pool_fill() - lanes make the first @count blocks what the file has of @list's */
int kvcache_pool_fill(struct kvcache_pool *pool, size_t count, char *error);

/** kvcache_pool_close() - the device memory goes with the context */
void kvcache_pool_close(struct kvcache_pool *pool);

#endif
