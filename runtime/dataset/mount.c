/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mount.c: weir_dataset_mount(): the manifests of all storages become one sample directory, on every rank the
 * same.
 *
 * Storage by storage: the rank that has it sends its directory, or why it has none, to all ranks; so all of
 * them mount or none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/error.h"
#include "mounted.h"
#include "base/options.h"

enum {
	LEAST_CHUNK = 64 << 10,
	MOST_CHUNK = 4 << 20,
	DEFAULT_CHUNK = 256 << 10,
	DEFAULT_CACHE = 64 << 20,
	LEAST_CHUNKS = 4,
	DEFAULT_BATCHES = 3
};

/** struct parcel - what a rank sends of one storage: this, and then the sections */
struct parcel {
	int32_t error;
	char sentence[WEIR_DATASET_SENTENCE_BYTES];
	struct weir_dataset_header header;
};

static const unsigned sent_sections[] = { WEIR_DATASET_ENTRIES, WEIR_DATASET_LABELS, WEIR_DATASET_FILES,
					  WEIR_DATASET_COLLISIONS };

enum { SENT_SECTIONS = sizeof(sent_sections) / sizeof(sent_sections[0]) };

int weir_dataset_check(const struct weir_dataset *dataset, const char *call)
{
	if (dataset && dataset->magic == WEIR_DATASET_MOUNTED)
		return 0;
	return weir_fail(EINVAL, "%s: it is no mounted dataset", call);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

static int check_options(struct weir_dataset_mount_options *options)
{
	if (!options->chunk_bytes)
		options->chunk_bytes = DEFAULT_CHUNK;
	if (!options->cache_bytes)
		options->cache_bytes = DEFAULT_CACHE;
	if (!options->batches)
		options->batches = DEFAULT_BATCHES;
	if (!power_of_two(options->chunk_bytes) || options->chunk_bytes < LEAST_CHUNK ||
	    options->chunk_bytes > MOST_CHUNK)
		return weir_fail(
			EINVAL,
			"weir_dataset_mount: chunks of %u bytes; they are a power of two from %d to %d",
			options->chunk_bytes, LEAST_CHUNK, MOST_CHUNK);
	if (options->cache_bytes / options->chunk_bytes < LEAST_CHUNKS)
		return weir_fail(
			EINVAL,
			"weir_dataset_mount: a cache of %llu bytes has room for fewer than %d chunks of %u",
			(unsigned long long)options->cache_bytes, LEAST_CHUNKS, options->chunk_bytes);
	if (options->row_bytes > UINT32_MAX - WEIR_DATASET_ROW_ALIGN + 1)
		return weir_fail(EINVAL, "weir_dataset_mount: rows of %u bytes are too long",
				 options->row_bytes);
	if (options->batches > WEIR_DATASET_MAX_BATCHES || options->lookup > WEIR_DATASET_AVL)
		return weir_fail(
			EINVAL,
			"weir_dataset_mount: at most %d batches, and lookup is of enum weir_dataset_lookup",
			WEIR_DATASET_MAX_BATCHES);
	return 0;
}

static int open_storages(struct weir_dataset *dataset, struct weir_storage *const *storages)
{
	struct weir_disk *disks = calloc(dataset->storage_count, sizeof(*disks));
	struct weir_context_info context = { .size = sizeof(context) };
	int error =
		disks ? 0 : weir_fail(ENOMEM, "dataset: no memory for %u storages", dataset->storage_count);

	if (!error)
		error = weir_context_info(dataset->context, &context);
	dataset->wave_lanes = context.wave_lanes;
	for (uint32_t i = 0; i < dataset->storage_count && !error; i++) {
		struct weir_dataset_storage *to = &dataset->storages[i];
		struct weir_storage_info info = { .size = sizeof(info) };

		error = weir_storage_info(storages[i], &info);
		if (!error)
			error = weir_storage_disk(storages[i], &disks[i]);
		if (error)
			break;
		to->storage = storages[i];
		to->bytes = info.bytes;
		dataset->most_queues =
			info.queues > dataset->most_queues ? info.queues : dataset->most_queues;
		to->block_log2 = disks[i].block_log2;
		to->max_blocks = disks[i].max_blocks;
		if (dataset->options.manifests && dataset->options.manifests[i]) {
			to->manifest = strdup(dataset->options.manifests[i]);
			if (!to->manifest)
				error = weir_fail(ENOMEM, "dataset: no memory for the names of manifests");
		}
	}
	if (!error)
		error = weir_alloc(dataset->context, dataset->storage_count * sizeof(*disks),
				   &dataset->disks);
	if (!error)
		error = weir_copy_to_device(dataset->context, dataset->disks, disks,
					    dataset->storage_count * sizeof(*disks));
	free(disks);
	return error;
}

static int open_manifest(const struct weir_dataset_storage *storage, uint32_t index,
			 struct weir_dataset_source *source)
{
	char name[32];

	snprintf(name, sizeof(name), "storage %u", index);
	if (storage->manifest)
		return weir_dataset_source_file(source, storage->manifest);
	return weir_dataset_source_storage(source, storage->storage, name);
}

/* The data is what was indexed: as long, and some of its blocks the same. */
static int check_data(const struct weir_dataset_storage *storage, const struct weir_dataset_header *header,
		      uint32_t index)
{
	uint64_t first = storage->manifest ? 0 : WEIR_DATASET_HEADER_BYTES, hash = 0;
	struct weir_dataset_source source;
	int error;

	if (storage->manifest ? storage->bytes != header->data_bytes : storage->bytes < header->data_bytes)
		return weir_fail(
			ESTALE,
			"dataset: storage %u has %llu bytes, and had %llu when '%s' was made; index it anew",
			index, (unsigned long long)storage->bytes, (unsigned long long)header->data_bytes,
			storage->manifest ? storage->manifest : "its manifest");
	error = weir_dataset_source_storage(&source, storage->storage, "the data");
	if (error)
		return error;
	error = weir_dataset_fingerprint(&source, first, header->data_bytes - first, &hash);
	weir_dataset_source_close(&source);
	if (!error && hash != header->fingerprint)
		error = weir_fail(
			ESTALE, "dataset: the data of storage %u changed since '%s' was made; index it anew",
			index, storage->manifest ? storage->manifest : "its manifest");
	return error;
}

static int check_place(const struct weir_dataset *dataset, const struct weir_dataset_header *header,
		       uint32_t index)
{
	if (!(header->flags & WEIR_DATASET_LOCATED) ||
	    (header->storage == index && header->storages == dataset->storage_count))
		return 0;
	return weir_fail(EINVAL,
			 "dataset: storage %u has part %u of %u of its dataset, and is mounted as %u of %u; "
			 "name all storages in the "
			 "order of the upload",
			 index, header->storage, header->storages, index, dataset->storage_count);
}

/* All parts are of one upload: one that ended between two storages leaves the last ones to an earlier
 * dataset. */
static int check_same(const struct weir_dataset *dataset, uint32_t index)
{
	const struct weir_dataset_header *header = &dataset->storages[index].header,
					 *first = &dataset->storages[0].header;

	if (!((header->flags | first->flags) & WEIR_DATASET_LOCATED) || header->id == first->id)
		return 0;
	return weir_fail(ESTALE,
			 "dataset: storage %u has samples of dataset %016llx, and storage 0 of %016llx: an "
			 "upload was interrupted between them; run it again",
			 index, (unsigned long long)header->id, (unsigned long long)first->id);
}

static int load(struct weir_dataset *dataset, uint32_t index, struct weir_dataset_manifest *manifest)
{
	struct weir_dataset_source source;
	unsigned wanted = 0;
	int error = open_manifest(&dataset->storages[index], index, &source);

	memset(manifest, 0, sizeof(*manifest));
	if (error)
		return error;
	for (unsigned i = 0; i < SENT_SECTIONS; i++)
		if (!dataset->options.no_labels || sent_sections[i] != WEIR_DATASET_LABELS)
			wanted |= 1u << sent_sections[i];
	error = weir_dataset_manifest_load(manifest, &source, wanted);
	weir_dataset_source_close(&source);
	if (!error)
		error = check_place(dataset, &manifest->header, index);
	if (!error)
		error = check_data(&dataset->storages[index], &manifest->header, index);
	if (!error && dataset->options.no_labels)
		manifest->header.sections[WEIR_DATASET_LABELS].bytes = 0;
	return error;
}

/* What this rank sends of a storage that is its own to read; or what it met @before. NULL: no memory. */
static void *pack(struct weir_dataset *dataset, uint32_t index, int before, size_t *bytes)
{
	struct weir_dataset_manifest manifest = { .header = { 0 } };
	struct parcel parcel = { .error = before ? before : load(dataset, index, &manifest) };
	unsigned char *packed, *at;

	*bytes = sizeof(parcel);
	if (parcel.error)
		snprintf(parcel.sentence, sizeof(parcel.sentence), "%.1000s", weir_last_error());
	else
		for (unsigned i = 0; i < SENT_SECTIONS; i++)
			*bytes += manifest.header.sections[sent_sections[i]].bytes;
	parcel.header = manifest.header;
	packed = malloc(*bytes);
	if (packed) {
		memcpy(packed, &parcel, sizeof(parcel));
		at = packed + sizeof(parcel);
		for (unsigned i = 0; i < SENT_SECTIONS && !parcel.error; i++) {
			size_t some = manifest.header.sections[sent_sections[i]].bytes;

			if (some)
				memcpy(at, manifest.sections[sent_sections[i]], some);
			at += some;
		}
	}
	weir_dataset_manifest_free(&manifest);
	return packed;
}

static int more(void *array, size_t count, size_t unit)
{
	void *larger = realloc(*(void **)array, (count ? count : 1) * unit);

	if (!larger)
		return weir_fail(ENOMEM, "dataset: no memory for a directory of %zu entries", count);
	*(void **)array = larger;
	return 0;
}

static int add_labels(struct weir_dataset_directory *directory, const uint32_t *labels, uint64_t first,
		      uint64_t count)
{
	int error = 0;

	if (!labels && !directory->labels)
		return 0;
	if (!directory->labels) { /* earlier storages have none */
		error = more(&directory->labels, first + count, sizeof(*directory->labels));
		for (uint64_t i = 0; i < first && !error; i++)
			directory->labels[i] = WEIR_DATASET_NO_LABEL;
	} else {
		error = more(&directory->labels, first + count, sizeof(*directory->labels));
	}
	for (uint64_t i = 0; i < count && !error; i++)
		directory->labels[first + i] = labels ? labels[i] : WEIR_DATASET_NO_LABEL;
	return error;
}

/* The @entries of a storage behind those that are there; as they are, in their own memory, if they are the
 * first ones and @own: then they belong to the directory. */
static int add_entries(struct weir_dataset *dataset, uint32_t index, const struct weir_dataset_header *header,
		       struct weir_dataset_entry *entries, bool own)
{
	struct weir_dataset_directory *directory = &dataset->directory;
	uint64_t first = directory->count;
	int error = 0;

	if (first + header->samples >= UINT32_MAX)
		return weir_fail(EFBIG, "dataset: more than %u samples; mount it as several", UINT32_MAX);
	if (own && !directory->entries && header->samples)
		directory->entries = entries;
	else
		error = more(&directory->entries, first + header->samples, sizeof(*entries));
	if (error)
		return error;
	for (uint64_t i = 0; i < header->samples; i++) {
		struct weir_dataset_entry *to = &directory->entries[first + i];

		*to = entries[i];
		to->id = (uint64_t)index << WEIR_DATASET_KEY_BITS | weir_dataset_entry_key(*to);
		to->where &= ~(uint64_t)1;
	}
	directory->parts[index] = (struct weir_dataset_part){
		.first = first,
		.count = header->samples,
		.shift = header->shift ? WEIR_DATASET_UNIT_LOG2 : 0,
		.by_key = header->flags & WEIR_DATASET_BY_KEY,
		.placed = header->flags & WEIR_DATASET_LOCATED,
	};
	directory->count += header->samples;
	return 0;
}

static int add_rest(struct weir_dataset *dataset, uint32_t index, const struct weir_dataset_header *header,
		    const struct weir_dataset_file *files, const struct weir_dataset_collision *collisions)
{
	struct weir_dataset_directory *directory = &dataset->directory;
	uint32_t file_count =
		(uint32_t)(header->sections[WEIR_DATASET_FILES].bytes / sizeof(*dataset->files));
	size_t count = header->sections[WEIR_DATASET_COLLISIONS].bytes / sizeof(*collisions);
	int error = more(&dataset->files, dataset->file_count + file_count, sizeof(*dataset->files));

	if (!error)
		error = more(&dataset->file_storages, dataset->file_count + file_count,
			     sizeof(*dataset->file_storages));
	if (!error)
		error = more(&directory->collisions, directory->collision_count + count, sizeof(*collisions));
	if (error)
		return error;
	for (uint32_t i = 0; i < file_count; i++) {
		dataset->files[dataset->file_count] = files[i];
		dataset->file_storages[dataset->file_count++] = index;
	}
	for (size_t i = 0; i < count; i++) {
		directory->collisions[directory->collision_count] = collisions[i];
		directory->collisions[directory->collision_count++].number += directory->parts[index].first;
	}
	return 0;
}

/* @sections of a storage become part of the directory; the memory of its entries, too, if they are this
 * rank's @own. */
static int take(struct weir_dataset *dataset, uint32_t index, const struct weir_dataset_header *header,
		void *const *sections, bool own)
{
	uint64_t first = dataset->directory.count;
	int error;

	dataset->storages[index].header = *header;
	error = check_same(dataset, index);
	if (!error)
		error = add_entries(dataset, index, header, sections[WEIR_DATASET_ENTRIES], own);
	if (!error)
		error = add_labels(&dataset->directory, sections[WEIR_DATASET_LABELS], first,
				   header->samples);
	if (!error)
		error = add_rest(dataset, index, header, sections[WEIR_DATASET_FILES],
				 sections[WEIR_DATASET_COLLISIONS]);
	dataset->id = weir_mix_u64(dataset->id ^ header->id);
	return error;
}

static int unpack(struct weir_dataset *dataset, uint32_t index, unsigned char *packed, size_t bytes)
{
	struct parcel parcel;
	void *sections[WEIR_DATASET_SECTIONS] = { NULL };
	unsigned char *next = packed + sizeof(parcel);

	if (bytes < sizeof(parcel))
		return weir_fail(EIO,
				 "rank %u: dataset: no directory of storage %u came from it; it has no "
				 "memory left, or is of another version",
				 index % dataset->communicator->ranks, index);
	memcpy(&parcel, packed, sizeof(parcel));
	if (parcel.error)
		return weir_fail(-parcel.error, "rank %u: %s", index % dataset->communicator->ranks,
				 parcel.sentence);
	for (unsigned i = 0; i < SENT_SECTIONS; i++) {
		sections[sent_sections[i]] = parcel.header.sections[sent_sections[i]].bytes ? next : NULL;
		next += parcel.header.sections[sent_sections[i]].bytes;
	}
	return take(dataset, index, &parcel.header, sections, false);
}

/* A job of one process: the directory of the first storage takes no second copy. */
static int load_alone(struct weir_dataset *dataset, uint32_t index)
{
	struct weir_dataset_manifest manifest;
	int error = load(dataset, index, &manifest);

	if (!error)
		error = take(dataset, index, &manifest.header, manifest.sections, true);
	if (dataset->directory.entries == manifest.sections[WEIR_DATASET_ENTRIES])
		manifest.sections[WEIR_DATASET_ENTRIES] = NULL;
	weir_dataset_manifest_free(&manifest);
	return error;
}

/* All ranks learn of one storage. A rank that failed before goes along with that, so that no other one waits
 * for it. */
static int gather_storage(struct weir_dataset *dataset, uint32_t index, int before)
{
	struct weir_dataset_communicator *communicator = dataset->communicator;
	uint32_t owner = index % communicator->ranks;
	struct weir_dataset_parts parts;
	size_t bytes = 0;
	void *packed = owner == communicator->rank ? pack(dataset, index, before, &bytes) : NULL;
	int error = weir_dataset_gather(communicator, packed, packed ? bytes : 0, owner, &parts);

	free(packed);
	if (!error && !before)
		error = unpack(dataset, index, (unsigned char *)parts.all + parts.begin, parts.bytes);
	free(parts.all);
	return before ? before : error;
}

static int gather_all(struct weir_dataset *dataset, int error)
{
	bool alone = dataset->communicator->ranks < 2;

	for (uint32_t i = 0; i < dataset->storage_count && !(alone && error); i++)
		error = alone ? load_alone(dataset, i) : gather_storage(dataset, i, error);
	return error;
}

static void describe(struct weir_dataset *dataset)
{
	const struct weir_dataset_directory *directory = &dataset->directory;
	struct weir_dataset_info *info = &dataset->info;
	uint32_t labels = 0;

	*info = (struct weir_dataset_info){ .size = sizeof(*info),
					    .samples = directory->count,
					    .storages = dataset->storage_count,
					    .chunk_bytes = dataset->options.chunk_bytes,
					    .shortest_bytes = UINT32_MAX };
	for (uint64_t i = 0; i < directory->count; i++) {
		uint32_t length = weir_dataset_entry_length(directory->entries[i]);

		info->bytes += length;
		info->longest_bytes = length > info->longest_bytes ? length : info->longest_bytes;
		info->shortest_bytes = length < info->shortest_bytes ? length : info->shortest_bytes;
		if (directory->labels && directory->labels[i] != WEIR_DATASET_NO_LABEL &&
		    directory->labels[i] >= labels)
			labels = directory->labels[i] + 1;
	}
	info->labels = labels;
	info->row_bytes = dataset->options.row_bytes ? dataset->options.row_bytes : info->longest_bytes;
	info->row_bytes = (info->row_bytes + WEIR_DATASET_ROW_ALIGN - 1) / WEIR_DATASET_ROW_ALIGN *
			  WEIR_DATASET_ROW_ALIGN;
	if (!info->row_bytes)
		info->row_bytes = WEIR_DATASET_ROW_ALIGN;
}

static int set_up(struct weir_dataset *dataset)
{
	int error = gather_all(dataset, weir_dataset_alike(dataset));

	if (!error)
		error = weir_dataset_directory_chunks(&dataset->directory, dataset->options.chunk_bytes);
	if (!error) {
		describe(dataset);
		error = weir_dataset_cache_open(dataset);
	}
	dataset->info.chunks = dataset->directory.chunks;
	dataset->info.cache_bytes = (uint64_t)dataset->cache.count * dataset->options.chunk_bytes;
	return weir_dataset_agree(dataset->communicator, error);
}

static void release(struct weir_dataset *dataset)
{
	if (!dataset)
		return;
	weir_dataset_batches_close(dataset);
	weir_dataset_cache_close(dataset);
	weir_dataset_epoch_close(&dataset->epoch);
	weir_dataset_share_clear(&dataset->all);
	weir_dataset_share_clear(&dataset->share);
	weir_dataset_directory_free(&dataset->directory);
	for (uint32_t i = 0; dataset->storages && i < dataset->storage_count; i++)
		free(dataset->storages[i].manifest);
	weir_free(dataset->context, dataset->disks);
	free(dataset->storages);
	free(dataset->files);
	free(dataset->file_storages);
	dataset->magic = 0;
	free(dataset);
}

/* Memory for what is known of @count storages. */
static int make(struct weir_context *context, unsigned count,
		const struct weir_dataset_mount_options *options, struct weir_dataset **out)
{
	struct weir_dataset *dataset = calloc(1, sizeof(*dataset));

	*out = dataset;
	if (!dataset)
		return weir_fail(ENOMEM, "dataset: no memory to mount");
	dataset->context = context;
	dataset->options = *options;
	dataset->storage_count = count;
	weir_dataset_communicator_alone(&dataset->alone);
	dataset->communicator = options->communicator ? options->communicator : &dataset->alone;
	dataset->directory.lookup =
		options->lookup == WEIR_DATASET_AVL ? &weir_dataset_lookup_avl : &weir_dataset_lookup_buckets;
	dataset->storages = calloc(count, sizeof(*dataset->storages));
	dataset->directory.parts = calloc(count, sizeof(*dataset->directory.parts));
	dataset->directory.part_count = count;
	if (!dataset->storages || !dataset->directory.parts)
		return weir_fail(ENOMEM, "dataset: no memory for %u storages", count);
	return 0;
}

int weir_dataset_mount(struct weir_context *context, struct weir_storage *const *storages,
		       unsigned storage_count, const struct weir_dataset_mount_options *given,
		       struct weir_dataset **out)
{
	struct weir_dataset_mount_options options;
	struct weir_dataset *dataset = NULL;
	uint64_t begin = now_us();
	int error = weir_options_take(&options, sizeof(options), given, "weir_dataset_mount");

	if (error)
		return error;
	if (!context || !storages || !storage_count || storage_count > UINT16_MAX || !out)
		error = weir_fail(EINVAL, "weir_dataset_mount: it needs a context, 1 to 65535 storages and "
					  "where to put the dataset");
	if (!error)
		error = weir_dataset_check_distinct(storages, storage_count, "weir_dataset_mount");
	if (!error)
		error = check_options(&options);
	if (!error)
		error = make(context, storage_count, &options, &dataset);
	if (!error)
		error = open_storages(dataset, storages);
	error = weir_dataset_agree(options.communicator, error);
	if (!error)
		error = set_up(dataset);
	if (error) {
		release(dataset);
		return error;
	}
	dataset->magic = WEIR_DATASET_MOUNTED;
	dataset->info.mount_us = now_us() - begin;
	*out = dataset;
	return 0;
}

/* Wait for what is under way. A context that is closed has done so, and its memory is gone. */
static int end_reads(struct weir_dataset *dataset)
{
	struct weir_context_info context = { .size = sizeof(context) };
	uint32_t loading;
	int error;

	if (weir_context_info(dataset->context, &context))
		return 0;
	error = weir_dataset_drain(dataset);
	loading = weir_dataset_cache_loading(dataset);
	if (!error && loading)
		error = weir_fail(ETIMEDOUT,
				  "weir_dataset_unmount: reads of %u chunks have not ended; the memory of "
				  "the cache stays until the context is closed",
				  loading);
	return error;
}

int weir_dataset_unmount(struct weir_dataset *dataset)
{
	char sentence[WEIR_DATASET_SENTENCE_BYTES];
	int error;

	if (!dataset)
		return 0;
	error = weir_dataset_check(dataset, "weir_dataset_unmount");
	if (error)
		return error;
	error = end_reads(dataset);
	snprintf(sentence, sizeof(sentence), "%s", weir_last_error());
	release(dataset); /* memory that is not freed has a sentence of its own */
	return error ? weir_fail(-error, "%s", sentence) : 0;
}

int weir_dataset_info(struct weir_dataset *dataset, struct weir_dataset_info *info)
{
	int error = weir_dataset_check(dataset, "weir_dataset_info");

	if (error)
		return error;
	dataset->info.directory_bytes = weir_dataset_directory_bytes(&dataset->directory);
	return weir_result_give(info, &dataset->info, sizeof(dataset->info), "weir_dataset_info");
}

int weir_dataset_stats(struct weir_dataset *dataset, struct weir_dataset_stats *stats)
{
	int error = weir_dataset_check(dataset, "weir_dataset_stats");

	return error ? error
		     : weir_result_give(stats, &dataset->stats, sizeof(dataset->stats), "weir_dataset_stats");
}
