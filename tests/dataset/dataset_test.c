/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets from source to mini-batch: every byte, each sample once, and every failure with its sentence. */
#include "dataset_rig.h"

#include <weir/dlfs.h>

#include "manifest.h"
#include "sum.h"

static char folder[] = "/tmp/weir-dataset-test-XXXXXX";
static struct weir_context *context;

static const char *in_folder(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, 256, "%s/%s", folder, name);
	return path;
}

static struct weir_storage *open_file(const char *path, const char *keys)
{
	struct weir_storage *storage;
	char uri[300];

	snprintf(uri, sizeof(uri), "file:%s%s", path, keys);
	must(weir_storage_open(context, uri, NULL, &storage));
	return storage;
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	return weir_context_open(test_context_name(), NULL, &context);
}

static int tear_down(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return weir_context_close(context) | (system(command) != 0);
}

/* One epoch of each order. */
static void read_orders(struct weir_dataset *dataset, uint64_t samples, uint32_t rows, uint32_t every)
{
	uint8_t *seen = malloc(samples);

	for (uint32_t order = WEIR_DATASET_SHUFFLED_CHUNK; order <= WEIR_DATASET_FULL; order++) {
		memset(seen, 0, samples);
		must(weir_dataset_sequence(
			dataset, WEIR_OPTIONS(dataset_sequence, .seed = 7, .epoch = order, .order = order)));
		assert_int_equal(rig_read_epoch(dataset, rows, seen, every, UINT64_MAX), samples);
		rig_all_once(seen, samples);
	}
	free(seen);
}

/* Records of odd lengths too, so that rows are put together from words that are not aligned. */
static void records_of(size_t bytes, uint64_t count, const char *format, const char *keys,
		       uint32_t cache_bytes, uint32_t device)
{
	const char *path = in_folder("records"), *manifest = in_folder("records.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	struct weir_dataset_info info = { .size = sizeof(info) };

	rig_records(path, count, bytes);
	storage = open_file(path, keys);
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = format)));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = &manifest,
					     .cache_bytes = cache_bytes, .chunk_bytes = 64 << 10,
					     .device = device),
				&dataset));
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.samples, count);
	assert_int_equal(info.longest_bytes, bytes);
	assert_true(info.cache_bytes <= cache_bytes);
	read_orders(dataset, count, 100, 3);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

static void test_records(void **state)
{
	(void)state;
	records_of(512, 3000, "fixed:512", "", 1 << 20, 0);
	records_of(77, 5000, "fixed:77", "", 256 << 10, 0); /* the smallest cache: evictions */
	records_of(4096, 500, "fixed:4096", "", 1 << 20, 0);
	records_of(4096, 500, "fixed:4096", "?block=4096", 1 << 20, 0);
	records_of(100001, 60, "fixed:100001", "", 1 << 20, 0); /* longer than a chunk */
}

static void test_slow_storage(void **state)
{
	(void)state;
	records_of(512, 1500, "fixed:512", "?lat_us=200", 512 << 10, 0);
}

