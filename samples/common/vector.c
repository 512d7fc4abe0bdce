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

int sample_fill(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		void (*make)(uint64_t *words, uint64_t first, uint64_t count, void *of), void *of, char *error)
{
	uint64_t *words = allocate(error);
	int code = words ? 0 : -ENOMEM;

	for (uint64_t done = 0; done < bytes && !code; done += piece_of(bytes, done)) {
		make(words, done / 8, piece_of(bytes, done) / 8, of);
		code = sample_pass(error, weir_storage_write(storage, begin + done, words, piece_of(bytes, done)));
	}
	free(words);
	return code;
}

int sample_read(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		int (*take)(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error), void *to,
		char *error)
{
	uint64_t *words = allocate(error);
	int code = words ? 0 : -ENOMEM;

	for (uint64_t done = 0; done < bytes && !code; done += piece_of(bytes, done)) {
		code = sample_pass(error, weir_storage_read(storage, begin + done, words, piece_of(bytes, done)));
		if (!code)
			code = take(words, done / 8, piece_of(bytes, done) / 8, to, error);
	}
	free(words);
	return code;
}
