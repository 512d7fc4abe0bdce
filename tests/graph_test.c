/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the graph library: generator, sorter, formats, and every sentence a damaged file earns. */
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

static char directory[64];
static char error[GRAPH_ERROR_BYTES];

/* ---- files ---- */

/* Eight names at a time are enough for any expression below. */
static const char *in_directory(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static unsigned char *read_file(const char *name, size_t *bytes)
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

static void write_file(const char *name, const void *data, size_t bytes)
{
	FILE *file = fopen(in_directory(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static void write_words(const char *name, const uint64_t *words, size_t count)
{
	write_file(name, words, count * 8);
}

static bool exists(const char *name)
{
	struct stat status;
	return stat(in_directory(name), &status) == 0;
}

/* FNV-1a, so that a golden value pins every byte of a file. */
static uint64_t hash_file(const char *name)
{
	size_t bytes;
	unsigned char *data = read_file(name, &bytes);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	free(data);
	return hash;
}

static void assert_same_file(const char *a, const char *b)
{
	size_t a_bytes, b_bytes;
	unsigned char *a_data = read_file(a, &a_bytes), *b_data = read_file(b, &b_bytes);

	assert_int_equal(a_bytes, b_bytes);
	assert_memory_equal(a_data, b_data, a_bytes);
	free(a_data);
	free(b_data);
}

static void empty_directory(void)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;

	assert_non_null(open_directory);
	while ((entry = readdir(open_directory)))
		if (entry->d_name[0] != '.')
			unlink(in_directory(entry->d_name));
	closedir(open_directory);
}

static unsigned count_files(void)
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

static int make_directory(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	snprintf(directory, sizeof(directory), "%.32s/weir-graph-test-XXXXXX",
		 base && strlen(base) < 32 ? base : "/tmp");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	empty_directory();
	return rmdir(directory);
}

static int clean(void **state)
{
	(void)state;
	error[0] = '\0';
	empty_directory();
	return 0;
}

#define assert_sentence(part)                                                                                \
	do {                                                                                                 \
		if (!strstr(error, part))                                                                    \
			fail_msg("expected \"%s\" in: %s", part, error);                                     \
	} while (0)

/* ---- numbers ---- */

static void numbers_are_parsed_whole_or_not_at_all(void **state)
{
	(void)state;
	uint64_t value;

	assert_true(graph_parse_u64("18446744073709551615", &value));
	assert_true(value == UINT64_MAX);
	assert_false(graph_parse_u64("18446744073709551616", &value));
	assert_false(graph_parse_u64("", &value));
	assert_false(graph_parse_u64("-1", &value));
	assert_false(graph_parse_u64("1x", &value));
	assert_true(graph_parse_bytes("512M", &value));
	assert_int_equal(value, 512 << 20);
	assert_true(graph_parse_bytes("2KiB", &value));
	assert_int_equal(value, 2048);
	assert_false(graph_parse_bytes("3Kx", &value));
	assert_false(graph_parse_bytes("K", &value));
	assert_false(graph_parse_bytes("99999999999T", &value));
}

static void numbers_are_printed(void **state)
{
	(void)state;
	char text[GRAPH_HUMAN_BYTES];

	assert_int_equal(graph_format_u64(0, text), 1);
	assert_memory_equal(text, "0", 1);
	assert_int_equal(graph_format_u64(UINT64_MAX, text), 20);
	assert_memory_equal(text, "18446744073709551615", 20);
	assert_string_equal(graph_human_bytes(1023, text), "1023 bytes");
	assert_string_equal(graph_human_bytes(1536, text), "1.5 KiB");
	assert_string_equal(graph_human_bytes(UINT64_MAX, text), "15.9 EiB");
}

/* ---- random numbers ---- */

static void permutation_is_a_bijection(void **state)
{
	(void)state;
	for (unsigned bits = 1; bits <= 14; bits++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct graph_permutation permutation;
			const uint32_t count = 1u << bits;
			bool *hit = calloc(count, 1);
			graph_permutation_init(&permutation, seed, bits);
			for (uint32_t id = 0; id < count; id++) {
				uint32_t image = graph_permute(&permutation, id);
				assert_true(image < count);
				assert_false(hit[image]);
				hit[image] = true;
			}
			free(hit);
		}
}

static void permutation_of_32_bits_stays_injective(void **state)
{
	(void)state;
	struct graph_permutation permutation;
	enum { COUNT = 1 << 16 };
	uint64_t *images = malloc(COUNT * 8), *scratch = malloc(COUNT * 8);

	graph_permutation_init(&permutation, 7, 32);
	for (uint32_t i = 0; i < COUNT; i++)
		images[i] = graph_permute(&permutation, i * 65537u);
	uint64_t *sorted = graph_radix_sort(images, scratch, COUNT, 1);
	for (uint32_t i = 1; i < COUNT; i++)
		assert_true(sorted[i - 1] < sorted[i]);
	free(images);
	free(scratch);
}

static void weights_are_symmetric_and_use_the_whole_range(void **state)
{
	(void)state;
	unsigned seen[256] = { 0 };
	uint64_t key = graph_key(3, GRAPH_FOR_WEIGHTS);

	for (uint64_t a = 0; a < 300; a++)
		for (uint64_t b = 0; b < 300; b++) {
			uint32_t weight = graph_edge_weight(key, a, b);
			assert_in_range(weight, 1, 255);
			assert_int_equal(weight, graph_edge_weight(key, b, a));
			seen[weight]++;
		}
	for (unsigned weight = 1; weight < 256; weight++)
		assert_in_range(seen[weight], 200, 520); /* 353 expected */
}

/* At scale 1 the four quarters are the four edges, up to the permutation of the two vertices. */
static void kronecker_quarters_have_their_probabilities(void **state)
{
	(void)state;
	struct graph_random_edges edges;
	unsigned count[2][2] = { { 0 } };
	const unsigned draws = 200000;

	graph_random_edges_init(&edges, GRAPH_KRONECKER, 1, 5);
	for (unsigned i = 0; i < draws; i++) {
		struct graph_edge edge = graph_random_edge(&edges, i);
		count[edge.source][edge.target]++;
	}
	unsigned a = count[0][0] > count[1][1] ? count[0][0] : count[1][1];
	unsigned d = count[0][0] + count[1][1] - a;
	assert_in_range(a, draws * 0.565, draws * 0.575);
	assert_in_range(count[0][1], draws * 0.186, draws * 0.194);
	assert_in_range(count[1][0], draws * 0.186, draws * 0.194);
	assert_in_range(d, draws * 0.047, draws * 0.053);
}

static void edges_of_the_largest_scale_use_all_bits(void **state)
{
	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		struct graph_random_edges edges;
		uint64_t any = 0, all = UINT32_MAX;
		graph_random_edges_init(&edges, (enum graph_kind)kind, 32, 1);
		for (uint64_t i = 0; i < 1000; i++) {
			struct graph_edge edge = graph_random_edge(&edges, (UINT64_C(1) << 52) - 1 - i);
			any |= edge.source | edge.target;
			all &= edge.source & edge.target;
		}
		assert_true(any == UINT32_MAX);
		assert_true(all == 0);
	}
}

/* ---- sorting ---- */

static int compare_records(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	if (x[0] != y[0])
		return x[0] < y[0] ? -1 : 1;
	return x[1] < y[1] ? -1 : x[1] > y[1];
}

static void radix_sort_agrees_with_qsort(void **state)
{
	(void)state;
	enum { COUNT = 5000 };
	static const uint64_t masks[] = { UINT64_MAX, 0xff, 0xffff00000000, 0, 0xf00000000000000f };

	for (size_t mask = 0; mask < 5; mask++) {
		uint64_t *records = malloc(COUNT * 16), *scratch = malloc(COUNT * 16),
			 *expected = malloc(COUNT * 16);
		for (size_t i = 0; i < COUNT; i++) {
			records[2 * i] = graph_random(9, i) & masks[mask];
			records[2 * i + 1] = (uint32_t)graph_random(8, i) & 0xff0000ff;
		}
		memcpy(expected, records, COUNT * 16);
		qsort(expected, COUNT, 16, compare_records);
		assert_memory_equal(graph_radix_sort(records, scratch, COUNT, 2), expected, COUNT * 16);
		free(records);
		free(scratch);
		free(expected);
	}
}

static struct graph_sort *open_sort(uint64_t memory_bytes, unsigned lanes, bool weighted, bool unique)
{
	struct graph_error failure;
	struct graph_sort *sort = NULL;
	struct graph_sort_options options = { .directory = directory,
					      .memory_bytes = memory_bytes,
					      .lanes = lanes,
					      .weighted = weighted,
					      .unique = unique };

	assert_int_equal(graph_sort_create(&options, &sort, &failure), 0);
	return sort;
}

static void push(struct graph_sort *sort, unsigned lane, uint64_t source, uint64_t target, uint32_t weight)
{
	struct graph_error failure;
	struct graph_edge edge = { source, target, weight };
	assert_int_equal(graph_sort_push(sort, lane, &edge, &failure), 0);
}

static void many_runs_merge_into_order(void **state)
{
	(void)state;
	struct graph_error failure;
	struct graph_edge edges[100];
	struct graph_sort *sort =
		open_sort(8192, 3, true, false); /* 85 records of 32 bytes per lane: some 40 runs */
	uint64_t sum = 0, found = 0, last[2] = { 0, 0 };
	size_t count, total = 0;

	for (uint64_t i = 0; i < 3500; i++) {
		uint64_t bits = graph_random(1, i);
		push(sort, i % 3, bits % 50, bits >> 8 & 31, (uint32_t)(bits >> 40));
		sum += graph_mix((bits % 50) << 32 | (bits >> 8 & 31)) ^ (uint32_t)(bits >> 40);
	}
	push(sort, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX); /* its key is all ones, as is no sentinel */
	for (unsigned lane = 0; lane < 3; lane++)
		assert_int_equal(graph_sort_flush(sort, lane, &failure), 0);
	assert_int_equal(graph_sort_edges(sort), 3501);
	assert_int_equal(graph_sort_merge(sort, 1 << 20, &failure), 0);
	while (!graph_sort_next(sort, edges, 100, &count, &failure) && count)
		for (size_t i = 0; i < count; i++, total++) {
			uint64_t here[2] = { edges[i].source << 32 | edges[i].target, edges[i].weight };
			assert_true(compare_records(last, here) <= 0);
			memcpy(last, here, sizeof(last));
			if (total < 3500)
				found += graph_mix(here[0]) ^ here[1];
		}
	assert_int_equal(total, 3501);
	assert_true(found == sum);
	assert_true(last[0] == UINT64_MAX && last[1] == UINT32_MAX);
	graph_sort_destroy(sort);
	assert_int_equal(count_files(), 0);
}

static void unique_keeps_the_smallest_weight(void **state)
{
	(void)state;
	struct graph_error failure;
	struct graph_edge edges[8];
	struct graph_sort *sort = open_sort(1 << 16, 2, true, true);
	size_t count;

	push(sort, 0, 1, 2, 9);
	push(sort, 1, 1, 2, 4);
	push(sort, 0, 1, 2, 7);
	push(sort, 1, 0, 5, 3);
	graph_sort_flush(sort, 0, &failure);
	graph_sort_flush(sort, 1, &failure);
	assert_int_equal(graph_sort_merge(sort, 1 << 16, &failure), 0);
	assert_int_equal(graph_sort_next(sort, edges, 8, &count, &failure), 0);
	assert_int_equal(count, 2);
	assert_int_equal(edges[0].target, 5);
	assert_int_equal(edges[1].weight, 4);
	graph_sort_destroy(sort);
}

static void sorting_refuses_what_it_cannot_do(void **state)
{
	(void)state;
	struct graph_error failure;
	struct graph_edge wide = { UINT64_C(1) << 32, 0, 0 };
	struct graph_sort *sort = open_sort(4096, 1, false, false);

	assert_int_equal(graph_sort_push(sort, 0, &wide, &failure), -EOVERFLOW);
	assert_non_null(strstr(failure.text, "4294967296 -> 0"));
	for (uint64_t i = 0; i < 2000; i++)
		push(sort, 0, i, i, 0);
	graph_sort_flush(sort, 0, &failure);
	assert_int_equal(graph_sort_merge(sort, 8192, &failure), -ENOMEM);
	assert_non_null(strstr(failure.text, "give --memory"));
	graph_sort_destroy(sort);
}

/* ---- generating ---- */

static void generate(const char *out, enum graph_kind kind, unsigned scale, unsigned threads,
		     uint64_t memory_bytes, bool weighted)
{
	struct graph_generate_options options = { .size = sizeof(options),
						  .kind = kind,
						  .scale = scale,
						  .seed = 1,
						  .memory_bytes = memory_bytes,
						  .threads = threads,
						  .weighted = weighted };
	if (graph_generate(&options, in_directory(out), error, sizeof(error)))
		fail_msg("%s", error);
}

static void load(const char *name, struct graph_bel *bel, uint64_t **offsets, uint64_t **neighbours)
{
	if (graph_bel_open(in_directory(name), bel, error, sizeof(error)) ||
	    graph_bel_load(bel, offsets, neighbours, error, sizeof(error)))
		fail_msg("%s", error);
}

static void same_bytes_for_any_threads_and_memory(void **state)
{
	(void)state;
	static const struct {
		unsigned threads;
		uint64_t memory_bytes;
	} others[] = { { 2, 1 << 20 }, { 5, 8 << 20 }, { 1, 1 << 20 } };

	for (int kind = 0; kind < 2; kind++) {
		generate("a.bel", (enum graph_kind)kind, 14, 1, 0, true);
		for (size_t i = 0; i < 3; i++) {
			generate("b.bel", (enum graph_kind)kind, 14, others[i].threads,
				 others[i].memory_bytes, true);
			assert_same_file("a.bel.col", "b.bel.col");
			assert_same_file("a.bel.dst", "b.bel.dst");
			assert_same_file("a.bel.val", "b.bel.val");
		}
	}
	assert_int_equal(count_files(), 6);
}

/* These values change only when the generated graphs do: that breaks every published figure, so think twice. */
static void same_bytes_on_any_machine(void **state)
{
	(void)state;
	generate("k.bel", GRAPH_KRONECKER, 11, 0, 0, true);
	generate("u.bel", GRAPH_UNIFORM, 12, 0, 0, false);
	assert_true(hash_file("k.bel.col") == UINT64_C(0x852d08f5e2de0d87));
	assert_true(hash_file("k.bel.dst") == UINT64_C(0xc0424e1e0003137a));
	assert_true(hash_file("k.bel.val") == UINT64_C(0x84ce283e5df00848));
	assert_true(hash_file("u.bel.dst") == UINT64_C(0xa08ce4e2ef9deb67));
}

static void seeds_and_degrees_matter(void **state)
{
	(void)state;
	struct graph_generate_options options = { .size = sizeof(options), .scale = 8, .seed = 1 };

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), 0);
	options.seed = 2;
	assert_int_equal(graph_generate(&options, in_directory("b.bel"), error, sizeof(error)), 0);
	assert_true(hash_file("a.bel.dst") != hash_file("b.bel.dst"));
	options.degree = 4;
	assert_int_equal(graph_generate(&options, in_directory("b.bel"), error, sizeof(error)), 0);
	struct graph_bel a, b;
	assert_int_equal(graph_bel_open(in_directory("a.bel"), &a, NULL, 0), 0);
	assert_int_equal(graph_bel_open(in_directory("b.bel"), &b, NULL, 0), 0);
	assert_true(b.edges < a.edges / 2);
	assert_true(b.edges <= 2 * 4 * 256);
}

