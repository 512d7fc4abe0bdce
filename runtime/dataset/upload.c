/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * upload.c: weir_dataset_upload(): samples copied to storages, in the order of their keys, with a manifest on
 * each.
 *
 * The header says how many samples are there, and is written again now and then behind a flush; so an upload
 * that was interrupted goes on where it was, and until it says COMPLETE nobody mounts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "manifest.h"
#include "base/options.h"

enum { BUFFER_BYTES = 4 << 20, CHECKPOINT_BYTES = 64 << 20, ALIGN = 4096, SMALL_ALIGN = 16 };

/** struct upload - one storage's samples on their way */
struct upload {
	struct weir_storage *storage;
	struct weir_storage_info info;
	struct weir_dataset_source *source;
	struct weir_dataset_list *list;
	const struct weir_dataset_item *items; /* of this storage, offsets of the source */
	struct weir_dataset_item *placed;      /* the same, offsets of the storage */
	size_t count;
	struct weir_dataset_manifest manifest;
	unsigned char *buffer; /* bytes from @buffer_at on that are not written yet */
	uint64_t buffer_at;
	size_t buffer_bytes;
	uint64_t since_checkpoint;
	uint64_t *done, total; /* of all storages, in bytes */
};

static int by_storage_and_key(const void *a, const void *b, void *storages)
{
	const struct weir_dataset_item *left = a, *right = b;
	uint64_t left_storage = left->key % *(uint32_t *)storages,
		 right_storage = right->key % *(uint32_t *)storages;

	if (left_storage != right_storage)
		return left_storage < right_storage ? -1 : 1;
	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

/* Where each sample goes: those of a block or more begin at a block, so that they can be read straight to
 * where they are used. */
static uint64_t lay_out(struct upload *upload)
{
	uint64_t at = WEIR_DATASET_HEADER_BYTES;

	for (size_t i = 0; i < upload->count; i++) {
		uint64_t bytes = upload->items[i].bytes,
			 align = bytes >= upload->info.block_bytes ? upload->info.block_bytes : SMALL_ALIGN;

		if (align == SMALL_ALIGN && at % upload->info.block_bytes + bytes > upload->info.block_bytes)
			align = upload->info.block_bytes; /* it would cross into the next block */
		if (upload->info.bytes > UINT64_C(1) << WEIR_DATASET_OFFSET_BITS &&
		    align < 1 << WEIR_DATASET_UNIT_LOG2)
			align = 1 << WEIR_DATASET_UNIT_LOG2;
		at = (at + align - 1) / align * align;
		upload->placed[i] = upload->items[i];
		upload->placed[i].offset = at;
		at += bytes;
	}
	return (at + ALIGN - 1) / ALIGN * ALIGN;
}

static int write_header(struct upload *upload, uint32_t state, uint64_t uploaded)
{
	unsigned char block[WEIR_DATASET_HEADER_BYTES] = { 0 };
	int error = weir_storage_flush(upload->storage);

	upload->manifest.header.state = state;
	upload->manifest.header.uploaded = uploaded;
	weir_dataset_header_seal(&upload->manifest.header);
	memcpy(block, &upload->manifest.header, sizeof(upload->manifest.header));
	if (!error)
		error = weir_storage_write(upload->storage, 0, block, sizeof(block));
	return error ? error : weir_storage_flush(upload->storage);
}

/* What is in the buffer, but for a last block that is not whole unless @all. */
static int drain(struct upload *upload, bool all)
{
	size_t rest = upload->buffer_bytes % ALIGN, bytes = upload->buffer_bytes - rest;
	int error;

	if (all && rest) {
		memset(upload->buffer + upload->buffer_bytes, 0, ALIGN - rest);
		bytes += ALIGN;
		rest = 0;
	}
	error = bytes ? weir_storage_write(upload->storage, upload->buffer_at, upload->buffer, bytes) : 0;
	memmove(upload->buffer, upload->buffer + bytes, rest);
	upload->buffer_at += bytes;
	upload->buffer_bytes = rest;
	upload->since_checkpoint += bytes;
	return error;
}

static int read_sample(const struct upload *upload, const struct weir_dataset_item *item,
		       struct weir_dataset_source *file, uint64_t from, void *to, size_t bytes)
{
	if (upload->source->folder)
		return weir_dataset_source_read(file, from, to, bytes);
	return weir_dataset_source_read(upload->source, item->offset + from, to, bytes);
}

/* Append one sample to the buffer, draining it as it fills. */
static int append(struct upload *upload, size_t i, struct weir_dataset_source *file)
{
	uint64_t at = upload->placed[i].offset, left = upload->placed[i].bytes, from = 0;
	uint64_t gap = at - upload->buffer_at - upload->buffer_bytes;
	int error = 0;

	memset(upload->buffer + upload->buffer_bytes, 0,
	       gap); /* less than a block: drain() leaves that much */
	upload->buffer_bytes += gap;
	while (left && !error) {
		size_t room = BUFFER_BYTES - upload->buffer_bytes, some = left < room ? (size_t)left : room;

		error = read_sample(upload, &upload->items[i], file, from,
				    upload->buffer + upload->buffer_bytes, some);
		upload->buffer_bytes += some;
		from += some;
		left -= some;
		if (!error && upload->buffer_bytes == BUFFER_BYTES)
			error = drain(upload, false);
	}
	return error;
}

static int append_item(struct upload *upload, size_t i)
{
	const char *name = weir_dataset_list_name(upload->list, &upload->items[i]);
	struct weir_dataset_source file = { .file = -1 };
	char path[8192];
	int error = 0;

	if (upload->source->folder) {
		snprintf(path, sizeof(path), "%s/%s", upload->source->name, name);
		error = weir_dataset_source_file(&file, path);
		if (!error && file.bytes != upload->items[i].bytes)
			error = weir_fail(ESTALE,
					  "dataset: '%s' has %llu bytes, and had %llu when the upload began; "
					  "run it again",
					  path, (unsigned long long)file.bytes,
					  (unsigned long long)upload->items[i].bytes);
	}
	if (!error)
		error = append(upload, i, &file);
	weir_dataset_source_close(&file);
	return error;
}

/* Samples from number @first on, with a checkpoint now and then. */
static int copy_samples(struct upload *upload, size_t first)
{
	uint64_t at = first < upload->count ? upload->placed[first].offset : 0;
	int error = 0;

	upload->buffer_at = at / ALIGN * ALIGN;
	upload->buffer_bytes = (size_t)(at - upload->buffer_at);
	if (upload->buffer_bytes)
		error = weir_storage_read(upload->storage, upload->buffer_at, upload->buffer, ALIGN);
	for (size_t i = first; i < upload->count && !error; i++) {
		error = append_item(upload, i);
		*upload->done += upload->placed[i].bytes;
		if (!error && upload->since_checkpoint >= CHECKPOINT_BYTES) {
			error = drain(upload, true);
			if (!error)
				error = write_header(upload, WEIR_DATASET_UPLOADING, i + 1);
			upload->since_checkpoint = 0;
			if (!error && i + 1 < upload->count) { /* go on inside the block that was filled up */
				upload->buffer_at = upload->placed[i + 1].offset / ALIGN * ALIGN;
				upload->buffer_bytes = (size_t)(upload->placed[i + 1].offset % ALIGN);
				error = weir_storage_read(upload->storage, upload->buffer_at, upload->buffer,
							  ALIGN);
			}
		}
		if (!error)
			error = weir_dataset_list_progress(upload->list, *upload->done, upload->total);
		if (error == -ECANCELED && drain(upload, true) == 0)
			(void)write_header(upload, WEIR_DATASET_UPLOADING,
					   i + 1); /* the cause stays the reason */
	}
	return error ? error : drain(upload, true);
}

static int write_sections(struct upload *upload)
{
	int error = 0;

	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS && !error; i++) {
		const struct weir_dataset_section *section = &upload->manifest.header.sections[i];
		uint64_t whole = section->bytes / ALIGN * ALIGN;

		if (whole)
			error = weir_storage_write(upload->storage, section->offset,
						   upload->manifest.sections[i], whole);
		if (!error && section->bytes > whole) {
			memset(upload->buffer, 0, ALIGN);
			memcpy(upload->buffer, (char *)upload->manifest.sections[i] + whole,
			       section->bytes - whole);
			error = weir_storage_write(upload->storage, section->offset + whole, upload->buffer,
						   ALIGN);
		}
	}
	return error;
}

