/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edges.h: how the edges of a graph are shared out among lanes (edges_walk.h).
 *
 * A chunk of edges is what one line of 4096 bytes holds. Lines begin at multiples of their
 * length in the file and the edges after a header of two words, so all chunks but the first
 * begin two edges early. A line that two lanes share would be read twice wherever one of
 * them is much later.
 */
#ifndef SAMPLE_EDGES_H
#define SAMPLE_EDGES_H

#include "graph_data.h"

#define EDGES_CHUNK 512
#define EDGES_EARLY 2

/** edges_chunk_begin() - first edge of chunk @k */
WEIR_FN u64 edges_chunk_begin(u64 k)
{
	return k ? k * EDGES_CHUNK - EDGES_EARLY : 0;
}

/** edges_chunk_from() - the first chunk that begins at @edge or later; so of all edges: their number */
WEIR_FN u64 edges_chunk_from(u64 edge)
{
	return edge ? (edge + EDGES_EARLY + EDGES_CHUNK - 1) / EDGES_CHUNK : 0;
}

#endif
