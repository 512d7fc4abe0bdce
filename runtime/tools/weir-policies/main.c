/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-policies: hit rates of replacement policies over traces, in a real cache and on paper. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/weir.h>

#include "fixture.h"
#include "simulate.h"
#include "tool_options.h"
#include "trace.h"

enum { WAYS = 4, MOST_LINES = 1 << 20, MOST_READS = 1 << 28, MOST_LANES = 1 << 20 };

static const char about[] = "usage: weir-policies [options]\n"
			    "\n"
			    "Replays traces through a cache under each replacement policy, and prints its "
			    "hit rate next to that of a\n"
			    "simulator of the same policy, of exact LRU, and of the best possible one "
			    "(Belady). One lane reads, so\n"
			    "except for the random policy the two must agree; if they do not, or data is "
			    "wrong, the status is 1.\n";

struct command {
	struct trace_shape shape;
	struct fixture_cache cache;
	const char *backend;
	unsigned trace;          /* TRACE_COUNT: all of them */
	enum weir_policy policy; /* WEIR_POLICY_COUNT: likewise */
	uint32_t wave;
	bool json;
};

/**
 * struct cell - a policy on a trace; @measured and @simulated are misses
 */
struct cell {
	uint64_t measured, simulated;
	bool has_measured, has_simulated;
};

/** struct reference - what no policy of core/cache/policies.h is */
struct reference {
	const char *name;
	unsigned policy;
	bool one_set; /* any line may be anywhere */
};

static const struct reference references[] = {
	{ "exact LRU", SIMULATE_LRU, false },
	{ "best", SIMULATE_BEST, false },
	{ "exact LRU, one set", SIMULATE_LRU, true },
	{ "best, one set", SIMULATE_BEST, true },
};

enum { REFERENCES = sizeof(references) / sizeof(references[0]), ROWS = WEIR_POLICY_COUNT + REFERENCES };

/** struct table - all of the results */
struct table {
	const struct command *command;
	struct trace traces[TRACE_COUNT];
	struct cell cells[ROWS][TRACE_COUNT];
	char device[128];
};

static bool wanted_trace(const struct command *command, unsigned trace)
{
	return command->trace == TRACE_COUNT || command->trace == trace;
}

static const char *row_name(unsigned row)
{
	return row < WEIR_POLICY_COUNT ? weir_policy_name((enum weir_policy)row)
				       : references[row - WEIR_POLICY_COUNT].name;
}

static bool find_trace(const char *name, unsigned *trace)
{
	for (*trace = 0; *trace < TRACE_COUNT; ++*trace)
		if (!strcmp(trace_names[*trace], name))
			return true;
	return false;
}

/* Return: -1 to go on, or the exit status. */
static int read_options(struct command *command, int argc, char **argv)
{
	const char *trace = NULL;
	const struct tool_option options[] = {
		{ "policy", "NAME", TOOL_POLICY, &command->policy, 0, 0, "only this policy", NULL, NULL },
		{ "trace", "NAME", TOOL_TEXT, &trace, 0, 0, "only this trace: zipf, scan, loop, mixed, bfs",
		  NULL, NULL },
		{ "lines", "N", TOOL_U64, &command->cache.lines, WAYS, MOST_LINES,
		  "lines of the cache, a multiple of 4 (default 1024)", NULL, NULL },
		{ "reads", "N", TOOL_U64, &command->shape.reads, 1, MOST_READS,
		  "length of the traces (default 100000)", NULL, NULL },
		{ "theta", "X", TOOL_REAL, &command->shape.theta, 0, 4, "of the Zipf laws (default 0.99)",
		  NULL, NULL },
		{ "seed", "N", TOOL_U64, &command->shape.seed, 0, 0, "of the traces (default 1)", NULL,
		  NULL },
		{ "lanes", "N", TOOL_U32, &command->cache.lanes, 1, MOST_LANES,
		  "that share the reads (default 1); with more, nothing is expected to agree", NULL, NULL },
		{ "backend", "NAME", TOOL_TEXT, &command->backend, 0, 0,
		  "auto, cpu or another of this build (default cpu)", NULL, NULL },
		{ "wave", "N", TOOL_U32, &command->wave, 1, 64, "cpu: lanes per wave, a power of two", NULL,
		  NULL },
		{ "json", NULL, TOOL_FLAG, &command->json, 0, 0, "print one JSON object", NULL, NULL },
		{ .name = NULL },
	};
	const struct tool_program program = { .name = "weir-policies", .about = about, .options = options };
	int status = tool_parse(&program, argc, argv);

	if (status < 0 && trace && !find_trace(trace, &command->trace))
		status = tool_usage("--trace takes zipf, scan, loop, mixed or bfs");
	if (status < 0 && command->cache.lines % WAYS)
		status = tool_usage("--lines takes a multiple of 4");
	return status;
}

