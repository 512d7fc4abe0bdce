/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-safetensors: the tensors of a model file into device memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/file.h>

#include "../common/mapping.h"
#include "by_hand.h"
#include "make.h"
#include "sums.h"

enum { MOST_RUNS = 99, LEAST_BYTES = 1 << 20 };

#define MOST_BYTES 0x1p60 /* no file is longer, and no product of make_model() reaches 2^64 */

/** enum way - how tensors get to the device: weir_file_batch(); threads that read and copy; mmap() and copy
 */
enum way { BY_WEIR, BY_THREADS, BY_MAPPING, WAYS };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *path;
	const char *by;
	uint64_t make_bytes;
	uint64_t seed;
	uint32_t runs;
	uint32_t threads;
	bool direct;
	bool map;
	bool cold;
	bool list;
	bool json;
	int file;   /* for loading, perhaps with O_DIRECT */
	int header; /* never with it */
	struct model model;
	struct sums sums;
	struct weir_context *context;
	struct weir_registration *registration;
	struct weir_file_io *io;
	struct by_hand *hand;
	struct weir_context_info info;
	struct weir_registration_info how;
};

static struct command command_line = { .seed = 1,
				       .runs = 3,
				       .threads = 1,
				       .by = "auto",
				       .file = -1,
				       .header = -1,
				       .info = { .size = sizeof(struct weir_context_info) },
				       .how = { .size = sizeof(struct weir_registration_info) } };

