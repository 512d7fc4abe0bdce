/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines that a breadth-first search reads: offsets first, then neighbours, 8 bytes each, as samples/bfs
 * does. */
#include "trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "random_edge.h"

enum { LINE_WORDS = 64, DEGREE = 16, GRAPH_SHARE = 8 }; /* the graph has so many caches of lines at most */

/** struct graph - neighbours of vertex v: neighbour[offset[v]] up to neighbour[offset[v + 1]] */
struct graph {
	uint64_t vertices, edges;
	uint64_t *offset;
	uint32_t *neighbour;
};

/**
 * struct search - a search under way
 * @trace: what it read so far
 * @room: of the trace
 * @level, @next: vertices of this level and the next
 * @reached: vertices it has seen
 */
struct search {
	struct graph graph;
	struct trace *trace;
	uint64_t room;
	bool *level, *next, *reached;
};

/* As many vertices as give a graph of so many lines, both ways of each edge counted. */
static unsigned scale_for(uint64_t lines)
{
	unsigned scale = 4;

	while (((UINT64_C(2) * DEGREE + 1) << (scale + 1)) <= lines * LINE_WORDS && scale < 28)
		scale++;
	return scale;
}

static void take_edges(struct graph *graph, const struct graph_random_edges *edges, uint64_t *fill)
{
	for (uint64_t i = 0; i < graph->edges / 2; i++) {
		struct graph_edge edge = graph_random_edge(edges, i);

		if (fill) {
			graph->neighbour[fill[edge.source]++] = (uint32_t)edge.target;
			graph->neighbour[fill[edge.target]++] = (uint32_t)edge.source;
		} else {
			graph->offset[edge.source + 1]++;
			graph->offset[edge.target + 1]++;
		}
	}
}

static int make_graph(struct graph *graph, unsigned scale, uint64_t seed)
{
	struct graph_random_edges edges;
	uint64_t *fill;

	graph->vertices = UINT64_C(1) << scale;
	graph->edges = 2 * DEGREE * graph->vertices;
	graph->offset = calloc(graph->vertices + 1, sizeof(*graph->offset));
	graph->neighbour = malloc(graph->edges * sizeof(*graph->neighbour));
	fill = malloc((graph->vertices + 1) * sizeof(*fill));
	if (!graph->offset || !graph->neighbour || !fill) {
		free(fill);
		return -ENOMEM;
	}
	graph_random_edges_init(&edges, GRAPH_KRONECKER, scale, seed);
	take_edges(graph, &edges, NULL);
	for (uint64_t v = 0; v < graph->vertices; v++)
		graph->offset[v + 1] += graph->offset[v];
	memcpy(fill, graph->offset, (graph->vertices + 1) * sizeof(*fill));
	take_edges(graph, &edges, fill);
	free(fill);
	return 0;
}

/* Words @first up to @end, in lines; a line counts once. */
static void touch(struct search *search, uint64_t base, uint64_t first, uint64_t end)
{
	for (uint64_t line = first / LINE_WORDS; line * LINE_WORDS < end; line++)
		if (search->trace->count < search->room)
			search->trace->lines[search->trace->count++] = base + line;
}

static void expand(struct search *search, uint64_t vertex)
{
	const struct graph *graph = &search->graph;
	uint64_t begin = graph->offset[vertex], end = graph->offset[vertex + 1];

	touch(search, 0, vertex, vertex + 2);
	touch(search, graph->vertices / LINE_WORDS + 1, begin, end);
	for (uint64_t i = begin; i < end; i++) {
		uint32_t to = graph->neighbour[i];

		search->next[to] |= !search->reached[to];
		search->reached[to] = true;
	}
}

/* The vertex with the most neighbours. */
static uint64_t source(const struct graph *graph)
{
	uint64_t best = 0;

	for (uint64_t v = 1; v < graph->vertices; v++)
		if (graph->offset[v + 1] - graph->offset[v] > graph->offset[best + 1] - graph->offset[best])
			best = v;
	return best;
}

static void run(struct search *search)
{
	uint64_t vertices = search->graph.vertices;
	bool more = true;

	search->level[source(&search->graph)] = search->reached[source(&search->graph)] = true;
	while (more) {
		bool *done = search->level;

		more = false;
		for (uint64_t v = 0; v < vertices; v++)
			if (search->level[v])
				expand(search, v);
		for (uint64_t v = 0; v < vertices && !more; v++)
			more = search->next[v];
		memset(done, 0, vertices);
		search->level = search->next;
		search->next = done;
	}
}

int trace_bfs(const struct trace_shape *shape, struct trace *trace)
{
	struct search search = { .trace = trace, .room = shape->reads };
	int error = make_graph(&search.graph, scale_for(GRAPH_SHARE * shape->cache_lines), shape->seed);
	uint64_t vertices = search.graph.vertices;

	trace->count = 0;
	trace->span = vertices / LINE_WORDS + 1 + search.graph.edges / LINE_WORDS + 1;
	trace->lines = malloc(search.room * sizeof(*trace->lines));
	search.level = calloc(vertices, sizeof(bool));
	search.next = calloc(vertices, sizeof(bool));
	search.reached = calloc(vertices, sizeof(bool));
	if (!error && trace->lines && search.level && search.next && search.reached)
		run(&search);
	else
		error = -ENOMEM;
	free(search.graph.offset);
	free(search.graph.neighbour);
	free(search.level);
	free(search.next);
	free(search.reached);
	return error;
}
