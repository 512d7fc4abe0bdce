/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever is not to be had while a dataset is indexed, uploaded, mounted and
 * read: the call that cannot go on says so in one sentence, nothing crashes or
 * hangs, all that was had is given back, and nothing is left half done: no
 * manifest beside the data, no upload that a mount would take.
 */
#include "dataset_rig.h"

#include <dirent.h>

#include "../rig/scarce.h"
#include "mounted.h"

enum { MOST_CALLS = 1000, RECORD = 1000, RECORDS = 100, MANY = 700, ROWS = 32, EACH = 48 };

static char folder[] = "/tmp/weir-dataset-scarce-XXXXXX", path[64], manifest_path[64], aside[64], uri[80],
	    tree[64];
static const char *const manifests[] = { manifest_path };
static struct weir_context *context;
static struct weir_storage *storage, *target; /* with the records, and to upload to */
static uint32_t lookup, order;
static bool two_ranks;
static unsigned gathers, gather_fails;

/* A sentence that no call has but this one. */
static void forget_sentence(void)
{
	uint64_t bytes;

	(void)weir_parse_bytes("12Q", &bytes);
}

/* @error came of @what: 0, or with a sentence of its own. Return: @error. */
static int took(int error, const char *what)
{
	const char *says = weir_last_error();

	if (error > 0)
		fail_msg("%s returned %d", what, error);
	if (error < 0 && (strstr(says, "12Q") || strlen(says) < 10 || strchr(says, '\n')))
		fail_msg("%s failed (%d) without a sentence: \"%s\"", what, error,
			 strstr(says, "12Q") ? "" : says);
	forget_sentence();
	return error;
}

#define TOOK(call) took(call, #call)

/* Two ranks, of which the other one sends the same. Call number @gather_fails
 * fails, and leaves a pointer. */
static int gather_twice(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			void **all, size_t *counts)
{
	unsigned char *both = malloc(2 * bytes + 1);

	(void)communicator;
	assert_non_null(both);
	*all = both;
	if (++gathers == gather_fails) {
		free(both);
		(void)weir_storage_open(NULL, NULL, NULL, NULL); /* for a sentence */
		return -EIO;
	}
	if (bytes) {
		memcpy(both, mine, bytes);
		memcpy(both + bytes, mine, bytes);
	}
	counts[0] = counts[1] = bytes;
	return 0;
}

static struct weir_dataset_communicator pair = { .size = sizeof(pair), .ranks = 2, .gather = gather_twice };

static int use_names(struct weir_dataset *dataset)
{
	const char *names[] = { "record-7", "record-90", "none" };
	uint64_t number, numbers[3];
	unsigned char bytes[RECORD];
	char name[64];
	uint32_t file;
	ssize_t got;
	int error = TOOK(weir_dataset_find(dataset, "record-7", &number));

	if (!error)
		error = TOOK(weir_dataset_find_many(dataset, names, 3, numbers));
	if (!error && (number != 7 || numbers[1] != 90 || numbers[2] != UINT64_MAX))
		fail_msg("names were not found");
	if (!error)
		error = TOOK(weir_dataset_name(dataset, 7, name, sizeof(name)));
	if (!error)
		error = (got = weir_dataset_read(dataset, 7, 3, bytes, 500)) < 0 ? TOOK((int)got) : 0;
	if (!error)
		error = TOOK(weir_dataset_find_file(dataset, "records", &file, &number));
	if (!error)
		error = (got = weir_dataset_read_file(dataset, file, 5, bytes, 500)) < 0 ? TOOK((int)got) : 0;
	return error;
}

/* Some bytes of row @row are its record's. */
static void check_record(const struct weir_dataset_batch *batch, uint32_t row)
{
	const unsigned char *at = (unsigned char *)batch->host_rows + (size_t)row * batch->row_bytes;
	char name[32];

	snprintf(name, sizeof(name), "record-%llu", (unsigned long long)batch->samples[row]);
	for (uint32_t i = 0; i < RECORD; i += 99)
		assert_int_equal(at[i], rig_byte(rig_seed(name), i));
}

/* What is left of the epoch. A batch that could not be read is read again by
 * the next call. */
