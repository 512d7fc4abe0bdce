/* SPDX-License-Identifier: BSD-3-Clause */
#include "sort.h"
#include "merge.h"
#include "output.h"
#include "radix.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A thread's part of the budget: records being collected, and as much again to sort them. */
struct lane {
	uint64_t *records;
	uint64_t *scratch;
	size_t count;
};

/* runs, run_count, run_room and file_bytes are guarded by mutex; a lane belongs to the thread that pushes. */
struct graph_sort {
	struct graph_input file;
	unsigned words;
	bool unique;
	unsigned lane_count;
	size_t lane_room;
	struct lane *lanes;
	pthread_mutex_t mutex;
	struct graph_run *runs;
	size_t run_count;
	size_t run_room;
	uint64_t file_bytes;
	struct graph_merge *merge;
};

int graph_sort_create(const struct graph_sort_options *options, struct graph_sort **out,
		      struct graph_error *error)
{
	struct graph_sort *sort = calloc(1, sizeof(*sort));

	*out = NULL;
	if (!sort)
		return graph_fail_memory(error, sizeof(*sort), "sorting");
	pthread_mutex_init(&sort->mutex, NULL);
	sort->words = options->weighted ? 2 : 1;
	sort->unique = options->unique;
	sort->lane_count = options->lanes;
	uint64_t room = options->memory_bytes / options->lanes / (16 * sort->words);
	if (options->expected_edges && options->expected_edges < room)
		room = options->expected_edges;
	sort->lane_room = room < 64 ? 64 : (size_t)room;
	snprintf(sort->file.path, sizeof(sort->file.path), "the temporary file in %.4000s",
		 options->directory);
	sort->lanes = calloc(options->lanes, sizeof(*sort->lanes));
	sort->file.fd = graph_scratch_open(options->directory, error);
	int status = sort->file.fd < 0 ? sort->file.fd : 0;
	if (!sort->lanes)
		status = graph_fail_memory(error, options->lanes * sizeof(*sort->lanes), "sorting");
	if (status)
		graph_sort_destroy(sort);
	else
		*out = sort;
	return status;
}

static int lane_allocate(struct graph_sort *sort, struct lane *lane, struct graph_error *error)
{
	size_t bytes = sort->lane_room * sort->words * 8;

	lane->records = malloc(bytes);
	lane->scratch = malloc(bytes);
	return lane->records && lane->scratch ? 0 : graph_fail_memory(error, 2 * bytes, "sorting");
}

/* Sorted records with the same key are neighbours, the smallest weight first. */
static size_t drop_repeated(uint64_t *records, size_t count, unsigned words)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept && records[(kept - 1) * words] == records[i * words])
			continue;
		memmove(records + kept * words, records + i * words, words * 8);
		kept++;
	}
	return kept;
}

/* Reserve the run's place, so that lanes write at the same time without waiting for each other. */
static int add_run(struct graph_sort *sort, size_t records, uint64_t *position, struct graph_error *error)
{
	int status = 0;

	pthread_mutex_lock(&sort->mutex);
	if (sort->run_count == sort->run_room) {
		size_t room = sort->run_room ? 2 * sort->run_room : 64;
		struct graph_run *grown = realloc(sort->runs, room * sizeof(*grown));
		if (grown) {
			sort->runs = grown;
			sort->run_room = room;
		} else {
			status = graph_fail_memory(error, room * sizeof(*grown), "the list of runs");
		}
	}
	if (!status) {
		*position = sort->file_bytes;
		sort->runs[sort->run_count++] = (struct graph_run){ sort->file_bytes, records };
		sort->file_bytes += (uint64_t)records * sort->words * 8;
	}
	pthread_mutex_unlock(&sort->mutex);
	return status;
}

