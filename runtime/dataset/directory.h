/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * directory.h: the sample directory: where every sample of every storage is.
 *
 * Owns: the entries, storage by storage in the order of their offsets (an entry's index is the sample's
 * number), the chunks that they lie in, and an index per storage that finds an entry by its key (DLFS,
 * section III-B). Does no I/O.
 */
#ifndef WEIR_DATASET_DIRECTORY_H
#define WEIR_DATASET_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "entry.h"

/** struct weir_dataset_collision - a sample whose key another sample of its storage has, too */
struct weir_dataset_collision {
	uint64_t key;
	uint64_t hash_low; /* of its name, 128 bits */
	uint64_t hash_high;
	uint64_t number;
};

struct weir_dataset_lookup_index;

/** struct weir_dataset_part - the samples of one storage */
struct weir_dataset_part {
	uint64_t first; /* number of its first sample */
	uint64_t count;
	uint32_t shift;                          /* of offsets: 0, or WEIR_DATASET_UNIT_LOG2 */
	bool by_key;                             /* its entries are in the order of their keys, too */
	bool placed;                             /* samples were given to storages by key */
	struct weir_dataset_lookup_index *index; /* NULL until somebody asks for a name */
};

/**
 * struct weir_dataset_directory - all samples
 * @entries: [count]
 * @labels: [count], or NULL
 * @chunk_first: [chunks + 1], number of the first sample of each chunk
 * @collisions: in the order of their keys
 */
struct weir_dataset_directory {
	struct weir_dataset_entry *entries;
	uint32_t *labels;
	uint64_t count;
	struct weir_dataset_part *parts;
	uint32_t part_count;
	uint32_t *chunk_first;
	uint64_t chunks;
	struct weir_dataset_collision *collisions;
	size_t collision_count;
	const struct weir_dataset_lookup_kind *lookup;
	bool indexed; /* every part has its index */
};

/** struct weir_dataset_lookup_kind - one way to find an entry by its key; see enum weir_dataset_lookup */
struct weir_dataset_lookup_kind {
	const char *name;
	/* NULL: no memory */
	struct weir_dataset_lookup_index *(*build)(const struct weir_dataset_entry *entries, uint64_t count,
						   bool by_key);
	/* Index of the entry, or UINT64_MAX. */
	uint64_t (*find)(const struct weir_dataset_lookup_index *index,
			 const struct weir_dataset_entry *entries, uint64_t key);
	/* A find() of @key comes soon. */
	void (*expect)(const struct weir_dataset_lookup_index *index,
		       const struct weir_dataset_entry *entries, uint64_t key);
	uint64_t (*bytes)(const struct weir_dataset_lookup_index *index);
	void (*free)(struct weir_dataset_lookup_index *index);
};

extern const struct weir_dataset_lookup_kind weir_dataset_lookup_buckets, weir_dataset_lookup_avl;

/** weir_dataset_directory_offset() - byte of its storage where sample @number begins */
uint64_t weir_dataset_directory_offset(const struct weir_dataset_directory *directory, uint64_t number);

/**
 * weir_dataset_directory_chunks() - divide the samples into chunks: runs of samples of one storage that fit
 * into @chunk_bytes when read in whole blocks of 4 KiB. A longer sample has a chunk of its own
 *
 * Return: 0 or -ENOMEM with a sentence.
 */
int weir_dataset_directory_chunks(struct weir_dataset_directory *directory, uint32_t chunk_bytes);

/** weir_dataset_directory_chunk() - the chunk of sample @number */
uint64_t weir_dataset_directory_chunk(const struct weir_dataset_directory *directory, uint64_t number);

/** weir_dataset_directory_index() - make the index of names, unless it is there. Return: 0 or -ENOMEM with a
 * sentence */
int weir_dataset_directory_index(struct weir_dataset_directory *directory);

/** weir_dataset_directory_find() - number of the sample with @name; UINT64_MAX: there is none, or no memory
 * for the index */
uint64_t weir_dataset_directory_find(struct weir_dataset_directory *directory, const char *name);

/** weir_dataset_directory_find_many() - the same for several names, whose memory accesses overlap. Return: 0
 * or -ENOMEM with a sentence */
int weir_dataset_directory_find_many(struct weir_dataset_directory *directory, const char *const *names,
				     size_t count, uint64_t *numbers);

/** weir_dataset_directory_bytes() - memory it takes */
uint64_t weir_dataset_directory_bytes(const struct weir_dataset_directory *directory);

/** weir_dataset_directory_free() - free what it points to */
void weir_dataset_directory_free(struct weir_dataset_directory *directory);

/** struct weir_dataset_hash - of a name */
struct weir_dataset_hash {
	uint64_t low;
	uint64_t high;
};

/** weir_dataset_hash() - of @name; the key of a sample is the low 48 bits of its low half */
struct weir_dataset_hash weir_dataset_hash(const char *name);

#endif
