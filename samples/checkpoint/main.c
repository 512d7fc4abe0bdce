/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-checkpoint: the tensors of a GPT-2 model to a storage, and into memory again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/tools/options/tool_output.h"
#include "shapes.h"
#include "slots.h"
#include "tensors.h"

enum { MOST_RUNS = 99, WAVES_PER_WORKER = 16, PIECE_BYTES = 4 << 20 };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *uri;
	const char *output;
	struct shapes shapes;
	uint64_t seed;
	uint64_t waves;
	uint32_t runs;
	bool load;
	bool plain;
	bool verify;
	bool json;
	struct weir_context *context;
	struct sample_storage storage;
	struct weir_context_info info;
};

static struct command command_line = {
	.shapes = { .layers = 12, .width = 768, .vocabulary = 50257, .positions = 1024 },
	.seed = 1,
	.runs = 3,
	.info = { .size = sizeof(struct weir_context_info) }
};

#define SIDE(option, limit, text)                                                                            \
	{                                                                                                    \
		.name = #option, .value = "N", .kind = TOOL_U64, .to = &command_line.shapes.option,          \
		.least = 1, .most = limit, .help = text                                                      \
	}

static const struct tool_option options[] = {
	SIDE(layers, 4096, "layers of the model (default 12)"),
	SIDE(width, 65536, "its width, a multiple of 4 (default 768)"),
	SIDE(vocabulary, 1 << 24, "rows of its table of words (default 50257)"),
	SIDE(positions, 1 << 24, "rows of its table of positions (default 1024)"),
	{ .name = "optimizer",
	  .kind = TOOL_FLAG,
	  .to = &command_line.shapes.optimizer,
	  .help = "with Adam's two moments of each tensor: three times as much" },
	{ .name = "seed",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.seed,
	  .help = "of the tensors' numbers, which differ from step to step (default 1)" },
	{ .name = "load",
	  .kind = TOOL_FLAG,
	  .to = &command_line.load,
	  .help = "save nothing: load the newest checkpoint that is there" },
	{ .name = "output",
	  .value = "FILE",
	  .kind = TOOL_TEXT,
	  .to = &command_line.output,
	  .help = "also copy the newest checkpoint to FILE, as a safetensors file" },
	{ .name = "waves",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.waves,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "waves (default 16 per worker of the device)" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "saves, each of a later step, and loads; the medians count (default 3)" },
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.plain,
	  .help = "also gather and scatter in plain device memory: what it takes without storage" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "compare header and every number with the host's: on storage after each save, and in\n"
		  "device memory after each load" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-checkpoint",
	.about = "usage: weir-checkpoint URI [options]\n"
		 "\n"
		 "Saves the tensors of a GPT-2 model from device memory, durable, and loads them into fresh "
		 "memory.\n"
		 "URI, which is OVERWRITTEN, has room for two checkpoints in safetensors format: a save goes "
		 "over the\n"
		 "older one, and one that is interrupted leaves the newer one as it is.\n",
	.options = options,
	.operand = "one storage",
	.to = &command_line.uri,
};

/** struct report - all there is to print; the checkpoint and the counts are of the latest run */
struct report {
	double save, load;
	double plain_save, plain_load;
	unsigned slot, slots_unread;
	uint64_t step, tensors, header_bytes, data_bytes;
	struct weir_stats saved, loaded;
};

/* The numbers of each step are others. */
static uint64_t seed_of(const struct command *command, uint64_t step)
{
	return sample_scramble(command->seed * 0x10001 + step);
}

static int open_storage(struct command *command, char *error)
{
	int code = sample_pass(error, sample_open(&command->device, &command->context));

	if (!code)
		code = sample_pass(error, weir_context_info(command->context, &command->info));
	if (!code)
		code = sample_storage_open(&command->device, command->context, command->uri,
					   &command->storage, error);
	if (!command->waves)
		command->waves = (uint64_t)command->info.workers * WAVES_PER_WORKER;
	return code;
}

static uint64_t data_bytes(const struct shapes *shapes)
{
	uint64_t width = shapes->width;
	uint64_t numbers = (shapes->vocabulary + shapes->positions + 2) * width +
			   shapes->layers * (12 * width + 13) * width;

	return numbers * sizeof(float) * (shapes->optimizer ? 3 : 1);
}

static int check_room(const struct command *command, uint64_t header_bytes, uint64_t bytes, char *error)
{
	uint64_t whole = header_bytes + sample_round_up(bytes, SLOT_RECORD_BYTES);

	if (whole <= slot_room(&command->storage))
		return 0;
	return sample_fail(
		error, -EINVAL,
		"%.700s has %llu bytes; two checkpoints of this model need %llu: --layers, --width and "
		"--vocabulary make it smaller",
		command->uri, (unsigned long long)command->storage.info.bytes,
		(unsigned long long)(SLOTS * (whole + SLOT_RECORD_BYTES)));
}

