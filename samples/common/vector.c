/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool sample_is_blank(const char *uri)
{
	return strncmp(uri, "virt:", 5) == 0 && !strstr(uri, "load=");
}

float sample_fraction(uint64_t random)
{
	return (float)(random >> 40) * 0x1p-24f;
}

static uint64_t piece_of(uint64_t bytes, uint64_t done)
{
	return bytes - done < SAMPLE_PIECE_BYTES ? bytes - done : SAMPLE_PIECE_BYTES;
}

static uint64_t *allocate(char *error)
{
	uint64_t *words = malloc(SAMPLE_PIECE_BYTES);

	if (!words)
		sample_fail(error, -ENOMEM, "no memory for %d bytes", SAMPLE_PIECE_BYTES);
	return words;
}

/* @bytes from byte @at on, rounded up to whole blocks; at most to where the storage ends. */
static int whole_blocks(struct weir_storage *storage, uint64_t at, uint64_t bytes, uint64_t *whole)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int code = weir_storage_info(storage, &info);

	*whole = code ? 0 : (bytes + info.block_bytes - 1) / info.block_bytes * info.block_bytes;
	if (!code && at + bytes <= info.bytes && *whole > info.bytes - at)
		*whole = info.bytes - at;
	return code;
}

int sample_fill(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		void (*make)(uint64_t *words, uint64_t first, uint64_t count, void *of), void *of,
		char *error)
{
	uint64_t *words = allocate(error);
	int code = words ? 0 : -ENOMEM;

	for (uint64_t done = 0; done < bytes && !code; done += piece_of(bytes, done)) {
		uint64_t piece = piece_of(bytes, done), whole;

		code = sample_pass(error, whole_blocks(storage, begin + done, piece, &whole));
		if (code)
			break;
		memset((char *)words + piece, 0, whole > piece ? whole - piece : 0);
		make(words, done / 8, (piece + 7) / 8, of);
		code = sample_pass(error, weir_storage_write(storage, begin + done, words, whole));
	}
	free(words);
	return code;
}

int sample_read(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		int (*take)(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error),
		void *to, char *error)
{
	uint64_t *words = allocate(error);
	int code = words ? 0 : -ENOMEM;

	for (uint64_t done = 0; done < bytes && !code; done += piece_of(bytes, done)) {
		uint64_t whole;

		code = sample_pass(error, whole_blocks(storage, begin + done, piece_of(bytes, done), &whole));
		if (!code)
			code = sample_pass(error, weir_storage_read(storage, begin + done, words, whole));
		if (!code)
			code = take(words, done / 8, piece_of(bytes, done) / 8, to, error);
	}
	free(words);
	return code;
}
