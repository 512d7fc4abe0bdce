/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-vecmean: the mean of a vector that lies on storage. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/load.h"
#include "../common/vector.h"
#include "vecmean.h"

enum { MOST_LANES = 1 << 17, ACCESS_BYTES = 16 };

/* The sum of f32 elements is off by no more than this share of the sum of their magnitudes. */
#define F32_BOUND 0x1p-22

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	struct sample_cache cache;
	const char *uri;
	const char *type;
	uint64_t bytes;
	uint32_t repeat;
	bool is_float;
	bool plain;
	bool verify;
	bool json;
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *lines;
	struct vecmean_args args;
	uint32_t blocks;
};

static struct command command_line = { .type = "u64" };

static const struct tool_option options[] = {
	{ .name = "type",
	  .value = "u64|f32",
	  .kind = TOOL_TEXT,
	  .to = &command_line.type,
	  .help = "what the elements are (default u64)" },
	{ .name = "size",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.bytes,
	  .least = ACCESS_BYTES,
	  .help = "length of the vector, a multiple of 16 (default: the whole storage)" },
	SAMPLE_CACHE_OPTIONS(command_line.cache, "an eighth of the vector"),
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.plain,
	  .help = "also copy the vector into device memory and sum it up there with a plain\n"
		  "kernel: the limit, and the ratio to it" },
	{ .name = "repeat",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.repeat,
	  .most = SAMPLE_MOST_REPEATS,
	  .help = "N passes more, with what the first left in the cache; their median is\n"
		  "reported next to the first (default 0)" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "compare with a sum that the host makes: u64 exactly, f32 up to 2^-22 of\n"
		  "the sum of magnitudes" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-vecmean",
	.about = "usage: weir-vecmean URI [options]\n"
		 "\n"
		 "The mean of a vector on storage, whole lines streamed through a cache by views. A virt:\n"
		 "storage is filled with random elements first; any other is only read.\n",
	.options = options,
	.operand = "one storage",
	.to = &command_line.uri,
};

__extension__ typedef unsigned __int128 wide;

/** struct total - a vector's sum, exactly for u64 */
struct total {
	wide exact;
	double sum;
	double magnitude; /* reference only */
	bool is_known;    /* likewise: the vector was made here */
};

/** struct report - all there is to print */
struct report {
	char device[128];
	char path[128];
	struct weir_cache_stats cache;
	struct weir_stats stats; /* of the first pass */
	uint64_t count;
	double mean;
	double seconds;
	double again; /* median; 0: no repeats */
	double plain; /* seconds; 0: not asked for */
	double load;
};

static int open_storage(struct command *command, char *error)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int code = sample_open(&command->device, &command->context);

	if (!code)
		code = weir_storage_open(command->context, command->uri,
					 WEIR_OPTIONS(storage, .queues = command->device.queues,
						      .depth = command->device.depth,
						      .read_only = !sample_is_blank(command->uri)),
					 &command->storage);
	if (!code)
		code = weir_storage_info(command->storage, &info);
	if (code)
		return sample_pass(error, code);
	if (!command->bytes)
		command->bytes = info.bytes;
	if (command->bytes > info.bytes || command->bytes % ACCESS_BYTES)
		return sample_fail(error, -EINVAL,
				   "a vector of %llu bytes cannot be: %.700s has %llu, and lanes load 16 "
				   "bytes at a time; --size=%llu takes "
				   "what there is of whole ones",
				   (unsigned long long)command->bytes, command->uri,
				   (unsigned long long)info.bytes,
				   (unsigned long long)(info.bytes - info.bytes % ACCESS_BYTES));
	return 0;
}

static int open_arrays(struct command *command, struct report *report)
{
	struct vecmean_args *args = &command->args;
	struct weir_context_info info = { .size = sizeof(info) };
	uint64_t lanes;
	int code;

	if (!command->cache.bytes && !command->cache.lines)
		command->cache.bytes = command->bytes / 8 + (64 << 10);
	code = weir_cache_create(command->context,
				 WEIR_OPTIONS(cache, .bytes = command->cache.bytes,
					      .lines = command->cache.lines, .policy = command->cache.policy,
					      .line_bytes = command->cache.line_bytes,
					      .tier_bytes = command->cache.tier),
				 &command->lines);
	report->cache.size = sizeof(report->cache);
	if (!code)
		code = weir_cache_stats(command->lines, &report->cache);
	if (!code)
		code = weir_array_open(command->lines, &command->storage, 1,
				       WEIR_OPTIONS(array, .element_bytes = 16, .count = command->bytes / 16),
				       &args->wide);
	if (!code)
		code = weir_context_info(command->context, &info);
	if (code)
		return code;
	args->line_bytes = report->cache.line_bytes;
	lanes = (command->bytes + args->line_bytes - 1) / args->line_bytes * info.wave_lanes;
	code = sample_blocks(command->context, lanes < MOST_LANES ? lanes : MOST_LANES, &command->blocks);
	return code ? code
		    : weir_alloc(command->context,
				 (uint64_t)command->blocks * SAMPLE_BLOCK_LANES * sizeof(struct vecmean_sum),
				 &args->results);
}

