/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-sssp: shortest paths from one vertex of a weighted graph on storage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/frontier_host.h"
#include "../common/graph_frame.h"
#include "sssp.h"

enum { SOURCE_TRIES = 64, WORDS_PER_LANE = 8 };

static struct graph_frame frame = { .setup.weighted = true };
static struct sssp_args args;
static uint64_t source, seed = 1, delta = 64;
static bool source_given;
static uint32_t bitmap_blocks;         /* of kernels whose lanes take words of a bitmap */
static uint64_t levels, phases, edges; /* of the latest run */

/* A vertex that has edges, from a seeded sequence. */
static int choose_source(char *error)
{
	uint64_t bounds[2] = { 0, 0 }, count = args.graph.vertices;

	for (unsigned i = 0; i < SOURCE_TRIES && count && bounds[0] == bounds[1]; i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		char blocks[2 * 4096];
		uint64_t at;
		int code = weir_storage_info(frame.graph->offsets, &info);

		source = sample_scramble(seed * SOURCE_TRIES + i) % count;
		at = frame.graph->offsets_at + source * 8;
		if (!code)
			code = weir_storage_read(
				frame.graph->offsets, at / info.block_bytes * info.block_bytes, blocks,
				at % info.block_bytes + 16 > info.block_bytes ? 2 * info.block_bytes
									      : info.block_bytes);
		if (code)
			return sample_pass(error, code);
		memcpy(bounds, blocks + at % info.block_bytes, sizeof(bounds));
	}
	return 0;
}

static int prepare(struct graph_frame *unused, char *error)
{
	uint64_t count = args.graph.vertices;
	int code;

	(void)unused;
	code = sample_pass(error, frontier_alloc(frame.graph, &args.frontier, &frame.state_bytes));
	if (!code)
		code = sample_pass(error, graph_alloc(&frame, count * 8 + 8, &args.distance));
	if (!code)
		code = sample_pass(error, graph_alloc(&frame, (count + 63) / 64 * 8 + 8, &args.far));
	if (!code)
		code = sample_pass(error, graph_alloc(&frame, sizeof(struct sssp_next), &args.next));
	if (!code)
		code = sample_pass(error, frontier_blocks(frame.graph, &frame.blocks));
	if (!code) /* most words have nothing: a lane for each would cost more than what there is to do */
		code = sample_pass(error, sample_blocks(frame.graph->context, count / 64 / WORDS_PER_LANE,
							&bitmap_blocks));
	if (!code && !source_given)
		code = choose_source(error);
	if (!code && source >= count)
		code = sample_fail(error, -EINVAL,
				   "source vertex %llu does not exist: the graph has %llu, counted from 0",
				   (unsigned long long)source, (unsigned long long)count);
	return code;
}

static int start(char *error)
{
	struct weir_context *context = frame.graph->context;
	uint64_t zero = 0;
	int code = graph_kernel(&frame, "sssp_clear");

	if (!code)
		code = weir_copy_to_device(context, args.distance + source * 8, &zero, sizeof(zero));
	if (!code)
		code = frontier_put(frame.graph, args.frontier.current, source);
	args.passed = 0;
	args.threshold = delta ? delta : SSSP_UNREACHED;
	levels = phases = edges = 0;
	code = sample_pass(error, code);
	return code ? code : graph_clear_counters(frame.graph, error);
}

/* Levels until nothing near is left. */
static int run_near(const struct frontier_kernels *kernels, uint64_t lanes, uint64_t vertices, char *error)
{
	struct graph_counters counters;
	uint64_t found, before;
	int code = graph_read_counters(frame.graph, &counters, error);

	found = code ? 0 : weir_load_u64_relaxed_sys(&counters.found);
	do {
		before = found;
		if (!code)
			code = frontier_run(frame.graph, kernels, lanes, vertices, &args, sizeof(args),
					    &args.frontier, &counters, error);
		if (code)
			return code;
		found = weir_load_u64_relaxed_sys(&counters.found);
		vertices = found - before; /* those kept for later are among them: no fewer */
		edges = weir_load_u64_relaxed_sys(&counters.edges);
		frontier_swap(&args.frontier);
		levels++;
	} while (found != before);
	phases++;
	return 0;
}

