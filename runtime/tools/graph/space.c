/* SPDX-License-Identifier: BSD-3-Clause */
#include "space.h"
#include "number.h"
#include "output.h"

#include <errno.h>
#include <sys/statvfs.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return graph_add(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;
	return graph_multiply(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t rows_bytes(const struct graph_shape *shape, unsigned edge_bytes)
{
	return add(multiply(add(shape->vertices, 1), 8), multiply(shape->edges, edge_bytes));
}

uint64_t graph_output_bytes(enum graph_format format, const struct graph_shape *shape)
{
	const unsigned line_bytes = 2 * (graph_digits(shape->vertices) + 1) + (shape->weighted ? 4 : 0);
	const uint64_t header_bytes = 256; /* more than any format has */

	switch (format) {
	case GRAPH_BEL: return add(header_bytes, rows_bytes(shape, shape->weighted ? 12 : 8));
	case GRAPH_SG:
	case GRAPH_WSG:
		return add(header_bytes,
			   multiply(rows_bytes(shape, shape->weighted ? 8 : 4), shape->directed ? 2 : 1));
	case GRAPH_MTX:
		return add(header_bytes, multiply(shape->edges, line_bytes) / (shape->directed ? 1 : 2));
	default: return add(header_bytes, multiply(shape->edges, line_bytes));
	}
}

uint64_t graph_sort_bytes(uint64_t edges, bool weighted)
{
	return multiply(edges, weighted ? 16 : 8);
}

int graph_space_check(const char *path, uint64_t output_bytes, uint64_t temporary_bytes,
		      struct graph_error *error)
{
	char directory[GRAPH_PATH_BYTES], total[GRAPH_HUMAN_BYTES], output[GRAPH_HUMAN_BYTES];
	char temporary[GRAPH_HUMAN_BYTES], free_text[GRAPH_HUMAN_BYTES];
	struct statvfs status;

	graph_directory_of(path, directory);
	if (statvfs(directory, &status)) {
		int code = errno;
		return graph_fail(error, -code, "cannot write to directory %s: %s; %s", directory,
				  strerror(code), code == ENOENT ? "make it first" : "choose another place");
	}
	uint64_t free_bytes = multiply(status.f_bavail, status.f_frsize);
	uint64_t needed = add(output_bytes, temporary_bytes);
	if (needed <= free_bytes)
		return 0;
	return graph_fail(
		error, -ENOSPC,
		"not enough disk space in %s: up to %s are needed (%s for the output, %s for "
		"temporary data) and %s are free; free some, write elsewhere, or take a smaller graph",
		directory, graph_human_bytes(needed, total), graph_human_bytes(output_bytes, output),
		graph_human_bytes(temporary_bytes, temporary), graph_human_bytes(free_bytes, free_text));
}
