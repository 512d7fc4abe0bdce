/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-dataset makes of its command line: stand-ins for its commands and for the library note what they
 * are given. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/dataset.h>
#include <weir/weir.h>

#include "backend/error.h"

enum { MOST_URIS = 4, TEXT_BYTES = 256 };

/** noted - the latest command, its operands, and what was opened and mounted for it */
static struct {
	const char *command, *refused;
	char context[TEXT_BYTES], uris[MOST_URIS][TEXT_BYTES], manifests[MOST_URIS][TEXT_BYTES];
	unsigned uri_count, mounted_count, closed, unmounted, communicators_closed;
	uint32_t transfer;
	struct weir_dataset_mount_options mount;
	int status;
} noted;

static int refuse(const char *what)
{
	return noted.refused && !strcmp(noted.refused, what) ? weir_fail(EIO, "%s is refused", what) : 0;
}

static void close_communicator(struct weir_dataset_communicator *communicator)
{
	noted.communicators_closed += communicator != NULL;
}

static int open_communicator(const char *name, struct weir_dataset_communicator **out)
{
	static struct weir_dataset_communicator alone = { .ranks = 1, .close = close_communicator };

	*out = &alone;
	return strcmp(name, "auto") ? -EINVAL : refuse("communicator");
}

static int agree(struct weir_dataset_communicator *communicator, int error)
{
	return communicator ? error : -EINVAL;
}

static int open_context(const char *name, const void *options, struct weir_context **out)
{
	(void)options;
	(void)snprintf(noted.context, sizeof(noted.context), "%s", name);
	*out = (struct weir_context *)&noted;
	return refuse("context");
}

static int close_context(struct weir_context *context)
{
	noted.closed += context != NULL;
	return refuse("close");
}

static int open_storage(struct weir_context *context, const char *uri,
			const struct weir_storage_options *options, struct weir_storage **out)
{
	(void)context;
	(void)snprintf(noted.uris[noted.uri_count++ % MOST_URIS], TEXT_BYTES, "%s", uri);
	noted.transfer = options->max_transfer_bytes;
	*out = (struct weir_storage *)&noted;
	return refuse("storage");
}

static int mount_dataset(struct weir_context *context, struct weir_storage *const *storages, unsigned count,
			 const struct weir_dataset_mount_options *options, struct weir_dataset **out)
{
	(void)context;
	(void)storages;
	noted.mount = *options;
	noted.mounted_count = count;
	for (unsigned i = 0; i < count && i < MOST_URIS; i++)
		(void)snprintf(noted.manifests[i], TEXT_BYTES, "%s",
			       options->manifests[i] ? options->manifests[i] : "-");
	*out = (struct weir_dataset *)&noted;
	return refuse("mount");
}

static int unmount_dataset(struct weir_dataset *dataset)
{
	noted.unmounted += dataset != NULL;
	return refuse("unmount");
}

static const char *order_name(uint32_t order)
{
	static const char *const names[] = { "shuffled-chunk", "chunk", "full" };

	return order < 3 ? names[order] : NULL;
}

static int run_dataset(int count, char **words);

#define weir_dataset_communicator_open open_communicator
#define weir_dataset_agree             agree
#define weir_dataset_mount             mount_dataset
#define weir_dataset_unmount           unmount_dataset
#define weir_dataset_order_name        order_name
#define weir_context_open              open_context
#define weir_context_close             close_context
#define weir_storage_open              open_storage
#define main                           run_dataset
#include "tools/weir-dataset/main.c"
#undef main

static int note_command(struct tool *of, const char *name, bool mounts)
{
	noted.command = name;
	if (mounts && !tool_mount(of))
		return TOOL_FAILED;
	return noted.status;
}

int tool_make(struct tool *of)
{
	return note_command(of, "make", false);
}

int tool_index(struct tool *of)
{
	int error = tool_open(of, 0, true);

	return error ? tool_failed() : note_command(of, "index", false);
}

int tool_upload(struct tool *of)
{
	int error = tool_open(of, 1, true);

	return error ? tool_failed() : note_command(of, "upload", false);
}

int tool_info(struct tool *of)
{
	return note_command(of, "info", true);
}

int tool_verify(struct tool *of)
{
	return note_command(of, "verify", true);
}

int tool_order(struct tool *of)
{
	return note_command(of, "order", true);
}

int tool_bench(struct tool *of)
{
	return note_command(of, "bench", true);
}

