/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-bfs: breadth-first search over a graph on storage, from the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <graph.h>
#include <jansson.h>

#include "bfs.h"
#include "reference.h"
#include "search.h"

enum { ERROR_BYTES = 1024, URI_BYTES = GRAPH_PATH_BYTES + 64, SOURCE_TRIES = 64, MOST_REPEATS = 999 };

static const char usage_text[] =
	"usage: weir-bfs GRAPH.bel [options]\n"
	"       weir-bfs --offsets URI --edges URI[,URI...] [options]\n"
	"\n"
	"Breadth-first search with every offset and every edge read from storage by\n"
	"the device's lanes, through a cache.\n"
	"\n"
	"  --cache BYTES         cache size, such as 64M (default: an eighth of the graph)\n"
	"  --cache-lines N       instead: number of cache lines\n"
	"  --line BYTES          line size (default 4096)\n"
	"  --policy NAME         which cache line makes room: clock (default), lru, fifo, random, direct, sieve,\n"
	"                        frequency, user (built in by -Duser_policy)\n"
	"  --plain               copy the graph into device memory first, and search it there with the\n"
	"                        same kernel, without cache and storage: the limit\n"
	"  --repeat N            search N times more with what the first time left in the cache; their\n"
	"                        median is reported beside the first time (default 0)\n"
	"  --source V            first vertex (default: one with neighbours, chosen by --seed)\n"
	"  --seed N              for the choice of the source (default 1)\n"
	"  --verify              compare every depth with an in-memory search\n"
	"  --json                print the result as JSON\n"
	"  --backend NAME        auto, cpu or another of this build (default auto, or WEIR_BACKEND)\n"
	"  --workers N           cpu: worker threads (default: one per core)\n"
	"  --wave N              cpu: lanes per wave: 1, 2, 4 ... 64 (default 1)\n"
	"  --queues N --depth N  queue pairs per storage and their depth (default 4, 256)\n"
	"  --storage KEYS        URI keys for the graph's files, such as direct=on&block=512\n"
	"  --offsets URI         storage that holds the .col file\n"
	"  --edges URI[,URI...]  storages that hold the .dst file; several: striped\n"
	"  --stripe BYTES        stripe unit (default 64K)\n"
	"  --reference GRAPH.bel what --verify compares with when URIs are given\n";

struct command {
	struct bfs_setup setup;
	const char *bel_path;
	const char *reference;
	const char *storage_keys;
	uint64_t source;
	bool source_given;
	uint64_t seed;
	uint32_t repeat;
	bool verify;
	bool json;
	struct graph_bel bel;
	char offsets_uri[URI_BYTES];
	char edges_uri[URI_BYTES];
};

static int complain(const char *sentence)
{
	fprintf(stderr, "weir-bfs: %s\n", sentence);
	return 1;
}

static int usage(const char *sentence)
{
	fprintf(stderr, "weir-bfs: %s\nTry weir-bfs --help.\n", sentence);
	return 2;
}

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_u32(const char *text, uint32_t *value)
{
	uint64_t wide;

	if (!parse_number(text, &wide) || wide > UINT32_MAX)
		return false;
	*value = (uint32_t)wide;
	return true;
}

/* "a,b,c" in place. */
static bool split_uris(char *list, struct bfs_setup *setup)
{
	setup->edge_uri_count = 0;
	for (char *uri = strtok(list, ","); uri; uri = strtok(NULL, ",")) {
		if (setup->edge_uri_count == BFS_MOST_STORAGES)
			return false;
		setup->edge_uris[setup->edge_uri_count++] = uri;
	}
	return setup->edge_uri_count > 0;
}

enum option_key {
	OPT_CACHE = 256, OPT_CACHE_LINES, OPT_LINE, OPT_SOURCE, OPT_SEED, OPT_VERIFY, OPT_JSON, OPT_BACKEND,
	OPT_WORKERS, OPT_WAVE, OPT_QUEUES, OPT_DEPTH, OPT_STORAGE, OPT_OFFSETS, OPT_EDGES, OPT_STRIPE,
	OPT_REFERENCE, OPT_POLICY, OPT_PLAIN, OPT_REPEAT, OPT_HELP,
};

static const struct option long_options[] = {
	{ "cache", required_argument, NULL, OPT_CACHE },
	{ "cache-lines", required_argument, NULL, OPT_CACHE_LINES },
	{ "line", required_argument, NULL, OPT_LINE },
	{ "source", required_argument, NULL, OPT_SOURCE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "backend", required_argument, NULL, OPT_BACKEND },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "wave", required_argument, NULL, OPT_WAVE },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "storage", required_argument, NULL, OPT_STORAGE },
	{ "offsets", required_argument, NULL, OPT_OFFSETS },
	{ "edges", required_argument, NULL, OPT_EDGES },
	{ "stripe", required_argument, NULL, OPT_STRIPE },
	{ "reference", required_argument, NULL, OPT_REFERENCE },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "plain", no_argument, NULL, OPT_PLAIN },
	{ "repeat", required_argument, NULL, OPT_REPEAT },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* Take one option. Return: false if its argument is no good. */
