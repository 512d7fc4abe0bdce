/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/device.h"
#include "../common/reference.h"

/* Return: how many edges it looked at. */
static uint64_t search(const struct reference_graph *graph, uint64_t source, uint32_t *depths,
		       uint64_t *queue)
{
	uint64_t head = 0, tail = 0, edges = 0;

	memset(depths, 0xff, graph->vertices * sizeof(*depths));
	depths[source] = 0;
	queue[tail++] = source;
	while (head < tail) {
		uint64_t vertex = queue[head++];

		edges += graph->offsets[vertex + 1] - graph->offsets[vertex];
		for (uint64_t e = graph->offsets[vertex]; e < graph->offsets[vertex + 1]; e++) {
			uint64_t neighbour = graph->neighbours[e];

			if (depths[neighbour] != UINT32_MAX)
				continue;
			depths[neighbour] = depths[vertex] + 1;
			queue[tail++] = neighbour;
		}
	}
	return edges;
}

int bfs_reference(const char *path, const struct graph_info *of, uint64_t source, uint32_t **depths,
		  uint64_t *edges, char *error)
{
	struct reference_graph graph;
	uint64_t *queue = NULL;
	int code = reference_load(path, false, of->vertices, of->edges, &graph, error);

	*depths = NULL;
	if (!code) {
		*depths = malloc(graph.vertices * sizeof(**depths));
		queue = malloc(graph.vertices * sizeof(*queue));
		if (*depths && queue && source < graph.vertices)
			*edges = search(&graph, source, *depths, queue);
		else
			code = sample_fail(error, -ENOMEM,
					   "no memory for the reference search of %llu vertices",
					   (unsigned long long)graph.vertices);
	}
	free(queue);
	reference_free(&graph);
	return code;
}