static bool has_edge(const uint64_t *offsets, const uint64_t *neighbours, uint64_t from, uint64_t to)
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
static uint64_t assert_gap_graph(const struct graph_bel *bel, const uint64_t *offsets,
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

static void kronecker_graphs_are_skewed(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets, *neighbours, alone = 0;

	generate("k.bel", GRAPH_KRONECKER, 14, 0, 0, false);
	load("k.bel", &bel, &offsets, &neighbours);
	assert_int_equal(bel.vertices, 1 << 14);
	assert_false(bel.weighted);
	assert_in_range(bel.edges, 380000, 524288); /* of 2 * 16 * 2^14 drawn */
	uint64_t largest = assert_gap_graph(&bel, offsets, neighbours);
	assert_true(largest > 30 * (bel.edges / bel.vertices));
	for (uint64_t vertex = 0; vertex < bel.vertices; vertex++)
		alone += offsets[vertex] == offsets[vertex + 1];
	assert_in_range(alone, bel.vertices / 10, bel.vertices / 2);
	/* Without the permutation the lower half of the ids would hold three quarters of the edges. */
	assert_in_range(offsets[bel.vertices / 2], bel.edges * 0.42, bel.edges * 0.58);
	free(offsets);
	free(neighbours);
}

static void uniform_graphs_are_not_skewed(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets, *neighbours;

	generate("u.bel", GRAPH_UNIFORM, 14, 0, 0, false);
	load("u.bel", &bel, &offsets, &neighbours);
	assert_in_range(bel.edges, 522000, 524288);
	uint64_t largest = assert_gap_graph(&bel, offsets, neighbours);
	assert_in_range(largest, 40, 80); /* average 32 */
	free(offsets);
	free(neighbours);
}

static void small_scales_work(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets, *neighbours;

	for (unsigned scale = 1; scale <= 5; scale++) {
		generate("s.bel", GRAPH_KRONECKER, scale, 0, 0, true);
		load("s.bel", &bel, &offsets, &neighbours);
		assert_int_equal(bel.vertices, 1u << scale);
		assert_gap_graph(&bel, offsets, neighbours);
		free(offsets);
		free(neighbours);
	}
}

static void generator_refuses(void **state)
{
	(void)state;
	struct graph_generate_options options = { .size = sizeof(options), .scale = 33 };

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), -EINVAL);
	assert_sentence("scale 33 is out of range");
	options.scale = 5;
	assert_int_equal(graph_generate(&options, in_directory("a.txt"), error, sizeof(error)), -EINVAL);
	assert_sentence("names no known graph format");
	options.weighted = true;
	assert_int_equal(graph_generate(&options, in_directory("a.sg"), error, sizeof(error)), -EINVAL);
	assert_sentence("cannot hold weights");
	options.weighted = false;
	options.memory_bytes = 1000;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), -EINVAL);
	assert_sentence("memory budget of 1000 bytes is too small");
	options.memory_bytes = 1 << 20;
	options.scale = 32;
	options.degree = 1;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), -ENOMEM);
	assert_sentence("give --memory");
	options.memory_bytes = UINT64_C(64) << 30;
	options.degree = GRAPH_DEGREE_MAX;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), -ENOSPC);
	assert_sentence("not enough disk space");
	assert_int_equal(count_files(), 0);
}

