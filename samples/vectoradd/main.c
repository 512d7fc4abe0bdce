/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-vectoradd: c = a + b with all three on storage, through the cache and by hand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/load.h"
#include "../common/vector.h"
#include "vectoradd.h"

enum {
	MOST_RUNS = 99,
	LEAST_BYTES = 65536,
	LEAST_TILE = 4096,
	TILED_WAVES = 16,
	CACHED_WAVES = 16,
	WAVE_LINES = 8 * VECTORADD_LINES,
	PART_BYTES = 1 << 20
};

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	struct sample_cache cache;
	const char *uri;
	const char *type;
	uint64_t bytes; /* of a vector */
	uint32_t tile_bytes;
	uint64_t waves;
	uint32_t runs;
	bool is_float;
	bool plain;
	bool verify;
	bool json;
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *lines;
	struct weir_context_info info;
	struct vectoradd_tiled_args tiled;
	struct vectoradd_cached_args cached;
	struct vectoradd_plain_args flat;
};

static struct command command_line = { .type = "u64",
				       .runs = 3,
				       .info = { .size = sizeof(struct weir_context_info) } };

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
	  .least = LEAST_BYTES,
	  .help = "length of each vector (default: a third of the storage)" },
	SAMPLE_CACHE_OPTIONS(command_line.cache, "an eighth of all three"),
	{ .name = "tile",
	  .value = "BYTES",
	  .kind = TOOL_BYTES_U32,
	  .to = &command_line.tile_bytes,
	  .least = LEAST_TILE,
	  .most = LEAST_BYTES,
	  .help = "by hand: a power of two (default: as long as a line, so that both ways take as many "
		  "commands)" },
	{ .name = "waves",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.waves,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "waves (default: 16 per worker of the device by hand, 32 through the cache)" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "runs of each way, alternating; the medians count (default 3)" },
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.plain,
	  .help = "also add the vectors in plain device memory: what it takes without storage" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "after every run read c back from storage and compare with the host's sums" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-vectoradd",
	.about = "usage: weir-vectoradd URI [options]\n"
		 "\n"
		 "c = a + b, all three on one storage, which is OVERWRITTEN. Once through a cache smaller "
		 "than\n"
		 "the vectors, reading by views and writing whole lines; once by hand, with tiles that are\n"
		 "read, added and written at the same time. The time of each ends when storage has all of "
		 "c.\n",
	.options = options,
	.operand = "one storage",
	.to = &command_line.uri,
};

/** struct report - all there is to print */
struct report {
	char path[128];
	struct weir_cache_stats cache;
	double cached, tiled, plain;           /* seconds */
	struct weir_stats cached_io, tiled_io; /* of the latest run */
};

static int refuse_size(const struct command *command, uint64_t there, char *error)
{
	return sample_fail(error, -EINVAL,
			   "three vectors of %llu bytes cannot be: %.700s has %llu, and a vector's length is "
			   "a multiple of %d",
			   (unsigned long long)command->bytes, command->uri, (unsigned long long)there,
			   LEAST_BYTES);
}

static int open_storage(struct command *command, struct report *report, char *error)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int code = sample_open(&command->device, &command->context);

	if (!code)
		code = weir_context_info(command->context, &command->info);
	if (!code)
		code = weir_storage_open(command->context, command->uri,
					 WEIR_OPTIONS(storage, .queues = command->device.queues,
						      .depth = command->device.depth),
					 &command->storage);
	if (!code)
		code = weir_storage_info(command->storage, &info);
	if (code)
		return sample_pass(error, code);
	memcpy(report->path, info.path, sizeof(report->path));
	if (!command->bytes)
		command->bytes = info.bytes / 3 / LEAST_BYTES * LEAST_BYTES;
	if (!command->bytes || command->bytes > info.bytes / 3 || command->bytes % LEAST_BYTES)
		return refuse_size(command, info.bytes, error);
	if (command->tile_bytes > info.max_transfer_bytes)
		return sample_fail(error, -EINVAL,
				   "a tile of %u bytes is no single command: %.700s takes %u at most",
				   command->tile_bytes, command->uri, info.max_transfer_bytes);
	return 0;
}

