/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended_cufile.c: a libcufile.so.0 that is none, for the test of peer-cufile.
 *
 * It registers a file only where compatibility mode is forced, by the environment and
 * by the configuration file, and then reads with pread() and a copy. With
 * PRETENDED_CUFILE_REFUSES it never does.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "cufile.h"

enum { NOT_INITIALIZED = 5001, INVALID_VALUE = 5022, HANDLE_NOT_REGISTERED = 5027, TEXT_BYTES = 4096 };

static bool open_now, forced;
static int registered = -1;

static bool configuration_says(const char *words)
{
	const char *path = getenv("CUFILE_ENV_PATH_JSON");
	FILE *file = path ? fopen(path, "re") : NULL;
	char text[TEXT_BYTES] = "";

	if (!file)
		return false;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return strstr(text, words);
}

struct cufile_error cuFileDriverOpen(void)
{
	const char *force = getenv("CUFILE_FORCE_COMPAT_MODE");

	open_now = true;
	forced = force && !strcmp(force, "true") && configuration_says("\"force_compat_mode\": true") &&
		 !getenv("PRETENDED_CUFILE_REFUSES");
	return (struct cufile_error){ .code = 0 };
}

struct cufile_error cuFileDriverClose_v2(void)
{
	open_now = false;
	return (struct cufile_error){ .code = 0 };
}

struct cufile_error cuFileHandleRegister(void **handle, struct cufile_description *description)
{
	if (!open_now)
		return (struct cufile_error){ .code = NOT_INITIALIZED };
	if (!forced || description->type != CUFILE_OPAQUE_DESCRIPTOR)
		return (struct cufile_error){ .code = HANDLE_NOT_REGISTERED };
	registered = description->handle.file;
	*handle = &registered;
	return (struct cufile_error){ .code = 0 };
}

void cuFileHandleDeregister(void *handle)
{
	*(int *)handle = -1;
}

struct cufile_error cuFileBufRegister(const void *memory, size_t bytes, int flags)
{
	return (struct cufile_error){ .code = open_now && memory && bytes && !flags ? 0 : INVALID_VALUE };
}

struct cufile_error cuFileBufDeregister(const void *memory)
{
	(void)memory;
	return (struct cufile_error){ .code = 0 };
}

ssize_t cuFileRead(void *handle, void *memory, size_t bytes, off_t file_offset, off_t memory_offset)
{
	void *host = malloc(bytes);
	ssize_t got = host ? pread(*(int *)handle, host, bytes, file_offset) : -1;

	if (got > 0 && cudaMemcpy((char *)memory + memory_offset, host, (size_t)got,
				  cudaMemcpyHostToDevice) != cudaSuccess) {
		errno = EIO;
		got = -1;
	}
	free(host);
	return got;
}