static int run_bitmap(const char *kernel)
{
	return sample_run(frame.graph->context, kernel, bitmap_blocks, &args, sizeof(args));
}

/* The next threshold, and what is nearer; @vertices: how many, 0: none is left. */
static int advance(uint64_t *vertices, char *error)
{
	struct sssp_next next = { 0 };
	struct weir_context *context = frame.graph->context;
	uint64_t nearest;
	int code;

	weir_store_u64_relaxed_sys(&next.nearest, SSSP_UNREACHED);
	code = weir_copy_to_device(context, args.next, &next, sizeof(next));
	args.passed = args.threshold;
	if (!code)
		code = run_bitmap("sssp_nearest");
	if (!code)
		code = weir_copy_from_device(context, &next, args.next, sizeof(next));
	nearest = weir_load_u64_relaxed_sys(&next.nearest);
	*vertices = 0;
	if (code || nearest == SSSP_UNREACHED)
		return sample_pass(error, code);
	args.threshold = nearest + delta > nearest ? nearest + delta : SSSP_UNREACHED;
	code = run_bitmap("sssp_split");
	if (!code)
		code = weir_copy_from_device(context, &next, args.next, sizeof(next));
	*vertices = weir_load_u64_relaxed_sys(&next.vertices);
	return sample_pass(error, code);
}

static int run(struct graph_frame *unused, bool plain, char *error)
{
	const char *level = frame.graph->gapbs ? "sssp_gapbs_level" : "sssp_level",
		   *hubs = frame.graph->gapbs ? "sssp_gapbs_hubs" : "sssp_hubs";
	struct frontier_kernels kernels = { .level = plain ? "sssp_plain_level" : level,
					    .hubs = plain ? "sssp_plain_hubs" : hubs };
	uint64_t all = (uint64_t)frame.blocks * SAMPLE_BLOCK_LANES,
		 lanes = !plain && frame.stored_lanes < all ? frame.stored_lanes : all;
	uint64_t vertices = 1; /* the source */
	int code = start(error);

	(void)unused;
	while (!code && vertices) {
		code = run_near(&kernels, lanes, vertices, error);
		if (!code)
			code = advance(&vertices, error);
	}
	return code;
}

/* A heap of vertices, the nearest on top. */
struct heap_entry {
	uint64_t distance;
	uint64_t vertex;
};

