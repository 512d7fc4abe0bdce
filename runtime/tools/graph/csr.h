/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressed rows as they lie in files: reading them checked, writing them in one pass. */
#ifndef WEIR_TOOLS_GRAPH_CSR_H
#define WEIR_TOOLS_GRAPH_CSR_H

#include "edge.h"
#include "input.h"
#include "output.h"

/** struct graph_csr_offset - a range of a file, starting at byte @at */
struct graph_csr_offset {
	const struct graph_input *input;
	uint64_t at;
};

/**
 * struct graph_csr_layout - where the three arrays of a graph lie
 * @offsets: vertices + 1 u64
 * @targets: edges ids of @target_bytes (4 or 8) each
 * @weights: edges u32; input NULL: none
 * @interleaved: a u32 weight follows each 4-byte target instead
 */
struct graph_csr_layout {
	struct graph_csr_offset offsets;
	struct graph_csr_offset targets;
	struct graph_csr_offset weights;
	unsigned target_bytes;
	bool interleaved;
	uint64_t vertices;
	uint64_t edges;
};

/** struct graph_csr_reader - reads all edges in the order they lie; zero is a valid "closed" */
struct graph_csr_reader {
	struct graph_csr_layout layout;
	struct graph_stream offsets;
	struct graph_stream targets;
	struct graph_stream weights;
	uint64_t lists;    /* neighbour lists begun */
	uint64_t list_end; /* offset at which the current one ends */
	uint64_t edge;     /* edges read */
};

/** graph_csr_reader_open() - the sizes of the files were checked by the caller, their contents are not
 * trusted */
int graph_csr_reader_open(struct graph_csr_reader *reader, const struct graph_csr_layout *layout,
			  struct graph_error *error);

/**
 * graph_csr_read() - the next edges; *count is 0 at the end
 *
 * Return: 0, -EILSEQ (offsets decrease, or do not end at the edge count), -ERANGE (no such vertex), or an
 * errno.
 */
int graph_csr_read(struct graph_csr_reader *reader, struct graph_edge *edges, size_t capacity, size_t *count,
		   struct graph_error *error);

/** graph_csr_reader_close() - free the buffers */
void graph_csr_reader_close(struct graph_csr_reader *reader);

/**
 * struct graph_csr_writer - writes the arrays while edges come grouped by source; zero is a valid "closed"
 * @target_bytes: 4 or 8
 * @interleaved: write a u32 weight after each target
 */
struct graph_csr_writer {
	struct graph_writer offsets;
	struct graph_writer targets;
	struct graph_writer weights; /* buffer NULL: no separate weights */
	unsigned target_bytes;
	bool interleaved;
	uint64_t vertices;
	uint64_t lists; /* offsets written */
	uint64_t edges;
};

/** graph_csr_write() - append edges, grouped by ascending source, within the vertices */
int graph_csr_write(struct graph_csr_writer *writer, const struct graph_edge *edges, size_t count,
		    struct graph_error *error);

/** graph_csr_writer_finish() - write the offsets that remain and flush everything */
int graph_csr_writer_finish(struct graph_csr_writer *writer, struct graph_error *error);

/** graph_csr_writer_close() - free the buffers */
void graph_csr_writer_close(struct graph_csr_writer *writer);

#endif
