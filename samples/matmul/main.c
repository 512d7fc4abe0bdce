/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-matmul: C = A x B with all three on storage, through as much device memory as is given. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/load.h"
#include "../common/span_host.h"
#include "../common/vector.h"
#include "check.h"
#include "matmul.h"

enum { MOST_RUNS = 99, WAVES_PER_WORKER = 32, MOST_SLICE = 512, DEFAULT_SIZE = 512 };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *uri;
	uint64_t size;
	uint64_t rows;
	uint64_t inner;
	uint64_t columns;
	uint64_t memory;
	uint64_t waves;
	uint32_t runs;
	bool plain;
	bool verify;
	bool json;
	uint64_t panel; /* rows of A and C in device memory */
	uint64_t slice; /* rows of B, twice */
	uint64_t a, b[2], c;
	struct weir_context *context;
	struct sample_storage storage;
	struct check check;
	struct matmul_args args;
	struct weir_context_info info;
};

static struct command command_line = { .runs = 3, .info = { .size = sizeof(struct weir_context_info) } };

#define SIDE(option, text)                                                                                   \
	{                                                                                                    \
		.name = #option, .value = "N", .kind = TOOL_U64, .to = &command_line.option,                 \
		.least = MATMUL_UNIT, .most = CHECK_MOST_INNER, .help = text                                 \
	}

static const struct tool_option options[] = {
	SIDE(size, "rows and columns of all three, a multiple of 32 (default 512)"),
	SIDE(rows, "of A and C, instead"),
	SIDE(inner, "columns of A, rows of B, instead"),
	SIDE(columns, "of B and C, instead"),
	{ .name = "memory",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.memory,
	  .least = 1,
	  .help = "device memory for parts of the matrices (default: a quarter of their size)" },
	{ .name = "waves",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.waves,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "waves (default 32 per worker of the device)" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "runs; the median counts (default 3)" },
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.plain,
	  .help = "also multiply in plain device memory: what it takes without storage" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "after every run read C back: by random vectors (Freivalds), and some rows element by\n"
		  "element" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-matmul",
	.about = "usage: weir-matmul URI [options]\n"
		 "\n"
		 "C = A x B, f32, row by row, all three on one storage, which is OVERWRITTEN. Rows of A and "
		 "C stay in\n"
		 "device memory while lanes read B, a slice ahead of the one that they multiply; lanes write "
		 "C.\n",
	.options = options,
	.operand = "one storage",
	.to = &command_line.uri,
};

/** struct report - all there is to print */
struct report {
	double seconds;
	double plain;
	struct weir_stats io; /* of the latest run */
};

static uint64_t a_bytes(const struct command *command)
{
	return command->rows * command->inner * sizeof(float);
}

static uint64_t b_bytes(const struct command *command)
{
	return command->inner * command->columns * sizeof(float);
}

static uint64_t c_bytes(const struct command *command)
{
	return command->rows * command->columns * sizeof(float);
}

static uint64_t all_bytes(const struct command *command)
{
	return a_bytes(command) + b_bytes(command) + c_bytes(command);
}

static uint64_t within(uint64_t value, uint64_t most)
{
	value = value / MATMUL_UNIT * MATMUL_UNIT;
	value = value < MATMUL_UNIT ? MATMUL_UNIT : value;
	return value < most ? value : most;
}

/* A quarter of the memory for two slices of B, the rest for rows of A and C. */
static int choose_parts(struct command *command, char *error)
{
	uint64_t slice_row = 2 * command->columns * sizeof(float);
	uint64_t panel_row = (command->inner + command->columns) * sizeof(float);
	uint64_t least = MATMUL_UNIT * (slice_row + panel_row), most = command->inner;

	if (!command->memory)
		command->memory = all_bytes(command) / 4 > least ? all_bytes(command) / 4 : least;
	if (command->memory < least)
		return sample_fail(error, -EINVAL,
				   "--memory is %llu bytes; parts of these matrices need %llu at least",
				   (unsigned long long)command->memory, (unsigned long long)least);
	most = most < MOST_SLICE ? most : (uint64_t)MOST_SLICE;
	command->slice = within(command->memory / 4 / slice_row, most);
	command->panel = within((command->memory - command->slice * slice_row) / panel_row, command->rows);
	return 0;
}

