/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bfs.h"
#include "load.h"

enum { ERROR_BYTES = 1024, HEADER_BYTES = 16, BLOCK_LANES = 256, LANES_PER_WORKER = 16384 };

struct bfs_search {
	struct weir_context *context;
	struct weir_storage *offsets;
	struct weir_storage *edges[BFS_MOST_STORAGES];
	unsigned edge_count;
	struct weir_cache *cache;
	struct bfs_args args;
	uint64_t hub_bytes;
	uint32_t blocks;
	bool plain;
};

static int fail(char *error, int code, const char *sentence)
{
	snprintf(error, ERROR_BYTES, "%s", sentence);
	return code;
}

/* Pass on what libweir said. */
static int pass(char *error, int code)
{
	return code ? fail(error, code, weir_last_error()) : 0;
}

/* Word 0 of a .bel file: the number of its entries. */
static int read_count(struct weir_storage *storage, uint64_t *count)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	uint64_t block[4096 / sizeof(uint64_t)];
	int code = weir_storage_info(storage, &info);

	if (!code)
		code = weir_storage_read(storage, 0, block, info.block_bytes);
	*count = block[0];
	return code;
}

static int open_storages(struct bfs_search *search, const struct bfs_setup *setup)
{
	struct weir_storage_options options = {
		.size = sizeof(options), .queues = setup->queues, .depth = setup->depth, .read_only = 1
	};
	int code = weir_storage_open(search->context, setup->offsets_uri, &options, &search->offsets);

	for (unsigned i = 0; i < setup->edge_uri_count && !code; i++) {
		code = weir_storage_open(search->context, setup->edge_uris[i], &options, &search->edges[i]);
		search->edge_count += !code;
	}
	return code;
}

/* What the headers say. */
static int read_header(struct bfs_search *search, const struct bfs_setup *setup, struct bfs_graph *graph)
{
	int code = read_count(search->offsets, &graph->vertices);

	if (!code)
		code = read_count(search->edges[0], &graph->edges);
	if (code)
		return code;
	if (graph->vertices)
		graph->vertices--; /* the header counts offsets: one more than vertices */
	if (setup->vertices)
		graph->vertices = setup->vertices;
	search->args.edges = graph->edges;
	return 0;
}

static int open_arrays(struct bfs_search *search, const struct bfs_setup *setup, struct bfs_graph *graph)
{
	struct weir_array_options options = { .size = sizeof(options),
					      .element_bytes = 8,
					      .first_byte = HEADER_BYTES,
					      .stripe_bytes = setup->stripe_bytes };
	int code;

	options.count = graph->vertices + 1;
	code = weir_array_open(search->cache, &search->offsets, 1, &options, &search->args.offsets);
	options.count = graph->edges;
	if (!code)
		code = weir_array_open(search->cache, search->edges, search->edge_count, &options,
				       &search->args.neighbours);
	return code;
}

static int allocate_state(struct bfs_search *search, struct bfs_graph *graph)
{
	struct bfs_args *args = &search->args;
	uint64_t bitmap_bytes = (graph->vertices + 63) / 64 * 8;
	int code;

	args->vertices = graph->vertices;
	args->hub_limit = graph->edges / BFS_HUB_DEGREE + 1;
	search->hub_bytes = args->hub_limit * sizeof(struct bfs_hub);
	graph->state_bytes = graph->vertices * 4 + 2 * bitmap_bytes + search->hub_bytes;
	if ((code = weir_alloc(search->context, graph->vertices * 4, &args->depth)) != 0 ||
	    (code = weir_alloc(search->context, bitmap_bytes, &args->current)) != 0 ||
	    (code = weir_alloc(search->context, bitmap_bytes, &args->next)) != 0 ||
	    (code = weir_alloc(search->context, search->hub_bytes, &args->hub_list)) != 0)
		return code;
	return weir_alloc(search->context, sizeof(struct bfs_counters), &args->counters);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Instead of a cache and arrays: the whole graph in device memory. */
static int load_graph(struct bfs_search *search, const struct bfs_setup *setup, struct bfs_graph *graph)
{
	struct bfs_source offsets = { .storages = &search->offsets, .storage_count = 1, .first_byte = HEADER_BYTES,
				      .bytes = (graph->vertices + 1) * 8 };
	struct bfs_source edges = { .storages = search->edges, .storage_count = search->edge_count,
				    .stripe_bytes = setup->stripe_bytes, .first_byte = HEADER_BYTES,
				    .bytes = graph->edges * 8 };
	double begin = seconds_now();
	int code = bfs_load(search->context, &offsets, &search->args.plain_offsets);

	if (!code)
		code = bfs_load(search->context, &edges, &search->args.plain_neighbours);
	graph->plain_bytes = offsets.bytes + edges.bytes;
	graph->load_seconds = seconds_now() - begin;
	return code;
}

static int open_cache(struct bfs_search *search, const struct bfs_setup *setup, struct bfs_graph *graph)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	int code = weir_cache_create(search->context,
				     WEIR_OPTIONS(cache, .bytes = setup->cache_bytes, .lines = setup->cache_lines,
						  .line_bytes = setup->line_bytes, .policy = setup->policy),
				     &search->cache);

	if (!code)
		code = weir_cache_stats(search->cache, &stats);
	graph->cache_bytes = stats.bytes;
	graph->cache_lines = stats.lines;
	graph->line_bytes = stats.line_bytes;
	graph->policy = setup->policy;
	return code;
}

