/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_stored.h: a graph on storage: everything comes through weir_array. */
#ifndef SAMPLE_GRAPH_STORED_H
#define SAMPLE_GRAPH_STORED_H

#include "graph_data.h"

/* Edges that one look gives. */
#define GRAPH_RUN WEIR_RUN

/** graph_offsets(), graph_neighbours() - some elements from @index on, of those below @end */
WEIR_FN struct weir_run graph_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_array_run_u64(&graph->offsets, index, end);
}

WEIR_FN struct weir_run graph_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_array_run_u64(&graph->neighbours, index, end);
}

/** graph_try_offsets(), graph_try_neighbours() - the same of what is in the cache; otherwise none */
WEIR_FN struct weir_run graph_try_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_array_try_run_u64(&graph->offsets, index, end);
}

WEIR_FN struct weir_run graph_try_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_array_try_run_u64(&graph->neighbours, index, end);
}

/* Lines that do not stay for a view: one after the other, which always gets there. */
WEIR_FN struct weir_run graph_weights_slowly(WEIR_GLOBAL struct graph_data *graph, u64 index,
					     struct weir_run run)
{
	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = i < run.count ? weir_array_get_u32(&graph->weights, index + i) : 0;
	return run;
}

/** graph_weights() - the weights of edges [@index, @index + @count), @count being at most WEIR_RUN */
WEIR_FN struct weir_run graph_weights(WEIR_GLOBAL struct graph_data *graph, u64 index, u32 count)
{
	struct weir_view view = weir_array_view(&graph->weights, index);
	struct weir_run run;
	u64 seen = 0;

	run.count = count;
	for (u32 i = 0; i < WEIR_RUN; i++) {
		run.value[i] = i < count && i < view.count ? weir_view_u32(view, i) : 0;
		seen += run.value[i];
	}
	if (view.count < count || !weir_view_valid_by(view, seen))
		run = graph_weights_slowly(graph, index, run);
	return run;
}

/** graph_failed() - true once a read has failed */
WEIR_FN u32 graph_failed(WEIR_GLOBAL struct graph_data *graph)
{
	return weir_array_failed(&graph->offsets);
}

#endif
