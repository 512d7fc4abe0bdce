/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.c: samples per second through weir, beside what else could be done with the same storage in the same
 * run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tool.h"

enum { MOST_RUNS = 15, MOST_WAYS = 8, PATH_BYTES = 4096, ALL_NAMES_SECONDS = 3600 };

/** struct way - one way to read, and what its runs gave */
struct way {
	char name[64];
	int (*run)(struct tool *tool, const struct way *way, uint64_t seed, struct peer_result *result);
	uint32_t order, threads;
	struct peer_result results[MOST_RUNS];
};

static double processor_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* The most memory that this process had at once; getrusage() may have it of the program that started it. */
static uint64_t peak_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long long kilobytes = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %llu", &kilobytes) == 1)
			break;
	if (status)
		fclose(status);
	return kilobytes << 10;
}

static int by_bytes(const void *a, const void *b)
{
	double left = ((const struct peer_result *)a)->bytes, right = ((const struct peer_result *)b)->bytes;

	return left < right ? -1 : left > right;
}

static void print_runs(const struct tool *tool, const struct way *way)
{
	for (uint32_t i = 0; i < tool->runs; i++) {
		const struct peer_result *run = &way->results[i];

		printf("%s{\"samples_per_s\": %.0f, \"bytes_per_s\": %.0f, \"cores\": %.2f, \"seconds\": "
		       "%.6f}",
		       i ? ", " : "", run->samples, run->bytes, run->cores, run->seconds);
	}
}

/* The median, and in JSON all runs in their order. */
static void print(const struct tool *tool, const struct way *way)
{
	struct peer_result sorted[MOST_RUNS], median;

	memcpy(sorted, way->results, sizeof(sorted));
	qsort(sorted, tool->runs, sizeof(*sorted), by_bytes);
	median = sorted[tool->runs / 2];
	if (tool->runs % 2 == 0) {
		const struct peer_result *other = &sorted[tool->runs / 2 - 1];

		median.samples = (median.samples + other->samples) / 2;
		median.bytes = (median.bytes + other->bytes) / 2;
		median.cores = (median.cores + other->cores) / 2;
	}
	if (tool->json) {
		printf("{\"what\": \"%s\", \"samples_per_s\": %.0f, \"bytes_per_s\": %.0f, \"cores\": "
		       "%.2f, \"ranks\": %u, \"runs\": [",
		       way->name, median.samples, median.bytes, median.cores, tool->communicator->ranks);
		print_runs(tool, way);
		printf("]}\n");
	} else {
		printf("%-34s %12.0f samples/s %10.1f MB/s %6.2f cores\n", way->name, median.samples,
		       median.bytes / 1e6, median.cores);
	}
	fflush(stdout);
}

/** struct reading - what a rank has read */
struct reading {
	uint64_t samples, bytes;
	double seconds, processor;
	int32_t error;
};

/** struct counting - since when a rank counts what it reads */
struct counting {
	double begin, processor;
	bool ramp; /* not yet: queues and buffers are being filled */
};

static void count_batch(struct tool *tool, struct counting *counting, const struct weir_dataset_batch *batch,
			struct reading *reading)
{
	double now = tool_seconds();

	for (uint32_t i = 0; i < batch->count; i++)
		reading->bytes += batch->host_lengths[i];
	reading->samples += batch->count;
	reading->seconds = now - counting->begin;
	if (counting->ramp && reading->seconds >= tool->ramp) {
		*counting = (struct counting){ now, processor_seconds(), false };
		*reading = (struct reading){ 0 };
	}
}

/* Whole epochs until the time is over; of ranks, this one's share of each. */
static int read_epochs(struct tool *tool, uint32_t order, uint64_t seed, struct reading *reading)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct counting counting = { tool_seconds(), processor_seconds(), tool->ramp > 0 };
	int error = 0;

	for (uint64_t epoch = 0; !error && (counting.ramp || reading->seconds < tool->seconds); epoch++) {
		struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence),
								  .seed = seed,
								  .epoch = epoch,
								  .order = order,
								  .buffer_chunks = tool->buffer_chunks };

		error = weir_dataset_sequence(tool->dataset, &sequence);
		do {
			error = error ? error : weir_dataset_bread(tool->dataset, tool->batch, &batch);
			if (!error)
				count_batch(tool, &counting, &batch, reading);
		} while (!error && batch.count && (counting.ramp || reading->seconds < tool->seconds));
	}
	reading->processor = processor_seconds() - counting.processor;
	return error;
}

/* @bytes at @mine of each rank, in rank order; NULL after a sentence. Also waits for all ranks. */
static void *of_all_ranks(struct tool *tool, const void *mine, size_t bytes)
{
	size_t *counts = calloc(tool->communicator->ranks, sizeof(*counts));
	void *all = NULL;

	if (!counts || tool->communicator->gather(tool->communicator, mine, bytes, &all, counts)) {
		tool_failed();
		all = NULL;
	}
	free(counts);
	return all;
}

