/* SPDX-License-Identifier: BSD-3-Clause */
/* manifest.c: manifests read, checked and written (manifest.h). */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "backend/error.h"

enum { ALIGN = 4096, PROBES = 16, PROBE_BYTES = 4096 };

static const char *const section_names[] = { "entries", "labels", "name offsets",
					     "names",   "files",  "collisions" };

static uint64_t checksum_of(const struct weir_dataset_header *header)
{
	struct weir_dataset_header copy = *header;

	copy.checksum = 0;
	return XXH3_64bits(&copy, sizeof(copy));
}

void weir_dataset_header_seal(struct weir_dataset_header *header)
{
	header->checksum = checksum_of(header);
}

int weir_dataset_header_check(const struct weir_dataset_header *header, const char *name)
{
	if (header->magic != WEIR_DATASET_MAGIC)
		return weir_fail(ENODATA,
				 "dataset: '%s' has no manifest; make one with weir-dataset index or "
				 "weir-dataset upload",
				 name);
	if (header->version != WEIR_DATASET_VERSION)
		return weir_fail(EPROTO,
				 "dataset: the manifest of '%s' is of version %u, and this is weir with "
				 "version %d; index or upload "
				 "anew",
				 name, header->version, WEIR_DATASET_VERSION);
	if (header->checksum != checksum_of(header))
		return weir_fail(EBADMSG,
				 "dataset: the manifest of '%s' is damaged: the checksum of its header is "
				 "wrong; index or upload anew",
				 name);
	return 0;
}

void weir_dataset_manifest_free(struct weir_dataset_manifest *manifest)
{
	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS; i++)
		free(manifest->sections[i]);
	memset(manifest, 0, sizeof(*manifest));
}

uint64_t weir_dataset_manifest_id(const struct weir_dataset_list *list)
{
	uint64_t id = XXH3_64bits(list->names, list->names_bytes);

	for (size_t i = 0; i < list->count; i++) {
		uint64_t words[] = { id, list->items[i].bytes, list->items[i].label };

		id = XXH3_64bits(words, sizeof(words));
	}
	return id;
}

static void *section(struct weir_dataset_manifest *manifest, unsigned kind, size_t count, size_t unit)
{
	manifest->header.sections[kind].bytes = count * unit;
	manifest->sections[kind] = count ? calloc(count, unit) : NULL;
	return manifest->sections[kind];
}

/** struct keyed - for finding equal keys */
struct keyed {
	uint64_t key;
	uint64_t number;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *left = a, *right = b;

	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static bool collides(const struct keyed *keyed, size_t count, size_t i)
{
	return (i > 0 && keyed[i - 1].key == keyed[i].key) ||
	       (i + 1 < count && keyed[i + 1].key == keyed[i].key);
}

/* Samples whose keys are equal are found by their whole hash: the section has these. */
static int find_collisions(struct weir_dataset_manifest *manifest, const struct weir_dataset_list *list,
			   const struct weir_dataset_item *items, size_t count, uint64_t mask)
{
	struct keyed *keyed = malloc(count * sizeof(*keyed));
	struct weir_dataset_collision *to;
	size_t found = 0;

	if (!keyed)
		return -1;
	for (size_t i = 0; i < count; i++)
		keyed[i] = (struct keyed){ items[i].key & mask, i };
	if (!(manifest->header.flags & WEIR_DATASET_BY_KEY) || mask != WEIR_DATASET_KEY_MASK)
		qsort(keyed, count, sizeof(*keyed), by_key);
	for (size_t i = 0; i < count; i++)
		found += collides(keyed, count, i);
	to = section(manifest, WEIR_DATASET_COLLISIONS, found, sizeof(*to));
	for (size_t i = 0; i < count && to; i++)
		if (collides(keyed, count, i)) {
			struct weir_dataset_hash hash =
				weir_dataset_hash(weir_dataset_list_name(list, &items[keyed[i].number]));

			*to++ = (struct weir_dataset_collision){ keyed[i].key, hash.low, hash.high,
								 keyed[i].number };
		}
	free(keyed);
	return found && !manifest->sections[WEIR_DATASET_COLLISIONS] ? -1 : 0;
}

static bool sorted_by_key(const struct weir_dataset_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i - 1].key > items[i].key)
			return false;
	return true;
}

