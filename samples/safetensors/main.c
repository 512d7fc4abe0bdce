/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-safetensors: the tensors of a model file into device memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/file.h>

#include "make.h"
#include "sums.h"

enum { MOST_RUNS = 99, PLAIN_BYTES = 16 << 20, LEAST_BYTES = 1 << 20 };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *path;
	const char *by;
	uint64_t make_bytes;
	uint64_t seed;
	uint32_t runs;
	bool direct;
	bool list;
	bool json;
	int file;   /* for loading, perhaps with O_DIRECT */
	int header; /* never with it */
	struct model model;
	struct sums sums;
	struct weir_context *context;
	struct weir_registration *registration;
	struct weir_file_io *io;
	uint64_t pinned;
	void *host;
	struct weir_context_info info;
	struct weir_registration_info how;
};

static struct command command_line = { .seed = 1,
				       .runs = 3,
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
	.about = "usage: weir-safetensors FILE [options]\n"
		 "\n"
		 "Loads all tensors of a safetensors file into device memory, each from a multiple of 256 "
		 "bytes on:\n"
		 "by weir_file_batch(), and by one thread that reads 16 MiB at a time into pinned memory and "
		 "copies.\n"
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
		code = weir_alloc_host(command->context, PLAIN_BYTES, &command->pinned, &command->host);
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

/* A tensor by hand. */
static int load_plainly(struct command *command, const struct model_tensor *tensor, uint64_t address,
			char *error)
{
	for (uint64_t at = 0; at < tensor->bytes; at += PLAIN_BYTES) {
		uint64_t count = tensor->bytes - at < PLAIN_BYTES ? tensor->bytes - at : PLAIN_BYTES;
		ssize_t got = pread(command->header, command->host, count,
				    (off_t)(command->model.data + tensor->begin + at));

		if (got != (ssize_t)count)
			return sample_fail(error, -EIO, "tensor \"%.200s\": pread gave %zd of %llu bytes",
					   tensor->name, got, (unsigned long long)count);
		if (weir_copy_to_device(command->context, address + at, command->host, count))
			return sample_pass(error, -EIO);
	}
	return 0;
}

static int load_all_plainly(struct command *command, char *error)
{
	int code = 0;

	for (size_t i = 0; i < command->model.count && !code; i++)
		code = load_plainly(command, &command->model.tensors[i],
				    command->sums.memory + command->sums.at[i], error);
	return code;
}

static int run_once(struct command *command, const char *way, int (*run)(struct command *, char *),
		    double *seconds, char *error)
{
	int code = sums_poison(&command->sums, error);
	double begin = sample_now();

	if (!code)
		code = run(command, error);
	*seconds = sample_now() - begin;
	return code ? code : sums_check(&command->sums, way, error);
}

static int run(struct command *command, double *weir, double *plain, char *error)
{
	double loads[MOST_RUNS], copies[MOST_RUNS], warm;
	int code = run_once(command, "by weir", load, &warm, error); /* threads and kernels are there then */

	for (uint32_t i = 0; i < command->runs && !code; i++) {
		code = run_once(command, "by weir", load, &loads[i], error);
		if (!code)
			code = run_once(command, "by hand", load_all_plainly, &copies[i], error);
	}
	if (code)
		return code;
	*weir = sample_median(loads, command->runs);
	*plain = sample_median(copies, command->runs);
	return 0;
}

static void print_text(const struct command *command, double weir, double plain)
{
	double bytes = (double)command->model.data_bytes;

	printf("model     %s%s: %zu tensors, %.1f MiB\n", command->path, command->direct ? " (O_DIRECT)" : "",
	       command->model.count, sample_megabytes(command->model.data_bytes));
	printf("device    %s\n", command->info.name);
	printf("path      %s: %s\n", weir_file_path_name((enum weir_file_path)command->how.path),
	       command->how.reason);
	printf("weir      %.4f s, %.2f GB/s\nplain     %.4f s, %.2f GB/s\n", weir, bytes / weir / 1e9, plain,
	       bytes / plain / 1e9);
	printf("ratio     weir is %.2f times as fast as one thread that reads and copies%s\n", plain / weir,
	       command->direct ? " through the page cache" : "");
	printf("result    verified: every byte of every tensor, on the device, after every load\n");
}

static void print_json(const struct command *command, double weir, double plain)
{
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", weir_file_path_name((enum weir_file_path)command->how.path));
	sample_set_text(root, "reason", command->how.reason);
	sample_set_bool(root, "direct", command->direct);
	sample_set_count(root, "tensors", command->model.count);
	sample_set_count(root, "bytes", command->model.data_bytes);
	sample_set_count(root, "runs", command->runs);
	sample_set_real(root, "weir_seconds", weir);
	sample_set_real(root, "plain_seconds", plain);
	sample_set_real(root, "weir_bytes_per_s", (double)command->model.data_bytes / weir);
	sample_set_real(root, "ratio", plain / weir);
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
	double weir = 0, plain = 0;
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
		code = run(command, &weir, &plain, error);
	if (!code)
		(command->json ? print_json : print_text)(command, weir, plain);
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
	sums_close(&command->sums);
	model_free(&command->model);
	free(command->io);
	if (command->file >= 0)
		close(command->file);
	if (command->header >= 0)
		close(command->header);
	return code ? tool_complain("%s", error) : 0;
}
