/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "rng.h"

enum { SPREAD = 16 }; /* lines of the dataset per line of the cache */

const char *const trace_names[TRACE_COUNT] = { "zipf", "scan", "loop", "mixed", "bfs" };
const char *const trace_texts[TRACE_COUNT] = {
	"places by a Zipf law over 16 times the cache",
	"one line after the other, 16 times the cache, again and again",
	"the same lines in a row, 9/8 of the cache, again and again",
	"the Zipf law, and after every two caches' worth of reads a scan as long",
	"a breadth-first search of a Kronecker graph of 4 to 8 times the cache, in order of its levels",
};

/** struct zipf - @rank: running sums of r^-theta; @scatter: which line has rank r */
struct zipf {
	double *rank;
	uint64_t *scatter;
	uint64_t span;
	uint64_t key;
};

static double fraction(uint64_t key, uint64_t step)
{
	return (double)(graph_random(key, step) >> 11) / (double)(UINT64_C(1) << 53);
}

static void shuffle(uint64_t *values, uint64_t count, uint64_t key)
{
	for (uint64_t i = count; i > 1; i--) {
		uint64_t j = graph_random(key, i) % i, kept = values[i - 1];

		values[i - 1] = values[j];
		values[j] = kept;
	}
}

static int zipf_open(struct zipf *zipf, const struct trace_shape *shape)
{
	double sum = 0;

	zipf->span = SPREAD * shape->cache_lines;
	zipf->key = weir_mix_u64(shape->seed + 1);
	zipf->rank = malloc(zipf->span * sizeof(*zipf->rank));
	zipf->scatter = malloc(zipf->span * sizeof(*zipf->scatter));
	if (!zipf->rank || !zipf->scatter)
		return -ENOMEM;
	for (uint64_t i = 0; i < zipf->span; i++) {
		sum += pow((double)(i + 1), -shape->theta);
		zipf->rank[i] = sum;
		zipf->scatter[i] = i;
	}
	shuffle(zipf->scatter, zipf->span, weir_mix_u64(shape->seed + 2));
	return 0;
}

static void zipf_close(struct zipf *zipf)
{
	free(zipf->rank);
	free(zipf->scatter);
}

static uint64_t zipf_draw(const struct zipf *zipf, uint64_t step)
{
	double wanted = fraction(zipf->key, step) * zipf->rank[zipf->span - 1];
	uint64_t low = 0, high = zipf->span - 1;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (zipf->rank[middle] > wanted)
			high = middle;
		else
			low = middle + 1;
	}
	return zipf->scatter[low];
}

static uint64_t loop_lines(const struct trace_shape *shape)
{
	return shape->cache_lines * 9 / 8;
}

/* A line of the kinds that need no search. */
static uint64_t line_at(enum trace_kind kind, const struct trace_shape *shape, const struct zipf *zipf,
			uint64_t step)
{
	uint64_t phase = 2 * shape->cache_lines, round = step / phase;

	switch (kind) {
	case TRACE_SCAN: return step % zipf->span;
	case TRACE_LOOP: return step % loop_lines(shape);
	case TRACE_MIXED:
		if (round % 2) /* behind the lines of the Zipf law, each scan where the last one ended */
			return zipf->span + (round / 2 * phase + step % phase) % zipf->span;
		return zipf_draw(zipf, step);
	default: return zipf_draw(zipf, step);
	}
}

int trace_make(enum trace_kind kind, const struct trace_shape *shape, struct trace *trace)
{
	struct zipf zipf = { .rank = NULL };
	int error;

	trace->lines = NULL;
	if (kind == TRACE_BFS)
		return trace_bfs(shape, trace);
	error = zipf_open(&zipf, shape);
	trace->count = shape->reads;
	trace->span = kind == TRACE_LOOP    ? loop_lines(shape)
		      : kind == TRACE_MIXED ? 2 * zipf.span
					    : zipf.span;
	if (!error)
		trace->lines = malloc(trace->count * sizeof(*trace->lines));
	for (uint64_t i = 0; trace->lines && i < trace->count; i++)
		trace->lines[i] = line_at(kind, shape, &zipf, i);
	zipf_close(&zipf);
	return trace->lines ? 0 : -ENOMEM;
}
