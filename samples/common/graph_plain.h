/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_plain.h: a graph in plain device memory: no cache, no storage. The limit. */
#ifndef SAMPLE_GRAPH_PLAIN_H
#define SAMPLE_GRAPH_PLAIN_H

#include "graph_data.h"

/* Edges that one look gives. */
#define GRAPH_RUN WEIR_RUN

/* Ordinary loads: nobody writes there while a kernel runs. */
WEIR_FN struct weir_run graph_plain_run(weir_addr array, u64 index, u64 end)
{
	struct weir_run run;

	run.count = WEIR_RUN;
	if (end - index < WEIR_RUN)
		run.count = (u32)(end - index);
	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = i < run.count ? *weir_at(array, u64, index + i) : 0;
	return run;
}

WEIR_FN struct weir_run graph_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_plain_run(graph->plain_offsets, index, end);
}

WEIR_FN struct weir_run graph_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_plain_run(graph->plain_neighbours, index, end);
}

WEIR_FN struct weir_run graph_try_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_offsets(graph, index, end);
}

WEIR_FN struct weir_run graph_try_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_neighbours(graph, index, end);
}

WEIR_FN struct weir_run graph_weights(WEIR_GLOBAL struct graph_data *graph, u64 index, u32 count)
{
	struct weir_run run;

	run.count = count;
	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = i < count ? *weir_at(graph->plain_weights, u32, index + i) : 0;
	return run;
}

WEIR_FN u32 graph_failed(WEIR_GLOBAL struct graph_data *graph)
{
	(void)graph;
	return 0;
}

#endif
