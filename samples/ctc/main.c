/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-ctc: what asynchronous reads gain, over the ratio of computation to communication. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/vector.h"
#include "ctc.h"

enum { MOST_RATIOS = 64, MOST_RUNS = 99, FIRST_ITERATIONS = 64, WORDS = CTC_BYTES / 8 };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *uri;
	uint32_t service;
	bool service_given;
	uint64_t lanes;
	uint32_t block;
	uint64_t commands;
	uint64_t size;
	double step;
	double most;
	uint32_t runs;
	bool json;
	struct weir_context *context;
	struct weir_storage *storage;
	struct ctc_args args;
	uint64_t *expected; /* check per lane */
	struct ctc_lane *results;
};

static struct command command_line = {
	.commands = 64, .step = .2, .most = 2, .runs = 5, .size = 64 << 20, .device = { .workers = 1 }
};

static const struct tool_option options[] = {
	{ .name = "lanes",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.lanes,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "lanes (default 1024; one per worker where each lane is a wave of its own)" },
	{ .name = "block",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.block,
	  .least = 1,
	  .most = CTC_BLOCK_LANES,
	  .help = "lanes per block (default 1024)" },
	{ .name = "commands",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.commands,
	  .least = 2,
	  .most = 1 << 16,
	  .help = "reads of 4 KiB per lane (default 64)" },
	{ .name = "size",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.size,
	  .least = CTC_BYTES,
	  .most = 1 << 30,
	  .help = "range of the storage that is read (default 64M, or all of it)" },
	{ .name = "step",
	  .value = "R",
	  .kind = TOOL_REAL,
	  .to = &command_line.step,
	  .least = .05,
	  .most = 2,
	  .help = "from one ratio to the next (default 0.2)" },
	{ .name = "most",
	  .value = "R",
	  .kind = TOOL_REAL,
	  .to = &command_line.most,
	  .least = 0.05,
	  .most = 3,
	  .help = "last ratio (default 2)" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "runs of everything, alternating; the quickest counts (default 5)" },
	{ .name = "service",
	  .value = "WAVES",
	  .kind = TOOL_U32,
	  .to = &command_line.service,
	  .given = &command_line.service_given,
	  .help = "a service of so many waves reaps completions; 0: whoever waits does\n"
		  "(default: a service only where lanes must pull their data)" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-ctc",
	.about = "usage: weir-ctc URI [options]\n"
		 "\n"
		 "Lanes read blocks and compute on each. Computation takes from nothing to twice as long\n"
		 "as reading, and is done after all reads (sync), after each read (turns), or while the\n"
		 "next block is on its way (async). The data read is checked in every run. A virt: storage\n"
		 "is filled first; any other is only read. An example: weir-ctc 'virt:64M?lat_us=20'\n",
	.options = options,
	.operand = "one storage",
	.to = &command_line.uri,
};

/** struct point - one ratio */
struct point {
	double ratio; /* as measured */
	uint64_t iterations;
	double alone, sync, rounds, async; /* seconds */
};

static int open_all(struct command *command)
{
	struct weir_context_info info = { .size = sizeof(info) };
	uint32_t service = command->service_given ? command->service : WEIR_SERVICE_WHERE_PULLED;
	const char *backend = command->device.backend ? command->device.backend : getenv("WEIR_BACKEND");
	int code = weir_context_open(backend && *backend ? backend : "auto",
				     WEIR_OPTIONS(context, .workers = command->device.workers,
						  .wave_lanes = command->device.wave_lanes,
						  .service_waves = service),
				     &command->context);

	if (!code)
		code = weir_context_info(command->context, &info);
	if (!command->lanes)
		command->lanes = info.wave_lanes > 1 ? CTC_BLOCK_LANES : info.workers;
	if (!command->block)
		command->block =
			command->lanes < CTC_BLOCK_LANES ? (uint32_t)command->lanes : CTC_BLOCK_LANES;
	if (code)
		return code;
	return weir_storage_open(command->context, command->uri,
				 WEIR_OPTIONS(storage, .queues = command->device.queues,
					      .depth = command->device.depth,
					      .read_only = strncmp(command->uri, "virt:", 5) != 0),
				 &command->storage);
}

static int allocate(struct command *command)
{
	struct ctc_args *args = &command->args;
	int code = weir_storage_disk(command->storage, &args->disk);

	args->lanes = command->lanes;
	args->commands = command->commands;
	if (code ||
	    (code = weir_alloc(command->context, args->lanes * args->commands * CTC_BYTES, &args->buffers)) !=
		    0 ||
	    (code = weir_alloc(command->context, args->lanes * 2 * sizeof(struct weir_event),
			       &args->events)) != 0 ||
	    (code = weir_alloc(command->context, args->lanes * sizeof(struct ctc_lane), &args->results)) != 0)
		return code;
	command->expected = calloc(args->lanes, sizeof(*command->expected));
	command->results = calloc(args->lanes, sizeof(*command->results));
	return weir_alloc(command->context, sizeof(uint64_t), &args->failure);
}

/* What a lane should sum up: the same words of the same blocks, read by the host. */
static void expect(struct command *command, const uint64_t *data)
{
	for (uint64_t lane = 0; lane < command->lanes; lane++)
		for (uint64_t i = 0; i < command->commands; i++) {
			const uint64_t *block =
				data + (lane + i * command->lanes) % command->args.indices * WORDS;

			for (unsigned s = 0; s < CTC_BYTES / CTC_SECTOR_BYTES; s++)
				command->expected[lane] += block[s * (CTC_SECTOR_BYTES / 8) + s];
		}
}

/* Whether the range has what it was filled with: lanes and host could both read zeros. */
static int check_filled(const struct command *command, uint64_t bytes, const uint64_t *data, char *error)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		if (data[i] != sample_scramble(i))
			return sample_fail(error, -EBADMSG,
					   "WRONG DATA: the 8 bytes of %.700s at %llu are not what was "
					   "written there; please report this",
					   command->uri, (unsigned long long)i * 8);
	return 0;
}

