/* SPDX-License-Identifier: BSD-3-Clause */
#include "frontier_host.h"

#include <errno.h>
#include <stddef.h>

int frontier_alloc(struct graph_host *graph, struct frontier *frontier, uint64_t *bytes)
{
	uint64_t bitmap_bytes = (graph->data.vertices + 63) / 64 * 8, piece_bytes;
	int code;

	/* A hub's last piece may be short, but it has another one beside it: half of the pieces' room is used. */
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

	return code ? code : sample_blocks(graph->context, (graph->data.vertices + 63) / 64 * info.wave_lanes, blocks);
}

int frontier_put(struct graph_host *graph, uint64_t bitmap, uint64_t vertex)
{
	uint64_t bit = (uint64_t)1 << (vertex % 64);

	return weir_copy_in(graph->context, bitmap + vertex / 64 * 8, &bit, sizeof(bit));
}

void frontier_swap(struct frontier *frontier)
{
	uint64_t swap = frontier->current;

	frontier->current = frontier->next;
	frontier->next = swap;
}

static int read_counters(struct graph_host *graph, const struct frontier *frontier, struct graph_counters *counters,
			 char *error)
{
	int code = graph_read_counters(graph, counters, error);

	if (!code && weir_load_u64_relaxed_sys(&counters->pieces) > frontier->piece_limit)
		code = sample_fail(error, -EINVAL,
				   "the offsets overlap: vertices with over %d neighbours claim more of them than there are "
				   "edges, %llu; the .col file does not belong to this .dst file",
				   FRONTIER_PIECE, (unsigned long long)graph->data.edges);
	return code;
}

int frontier_run(struct graph_host *graph, const struct frontier_kernels *kernels, uint32_t blocks, const void *args,
		 size_t bytes, struct frontier *frontier, struct graph_counters *counters, char *error)
{
	uint64_t none = 0;
	int code = sample_pass(error, sample_run(graph->context, kernels->level, blocks, args, bytes));

	if (!code)
		code = read_counters(graph, frontier, counters, error);
	if (code)
		return code;
	frontier->piece_count = weir_load_u64_relaxed_sys(&counters->pieces);
	if (!frontier->piece_count)
		return 0;
	code = sample_run(graph->context, kernels->hubs, blocks, args, bytes);
	if (!code)
		code = weir_copy_in(graph->context, graph->data.counters + offsetof(struct graph_counters, pieces), &none,
				    sizeof(none));
	return code ? sample_pass(error, code) : graph_read_counters(graph, counters, error);
}
