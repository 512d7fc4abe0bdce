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

/** reference_load() - a .bel set, .sg or .wsg file; 0 or a negative errno with a sentence; reference_free()
 * it in any case */
int reference_load(const char *path, bool weighted, struct reference_graph *graph, char *error);
void reference_free(struct reference_graph *graph);

#endif