static int describe(struct bfs_search *search, struct bfs_graph *graph)
{
	struct weir_context_info device = { .size = sizeof(device) };
	struct weir_storage_info info = { .size = sizeof(info) };
	uint32_t enough;
	int code = weir_context_info(search->context, &device);

	if (!code)
		code = weir_storage_info(search->offsets, &info);
	graph->queue_bytes = info.queue_bytes * info.queues;
	graph->queues = info.queues;
	for (unsigned i = 0; i < search->edge_count && !code; i++) {
		code = weir_storage_info(search->edges[i], &info);
		graph->queue_bytes += info.queue_bytes * info.queues;
		graph->queues += info.queues;
	}
	graph->graph_bytes = 2 * HEADER_BYTES + (graph->vertices + 1 + graph->edges) * 8;
	graph->block_bytes = info.block_bytes;
	memcpy(graph->device, device.name, sizeof(graph->device));
	memcpy(graph->path, info.path, sizeof(graph->path));
	/* As many lanes as keep the device busy, no more than there are bitmap words. */
	enough = (uint32_t)((graph->vertices + 63) / 64 / BLOCK_LANES + 1);
	search->blocks = device.workers * LANES_PER_WORKER / BLOCK_LANES;
	if (search->blocks > enough)
		search->blocks = enough;
	return code;
}

int bfs_open(const struct bfs_setup *setup, struct bfs_search **out, struct bfs_graph *graph, char *error)
{
	struct bfs_search *search = calloc(1, sizeof(*search));
	int code;

	*out = NULL;
	memset(graph, 0, sizeof(*graph));
	if (!search)
		return fail(error, -ENOMEM, "no memory for a search");
	search->plain = setup->plain;
	code = weir_context_open(setup->backend,
				 WEIR_OPTIONS(context, .workers = setup->workers, .wave_lanes = setup->wave_lanes,
					      .service_waves = WEIR_SERVICE_WHERE_PULLED),
				 &search->context);
	if (!code)
		code = open_storages(search, setup);
	if (!code)
		code = read_header(search, setup, graph);
	if (!code && setup->plain)
		code = load_graph(search, setup, graph);
	if (!code && !setup->plain)
		code = open_cache(search, setup, graph);
	if (!code && !setup->plain)
		code = open_arrays(search, setup, graph);
	if (!code)
		code = allocate_state(search, graph);
	if (!code)
		code = describe(search, graph);
	if (code) {
		(void)pass(error, code);
		bfs_close(search);
		return code;
	}
	*out = search;
	return 0;
}

static int launch(struct bfs_search *search, const char *kernel)
{
	int code = weir_launch(search->context, kernel, search->blocks, BLOCK_LANES, &search->args,
			       sizeof(search->args));

	return code ? code : weir_sync(search->context);
}

static int start_at(struct bfs_search *search, uint64_t source)
{
	struct bfs_args *args = &search->args;
	uint64_t bit = (uint64_t)1 << (source % 64);
	uint32_t zero = 0;
	struct bfs_counters none;
	int code = launch(search, "bfs_clear");

	memset(&none, 0, sizeof(none));
	args->level = 0;
	if (!code)
		code = weir_copy_in(search->context, args->counters, &none, sizeof(none));
	if (!code)
		code = weir_copy_in(search->context, args->depth + source * 4, &zero, sizeof(zero));
	if (!code)
		code = weir_copy_in(search->context, args->current + source / 64 * 8, &bit, sizeof(bit));
	return code;
}

