/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-spmv: a sparse matrix on storage times a dense vector. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/graph_frame.h"
#include "../common/vector.h"
#include "spmv.h"

static struct graph_frame frame = { .setup.weighted = true };
static struct spmv_args args;
static const char *x_uri;
static float *x_host;
static uint64_t seed = 1;

/* Rounding of one operation on f32. */
#define F32_ROUNDING 0x1p-24

static void make_x(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	float *values = (float *)(void *)words;

	(void)of;
	for (uint64_t i = 0; i < 2 * count; i++)
		values[i] = sample_fraction(sample_scramble(seed + 2 * first + i));
}

/* The vector on a storage of its own, through the matrix's cache. */
static int store_x(char *error)
{
	struct weir_context *context = frame.graph->context;
	struct weir_storage_info info = { .size = sizeof(info) };
	uint64_t count = args.graph.vertices, bytes;
	int code = weir_storage_open(
		context, x_uri,
		WEIR_OPTIONS(storage, .queues = frame.setup.device.queues, .depth = frame.setup.device.depth),
		&frame.graph->extra);

	if (!code)
		code = weir_storage_info(frame.graph->extra, &info);
	if (code)
		return sample_pass(error, code);
	bytes = count * 4;
	if (bytes > info.bytes)
		return sample_fail(error, -ENOSPC, "%.700s has %llu bytes; the vector needs %llu", x_uri,
				   (unsigned long long)info.bytes, (unsigned long long)bytes);
	code = sample_fill(frame.graph->extra, 0, bytes, make_x, NULL, error);
	return code ? code
		    : sample_pass(error,
				  weir_array_open(frame.graph->cache, &frame.graph->extra, 1,
						  WEIR_OPTIONS(array, .element_bytes = 4, .count = count),
						  &args.stored_x));
}

static int prepare(struct graph_frame *unused, char *error)
{
	uint64_t count = args.graph.vertices;
	int code = graph_find_chunks(&frame, error);

	(void)unused;
	x_host = malloc((count + 1) / 2 * 8 + 8);
	if (!code && !x_host)
		code = sample_fail(error, -ENOMEM, "no memory for a vector of %llu",
				   (unsigned long long)count);
	if (code)
		return code;
	make_x((uint64_t *)(void *)x_host, 0, (count + 1) / 2, NULL);
	code = graph_alloc(&frame, count * 4 + 4, &args.x);
	if (!code)
		code = graph_alloc(&frame, count * 4 + 4, &args.y);
	if (!code)
		code = weir_copy_to_device(frame.graph->context, args.x, x_host, count * 4);
	code = sample_pass(error, code);
	return code || !x_uri ? code : store_x(error);
}

static int run(struct graph_frame *unused, bool plain, char *error)
{
	int code = sample_pass(error, graph_kernel(&frame, "spmv_clear"));

	(void)unused;
	return code ? code : graph_walk(&frame, x_uri && !plain ? "stored_x" : "multiply", plain, error);
}

/* Row by row: n products and sums of f32 in any order are off by n + 2 roundings of the magnitudes at most.
 */
static int compare(const struct reference_graph *graph, const float *y, char *error)
{
	for (uint64_t row = 0; row < graph->vertices; row++) {
		double sum = 0, magnitude = 0,
		       roundings = (double)(graph->offsets[row + 1] - graph->offsets[row]) + 2;

		for (uint64_t e = graph->offsets[row]; e < graph->offsets[row + 1]; e++) {
			double product = (double)graph->weights[e] * (double)x_host[graph->neighbours[e]];

			sum += product;
			magnitude += fabs(product);
		}
		if (!(fabs((double)y[row] - sum) <=
		      roundings * F32_ROUNDING / (1 - roundings * F32_ROUNDING) * magnitude))
			return sample_fail(error, -EBADMSG,
					   "WRONG RESULT: row %llu comes to %.9g, in double precision to "
					   "%.17g; please report this",
					   (unsigned long long)row, (double)y[row], sum);
	}
	return 0;
}

static int verify(struct graph_frame *unused, const struct reference_graph *reference, char *error)
{
	float *y = malloc(reference->vertices * 4 + 4);
	int code =
		y ? weir_copy_from_device(frame.graph->context, y, args.y, reference->vertices * 4) : -ENOMEM;

	(void)unused;
	code = sample_pass(error, code);
	if (!code)
		code = compare(reference, y, error);
	free(y);
	return code;
}

static int output(struct graph_frame *unused, char *error)
{
	float *y = malloc(args.graph.vertices * 4 + 4);
	int code = y ? sample_pass(error, weir_copy_from_device(frame.graph->context, y, args.y,
								args.graph.vertices * 4))
		     : sample_fail(error, -ENOMEM, "no memory for a vector of %llu",
				   (unsigned long long)args.graph.vertices);

	(void)unused;
	if (!code)
		code = sample_write_values(frame.output, y, args.graph.vertices, SAMPLE_VALUE_F32, error);
	free(y);
	return code;
}

static void print(const struct graph_frame *unused)
{
	(void)unused;
	printf("product   %.3f GFLOP/s, vector %s\n", 2 * (double)frame.info.edges / frame.seconds / 1e9,
	       x_uri ? "on storage, too" : "in device memory");
}

static void json(const struct graph_frame *unused, json_t *root)
{
	(void)unused;
	sample_set_bool(root, "x_stored", x_uri != NULL);
	sample_set_real(root, "flops", 2 * (double)frame.info.edges / frame.seconds);
}

static void free_x(void)
{
	free(x_host);
}

static const struct tool_option options[] = {
	{ .name = "x",
	  .value = "URI",
	  .kind = TOOL_TEXT,
	  .to = &x_uri,
	  .help = "put the vector on this storage, too, which overwrites its first bytes\n"
		  "(default: it is in device memory)" },
	{ .name = "seed", .value = "N", .kind = TOOL_U64, .to = &seed, .help = "of the vector (default 1)" },
	GRAPH_FRAME_OPTIONS(frame, "compare each row with double precision on the host; what n roundings to\n"
				   "f32 can do is allowed"),
	GRAPH_WEIGHTS_OPTION(frame.setup),
	SAMPLE_OUTPUT_OPTION(frame.output, "the row (f32)"),
	{ .name = NULL },
};

static const struct graph_sample sample = {
	.program = { .name = "weir-spmv",
		     .about = "usage: weir-spmv GRAPH [options]    GRAPH: .bel or .wsg\n"
			      "       weir-spmv --offsets URI --edges URI[,URI...] --weights URI [options]\n"
			      "\n"
			      "A sparse matrix, the weighted graph, times a dense vector, in f32. Row "
			      "bounds, columns\n"
			      "and elements are read from storage by the device's lanes, through a cache.\n",
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
	.close = free_x,
};

int main(int argc, char **argv)
{
	return graph_main(&frame, &sample, argc, argv);
}
