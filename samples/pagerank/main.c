/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-pagerank: PageRank over a graph on storage. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/graph_frame.h"
#include "pagerank.h"

static struct graph_frame frame;
static struct pagerank_args args;
static uint32_t most_iterations = 20;
static double tolerance = 1e-4;
static bool dangling_lost, trusted;
static uint32_t iterations; /* of the latest run */
static double change;       /* in the last of them */

#define DAMPING 0.85

/*
 * Truncation takes less than 32 (degree + 1) units of 2^-62 from a rank: each iteration
 * degree + 3, and what earlier ones took from the neighbours comes damped; 4 / (1 - DAMPING)
 * is below 32. The reference's own rounding is the relative part.
 */
#define UNIT       0x1p-62
#define TRUNCATION (32 * UNIT)
#define RELATIVE   1e-10

/* Ranks are pulled along edges that lead away: of a directed graph that would be another graph's PageRank. */
static int check_both_ways(char *error)
{
	struct pagerank_sums sums;
	int code;

	memset(&sums, 0, sizeof(sums));
	code = sample_pass(error, weir_copy_to_device(frame.graph->context, args.sums, &sums, sizeof(sums)));
	if (!code)
		code = graph_walk(&frame, "both_ways", false, error);
	if (!code)
		code = sample_pass(
			error, weir_copy_from_device(frame.graph->context, &sums, args.sums, sizeof(sums)));
	if (!code && weir_load_u64_relaxed_sys(&sums.apart))
		code = sample_fail(error, -EINVAL,
				   "the graph is directed: some edge is not stored both ways, and ranks are "
				   "pulled along edges that lead away; "
				   "weir-graph convert --symmetrize makes an undirected one");
	return code;
}

static int prepare(struct graph_frame *unused, char *error)
{
	uint64_t bytes = args.graph.vertices * 8 + 8;
	int code = graph_find_chunks(&frame, error);

	(void)unused;
	if (code)
		return code;
	args.damping = (uint64_t)(DAMPING * 0x1p64);
	args.base = args.graph.vertices ? (uint64_t)((1 - DAMPING) * 0x1p62) / args.graph.vertices : 0;
	if ((code = graph_alloc(&frame, bytes, &args.rank)) == 0 &&
	    (code = graph_alloc(&frame, bytes, &args.share)) == 0 &&
	    (code = graph_alloc(&frame, bytes, &args.sum)) == 0 &&
	    (code = graph_alloc(&frame, bytes, &args.degree)) == 0)
		code = graph_alloc(&frame, sizeof(struct pagerank_sums), &args.sums);
	code = sample_pass(error, code);
	if (!code)
		code = graph_walk(&frame, "degrees", false, error);
	return code || trusted ? code : check_both_ways(error);
}

static int iterate(bool plain, char *error)
{
	struct weir_context *context = frame.graph->context;
	struct pagerank_sums sums;
	int code;

	memset(&sums, 0, sizeof(sums));
	code = weir_copy_to_device(context, args.sums, &sums, sizeof(sums));
	if (!code)
		code = graph_kernel(&frame, "pagerank_share");
	if (!code)
		code = weir_copy_from_device(context, &sums, args.sums, sizeof(sums));
	if (code)
		return sample_pass(error, code);
	args.everyone = dangling_lost || !args.graph.vertices
				? 0
				: weir_load_u64_relaxed_sys(&sums.dangling) / args.graph.vertices;
	code = graph_walk(&frame, "gather", plain, error);
	if (!code)
		code = sample_pass(error, graph_kernel(&frame, "pagerank_update"));
	if (!code)
		code = sample_pass(error, weir_copy_from_device(context, &sums, args.sums, sizeof(sums)));
	change = (double)weir_load_u64_relaxed_sys(&sums.change) * UNIT;
	return code;
}

static int run(struct graph_frame *unused, bool plain, char *error)
{
	int code = sample_pass(error, graph_kernel(&frame, "pagerank_start"));

	(void)unused;
	for (iterations = 0; iterations < most_iterations && !code; iterations++) {
		code = iterate(plain, error);
		if (!code && change < tolerance) {
			iterations++;
			break;
		}
	}
	frame.passes = iterations;
	return code;
}

static void reference_iteration(const struct reference_graph *graph, double *rank, double *share)
{
	double dangling = 0, count = (double)graph->vertices;

	for (uint64_t v = 0; v < graph->vertices; v++) {
		uint64_t degree = graph->offsets[v + 1] - graph->offsets[v];

		share[v] = degree ? rank[v] / (double)degree : 0;
		dangling += degree ? 0 : rank[v];
	}
	for (uint64_t v = 0; v < graph->vertices; v++) {
		double sum = dangling_lost ? 0 : dangling / count;

		for (uint64_t e = graph->offsets[v]; e < graph->offsets[v + 1]; e++)
			sum += share[graph->neighbours[e]];
		rank[v] = (1 - DAMPING) / count + DAMPING * sum;
	}
}

