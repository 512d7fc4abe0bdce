/* SPDX-License-Identifier: BSD-3-Clause */
/* vector.h: vectors on storages, as the host fills and reads them; piece by piece. */
#ifndef SAMPLE_VECTOR_H
#define SAMPLE_VECTOR_H

#include "device.h"

enum { SAMPLE_PIECE_BYTES = 4 << 20 };

/** sample_is_blank() - a storage that begins without data: virt:, but not from a file */
bool sample_is_blank(const char *uri);

/** sample_fraction() - a float from 0 up to 1, out of 64 random bits */
float sample_fraction(uint64_t random);

/**
 * sample_fill() - fill a range of a storage
 * @begin: its first byte; like @bytes a multiple of the block size
 * @make: makes the @count 8-byte words from word @first of the range on
 *
 * Return: 0 or a negative errno with a sentence.
 */
int sample_fill(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		void (*make)(uint64_t *words, uint64_t first, uint64_t count, void *of), void *of,
		char *error);

/**
 * sample_read() - read a range of a storage
 * @take: gets the @count words from word @first on; what it returns, if not 0, ends the reading
 *
 * Return: 0, what @take returned, or a negative errno with a sentence.
 */
int sample_read(struct weir_storage *storage, uint64_t begin, uint64_t bytes,
		int (*take)(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error),
		void *to, char *error);

#endif