static int open_arrays(struct command *command, struct report *report)
{
	struct weir_array_options options = { .size = sizeof(options),
					      .element_bytes = 16,
					      .count = command->bytes / 16 };
	struct vectoradd_cached_args *args = &command->cached;
	int code;

	if (!command->cache.bytes && !command->cache.lines)
		command->cache.bytes = command->bytes * 3 / 8 + (64 << 10);
	code = weir_cache_create(
		command->context,
		WEIR_OPTIONS(cache, .bytes = command->cache.bytes, .lines = command->cache.lines,
			     .line_bytes = command->cache.line_bytes, .policy = command->cache.policy,
			     .tier_bytes = command->cache.tier),
		&command->lines);
	report->cache.size = sizeof(report->cache);
	if (!code)
		code = weir_cache_stats(command->lines, &report->cache);
	if (!command->tile_bytes)
		command->tile_bytes =
			report->cache.line_bytes > LEAST_TILE ? report->cache.line_bytes : LEAST_TILE;
	if (!code)
		code = weir_array_open(command->lines, &command->storage, 1, &options, &args->a);
	options.first_byte = command->bytes;
	if (!code)
		code = weir_array_open(command->lines, &command->storage, 1, &options, &args->b);
	options.first_byte = 2 * command->bytes;
	return code ? code : weir_writer_open(command->lines, &command->storage, 1, &options, &args->c);
}

/* As many waves as have something to do, and room. */
static uint64_t choose_waves(const struct command *command, unsigned per_worker, uint64_t pieces)
{
	uint64_t waves = command->waves ? command->waves : (uint64_t)command->info.workers * per_worker;

	waves = waves < pieces ? waves : pieces;
	return waves ? waves : 1;
}

static int allocate(struct command *command, const struct report *report)
{
	struct vectoradd_cached_args *cached = &command->cached;
	struct vectoradd_tiled_args *tiled = &command->tiled;
	int code = weir_storage_disk(command->storage, &tiled->disk);

	tiled->vector_bytes = command->bytes;
	tiled->tile_bytes = command->tile_bytes;
	tiled->waves = choose_waves(command, TILED_WAVES, command->bytes / command->tile_bytes);
	cached->line_bytes = report->cache.line_bytes;
	/* Of each line of a vector a wave has three in use, and as many that it wrote are on their way out.
	 */
	cached->waves = choose_waves(command, CACHED_WAVES, report->cache.lines / WAVE_LINES);
	tiled->is_float = cached->is_float = command->flat.is_float = command->is_float;
	command->flat.count = command->bytes / 16;
	if (code ||
	    (code = weir_alloc(command->context, tiled->waves * VECTORADD_BUFFERS * tiled->tile_bytes,
			       &tiled->buffers)) != 0 ||
	    (code = weir_alloc(command->context, tiled->waves * VECTORADD_BUFFERS * sizeof(struct weir_event),
			       &tiled->events)) != 0 ||
	    (code = weir_alloc(command->context, sizeof(uint64_t), &tiled->failure)) != 0)
		return code;
	return weir_alloc(command->context, cached->waves * VECTORADD_LINES * cached->line_bytes,
			  &cached->buffers);
}

/* The word at @word of a and b together: two elements, or four. */
static uint64_t input(bool is_float, uint64_t word)
{
	float pair[2] = { sample_fraction(sample_scramble(2 * word)),
			  sample_fraction(sample_scramble(2 * word + 1)) };
	uint64_t bits;

	if (!is_float)
		return sample_scramble(word);
	memcpy(&bits, pair, sizeof(bits));
	return bits;
}

static void make(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	const struct command *command = of;

	for (uint64_t i = 0; i < count; i++)
		words[i] = input(command->is_float, first + i);
}

static int prepare(struct command *command, struct report *report, char *error)
{
	int code = open_storage(command, report, error);

	if (!code)
		code = sample_fill(command->storage, 0, 2 * command->bytes, make, command, error);
	if (!code)
		code = sample_pass(error, open_arrays(command, report));
	return code ? code : sample_pass(error, allocate(command, report));
}

static void make_nonsense(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	for (uint64_t i = 0; i < count; i++)
		words[i] = 0x600d + first + i;
}

/* c gets what it must not keep. */
static int spoil(struct command *command, char *error)
{
	return sample_fill(command->storage, 2 * command->bytes, command->bytes, make_nonsense, NULL, error);
}

static uint64_t expect(bool is_float, uint64_t x, uint64_t y)
{
	float a[2], b[2];

	if (!is_float)
		return x + y;
	memcpy(a, &x, sizeof(a));
	memcpy(b, &y, sizeof(b));
	a[0] += b[0];
	a[1] += b[1];
	memcpy(&x, a, sizeof(x));
	return x;
}

/** struct check - whose result is compared, and what of */
struct check {
	const struct command *command;
	const char *way;
};

static int compare(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *error)
{
	const struct check *check = to;
	const struct command *command = check->command;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t sum = expect(command->is_float, input(command->is_float, first + i),
				      input(command->is_float, command->bytes / 8 + first + i));

		if (words[i] != sum)
			return sample_fail(error, -EBADMSG,
					   "WRONG RESULT: %s, the 8 bytes of c at %llu are %016llx, a + b is "
					   "%016llx; please report this",
					   check->way, (unsigned long long)((first + i) * 8),
					   (unsigned long long)words[i], (unsigned long long)sum);
	}
	return 0;
}

