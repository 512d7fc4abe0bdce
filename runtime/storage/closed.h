/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closed.h: what lanes find where a storage or a cache was.
 *
 * Owns: queue pairs that are never free and never reaped, with the status WEIR_E_CLOSED, and a cache of one
 * empty set. Kernel arguments are copies that the runtime cannot take back: a kernel launched with an array
 * or a disk of something closed gets that status. The words stay until the context is closed, a page for a
 * storage, a few for a cache.
 */
#ifndef WEIR_RUNTIME_CLOSED_H
#define WEIR_RUNTIME_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

struct weir_cache;
struct weir_cache_disks;
struct weir_context;
struct weir_disk;
struct weir_storage;

/** weir_closed_prepare() - the context's fault record, with what closed queue pairs need behind it */
int weir_closed_prepare(struct weir_context *context);

/**
 * weir_closed_commands() - no controller has the queue pairs of @storage any more: end the commands that it
 * has left there with WEIR_E_CLOSED, if lines may be among what they have
 */
void weir_closed_commands(struct weir_storage *storage);

/** weir_closed_queues() - all @count queue pairs at device address @queues, whose controller is gone, are
 * closed */
void weir_closed_queues(struct weir_context *context, uint64_t queues, uint32_t count);

/** weir_closed_layout() - all lines of @disks are those of @disk, which is closed, or is about to be */
void weir_closed_layout(struct weir_cache *cache, struct weir_cache_disks *disks,
			const struct weir_disk *disk);

/**
 * weir_closed_cache() - arrays of @cache find no line and no storage any more
 *
 * Return: false: it had no array, or there is no memory: nothing was done. Else its struct weir_lines and its
 * layouts' tables stay.
 */
bool weir_closed_cache(struct weir_cache *cache);

#endif
