/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h: orders in which lines are read.
 *
 * Owns: the traces that policies are compared on. Each follows from its seed, on any machine
 * that rounds pow() alike.
 */
#ifndef WEIR_POLICIES_TRACE_H
#define WEIR_POLICIES_TRACE_H

#include <stdint.h>

/** enum trace_kind - which; trace_names has their names */
enum trace_kind { TRACE_ZIPF, TRACE_SCAN, TRACE_LOOP, TRACE_MIXED, TRACE_BFS, TRACE_COUNT };

extern const char *const trace_names[TRACE_COUNT];
/** trace_texts - what each is, in a few words */
extern const char *const trace_texts[TRACE_COUNT];

/** struct trace_shape - how large: @cache_lines, of the cache it is meant for; @reads; @theta of Zipf laws;
 * @seed */
struct trace_shape {
	uint64_t cache_lines;
	uint64_t reads;
	double theta;
	uint64_t seed;
};

/**
 * struct trace - the reads
 * @lines: of each read, below @span
 * @count: reads
 * @span: lines of the dataset
 */
struct trace {
	uint64_t *lines;
	uint64_t count;
	uint64_t span;
};

/** trace_make() - the caller frees trace->lines; 0 or -ENOMEM. TRACE_BFS is as long as its search, at most
 * @reads */
int trace_make(enum trace_kind kind, const struct trace_shape *shape, struct trace *trace);

/** trace_bfs() - TRACE_BFS, in trace_bfs.c */
int trace_bfs(const struct trace_shape *shape, struct trace *trace);

#endif
