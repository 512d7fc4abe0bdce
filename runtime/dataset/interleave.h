/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interleave.h: a random order of all storages' chunks in which each storage has its part of every stretch.
 *
 * Owns: in which order chunks are read in an epoch. Each storage's own chunks come in a random order, and the
 * storages take storages: of any chunks in a row a storage has its share, give or take a few. In a uniform
 * order of all chunks some storage would always be behind, and the others would wait for it.
 */
#ifndef WEIR_DATASET_INTERLEAVE_H
#define WEIR_DATASET_INTERLEAVE_H

#include "directory.h"
#include "permute.h"

/** struct weir_dataset_interleaved - chunks of one storage, from @first on, and their own order */
struct weir_dataset_interleaved {
	uint64_t first;
	struct weir_dataset_permute permute;
};

/**
 * struct weir_dataset_interleave - one order
 * @rounds: in each of which a storage has one chunk or none: as many as the longest storage has chunks
 * @key: which storage a round begins with
 * @storages: [count], of storages that have chunks
 */
struct weir_dataset_interleave {
	uint64_t chunks;
	uint64_t rounds;
	uint64_t key;
	uint32_t count;
	struct weir_dataset_interleaved *storages;
};

/** weir_dataset_interleave_open() - of all chunks of @directory, by @seed and @epoch. Return: 0 or -ENOMEM
 * with a sentence */
int weir_dataset_interleave_open(struct weir_dataset_interleave *interleave,
				 const struct weir_dataset_directory *directory, uint64_t seed,
				 uint64_t epoch);

/** weir_dataset_interleave_at() - the chunk at @index, which is below the number of chunks */
uint64_t weir_dataset_interleave_at(const struct weir_dataset_interleave *interleave, uint64_t index);

/** weir_dataset_interleave_index() - the index of @chunk: the inverse */
uint64_t weir_dataset_interleave_index(const struct weir_dataset_interleave *interleave, uint64_t chunk);

/** weir_dataset_interleave_close() - free what it points to */
void weir_dataset_interleave_close(struct weir_dataset_interleave *interleave);

#endif
