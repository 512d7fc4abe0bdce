/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_data.h: a graph as kernels see it, shared by host and lanes.
 *
 * Vertex v's edges are [offset v, offset v + 1); an edge has a neighbour, and a weight if
 * the graph has weights. Where they come from is the business of graph_stored.h,
 * graph_gapbs.h or graph_plain.h, of which a kernel file includes one.
 */
#ifndef SAMPLE_GRAPH_DATA_H
#define SAMPLE_GRAPH_DATA_H

#include <weir/array.h>

/**
 * struct graph_counters - what a traversal did; summed over lanes
 * @found: vertices it found something new for
 * @edges: edges looked at
 * @lookups: reads of up to WEIR_RUN elements
 * @pieces: of hubs, in the frontier's list (frontier.h)
 * @missed: what was tried, and is left for kernels that do not only try (frontier.h)
 * @bad: 0, or 1 once a lane met something a graph cannot contain
 * @bad_kind: GRAPH_BAD_...
 * @bad_vertex: the vertex whose list it is in; of GRAPH_BAD_WEIGHT the edge
 * @bad_value: what was read
 */
struct graph_counters {
	weir_shared_u64 found;
	weir_shared_u64 edges;
	weir_shared_u64 lookups;
	weir_shared_u64 pieces;
	weir_shared_u64 missed;
	weir_shared_u32 bad;
	u32 bad_kind;
	u64 bad_vertex;
	u64 bad_value;
};

WEIR_ASSERT_SIZE(struct graph_counters, 64);

enum { GRAPH_BAD_NEIGHBOUR = 1, GRAPH_BAD_OFFSETS = 2, GRAPH_BAD_WEIGHT = 3 };

/**
 * struct graph_data - where a graph is
 * @offsets: vertices + 1 u64
 * @neighbours: u64 per edge
 * @weights: u32 per edge, if it has weights
 * @gapbs_offsets, @gapbs_edges: the same in one file, its edges as they lie there (graph_gapbs.h)
 * @plain_offsets, @plain_neighbours, @plain_weights: the same in device memory (graph_plain.h)
 * @vertices, @edges: how many
 * @counters: struct graph_counters
 * @chunk_rows: u64 per chunk of edges: the vertex its first edge belongs to (edges.h)
 */
struct graph_data {
	struct weir_array offsets;
	struct weir_array neighbours;
	struct weir_array weights;
	struct weir_unaligned gapbs_offsets;
	struct weir_unaligned gapbs_edges;
	weir_addr plain_offsets;
	weir_addr plain_neighbours;
	weir_addr plain_weights;
	u64 vertices;
	u64 edges;
	weir_addr counters;
	weir_addr chunk_rows;
};

/** struct graph_tally - what one lane did, kept in registers until it ends */
struct graph_tally {
	u64 found;
	u64 edges;
	u64 lookups;
	u64 missed;
};

WEIR_FN struct graph_tally graph_no_tally(void)
{
	struct graph_tally tally;

	tally.found = tally.edges = tally.lookups = tally.missed = 0;
	return tally;
}

WEIR_FN WEIR_GLOBAL struct graph_counters *graph_counters_of(WEIR_GLOBAL struct graph_data *graph)
{
	return weir_at(graph->counters, struct graph_counters, 0);
}

/** graph_report_bad() - the first lane to meet nonsense writes it down; the host makes it a sentence */
WEIR_FN void graph_report_bad(WEIR_GLOBAL struct graph_data *graph, u32 kind, u64 vertex, u64 value)
{
	WEIR_GLOBAL struct graph_counters *counters = graph_counters_of(graph);

	/* relaxed: who comes first writes; the host reads after the launch */
	if (weir_cas_u32_relaxed_dev(&counters->bad, 0, 1) != 0)
		return;
	counters->bad_kind = kind;
	counters->bad_vertex = vertex;
	counters->bad_value = value;
}

/**
 * graph_known() - which neighbours of @run, read from the list of @vertex, exist, as bits; one that does not
 * is reported
 *
 * All at once, so that what is done with each needs no branch of its own, and loads for all of them are under
 * way together.
 */
WEIR_FN u32 graph_known(WEIR_GLOBAL struct graph_data *graph, u64 vertex, struct weir_run run)
{
	u64 vertices = graph->vertices, known = 0, wrong = 0;

	for (u32 i = 0; i < WEIR_RUN; i++)
		known |= (u64)(i < run.count && run.value[i] < vertices) << i;
	known = weir_opaque(known); /* bits: not a condition for each of them */
	if (known + 1 == (u64)1 << run.count)
		return (u32)known;
	for (u32 i = 0; i < WEIR_RUN; i++)
		wrong = i < run.count && !(known >> i & 1) ? run.value[i] : wrong;
	graph_report_bad(graph, GRAPH_BAD_NEIGHBOUR, vertex, wrong);
	return (u32)known;
}

/** graph_wave() - all lanes of a wave: launches here are of whole waves */
WEIR_FN u64 graph_wave(void)
{
	return ~(u64)0 >> (64 - weir_lanes());
}

/* The sum over a wave, in all its lanes. */
WEIR_FN u64 graph_wave_sum(u64 wave, u64 value)
{
	for (u32 apart = weir_lanes() / 2; apart; apart /= 2)
		value += weir_shuffle_u64(wave, value, weir_lane() ^ apart);
	return value;
}

/** graph_add_tally() - at the end of a wave, all its lanes together */
WEIR_FN void graph_add_tally(WEIR_GLOBAL struct graph_data *graph, struct graph_tally tally)
{
	WEIR_GLOBAL struct graph_counters *counters = graph_counters_of(graph);
	u64 wave = graph_wave(), found, edges, lookups, missed;

	/* Most waves of a small frontier find nothing: one collective instead of four sums, each of several.
	 */
	if (weir_ballot(wave, (tally.lookups | tally.missed) != 0) == 0)
		return;
	found = graph_wave_sum(wave, tally.found);
	edges = graph_wave_sum(wave, tally.edges);
	lookups = graph_wave_sum(wave, tally.lookups);
	missed = graph_wave_sum(wave, tally.missed);
	if (weir_lane() != 0)
		return;
	/* relaxed: sums, read by the host after the launch */
	(void)weir_add_u64_relaxed_dev(&counters->found, found);
	(void)weir_add_u64_relaxed_dev(&counters->edges, edges);
	(void)weir_add_u64_relaxed_dev(&counters->lookups, lookups);
	(void)weir_add_u64_relaxed_dev(&counters->missed, missed);
}

#endif
