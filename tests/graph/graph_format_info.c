/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_format_info.c: what is told of a graph file, and which check failed. */
#include "graph_format_cases.h"

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
	snprintf(sentence, sizeof(sentence), "%s", failure.text);
	return status;
}

void info_counts(void **state)
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

void info_checks_the_inverse_and_the_direction(void **state)
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

void info_tells_which_check_failed(void **state)
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

/* Where every vertex has edges the least degree is some vertex's, whichever has it. */
void info_has_the_least_degree(void **state)
{
	(void)state;
	struct graph_info found;
	char text[256];

	for (unsigned i = 0; i < 27; i++) {
		const unsigned degrees[3] = { i % 3 + 1, i / 3 % 3 + 1, i / 9 + 1 };
		unsigned least = 3, most = 1, edges = 0, loops = 0;
		size_t used = 0;
		for (unsigned vertex = 0; vertex < 3; vertex++) {
			for (unsigned to = 0; to < degrees[vertex]; to++)
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%u %u\n", vertex,
							 to);
			least = degrees[vertex] < least ? degrees[vertex] : least;
			most = degrees[vertex] > most ? degrees[vertex] : most;
			edges += degrees[vertex];
			loops += vertex < degrees[vertex];
		}
		write_text("a.el", text);
		convert("a.el", "a.bel", false);
		for (int bel = 0; bel < 2; bel++) {
			assert_int_equal(info(bel ? "a.bel" : "a.el", true, &found), 0);
			assert_int_equal(found.vertices, 3);
			assert_int_equal(found.edges, edges);
			assert_int_equal(found.degree_min, least);
			assert_int_equal(found.degree_max, most);
			assert_int_equal(found.self_loops, loops);
			assert_int_equal(found.repeated_edges, 0);
		}
	}
}
