/* SPDX-License-Identifier: BSD-3-Clause */
/* Will it fit on the disk? Asked before any work is done. */
#ifndef WEIR_TOOLS_GRAPH_SPACE_H
#define WEIR_TOOLS_GRAPH_SPACE_H

#include "format.h"

/** graph_output_bytes() - at most so many bytes does @shape take in @format; UINT64_MAX when beyond 64 bits
 */
uint64_t graph_output_bytes(enum graph_format format, const struct graph_shape *shape);

/** graph_sort_bytes() - at most so many bytes does sorting @edges take on disk; UINT64_MAX when beyond 64
 * bits */
uint64_t graph_sort_bytes(uint64_t edges, bool weighted);

/** graph_space_check() - -ENOSPC with a sentence when the file system of @path has less free than both
 * together */
int graph_space_check(const char *path, uint64_t output_bytes, uint64_t temporary_bytes,
		      struct graph_error *error);

#endif
