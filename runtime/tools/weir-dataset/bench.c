/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.c: samples per second through weir, beside what else could be done with the same storage in the same
 * run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tool.h"

enum { RUNS = 3 };

static double processor_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void print(const struct tool *tool, const char *what, struct peer_result result)
{
	if (tool->json)
		printf("{\"what\": \"%s\", \"samples_per_s\": %.0f, \"bytes_per_s\": %.0f, \"cores\": "
		       "%.2f}\n",
		       what, result.samples, result.bytes, result.cores);
	else
		printf("%-34s %12.0f samples/s %10.1f MB/s %6.2f cores\n", what, result.samples,
		       result.bytes / 1e6, result.cores);
	fflush(stdout);
}

static int by_samples(const void *a, const void *b)
{
	double left = ((const struct peer_result *)a)->samples,
	       right = ((const struct peer_result *)b)->samples;

	return left < right ? -1 : left > right;
}

/* Whole epochs until the time is over. */
static int run_weir(struct tool *tool, uint32_t order, uint64_t seed, struct peer_result *result)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	double begin = tool_seconds(), cpu = processor_seconds(), spent = 0;
	uint64_t samples = 0, bytes = 0;

	for (uint64_t epoch = 0; spent < tool->seconds; epoch++) {
		struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence),
								  .seed = seed,
								  .epoch = epoch,
								  .order = order,
								  .buffer_chunks = tool->buffer_chunks };

		if (weir_dataset_sequence(tool->dataset, &sequence))
			return tool_failed();
		do {
			if (weir_dataset_bread(tool->dataset, tool->batch, &batch))
				return tool_failed();
			samples += batch.count;
			for (uint32_t i = 0; i < batch.count; i++)
				bytes += batch.host_lengths[i];
			spent = tool_seconds() - begin;
		} while (batch.count && spent < tool->seconds);
	}
	*result = (struct peer_result){ (double)samples / spent, (double)bytes / spent,
					(processor_seconds() - cpu) / spent };
	return TOOL_OK;
}

static int bench_order(struct tool *tool, uint32_t order)
{
	struct peer_result results[RUNS];
	char name[64];

	for (unsigned i = 0; i < RUNS; i++) {
		if (!tool->no_drop)
			peer_drop_caches();
		if (run_weir(tool, order, tool->seed + i, &results[i]))
			return TOOL_FAILED;
	}
	qsort(results, RUNS, sizeof(*results), by_samples);
	snprintf(name, sizeof(name), "weir %s", weir_dataset_order_name(order));
	print(tool, name, results[RUNS / 2]);
	return TOOL_OK;
}

static void print_stats(struct tool *tool)
{
	struct weir_dataset_stats stats = { .size = sizeof(stats) };

	weir_dataset_stats(tool->dataset, &stats);
	if (tool->json)
		printf("{\"what\": \"all runs\", \"samples\": %" PRIu64 ", \"reads\": %" PRIu64
		       ", \"read_bytes\": %" PRIu64 ", \"direct_samples\": %" PRIu64
		       ", \"chunk_loads\": %" PRIu64 ", \"evictions\": %" PRIu64 "}\n",
		       stats.samples, stats.reads, stats.read_bytes, stats.direct_samples, stats.chunk_loads,
		       stats.evictions);
	else
		printf("  of all runs: %" PRIu64 " samples, %" PRIu64 " reads of %.1f KiB, %" PRIu64
		       " straight to their rows, %" PRIu64 " chunks, %" PRIu64 " made room\n",
		       stats.samples, stats.reads,
		       stats.reads ? (double)stats.read_bytes / (double)stats.reads / 1024 : 0,
		       stats.direct_samples, stats.chunk_loads, stats.evictions);
}

/* Names of some samples, in random order. */
static char **some_names(struct tool *tool, uint64_t samples, size_t count)
{
	char **names = calloc(count, sizeof(*names)), text[4096];
	uint64_t state = 1;

	for (size_t i = 0; i < count && names; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		if (weir_dataset_name(tool->dataset, (state >> 20) % samples, text, sizeof(text)))
			return NULL;
		names[i] = strdup(text);
	}
	return names;
}

