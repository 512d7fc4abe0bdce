/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The registry of temporary names. A slot is free (0), being filled (1) or live (2). The signal handler reads
 * names of live slots only: output.O1 publishes the name, output.O2 sees it.
 */
static struct {
	atomic_int state;
	char path[GRAPH_PATH_BYTES];
} registry[GRAPH_OUTPUTS_MAX];

static int registry_claim(const char *temporary)
{
	for (int slot = 0; slot < GRAPH_OUTPUTS_MAX; slot++) {
		int expected = 0;
		if (!atomic_compare_exchange_strong(&registry[slot].state, &expected, 1))
			continue;
		strcpy(registry[slot].path, temporary);
		atomic_store_explicit(&registry[slot].state, 2,
				      memory_order_release); /* output.O1: pairs with output.O2 */
		return slot + 1;
	}
	return 0;
}

static void registry_release(int slot)
{
	atomic_store_explicit(&registry[slot - 1].state, 0, memory_order_release);
}

void graph_outputs_unlink(void)
{
	for (int slot = 0; slot < GRAPH_OUTPUTS_MAX; slot++)
		if (atomic_load_explicit(&registry[slot].state, memory_order_acquire) ==
		    2) /* output.O2: pairs with output.O1 */
			unlink(registry[slot].path);
}

void graph_directory_of(const char *path, char directory[GRAPH_PATH_BYTES])
{
	const char *slash = strrchr(path, '/');
	size_t bytes = slash ? (size_t)(slash - path) : 0;

	if (!slash)
		strcpy(directory, ".");
	else if (bytes == 0)
		strcpy(directory, "/");
	else
		snprintf(directory, GRAPH_PATH_BYTES, "%.*s", (int)bytes, path);
}

static int fail_create(struct graph_error *error, const char *path, int code)
{
	char directory[GRAPH_PATH_BYTES];

	graph_directory_of(path, directory);
	if (code == ENOENT)
		return graph_fail(error, -ENOENT, "cannot create %s: there is no directory %s; make it first",
				  path, directory);
	return graph_fail(error, -code,
			  "cannot create %s in directory %s: %s; choose a place you may write to", path,
			  directory, strerror(code));
}

/* A rename would silently replace a device node, and fail late on a directory: say it at the start. */
int graph_output_check(const char *path, struct graph_error *error)
{
	struct stat status;

	if (stat(path, &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return graph_fail(error, -EISDIR, "%s is a directory: give the name of a file to write",
				  path);
	if (!S_ISREG(status.st_mode))
		return graph_fail(error, -EINVAL,
				  "%s is not a regular file: write to a file, then copy it there", path);
	return 0;
}

int graph_output_create(struct graph_output *output, const char *path, struct graph_error *error)
{
	static atomic_uint serial;
	int status = graph_output_check(path, error);

	memset(output, 0, sizeof(*output));
	if (status)
		return status;
	int bytes = snprintf(output->temporary, sizeof(output->temporary), "%s.partial-%ld-%u", path,
			     (long)getpid(), atomic_fetch_add(&serial, 1));
	if (bytes < 0 || (size_t)bytes >= sizeof(output->temporary))
		return graph_fail(error, -ENAMETOOLONG,
				  "the output path of %zu bytes is too long: at most %d", strlen(path),
				  GRAPH_PATH_BYTES - 32);
	strcpy(output->path, path);
	/* In the registry before it exists: a signal in between unlinks a name that is not there, which is
	 * harmless. */
	output->slot = registry_claim(output->temporary);
	if (!output->slot)
		return graph_fail(error, -EMFILE, "cannot create %s: %d files are being written already",
				  path, GRAPH_OUTPUTS_MAX);
	output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (output->fd < 0) {
		status = fail_create(error, path, errno);
		registry_release(output->slot);
		output->slot = 0;
	}
	return status;
}

static const char *write_remedy(int code)
{
	if (code == ENOSPC || code == EDQUOT)
		return "free some disk space or write elsewhere";
	return code == EFBIG ? "raise the file size limit (ulimit -f)" : "check the disk";
}

int graph_write_at(int fd, const char *path, uint64_t position, const void *data, size_t bytes,
		   struct graph_error *error)
{
	const unsigned char *at = data;

	while (bytes) {
		ssize_t put = pwrite(fd, at, bytes, (off_t)position);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			int code = put < 0 ? errno : EIO;
			return graph_fail(error, -code, "cannot write %s at byte %llu: %s; %s", path,
					  (unsigned long long)position, strerror(code), write_remedy(code));
		}
		at += put;
		position += (uint64_t)put;
		bytes -= (size_t)put;
	}
	return 0;
}

int graph_output_write_at(const struct graph_output *output, uint64_t position, const void *data,
			  size_t bytes, struct graph_error *error)
{
	return graph_write_at(output->fd, output->path, position, data, bytes, error);
}

/* Errors of delayed writes arrive at fsync or close: both are part of writing. */
static int settle(struct graph_output *output, struct graph_error *error)
{
	int code = fsync(output->fd) ? errno : 0;

	if (close(output->fd) && !code)
		code = errno;
	output->fd = -1;
	if (!code)
		return 0;
	return graph_fail(error, -code, "cannot finish writing %s: %s; check the disk and its free space",
			  output->path, strerror(code));
}

static int rename_all(struct graph_output *outputs, size_t count, struct graph_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (!rename(outputs[i].temporary, outputs[i].path)) {
			registry_release(outputs[i].slot);
			outputs[i].slot = 0;
			continue;
		}
		int code = errno;
		for (size_t done = 0; done < i; done++)
			unlink(outputs[done].path); /* half a set would pass for a whole one */
		return graph_fail(error, -code,
				  "cannot rename the finished file to %s: %s; nothing was kept, so choose "
				  "another place and run again",
				  outputs[i].path, strerror(code));
	}
	return 0;
}