static void test_upload(void **state)
{
	const char *source = in_folder("source");
	struct weir_storage *storages[3];
	struct weir_dataset *dataset;
	struct weir_dataset_info info = { .size = sizeof(info) };
	uint64_t number;
	char data[4096], name[64];

	(void)state;
	rig_folder(source, 1000, 10, 1, 3000);
	for (unsigned i = 0; i < 3; i++)
		must(weir_storage_open(context, "virt:4M", NULL, &storages[i]));
	must(weir_dataset_upload(storages, 3, source, NULL));
	must(weir_dataset_mount(context, storages, 3,
				WEIR_OPTIONS(dataset_mount, .cache_bytes = 1 << 20, .chunk_bytes = 64 << 10),
				&dataset));
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.samples, 1000);
	assert_int_equal(info.labels, 10);
	read_orders(dataset, 1000, 64, 1);
	for (uint32_t i = 0; i < 1000; i += 37) { /* by name */
		struct weir_dataset_sample sample = { .size = sizeof(sample) };
		ssize_t bytes;

		snprintf(name, sizeof(name), "class%02u/sample%06u.bin", i % 10, i);
		assert_int_equal(weir_dataset_find(dataset, name, &number), 0);
		must(weir_dataset_sample(dataset, number, &sample));
		assert_int_equal(sample.label, i % 10);
		bytes = weir_dataset_read(dataset, number, 0, data, sizeof(data));
		assert_int_equal(bytes, sample.length);
		for (ssize_t at = 0; at < bytes; at++)
			assert_int_equal((unsigned char)data[at], rig_byte(rig_seed(name), (uint64_t)at));
	}
	assert_int_equal(weir_dataset_find(dataset, "class00/none", &number), -ENOENT);
	must(weir_dataset_unmount(dataset));
	must(weir_dataset_mount(context, storages, 3,
				WEIR_OPTIONS(dataset_mount, .cache_bytes = 1 << 20, .chunk_bytes = 64 << 10,
					     .row_bytes = 512),
				&dataset));
	read_orders(dataset, 1000, 64, 7); /* samples that are cut, and whose lengths are not */
	must(weir_dataset_unmount(dataset));
	{
		struct weir_storage *swapped[] = { storages[1], storages[0], storages[2] };

		refused(weir_dataset_mount(context, swapped, 3, NULL, &dataset), -EINVAL, "part 1 of 3",
			"in the order of the upload");
		refused(weir_dataset_mount(context, storages, 2, NULL, &dataset), -EINVAL, "part 0 of 3",
			"name all storages");
	}
	for (unsigned i = 0; i < 3; i++)
		must(weir_storage_close(storages[i]));
}

/* Each wave width puts rows together: from aligned words, and from words that are not. */
static void test_widths(void **state)
{
	struct weir_context *before = context;

	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		must(weir_context_open("cpu", WEIR_OPTIONS(context, .wave_lanes = test_width(i)), &context));
		records_of(77, 2000, "fixed:77", "", 512 << 10, 0);
		records_of(512, 700, "fixed:512", "", 512 << 10, 0);
		must(weir_context_close(context));
	}
	context = before;
}

/* Every batch enqueued, every other pair of them waited for, or every one. */
static int next_batch(struct weir_dataset *dataset, uint32_t rows, struct weir_dataset_batch *batch,
		      unsigned way, unsigned step)
{
	return way > step % 4 / 2 ? weir_dataset_bread(dataset, rows, batch)
				  : weir_dataset_bread_enqueue(dataset, rows, batch);
}

/* Kernels that are launched behind a batch find its rows, while the host has gone on to the next one. */
static void test_enqueue(void **state)
{
	enum { COUNT = 2000, BYTES = 120, ROWS = 32 };
	const char *path = in_folder("enqueued"), *manifest = in_folder("enqueued.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	uint64_t sums, want = 0, samples = 0, epochs = 0, total = 0;

	(void)state;
	rig_records(path, COUNT, BYTES);
	for (unsigned i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "record-%u", i);
		for (unsigned at = 0; at < BYTES; at++)
			want += rig_byte(rig_seed(name), at);
	}
	storage = open_file(path, "?lat_us=100");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:120")));
	must(weir_alloc(context, sizeof(struct test_dataset_sum), &sums));
	for (uint32_t kind = 6; kind < 18; kind++) {
		uint32_t batches = kind / 3, way = kind % 3, step = 0;

		must(weir_dataset_mount(context, &storage, 1,
					WEIR_OPTIONS(dataset_mount, .manifests = &manifest,
						     .cache_bytes = 256 << 10, .chunk_bytes = 64 << 10,
						     .device = 1, .batches = batches),
					&dataset));
		must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = batches)));
		for (samples = 0;; samples += batch.count) {
			struct test_dataset_sum_args args = { .sum = sums };

			must(next_batch(dataset, ROWS, &batch, way, step++));
			if (!batch.count)
				break;
			args.rows = batch.rows;
			args.lengths = batch.lengths;
			args.count = batch.count;
			args.row_bytes = batch.row_bytes;
			must(weir_launch(context, "test_dataset_sum", 1, ROWS, &args, sizeof(args)));
		}
		must(weir_sync(context));
		assert_int_equal(samples, COUNT);
		must(weir_copy_from_device(context, &total, sums, sizeof(total)));
		assert_int_equal(total, want * ++epochs);
		must(weir_dataset_unmount(dataset));
	}
	must(weir_free(context, sums));
	must(weir_storage_close(storage));
}

