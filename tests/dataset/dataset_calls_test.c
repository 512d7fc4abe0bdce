/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset_calls_test.c: datasets whose files the system reads and writes in parts, or not at all, and
 * storages that refuse a write or a flush of an upload; and what is just within each limit, and just beyond.
 *
 * The calls of this thread to the system pass through the test; those for storages are of other threads.
 */
#include "dataset_records.h"

#include <dirent.h>
#include <limits.h>
#include <sys/syscall.h>

#include "mounted.h"

enum { CHUNK = 64 << 10 };

/** calls - in the way of this thread: @most bytes a call; write @fails, counted from 1, returns @returns with
 * @error; fsync() fails with @sync_error */
static _Thread_local struct {
	size_t most;
	unsigned writes, fails;
	ssize_t returns;
	int error, sync_error;
} calls;

static size_t allowed(size_t bytes)
{
	return calls.most && bytes > calls.most ? calls.most : bytes;
}

ssize_t pread(int file, void *to, size_t bytes, off_t offset)
{
	return syscall(SYS_pread64, file, to, allowed(bytes), offset);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset)
{
	if (++calls.writes != calls.fails)
		return syscall(SYS_pwrite64, file, from, allowed(bytes), offset);
	errno = calls.error;
	return calls.returns;
}

int fsync(int file)
{
	if (!calls.sync_error)
		return (int)syscall(SYS_fsync, file);
	errno = calls.sync_error;
	return -1;
}

static void in_the_way_is_nothing(void)
{
	memset(&calls, 0, sizeof(calls));
}

static int mount(struct weir_storage *of, const char *manifest, struct weir_dataset **dataset)
{
	return weir_dataset_mount(
		context, &of, 1,
		WEIR_OPTIONS(dataset_mount, .manifests = manifest ? &manifest : NULL, .chunk_bytes = CHUNK),
		dataset);
}

static int index_records(void)
{
	return weir_dataset_index(storage, manifest_path,
				  WEIR_OPTIONS(dataset_index, .format = "fixed:1000"));
}

/* Each sample of @of once, with its bytes. */
static void check_all(struct weir_storage *of, const char *manifest, uint64_t samples)
{
	uint8_t seen[RECORDS] = { 0 };
	struct weir_dataset *dataset;

	must(mount(of, manifest, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 50, seen, 1, UINT64_MAX), samples);
	rig_all_once(seen, samples);
	must(weir_dataset_unmount(dataset));
}

