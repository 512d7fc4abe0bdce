/* SPDX-License-Identifier: BSD-3-Clause */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_open(struct graph_error *error, const char *path, int code)
{
	const char *remedy = code == ENOENT   ? "check the name"
			     : code == EACCES ? "check its permissions"
					      : "see errno(3)";
	return graph_fail(error, -code, "cannot open %s: %s; %s", path, strerror(code), remedy);
}

/* Size of what was opened; anything but a regular file is refused, as its size says nothing. */
static int measure(struct graph_input *input, struct graph_error *error)
{
	struct stat status;

	if (fstat(input->fd, &status))
		return fail_open(error, input->path, errno);
	if (S_ISDIR(status.st_mode))
		return graph_fail(error, -EISDIR, "%s is a directory, not a graph: name a file in it",
				  input->path);
	if (!S_ISREG(status.st_mode))
		return graph_fail(error, -EINVAL,
				  "%s is not a regular file: copy the graph into a file first", input->path);
	input->bytes = (uint64_t)status.st_size;
	return 0;
}

int graph_input_open(struct graph_input *input, const char *path, struct graph_error *error)
{
	input->fd = -1;
	input->bytes = 0;
	if (strlen(path) >= sizeof(input->path))
		return graph_fail(error, -ENAMETOOLONG, "a path of %zu bytes is too long: at most %zu",
				  strlen(path), sizeof(input->path) - 1);
	strcpy(input->path, path);
	/* O_NONBLOCK: opening a named pipe must fail with a sentence, not wait for a writer. */
	input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (input->fd < 0)
		return fail_open(error, path, errno);
	int status = measure(input, error);
	if (status)
		graph_input_close(input);
	else
		posix_fadvise(input->fd, 0, 0,
			      POSIX_FADV_SEQUENTIAL); /* advice only: its failure changes nothing */
	return status;
}

void graph_input_close(struct graph_input *input)
{
	if (input->fd >= 0)
		close(input->fd); /* read only: nothing can be lost here */
	input->fd = -1;
}

int graph_input_read_at(const struct graph_input *input, uint64_t position, void *data, size_t bytes,
			struct graph_error *error)
{
	unsigned char *at = data;

	while (bytes) {
		ssize_t got = pread(input->fd, at, bytes, (off_t)position);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return graph_fail(error, -errno, "cannot read %s at byte %llu: %s; check the disk",
					  input->path, (unsigned long long)position, strerror(errno));
		if (got == 0)
			return graph_fail(
				error, -EILSEQ,
				"%s ends at byte %llu where %zu more were expected: it is cut short "
				"or shrank while being read, so make or copy it again",
				input->path, (unsigned long long)position, bytes);
		at += got;
		position += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return 0;
}

int graph_stream_open(struct graph_stream *stream, const struct graph_input *input, uint64_t begin,
		      uint64_t end, size_t buffer_bytes, struct graph_error *error)
{
	memset(stream, 0, sizeof(*stream));
	stream->input = input;
	stream->position = begin;
	stream->end = end;
	stream->capacity = (buffer_bytes + 63) & ~(size_t)63;
	stream->buffer = malloc(stream->capacity);
	return stream->buffer ? 0 : graph_fail_memory(error, stream->capacity, "a read buffer");
}

void graph_stream_close(struct graph_stream *stream)
{
	free(stream->buffer);
	stream->buffer = NULL;
}

int graph_stream_refill(struct graph_stream *stream, struct graph_error *error)
{
	uint64_t left = stream->end - stream->position;
	size_t bytes = left < stream->capacity ? (size_t)left : stream->capacity;

	if (!bytes)
		return graph_fail(error, -EILSEQ,
				  "%s holds less than its header says (its data end at byte %llu): make or "
				  "copy it again",
				  stream->input->path, (unsigned long long)stream->end);
	int status = graph_input_read_at(stream->input, stream->position, stream->buffer, bytes, error);
	if (status)
		return status;
	stream->position += bytes;
	stream->filled = bytes;
	stream->used = 0;
	return 0;
}
