/* SPDX-License-Identifier: BSD-3-Clause */
/* frontier_host.h: the host's side of frontier.h. */
#ifndef SAMPLE_FRONTIER_HOST_H
#define SAMPLE_FRONTIER_HOST_H

#include "frontier.h"
#include "graph_host.h"

/**
 * struct frontier_kernels - names
 * @level: for ordinary vertices
 * @hubs: for the pieces of hubs that it lists
 * @try_level, @try_hubs: run before them, leaving to them what is not in the cache; NULL: none are
 */
struct frontier_kernels {
	const char *level;
	const char *hubs;
	const char *try_level;
	const char *try_hubs;
};

/** frontier_alloc() - empty bitmaps and a list; @bytes grows by what they take; weir_last_error() */
int frontier_alloc(struct graph_host *graph, struct frontier *frontier, uint64_t *bytes);

/** frontier_blocks() - blocks for kernels whose waves take words of a bitmap */
int frontier_blocks(struct graph_host *graph, uint32_t *blocks);

/**
 * frontier_tries() - whether trying is worth while: a wave of one lane, which spills no registers around
 * misses, would read half of a list twice where it misses
 */
bool frontier_tries(struct graph_host *graph);

/** frontier_put() - a bitmap gets its first vertex; weir_last_error() */
int frontier_put(struct graph_host *graph, uint64_t bitmap, uint64_t vertex);

/** frontier_swap() - the next level becomes the current one */
void frontier_swap(struct frontier *frontier);

/**
 * frontier_run() - one level: ordinary vertices first, then the pieces of the others
 * @lanes: whole waves, and no more than frontier_blocks() says
 * @vertices: in the level; fewer lanes are launched where they are few
 * @frontier: in @args
 * @counters: receives those of all levels since graph_clear_counters()
 *
 * Return: 0 or a negative errno with a sentence in @error.
 */
int frontier_run(struct graph_host *graph, const struct frontier_kernels *kernels, uint64_t lanes,
		 uint64_t vertices, const void *args, size_t bytes, struct frontier *frontier,
		 struct graph_counters *counters, char *error);

#endif