/* An older caller's struct ends early: what lies beyond it must not be read. */
static void options_may_be_shorter(void **state)
{
	(void)state;
	struct graph_generate_options options = { .size = offsetof(struct graph_generate_options,
								   memory_bytes),
						  .scale = 6,
						  .seed = 1,
						  .memory_bytes = 1,
						  .threads = 99,
						  .weighted = true };

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), error, sizeof(error)), 0);
	assert_false(exists("a.bel.val"));
}

/* ---- formats ---- */

static void convert(const char *in, const char *out, bool symmetrize)
{
	struct graph_progress progress;
	struct graph_error failure;
	struct graph_convert_options options = { .symmetrize = symmetrize,
						 .memory_bytes = 1 << 20,
						 .progress = &progress };

	graph_progress_init(&progress, NULL, NULL);
	char from[512];
	snprintf(from, sizeof(from), "%s", in_directory(in));
	if (graph_convert(from, in_directory(out), &options, &failure))
		fail_msg("%s -> %s: %s", in, out, failure.text);
	graph_progress_close(&progress);
}

/* Fails with @code; the sentence is left in error. */
static void convert_fails(const char *in, const char *out, uint64_t vertices, int code)
{
	struct graph_progress progress;
	struct graph_error failure = { "" };
	struct graph_convert_options options = { .vertices = vertices,
						 .memory_bytes = 1 << 20,
						 .progress = &progress };
	unsigned before = count_files();

	graph_progress_init(&progress, NULL, NULL);
	int status = graph_convert(in_directory(in), in_directory(out), &options, &failure);
	graph_progress_close(&progress);
	snprintf(error, sizeof(error), "%s", failure.text);
	if (status != code)
		fail_msg("%s -> %s: expected %d, got %d: %s", in, out, code, status, error);
	assert_int_equal(count_files(), before);
}

