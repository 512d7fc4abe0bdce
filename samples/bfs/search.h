/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.h: a graph on storages, and searches over it.
 *
 * Owns: the host side of BFS; knows nothing of command lines.
 */
#ifndef BFS_SEARCH_H
#define BFS_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

enum { BFS_MOST_STORAGES = 64 };

/**
 * struct bfs_setup - where the graph is and what to search it with
 * @backend: context name
 * @offsets_uri: storage of the .col file
 * @edge_uris: storages of the .dst file, several if it is striped
 * @edge_uri_count: how many
 * @stripe_bytes: stripe unit
 * @vertices: 0, or the number of vertices where the file's header does not say it
 * @plain: copy the graph into device memory and search it there, without a cache
 * @cache_bytes, @cache_lines: size of the cache, one of the two; not with @plain
 * @line_bytes: size of a line; 0: 4096
 * @policy: which line makes room
 * @workers, @wave_lanes: of the cpu backend
 * @queues, @depth: queue pairs per storage
 */
struct bfs_setup {
	const char *backend;
	const char *offsets_uri;
	const char *edge_uris[BFS_MOST_STORAGES];
	unsigned edge_uri_count;
	uint64_t stripe_bytes;
	uint64_t vertices;
	bool plain;
	uint64_t cache_bytes;
	uint64_t cache_lines;
	uint32_t line_bytes;
	enum weir_policy policy;
	uint32_t workers;
	uint32_t wave_lanes;
	uint32_t queues;
	uint32_t depth;
};

struct bfs_search;

/** struct bfs_result - one search */
struct bfs_result {
	uint64_t source;
	uint64_t reached;      /* vertices, the source included */
	uint64_t edges;        /* looked at */
	uint64_t lookups;      /* reads of up to WEIR_RUN elements, through the cache if there is one */
	uint64_t misses;       /* of these, lines fetched from storage */
	uint64_t commands;     /* NVMe commands */
	uint64_t bytes_read;   /* from the storages */
	uint32_t levels;
	double seconds;
};

/**
 * struct bfs_graph - what was opened
 * @cache_bytes: 0 if there is no cache
 * @policy: of the cache
 * @plain_bytes: the graph in device memory, if there is no cache
 * @load_seconds: what copying it there took
 * @state_bytes: device memory for depths and frontiers
 * @queue_bytes: memory of all queue pairs
 */
struct bfs_graph {
	uint64_t vertices;
	uint64_t edges;
	uint64_t graph_bytes;
	uint64_t cache_bytes;
	uint64_t cache_lines;
	uint64_t line_bytes;
	enum weir_policy policy;
	uint64_t plain_bytes;
	double load_seconds;
	uint64_t state_bytes;
	uint64_t queue_bytes;
	uint32_t queues;
	uint32_t block_bytes;
	char device[128];
	char path[128];
};

/* 0 or a negative errno; @error then holds a sentence (1024 bytes at least). */
int bfs_open(const struct bfs_setup *setup, struct bfs_search **out, struct bfs_graph *graph, char *error);
int bfs_run(struct bfs_search *search, uint64_t source, struct bfs_result *result, char *error);
/** bfs_depths() - copy the latest search's depths out; @depths has room for all vertices */
int bfs_depths(struct bfs_search *search, uint32_t *depths, char *error);
void bfs_close(struct bfs_search *search);

#endif
