/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format_tfrecord.c: TFRecord files: length, its CRC, data, its CRC (CRC-32C, rotated and offset: "masked").
 *
 * The CRC of a length is always checked; that of the data with weir_dataset_index_options.checks, since it
 * reads them all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include "backend/error.h"
#include "source.h"

enum { HEAD_BYTES = 12, TAIL_BYTES = 4, NAME_BYTES = 32 };

static uint32_t masked_crc(unsigned char *data, size_t bytes)
{
	uint32_t crc = ~crc32_iscsi(data, (int)bytes, UINT32_MAX);

	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static bool matches(const struct weir_dataset_source *source, const unsigned char *head, size_t bytes)
{
	unsigned char length[8];

	(void)source;
	if (bytes < HEAD_BYTES)
		return false;
	memcpy(length, head, sizeof(length));
	return masked_crc(length, sizeof(length)) == weir_dataset_le32(head + 8);
}

static int check_data(struct weir_dataset_source *source, uint64_t at, uint64_t record, uint64_t bytes)
{
	unsigned char *data = malloc(bytes + TAIL_BYTES);
	int error = data ? weir_dataset_source_read(source, at, data, bytes + TAIL_BYTES)
			 : weir_fail(ENOMEM, "dataset: no memory to check record %llu of '%s'",
				     (unsigned long long)record, source->name);

	if (!error && masked_crc(data, bytes) != weir_dataset_le32(data + bytes))
		error = weir_fail(EBADMSG,
				  "dataset: record %llu of '%s' is damaged: the checksum of its %llu bytes "
				  "at byte %llu is wrong",
				  (unsigned long long)record, source->name, (unsigned long long)bytes,
				  (unsigned long long)at);
	free(data);
	return error;
}

static int add_record(struct weir_dataset_source *source, struct weir_dataset_list *list, uint64_t *at,
		      uint64_t record)
{
	unsigned char head[HEAD_BYTES];
	char name[NAME_BYTES];
	int error = weir_dataset_source_read(source, *at, head, HEAD_BYTES);
	uint64_t bytes = error ? 0 : weir_dataset_le64(head);

	if (error)
		return error;
	if (masked_crc(head, 8) != weir_dataset_le32(head + 8))
		return weir_fail(EBADMSG,
				 "dataset: '%s' is no TFRecord file, or damaged: the checksum of the length "
				 "of record %llu at byte "
				 "%llu is wrong",
				 source->name, (unsigned long long)record, (unsigned long long)*at);
	if (bytes > source->bytes - *at - HEAD_BYTES || source->bytes - *at - HEAD_BYTES - bytes < TAIL_BYTES)
		return weir_fail(ENODATA,
				 "dataset: '%s' is cut short: record %llu at byte %llu has %llu bytes, and "
				 "the file ends before",
				 source->name, (unsigned long long)record, (unsigned long long)*at,
				 (unsigned long long)bytes);
	snprintf(name, sizeof(name), "record-%llu", (unsigned long long)record);
	error = weir_dataset_list_add(list, name, *at + HEAD_BYTES, bytes, WEIR_DATASET_NO_LABEL);
	if (!error && list->options && list->options->checks)
		error = check_data(source, *at + HEAD_BYTES, record, bytes);
	*at += HEAD_BYTES + bytes + TAIL_BYTES;
	return error;
}

static int index_tfrecord(struct weir_dataset_source *source, const char *parameters,
			  struct weir_dataset_list *list)
{
	uint64_t at = 0, record = 0;
	int error = 0;

	(void)parameters;
	while (!error && at < source->bytes) {
		error = add_record(source, list, &at, record++);
		if (!error)
			error = weir_dataset_list_progress(list, at, source->bytes);
	}
	return error ? error : weir_dataset_list_add_file(list, source->name, 0, source->bytes);
}

const struct weir_dataset_format weir_dataset_format_tfrecord = { "tfrecord", matches, index_tfrecord };