static const uint64_t tiny_col[] = { 4, 8, 0, 2, 2, 3 };
static const uint64_t tiny_dst[] = { 3, 8, 1, 2, 0 };
static const uint32_t tiny_val[] = { 3, 0, 4, 0, 10, 20, 30 };

/* 0 -> 1 (10), 0 -> 2 (20), 2 -> 0 (30) */
static void write_tiny(bool weighted)
{
	write_words("t.bel.col", tiny_col, 6);
	write_words("t.bel.dst", tiny_dst, 5);
	if (weighted)
		write_file("t.bel.val", tiny_val, sizeof(tiny_val));
}

static void bytes_are_as_documented(void **state)
{
	(void)state;
	static const unsigned char wsg[] = {
		1, 3,  0, 0, 0, 0,  0, 0, 0, 3,	 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,	0, 0, 0, 2,
		0, 0,  0, 0, 0, 0,  0, 2, 0, 0,	 0, 0, 0, 0,  0, 3, 0, 0,  0, 0, 0, 0,	0, 1, 0, 0,
		0, 10, 0, 0, 0, 2,  0, 0, 0, 20, 0, 0, 0, 0,  0, 0, 0, 30, 0, 0, 0, 0,	0, 0, 0, 0,
		0, 0,  0, 1, 0, 0,  0, 0, 0, 0,	 0, 2, 0, 0,  0, 0, 0, 0,  0, 3, 0, 0,	0, 0, 0, 0,
		0, 2,  0, 0, 0, 30, 0, 0, 0, 0,	 0, 0, 0, 10, 0, 0, 0, 0,  0, 0, 0, 20, 0, 0, 0,
	};
	size_t bytes;

	write_tiny(true);
	convert("t.bel", "t.wsg", false);
	unsigned char *data = read_file("t.wsg", &bytes);
	assert_int_equal(bytes, sizeof(wsg));
	assert_memory_equal(data, wsg, bytes);
	free(data);
	convert("t.wsg", "t.wel", false);
	data = read_file("t.wel", &bytes);
	assert_string_equal((char *)data, "0 1 10\n0 2 20\n2 0 30\n");
	free(data);
	convert("t.wsg", "t.mtx", false);
	data = read_file("t.mtx", &bytes);
	assert_memory_equal(data, "%%MatrixMarket matrix coordinate integer general\n%  ", 52);
	assert_string_equal(strstr((char *)data, "\n3 "), "\n3 3 3\n1 2 10\n1 3 20\n3 1 30\n");
	free(data);
	convert("t.mtx", "u.bel", false);
	assert_same_file("t.bel.col", "u.bel.col");
	assert_same_file("t.bel.dst", "u.bel.dst");
	assert_same_file("t.bel.val", "u.bel.val");
	assert_int_equal(count_files(), 9);
}

