/* SPDX-License-Identifier: BSD-3-Clause */
/* Shortest paths in a graph on storage; distances and frontiers are in device memory. */
#include "../common/graph_stored.h"
#include "walk.h"

WEIR_KERNEL(sssp_level, struct sssp_args)
{
	frontier_walk_level(args, 0);
}

WEIR_KERNEL(sssp_hubs, struct sssp_args)
{
	frontier_walk_hubs(args, 0);
}

/* Every distance unreached, nothing left from a search before. */
WEIR_KERNEL(sssp_clear, struct sssp_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads()) {
		weir_store_u64_relaxed_dev(sssp_distance(args, v), SSSP_UNREACHED);
		if (v % 64 == 0)
			weir_store_u64_relaxed_dev(weir_at(args->far, weir_shared_u64, v / 64), 0);
	}
}

/* The smallest distance that waits; vertices that were settled meanwhile wait no longer. */
WEIR_KERNEL(sssp_nearest, struct sssp_args)
{
	u64 words = (args->graph.vertices + 63) / 64, nearest = SSSP_UNREACHED;

	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->far, weir_shared_u64, i);
		u64 old = weir_load_u64_relaxed_dev(word), keep = 0;

		for (u64 bits = old; bits; bits &= bits - 1) {
			u64 distance = weir_load_u64_relaxed_dev(
				sssp_distance(args, i * 64 + weir_lowest_bit(bits)));

			if (distance < args->passed)
				continue;
			keep |= bits & (~bits + 1);
			nearest = distance < nearest ? distance : nearest;
		}
		if (keep != old)
			weir_store_u64_relaxed_dev(word, keep);
	}
	if (nearest != SSSP_UNREACHED)
		(void)sssp_lower(&weir_at(args->next, struct sssp_next, 0)->nearest, nearest);
}

/* What is nearer than the new threshold goes into the frontier. */
WEIR_KERNEL(sssp_split, struct sssp_args)
{
	u64 words = (args->graph.vertices + 63) / 64, vertices = 0;

	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->far, weir_shared_u64, i);
		u64 old = weir_load_u64_relaxed_dev(word), near = 0;

		for (u64 bits = old; bits; bits &= bits - 1) {
			u64 bit = bits & (~bits + 1);

			if (weir_load_u64_relaxed_dev(sssp_distance(args, i * 64 + weir_lowest_bit(bits))) <
			    args->threshold)
				near |= bit;
		}
		if (near == 0)
			continue;
		weir_store_u64_relaxed_dev(word, old & ~near);
		weir_store_u64_relaxed_dev(weir_at(args->frontier.current, weir_shared_u64, i), near);
		vertices += weir_popcount(near);
	}
	if (vertices) /* relaxed: read by the host after the launch */
		(void)weir_add_u64_relaxed_dev(&weir_at(args->next, struct sssp_next, 0)->vertices, vertices);
}
