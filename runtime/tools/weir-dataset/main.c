/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-dataset: make, index, upload, describe, verify and measure datasets. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static const char help[] =
	"usage: weir-dataset COMMAND ... [options]\n"
	"\n"
	"  make PATH           write synthetic samples, sorted by class (--as, --samples, --bytes, "
	"--classes)\n"
	"  index URI           write the manifest of a tar, TFRecord, MDS or record file that lies in a "
	"storage\n"
	"  upload SOURCE URI.. copy a folder or file of samples to storages; goes on where it was "
	"interrupted\n"
	"  info URI..          what a dataset is\n"
	"  verify URI..        read every sample\n"
	"  order URI..         how random each order is (--plot FILE: positions as a picture)\n"
	"  bench URI..         samples and bytes per second, beside other ways to read (--peers FOLDER)\n"
	"\n"
	"  --format NAME       of the source: auto, folder, tar, tfrecord, mds, cifar10, cifar100, "
	"fixed:BYTES[:HEADER]\n"
	"  --manifest FILE     of file:PATH: PATH.weir if not given\n"
	"  --checks            index: check the data's checksums, too\n"
	"  --as KIND           make: folder, tar or records\n"
	"  --samples N         make: 1000\n"
	"  --bytes N[-M]       make: of a sample, or a range of which all lengths are as likely (4096)\n"
	"  --classes N         make: 10\n"
	"  --context NAME      cpu, or another device\n"
	"  --order NAME        shuffled-chunk, chunk, full (bench: all three if not given)\n"
	"  --seed N, --epochs N, --batch N, --buffer CHUNKS, --chunk BYTES, --cache BYTES, --row BYTES, "
	"--batches N\n"
	"  --lookup NAME       buckets or avl\n"
	"  --threads N         bench: of the peers (8)\n"
	"  --depth N           bench: requests in flight of the packed file (64)\n"
	"  --peers FOLDER      bench: the same samples as files\n"
	"  --no-drop           bench: leave the page cache as it is\n"
	"  --seconds N         bench: of each run (3)\n"
	"  --json              bench: a JSON object on each line\n"
	"\n"
	"Ranks of mpirun share the storages of info, verify and bench. Ctrl-C leaves an upload that the next "
	"one resumes.\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static volatile sig_atomic_t stopped;

static const struct {
	const char *name;
	int (*run)(struct tool *tool);
	int least;
} commands[] = {
	{ "make", tool_make, 1 },   { "index", tool_index, 1 },   { "upload", tool_upload, 2 },
	{ "info", tool_info, 1 },   { "verify", tool_verify, 1 }, { "order", tool_order, 1 },
	{ "bench", tool_bench, 1 },
};

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

double tool_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int tool_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("weir-dataset: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	return TOOL_FAILED;
}

int tool_failed(void)
{
	return tool_fail("%s", weir_last_error());
}

int tool_progress(void *user, uint64_t done, uint64_t total)
{
	(void)user;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%3.0f%%%s", total ? 100.0 * (double)done / (double)total : 100.0,
			done == total ? "\r    \r" : "");
	return stopped;
}

/* PATH.weir for file:PATH, where it is. */
static char *manifest_of(const struct tool *tool, const char *uri, bool must_be)
{
	char *path = NULL;
	int bytes;

	if (tool->manifest)
		return strdup(tool->manifest);
	if (strncmp(uri, "file:", 5) != 0)
		return NULL;
	bytes = asprintf(&path, "%.*s.weir", (int)strcspn(uri + 5, "?"), uri + 5);
	if (bytes < 0 || (must_be && access(path, F_OK) != 0)) {
		free(bytes < 0 ? NULL : path);
		return NULL;
	}
	return path;
}