static bool take_option(struct command *command, int key, char *value)
{
	struct bfs_setup *setup = &command->setup;
	uint64_t wide;

	switch (key) {
	case OPT_CACHE: return weir_parse_bytes(value, &setup->cache_bytes) == 0 && setup->cache_bytes;
	case OPT_CACHE_LINES: return parse_number(value, &setup->cache_lines) && setup->cache_lines;
	case OPT_LINE:
		if (weir_parse_bytes(value, &wide) != 0 || wide > UINT32_MAX)
			return false;
		setup->line_bytes = (uint32_t)wide;
		return true;
	case OPT_POLICY: return weir_policy_of_name(value, &setup->policy) == 0;
	case OPT_SOURCE: return command->source_given = parse_number(value, &command->source);
	case OPT_SEED: return parse_number(value, &command->seed);
	case OPT_VERIFY: return command->verify = true;
	case OPT_JSON: return command->json = true;
	case OPT_BACKEND: setup->backend = value; return true;
	case OPT_WORKERS: return parse_u32(value, &setup->workers);
	case OPT_WAVE: return parse_u32(value, &setup->wave_lanes);
	case OPT_QUEUES: return parse_u32(value, &setup->queues);
	case OPT_DEPTH: return parse_u32(value, &setup->depth);
	case OPT_STORAGE: command->storage_keys = value; return true;
	case OPT_OFFSETS: setup->offsets_uri = value; return true;
	case OPT_EDGES: return split_uris(value, setup);
	case OPT_STRIPE: return weir_parse_bytes(value, &setup->stripe_bytes) == 0;
	case OPT_PLAIN: return setup->plain = true;
	case OPT_REPEAT: return parse_u32(value, &command->repeat) && command->repeat <= MOST_REPEATS;
	case OPT_REFERENCE: command->reference = value; return true;
	default: return false;
	}
}

/* Return: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct command *command)
{
	char sentence[512];
	int key, index = 0;

	opterr = 0;
	while ((key = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (key == OPT_HELP) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (key == '?') {
			snprintf(sentence, sizeof(sentence), "unknown option or missing value: %s", argv[optind - 1]);
			return usage(sentence);
		}
		if (!take_option(command, key, optarg)) {
			if (key == OPT_POLICY)
				return usage(weir_last_error());
			snprintf(sentence, sizeof(sentence), "--%s does not take \"%s\"%s", long_options[index].name, optarg,
				 key == OPT_CACHE || key == OPT_CACHE_LINES ? "; the cache needs at least one set of 4 lines" : "");
			return usage(sentence);
		}
	}
	if (optind + 1 == argc)
		command->bel_path = argv[optind];
	else if (optind != argc)
		return usage("give one graph");
	if (!command->bel_path == !(command->setup.offsets_uri && command->setup.edge_uri_count))
		return usage("give either GRAPH.bel, or --offsets and --edges");
	if (command->setup.plain && (command->setup.cache_bytes || command->setup.cache_lines || command->setup.line_bytes ||
				     command->setup.policy))
		return usage("--plain searches without a cache: leave --cache, --cache-lines, --line and --policy out");
	return -1;
}

static int name_storages(struct command *command, char *error)
{
	char sentence[GRAPH_ERROR_BYTES];
	const char *keys = command->storage_keys ? command->storage_keys : "";
	const char *mark = *keys ? "?" : "";

	if (graph_bel_open(command->bel_path, &command->bel, sentence, sizeof(sentence)) != 0) {
		snprintf(error, ERROR_BYTES, "%.*s", ERROR_BYTES - 1, sentence);
		return -EINVAL;
	}
	snprintf(command->offsets_uri, URI_BYTES, "file:%s%s%.32s", command->bel.col_path, mark, keys);
	snprintf(command->edges_uri, URI_BYTES, "file:%s%s%.32s", command->bel.dst_path, mark, keys);
	command->setup.offsets_uri = command->offsets_uri;
	command->setup.edge_uris[0] = command->edges_uri;
	command->setup.edge_uri_count = 1;
	command->setup.vertices = command->bel.vertices;
	if (!command->setup.plain && !command->setup.cache_bytes && !command->setup.cache_lines)
		command->setup.cache_bytes = (command->bel.vertices + command->bel.edges) * 8 / 8 + (64 << 10);
	return 0;
}

/* A cheap, even spread over 64 bits (Weyl sequence and multiply). */
static uint64_t scramble(uint64_t value)
{
	value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	value ^= value >> 29;
	value *= 0x94d049bb133111ebu;
	return value ^ (value >> 32);
}