static int spill(struct graph_sort *sort, struct lane *lane, struct graph_error *error)
{
	uint64_t position;

	if (!lane->count)
		return 0;
	uint64_t *sorted = graph_radix_sort(lane->records, lane->scratch, lane->count, sort->words);
	lane->scratch = sorted == lane->records ? lane->scratch : lane->records;
	lane->records = sorted;
	if (sort->unique)
		lane->count = drop_repeated(lane->records, lane->count, sort->words);
	int status = add_run(sort, lane->count, &position, error);
	if (!status)
		status = graph_write_at(sort->file.fd, sort->file.path, position, lane->records,
					lane->count * sort->words * 8, error);
	lane->count = 0;
	return status;
}

int graph_sort_push(struct graph_sort *sort, unsigned lane_index, const struct graph_edge *edge,
		    struct graph_error *error)
{
	struct lane *lane = &sort->lanes[lane_index];
	int status = 0;

	if ((edge->source | edge->target) > UINT32_MAX)
		return graph_fail(error, -EOVERFLOW,
				  "the edge %llu -> %llu cannot be sorted: vertex ids go up to %u here",
				  (unsigned long long)edge->source, (unsigned long long)edge->target,
				  UINT32_MAX);
	if (!lane->records)
		status = lane_allocate(sort, lane, error);
	else if (lane->count == sort->lane_room)
		status = spill(sort, lane, error);
	if (status)
		return status;
	uint64_t *record = lane->records + lane->count++ * sort->words;
	record[0] = edge->source << 32 | edge->target;
	if (sort->words == 2)
		record[1] = edge->weight;
	return 0;
}

static void lane_free(struct lane *lane)
{
	free(lane->records);
	free(lane->scratch);
	memset(lane, 0, sizeof(*lane));
}

int graph_sort_flush(struct graph_sort *sort, unsigned lane, struct graph_error *error)
{
	int status = spill(sort, &sort->lanes[lane], error);
	lane_free(&sort->lanes[lane]);
	return status;
}

uint64_t graph_sort_edges(const struct graph_sort *sort)
{
	return sort->file_bytes / (sort->words * 8);
}

/* Runs times the smallest buffer must fit in half of the budget. */
uint64_t graph_sort_memory_needed(uint64_t bytes, unsigned lanes)
{
	uint64_t memory = GRAPH_MEMORY_MIN_BYTES;

	while (memory < UINT64_C(1) << 62) {
		uint64_t run_bytes = memory / 2 / lanes / 2;
		if (bytes / run_bytes + 1 + lanes <= memory / 2 / GRAPH_MERGE_BUFFER_MIN_BYTES)
			break;
		memory *= 2;
	}
	return memory;
}

int graph_sort_merge(struct graph_sort *sort, uint64_t memory_bytes, struct graph_error *error)
{
	if (sort->run_count && memory_bytes / sort->run_count < GRAPH_MERGE_BUFFER_MIN_BYTES)
		return graph_fail(
			error, -ENOMEM,
			"%zu sorted runs (%llu bytes) cannot be merged within %llu bytes: give "
			"--memory %llu or more",
			sort->run_count, (unsigned long long)sort->file_bytes,
			(unsigned long long)memory_bytes,
			(unsigned long long)graph_sort_memory_needed(sort->file_bytes, sort->lane_count));
	sort->file.bytes = sort->file_bytes;
	return graph_merge_create(&sort->file, sort->runs, sort->run_count, sort->words, sort->unique,
				  memory_bytes, &sort->merge, error);
}

int graph_sort_next(struct graph_sort *sort, struct graph_edge *edges, size_t capacity, size_t *count,
		    struct graph_error *error)
{
	return graph_merge_next(sort->merge, edges, capacity, count, error);
}

void graph_sort_destroy(struct graph_sort *sort)
{
	if (!sort)
		return;
	graph_merge_destroy(sort->merge);
	for (unsigned i = 0; sort->lanes && i < sort->lane_count; i++)
		lane_free(&sort->lanes[i]);
	free(sort->lanes);
	free(sort->runs);
	graph_input_close(&sort->file);
	pthread_mutex_destroy(&sort->mutex);
	free(sort);
}