static int open_storage(struct command *command, char *error)
{
	int code = sample_pass(error, sample_open(&command->device, &command->context));

	if (!code)
		code = sample_pass(error, weir_context_info(command->context, &command->info));
	if (!code)
		code = sample_storage_open(&command->device, command->context, command->uri,
					   &command->storage, error);
	if (!code && all_bytes(command) > command->storage.info.bytes)
		code = sample_fail(error, -EINVAL, "the matrices have %llu bytes, and %.700s has %llu",
				   (unsigned long long)all_bytes(command), command->uri,
				   (unsigned long long)command->storage.info.bytes);
	return code ? code : choose_parts(command, error);
}

/* All launches' arguments, and their memory. */
static int allocate(struct command *command)
{
	uint64_t waves = command->waves ? command->waves : (uint64_t)command->info.workers * WAVES_PER_WORKER;
	uint64_t lanes = waves * command->info.wave_lanes + SAMPLE_BLOCK_LANES, range, pieces;
	int code;

	command->waves = waves;
	range = command->panel * (command->inner > command->columns ? command->inner : command->columns);
	range = range > command->slice * command->columns ? range : command->slice * command->columns;
	pieces = range * sizeof(float) / command->storage.span.piece_bytes + 1;
	command->args = (struct matmul_args){ .span = command->storage.span,
					      .columns = command->columns,
					      .stride = command->inner };
	code = weir_alloc(command->context, (pieces + lanes) * sizeof(struct weir_event),
			  &command->args.events);
	if (!code)
		code = weir_alloc(command->context, command->panel * command->inner * sizeof(float),
				  &command->a);
	for (unsigned i = 0; i < 2 && !code; i++)
		code = weir_alloc(command->context, command->slice * command->columns * sizeof(float),
				  &command->b[i]);
	return code ? code
		    : weir_alloc(command->context, command->panel * command->columns * sizeof(float),
				 &command->c);
}

static void put(uint64_t *words, uint64_t first, uint64_t count, float (*element)(uint64_t))
{
	for (uint64_t i = 0; i < count; i++) {
		float pair[2] = { element(2 * (first + i)), element(2 * (first + i) + 1) };

		memcpy(&words[i], pair, sizeof(pair));
	}
}

static void make_a(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	put(words, first, count, check_a);
}

static void make_b(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	put(words, first, count, check_b);
}

/* Numbers that are no product's. */
static void make_nonsense(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	for (uint64_t i = 0; i < count; i++)
		words[i] = 0x4b0000004b000000u + ((first + i) & 0xffff);
}

static int prepare(struct command *command, char *error)
{
	int code = open_storage(command, error);

	if (!code)
		code = sample_pass(error, allocate(command));
	if (!code)
		code = sample_fill(command->storage.storage, 0, a_bytes(command), make_a, NULL, error);
	if (!code)
		code = sample_fill(command->storage.storage, a_bytes(command), b_bytes(command), make_b, NULL,
				   error);
	if (!code && command->verify)
		code = check_open(&command->check, command->rows, command->inner, command->columns, error);
	return code;
}

/* A launch: @bytes at @at are moved, while @rows of C are made. */
static int step(struct command *command, uint64_t opcode, uint64_t at, uint64_t bytes, uint64_t buffer,
		uint64_t rows)
{
	struct matmul_args *args = &command->args;

	args->opcode = opcode;
	args->at = at;
	args->bytes = bytes;
	args->buffer = buffer;
	args->rows = rows;
	return sample_run_waves(command->context, "matmul_step", command->waves, args, sizeof(*args));
}

/* The slice from row @from of B on, to the buffer that it takes; while @rows of C are made. */
static int step_slice(struct command *command, uint64_t from, uint64_t rows)
{
	uint64_t left = command->inner - from, inner = left < command->slice ? left : command->slice;

	return step(command, NVME_OPCODE_READ, a_bytes(command) + from * command->columns * sizeof(float),
		    inner * command->columns * sizeof(float), command->b[from / command->slice & 1], rows);
}

/* Rows [@first, @first + @rows) of C. */
static int make_panel(struct command *command, uint64_t first, uint64_t rows)
{
	uint64_t a_row = command->inner * sizeof(float), c_row = command->columns * sizeof(float);
	struct matmul_args *args = &command->args;
	int code = step(command, NVME_OPCODE_READ, first * a_row, rows * a_row, command->a, 0);

	if (!code)
		code = step_slice(command, 0, 0);
	args->c = command->c;
	for (uint64_t k = 0; k < command->inner && !code; k += command->slice) {
		args->a = command->a + k * sizeof(float);
		args->b = command->b[k / command->slice & 1];
		args->inner = command->inner - k < command->slice ? command->inner - k : command->slice;
		args->begins = k == 0;
		code = step_slice(command, k + args->inner, rows);
	}
	return code ? code
		    : step(command, NVME_OPCODE_WRITE, a_bytes(command) + b_bytes(command) + first * c_row,
			   rows * c_row, command->c, 0);
}

