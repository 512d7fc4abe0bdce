/* SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"
#include "convert.h"
#include "number.h"
#include "output.h"
#include "space.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 64u
#define CHUNK_EDGES 16384u /* what a thread takes at a time: long enough to hide the shared counter */

/* One generation. next_edge and stop are shared by the workers, error is guarded by mutex. */
struct generation {
	struct graph_generate_options options;
	const char *out;
	enum graph_format format;
	struct graph_shape shape;
	uint64_t draws;
	struct graph_random_edges edges;
	struct graph_sort *sort;
	struct graph_sink *sink;
	struct graph_progress progress;
	_Atomic uint64_t next_edge;
	atomic_bool stop;
	pthread_mutex_t mutex;
	int status;
	struct graph_error *error;
};

struct worker {
	struct generation *job;
	unsigned lane;
	pthread_t thread;
};

static unsigned available_cpus(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return count < 1 ? 1 : (unsigned)count;
}

static int check(const struct graph_generate_options *options, struct graph_error *error)
{
	if (options->kind != GRAPH_KRONECKER && options->kind != GRAPH_UNIFORM)
		return graph_fail(error, -EINVAL, "%d is no kind of graph: give kron or urand",
				  (int)options->kind);
	if (options->scale < 1 || options->scale > GRAPH_SCALE_MAX)
		return graph_fail(error, -EINVAL,
				  "the scale %u is out of range: give 1 to %u, for 2^scale vertices",
				  options->scale, GRAPH_SCALE_MAX);
	if (options->degree > GRAPH_DEGREE_MAX)
		return graph_fail(error, -EINVAL, "the degree %u is out of range: give 1 to %u",
				  options->degree, GRAPH_DEGREE_MAX);
	if (options->memory_bytes < GRAPH_MEMORY_MIN_BYTES)
		return graph_fail(error, -EINVAL,
				  "a memory budget of %llu bytes is too small: give 1M or more",
				  (unsigned long long)options->memory_bytes);
	return 0;
}

static int check_format(struct graph_generate_options *options, const char *out, struct graph_error *error)
{
	enum graph_format format;
	int status = graph_format_of(out, &format, error);

	if (status)
		return status;
	const struct graph_format_info *info = graph_format_info(format);
	if (options->weighted && info->weights == GRAPH_WEIGHTS_NEVER)
		return graph_fail(error, -EINVAL,
				  "%s cannot hold weights: leave out --weights, or write .bel, .wsg, .wel "
				  "or .mtx",
				  out);
	options->weighted |= info->weights == GRAPH_WEIGHTS_ALWAYS;
	if ((format == GRAPH_SG || format == GRAPH_WSG) && options->scale > 31)
		return graph_fail(error, -EINVAL,
				  "%s cannot hold a graph of scale %u: its ids are signed 32-bit, so the "
				  "scale is at most 31; write .bel instead",
				  out, options->scale);
	return 0;
}

int graph_generate_settle(const struct graph_generate_options *options, const char *out,
			  struct graph_generate_options *settled, struct graph_error *error)
{
	size_t size = options->size < sizeof(*settled) ? options->size : sizeof(*settled);

	memset(settled, 0, sizeof(*settled));
	memcpy(settled, options, size);
	settled->size = sizeof(*settled);
	if (!settled->degree)
		settled->degree = 16;
	if (!settled->memory_bytes)
		settled->memory_bytes = GRAPH_MEMORY_DEFAULT_BYTES;
	if (!settled->threads)
		settled->threads = available_cpus();
	if (settled->threads > THREADS_MAX)
		settled->threads = THREADS_MAX;
	int status = check(settled, error);
	return status ? status : check_format(settled, out, error);
}

/* Both directions of a chunk of edges, without self loops, go to the worker's lane. */
static int draw_chunk(struct generation *job, unsigned lane, uint64_t begin, uint64_t end,
		      struct graph_error *error)
{
	for (uint64_t index = begin; index < end; index++) {
		struct graph_edge edge = graph_random_edge(&job->edges, index);
		if (edge.source == edge.target)
			continue;
		struct graph_edge back = { edge.target, edge.source, 0 };
		int status = graph_sort_push(job->sort, lane, &edge, error);
		if (!status)
			status = graph_sort_push(job->sort, lane, &back, error);
		if (status)
			return status;
	}
	graph_progress_add(&job->progress, end - begin);
	return 0;
}

