/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c: bytes of a storage, a file or a folder, for indexers (source.h). */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/error.h"

enum { WINDOW_BYTES = 1 << 20, RANDOM_BYTES = 8 << 10 };

static int open_window(struct weir_dataset_source *source, const char *name)
{
	source->name = strdup(name);
	source->buffer = aligned_alloc(4096, WINDOW_BYTES);
	if (source->name && source->buffer)
		return 0;
	weir_dataset_source_close(source);
	return weir_fail(ENOMEM, "dataset: no memory to read '%s'", name);
}

int weir_dataset_source_storage(struct weir_dataset_source *source, struct weir_storage *storage,
				const char *name)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int error = weir_storage_info(storage, &info);

	if (error)
		return error;
	*source = (struct weir_dataset_source){
		.storage = storage, .file = -1, .bytes = info.bytes, .block_bytes = info.block_bytes
	};
	return open_window(source, name);
}

int weir_dataset_source_file(struct weir_dataset_source *source, const char *path)
{
	struct stat stat;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	*source = (struct weir_dataset_source){ .file = file, .block_bytes = 1 };
	if (file < 0 || fstat(file, &stat) != 0) {
		int error = errno;

		if (file >= 0)
			close(file);
		source->file = -1;
		return weir_fail(error, "dataset: cannot open '%s': %s", path, strerror(error));
	}
	source->folder = S_ISDIR(stat.st_mode);
	source->bytes = source->folder ? 0 : (uint64_t)stat.st_size;
	return open_window(source, path);
}

void weir_dataset_source_close(struct weir_dataset_source *source)
{
	free(source->name);
	free(source->buffer);
	if (source->file >= 0)
		close(source->file);
	*source = (struct weir_dataset_source){ .file = -1 };
}

static int fetch_file(struct weir_dataset_source *source, uint64_t at, size_t bytes)
{
	ssize_t got = pread(source->file, source->buffer, bytes, (off_t)at);

	if (got < 0)
		return weir_fail(errno, "dataset: cannot read '%s' at byte %llu: %s", source->name,
				 (unsigned long long)at, strerror(errno));
	source->buffer_bytes = (size_t)got;
	return 0;
}

/* The window becomes what is at @offset. */
static int fetch(struct weir_dataset_source *source, uint64_t offset)
{
	uint64_t at = offset - offset % source->block_bytes, left = source->bytes - at;
	size_t most = source->random ? RANDOM_BYTES : WINDOW_BYTES, bytes = left < most ? (size_t)left : most;
	int error;

	source->buffer_at = at;
	source->buffer_bytes = 0;
	if (!source->storage)
		return fetch_file(source, at, bytes);
	error = weir_storage_read(source->storage, at, source->buffer, bytes);
	source->buffer_bytes = error ? 0 : bytes;
	return error;
}

int weir_dataset_source_read(struct weir_dataset_source *source, uint64_t offset, void *to, size_t bytes)
{
	unsigned char *out = to;

	if (offset > source->bytes || bytes > source->bytes - offset)
		return weir_fail(ENODATA,
				 "dataset: '%s' ends at byte %llu, and %zu bytes are to be at byte %llu: it "
				 "is cut short, or of "
				 "another format",
				 source->name, (unsigned long long)source->bytes, bytes,
				 (unsigned long long)offset);
	while (bytes) {
		uint64_t in = offset - source->buffer_at;
		size_t some;

		if (offset < source->buffer_at || in >= source->buffer_bytes) {
			int error = fetch(source, offset);

			in = offset - source->buffer_at;
			if (!error && in >= source->buffer_bytes)
				error = weir_fail(ENODATA, "dataset: '%s' became shorter while it was read",
						  source->name);
			if (error)
				return error;
		}
		some = source->buffer_bytes - in < bytes ? source->buffer_bytes - (size_t)in : bytes;
		memcpy(out, source->buffer + in, some);
		out += some;
		offset += some;
		bytes -= some;
	}
	return 0;
}