/* A directed multigraph with self loops, its last vertex in use so that edge lists keep the count. */
static void write_multigraph(const char *name, bool both_ways)
{
	FILE *file = fopen(in_directory(name), "w");
	assert_non_null(file);
	for (uint64_t i = 0; i < 600; i++) {
		uint64_t bits = graph_random(77, i);
		unsigned u = bits % 60, v = (bits >> 20) % 60, w = (unsigned)(bits >> 40) % 9;
		fprintf(file, "%u %u %u\n", u, v, w);
		if (both_ways)
			fprintf(file, "%u %u %u\n", v, u, w);
	}
	fprintf(file, "62 62 5\n");
	fclose(file);
}

static void round_trips(const char *const formats[4], bool weighted, bool both_ways)
{
	char first[16], second[16];

	empty_directory();
	write_multigraph("in.wel", both_ways);
	convert("in.wel", "weighted.bel", false);
	convert("weighted.bel", "in.el", false);
	convert(weighted ? "in.wel" : "in.el", "0.bel", false);
	for (int a = 0; a < 4; a++)
		for (int b = 0; b < 4; b++) {
			snprintf(first, sizeof(first), "1.%s", formats[a]);
			snprintf(second, sizeof(second), "2.%s", formats[b]);
			convert("0.bel", first, false);
			convert(first, second, false);
			convert(second, "3.bel", false);
			assert_same_file("0.bel.col", "3.bel.col");
			assert_same_file("0.bel.dst", "3.bel.dst");
			if (weighted)
				assert_same_file("0.bel.val", "3.bel.val");
			assert_true(exists("3.bel.val") == weighted);
		}
}

static void every_pair_of_formats_keeps_the_graph(void **state)
{
	(void)state;
	static const char *const plain[] = { "bel", "sg", "el", "mtx" };
	static const char *const with_weights[] = { "bel", "wsg", "wel", "mtx" };

	for (int both_ways = 0; both_ways < 2; both_ways++) {
		round_trips(plain, false, both_ways);
		round_trips(with_weights, true, both_ways);
	}
}

static void direction_is_found(void **state)
{
	(void)state;
	size_t bytes;

	for (int both_ways = 0; both_ways < 2; both_ways++) {
		write_multigraph("in.wel", both_ways);
		convert("in.wel", "g.bel", false);
		convert("g.bel", "g.wsg", false);
		unsigned char *data = read_file("g.wsg", &bytes);
		assert_int_equal(data[0], !both_ways);
		free(data);
		convert("g.wsg", "g.mtx", false);
		data = read_file("g.mtx", &bytes);
		assert_true(!!strstr((char *)data, "symmetric\n") == both_ways);
		free(data);
	}
}

/* Weights that differ by direction make a weighted graph directed, and the same graph without them not. */
static void dropped_weights_do_not_decide_the_direction(void **state)
{
	(void)state;
	size_t bytes;

	write_text("a.wel", "0 1 5\n1 0 6\n");
	convert("a.wel", "a.wsg", false);
	convert("a.wel", "a.sg", false);
	convert("a.wsg", "b.bel", false);
	convert("b.bel", "c.sg", false);
	unsigned char *data = read_file("a.wsg", &bytes);
	assert_int_equal(data[0], 1);
	free(data);
	data = read_file("a.sg", &bytes);
	assert_int_equal(data[0], 0);
	free(data);
	assert_same_file("a.sg", "c.sg");
}

static void symmetrize_makes_a_gap_graph(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets, *neighbours;

	write_multigraph("in.wel", false);
	convert("in.wel", "g.bel", true);
	load("g.bel", &bel, &offsets, &neighbours);
	assert_gap_graph(&bel, offsets, neighbours);
	assert_true(bel.weighted);
	free(offsets);
	free(neighbours);
	write_text("a.wel", "0 1 5\n1 0 3\n0 1 7\n2 2 1\n");
	convert("a.wel", "b.wel", true);
	size_t bytes;
	unsigned char *data = read_file("b.wel", &bytes);
	assert_string_equal((char *)data, "0 1 3\n1 0 3\n");
	free(data);
}

static void text_beyond_the_budget_is_sorted_on_disk(void **state)
{
	(void)state;
	generate("g.bel", GRAPH_UNIFORM, 14, 0, 0, false); /* 4 MiB of records, budget 1 MiB */
	convert("g.bel", "g.el", false);
	convert("g.el", "h.bel", false);
	assert_same_file("g.bel.col", "h.bel.col");
	assert_same_file("g.bel.dst", "h.bel.dst");
	convert("g.el", "g.sg", false);
	convert("g.sg", "i.bel", false);
	assert_same_file("g.bel.dst", "i.bel.dst");
}

static void every_format_can_be_generated(void **state)
{
	(void)state;
	static const char *const names[] = { "a.sg", "a.el", "a.mtx", "a.wsg", "a.wel" };

	for (size_t i = 0; i < 5; i++) {
		bool weighted = names[i][2] == 'w';
		generate("b.bel", GRAPH_KRONECKER, 9, 0, 0, weighted);
		generate(names[i], GRAPH_KRONECKER, 9, 0, 0, false);
		convert(names[i], "c.bel", false);
		assert_same_file("b.bel.dst", "c.bel.dst");
		if (weighted)
			assert_same_file("b.bel.val", "c.bel.val");
	}
}

