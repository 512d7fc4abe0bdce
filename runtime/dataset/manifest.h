/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manifest.h: the sample directory of one storage as it is kept, in the storage itself or in a file.
 *
 * Owns: the format: a header of 4 KiB, and behind the data, or behind the header in a file, the sections:
 * entries, labels, names, files, collisions. Little-endian. Each section and the header have a checksum
 * (XXH3, 64 bits). The header is written last, so that a manifest is whole, or an upload under way, or not
 * there.
 */
#ifndef WEIR_DATASET_MANIFEST_H
#define WEIR_DATASET_MANIFEST_H

#include "directory.h"
#include "source.h"

#define WEIR_DATASET_MAGIC UINT64_C(0x5445534154414457) /* "WDATASET" without its A */

enum {
	WEIR_DATASET_VERSION = 1,
	WEIR_DATASET_HEADER_BYTES = 4096,
	WEIR_DATASET_UPLOADING = 1,
	WEIR_DATASET_COMPLETE = 2,
	WEIR_DATASET_BY_KEY = 1,  /* flags: entries are in the order of their keys */
	WEIR_DATASET_LOCATED = 2, /* samples went to storages by key */
};

enum weir_dataset_section_kind {
	WEIR_DATASET_ENTRIES,
	WEIR_DATASET_LABELS,
	WEIR_DATASET_NAME_OFFSETS, /* u64[count + 1] */
	WEIR_DATASET_NAMES,
	WEIR_DATASET_FILES, /* struct weir_dataset_file[] */
	WEIR_DATASET_COLLISIONS,
	WEIR_DATASET_SECTIONS,
};

/** struct weir_dataset_section - bytes behind the header */
struct weir_dataset_section {
	uint64_t offset;
	uint64_t bytes;
	uint64_t checksum;
};

/** struct weir_dataset_file - a file that holds many samples */
struct weir_dataset_file {
	uint64_t hash_low;
	uint64_t hash_high;
	uint64_t offset;
	uint64_t bytes;
};

/**
 * struct weir_dataset_header - the first bytes of a manifest
 * @id: of the dataset: a hash of all names, lengths and labels, the same on all its storages
 * @data_bytes: the storage's size as indexed, or the end of the uploaded samples
 * @fingerprint: a hash of some of the data, to see that it has not changed
 * @uploaded: samples that are there, while an upload is under way
 * @checksum: of the header, with 0 here
 */
struct weir_dataset_header {
	uint64_t magic;
	uint32_t version;
	uint32_t state;
	uint64_t id;
	uint32_t storage;
	uint32_t storages;
	uint64_t samples;
	uint32_t flags;
	uint32_t shift;
	uint64_t data_bytes;
	uint64_t fingerprint;
	uint64_t uploaded;
	struct weir_dataset_section sections[WEIR_DATASET_SECTIONS];
	uint64_t checksum;
};

_Static_assert(sizeof(struct weir_dataset_header) <= WEIR_DATASET_HEADER_BYTES, "the header has its room");

/** struct weir_dataset_manifest - a manifest in memory, to be written, or as read */
struct weir_dataset_manifest {
	struct weir_dataset_header header;
	void *sections[WEIR_DATASET_SECTIONS]; /* of malloc(); NULL: empty, or not read */
};

/**
 * weir_dataset_manifest_build() - from samples that lie in one storage
 * @items: in the order of their offsets, which are the storage's
 * @key_bits: 48, or fewer in tests of collisions
 */
int weir_dataset_manifest_build(struct weir_dataset_manifest *manifest, const struct weir_dataset_list *list,
				const struct weir_dataset_item *items, size_t count, uint64_t storage_bytes,
				unsigned key_bits);

/** weir_dataset_manifest_id() - hash of all names, lengths and labels of a list */
uint64_t weir_dataset_manifest_id(const struct weir_dataset_list *list);

/** weir_dataset_header_seal() - set its checksum */
void weir_dataset_header_seal(struct weir_dataset_header *header);

/** weir_dataset_header_check() - @header is whole and of this version. Return: 0; -ENODATA, -EBADMSG, -EPROTO
 * with a sentence */
int weir_dataset_header_check(const struct weir_dataset_header *header, const char *name);

/** weir_dataset_manifest_layout() - sections at @offset and behind, aligned to 4 KiB; sets offsets and
 * checksums. Return: their end */
uint64_t weir_dataset_manifest_layout(struct weir_dataset_manifest *manifest, uint64_t offset);

/** weir_dataset_manifest_save() - to a file, aside, then renamed */
int weir_dataset_manifest_save(struct weir_dataset_manifest *manifest, const char *path);

/** weir_dataset_manifest_load() - header and the @wanted sections (bits) of a manifest */
int weir_dataset_manifest_load(struct weir_dataset_manifest *manifest, struct weir_dataset_source *source,
			       unsigned wanted);

/** weir_dataset_fingerprint() - hash of some blocks of the first @bytes of @source. Return: 0 or a negative
 * errno with a sentence */
int weir_dataset_fingerprint(struct weir_dataset_source *source, uint64_t first, uint64_t bytes,
			     uint64_t *hash);

void weir_dataset_manifest_free(struct weir_dataset_manifest *manifest);

/** weir_dataset_check_distinct() - none of @storages is there twice: it would have two parts in the same
 * blocks. Return: 0 or -EINVAL with a sentence that names @call */
int weir_dataset_check_distinct(struct weir_storage *const *storages, unsigned count, const char *call);

#endif
