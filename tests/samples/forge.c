/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forge.c: results that are wrong, whoever made them: to be loaded before a program that verifies its own.
 *
 * FORGE says how: zero, all of a result is zeros; first or last, that word
 * of it is another one; end, its last four bytes are; byte, its byte FORGE_AT is; idle, the
 * kernel FORGE_KERNEL does nothing, or weir_file_batch() if that is its name; unsynced, fsync() fails.
 * FORGE_OF says which results: copy, what weir_copy_from_device() brings; put, what weir_copy_to_device()
 * takes there; read, what weir_storage_read() does; write, what weir_storage_write() takes there. Small ones
 * stay: they are counters, by which a program goes on. FORGE_ONLY: the number of the only one, from 0 on; of
 * idle and unsynced, too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/file.h>
#include <weir/weir.h>

enum { LEAST_BYTES = 256 };

#define NEXT(name) (__extension__(__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

static __thread int inside; /* a read of storage, which copies out itself */

static int is(const char *variable, const char *value)
{
	const char *has = getenv(variable);

	return has && !strcmp(has, value);
}

static void forge(const char *what, void *result, size_t bytes)
{
	static long number; /* of the next result */
	const char *only = getenv("FORGE_ONLY");
	uint64_t word;

	if (bytes < LEAST_BYTES || !is("FORGE_OF", what))
		return;
	if (only && strtol(only, NULL, 10) != number++)
		return;
	if (is("FORGE", "zero"))
		memset(result, 0, bytes);
	if (is("FORGE", "end"))
		((char *)result)[bytes - 3] ^= 0x10;
	if (is("FORGE", "byte") && getenv("FORGE_AT"))
		((char *)result)[strtoul(getenv("FORGE_AT"), NULL, 10) % bytes] ^= 0x10;
	if (!is("FORGE", "first") && !is("FORGE", "last"))
		return;
	if (is("FORGE", "last"))
		result = (char *)result + bytes - sizeof(word);
	memcpy(&word, result, sizeof(word));
	word ^= 0x0010000100100001;
	memcpy(result, &word, sizeof(word));
}

int weir_copy_from_device(struct weir_context *context, void *to, uint64_t address, size_t bytes)
{
	int error = NEXT(weir_copy_from_device)(context, to, address, bytes);

	if (!error && !inside)
		forge("copy", to, bytes);
	return error;
}

int weir_storage_read(struct weir_storage *storage, uint64_t offset, void *data, size_t bytes)
{
	int error;

	inside++;
	error = NEXT(weir_storage_read)(storage, offset, data, bytes);
	inside--;
	if (!error)
		forge("read", data, bytes);
	return error;
}

/* A copy of @bytes at @from that is forged as @what; to free(). */
static void *forged(const char *what, const void *from, size_t bytes)
{
	void *copy = malloc(bytes + 1);

	if (!copy)
		abort();
	memcpy(copy, from, bytes);
	forge(what, copy, bytes);
	return copy;
}

int weir_copy_to_device(struct weir_context *context, uint64_t address, const void *from, size_t bytes)
{
	void *copy;
	int error;

	if (!is("FORGE_OF", "put"))
		return NEXT(weir_copy_to_device)(context, address, from, bytes);
	copy = forged("put", from, bytes);
	error = NEXT(weir_copy_to_device)(context, address, copy, bytes);
	free(copy);
	return error;
}

int weir_storage_write(struct weir_storage *storage, uint64_t offset, const void *data, size_t bytes)
{
	void *copy;
	int error;

	if (!is("FORGE_OF", "write"))
		return NEXT(weir_storage_write)(storage, offset, data, bytes);
	copy = forged("write", data, bytes);
	error = NEXT(weir_storage_write)(storage, offset, copy, bytes);
	free(copy);
	return error;
}

/* Nothing is done where @name is called, each time or at its number FORGE_ONLY. */
static int is_idle(const char *name)
{
	static long number;
	const char *only = getenv("FORGE_ONLY");

	if (!is("FORGE", "idle") || !is("FORGE_KERNEL", name))
		return 0;
	return !only || strtol(only, NULL, 10) == number++;
}

int weir_file_batch(struct weir_context *context, struct weir_file_io *io, size_t count)
{
	if (!is_idle("weir_file_batch"))
		return NEXT(weir_file_batch)(context, io, count);
	for (size_t i = 0; i < count; i++)
		io[i].result = (int64_t)io[i].bytes;
	return 0;
}

int weir_launch(struct weir_context *context, const char *kernel, uint32_t blocks, uint32_t threads,
		const void *args, size_t args_bytes)
{
	if (is_idle(kernel))
		return 0;
	return NEXT(weir_launch)(context, kernel, blocks, threads, args, args_bytes);
}

int fsync(int file)
{
	static long number;
	const char *only = getenv("FORGE_ONLY");

	if (!is("FORGE", "unsynced") || (only && strtol(only, NULL, 10) != number++))
		return NEXT(fsync)(file);
	errno = EIO;
	return -1;
}