static void text_may_be_untidy(void **state)
{
	(void)state;
	write_text("a.el", "# a comment\n\n 0\t1 \r\n% another\n2 0");
	convert("a.el", "a.bel", false);
	convert("a.bel", "b.el", false);
	size_t bytes;
	unsigned char *data = read_file("b.el", &bytes);
	assert_string_equal((char *)data, "0 1\n2 0\n");
	free(data);
	write_text("e.el", "");
	convert("e.el", "e.bel", false);
	struct graph_bel bel;
	assert_int_equal(graph_bel_open(in_directory("e.bel"), &bel, error, sizeof(error)), 0);
	assert_int_equal(bel.vertices, 0);
	assert_int_equal(bel.edges, 0);
	convert("e.bel", "e.sg", false);
	convert("e.sg", "e.mtx", false);
	convert("e.mtx", "f.bel", false);
	assert_same_file("e.bel.col", "f.bel.col");
}

static void old_weights_do_not_survive(void **state)
{
	(void)state;
	write_tiny(true);
	convert("t.bel", "u.bel", false);
	assert_true(exists("u.bel.val"));
	convert("t.bel", "t.el", false);
	convert("t.el", "u.bel", false);
	assert_false(exists("u.bel.val"));
}

/* ---- damaged .bel sets ---- */

static void opens_by_any_of_its_names(void **state)
{
	(void)state;
	struct graph_bel bel;
	static const char *const names[] = { "t.bel", "t.bel.col", "t.bel.dst", "t.bel.val" };

	write_tiny(true);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(graph_bel_open(in_directory(names[i]), &bel, error, sizeof(error)), 0);
		assert_int_equal(bel.vertices, 3);
		assert_int_equal(bel.edges, 3);
		assert_true(bel.weighted);
		assert_int_equal(bel.val_type, 4);
		assert_false(bel.col_header_is_edge_count);
		assert_string_equal(bel.dst_path, in_directory("t.bel.dst"));
	}
}

static int open_code(const char *name)
{
	struct graph_bel bel;
	return graph_bel_open(in_directory(name), &bel, error, sizeof(error));
}

static void damaged_headers_are_found(void **state)
{
	(void)state;
	uint64_t words[16];

	assert_int_equal(open_code("none.bel"), -ENOENT);
	assert_sentence("none.bel.col: No such file");
	assert_int_equal(open_code("none"), -EINVAL);
	assert_sentence("does not name a .bel set");
	write_tiny(false);
	write_words("t.bel.dst", tiny_dst, 4);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("3 neighbours of 8 bytes need 24 bytes after the header, and there are 16");
	write_file("t.bel.dst", tiny_dst, 7);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("it has 7 bytes, and the header alone is 16");
	write_file("t.bel.dst", (uint32_t[]){ 3, 0, 4, 0, 1, 2, 0 }, 28);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("made of 4-byte elements, which are not supported");
	memcpy(words, tiny_dst, sizeof(tiny_dst));
	words[0] = UINT64_C(1) << 61; /* times 8 this is 0 */
	write_words("t.bel.dst", words, 2);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("cut short");
	write_words("t.bel.dst", tiny_dst, 5);
	write_words("t.bel.col", tiny_col, 5);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("t.bel.col");
	memcpy(words, tiny_col, sizeof(tiny_col));
	words[5] = 2;
	write_words("t.bel.col", words, 6);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("run from 0 to 2, and with 3 edges they must run from 0 to 3");
	write_words("t.bel.col", tiny_col, 6);
	write_file("t.bel.val", tiny_val, 20);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("3 weights of 4 bytes need 12");
	write_file("t.bel.val", (uint32_t[]){ 2, 0, 4, 0, 1, 2 }, 24);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("holds 2 weights, but");
}

static void edge_count_in_the_column_header_is_accepted(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets, *neighbours;
	uint64_t words[] = {
		3, 0, 0, 1, 1, 1, 1, 3
	}; /* 5 vertices, but the header says 3, as the edges are */

	write_words("t.bel.dst", tiny_dst, 5);
	write_words("t.bel.col", words, 8);
	load("t.bel", &bel, &offsets, &neighbours);
	assert_true(bel.col_header_is_edge_count);
	assert_int_equal(bel.vertices, 5);
	assert_int_equal(offsets[5], 3);
	assert_int_equal(neighbours[1], 2);
	free(offsets);
	free(neighbours);
	words[0] = 4; /* edges + 1 is the same mistake */
	write_words("t.bel.col", words, 8);
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, error, sizeof(error)), 0);
	assert_true(bel.col_header_is_edge_count);
	convert("t.bel", "t.bel", false);
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, error, sizeof(error)), 0);
	assert_false(bel.col_header_is_edge_count);
	assert_int_equal(bel.vertices, 5);
	words[0] = 9; /* neither one nor the other */
	write_words("t.bel.col", words, 8);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("9 offsets of 8 bytes");
}

static void damaged_payloads_are_found(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets = NULL, *neighbours = NULL, words[8];

	write_tiny(false);
	memcpy(words, tiny_dst, sizeof(tiny_dst));
	words[3] = 77;
	write_words("t.bel.dst", words, 5);
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, error, sizeof(error)), 0);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, error, sizeof(error)), -ERANGE);
	assert_sentence("edge 1 (at byte 24) leads to vertex 77, but there are only 3 vertices");
	convert_fails("t.bel", "o.el", 0, -ERANGE);
	assert_sentence("edge 1 (at byte 24) leads from vertex 0 to vertex 77");
	write_words("t.bel.dst", tiny_dst, 5);
	memcpy(words, tiny_col, sizeof(tiny_col));
	words[3] = 3;
	write_words("t.bel.col", words, 6);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, error, sizeof(error)), -EILSEQ);
	assert_sentence("at byte 32 is 2, below the 3 before it");
	convert_fails("t.bel", "o.sg", 0, -EILSEQ);
	assert_sentence("ends the list of vertex 1, is 2, below the 3");
	words[3] = 300;
	write_words("t.bel.col", words, 6);
	convert_fails("t.bel", "o.bel", 0, -EILSEQ);
	assert_sentence("is 300, but there are only 3 edges");
	assert_null(offsets);
	assert_null(neighbours);
}

