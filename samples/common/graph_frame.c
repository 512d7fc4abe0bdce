/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph_frame.h"

#include <stdio.h>
#include <string.h>

#include "edges.h"

int graph_alloc(struct graph_frame *frame, uint64_t bytes, uint64_t *address)
{
	frame->state_bytes += bytes;
	return weir_alloc(frame->graph->context, bytes, address);
}

int graph_kernel(struct graph_frame *frame, const char *name)
{
	return sample_run(frame->graph->context, name, frame->blocks, frame->sample->args,
			  frame->sample->args_bytes);
}

/* "weir-cc"'s kernel "edges" is cc_edges, cc_plain_edges or cc_gapbs_edges. */
static const char *kernel_name(const struct graph_frame *frame, const char *step, bool plain)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s_%s%s", frame->sample->program.name + strlen("weir-"),
		 graph_kernels(frame->graph, plain), step);
	return name;
}

int graph_walk(struct graph_frame *frame, const char *step, bool plain, char *error)
{
	struct graph_counters counters;
	uint64_t lanes = plain ? (uint64_t)frame->blocks * SAMPLE_BLOCK_LANES : frame->stored_lanes;
	int code = sample_run_lanes(frame->graph->context, kernel_name(frame, step, plain), lanes,
				    frame->sample->args, frame->sample->args_bytes);

	return code ? sample_pass(error, code) : graph_read_counters(frame->graph, &counters, error);
}

int graph_find_chunks(struct graph_frame *frame, char *error)
{
	uint64_t chunks = edges_chunk_from(frame->graph->data.edges);
	int code = graph_alloc(frame, chunks * 8 + 8, &frame->graph->data.chunk_rows);

	memcpy(frame->sample->args, &frame->graph->data, sizeof(frame->graph->data));
	return code ? sample_pass(error, code) : graph_walk(frame, "rows", false, error);
}

/*
 * Lanes for all edges, or all vertices, if they are more. One that reads through the cache has a line of each
 * array, of unaligned edges the ends of two, and lines fall into sets at random: a set gets twice its share
 * now and then, so half of the cache is left free.
 */
static int choose_lanes(struct graph_frame *frame)
{
	uint64_t chunks = edges_chunk_from(frame->info.edges), vertices = frame->info.vertices, most;
	uint64_t lanes = frame->info.cache_lines / (frame->setup.weighted || frame->graph->gapbs ? 3 : 2) / 2;
	struct weir_context_info info = { .size = sizeof(info) };
	int code =
		sample_blocks(frame->graph->context, chunks > vertices ? chunks : vertices, &frame->blocks);

	if (!code)
		code = weir_context_info(frame->graph->context, &info);
	most = (uint64_t)frame->blocks * SAMPLE_BLOCK_LANES;
	lanes = (lanes < most ? lanes : most) / info.wave_lanes * info.wave_lanes;
	frame->stored_lanes = lanes ? lanes : info.wave_lanes;
	return code;
}

static int open_graph(struct graph_frame *frame, char *error)
{
	double begin;
	int code;

	frame->setup.stored = true;
	frame->setup.plain = frame->plain;
	code = graph_open(&frame->setup, &frame->graph, &frame->info, error);
	if (!code)
		code = sample_pass(error, choose_lanes(frame));
	if (!code)
		code = graph_clear_counters(frame->graph, error);
	if (code)
		return code;
	memcpy(frame->sample->args, &frame->graph->data, sizeof(frame->graph->data));
	begin = sample_now();
	code = frame->sample->prepare(frame, error);
	frame->prepare_seconds = sample_now() - begin;
	return code;
}

static int run_once(struct graph_frame *frame, bool plain, double *seconds, char *error)
{
	double begin = sample_now();
	int code = frame->sample->run(frame, plain, error);

	*seconds = sample_now() - begin;
	return code;
}

/* From storage: the first time, then more often. */
static int run_stored(struct graph_frame *frame, char *error)
{
	double seconds[SAMPLE_MOST_REPEATS];
	struct graph_totals before;
	int code = sample_pass(error, graph_read_totals(frame->graph, &before));

	if (!code)
		code = run_once(frame, false, &frame->seconds, error);
	if (!code)
		code = sample_pass(error, graph_read_totals(frame->graph, &frame->totals));
	frame->totals = graph_difference(frame->totals, before);
	for (uint32_t i = 0; i < frame->repeat && !code; i++)
		code = run_once(frame, false, &seconds[i], error);
	if (!code)
		frame->again = sample_median(seconds, frame->repeat);
	return code;
}

