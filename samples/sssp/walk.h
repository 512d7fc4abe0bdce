/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h: shortest paths, wherever the graph is. Included after graph_stored.h,
 * graph_gapbs.h or graph_plain.h.
 *
 * A vertex whose distance falls goes into the next level if it is near, otherwise it is
 * kept for later (near-far). All accesses are relaxed: a distance only falls, and a vertex
 * is looked at again, in a later launch, after each fall.
 */
#ifndef SSSP_WALK_H
#define SSSP_WALK_H

#include "sssp.h"

#define FRONTIER_ARGS struct sssp_args

WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct sssp_args *args, u64 vertex, u64 begin, struct weir_run run);

#include "../common/frontier_walk.h"

WEIR_FN WEIR_GLOBAL weir_shared_u64 *sssp_distance(WEIR_GLOBAL struct sssp_args *args, u64 vertex)
{
	return weir_at(args->distance, weir_shared_u64, vertex);
}

/* The word becomes @value if that is less. Return: 1 if it did. */
WEIR_FN u32 sssp_lower(WEIR_GLOBAL weir_shared_u64 *word, u64 value)
{
	u64 old = weir_load_u64_relaxed_dev(word), seen;

	for (; value < old; old = seen) {
		seen = weir_cas_u64_relaxed_dev(word, old, value);
		if (seen == old)
			return 1;
	}
	return 0;
}

/* Some edges of @vertex. Return: how many vertices wait since then. */
WEIR_FN u32 frontier_visit(WEIR_GLOBAL struct sssp_args *args, u64 vertex, u64 begin, struct weir_run run)
{
	u64 from = weir_load_u64_relaxed_dev(sssp_distance(args, vertex));
	struct weir_run weights = graph_weights(&args->graph, begin, run.count);
	u32 known = graph_known(&args->graph, vertex, run), found = 0;

	for (u32 i = 0; i < WEIR_RUN; i++) {
		u64 distance = from + weights.value[i];

		if (!(known >> i & 1) || !sssp_lower(sssp_distance(args, run.value[i]), distance))
			continue;
		found += frontier_add(distance < args->threshold ? args->frontier.next : args->far,
				      run.value[i]);
	}
	return found;
}

#endif
