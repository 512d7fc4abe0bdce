/* SPDX-License-Identifier: BSD-3-Clause */
/* What a graph file is, from its headers or, when asked, from all of it. */
#ifndef WEIR_TOOLS_GRAPH_INFO_H
#define WEIR_TOOLS_GRAPH_INFO_H

#include "format.h"

/** enum graph_answer - a fact that may not have been looked at */
enum graph_answer { GRAPH_UNCHECKED, GRAPH_YES, GRAPH_NO };

/**
 * struct graph_info - what was found
 * @counted: @vertices and @edges are known (text is counted by a check only)
 * @checked: everything was read and nothing is wrong; the members from @degree_min on are valid
 * @in_range: each edge leads to a vertex that exists
 * @monotone: offsets never decrease; GRAPH_UNCHECKED for text, which has none
 * @repeated_edges: edges stored more than once; valid when @sorted
 * @bel: for .bel sets, what their headers say
 */
struct graph_info {
	enum graph_format format;
	uint64_t vertices;
	uint64_t edges;
	uint64_t bytes;
	bool counted;
	bool weighted;
	enum graph_direction direction;
	bool checked;
	enum graph_answer in_range;
	enum graph_answer monotone;
	struct graph_bel bel;
	uint64_t degree_min;
	uint64_t degree_max;
	uint64_t self_loops;
	uint64_t repeated_edges;
	bool sorted;
};

/**
 * struct graph_info_options - how closely to look
 * @check: read everything
 * @vertices: for .el and .wel, see graph_source_open()
 * @memory_bytes: budget for sorting text
 */
struct graph_info_options {
	bool check;
	uint64_t vertices;
	uint64_t memory_bytes;
	struct graph_progress *progress;
};

/**
 * graph_info_read() - look at @path
 * @opened: set when the headers were good, so that @info can be shown even if the check then failed
 */
int graph_info_read(const char *path, const struct graph_info_options *options, struct graph_info *info,
		    bool *opened, struct graph_error *error);

/** graph_info_print() - @info for people */
void graph_info_print(FILE *out, const char *path, const struct graph_info *info);

/** graph_info_print_json() - @info for programs; @problem is what a failed check said, or NULL */
int graph_info_print_json(FILE *out, const char *path, const struct graph_info *info, const char *problem,
			  struct graph_error *error);

#endif
