/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_gapbs.h: a graph in a file of the GAP benchmark suite, .sg or .wsg, read where it lies.
 *
 * After 17 bytes come the offsets, then the edges: 4 bytes of neighbour, in .wsg 4 bytes of weight behind
 * them. So they begin at any byte.
 */
#ifndef SAMPLE_GRAPH_GAPBS_H
#define SAMPLE_GRAPH_GAPBS_H

#include <weir/unaligned.h>

#include "graph_data.h"

/* Edges that one look gives, weighted ones, too. */
#define GRAPH_RUN (WEIR_RUN - 1)

/** graph_offsets(), graph_neighbours() - some elements from @index on, of those below @end */
WEIR_FN struct weir_run graph_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_unaligned_run(&graph->gapbs_offsets, index, end);
}

/* Neighbours without the weights behind them. */
WEIR_FN struct weir_run graph_gapbs_neighbours(struct weir_run run)
{
	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = (u32)run.value[i];
	return run;
}

WEIR_FN struct weir_run graph_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_gapbs_neighbours(weir_unaligned_run(&graph->gapbs_edges, index, end));
}

/** graph_try_offsets(), graph_try_neighbours() - the same of what is in the cache; otherwise none */
WEIR_FN struct weir_run graph_try_offsets(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return weir_unaligned_try_run(&graph->gapbs_offsets, index, end);
}

WEIR_FN struct weir_run graph_try_neighbours(WEIR_GLOBAL struct graph_data *graph, u64 index, u64 end)
{
	return graph_gapbs_neighbours(weir_unaligned_try_run(&graph->gapbs_edges, index, end));
}

/**
 * graph_weights() - the weights of edges [@index, @index + @count), a run of graph_neighbours()
 *
 * They lie behind their neighbours, so that one look has all of them. A negative one is reported.
 */
WEIR_FN struct weir_run graph_weights(WEIR_GLOBAL struct graph_data *graph, u64 index, u32 count)
{
	struct weir_run run = weir_unaligned_run(&graph->gapbs_edges, index, index + count);

	for (u32 i = 0; i < WEIR_RUN; i++) {
		run.value[i] = i < run.count ? run.value[i] >> 32 : 0;
		if (run.value[i] >> 31) {
			graph_report_bad(graph, GRAPH_BAD_WEIGHT, index + i, run.value[i]);
			run.value[i] = 0;
		}
	}
	run.count = count;
	return run;
}

/** graph_failed() - true once a read has failed */
WEIR_FN u32 graph_failed(WEIR_GLOBAL struct graph_data *graph)
{
	return weir_array_failed(&graph->gapbs_offsets.array);
}

#endif
