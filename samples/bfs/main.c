/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-bfs: breadth-first search over a graph on storage, from the command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/values.h"
#include "reference.h"
#include "search.h"

enum { SOURCE_TRIES = 64 };

struct command {
	struct graph_setup setup;
	uint64_t source;
	bool source_given;
	uint64_t seed;
	uint32_t repeat;
	const char *output;
	bool verify;
	bool json;
};

static struct command command_line = { .seed = 1 };

static const struct tool_option options[] = {
	SAMPLE_CACHE_OPTIONS(command_line.setup.cache, "an eighth of the graph"),
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.setup.plain,
	  .help = "copy the graph into device memory first, and search it there with the\n"
		  "same kernel, without cache and storage: the limit" },
	{ .name = "repeat",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.repeat,
	  .most = SAMPLE_MOST_REPEATS,
	  .help = "search N times more with what the first time left in the cache; their\n"
		  "median is reported next to the first time (default 0)" },
	{ .name = "source",
	  .value = "V",
	  .kind = TOOL_U64,
	  .to = &command_line.source,
	  .given = &command_line.source_given,
	  .help = "first vertex (default: one with neighbours, chosen by --seed)" },
	{ .name = "seed",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.seed,
	  .help = "for the choice of the source (default 1)" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "compare every depth with an in-memory search" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_OUTPUT_OPTION(command_line.output, "the depth (u32; 2^32 - 1: not reached)"),
	SAMPLE_DEVICE_OPTIONS(command_line.setup.device),
	GRAPH_OPTIONS(command_line.setup),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-bfs",
	.about = "usage: weir-bfs GRAPH [options]    GRAPH: .bel, .sg or .wsg\n"
		 "       weir-bfs --offsets URI --edges URI[,URI...] [options]\n"
		 "\n"
		 "Breadth-first search with every offset and every edge read from storage by\n"
		 "the device's lanes, through a cache.\n",
	.options = options,
	.operand = "one graph",
	.to = &command_line.setup.path,
};

/* Return: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct command *command)
{
	int status = tool_parse(&program, argc, argv);
	const struct sample_cache *cache = &command->setup.cache;
	const char *wrong = graph_check_setup(&command->setup);

	if (status >= 0)
		return status;
	if (wrong)
		return tool_usage("%s", wrong);
	if (command->setup.plain &&
	    (cache->bytes || cache->lines || cache->line_bytes || cache->policy || cache->tier))
		return tool_usage("--plain searches without a cache: leave --cache, "
				  "--cache-lines, --line, --policy and --tier out");
	command->setup.stored = !command->setup.plain;
	return -1;
}

/* Search from the given vertex, or from the first of a seeded sequence that has neighbours. */
static int search(struct command *command, struct bfs_search *search, uint64_t vertices,
		  struct bfs_result *result, char *error)
{
	int code = 0;

	if (command->source_given || vertices == 0)
		return bfs_run(search, command->source, result, error);
	for (unsigned i = 0; i < SOURCE_TRIES && !code; i++) {
		code = bfs_run(search, sample_scramble(command->seed * SOURCE_TRIES + i) % vertices, result,
			       error);
		if (!code && result->edges)
			break;
	}
	return code;
}

/** struct warm - searches after the first one */
struct warm {
	double seconds, least, most; /* median and range */
	struct bfs_result result;    /* of the last */
};

/* Search again from where @first did. */
static int repeat(const struct command *command, struct bfs_search *search, const struct bfs_result *first,
		  struct warm *warm, char *error)
{
	double seconds[SAMPLE_MOST_REPEATS];
	uint32_t count = command->repeat;
	int code = 0;

	for (uint32_t i = 0; i < count && !code; i++) {
		code = bfs_run(search, first->source, &warm->result, error);
		seconds[i] = warm->result.seconds;
	}
	if (code || !count)
		return code;
	warm->seconds = sample_median(seconds, count);
	warm->least = seconds[0];
	warm->most = seconds[count - 1];
	return 0;
}

static int verify(struct command *command, struct bfs_search *search, const struct graph_info *graph,
		  const struct bfs_result *result, char *error)
{
	const char *path = graph_reference_path(&command->setup, error);
	uint32_t *depths, *expected = NULL;
	uint64_t edges = 0;
	int code;

	if (!path)
		return -EINVAL;
	depths = malloc(graph->vertices * sizeof(*depths));
	code = depths ? bfs_reference(path, graph, result->source, &expected, &edges, error) : -ENOMEM;
	if (!code)
		code = bfs_depths(search, depths, error);
	for (uint64_t v = 0; v < graph->vertices && !code; v++) {
		if (depths[v] == expected[v])
			continue;
		code = sample_fail(error, -EBADMSG,
				   "WRONG RESULT: vertex %llu has depth %d, the in-memory search says %d; "
				   "please report this",
				   (unsigned long long)v, (int)depths[v], (int)expected[v]);
	}
	if (!code && result->edges != edges)
		code = sample_fail(error, -EBADMSG,
				   "WRONG RESULT: %llu edges were looked at, the vertices reached have %llu; "
				   "please report this",
				   (unsigned long long)result->edges, (unsigned long long)edges);
	free(expected);
	free(depths);
	return code;
}

static int output(const struct command *command, struct bfs_search *search, const struct graph_info *graph,
		  char *error)
{
	uint32_t *depths = malloc((graph->vertices + 1) * sizeof(*depths));
	int code = depths ? bfs_depths(search, depths, error)
			  : sample_fail(error, -ENOMEM, "no memory for depths");

	if (!code)
		code = sample_write_values(command->output, depths, graph->vertices, SAMPLE_VALUE_U32, error);
	free(depths);
	return code;
}

