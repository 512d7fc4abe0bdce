/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edges_walk.h: all edges of a graph, in equal shares whatever the degrees.
 *
 * Lanes take chunks of edges. Where a chunk begins in the vertices is worked
 * out once per graph (edges_find_rows()). A sum per vertex is kept while its edges pass;
 * the edges of a vertex with many lie in several chunks, so that the parts are added up.
 *
 * A kernel file includes it after graph_stored.h, graph_gapbs.h or graph_plain.h, and after defining
 *   EDGES_ARGS      its arguments: a structure with a member graph
 *   EDGES_SUM       what is summed up, edges_zero() being nothing
 *   edges_take()    the sum with a few more edges of a vertex, after graph_known()
 *   edges_end()     where a vertex's sum goes: @whole if it has all edges, else a part
 *   edges_wants()   0 for a vertex whose edges need not be looked at
 * Its kernels are edges_find_rows(), once, and edges_walk().
 */
#ifndef SAMPLE_EDGES_WALK_H
#define SAMPLE_EDGES_WALK_H

#include "edges.h"

/* Offset @index, one look. */
WEIR_FN u64 edges_offset(WEIR_GLOBAL struct graph_data *graph, u64 index)
{
	return graph_offsets(graph, index, index + 1).value[0];
}

/* For each chunk that begins among a vertex's edges: that vertex. Offsets are checked on the way. */
WEIR_FN void edges_find_rows(WEIR_GLOBAL struct graph_data *graph)
{
	for (u64 v = weir_thread(); v < graph->vertices; v += weir_threads()) {
		u64 begin = edges_offset(graph, v), end = edges_offset(graph, v + 1);

		if (graph_failed(graph))
			break;
		if (begin > end || end > graph->edges) {
			graph_report_bad(graph, GRAPH_BAD_OFFSETS, v, begin > end ? begin : end);
			break;
		}
		for (u64 k = edges_chunk_from(begin); edges_chunk_begin(k) < end; k++)
			*weir_at(graph->chunk_rows, u64, k) = v;
	}
}

/* Edges [begin, end) of @vertex, added to @sum. */
WEIR_FN EDGES_SUM edges_sum_of(WEIR_GLOBAL EDGES_ARGS *args, u64 vertex, u64 begin, u64 end)
{
	EDGES_SUM sum = edges_zero();

	while (begin < end) {
		struct weir_run run = graph_neighbours(&args->graph, begin, end);

		sum = edges_take(args, sum, vertex, begin, run);
		begin = run.count ? begin + run.count : end; /* an error ends the list */
	}
	return sum;
}

/* Edges [at, end), the first of them being one of @vertex. */
WEIR_FN void edges_walk_chunk(WEIR_GLOBAL EDGES_ARGS *args, u64 at, u64 end, u64 vertex)
{
	u64 first = edges_offset(&args->graph, vertex), begin = at;

	for (; at < end && vertex < args->graph.vertices; vertex++) {
		u64 last = edges_offset(&args->graph, vertex + 1), stop = last < end ? last : end;

		if (graph_failed(&args->graph))
			break;
		if (at < stop && edges_wants(args, vertex))
			edges_end(args, vertex, edges_sum_of(args, vertex, at, stop),
				  first >= begin && last <= end);
		at = stop > at ? stop : at;
		first = last;
	}
}

WEIR_FN void edges_walk(WEIR_GLOBAL EDGES_ARGS *args)
{
	WEIR_GLOBAL struct graph_data *graph = &args->graph;
	u64 chunks = edges_chunk_from(graph->edges);

	for (u64 k = weir_thread(); k < chunks; k += weir_threads()) {
		u64 end = edges_chunk_begin(k + 1);

		edges_walk_chunk(args, edges_chunk_begin(k), end < graph->edges ? end : graph->edges,
				 *weir_at(graph->chunk_rows, u64, k));
	}
}

#endif
