/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_rig.h: a folder of its own for each test of the graph library, and files in it. */
#ifndef WEIR_TESTS_GRAPH_RIG_H
#define WEIR_TESTS_GRAPH_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "convert.h"
#include "graph.h"
#include "info.h"
#include "number.h"
#include "radix.h"
#include "random_edge.h"
#include "sort.h"

#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../rig/leaks.h"

/* Of the test that runs: its folder, and the sentence of what failed last. */
extern char directory[64], sentence[GRAPH_ERROR_BYTES];

/* What the process had before it. */
extern struct test_has before_test;

/* ---- files ---- */

/* Eight names at a time are enough for any expression below. */
static inline const char *in_directory(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static inline unsigned char *read_file(const char *name, size_t *bytes)
{
	FILE *file = fopen(in_directory(name), "rb");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*bytes = (size_t)ftell(file);
	rewind(file);
	unsigned char *data = malloc(*bytes + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	data[*bytes] = '\0';
	fclose(file);
	return data;
}

static inline void write_file(const char *name, const void *data, size_t bytes)
{
	FILE *file = fopen(in_directory(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static inline void write_words(const char *name, const uint64_t *words, size_t count)
{
	write_file(name, words, count * 8);
}

static inline bool exists(const char *name)
{
	struct stat status;
	return stat(in_directory(name), &status) == 0;
}

/* FNV-1a, so that a golden value pins every byte of a file. */
static inline uint64_t hash_file(const char *name)
{
	size_t bytes;
	unsigned char *data = read_file(name, &bytes);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	free(data);
	return hash;
}

static inline void assert_same_file(const char *a, const char *b)
{
	size_t a_bytes, b_bytes;
	unsigned char *a_data = read_file(a, &a_bytes), *b_data = read_file(b, &b_bytes);

	assert_int_equal(a_bytes, b_bytes);
	assert_memory_equal(a_data, b_data, a_bytes);
	free(a_data);
	free(b_data);
}

static inline void empty_directory(void)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;

	assert_non_null(open_directory);
	while ((entry = readdir(open_directory)))
		if (entry->d_name[0] != '.')
			unlink(in_directory(entry->d_name));
	closedir(open_directory);
}

static inline unsigned count_files(void)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(open_directory);
	while ((entry = readdir(open_directory)))
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(open_directory);
	return count;
}

static inline int make_directory(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	snprintf(directory, sizeof(directory), "%.32s/weir-graph-test-XXXXXX",
		 base && strlen(base) < 32 ? base : "/tmp");
	return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
	(void)state;
	empty_directory();
	return rmdir(directory);
}

/* ---- what a test has left ---- */

/* Of small pieces malloc() keeps some for each thread, and counts them; buffers are larger than these. */
enum { HEAP_SLACK_BYTES = 128 << 10 };

static inline int clean(void **state)
{
	(void)state;
	sentence[0] = '\0';
	empty_directory();
	before_test = test_has();
	return 0;
}

/* Whatever was opened is closed, and buffers are freed, however it went. */
static inline int leaves_nothing(void **state)
{
	struct test_has now = test_has();

	(void)state;
	assert_int_equal(now.files, before_test.files);
	assert_true(!TEST_COUNTS_MEMORY || now.heap_bytes <= before_test.heap_bytes + HEAP_SLACK_BYTES);
	return 0;
}

#define assert_sentence(part)                                                                                \
	do {                                                                                                 \
		if (!strstr(sentence, part))                                                                 \
			fail_msg("expected \"%s\" in: %s", part, sentence);                                  \
	} while (0)

static inline void generate(const char *out, enum graph_kind kind, unsigned scale, unsigned threads,
			    uint64_t memory_bytes, bool weighted)
{
	struct graph_generate_options options = { .size = sizeof(options),
						  .kind = kind,
						  .scale = scale,
						  .seed = 1,
						  .memory_bytes = memory_bytes,
						  .threads = threads,
						  .weighted = weighted };
	if (graph_generate(&options, in_directory(out), sentence, sizeof(sentence)))
		fail_msg("%s", sentence);
}

static inline void load(const char *name, struct graph_bel *bel, uint64_t **offsets, uint64_t **neighbours)
{
	if (graph_bel_open(in_directory(name), bel, sentence, sizeof(sentence)) ||
	    graph_bel_load(bel, offsets, neighbours, sentence, sizeof(sentence)))
		fail_msg("%s", sentence);
}

static inline bool has_edge(const uint64_t *offsets, const uint64_t *neighbours, uint64_t from, uint64_t to)
{
	uint64_t low = offsets[from], high = offsets[from + 1];

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (neighbours[middle] == to)
			return true;
		if (neighbours[middle] < to)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* Undirected, without self loops or repetitions, lists ascending. Returns the largest degree. */
static inline uint64_t assert_gap_graph(const struct graph_bel *bel, const uint64_t *offsets,
					const uint64_t *neighbours)
{
	uint64_t largest = 0;

	for (uint64_t vertex = 0; vertex < bel->vertices; vertex++) {
		uint64_t degree = offsets[vertex + 1] - offsets[vertex];
		largest = degree > largest ? degree : largest;
		for (uint64_t i = offsets[vertex]; i < offsets[vertex + 1]; i++) {
			assert_true(neighbours[i] != vertex);
			assert_true(i == offsets[vertex] || neighbours[i - 1] < neighbours[i]);
			assert_true(has_edge(offsets, neighbours, neighbours[i], vertex));
		}
	}
	return largest;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, leaves_nothing)

#endif
