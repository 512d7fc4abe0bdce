/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading files: opened once, sized once, read by position, every result checked. */
#ifndef WEIR_TOOLS_GRAPH_INPUT_H
#define WEIR_TOOLS_GRAPH_INPUT_H

#include "error.h"

#include <string.h>

/** struct graph_input - an open regular file; @fd is -1 when closed */
struct graph_input {
	int fd;
	uint64_t bytes;
	char path[GRAPH_PATH_BYTES];
};

/** graph_input_open() - open a regular file for reading; -ENOENT, -EISDIR and others with a sentence */
int graph_input_open(struct graph_input *input, const char *path, struct graph_error *error);

/** graph_input_close() - close it if it is open */
void graph_input_close(struct graph_input *input);

/** graph_input_read_at() - exactly @bytes bytes from @position, or a sentence */
int graph_input_read_at(const struct graph_input *input, uint64_t position, void *data, size_t bytes,
			struct graph_error *error);

/**
 * struct graph_stream - reads [@position, @end) of a file in order, through a buffer
 *
 * Several streams may share one input. The buffer holds a whole number of 64-byte pieces, so an element whose
 * size divides 64 never straddles two fills.
 */
struct graph_stream {
	const struct graph_input *input;
	uint64_t position; /* next byte of the file to fetch */
	uint64_t end;
	unsigned char *buffer;
	size_t capacity;
	size_t filled;
	size_t used;
};

/** graph_stream_open() - stream [@begin, @end) through a buffer of about @buffer_bytes */
int graph_stream_open(struct graph_stream *stream, const struct graph_input *input, uint64_t begin,
		      uint64_t end, size_t buffer_bytes, struct graph_error *error);

/** graph_stream_close() - free the buffer */
void graph_stream_close(struct graph_stream *stream);

/** graph_stream_refill() - fetch the next bytes once all are used; at the end it fails with a sentence */
int graph_stream_refill(struct graph_stream *stream, struct graph_error *error);

/** graph_stream_take() - the next element, of @bytes bytes: a power of two of at most 64, always the same */
static inline int graph_stream_take(struct graph_stream *stream, void *element, size_t bytes,
				    struct graph_error *error)
{
	if (stream->used == stream->filled) {
		int status = graph_stream_refill(stream, error);
		if (status)
			return status;
	}
	memcpy(element, stream->buffer + stream->used, bytes);
	stream->used += bytes;
	return 0;
}

#endif
