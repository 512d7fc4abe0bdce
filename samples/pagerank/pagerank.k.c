/* SPDX-License-Identifier: BSD-3-Clause */
/* PageRank over a graph on storage; ranks are in device memory. */
#include "../common/graph_stored.h"
#include "walk.h"

WEIR_KERNEL(pagerank_rows, struct pagerank_args)
{
	edges_find_rows(&args->graph);
}

/* Once. */
WEIR_KERNEL(pagerank_degrees, struct pagerank_args)
{
	pagerank_find_degrees(args);
}

/* Before the first iteration: all vertices alike. */
WEIR_KERNEL(pagerank_start, struct pagerank_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads())
		*weir_at(args->rank, u64, v) = PAGERANK_ONE / args->graph.vertices;
}

/* What each vertex gives to each of its neighbours. */
WEIR_KERNEL(pagerank_share, struct pagerank_args)
{
	u64 dangling = 0;

	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads()) {
		u64 rank = *weir_at(args->rank, u64, v), degree = *weir_at(args->degree, u64, v);

		*weir_at(args->share, u64, v) = degree ? rank / degree : 0;
		*weir_at(args->sum, u64, v) = 0;
		dangling += degree ? 0 : rank;
	}
	if (dangling) /* relaxed: a sum, read after the launch */
		(void)weir_add_u64_relaxed_dev(&weir_at(args->sums, struct pagerank_sums, 0)->dangling,
					       dangling);
}

WEIR_KERNEL(pagerank_gather, struct pagerank_args)
{
	edges_walk(args);
}

WEIR_KERNEL(pagerank_update, struct pagerank_args)
{
	u64 change = 0;

	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads()) {
		u64 old = *weir_at(args->rank, u64, v);
		u64 rank =
			args->base + weir_mulhi(*weir_at(args->sum, u64, v) + args->everyone, args->damping);

		*weir_at(args->rank, u64, v) = rank;
		change += rank > old ? rank - old : old - rank;
	}
	if (change) /* relaxed: a sum, read after the launch */
		(void)weir_add_u64_relaxed_dev(&weir_at(args->sums, struct pagerank_sums, 0)->change, change);
}
