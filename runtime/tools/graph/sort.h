/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sorting more edges than memory holds.
 *
 * Edges are pushed into lanes (one per thread). A full lane is sorted in memory and appended to one nameless
 * temporary file as a run; the runs are then merged. So memory is bounded however skewed the degrees are, and
 * the sorted sequence depends neither on the lanes nor on the budget.
 */
#ifndef WEIR_TOOLS_GRAPH_SORT_H
#define WEIR_TOOLS_GRAPH_SORT_H

#include "edge.h"
#include "error.h"

/**
 * struct graph_sort_options - how to sort
 * @directory: where the temporary file lives
 * @memory_bytes: budget of all lanes together
 * @lanes: threads that will push
 * @expected_edges: at most so many will be pushed; saves memory for small jobs; 0: unknown
 * @weighted: keep weights; edges that differ in weight only are ordered by it
 * @unique: drop repeated (source, target), keeping the smallest weight
 */
struct graph_sort_options {
	const char *directory;
	uint64_t memory_bytes;
	unsigned lanes;
	uint64_t expected_edges;
	bool weighted;
	bool unique;
};

struct graph_sort;

/** graph_sort_create() - start; graph_sort_destroy() ends it */
int graph_sort_create(const struct graph_sort_options *options, struct graph_sort **sort,
		      struct graph_error *error);

/** graph_sort_push() - add one edge to @lane; one thread per lane at a time; vertex ids must be below 2^32 */
int graph_sort_push(struct graph_sort *sort, unsigned lane, const struct graph_edge *edge,
		    struct graph_error *error);

/** graph_sort_flush() - write what is left in @lane, free its memory; nothing may be pushed there any more */
int graph_sort_flush(struct graph_sort *sort, unsigned lane, struct graph_error *error);

/** graph_sort_edges() - edges in the runs by now: an upper bound of what the merge gives */
uint64_t graph_sort_edges(const struct graph_sort *sort);

/** graph_sort_merge() - all lanes are flushed: begin to merge within @memory_bytes */
int graph_sort_merge(struct graph_sort *sort, uint64_t memory_bytes, struct graph_error *error);

/** graph_sort_next() - the next edges in ascending order; *count is 0 at the end */
int graph_sort_next(struct graph_sort *sort, struct graph_edge *edges, size_t capacity, size_t *count,
		    struct graph_error *error);

/** graph_sort_destroy() - free everything; @sort may be NULL */
void graph_sort_destroy(struct graph_sort *sort);

/** graph_sort_memory_needed() - the smallest budget (a power of two) that sorts @bytes of records in one
 * merge */
uint64_t graph_sort_memory_needed(uint64_t bytes, unsigned lanes);

#endif
