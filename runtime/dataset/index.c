/* SPDX-License-Identifier: BSD-3-Clause */
/* index.c: weir_dataset_index(): the sample directory of data that stays where it is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "manifest.h"
#include "base/options.h"

static int by_offset(const void *a, const void *b)
{
	const struct weir_dataset_item *left = a, *right = b;

	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Formats list samples in the order of their offsets; but nothing makes an archive do so. */
static void sort(struct weir_dataset_list *list)
{
	for (size_t i = 1; i < list->count; i++)
		if (list->items[i - 1].offset > list->items[i].offset) {
			qsort(list->items, list->count, sizeof(*list->items), by_offset);
			return;
		}
}

static int save(struct weir_dataset_source *source, struct weir_dataset_list *list, const char *path)
{
	struct weir_dataset_manifest manifest;
	int error;

	sort(list);
	error = weir_dataset_manifest_build(&manifest, list, list->items, list->count, source->bytes,
					    WEIR_DATASET_KEY_BITS);
	if (error)
		return error;
	manifest.header.data_bytes = source->bytes;
	error = weir_dataset_fingerprint(source, 0, source->bytes, &manifest.header.fingerprint);
	if (!error)
		error = weir_dataset_manifest_save(&manifest, path);
	weir_dataset_manifest_free(&manifest);
	return error;
}

/* The manifest's name without ".weir" is the name of what it describes. */
static void name_of(const char *path, char name[256])
{
	const char *slash = strrchr(path, '/');
	size_t bytes;

	path = slash ? slash + 1 : path;
	bytes = strlen(path);
	if (bytes > 5 && strcmp(path + bytes - 5, ".weir") == 0)
		bytes -= 5;
	if (bytes > 255)
		bytes = 255;
	memcpy(name, path, bytes);
	name[bytes] = '\0';
}

int weir_dataset_index(struct weir_storage *storage, const char *path,
		       const struct weir_dataset_index_options *given)
{
	struct weir_dataset_index_options options;
	struct weir_dataset_list list = { .options = &options };
	struct weir_dataset_source source;
	char name[256];
	int error = weir_options_take(&options, sizeof(options), given, "weir_dataset_index");

	if (!error && !path)
		error = weir_fail(EINVAL, "weir_dataset_index: the manifest has no name; give the path of a "
					  "file, such as shard.tar.weir");
	if (error)
		return error;
	name_of(path, name);
	error = weir_dataset_source_storage(&source, storage, name);
	if (error)
		return error;
	error = weir_dataset_formats_index(&source, &list);
	if (!error)
		error = save(&source, &list, path);
	weir_dataset_list_clear(&list);
	weir_dataset_source_close(&source);
	return error;
}