static void make_u64(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	for (uint64_t i = 0; i < count; i++)
		words[i] = sample_scramble(first + i);
}

static void make_f32(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	for (uint64_t i = 0; i < count; i++) {
		float pair[2] = { sample_fraction(sample_scramble(2 * (first + i))),
				  sample_fraction(sample_scramble(2 * (first + i) + 1)) };

		memcpy(&words[i], pair, sizeof(pair));
	}
}

static int prepare(struct command *command, struct report *report, char *error)
{
	int code = open_storage(command, error);

	if (!code && sample_is_blank(command->uri))
		code = sample_fill(command->storage, 0, command->bytes,
				   command->is_float ? make_f32 : make_u64, NULL, error);
	return code ? code : sample_pass(error, open_arrays(command, report));
}

/* What the lanes left. */
static int add_results(struct command *command, struct total *total)
{
	uint64_t lanes = (uint64_t)command->blocks * SAMPLE_BLOCK_LANES;
	struct vecmean_sum *sums = malloc(lanes * sizeof(*sums));
	int code = sums ? weir_copy_from_device(command->context, sums, command->args.results,
						lanes * sizeof(*sums))
			: -ENOMEM;

	memset(total, 0, sizeof(*total));
	for (uint64_t i = 0; i < lanes && !code; i++) {
		total->exact += sums[i].low + ((wide)sums[i].high << 32);
		for (unsigned k = 0; k < 4; k++)
			total->sum += (double)sums[i].sum[k] - (double)sums[i].rest[k];
	}
	if (!command->is_float)
		total->sum = (double)total->exact;
	if (!code) { /* no pass has them from the one before */
		memset(sums, 0, lanes * sizeof(*sums));
		code = weir_copy_to_device(command->context, command->args.results, sums,
					   lanes * sizeof(*sums));
	}
	free(sums);
	return code;
}

/* One pass with kernel @name. */
static int pass(struct command *command, const char *name, struct total *total, double *seconds, char *error)
{
	double begin = sample_now();
	int code = sample_run(command->context, name, command->blocks, &command->args, sizeof(command->args));

	*seconds = sample_now() - begin;
	if (!code)
		code = add_results(command, total);
	return sample_pass(error, code);
}

static int differ(const char *what, const struct total *total, const struct total *other, char *error)
{
	return sample_fail(error, -EBADMSG,
			   "WRONG RESULT: the sum is %.17g, but %s says %.17g; please report this",
			   total->sum, what, other->sum);
}

static bool agree(const struct command *command, const struct total *total, const struct total *other,
		  double magnitude)
{
	if (!command->is_float)
		return total->exact == other->exact;
	return fabs(total->sum - other->sum) <= F32_BOUND * magnitude;
}

/* Of a vector that was made here each word is known: lanes and host could both read zeros. */
static int check_word(uint64_t word, uint64_t index, void (*make)(uint64_t *, uint64_t, uint64_t, void *),
		      char *error)
{
	uint64_t made;

	make(&made, index, 1, NULL);
	return word == made ? 0
			    : sample_fail(error, -EBADMSG,
					  "WRONG DATA: the 8 bytes at %llu are not what was written there; "
					  "please report this",
					  (unsigned long long)index * 8);
}

static int take(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error)
{
	struct total *total = to;
	int code = 0;

	for (uint64_t i = 0; i < count && !code; i++) {
		code = total->is_known ? check_word(words[i], first + i, make_u64, error) : 0;
		total->exact += words[i];
	}
	return code;
}

static int take_f32(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error)
{
	const float *values = (const float *)(const void *)words;
	struct total *total = to;

	for (uint64_t i = 0; i < 2 * count; i++) {
		if (!isfinite(values[i]))
			return sample_fail(error, -EINVAL,
					   "element %llu is not a finite number: is this a vector of f32?",
					   (unsigned long long)(2 * first + i));
		if (total->is_known && check_word(words[i / 2], first + i / 2, make_f32, error))
			return -EBADMSG;
		total->sum += (double)values[i];
		total->magnitude += fabs((double)values[i]);
	}
	return 0;
}

static int verify(struct command *command, const struct total *total, char *error)
{
	struct total reference = { .is_known = sample_is_blank(command->uri) };
	int code = sample_read(command->storage, 0, command->bytes, command->is_float ? take_f32 : take,
			       &reference, error);

	if (!command->is_float)
		reference.sum = (double)reference.exact;
	if (code)
		return code;
	return agree(command, total, &reference, reference.magnitude)
		       ? 0
		       : differ("the host", total, &reference, error);
}