static int read_range(struct command *command, uint64_t bytes, uint64_t *data, char *error)
{
	bool filled = sample_is_blank(command->uri);
	int code = 0;

	if (filled) {
		for (uint64_t i = 0; i < bytes / 8; i++)
			data[i] = sample_scramble(i);
		code = weir_storage_write(command->storage, 0, data, bytes);
		memset(data, 0, bytes);
	}
	if (!code)
		code = weir_storage_read(command->storage, 0, data, bytes);
	return code || !filled ? sample_pass(error, code) : check_filled(command, bytes, data, error);
}

static int prepare(struct command *command, char *error)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	uint64_t bytes = command->size, *data;
	int code = open_all(command);

	if (!code)
		code = allocate(command);
	if (!code)
		code = weir_storage_info(command->storage, &info);
	if (code)
		return sample_pass(error, code);
	if (bytes > info.bytes)
		bytes = info.bytes;
	command->args.indices = bytes / CTC_BYTES;
	if (!command->args.indices)
		return sample_fail(error, -EINVAL, "%.800s has %llu bytes; it needs one block of %d at least",
				   command->uri, (unsigned long long)info.bytes, CTC_BYTES);
	bytes = command->args.indices * CTC_BYTES;
	data = malloc(bytes);
	if (!data || !command->expected || !command->results)
		code = sample_fail(error, -ENOMEM,
				   "no memory for the %llu bytes that are read: give a smaller --size",
				   (unsigned long long)bytes);
	else
		code = read_range(command, bytes, data, error);
	if (!code)
		expect(command, data);
	free(data);
	return code;
}

static int check(struct command *command, char *error)
{
	uint64_t failure = 0;
	char text[80];
	int code = weir_copy_from_device(command->context, &failure, command->args.failure, sizeof(failure));

	if (code)
		return sample_pass(error, code);
	if (failure) {
		weir_status_text((uint32_t)failure, text);
		return sample_fail(error, -EIO, "a read of %.800s failed: %s", command->uri, text);
	}
	for (uint64_t i = 0; i < command->lanes; i++)
		if (command->results[i].check != command->expected[i])
			return sample_fail(error, -EBADMSG,
					   "WRONG RESULT: the blocks of lane %llu sum up to %llx, the same "
					   "blocks read by the "
					   "host to %llx; please report this",
					   (unsigned long long)i,
					   (unsigned long long)command->results[i].check,
					   (unsigned long long)command->expected[i]);
	return 0;
}