static int make_traces(struct table *table, uint64_t *span)
{
	struct trace_shape shape = table->command->shape;
	int error = 0;

	shape.cache_lines = table->command->cache.lines;
	*span = 1;
	for (unsigned t = 0; t < TRACE_COUNT && !error; t++) {
		if (!wanted_trace(table->command, t))
			continue;
		error = trace_make((enum trace_kind)t, &shape, &table->traces[t]);
		*span = table->traces[t].span > *span ? table->traces[t].span : *span;
	}
	return error;
}

static int simulate_row(struct table *table, unsigned row, unsigned trace)
{
	const struct reference *reference =
		row < WEIR_POLICY_COUNT ? NULL : &references[row - WEIR_POLICY_COUNT];
	struct trace *lines = &table->traces[trace];
	uint64_t *keys = malloc((lines->count + 1) * sizeof(*keys)),
		 cache_lines = table->command->cache.lines;
	struct cell *cell = &table->cells[row][trace];
	bool one = reference && reference->one_set;
	int error;

	if (!keys)
		return -ENOMEM;
	for (uint64_t i = 0; i < lines->count; i++)
		keys[i] = lines->lines[i] + 1; /* the first array of a cache has keys from 1 on */
	error = simulate(reference ? reference->policy : row, one ? 1 : cache_lines / WAYS,
			 one ? (unsigned)cache_lines : WAYS, (struct simulate_trace){ keys, lines->count },
			 &cell->simulated);
	cell->has_simulated = !error;
	free(keys);
	return error == -EINVAL ? 0 : error; /* a policy of the user's */
}

static int measure_row(struct table *table, struct fixture *fixture, unsigned row, unsigned trace)
{
	struct fixture_cache cache = table->command->cache;
	struct cell *cell = &table->cells[row][trace];
	int error;

	cache.policy = (enum weir_policy)row;
	error = fixture_replay(fixture, &cache, &table->traces[trace], &cell->measured);
	cell->has_measured = !error;
	/* Most programs have no policy of the user's; one that has it may still read wrong data by it. */
	if (row == WEIR_POLICY_USER && table->command->policy != row && error == -EINVAL)
		return 0;
	return error;
}

static int fill_table(struct table *table, struct fixture *fixture)
{
	int error = 0;

	for (unsigned t = 0; t < TRACE_COUNT && !error; t++) {
		if (!wanted_trace(table->command, t))
			continue;
		for (unsigned row = 0; row < ROWS && !error; row++) {
			if (row < WEIR_POLICY_COUNT && table->command->policy != WEIR_POLICY_COUNT &&
			    table->command->policy != row)
				continue;
			error = simulate_row(table, row, t);
			if (!error && row < WEIR_POLICY_COUNT)
				error = measure_row(table, fixture, row, t);
		}
	}
	return error;
}

static double hit_rate(uint64_t misses, const struct trace *trace)
{
	return 1.0 - (double)misses / (double)trace->count;
}

static bool row_empty(const struct table *table, unsigned row)
{
	for (unsigned t = 0; t < TRACE_COUNT; t++)
		if (table->cells[row][t].has_measured || table->cells[row][t].has_simulated)
			return false;
	return true;
}

/* Policies that should agree with their simulator, and do not: how often. */
static unsigned disagreements(const struct table *table)
{
	unsigned count = 0;

	for (unsigned row = 0; row < WEIR_POLICY_COUNT; row++)
		for (unsigned t = 0; t < TRACE_COUNT; t++)
			count += table->command->cache.lanes == 1 && simulate_exact(row) &&
				 table->cells[row][t].has_measured &&
				 table->cells[row][t].measured != table->cells[row][t].simulated;
	return count;
}

static void print_value(bool there, uint64_t misses, const struct trace *trace)
{
	if (there)
		printf("%9.2f", 100 * hit_rate(misses, trace));
	else
		printf("%9s", "-");
}

static void print_text(const struct table *table)
{
	printf("Hits in percent: measured, simulated. %s, %u lane%s; %llu lines of 512 bytes in sets of "
	       "%d.\n",
	       table->device, table->command->cache.lanes, table->command->cache.lanes == 1 ? "" : "s",
	       (unsigned long long)table->command->cache.lines, WAYS);
	printf("%-20s", "");
	for (unsigned t = 0; t < TRACE_COUNT; t++)
		if (wanted_trace(table->command, t))
			printf("%18s", trace_names[t]);
	printf("\n");
	for (unsigned row = 0; row < ROWS; row++) {
		if (row_empty(table, row))
			continue;
		printf("%-20s", row_name(row));
		for (unsigned t = 0; t < TRACE_COUNT; t++) {
			if (!wanted_trace(table->command, t))
				continue;
			print_value(table->cells[row][t].has_measured, table->cells[row][t].measured,
				    &table->traces[t]);
			print_value(table->cells[row][t].has_simulated, table->cells[row][t].simulated,
				    &table->traces[t]);
		}
		printf("\n");
	}
	for (unsigned t = 0; t < TRACE_COUNT; t++)
		if (wanted_trace(table->command, t))
			printf("%-5s %llu reads: %s\n", trace_names[t],
			       (unsigned long long)table->traces[t].count, trace_texts[t]);
}