static double hit_rate(const struct bfs_result *result)
{
	return result->lookups ? 1.0 - (double)result->misses / (double)result->lookups : 0;
}

/** struct report - all there is to print */
struct report {
	const struct command *command;
	struct graph_info graph;
	struct bfs_result result; /* of the first search */
	struct warm warm;
	uint64_t state_bytes;
	uint64_t rss;
};

static void print_warm(const struct report *report)
{
	const struct warm *warm = &report->warm;
	double edges = (double)warm->result.edges;

	printf("again     %u times: median %.3f s, %.2f million edges/s (%.2f to %.2f)",
	       report->command->repeat, warm->seconds, edges / warm->seconds / 1e6, edges / warm->most / 1e6,
	       edges / warm->least / 1e6);
	if (!report->graph.plain_bytes)
		printf(", %.2f%% hits", 100 * hit_rate(&warm->result));
	putchar('\n');
}

static void print_text(const struct report *report)
{
	const struct graph_info *graph = &report->graph;
	const struct bfs_result *result = &report->result;

	graph_print(graph);
	printf("search    from vertex %llu: %llu vertices reached in %u levels, %llu edges\n",
	       (unsigned long long)result->source, (unsigned long long)result->reached, result->levels,
	       (unsigned long long)result->edges);
	printf("time      %.3f s, %.2f million edges/s (MTEPS)\n", result->seconds,
	       (double)result->edges / result->seconds / 1e6);
	if (report->command->repeat)
		print_warm(report);
	printf("I/O       %llu commands, %.1f MiB read, %.0f thousand commands/s\n",
	       (unsigned long long)result->commands, sample_megabytes(result->bytes_read),
	       (double)result->commands / result->seconds / 1e3);
	printf("lookups   %llu of up to %d edges each", (unsigned long long)result->lookups, 8);
	if (!graph->plain_bytes)
		printf(", %.2f%% hits", 100 * hit_rate(result));
	printf("\nmemory    peak %.1f MiB resident; %s %.1f, search state %.1f, queues %.1f\n",
	       sample_megabytes(report->rss), graph->plain_bytes ? "graph" : "cache",
	       sample_megabytes(graph->plain_bytes + graph->cache_bytes),
	       sample_megabytes(report->state_bytes), sample_megabytes(graph->queue_bytes));
	printf("result    %s\n", report->command->verify
					 ? "verified: every depth equals the in-memory search"
					 : "not verified (--verify compares with an in-memory search)");
}

static void add_warm(json_t *root, const struct report *report)
{
	const struct warm *warm = &report->warm;
	double edges = (double)warm->result.edges;

	json_object_set_new(root, "repeat", json_integer(report->command->repeat));
	json_object_set_new(root, "warm_seconds", json_real(warm->seconds));
	json_object_set_new(root, "warm_seconds_min", json_real(warm->least));
	json_object_set_new(root, "warm_seconds_max", json_real(warm->most));
	json_object_set_new(root, "warm_teps", json_real(edges / warm->seconds));
	json_object_set_new(root, "warm_hit_rate", json_real(hit_rate(&warm->result)));
	json_object_set_new(root, "warm_commands", json_integer((json_int_t)warm->result.commands));
}

static void add_plain(json_t *root, const struct graph_info *graph)
{
	json_object_set_new(root, "plain", json_boolean(graph->plain_bytes != 0));
	json_object_set_new(root, "plain_bytes", json_integer((json_int_t)graph->plain_bytes));
	json_object_set_new(root, "load_seconds", json_real(graph->load_seconds));
}

static void add_result(json_t *root, const struct bfs_result *result)
{
	sample_set_count(root, "source", result->source);
	sample_set_count(root, "reached", result->reached);
	sample_set_count(root, "levels", result->levels);
	sample_set_count(root, "edges_traversed", result->edges);
	sample_set_count(root, "lookups", result->lookups);
	sample_set_real(root, "hit_rate", hit_rate(result));
	sample_set_count(root, "misses", result->misses);
	sample_set_real(root, "seconds", result->seconds);
	sample_set_count(root, "commands", result->commands);
	sample_set_count(root, "bytes_read", result->bytes_read);
	sample_set_real(root, "teps", (double)result->edges / result->seconds);
	sample_set_real(root, "iops", (double)result->commands / result->seconds);
}

static void print_json(const struct report *report)
{
	json_t *root = json_object();

	graph_set_json(root, &report->graph);
	add_result(root, &report->result);
	sample_set_count(root, "peak_rss_bytes", report->rss);
	sample_set_bool(root, "verified", report->command->verify);
	add_plain(root, &report->graph);
	if (report->command->repeat)
		add_warm(root, report);
	sample_print_json(root);
}

static int run(struct command *command)
{
	char error[SAMPLE_ERROR_BYTES] = "";
	struct bfs_search *bfs = NULL;
	struct report report = { .command = command };
	int code = bfs_open(&command->setup, &bfs, &report.graph, &report.state_bytes, error);
	if (!code)
		code = search(command, bfs, report.graph.vertices, &report.result, error);
	if (!code)
		code = repeat(command, bfs, &report.result, &report.warm, error);
	report.rss = sample_peak_rss_bytes(); /* before the reference loads the whole graph */
	if (!code && command->verify)
		code = verify(command, bfs, &report.graph, &report.result, error);
	if (!code && command->output)
		code = output(command, bfs, &report.graph, error);
	if (!code)
		(command->json ? print_json : print_text)(&report);
	code = bfs_close(bfs, code, error);
	return code ? tool_complain("%s", error) : 0;
}

int main(int argc, char **argv)
{
	int status = parse(argc, argv, &command_line);

	return status >= 0 ? status : run(&command_line);
}