/* What a whole manifest says is there: all its sections, and the data as it was. Return: 0; -EBADMSG,
 * -ENODATA or -ESTALE: no more; else why that is not known. */
static int check_there(struct upload *upload, const struct weir_dataset_header *header)
{
	struct weir_dataset_manifest manifest;
	struct weir_dataset_source source;
	uint64_t first = WEIR_DATASET_HEADER_BYTES, hash = 0;
	int error = weir_dataset_source_storage(&source, upload->storage, "the earlier upload");

	if (error)
		return error;
	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS && !error; i++) { /* one at a time in memory */
		error = weir_dataset_manifest_load(&manifest, &source, 1u << i);
		weir_dataset_manifest_free(&manifest);
	}
	if (!error)
		error = weir_dataset_fingerprint(&source, first, header->data_bytes - first, &hash);
	weir_dataset_source_close(&source);
	return error || hash == header->fingerprint ? error : -ESTALE;
}

/* Samples that an earlier upload of the same left there; SIZE_MAX: all, and its manifest. What was damaged
 * since is not there. */
static size_t already_there(struct upload *upload, int *error)
{
	unsigned char block[WEIR_DATASET_HEADER_BYTES];
	struct weir_dataset_header header;

	*error = 0;
	if (weir_storage_read(upload->storage, 0, block, sizeof(block)))
		return 0;
	memcpy(&header, block, sizeof(header));
	if (header.magic != WEIR_DATASET_MAGIC || weir_dataset_header_check(&header, "") ||
	    header.id != upload->manifest.header.id || header.storage != upload->manifest.header.storage ||
	    header.storages != upload->manifest.header.storages || header.samples != upload->count)
		return 0;
	if (header.state == WEIR_DATASET_COMPLETE) {
		*error = check_there(upload, &header);
		if (!*error)
			return SIZE_MAX;
		if (*error == -EBADMSG || *error == -ENODATA || *error == -ESTALE)
			*error = 0;
		return 0;
	}
	if (header.sections[WEIR_DATASET_ENTRIES].checksum !=
	    upload->manifest.header.sections[WEIR_DATASET_ENTRIES].checksum)
		return 0; /* by blocks of another length they lie elsewhere */
	return header.uploaded <= upload->count ? header.uploaded : 0;
}

