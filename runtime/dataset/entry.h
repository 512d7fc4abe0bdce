/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * entry.h: the 16 bytes that the directory has of a sample.
 *
 * Owns: their layout (DLFS, section III-B and figure 3b). Storage (NID) 16 bits, key 48; offset 40, length
 * 23, V 1. Of a storage above 1 TiB the offset counts units of 512 bytes.
 */
#ifndef WEIR_DATASET_ENTRY_H
#define WEIR_DATASET_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WEIR_DATASET_KEY_BITS = 48,
	WEIR_DATASET_OFFSET_BITS = 40,
	WEIR_DATASET_LENGTH_BITS = 23,
	WEIR_DATASET_UNIT_LOG2 = 9, /* of offsets in storages above 1 TiB */
};

#define WEIR_DATASET_KEY_MASK ((UINT64_C(1) << WEIR_DATASET_KEY_BITS) - 1)

/** struct weir_dataset_entry - one sample */
struct weir_dataset_entry {
	uint64_t id;    /* storage << 48 | key */
	uint64_t where; /* offset << 24 | length << 1 | V */
};

_Static_assert(sizeof(struct weir_dataset_entry) == 16, "16 bytes per sample");

static inline struct weir_dataset_entry weir_dataset_entry(uint32_t storage, uint64_t key, uint64_t units,
							   uint32_t length)
{
	return (struct weir_dataset_entry){ (uint64_t)storage << WEIR_DATASET_KEY_BITS |
						    (key & WEIR_DATASET_KEY_MASK),
					    units << (WEIR_DATASET_LENGTH_BITS + 1) | (uint64_t)length << 1 };
}

static inline uint32_t weir_dataset_entry_storage(struct weir_dataset_entry entry)
{
	return (uint32_t)(entry.id >> WEIR_DATASET_KEY_BITS);
}

static inline uint64_t weir_dataset_entry_key(struct weir_dataset_entry entry)
{
	return entry.id & WEIR_DATASET_KEY_MASK;
}

/* In bytes, or units of 512 where the storage is above 1 TiB. */
static inline uint64_t weir_dataset_entry_units(struct weir_dataset_entry entry)
{
	return entry.where >> (WEIR_DATASET_LENGTH_BITS + 1);
}

static inline uint32_t weir_dataset_entry_length(struct weir_dataset_entry entry)
{
	return (uint32_t)(entry.where >> 1) & ((UINT32_C(1) << WEIR_DATASET_LENGTH_BITS) - 1);
}

/* The sample is in the sample cache. */
static inline bool weir_dataset_entry_cached(struct weir_dataset_entry entry)
{
	return entry.where & 1;
}

#endif