static int count_io(struct command *command, struct weir_stats *stats, const struct weir_stats *before,
		    char *error)
{
	int code;

	stats->size = sizeof(*stats);
	code = sample_pass(error, weir_stats(command->storage.storage, stats));
	if (before) {
		stats->commands -= before->commands;
		stats->bytes_read -= before->bytes_read;
		stats->bytes_written -= before->bytes_written;
	}
	return code;
}

/* What a checkpoint of @step has to be on storage: header, and every number. */
static int check_slot(struct command *command, const struct slot *slot, const char *way, char *error)
{
	uint64_t at = slot_at(&command->storage, slot->index) + SLOT_RECORD_BYTES + slot->record.header_bytes;
	uint64_t bytes, seed = seed_of(command, slot->record.step);
	char *header = shapes_header(&command->shapes, slot->record.step, &bytes),
	     *room = malloc(PIECE_BYTES);
	int code = 0;

	if (!header || !room)
		code = sample_fail(error, -ENOMEM, "no memory to verify the checkpoint");
	else if (bytes != slot->record.header_bytes || memcmp(header, slot->header, bytes) ||
		 slot->record.data_bytes != data_bytes(&command->shapes))
		code = sample_fail(
			error, -EBADMSG,
			"WRONG DATA: %s, the header is not that of this model and step %llu; give the same "
			"--layers, --width, --vocabulary, --positions and --optimizer, or report this",
			way, (unsigned long long)slot->record.step);
	for (uint64_t done = 0; done < slot->record.data_bytes && !code; done += PIECE_BYTES) {
		uint64_t left = slot->record.data_bytes - done,
			 part = left < PIECE_BYTES ? left : PIECE_BYTES;

		code = sample_pass(error, weir_storage_read(command->storage.storage, at + done, room,
							    sample_round_up(part, SLOT_RECORD_BYTES)));
		if (!code)
			code = tensors_compare((const float *)(const void *)room, done, part, seed, way,
					       error);
	}
	free(header);
	free(room);
	return code;
}

static int save_tensors(struct command *command, struct tensors *tensors, unsigned index, const char *header,
			struct slot_record record, char *error)
{
	int code = slot_begin(&command->storage, index, header, record.header_bytes, error);

	tensors->args.at = slot_at(&command->storage, index) + SLOT_RECORD_BYTES + record.header_bytes;
	if (!code)
		code = tensors_run(tensors, "checkpoint_save", error);
	if (!code)
		code = sample_storage_failed(command->context, &command->storage, error);
	return code ? code : slot_commit(&command->storage, index, record, error);
}

/* The next step's tensors in device memory. */
static int prepare(struct command *command, struct tensors *tensors, const char *header,
		   struct slot_record *record, char *error)
{
	int code = check_room(command, record->header_bytes, record->data_bytes, error);

	if (!code)
		code = tensors_open(tensors, command->context, &command->storage, command->waves, header,
				    record->header_bytes, record->data_bytes, error);
	tensors->args.seed = seed_of(command, record->step);
	if (!code)
		code = tensors_run(tensors, "checkpoint_fill", error);
	record->header_sum = slot_sum(header, record->header_bytes);
	return code ? code : tensors_sum(tensors, &record->data_sum, error);
}

static int save(struct command *command, struct report *report, double *seconds, char *error)
{
	struct weir_stats before;
	struct tensors tensors = { .context = NULL };
	struct slot newest;
	struct slot_record record = { .data_bytes = data_bytes(&command->shapes) };
	unsigned index;
	char *header;
	double begin;
	int code = slot_find(&command->storage, &newest, error);

	if (!code && newest.unread)
		(void)tool_complain("%s: the save goes over it, and leaves step %llu as it is", error,
				    (unsigned long long)newest.record.step);
	index = newest.header ? 1 - newest.index : 0;
	record.step = newest.header ? newest.record.step + 1 : 1;
	slot_free(&newest);
	header = shapes_header(&command->shapes, record.step, &record.header_bytes);
	if (!code && !header)
		code = sample_fail(error, -ENOMEM, "no memory for a header");
	if (!code)
		code = prepare(command, &tensors, header, &record, error);
	if (!code)
		code = count_io(command, &before, NULL, error);
	begin = sample_now();
	if (!code)
		code = save_tensors(command, &tensors, index, header, record, error);
	*seconds = sample_now() - begin;
	if (!code)
		code = count_io(command, &report->saved, &before, error);
	report->step = record.step;
	tensors_close(&tensors);
	free(header);
	return code;
}