/* As a program begins. */
static int run_line(const char *line)
{
	static struct tool begun;
	const char *refused = noted.refused;
	int status = noted.status;

	if (!begun.context_name)
		begun = tool;
	tool = begun;
	kind = 0;
	memset(&noted, 0, sizeof(noted));
	noted.refused = refused;
	noted.status = status;
	return capture_run(run_dataset, line);
}

static void test_each_option_is_where_it_belongs(void **state)
{
	(void)state;
	assert_int_equal(
		run_line("weir-dataset bench file:a virt:b --format f --manifest m --checks --as tar "
			 "--samples 5G"
			 " --bytes 1K-4K --classes 6G --context c --order full --seed 7G --batch 11 --buffer "
			 "12"
			 " --chunk 13 --cache 8G --row 14 --batches 15 --lookup avl --threads 16 --depth 17"
			 " --peers p --no-drop --ramp 0.5 --parts lookup,peers --runs 10 --seconds 1.25 "
			 "--plot q --json"),
		0);
	assert_string_equal(noted.command, "bench");
	assert_int_equal(tool.operand_count, 2);
	assert_string_equal(tool.format, "f");
	assert_string_equal(tool.manifest, "m");
	assert_true(tool.checks && tool.no_drop && tool.json && !tool.all_orders);
	assert_string_equal(tool.as, "tar");
	assert_true(tool.samples == 5ull << 30 && tool.classes == 6ull << 30 && tool.seed == 7ull << 30);
	assert_true(tool.least_bytes == 1024 && tool.most_bytes == 4096 && tool.cache_bytes == 8ull << 30);
	assert_string_equal(tool.context_name, "c");
	assert_int_equal(tool.order, WEIR_DATASET_FULL);
	assert_true(tool.batch == 11 && tool.buffer_chunks == 12 && tool.chunk_bytes == 13 &&
		    tool.row_bytes == 14);
	assert_true(tool.batches == 15 && tool.lookup == WEIR_DATASET_AVL && tool.threads == 16 &&
		    tool.depth == 17);
	assert_true(tool.ramp == 0.5 && tool.parts == (TOOL_LOOKUP | TOOL_PEERS) && tool.runs == 10 &&
		    tool.seconds == 1.25);
	assert_string_equal(tool.peers, "p");
	assert_string_equal(tool.plot, "q");
	/* what is mounted gets it */
	assert_string_equal(noted.context, "c");
	assert_int_equal(noted.uri_count, 2);
	assert_int_equal(noted.mounted_count, 2);
	assert_string_equal(noted.uris[0], "file:a");
	assert_string_equal(noted.uris[1], "virt:b");
	assert_string_equal(noted.manifests[0], "m");
	assert_string_equal(noted.manifests[1], "m");
	assert_int_equal(noted.transfer, 256 << 10);
	assert_true(noted.mount.chunk_bytes == 13 && noted.mount.cache_bytes == 8ull << 30 &&
		    noted.mount.row_bytes == 14);
	assert_true(noted.mount.batches == 15 && noted.mount.lookup == WEIR_DATASET_AVL &&
		    noted.mount.communicator);
	assert_true(noted.closed == 1 && noted.unmounted == 1 && noted.communicators_closed == 1);
}

static void test_what_is_not_given_is_the_usual(void **state)
{
	(void)state;
	assert_int_equal(run_line("weir-dataset info virt:1M"), 0);
	assert_string_equal(noted.context, "cpu");
	assert_true(tool.samples == 1000 && tool.least_bytes == 4096 && tool.most_bytes == 4096 &&
		    tool.classes == 10);
	assert_true(tool.batch == 256 && tool.threads == 8 && tool.seconds == 3 && tool.runs == 3 &&
		    tool.depth == 64);
	assert_true(tool.all_orders && !tool.parts && !tool.checks && !tool.no_drop && !tool.json);
	assert_string_equal(tool.as, "folder");
	assert_string_equal(noted.manifests[0], "-"); /* which only files have a place for */
	assert_true(!noted.mount.chunk_bytes && !noted.mount.cache_bytes && !noted.mount.row_bytes &&
		    !noted.mount.batches);
	assert_int_equal(noted.mount.lookup, WEIR_DATASET_BUCKETS);
}

