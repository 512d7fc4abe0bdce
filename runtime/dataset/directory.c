/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.c: the sample directory of directory.h. */
#include "directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "backend/error.h"

enum { READ_ALIGN = 4096, OVERLAP = 16 };

struct weir_dataset_hash weir_dataset_hash(const char *name)
{
	XXH128_hash_t hash = XXH3_128bits(name, strlen(name));

	return (struct weir_dataset_hash){ hash.low64, hash.high64 };
}

uint64_t weir_dataset_directory_offset(const struct weir_dataset_directory *directory, uint64_t number)
{
	struct weir_dataset_entry entry = directory->entries[number];

	return weir_dataset_entry_units(entry) << directory->parts[weir_dataset_entry_storage(entry)].shift;
}

static bool fits(const struct weir_dataset_directory *directory, uint64_t first, uint64_t last,
		 uint64_t bytes)
{
	uint64_t begin = weir_dataset_directory_offset(directory, first) & ~(uint64_t)(READ_ALIGN - 1);
	uint64_t end = weir_dataset_directory_offset(directory, last) +
		       weir_dataset_entry_length(directory->entries[last]);

	return ((end + READ_ALIGN - 1) & ~(uint64_t)(READ_ALIGN - 1)) - begin <= bytes;
}

/* Walk over the chunks; with @to set, note where each begins. Return: how many. */
static uint64_t walk_chunks(const struct weir_dataset_directory *directory, uint32_t chunk_bytes,
			    uint32_t *to)
{
	uint64_t chunks = 0;

	for (uint32_t part = 0; part < directory->part_count; part++) {
		uint64_t at = directory->parts[part].first, end = at + directory->parts[part].count;

		while (at < end) {
			uint64_t first = at++;

			while (at < end && fits(directory, first, at, chunk_bytes))
				at++;
			if (to)
				to[chunks] = (uint32_t)first;
			chunks++;
		}
	}
	return chunks;
}

int weir_dataset_directory_chunks(struct weir_dataset_directory *directory, uint32_t chunk_bytes)
{
	directory->chunks = walk_chunks(directory, chunk_bytes, NULL);
	directory->chunk_first = malloc((directory->chunks + 1) * sizeof(*directory->chunk_first));
	if (!directory->chunk_first)
		return weir_fail(ENOMEM,
				 "dataset: no memory for the list of %llu chunks; mount with larger chunks",
				 (unsigned long long)directory->chunks);
	walk_chunks(directory, chunk_bytes, directory->chunk_first);
	directory->chunk_first[directory->chunks] = (uint32_t)directory->count;
	return 0;
}

uint64_t weir_dataset_directory_chunk(const struct weir_dataset_directory *directory, uint64_t number)
{
	uint64_t low = 0, high = directory->chunks;

	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (directory->chunk_first[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int weir_dataset_directory_index(struct weir_dataset_directory *directory)
{
	for (uint32_t i = 0; i < directory->part_count && !directory->indexed; i++) {
		struct weir_dataset_part *part = &directory->parts[i];

		if (!part->index && part->count)
			part->index = directory->lookup->build(directory->entries + part->first, part->count,
							       part->by_key);
		if (!part->index && part->count)
			return weir_fail(ENOMEM, "dataset: no memory to index %llu names",
					 (unsigned long long)part->count);
	}
	directory->indexed = true;
	return 0;
}

/* Its key is another's, too: by the whole hash. UINT64_MAX: it is no such name. */
static uint64_t find_collision(const struct weir_dataset_directory *directory, struct weir_dataset_hash hash)
{
	uint64_t found = UINT64_MAX;

	for (size_t i = 0; i < directory->collision_count; i++)
		if (directory->collisions[i].hash_low == hash.low &&
		    directory->collisions[i].hash_high == hash.high)
			found = directory->collisions[i].number;
	return found;
}

/* The storages whose directory may have @key: one if they were placed, else all. */
static void parts_of(const struct weir_dataset_directory *directory, uint64_t key, uint32_t *first,
		     uint32_t *end)
{
	bool placed = directory->part_count && directory->parts[0].placed;

	*first = placed ? (uint32_t)(key % directory->part_count) : 0;
	*end = placed ? *first + 1 : directory->part_count;
}

static uint64_t find_hash(const struct weir_dataset_directory *directory, struct weir_dataset_hash hash)
{
	uint64_t key = hash.low & WEIR_DATASET_KEY_MASK, found = UINT64_MAX;
	uint32_t first, end;

	if (directory->collision_count && (found = find_collision(directory, hash)) != UINT64_MAX)
		return found;
	parts_of(directory, key, &first, &end);
	for (uint32_t i = first; i < end && found == UINT64_MAX; i++) {
		const struct weir_dataset_part *part = &directory->parts[i];

		if (part->index)
			found = directory->lookup->find(part->index, directory->entries + part->first, key);
		if (found != UINT64_MAX)
			found += part->first;
	}
	return found;
}

uint64_t weir_dataset_directory_find(struct weir_dataset_directory *directory, const char *name)
{
	return weir_dataset_directory_index(directory) ? UINT64_MAX
						       : find_hash(directory, weir_dataset_hash(name));
}

static void expect_hash(const struct weir_dataset_directory *directory, struct weir_dataset_hash hash)
{
	uint64_t key = hash.low & WEIR_DATASET_KEY_MASK;
	uint32_t first, end;

	parts_of(directory, key, &first, &end);
	for (uint32_t i = first; i < end; i++) {
		const struct weir_dataset_part *part = &directory->parts[i];

		if (part->index)
			directory->lookup->expect(part->index, directory->entries + part->first, key);
	}
}

int weir_dataset_directory_find_many(struct weir_dataset_directory *directory, const char *const *names,
				     size_t count, uint64_t *numbers)
{
	struct weir_dataset_hash hashes[OVERLAP];
	int error = weir_dataset_directory_index(directory);

	if (error)
		return error;
	for (size_t at = 0; at < count; at += OVERLAP) {
		size_t some = count - at < OVERLAP ? count - at : OVERLAP;

		for (size_t i = 0; i < some; i++) {
			hashes[i] = weir_dataset_hash(names[at + i]);
			expect_hash(directory, hashes[i]);
		}
		for (size_t i = 0; i < some; i++)
			numbers[at + i] = find_hash(directory, hashes[i]);
	}
	return 0;
}

uint64_t weir_dataset_directory_bytes(const struct weir_dataset_directory *directory)
{
	uint64_t bytes = directory->count * sizeof(*directory->entries) +
			 directory->part_count * sizeof(*directory->parts);

	bytes += directory->labels ? directory->count * sizeof(*directory->labels) : 0;
	bytes += (directory->chunks + 1) * sizeof(*directory->chunk_first);
	bytes += directory->collision_count * sizeof(*directory->collisions);
	for (uint32_t i = 0; i < directory->part_count; i++)
		bytes += directory->parts[i].index ? directory->lookup->bytes(directory->parts[i].index) : 0;
	return bytes;
}

void weir_dataset_directory_free(struct weir_dataset_directory *directory)
{
	for (uint32_t i = 0; directory->parts && i < directory->part_count; i++)
		if (directory->parts[i].index)
			directory->lookup->free(directory->parts[i].index);
	free(directory->entries);
	free(directory->labels);
	free(directory->parts);
	free(directory->chunk_first);
	free(directory->collisions);
	memset(directory, 0, sizeof(*directory));
}
