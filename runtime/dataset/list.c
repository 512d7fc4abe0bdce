/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c: the list of samples that an indexer makes (source.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directory.h"
#include "backend/error.h"
#include "source.h"

enum { PROGRESS_EVERY = 1 << 26, NAME_BYTES = 4096 };

static int no_memory(const struct weir_dataset_list *list)
{
	return weir_fail(ENOMEM, "dataset: no memory to list more than %zu samples", list->count);
}

static int grow(void *array, size_t *room, size_t need, size_t unit)
{
	size_t more = *room ? *room : 1024;
	void *larger;

	if (need <= *room)
		return 0;
	while (more < need)
		more += more / 2;
	larger = realloc(*(void **)array, more * unit);
	if (!larger)
		return -1;
	*(void **)array = larger;
	*room = more;
	return 0;
}

static int add_name(struct weir_dataset_list *list, const char *name, uint64_t *at)
{
	size_t bytes = strlen(name) + 1;

	if (bytes > NAME_BYTES)
		return weir_fail(ENAMETOOLONG,
				 "dataset: the name '%.60s...' has %zu characters; %d are the most", name,
				 bytes - 1, NAME_BYTES - 1);
	if (grow(&list->names, &list->names_room, list->names_bytes + bytes, 1))
		return no_memory(list);
	*at = list->names_bytes;
	memcpy(list->names + list->names_bytes, name, bytes);
	list->names_bytes += bytes;
	return 0;
}

int weir_dataset_list_add(struct weir_dataset_list *list, const char *name, uint64_t offset, uint64_t bytes,
			  uint32_t label)
{
	struct weir_dataset_item item = { .offset = offset, .bytes = bytes, .label = label };
	int error;

	if (bytes > WEIR_DATASET_MAX_SAMPLE_BYTES)
		return weir_fail(EFBIG, "dataset: sample '%s' has %llu bytes; %u are the most: split it",
				 name, (unsigned long long)bytes, WEIR_DATASET_MAX_SAMPLE_BYTES);
	if (list->count >= UINT32_MAX)
		return weir_fail(EFBIG, "dataset: more than %u samples; make several datasets", UINT32_MAX);
	error = add_name(list, name, &item.name);
	if (error)
		return error;
	item.key = weir_dataset_hash(name).low & WEIR_DATASET_KEY_MASK;
	if (grow(&list->items, &list->room, list->count + 1, sizeof(item)))
		return no_memory(list);
	list->items[list->count++] = item;
	return 0;
}

int weir_dataset_list_add_file(struct weir_dataset_list *list, const char *name, uint64_t offset,
			       uint64_t bytes)
{
	struct weir_dataset_item item = { .offset = offset, .bytes = bytes, .label = WEIR_DATASET_NO_LABEL };
	const char *slash = strrchr(name, '/');
	int error = add_name(list, slash ? slash + 1 : name, &item.name);

	if (error)
		return error;
	if (grow(&list->files, &list->file_room, list->file_count + 1, sizeof(item)))
		return no_memory(list);
	list->files[list->file_count++] = item;
	return 0;
}

int weir_dataset_list_progress(struct weir_dataset_list *list, uint64_t done, uint64_t total)
{
	const struct weir_dataset_index_options *options = list->options;

	if (!options || !options->progress || (done < list->reported + PROGRESS_EVERY && done != total))
		return 0;
	list->reported = done;
	return options->progress(options->user, done, total)
		       ? weir_fail(ECANCELED, "dataset: stopped at byte %llu of %llu",
				   (unsigned long long)done, (unsigned long long)total)
		       : 0;
}

const char *weir_dataset_list_name(const struct weir_dataset_list *list, const struct weir_dataset_item *item)
{
	return list->names + item->name;
}

void weir_dataset_list_clear(struct weir_dataset_list *list)
{
	free(list->items);
	free(list->files);
	free(list->names);
	*list = (struct weir_dataset_list){ .options = list->options };
}