static int check_counters(const struct bfs_search *search, struct bfs_counters *counters, char *error)
{
	if (weir_load_u64_relaxed_sys(&counters->hubs) > search->args.hub_limit) {
		snprintf(error, ERROR_BYTES,
			 "the offsets overlap: more vertices claim over %d neighbours than %llu edges allow; the .col "
			 "file does not belong to this .dst file",
			 BFS_HUB_DEGREE, (unsigned long long)search->args.edges);
		return -EINVAL;
	}
	if (!weir_load_u32_relaxed_sys(&counters->bad))
		return 0;
	if (counters->bad_kind == BFS_BAD_NEIGHBOUR)
		snprintf(error, ERROR_BYTES,
			 "vertex %llu has an edge to vertex %llu, but the graph has only %llu; the .dst file is damaged "
			 "or belongs to another graph",
			 (unsigned long long)counters->bad_vertex, (unsigned long long)counters->bad_value,
			 (unsigned long long)search->args.vertices);
	else
		snprintf(error, ERROR_BYTES,
			 "the neighbours of vertex %llu reach to edge %llu, but there are %llu or they end before they "
			 "begin; the .col file is damaged",
			 (unsigned long long)counters->bad_vertex, (unsigned long long)counters->bad_value,
			 (unsigned long long)search->args.edges);
	return -EINVAL;
}

/* One level: ordinary vertices first, then the hubs they listed. */
static int run_level(struct bfs_search *search, struct bfs_counters *counters, char *error)
{
	struct bfs_args *args = &search->args;
	uint64_t zero = 0;
	int code = launch(search, search->plain ? "bfs_plain_level" : "bfs_level");

	if (!code)
		code = weir_copy_out(search->context, counters, args->counters, sizeof(*counters));
	if (code)
		return pass(error, code);
	code = check_counters(search, counters, error);
	args->hub_count = weir_load_u64_relaxed_sys(&counters->hubs);
	if (code || !args->hub_count)
		return code;
	code = launch(search, search->plain ? "bfs_plain_hubs" : "bfs_hubs");
	if (!code)
		code = weir_copy_out(search->context, counters, args->counters, sizeof(*counters));
	if (!code)
		code = weir_copy_in(search->context, args->counters + offsetof(struct bfs_counters, hubs), &zero,
				    sizeof(zero));
	return code ? pass(error, code) : check_counters(search, counters, error);
}

static int run_levels(struct bfs_search *search, struct bfs_result *result, char *error)
{
	struct bfs_args *args = &search->args;
	struct bfs_counters counters;
	uint64_t reached = 0;

	do {
		uint64_t swap;
		int code = run_level(search, &counters, error);

		if (code)
			return code;
		reached = weir_load_u64_relaxed_sys(&counters.found) - (result->reached - 1);
		result->reached += reached;
		result->levels++;
		args->level++;
		swap = args->current;
		args->current = args->next;
		args->next = swap;
	} while (reached);
	result->edges = weir_load_u64_relaxed_sys(&counters.edges);
	result->lookups = weir_load_u64_relaxed_sys(&counters.lookups);
	return 0;
}

/* Counters of all storages and the cache; a search's own are differences. */
static int read_totals(struct bfs_search *search, struct bfs_result *totals)
{
	struct weir_cache_stats cache = { .size = sizeof(cache) };
	struct weir_stats stats = { .size = sizeof(stats) };
	int code = search->cache ? weir_cache_stats(search->cache, &cache) : 0;

	if (!code)
		code = weir_stats(search->offsets, &stats);
	totals->misses = cache.misses;
	totals->commands = stats.commands;
	totals->bytes_read = stats.bytes_read;
	for (unsigned i = 0; i < search->edge_count && !code; i++) {
		code = weir_stats(search->edges[i], &stats);
		totals->commands += stats.commands;
		totals->bytes_read += stats.bytes_read;
	}
	return code;
}

int bfs_run(struct bfs_search *search, uint64_t source, struct bfs_result *result, char *error)
{
	struct bfs_result before, after;
	double begin;
	int code;

	*result = (struct bfs_result){ .source = source, .reached = 1 };
	if (source >= search->args.vertices) {
		snprintf(error, ERROR_BYTES, "source vertex %llu does not exist: the graph has %llu, counted from 0",
			 (unsigned long long)source, (unsigned long long)search->args.vertices);
		return -EINVAL;
	}
	if ((code = read_totals(search, &before)) != 0 || (code = start_at(search, source)) != 0)
		return pass(error, code);
	begin = seconds_now();
	code = run_levels(search, result, error);
	result->seconds = seconds_now() - begin;
	if (code)
		return code;
	code = read_totals(search, &after);
	result->misses = after.misses - before.misses;
	result->commands = after.commands - before.commands;
	result->bytes_read = after.bytes_read - before.bytes_read;
	return pass(error, code);
}

int bfs_depths(struct bfs_search *search, uint32_t *depths, char *error)
{
	return pass(error, weir_copy_out(search->context, depths, search->args.depth, search->args.vertices * 4));
}

void bfs_close(struct bfs_search *search)
{
	if (!search)
		return;
	weir_cache_destroy(search->cache);
	for (unsigned i = search->edge_count; i > 0; i--)
		weir_storage_close(search->edges[i - 1]);
	weir_storage_close(search->offsets);
	weir_context_close(search->context);
	free(search);
}
