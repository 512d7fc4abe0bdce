/* SPDX-License-Identifier: BSD-3-Clause */
/* bfs.h: arguments of the breadth-first search kernels, shared by host and lanes. */
#ifndef BFS_H
#define BFS_H

#include <weir/abi.h>

/* Depth of a vertex nobody has reached. */
#define BFS_UNREACHED 0xffffffffu

/* Vertices with more neighbours are left to all lanes together (bfs_hubs). */
#define BFS_HUB_DEGREE 4096

/**
 * struct bfs_counters - what one search did; summed over lanes
 * @found: vertices reached in this level
 * @edges: edges looked at
 * @lookups: reads of up to WEIR_RUN elements
 * @hubs: entries of the hub list
 * @bad: 0, or 1 once a lane met something a graph cannot contain
 * @bad_kind: BFS_BAD_...
 * @bad_vertex: the vertex whose list it is in
 * @bad_value: what was read
 */
struct bfs_counters {
	weir_shared_u64 found;
	weir_shared_u64 edges;
	weir_shared_u64 lookups;
	weir_shared_u64 hubs;
	weir_shared_u32 bad;
	u32 bad_kind;
	u64 bad_vertex;
	u64 bad_value;
	u64 reserved;
};

WEIR_ASSERT_SIZE(struct bfs_counters, 64);

enum { BFS_BAD_NEIGHBOUR = 1, BFS_BAD_OFFSETS = 2 };

/**
 * struct bfs_hub - a vertex with many neighbours
 */
struct bfs_hub {
	u64 vertex;
	u64 begin;
	u64 end;
};

/**
 * struct bfs_args - one level of a search
 * @offsets: vertices + 1 u64: where each vertex's neighbours begin
 * @neighbours: u64 per edge
 * @plain_offsets, @plain_neighbours: instead, the same in device memory (bfs_plain_...)
 * @edges: of the graph
 * @depth: u32 per vertex
 * @current: bitmap of the vertices of this level, cleared as it is read
 * @next: bitmap of the next level
 * @hub_list: struct bfs_hub
 * @hub_limit: entries of it
 * @counters: struct bfs_counters
 * @vertices: number of vertices
 * @level: depth of the vertices in @current
 * @hub_count: entries in the list (bfs_hubs)
 */
struct bfs_args {
	struct weir_array offsets;
	struct weir_array neighbours;
	weir_addr plain_offsets;
	weir_addr plain_neighbours;
	u64 edges;
	weir_addr depth;
	weir_addr current;
	weir_addr next;
	weir_addr hub_list;
	u64 hub_limit;
	weir_addr counters;
	u64 vertices;
	u64 hub_count;
	u32 level;
	u32 padding;
};

#endif
