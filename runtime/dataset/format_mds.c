/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format_mds.c: shards of MosaicML streaming: a count, count + 1 offsets (32 bits each), a description in
 * JSON, the samples.
 *
 * A sample is all of its columns as the shard has them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/error.h"
#include "source.h"

enum { NAME_BYTES = 32 };

static uint64_t first_offset(const unsigned char *head)
{
	return 4 + 4 * ((uint64_t)weir_dataset_le32(head) + 1);
}

static bool matches(const struct weir_dataset_source *source, const unsigned char *head, size_t bytes)
{
	size_t name = strlen(source->name);

	return bytes >= 12 && name > 4 && strcmp(source->name + name - 4, ".mds") == 0 &&
	       weir_dataset_le32(head + 4) >= first_offset(head);
}

static int add_sample(struct weir_dataset_source *source, struct weir_dataset_list *list, uint32_t index,
		      uint32_t *begin)
{
	unsigned char next[4];
	char name[NAME_BYTES];
	int error = weir_dataset_source_read(source, 4 + 4 * ((uint64_t)index + 1), next, sizeof(next));
	uint32_t end = error ? 0 : weir_dataset_le32(next);

	if (error)
		return error;
	if (end < *begin || end > source->bytes)
		return weir_fail(EINVAL,
				 "dataset: '%s' is no MDS shard, or cut short: sample %u is from byte %u to "
				 "%u of %llu",
				 source->name, index, *begin, end, (unsigned long long)source->bytes);
	snprintf(name, sizeof(name), "record-%u", index);
	error = weir_dataset_list_add(list, name, *begin, end - *begin, WEIR_DATASET_NO_LABEL);
	*begin = end;
	return error;
}

static int index_mds(struct weir_dataset_source *source, const char *parameters,
		     struct weir_dataset_list *list)
{
	unsigned char head[8];
	uint32_t begin, count;
	int error = weir_dataset_source_read(source, 0, head, sizeof(head));

	(void)parameters;
	if (error)
		return error;
	count = weir_dataset_le32(head);
	begin = weir_dataset_le32(head + 4);
	if (begin < first_offset(head))
		return weir_fail(EINVAL,
				 "dataset: '%s' is no MDS shard: its %u samples begin at byte %u, in their "
				 "own offsets",
				 source->name, count, begin);
	for (uint32_t i = 0; i < count && !error; i++)
		error = add_sample(source, list, i, &begin);
	if (!error)
		error = weir_dataset_list_progress(list, source->bytes, source->bytes);
	return error ? error : weir_dataset_list_add_file(list, source->name, 0, source->bytes);
}

const struct weir_dataset_format weir_dataset_format_mds = { "mds", matches, index_mds };