static int compare(const struct reference_graph *graph, const uint64_t *rank, const double *reference,
		   char *error)
{
	for (uint64_t v = 0; v < graph->vertices; v++) {
		double degree = (double)(graph->offsets[v + 1] - graph->offsets[v]);
		double allowed = TRUNCATION * (degree + 1) + RELATIVE * reference[v];

		if (!(fabs((double)rank[v] * UNIT - reference[v]) <= allowed))
			return sample_fail(error, -EBADMSG,
					   "WRONG RESULT: vertex %llu has rank %.15g, in double precision "
					   "%.15g; please report this",
					   (unsigned long long)v, (double)rank[v] * UNIT, reference[v]);
	}
	return 0;
}

static int verify(struct graph_frame *unused, const struct reference_graph *graph, char *error)
{
	uint64_t bytes = graph->vertices * 8 + 8, *rank = malloc(bytes);
	double *reference = malloc(bytes), *share = malloc(bytes);
	int code = rank && reference && share
			   ? weir_copy_from_device(frame.graph->context, rank, args.rank, bytes - 8)
			   : -ENOMEM;

	(void)unused;
	code = sample_pass(error, code);
	if (!code) {
		for (uint64_t v = 0; v < graph->vertices; v++)
			reference[v] = 1 / (double)graph->vertices;
		for (uint32_t i = 0; i < iterations; i++)
			reference_iteration(graph, reference, share);
		code = compare(graph, rank, reference, error);
	}
	free(share);
	free(reference);
	free(rank);
	return code;
}

static int output(struct graph_frame *unused, char *error)
{
	uint64_t count = args.graph.vertices, *rank = malloc(count * 8 + 8);
	double *share = malloc(count * 8 + 8);
	int code =
		rank && share
			? sample_pass(error,
				      weir_copy_from_device(frame.graph->context, rank, args.rank, count * 8))
			: sample_fail(error, -ENOMEM, "no memory for %llu ranks", (unsigned long long)count);

	(void)unused;
	for (uint64_t v = 0; v < count && !code; v++)
		share[v] = (double)rank[v] * UNIT;
	if (!code)
		code = sample_write_values(frame.output, share, count, SAMPLE_VALUE_F64, error);
	free(share);
	free(rank);
	return code;
}

static void print(const struct graph_frame *unused)
{
	(void)unused;
	printf("ranks     %u iterations; the last one changed %.3g of 1\n", iterations, change);
}

static void json(const struct graph_frame *unused, json_t *root)
{
	(void)unused;
	sample_set_count(root, "iterations", iterations);
	sample_set_real(root, "change", change);
	sample_set_real(root, "edges_per_s", (double)frame.info.edges * iterations / frame.seconds);
}

static const struct tool_option options[] = {
	{ .name = "iterations",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &most_iterations,
	  .least = 1,
	  .most = 100000,
	  .help = "at most (default 20)" },
	{ .name = "tolerance",
	  .value = "T",
	  .kind = TOOL_REAL,
	  .to = &tolerance,
	  .help = "stop when an iteration changes less than this share of all rank\n(default 1e-4; 0: "
		  "never)" },
	{ .name = "lose-dangling",
	  .kind = TOOL_FLAG,
	  .to = &dangling_lost,
	  .help = "what vertices without edges have is lost, as in the GAP benchmark suite\n"
		  "(pr_spmv), instead of shared out among all" },
	{ .name = "undirected",
	  .kind = TOOL_FLAG,
	  .to = &trusted,
	  .help = "do not read the graph once before to see that each edge is stored both ways" },
	SAMPLE_OUTPUT_OPTION(frame.output, "the rank (f64)"),
	GRAPH_FRAME_OPTIONS(frame, "compare each rank with as many iterations in double precision on the\n"
				   "host; 2^-57 for each edge of the vertex, and 1e-10 of it, are allowed"),
	{ .name = NULL },
};

static const struct graph_sample sample = {
	.program = { .name = "weir-pagerank",
		     .about =
			     "usage: weir-pagerank GRAPH [options]    GRAPH: .bel, .sg or .wsg\n"
			     "       weir-pagerank --offsets URI --edges URI[,URI...] [options]\n"
			     "\n"
			     "PageRank of an undirected graph (every edge stored both ways), damping 0.85: "
			     "vertices\n"
			     "pull shares of rank from their neighbours. What vertices without edges have is "
			     "shared out\n"
			     "among all, see --lose-dangling. Other graphs are refused. Neighbours are read "
			     "from storage by the\n"
			     "device's lanes, through a cache; ranks are in device memory, in fixed point.\n",
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