static const struct tool_option options[] = {
	{ .name = "make",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.make_bytes,
	  .least = LEAST_BYTES,
	  .most = MOST_BYTES,
	  .help = "write FILE first: layers as a language model has them, of about this length" },
	{ .name = "seed",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.seed,
	  .help = "of its numbers (default 1)" },
	{ .name = "direct",
	  .kind = TOOL_FLAG,
	  .to = &command_line.direct,
	  .help = "open FILE with O_DIRECT" },
	{ .name = "path",
	  .value = "NAME",
	  .kind = TOOL_TEXT,
	  .to = &command_line.by,
	  .help = "auto (default), module, direct, pull or bounce" },
	{ .name = "threads",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.threads,
	  .least = 1,
	  .most = BY_HAND_MOST_THREADS,
	  .help = "host threads of the plain version (default 1)" },
	{ .name = "mmap",
	  .kind = TOOL_FLAG,
	  .to = &command_line.map,
	  .help = "a third way: one thread that copies out of a mapping of FILE" },
	{ .name = "cold",
	  .kind = TOOL_FLAG,
	  .to = &command_line.cold,
	  .help = "drop FILE from the page cache before each run" },
	{ .name = "list",
	  .kind = TOOL_FLAG,
	  .to = &command_line.list,
	  .help = "print the tensors, and load nothing" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "runs of each way, alternating; the medians count (default 3)" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_LOCATION_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-safetensors",
	.about =
		"usage: weir-safetensors FILE [options]\n"
		"\n"
		"Loads all tensors of a safetensors file into device memory, each from a multiple of 256 "
		"bytes on:\n"
		"by weir_file_batch(), and by threads that read into 16 MiB of pinned memory, their parts of "
		"it\n"
		"at a time, and copy.\n"
		"Lanes add up every tensor after each load, outside the time that counts.\n",
	.options = options,
	.operand = "one file",
	.to = &command_line.path,
};

static int open_file(struct command *command, char *error)
{
	command->header = open(command->path, O_RDONLY | O_CLOEXEC);
	command->file = open(command->path, O_RDONLY | O_CLOEXEC | (command->direct ? O_DIRECT : 0));
	if (command->header < 0 || command->file < 0)
		return sample_fail(error, -errno, "cannot open %s%s: %s", command->path,
				   command->direct ? " with O_DIRECT" : "", strerror(errno));
	return 0;
}

/* What model.h says of the file, behind the file's name. */
static int refuse(const struct command *command, int code, const char *what, char *error)
{
	return sample_fail(error, code, "%.200s: %.700s", command->path, what);
}

static int read_header(struct command *command, char *error)
{
	unsigned char first[MODEL_LENGTH_BYTES] = { 0 };
	char what[MODEL_ERROR_BYTES] = "";
	off_t bytes = lseek(command->header, 0, SEEK_END);
	uint64_t length = 0;
	char *header;
	int code;

	if (bytes < 0 || pread(command->header, first, sizeof(first), 0) < 0)
		return sample_fail(error, -errno, "cannot read %s: %s", command->path, strerror(errno));
	code = model_length(first, (uint64_t)bytes, &length, what);
	if (code)
		return refuse(command, code, what, error);
	header = malloc(length);
	if (!header)
		return sample_fail(error, -ENOMEM, "no memory for a header of %llu bytes",
				   (unsigned long long)length);
	if (pread(command->header, header, length, MODEL_LENGTH_BYTES) != (ssize_t)length)
		code = sample_fail(error, -EIO, "cannot read the header of %s: %s", command->path,
				   strerror(errno));
	else if ((code = model_parse(header, length, (uint64_t)bytes, &command->model, what)) != 0)
		refuse(command, code, what, error);
	free(header);
	return code;
}

static int path_named(const char *name)
{
	for (int path = 0; weir_file_path_name((enum weir_file_path)path); path++)
		if (!strcmp(name, weir_file_path_name((enum weir_file_path)path)))
			return path;
	return -1;
}

static void make_requests(struct command *command)
{
	for (size_t i = 0; i < command->model.count; i++)
		command->io[i] = (struct weir_file_io){ .registration = command->registration,
							.file = command->file,
							.at = command->sums.at[i],
							.offset = command->model.data +
								  command->model.tensors[i].begin,
							.bytes = command->model.tensors[i].bytes };
}

static int open_device(struct command *command, char *error)
{
	int code = sample_pass(error, sample_open(&command->device, &command->context));

	if (!code)
		code = sums_open(&command->sums, command->context, &command->model, command->header, error);
	if (code)
		return code;
	code = weir_context_info(command->context, &command->info);
	if (!code)
		code = weir_register(
			command->context, command->sums.memory, command->sums.bytes,
			WEIR_OPTIONS(register, .path = (enum weir_file_path)path_named(command->by)),
			&command->registration);
	if (!code)
		code = weir_registration_info(command->registration, &command->how);
	command->io = calloc(command->model.count + 1, sizeof(*command->io));
	return code || command->io ? sample_pass(error, code)
				   : sample_fail(error, -ENOMEM, "no memory for requests");
}

static int load(struct command *command, char *error)
{
	int code;

	make_requests(command);
	code = sample_pass(error, weir_file_batch(command->context, command->io, command->model.count));
	for (size_t i = 0; i < command->model.count && !code; i++)
		if (command->io[i].result != (int64_t)command->io[i].bytes)
			code = sample_fail(
				error, -EIO,
				"tensor \"%.200s\": %lld of %llu bytes came: the file became shorter",
				command->model.tensors[i].name, (long long)command->io[i].result,
				(unsigned long long)command->io[i].bytes);
	return code;
}

static int read_by_hand(struct command *command, char *error)
{
	return by_hand_read(command->hand, error);
}

static int map_by_hand(struct command *command, char *error)
{
	return by_hand_map(command->hand, error);
}

static const struct {
	const char *name;
	int (*load)(struct command *command, char *error);
} ways[WAYS] = {
	[BY_WEIR] = { "by weir", load },
	[BY_THREADS] = { "by hand", read_by_hand },
	[BY_MAPPING] = { "by a mapping", map_by_hand },
};

static int run_once(struct command *command, enum way way, double *seconds, char *error)
{
	int code = sums_poison(&command->sums, error);
	double begin;

	if (!code && command->cold)
		code = sample_forget(command->header, error);
	begin = sample_now();
	if (!code)
		code = ways[way].load(command, error);
	*seconds = sample_now() - begin;
	return code ? code : sums_check(&command->sums, ways[way].name, error);
}

static int run(struct command *command, double medians[WAYS], char *error)
{
	double seconds[WAYS][MOST_RUNS] = { { 0 } }, warm;
	int code = run_once(command, BY_WEIR, &warm, error); /* threads and kernels are there then */

	for (uint32_t i = 0; i < command->runs; i++)
		for (enum way way = 0; way < WAYS && !code; way++)
			if (way != BY_MAPPING || command->map)
				code = run_once(command, way, &seconds[way][i], error);
	for (enum way way = 0; way < WAYS && !code; way++)
		medians[way] = sample_median(seconds[way], command->runs);
	return code;
}

static void print_way(const struct command *command, const char *name, double seconds)
{
	printf("%-9s %.4f s, %.2f GB/s\n", name, seconds, (double)command->model.data_bytes / seconds / 1e9);
}

static void print_text(const struct command *command, const double seconds[WAYS])
{
	printf("model     %s%s: %zu tensors, %.1f MiB\n", command->path, command->direct ? " (O_DIRECT)" : "",
	       command->model.count, sample_megabytes(command->model.data_bytes));
	printf("device    %s\n", command->info.name);
	printf("path      %s: %s\n", weir_file_path_name((enum weir_file_path)command->how.path),
	       command->how.reason);
	print_way(command, "weir", seconds[BY_WEIR]);
	print_way(command, "plain", seconds[BY_THREADS]);
	printf("ratio     weir is %.2f times as fast as %u thread%s and cop%s%s\n",
	       seconds[BY_THREADS] / seconds[BY_WEIR], command->threads,
	       command->threads == 1 ? " that reads" : "s that read", command->threads == 1 ? "ies" : "y",
	       command->direct ? " through the page cache" : "");
	if (command->map) {
		print_way(command, "mapped", seconds[BY_MAPPING]);
		printf("ratio     weir is %.2f times as fast as one thread that copies out of a mapping\n",
		       seconds[BY_MAPPING] / seconds[BY_WEIR]);
	}
	printf("result    verified: every byte of every tensor, on the device, after every load\n");
}

static void print_json(const struct command *command, const double seconds[WAYS])
{
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", weir_file_path_name((enum weir_file_path)command->how.path));
	sample_set_text(root, "reason", command->how.reason);
	sample_set_bool(root, "direct", command->direct);
	sample_set_bool(root, "cold", command->cold);
	sample_set_count(root, "tensors", command->model.count);
	sample_set_count(root, "bytes", command->model.data_bytes);
	sample_set_count(root, "runs", command->runs);
	sample_set_real(root, "weir_seconds", seconds[BY_WEIR]);
	sample_set_count(root, "plain_threads", command->threads);
	sample_set_real(root, "plain_seconds", seconds[BY_THREADS]);
	sample_set_real(root, "weir_bytes_per_s", (double)command->model.data_bytes / seconds[BY_WEIR]);
	sample_set_real(root, "ratio", seconds[BY_THREADS] / seconds[BY_WEIR]);
	if (command->map) {
		sample_set_real(root, "mapped_seconds", seconds[BY_MAPPING]);
		sample_set_real(root, "mapped_ratio", seconds[BY_MAPPING] / seconds[BY_WEIR]);
	}
	sample_set_bool(root, "verified", true);
	sample_print_json(root);
}

static void list(const struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		printf("%s %s %llu bytes at %llu\n", model->tensors[i].name, model->tensors[i].dtype,
		       (unsigned long long)model->tensors[i].bytes,
		       (unsigned long long)model->tensors[i].begin);
}

static int go(struct command *command, char *error)
{
	double seconds[WAYS] = { 0 };
	int code = command->make_bytes ? make_model(command->path, command->make_bytes, command->seed, error)
				       : 0;

	if (!code)
		code = open_file(command, error);
	if (!code)
		code = read_header(command, error);
	if (!code && command->list) {
		list(&command->model);
		return 0;
	}
	if (!code)
		code = open_device(command, error);
	if (!code)
		code = by_hand_open(&command->sums, command->header, command->threads, &command->hand, error);
	if (!code)
		code = run(command, seconds, error);
	if (!code)
		(command->json ? print_json : print_text)(command, seconds);
	return code;
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	int status = tool_parse(&program, argc, argv), code;

	if (status >= 0)
		return status;
	if (!command->path)
		return tool_usage("give one file; --make 1G writes one");
	if (path_named(command->by) < 0)
		return tool_usage("--path is auto, module, direct, pull or bounce");
	code = go(command, error);
	code = sample_close(command->context, code, error);
	by_hand_close(command->hand);
	sums_close(&command->sums);
	model_free(&command->model);
	free(command->io);
	if (command->file >= 0)
		close(command->file);
	if (command->header >= 0)
		close(command->header);
	return code ? tool_complain("%s", error) : 0;
}
