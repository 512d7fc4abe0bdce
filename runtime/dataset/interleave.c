/* SPDX-License-Identifier: BSD-3-Clause */
/* interleave.c: the order of interleave.h. */
#include "interleave.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"

/* Numbers of other purposes (order.c) are smaller than a storage's. */
enum { PURPOSE_CHUNKS = 2, PURPOSE_OF_STORAGE = 256 };

static int no_memory(uint32_t storages)
{
	return weir_fail(ENOMEM, "dataset: no memory for the order of the chunks of %u storages", storages);
}

int weir_dataset_interleave_open(struct weir_dataset_interleave *interleave,
				 const struct weir_dataset_directory *directory, uint64_t seed,
				 uint64_t epoch)
{
	uint64_t end;

	memset(interleave, 0, sizeof(*interleave));
	interleave->storages = calloc(directory->part_count + 1, sizeof(*interleave->storages));
	if (!interleave->storages)
		return no_memory(directory->part_count);
	interleave->chunks = directory->chunks;
	for (uint32_t i = 0; i < directory->part_count; i++) {
		const struct weir_dataset_part *part = &directory->parts[i];
		struct weir_dataset_interleaved *own = &interleave->storages[interleave->count];

		if (!part->count)
			continue;
		own->first = weir_dataset_directory_chunk(directory, part->first);
		end = weir_dataset_directory_chunk(directory, part->first + part->count - 1) + 1;
		weir_dataset_permute_open(&own->permute, end - own->first, seed, epoch,
					  PURPOSE_CHUNKS + (uint64_t)i * PURPOSE_OF_STORAGE);
		if (own->permute.count > interleave->rounds)
			interleave->rounds = own->permute.count;
		interleave->count++;
	}
	interleave->key = weir_mix_u64(weir_mix_u64(seed + 1) + epoch);
	return 0;
}

void weir_dataset_interleave_close(struct weir_dataset_interleave *interleave)
{
	free(interleave->storages);
	memset(interleave, 0, sizeof(*interleave));
}

/* How many of @storage's chunks come before @round: they are spread evenly. */
static uint64_t had(const struct weir_dataset_interleave *interleave, uint32_t storage, uint64_t round)
{
	return round * interleave->storages[storage].permute.count / interleave->rounds;
}

static uint64_t before(const struct weir_dataset_interleave *interleave, uint64_t round)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < interleave->count; i++)
		sum += had(interleave, i, round);
	return sum;
}

/* The @number-th of the storages in the order of @round. */
static uint32_t storage_in(const struct weir_dataset_interleave *interleave, uint64_t round, uint32_t number)
{
	uint64_t first = weir_mix_u64(interleave->key + round) % interleave->count;

	return (uint32_t)((first + number) % interleave->count);
}

static bool has_one(const struct weir_dataset_interleave *interleave, uint32_t storage, uint64_t round)
{
	return had(interleave, storage, round + 1) > had(interleave, storage, round);
}

uint64_t weir_dataset_interleave_at(const struct weir_dataset_interleave *interleave, uint64_t index)
{
	uint64_t round = index * interleave->rounds / interleave->chunks; /* or a later one */
	const struct weir_dataset_interleaved *own;
	uint32_t number = 0, storage;

	while (before(interleave, round + 1) <= index)
		round++;
	index -= before(interleave, round);
	for (;; number++) {
		storage = storage_in(interleave, round, number);
		if (has_one(interleave, storage, round) && index-- == 0)
			break;
	}
	own = &interleave->storages[storage];
	return own->first + weir_dataset_permute_at(&own->permute, had(interleave, storage, round));
}

static uint32_t storage_of(const struct weir_dataset_interleave *interleave, uint64_t chunk)
{
	uint32_t storage = interleave->count - 1;

	while (interleave->storages[storage].first > chunk)
		storage--;
	return storage;
}

uint64_t weir_dataset_interleave_index(const struct weir_dataset_interleave *interleave, uint64_t chunk)
{
	uint32_t storage = storage_of(interleave, chunk);
	const struct weir_dataset_interleaved *own = &interleave->storages[storage];
	uint64_t through = weir_dataset_permute_index(&own->permute, chunk - own->first) + 1;
	/* the first round after which it has had so many */
	uint64_t round = (through * interleave->rounds + own->permute.count - 1) / own->permute.count - 1;
	uint64_t index = before(interleave, round);

	for (uint32_t number = 0; storage_in(interleave, round, number) != storage; number++)
		index += has_one(interleave, storage_in(interleave, round, number), round);
	return index;
}
