/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-kvcache: pages of a KV cache from a file into device memory, by a trace, in batches. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/file.h>

#include "../common/mapping.h"
#include "check.h"
#include "kvcache.h"
#include "plain.h"
#include "stored.h"
#include "trace.h"

enum {
	MOST_RUNS = 99,
	LEAST_BLOCK = 512,
	MOST_BLOCK = 16 << 20,
	PIECE_BYTES = 1 << 20,
	MOST_THREADS = PLAIN_MOST_THREADS
};

/** enum way - how blocks get to the device: weir_file_batch(); threads that read and copy; mmap() and copy */
enum way { BY_WEIR, BY_THREADS, BY_MAPPING, WAYS };

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	const char *path;
	const char *trace_path;
	const char *by;
	uint64_t make_bytes;
	uint64_t block_bytes;
	uint64_t batch;
	uint64_t loads;
	uint64_t seed;
	uint32_t runs;
	uint32_t threads;
	bool direct;
	bool no_plain;
	bool map;
	bool store;
	bool cold;
	bool json;
	int file;
	uint64_t file_blocks;
	struct kvcache_trace trace;
	struct weir_context *context;
	struct kvcache_pool pool;
	struct weir_registration *registration;
	struct weir_file_io *io;
	struct plain *plain;
	struct sample_mapping mapping;
	struct weir_context_info info;
	struct weir_registration_info how;
};

static struct command command_line = { .block_bytes = 16 << 10,
				       .batch = 1024,
				       .seed = 1,
				       .runs = 3,
				       .threads = 16,
				       .by = "auto",
				       .file = -1,
				       .info = { .size = sizeof(struct weir_context_info) },
				       .how = { .size = sizeof(struct weir_registration_info) } };

static const struct tool_option options[] = {
	{ .name = "make",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.make_bytes,
	  .least = LEAST_BLOCK,
	  .help = "write FILE first, this long, with what the device can check" },
	{ .name = "block",
	  .value = "BYTES",
	  .kind = TOOL_BYTES,
	  .to = &command_line.block_bytes,
	  .least = LEAST_BLOCK,
	  .most = MOST_BLOCK,
	  .help = "length of a block, a multiple of 512 (default 16K)" },
	{ .name = "batch",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.batch,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "blocks at a time (default 1024)" },
	{ .name = "loads",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.loads,
	  .least = 1,
	  .most = 1 << 28,
	  .help = "blocks of the trace (default: 32 batches)" },
	{ .name = "seed",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.seed,
	  .help = "of the trace (default 1)" },
	{ .name = "trace",
	  .value = "FILE",
	  .kind = TOOL_TEXT,
	  .to = &command_line.trace_path,
	  .help = "instead: a line per request, of block numbers and ranges such as 7 9 100-131" },
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
	  .most = MOST_THREADS,
	  .help = "host threads of the plain version (default 16)" },
	{ .name = "no-plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.no_plain,
	  .help = "leave the plain version out" },
	{ .name = "store",
	  .kind = TOOL_FLAG,
	  .to = &command_line.store,
	  .help = "instead: blocks from device memory to FILE, which is overwritten, and fsync()" },
	{ .name = "mmap",
	  .kind = TOOL_FLAG,
	  .to = &command_line.map,
	  .help = "a third way: one thread that copies out of a mapping of FILE, or into it" },
	{ .name = "cold",
	  .kind = TOOL_FLAG,
	  .to = &command_line.cold,
	  .help = "drop FILE from the page cache before each run" },
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
	.name = "weir-kvcache",
	.about = "usage: weir-kvcache FILE [options]\n"
		 "\n"
		 "Loads blocks of FILE, pages of a KV cache, into device memory as a trace says, a batch at "
		 "a\n"
		 "time: by weir_file_batch(), and by plain threads that read a block and copy it. Lanes look "
		 "at\n"
		 "every byte of every batch, outside the time that counts. With --store the other way: lanes "
		 "make\n"
		 "the blocks, and the host compares what FILE has then. Make the file with --make 4G.\n",
	.options = options,
	.operand = "one file",
	.to = &command_line.path,
};

