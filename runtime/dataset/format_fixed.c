/* SPDX-License-Identifier: BSD-3-Clause */
/* format_fixed.c: records of one length, behind a header or none; labels in them or none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/error.h"
#include "source.h"

enum { NAME_BYTES = 32 };

static int add_record(struct weir_dataset_source *source, struct weir_dataset_list *list, uint64_t at,
		      uint64_t record, uint64_t bytes, uint32_t skip, int label_at)
{
	uint32_t label = WEIR_DATASET_NO_LABEL;
	char name[NAME_BYTES];

	if (label_at >= 0) {
		unsigned char byte;
		int error = weir_dataset_source_read(source, at + (uint32_t)label_at, &byte, 1);

		if (error)
			return error;
		label = byte;
	}
	snprintf(name, sizeof(name), "record-%llu", (unsigned long long)record);
	return weir_dataset_list_add(list, name, at + skip, bytes - skip, label);
}

int weir_dataset_records_index(struct weir_dataset_source *source, struct weir_dataset_list *list,
			       uint64_t header, uint64_t bytes, uint32_t skip, int label_at)
{
	uint64_t data = source->bytes > header ? source->bytes - header : 0, count = data / bytes;
	int error = 0;

	if (!count || data % bytes)
		return weir_fail(EINVAL,
				 "dataset: '%s' has %llu bytes behind its header of %llu: no whole number of "
				 "records of %llu",
				 source->name, (unsigned long long)data, (unsigned long long)header,
				 (unsigned long long)bytes);
	for (uint64_t i = 0; i < count && !error; i++) {
		error = add_record(source, list, header + i * bytes, i, bytes, skip, label_at);
		if (!error)
			error = weir_dataset_list_progress(list, header + (i + 1) * bytes, source->bytes);
	}
	return error ? error : weir_dataset_list_add_file(list, source->name, 0, source->bytes);
}

static int index_fixed(struct weir_dataset_source *source, const char *parameters,
		       struct weir_dataset_list *list)
{
	uint64_t bytes = 0, header = 0;
	char text[64], *colon;

	snprintf(text, sizeof(text), "%s", parameters);
	colon = strchr(text, ':');
	if (colon)
		*colon = '\0';
	if (weir_parse_bytes(text, &bytes) || !bytes || (colon && weir_parse_bytes(colon + 1, &header)))
		return weir_fail(EINVAL,
				 "dataset: the format 'fixed:%s' has no length of a record; write "
				 "fixed:4096, or fixed:4096:16 for "
				 "a header of 16 bytes",
				 parameters);
	return weir_dataset_records_index(source, list, header, bytes, 0, -1);
}

const struct weir_dataset_format weir_dataset_format_fixed = { "fixed", NULL, index_fixed };
