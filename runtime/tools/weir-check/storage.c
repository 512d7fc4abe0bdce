/* SPDX-License-Identifier: BSD-3-Clause */
/* Storages named by URI: opened as a program would, for reading, and closed again. Of one on a network that
 * says whether it is reached. */
#include "storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/weir.h>

#include "machine.h"
#include "tool_options.h"

enum { QUEUES = 1, DEPTH = 16 };

/* Open it, and read its first block. */
static int try_storage(struct weir_context *context, const char *uri, struct weir_storage_info *info)
{
	struct weir_storage *storage;
	void *block;
	int error = weir_storage_open(
		context, uri, WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH, .read_only = true),
		&storage);

	if (error)
		return error;
	error = weir_storage_info(storage, info);
	block = error ? NULL : malloc(info->block_bytes);
	if (block)
		error = weir_storage_read(storage, 0, block, info->block_bytes);
	free(block);
	(void)weir_storage_close(storage);
	return error;
}

/* What is no UTF-8 is no JSON: its bytes are question marks there. */
static json_t *text_json(const char *text)
{
	json_t *string = json_string(text);
	char *plain = string ? NULL : strdup(text);

	for (char *c = plain; c && *c; c++)
		*c = *c & 0x80 ? '?' : *c;
	if (plain)
		string = json_string(plain);
	free(plain);
	return string ? string : json_null();
}

static json_t *storage_json(const char *uri, const struct weir_storage_info *info, int error)
{
	if (error)
		return json_pack("{s:o, s:s, s:o}", "uri", text_json(uri), "answer", "no", "why",
				 text_json(weir_last_error()));
	return json_pack("{s:o, s:s, s:o, s:I, s:I, s:I, s:b}", "uri", text_json(uri), "answer", "yes",
			 "path", text_json(info->path), "bytes", (json_int_t)info->bytes, "block_bytes",
			 (json_int_t)info->block_bytes, "max_transfer_bytes",
			 (json_int_t)info->max_transfer_bytes, "read_only", (int)info->read_only);
}

static void storage_text(const char *uri, const struct weir_storage_info *info, int error)
{
	if (error)
		printf("storage  no   %s\n", weir_last_error());
	else
		printf("storage  yes  %s: %s, %llu bytes in blocks of %u%s\n", uri, info->path,
		       (unsigned long long)info->bytes, info->block_bytes,
		       info->read_only ? ", opened for reading" : "");
}

int storages_report(const char *const *uris, unsigned count, bool json)
{
	struct weir_context *context;
	json_t *list = json_array();
	int status = STATUS_FAST;

	if (weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context) != 0) {
		(void)tool_complain("%s", weir_last_error());
		json_decref(list);
		return STATUS_NONE;
	}
	for (unsigned i = 0; i < count; i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		int error = try_storage(context, uris[i], &info);

		status = error ? STATUS_NONE : status;
		json_array_append_new(list, storage_json(uris[i], &info, error));
		if (!json)
			storage_text(uris[i], &info, error);
	}
	weir_context_close(context);
	list = json_pack("{s:s, s:o, s:i}", "version", weir_version(), "storages", list, "status", status);
	if (json)
		json_dumpf(list, stdout, JSON_INDENT(1));
	printf("%s", json ? "\n" : "");
	json_decref(list);
	return status;
}