/** struct report - all there is to print; seconds are medians */
struct report {
	double seconds[WAYS];
	uint64_t bad;
	struct weir_file_stats stats;
};

static int make_file(const struct command *command, char *error)
{
	static u64 piece[PIECE_BYTES / 8];
	int file = open(command->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ssize_t put = 0;

	if (file < 0)
		return sample_fail(error, -errno, "cannot write %s: %s", command->path, strerror(errno));
	for (uint64_t at = 0; at < command->make_bytes && put >= 0; at += (uint64_t)put) {
		uint64_t bytes =
			command->make_bytes - at < PIECE_BYTES ? command->make_bytes - at : PIECE_BYTES;

		for (uint64_t i = 0; i < (bytes + 7) / 8; i++)
			piece[i] = kvcache_word(at / 8 + i);
		put = write(file, piece, bytes);
		if (put >= 0 && put < (ssize_t)bytes) /* the words are of whole pieces */
			errno = ENOSPC, put = -1;
	}
	if (put < 0 || fsync(file) < 0 || close(file) < 0)
		return sample_fail(error, -errno, "cannot write %s: %s", command->path, strerror(errno));
	return 0;
}

/* Whether the page at @offset ends its first 512 bytes with what the device is going to look for. */
static int check_page(const struct command *command, uint64_t offset, const char *what, char *error)
{
	char page[8192], *aligned = (char *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095);
	u64 word;

	if (pread(command->file, aligned, 4096, (off_t)offset) < LEAST_BLOCK)
		return sample_fail(error, -EIO, "cannot read %s: %s", command->path, strerror(errno));
	memcpy(&word, aligned + LEAST_BLOCK - 8, sizeof(word));
	if (word == kvcache_word((offset + LEAST_BLOCK) / 8 - 1))
		return 0;
	return sample_fail(
		error, -EINVAL,
		"%s was not written by weir-kvcache%s: the device could not distinguish right from "
		"wrong; name another file and --make 1G",
		command->path, what);
}

/* Its length, and whether it has what the device is going to look for. */
static int snapshot_at_file(struct command *command, char *error)
{
	off_t bytes = lseek(command->file, 0, SEEK_END);
	uint64_t last;
	int code;

	command->file_blocks = bytes > 0 ? (uint64_t)bytes / command->block_bytes : 0;
	if (!command->file_blocks)
		return sample_fail(error, -EINVAL,
				   "%s has %lld bytes, less than one block of %llu; --make 1G writes one",
				   command->path, (long long)bytes, (unsigned long long)command->block_bytes);
	last = (command->file_blocks * command->block_bytes - LEAST_BLOCK) / 4096 * 4096;
	code = check_page(command, 0, "", error);
	return code ? code : check_page(command, last, " up to its end", error);
}

static int open_file(struct command *command, char *error)
{
	int code = command->make_bytes ? make_file(command, error) : 0;

	if (code)
		return code;
	command->file = open(command->path, (command->store ? O_RDWR : O_RDONLY) | O_CLOEXEC |
						    (command->direct ? O_DIRECT : 0));
	if (command->file < 0)
		return sample_fail(error, -errno, "cannot open %s%s: %s", command->path,
				   command->direct ? " with O_DIRECT" : "", strerror(errno));
	return snapshot_at_file(command, error);
}

static int open_trace(struct command *command, char *error)
{
	uint64_t loads = command->loads ? command->loads : 32 * command->batch;

	if (command->trace_path)
		return kvcache_trace_read(&command->trace, command->trace_path, command->file_blocks, error);
	return kvcache_trace_make(&command->trace, command->seed, command->file_blocks, loads, error);
}

static int path_named(const char *name)
{
	for (int path = 0; weir_file_path_name((enum weir_file_path)path); path++)
		if (!strcmp(name, weir_file_path_name((enum weir_file_path)path)))
			return path;
	return -1;
}

static int open_device(struct command *command, char *error)
{
	int code = sample_pass(error, sample_open(&command->device, &command->context));

	if (!code)
		code = kvcache_pool_open(&command->pool, command->context, command->batch,
					 command->block_bytes, error);
	if (code)
		return code;
	code = weir_context_info(command->context, &command->info);
	if (!code)
		code = weir_register(
			command->context, command->pool.address, command->batch * command->block_bytes,
			WEIR_OPTIONS(register, .path = (enum weir_file_path)path_named(command->by)),
			&command->registration);
	if (!code)
		code = weir_registration_info(command->registration, &command->how);
	command->io = calloc(command->batch, sizeof(*command->io));
	return code || command->io ? sample_pass(error, code)
				   : sample_fail(error, -ENOMEM, "no memory for requests");
}

/* Blocks that are to be stored are there before the time counts; those that are loaded are looked at after
 * it. */
static int fill_pool(struct command *command, const uint64_t *blocks, size_t count, char *error)
{
	memcpy(command->pool.list, blocks, count * sizeof(*blocks));
	return command->store ? kvcache_pool_fill(&command->pool, count, error) : 0;
}

static int check_pool(struct command *command, size_t count, uint64_t *bad, char *error)
{
	return command->store ? 0 : kvcache_pool_check(&command->pool, count, bad, error);
}

static int move_batch(struct command *command, const uint64_t *blocks, size_t count, double *seconds,
		      uint64_t *bad, char *error)
{
	int code = fill_pool(command, blocks, count, error);
	double begin = sample_now();

	if (code)
		return code;
	for (size_t i = 0; i < count; i++)
		command->io[i] =
			(struct weir_file_io){ .registration = command->registration,
					       .file = command->file,
					       .operation = command->store ? WEIR_FILE_WRITE : WEIR_FILE_READ,
					       .at = i * command->block_bytes,
					       .offset = blocks[i] * command->block_bytes,
					       .bytes = command->block_bytes };
	code = weir_file_batch(command->context, command->io, count);
	*seconds = sample_now() - begin;
	return code ? sample_pass(error, code) : check_pool(command, count, bad, error);
}

/* One thread. The kernel reads what it copies. */
static int copy_batch(struct command *command, const uint64_t *blocks, size_t count, double *seconds,
		      uint64_t *bad, char *error)
{
	uint64_t bytes = command->block_bytes;
	int code = fill_pool(command, blocks, count, error);
	double begin = sample_now();

	if (code)
		return code;
	for (size_t i = 0; i < count && !code; i++) {
		uint64_t address = command->pool.address + i * bytes;
		char *mapped = command->mapping.bytes + blocks[i] * bytes;

		code = command->store ? weir_copy_from_device(command->context, mapped, address, bytes)
				      : weir_copy_to_device(command->context, address, mapped, bytes);
	}
	*seconds = sample_now() - begin;
	return code ? sample_pass(error, code) : check_pool(command, count, bad, error);
}

static int run_batch(struct command *command, enum way way, const uint64_t *blocks, size_t count,
		     double *seconds, uint64_t *bad, char *error)
{
	if (way == BY_THREADS && command->store)
		return plain_store(command->plain, blocks, count, seconds, error);
	if (way == BY_THREADS)
		return plain_load(command->plain, blocks, count, seconds, bad, error);
	return (way == BY_MAPPING ? copy_batch : move_batch)(command, blocks, count, seconds, bad, error);
}

/* What a run needs before its first batch; the time of mapping the file counts. */
static int begin_trace(struct command *command, enum way way, double *seconds, char *error)
{
	int code = command->store  ? stored_spoil(command->path, &command->trace, command->block_bytes, error)
		   : command->cold ? sample_forget(command->file, error)
				   : 0;
	double begin = sample_now();

	if (!code && way == BY_MAPPING)
		code = sample_map(&command->mapping, command->file, command->store, error);
	*seconds = sample_now() - begin;
	return code;
}

/* Blocks that were stored are on the storage when the time ends; then the file is looked at. */
static int end_trace(struct command *command, int code, double *seconds, uint64_t *bad, char *error)
{
	double begin = sample_now();

	if (!code && command->store && fsync(command->file))
		code = sample_fail(error, -errno, "fsync: %s", strerror(errno));
	sample_unmap(&command->mapping);
	*seconds += sample_now() - begin;
	if (!code && command->store)
		code = stored_check(command->path, &command->trace, command->block_bytes, bad, error);
	return code;
}

/* The whole trace, one way. */
static int run_trace(struct command *command, enum way way, double *seconds, uint64_t *bad, char *error)
{
	int code = begin_trace(command, way, seconds, error);

	for (size_t at = 0; at < command->trace.count && !code; at += command->batch) {
		const uint64_t *blocks = command->trace.blocks + at;
		size_t left = command->trace.count - at,
		       count = left < command->batch ? left : command->batch;
		double once = 0;

		code = run_batch(command, way, blocks, count, &once, bad, error);
		*seconds += once;
	}
	return end_trace(command, code, seconds, bad, error);
}

static bool is_wanted(const struct command *command, enum way way)
{
	return way == BY_WEIR || (way == BY_THREADS && command->plain) || (way == BY_MAPPING && command->map);
}

static int run(struct command *command, struct report *report, char *error)
{
	double seconds[WAYS][MOST_RUNS] = { { 0 } }, warm;
	int code = run_trace(command, BY_WEIR, &warm, &report->bad,
			     error); /* kernels, threads and the page cache are there then */

	for (uint32_t i = 0; i < command->runs; i++)
		for (enum way way = 0; way < WAYS && !code; way++)
			if (is_wanted(command, way))
				code = run_trace(command, way, &seconds[way][i], &report->bad, error);
	if (code)
		return code;
	for (enum way way = 0; way < WAYS; way++)
		report->seconds[way] = sample_median(seconds[way], command->runs);
	report->stats.size = sizeof(report->stats);
	code = sample_pass(error, weir_file_stats(command->context, &report->stats));
	if (!code && report->bad)
		code = sample_fail(error, -EBADMSG, "WRONG DATA: %llu words %s; please report this",
				   (unsigned long long)report->bad,
				   command->store ? "in the file are not what the device had"
						  : "on the device are not what the file has");
	return code;
}

static double rate(const struct command *command, double seconds)
{
	return seconds > 0 ? (double)command->trace.count / seconds : 0;
}

static void print_way(const struct command *command, const char *name, double seconds)
{
	printf("%-9s %.4f s, %.1f thousand blocks/s, %.2f GB/s\n", name, seconds,
	       rate(command, seconds) / 1e3, rate(command, seconds) * (double)command->block_bytes / 1e9);
}

static void print_text(const struct command *command, const struct report *report)
{
	const double *seconds = report->seconds;

	printf("trace     %zu blocks of %llu bytes in %zu requests, %llu at a time%s\n", command->trace.count,
	       (unsigned long long)command->block_bytes, command->trace.requests,
	       (unsigned long long)command->batch, command->store ? ", stored" : "");
	printf("device    %s\nfile      %s%s, %llu blocks\n", command->info.name, command->path,
	       command->direct ? " (O_DIRECT)" : "", (unsigned long long)command->file_blocks);
	printf("path      %s: %s; %u threads, %s\n",
	       weir_file_path_name((enum weir_file_path)command->how.path), command->how.reason,
	       report->stats.threads, report->stats.uring ? "io_uring" : "no io_uring here");
	print_way(command, "weir", seconds[BY_WEIR]);
	if (command->plain) {
		print_way(command, "plain", seconds[BY_THREADS]);
		printf("ratio     weir is %.2f times as fast as %u threads that %s\n",
		       seconds[BY_THREADS] / seconds[BY_WEIR], command->threads,
		       command->store ? "copy and write" : "read and copy");
	}
	if (command->map) {
		print_way(command, "mapped", seconds[BY_MAPPING]);
		printf("ratio     weir is %.2f times as fast as one thread that copies %s a mapping\n",
		       seconds[BY_MAPPING] / seconds[BY_WEIR], command->store ? "into" : "out of");
	}
	printf("result    verified: every byte of every %s\n",
	       command->store ? "block, in the file" : "batch, on the device");
}

static void print_json(const struct command *command, const struct report *report)
{
	json_t *root = json_object();
	double weir = report->seconds[BY_WEIR];

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", weir_file_path_name((enum weir_file_path)command->how.path));
	sample_set_text(root, "reason", command->how.reason);
	sample_set_bool(root, "direct", command->direct);
	sample_set_bool(root, "cold", command->cold);
	sample_set_bool(root, "store", command->store);
	sample_set_count(root, "block_bytes", command->block_bytes);
	sample_set_count(root, "blocks", command->trace.count);
	sample_set_count(root, "requests", command->trace.requests);
	sample_set_count(root, "batch", command->batch);
	sample_set_count(root, "runs", command->runs);
	sample_set_count(root, "weir_threads", report->stats.threads);
	sample_set_bool(root, "io_uring", report->stats.uring);
	sample_set_real(root, "weir_seconds", weir);
	sample_set_real(root, "weir_blocks_per_s", rate(command, weir));
	sample_set_real(root, "weir_bytes_per_s", rate(command, weir) * (double)command->block_bytes);
	sample_set_count(root, "pulled_bytes", report->stats.pulled_bytes);
	sample_set_count(root, "copied_bytes", report->stats.copied_bytes);
	sample_set_count(root, "direct_bytes", report->stats.direct_bytes);
	if (command->plain) {
		sample_set_count(root, "plain_threads", command->threads);
		sample_set_real(root, "plain_seconds", report->seconds[BY_THREADS]);
		sample_set_real(root, "plain_blocks_per_s", rate(command, report->seconds[BY_THREADS]));
		sample_set_real(root, "ratio", report->seconds[BY_THREADS] / weir);
	}
	if (command->map) {
		sample_set_real(root, "mapped_seconds", report->seconds[BY_MAPPING]);
		sample_set_real(root, "mapped_ratio", report->seconds[BY_MAPPING] / weir);
	}
	sample_set_bool(root, "verified", true);
	sample_print_json(root);
}

/* What is to be known before anything is opened. */
static const char *check(const struct command *command)
{
	if (!command->path)
		return "give one file; --make 4G writes it";
	if (command->block_bytes % LEAST_BLOCK)
		return "--block is a multiple of 512";
	if (path_named(command->by) < 0)
		return "--path is auto, module, direct, pull or bounce";
	return NULL;
}

static int go(struct command *command, char *error)
{
	struct report report = { .bad = 0 };
	int code = open_file(command, error);

	if (!code)
		code = open_trace(command, error);
	if (!code)
		code = open_device(command, error);
	if (!code && !command->no_plain)
		code = plain_open(&command->device, command->context, command->threads, command->file,
				  command->block_bytes, command->batch, &command->plain, error);
	if (!code)
		code = run(command, &report, error);
	if (!code)
		(command->json ? print_json : print_text)(command, &report);
	return code;
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	int status = tool_parse(&program, argc, argv), code;
	const char *wrong = status < 0 ? check(command) : NULL;

	if (status >= 0)
		return status;
	if (wrong)
		return tool_usage("%s", wrong);
	code = go(command, error);
	code = plain_close(command->plain, code, error);
	kvcache_pool_close(&command->pool);
	code = sample_close(command->context, code, error);
	free(command->io);
	free(command->trace.blocks);
	if (command->file >= 0)
		close(command->file);
	return code ? tool_complain("%s", error) : 0;
}
