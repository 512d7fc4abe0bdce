/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-cc: connected components of a graph on storage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/graph_frame.h"
#include "cc.h"

static struct graph_frame frame;
static struct cc_args args;
static bool sampled;
static uint32_t *labels; /* after graph_alloc(), room for all */
static uint64_t components;
static uint64_t largest;

static int prepare(struct graph_frame *unused, char *error)
{
	uint64_t count = args.graph.vertices;
	int code;

	(void)unused;
	if (count > UINT32_MAX)
		return sample_fail(error, -E2BIG,
				   "the graph has %llu vertices; labels are made for 2^32 - 1 at most",
				   (unsigned long long)count);
	labels = malloc(count * 4 + 4);
	if (!labels)
		return sample_fail(error, -ENOMEM, "no memory for %llu labels", (unsigned long long)count);
	code = graph_find_chunks(&frame, error);
	return code ? code : sample_pass(error, graph_alloc(&frame, count * 4 + 4, &args.label));
}

static int read_labels(void)
{
	return weir_copy_from_device(frame.graph->context, labels, args.label, args.graph.vertices * 4);
}

/* The label that most of 1,024 vertices have. */
static uint64_t most_frequent(void)
{
	uint64_t count = args.graph.vertices, best = CC_NONE;
	unsigned most = 0, same = 0;
	uint32_t seen[1024];

	for (unsigned i = 0; i < 1024; i++)
		seen[i] = labels[sample_scramble(i) % count];
	for (unsigned i = 0; i < 1024; i++) {
		same = 0;
		for (unsigned k = 0; k < 1024; k++)
			same += seen[k] == seen[i];
		if (same > most) {
			most = same;
			best = seen[i];
		}
	}
	return best;
}

/* A few edges of each vertex; then the component they make that most vertices are in is left out. */
static int run_sample(bool plain, char *error)
{
	int code = graph_walk(&frame, "sample", plain, error);

	if (!code)
		code = sample_pass(error, graph_kernel(&frame, "cc_flatten"));
	if (!code)
		code = sample_pass(error, read_labels());
	if (!code && args.graph.vertices)
		args.skip = most_frequent();
	return code;
}

static int run(struct graph_frame *unused, bool plain, char *error)
{
	int code = sample_pass(error, graph_kernel(&frame, "cc_start"));

	(void)unused;
	args.skip = CC_NONE;
	if (!code && sampled)
		code = run_sample(plain, error);
	if (!code)
		code = graph_walk(&frame, "edges", plain, error);
	return code ? code : sample_pass(error, graph_kernel(&frame, "cc_flatten"));
}

static uint32_t find(uint32_t *parent, uint32_t vertex)
{
	while (parent[vertex] != vertex) {
		parent[vertex] = parent[parent[vertex]];
		vertex = parent[vertex];
	}
	return vertex;
}

/* Union-find; the lower root stays, so that a root is its component's lowest vertex. */
static void unite_all(const struct reference_graph *graph, uint32_t *parent)
{
	for (uint64_t v = 0; v < graph->vertices; v++)
		parent[v] = (uint32_t)v;
	for (uint64_t v = 0; v < graph->vertices; v++)
		for (uint64_t e = graph->offsets[v]; e < graph->offsets[v + 1]; e++) {
			uint32_t a = find(parent, (uint32_t)v),
				 b = find(parent, (uint32_t)graph->neighbours[e]);

			parent[a > b ? a : b] = a > b ? b : a;
		}
}

static int verify(struct graph_frame *unused, const struct reference_graph *graph, char *error)
{
	uint32_t *parent = malloc(graph->vertices * 4 + 4);
	int code = sample_pass(error, parent ? read_labels() : -ENOMEM);

	(void)unused;
	if (!code)
		unite_all(graph, parent);
	for (uint64_t v = 0; v < graph->vertices && !code; v++)
		if (labels[v] != find(parent, (uint32_t)v))
			code = sample_fail(error, -EBADMSG,
					   "WRONG RESULT: vertex %llu has label %u, union-find says %u; "
					   "please report this%s",
					   (unsigned long long)v, labels[v], find(parent, (uint32_t)v),
					   sampled ? ", unless the graph's edges are stored one way only, "
						     "which --sample cannot have"
						   : "");
	free(parent);
	return code;
}

static int output(struct graph_frame *unused, char *error)
{
	int code = sample_pass(error, read_labels());

	(void)unused;
	return code ? code
		    : sample_write_values(frame.output, labels, args.graph.vertices, SAMPLE_VALUE_U32, error);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* How many there are, from the labels of the latest run. */
static void count_components(void)
{
	uint64_t count = args.graph.vertices, begin = 0;

	if (read_labels() != 0)
		return;
	qsort(labels, count, sizeof(*labels), compare_u32);
	for (uint64_t v = 0; v < count; v++) {
		if (v + 1 < count && labels[v + 1] == labels[v])
			continue;
		components++;
		largest = v + 1 - begin > largest ? v + 1 - begin : largest;
		begin = v + 1;
	}
}

static void print(const struct graph_frame *unused)
{
	(void)unused;
	count_components();
	printf("found     %llu components, the largest of %llu vertices\n", (unsigned long long)components,
	       (unsigned long long)largest);
}

static void json(const struct graph_frame *unused, json_t *root)
{
	(void)unused;
	count_components();
	sample_set_count(root, "components", components);
	sample_set_count(root, "largest", largest);
	sample_set_bool(root, "sampled", sampled);
}

static void free_labels(void)
{
	free(labels);
}

static const struct tool_option options[] = {
	{ .name = "sample",
	  .kind = TOOL_FLAG,
	  .to = &sampled,
	  .help = "link two neighbours of each vertex first, then leave the lists of the largest\n"
		  "component out (Afforest); every edge must be stored both ways" },
	GRAPH_FRAME_OPTIONS(frame, "compare every label with union-find on the host"),
	SAMPLE_OUTPUT_OPTION(frame.output, "the label (u32: its component's lowest vertex)"),
	{ .name = NULL },
};

static const struct graph_sample sample = {
	.program = { .name = "weir-cc",
		     .about = "usage: weir-cc GRAPH [options]    GRAPH: .bel, .sg or .wsg\n"
			      "       weir-cc --offsets URI --edges URI[,URI...] [options]\n"
			      "\n"
			      "Connected components (weakly, if edges have directions): in one pass over all "
			      "edges,\n"
			      "which are read from storage by the device's lanes, through a cache.\n",
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
	.close = free_labels,
};

int main(int argc, char **argv)
{
	return graph_main(&frame, &sample, argc, argv);
}