static void sentences_are_cut_to_the_buffer(void **state)
{
	(void)state;
	struct graph_bel bel;
	char small[8] = "xxxxxxx";

	assert_int_equal(graph_bel_open(in_directory("none.bel"), &bel, small, sizeof(small)), -ENOENT);
	assert_int_equal(strlen(small), 7);
	assert_int_equal(graph_bel_open(in_directory("none.bel"), &bel, NULL, 0), -ENOENT);
}

/* ---- other damaged files ---- */

static void write_sg(const char *name, unsigned char directed, uint64_t edges, uint64_t vertices,
		     size_t payload_bytes)
{
	unsigned char data[256] = { directed };
	memcpy(data + 1, &edges, 8);
	memcpy(data + 9, &vertices, 8);
	write_file(name, data, 17 + payload_bytes);
}

static void damaged_sg_files_are_found(void **state)
{
	(void)state;
	write_sg("a.sg", 7, 0, 0, 8);
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("is 7 and not 0 or 1");
	write_sg("a.sg", 0, UINT64_MAX, 3, 8);
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("18446744073709551615 edges");
	write_sg("a.sg", 0, (UINT64_C(1) << 62) + 2, 0, 16); /* times 4 this wraps around to 8 */
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("does not have the size");
	write_sg("a.sg", 0, 2, 1, 20);
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("need 41 bytes, and it has 37; it is cut short");
	write_sg("a.sg", 0, 2, 1, 32);
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("rename it to .wsg");
	write_sg("a.sg", 0, 2, 1, 24); /* the last offset is 0, not 2 */
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("the last offset is 0, but");
	write_text("a.sg", "short");
	convert_fails("a.sg", "o.bel", 0, -EILSEQ);
	assert_sentence("it has 5 bytes");
}

static void damaged_text_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text, *sentence;
		uint64_t vertices;
	} rows[] = {
		{ "a.el", "0 1\n1 x\n", "line 2 (\"1 x\"): expected u v", 0 },
		{ "a.el", "0 1\n\n1 -2\n", "line 3 (\"1 -2\")", 0 },
		{ "a.el", "0\n", "line 1", 0 },
		{ "a.el", "0 1 2\n", "rename the file to .wel", 0 },
		{ "a.wel", "0 1\n", "rename the file to .el", 0 },
		{ "a.wel", "0 1 2.5\n", "expected u v weight", 0 },
		{ "a.wel", "0 1 4294967296\n", "weight 4294967296 is too large", 0 },
		{ "a.el", "0 99999999999999999999\n", "expected u v", 0 },
		{ "a.el", "0 4294967296\n", "vertex 4294967296 is too large", 0 },
		{ "a.el", "0 1\n0 5\n",
		  "line 2 (\"0 5\"): vertex 5 does not exist, as --vertices says there are 5", 5 },
		{ "a.mtx", "", "is empty", 0 },
		{ "a.mtx", "1 1 1\n", "no Matrix Market file", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 0\n",
		  "the kind \"real\" are not supported", 0 },
		{ "a.mtx", "%%MatrixMarket matrix array integer general\n1 1\n", "only \"matrix coordinate\"",
		  0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
		  "symmetry \"skew-symmetric\"", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n% only\n",
		  "ends before its size line", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2\n",
		  "expected the size line", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n5000000000 1 0\n",
		  "at most 2^32", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n",
		  "line 3 (\"1 3\"): entry (1, "
		  "3)",
		  0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n0 1\n", "counted from 1",
		  0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 1\n",
		  "1 of the 3 entries", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n1 2\n",
		  "more entries than the 1", 0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1\n",
		  "expected row column value", 0 },
		{ "a.mtx",
		  "%%MatrixMarket matrix coordinate pattern general\n2 2 18446744073709551615\n1 1\n",
		  "1 of the "
		  "1844",
		  0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		write_text(rows[i].name, rows[i].text);
		convert_fails(rows[i].name, "o.bel", rows[i].vertices, -EILSEQ);
		assert_sentence(rows[i].sentence);
	}
	char *line = malloc(300000);
	memset(line, '1', 300000);
	write_file("a.el", line, 300000);
	free(line);
	convert_fails("a.el", "o.bel", 0, -EILSEQ);
	assert_sentence("line 1 is longer than 262144 bytes");
	write_file("a.el", "0 1\n0\0 2\n", 9);
	convert_fails("a.el", "o.bel", 0, -EILSEQ);
	assert_sentence("line 2 (\"0? 2\")");
}

static void what_a_format_cannot_hold_is_refused(void **state)
{
	(void)state;
	write_tiny(false);
	convert_fails("t.bel", "o.wsg", 0, -EINVAL);
	assert_sentence("has no weights and");
	write_text("a.wel", "0 1 4000000000\n");
	convert_fails("a.wel", "o.wsg", 0, -ERANGE);
	assert_sentence("the weight 4000000000, and");
	write_text("a.el", "0 3000000000\n");
	convert_fails("a.el", "o.sg", 0, -EOVERFLOW);
	assert_sentence("cannot hold 3000000001 vertices");
	write_sg("a.wsg", 0, 1, 1, 24);
	FILE *file = fopen(in_directory("a.wsg"), "r+b");
	fseek(file, 25, SEEK_SET);
	fwrite((uint64_t[]){ 1, UINT64_C(0xffffffff00000000) }, 8, 2, file);
	fclose(file);
	convert_fails("a.wsg", "o.bel", 0, -ERANGE);
	assert_sentence("edge 0 (at byte 37) has the weight -1");
}

