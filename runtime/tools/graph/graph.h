/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs on disk: make them, open them, load them.
 *
 * The functions here serve the samples and the tool weir-graph. All of them return 0 or a negative errno, and
 * leave one sentence in error (what failed, where, why, what to do), cut to error_bytes. error may be NULL
 * when error_bytes is 0. They print nothing unless a report stream is given.
 */
#ifndef WEIR_TOOLS_GRAPH_GRAPH_H
#define WEIR_TOOLS_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** GRAPH_PATH_BYTES - the longest path, with its terminating zero, that these functions take. */
#define GRAPH_PATH_BYTES 4096

/** GRAPH_ERROR_BYTES - a buffer of this size holds every error sentence uncut. */
#define GRAPH_ERROR_BYTES 6144

/** GRAPH_BEL_HEADER_BYTES - the payload of each file of a .bel set starts at this byte. */
#define GRAPH_BEL_HEADER_BYTES 16

/**
 * GRAPH_BEL_TYPE_U64, GRAPH_BEL_TYPE_U32 - the type words that weir writes: the bytes of one element.
 *
 * .col and .dst carry 8, .val carries 4. Files from elsewhere hold other values with the same layout, so a
 * reader shows the word and never decides by it.
 */
#define GRAPH_BEL_TYPE_U64 8u
#define GRAPH_BEL_TYPE_U32 4u

/** GRAPH_SCALE_MAX - the largest scale; vertex ids then fill 32 bits. */
#define GRAPH_SCALE_MAX 32u

/** GRAPH_DEGREE_MAX - the largest generated degree. */
#define GRAPH_DEGREE_MAX (1u << 20)

/** GRAPH_MEMORY_MIN_BYTES - the smallest memory budget. */
#define GRAPH_MEMORY_MIN_BYTES (UINT64_C(1) << 20)

/** GRAPH_MEMORY_DEFAULT_BYTES - the memory budget when none is given. */
#define GRAPH_MEMORY_DEFAULT_BYTES (UINT64_C(512) << 20)

/**
 * struct graph_bel - what the headers and the sizes of a .bel set say
 * @col_path: file of vertices + 1 offsets, u64 each, from byte 16
 * @dst_path: file of edges neighbours, u64 each, from byte 16
 * @val_path: file of edges weights, u32 each, from byte 16; empty when the set has no weights
 * @vertices: number of vertices
 * @edges: number of stored edges (an undirected edge is stored twice)
 * @weighted: a .val file exists
 * @col_type: type word of .col, as found
 * @dst_type: type word of .dst, as found
 * @val_type: type word of .val, as found; 0 without weights
 * @col_header_is_edge_count: the .col header holds the edge count where the number of offsets belongs, a
 *known mistake of one published converter; @vertices was then taken from the file's size
 */
struct graph_bel {
	char col_path[GRAPH_PATH_BYTES];
	char dst_path[GRAPH_PATH_BYTES];
	char val_path[GRAPH_PATH_BYTES];
	uint64_t vertices;
	uint64_t edges;
	bool weighted;
	uint64_t col_type;
	uint64_t dst_type;
	uint64_t val_type;
	bool col_header_is_edge_count;
};

/**
 * graph_bel_open() - find a .bel set and hold its headers against its file sizes
 * @path: the prefix ending in .bel, or the name of its .bel.col, .bel.dst or .bel.val file
 * @out: filled on success
 * @error: one sentence on failure
 * @error_bytes: size of @error
 *
 * Reads the headers and the first and last offset, not the payload; no file stays open.
 *
 * Return: 0, or -ENOENT, -EISDIR, -EINVAL (not a .bel name), -EILSEQ (headers and sizes disagree), or the
 * errno of the failed call, negated.
 */
int graph_bel_open(const char *path, struct graph_bel *out, char *error, size_t error_bytes);

