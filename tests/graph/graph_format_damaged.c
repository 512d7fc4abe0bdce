/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_format_damaged.c: .bel sets and other files that are damaged, and what a format cannot hold. */
#include "graph_format_cases.h"

void opens_by_any_of_its_names(void **state)
{
	(void)state;
	struct graph_bel bel;
	static const char *const names[] = { "t.bel", "t.bel.col", "t.bel.dst", "t.bel.val" };

	write_tiny(true);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(graph_bel_open(in_directory(names[i]), &bel, sentence, sizeof(sentence)), 0);
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
	return graph_bel_open(in_directory(name), &bel, sentence, sizeof(sentence));
}

void damaged_headers_are_found(void **state)
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

void edge_count_in_the_column_header_is_accepted(void **state)
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
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, sentence, sizeof(sentence)), 0);
	assert_true(bel.col_header_is_edge_count);
	convert("t.bel", "mended.bel", false);
	assert_int_equal(graph_bel_open(in_directory("mended.bel"), &bel, sentence, sizeof(sentence)), 0);
	assert_false(bel.col_header_is_edge_count);
	assert_int_equal(bel.vertices, 5);
	words[0] = 9; /* neither one nor the other */
	write_words("t.bel.col", words, 8);
	assert_int_equal(open_code("t.bel"), -EILSEQ);
	assert_sentence("9 offsets of 8 bytes");
}

void damaged_payloads_are_found(void **state)
{
	(void)state;
	struct graph_bel bel;
	uint64_t *offsets = NULL, *neighbours = NULL, words[8];

	write_tiny(false);
	memcpy(words, tiny_dst, sizeof(tiny_dst));
	words[3] = 77;
	write_words("t.bel.dst", words, 5);
	assert_int_equal(graph_bel_open(in_directory("t.bel"), &bel, sentence, sizeof(sentence)), 0);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence)), -ERANGE);
	assert_sentence("edge 1 (at byte 24) leads to vertex 77, but there are only 3 vertices");
	convert_fails("t.bel", "o.el", 0, -ERANGE);
	assert_sentence("edge 1 (at byte 24) leads from vertex 0 to vertex 77");
	write_words("t.bel.dst", tiny_dst, 5);
	memcpy(words, tiny_col, sizeof(tiny_col));
	words[3] = 3;
	write_words("t.bel.col", words, 6);
	assert_int_equal(graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence)), -EILSEQ);
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

void sentences_are_cut_to_the_buffer(void **state)
{
	(void)state;
	struct graph_bel bel;
	char small[8] = "xxxxxxx";

	assert_int_equal(graph_bel_open(in_directory("none.bel"), &bel, small, sizeof(small)), -ENOENT);
	assert_int_equal(strlen(small), 7);
	assert_int_equal(graph_bel_open(in_directory("none.bel"), &bel, NULL, 0), -ENOENT);
}

static void write_sg(const char *name, unsigned char directed, uint64_t edges, uint64_t vertices,
		     size_t payload_bytes)
{
	unsigned char data[256] = { directed };
	memcpy(data + 1, &edges, 8);
	memcpy(data + 9, &vertices, 8);
	write_file(name, data, 17 + payload_bytes);
}

void damaged_sg_files_are_found(void **state)
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

void damaged_text_is_found(void **state)
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

void what_a_format_cannot_hold_is_refused(void **state)
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
