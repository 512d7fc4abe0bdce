/* SPDX-License-Identifier: BSD-3-Clause */
/* reference.h: the same search over the same graph in host memory. */
#ifndef BFS_REFERENCE_H
#define BFS_REFERENCE_H

#include <stdint.h>

#include "../common/graph_host.h"

/**
 * bfs_reference() - depths of a plain queue-based search
 * @path: .bel set, .sg or .wsg file
 * @of: the graph that was searched; a file of another one is refused
 * @source: first vertex
 * @depths: receives vertices words; the caller frees them
 * @edges: receives how many it looked at: all edges of all vertices that it reached
 * @error: a sentence on failure, SAMPLE_ERROR_BYTES
 */
int bfs_reference(const char *path, const struct graph_info *of, uint64_t source, uint32_t **depths,
		  uint64_t *edges, char *error);

#endif
