/* SPDX-License-Identifier: BSD-3-Clause */
/* mapping.h: a file by mmap(), and by a page cache that has none of it. */
#ifndef SAMPLE_MAPPING_H
#define SAMPLE_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct sample_mapping - a whole file
 * @bytes: NULL: it is not mapped
 */
struct sample_mapping {
	char *bytes;
	uint64_t length;
};

/** sample_map() - map all of @file, to read it or, with @writes, to write it, too; 0 or a negative errno with
 * a sentence */
int sample_map(struct sample_mapping *mapping, int file, bool writes, char *error);

/** sample_unmap() - one that is not mapped is fine */
void sample_unmap(struct sample_mapping *mapping);

/**
 * sample_forget() - drop what the page cache has of @file
 *
 * Pages that are mapped stay. What a server over a network has in its own page cache stays, too.
 *
 * Return: 0 or a negative errno with a sentence.
 */
int sample_forget(int file, char *error);

#endif
