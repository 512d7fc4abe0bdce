/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format_tar.c: tar archives (POSIX.1-2017 pax and ustar; GNU long names and base-256 sizes), WebDataset's
 * shards among them.
 *
 * Each regular file is a sample. A file `stem.cls` of a WebDataset is no sample but the label of the others
 * with its stem.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "source.h"

enum { BLOCK = 512, NAME_BYTES = 4096, LABEL_BYTES = 20, STEM_MEMBERS = 64 };

/** struct archive - where the reader is, and what precedes the next member */
struct archive {
	struct weir_dataset_source *source;
	struct weir_dataset_list *list;
	uint64_t at;
	char name[NAME_BYTES]; /* from a long name or a pax header; "": of the header */
	uint64_t size;         /* from a pax header; UINT64_MAX: of the header */
	size_t stem_first;     /* first item with the stem of the last one */
	char stem[NAME_BYTES];
	uint32_t stem_label;
};

static uint64_t number(const unsigned char *field, size_t bytes)
{
	uint64_t value = 0;

	if (field[0] & 0x80) { /* GNU's base 256 */
		for (size_t i = 1; i < bytes; i++)
			value = value << 8 | field[i];
		return value;
	}
	for (size_t i = 0; i < bytes && field[i]; i++)
		if (field[i] >= '0' && field[i] <= '7')
			value = value << 3 | (uint64_t)(field[i] - '0');
	return value;
}

static bool checks_out(const unsigned char *header)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : header[i];
	return sum == number(header + 148, 8);
}

static bool matches(const struct weir_dataset_source *source, const unsigned char *head, size_t bytes)
{
	(void)source;
	return bytes >= BLOCK && memcmp(head + 257, "ustar", 5) == 0 && checks_out(head);
}

static int fail_long(const struct archive *archive, uint64_t bytes, size_t room)
{
	return weir_fail(
		ENAMETOOLONG, "dataset: '%s' has a name of %llu characters at byte %llu; %zu are the most",
		archive->source->name, (unsigned long long)bytes, (unsigned long long)archive->at, room - 1);
}

static int text_of(struct archive *archive, uint64_t bytes, char *to, size_t room)
{
	if (bytes >= room)
		return fail_long(archive, bytes, room);
	to[bytes] = '\0';
	return weir_dataset_source_read(archive->source, archive->at, to, (size_t)bytes);
}

/* One that was cut could be another's. */
static int take_name(struct archive *archive, const char *name)
{
	if (strlen(name) >= sizeof(archive->name))
		return fail_long(archive, strlen(name), sizeof(archive->name));
	strcpy(archive->name, name);
	return 0;
}

/* Records "LENGTH KEY=VALUE\n" of the next member. */
static int read_pax(struct archive *archive, uint64_t bytes)
{
	char text[2 * NAME_BYTES], *at = text;
	int error = text_of(archive, bytes, text, sizeof(text));

	while (!error && at < text + bytes) {
		char *end = NULL, *record = at;
		unsigned long length = strtoul(at, &end, 10);
		char *value = end ? strchr(end, '=') : NULL;

		if (!length || length > (size_t)(text + bytes - at) || !value || value >= at + length ||
		    at[length - 1] != '\n')
			return weir_fail(EINVAL,
					 "dataset: '%s' has a pax header at byte %llu that is not one; make "
					 "the archive anew",
					 archive->source->name, (unsigned long long)archive->at);
		at += length;
		at[-1] = '\0';
		if (strncmp(end, " path=", 6) == 0)
			error = take_name(archive, value + 1);
		else if (strncmp(end, " size=", 6) == 0)
			archive->size = strtoull(value + 1, NULL, 10);
		else if (strncmp(end, " GNU.sparse.", 12) == 0)
			return weir_fail(ENOTSUP,
					 "dataset: '%s' has a sparse file at byte %llu; make the archive "
					 "without --sparse",
					 archive->source->name,
					 (unsigned long long)(archive->at + (uint64_t)(record - text)));
	}
	return error;
}

static void header_name(const unsigned char *header, char name[NAME_BYTES])
{
	const char *prefix = (const char *)header + 345;
	bool ustar = memcmp(header + 257, "ustar\0", 6) == 0 && *prefix; /* GNU has times there */

	if (ustar)
		snprintf(name, NAME_BYTES, "%.155s/%.100s", prefix, (const char *)header);
	else
		snprintf(name, NAME_BYTES, "%.100s", (const char *)header);
}

/* WebDataset: the name up to the first dot of its last part. */
static size_t stem_of(const char *name)
{
	const char *slash = strrchr(name, '/'), *dot = strchr(slash ? slash + 1 : name, '.');

	return dot ? (size_t)(dot - name) : strlen(name);
}

/* -1: none. */
static bool is_label(const char *text, uint32_t *label)
{
	char *end = NULL;
	long long value = strtoll(text, &end, 10);

	*label = value == -1 ? WEIR_DATASET_NO_LABEL : (uint32_t)value;
	return end != text && !end[strspn(end, " \t\r\n")] && value >= -1 && value < WEIR_DATASET_NO_LABEL;
}

