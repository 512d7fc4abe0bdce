/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <errno.h>
#include <stdlib.h>

#include "../common/frontier_host.h"
#include "bfs.h"

struct bfs_search {
	struct graph_host *graph;
	struct bfs_args args;
	struct frontier_kernels kernels;
	uint32_t blocks;
};

static int allocate(struct bfs_search *search, uint64_t *state_bytes)
{
	struct graph_host *graph = search->graph;
	int code = weir_alloc(graph->context, graph->data.vertices * 4, &search->args.depth);

	*state_bytes = graph->data.vertices * 4;
	if (!code)
		code = frontier_alloc(graph, &search->args.frontier, state_bytes);
	if (!code)
		code = frontier_blocks(graph, &search->blocks);
	search->args.graph = graph->data;
	return code;
}

static struct frontier_kernels kernels_of(struct bfs_search *search, bool plain)
{
	bool gapbs = search->graph->gapbs;
	struct frontier_kernels kernels = { .level = gapbs ? "bfs_gapbs_level" : "bfs_level",
					    .hubs = gapbs ? "bfs_gapbs_hubs" : "bfs_hubs" };

	if (plain)
		return (struct frontier_kernels){ .level = "bfs_plain_level", .hubs = "bfs_plain_hubs" };
	if (frontier_tries(search->graph)) {
		kernels.try_level = gapbs ? "bfs_gapbs_try_level" : "bfs_try_level";
		kernels.try_hubs = gapbs ? "bfs_gapbs_try_hubs" : "bfs_try_hubs";
	}
	return kernels;
}

int bfs_open(struct graph_setup *setup, struct bfs_search **out, struct graph_info *info,
	     uint64_t *state_bytes, char *error)
{
	struct bfs_search *search = calloc(1, sizeof(*search));
	int code = search ? graph_open(setup, &search->graph, info, error)
			  : sample_fail(error, -ENOMEM, "no memory for a search");

	*out = NULL;
	if (!code) {
		search->kernels = kernels_of(search, setup->plain);
		code = sample_pass(error, allocate(search, state_bytes));
	}
	if (code)
		code = bfs_close(search, code, error);
	else
		*out = search;
	return code;
}

static int start_at(struct bfs_search *search, uint64_t source)
{
	struct weir_context *context = search->graph->context;
	struct bfs_args *args = &search->args;
	uint32_t zero = 0;
	int code = sample_run(context, "bfs_clear", search->blocks, args, sizeof(*args));

	args->level = 0;
	if (!code)
		code = weir_copy_to_device(context, args->depth + source * 4, &zero, sizeof(zero));
	return code ? code : frontier_put(search->graph, args->frontier.current, source);
}

static int run_levels(struct bfs_search *search, struct bfs_result *result, char *error)
{
	struct bfs_args *args = &search->args;
	struct graph_counters counters;
	uint64_t reached = 1; /* the source */

	do {
		int code = frontier_run(search->graph, &search->kernels,
					(uint64_t)search->blocks * SAMPLE_BLOCK_LANES, reached, args,
					sizeof(*args), &args->frontier, &counters, error);

		if (code)
			return code;
		reached = weir_load_u64_relaxed_sys(&counters.found) - (result->reached - 1);
		result->reached += reached;
		result->levels++;
		args->level++;
		frontier_swap(&args->frontier);
	} while (reached);
	result->edges = weir_load_u64_relaxed_sys(&counters.edges);
	result->lookups = weir_load_u64_relaxed_sys(&counters.lookups);
	return 0;
}

int bfs_run(struct bfs_search *search, uint64_t source, struct bfs_result *result, char *error)
{
	struct graph_totals before, after;
	double begin;
	int code;

	*result = (struct bfs_result){ .source = source, .reached = 1 };
	if (source >= search->args.graph.vertices)
		return sample_fail(error, -EINVAL,
				   "source vertex %llu does not exist: the graph has %llu, counted from 0",
				   (unsigned long long)source,
				   (unsigned long long)search->args.graph.vertices);
	code = sample_pass(error, graph_read_totals(search->graph, &before));
	if (!code)
		code = graph_clear_counters(search->graph, error);
	if (!code)
		code = sample_pass(error, start_at(search, source));
	if (code)
		return code;
	begin = sample_now();
	code = run_levels(search, result, error);
	result->seconds = sample_now() - begin;
	if (code)
		return code;
	code = sample_pass(error, graph_read_totals(search->graph, &after));
	after = graph_difference(after, before);
	result->misses = after.misses;
	result->commands = after.commands;
	result->bytes_read = after.bytes_read;
	return code;
}

int bfs_depths(struct bfs_search *search, uint32_t *depths, char *error)
{
	return sample_pass(error, weir_copy_from_device(search->graph->context, depths, search->args.depth,
							search->args.graph.vertices * 4));
}

int bfs_close(struct bfs_search *search, int code, char *error)
{
	code = search ? graph_close(search->graph, code, error) : code;
	free(search);
	return code;
}