static unsigned files_of_folder(void)
{
	DIR *list = opendir(folder);
	unsigned count = 0;

	assert_non_null(list);
	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

static size_t manifest_bytes(unsigned char *to, size_t room)
{
	int file = open(manifest_path, O_RDONLY);
	ssize_t got = file < 0 ? 0 : syscall(SYS_pread64, file, to, room, 0);

	assert_in_range(got, 0, room - 1);
	if (file >= 0)
		close(file);
	return (size_t)got;
}

/* However few bytes a call moves, files are read and written whole. */
static void test_short_calls(void **state)
{
	static const size_t most[] = { 4095, 1000, 17 };
	static unsigned char whole[1 << 16], parts[1 << 16];
	struct weir_storage *target;
	char source[64];
	size_t bytes;

	(void)state;
	snprintf(source, sizeof(source), "%s/source", folder);
	rig_folder(source, 40, 2, 1, 9000);
	fresh();
	bytes = manifest_bytes(whole, sizeof(whole));
	for (unsigned i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		unlink(manifest_path);
		calls.most = most[i];
		must(index_records());
		assert_int_equal(manifest_bytes(parts, sizeof(parts)), bytes);
		assert_memory_equal(parts, whole, bytes);
		check_all(storage, manifest_path, RECORDS);
		in_the_way_is_nothing();
		must(weir_storage_open(context, "virt:1M", NULL, &target));
		calls.most = most[i];
		must(weir_dataset_upload(&target, 1, source, NULL));
		in_the_way_is_nothing();
		check_all(target, NULL, 40);
		must(weir_storage_close(target));
	}
	must(weir_storage_close(storage));
}

/* A manifest that cannot be written, or made durable, leaves the one before as it is, and nothing beside it.
 */
static void test_manifest_that_cannot_be_written(void **state)
{
	static const struct {
		ssize_t returns;
		int error, result;
	} rows[] = { { -1, ENOSPC, -ENOSPC }, { -1, EIO, -EIO }, { 0, 0, -EIO } };
	static unsigned char before[1 << 16], after[1 << 16];
	unsigned files, writes = 0;
	size_t bytes;

	(void)state;
	fresh();
	files = files_of_folder();
	bytes = manifest_bytes(before, sizeof(before));
	assert_true(bytes > 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (writes = 0;; writes++) {
			int error;

			in_the_way_is_nothing();
			calls.fails = writes + 1;
			calls.returns = rows[i].returns;
			calls.error = rows[i].error;
			error = index_records();
			if (calls.writes < calls.fails) {
				assert_int_equal(error, 0);
				break;
			}
			refused(error, rows[i].result, "cannot write the manifest", "records.weir");
			assert_int_equal(files_of_folder(), files);
			assert_int_equal(manifest_bytes(after, sizeof(after)), bytes);
			assert_memory_equal(after, before, bytes);
		}
	assert_true(writes >= 4); /* entries, places of names, names, header */
	in_the_way_is_nothing();
	calls.sync_error = EIO;
	refused(index_records(), -EIO, "cannot write the manifest", "records.weir");
	assert_int_equal(files_of_folder(), files);
	in_the_way_is_nothing();
	check_all(storage, manifest_path, RECORDS);
	must(weir_storage_close(storage));
}

/* An upload of which a write or a flush fails is no upload: the same again goes on. Return: how many there
 * were, each of which has failed once. */
static unsigned fail_each(const char *source, const char *operation, const char *status)
{
	unsigned after = 0;
	int error;

	do {
		struct weir_dataset *dataset;
		char keys[200];

		rig_records(path, 1, 1);
		assert_int_equal(truncate(path, 1 << 20), 0);
		snprintf(keys, sizeof(keys), "?fault=status:code=%s:op=%s:after=%u:count=1", status,
			 operation, after);
		open_records(keys);
		error = weir_dataset_upload(&storage, 1, source,
					    WEIR_OPTIONS(dataset_index, .format = "fixed:1000"));
		if (error) {
			refused(error, -EIO, operation, "");
			if (!mount(storage, NULL, &dataset)) /* the last flush: the header is there */
				must(weir_dataset_unmount(dataset));
			must(weir_dataset_upload(&storage, 1, source,
						 WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
		}
		check_all(storage, NULL, RECORDS);
		must(weir_storage_close(storage));
		after++;
	} while (error);
	return after - 1;
}

static void test_target_that_fails(void **state)
{
	char source[64];

	(void)state;
	snprintf(source, sizeof(source), "%s/kept", folder);
	rig_records(source, RECORDS, RECORD);
	assert_true(fail_each(source, "write", "0x280") >= 5); /* two headers, samples, and sections */
	assert_true(fail_each(source, "flush", "0x6") >= 4);   /* before and behind each header */
}

enum { LARGE = 999900, BLOCK = 512, LARGE_ONES = 80 };

/* Samples with a checkpoint among them, behind 64 MiB, which ends within a block of 4 KiB; onto @uri. */
static int upload_large(const char *source, const char *uri, struct weir_storage **target)
{
	must(weir_storage_open(context, uri, NULL, target));
	return weir_dataset_upload(target, 1, source, WEIR_OPTIONS(dataset_index, .format = "fixed:999900"));
}

/* An upload that ends behind a checkpoint, where nothing more can be written, goes on from there: what was
 * written before is not written again, and none of it is passed over. */
static void test_upload_goes_on_from_its_checkpoint(void **state)
{
	/* the sample behind the checkpoint, and its second part */
	const uint64_t next = 4096 + 68 * (uint64_t)((LARGE + BLOCK - 1) / BLOCK * BLOCK),
		       beyond = next + 8192, all = (uint64_t)LARGE_ONES * LARGE;
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	char source[64], uri[200];
	struct weir_storage *target;

	(void)state;
	snprintf(source, sizeof(source), "%s/large", folder);
	rig_records(source, LARGE_ONES, LARGE);
	must(upload_large(source, "virt:128M?block=512", &target));
	check_all(target, NULL, LARGE_ONES);
	must(weir_storage_close(target));
	snprintf(uri, sizeof(uri),
		 "virt:128M?block=512&fault=status:code=0x280:op=write:lba=%llu-%llu:count=1",
		 (unsigned long long)beyond / BLOCK, (unsigned long long)beyond / BLOCK);
	refused(upload_large(source, uri, &target), -EIO, "write", "");
	must(weir_stats(target, &before));
	must(weir_dataset_upload(&target, 1, source, WEIR_OPTIONS(dataset_index, .format = "fixed:999900")));
	must(weir_stats(target, &after));
	assert_in_range(after.bytes_written - before.bytes_written, all - next, all - ((uint64_t)60 << 20));
	check_all(target, NULL, LARGE_ONES);
	must(weir_storage_close(target));
	unlink(source);
}

/* Blocks that say whether the data is what was indexed cannot be read: nobody believes that it is. */
static void test_data_that_cannot_be_probed(void **state)
{
	static const unsigned blocks[] = { 0, 97 };
	struct weir_dataset *dataset;
	char keys[100];

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	for (unsigned i = 0; i < 2; i++) {
		snprintf(keys, sizeof(keys), "?block=4096&fault=status:code=0x281:op=read:lba=%u-%u",
			 blocks[i], blocks[i]);
		open_records(keys);
		refused(mount(storage, manifest_path, &dataset), -EIO, "unrecovered read error", "");
		unlink(manifest_path);
		refused(index_records(), -EIO, "unrecovered read error", "");
		assert_true(access(manifest_path, F_OK) != 0);
		must(weir_storage_close(storage));
		fresh();
		must(weir_storage_close(storage));
	}
}

static void test_limits_of_a_list(void **state)
{
	struct weir_dataset_list list = { 0 }, full = { .count = UINT32_MAX };
	static char name[4097];

	(void)state;
	memset(name, 'n', 4096);
	must(weir_dataset_list_add(&list, "longest", 0, WEIR_DATASET_MAX_SAMPLE_BYTES, 0));
	assert_int_equal(
		weir_dataset_entry_length(weir_dataset_entry(0, 0, 0, (uint32_t)list.items[0].bytes)),
		WEIR_DATASET_MAX_SAMPLE_BYTES);
	refused(weir_dataset_list_add(&list, "longer", 0, (uint64_t)WEIR_DATASET_MAX_SAMPLE_BYTES + 1, 0),
		-EFBIG, "'longer' has 8388608 bytes", "8388607 are the most");
	refused(weir_dataset_list_add(&list, "wraps", 0, (uint64_t)1 << 32, 0), -EFBIG,
		"'wraps' has 4294967296 bytes", "split it");
	refused(weir_dataset_list_add(&list, name, 0, 1, 0), -ENAMETOOLONG, "has 4096 characters",
		"4095 are the most");
	name[4095] = '\0';
	must(weir_dataset_list_add(&list, name, 5, 1, 7));
	assert_int_equal(list.count, 2);
	assert_string_equal(weir_dataset_list_name(&list, &list.items[1]), name);
	assert_true(list.items[1].offset == 5 && list.items[1].bytes == 1 && list.items[1].label == 7);
	weir_dataset_list_clear(&list);
	refused(weir_dataset_list_add(&full, "one more", 0, 1, 0), -EFBIG, "more than 4294967295 samples",
		"several datasets");
}

static void test_limits_of_options(void **state)
{
	static const struct {
		uint32_t chunk, batches, row;
		uint64_t cache;
		const char *says; /* NULL: it can be */
	} rows[] = {
		{ 64 << 10, 0, 0, 0, NULL },
		{ 4 << 20, 0, 0, 0, NULL },
		{ 32 << 10, 0, 0, 0, "chunks of 32768 bytes" },
		{ 8 << 20, 0, 0, 0, "chunks of 8388608 bytes" },
		{ 96 << 10, 0, 0, 0, "chunks of 98304 bytes" },
		{ CHUNK, 16, 0, 0, NULL },
		{ CHUNK, 17, 0, 0, "at most 16 batches" },
		{ CHUNK, 0, 0, 4 * CHUNK, NULL },
		{ CHUNK, 0, 0, 4 * CHUNK - 1, "fewer than 4 chunks" },
		{ CHUNK, 0, UINT32_MAX - 15, 0, NULL },
		{ CHUNK, 0, UINT32_MAX - 14, 0, "are too long" },
	};
	const char *manifest = manifest_path;
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int error = weir_dataset_mount(
			context, &storage, 1,
			WEIR_OPTIONS(dataset_mount, .manifests = &manifest, .chunk_bytes = rows[i].chunk,
				     .batches = rows[i].batches, .row_bytes = rows[i].row,
				     .cache_bytes = rows[i].cache),
			&dataset);

		if (rows[i].says) {
			refused(error, -EINVAL, rows[i].says, "weir_dataset_mount");
			continue;
		}
		must(error);
		assert_true(!rows[i].row || dataset->info.row_bytes == rows[i].row);
		must(weir_dataset_unmount(dataset));
	}
	must(weir_storage_close(storage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_calls),
		cmocka_unit_test(test_manifest_that_cannot_be_written),
		cmocka_unit_test(test_target_that_fails),
		cmocka_unit_test(test_upload_goes_on_from_its_checkpoint),
		cmocka_unit_test(test_data_that_cannot_be_probed),
		cmocka_unit_test(test_limits_of_a_list),
		cmocka_unit_test(test_limits_of_options),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_calls", tests, set_up, tear_down);
}
