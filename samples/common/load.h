/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h: an array from its storages into plain device memory. */
#ifndef SAMPLE_LOAD_H
#define SAMPLE_LOAD_H

#include <stdint.h>

#include <weir/weir.h>

/**
 * struct sample_source - where an array lies
 * @storages: one, or several striped over
 * @storage_count: how many
 * @stripe_bytes: bytes on one before the next one's turn; 0: 64 KiB
 * @first_byte: where it begins
 * @bytes: its length
 * @element_bytes: 0: bytes as they are; else of each element, on one storage, only a u32 is taken, which
 * begins at its @part_byte and takes @to_bytes, 4 or 8, in device memory
 */
struct sample_source {
	struct weir_storage *const *storages;
	unsigned storage_count;
	uint64_t stripe_bytes;
	uint64_t first_byte;
	uint64_t bytes;
	unsigned element_bytes;
	unsigned part_byte;
	unsigned to_bytes;
};

/**
 * sample_load() - copy an array into memory of the device
 * @context: the context
 * @source: where it is
 * @address: receives where it begins; weir_free() it
 *
 * Return: 0 or a negative errno with weir_last_error().
 */
int sample_load(struct weir_context *context, const struct sample_source *source, uint64_t *address);

#endif
