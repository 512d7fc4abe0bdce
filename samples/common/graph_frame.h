/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_frame.h: the course of a graph sample: open, compute over storage, verify, compute
 * once more in plain memory, print.
 */
#ifndef SAMPLE_GRAPH_FRAME_H
#define SAMPLE_GRAPH_FRAME_H

#include "graph_host.h"
#include "values.h"
#include "reference.h"

struct graph_frame;

/**
 * struct graph_sample - what a sample adds
 * @program: its command line
 * @args, @args_bytes: its kernels' arguments, which begin with a struct graph_data
 * @prepare: memory, and what is worked out once per graph; @args has the graph already
 * @run: the computation, through the cache or in plain memory
 * @verify: what @run left against a computation of the host's
 * @output: what @run left, into frame->output; NULL where that is no option
 * @print: lines about the result
 * @json: the same figures
 * @close: before the graph is closed; NULL: nothing to do
 *
 * What can fail returns 0 or a negative errno with a sentence.
 */
struct graph_sample {
	struct tool_program program;
	void *args;
	size_t args_bytes;
	int (*prepare)(struct graph_frame *frame, char *error);
	int (*run)(struct graph_frame *frame, bool plain, char *error);
	int (*verify)(struct graph_frame *frame, const struct reference_graph *reference, char *error);
	int (*output)(struct graph_frame *frame, char *error);
	void (*print)(const struct graph_frame *frame);
	void (*json)(const struct graph_frame *frame, json_t *root);
	void (*close)(void);
};

/**
 * struct graph_frame - one run of a sample
 * @sample: which
 * @setup, @plain, @verify, @json, @repeat, @output: the command line
 * @graph, @info: what is open
 * @blocks: to launch kernels over all edges or vertices with
 * @stored_lanes: to launch them with where the graph is read through the cache: no more than have lines of it
 * for themselves, or they would take each other's before they are done with them
 * @state_bytes: device memory of the computation, for @prepare to fill in
 * @passes: how often @run goes over all edges, for it to fill in; 0: once
 * @prepare_seconds: what @prepare took
 * @seconds: of the first run; @again: median of the later ones; @plain_seconds: in plain memory
 * @totals: I/O of the first run
 */
struct graph_frame {
	const struct graph_sample *sample;
	struct graph_setup setup;
	bool plain;
	bool verify;
	bool json;
	uint32_t repeat;
	const char *output;
	struct graph_host *graph;
	struct graph_info info;
	uint32_t blocks;
	uint64_t stored_lanes;
	uint64_t state_bytes;
	uint32_t passes;
	double prepare_seconds;
	double seconds;
	double again;
	double plain_seconds;
	struct graph_totals totals;
};

/** GRAPH_FRAME_OPTIONS() - rows of a table of options; @what: the result, for --help */
#define GRAPH_FRAME_OPTIONS(frame, what)                                                                     \
	SAMPLE_CACHE_OPTIONS((frame).setup.cache, "an eighth of the graph"),                                 \
		{ .name = "plain",                                                                           \
		  .kind = TOOL_FLAG,                                                                         \
		  .to = &(frame).plain,                                                                      \
		  .help = "afterwards copy the graph into device memory and run the same kernels\n"          \
			  "there, without cache and storage: the limit, and the ratio to it" },              \
		{ .name = "repeat",                                                                          \
		  .value = "N",                                                                              \
		  .kind = TOOL_U32,                                                                          \
		  .to = &(frame).repeat,                                                                     \
		  .most = SAMPLE_MOST_REPEATS,                                                               \
		  .help = "run N times more with what the first time left in the cache; their\n"             \
			  "median is reported next to the first time (default 0)" },                         \
		{ .name = "verify", .kind = TOOL_FLAG, .to = &(frame).verify, .help = what },                \
		{ .name = "json",                                                                            \
		  .kind = TOOL_FLAG,                                                                         \
		  .to = &(frame).json,                                                                       \
		  .help = "print the result as JSON" },                                                      \
		SAMPLE_DEVICE_OPTIONS((frame).setup.device), GRAPH_OPTIONS((frame).setup)

/** graph_alloc() - zeroed device memory, counted in @frame's state; weir_last_error() */
int graph_alloc(struct graph_frame *frame, uint64_t bytes, uint64_t *address);

/** graph_kernel() - run one of the sample's kernels that does without the graph; weir_last_error() */
int graph_kernel(struct graph_frame *frame, const char *name);

/**
 * graph_walk() - run a kernel over the graph, and refuse what it found wrong with it; a sentence
 * @step: its name without what graph_kernels() and the sample have before it: "edges" for cc_edges,
 * cc_gapbs_edges and cc_plain_edges
 */
int graph_walk(struct graph_frame *frame, const char *step, bool plain, char *error);

/** graph_find_chunks() - run the kernel "rows", of edges_find_rows(): makes what edges_walk() needs; a
 * sentence */
int graph_find_chunks(struct graph_frame *frame, char *error);

/** graph_main() - a sample's main() */
int graph_main(struct graph_frame *frame, const struct graph_sample *sample, int argc, char **argv);

#endif
