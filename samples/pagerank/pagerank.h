/* SPDX-License-Identifier: BSD-3-Clause */
/* pagerank.h: arguments of the PageRank kernels, shared by host and lanes. */
#ifndef PAGERANK_H
#define PAGERANK_H

#include "../common/graph_data.h"

/*
 * Ranks are fixed-point numbers: 2^62 is 1, the sum of all ranks. So additions are exact
 * whatever their order, and no atomics on floats are needed.
 */
#define PAGERANK_ONE ((u64)1 << 62)

/**
 * struct pagerank_sums - over all vertices, one iteration
 * @dangling: rank of vertices without edges
 * @change: by how much ranks changed, all together
 * @apart: edges one way minus those the other way, each scrambled: 0 of a graph that has each edge both ways,
 * and of another one in 1 of 2^64 cases
 */
struct pagerank_sums {
	weir_shared_u64 dangling;
	weir_shared_u64 change;
	weir_shared_u64 apart;
};

/**
 * struct pagerank_args - one iteration
 * @graph: undirected: a vertex's neighbours give it shares of their rank
 * @rank: u64 per vertex
 * @share: u64 per vertex: its rank over its number of edges
 * @sum: u64 per vertex: shares that it got
 * @degree: u64 per vertex
 * @sums: struct pagerank_sums
 * @base: rank that each vertex has anyway
 * @damping: share of the rest, 2^64 being all
 * @everyone: what each vertex gets of the rank of vertices without edges
 */
struct pagerank_args {
	struct graph_data graph;
	weir_addr rank;
	weir_addr share;
	weir_addr sum;
	weir_addr degree;
	weir_addr sums;
	u64 base;
	u64 damping;
	u64 everyone;
};

#endif
