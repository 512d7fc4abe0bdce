/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_rig.h: datasets whose every byte a test knows. */
#ifndef WEIR_TESTS_DATASET_RIG_H
#define WEIR_TESTS_DATASET_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/dataset.h>

#include "../rig/context.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/* @result is @error, and the sentence has @first and @second. */
static inline void refused(int64_t result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%lld instead of %d (\"%s\", \"%s\"); last: %s", (long long)result, error, first,
			 second, weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

/* Byte @at of the sample called @seed. */
static inline unsigned char rig_byte(uint64_t seed, uint64_t at)
{
	uint64_t word = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + at * UINT64_C(0xbf58476d1ce4e5b9);

	return (unsigned char)(word >> 56 ^ word >> 20);
}

static inline uint64_t rig_seed(const char *name)
{
	uint64_t seed = 5381;

	while (*name)
		seed = seed * 33 + (unsigned char)*name++;
	return seed;
}

static inline void rig_fill(unsigned char *to, uint64_t seed, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = rig_byte(seed, i);
}

/* @count records of @bytes; record i is of the seed of its name. */
static inline void rig_records(const char *path, uint64_t count, size_t bytes)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	unsigned char *record = malloc(bytes);
	char name[32];

	assert_true(file >= 0);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "record-%llu", (unsigned long long)i);
		rig_fill(record, rig_seed(name), bytes);
		assert_int_equal(write(file, record, bytes), bytes);
	}
	free(record);
	close(file);
}

/* File @name of folder @path, of the seed of its name. */
static inline void rig_file(const char *path, const char *name, uint32_t bytes)
{
	unsigned char *data = malloc(bytes);
	char where[1024];
	int file;

	snprintf(where, sizeof(where), "%s/%s", path, name);
	rig_fill(data, rig_seed(name), bytes);
	file = open(where, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(file >= 0);
	assert_int_equal(write(file, data, bytes), bytes);
	close(file);
	free(data);
}

/* A folder of @count files in @classes subfolders, of @least to @most bytes. */
static inline void rig_folder(const char *path, uint32_t count, uint32_t classes, uint32_t least,
			      uint32_t most)
{
	char name[512];

	assert_int_equal(mkdir(path, 0755), 0);
	for (uint32_t i = 0; i < classes; i++) {
		snprintf(name, sizeof(name), "%s/class%02u", path, i);
		assert_int_equal(mkdir(name, 0755), 0);
	}
	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "class%02u/sample%06u.bin", i % classes, i);
		rig_file(path, name, least + (i * 7919u) % (most - least + 1));
	}
}

/* Row @row of a batch is sample @batch->samples[@row] and zeros; its length and label are the sample's. */
static inline void rig_check_row(struct weir_dataset *dataset, const struct weir_dataset_batch *batch,
				 uint32_t row)
{
	const unsigned char *at = (const unsigned char *)batch->host_rows + (size_t)row * batch->row_bytes;
	uint32_t length = batch->host_lengths[row];
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	char name[256];
	uint64_t seed;

	must(weir_dataset_sample(dataset, batch->samples[row], &sample));
	assert_int_equal(length, sample.length);
	assert_int_equal(batch->host_labels[row], sample.label);
	must(weir_dataset_name(dataset, batch->samples[row], name, sizeof(name)));
	seed = rig_seed(name);
	for (uint32_t i = 0; i < batch->row_bytes; i++) {
		unsigned char want = i < length ? rig_byte(seed, i) : 0;

		if (at[i] != want)
			fail_msg("row %u, sample %llu '%s' of %u bytes: byte %u is %u, not %u", row,
				 (unsigned long long)batch->samples[row], name, length, i, at[i], want);
	}
}

/* What is left of the epoch, by batches of @rows; counts each sample in @seen, checks every @every-th row.
 * Return: samples. */
static inline uint64_t rig_read_epoch(struct weir_dataset *dataset, uint32_t rows, uint8_t *seen,
				      uint32_t every, uint64_t most)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	uint64_t samples = 0;

	while (samples < most) {
		must(weir_dataset_bread(dataset, rows, &batch));
		if (!batch.count)
			break;
		for (uint32_t i = 0; i < batch.count; i++) {
			seen[batch.samples[i]]++;
			if ((samples + i) % every == 0)
				rig_check_row(dataset, &batch, i);
		}
		samples += batch.count;
	}
	return samples;
}

static inline void rig_all_once(const uint8_t *seen, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (seen[i] != 1)
			fail_msg("sample %llu came %u times", (unsigned long long)i, seen[i]);
}

#endif
