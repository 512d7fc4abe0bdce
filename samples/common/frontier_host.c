/* SPDX-License-Identifier: BSD-3-Clause */
#include "frontier_host.h"

#include <errno.h>
#include <stddef.h>

int frontier_alloc(struct graph_host *graph, struct frontier *frontier, uint64_t *bytes)
{
	uint64_t bitmap_bytes = (graph->data.vertices + 63) / 64 * 8, piece_bytes;
	int code;

	/* A hub's last piece may be short, but it has another one beside it: half of the pieces' room is
	 * used. */
	frontier->piece_limit = graph->data.edges / FRONTIER_PIECE * 2 + 1;
	piece_bytes = frontier->piece_limit * sizeof(struct frontier_piece);
	*bytes += 2 * bitmap_bytes + piece_bytes;
	if ((code = weir_alloc(graph->context, bitmap_bytes, &frontier->current)) != 0 ||
	    (code = weir_alloc(graph->context, bitmap_bytes, &frontier->next)) != 0)
		return code;
	return weir_alloc(graph->context, piece_bytes, &frontier->pieces);
}

int frontier_blocks(struct graph_host *graph, uint32_t *blocks)
{
	struct weir_context_info info = { .size = sizeof(info) };
	int code = weir_context_info(graph->context, &info);

	graph->wave_lanes = info.wave_lanes;
	return code ? code
		    : sample_blocks(graph->context, (graph->data.vertices + 63) / 64 * info.wave_lanes,
				    blocks);
}

/* A lane for each vertex of a level, in whole waves, and no more than @most: others would only look for words
 * that have none. */
static uint64_t enough_lanes(const struct graph_host *graph, uint64_t most, uint64_t vertices)
{
	uint64_t wave = graph->wave_lanes, enough = (vertices + wave - 1) / wave * wave;

	return enough < most ? enough : most;
}

bool frontier_tries(struct graph_host *graph)
{
	struct weir_context_info info = { .size = sizeof(info) };

	return weir_context_info(graph->context, &info) == 0 && info.wave_lanes > 1;
}

int frontier_put(struct graph_host *graph, uint64_t bitmap, uint64_t vertex)
{
	uint64_t bit = (uint64_t)1 << (vertex % 64);

	return weir_copy_to_device(graph->context, bitmap + vertex / 64 * 8, &bit, sizeof(bit));
}

void frontier_swap(struct frontier *frontier)
{
	uint64_t swap = frontier->current;

	frontier->current = frontier->next;
	frontier->next = swap;
}

static int read_counters(struct graph_host *graph, const struct frontier *frontier,
			 struct graph_counters *counters, char *error)
{
	int code = graph_read_counters(graph, counters, error);

	if (!code && weir_load_u64_relaxed_sys(&counters->pieces) > frontier->piece_limit)
		code = sample_fail(error, -EINVAL,
				   "the offsets overlap: vertices with over %d neighbours claim more of them "
				   "than there are "
				   "edges, %llu; %s",
				   FRONTIER_PIECE, (unsigned long long)graph->data.edges,
				   graph->gapbs ? "the file is damaged"
						: "the .col file does not belong to this .dst file");
	return code;
}

/** struct walk - what frontier_run() was given */
struct walk {
	struct graph_host *graph;
	const void *args;
	size_t bytes;
	struct frontier *frontier;
	struct graph_counters *counters;
	char *error;
};

static int walk_once(const struct walk *walk, const char *kernel, uint64_t lanes)
{
	int code = sample_run_lanes(walk->graph->context, kernel, lanes, walk->args, walk->bytes);

	walk->graph->lanes_launched += lanes;
	return code ? sample_pass(walk->error, code)
		    : read_counters(walk->graph, walk->frontier, walk->counters, walk->error);
}

static int clear_counter(const struct walk *walk, size_t offset)
{
	uint64_t none = 0;

	return sample_pass(walk->error,
			   weir_copy_to_device(walk->graph->context, walk->graph->data.counters + offset,
					       &none, sizeof(none)));
}

/* @tries first, unless it is NULL, and @kernel if that leaves anything. */
static int walk_both(const struct walk *walk, const char *tries, const char *kernel, uint64_t lanes)
{
	int code = tries ? walk_once(walk, tries, lanes) : 0;

	if (code || (tries && !weir_load_u64_relaxed_sys(&walk->counters->missed)))
		return code;
	if (tries)
		code = clear_counter(walk, offsetof(struct graph_counters, missed));
	return code ? code : walk_once(walk, kernel, lanes);
}

int frontier_run(struct graph_host *graph, const struct frontier_kernels *kernels, uint64_t lanes,
		 uint64_t vertices, const void *args, size_t bytes, struct frontier *frontier,
		 struct graph_counters *counters, char *error)
{
	struct walk walk = { graph, args, bytes, frontier, counters, error };
	int code = walk_both(&walk, kernels->try_level, kernels->level, enough_lanes(graph, lanes, vertices));

	if (code)
		return code;
	frontier->piece_count = weir_load_u64_relaxed_sys(&counters->pieces);
	if (!frontier->piece_count)
		return 0;
	code = walk_both(&walk, kernels->try_hubs, kernels->hubs, lanes);
	return code ? code : clear_counter(&walk, offsetof(struct graph_counters, pieces));
}