static int multiply(struct command *command, char *error)
{
	int code = 0;

	for (uint64_t first = 0; first < command->rows && !code; first += command->panel) {
		uint64_t left = command->rows - first;

		code = sample_pass(error,
				   make_panel(command, first, left < command->panel ? left : command->panel));
		if (!code)
			code = sample_storage_failed(command->context, &command->storage, error);
	}
	return code;
}

/* Whether A and B are on storage what they were made as, and C, row by row, their product. */
static int verify(struct command *command, char *error)
{
	uint64_t a_rows = command->rows, b_rows = a_rows + command->inner, at = 0;
	uint64_t longest = command->inner > command->columns ? command->inner : command->columns;
	unsigned char *room = malloc(longest * sizeof(float) + 2 * 4096);
	int code = room ? 0 : sample_fail(error, -ENOMEM, "no memory for a row");

	for (uint64_t row = 0; row < b_rows + command->rows && !code; row++) {
		uint64_t count = row < a_rows ? command->inner : command->columns;
		const unsigned char *from;
		const float *values;

		code = sample_storage_bytes(&command->storage, at, count * sizeof(float), room, &from, error);
		at += count * sizeof(float);
		values = (const float *)(const void *)from;
		if (!code && row >= b_rows)
			code = check_row(&command->check, row - b_rows, values, "from storage to storage",
					 error);
		for (uint64_t i = 0; i < count && !code && row < b_rows; i++)
			if (values[i] !=
			    (row < a_rows ? check_a(row * count + i) : check_b((row - a_rows) * count + i)))
				code = sample_fail(
					error, -EBADMSG,
					"WRONG DATA: element %llu of row %llu of %c is not what was "
					"written there; please report this",
					(unsigned long long)i,
					(unsigned long long)(row < a_rows ? row : row - a_rows),
					row < a_rows ? 'A' : 'B');
	}
	free(room);
	return code;
}

/* One run, from the first launch to all of C on storage; then whether it is right. */
static int run_once(struct command *command, double *seconds, struct weir_stats *io, char *error)
{
	struct weir_stats before = { .size = sizeof(before) };
	double begin;
	int code = command->verify
			   ? sample_fill(command->storage.storage, a_bytes(command) + b_bytes(command),
					 c_bytes(command), make_nonsense, NULL, error)
			   : 0;

	io->size = sizeof(*io);
	if (!code)
		code = sample_pass(error, weir_stats(command->storage.storage, &before));
	begin = sample_now();
	if (!code)
		code = multiply(command, error);
	*seconds = sample_now() - begin;
	if (!code)
		code = sample_pass(error, weir_stats(command->storage.storage, io));
	io->commands -= before.commands;
	io->bytes_read -= before.bytes_read;
	io->bytes_written -= before.bytes_written;
	return code || !command->verify ? code : verify(command, error);
}

static int check_plain(struct command *command, char *error)
{
	uint64_t row_bytes = command->columns * sizeof(float);
	float *values = malloc(row_bytes);
	int code = values ? 0 : sample_fail(error, -ENOMEM, "no memory for a row");

	for (uint64_t row = 0; row < command->rows && !code; row++) {
		code = sample_pass(error,
				   weir_copy_from_device(command->context, values,
							 command->args.c + row * row_bytes, row_bytes));
		if (!code)
			code = check_row(&command->check, row, values, "in plain memory", error);
	}
	free(values);
	return code;
}

static int run_plain(struct command *command, double *seconds, char *error)
{
	struct sample_source source = { .storages = &command->storage.storage,
					.storage_count = 1,
					.bytes = a_bytes(command) };
	struct matmul_args *args = &command->args;
	int code = sample_load(command->context, &source, &args->a);

	source.first_byte = source.bytes;
	source.bytes = b_bytes(command);
	if (!code)
		code = sample_load(command->context, &source, &args->b);
	if (!code)
		code = weir_alloc(command->context, c_bytes(command), &args->c);
	args->rows = command->rows;
	args->inner = command->inner;
	args->begins = 1;
	for (unsigned i = 0; i < 2 && !code; i++) { /* the first time loads the kernel */
		double begin = sample_now();

		code = sample_run_waves(command->context, "matmul_plain", command->waves, args,
					sizeof(*args));
		*seconds = sample_now() - begin;
	}
	return code || !command->verify ? sample_pass(error, code) : check_plain(command, error);
}

