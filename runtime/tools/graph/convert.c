/* SPDX-License-Identifier: BSD-3-Clause */
#include "convert.h"
#include "apart.h"
#include "output.h"
#include "rng.h"
#include "space.h"
#include "symmetry.h"

#include <errno.h>

/* More vertices than this are to have an edge for so many of them. */
enum { SURE_VERTICES = 1 << 20, MOST_VERTICES_PER_EDGE = 1024 };

/* One conversion: what graph_convert() was given, and what it found out. */
struct conversion {
	const struct graph_convert_options *options;
	const char *in;
	const char *out;
	enum graph_format format; /* of the output */
	struct graph_source *source;
	struct graph_sink *sink;
	struct graph_sort *sort;
	struct graph_shape shape;
	struct graph_symmetry symmetry;
};

int graph_drain(struct graph_sort *sort, struct graph_sink *sink, const uint64_t *weight_key,
		struct graph_progress *progress, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	graph_progress_begin(progress, "merging and writing", graph_sort_edges(sort), "edges");
	do {
		int status = graph_sort_next(sort, edges, GRAPH_BATCH_EDGES, &count, error);
		for (size_t i = 0; weight_key && !status && i < count; i++)
			edges[i].weight = graph_edge_weight(*weight_key, edges[i].source, edges[i].target);
		if (!status)
			status = graph_sink_push(sink, edges, count, error);
		if (status)
			return status;
		graph_progress_add(progress, count);
	} while (count);
	graph_progress_end(progress);
	return 0;
}

/* Decides whether the output has weights, and says so when the input's are lost. */
static int settle_weights(struct conversion *job, struct graph_error *error)
{
	const struct graph_format_info *info = graph_format_info(job->format);

	job->shape.weighted = job->source->weighted && info->weights != GRAPH_WEIGHTS_NEVER;
	if (info->weights == GRAPH_WEIGHTS_ALWAYS && !job->source->weighted)
		return graph_fail(error, -EINVAL, "%s has no weights and %s needs them: write %s instead",
				  job->in, job->out, job->format == GRAPH_WSG ? ".sg" : ".el");
	if (job->source->weighted && !job->shape.weighted)
		graph_progress_note(job->options->progress,
				    "the weights of %s are dropped, as %s files hold none", job->in,
				    info->extension);
	return 0;
}

/* The header of a file may claim that edges are stored both ways; they themselves have the last word. */
static void settle_direction(struct conversion *job)
{
	const struct graph_source *source = job->source;
	bool symmetric = source->sure || job->options->symmetrize || graph_is_symmetric(&job->symmetry);

	job->shape.directed =
		source->direction == GRAPH_DIRECTED && !job->options->symmetrize ? true : !symmetric;
	if (source->direction == GRAPH_UNDIRECTED && !symmetric)
		graph_progress_note(job->options->progress,
				    "%s says that it is undirected, but not every edge is stored "
				    "both ways: it is taken as directed",
				    job->in);
}

static void progress_begin_reading(const struct conversion *job, const char *phase)
{
	bool text = graph_format_info(job->source->format)->text;
	graph_progress_begin(job->options->progress, phase, text ? job->source->bytes : job->source->edges,
			     text ? "bytes" : "edges");
}

/* The next batch of the source, accounted for in the progress. */
static int read_batch(struct conversion *job, struct graph_edge *edges, size_t *count,
		      struct graph_error *error)
{
	uint64_t before = job->source->bytes_read;
	int status = graph_source_next(job->source, edges, GRAPH_BATCH_EDGES, count, error);

	if (status)
		return status;
	/* Dropped weights are gone from here on: they must not decide whether edges go both ways. */
	for (size_t i = 0; !job->shape.weighted && i < *count; i++)
		edges[i].weight = 0;
	/* A file that ends in comments counts whole. */
	bool text = graph_format_info(job->source->format)->text;
	uint64_t after = *count || !text ? job->source->bytes_read : job->source->bytes;
	graph_progress_add(job->options->progress, text ? after - before : *count);
	return 0;
}

/* An extra pass over compressed rows, made only when the answer is needed. */
static int find_symmetry(struct conversion *job, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	progress_begin_reading(job, "looking whether edges are stored both ways");
	do {
		int status = read_batch(job, edges, &count, error);
		if (status)
			return status;
		graph_symmetry_add(&job->symmetry, edges, count);
	} while (count);
	graph_progress_end(job->options->progress);
	return graph_source_rewind(job->source, error);
}

static int open_sink(struct conversion *job, struct graph_error *error)
{
	uint64_t inverse_bytes = 0;

	if (job->shape.directed && (job->format == GRAPH_SG || job->format == GRAPH_WSG))
		inverse_bytes = graph_sort_bytes(job->shape.edges, job->shape.weighted);
	int status = graph_space_check(job->out, graph_output_bytes(job->format, &job->shape), inverse_bytes,
				       error);
	if (status)
		return status;
	return graph_sink_open(job->out, &job->shape, job->options->memory_bytes / 2, job->options->progress,
			       &job->sink, error);
}