/* Only the first failure is kept; the others stop at their next chunk. */
static void report_failure(struct generation *job, int status, const struct graph_error *error)
{
	pthread_mutex_lock(&job->mutex);
	if (!job->status) {
		job->status = status;
		*job->error = *error;
	}
	pthread_mutex_unlock(&job->mutex);
	atomic_store_explicit(&job->stop, true,
			      memory_order_relaxed); /* a hint: nothing is read because of it */
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct generation *job = worker->job;
	struct graph_error error;
	int status = 0;

	while (!status && !atomic_load_explicit(&job->stop, memory_order_relaxed)) {
		/* Relaxed: the counter only hands out numbers. */
		uint64_t begin =
			atomic_fetch_add_explicit(&job->next_edge, CHUNK_EDGES, memory_order_relaxed);
		if (begin >= job->draws)
			break;
		uint64_t end = job->draws - begin < CHUNK_EDGES ? job->draws : begin + CHUNK_EDGES;
		status = draw_chunk(job, worker->lane, begin, end, &error);
	}
	if (!status)
		status = graph_sort_flush(job->sort, worker->lane, &error);
	if (status)
		report_failure(job, status, &error);
	return NULL;
}

static int draw_all(struct generation *job, struct graph_error *error)
{
	struct worker workers[THREADS_MAX];
	unsigned started;

	graph_progress_begin(&job->progress, "generating and sorting", job->draws, "edges");
	for (started = 0; started < job->options.threads; started++) {
		workers[started] = (struct worker){ .job = job, .lane = started };
		int code = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
		/* Whoever did start takes the work of those who could not. */
		if (code && !started)
			return graph_fail(error, -code, "cannot start a thread: %s; see ulimit -u",
					  strerror(code));
		if (code)
			break;
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	if (!job->status)
		graph_progress_end(&job->progress);
	return job->status;
}

/* More lanes mean shorter and more runs: give up threads before giving up. */
static int fit_memory(struct generation *job, struct graph_error *error)
{
	struct graph_generate_options *options = &job->options;
	uint64_t bytes = graph_sort_bytes(job->shape.edges, false);

	while (options->threads > 1 &&
	       graph_sort_memory_needed(bytes, options->threads) > options->memory_bytes)
		options->threads--;
	uint64_t needed = graph_sort_memory_needed(bytes, 1);
	if (needed <= options->memory_bytes)
		return 0;
	return graph_fail(error, -ENOMEM,
			  "%llu edges cannot be sorted within %llu bytes of memory: give --memory %llu or "
			  "more",
			  (unsigned long long)job->shape.edges, (unsigned long long)options->memory_bytes,
			  (unsigned long long)needed);
}

static int prepare(struct generation *job, struct graph_error *error)
{
	char directory[GRAPH_PATH_BYTES];
	const struct graph_generate_options *options = &job->options;

	graph_directory_of(job->out, directory);
	struct graph_sort_options sort = {
		.directory = directory,
		.memory_bytes = options->memory_bytes - options->memory_bytes / 16,
		.lanes = options->threads,
		.expected_edges = job->shape.edges,
		.unique = true,
	};
	int status = graph_space_check(job->out, graph_output_bytes(job->format, &job->shape),
				       graph_sort_bytes(job->shape.edges, false), error);
	/* Opened first, so that a name that cannot be written is found before the work. */
	if (!status)
		status = graph_sink_open(job->out, &job->shape, options->memory_bytes / 2, &job->progress,
					 &job->sink, error);
	return status ? status : graph_sort_create(&sort, &job->sort, error);
}

static int generate(struct generation *job, struct graph_error *error)
{
	const uint64_t weight_key = graph_key(job->options.seed, GRAPH_FOR_WEIGHTS);
	int status = fit_memory(job, error);

	if (!status)
		status = prepare(job, error);
	if (!status)
		status = draw_all(job, error);
	if (!status)
		status = graph_sort_merge(job->sort, job->options.memory_bytes / 2, error);
	if (!status)
		status = graph_drain(job->sort, job->sink, job->options.weighted ? &weight_key : NULL,
				     &job->progress, error);
	return status ? status : graph_sink_finish(job->sink, error);
}

int graph_generate(const struct graph_generate_options *options, const char *out, char *text,
		   size_t text_bytes)
{
	struct graph_error error;
	struct generation job = { .out = out, .error = &error };
	int status = graph_generate_settle(options, out, &job.options, &error);

	if (!status)
		status = graph_format_of(out, &job.format, &error);
	if (status)
		return graph_error_copy(&error, status, text, text_bytes);
	/* degree <= 2^20 and scale <= 32: no product here comes near 64 bits. */
	job.draws = (uint64_t)job.options.degree << job.options.scale;
	job.shape = (struct graph_shape){
		.vertices = UINT64_C(1) << job.options.scale,
		.edges = 2 * job.draws,
		.weighted = job.options.weighted,
	};
	graph_random_edges_init(&job.edges, job.options.kind, job.options.scale, job.options.seed);
	graph_progress_init(&job.progress, job.options.report, job.options.report);
	pthread_mutex_init(&job.mutex, NULL);
	status = generate(&job, &error);
	graph_sort_destroy(job.sort);
	graph_sink_close(job.sink);
	pthread_mutex_destroy(&job.mutex);
	graph_progress_close(&job.progress);
	return graph_error_copy(&error, status, text, text_bytes);
}
