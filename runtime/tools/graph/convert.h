/* SPDX-License-Identifier: BSD-3-Clause */
/* From any graph format to any other, within a memory budget. */
#ifndef WEIR_TOOLS_GRAPH_CONVERT_H
#define WEIR_TOOLS_GRAPH_CONVERT_H

#include "format.h"
#include "sort.h"

/**
 * struct graph_convert_options - how to convert
 * @symmetrize: store each edge both ways, drop self loops and repeated edges (keeping the smallest weight)
 * @force: write rows for all vertices of text, even if nearly none has an edge
 * @vertices: for .el and .wel input, see graph_source_open()
 * @memory_bytes: memory budget
 * @progress: where phases and notes go
 */
struct graph_convert_options {
	bool symmetrize;
	bool force;
	uint64_t vertices;
	uint64_t memory_bytes;
	struct graph_progress *progress;
};

/**
 * graph_convert() - write the graph of file @in to file @out, which must be another one
 *
 * Edges keep their multiplicity unless @symmetrize. Compressed rows are copied in the order they have; text
 * is sorted. When the output must say whether the graph is directed and the input does not, it counts as
 * undirected exactly when each edge is stored both ways.
 */
int graph_convert(const char *in, const char *out, const struct graph_convert_options *options,
		  struct graph_error *error);

/** graph_drain() - move all sorted edges into @sink; @weight_key, when not NULL, makes their weights */
int graph_drain(struct graph_sort *sort, struct graph_sink *sink, const uint64_t *weight_key,
		struct graph_progress *progress, struct graph_error *error);

#endif