/* The paper's seven calls, and the V bit: a sample whose chunk is in the cache is read without its storage.
 */
static void test_dlfs(void **state)
{
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	const char *folder_name = in_folder("dlfs"), *name = "class03/sample000003.bin";
	unsigned char data[4096];
	uint8_t seen[100] = { 0 };
	ssize_t bytes;
	int64_t file;

	(void)state;
	rig_folder(folder_name, 100, 5, 100, 2000);
	must(weir_storage_open(context, "virt:4M", NULL, &storage));
	must(dlfs_mount(context, &storage, 1, folder_name, NULL, &dataset));
	file = dlfs_open(dataset, name);
	assert_true(file >= 0);
	bytes = dlfs_read(dataset, file, data, sizeof(data), 0);
	assert_int_equal(bytes, 100 + 3 * 7919 % 1901);
	for (ssize_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], rig_byte(rig_seed(name), (uint64_t)i));
	assert_int_equal(dlfs_open(dataset, "none"), -ENOENT);
	must(dlfs_sequence(dataset, 1, 0));
	must(dlfs_bread(dataset, 100, &batch));
	for (uint32_t i = 0; i < batch.count; i++) {
		seen[batch.samples[i]]++;
		rig_check_row(dataset, &batch, i);
	}
	rig_all_once(seen, 100);
	must(weir_stats(storage, &before));
	memset(data, 0, sizeof(data));
	assert_int_equal(dlfs_read(dataset, file, data, sizeof(data), 0), bytes);
	for (ssize_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], rig_byte(rig_seed(name), (uint64_t)i));
	must(weir_stats(storage, &after));
	assert_int_equal(after.commands, before.commands); /* the V bit */
	must(dlfs_close(dataset, file));
	must(dlfs_unmount(dataset));
	must(weir_storage_close(storage));
}

/* What six epochs count, through a cache of @slots chunks, in groups of four chunks. */
static struct weir_dataset_stats stats_through(const char *path, const char *manifest, uint32_t slots,
					       uint32_t rows)
{
	enum { COUNT = 4000, EPOCHS = 6 };
	struct weir_storage *storage = open_file(path, "");
	struct weir_dataset *dataset;
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct weir_dataset_stats stats = { .size = sizeof(stats) };

	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = &manifest,
					     .cache_bytes = slots * (64 << 10), .chunk_bytes = 64 << 10),
				&dataset));
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.chunks, 32);
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		uint8_t seen[COUNT] = { 0 };

		must(weir_dataset_sequence(
			dataset, WEIR_OPTIONS(dataset_sequence, .epoch = epoch, .buffer_chunks = 4)));
		rig_read_epoch(dataset, rows, seen, 50, UINT64_MAX);
		rig_all_once(seen, COUNT);
	}
	must(weir_dataset_stats(dataset, &stats));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
	return stats;
}

/* With a cache smaller than the dataset, what is used first is still there, in this epoch and in the next. */
static void test_eviction(void **state)
{
	const char *path = in_folder("evicted"), *manifest = in_folder("evicted.weir");
	struct weir_storage *storage;
	struct weir_dataset_stats stats;

	(void)state;
	rig_records(path, 4000, 512);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:512")));
	must(weir_storage_close(storage));
	stats = stats_through(path, manifest, 16, 64);
	/* the first chunk that nobody has would give 141 in the place of 116, the oldest nearly 192 */
	assert_in_range(stats.chunk_loads, 32, 120);
	stats = stats_through(path, manifest, 5, 8);
	/* chunks that are read ahead at the cost of this group's would give 1198 in the place of 619 */
	assert_in_range(stats.reads, 192, 700);
}

/* Lines of stderr that say @what, since it goes to @file. */
static unsigned lines_with(FILE *file, const char *what)
{
	unsigned found = 0;
	char line[1000];

	rewind(file);
	while (fgets(line, sizeof(line), file))
		found += strstr(line, what) != NULL;
	return found;
}

/* An epoch of the records of test_cache_full() with buffers of @buffer_chunks. Return: samples that found the
 * cache full; each is there. */