/**
 * graph_bel_load() - read a whole .bel set into memory, checked
 * @bel: from graph_bel_open()
 * @offsets: receives vertices + 1 offsets, monotone, first 0, last edges; the caller frees it with free()
 * @neighbours: receives edges vertex ids, each below vertices; the caller frees it with free()
 * @error: one sentence on failure
 * @error_bytes: size of @error
 *
 * Meant for reference computations: it needs 8 * (vertices + 1 + edges) bytes of memory. Neither pointer is
 * written on failure. An empty array is still a pointer that can be freed.
 *
 * Return: 0, -EILSEQ (offsets decrease), -ERANGE (a neighbour that does not exist), -ENOMEM, or an errno.
 */
int graph_bel_load(const struct graph_bel *bel, uint64_t **offsets, uint64_t **neighbours, char *error,
		   size_t error_bytes);

/**
 * struct graph_gapbs - where the arrays of a .sg or .wsg file lie, which begin at any byte
 * @vertices: number of vertices
 * @edges: number of stored edges (an undirected edge is stored twice)
 * @offsets_at: byte of vertices + 1 offsets, u64 each
 * @edges_at: byte of the edges: a u32 neighbour each, in .wsg a u32 weight behind it
 * @edge_bytes: 4, or 8 with weights
 * @weighted: .wsg
 * @directed: the header says so; the inverse graph follows
 */
struct graph_gapbs {
	uint64_t vertices;
	uint64_t edges;
	uint64_t offsets_at;
	uint64_t edges_at;
	unsigned edge_bytes;
	bool weighted;
	bool directed;
};

/**
 * graph_gapbs_open() - hold the header of a .sg or .wsg file against its size
 * @path: its name
 * @out: filled on success
 * @error: one sentence on failure
 * @error_bytes: size of @error
 *
 * Reads the header, the first and the last offset, not the payload; no file stays open.
 *
 * Return: 0, -EILSEQ (header, offsets and size disagree), -EINVAL (another extension), or an errno.
 */
int graph_gapbs_open(const char *path, struct graph_gapbs *out, char *error, size_t error_bytes);

/**
 * enum graph_kind - which random graph
 * @GRAPH_KRONECKER: Kronecker (R-MAT) with A, B, C = 0.57, 0.19, 0.19 and randomly permuted vertex ids
 * @GRAPH_UNIFORM: both ends of each edge uniform over the vertices
 */
enum graph_kind { GRAPH_KRONECKER, GRAPH_UNIFORM };

/**
 * struct graph_generate_options - what to generate; start from zero and set @size
 * @size: sizeof(struct graph_generate_options); fields beyond it take their defaults
 * @kind: which random graph
 * @scale: the graph has 2^scale vertices; 1 to 32
 * @degree: degree * 2^scale edges are drawn; 0 means 16
 * @seed: same kind, scale, degree and seed: same bytes, on any machine, with any threads and memory
 * @memory_bytes: memory budget; 0 means 512 MiB, at least 1 MiB
 * @threads: worker threads; 0 means one per CPU available
 * @weighted: also write weights, 1 to 255, equal in both directions of an edge
 * @report: phases are shown here (a bar on a terminal, else one line each); NULL: silent
 */
struct graph_generate_options {
	size_t size;
	enum graph_kind kind;
	unsigned scale;
	unsigned degree;
	uint64_t seed;
	uint64_t memory_bytes;
	unsigned threads;
	bool weighted;
	FILE *report;
};

/**
 * graph_generate() - write a random undirected graph, with the parameters of the GAP benchmark suite
 * @options: what to generate
 * @out: output name; its extension chooses the format (.bel .sg .wsg .el .wel .mtx)
 * @error: one sentence on failure
 * @error_bytes: size of @error
 *
 * Self loops and duplicate edges are removed, each edge is stored both ways, neighbour lists ascend. Sorting
 * goes through a nameless temporary file next to @out. The output appears under its name only when complete.
 *
 * Return: 0, -EINVAL (an option), -ENOSPC, -ENOMEM, or an errno.
 */
int graph_generate(const struct graph_generate_options *options, const char *out, char *error,
		   size_t error_bytes);

#endif