static bool any_labels(const struct weir_dataset_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].label != WEIR_DATASET_NO_LABEL)
			return true;
	return false;
}

static int fill_names(struct weir_dataset_manifest *manifest, const struct weir_dataset_list *list,
		      const struct weir_dataset_item *items, size_t count)
{
	uint64_t *offsets = section(manifest, WEIR_DATASET_NAME_OFFSETS, count + 1, sizeof(*offsets));
	uint64_t bytes = 0;
	char *names;

	if (!offsets)
		return -1;
	for (size_t i = 0; i < count; i++) {
		offsets[i] = bytes;
		bytes += strlen(weir_dataset_list_name(list, &items[i]));
	}
	offsets[count] = bytes;
	names = section(manifest, WEIR_DATASET_NAMES, bytes, 1);
	if (bytes && !names)
		return -1;
	for (size_t i = 0; i < count; i++)
		memcpy(names + offsets[i], weir_dataset_list_name(list, &items[i]),
		       offsets[i + 1] - offsets[i]);
	return 0;
}

static int fill_entries(struct weir_dataset_manifest *manifest, const struct weir_dataset_item *items,
			size_t count, uint64_t mask)
{
	struct weir_dataset_entry *entries = section(manifest, WEIR_DATASET_ENTRIES, count, sizeof(*entries));
	uint32_t *labels = any_labels(items, count)
				   ? section(manifest, WEIR_DATASET_LABELS, count, sizeof(*labels))
				   : NULL;

	if (count && (!entries || (any_labels(items, count) && !labels)))
		return -1;
	for (size_t i = 0; i < count; i++) {
		entries[i] =
			weir_dataset_entry(0, items[i].key & mask, items[i].offset >> manifest->header.shift,
					   (uint32_t)items[i].bytes);
		if (labels)
			labels[i] = items[i].label;
	}
	return 0;
}

static int fill_files(struct weir_dataset_manifest *manifest, const struct weir_dataset_list *list)
{
	struct weir_dataset_file *files =
		section(manifest, WEIR_DATASET_FILES, list->file_count, sizeof(*files));

	for (size_t i = 0; i < list->file_count && files; i++) {
		struct weir_dataset_hash hash =
			weir_dataset_hash(weir_dataset_list_name(list, &list->files[i]));

		files[i] = (struct weir_dataset_file){ hash.low, hash.high, list->files[i].offset,
						       list->files[i].bytes };
	}
	return list->file_count && !files ? -1 : 0;
}

/* Offsets have 40 bits: bytes up to 1 TiB, behind that units of 512 bytes. */
static int choose_unit(struct weir_dataset_header *header, const struct weir_dataset_list *list,
		       const struct weir_dataset_item *items, size_t count, uint64_t storage_bytes)
{
	uint64_t unit = UINT64_C(1) << WEIR_DATASET_UNIT_LOG2;

	header->shift = storage_bytes > UINT64_C(1) << WEIR_DATASET_OFFSET_BITS ? WEIR_DATASET_UNIT_LOG2 : 0;
	for (size_t i = 0; header->shift && i < count; i++) {
		if (items[i].offset >> (WEIR_DATASET_OFFSET_BITS + WEIR_DATASET_UNIT_LOG2))
			return weir_fail(
				EFBIG,
				"dataset: sample '%s' begins at byte %llu, beyond 512 TiB; split the storage",
				weir_dataset_list_name(list, &items[i]), (unsigned long long)items[i].offset);
		if (items[i].offset % unit)
			return weir_fail(EINVAL,
					 "dataset: sample '%s' begins at byte %llu, no multiple of %llu, in "
					 "a storage above 1 TiB; split "
					 "the storage",
					 weir_dataset_list_name(list, &items[i]),
					 (unsigned long long)items[i].offset, (unsigned long long)unit);
	}
	return 0;
}

