/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.h: searches over a graph on storages.
 *
 * Owns: the host side of BFS; knows nothing of command lines.
 */
#ifndef BFS_SEARCH_H
#define BFS_SEARCH_H

#include "../common/graph_host.h"

struct bfs_search;

/** struct bfs_result - one search */
struct bfs_result {
	uint64_t source;
	uint64_t reached;    /* vertices, the source included */
	uint64_t edges;      /* looked at */
	uint64_t lookups;    /* reads of up to WEIR_RUN elements, through the cache if there is one */
	uint64_t misses;     /* of these, lines fetched from storage */
	uint64_t commands;   /* NVMe commands */
	uint64_t bytes_read; /* from the storages */
	uint32_t levels;
	double seconds;
};

/* 0 or a negative errno; @error then holds a sentence (SAMPLE_ERROR_BYTES). */

/**
 * bfs_open() - open the graph of @setup
 * @state_bytes: receives the device memory for depths and frontiers
 */
int bfs_open(struct graph_setup *setup, struct bfs_search **out, struct graph_info *info,
	     uint64_t *state_bytes, char *error);
int bfs_run(struct bfs_search *search, uint64_t source, struct bfs_result *result, char *error);
/** bfs_depths() - copy the latest search's depths out; @depths has room for all vertices */
int bfs_depths(struct bfs_search *search, uint32_t *depths, char *error);
/** bfs_close() - as graph_close() */
int bfs_close(struct bfs_search *search, int code, char *error);

#endif
