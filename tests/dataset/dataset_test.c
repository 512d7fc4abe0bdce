/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets from source to mini-batch: every byte, each sample once, and every failure with its sentence. */
#include "dataset_rig.h"

#include "manifest.h"

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
		must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = 7, .epoch = order, .order = order)));
		assert_int_equal(rig_read_epoch(dataset, rows, seen, every, UINT64_MAX), samples);
		rig_all_once(seen, samples);
	}
	free(seen);
}

/* Records of odd lengths too, so that rows are put together from words that are not aligned. */
static void records_of(size_t bytes, uint64_t count, const char *format, const char *keys, uint32_t cache_bytes, uint32_t device)
{
	const char *path = in_folder("records"), *manifest = in_folder("records.weir");
	struct weir_storage *storage;
	struct weir_dataset *dataset;
	struct weir_dataset_info info = { .size = sizeof(info) };

	rig_records(path, count, bytes);
	storage = open_file(path, keys);
	must(weir_dataset_index(storage, manifest, WEIR_OPTIONS(dataset_index, .format = format)));
	must(weir_dataset_mount(context, &storage, 1, WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .cache_bytes = cache_bytes,
								   .chunk_bytes = 64 << 10, .device = device), &dataset));
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
	must(weir_dataset_mount(context, storages, 3, WEIR_OPTIONS(dataset_mount, .cache_bytes = 1 << 20, .chunk_bytes = 64 << 10), &dataset));
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
	{
		struct weir_storage *swapped[] = { storages[1], storages[0], storages[2] };

		refused(weir_dataset_mount(context, swapped, 3, NULL, &dataset), -EINVAL, "part 1 of 3", "in the order of the upload");
		refused(weir_dataset_mount(context, storages, 2, NULL, &dataset), -EINVAL, "part 0 of 3", "name all storages");
	}
	for (unsigned i = 0; i < 3; i++)
		must(weir_storage_close(storages[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_slow_storage),
		cmocka_unit_test(test_upload),
	};

	return cmocka_run_group_tests_name("dataset", tests, set_up, tear_down);
}