/* Search from the given vertex, or from the first of a seeded sequence that has neighbours. */
static int search(struct command *command, struct bfs_search *search, uint64_t vertices, struct bfs_result *result,
		  char *error)
{
	int code = 0;

	if (command->source_given || vertices == 0)
		return bfs_run(search, command->source, result, error);
	for (unsigned i = 0; i < SOURCE_TRIES && !code; i++) {
		code = bfs_run(search, scramble(command->seed * SOURCE_TRIES + i) % vertices, result, error);
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

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Search again from where @first did. */
static int repeat(const struct command *command, struct bfs_search *search, const struct bfs_result *first,
		  struct warm *warm, char *error)
{
	double seconds[MOST_REPEATS];
	uint32_t count = command->repeat;
	int code = 0;

	for (uint32_t i = 0; i < count && !code; i++) {
		code = bfs_run(search, first->source, &warm->result, error);
		seconds[i] = warm->result.seconds;
	}
	if (code || !count)
		return code;
	qsort(seconds, count, sizeof(*seconds), compare);
	warm->seconds = (seconds[count / 2] + seconds[(count - 1) / 2]) / 2;
	warm->least = seconds[0];
	warm->most = seconds[count - 1];
	return 0;
}

static int verify(struct command *command, struct bfs_search *search, const struct bfs_graph *graph,
		  const struct bfs_result *result, char *error)
{
	const char *path = command->reference ? command->reference : command->bel_path;
	uint32_t *depths, *expected = NULL;
	int code;

	if (!path) {
		snprintf(error, ERROR_BYTES, "--verify needs --reference GRAPH.bel when the graph is given by URIs");
		return -EINVAL;
	}
	depths = malloc(graph->vertices * sizeof(*depths));
	code = depths ? bfs_reference(path, result->source, &expected, error) : -ENOMEM;
	if (!code)
		code = bfs_depths(search, depths, error);
	for (uint64_t v = 0; v < graph->vertices && !code; v++) {
		if (depths[v] == expected[v])
			continue;
		snprintf(error, ERROR_BYTES,
			 "WRONG RESULT: vertex %llu has depth %d, the in-memory search says %d; please report this",
			 (unsigned long long)v, (int)depths[v], (int)expected[v]);
		code = -EBADMSG;
	}
	free(expected);
	free(depths);
	return code;
}

static double megabytes(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static uint64_t peak_rss_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

static double hit_rate(const struct bfs_result *result)
{
	return result->lookups ? 1.0 - (double)result->misses / (double)result->lookups : 0;
}

/** struct report - all there is to print */
struct report {
	const struct command *command;
	struct bfs_graph graph;
	struct bfs_result result; /* of the first search */
	struct warm warm;
	uint64_t rss;
};

static void print_place(const struct bfs_graph *graph)
{
	if (graph->plain_bytes)
		printf("plain     %.1f MiB: the whole graph in device memory, loaded in %.3f s\n",
		       megabytes(graph->plain_bytes), graph->load_seconds);
	else
		printf("cache     %.1f MiB: %llu lines of %llu bytes, %s, %.1f%% of the graph\n",
		       megabytes(graph->cache_bytes), (unsigned long long)graph->cache_lines,
		       (unsigned long long)graph->line_bytes, weir_policy_name(graph->policy),
		       100.0 * (double)graph->cache_bytes / (double)graph->graph_bytes);
}

static void print_warm(const struct report *report)
{
	const struct warm *warm = &report->warm;
	double edges = (double)warm->result.edges;

	printf("again     %u times: median %.3f s, %.2f million edges/s (%.2f to %.2f)", report->command->repeat,
	       warm->seconds, edges / warm->seconds / 1e6, edges / warm->most / 1e6, edges / warm->least / 1e6);
	if (!report->graph.plain_bytes)
		printf(", %.2f%% hits", 100 * hit_rate(&warm->result));
	putchar('\n');
}

static void print_text(const struct report *report)
{
	const struct bfs_graph *graph = &report->graph;
	const struct bfs_result *result = &report->result;

	printf("graph     %llu vertices, %llu edges, %.1f MiB on storage\n", (unsigned long long)graph->vertices,
	       (unsigned long long)graph->edges, megabytes(graph->graph_bytes));
	printf("device    %s\n", graph->device);
	printf("storage   %s, %u-byte blocks, %u queue pairs (%.0f KiB)\n", graph->path, graph->block_bytes,
	       graph->queues, (double)graph->queue_bytes / 1024);
	print_place(graph);
	printf("search    from vertex %llu: %llu vertices reached in %u levels, %llu edges\n",
	       (unsigned long long)result->source, (unsigned long long)result->reached, result->levels,
	       (unsigned long long)result->edges);
	printf("time      %.3f s, %.2f million edges/s (MTEPS)\n", result->seconds,
	       (double)result->edges / result->seconds / 1e6);
	if (report->command->repeat)
		print_warm(report);
	printf("I/O       %llu commands, %.1f MiB read, %.0f thousand commands/s\n",
	       (unsigned long long)result->commands, megabytes(result->bytes_read),
	       (double)result->commands / result->seconds / 1e3);
	printf("lookups   %llu of up to %d edges each", (unsigned long long)result->lookups, 8);
	if (!graph->plain_bytes)
		printf(", %.2f%% hits", 100 * hit_rate(result));
	printf("\nmemory    peak %.1f MiB resident; %s %.1f, search state %.1f, queues %.1f\n", megabytes(report->rss),
	       graph->plain_bytes ? "graph" : "cache", megabytes(graph->plain_bytes + graph->cache_bytes),
	       megabytes(graph->state_bytes), megabytes(graph->queue_bytes));
	printf("result    %s\n", report->command->verify ? "verified: every depth equals the in-memory search" :
					     "not verified (--verify compares with an in-memory search)");
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

static void add_plain(json_t *root, const struct bfs_graph *graph)
{
	json_object_set_new(root, "plain", json_boolean(graph->plain_bytes != 0));
	json_object_set_new(root, "plain_bytes", json_integer((json_int_t)graph->plain_bytes));
	json_object_set_new(root, "load_seconds", json_real(graph->load_seconds));
	if (!graph->plain_bytes)
		json_object_set_new(root, "policy", json_string(weir_policy_name(graph->policy)));
}

static void print_json(const struct report *report)
{
	const struct bfs_graph *graph = &report->graph;
	const struct bfs_result *result = &report->result;
	json_t *root = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:i, s:I, s:I, s:f, s:I, s:f, s:I, s:I, s:f, s:f, s:I, s:b}",
		"device", graph->device, "path", graph->path, "vertices", (json_int_t)graph->vertices, "edges",
		(json_int_t)graph->edges, "graph_bytes", (json_int_t)graph->graph_bytes, "cache_bytes",
		(json_int_t)graph->cache_bytes, "cache_lines", (json_int_t)graph->cache_lines, "line_bytes",
		(json_int_t)graph->line_bytes, "queue_bytes", (json_int_t)graph->queue_bytes, "queues", (int)graph->queues,
		"block_bytes", (int)graph->block_bytes, "source", (json_int_t)result->source, "reached",
		(json_int_t)result->reached, "levels", (int)result->levels, "edges_traversed", (json_int_t)result->edges,
		"lookups", (json_int_t)result->lookups, "hit_rate", hit_rate(result), "misses",
		(json_int_t)result->misses, "seconds", result->seconds, "commands", (json_int_t)result->commands,
		"bytes_read", (json_int_t)result->bytes_read, "teps", (double)result->edges / result->seconds, "iops",
		(double)result->commands / result->seconds, "peak_rss_bytes", (json_int_t)report->rss, "verified", (int)report->command->verify);

	if (root) {
		add_plain(root, graph);
		if (report->command->repeat)
			add_warm(root, report);
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(root);
}

static int run(struct command *command)
{
	char error[ERROR_BYTES] = "";
	struct bfs_search *bfs = NULL;
	struct report report = { .command = command };
	int code = command->bel_path ? name_storages(command, error) : 0;

	if (!code)
		code = bfs_open(&command->setup, &bfs, &report.graph, error);
	if (!code)
		code = search(command, bfs, report.graph.vertices, &report.result, error);
	if (!code)
		code = repeat(command, bfs, &report.result, &report.warm, error);
	report.rss = peak_rss_bytes(); /* before the reference loads the whole graph */
	if (!code && command->verify)
		code = verify(command, bfs, &report.graph, &report.result, error);
	if (!code)
		(command->json ? print_json : print_text)(&report);
	bfs_close(bfs);
	return code ? complain(error) : 0;
}

int main(int argc, char **argv)
{
	struct command command = { .seed = 1 };
	const char *backend = getenv("WEIR_BACKEND");
	int status;

	command.setup.backend = backend && *backend ? backend : "auto";
	status = parse(argc, argv, &command);
	return status >= 0 ? status : run(&command);
}