static int run_plain(struct command *command, struct report *report, char *error)
{
	struct sample_source source = { .storages = &command->storage,
					.storage_count = 1,
					.bytes = command->bytes };
	double begin = sample_now();
	struct total total;
	int code = sample_pass(error, sample_load(command->context, &source, &command->args.plain));
	const char *name = command->is_float ? "vecmean_plain_f32" : "vecmean_plain_u64";

	report->load = sample_now() - begin;
	if (!code)
		code = pass(command, name, &total, &report->plain, error); /* loads the kernel, warms up */
	if (!code)
		code = pass(command, name, &total, &report->plain, error);
	return code || !command->verify ? code : verify(command, &total, error);
}

static int run(struct command *command, struct report *report, char *error)
{
	const char *name = command->is_float ? "vecmean_f32" : "vecmean_u64";
	double seconds[SAMPLE_MOST_REPEATS];
	struct weir_stats before = { .size = sizeof(before) };
	struct total total, again;
	int code = sample_pass(error, weir_stats(command->storage, &before));

	if (!code)
		code = pass(command, name, &total, &report->seconds, error);
	report->stats.size = sizeof(report->stats);
	if (!code)
		code = sample_pass(error, weir_stats(command->storage, &report->stats));
	report->stats.commands -= before.commands;
	report->stats.bytes_read -= before.bytes_read;
	for (uint32_t i = 0; i < command->repeat && !code; i++) {
		code = pass(command, name, &again, &seconds[i], error);
		if (!code && !command->is_float && again.exact != total.exact)
			code = differ("another pass", &total, &again, error);
		else if (!code && command->verify)
			code = verify(command, &again, error);
	}
	if (!code)
		report->again = sample_median(seconds, command->repeat);
	report->count = command->bytes / (command->is_float ? 4 : 8);
	report->mean = total.sum / (double)report->count;
	if (!code && command->verify)
		code = verify(command, &total, error);
	return code || !command->plain ? code : run_plain(command, report, error);
}

static void print_text(const struct command *command, const struct report *report)
{
	double bytes = (double)command->bytes;

	printf("vector    %llu elements of %s, %.1f MiB on storage\n", (unsigned long long)report->count,
	       command->type, sample_megabytes(command->bytes));
	printf("device    %s\nstorage   %s\n", report->device, report->path);
	printf("cache     %.1f MiB: %llu lines of %llu bytes\n", sample_megabytes(report->cache.bytes),
	       (unsigned long long)report->cache.lines, (unsigned long long)report->cache.line_bytes);
	printf("mean      %.17g\n", report->mean);
	printf("time      %.4f s, %.2f GB/s, %llu commands\n", report->seconds, bytes / report->seconds / 1e9,
	       (unsigned long long)report->stats.commands);
	if (command->repeat)
		printf("again     %u times: median %.4f s, %.2f GB/s\n", command->repeat, report->again,
		       bytes / report->again / 1e9);
	if (command->plain)
		printf("plain     %.4f s, %.2f GB/s, loaded in %.3f s; from storage takes %.2f times as "
		       "long\n",
		       report->plain, bytes / report->plain / 1e9, report->load,
		       report->seconds / report->plain);
	printf("result    %s\n", command->verify ? "verified: the host's sum is the same"
						 : "not verified (--verify compares with the host's sum)");
}

static void print_json(const struct command *command, const struct report *report)
{
	json_t *root = json_object();

	sample_set_text(root, "device", report->device);
	sample_set_text(root, "path", report->path);
	sample_set_text(root, "type", command->type);
	sample_set_count(root, "elements", report->count);
	sample_set_count(root, "bytes", command->bytes);
	sample_set_count(root, "cache_bytes", report->cache.bytes);
	sample_set_count(root, "line_bytes", report->cache.line_bytes);
	sample_set_real(root, "mean", report->mean);
	sample_set_real(root, "seconds", report->seconds);
	sample_set_real(root, "bytes_per_s", (double)command->bytes / report->seconds);
	sample_set_count(root, "commands", report->stats.commands);
	sample_set_count(root, "bytes_read", report->stats.bytes_read);
	if (command->repeat)
		sample_set_real(root, "warm_seconds", report->again);
	if (command->plain) {
		sample_set_real(root, "plain_seconds", report->plain);
		sample_set_real(root, "ratio", report->seconds / report->plain);
		if (command->repeat)
			sample_set_real(root, "warm_ratio", report->again / report->plain);
	}
	sample_set_bool(root, "verified", command->verify);
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
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	struct report report = { .seconds = 0 };
	int status = tool_parse(&program, argc, argv);

	if (status >= 0)
		return status;
	if (!command->uri)
		return tool_usage("give one storage, such as file:/data/vector");
	command->is_float = strcmp(command->type, "f32") == 0;
	if (!command->is_float && strcmp(command->type, "u64") != 0)
		return tool_usage("--type is u64 or f32");
	status = prepare(command, &report, error);
	if (!status)
		status = run(command, &report, error);
	if (!status)
		status = sample_pass(error, describe(command, &report));
	if (!status)
		(command->json ? print_json : print_text)(command, &report);
	status = sample_close(command->context, status, error);
	return status ? tool_complain("%s", error) : 0;
}