/* The checkpoint's tensors into memory of their own; by the sum of what was saved they are all there. */
static int load_slot(struct command *command, const struct slot *slot, struct report *report, double *seconds,
		     char *error)
{
	struct weir_stats before;
	struct tensors tensors;
	uint64_t sum = 0;
	double begin;
	int code = tensors_open(&tensors, command->context, &command->storage, command->waves, slot->header,
				slot->record.header_bytes, slot->record.data_bytes, error);

	tensors.args.at =
		slot_at(&command->storage, slot->index) + SLOT_RECORD_BYTES + slot->record.header_bytes;
	report->tensors = tensors.model.count;
	if (!code)
		code = count_io(command, &before, NULL, error);
	begin = sample_now();
	if (!code)
		code = tensors_run(&tensors, "checkpoint_load", error);
	*seconds = sample_now() - begin;
	if (!code)
		code = sample_storage_failed(command->context, &command->storage, error);
	if (!code)
		code = count_io(command, &report->loaded, &before, error);
	if (!code)
		code = tensors_sum(&tensors, &sum, error);
	if (!code && sum != slot->record.data_sum)
		code = sample_fail(
			error, -EBADMSG,
			"WRONG DATA: the checkpoint of step %llu in %.700s is not what was saved there",
			(unsigned long long)slot->record.step, command->uri);
	if (!code && command->verify)
		code = tensors_check(&tensors, seed_of(command, slot->record.step), "in device memory",
				     error);
	tensors_close(&tensors);
	return code;
}

/* The newest checkpoint; after a save it is of that step. */
static int load(struct command *command, struct report *report, double *seconds, char *error)
{
	struct slot slot;
	int code = slot_find(&command->storage, &slot, error);

	if (!code && !slot.header)
		code = sample_fail(error, -ENOENT, "%.700s has no checkpoint", command->uri);
	else if (!code && !command->load && slot.record.step != report->step)
		code = slot.unread ? slot.unread
				   : sample_fail(error, -EBADMSG,
						 "WRONG DATA: step %llu was saved, and step %llu is there",
						 (unsigned long long)report->step,
						 (unsigned long long)slot.record.step);
	else if (!code && slot.unread && !report->slots_unread++)
		(void)tool_complain("%s: step %llu is loaded, which may not be the newest", error,
				    (unsigned long long)slot.record.step);
	if (!code && command->verify)
		code = check_slot(command, &slot, "on storage", error);
	if (!code)
		code = load_slot(command, &slot, report, seconds, error);
	report->slot = slot.index;
	report->step = slot.record.step;
	report->header_bytes = slot.record.header_bytes;
	report->data_bytes = slot.record.data_bytes;
	slot_free(&slot);
	return code;
}

/* @kernel with the data in plain memory. */
static int time_plain(struct tensors *tensors, const char *kernel, double *seconds, char *error)
{
	int code = 0;

	for (unsigned i = 0; i < 2 && !code; i++) { /* the first time brings the memory in */
		double begin = sample_now();

		code = tensors_run(tensors, kernel, error);
		*seconds = sample_now() - begin;
	}
	return code;
}

static int run_plain(struct command *command, struct report *report, char *error)
{
	struct tensors tensors = { .context = NULL };
	struct slot_record record = { .step = report->step, .data_bytes = data_bytes(&command->shapes) };
	char *header = shapes_header(&command->shapes, record.step, &record.header_bytes);
	uint64_t sum = 0;
	int code = header ? prepare(command, &tensors, header, &record, error)
			  : sample_fail(error, -ENOMEM, "no memory for a header");

	if (!code)
		code = sample_pass(error,
				   weir_alloc(command->context, record.data_bytes, &tensors.args.plain));
	if (!code)
		code = time_plain(&tensors, "checkpoint_save", &report->plain_save, error);
	if (!code)
		code = time_plain(&tensors, "checkpoint_load", &report->plain_load, error);
	if (!code)
		code = tensors_sum(&tensors, &sum, error);
	if (!code && sum != record.data_sum)
		code = sample_fail(error, -EBADMSG, "WRONG DATA: in plain memory; please report this");
	tensors_close(&tensors);
	free(header);
	return code;
}

