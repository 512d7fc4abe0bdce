/* SPDX-License-Identifier: BSD-3-Clause */
#include "stored.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/device.h"
#include "../common/mapping.h"
#include "kvcache.h"

/** struct stored - the file, and room for a block of it */
struct stored {
	int file;
	uint64_t bytes;
	u64 *words;
};

static int stored_open(struct stored *stored, const char *path, uint64_t bytes, char *error)
{
	*stored = (struct stored){ .bytes = bytes, .words = malloc(bytes), .file = -1 };
	if (!stored->words)
		return sample_fail(error, -ENOMEM, "no memory for a block");
	stored->file = open(path, O_RDWR | O_CLOEXEC);
	if (stored->file < 0)
		return sample_fail(error, -errno, "cannot open %s: %s", path, strerror(errno));
	return 0;
}

static int stored_close(struct stored *stored, int code)
{
	free(stored->words);
	if (stored->file >= 0)
		close(stored->file);
	return code;
}

static int fail_at(uint64_t block, const char *call, ssize_t did, char *error)
{
	return sample_fail(error, -EIO, "block %llu: %s gave %zd: %s", (unsigned long long)block, call, did,
			   did < 0 ? strerror(errno) : "not all of it");
}

static int spoil(struct stored *stored, uint64_t block, char *error)
{
	ssize_t did = pwrite(stored->file, stored->words, stored->bytes, (off_t)(block * stored->bytes));

	return did == (ssize_t)stored->bytes ? 0 : fail_at(block, "pwrite", did, error);
}

static int compare(struct stored *stored, uint64_t block, uint64_t *bad, char *error)
{
	ssize_t did = pread(stored->file, stored->words, stored->bytes, (off_t)(block * stored->bytes));
	u64 first = block * stored->bytes / 8;

	if (did != (ssize_t)stored->bytes)
		return fail_at(block, "pread", did, error);
	for (u64 i = 0; i < stored->bytes / 8; i++)
		*bad += stored->words[i] != kvcache_word(first + i);
	return 0;
}

int stored_spoil(const char *path, const struct kvcache_trace *trace, uint64_t block_bytes, char *error)
{
	struct stored stored;
	int code = stored_open(&stored, path, block_bytes, error);

	for (u64 i = 0; i < block_bytes / 8 && !code; i++)
		stored.words[i] = KVCACHE_POISON;
	for (size_t i = 0; i < trace->count && !code; i++)
		code = spoil(&stored, trace->blocks[i], error);
	if (!code)
		code = sample_forget(stored.file, error);
	return stored_close(&stored, code);
}

int stored_check(const char *path, const struct kvcache_trace *trace, uint64_t block_bytes, uint64_t *bad,
		 char *error)
{
	struct stored stored;
	int code = stored_open(&stored, path, block_bytes, error);

	if (!code)
		code = sample_forget(stored.file, error);
	for (size_t i = 0; i < trace->count && !code; i++)
		code = compare(&stored, trace->blocks[i], bad, error);
	return stored_close(&stored, code);
}