static int read_label(struct archive *archive, const char *name, uint64_t bytes)
{
	char text[LABEL_BYTES + 1];
	int error = text_of(archive, bytes, text, sizeof(text));

	if (error)
		return error;
	if (!is_label(text, &archive->stem_label))
		return weir_fail(
			EINVAL,
			"dataset: the label '%.100s' of '%s' is \"%s\", and a label is a number below "
			"%u; name the file otherwise if it is a sample",
			name, archive->source->name, text, WEIR_DATASET_NO_LABEL);
	for (size_t i = archive->stem_first; i < archive->list->count; i++)
		archive->list->items[i].label = archive->stem_label;
	return 0;
}

static int add_file(struct archive *archive, const char *name, uint64_t size)
{
	size_t stem = stem_of(name);

	if (strncmp(archive->stem, name, stem) != 0 || archive->stem[stem]) {
		snprintf(archive->stem, sizeof(archive->stem), "%.*s", (int)stem, name);
		archive->stem_first = archive->list->count;
		archive->stem_label = WEIR_DATASET_NO_LABEL;
	}
	if (strcmp(name + stem, ".cls") == 0 && size <= LABEL_BYTES)
		return read_label(archive, name, size);
	return weir_dataset_list_add(archive->list, name, archive->at, size, archive->stem_label);
}

/* A member whose header is @header; archive->at is behind it. */
static int add_member(struct archive *archive, const unsigned char *header, uint64_t size)
{
	char name[NAME_BYTES], type = (char)header[156];
	int error = 0;

	if (type == 'L')
		return text_of(archive, size, archive->name, sizeof(archive->name));
	if (type == 'x')
		return read_pax(archive, size);
	if (type == 'K' || type == 'g')
		return 0; /* of a link, or of all members: no names in either */
	if (type == 'S')
		return weir_fail(
			ENOTSUP,
			"dataset: '%s' has a sparse file at byte %llu; make the archive without --sparse",
			archive->source->name, (unsigned long long)archive->at - BLOCK);
	header_name(header, name);
	if (type == '0' || type == '\0' || type == '7')
		error = add_file(archive, archive->name[0] ? archive->name : name, size);
	archive->name[0] = '\0';
	archive->size = UINT64_MAX;
	return error;
}

static int check_member(const struct archive *archive, const unsigned char *header, uint64_t size)
{
	if (!checks_out(header))
		return weir_fail(EINVAL,
				 "dataset: '%s' is no tar archive, or damaged: the checksum of the header at "
				 "byte %llu is wrong",
				 archive->source->name, (unsigned long long)archive->at);
	if (size > archive->source->bytes - archive->at - BLOCK)
		return weir_fail(ENODATA,
				 "dataset: '%s' is cut short: the file '%.100s' at byte %llu has %llu bytes, "
				 "and the archive ends "
				 "before",
				 archive->source->name, (const char *)header, (unsigned long long)archive->at,
				 (unsigned long long)size);
	return 0;
}

static int index_tar(struct weir_dataset_source *source, const char *parameters,
		     struct weir_dataset_list *list)
{
	struct archive *archive = calloc(1, sizeof(*archive));
	static const unsigned char zeros[BLOCK];
	unsigned char header[BLOCK];
	bool ended = false;
	int error = archive ? 0 : weir_fail(ENOMEM, "dataset: no memory to read '%s'", source->name);

	(void)parameters;
	if (error)
		return error;
	*archive = (struct archive){
		.source = source, .list = list, .size = UINT64_MAX, .stem_label = WEIR_DATASET_NO_LABEL
	};
	while (!error && source->bytes - archive->at >= BLOCK) {
		uint64_t size;

		error = weir_dataset_source_read(source, archive->at, header, BLOCK);
		ended = !error && memcmp(header, zeros, BLOCK) == 0;
		if (error || ended)
			break;
		size = archive->size != UINT64_MAX && header[156] != 'x' ? archive->size
									 : number(header + 124, 12);
		if (header[156] >= '1' && header[156] <= '6')
			size = 0; /* links, devices and folders have no data */
		error = check_member(archive, header, size);
		archive->at += BLOCK;
		if (!error)
			error = add_member(archive, header, size);
		archive->at += (size + BLOCK - 1) / BLOCK * BLOCK;
		if (archive->at > source->bytes)
			archive->at = source->bytes; /* the last one without its padding */
		if (!error)
			error = weir_dataset_list_progress(list, archive->at, source->bytes);
	}
	if (!error && !ended && archive->at < source->bytes)
		error = weir_fail(ENODATA, "dataset: '%s' is cut short: the header at byte %llu is not whole",
				  source->name, (unsigned long long)archive->at);
	free(archive);
	return error ? error : weir_dataset_list_add_file(list, source->name, 0, source->bytes);
}

const struct weir_dataset_format weir_dataset_format_tar = { "tar", matches, index_tar };