static int run(struct command *command, struct report *report, char *error)
{
	double seconds[MOST_RUNS];
	int code = 0;

	for (uint32_t i = 0; i < command->runs && !code; i++)
		code = run_once(command, &seconds[i], &report->io, error);
	if (code)
		return code;
	report->seconds = sample_median(seconds, command->runs);
	return command->plain ? run_plain(command, &report->plain, error) : 0;
}

static double operations(const struct command *command)
{
	return 2 * (double)command->rows * (double)command->inner * (double)command->columns;
}

/* What a run reads and writes: A and C once, B for each panel. */
static double moved(const struct command *command)
{
	uint64_t panels = (command->rows + command->panel - 1) / command->panel;

	return (double)(a_bytes(command) + panels * b_bytes(command) + c_bytes(command));
}

static void print_text(const struct command *command, const struct report *report)
{
	printf("matrices  %llu x %llu by %llu x %llu, %.1f MiB with the product\n",
	       (unsigned long long)command->rows, (unsigned long long)command->inner,
	       (unsigned long long)command->inner, (unsigned long long)command->columns,
	       sample_megabytes(all_bytes(command)));
	printf("device    %s\nstorage   %s\n", command->info.name, command->storage.info.path);
	printf("memory    %.1f MiB: %llu rows of A and C, twice %llu rows of B; %llu waves\n",
	       sample_megabytes(command->memory), (unsigned long long)command->panel,
	       (unsigned long long)command->slice, (unsigned long long)command->waves);
	printf("time      %.4f s, %.2f GFLOP/s, %.2f GB/s; %.1f MiB read and %.1f MiB written\n",
	       report->seconds, operations(command) / report->seconds / 1e9,
	       moved(command) / report->seconds / 1e9, sample_megabytes(report->io.bytes_read),
	       sample_megabytes(report->io.bytes_written));
	if (command->plain)
		printf("plain     %.4f s in device memory; from storage to storage takes %.2f times as "
		       "long\n",
		       report->plain, report->seconds / report->plain);
	printf("result    %s\n", command->verify ? "verified: C is A x B, after every run"
						 : "not verified (--verify reads C back from storage)");
}

static void print_json(const struct command *command, const struct report *report)
{
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", command->storage.info.path);
	sample_set_count(root, "rows", command->rows);
	sample_set_count(root, "inner", command->inner);
	sample_set_count(root, "columns", command->columns);
	sample_set_count(root, "memory_bytes", command->memory);
	sample_set_count(root, "panel_rows", command->panel);
	sample_set_count(root, "slice_rows", command->slice);
	sample_set_count(root, "waves", command->waves);
	sample_set_count(root, "runs", command->runs);
	sample_set_real(root, "seconds", report->seconds);
	sample_set_real(root, "flops", operations(command) / report->seconds);
	sample_set_real(root, "bytes_per_s", moved(command) / report->seconds);
	sample_set_count(root, "commands", report->io.commands);
	sample_set_count(root, "bytes_read", report->io.bytes_read);
	sample_set_count(root, "bytes_written", report->io.bytes_written);
	if (command->plain) {
		sample_set_real(root, "plain_seconds", report->plain);
		sample_set_real(root, "ratio", report->seconds / report->plain);
	}
	sample_set_bool(root, "verified", command->verify);
	sample_print_json(root);
}

/* What is to be known before anything is opened. */
static const char *refuse(struct command *command)
{
	uint64_t size = command->size ? command->size : DEFAULT_SIZE;

	command->rows = command->rows ? command->rows : size;
	command->inner = command->inner ? command->inner : size;
	command->columns = command->columns ? command->columns : size;
	if (!command->uri)
		return "give one storage, such as virt:3G; it is overwritten";
	return command->rows % MATMUL_UNIT || command->inner % MATMUL_UNIT || command->columns % MATMUL_UNIT
		       ? "rows, inner and columns are multiples of 32"
		       : NULL;
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	struct report report = { .seconds = 0 };
	int status = tool_parse(&program, argc, argv);
	const char *wrong = status >= 0 ? NULL : refuse(command);

	if (status >= 0)
		return status;
	if (wrong)
		return tool_usage("%s", wrong);
	status = prepare(command, error);
	if (!status)
		status = run(command, &report, error);
	if (!status)
		(command->json ? print_json : print_text)(command, &report);
	status = sample_close(command->context, status, error);
	check_close(&command->check);
	return status ? tool_complain("%s", error) : 0;
}
