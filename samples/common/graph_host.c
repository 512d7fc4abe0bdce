/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <format.h> /* weir-graph's */

#include "load.h"

enum { HEADER_BYTES = GRAPH_BEL_HEADER_BYTES, CACHE_SHARE = 8, CACHE_EXTRA_BYTES = 64 << 10 };

const char *graph_check_setup(const struct graph_setup *setup)
{
	if (!setup->path == !(setup->offsets_uri && setup->edge_uris.count))
		return "give either a graph (.bel, .sg or .wsg), or --offsets and --edges";
	if (setup->weighted && !setup->path && !setup->weights_uri)
		return "the edges' weights are needed: give --weights, too";
	return NULL;
}

const char *graph_kernels(const struct graph_host *graph, bool plain)
{
	return plain ? "plain_" : graph->gapbs ? "gapbs_" : "";
}

/** struct graph_files - what the headers of a graph given by its name say */
struct graph_files {
	struct graph_bel bel;
	struct graph_gapbs gapbs;
	bool is_gapbs;
};

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

/* The URI of a file of the set, to free(): any '%' and '?' of its path as escapes. NULL: no memory. */
static char *file_uri(const char *path, const char *keys)
{
	size_t bytes = strlen("file:") + 3 * strlen(path) + strlen(keys) + 2;
	char *uri = malloc(bytes), *to = uri;

	if (!uri)
		return NULL;
	to += sprintf(to, "file:");
	for (; *path; path++)
		to += sprintf(to, *path == '%' ? "%%25" : *path == '?' ? "%%3F" : "%c", *path);
	sprintf(to, "%s%s", *keys ? "?" : "", keys);
	return uri;
}

/* A file of the set, or the URI given. */
static int open_storage(struct graph_host *graph, const struct graph_setup *setup, const char *uri,
			const char *path, struct weir_storage **storage)
{
	struct weir_storage_options options = { .size = sizeof(options),
						.queues = setup->device.queues,
						.depth = setup->device.depth,
						.read_only = 1 };
	const char *keys = setup->storage_keys ? setup->storage_keys : "";
	char *own = setup->path ? file_uri(path, keys) : NULL;
	int code;

	if (setup->path && !own)
		return -ENOMEM;
	code = weir_storage_open(graph->context, own ? own : uri, &options, storage);
	free(own);
	return code;
}

static int open_storages(struct graph_host *graph, const struct graph_setup *setup,
			 const struct graph_files *files)
{
	unsigned count = setup->path ? 1 : setup->edge_uris.count;
	const struct graph_bel *bel = &files->bel;
	int code;

	graph->gapbs = files->is_gapbs;
	graph->offsets_at = files->is_gapbs ? files->gapbs.offsets_at : HEADER_BYTES;
	if (files->is_gapbs)
		return open_storage(graph, setup, NULL, setup->path, &graph->offsets);
	code = open_storage(graph, setup, setup->offsets_uri, bel->col_path, &graph->offsets);
	for (unsigned i = 0; i < count && !code; i++) {
		code = open_storage(graph, setup, setup->edge_uris.item[i], bel->dst_path, &graph->edges[i]);
		graph->edge_count += !code;
	}
	if (!code && setup->weighted)
		code = open_storage(graph, setup, setup->weights_uri, bel->val_path, &graph->weights);
	return code;
}

static int take_gapbs_header(struct graph_host *graph, const struct graph_gapbs *gapbs,
			     struct graph_info *info)
{
	graph->data.vertices = info->vertices = gapbs->vertices;
	graph->data.edges = info->edges = gapbs->edges;
	info->graph_bytes = gapbs->edges_at + gapbs->edges * gapbs->edge_bytes;
	return 0;
}

/* What the headers say. */
static int read_header(struct graph_host *graph, const struct graph_setup *setup,
		       const struct graph_files *files, struct graph_info *info)
{
	int code;

	if (files->is_gapbs)
		return take_gapbs_header(graph, &files->gapbs, info);
	code = read_count(graph->offsets, &info->vertices);
	if (!code)
		code = read_count(graph->edges[0], &info->edges);
	if (code)
		return code;
	if (info->vertices)
		info->vertices--; /* the header counts offsets: one more than vertices */
	if (setup->path)
		info->vertices = files->bel.vertices; /* known even where the header does not say it */
	graph->data.vertices = info->vertices;
	graph->data.edges = info->edges;
	info->graph_bytes = 2 * HEADER_BYTES + (info->vertices + 1 + info->edges) * 8;
	if (setup->weighted)
		info->graph_bytes += HEADER_BYTES + info->edges * 4;
	return 0;
}

