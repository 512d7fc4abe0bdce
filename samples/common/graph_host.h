/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_host.h: the host's side of a graph: its storages, its cache, its copy in plain
 * memory, and the sentences about what kernels found wrong with it.
 */
#ifndef SAMPLE_GRAPH_HOST_H
#define SAMPLE_GRAPH_HOST_H

#include <graph.h> /* weir-graph's */

#include "device.h"
#include "graph_data.h"

/**
 * struct graph_setup - where the graph is and what to work on it with
 * @device: what on
 * @cache: what through; with @stored
 * @path: a .bel set, a .sg or a .wsg file; NULL: the URIs are given
 * @storage_keys: URI keys for its files
 * @offsets_uri: storage of the .col file
 * @edge_uris: storages of the .dst file, several if it is striped
 * @weights_uri: storage of the .val file
 * @stripe_bytes: stripe unit of the .dst file
 * @reference: .bel set to verify with, where URIs are given
 * @weighted: the weights are wanted
 * @stored: read it from storage, through a cache
 * @plain: copy it into device memory
 */
struct graph_setup {
	struct sample_device device;
	struct sample_cache cache;
	const char *path;
	const char *storage_keys;
	const char *offsets_uri;
	struct tool_names edge_uris;
	const char *weights_uri;
	uint64_t stripe_bytes;
	const char *reference;
	bool weighted;
	bool stored;
	bool plain;
};

/** GRAPH_OPTIONS() - rows of a table of options, besides those of device and cache */
#define GRAPH_OPTIONS(setup)                                                                                 \
	{ .name = "storage",                                                                                 \
	  .value = "KEYS",                                                                                   \
	  .kind = TOOL_TEXT,                                                                                 \
	  .to = &(setup).storage_keys,                                                                       \
	  .help = "URI keys for the graph's files, such as direct=on&block=512" },                           \
		{ .name = "offsets",                                                                         \
		  .value = "URI",                                                                            \
		  .kind = TOOL_TEXT,                                                                         \
		  .to = &(setup).offsets_uri,                                                                \
		  .help = "storage that holds the .col file" },                                              \
		{ .name = "edges",                                                                           \
		  .value = "URI[,URI...]",                                                                   \
		  .kind = TOOL_LIST,                                                                         \
		  .to = &(setup).edge_uris,                                                                  \
		  .help = "storages that hold the .dst file; several: striped" },                            \
		{ .name = "stripe",                                                                          \
		  .value = "BYTES",                                                                          \
		  .kind = TOOL_BYTES,                                                                        \
		  .to = &(setup).stripe_bytes,                                                               \
		  .help = "stripe unit (default 64K)" },                                                     \
	{                                                                                                    \
		.name = "reference", .value = "GRAPH.bel", .kind = TOOL_TEXT, .to = &(setup).reference,      \
		.help = "what --verify compares with when URIs are given"                                    \
	}

/** GRAPH_WEIGHTS_OPTION() - one more, for weighted graphs */
#define GRAPH_WEIGHTS_OPTION(setup)                                                                          \
	{                                                                                                    \
		.name = "weights", .value = "URI", .kind = TOOL_TEXT, .to = &(setup).weights_uri,            \
		.help = "storage that holds the .val file"                                                   \
	}

/**
 * struct graph_info - what was opened
 * @vertices, @edges: of the graph
 * @graph_bytes: on storage
 * @cache_bytes, @cache_lines, @line_bytes: 0 if there is no cache
 * @policy: of the cache
 * @plain_bytes: the graph in device memory; 0 if it is not there
 * @load_seconds: what copying it there took
 * @queue_bytes, @queues: all queue pairs
 * @block_bytes: of the storage
 */
struct graph_info {
	uint64_t vertices;
	uint64_t edges;
	uint64_t graph_bytes;
	uint64_t cache_bytes;
	uint64_t cache_lines;
	enum weir_policy policy;
	uint64_t line_bytes;
	uint64_t plain_bytes;
	double load_seconds;
	uint64_t queue_bytes;
	uint32_t queues;
	uint32_t block_bytes;
	char device[128];
	char path[128];
};

/** struct graph_totals - counters of all storages and the cache; a run's own are differences */
struct graph_totals {
	uint64_t misses;
	uint64_t commands;
	uint64_t bytes_read;
};

/**
 * struct graph_host - an open graph
 * @context: the device
 * @data: for kernels
 * @extra: NULL, or a storage of the sample's own, which goes when the cache is gone
 * @gapbs: the whole graph is a .sg or .wsg file, on @offsets
 * @offsets_at: byte where the offsets begin
 * The rest is graph_host.c's.
 */
struct graph_host {
	struct weir_context *context;
	struct graph_data data;
	struct weir_storage *extra;
	bool gapbs;
	uint64_t offsets_at;
	struct weir_storage *offsets;
	struct weir_storage *edges[TOOL_MOST_NAMES];
	unsigned edge_count;
	struct weir_storage *weights;
	struct weir_cache *cache;
	uint32_t wave_lanes;     /* of the device; set by frontier_blocks() */
	uint64_t lanes_launched; /* by frontier_run(), all together */
};

/**
 * graph_check_setup() - is the graph given, once
 *
 * Return: NULL, or the sentence about usage.
 */
const char *graph_check_setup(const struct graph_setup *setup);

/**
 * graph_open() - open device, storages and arrays as @setup says
 * @setup: its cache gets a default size if it has none: an eighth of the graph
 * @graph: receives it; graph_close() it
 * @info: receives what there is
 * @error: a sentence on failure
 *
 * Return: 0 or a negative errno.
 */
int graph_open(struct graph_setup *setup, struct graph_host **graph, struct graph_info *info, char *error);

/** graph_close() - its context and all in it, as sample_close(); NULL is fine */
int graph_close(struct graph_host *graph, int code, char *error);

/** graph_kernels() - the part of a kernel's name, behind the sample's, that says where it finds the graph */
const char *graph_kernels(const struct graph_host *graph, bool plain);

/** graph_read_totals() - 0 or a negative errno with weir_last_error() */
int graph_read_totals(struct graph_host *graph, struct graph_totals *totals);

/** graph_difference() - @after without @before */
struct graph_totals graph_difference(struct graph_totals after, struct graph_totals before);

/** graph_clear_counters(), graph_read_counters() - 0 or a negative errno with a sentence */
int graph_clear_counters(struct graph_host *graph, char *error);
/** graph_read_counters() - also refuses what kernels found wrong with the graph */
int graph_read_counters(struct graph_host *graph, struct graph_counters *counters, char *error);

/** graph_reference_path() - the .bel set to verify with, or NULL with a sentence */
const char *graph_reference_path(const struct graph_setup *setup, char *error);

/** graph_print() - the lines about graph, device, storage and cache */
void graph_print(const struct graph_info *info);

/** graph_set_json() - the same figures */
void graph_set_json(json_t *root, const struct graph_info *info);

#endif
