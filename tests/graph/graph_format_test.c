/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_format_test.c: graph files of every format, and every sentence a damaged one earns. */
#include "graph_format_cases.h"

static void bytes_are_as_documented(void **state)
{
	(void)state;
	static const unsigned char wsg[] = {
		1, 3,  0, 0, 0, 0,  0, 0, 0, 3,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 2,
		0, 0,  0, 0, 0, 0,  0, 2, 0, 0,  0, 0, 0, 0,  0, 3, 0, 0,  0, 0, 0, 0,  0, 1, 0, 0,
		0, 10, 0, 0, 0, 2,  0, 0, 0, 20, 0, 0, 0, 0,  0, 0, 0, 30, 0, 0, 0, 0,  0, 0, 0, 0,
		0, 0,  0, 1, 0, 0,  0, 0, 0, 0,  0, 2, 0, 0,  0, 0, 0, 0,  0, 3, 0, 0,  0, 0, 0, 0,
		0, 2,  0, 0, 0, 30, 0, 0, 0, 0,  0, 0, 0, 10, 0, 0, 0, 0,  0, 0, 0, 20, 0, 0, 0,
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
	assert_int_equal(graph_bel_open(in_directory("e.bel"), &bel, sentence, sizeof(sentence)), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		TEST(info_has_the_least_degree),
	};

	return cmocka_run_group_tests_name("graph formats", tests, make_directory, remove_directory);
}