static int bench_lookup(struct tool *tool)
{
	enum { NAMES = 2000, ROUNDS = 200 };
	struct weir_dataset_info info = { .size = sizeof(info) };
	uint64_t number, numbers[NAMES];
	char **names;
	double begin, one, many;

	if (weir_dataset_info(tool->dataset, &info) || !(names = some_names(tool, info.samples, NAMES)))
		return tool_failed();
	weir_dataset_find(tool->dataset, names[0], &number); /* the index is made */
	begin = tool_seconds();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < NAMES; i++)
			weir_dataset_find(tool->dataset, names[i], &number);
	one = (tool_seconds() - begin) / ROUNDS / NAMES;
	begin = tool_seconds();
	for (unsigned round = 0; round < ROUNDS; round++)
		weir_dataset_find_many(tool->dataset, (const char *const *)names, NAMES, numbers);
	many = (tool_seconds() - begin) / ROUNDS / NAMES;
	weir_dataset_info(tool->dataset, &info);
	if (tool->json)
		printf("{\"what\": \"%s\", \"one_ns\": %.1f, \"many_ns\": %.1f, \"bytes_per_sample\": "
		       "%.2f}\n",
		       tool->lookup == WEIR_DATASET_AVL ? "lookup avl" : "lookup buckets", one * 1e9,
		       many * 1e9, (double)info.directory_bytes / (double)info.samples);
	else
		printf("%-34s %12.1f ns, %.1f ns of many at once, %.2f bytes per sample\n",
		       tool->lookup == WEIR_DATASET_AVL ? "lookup avl" : "lookup buckets", one * 1e9,
		       many * 1e9, (double)info.directory_bytes / (double)info.samples);
	for (unsigned i = 0; i < NAMES; i++)
		free(names[i]);
	free(names);
	return TOOL_OK;
}

static int bench_peers(struct tool *tool)
{
	struct peer_result result;
	char name[64], path[4096];
	double one;

	if (strncmp(tool->operands[0], "file:", 5) == 0) {
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(tool->operands[0] + 5, "?"),
			 tool->operands[0] + 5);
		if (peer_limit(path, 256 << 10, tool->depth, tool->seconds, &result))
			return TOOL_FAILED;
		print(tool, "io_uring, 256 KiB in order (limit)",
		      (struct peer_result){ 0, result.bytes, result.cores });
		if (peer_packed(tool, path, tool->depth, tool->seconds, &result))
			return TOOL_FAILED;
		snprintf(name, sizeof(name), "packed file, io_uring, depth %u", tool->depth);
		print(tool, name, result);
	}
	if (!tool->peers)
		return TOOL_OK;
	if (peer_files(tool->peers, 1, tool->seed, tool->seconds, false, &result))
		return TOOL_FAILED;
	print(tool, "files, open + pread, 1 thread", result);
	if (peer_files(tool->peers, tool->threads, tool->seed, tool->seconds, false, &result))
		return TOOL_FAILED;
	snprintf(name, sizeof(name), "files, open + pread, %u threads", tool->threads);
	print(tool, name, result);
	if (peer_files(tool->peers, 1, tool->seed, tool->seconds, true, &result))
		return TOOL_FAILED;
	one = result.samples > 0 ? 1e9 / result.samples : 0;
	if (tool->json)
		printf("{\"what\": \"open(2) + close(2)\", \"one_ns\": %.1f}\n", one);
	else
		printf("%-34s %12.1f ns, names in the kernel's cache\n", "open(2) + close(2)", one);
	return TOOL_OK;
}

int tool_bench(struct tool *tool)
{
	if (!tool_mount(tool))
		return TOOL_FAILED;
	for (uint32_t order = 0; weir_dataset_order_name(order); order++)
		if ((tool->all_orders || order == tool->order) && bench_order(tool, order))
			return TOOL_FAILED;
	print_stats(tool);
	if (bench_lookup(tool))
		return TOOL_FAILED;
	return bench_peers(tool);
}