/* The second time counts: the first one loads the kernels. */
static int run_plain(struct graph_frame *frame, char *error)
{
	int code = frame->plain ? run_once(frame, true, &frame->plain_seconds, error) : 0;

	if (!code && frame->plain)
		code = run_once(frame, true, &frame->plain_seconds, error);
	return code;
}

static int run_all(struct graph_frame *frame, char *error)
{
	const char *path = frame->verify ? graph_reference_path(&frame->setup, error) : "";
	struct reference_graph reference = { .vertices = 0 };
	int code = path ? 0 : -1;

	if (!code)
		code = open_graph(frame, error);
	if (!code)
		code = run_stored(frame, error);
	if (!code && frame->verify)
		code = reference_load(path, frame->setup.weighted, frame->info.vertices, frame->info.edges,
				      &reference, error);
	if (!code && frame->verify)
		code = frame->sample->verify(frame, &reference, error);
	if (!code && frame->output)
		code = frame->sample->output(frame, error);
	if (!code)
		code = run_plain(frame, error);
	if (!code && frame->verify && frame->plain)
		code = frame->sample->verify(frame, &reference, error);
	reference_free(&reference);
	return code;
}

static void print_text(const struct graph_frame *frame)
{
	double edges = (double)frame->info.edges * (frame->passes ? frame->passes : 1);

	graph_print(&frame->info);
	printf("state     %.1f MiB of device memory, prepared in %.3f s\n",
	       sample_megabytes(frame->state_bytes), frame->prepare_seconds);
	frame->sample->print(frame);
	printf("time      %.3f s, %.2f million edges/s\n", frame->seconds, edges / frame->seconds / 1e6);
	printf("I/O       %llu commands, %.1f MiB read, %.0f thousand commands/s\n",
	       (unsigned long long)frame->totals.commands, sample_megabytes(frame->totals.bytes_read),
	       (double)frame->totals.commands / frame->seconds / 1e3);
	if (frame->repeat)
		printf("again     %u times: median %.3f s\n", frame->repeat, frame->again);
	if (frame->plain)
		printf("plain     %.3f s in plain memory; from storage takes %.2f times as long\n",
		       frame->plain_seconds, frame->seconds / frame->plain_seconds);
	if (frame->plain && frame->repeat)
		printf("          with what was left in the cache %.2f times\n",
		       frame->again / frame->plain_seconds);
	printf("result    %s\n", frame->verify ? "verified: the host comes to the same"
					       : "not verified (--verify compares with the host's)");
}

static void print_json(const struct graph_frame *frame)
{
	json_t *root = json_object();

	graph_set_json(root, &frame->info);
	sample_set_count(root, "state_bytes", frame->state_bytes);
	sample_set_real(root, "prepare_seconds", frame->prepare_seconds);
	sample_set_real(root, "seconds", frame->seconds);
	sample_set_count(root, "misses", frame->totals.misses);
	sample_set_count(root, "commands", frame->totals.commands);
	sample_set_count(root, "bytes_read", frame->totals.bytes_read);
	frame->sample->json(frame, root);
	if (frame->repeat)
		sample_set_real(root, "warm_seconds", frame->again);
	if (frame->plain) {
		sample_set_count(root, "plain_bytes", frame->info.plain_bytes);
		sample_set_real(root, "plain_seconds", frame->plain_seconds);
		sample_set_real(root, "ratio", frame->seconds / frame->plain_seconds);
	}
	if (frame->plain && frame->repeat)
		sample_set_real(root, "warm_ratio", frame->again / frame->plain_seconds);
	sample_set_bool(root, "verified", frame->verify);
	sample_print_json(root);
}

int graph_main(struct graph_frame *frame, const struct graph_sample *sample, int argc, char **argv)
{
	char error[SAMPLE_ERROR_BYTES] = "";
	int code = tool_parse(&sample->program, argc, argv);
	const char *wrong = graph_check_setup(&frame->setup);

	if (code >= 0)
		return code;
	if (wrong)
		return tool_usage("%s", wrong);
	frame->sample = sample;
	code = run_all(frame, error);
	if (!code)
		(frame->json ? print_json : print_text)(frame);
	if (sample->close)
		sample->close();
	code = graph_close(frame->graph, code, error);
	return code ? tool_complain("%s", error) : 0;
}
