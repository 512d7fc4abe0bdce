/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier.h: the edges of some vertices, those of the current frontier.
 *
 * A frontier is a bitmap in device memory. A wave takes a word of it at a time, and its lanes
 * share the edges of the vertices there, whatever their degrees. Vertices with many edges are
 * cut into pieces and left to all waves, in a list that a second kernel works on.
 */
#ifndef SAMPLE_FRONTIER_H
#define SAMPLE_FRONTIER_H

#include "graph_data.h"

/* Edges of a piece. Vertices with more of them, the hubs, are cut into pieces. */
#define FRONTIER_PIECE 4096

/**
 * struct frontier_piece - edges [@begin, @end) of @vertex, a hub
 */
struct frontier_piece {
	u64 vertex;
	u64 begin;
	u64 end;
};

/**
 * struct frontier - a level of a search
 * @current: bitmap of the vertices of this level, cleared as it is read
 * @next: bitmap of the next level
 * @pieces: list of struct frontier_piece
 * @piece_limit: room in it
 * @piece_count: how many there are (frontier_walk_hubs())
 */
struct frontier {
	weir_addr current;
	weir_addr next;
	weir_addr pieces;
	u64 piece_limit;
	u64 piece_count;
};

#endif
