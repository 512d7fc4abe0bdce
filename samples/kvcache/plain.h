/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h: the same by hand: host threads that read a block and copy it to the device, or the other way, each
 * with a context where the device's memory can have several. */
#ifndef KVCACHE_PLAIN_H
#define KVCACHE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "../common/device.h"

enum { PLAIN_MOST_THREADS = 64 };

struct plain;

/**
 * plain_open() - threads and their contexts
 * @device: what to run on
 * @shared: the context of all threads where sample_is_alone()
 * @threads: how many
 * @file: descriptor
 * @block_bytes: length of a block
 * @batch: blocks at a time, over all threads
 * @out: what the other calls take
 *
 * Return: 0 or a negative errno with a sentence.
 */
int plain_open(const struct sample_device *device, struct weir_context *shared, uint32_t threads, int file,
	       uint64_t block_bytes, size_t batch, struct plain **out, char *error);

/** plain_load() - load @count blocks; @seconds is what that took. Then looks at every byte, @bad counts the
 * wrong words. */
int plain_load(struct plain *plain, const uint64_t *blocks, size_t count, double *seconds, uint64_t *bad,
	       char *error);

/** plain_store() - lanes make @count blocks, then they are copied and written; @seconds is what the latter
 * took */
int plain_store(struct plain *plain, const uint64_t *blocks, size_t count, double *seconds, char *error);

/** plain_close() - as sample_close(); NULL is fine */
int plain_close(struct plain *plain, int code, char *error);

#endif