static int use_batches(struct weir_dataset *dataset)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	int error;

	do {
		error = TOOK(weir_dataset_bread(dataset, ROWS, &batch));
		for (uint32_t i = 0; i < batch.count && !error; i += 5)
			check_record(&batch, i);
	} while (!error && batch.count);
	return error;
}

static int use_dataset(struct weir_dataset *dataset)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset_quality quality = { .size = sizeof(quality) };
	char text[600];
	int error = TOOK(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = order)));

	if (!error)
		error = TOOK(weir_dataset_bread(dataset, ROWS, &batch));
	if (!error)
		error = TOOK(weir_dataset_bread_enqueue(dataset, ROWS, &batch));
	if (!error)
		error = TOOK(weir_dataset_position(dataset, text, sizeof(text)));
	if (!error)
		error = TOOK(weir_dataset_resume(dataset, text));
	if (!error)
		error = use_batches(dataset);
	if (!error)
		error = use_names(dataset);
	if (!error)
		error = TOOK(weir_dataset_quality(dataset, WEIR_OPTIONS(dataset_sequence, .order = order),
						  ROWS, &quality, NULL));
	return error;
}

static int use_mount(void)
{
	struct weir_dataset *dataset = NULL;
	int error, end;

	gathers = 0;
	error = TOOK(
		weir_dataset_mount(context, &storage, 1,
				   WEIR_OPTIONS(dataset_mount, .manifests = manifests,
						.chunk_bytes = 64 << 10, .cache_bytes = 256 << 10,
						.lookup = lookup, .communicator = two_ranks ? &pair : NULL),
				   &dataset));
	if (error)
		assert_null(dataset);
	else
		error = use_dataset(dataset);
	end = TOOK(weir_dataset_unmount(dataset));
	return error ? error : end;
}

/* The manifest is whole or not there, and nothing else is left. */
static int use_index(void)
{
	int error = TOOK(
		    weir_dataset_index(storage, aside, WEIR_OPTIONS(dataset_index, .format = "fixed:1000"))),
	    there;
	unsigned names = 0;
	DIR *list = opendir(folder);

	there = access(aside, F_OK) == 0;
	while (list && readdir(list))
		names++;
	if (list)
		closedir(list);
	assert_int_equal(there, error == 0);
	assert_int_equal(names, 5 + there); /* ., .., the records, their manifest, the folder */
	if (there)
		unlink(aside);
	return error;
}

/* A storage that is mounted has every sample, even where the upload failed
 * behind its last step. */
static int upload(const char *source, const char *format, uint64_t samples)
{
	static const unsigned char zeros[4096];
	struct weir_dataset *dataset = NULL;
	uint8_t seen[RECORDS] = { 0 };
	int error = TOOK(weir_storage_write(target, 0, zeros, sizeof(zeros))), mounted; /* no manifest */

	if (error)
		return error;
	error = TOOK(weir_dataset_upload(&target, 1, source, WEIR_OPTIONS(dataset_index, .format = format)));
	if (error)
		(void)scarce_end();
	mounted = TOOK(weir_dataset_mount(context, &target, 1, NULL, &dataset));
	if (mounted)
		return error ? error : mounted;
	if (error) {
		must(weir_dataset_sequence(dataset, NULL));
		assert_int_equal(rig_read_epoch(dataset, ROWS, seen, 1, UINT64_MAX), samples);
		rig_all_once(seen, samples);
	}
	mounted = TOOK(weir_dataset_unmount(dataset));
	return error ? error : mounted;
}

static int use_upload(void)
{
	int error = upload(path, "fixed:1000", RECORDS);

	return error ? error : upload(tree, "folder", 6);
}

static int (*use)(void);

static unsigned open_files(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned count = 0;

	while (list && readdir(list))
		count++;
	if (list)
		closedir(list);
	return count;
}

static void open_all(void)
{
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 2), &context));
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 2, .depth = 8), &storage));
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1, .depth = 8), &target));
	forget_sentence();
}

/* One time, with call @nth refused. Return: how many calls there were. */
static size_t once(size_t nth, bool and_later, int *error)
{
	unsigned files = open_files();
	size_t were;

	scarce_begin(nth, and_later);
	*error = use();
	were = scarce_end();
	if (open_files() != files)
		fail_msg("call %zu refused%s: %u files stay open", nth, and_later ? " and all later" : "",
			 open_files() - files);
	return were;
}