/* What all ranks read, in the time of the slowest; a rank that failed has said so, and fails them all. */
static int run_weir(struct tool *tool, const struct way *way, uint64_t seed, struct peer_result *result)
{
	struct reading reading = { .error = 0 }, *all;
	int error = 0;

	if (!tool->no_drop && !tool->communicator->rank)
		peer_drop_caches();
	free(of_all_ranks(tool, &reading, sizeof(reading))); /* they begin together */
	reading.error = read_epochs(tool, way->order, seed, &reading);
	if (reading.error)
		tool_failed();
	all = of_all_ranks(tool, &reading, sizeof(reading));
	if (!all)
		return TOOL_FAILED;
	*result = (struct peer_result){ 0 };
	for (uint32_t i = 0; i < tool->communicator->ranks; i++) {
		result->samples += (double)all[i].samples;
		result->bytes += (double)all[i].bytes;
		result->cores += all[i].processor;
		result->seconds = all[i].seconds > result->seconds ? all[i].seconds : result->seconds;
		error = all[i].error ? all[i].error : error;
	}
	free(all);
	if (error)
		return TOOL_FAILED;
	result->samples /= result->seconds;
	result->bytes /= result->seconds;
	result->cores /= result->seconds;
	return TOOL_OK;
}

/** struct totals - counters of a rank, of all runs */
struct totals {
	uint64_t samples, reads, read_bytes, direct_samples, chunk_loads, evictions, cache_full_samples,
		peak_bytes;
};

static int sum_stats(struct tool *tool, struct totals *sum)
{
	struct weir_dataset_stats stats = { .size = sizeof(stats) };
	struct totals mine, *all;
	int status = weir_dataset_stats(tool->dataset, &stats) ? tool_failed() : TOOL_OK;

	mine = (struct totals){
		stats.samples,     stats.reads,     stats.read_bytes,         stats.direct_samples,
		stats.chunk_loads, stats.evictions, stats.cache_full_samples, peak_bytes()
	};
	all = of_all_ranks(tool, &mine, sizeof(mine));
	for (uint32_t i = 0; all && i < tool->communicator->ranks; i++) {
		sum->samples += all[i].samples;
		sum->reads += all[i].reads;
		sum->read_bytes += all[i].read_bytes;
		sum->direct_samples += all[i].direct_samples;
		sum->chunk_loads += all[i].chunk_loads;
		sum->evictions += all[i].evictions;
		sum->cache_full_samples += all[i].cache_full_samples;
		sum->peak_bytes = all[i].peak_bytes > sum->peak_bytes ? all[i].peak_bytes : sum->peak_bytes;
	}
	free(all);
	return all ? status : TOOL_FAILED;
}

/* Of all ranks; the memory is that of the rank that had most. */
static int print_stats(struct tool *tool)
{
	struct totals sum = { 0 };

	if (sum_stats(tool, &sum))
		return TOOL_FAILED;
	if (tool->communicator->rank)
		return TOOL_OK;
	if (tool->json)
		printf("{\"what\": \"all runs\", \"samples\": %" PRIu64 ", \"reads\": %" PRIu64
		       ", \"read_bytes\": %" PRIu64 ", \"direct_samples\": %" PRIu64
		       ", \"chunk_loads\": %" PRIu64 ", \"evictions\": %" PRIu64
		       ", \"cache_full_samples\": %" PRIu64 ", \"peak_rss_bytes\": %" PRIu64 "}\n",
		       sum.samples, sum.reads, sum.read_bytes, sum.direct_samples, sum.chunk_loads,
		       sum.evictions, sum.cache_full_samples, sum.peak_bytes);
	else
		printf("  of all runs: %" PRIu64 " samples, %" PRIu64 " reads of %.1f KiB, %" PRIu64
		       " straight to their rows, %" PRIu64 " chunks, %" PRIu64
		       " made room; %.1f MiB of memory at most\n",
		       sum.samples, sum.reads,
		       sum.reads ? (double)sum.read_bytes / (double)sum.reads / 1024 : 0, sum.direct_samples,
		       sum.chunk_loads, sum.evictions, (double)sum.peak_bytes / (1 << 20));
	if (!tool->json && sum.cache_full_samples)
		printf("  %" PRIu64 " samples one by one, since the cache had no room for their chunks: "
		       "--cache is too small\n",
		       sum.cache_full_samples);
	return TOOL_OK;
}

/** struct names - that are looked up, in random order */
struct names {
	char **names;
	size_t count, skip; /* characters before each: of the peers' folder */
};

enum { SOME_NAMES = 2000, LOOKUPS = 400000 };