static int verify(struct command *command, const char *way, char *error)
{
	struct check check = { command, way };

	return sample_read(command->storage, 2 * command->bytes, command->bytes, compare, &check, error);
}

static int launch(struct command *command, const char *kernel, uint64_t waves, const void *args, size_t bytes)
{
	uint64_t lanes = waves * command->info.wave_lanes;
	uint32_t block = lanes < SAMPLE_BLOCK_LANES ? (uint32_t)lanes : SAMPLE_BLOCK_LANES;
	int code = weir_launch(command->context, kernel, (uint32_t)((lanes + block - 1) / block), block, args,
			       bytes);

	return code ? code : weir_sync(command->context);
}

static int run_cached(struct command *command, char *error)
{
	int code = launch(command, "vectoradd_cached", command->cached.waves, &command->cached,
			  sizeof(command->cached));

	return sample_pass(error, code ? code : weir_cache_flush(command->lines, 0));
}

static int run_tiled(struct command *command, char *error)
{
	uint64_t failure = 0;
	char text[80];
	int code = launch(command, "vectoradd_tiled", command->tiled.waves, &command->tiled,
			  sizeof(command->tiled));

	if (!code)
		code = weir_copy_from_device(command->context, &failure, command->tiled.failure,
					     sizeof(failure));
	if (code || !failure)
		return sample_pass(error, code);
	weir_status_text((uint32_t)failure, text);
	return sample_fail(error, -EIO, "a tile of %.800s was not read or not written: %s", command->uri,
			   text);
}

/* One run, from launch to all of c on storage; then whether it is right. */
static int run_once(struct command *command, const char *way, int (*run)(struct command *, char *),
		    double *seconds, struct weir_stats *io, char *error)
{
	struct weir_stats before = { .size = sizeof(before) };
	double begin;
	int code = command->verify ? spoil(command, error) : 0;

	io->size = sizeof(*io);
	if (!code)
		code = sample_pass(error, weir_stats(command->storage, &before));
	begin = sample_now();
	if (!code)
		code = run(command, error);
	*seconds = sample_now() - begin;
	if (!code)
		code = sample_pass(error, weir_stats(command->storage, io));
	io->bytes_read -= before.bytes_read;
	io->bytes_written -= before.bytes_written;
	return code || !command->verify ? code : verify(command, way, error);
}

/* c as device memory has it. */
static int verify_plain(struct command *command, char *error)
{
	struct check check = { command, "in plain memory" };
	uint64_t *words = malloc(PART_BYTES);
	int code = words ? 0 : sample_fail(error, -ENOMEM, "no memory to verify with");

	for (uint64_t at = 0; at < command->bytes && !code; at += PART_BYTES) {
		uint64_t bytes = command->bytes - at < PART_BYTES ? command->bytes - at : PART_BYTES;

		code = sample_pass(
			error, weir_copy_from_device(command->context, words, command->flat.c + at, bytes));
		if (!code)
			code = compare(words, at / 8, bytes / 8, &check, error);
	}
	free(words);
	return code;
}

static int load_plain(struct command *command, uint64_t first_byte, uint64_t *address)
{
	struct sample_source source = { .storages = &command->storage,
					.storage_count = 1,
					.first_byte = first_byte,
					.bytes = command->bytes };

	return sample_load(command->context, &source, address);
}

static int run_plain(struct command *command, double *seconds)
{
	struct vectoradd_plain_args *flat = &command->flat;
	uint32_t blocks;
	int code = sample_blocks(command->context, flat->count, &blocks);

	if (code || (code = load_plain(command, 0, &flat->a)) != 0 ||
	    (code = load_plain(command, command->bytes, &flat->b)) != 0 ||
	    (code = weir_alloc(command->context, command->bytes, &flat->c)) != 0)
		return code;
	for (unsigned i = 0; i < 2 && !code; i++) { /* the first time loads the kernel */
		double begin = sample_now();

		code = sample_run(command->context, "vectoradd_plain", blocks, flat, sizeof(*flat));
		*seconds = sample_now() - begin;
	}
	return code;
}

static int run(struct command *command, struct report *report, char *error)
{
	double cached[MOST_RUNS], tiled[MOST_RUNS];
	int code = 0;

	for (uint32_t i = 0; i < command->runs && !code; i++) {
		code = run_once(command, "by hand", run_tiled, &tiled[i], &report->tiled_io, error);
		if (!code)
			code = run_once(command, "through the cache", run_cached, &cached[i],
					&report->cached_io, error);
	}
	if (code)
		return code;
	report->cached = sample_median(cached, command->runs);
	report->tiled = sample_median(tiled, command->runs);
	if (command->plain)
		code = sample_pass(error, run_plain(command, &report->plain));
	if (!code && command->plain && command->verify)
		code = verify_plain(command, error);
	return code ? code : sample_pass(error, weir_cache_stats(command->lines, &report->cache));
}

