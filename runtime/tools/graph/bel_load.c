/* SPDX-License-Identifier: BSD-3-Clause */
#include "bel.h"

#include <errno.h>
#include <stdlib.h>

static int check_same(const struct graph_bel *was, const struct graph_bel *is, struct graph_error *error)
{
	if (was->vertices == is->vertices && was->edges == is->edges)
		return 0;
	return graph_fail(error, -EILSEQ,
			  "%s changed since it was opened (%llu vertices and %llu edges then, %llu and "
			  "%llu now): open it again",
			  was->col_path, (unsigned long long)was->vertices, (unsigned long long)was->edges,
			  (unsigned long long)is->vertices, (unsigned long long)is->edges);
}

static int check_offsets(const struct graph_bel *bel, const uint64_t *offsets, struct graph_error *error)
{
	for (uint64_t vertex = 0; vertex < bel->vertices; vertex++)
		if (offsets[vertex] > offsets[vertex + 1])
			return graph_fail(
				error, -EILSEQ,
				"%s: the offset at byte %llu is %llu, below the %llu before it: the "
				"file is damaged, so make it again",
				bel->col_path,
				(unsigned long long)(GRAPH_BEL_HEADER_BYTES + (vertex + 1) * 8),
				(unsigned long long)offsets[vertex + 1], (unsigned long long)offsets[vertex]);
	return 0;
}

static int check_neighbours(const struct graph_bel *bel, const uint64_t *neighbours,
			    struct graph_error *error)
{
	for (uint64_t edge = 0; edge < bel->edges; edge++)
		if (neighbours[edge] >= bel->vertices)
			return graph_fail(error, -ERANGE,
					  "%s: edge %llu (at byte %llu) leads to vertex %llu, but there are "
					  "only %llu vertices: the file is damaged, so make it again",
					  bel->dst_path, (unsigned long long)edge,
					  (unsigned long long)(GRAPH_BEL_HEADER_BYTES + edge * 8),
					  (unsigned long long)neighbours[edge],
					  (unsigned long long)bel->vertices);
	return 0;
}

/* The products cannot overflow: the files were found to be that large. */
static int load(const struct graph_bel *bel, const struct graph_bel_files *files, uint64_t *offsets,
		uint64_t *neighbours, struct graph_error *error)
{
	int status = graph_input_read_at(&files->col, GRAPH_BEL_HEADER_BYTES, offsets,
					 (bel->vertices + 1) * 8, error);

	if (!status)
		status = graph_input_read_at(&files->dst, GRAPH_BEL_HEADER_BYTES, neighbours, bel->edges * 8,
					     error);
	if (!status)
		status = check_offsets(bel, offsets, error);
	return status ? status : check_neighbours(bel, neighbours, error);
}

int graph_bel_load(const struct graph_bel *bel, uint64_t **offsets, uint64_t **neighbours, char *text,
		   size_t text_bytes)
{
	struct graph_bel found;
	struct graph_bel_files files;
	struct graph_error error;
	int status = graph_bel_files_open(bel->col_path, &found, &files, &error);

	if (status)
		return graph_error_copy(&error, status, text, text_bytes);
	uint64_t *rows = malloc((found.vertices + 1) * 8);
	uint64_t *columns = malloc(found.edges ? found.edges * 8 : 8);
	status = check_same(bel, &found, &error);
	if (!status && (!rows || !columns))
		status = graph_fail(&error, -ENOMEM,
				    "no memory to load %s (%llu vertices, %llu edges): use a smaller graph",
				    bel->col_path, (unsigned long long)found.vertices,
				    (unsigned long long)found.edges);
	if (!status)
		status = load(&found, &files, rows, columns, &error);
	graph_bel_files_close(&files);
	if (status) {
		free(rows);
		free(columns);
		return graph_error_copy(&error, status, text, text_bytes);
	}
	*offsets = rows;
	*neighbours = columns;
	return 0;
}