/* All names of the peers' files, or of some samples. */
static int list_names(struct tool *tool, uint64_t samples, struct names *names)
{
	char text[4096];
	uint64_t state = 1;

	if (tool->peers) {
		names->skip = strlen(tool->peers);
		while (names->skip && tool->peers[names->skip - 1] == '/')
			names->skip--;
		names->skip++;
		return peer_names(tool->peers, tool->seed, &names->names, &names->count);
	}
	names->names = calloc(SOME_NAMES, sizeof(*names->names));
	for (; names->names && names->count < SOME_NAMES; names->count++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		if (weir_dataset_name(tool->dataset, (state >> 20) % samples, text, sizeof(text)))
			return tool_failed();
		names->names[names->count] = strdup(text);
	}
	return names->names ? TOOL_OK : tool_complain("no memory for names");
}

/** struct cost - of a lookup in nanoseconds, by the clock and of the processor, which other programs may
 * have, too */
struct cost {
	double clock, processor;
};

static double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Names one by one, or @many at once; UINT64_MAX in the place of those that are not there. Return: exit
 * status. */
static int time_lookups(struct tool *tool, const char *const *names, size_t count, bool many,
			uint64_t *numbers, struct cost *cost)
{
	size_t rounds = count < LOOKUPS ? LOOKUPS / count : 1;
	double begin = tool_seconds(), processor = thread_seconds(),
	       unit = 1e9 / (double)rounds / (double)count;
	int error = 0;

	for (size_t round = 0; round < rounds && !error; round++) {
		if (many)
			error = weir_dataset_find_many(tool->dataset, names, count, numbers);
		for (size_t i = 0; i < count && !many && !error; i++) {
			error = weir_dataset_find(tool->dataset, names[i], &numbers[i]);
			if (error == -ENOENT) {
				numbers[i] = UINT64_MAX;
				error = 0;
			}
		}
	}
	*cost = (struct cost){ (tool_seconds() - begin) * unit, (thread_seconds() - processor) * unit };
	return error ? tool_failed() : TOOL_OK;
}

static void print_lookup(struct tool *tool, const struct weir_dataset_info *info, const struct names *names,
			 const uint64_t *numbers, struct cost one, struct cost many)
{
	const char *what = tool->lookup == WEIR_DATASET_AVL ? "lookup avl" : "lookup buckets";
	size_t found = 0;

	for (size_t i = 0; i < names->count; i++)
		found += numbers[i] != UINT64_MAX;
	if (tool->json)
		printf("{\"what\": \"%s\", \"one_ns\": %.1f, \"many_ns\": %.1f, \"one_processor_ns\": %.1f, "
		       "\"many_processor_ns\": %.1f, \"names\": %zu, \"found\": %zu, \"bytes_per_sample\": "
		       "%.2f}\n",
		       what, one.clock, many.clock, one.processor, many.processor, names->count, found,
		       (double)info->directory_bytes / (double)info->samples);
	else
		printf("%-34s %12.1f ns, %.1f ns of many at once; of the processor %.1f and %.1f ns; "
		       "%zu of %zu names found; %.2f bytes per sample\n",
		       what, one.clock, many.clock, one.processor, many.processor, found, names->count,
		       (double)info->directory_bytes / (double)info->samples);
}

static int bench_lookup(struct tool *tool)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct names names = { 0 };
	struct cost one = { 0 }, many = { 0 };
	const char **given = NULL;
	uint64_t *numbers = NULL;
	int status = weir_dataset_info(tool->dataset, &info) ? tool_failed()
							     : list_names(tool, info.samples, &names);

	if (status == TOOL_OK) {
		given = calloc(names.count, sizeof(*given));
		numbers = calloc(names.count, sizeof(*numbers));
		if (!given || !numbers)
			status = tool_complain("no memory for %zu names", names.count);
	}
	for (size_t i = 0; i < names.count && status == TOOL_OK; i++)
		given[i] = names.names[i] + names.skip;
	if (status == TOOL_OK &&
	    weir_dataset_find_many(tool->dataset, given, 1, numbers)) /* the index is made */
		status = tool_failed();
	if (status == TOOL_OK)
		status = time_lookups(tool, given, names.count, false, numbers, &one);
	if (status == TOOL_OK)
		status = time_lookups(tool, given, names.count, true, numbers, &many);
	if (status == TOOL_OK && weir_dataset_info(tool->dataset, &info)) /* with its index */
		status = tool_failed();
	if (status == TOOL_OK)
		print_lookup(tool, &info, &names, numbers, one, many);
	for (size_t i = 0; i < names.count; i++)
		free(names.names[i]);
	free(names.names);
	free(given);
	free(numbers);
	return status;
}

/* The file behind the first storage. */
static void stored_path(const struct tool *tool, char *path)
{
	snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(tool->operands[0] + 5, "?"), tool->operands[0] + 5);
}