/* Run a kernel; from the first lane's beginning to the last one's end. */
static int run_once(struct command *command, const char *kernel, uint64_t iterations, double *seconds,
		    char *error)
{
	uint32_t blocks = (uint32_t)((command->lanes + command->block - 1) / command->block);
	uint64_t begin = UINT64_MAX, end = 0;
	int code = 0;

	command->args.iterations = iterations;
	if (strcmp(kernel, "ctc_alone") != 0) /* that one computes with what "ctc_sync" has left */
		code = weir_launch(command->context, "ctc_poison", blocks, command->block, &command->args,
				   sizeof(command->args));
	if (!code)
		code = weir_launch(command->context, kernel, blocks, command->block, &command->args,
				   sizeof(command->args));
	if (!code)
		code = weir_sync(command->context);
	if (!code)
		code = weir_copy_from_device(command->context, command->results, command->args.results,
					     command->lanes * sizeof(*command->results));
	if (code)
		return sample_pass(error, code);
	for (uint64_t i = 0; i < command->lanes; i++) {
		begin = command->results[i].begin < begin ? command->results[i].begin : begin;
		end = command->results[i].end > end ? command->results[i].end : end;
	}
	*seconds = (double)(end - begin) * 1e-9;
	return 0;
}

/* Once more; @least keeps the quickest. */
static int measure(struct command *command, const char *kernel, uint64_t iterations, double *least,
		   char *error)
{
	double seconds = 0;
	int code = run_once(command, kernel, iterations, &seconds, error);

	if (!code && (*least <= 0 || seconds < *least))
		*least = seconds;
	return code ? code : check(command, error);
}

/* The time of all reads, and of one iteration for every command. */
static int calibrate(struct command *command, double *reads, double *none, double *iteration, char *error)
{
	uint64_t iterations = FIRST_ITERATIONS;
	double some = 0;
	int code = 0;

	for (uint32_t run = 0; run <= command->runs && !code; run++) {
		code = measure(command, "ctc_sync", 0, reads, error);
		if (!code)
			code = measure(command, "ctc_alone", 0, none, error);
	}
	while (!code && some < *none + *reads) {
		iterations *= 2;
		some = 0;
		for (uint32_t run = 0; run < 3 && !code; run++)
			code = measure(command, "ctc_alone", iterations, &some, error);
	}
	*iteration = (some - *none) / (double)iterations;
	return code;
}

/* Computation alone works on what sync has read. */
static int measure_point(struct command *command, struct point *point, char *error)
{
	int code = 0;

	for (uint32_t run = 0; run < command->runs && !code; run++)
		if ((code = measure(command, "ctc_sync", point->iterations, &point->sync, error)) == 0 &&
		    (code = measure(command, "ctc_alone", point->iterations, &point->alone, error)) == 0 &&
		    (code = measure(command, "ctc_iterations", point->iterations, &point->rounds, error)) ==
			    0)
			code = measure(command, "ctc_async", point->iterations, &point->async, error);
	return code;
}

/* What sync / async can be at best: the first read and the last computation have no company. */
static double limit(double ratio, double commands)
{
	double longer = ratio > 1 ? ratio : 1;

	return commands * (1 + ratio) / (1 + ratio + (commands - 1) * longer);
}

/** struct report - all there is to print */
struct report {
	const struct command *command;
	char device[128];
	char path[128];
	double reads;
	unsigned count;
	unsigned best; /* point with the largest gain */
	struct point point[MOST_RATIOS];
};

static double gain(const struct point *point)
{
	return point->async > 0 ? point->sync / point->async : 0;
}