bool tool_open(struct tool *tool, int first, bool write)
{
	struct weir_storage_options options = { .size = sizeof(options), .max_transfer_bytes = 256 << 10 };

	if (tool->operand_count - first > TOOL_MOST_STORAGES)
		return tool_fail("at most %d storages", TOOL_MOST_STORAGES) == TOOL_OK;
	if (weir_context_open(tool->context_name, NULL, &tool->context))
		return tool_failed() == TOOL_OK;
	for (int i = first; i < tool->operand_count; i++) {
		if (weir_storage_open(tool->context, tool->operands[i], &options,
				      &tool->storages[tool->storage_count]))
			return tool_failed() == TOOL_OK;
		tool->manifests[tool->storage_count++] = manifest_of(tool, tool->operands[i], !write);
	}
	return true;
}

bool tool_mount(struct tool *tool)
{
	struct weir_dataset_mount_options options = {
		.size = sizeof(options),
		.manifests = (const char *const *)tool->manifests,
		.chunk_bytes = (uint32_t)tool->chunk_bytes,
		.cache_bytes = tool->cache_bytes,
		.row_bytes = (uint32_t)tool->row_bytes,
		.lookup = tool->lookup,
		.batches = tool->batches,
	};

	if (weir_dataset_communicator_open("auto", &tool->communicator))
		return tool_failed() == TOOL_OK;
	options.communicator = tool->communicator;
	if (!tool_open(tool, 0, false))
		return false;
	if (weir_dataset_mount(tool->context, tool->storages, tool->storage_count, &options, &tool->dataset))
		return tool_failed() == TOOL_OK;
	return true;
}

void tool_close(struct tool *tool)
{
	if (weir_dataset_unmount(tool->dataset) || weir_context_close(tool->context))
		tool_failed();
	for (unsigned i = 0; i < tool->storage_count; i++)
		free(tool->manifests[i]);
	if (tool->communicator)
		tool->communicator->close(tool->communicator);
}

static bool number(const char *text, uint64_t *to)
{
	return weir_parse_bytes(text, to) == 0;
}

static bool range(const char *text, uint64_t *least, uint64_t *most)
{
	char first[32];
	const char *dash = strchr(text, '-');

	if (!dash)
		return number(text, least) && number(text, most);
	snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	return number(first, least) && number(dash + 1, most) && *least <= *most;
}

static bool number32(const char *text, uint32_t *to)
{
	uint64_t value;

	if (!number(text, &value) || value > UINT32_MAX)
		return false;
	*to = (uint32_t)value;
	return true;
}

static bool order_named(struct tool *tool, const char *name)
{
	tool->all_orders = false;
	for (tool->order = 0; weir_dataset_order_name(tool->order); tool->order++)
		if (strcmp(weir_dataset_order_name(tool->order), name) == 0)
			return true;
	return false;
}

enum {
	FORMAT = 256,
	MANIFEST,
	CHECKS,
	AS,
	SAMPLES,
	BYTES,
	CLASSES,
	CONTEXT,
	ORDER,
	SEED,
	EPOCHS,
	BATCH,
	BUFFER,
	CHUNK,
	CACHE,
	ROW,
	LOOKUP,
	THREADS,
	DEPTH,
	PEERS,
	PLOT,
	NO_DROP,
	BATCHES,
	JSON,
	SECONDS
};

static const struct option options[] = {
	{ "format", 1, NULL, FORMAT },   { "manifest", 1, NULL, MANIFEST },
	{ "checks", 0, NULL, CHECKS },   { "as", 1, NULL, AS },
	{ "samples", 1, NULL, SAMPLES }, { "bytes", 1, NULL, BYTES },
	{ "classes", 1, NULL, CLASSES }, { "context", 1, NULL, CONTEXT },
	{ "order", 1, NULL, ORDER },     { "seed", 1, NULL, SEED },
	{ "epochs", 1, NULL, EPOCHS },   { "batch", 1, NULL, BATCH },
	{ "buffer", 1, NULL, BUFFER },   { "chunk", 1, NULL, CHUNK },
	{ "cache", 1, NULL, CACHE },     { "row", 1, NULL, ROW },
	{ "lookup", 1, NULL, LOOKUP },   { "threads", 1, NULL, THREADS },
	{ "depth", 1, NULL, DEPTH },     { "peers", 1, NULL, PEERS },
	{ "plot", 1, NULL, PLOT },       { "no-drop", 0, NULL, NO_DROP },
	{ "batches", 1, NULL, BATCHES }, { "json", 0, NULL, JSON },
	{ "seconds", 1, NULL, SECONDS }, { NULL, 0, NULL, 0 },
};

