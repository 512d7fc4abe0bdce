/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_format_test.c: graph files of every format, and every sentence a damaged one earns. */
#include "graph_rig.h"

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
	convert("t.bel", "mended.bel", false);
	assert_int_equal(graph_bel_open(in_directory("mended.bel"), &bel, error, sizeof(error)), 0);
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
		  "line 2 (\"2 2 18446744073709551615\"): 18446744073709551615 entries do not fit into a "
		  "file of",
		  0 },
		{ "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 30\n1 1\n",
		  "30 entries do not fit into a file of", 0 },
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
	convert_fails("a.el", "o.sg", 3000000001, -EOVERFLOW);
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
	};

	return cmocka_run_group_tests_name("graph formats", tests, make_directory, remove_directory);
}