/* ---- info ---- */

static int info(const char *name, bool check, struct graph_info *found)
{
	struct graph_progress progress;
	struct graph_error failure = { "" };
	struct graph_info_options options = { .check = check,
					      .memory_bytes = 1 << 20,
					      .progress = &progress };
	bool opened;

	graph_progress_init(&progress, NULL, NULL);
	int status = graph_info_read(in_directory(name), &options, found, &opened, &failure);
	graph_progress_close(&progress);
	snprintf(error, sizeof(error), "%s", failure.text);
	return status;
}

static void info_counts(void **state)
{
	(void)state;
	struct graph_info found;

	write_text("a.el", "0 1\n0 1\n0 0\n3 1\n");
	assert_int_equal(info("a.el", false, &found), 0);
	assert_false(found.counted);
	for (int format = 0; format < 4; format++) {
		static const char *const names[] = { "a.el", "a.bel", "a.sg", "a.mtx" };
		if (format)
			convert("a.el", names[format], false);
		assert_int_equal(info(names[format], true, &found), 0);
		assert_true(found.checked && found.counted);
		assert_int_equal(found.vertices, 4);
		assert_int_equal(found.edges, 4);
		assert_int_equal(found.degree_min, 0);
		assert_int_equal(found.degree_max, 3);
		assert_int_equal(found.self_loops, 1);
		assert_int_equal(found.repeated_edges, 1);
		assert_int_equal(found.direction, GRAPH_DIRECTED);
		assert_int_equal(found.in_range, GRAPH_YES);
	}
}

static void info_checks_the_inverse_and_the_direction(void **state)
{
	(void)state;
	struct graph_info found;
	unsigned char flag = 0;

	write_text("a.el", "0 1\n2 1\n1 3\n");
	convert("a.el", "a.sg", false);
	assert_int_equal(info("a.sg", true, &found), 0);
	size_t bytes;
	unsigned char *data = read_file("a.sg", &bytes);
	data[bytes - 4] = 2; /* the last inverse neighbour: 1 -> 3 becomes 2 -> 3 */
	write_file("b.sg", data, bytes);
	assert_int_equal(info("b.sg", true, &found), -EBADMSG);
	assert_sentence("is not the inverse");
	data[0] = flag;
	write_file("c.sg", data, 17 + 5 * 8 + 3 * 4);
	free(data);
	assert_int_equal(info("c.sg", false, &found), 0);
	assert_int_equal(info("c.sg", true, &found), -EBADMSG);
	assert_sentence("says that it is undirected");
}

static void info_tells_which_check_failed(void **state)
{
	(void)state;
	struct graph_info found;
	uint64_t words[8];

	write_tiny(false);
	memcpy(words, tiny_dst, sizeof(tiny_dst));
	words[2] = 3;
	write_words("t.bel.dst", words, 5);
	assert_int_equal(info("t.bel", false, &found), 0);
	assert_int_equal(found.in_range, GRAPH_UNCHECKED);
	assert_int_equal(info("t.bel", true, &found), -ERANGE);
	assert_int_equal(found.in_range, GRAPH_NO);
	assert_int_equal(found.monotone, GRAPH_UNCHECKED);
	write_words("t.bel.dst", tiny_dst, 5);
	memcpy(words, tiny_col, sizeof(tiny_col));
	words[3] = 3;
	write_words("t.bel.col", words, 6);
	assert_int_equal(info("t.bel", true, &found), -EILSEQ);
	assert_int_equal(found.monotone, GRAPH_NO);
}

#define TEST(name) cmocka_unit_test_setup(name, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_are_parsed_whole_or_not_at_all),
		TEST(numbers_are_printed),
		TEST(permutation_is_a_bijection),
		TEST(permutation_of_32_bits_stays_injective),
		TEST(weights_are_symmetric_and_use_the_whole_range),
		TEST(kronecker_quarters_have_their_probabilities),
		TEST(edges_of_the_largest_scale_use_all_bits),
		TEST(radix_sort_agrees_with_qsort),
		TEST(many_runs_merge_into_order),
		TEST(unique_keeps_the_smallest_weight),
		TEST(sorting_refuses_what_it_cannot_do),
		TEST(same_bytes_for_any_threads_and_memory),
		TEST(same_bytes_on_any_machine),
		TEST(seeds_and_degrees_matter),
		TEST(kronecker_graphs_are_skewed),
		TEST(uniform_graphs_are_not_skewed),
		TEST(small_scales_work),
		TEST(generator_refuses),
		TEST(options_may_be_shorter),
		TEST(bytes_are_as_documented),
		TEST(every_pair_of_formats_keeps_the_graph),
		TEST(direction_is_found),
		TEST(dropped_weights_do_not_decide_the_direction),
		TEST(symmetrize_makes_a_gap_graph),
		TEST(text_beyond_the_budget_is_sorted_on_disk),
		TEST(every_format_can_be_generated),
		TEST(text_may_be_untidy),
		TEST(old_weights_do_not_survive),
		TEST(opens_by_any_of_its_names),
		TEST(damaged_headers_are_found),
		TEST(edge_count_in_the_column_header_is_accepted),
		TEST(damaged_payloads_are_found),
		TEST(sentences_are_cut_to_the_buffer),
		TEST(damaged_sg_files_are_found),
		TEST(damaged_text_is_found),
		TEST(what_a_format_cannot_hold_is_refused),
		TEST(info_counts),
		TEST(info_checks_the_inverse_and_the_direction),
		TEST(info_tells_which_check_failed),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