static int open_cache(struct graph_host *graph, struct graph_setup *setup, struct graph_info *info)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	int code;

	if (!setup->cache.bytes && !setup->cache.lines)
		setup->cache.bytes = (graph->gapbs ? info->graph_bytes : (info->vertices + info->edges) * 8) /
					     CACHE_SHARE +
				     CACHE_EXTRA_BYTES;
	code = weir_cache_create(graph->context,
				 WEIR_OPTIONS(cache, .bytes = setup->cache.bytes, .lines = setup->cache.lines,
					      .line_bytes = setup->cache.line_bytes,
					      .policy = setup->cache.policy, .tier_bytes = setup->cache.tier),
				 &graph->cache);
	if (!code)
		code = weir_cache_stats(graph->cache, &stats);
	info->policy = setup->cache.policy;
	info->cache_bytes = stats.bytes;
	info->cache_lines = stats.lines;
	info->line_bytes = stats.line_bytes;
	return code;
}

static int open_arrays(struct graph_host *graph, const struct graph_setup *setup,
		       const struct graph_info *info)
{
	struct weir_array_options options = { .size = sizeof(options),
					      .element_bytes = 8,
					      .first_byte = HEADER_BYTES,
					      .stripe_bytes = setup->stripe_bytes };
	int code;

	options.count = info->vertices + 1;
	code = weir_array_open(graph->cache, &graph->offsets, 1, &options, &graph->data.offsets);
	options.count = info->edges;
	if (!code)
		code = weir_array_open(graph->cache, graph->edges, graph->edge_count, &options,
				       &graph->data.neighbours);
	options.element_bytes = 4;
	if (!code && setup->weighted)
		code = weir_array_open(graph->cache, &graph->weights, 1, &options, &graph->data.weights);
	return code;
}

/* Offsets and edges of one file, where they lie. */
static int open_gapbs_arrays(struct graph_host *graph, const struct graph_gapbs *gapbs)
{
	struct weir_array_options options = { .size = sizeof(options),
					      .element_bytes = 8,
					      .first_byte = gapbs->offsets_at,
					      .count = gapbs->vertices + 1 };
	int code =
		weir_unaligned_open(graph->cache, &graph->offsets, 1, &options, &graph->data.gapbs_offsets);

	options.element_bytes = gapbs->edge_bytes;
	options.first_byte = gapbs->edges_at;
	options.count = gapbs->edges;
	return code ? code
		    : weir_unaligned_open(graph->cache, &graph->offsets, 1, &options,
					  &graph->data.gapbs_edges);
}

static int load(struct graph_host *graph, struct weir_storage *const *storages, unsigned count,
		uint64_t stripe_bytes, uint64_t bytes, uint64_t *address)
{
	struct sample_source source = { .storages = storages,
					.storage_count = count,
					.stripe_bytes = stripe_bytes,
					.first_byte = HEADER_BYTES,
					.bytes = bytes };

	return sample_load(graph->context, &source, address);
}

/* The whole graph into device memory. */
static int load_graph(struct graph_host *graph, const struct graph_setup *setup, struct graph_info *info)
{
	struct graph_data *data = &graph->data;
	double begin = sample_now();
	int code = load(graph, &graph->offsets, 1, 0, (info->vertices + 1) * 8, &data->plain_offsets);

	if (!code)
		code = load(graph, graph->edges, graph->edge_count, setup->stripe_bytes, info->edges * 8,
			    &data->plain_neighbours);
	if (!code && setup->weighted)
		code = load(graph, &graph->weights, 1, 0, info->edges * 4, &data->plain_weights);
	info->plain_bytes = (info->vertices + 1 + info->edges) * 8 + (setup->weighted ? info->edges * 4 : 0);
	info->load_seconds = sample_now() - begin;
	return code;
}

/* The same of one file: its neighbours become words. */
static int load_gapbs(struct graph_host *graph, const struct graph_setup *setup,
		      const struct graph_gapbs *gapbs, struct graph_info *info)
{
	struct graph_data *data = &graph->data;
	struct sample_source offsets = { .storages = &graph->offsets,
					 .storage_count = 1,
					 .first_byte = gapbs->offsets_at,
					 .bytes = (gapbs->vertices + 1) * 8 };
	struct sample_source edges = { .storages = &graph->offsets,
				       .storage_count = 1,
				       .first_byte = gapbs->edges_at,
				       .bytes = gapbs->edges * gapbs->edge_bytes,
				       .element_bytes = gapbs->edge_bytes,
				       .to_bytes = 8 };
	double begin = sample_now();
	int code = sample_load(graph->context, &offsets, &data->plain_offsets);

	if (!code)
		code = sample_load(graph->context, &edges, &data->plain_neighbours);
	edges.part_byte = edges.to_bytes = 4;
	if (!code && setup->weighted)
		code = sample_load(graph->context, &edges, &data->plain_weights);
	info->plain_bytes = (info->vertices + 1 + info->edges) * 8 + (setup->weighted ? info->edges * 4 : 0);
	info->load_seconds = sample_now() - begin;
	return code;
}

