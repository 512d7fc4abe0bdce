/* SPDX-License-Identifier: BSD-3-Clause */
#include "merge.h"

#include <errno.h>
#include <stdlib.h>

/* The front of one run. */
struct cursor {
	uint64_t key;
	uint64_t weight;
	bool exhausted;
	uint64_t records_left; /* not yet taken from the stream */
	struct graph_stream stream;
};

/*
 * A loser tree (Knuth, volume 3, section 5.4.1): each inner node remembers the loser of its match, so
 * replacing the winner costs one comparison per level. Leaf i of n is node n + i; node 0 holds the overall
 * winner.
 */
struct graph_merge {
	struct cursor *cursors;
	size_t *losers;
	size_t count;
	unsigned words;
	bool unique;
	bool any; /* something was passed on: last_key is valid */
	uint64_t last_key;
};

static int advance(struct graph_merge *merge, struct cursor *cursor, struct graph_error *error)
{
	uint64_t record[2] = { 0, 0 };

	if (!cursor->records_left) {
		cursor->exhausted = true;
		return 0;
	}
	cursor->records_left--;
	int status = merge->words == 1 ? graph_stream_take(&cursor->stream, record, 8, error)
				       : graph_stream_take(&cursor->stream, record, 16, error);
	cursor->key = record[0];
	cursor->weight = record[1];
	return status;
}

static bool before(const struct cursor *a, const struct cursor *b)
{
	if (a->exhausted || b->exhausted)
		return !a->exhausted;
	return a->key != b->key ? a->key < b->key : a->weight < b->weight;
}

/* Play the matches from a leaf upward; its run's front has changed. */
static void replay(struct graph_merge *merge, size_t leaf)
{
	size_t winner = leaf;

	for (size_t node = (merge->count + leaf) / 2; node > 0; node /= 2) {
		size_t other = merge->losers[node];
		if (before(&merge->cursors[other], &merge->cursors[winner])) {
			merge->losers[node] = winner;
			winner = other;
		}
	}
	merge->losers[0] = winner;
}

/* All matches, from the bottom: the winner of node n plays at n / 2. */
static int play_all(struct graph_merge *merge, struct graph_error *error)
{
	const size_t count = merge->count;
	size_t *winners = malloc(2 * count * sizeof(*winners));

	if (!winners)
		return graph_fail_memory(error, 2 * count * sizeof(*winners), "the merge tree");
	for (size_t i = 0; i < count; i++)
		winners[count + i] = i;
	for (size_t node = count - 1; node > 0; node--) {
		size_t a = winners[2 * node], b = winners[2 * node + 1];
		bool first = before(&merge->cursors[a], &merge->cursors[b]);
		winners[node] = first ? a : b;
		merge->losers[node] = first ? b : a;
	}
	merge->losers[0] = count > 1 ? winners[1] : 0;
	free(winners);
	return 0;
}

static int open_cursors(struct graph_merge *merge, const struct graph_input *input,
			const struct graph_run *runs, uint64_t memory_bytes, struct graph_error *error)
{
	const uint64_t largest = UINT64_C(8) << 20; /* beyond this a larger read gains nothing */
	uint64_t share = memory_bytes / merge->count;
	size_t buffer_bytes = (size_t)((share > largest ? largest : share) & ~UINT64_C(63));

	for (size_t i = 0; i < merge->count; i++) {
		struct cursor *cursor = &merge->cursors[i];
		uint64_t bytes = runs[i].records * merge->words * 8;
		size_t capacity = bytes < buffer_bytes ? (size_t)bytes : buffer_bytes;
		int status = graph_stream_open(&cursor->stream, input, runs[i].position,
					       runs[i].position + bytes, capacity, error);
		if (status)
			return status;
		cursor->records_left = runs[i].records;
		status = advance(merge, cursor, error);
		if (status)
			return status;
	}
	return 0;
}

int graph_merge_create(const struct graph_input *input, const struct graph_run *runs, size_t count,
		       unsigned words, bool unique, uint64_t memory_bytes, struct graph_merge **out,
		       struct graph_error *error)
{
	struct graph_merge *merge = calloc(1, sizeof(*merge));
	int status = 0;

	*out = merge;
	if (!merge)
		return graph_fail_memory(error, sizeof(*merge), "the merge");
	merge->words = words;
	merge->unique = unique;
	if (!count)
		return 0;
	merge->cursors = calloc(count, sizeof(*merge->cursors));
	merge->losers = calloc(count, sizeof(*merge->losers));
	if (!merge->cursors || !merge->losers)
		return graph_fail_memory(error, count * sizeof(*merge->cursors), "the merge");
	merge->count = count;
	status = open_cursors(merge, input, runs, memory_bytes, error);
	return status ? status : play_all(merge, error);
}

int graph_merge_next(struct graph_merge *merge, struct graph_edge *edges, size_t capacity, size_t *count,
		     struct graph_error *error)
{
	size_t filled = 0;

	while (merge->count && filled < capacity) {
		size_t leaf = merge->losers[0];
		struct cursor *cursor = &merge->cursors[leaf];
		if (cursor->exhausted)
			break;
		if (!merge->unique || !merge->any || cursor->key != merge->last_key) {
			merge->any = true;
			merge->last_key = cursor->key;
			edges[filled].source = cursor->key >> 32;
			edges[filled].target = (uint32_t)cursor->key;
			edges[filled++].weight = (uint32_t)cursor->weight;
		}
		int status = advance(merge, cursor, error);
		if (status)
			return status;
		replay(merge, leaf);
	}
	*count = filled;
	return 0;
}

void graph_merge_destroy(struct graph_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->count; i++)
		graph_stream_close(&merge->cursors[i].stream);
	free(merge->cursors);
	free(merge->losers);
	free(merge);
}