int graph_outputs_commit(struct graph_output *outputs, size_t count, struct graph_error *error)
{
	sigset_t all, before;
	int status = 0;

	for (size_t i = 0; i < count && !status; i++)
		status = settle(&outputs[i], error);
	if (status)
		return status;
	/* A signal between two renames would leave half a set. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	status = rename_all(outputs, count, error);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status;
}

void graph_output_discard(struct graph_output *output)
{
	if (!output->slot)
		return;
	if (output->fd >= 0)
		close(output->fd); /* the file goes away: what close says does not matter */
	unlink(output->temporary);
	registry_release(output->slot);
	output->slot = 0;
}

/* For file systems without O_TMPFILE: a name that lives for a moment only. */
static int scratch_named(const char *directory)
{
	char path[GRAPH_PATH_BYTES + 32];

	snprintf(path, sizeof(path), "%s/.weir-graph-XXXXXX", directory);
	int fd = mkostemp(path, O_CLOEXEC);
	int code = errno;
	if (fd >= 0)
		unlink(path);
	errno = code;
	return fd;
}

int graph_scratch_open(const char *directory, struct graph_error *error)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		fd = scratch_named(directory);
	if (fd >= 0)
		return fd;
	int code = errno;
	if (code == ENOENT || code == ENOTDIR)
		return graph_fail(error, -code,
				  "cannot create a temporary file: there is no directory %s; make it first",
				  directory);
	return graph_fail(error, -code,
			  "cannot create a temporary file in %s: %s; choose a place you may write to",
			  directory, strerror(code));
}

int graph_writer_open(struct graph_writer *writer, const struct graph_output *output, uint64_t position,
		      size_t buffer_bytes, struct graph_error *error)
{
	writer->output = output;
	writer->position = position;
	writer->used = 0;
	writer->capacity = buffer_bytes < 64 ? 64 : buffer_bytes;
	writer->buffer = malloc(writer->capacity);
	return writer->buffer ? 0 : graph_fail_memory(error, writer->capacity, "a write buffer");
}

int graph_writer_flush(struct graph_writer *writer, struct graph_error *error)
{
	int status =
		graph_output_write_at(writer->output, writer->position, writer->buffer, writer->used, error);

	if (!status) {
		writer->position += writer->used;
		writer->used = 0;
	}
	return status;
}

void graph_writer_close(struct graph_writer *writer)
{
	free(writer->buffer);
	writer->buffer = NULL;
}