static json_t *json_cell(const struct cell *cell, const struct trace *trace)
{
	json_t *object = json_object();

	if (cell->has_measured) {
		json_object_set_new(object, "misses", json_integer((json_int_t)cell->measured));
		json_object_set_new(object, "hit_rate", json_real(hit_rate(cell->measured, trace)));
	}
	if (cell->has_simulated) {
		json_object_set_new(object, "simulated_misses", json_integer((json_int_t)cell->simulated));
		json_object_set_new(object, "simulated_hit_rate",
				    json_real(hit_rate(cell->simulated, trace)));
	}
	return object;
}

static json_t *json_row(const struct table *table, unsigned row)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_string(row_name(row)));
	json_object_set_new(object, "exact", json_boolean(simulate_exact(row)));
	for (unsigned t = 0; t < TRACE_COUNT; t++)
		if (wanted_trace(table->command, t))
			json_object_set_new(object, trace_names[t],
					    json_cell(&table->cells[row][t], &table->traces[t]));
	return object;
}

static void print_json(const struct table *table)
{
	const struct command *command = table->command;
	json_t *traces = json_object(), *rows = json_array(), *root;

	for (unsigned t = 0; t < TRACE_COUNT; t++)
		if (wanted_trace(command, t))
			json_object_set_new(traces, trace_names[t],
					    json_pack("{s:I, s:I, s:s}", "reads",
						      (json_int_t)table->traces[t].count, "lines",
						      (json_int_t)table->traces[t].span, "text",
						      trace_texts[t]));
	for (unsigned row = 0; row < ROWS; row++)
		if (!row_empty(table, row))
			json_array_append_new(rows, json_row(table, row));
	root = json_pack("{s:s, s:I, s:i, s:i, s:i, s:f, s:I, s:i, s:o, s:o}", "device", table->device,
			 "cache_lines", (json_int_t)command->cache.lines, "ways", WAYS, "line_bytes", 512,
			 "lanes", (int)command->cache.lanes, "theta", command->shape.theta, "seed",
			 (json_int_t)command->shape.seed, "disagreements", (int)disagreements(table),
			 "traces", traces, "rows", rows);
	json_dumpf(root, stdout, JSON_INDENT(2));
	printf("\n");
	json_decref(root);
}

static int run(struct table *table, struct fixture *fixture)
{
	const struct command *command = table->command;
	struct weir_context_info info = { .size = sizeof(info) };
	struct fixture_options options = { .backend = command->backend,
					   .context = WEIR_OPTIONS(
						   context, .workers = command->cache.lanes == 1 ? 1 : 0,
						   .wave_lanes = command->wave) };
	int error = make_traces(table, &options.span);

	if (error)
		return error;
	error = fixture_open(fixture, &options);
	if (!error)
		error = weir_context_info(fixture->context, &info);
	if (error)
		return error;
	snprintf(table->device, sizeof(table->device), "%.127s", info.name);
	return fill_table(table, fixture);
}

static int complain(int error)
{
	(void)tool_complain("%s", error == -ENOMEM    ? "out of memory"
				  : error == -EBADMSG ? "the cache returned wrong data; please report this"
						      : weir_last_error());
	return 1;
}

int main(int argc, char **argv)
{
	struct command command = { .shape = { .reads = 100000, .theta = 0.99, .seed = 1 },
				   .cache = { .lines = 1024, .lanes = 1 },
				   .backend = "cpu",
				   .trace = TRACE_COUNT,
				   .policy = WEIR_POLICY_COUNT };
	struct table table = { .command = &command };
	struct fixture fixture = { .context = NULL };
	int status = read_options(&command, argc, argv), error;

	if (status >= 0)
		return status;
	error = run(&table, &fixture);
	status = fixture_close(&fixture);
	error = error ? error : status;
	if (!error)
		(command.json ? print_json : print_text)(&table);
	for (unsigned t = 0; t < TRACE_COUNT; t++)
		free(table.traces[t].lines);
	if (error)
		return complain(error);
	if (disagreements(&table))
		(void)tool_complain("%u results differ from their simulator's, which must not be",
				    disagreements(&table));
	return disagreements(&table) != 0;
}
