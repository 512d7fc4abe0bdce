/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <format.h> /* weir-graph's */

#include "device.h"

/* Edges in their order: the offsets are where each vertex's end. */
static int read_edges(struct graph_source *source, struct reference_graph *graph, struct graph_error *why)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	uint64_t at = 0;
	size_t count = 0;
	int code;

	do {
		code = graph_source_next(source, edges, GRAPH_BATCH_EDGES, &count, why);
		for (size_t i = 0; i < count && !code; i++, at++) {
			graph->neighbours[at] = edges[i].target;
			if (graph->weights)
				graph->weights[at] = edges[i].weight;
			graph->offsets[edges[i].source + 1] = at + 1;
		}
	} while (!code && count);
	for (uint64_t v = 0; v < graph->vertices; v++)
		if (graph->offsets[v + 1] < graph->offsets[v])
			graph->offsets[v + 1] = graph->offsets[v];
	return code;
}

static int load(struct graph_source *source, bool weighted, struct reference_graph *graph, char *error)
{
	struct graph_error why = { .text = "" };

	graph->vertices = source->vertices;
	graph->edges = source->edges;
	graph->offsets = calloc(graph->vertices + 1, sizeof(*graph->offsets));
	graph->neighbours = malloc(graph->edges * sizeof(*graph->neighbours) + 8);
	graph->weights = weighted ? malloc(graph->edges * sizeof(*graph->weights) + 8) : NULL;
	if (!graph->offsets || !graph->neighbours || (weighted && !graph->weights))
		return sample_fail(error, -ENOMEM, "no memory for a graph of %llu edges to verify with",
				   (unsigned long long)graph->edges);
	return read_edges(source, graph, &why) ? sample_fail(error, -EINVAL, "%s", why.text) : 0;
}

int reference_load(const char *path, bool weighted, uint64_t vertices, uint64_t edges,
		   struct reference_graph *graph, char *error)
{
	struct graph_error why = { .text = "" };
	struct graph_progress notes;
	struct graph_source *source = NULL;
	int code;

	memset(graph, 0, sizeof(*graph));
	graph_progress_init(&notes, NULL, stderr);
	code = graph_source_open(path, 0, &notes, &source, &why);
	if (code)
		code = sample_fail(error, code, "%s", why.text);
	else if (!source->grouped || (weighted && !source->weighted))
		code = sample_fail(error, -EINVAL, "%.800s has no %s to verify with", path,
				   source->grouped ? "weights" : "rows of edges, being text,");
	else if (source->vertices != vertices || source->edges != edges)
		code = sample_fail(
			error, -EINVAL,
			"%.800s is another graph: %llu vertices and %llu edges, and of the one that "
			"was read %llu and %llu; verify with the file that it came from",
			path, (unsigned long long)source->vertices, (unsigned long long)source->edges,
			(unsigned long long)vertices, (unsigned long long)edges);
	else
		code = load(source, weighted, graph, error);
	graph_source_close(source);
	graph_progress_close(&notes);
	return code;
}

void reference_free(struct reference_graph *graph)
{
	free(graph->offsets);
	free(graph->neighbours);
	free(graph->weights);
	memset(graph, 0, sizeof(*graph));
}