static int check_room(const struct upload *upload, uint64_t end, const char *what)
{
	if (end <= upload->info.bytes)
		return 0;
	return weir_fail(ENOSPC,
			 "dataset: storage %u has %llu bytes, and its %zu samples with the %s take %llu; use "
			 "a larger or one more "
			 "storage",
			 upload->manifest.header.storage, (unsigned long long)upload->info.bytes,
			 upload->count, what, (unsigned long long)end);
}

static int prepare(struct upload *upload, uint32_t storage, uint32_t storages)
{
	uint64_t data_end = lay_out(upload), end;
	int error = weir_dataset_manifest_build(&upload->manifest, upload->list, upload->placed,
						upload->count, upload->info.bytes, WEIR_DATASET_KEY_BITS);

	if (error)
		return error;
	upload->manifest.header.storage = storage;
	upload->manifest.header.storages = storages;
	upload->manifest.header.flags |= WEIR_DATASET_LOCATED;
	upload->manifest.header.data_bytes = data_end;
	end = weir_dataset_manifest_layout(&upload->manifest, data_end);
	return check_room(upload, end, "manifest");
}

static int finish(struct upload *upload)
{
	struct weir_dataset_source source;
	int error = write_sections(upload);

	if (!error)
		error = weir_dataset_source_storage(&source, upload->storage, "the uploaded samples");
	if (error)
		return error;
	error = weir_dataset_fingerprint(&source, WEIR_DATASET_HEADER_BYTES,
					 upload->manifest.header.data_bytes - WEIR_DATASET_HEADER_BYTES,
					 &upload->manifest.header.fingerprint);
	weir_dataset_source_close(&source);
	return error ? error : write_header(upload, WEIR_DATASET_COMPLETE, upload->count);
}

