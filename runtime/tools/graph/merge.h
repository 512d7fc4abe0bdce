/* SPDX-License-Identifier: BSD-3-Clause */
/* Merging sorted runs of one file. */
#ifndef WEIR_TOOLS_GRAPH_MERGE_H
#define WEIR_TOOLS_GRAPH_MERGE_H

#include "edge.h"
#include "input.h"

/** GRAPH_MERGE_BUFFER_MIN_BYTES - each run is read in pieces of at least this */
#define GRAPH_MERGE_BUFFER_MIN_BYTES 4096u

/** struct graph_run - @records sorted records from byte @position of the temporary file */
struct graph_run {
	uint64_t position;
	uint64_t records;
};

struct graph_merge;

/**
 * graph_merge_create() - merge @count runs of @input
 * @words: u64 words of a record, 1 or 2 (with a weight)
 * @unique: pass on the first of several records with the same key only
 */
int graph_merge_create(const struct graph_input *input, const struct graph_run *runs, size_t count,
		       unsigned words, bool unique, uint64_t memory_bytes, struct graph_merge **merge,
		       struct graph_error *error);

/** graph_merge_next() - the next edges in order; *count is 0 at the end */
int graph_merge_next(struct graph_merge *merge, struct graph_edge *edges, size_t capacity, size_t *count,
		     struct graph_error *error);

/** graph_merge_destroy() - free everything; @merge may be NULL */
void graph_merge_destroy(struct graph_merge *merge);

#endif
