/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c: a file's bytes to a volume and back, as a client of it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "tool.h"
#include "tool_output.h"

enum { PART_BYTES = 1 << 20, QUEUES = 1, DEPTH = 16 };

static int fail_long(const char *path)
{
	return weir_fail(ENOSPC, "%s is longer than the volume; weir-volume resize lets it grow", path);
}

/* The rest of the last block is zeros. */
static int put_all(struct weir_storage *storage, FILE *file, const char *path, unsigned block, uint64_t size)
{
	unsigned char *part = malloc(PART_BYTES);
	struct stat status;
	uint64_t at = 0;
	size_t got;
	int error = part ? 0 : weir_fail(ENOMEM, "no memory to copy %s", path);

	/* of a file it is known before anything is overwritten */
	if (!error && !fstat(fileno(file), &status) && S_ISREG(status.st_mode) &&
	    (uint64_t)status.st_size > size)
		error = fail_long(path);
	while (!error && (got = fread(part, 1, PART_BYTES, file)) != 0) {
		size_t bytes = (got + block - 1) / block * block;

		memset(part + got, 0, bytes - got);
		if (at + bytes > size)
			error = fail_long(path);
		else
			error = weir_storage_write(storage, at, part, bytes);
		at += bytes;
	}
	if (!error && ferror(file))
		error = weir_fail(EIO, "%s cannot be read", path);
	free(part);
	return error;
}

static int get_all(struct weir_storage *storage, FILE *file, const char *path, uint64_t size)
{
	unsigned char *part = malloc(PART_BYTES);
	int error = part ? 0 : weir_fail(ENOMEM, "no memory to copy %s", path);

	for (uint64_t at = 0; at < size && !error;) {
		size_t bytes = size - at < PART_BYTES ? (size_t)(size - at) : PART_BYTES;

		error = weir_storage_read(storage, at, part, bytes);
		if (!error && fwrite(part, 1, bytes, file) != bytes)
			error = weir_fail(EIO, "%s cannot be written: %s", path, strerror(errno));
		at += bytes;
	}
	free(part);
	return error;
}

static int open_file(const char *path, bool put, FILE **file)
{
	*file = fopen(path, put ? "rb" : "wb");
	return *file ? 0 : weir_fail(errno, "%s: %s", path, strerror(errno));
}

/* What was in a file that is to be written stays there until its volume is open. */
static int copy(struct weir_context *context, const char *uri, FILE **file, const char *path, bool put)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *storage;
	int error = weir_storage_open(
		context, uri, WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH, .read_only = !put),
		&storage);
	int closed;

	if (error)
		return error;
	error = weir_storage_info(storage, &info);
	if (!error && !put)
		error = open_file(path, put, file);
	if (!error)
		error = put ? put_all(storage, *file, path, info.block_bytes, info.bytes)
			    : get_all(storage, *file, path, info.bytes);
	closed = weir_storage_close(storage); /* which makes durable what was written */
	return error ? error : closed;
}

/* What a URI has for itself, as escapes (base/uri.h). */
static void add_text(FILE *uri, const char *before, const char *text)
{
	fputs(before, uri);
	for (; *text; text++)
		fprintf(uri, strchr("%?&", *text) ? "%%%02X" : "%c", *text);
}

/* To free(); NULL: no memory. */
static char *make_uri(const struct copied *volume)
{
	char *text = NULL;
	size_t bytes;
	FILE *uri = open_memstream(&text, &bytes);

	if (!uri)
		return NULL;
	add_text(uri, "vol:", volume->name);
	add_text(uri, "?daemon=", volume->daemon);
	if (volume->key)
		add_text(uri, "&daemon_psk=", volume->key);
	if (volume->engine_key)
		add_text(uri, "&tls_psk=", volume->engine_key);
	if (volume->secret)
		add_text(uri, "&dhchap_secret=", volume->secret);
	if (volume->controller_secret)
		add_text(uri, "&dhchap_ctrl_secret=", volume->controller_secret);
	if (volume->hostnqn)
		add_text(uri, "&hostnqn=", volume->hostnqn);
	return fclose(uri) == 0 ? text : NULL;
}

int copy_file(const struct copied *volume, const char *path, bool put)
{
	struct weir_context *context;
	FILE *file = NULL;
	char *uri;
	int error = put ? open_file(path, put, &file) : 0;

	if (error)
		return error;
	uri = make_uri(volume);
	error = uri ? weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context)
		    : weir_fail(ENOMEM, "no memory to copy %s", path);
	if (!error) {
		error = copy(context, uri, &file, path, put);
		weir_context_close(context);
	}
	free(uri);
	if (put)
		(void)fclose(file);
	else if (file && !tool_output_end(file, path, !error) && !error)
		error = weir_fail(EIO, "%s cannot be written: %s", path, strerror(errno));
	return error;
}