/* A safetensors file of its own. */
static int write_output(struct command *command, char *error)
{
	struct slot slot;
	int code = slot_find(&command->storage, &slot, error);
	FILE *file = code ? NULL : fopen(command->output, "we");
	char *room = malloc(PIECE_BYTES);
	uint64_t bytes = slot.record.data_bytes;
	bool good = file && room &&
		    fwrite(slot.header, 1, slot.record.header_bytes, file) == slot.record.header_bytes;

	for (uint64_t done = 0; done < bytes && good && !code; done += PIECE_BYTES) {
		uint64_t part = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;

		code = sample_pass(error, weir_storage_read(command->storage.storage,
							    slot_at(&command->storage, slot.index) +
								    SLOT_RECORD_BYTES +
								    slot.record.header_bytes + done,
							    room, sample_round_up(part, SLOT_RECORD_BYTES)));
		good = code || fwrite(room, 1, part, file) == part;
	}
	if (file && !tool_output_end(file, command->output, good && !code))
		good = false;
	free(room);
	slot_free(&slot);
	return code || good ? code
			    : sample_fail(error, -errno, "cannot write %s: %s; choose another --output",
					  command->output, strerror(errno));
}

static int run(struct command *command, struct report *report, char *error)
{
	double saves[MOST_RUNS] = { 0 }, loads[MOST_RUNS];
	int code = 0;

	for (uint32_t i = 0; i < command->runs && !code; i++) {
		if (!command->load)
			code = save(command, report, &saves[i], error);
		if (!code)
			code = load(command, report, &loads[i], error);
	}
	if (code)
		return code;
	report->save = sample_median(saves, command->runs);
	report->load = sample_median(loads, command->runs);
	if (command->plain)
		code = run_plain(command, report, error);
	return code || !command->output ? code : write_output(command, error);
}

static void print_text(const struct command *command, const struct report *report)
{
	double bytes = (double)report->data_bytes;

	printf("model     %llu tensors, %llu numbers of F32, %.1f MiB\n", (unsigned long long)report->tensors,
	       (unsigned long long)report->data_bytes / sizeof(float), sample_megabytes(report->data_bytes));
	printf("device    %s\nstorage   %s\n", command->info.name, command->storage.info.path);
	printf("newest    step %llu, safetensors from byte %llu on\n", (unsigned long long)report->step,
	       (unsigned long long)(slot_at(&command->storage, report->slot) + SLOT_RECORD_BYTES));
	if (!command->load)
		printf("save      %.4f s until it is durable, %.2f GB/s; %llu commands\n", report->save,
		       bytes / report->save / 1e9, (unsigned long long)report->saved.commands);
	printf("load      %.4f s, %.2f GB/s; %llu commands\n", report->load, bytes / report->load / 1e9,
	       (unsigned long long)report->loaded.commands);
	if (command->plain)
		printf("plain     %.4f s to gather and %.4f s to scatter in device memory\n",
		       report->plain_save, report->plain_load);
	printf("result    %s\n",
	       command->verify ? "verified: header and every number, on storage and in device memory"
			       : "the sum of what was saved (--verify compares every number)");
}

static void print_json(const struct command *command, const struct report *report)
{
	double bytes = (double)report->data_bytes;
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", command->storage.info.path);
	sample_set_count(root, "tensors", report->tensors);
	sample_set_count(root, "numbers", report->data_bytes / sizeof(float));
	sample_set_count(root, "step", report->step);
	sample_set_count(root, "first_byte", slot_at(&command->storage, report->slot) + SLOT_RECORD_BYTES);
	sample_set_count(root, "header_bytes", report->header_bytes);
	sample_set_count(root, "data_bytes", report->data_bytes);
	sample_set_count(root, "runs", command->runs);
	if (!command->load) {
		sample_set_real(root, "save_seconds", report->save);
		sample_set_real(root, "save_bytes_per_s", bytes / report->save);
		sample_set_count(root, "save_commands", report->saved.commands);
		sample_set_count(root, "bytes_written", report->saved.bytes_written);
	}
	sample_set_real(root, "load_seconds", report->load);
	sample_set_real(root, "load_bytes_per_s", bytes / report->load);
	sample_set_count(root, "load_commands", report->loaded.commands);
	sample_set_count(root, "bytes_read", report->loaded.bytes_read);
	if (command->plain) {
		sample_set_real(root, "plain_save_seconds", report->plain_save);
		sample_set_real(root, "plain_load_seconds", report->plain_load);
	}
	sample_set_bool(root, "verified", command->verify);
	sample_print_json(root);
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	struct report report = { .save = 0 };
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	if (!command->uri)
		return tool_usage("give one storage, such as virt:1G; it is overwritten");
	if (command->shapes.width % 4)
		return tool_usage("--width is a multiple of 4");
	status = open_storage(command, error);
	if (!status)
		status = run(command, &report, error);
	if (!status)
		(command->json ? print_json : print_text)(command, &report);
	status = sample_close(command->context, status, error);
	return status ? tool_complain("%s", error) : 0;
}