static int run_limit(struct tool *tool, const struct way *way, uint64_t seed, struct peer_result *result)
{
	char path[PATH_BYTES];

	(void)way;
	(void)seed;
	stored_path(tool, path);
	if (peer_limit(path, 256 << 10, tool->depth, tool->seconds, result))
		return TOOL_FAILED;
	result->samples = 0; /* its reads are none */
	return TOOL_OK;
}

static int run_packed(struct tool *tool, const struct way *way, uint64_t seed, struct peer_result *result)
{
	char path[PATH_BYTES];

	(void)way;
	stored_path(tool, path);
	return peer_packed(tool, path, tool->depth, seed, tool->seconds, result);
}

static int run_files(struct tool *tool, const struct way *way, uint64_t seed, struct peer_result *result)
{
	return peer_files(tool->peers, way->threads, seed, tool->seconds, PEER_READ, result);
}

static int print_open(struct tool *tool, enum peer_use use, const char *what)
{
	struct peer_result result;
	struct cost one = { 0, 0 };

	if (peer_files(tool->peers, 1, tool->seed, tool->seconds, use, &result))
		return TOOL_FAILED;
	if (result.samples > 0)
		one = (struct cost){ 1e9 / result.samples, 1e9 * result.cores / result.samples };
	if (tool->json)
		printf("{\"what\": \"%s\", \"one_ns\": %.1f, \"one_processor_ns\": %.1f}\n", what, one.clock,
		       one.processor);
	else
		printf("%-34s %12.1f ns, of the processor %.1f ns\n", what, one.clock, one.processor);
	return TOOL_OK;
}

/* The same names in the same order: the kernel knows none, unless dropping its caches is not allowed; then
 * all. */
static int bench_open(struct tool *tool)
{
	struct peer_result unused;

	if (!tool->no_drop && print_open(tool, PEER_OPEN, "open(2) + close(2), not cached"))
		return TOOL_FAILED;
	if (peer_files(tool->peers, 1, tool->seed, ALL_NAMES_SECONDS, PEER_OPEN_CACHED, &unused))
		return TOOL_FAILED;
	return print_open(tool, PEER_OPEN_CACHED, "open(2) + close(2)");
}

static bool wanted(const struct tool *tool, uint32_t part)
{
	return !tool->parts || tool->parts & part;
}

static bool alone(const struct tool *tool)
{
	return tool->communicator->ranks == 1;
}

/* What is to be measured, in the order of a round. Return: how many. */
static unsigned choose_ways(const struct tool *tool, struct way *ways)
{
	bool file = strncmp(tool->operands[0], "file:", 5) == 0,
	     peers = wanted(tool, TOOL_PEERS) && alone(tool);
	unsigned count = 0;

	for (uint32_t order = 0; weir_dataset_order_name(order); order++) {
		if (!wanted(tool, TOOL_ORDERS) || (!tool->all_orders && order != tool->order))
			continue;
		ways[count] = (struct way){ .run = run_weir, .order = order };
		snprintf(ways[count++].name, sizeof(ways->name), "weir %s", weir_dataset_order_name(order));
	}
	if (peers && file) {
		ways[count++] = (struct way){ "io_uring, 256 KiB in order (limit)", .run = run_limit };
		ways[count] = (struct way){ .run = run_packed };
		snprintf(ways[count++].name, sizeof(ways->name), "packed file, io_uring, depth %u",
			 tool->depth);
	}
	if (peers && tool->peers) {
		ways[count++] =
			(struct way){ "files, open + pread, 1 thread", .run = run_files, .threads = 1 };
		ways[count] = (struct way){ .run = run_files, .threads = tool->threads };
		snprintf(ways[count++].name, sizeof(ways->name), "files, open + pread, %u threads",
			 tool->threads);
	}
	return count;
}

/* Ways take turns, so that all of them meet what else the machine does. */
int tool_bench(struct tool *tool)
{
	struct way ways[MOST_WAYS];
	unsigned count;

	if (!tool_mount(tool))
		return TOOL_FAILED;
	count = choose_ways(tool, ways);
	for (uint32_t i = 0; i < tool->runs; i++)
		for (unsigned way = 0; way < count; way++)
			if (ways[way].run(tool, &ways[way], tool->seed + i, &ways[way].results[i]))
				return TOOL_FAILED;
	for (unsigned way = 0; way < count && !tool->communicator->rank; way++)
		print(tool, &ways[way]);
	if (wanted(tool, TOOL_ORDERS) && print_stats(tool))
		return TOOL_FAILED;
	if (!wanted(tool, TOOL_LOOKUP) || !alone(tool))
		return TOOL_OK;
	if (bench_lookup(tool))
		return TOOL_FAILED;
	return tool->peers ? bench_open(tool) : TOOL_OK;
}
