/* SPDX-License-Identifier: BSD-3-Clause */
/* reference.h: a graph in the host's memory, for the plain computation that a sample is verified with. */
#ifndef SAMPLE_REFERENCE_H
#define SAMPLE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/** struct reference_graph - checked: offsets ascend, every neighbour exists */
struct reference_graph {
	uint64_t vertices;
	uint64_t edges;
	uint64_t *offsets;
	uint64_t *neighbours;
	uint32_t *weights; /* NULL unless asked for */
};

/**
 * reference_load() - read what a result is verified with
 * @path: .bel set, .sg or .wsg file
 * @weighted: with weights
 * @vertices: how many the graph has whose result it is
 * @edges: of these, too; a file with others is refused
 * @graph: receives it; reference_free() it in any case
 * @error: a sentence on failure, SAMPLE_ERROR_BYTES
 *
 * Return: 0 or a negative errno.
 */
int reference_load(const char *path, bool weighted, uint64_t vertices, uint64_t edges,
		   struct reference_graph *graph, char *error);
void reference_free(struct reference_graph *graph);

#endif