static int count_queues(struct weir_storage *storage, struct graph_info *info)
{
	struct weir_storage_info one = { .size = sizeof(one) };
	int code = storage ? weir_storage_info(storage, &one) : 0;

	info->queue_bytes += one.queue_bytes * one.queues;
	info->queues += one.queues;
	if (storage) {
		info->block_bytes = one.block_bytes;
		memcpy(info->path, one.path, sizeof(info->path));
	}
	return code;
}

static int describe(struct graph_host *graph, struct graph_info *info)
{
	struct weir_context_info device = { .size = sizeof(device) };
	int code = weir_context_info(graph->context, &device);

	memcpy(info->device, device.name, sizeof(info->device));
	if (!code)
		code = count_queues(graph->weights, info);
	if (!code)
		code = count_queues(graph->offsets, info);
	for (unsigned i = 0; i < graph->edge_count && !code; i++)
		code = count_queues(graph->edges[i], info);
	return code ? code : weir_alloc(graph->context, sizeof(struct graph_counters), &graph->data.counters);
}

/* .bel, .sg or .wsg? Text has no rows that lanes could find by an index. */
static int choose_format(const char *path, bool *is_gapbs, char *error)
{
	enum graph_format format = GRAPH_BEL;
	struct graph_error unknown;

	(void)graph_format_of(path, &format, &unknown); /* of a name without one the .bel set complains */
	*is_gapbs = format == GRAPH_SG || format == GRAPH_WSG;
	if (format == GRAPH_BEL || *is_gapbs)
		return 0;
	return sample_fail(error, -EINVAL,
			   "%.400s is text, in which lanes find no edge by its number: weir-graph convert "
			   "%.400s GRAPH.bel makes a graph of it",
			   path, path);
}

static int open_files(const struct graph_setup *setup, struct graph_files *files, char *error)
{
	char sentence[GRAPH_ERROR_BYTES];
	bool weighted;
	int code;

	memset(files, 0, sizeof(*files));
	if (!setup->path)
		return 0;
	if ((code = choose_format(setup->path, &files->is_gapbs, error)) != 0)
		return code;
	code = files->is_gapbs ? graph_gapbs_open(setup->path, &files->gapbs, sentence, sizeof(sentence))
			       : graph_bel_open(setup->path, &files->bel, sentence, sizeof(sentence));
	if (code)
		return sample_fail(error, -EINVAL, "%s", sentence);
	weighted = files->is_gapbs ? files->gapbs.weighted : files->bel.weighted;
	if (setup->weighted && !weighted)
		return sample_fail(error, -EINVAL,
				   "%.800s has no weights, which are needed here: make the graph with "
				   "weir-graph generate --weights, or %s",
				   setup->path,
				   files->is_gapbs ? "take the suite's .wsg of it"
						   : "put the .val file next to it");
	return 0;
}

static int open_all(struct graph_host *graph, struct graph_setup *setup, const struct graph_files *files,
		    struct graph_info *info)
{
	int code = sample_open(&setup->device, &graph->context);

	if (!code)
		code = open_storages(graph, setup, files);
	if (!code)
		code = read_header(graph, setup, files, info);
	if (!code && setup->plain)
		code = graph->gapbs ? load_gapbs(graph, setup, &files->gapbs, info)
				    : load_graph(graph, setup, info);
	if (!code && setup->stored)
		code = open_cache(graph, setup, info);
	if (!code && setup->stored)
		code = graph->gapbs ? open_gapbs_arrays(graph, &files->gapbs)
				    : open_arrays(graph, setup, info);
	return code ? code : describe(graph, info);
}

int graph_open(struct graph_setup *setup, struct graph_host **out, struct graph_info *info, char *error)
{
	struct graph_host *graph = calloc(1, sizeof(*graph));
	struct graph_files files;
	int code = graph ? open_files(setup, &files, error)
			 : sample_fail(error, -ENOMEM, "no memory for a graph");

	*out = NULL;
	memset(info, 0, sizeof(*info));
	if (!code)
		code = sample_pass(error, open_all(graph, setup, &files, info));
	if (code)
		(void)graph_close(graph, code, error);
	else
		*out = graph;
	return code;
}

int graph_close(struct graph_host *graph, int code, char *error)
{
	code = graph ? sample_close(graph->context, code, error) : code;
	free(graph);
	return code;
}

static int add_totals(struct weir_storage *storage, struct graph_totals *totals)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	int code = storage ? weir_stats(storage, &stats) : 0;

	totals->commands += stats.commands;
	totals->bytes_read += stats.bytes_read;
	return code;
}