static void print_way(const struct command *command, const char *name, double seconds,
		      const struct weir_stats *io)
{
	printf("%-9s %.4f s, %.2f GB/s; %.1f MiB read and %.1f MiB written\n", name, seconds,
	       3 * (double)command->bytes / seconds / 1e9, sample_megabytes(io->bytes_read),
	       sample_megabytes(io->bytes_written));
}

static void print_text(const struct command *command, const struct report *report)
{
	printf("vectors   %llu elements of %s each, %.1f MiB\n",
	       (unsigned long long)(command->bytes / (command->is_float ? 4 : 8)), command->type,
	       sample_megabytes(command->bytes));
	printf("device    %s\nstorage   %s\n", command->info.name, report->path);
	printf("cache     %.1f MiB: %llu lines of %llu bytes; %llu waves\n",
	       sample_megabytes(report->cache.bytes), (unsigned long long)report->cache.lines,
	       (unsigned long long)report->cache.line_bytes, (unsigned long long)command->cached.waves);
	printf("tiles     %u bytes; %llu waves\n", command->tile_bytes,
	       (unsigned long long)command->tiled.waves);
	print_way(command, "cached", report->cached, &report->cached_io);
	printf("lines     %llu fetched in all runs, where %llu would do; %llu made room\n",
	       (unsigned long long)report->cache.misses,
	       (unsigned long long)(command->runs * 2 * command->bytes / report->cache.line_bytes),
	       (unsigned long long)report->cache.evictions);
	print_way(command, "by hand", report->tiled, &report->tiled_io);
	printf("ratio     through the cache takes %.2f times as long as by hand\n",
	       report->cached / report->tiled);
	if (command->plain)
		printf("plain     %.4f s in device memory; through the cache takes %.2f times as long\n",
		       report->plain, report->cached / report->plain);
	printf("result    %s\n", command->verify ? "verified: storage has the sums, after every run"
						 : "not verified (--verify reads c back from storage)");
}

static void set_way(json_t *root, const char *name, double seconds, const struct weir_stats *io)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_seconds", name);
	sample_set_real(root, key, seconds);
	snprintf(key, sizeof(key), "%s_bytes_read", name);
	sample_set_count(root, key, io->bytes_read);
	snprintf(key, sizeof(key), "%s_bytes_written", name);
	sample_set_count(root, key, io->bytes_written);
}

static void print_json(const struct command *command, const struct report *report)
{
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "path", report->path);
	sample_set_text(root, "type", command->type);
	sample_set_count(root, "vector_bytes", command->bytes);
	sample_set_count(root, "cache_bytes", report->cache.bytes);
	sample_set_count(root, "line_bytes", report->cache.line_bytes);
	sample_set_count(root, "tile_bytes", command->tile_bytes);
	sample_set_count(root, "cached_waves", command->cached.waves);
	sample_set_count(root, "tiled_waves", command->tiled.waves);
	sample_set_count(root, "runs", command->runs);
	set_way(root, "cached", report->cached, &report->cached_io);
	set_way(root, "tiled", report->tiled, &report->tiled_io);
	sample_set_real(root, "bytes_per_s", 3 * (double)command->bytes / report->cached);
	sample_set_real(root, "ratio", report->cached / report->tiled);
	if (command->plain) {
		sample_set_real(root, "plain_seconds", report->plain);
		sample_set_real(root, "plain_ratio", report->cached / report->plain);
	}
	sample_set_bool(root, "verified", command->verify);
	sample_print_json(root);
}

/* What is to be known before anything is opened. */
static const char *check(struct command *command)
{
	if (!command->uri)
		return "give one storage, such as virt:3G; it is overwritten";
	if (command->tile_bytes & (command->tile_bytes - 1))
		return "--tile is a power of two";
	command->is_float = strcmp(command->type, "f32") == 0;
	return command->is_float || strcmp(command->type, "u64") == 0 ? NULL : "--type is u64 or f32";
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	struct report report = { .cached = 0 };
	int status = tool_parse(&program, argc, argv);
	const char *wrong = check(command);

	if (status >= 0)
		return status;
	if (wrong)
		return tool_usage("%s", wrong);
	status = prepare(command, &report, error);
	if (!status)
		status = run(command, &report, error);
	if (!status)
		(command->json ? print_json : print_text)(command, &report);
	status = sample_close(command->context, status, error);
	return status ? tool_complain("%s", error) : 0;
}
