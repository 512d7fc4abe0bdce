/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier.h: the edges of some vertices, those of the current frontier.
 *
 * A frontier is a bitmap in device memory. A lane takes words of it, 64 vertices at a
 * time; vertices with many neighbours it leaves to all lanes together, in a list that a
 * second kernel works on.
 */
#ifndef SAMPLE_FRONTIER_H
#define SAMPLE_FRONTIER_H

#include "graph_data.h"

/* Vertices with more neighbours are left to all lanes together. */
#define FRONTIER_HUB_DEGREE 4096

/**
 * struct frontier_hub - a vertex with many neighbours
 */
struct frontier_hub {
	u64 vertex;
	u64 begin;
	u64 end;
};

/**
 * struct frontier - a level of a search
 * @current: bitmap of the vertices of this level, cleared as it is read
 * @next: bitmap of the next level
 * @hub_list: struct frontier_hub
 * @hub_limit: entries of it
 * @hub_count: entries in use (frontier_walk_hubs())
 */
struct frontier {
	weir_addr current;
	weir_addr next;
	weir_addr hub_list;
	u64 hub_limit;
	u64 hub_count;
};

#endif
