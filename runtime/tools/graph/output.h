/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing files that appear complete or not at all: they grow under a temporary name and are renamed together
 * at the very end. Whatever ends the job early, graph_outputs_unlink() removes the temporary names.
 */
#ifndef WEIR_TOOLS_GRAPH_OUTPUT_H
#define WEIR_TOOLS_GRAPH_OUTPUT_H

#include "error.h"

#include <string.h>

/** GRAPH_OUTPUTS_MAX - how many outputs one process may have under way */
#define GRAPH_OUTPUTS_MAX 256

/** struct graph_output - a file under way; zero is a valid "none"; @slot is 1 + its place in the registry */
struct graph_output {
	int slot;
	int fd;
	char path[GRAPH_PATH_BYTES];
	char temporary[GRAPH_PATH_BYTES];
};

/** graph_output_check() - a sentence when @path is a directory or another thing that no rename should replace
 */
int graph_output_check(const char *path, struct graph_error *error);

/** graph_output_create() - start the file that will be called @path */
int graph_output_create(struct graph_output *output, const char *path, struct graph_error *error);

/** graph_output_write_at() - exactly @bytes bytes to @position, or a sentence */
int graph_output_write_at(const struct graph_output *output, uint64_t position, const void *data,
			  size_t bytes, struct graph_error *error);

/** graph_outputs_commit() - make @count files durable and give them their names, all or none of them */
int graph_outputs_commit(struct graph_output *outputs, size_t count, struct graph_error *error);

/** graph_output_discard() - remove a file under way; nothing happens after a commit */
void graph_output_discard(struct graph_output *output);

/** graph_outputs_unlink() - remove all temporary names; async-signal-safe */
void graph_outputs_unlink(void);

/** graph_scratch_open() - a nameless read-write file in @directory; returns the descriptor or a negative
 * errno */
int graph_scratch_open(const char *directory, struct graph_error *error);

/** graph_directory_of() - the directory part of @path ("." without one) */
void graph_directory_of(const char *path, char directory[GRAPH_PATH_BYTES]);

/** graph_write_at() - as graph_output_write_at(), for a plain descriptor called @path in sentences */
int graph_write_at(int fd, const char *path, uint64_t position, const void *data, size_t bytes,
		   struct graph_error *error);

/** struct graph_writer - writes a range of an output in order, through a buffer */
struct graph_writer {
	const struct graph_output *output;
	uint64_t position; /* where the first byte of the buffer goes */
	unsigned char *buffer;
	size_t capacity;
	size_t used;
};

/** graph_writer_open() - write from byte @position on, through a buffer of @buffer_bytes (at least 64) */
int graph_writer_open(struct graph_writer *writer, const struct graph_output *output, uint64_t position,
		      size_t buffer_bytes, struct graph_error *error);

/** graph_writer_flush() - write what the buffer holds */
int graph_writer_flush(struct graph_writer *writer, struct graph_error *error);

/** graph_writer_close() - free the buffer; what was not flushed is lost */
void graph_writer_close(struct graph_writer *writer);

/** graph_writer_reserve() - room for @bytes (at most 64) at buffer + used; the caller advances used */
static inline int graph_writer_reserve(struct graph_writer *writer, size_t bytes, struct graph_error *error)
{
	return writer->capacity - writer->used >= bytes ? 0 : graph_writer_flush(writer, error);
}

/** graph_writer_put() - append @bytes bytes, at most 64 */
static inline int graph_writer_put(struct graph_writer *writer, const void *data, size_t bytes,
				   struct graph_error *error)
{
	int status = graph_writer_reserve(writer, bytes, error);
	if (status)
		return status;
	memcpy(writer->buffer + writer->used, data, bytes);
	writer->used += bytes;
	return 0;
}

#endif
