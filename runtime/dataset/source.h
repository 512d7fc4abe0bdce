/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h: bytes that an indexer reads, and the list of samples that it makes.
 *
 * Owns: reading a storage or a file at any offset through a buffer; the list; the formats. A format knows
 * nothing of storages, a storage nothing of formats.
 */
#ifndef WEIR_DATASET_SOURCE_H
#define WEIR_DATASET_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/dataset.h>

/**
 * struct weir_dataset_source - bytes at offsets, of a storage, a file or a folder
 * @name: for sentences
 * @bytes: its length
 * @folder: it is a folder
 * @storage: or NULL
 * @file: else, or -1
 */
struct weir_dataset_source {
	char *name;
	uint64_t bytes;
	struct weir_storage *storage;
	int file;
	uint32_t block_bytes;
	unsigned char *buffer;
	uint64_t buffer_at;
	size_t buffer_bytes;
	bool folder;
	bool random; /* reads are short and far apart: fetch little at a time */
};

/** weir_dataset_source_storage() - of an open storage. Return: 0 or a negative errno with a sentence */
int weir_dataset_source_storage(struct weir_dataset_source *source, struct weir_storage *storage,
				const char *name);
/** weir_dataset_source_file() - of a file or a folder */
int weir_dataset_source_file(struct weir_dataset_source *source, const char *path);
/** weir_dataset_source_read() - exactly @bytes at @offset; -ENODATA with a sentence where it ends before */
int weir_dataset_source_read(struct weir_dataset_source *source, uint64_t offset, void *to, size_t bytes);
void weir_dataset_source_close(struct weir_dataset_source *source);

/** struct weir_dataset_item - a sample, or a file that holds samples, as an indexer found it */
struct weir_dataset_item {
	uint64_t name; /* offset in the list's names */
	uint64_t offset;
	uint64_t bytes;
	uint32_t label;
	uint64_t key;
};

/** struct weir_dataset_list - what an indexer found */
struct weir_dataset_list {
	struct weir_dataset_item *items;
	size_t count, room;
	struct weir_dataset_item *files; /* that hold samples */
	size_t file_count, file_room;
	char *names;
	size_t names_bytes, names_room;
	const struct weir_dataset_index_options *options;
	uint64_t reported;
};

/** weir_dataset_list_add() - a sample; refuses one that the directory cannot describe. Return: 0 or a
 * negative errno with a sentence */
int weir_dataset_list_add(struct weir_dataset_list *list, const char *name, uint64_t offset, uint64_t bytes,
			  uint32_t label);
/** weir_dataset_list_add_file() - a file that holds samples */
int weir_dataset_list_add_file(struct weir_dataset_list *list, const char *name, uint64_t offset,
			       uint64_t bytes);
/** weir_dataset_list_progress() - -ECANCELED with a sentence if the program asked to stop */
int weir_dataset_list_progress(struct weir_dataset_list *list, uint64_t done, uint64_t total);
const char *weir_dataset_list_name(const struct weir_dataset_list *list,
				   const struct weir_dataset_item *item);
void weir_dataset_list_clear(struct weir_dataset_list *list);

/**
 * struct weir_dataset_format - one kind of source
 * @name: as options give it, what precedes ':'
 * @matches: @head, the first @bytes of the source, looks like it; NULL: only by name
 * @index: append all samples; @parameters follow ':', or are ""
 */
struct weir_dataset_format {
	const char *name;
	bool (*matches)(const struct weir_dataset_source *source, const unsigned char *head, size_t bytes);
	int (*index)(struct weir_dataset_source *source, const char *parameters,
		     struct weir_dataset_list *list);
};

extern const struct weir_dataset_format weir_dataset_format_folder, weir_dataset_format_tar,
	weir_dataset_format_tfrecord, weir_dataset_format_mds, weir_dataset_format_cifar10,
	weir_dataset_format_cifar100, weir_dataset_format_fixed;

/** weir_dataset_formats_index() - append all samples of @source, by the format that the options name or that
 * it looks like */
int weir_dataset_formats_index(struct weir_dataset_source *source, struct weir_dataset_list *list);

/** weir_dataset_records_index() - append records of @bytes behind a @header, of which @skip bytes are not the
 * sample's */
int weir_dataset_records_index(struct weir_dataset_source *source, struct weir_dataset_list *list,
			       uint64_t header, uint64_t bytes, uint32_t skip, int label_at);

static inline uint32_t weir_dataset_le32(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t weir_dataset_le64(const unsigned char *at)
{
	return weir_dataset_le32(at) | (uint64_t)weir_dataset_le32(at + 4) << 32;
}

#endif