static uint64_t cache_full_samples(struct weir_dataset *dataset, uint32_t buffer_chunks)
{
	struct weir_dataset_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	uint8_t seen[2000] = { 0 };

	must(weir_dataset_stats(dataset, &before));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_CHUNK,
							 .buffer_chunks = buffer_chunks)));
	assert_int_equal(rig_read_epoch(dataset, 64, seen, 5, UINT64_MAX), 2000);
	rig_all_once(seen, 2000);
	must(weir_dataset_stats(dataset, &after));
	return after.cache_full_samples - before.cache_full_samples;
}

/* Buffers of more chunks than the cache has: said once, and counted. */
static void test_cache_full(void **state)
{
	const char *path = in_folder("crowded"), *manifest = in_folder("crowded.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	FILE *said = tmpfile();
	int kept = dup(STDERR_FILENO);

	(void)state;
	rig_records(path, 2000, 512);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:512")));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10),
				&dataset));
	assert_int_equal(cache_full_samples(dataset, 0), 0);
	assert_non_null(said);
	assert_true(dup2(fileno(said), STDERR_FILENO) >= 0);
	assert_true(cache_full_samples(dataset, 16) > 100);
	assert_true(cache_full_samples(dataset, 16) > 100);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	assert_int_equal(lines_with(said, "need all 4 chunks of the cache"), 1);
	close(kept);
	fclose(said);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Two epochs of 2000 records, mounted with a cache of @cache_bytes: what is counted is what happened. */
static struct weir_dataset_stats counted(struct weir_storage *storage, const char *manifest,
					 uint64_t cache_bytes)
{
	struct weir_dataset *dataset;
	struct weir_dataset_stats stats = { .size = sizeof(stats) };
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };

	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .chunk_bytes = 64 << 10,
					     .cache_bytes = cache_bytes),
				&dataset));
	must(weir_stats(storage, &before));
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		uint8_t seen[2000] = { 0 };

		must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .epoch = epoch)));
		assert_int_equal(rig_read_epoch(dataset, 64, seen, 5, UINT64_MAX), 2000);
		rig_all_once(seen, 2000);
	}
	must(weir_dataset_stats(dataset, &stats));
	must(weir_stats(storage, &after));
	must(weir_dataset_unmount(dataset));
	assert_int_equal(stats.batches, 2 * 32);
	assert_int_equal(stats.samples, 2 * 2000);
	assert_int_equal(stats.reads, after.commands - before.commands);
	assert_int_equal(stats.copied_bytes, 512 * (2 * 2000 - stats.direct_samples));
	return stats;
}

static void test_counters(void **state)
{
	const char *path = in_folder("tallied"), *manifest = in_folder("tallied.weir");
	struct weir_storage *storage;
	struct weir_dataset_stats stats;

	(void)state;
	rig_records(path, 2000, 512);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:512")));
	stats = counted(storage, manifest, 4 << 20); /* all chunks stay */
	assert_int_equal(stats.chunk_loads, 16);
	assert_int_equal(stats.evictions, 0);
	assert_int_equal(stats.direct_samples, 0);
	assert_int_equal(stats.read_bytes, 2000 * 512);
	assert_int_equal(stats.cache_hits, 2 * 2000 - 16);
	stats = counted(storage, manifest, 256 << 10); /* four of 16 */
	assert_int_equal(stats.evictions, stats.chunk_loads - 4);
	assert_in_range(stats.cache_hits + stats.cache_full_samples, 2 * 2000 - stats.chunk_loads, 2 * 2000);
	assert_in_range(stats.cache_hits, 1000, 2 * 2000 - 1);
	must(weir_storage_close(storage));
}

/* What is ahead is dropped when batches have other counts of rows, and is read again. */
static void test_other_counts(void **state)
{
	enum { COUNT = 1000 };
	const char *path = in_folder("counted"), *manifest = in_folder("counted.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	uint8_t seen[COUNT] = { 0 };

	(void)state;
	rig_records(path, COUNT, 512);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:512")));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .chunk_bytes = 64 << 10),
				&dataset));
	must(weir_dataset_sequence(dataset, NULL));
	rig_read_epoch(dataset, 64, seen, 5, 128);
	rig_read_epoch(dataset, 100, seen, 5, 300);
	rig_read_epoch(dataset, 10, seen, 5, UINT64_MAX);
	rig_all_once(seen, COUNT);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Where the text has no room, no byte behind that is written to. */