static void heap_push(struct heap_entry *heap, uint64_t *count, struct heap_entry entry)
{
	uint64_t at = (*count)++;

	for (; at && entry.distance < heap[(at - 1) / 2].distance; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = entry;
}

static struct heap_entry heap_pop(struct heap_entry *heap, uint64_t *count)
{
	struct heap_entry top = heap[0], last = heap[--*count];
	uint64_t at = 0, child;

	while ((child = 2 * at + 1) < *count) {
		child += child + 1 < *count && heap[child + 1].distance < heap[child].distance;
		if (heap[child].distance >= last.distance)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return top;
}

/* Dijkstra; the heap has room for an entry per edge. */
static void search(const struct reference_graph *graph, uint64_t *distance, struct heap_entry *heap)
{
	uint64_t count = 0;

	for (uint64_t v = 0; v < graph->vertices; v++)
		distance[v] = SSSP_UNREACHED;
	distance[source] = 0;
	heap_push(heap, &count, (struct heap_entry){ 0, source });
	while (count) {
		struct heap_entry top = heap_pop(heap, &count);

		if (top.distance > distance[top.vertex])
			continue;
		for (uint64_t e = graph->offsets[top.vertex]; e < graph->offsets[top.vertex + 1]; e++) {
			struct heap_entry next = { top.distance + graph->weights[e], graph->neighbours[e] };

			if (next.distance >= distance[next.vertex])
				continue;
			distance[next.vertex] = next.distance;
			heap_push(heap, &count, next);
		}
	}
}

static int verify(struct graph_frame *unused, const struct reference_graph *graph, char *error)
{
	uint64_t bytes = graph->vertices * 8 + 8, *distance = malloc(bytes), *expected = malloc(bytes);
	struct heap_entry *heap = malloc((graph->edges + 1) * sizeof(*heap));
	int code = distance && expected && heap ? 0 : -ENOMEM;

	(void)unused;
	if (code)
		code = sample_fail(error, code, "no memory for the reference search");
	else
		code = sample_pass(error, weir_copy_from_device(frame.graph->context, distance, args.distance,
								bytes - 8));
	if (!code)
		search(graph, expected, heap);
	for (uint64_t v = 0; v < graph->vertices && !code; v++)
		if (distance[v] != expected[v])
			code = sample_fail(error, -EBADMSG,
					   "WRONG RESULT: vertex %llu has distance %llu, Dijkstra's search "
					   "says %llu; please report "
					   "this",
					   (unsigned long long)v, (unsigned long long)distance[v],
					   (unsigned long long)expected[v]);
	free(heap);
	free(expected);
	free(distance);
	return code;
}

static int output(struct graph_frame *unused, char *error)
{
	uint64_t bytes = args.graph.vertices * 8, *distance = malloc(bytes + 8);
	int code = distance ? sample_pass(error, weir_copy_from_device(frame.graph->context, distance,
								       args.distance, bytes))
			    : sample_fail(error, -ENOMEM, "no memory for %llu distances",
					  (unsigned long long)args.graph.vertices);

	(void)unused;
	if (!code)
		code = sample_write_values(frame.output, distance, args.graph.vertices, SAMPLE_VALUE_U64,
					   error);
	free(distance);
	return code;
}

static void print(const struct graph_frame *unused)
{
	(void)unused;
	printf("search    from vertex %llu: %llu levels in %llu phases, %llu edges looked at\n",
	       (unsigned long long)source, (unsigned long long)levels, (unsigned long long)phases,
	       (unsigned long long)edges);
}

static void json(const struct graph_frame *unused, json_t *root)
{
	(void)unused;
	sample_set_count(root, "source", source);
	sample_set_count(root, "delta", delta);
	sample_set_count(root, "levels", levels);
	sample_set_count(root, "phases", phases);
	sample_set_count(root, "edges_traversed", edges);
	sample_set_count(root, "lanes_launched", frame.graph->lanes_launched);
}

static const struct tool_option options[] = {
	{ .name = "source",
	  .value = "V",
	  .kind = TOOL_U64,
	  .to = &source,
	  .given = &source_given,
	  .help = "first vertex (default: one with neighbours, chosen by --seed)" },
	{ .name = "seed",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &seed,
	  .help = "for the choice of the source (default 1)" },
	{ .name = "delta",
	  .value = "D",
	  .kind = TOOL_U64,
	  .to = &delta,
	  .help = "vertices less than D beyond the nearest go first (default 64; 0: all\n"
		  "that came nearer, which is Bellman and Ford's way)" },
	GRAPH_FRAME_OPTIONS(frame, "compare every distance with Dijkstra's search on the host"),
	GRAPH_WEIGHTS_OPTION(frame.setup),
	SAMPLE_OUTPUT_OPTION(frame.output, "the distance (u64; 2^64 - 1: not reached)"),
	{ .name = NULL },
};

static const struct graph_sample sample = {
	.program = { .name = "weir-sssp",
		     .about = "usage: weir-sssp GRAPH [options]    GRAPH: .bel or .wsg\n"
			      "       weir-sssp --offsets URI --edges URI[,URI...] --weights URI [options]\n"
			      "\n"
			      "Shortest paths from one vertex, near vertices first, over a frontier. "
			      "Offsets, edges and\n"
			      "weights are read from storage by the device's lanes, through a cache.\n",
		     .options = options,
		     .operand = "one graph",
		     .to = &frame.setup.path },
	.args = &args,
	.args_bytes = sizeof(args),
	.prepare = prepare,
	.run = run,
	.verify = verify,
	.output = output,
	.print = print,
	.json = json,
};

int main(int argc, char **argv)
{
	return graph_main(&frame, &sample, argc, argv);
}
