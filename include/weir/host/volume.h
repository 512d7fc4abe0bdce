/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/volume.h: the host side of pools of buffers; lanes use <weir/core/volume/allocator.h>.
 *
 * Owns: options, growth, counters. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_VOLUME_H
#define WEIR_HOST_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_buffer_pool;
struct weir_context;

/**
 * struct weir_pool_options - a pool of buffers
 * @size: sizeof the structure
 * @bytes: to begin with, rounded up to 1 MiB; 0: 8 MiB. Besides 4 bytes for each 4 KiB and three bitmaps
 * @most_bytes: what it may grow to; 0: it does not grow
 */
struct weir_pool_options {
	size_t size;
	uint64_t bytes;
	uint64_t most_bytes;
};

/**
 * weir_pool_create() - memory out of which lanes take buffers for I/O
 * @context: its memory, which storages of the context reach
 * @options: NULL for the defaults
 * @out: the pool
 *
 * Lanes that find no memory wait for it as long as they say (weir_pool_take()); weir_pool_serve() adds it.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
WEIR_API int weir_pool_create(struct weir_context *context, const struct weir_pool_options *options,
			      struct weir_buffer_pool **out);

/**
 * weir_pool_serve() - add memory when lanes want it
 * @pool: the pool
 * @us: how long to wait for their wishes; 0: what they wished so far
 *
 * While a kernel runs, or between two. The pool doubles, or grows by what a lane wants at once if that is
 * more, up to its most_bytes; new memory is there for all storages of the context, as that of weir_alloc()
 * is. It grows 15 times at most.
 *
 * Return: how often it grew; -EINVAL; -ENOMEM.
 */
WEIR_API int weir_pool_serve(struct weir_buffer_pool *pool, uint64_t us);

/** weir_pool_address() - device address of its struct weir_pool, for arguments of kernels; 0: no pool */
WEIR_API uint64_t weir_pool_address(const struct weir_buffer_pool *pool);

/**
 * struct weir_pool_stats - how a pool stands
 * @size: sizeof the structure
 * @bytes: all of its memory
 * @free_bytes: of these, not in buffers
 * @largest_bytes: the largest buffer that can be taken now
 * @regions: how often memory was added, and 1
 * @refused: calls of weir_pool_take() that ended without memory
 * @own_bytes: bitmaps, lengths and the structure of the pool itself
 */
struct weir_pool_stats {
	size_t size;
	uint64_t bytes;
	uint64_t free_bytes;
	uint64_t largest_bytes;
	uint64_t regions;
	uint64_t refused;
	uint64_t own_bytes;
};

/** weir_pool_stats() - a snapshot; no kernel that uses the pool may be running. Return: 0; -EINVAL; -ENOMEM
 */
WEIR_API int weir_pool_stats(struct weir_buffer_pool *pool, struct weir_pool_stats *stats);

/**
 * weir_pool_destroy() - free the pool and its memory; NULL is fine
 *
 * Return: 0; -EINVAL: no open pool; -EBUSY: a command has a buffer of it, and nothing was done. Before
 * weir_context_close().
 */
WEIR_API int weir_pool_destroy(struct weir_buffer_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