int graph_read_totals(struct graph_host *graph, struct graph_totals *totals)
{
	struct weir_cache_stats cache = { .size = sizeof(cache) };
	int code = graph->cache ? weir_cache_stats(graph->cache, &cache) : 0;

	*totals = (struct graph_totals){ .misses = cache.misses };
	if (!code)
		code = add_totals(graph->offsets, totals);
	for (unsigned i = 0; i < graph->edge_count && !code; i++)
		code = add_totals(graph->edges[i], totals);
	return code ? code : add_totals(graph->weights, totals);
}

struct graph_totals graph_difference(struct graph_totals after, struct graph_totals before)
{
	after.misses -= before.misses;
	after.commands -= before.commands;
	after.bytes_read -= before.bytes_read;
	return after;
}

int graph_clear_counters(struct graph_host *graph, char *error)
{
	struct graph_counters none;

	memset(&none, 0, sizeof(none));
	return sample_pass(error,
			   weir_copy_to_device(graph->context, graph->data.counters, &none, sizeof(none)));
}

static int refuse(const struct graph_host *graph, const struct graph_counters *counters, char *error)
{
	const struct graph_data *data = &graph->data;

	if (counters->bad_kind == GRAPH_BAD_WEIGHT)
		return sample_fail(error, -EINVAL,
				   "edge %llu has the weight %lld: negative weights are not supported, so "
				   "shift them first",
				   (unsigned long long)counters->bad_vertex,
				   (long long)counters->bad_value - (1LL << 32));
	if (counters->bad_kind == GRAPH_BAD_NEIGHBOUR)
		return sample_fail(error, -EINVAL,
				   "vertex %llu has an edge to vertex %llu, but the graph has only %llu; the "
				   "%sfile is "
				   "damaged or belongs to another graph",
				   (unsigned long long)counters->bad_vertex,
				   (unsigned long long)counters->bad_value,
				   (unsigned long long)data->vertices, graph->gapbs ? "" : ".dst ");
	return sample_fail(error, -EINVAL,
			   "the neighbours of vertex %llu reach to edge %llu, but there are %llu or they end "
			   "before they "
			   "begin; the %sfile is damaged",
			   (unsigned long long)counters->bad_vertex, (unsigned long long)counters->bad_value,
			   (unsigned long long)data->edges, graph->gapbs ? "" : ".col ");
}

int graph_read_counters(struct graph_host *graph, struct graph_counters *counters, char *error)
{
	int code = weir_copy_from_device(graph->context, counters, graph->data.counters, sizeof(*counters));

	if (code)
		return sample_pass(error, code);
	return weir_load_u32_relaxed_sys(&counters->bad) ? refuse(graph, counters, error) : 0;
}

const char *graph_reference_path(const struct graph_setup *setup, char *error)
{
	const char *path = setup->reference ? setup->reference : setup->path;

	if (!path)
		sample_fail(error, -EINVAL,
			    "--verify needs --reference GRAPH.bel when the graph is given by URIs");
	return path;
}

void graph_print(const struct graph_info *info)
{
	printf("graph     %llu vertices, %llu edges, %.1f MiB on storage\n",
	       (unsigned long long)info->vertices, (unsigned long long)info->edges,
	       sample_megabytes(info->graph_bytes));
	printf("device    %s\n", info->device);
	printf("storage   %s, %u-byte blocks, %u queue pairs (%.0f KiB)\n", info->path, info->block_bytes,
	       info->queues, (double)info->queue_bytes / 1024);
	if (info->plain_bytes)
		printf("plain     %.1f MiB: the whole graph in device memory, loaded in %.3f s\n",
		       sample_megabytes(info->plain_bytes), info->load_seconds);
	if (info->cache_bytes)
		printf("cache     %.1f MiB: %llu lines of %llu bytes, %s, %.1f%% of the graph\n",
		       sample_megabytes(info->cache_bytes), (unsigned long long)info->cache_lines,
		       (unsigned long long)info->line_bytes, weir_policy_name(info->policy),
		       100.0 * (double)info->cache_bytes / (double)info->graph_bytes);
}

void graph_set_json(json_t *root, const struct graph_info *info)
{
	sample_set_text(root, "device", info->device);
	sample_set_text(root, "path", info->path);
	sample_set_count(root, "vertices", info->vertices);
	sample_set_count(root, "edges", info->edges);
	sample_set_count(root, "graph_bytes", info->graph_bytes);
	sample_set_count(root, "cache_bytes", info->cache_bytes);
	sample_set_count(root, "cache_lines", info->cache_lines);
	sample_set_count(root, "line_bytes", info->line_bytes);
	if (info->cache_bytes)
		sample_set_text(root, "policy", weir_policy_name(info->policy));
	sample_set_count(root, "queue_bytes", info->queue_bytes);
	sample_set_count(root, "queues", info->queues);
	sample_set_count(root, "block_bytes", info->block_bytes);
}
