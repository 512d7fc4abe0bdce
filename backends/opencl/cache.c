/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../runtime/backend/error.h"

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

enum { PATH_BYTES = 1024 };

/** struct header - what an entry begins with */
struct header {
	char magic[8];
	uint64_t key;
	uint64_t bytes;
	uint64_t checksum;
};

static const char MAGIC[8] = "weircl1";

uint64_t opencl_hash(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *byte = bytes;

	hash = hash ? hash : FNV_BASIS;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ byte[i]) * FNV_PRIME;
	return hash;
}

static void complain(const char *path)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int error = errno;

	if (!atomic_flag_test_and_set(&said))
		weir_report("cannot keep compiled kernels in %s: %s; they are compiled each time "
			    "(XDG_CACHE_HOME "
			    "names another place)",
			    path, strerror(error));
}

/* Of the folder, and of an entry of it; false where nobody says where. */
static bool location(uint64_t key, char *folder, char *path)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool given = cache && *cache;

	if (!given && !(home && *home))
		return false;
	return snprintf(folder, PATH_BYTES, "%s%s/weir", given ? cache : home, given ? "" : "/.cache") <
		       PATH_BYTES &&
	       snprintf(path, PATH_BYTES, "%s/%016" PRIx64 ".cl", folder, key) < PATH_BYTES;
}

static void *read_entry(FILE *file, uint64_t key, size_t *bytes)
{
	struct header header;
	struct stat status;
	void *program;

	if (fread(&header, sizeof(header), 1, file) != 1 || memcmp(header.magic, MAGIC, sizeof(MAGIC)) ||
	    header.key != key || fstat(fileno(file), &status) || header.bytes == 0 ||
	    header.bytes + sizeof(header) != (uint64_t)status.st_size)
		return NULL;
	program = malloc(header.bytes);
	if (program && fread(program, header.bytes, 1, file) == 1 &&
	    opencl_hash(key, program, header.bytes) == header.checksum) {
		*bytes = header.bytes;
		return program;
	}
	free(program);
	return NULL;
}

void *opencl_cache_load(uint64_t key, size_t *bytes)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	FILE *file = location(key, folder, path) ? fopen(path, "re") : NULL;
	void *program = file ? read_entry(file, key, bytes) : NULL;

	if (file)
		fclose(file);
	return program;
}

static bool make_folder(char *folder)
{
	char *slash = strrchr(folder, '/');

	*slash = 0;
	(void)mkdir(folder, 0700); /* if it is not there then, the next one says so */
	*slash = '/';
	return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

void opencl_cache_store(uint64_t key, const void *program, size_t bytes)
{
	struct header header = { .key = key, .bytes = bytes, .checksum = opencl_hash(key, program, bytes) };
	char folder[PATH_BYTES], path[PATH_BYTES], part[PATH_BYTES + 16];
	bool written;
	FILE *file;

	if (!location(key, folder, path))
		return;
	snprintf(part, sizeof(part), "%s.%ld", path, (long)getpid());
	file = make_folder(folder) ? fopen(part, "we") : NULL;
	if (!file) {
		complain(folder);
		return;
	}
	memcpy(header.magic, MAGIC, sizeof(MAGIC));
	written = fwrite(&header, sizeof(header), 1, file) == 1 && fwrite(program, bytes, 1, file) == 1;
	if (fclose(file) || !written || rename(part, path)) {
		complain(folder);
		(void)unlink(part);
	}
}
