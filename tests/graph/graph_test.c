/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_test.c: numbers, random edges, the sorter and the generator of the graph library. */
#include "graph_rig.h"

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
		sum += weir_mix_u64((bits % 50) << 32 | (bits >> 8 & 31)) ^ (uint32_t)(bits >> 40);
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
				found += weir_mix_u64(here[0]) ^ here[1];
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

/* These values change only when the generated graphs do: that breaks every published figure, so think twice.
 */
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

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)), 0);
	options.seed = 2;
	assert_int_equal(graph_generate(&options, in_directory("b.bel"), sentence, sizeof(sentence)), 0);
	assert_true(hash_file("a.bel.dst") != hash_file("b.bel.dst"));
	options.degree = 4;
	assert_int_equal(graph_generate(&options, in_directory("b.bel"), sentence, sizeof(sentence)), 0);
	struct graph_bel a, b;
	assert_int_equal(graph_bel_open(in_directory("a.bel"), &a, NULL, 0), 0);
	assert_int_equal(graph_bel_open(in_directory("b.bel"), &b, NULL, 0), 0);
	assert_true(b.edges < a.edges / 2);
	assert_true(b.edges <= 2 * 4 * 256);
	/* no whole number of what a thread takes at a time, and no more than that */
	options.kind = GRAPH_UNIFORM;
	options.scale = 13;
	options.degree = 3;
	for (options.threads = 1; options.threads < 3; options.threads++) {
		assert_int_equal(graph_generate(&options, in_directory("b.bel"), sentence, sizeof(sentence)),
				 0);
		assert_int_equal(graph_bel_open(in_directory("b.bel"), &b, NULL, 0), 0);
		assert_in_range(b.edges, 2 * 3 * 8192 - 500, 2 * 3 * 8192);
	}
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

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)),
			 -EINVAL);
	assert_sentence("scale 33 is out of range");
	options.scale = 5;
	assert_int_equal(graph_generate(&options, in_directory("a.txt"), sentence, sizeof(sentence)),
			 -EINVAL);
	assert_sentence("names no known graph format");
	options.weighted = true;
	assert_int_equal(graph_generate(&options, in_directory("a.sg"), sentence, sizeof(sentence)), -EINVAL);
	assert_sentence("cannot hold weights");
	options.weighted = false;
	options.memory_bytes = 1000;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)),
			 -EINVAL);
	assert_sentence("memory budget of 1000 bytes is too small");
	options.memory_bytes = 1 << 20;
	options.scale = 32;
	options.degree = 1;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)),
			 -ENOMEM);
	assert_sentence("give --memory");
	options.memory_bytes = UINT64_C(64) << 30;
	options.degree = GRAPH_DEGREE_MAX;
	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)),
			 -ENOSPC);
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

	assert_int_equal(graph_generate(&options, in_directory("a.bel"), sentence, sizeof(sentence)), 0);
	assert_false(exists("a.bel.val"));
}

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
	};

	return cmocka_run_group_tests_name("graph", tests, make_directory, remove_directory);
}