int weir_dataset_manifest_build(struct weir_dataset_manifest *manifest, const struct weir_dataset_list *list,
				const struct weir_dataset_item *items, size_t count, uint64_t storage_bytes,
				unsigned key_bits)
{
	uint64_t mask = (UINT64_C(1) << key_bits) - 1;
	int error;

	memset(manifest, 0, sizeof(*manifest));
	manifest->header =
		(struct weir_dataset_header){ .magic = WEIR_DATASET_MAGIC,
					      .version = WEIR_DATASET_VERSION,
					      .storages = 1,
					      .state = WEIR_DATASET_COMPLETE,
					      .samples = count,
					      .id = weir_dataset_manifest_id(list),
					      .flags =
						      sorted_by_key(items, count) ? WEIR_DATASET_BY_KEY : 0 };
	error = choose_unit(&manifest->header, list, items, count, storage_bytes);
	if (error)
		return error;
	if (key_bits != WEIR_DATASET_KEY_BITS)
		manifest->header.flags = 0;
	if (fill_entries(manifest, items, count, mask) || fill_names(manifest, list, items, count) ||
	    fill_files(manifest, list) || (count && find_collisions(manifest, list, items, count, mask))) {
		weir_dataset_manifest_free(manifest);
		return weir_fail(ENOMEM, "dataset: no memory for the directory of %zu samples", count);
	}
	return 0;
}

uint64_t weir_dataset_manifest_layout(struct weir_dataset_manifest *manifest, uint64_t offset)
{
	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS; i++) {
		struct weir_dataset_section *section = &manifest->header.sections[i];

		offset = (offset + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
		section->offset = offset;
		section->checksum = XXH3_64bits(manifest->sections[i], section->bytes);
		offset += section->bytes;
	}
	return (offset + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static int write_at(int file, const void *data, uint64_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t put = pwrite(file, data, bytes, (off_t)offset);

		if (put <= 0)
			return put ? errno : EIO;
		data = (const char *)data + put;
		offset += (uint64_t)put;
		bytes -= (uint64_t)put;
	}
	return 0;
}

static int write_all(const struct weir_dataset_manifest *manifest, int file)
{
	int error = 0;

	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS && !error; i++)
		error = write_at(file, manifest->sections[i], manifest->header.sections[i].bytes,
				 manifest->header.sections[i].offset);
	if (!error)
		error = write_at(file, &manifest->header, sizeof(manifest->header), 0);
	if (!error && fsync(file) != 0)
		error = errno;
	return error;
}

int weir_dataset_manifest_save(struct weir_dataset_manifest *manifest, const char *path)
{
	char aside[4096 + 8];
	int file, error;

	snprintf(aside, sizeof(aside), "%.4095s.XXXXXX", path);
	file = mkstemp(aside);
	if (file < 0)
		return weir_fail(errno, "dataset: cannot write the manifest '%s': %s", path, strerror(errno));
	weir_dataset_manifest_layout(manifest, WEIR_DATASET_HEADER_BYTES);
	weir_dataset_header_seal(&manifest->header);
	error = write_all(manifest, file);
	if (fchmod(file, 0644) != 0 && !error)
		error = errno;
	if (close(file) != 0 && !error)
		error = errno;
	if (!error && rename(aside, path) != 0)
		error = errno;
	if (error)
		unlink(aside);
	return error ? weir_fail(error, "dataset: cannot write the manifest '%s': %s", path, strerror(error))
		     : 0;
}

static int load_section(struct weir_dataset_manifest *manifest, struct weir_dataset_source *source,
			unsigned kind)
{
	const struct weir_dataset_section *section = &manifest->header.sections[kind];
	int error;

	if (!section->bytes)
		return 0;
	manifest->sections[kind] = malloc(section->bytes);
	if (!manifest->sections[kind])
		return weir_fail(ENOMEM, "dataset: no memory for the %llu bytes of %s of '%s'",
				 (unsigned long long)section->bytes, section_names[kind], source->name);
	error = weir_dataset_source_read(source, section->offset, manifest->sections[kind], section->bytes);
	if (!error && XXH3_64bits(manifest->sections[kind], section->bytes) != section->checksum)
		error = weir_fail(EBADMSG,
				  "dataset: the manifest of '%s' is damaged: the checksum of its %s is "
				  "wrong; index or upload anew",
				  source->name, section_names[kind]);
	return error;
}