static bool take_more(struct tool *tool, int option, const char *text)
{
	switch (option) {
	case CHUNK: return number(text, &tool->chunk_bytes) && tool->chunk_bytes <= UINT32_MAX;
	case CACHE: return number(text, &tool->cache_bytes);
	case ROW: return number(text, &tool->row_bytes) && tool->row_bytes <= UINT32_MAX;
	case LOOKUP:
		tool->lookup = strcmp(text, "avl") == 0;
		return tool->lookup || strcmp(text, "buckets") == 0;
	case THREADS: return number32(text, &tool->threads) && tool->threads && tool->threads <= 1024;
	case DEPTH: return number32(text, &tool->depth) && tool->depth && tool->depth <= 4096;
	case BATCHES: return number32(text, &tool->batches) && tool->batches && tool->batches <= 16;
	case PEERS: tool->peers = text; return true;
	case PLOT: tool->plot = text; return true;
	case NO_DROP: tool->no_drop = true; return true;
	case JSON: tool->json = true; return true;
	case SECONDS: return number32(text, &tool->seconds) && tool->seconds;
	default: return false;
	}
}

static bool take(struct tool *tool, int option, const char *text)
{
	switch (option) {
	case FORMAT: tool->format = text; return true;
	case MANIFEST: tool->manifest = text; return true;
	case CHECKS: tool->checks = true; return true;
	case AS: tool->as = text; return true;
	case SAMPLES: return number(text, &tool->samples) && tool->samples;
	case BYTES:
		return range(text, &tool->least_bytes, &tool->most_bytes) &&
		       tool->most_bytes <= WEIR_DATASET_MAX_SAMPLE_BYTES;
	case CLASSES: return number(text, &tool->classes) && tool->classes;
	case CONTEXT: tool->context_name = text; return true;
	case ORDER: return order_named(tool, text);
	case SEED: return number(text, &tool->seed);
	case EPOCHS: return number(text, &tool->epochs) && tool->epochs;
	case BATCH: return number32(text, &tool->batch) && tool->batch;
	case BUFFER: return number32(text, &tool->buffer_chunks);
	default: return take_more(tool, option, text);
	}
}

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "weir-dataset: %s%s; see weir-dataset --help\n", why, what);
	return TOOL_USAGE;
}

int main(int argc, char **argv)
{
	struct tool tool = { .context_name = "cpu",
			     .as = "folder",
			     .samples = 1000,
			     .least_bytes = 4096,
			     .most_bytes = 4096,
			     .classes = 10,
			     .epochs = 1,
			     .batch = 256,
			     .threads = 8,
			     .seconds = 3,
			     .depth = 64,
			     .all_orders = true };
	struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART | SA_RESETHAND };
	int option, status;

	if (argc < 2)
		return usage("a command is missing: make, index, upload, info, verify, order or bench", "");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return fputs(help, stdout) < 0 ? TOOL_FAILED : TOOL_OK;
	opterr = 0;
	while ((option = getopt_long(argc - 1, argv + 1, "", options, NULL)) != -1)
		if (!take(&tool, option, optarg))
			return usage("there is no such option, or its value is none: ", argv[optind]);
	tool.operands = argv + 1 + optind;
	tool.operand_count = argc - 1 - optind;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			if (tool.operand_count < commands[i].least)
				return usage("an operand is missing for ", argv[1]);
			status = commands[i].run(&tool);
			tool_close(&tool);
			return fflush(stdout) == 0 ? status : TOOL_FAILED;
		}
	return usage("there is no command ", argv[1]);
}
