/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-dataset: make, index, upload, describe, verify and measure datasets. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static const char about[] =
	"usage: weir-dataset COMMAND ... [options]\n"
	"\n"
	"  make PATH           write synthetic samples, sorted by class (--as, --samples, --bytes,\n"
	"                      --classes)\n"
	"  index URI           write the manifest of a tar, TFRecord, MDS or record file that lies in a\n"
	"                      storage\n"
	"  upload SOURCE URI.. copy a folder or file of samples to storages; goes on where it was\n"
	"                      interrupted\n"
	"  info URI..          what a dataset is\n"
	"  verify URI..        read every sample\n"
	"  order URI..         how random each order is (--plot FILE: positions as a picture)\n"
	"  bench URI..         samples and bytes per second, next to other ways to read (--peers FOLDER)\n";

static const char notes[] = "Ranks of mpirun share the storages of info, verify and bench; of an upload the "
			    "first one does all,\n"
			    "and the others wait. Ctrl-C leaves an upload that the next one resumes.\n"
			    "Exit status: 0 done, 1 failed, 2 wrong usage.";

static volatile sig_atomic_t stopped;

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

int tool_progress(void *user, uint64_t done, uint64_t total)
{
	static int terminal = -1;
	static uint64_t shown;
	uint64_t percent = total ? (uint64_t)(100.0 * (double)done / (double)total) : 100;

	(void)user;
	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (terminal && (percent != shown || done == total))
		fprintf(stderr, "\r%3u%%%s", (unsigned)percent, done == total ? "\r    \r" : "");
	shown = percent;
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

int tool_open(struct tool *tool, int first, bool write)
{
	struct weir_storage_options options = { .size = sizeof(options), .max_transfer_bytes = 256 << 10 };

	int error = weir_context_open(tool->context_name, NULL, &tool->context);

	for (int i = first; i < tool->operand_count && !error; i++) {
		error = weir_storage_open(tool->context, tool->operands[i], &options,
					  &tool->storages[tool->storage_count]);
		if (!error)
			tool->manifests[tool->storage_count++] = manifest_of(tool, tool->operands[i], !write);
	}
	return error;
}

bool tool_mount(struct tool *tool)
{
	struct weir_dataset_mount_options options = {
		.size = sizeof(options),
		.manifests = (const char *const *)tool->manifests,
		.chunk_bytes = tool->chunk_bytes,
		.cache_bytes = tool->cache_bytes,
		.row_bytes = tool->row_bytes,
		.lookup = tool->lookup,
		.batches = tool->batches,
	};

	if (weir_dataset_communicator_open("auto", &tool->communicator))
		return tool_failed() == TOOL_OK;
	options.communicator = tool->communicator;
	if (weir_dataset_agree(tool->communicator, tool_open(tool, 0, false)))
		return tool_failed() == TOOL_OK;
	if (weir_dataset_mount(tool->context, tool->storages, tool->storage_count, &options, &tool->dataset))
		return tool_failed() == TOOL_OK;
	return true;
}

int tool_close(struct tool *tool)
{
	int status = weir_dataset_unmount(tool->dataset) ? tool_failed() : TOOL_OK;

	if (weir_context_close(tool->context))
		status = tool_failed();
	for (unsigned i = 0; i < tool->storage_count; i++)
		free(tool->manifests[i]);
	if (tool->communicator)
		tool->communicator->close(tool->communicator);
	return status;
}

static const char *const kinds[] = { "folder", "tar", "records", NULL };
static const char *const lookups[] = { "buckets", "avl", NULL };
static uint32_t kind;
static char **words;

static struct tool tool = { .context_name = "cpu",
			    .samples = 1000,
			    .least_bytes = 4096,
			    .most_bytes = 4096,
			    .classes = 10,
			    .batch = 256,
			    .threads = 8,
			    .seconds = 3,
			    .runs = 3,
			    .depth = 64,
			    .all_orders = true };

static bool range(const char *text, uint64_t *least, uint64_t *most)
{
	char first[32];
	const char *dash = strchr(text, '-');

	if (!dash)
		return weir_parse_bytes(text, least) == 0 && weir_parse_bytes(text, most) == 0;
	snprintf(first, sizeof(first), "%.*s", (int)(dash - text), text);
	return weir_parse_bytes(first, least) == 0 && weir_parse_bytes(dash + 1, most) == 0 &&
	       *least <= *most;
}

static int take_range(void *to, const char *text)
{
	(void)to;
	return range(text, &tool.least_bytes, &tool.most_bytes) &&
			       tool.most_bytes <= WEIR_DATASET_MAX_SAMPLE_BYTES
		       ? 0
		       : -EINVAL;
}

static int take_order(void *to, const char *text)
{
	(void)to;
	tool.all_orders = false;
	for (tool.order = 0; weir_dataset_order_name(tool.order); tool.order++)
		if (strcmp(weir_dataset_order_name(tool.order), text) == 0)
			return 0;
	return -EINVAL;
}

/* "orders,lookup" */
static int take_parts(void *to, const char *text)
{
	static const char *const names[] = { "orders", "lookup", "peers" };

	(void)to;
	for (tool.parts = 0; *text; text += strcspn(text, ","), text += *text == ',') {
		uint32_t part = 0;

		for (unsigned i = 0; i < 3; i++)
			if (strcspn(text, ",") == strlen(names[i]) &&
			    strncmp(text, names[i], strlen(names[i])) == 0)
				part = 1u << i;
		if (!part)
			return -EINVAL;
		tool.parts |= part;
	}
	return tool.parts ? 0 : -EINVAL;
}

static const struct tool_option options[] = {
	{ "format", "NAME", TOOL_TEXT, &tool.format, 0, 0,
	  "of the source: auto, folder, tar, tfrecord, mds, cifar10, cifar100,\nfixed:BYTES[:HEADER]", NULL,
	  NULL },
	{ "manifest", "FILE", TOOL_TEXT, &tool.manifest, 0, 0, "of file:PATH: PATH.weir if not given", NULL,
	  NULL },
	{ "checks", NULL, TOOL_FLAG, &tool.checks, 0, 0, "index, upload: check the data's checksums, too",
	  NULL, NULL },
	{ "as", "KIND", TOOL_WORD, &(struct tool_word){ kinds, &kind }, 0, 0,
	  "make: folder (default), tar or records", NULL, NULL },
	{ "samples", "N", TOOL_BYTES, &tool.samples, 1, 0, "make: how many (1000)", NULL, NULL },
	{ "bytes", "RANGE", TOOL_PARSED, &(struct tool_parser){ take_range, NULL }, 0, 0,
	  "make: of a sample, or a range of which all lengths are as likely\n(4096)",
	  "it is a size such as 4096 or 64K, or two of them, 4096-64K", NULL },
	{ "classes", "N", TOOL_BYTES, &tool.classes, 1, 0, "make: how many (10)", NULL, NULL },
	{ "context", "NAME", TOOL_TEXT, &tool.context_name, 0, 0, "cpu, or another device", NULL, NULL },
	{ "order", "NAME", TOOL_PARSED, &(struct tool_parser){ take_order, NULL }, 0, 0,
	  "shuffled-chunk, chunk, full (bench: all three if not given)",
	  "it is one of shuffled-chunk chunk full", NULL },
	{ "seed", "N", TOOL_BYTES, &tool.seed, 0, 0, "of what is random (0)", NULL, NULL },
	{ "batch", "N", TOOL_BYTES_U32, &tool.batch, 1, 0, "samples of a batch (256)", NULL, NULL },
	{ "buffer", "CHUNKS", TOOL_BYTES_U32, &tool.buffer_chunks, 0, 0, "in which chunk orders shuffle",
	  NULL, NULL },
	{ "chunk", "BYTES", TOOL_BYTES_U32, &tool.chunk_bytes, 0, 0, "length of a chunk", NULL, NULL },
	{ "cache", "BYTES", TOOL_BYTES, &tool.cache_bytes, 0, 0, "size of the cache", NULL, NULL },
	{ "row", "BYTES", TOOL_BYTES_U32, &tool.row_bytes, 0, 0, "room for a sample in a batch", NULL, NULL },
	{ "batches", "N", TOOL_BYTES_U32, &tool.batches, 1, 16, "batches under way", NULL, NULL },
	{ "lookup", "NAME", TOOL_WORD, &(struct tool_word){ lookups, &tool.lookup }, 0, 0, "buckets or avl",
	  NULL, NULL },
	{ "threads", "N", TOOL_BYTES_U32, &tool.threads, 1, 1024, "bench: of the peers (8)", NULL, NULL },
	{ "depth", "N", TOOL_BYTES_U32, &tool.depth, 1, 4096,
	  "bench: requests in flight of the packed file (64)", NULL, NULL },
	{ "peers", "FOLDER", TOOL_TEXT, &tool.peers, 0, 0, "bench: the same samples as files", NULL, NULL },
	{ "no-drop", NULL, TOOL_FLAG, &tool.no_drop, 0, 0, "bench: leave the page cache as it is", NULL,
	  NULL },
	{ "ramp", "SECONDS", TOOL_REAL, &tool.ramp, 0, 86400,
	  "bench: of each run, before an order's samples count (0)", NULL, NULL },
	{ "parts", "LIST", TOOL_PARSED, &(struct tool_parser){ take_parts, NULL }, 0, 0,
	  "bench: of orders,lookup,peers those to measure (all; ranks: orders)",
	  "it is a list of orders, lookup and peers, with commas", NULL },
	{ "runs", "N", TOOL_BYTES_U32, &tool.runs, 1, 15,
	  "bench: of each way to read, in turns; the median is printed (3)", NULL, NULL },
	{ "seconds", "S", TOOL_REAL, &tool.seconds, 0.01, 86400, "bench: of each run (3)", NULL, NULL },
	{ "plot", "FILE", TOOL_TEXT, &tool.plot, 0, 0, "order: positions as a picture", NULL, NULL },
	{ "json", NULL, TOOL_FLAG, &tool.json, 0, 0, "bench: a JSON object on each line", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-dataset", .about = about, .options = options, .all = &words, .notes = notes
};

/* What the command @work works with is closed after it. */
static int carry_out(int (*work)(struct tool *tool), char **operands)
{
	struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART | SA_RESETHAND };
	int status, closed;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	tool.as = kinds[kind];
	tool.operands = operands;
	while (operands[tool.operand_count])
		tool.operand_count++;
	if (tool.operand_count > TOOL_MOST_STORAGES)
		return tool_complain("at most %d storages", TOOL_MOST_STORAGES);
	status = work(&tool);
	closed = tool_close(&tool);
	if (status == TOOL_OK)
		status = closed;
	return status;
}

#define COMMAND(name)                                                                                        \
	static int run_##name(char **operands)                                                               \
	{                                                                                                    \
		return carry_out(tool_##name, operands);                                                     \
	}

COMMAND(make)
COMMAND(index)
COMMAND(upload)
COMMAND(info)
COMMAND(verify)
COMMAND(order)
COMMAND(bench)

static const struct tool_command commands[] = {
	{ "make", "PATH", 1, 1, run_make },           { "index", "URI", 1, 0, run_index },
	{ "upload", "SOURCE URI", 2, 0, run_upload }, { "info", "URI", 1, 0, run_info },
	{ "verify", "URI", 1, 0, run_verify },        { "order", "URI", 1, 0, run_order },
	{ "bench", "URI", 1, 0, run_bench },          { NULL, NULL, 0, 0, NULL },
};

int main(int argc, char **argv)
{
	int status = tool_parse(&program, argc, argv);

	return status < 0 ? tool_run(&program, commands) : status;
}