/* Sizes that go with the number of samples, so that nobody reads behind a section. */
static int check_sizes(const struct weir_dataset_header *header, const char *name)
{
	const struct weir_dataset_section *sections = header->sections;

	if (header->samples >= UINT32_MAX ||
	    sections[WEIR_DATASET_ENTRIES].bytes != header->samples * sizeof(struct weir_dataset_entry) ||
	    (sections[WEIR_DATASET_LABELS].bytes &&
	     sections[WEIR_DATASET_LABELS].bytes != header->samples * sizeof(uint32_t)) ||
	    sections[WEIR_DATASET_NAME_OFFSETS].bytes != (header->samples + 1) * sizeof(uint64_t))
		return weir_fail(EBADMSG,
				 "dataset: the manifest of '%s' is damaged: its sections do not go with its "
				 "%llu samples",
				 name, (unsigned long long)header->samples);
	return 0;
}

/* Samples lie one behind the other in the data: a chunk ends where its last one does. */
static int check_entries(const struct weir_dataset_manifest *manifest, const char *name)
{
	const struct weir_dataset_entry *entries = manifest->sections[WEIR_DATASET_ENTRIES];
	const struct weir_dataset_header *header = &manifest->header;
	unsigned shift = header->shift ? WEIR_DATASET_UNIT_LOG2 : 0;
	uint64_t end = 0;

	for (uint64_t i = 0; entries && i < header->samples; i++) {
		uint64_t offset = weir_dataset_entry_units(entries[i]) << shift;

		if (offset < end || offset + weir_dataset_entry_length(entries[i]) > header->data_bytes)
			return weir_fail(EBADMSG,
					 "dataset: the manifest of '%s' is damaged: its sample %llu does not "
					 "lie behind the one before, within the data",
					 name, (unsigned long long)i);
		end = offset + weir_dataset_entry_length(entries[i]);
	}
	return 0;
}

int weir_dataset_manifest_load(struct weir_dataset_manifest *manifest, struct weir_dataset_source *source,
			       unsigned wanted)
{
	struct weir_dataset_header *header = &manifest->header;
	int error;

	memset(manifest, 0, sizeof(*manifest));
	if (source->bytes >= WEIR_DATASET_HEADER_BYTES)
		error = weir_dataset_source_read(source, 0, header, sizeof(*header));
	else
		error = 0; /* its magic is 0 */
	if (!error)
		error = weir_dataset_header_check(header, source->name);
	if (!error && header->state != WEIR_DATASET_COMPLETE)
		error = weir_fail(ENODATA,
				  "dataset: the upload to '%s' was interrupted after %llu of %llu samples; "
				  "run the same upload again to "
				  "go on",
				  source->name, (unsigned long long)header->uploaded,
				  (unsigned long long)header->samples);
	if (!error)
		error = check_sizes(header, source->name);
	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS && !error; i++)
		if (wanted >> i & 1)
			error = load_section(manifest, source, i);
	if (!error)
		error = check_entries(manifest, source->name);
	if (error)
		weir_dataset_manifest_free(manifest);
	return error;
}

int weir_dataset_fingerprint(struct weir_dataset_source *source, uint64_t first, uint64_t bytes,
			     uint64_t *hash)
{
	unsigned char probe[PROBE_BYTES];
	uint64_t words[2] = { bytes, 0 };

	source->random = true;
	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t at = first + (bytes > PROBE_BYTES ? (bytes - PROBE_BYTES) / (PROBES - 1) * i : 0);
		size_t some = bytes < PROBE_BYTES ? (size_t)bytes : PROBE_BYTES;
		int error = weir_dataset_source_read(source, at, probe, some);

		if (error)
			return error;
		words[1] = XXH3_64bits_withSeed(probe, some, words[0] ^ words[1]);
	}
	source->random = false;
	*hash = XXH3_64bits(words, sizeof(words));
	return 0;
}

int weir_dataset_check_distinct(struct weir_storage *const *storages, unsigned count, const char *call)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned j = 0; j < i; j++)
			if (storages[i] == storages[j])
				return weir_fail(EINVAL,
						 "%s: storages %u and %u are the same one; name each once",
						 call, j, i);
	return 0;
}
