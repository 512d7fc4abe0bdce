/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "kvcache.h"

int kvcache_pool_open(struct kvcache_pool *pool, struct weir_context *context, size_t blocks,
		      uint64_t block_bytes, char *error)
{
	int code;

	*pool = (struct kvcache_pool){ .context = context, .block_bytes = block_bytes, .blocks = blocks };
	pool->list = calloc(blocks, sizeof(*pool->list));
	if (!pool->list)
		return sample_fail(error, -ENOMEM, "no memory for a list of %zu blocks", blocks);
	code = weir_alloc(context, blocks * block_bytes, &pool->address);
	if (!code)
		code = weir_alloc(context, blocks * sizeof(*pool->list), &pool->list_address);
	if (!code)
		code = weir_alloc(context, sizeof(struct kvcache_verdict), &pool->verdict);
	return sample_pass(error, code);
}

static int launch(struct kvcache_pool *pool, const char *kernel, size_t count, char *error)
{
	struct kvcache_check_args args = { .pool = pool->address,
					   .blocks = pool->list_address,
					   .count = count,
					   .block_words = pool->block_bytes / 8,
					   .verdict = pool->verdict };
	uint32_t grid;
	int code = weir_copy_to_device(pool->context, pool->list_address, pool->list,
				       count * sizeof(*pool->list));

	if (!code)
		code = sample_blocks(pool->context, count * args.block_words, &grid);
	if (!code)
		code = sample_run(pool->context, kernel, grid, &args, sizeof(args));
	return sample_pass(error, code);
}

int kvcache_pool_check(struct kvcache_pool *pool, size_t count, uint64_t *bad, char *error)
{
	uint64_t found = 0, zero = 0;
	int code;

	if (!count)
		return 0;
	code = sample_pass(error, weir_copy_to_device(pool->context, pool->verdict, &zero, sizeof(zero)));
	if (!code)
		code = launch(pool, "kvcache_check", count, error);
	if (!code)
		code = sample_pass(
			error, weir_copy_from_device(pool->context, &found, pool->verdict, sizeof(found)));
	*bad += found;
	return code;
}

int kvcache_pool_fill(struct kvcache_pool *pool, size_t count, char *error)
{
	return count ? launch(pool, "kvcache_fill", count, error) : 0;
}

void kvcache_pool_close(struct kvcache_pool *pool)
{
	free(pool->list);
}