/* Rows are rows: copy them as they are. */
static int convert_grouped(struct conversion *job, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = 0;

	if (graph_format_info(job->format)->says_direction && job->source->direction != GRAPH_DIRECTED)
		status = find_symmetry(job, error);
	settle_direction(job);
	job->shape.vertices = job->source->vertices;
	job->shape.edges = job->source->edges;
	if (!status)
		status = open_sink(job, error);
	if (status)
		return status;
	progress_begin_reading(job, "copying");
	do {
		status = read_batch(job, edges, &count, error);
		if (!status)
			status = graph_sink_push(job->sink, edges, count, error);
		if (status)
			return status;
	} while (count);
	graph_progress_end(job->options->progress);
	return 0;
}

static int open_sort(struct conversion *job, struct graph_error *error)
{
	char directory[GRAPH_PATH_BYTES];
	const uint64_t memory = job->options->memory_bytes;

	graph_directory_of(job->out, directory);
	struct graph_sort_options options = {
		.directory = directory,
		.memory_bytes = memory - memory / 16,
		.lanes = 1,
		.expected_edges = job->source->edges * (job->options->symmetrize ? 2 : 1),
		.weighted = job->shape.weighted,
		.unique = job->options->symmetrize,
	};
	return graph_sort_create(&options, &job->sort, error);
}

static int push_batch(struct conversion *job, const struct graph_edge *edges, size_t count,
		      struct graph_error *error)
{
	const bool both = job->options->symmetrize;

	for (size_t i = 0; i < count; i++) {
		if (both && edges[i].source == edges[i].target)
			continue;
		int status = graph_sort_push(job->sort, 0, &edges[i], error);
		if (both && !status) {
			struct graph_edge back = { edges[i].target, edges[i].source, edges[i].weight };
			status = graph_sort_push(job->sort, 0, &back, error);
		}
		if (status)
			return status;
	}
	return 0;
}

static int fill_sort(struct conversion *job, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	progress_begin_reading(job, "reading and sorting");
	do {
		int status = read_batch(job, edges, &count, error);
		if (!status)
			status = push_batch(job, edges, count, error);
		if (status)
			return status;
		graph_symmetry_add(&job->symmetry, edges, count);
	} while (count);
	graph_progress_end(job->options->progress);
	return graph_sort_flush(job->sort, 0, error);
}

/* Rows are written for every vertex, so that a few bytes of text must not claim thousands of millions. */
static int check_vertices(const struct conversion *job, uint64_t edges, struct graph_error *error)
{
	uint64_t vertices = job->source->vertices;

	if (job->options->force || job->options->vertices || job->source->grouped ||
	    graph_format_info(job->format)->text)
		return 0;
	if (vertices <= SURE_VERTICES || vertices / MOST_VERTICES_PER_EDGE <= edges)
		return 0;
	return graph_fail(error, -EINVAL,
			  "%s has %llu vertices for %llu edges at most, so that %s would be made of empty "
			  "rows: number the "
			  "vertices without gaps, or give --force to have them all",
			  job->in, (unsigned long long)vertices, (unsigned long long)edges, job->out);
}

static int convert_sorted(struct conversion *job, struct graph_error *error)
{
	int status = open_sort(job, error);

	if (!status)
		status = fill_sort(job, error);
	if (status)
		return status;
	status = check_vertices(job, graph_sort_edges(job->sort), error);
	if (status)
		return status;
	settle_direction(job);
	job->shape.vertices = job->source->vertices;
	job->shape.edges = graph_sort_edges(job->sort);
	status = open_sink(job, error);
	if (!status)
		status = graph_sort_merge(job->sort, job->options->memory_bytes / 2, error);
	return status ? status : graph_drain(job->sort, job->sink, NULL, job->options->progress, error);
}

static int convert(struct conversion *job, struct graph_error *error)
{
	int status = settle_weights(job, error);

	if (!status)
		status = check_vertices(job, job->source->edges, error); /* as far as a header tells them */
	if (status)
		return status;
	if (job->source->grouped && !job->options->symmetrize)
		status = convert_grouped(job, error);
	else
		status = convert_sorted(job, error);
	return status ? status : graph_sink_finish(job->sink, error);
}

int graph_convert(const char *in, const char *out, const struct graph_convert_options *options,
		  struct graph_error *error)
{
	struct conversion job = { .options = options, .in = in, .out = out };
	int status = graph_format_of(out, &job.format, error);

	/* A name that cannot be written is found before the work (sets find theirs when their files are
	 * created). */
	if (!status && job.format != GRAPH_BEL)
		status = graph_output_check(out, error);
	if (!status)
		status = graph_check_apart(in, out, error);
	if (!status)
		status = graph_source_open(in, options->vertices, options->progress, &job.source, error);
	if (!status)
		status = convert(&job, error);
	graph_sort_destroy(job.sort);
	graph_sink_close(job.sink);
	graph_source_close(job.source);
	return status;
}