static uint64_t bytes_of(const struct weir_dataset_item *items, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += items[i].bytes;
	return bytes;
}

static int upload_storage(struct upload *upload, uint32_t storage, uint32_t storages)
{
	size_t there = 0;
	int error;

	upload->info.size = sizeof(upload->info);
	error = weir_storage_info(upload->storage, &upload->info);
	upload->placed = malloc((upload->count + 1) * sizeof(*upload->placed));
	upload->buffer = aligned_alloc(ALIGN, BUFFER_BYTES + 2 * ALIGN);
	if (!error && (!upload->placed || !upload->buffer))
		error = weir_fail(ENOMEM, "dataset: no memory to upload %zu samples", upload->count);
	if (!error)
		error = prepare(upload, storage, storages);
	if (!error)
		there = already_there(upload, &error);
	if (!error && there == SIZE_MAX)
		*upload->done += bytes_of(upload->items, upload->count);
	else if (!error) {
		*upload->done += bytes_of(upload->items, there);
		error = write_header(upload, WEIR_DATASET_UPLOADING, there);
		if (!error)
			error = copy_samples(upload, there);
		if (!error)
			error = finish(upload);
	}
	weir_dataset_manifest_free(&upload->manifest);
	free(upload->placed);
	free(upload->buffer);
	return error;
}

static int upload_all(struct weir_storage *const *storages, uint32_t count,
		      struct weir_dataset_source *source, struct weir_dataset_list *list)
{
	uint64_t done = 0, total = bytes_of(list->items, list->count);
	size_t first = 0;
	int error = 0;

	qsort_r(list->items, list->count, sizeof(*list->items), by_storage_and_key, &count);
	list->file_count = 0; /* they are not there as files */
	list->reported = 0;
	for (uint32_t i = 0; i < count && !error; i++) {
		struct upload upload = { .storage = storages[i],
					 .source = source,
					 .list = list,
					 .items = list->items + first,
					 .done = &done,
					 .total = total };

		while (first + upload.count < list->count &&
		       list->items[first + upload.count].key % count == i)
			upload.count++;
		first += upload.count;
		error = upload_storage(&upload, i, count);
	}
	return error;
}

int weir_dataset_upload(struct weir_storage *const *storages, unsigned storage_count, const char *path,
			const struct weir_dataset_index_options *given)
{
	struct weir_dataset_index_options options;
	struct weir_dataset_list list = { .options = &options };
	struct weir_dataset_source source;
	int error = weir_options_take(&options, sizeof(options), given, "weir_dataset_upload");

	if (!error && (!storages || !storage_count || storage_count > UINT16_MAX || !path))
		error = weir_fail(
			EINVAL,
			"weir_dataset_upload: it needs 1 to 65535 storages and a folder or file to upload");
	if (!error)
		error = weir_dataset_check_distinct(storages, storage_count, "weir_dataset_upload");
	if (!error)
		error = weir_dataset_source_file(&source, path);
	if (error)
		return error;
	error = weir_dataset_formats_index(&source, &list);
	source.random = !source.folder;
	if (!error)
		error = upload_all(storages, storage_count, &source, &list);
	weir_dataset_list_clear(&list);
	weir_dataset_source_close(&source);
	return error;
}