static void close_all(void)
{
	must(weir_storage_close(target));
	must(weir_storage_close(storage));
	must(weir_context_close(context));
}

/* With nothing refused. Return: things that the library keeps of that: what it
 * remembers of closed objects.
 */
static size_t kept_always(void)
{
	size_t where, before = scarce_kept(&where);
	int error;

	open_all();
	once(0, false, &error);
	if (error)
		fail_msg("nothing was refused, and it failed (%d)", error);
	close_all();
	return scarce_kept(&where) - before;
}

/* Each in its turn, until there are no more; or all from each on. Behind the
 * first ones, which are the library's own, most are the same few of many
 * commands to storages: some of these. Nothing is kept in the end. */
static void each_refused(int (*what)(void))
{
	static const size_t step[] = { 3, 11 };
	size_t refused = 0, kept, where = 0, before, always;
	int error;

	use = what;
	kept_always(); /* and what the process has once and for all */
	always = kept_always();
	for (unsigned mode = 0; mode < 2; mode++) {
		before = scarce_kept(&where);
		open_all();
		for (size_t nth = 1; once(nth, mode, &error) >= nth; nth += nth < EACH ? 1 : step[mode]) {
			assert_true(nth < MOST_CALLS);
			refused += error != 0;
		}
		close_all();
		kept = scarce_kept(&where) - before;
		if (kept != always)
			fail_msg("%zu things are kept, not %zu, one asked for at %#zx of its library", kept,
				 always, where);
	}
	assert_true(refused > 5);
}

static void test_mount(void **state)
{
	(void)state;
	each_refused(use_mount);
}

static int use_pair(void)
{
	int error;

	two_ranks = true;
	error = use_mount();
	two_ranks = false;
	return error;
}

static void test_ranks(void **state)
{
	(void)state;
	order = WEIR_DATASET_FULL;
	lookup = WEIR_DATASET_AVL;
	each_refused(use_pair);
}

/* What a communicator points to when it fails is nobody's. */
static void test_gather_fails(void **state)
{
	int error;

	(void)state;
	open_all();
	use = use_pair;
	for (gather_fails = 1; gather_fails < 5; gather_fails++) {
		once(0, false, &error);
		assert_int_equal(error != 0, gathers >= gather_fails);
	}
	gather_fails = 0;
	close_all();
}

/* A failure of one rank is told to the others: none waits for what does not come. */
static void test_failures_are_reported(void **state)
{
	struct weir_dataset *dataset;
	char text[600];

	(void)state;
	open_all();
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .communicator = &pair),
				&dataset));
	gathers = 0;
	assert_int_equal(weir_dataset_resume(dataset, "no position"), -EINVAL);
	assert_int_equal(gathers, 1);
	assert_int_equal(weir_dataset_position(dataset, text, sizeof(text)), -EINVAL);
	assert_int_equal(gathers, 2);
	must(weir_dataset_unmount(dataset));
	close_all();
}

/* No batch is under way: each chunk of the cache may make room. */
static void no_pin_is_left(const struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->cache.count; i++)
		if (dataset->cache.slots[i].pins)
			fail_msg("slot %u of the cache has %u pins", i, dataset->cache.slots[i].pins);
}

/* An epoch of @dataset with call @nth refused: who calls again after an error gets each sample once, and its
 * own bytes; no chunk stays pinned. Return: calls there were. */
static size_t epoch_with_refusal(struct weir_dataset *dataset, uint64_t samples, size_t nth)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct weir_dataset_stats stats = { .size = sizeof(stats) };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	uint8_t seen[MANY] = { 0 };
	unsigned errors = 0;
	bool over = false;
	size_t calls;

	must(weir_dataset_sequence(
		dataset, WEIR_OPTIONS(dataset_sequence, .epoch = nth, .order = order, .buffer_chunks = 2)));
	must(weir_stats(storage, &before));
	scarce_begin(nth, false);
	while (!over) {
		int error = TOOK(weir_dataset_bread(dataset, ROWS, &batch));

		errors += error != 0;
		assert_true(errors < 2);
		over = !error && !batch.count;
		for (uint32_t i = 0; i < batch.count && !error; i++)
			seen[batch.samples[i]]++;
		for (uint32_t i = 0; i < batch.count && !error; i++)
			check_record(&batch, i);
	}
	calls = scarce_end();
	rig_all_once(seen, samples);
	no_pin_is_left(dataset);
	must(weir_stats(storage, &after));
	must(weir_dataset_stats(dataset, &stats));
	assert_int_equal(stats.reads,
			 after.commands - before.commands); /* what was not read does not count */
	assert_int_equal(stats.read_bytes, after.bytes_read - before.bytes_read);
	assert_int_equal(stats.samples, samples);
	return calls;
}