static int sweep(struct command *command, struct report *report, char *error)
{
	double none = 0, iteration = 0;
	int code = calibrate(command, &report->reads, &none, &iteration, error);

	for (double ratio = 0; ratio <= command->most + 1e-9 && report->count < MOST_RATIOS && !code;
	     ratio += command->step) {
		struct point *point = &report->point[report->count];

		point->iterations = (uint64_t)(ratio * report->reads / iteration + .5);
		code = measure_point(command, point, error);
		point->ratio = (point->alone - none) / report->reads;
		if (gain(point) > gain(&report->point[report->best]))
			report->best = report->count;
		report->count++;
	}
	return code;
}

static void print_text(const struct report *report)
{
	const struct command *command = report->command;
	const struct point *best = &report->point[report->best];

	printf("device    %s\nstorage   %s\n", report->device, report->path);
	printf("load      %llu lanes in blocks of %u, %llu reads of 4 KiB each: %.2f us each without "
	       "computation\n\n",
	       (unsigned long long)command->lanes, command->block, (unsigned long long)command->commands,
	       report->reads / (double)command->commands * 1e6);
	printf("%8s %12s %10s %10s %10s %11s %7s\n", "ratio", "computation", "sync ms", "turns ms",
	       "async ms", "sync/async", "limit");
	for (unsigned i = 0; i < report->count; i++) {
		const struct point *point = &report->point[i];

		printf("%8.2f %9.3f ms %10.3f %10.3f %10.3f %11.2f %7.2f\n", point->ratio, point->alone * 1e3,
		       point->sync * 1e3, point->rounds * 1e3, point->async * 1e3, gain(point),
		       limit(point->ratio, (double)command->commands));
	}
	printf("\nbest      %.2f times as fast at ratio %.2f\n", gain(best), best->ratio);
	printf("result    verified: every block read in every run equals what the host reads\n");
}

static json_t *point_json(const struct report *report, const struct point *point)
{
	json_t *one = json_object();

	sample_set_real(one, "ratio", point->ratio);
	sample_set_count(one, "iterations", point->iterations);
	sample_set_real(one, "compute_seconds", point->alone);
	sample_set_real(one, "sync_seconds", point->sync);
	sample_set_real(one, "iterations_seconds", point->rounds);
	sample_set_real(one, "async_seconds", point->async);
	sample_set_real(one, "speedup", gain(point));
	sample_set_real(one, "limit", limit(point->ratio, (double)report->command->commands));
	return one;
}

static void print_json(const struct report *report)
{
	const struct command *command = report->command;
	json_t *root = json_object(), *points = json_array();

	sample_set_text(root, "device", report->device);
	sample_set_text(root, "path", report->path);
	sample_set_count(root, "lanes", command->lanes);
	sample_set_count(root, "block", command->block);
	sample_set_count(root, "commands", command->commands);
	sample_set_count(root, "service", command->service);
	sample_set_real(root, "read_us", report->reads / (double)command->commands * 1e6);
	sample_set_real(root, "best_speedup", gain(&report->point[report->best]));
	sample_set_real(root, "best_ratio", report->point[report->best].ratio);
	for (unsigned i = 0; i < report->count; i++)
		json_array_append_new(points, point_json(report, &report->point[i]));
	json_object_set_new(root, "points", points);
	sample_set_bool(root, "verified", true);
	sample_print_json(root);
}

static int describe(const struct command *command, struct report *report)
{
	struct weir_context_info device = { .size = sizeof(device) };
	struct weir_storage_info storage = { .size = sizeof(storage) };
	int code = weir_context_info(command->context, &device);

	memcpy(report->device, device.name, sizeof(report->device));
	if (!code)
		code = weir_storage_info(command->storage, &storage);
	memcpy(report->path, storage.path, sizeof(report->path));
	return code;
}

int main(int argc, char **argv)
{
	static struct report report = { .command = &command_line };
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	if (!command->uri)
		return tool_usage("give one storage, such as virt:64M?lat_us=20");
	status = prepare(command, error);
	if (!status)
		status = sweep(command, &report, error);
	if (!status)
		status = sample_pass(error, describe(command, &report));
	if (!status)
		(command->json ? print_json : print_text)(&report);
	status = sample_close(command->context, status, error);
	free(command->expected);
	free(command->results);
	return status ? tool_complain("%s", error) : 0;
}