/* Of file:PATH the manifest is PATH.weir, if it is there, or is to be written. */
static void test_manifests(void **state)
{
	char path[] = "/tmp/weir-dataset-options-XXXXXX", line[TEXT_BYTES], manifest[TEXT_BYTES];
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	(void)close(file);
	(void)snprintf(manifest, sizeof(manifest), "%s.weir", path);
	(void)snprintf(line, sizeof(line), "weir-dataset verify file:%s?ro=1", path);
	assert_int_equal(run_line(line), 0);
	assert_string_equal(noted.manifests[0], "-");
	assert_int_equal(rename(path, manifest), 0);
	assert_int_equal(run_line(line), 0);
	assert_string_equal(noted.manifests[0], manifest);
	assert_int_equal(unlink(manifest), 0);
}

static void test_words_of_options(void **state)
{
	static const struct {
		const char *line;
		int status;
		uint32_t order, parts;
		uint64_t least, most;
	} rows[] = {
		{ "weir-dataset order a --order shuffled-chunk", 0, 0, 0, 4096, 4096 },
		{ "weir-dataset order a --order chunk", 0, 1, 0, 4096, 4096 },
		{ "weir-dataset bench a --parts orders", 0, 0, 1, 4096, 4096 },
		{ "weir-dataset bench a --parts peers,orders,lookup", 0, 0, 7, 4096, 4096 },
		{ "weir-dataset make a --bytes 0", 0, 0, 0, 0, 0 },
		{ "weir-dataset make a --bytes 8388607", 0, 0, 0, 8388607, 8388607 },
		{ "weir-dataset make a --bytes 7-7", 0, 0, 0, 7, 7 },
		{ "weir-dataset make a --bytes 8M", 2, 0, 0, 0, 0 },
		{ "weir-dataset make a --bytes 7-6", 2, 0, 0, 0, 0 },
		{ "weir-dataset make a --bytes 7-", 2, 0, 0, 0, 0 },
		{ "weir-dataset order a --order none", 2, 0, 0, 0, 0 },
		{ "weir-dataset bench a --parts order", 2, 0, 0, 0, 0 },
		{ "weir-dataset bench a --parts orders,", 0, 0, 1, 4096, 4096 },
		{ "weir-dataset bench a --runs 16", 2, 0, 0, 0, 0 },
		{ "weir-dataset bench a --batches 17", 2, 0, 0, 0, 0 },
		{ "weir-dataset upload a", 2, 0, 0, 0, 0 },
		{ "weir-dataset info", 2, 0, 0, 0, 0 },
		{ "weir-dataset make a b", 2, 0, 0, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (run_line(rows[i].line) != rows[i].status)
			fail_msg("%s: %s", rows[i].line, captured_errors);
		if (rows[i].status) {
			assert_null(noted.command);
			continue;
		}
		assert_true(tool.order == rows[i].order && tool.parts == rows[i].parts);
		assert_true(tool.least_bytes == rows[i].least && tool.most_bytes == rows[i].most);
	}
}

/* Whatever fails is said, and is exit status 1; what was opened is closed. */
static void test_each_failure_is_an_exit_status(void **state)
{
	static const char *const refused[] = { "communicator", "context", "storage",
					       "mount",        "unmount", "close" };
	static const char *const lines[] = { "info a", "verify a", "order a", "bench a" };
	char line[TEXT_BYTES], sentence[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		for (unsigned j = 0; j < sizeof(lines) / sizeof(lines[0]); j++) {
			noted.refused = refused[i];
			(void)snprintf(line, sizeof(line), "weir-dataset %s", lines[j]);
			(void)snprintf(sentence, sizeof(sentence), "weir-dataset: %s is refused\n",
				       refused[i]);
			assert_int_equal(run_line(line), 1);
			assert_non_null(strstr(captured_errors, sentence));
		}
	noted.refused = "close"; /* of commands that mount nothing, too */
	assert_int_equal(run_line("weir-dataset index file:a"), 1);
	assert_int_equal(run_line("weir-dataset upload a virt:1M"), 1);
	assert_int_equal(noted.uri_count, 1);
	assert_string_equal(noted.uris[0], "virt:1M");
	noted.refused = NULL;
	noted.status = 1; /* the command's own */
	assert_int_equal(run_line("weir-dataset make a"), 1);
	assert_int_equal(run_line("weir-dataset bench a"), 1);
	noted.status = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_option_is_where_it_belongs),
		cmocka_unit_test(test_what_is_not_given_is_the_usual),
		cmocka_unit_test(test_manifests),
		cmocka_unit_test(test_words_of_options),
		cmocka_unit_test(test_each_failure_is_an_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
