/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_format_cases.h: cases of graph_format_test.c that lie in other files.
 *
 * Owns: conversions that must work or fail, and a graph of three edges.
 */
#ifndef WEIR_TESTS_GRAPH_FORMAT_CASES_H
#define WEIR_TESTS_GRAPH_FORMAT_CASES_H

#include "graph_rig.h"

static inline void convert(const char *in, const char *out, bool symmetrize)
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

/* Fails with @code; what is said is left in sentence. */
static inline void convert_fails(const char *in, const char *out, uint64_t vertices, int code)
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
	snprintf(sentence, sizeof(sentence), "%s", failure.text);
	if (status != code)
		fail_msg("%s -> %s: expected %d, got %d: %s", in, out, code, status, sentence);
	assert_int_equal(count_files(), before);
}

static const uint64_t tiny_col[] = { 4, 8, 0, 2, 2, 3 };
static const uint64_t tiny_dst[] = { 3, 8, 1, 2, 0 };
static const uint32_t tiny_val[] = { 3, 0, 4, 0, 10, 20, 30 };

/* 0 -> 1 (10), 0 -> 2 (20), 2 -> 0 (30) */
static inline void write_tiny(bool weighted)
{
	write_words("t.bel.col", tiny_col, 6);
	write_words("t.bel.dst", tiny_dst, 5);
	if (weighted)
		write_file("t.bel.val", tiny_val, sizeof(tiny_val));
}

/* The cases of graph_format_damaged.c. */
void opens_by_any_of_its_names(void **state);
void damaged_headers_are_found(void **state);
void edge_count_in_the_column_header_is_accepted(void **state);
void damaged_payloads_are_found(void **state);
void sentences_are_cut_to_the_buffer(void **state);
void damaged_sg_files_are_found(void **state);
void damaged_text_is_found(void **state);
void what_a_format_cannot_hold_is_refused(void **state);

/* The cases of graph_format_info.c. */
void info_counts(void **state);
void info_checks_the_inverse_and_the_direction(void **state);
void info_tells_which_check_failed(void **state);
void info_has_the_least_degree(void **state);

#endif
