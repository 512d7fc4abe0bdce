/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c: samples and files by name, and reads of one at a time (DLFS's open, read and close). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "mounted.h"
#include "base/options.h"

static int check_number(const struct weir_dataset *dataset, uint64_t number, const char *call)
{
	int error = weir_dataset_check(dataset, call);

	if (!error && number >= dataset->directory.count)
		error = weir_fail(ERANGE, "%s: there is no sample %llu; the dataset has %llu", call,
				  (unsigned long long)number, (unsigned long long)dataset->directory.count);
	return error;
}

int weir_dataset_find(struct weir_dataset *dataset, const char *name, uint64_t *sample)
{
	int error = weir_dataset_check(dataset, "weir_dataset_find");

	if (!error && (!name || !sample))
		error = weir_fail(EINVAL, "weir_dataset_find: it needs a name and where to put the number");
	if (error)
		return error;
	error = weir_dataset_directory_index(&dataset->directory);
	if (error)
		return error;
	*sample = weir_dataset_directory_find(&dataset->directory, name);
	return *sample == UINT64_MAX ? -ENOENT : 0;
}

int weir_dataset_find_many(struct weir_dataset *dataset, const char *const *names, size_t count,
			   uint64_t *samples)
{
	int error = weir_dataset_check(dataset, "weir_dataset_find_many");

	if (!error && (!names || !samples))
		error = weir_fail(EINVAL,
				  "weir_dataset_find_many: it needs names and where to put the numbers");
	if (!error)
		error = weir_dataset_directory_find_many(&dataset->directory, names, count, samples);
	return error;
}

int weir_dataset_sample(struct weir_dataset *dataset, uint64_t number, struct weir_dataset_sample *sample)
{
	struct weir_dataset_sample result = { .size = sizeof(result), .label = WEIR_DATASET_NO_LABEL };
	int error = check_number(dataset, number, "weir_dataset_sample");

	if (error)
		return error;
	result.storage = weir_dataset_entry_storage(dataset->directory.entries[number]);
	result.length = weir_dataset_entry_length(dataset->directory.entries[number]);
	result.offset = weir_dataset_directory_offset(&dataset->directory, number);
	if (dataset->directory.labels)
		result.label = dataset->directory.labels[number];
	return weir_result_give(sample, &result, sizeof(result), "weir_dataset_sample");
}

static int read_name(struct weir_dataset *dataset, uint32_t index, uint64_t number, char *text, size_t room)
{
	const struct weir_dataset_storage *storage = &dataset->storages[index];
	const struct weir_dataset_section *sections = storage->header.sections;
	struct weir_dataset_source source;
	uint64_t offsets[2];
	int error = storage->manifest
			    ? weir_dataset_source_file(&source, storage->manifest)
			    : weir_dataset_source_storage(&source, storage->storage, "the manifest");

	if (error)
		return error;
	source.random = true;
	error = weir_dataset_source_read(
		&source, sections[WEIR_DATASET_NAME_OFFSETS].offset + number * sizeof(uint64_t), offsets,
		sizeof(offsets));
	if (!error && (offsets[0] > offsets[1] || offsets[1] > sections[WEIR_DATASET_NAMES].bytes))
		error = weir_fail(EBADMSG,
				  "dataset: the names of storage %u are damaged; index or upload it anew",
				  index);
	if (!error) {
		size_t bytes =
			offsets[1] - offsets[0] < room - 1 ? (size_t)(offsets[1] - offsets[0]) : room - 1;

		error = weir_dataset_source_read(&source, sections[WEIR_DATASET_NAMES].offset + offsets[0],
						 text, bytes);
		text[error ? 0 : bytes] = '\0';
	}
	weir_dataset_source_close(&source);
	return error;
}

int weir_dataset_name(struct weir_dataset *dataset, uint64_t number, char *text, size_t bytes)
{
	int error = check_number(dataset, number, "weir_dataset_name");
	uint32_t index;

	if (!error && (!text || !bytes))
		error = weir_fail(EINVAL, "weir_dataset_name: it needs room for a name");
	if (error)
		return error;
	index = weir_dataset_entry_storage(dataset->directory.entries[number]);
	return read_name(dataset, index, number - dataset->directory.parts[index].first, text, bytes);
}

/* Bytes of a storage at any offset. */
static ssize_t read_bytes(struct weir_dataset *dataset, uint32_t index, uint64_t offset, void *to,
			  size_t bytes)
{
	const struct weir_dataset_storage *storage = &dataset->storages[index];
	uint64_t block = UINT64_C(1) << storage->block_log2, begin = offset & ~(block - 1),
		 end = (offset + bytes + block - 1) & ~(block - 1);
	unsigned char *buffer;
	int error;

	if (!bytes)
		return 0;
	buffer = malloc(end - begin);
	if (!buffer)
		return weir_fail(ENOMEM, "dataset: no memory to read %zu bytes", bytes);
	error = weir_storage_read(storage->storage, begin, buffer, end - begin);
	if (!error)
		memcpy(to, buffer + (offset - begin), bytes);
	free(buffer);
	return error ? error : (ssize_t)bytes;
}

/* The V bit is set: its chunk is here, unless the context was closed, and its storage with it. */
static ssize_t copy_cached(const struct weir_dataset *dataset, uint64_t number, uint64_t offset, void *to,
			   size_t bytes)
{
	uint64_t chunk = weir_dataset_directory_chunk(&dataset->directory, number), begin, end;
	uint32_t storage, slot = dataset->cache.slot_of[chunk] - 1;
	struct weir_disk disk;
	int error;

	weir_dataset_chunk_range(dataset, chunk, &storage, &begin, &end);
	error = weir_storage_disk(dataset->storages[storage].storage, &disk);
	if (error)
		return error;
	memcpy(to,
	       (char *)dataset->cache.host + (uint64_t)slot * dataset->options.chunk_bytes + (offset - begin),
	       bytes);
	return (ssize_t)bytes;
}

ssize_t weir_dataset_read(struct weir_dataset *dataset, uint64_t number, uint64_t offset, void *to,
			  size_t bytes)
{
	int error = check_number(dataset, number, "weir_dataset_read");
	struct weir_dataset_entry entry;
	uint64_t at, left;

	if (!error && !to)
		error = weir_fail(EINVAL, "weir_dataset_read: it needs memory to read to");
	if (error)
		return error;
	entry = dataset->directory.entries[number];
	at = weir_dataset_directory_offset(&dataset->directory, number) + offset;
	left = offset < weir_dataset_entry_length(entry) ? weir_dataset_entry_length(entry) - offset : 0;
	bytes = left < bytes ? (size_t)left : bytes;
	if (weir_dataset_entry_cached(entry) && dataset->cache.host && bytes)
		return copy_cached(dataset, number, at, to, bytes);
	return read_bytes(dataset, weir_dataset_entry_storage(entry), at, to, bytes);
}

int weir_dataset_find_file(struct weir_dataset *dataset, const char *name, uint32_t *file, uint64_t *bytes)
{
	int error = weir_dataset_check(dataset, "weir_dataset_find_file");
	struct weir_dataset_hash hash;

	if (!error && (!name || !file || !bytes))
		error = weir_fail(
			EINVAL,
			"weir_dataset_find_file: it needs a name and where to put the number and the length");
	if (error)
		return error;
	hash = weir_dataset_hash(name);
	for (*file = 0; *file < dataset->file_count; ++*file)
		if (dataset->files[*file].hash_low == hash.low &&
		    dataset->files[*file].hash_high == hash.high) {
			*bytes = dataset->files[*file].bytes;
			return 0;
		}
	return -ENOENT;
}

ssize_t weir_dataset_read_file(struct weir_dataset *dataset, uint32_t file, uint64_t offset, void *to,
			       size_t bytes)
{
	int error = weir_dataset_check(dataset, "weir_dataset_read_file");
	uint64_t left;

	if (!error && (file >= dataset->file_count || !to))
		error = weir_fail(
			ERANGE, "weir_dataset_read_file: there is no file %u, or no memory to read to", file);
	if (error)
		return error;
	left = offset < dataset->files[file].bytes ? dataset->files[file].bytes - offset : 0;
	return read_bytes(dataset, dataset->file_storages[file], dataset->files[file].offset + offset, to,
			  left < bytes ? (size_t)left : bytes);
}

int weir_dataset_sample_failed(struct weir_dataset *dataset, uint64_t number, uint32_t status)
{
	uint32_t index = weir_dataset_entry_storage(dataset->directory.entries[number]);
	uint64_t offset = weir_dataset_directory_offset(&dataset->directory, number);
	char text[80], name[256], named[264] = "", rank[24] = "";

	if (!weir_dataset_name(dataset, number, name, sizeof(name))) /* or its storage is gone with it */
		snprintf(named, sizeof(named), ", '%s'", name);
	weir_status_text(status, text);
	if (dataset->communicator->ranks > 1)
		snprintf(rank, sizeof(rank), "rank %u: ", dataset->communicator->rank);
	return weir_fail(EIO,
			 "%sdataset: sample %llu%s, of %u bytes at byte %llu of storage %u, or its chunk, "
			 "could not be read: %s",
			 rank, (unsigned long long)number, named,
			 weir_dataset_entry_length(dataset->directory.entries[number]),
			 (unsigned long long)offset, index, text);
}