static void check_short_position(struct weir_dataset *dataset, const char *text)
{
	size_t length = strlen(text);
	char *at = malloc(length + 100);

	for (size_t bytes = 0; bytes <= length + 1; bytes++) {
		memset(at, '#', length + 100);
		if (bytes <= length)
			refused(weir_dataset_position(dataset, at, bytes), -ENOSPC, "bytes are too few", "");
		else
			must(weir_dataset_position(dataset, at, bytes));
		for (size_t i = bytes; i < length + 100; i++)
			assert_int_equal(at[i], '#');
	}
	assert_string_equal(at, text);
	free(at);
}

/* A job that stops anywhere and goes on, several times, reads each sample once. */
static void test_resume(void **state)
{
	enum { COUNT = 3000 };
	const char *path = in_folder("resumed"), *manifest = in_folder("resumed.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	uint8_t seen[COUNT] = { 0 };
	char text[1000];

	(void)state;
	rig_records(path, COUNT, 200);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:200")));
	for (unsigned i = 0; i < 6; i++) {
		must(weir_dataset_mount(
			context, &storage, 1,
			WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .chunk_bytes = 64 << 10),
			&dataset));
		if (i == 0)
			must(weir_dataset_sequence(
				dataset, WEIR_OPTIONS(dataset_sequence, .seed = 8, .buffer_chunks = 3)));
		else
			must(weir_dataset_resume(dataset, text));
		rig_read_epoch(dataset, 50 + 7 * i, seen, 11, i < 5 ? 300 : UINT64_MAX);
		must(weir_dataset_position(dataset, text, sizeof(text)));
		if (i == 1) /* of several ranges */
			check_short_position(dataset, text);
		must(weir_dataset_unmount(dataset));
	}
	rig_all_once(seen, COUNT);
	must(weir_storage_close(storage));
}

/* A position counts in the order of chunks: of others it says nothing. In the full order there are none. */
static void test_resume_by_other_chunks(void **state)
{
	enum { COUNT = 3000 };
	static const uint32_t orders[] = { WEIR_DATASET_FULL, WEIR_DATASET_CHUNK,
					   WEIR_DATASET_SHUFFLED_CHUNK };
	const char *path = in_folder("rechunked"), *manifest = in_folder("rechunked.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	char text[1000];

	(void)state;
	rig_records(path, COUNT, 200);
	storage = open_file(path, "");
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:200")));
	for (unsigned i = 0; i < 3; i++) {
		uint8_t seen[COUNT] = { 0 };

		for (unsigned again = 0; again < 2; again++) {
			must(weir_dataset_mount(context, &storage, 1,
						WEIR_OPTIONS(dataset_mount, .manifests = &manifest,
							     .chunk_bytes = again ? 128 << 10 : 64 << 10),
						&dataset));
			if (!again)
				must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = 8,
										 .order = orders[i],
										 .buffer_chunks = 3)));
			else if (orders[i] == WEIR_DATASET_FULL)
				must(weir_dataset_resume(dataset, text));
			else
				refused(weir_dataset_resume(dataset, text), -ESTALE, "other chunks",
					"chunk_bytes");
			if (!again || orders[i] == WEIR_DATASET_FULL)
				rig_read_epoch(dataset, 50, seen, 11, again ? UINT64_MAX : 300);
			if (!again)
				must(weir_dataset_position(dataset, text, sizeof(text)));
			must(weir_dataset_unmount(dataset));
		}
		if (orders[i] == WEIR_DATASET_FULL)
			rig_all_once(seen, COUNT);
	}
	must(weir_storage_close(storage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_slow_storage),
		cmocka_unit_test(test_upload),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_enqueue),
		cmocka_unit_test(test_dlfs),
		cmocka_unit_test(test_eviction),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_resume_by_other_chunks),
		cmocka_unit_test(test_other_counts),
		cmocka_unit_test(test_cache_full),
		cmocka_unit_test(test_counters),
	};

	return test_begins() ? cmocka_run_group_tests_name("dataset", tests, set_up, tear_down) : 0;
}
