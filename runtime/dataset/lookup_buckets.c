/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup_buckets.c: entries by their key, through a table of where the keys with the same leading bits are.
 *
 * Keys are hashes, so buckets are about equally long: a lookup is two accesses to memory. A quarter of a byte
 * per sample where entries lie in the order of their keys, 4 bytes more where they do not.
 */
#include <stdlib.h>

#include "directory.h"

enum { BUCKET_ENTRIES_LOG2 = 4 };

struct weir_dataset_lookup_index {
	uint64_t count;
	uint32_t bits;
	uint32_t *start;  /* [2^bits + 1] */
	uint32_t *sorted; /* [count] indices of entries, or NULL: they are sorted */
};

static uint64_t bucket_of(const struct weir_dataset_lookup_index *index, uint64_t key)
{
	return key >> (WEIR_DATASET_KEY_BITS - index->bits);
}

static void free_index(struct weir_dataset_lookup_index *index)
{
	free(index->start);
	free(index->sorted);
	free(index);
}

static void fill(struct weir_dataset_lookup_index *index, const struct weir_dataset_entry *entries)
{
	uint64_t buckets = UINT64_C(1) << index->bits;

	for (uint64_t i = 0; i < index->count; i++)
		index->start[bucket_of(index, weir_dataset_entry_key(entries[i])) + 1]++;
	for (uint64_t i = 0; i < buckets; i++)
		index->start[i + 1] += index->start[i];
	if (!index->sorted)
		return;
	for (uint64_t i = 0; i < index->count; i++) /* moves each start to its end */
		index->sorted[index->start[bucket_of(index, weir_dataset_entry_key(entries[i]))]++] =
			(uint32_t)i;
	for (uint64_t i = buckets; i > 0; i--)
		index->start[i] = index->start[i - 1];
	index->start[0] = 0;
}

static struct weir_dataset_lookup_index *build(const struct weir_dataset_entry *entries, uint64_t count,
					       bool by_key)
{
	struct weir_dataset_lookup_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->count = count;
	index->bits = 1;
	while ((count >> BUCKET_ENTRIES_LOG2) > UINT64_C(1) << index->bits)
		index->bits++;
	index->start = calloc((UINT64_C(1) << index->bits) + 1, sizeof(*index->start));
	index->sorted = by_key ? NULL : malloc((count ? count : 1) * sizeof(*index->sorted));
	if (!index->start || (!by_key && !index->sorted)) {
		free_index(index);
		return NULL;
	}
	fill(index, entries);
	return index;
}

static uint64_t find(const struct weir_dataset_lookup_index *index, const struct weir_dataset_entry *entries,
		     uint64_t key)
{
	uint64_t bucket = bucket_of(index, key);

	for (uint32_t i = index->start[bucket]; i < index->start[bucket + 1]; i++) {
		uint32_t at = index->sorted ? index->sorted[i] : i;

		if (weir_dataset_entry_key(entries[at]) == key)
			return at;
	}
	return UINT64_MAX;
}

static void expect(const struct weir_dataset_lookup_index *index, const struct weir_dataset_entry *entries,
		   uint64_t key)
{
	uint32_t start = index->start[bucket_of(index, key)];

	if (index->sorted)
		__builtin_prefetch(&index->sorted[start]);
	else
		for (uint32_t i = 0; i < 4; i++) /* a bucket is four lines of the processor's cache */
			__builtin_prefetch((const char *)&entries[start] + (size_t)64 * i);
}

static uint64_t bytes_of(const struct weir_dataset_lookup_index *index)
{
	return sizeof(*index) +
	       ((UINT64_C(1) << index->bits) + 1 + (index->sorted ? index->count : 0)) * sizeof(uint32_t);
}

const struct weir_dataset_lookup_kind weir_dataset_lookup_buckets = {
	.name = "buckets",
	.build = build,
	.find = find,
	.expect = expect,
	.bytes = bytes_of,
	.free = free_index,
};