static void each_epoch_with_refusal(const char *const *of)
{
	struct weir_dataset *dataset;
	size_t nth = 1, calls;

	do {
		must(weir_dataset_mount(context, &storage, 1,
					WEIR_OPTIONS(dataset_mount, .manifests = of, .chunk_bytes = 64 << 10,
						     .cache_bytes = 256 << 10),
					&dataset));
		calls = epoch_with_refusal(dataset, MANY, nth);
		must(weir_dataset_unmount(dataset));
	} while (nth++ <= calls);
	assert_true(nth > 10);
}

/* The program goes on after a launch, or memory, that was not to be had: chunks that were to be read are read
 * then, and no sample is passed over. */
static void test_epoch(void **state)
{
	char larger[80], manifest[80];
	const char *const of[] = { manifest };

	(void)state;
	snprintf(larger, sizeof(larger), "file:%s/larger", folder);
	snprintf(manifest, sizeof(manifest), "%s/larger.weir", folder);
	rig_records(larger + 5, MANY, RECORD);
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 2), &context));
	must(weir_storage_open(context, larger, WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)),
			       &storage));
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	for (order = 0; weir_dataset_order_name(order); order++)
		each_epoch_with_refusal(of);
	must(weir_storage_close(storage));
	must(weir_context_close(context));
	unlink(larger + 5);
	unlink(manifest);
}

/* A name is not found while there is no memory for the index of names, and is found once there is some. */
static void test_names(void **state)
{
	struct weir_dataset *dataset;
	size_t nth = 1, calls;
	uint64_t number;
	int error;

	(void)state;
	open_all();
	do {
		must(weir_dataset_mount(
			context, &storage, 1,
			WEIR_OPTIONS(dataset_mount, .manifests = manifests, .lookup = nth % 2), &dataset));
		scarce_begin(nth, false);
		error = weir_dataset_find(dataset, "record-7", &number);
		calls = scarce_end();
		assert_int_equal(error, calls >= nth ? -ENOMEM : 0);
		must(weir_dataset_find(dataset, "record-7", &number));
		assert_int_equal(number, 7);
		must(weir_dataset_unmount(dataset));
	} while (nth++ <= calls);
	assert_true(nth > 3);
	close_all();
}

static void test_index(void **state)
{
	(void)state;
	each_refused(use_index);
}

static void test_upload(void **state)
{
	(void)state;
	each_refused(use_upload);
}

static int set_up(void **state)
{
	int error;

	(void)state;
	scarce_alone();
	scarce_begin(0, false); /* so that what is kept counts from here */
	(void)scarce_end();
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/records", folder);
	snprintf(uri, sizeof(uri), "file:%s/records", folder);
	snprintf(manifest_path, sizeof(manifest_path), "%s/records.weir", folder);
	snprintf(aside, sizeof(aside), "%s/aside.weir", folder);
	snprintf(tree, sizeof(tree), "%s/tree", folder);
	rig_records(path, RECORDS, RECORD);
	rig_folder(tree, 6, 2, 10, 3000);
	if (weir_context_open("cpu", NULL, &context) || weir_storage_open(context, uri, NULL, &storage))
		return -1;
	error = weir_dataset_index(storage, manifest_path,
				   WEIR_OPTIONS(dataset_index, .format = "fixed:1000"));
	return error | weir_storage_close(storage) | weir_context_close(context);
}

static int tear_down(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mount),        cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_gather_fails), cmocka_unit_test(test_names),
		cmocka_unit_test(test_index),        cmocka_unit_test(test_upload),
		cmocka_unit_test(test_epoch),        cmocka_unit_test(test_failures_are_reported),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("dataset_scarce", tests, set_up, tear_down);
}
