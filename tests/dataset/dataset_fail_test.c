/* SPDX-License-Identifier: BSD-3-Clause */
/* What can go wrong with a dataset, and the sentence for each. */
#include "dataset_records.h"

#include <inttypes.h>
#include <xxhash.h>

#include <weir/file.h>

#include "manifest.h"

static int mount(struct weir_dataset **dataset)
{
	static const char *const manifests[] = { manifest_path };

	return weir_dataset_mount(
		context, &storage, 1,
		WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10), dataset);
}

static void change(const char *of, off_t offset, const void *to, size_t bytes)
{
	int file = open(of, O_RDWR);

	assert_true(file >= 0);
	assert_int_equal(pwrite(file, to, bytes, offset), bytes);
	close(file);
}

static void flip(const char *of, off_t offset)
{
	int file = open(of, O_RDWR);
	unsigned char byte;

	assert_int_equal(pread(file, &byte, 1, offset), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(file, &byte, 1, offset), 1);
	close(file);
}

static void test_manifest_damaged(void **state)
{
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	flip(manifest_path, 40); /* of the header */
	refused(mount(&dataset), -EBADMSG, "records.weir", "checksum of its header");
	flip(manifest_path, 40);
	flip(manifest_path, WEIR_DATASET_HEADER_BYTES + 100);
	refused(mount(&dataset), -EBADMSG, "records.weir", "checksum of its entries");
	flip(manifest_path, WEIR_DATASET_HEADER_BYTES + 100);
	must(mount(&dataset));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A checksum of 0 is as wrong as others. */
static void test_manifest_without_checksums(void **state)
{
	struct weir_dataset_header header;
	struct weir_dataset *dataset;
	int file;

	(void)state;
	fresh();
	file = open(manifest_path, O_RDONLY);
	assert_int_equal(pread(file, &header, sizeof(header), 0), sizeof(header));
	close(file);
	header.checksum = 0;
	change(manifest_path, 0, &header, sizeof(header));
	refused(mount(&dataset), -EBADMSG, "records.weir", "checksum of its header");
	header.sections[WEIR_DATASET_ENTRIES].checksum = 0;
	weir_dataset_header_seal(&header);
	change(manifest_path, 0, &header, sizeof(header));
	refused(mount(&dataset), -EBADMSG, "records.weir", "checksum of its entries");
	must(weir_storage_close(storage));
}

static void test_other_version(void **state)
{
	uint32_t version = 77;
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	change(manifest_path, offsetof(struct weir_dataset_header, version), &version, sizeof(version));
	refused(mount(&dataset), -EPROTO, "version 77", "anew");
	must(weir_storage_close(storage));
}

static void test_no_manifest(void **state)
{
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	unlink(manifest_path);
	refused(mount(&dataset), -ENOENT, "records.weir", "No such file");
	refused(weir_dataset_mount(context, &storage, 1, NULL, &dataset), -ENODATA, "no manifest",
		"weir-dataset index");
	must(weir_storage_close(storage));
}

static void test_data_changed(void **state)
{
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	flip(path, 10);
	open_records("");
	refused(mount(&dataset), -ESTALE, "data of storage 0 changed", "anew");
	must(weir_storage_close(storage));
	assert_int_equal(truncate(path, RECORDS * RECORD - 1), 0);
	open_records("");
	refused(mount(&dataset), -ESTALE, "399999 bytes", "had 400000");
	must(weir_storage_close(storage));
}

/* A block that cannot be read, in an epoch: the sample, the storage and the reason; then the job can go on.
 */
static void bad_block(uint32_t order, uint32_t cache_bytes)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset_stats stats = { .size = sizeof(stats) };
	struct weir_dataset *dataset;
	uint64_t batches = 0;
	int error = 0;

	fresh();
	must(weir_storage_close(storage));
	open_records("?fault=status:code=0x281:op=read:lba=50-50");
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = cache_bytes),
				&dataset));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = order)));
	do {
		error = weir_dataset_bread(dataset, 50, &batch);
		batches += !error;
	} while (!error && batch.count);
	refused(error, -EIO, "of storage 0", "record-");
	assert_int_equal(weir_dataset_bread(dataset, 50, &batch),
			 -EIO); /* the same batch, and no other instead */
	must(weir_dataset_stats(dataset, &stats));
	assert_int_equal(stats.batches, batches); /* those that were returned */
	assert_int_equal(stats.samples, 50 * batches);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = order, .epoch = 1)));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Batches are waited for, but each @enqueued-th of two is enqueued, 2: none is. Return: calls until one
 * fails. */
static unsigned until_bad_block(unsigned enqueued)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	unsigned calls = 0;
	int error = 0;

	fresh();
	must(weir_storage_close(storage));
	open_records("?fault=late:us=100000:op=read:lba=50-50,status:code=0x281:op=read:lba=50-50");
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10),
				&dataset));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	for (; !error && (!calls || batch.count); calls++)
		error = calls % 2 == enqueued ? weir_dataset_bread_enqueue(dataset, 50, &batch)
					      : weir_dataset_bread(dataset, 50, &batch);
	refused(error, -EIO, "of storage 0", "record-");
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
	return calls;
}

/* Behind one that is waited for the next one is assembled by then; the first that has the block fails. */
static void bad_block_ahead(void)
{
	unsigned calls = until_bad_block(2);

	assert_in_range(until_bad_block(0), calls, calls + 1);
	assert_in_range(until_bad_block(1), calls, calls + 1);
}

static void test_bad_block(void **state)
{
	(void)state;
	bad_block(WEIR_DATASET_FULL, 256 << 10);
	bad_block(WEIR_DATASET_CHUNK, 256 << 10);
	bad_block(WEIR_DATASET_SHUFFLED_CHUNK, 4 << 20);
	bad_block_ahead();
}

/* A chunk that fails on its way, and that no batch waits for, is dropped, whatever was read before it. */
static void test_bad_chunk_that_nobody_wants(void **state)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	open_records("?fault=status:code=0x281:op=read:lba=50-50");
	must(mount(&dataset));
	for (unsigned reads = 1; reads < 100; reads++) {
		must(weir_dataset_sequence(
			dataset, WEIR_OPTIONS(dataset_sequence, .seed = reads, .order = WEIR_DATASET_CHUNK)));
		for (unsigned i = 0; i < reads && !weir_dataset_bread(dataset, 1, &batch); i++)
			;
	}
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Some blocks fail, of the batch that was enqueued and of those ahead, which are dropped. The sentence
 * names a sample of the first. */
static void test_enqueued_batch_fails(void **state)
{
	enum { ROWS = 50 };
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	uint64_t samples[ROWS], named = 0, found = 0;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	open_records(
		"?fault=status:code=0x281:op=read:lba=4-5,status:code=0x281:op=read:lba=10-11,"
		"status:code=0x281:op=read:lba=16-17,status:code=0x281:op=read:lba=29-31"); /* mounting reads
											       others */
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10),
				&dataset));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	must(weir_dataset_bread_enqueue(dataset, ROWS, &batch));
	memcpy(samples, batch.samples, sizeof(samples));
	refused(weir_dataset_sequence(dataset, NULL), -EIO, "of storage 0", "record-");
	assert_int_equal(sscanf(weir_last_error(), "dataset: sample %" SCNu64, &named), 1);
	for (unsigned i = 0; i < ROWS; i++)
		found += samples[i] == named;
	assert_int_equal(found, 1);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A request of the program's fails, and a batch. Whoever waits for both is told of both, once. */
static void two_failures(bool enqueue)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_file_io io = { .bytes = 100 };
	struct weir_dataset *dataset;
	uint64_t memory;

	fresh();
	must(weir_storage_close(storage));
	open_records("?fault=status:code=0x281:op=read:lba=50-50");
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10),
				&dataset));
	must(weir_alloc(context, RECORD, &memory));
	must(weir_register(context, memory, RECORD, NULL, &io.registration));
	io.file = open(folder, O_RDONLY | O_DIRECTORY);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	if (enqueue)
		must(weir_dataset_bread_enqueue(dataset, RECORDS, &batch));
	must(weir_file_enqueue(context, NULL, &io, 1));
	refused(enqueue ? weir_dataset_sequence(dataset, NULL) : weir_dataset_bread(dataset, RECORDS, &batch),
		-EISDIR, "request 0: cannot read 100 bytes", "; besides: dataset: sample ");
	must(weir_sync(context));
	close(io.file);
	must(weir_dataset_unmount(dataset));
	must(weir_deregister(io.registration));
	must(weir_free(context, memory));
	must(weir_storage_close(storage));
}

static void test_two_failures(void **state)
{
	(void)state;
	two_failures(false);
	two_failures(true);
}

/** struct stop - the upload ends behind so many bytes; the list of samples comes before, and is to be whole
 */
struct stop {
	uint64_t at, last;
	bool listed;
};

static int stop_at(void *user, uint64_t done, uint64_t total)
{
	struct stop *stop = user;

	stop->listed |= done < stop->last || done == total;
	stop->last = done;
	return stop->listed && done < total && done > stop->at;
}

/* An upload that is stopped is not mounted; the next one goes on, and says so by what it reads. */
static void test_interrupted_upload(void **state)
{
	enum { MANY = 150, LARGE = 1000001 }; /* samples take more room than they have bytes */
	struct weir_storage *target;
	struct weir_dataset *dataset;
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct stop stop = { .at = 100 << 20 };
	uint8_t seen[MANY] = { 0 };
	char keys[] = "virt:256M?block=4096";

	(void)state;
	rig_records(path, MANY, LARGE);
	must(weir_storage_open(context, keys, NULL, &target));
	refused(weir_dataset_upload(&target, 1, path,
				    WEIR_OPTIONS(dataset_index, .format = "fixed:1000001",
						 .progress = stop_at, .user = &stop)),
		-ECANCELED, "stopped", "of 150000150");
	refused(weir_dataset_mount(context, &target, 1, NULL, &dataset), -ENODATA, "interrupted after",
		"of 150 samples");
	must(weir_stats(target, &before));
	must(weir_dataset_upload(&target, 1, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000001")));
	must(weir_stats(target, &after));
	assert_true(after.bytes_written - before.bytes_written <
		    (uint64_t)MANY * LARGE / 2); /* the rest only */
	must(weir_dataset_upload(&target, 1, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000001")));
	must(weir_stats(target, &before));
	assert_int_equal(after.bytes_written, before.bytes_written); /* all is there */
	must(weir_dataset_mount(context, &target, 1, NULL, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 16, seen, 1, UINT64_MAX), MANY);
	rig_all_once(seen, MANY);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(target));
}

/* An upload that was interrupted goes on by blocks of another length: samples lie elsewhere then. */
static void test_upload_goes_on_by_other_blocks(void **state)
{
	enum { COUNT = 100000 };
	static uint8_t seen[COUNT];
	struct stop stop = { .at = 60 << 20 };
	struct weir_dataset *dataset;
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "%s/copied", folder);
	rig_records(command, COUNT, RECORD);
	rig_records(path, 1, 1);
	assert_int_equal(truncate(path, 256 << 20), 0);
	open_records("?block=512");
	assert_int_equal(weir_dataset_upload(&storage, 1, command,
					     WEIR_OPTIONS(dataset_index, .format = "fixed:1000",
							  .progress = stop_at, .user = &stop)),
			 -ECANCELED);
	must(weir_storage_close(storage));
	open_records("?block=4096");
	must(weir_dataset_upload(&storage, 1, command, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	must(weir_dataset_mount(context, &storage, 1, NULL, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 256, seen, 11, UINT64_MAX), COUNT);
	rig_all_once(seen, COUNT);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* An upload that ends between two storages leaves the second one to the dataset that was there before: no
 * mount mixes the two. */
static void test_parts_of_two_uploads(void **state)
{
	struct weir_storage *targets[2], *other;
	struct weir_dataset *dataset;

	(void)state;
	rig_records(path, 100, RECORD);
	for (unsigned i = 0; i < 2; i++)
		must(weir_storage_open(context, "virt:1M", NULL, &targets[i]));
	must(weir_storage_open(context, "virt:1M", NULL, &other));
	must(weir_dataset_upload(targets, 2, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	must(weir_dataset_mount(context, targets, 2, NULL, &dataset));
	must(weir_dataset_unmount(dataset));
	rig_records(path, 120, RECORD);
	must(weir_dataset_upload((struct weir_storage *[]){ targets[0], other }, 2, path,
				 WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	refused(weir_dataset_mount(context, targets, 2, NULL, &dataset), -ESTALE,
		"storage 1 has samples of dataset", "run it again");
	must(weir_dataset_upload(targets, 2, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	must(weir_dataset_mount(context, targets, 2, NULL, &dataset));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(targets[1]));
	targets[1] = targets[0];
	refused(weir_dataset_upload(targets, 2, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")),
		-EINVAL, "weir_dataset_upload: storages 0 and 1", "once");
	refused(weir_dataset_mount(context, targets, 2, NULL, &dataset), -EINVAL,
		"weir_dataset_mount: storages 0 and 1", "once");
	must(weir_storage_close(targets[0]));
	must(weir_storage_close(other));
}

/* The records of @source are uploaded, and are all there. */
static void upload_and_read(const char *source)
{
	struct weir_dataset *dataset;
	uint8_t seen[RECORDS] = { 0 };

	must(weir_dataset_upload(&storage, 1, source, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	must(weir_dataset_mount(context, &storage, 1, NULL, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 16, seen, 1, UINT64_MAX), RECORDS);
	rig_all_once(seen, RECORDS);
	must(weir_dataset_unmount(dataset));
}

/* What an upload has left is damaged, and a mount says that it is to be uploaded anew: then it is whole
 * again. */
static void test_upload_mends(void **state)
{
	struct weir_dataset_header header;
	struct weir_dataset *dataset;
	char source[80];
	int file;

	(void)state;
	snprintf(source, sizeof(source), "%s/source", folder);
	rig_records(source, RECORDS, RECORD);
	rig_records(path, 1, 1);
	assert_int_equal(truncate(path, 1 << 20), 0);
	file = open(path, O_RDONLY);
	open_records("");
	for (unsigned i = 0; i < WEIR_DATASET_SECTIONS; i++) {
		upload_and_read(source);
		assert_int_equal(pread(file, &header, sizeof(header), 0), sizeof(header));
		if (header.sections[i].bytes)
			flip(path, (off_t)header.sections[i].offset);
	}
	upload_and_read(source);
	flip(path, (off_t)header.sections[WEIR_DATASET_ENTRIES].offset);
	refused(weir_dataset_mount(context, &storage, 1, NULL, &dataset), -EBADMSG, "checksum of its entries",
		"upload anew");
	upload_and_read(source);
	flip(path, WEIR_DATASET_HEADER_BYTES); /* the first sample's */
	refused(weir_dataset_mount(context, &storage, 1, NULL, &dataset), -ESTALE,
		"data of storage 0 changed", "anew");
	upload_and_read(source);
	must(weir_storage_close(storage));
	close(file);
	unlink(source);
}

static void test_no_room(void **state)
{
	struct weir_storage *target;

	(void)state;
	rig_records(path, RECORDS, RECORD);
	must(weir_storage_open(context, "virt:64K", NULL, &target));
	refused(weir_dataset_upload(&target, 1, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")),
		-ENOSPC, "storage 0", "larger");
	must(weir_storage_close(target));
}

/* Two datasets of one storage at the same time: reading disturbs nobody. */
static void test_two_jobs(void **state)
{
	struct weir_dataset *one, *two;
	uint8_t seen[RECORDS] = { 0 }, also[RECORDS] = { 0 };

	(void)state;
	fresh();
	must(mount(&one));
	must(mount(&two));
	must(weir_dataset_sequence(one, NULL));
	must(weir_dataset_sequence(two, WEIR_OPTIONS(dataset_sequence, .seed = 4)));
	for (unsigned i = 0; i < RECORDS / 40; i++) {
		rig_read_epoch(one, 40, seen, 5, 40);
		rig_read_epoch(two, 40, also, 5, 40);
	}
	rig_all_once(seen, RECORDS);
	rig_all_once(also, RECORDS);
	must(weir_dataset_unmount(one));
	must(weir_dataset_unmount(two));
	must(weir_storage_close(storage));
}

static void test_wrong_calls(void **state)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	char text[400], *range;

	(void)state;
	fresh();
	refused(weir_dataset_bread(NULL, 1, &batch), -EINVAL, "weir_dataset_bread", "no mounted dataset");
	must(mount(&dataset));
	refused(weir_dataset_bread(dataset, 1, &batch), -EINVAL, "no epoch has begun",
		"weir_dataset_sequence");
	refused(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = 9)), -EINVAL,
		"no order 9", "enum");
	refused(weir_dataset_resume(dataset, "nonsense"), -EINVAL, "nonsense", "weir_dataset_position");
	refused(weir_dataset_resume(
			dataset,
			"weir-dataset-1 id=0000000000000001 seed=1 epoch=0 order=0 buffer=2 left=0-4"),
		-ESTALE, "0000000000000001", "is");
	must(weir_dataset_sequence(dataset, NULL));
	must(weir_dataset_position(dataset, text, sizeof(text)));
	range = strstr(text, "left=") + strlen("left=");
	strcpy(range, "0-500"); /* more than there are */
	refused(weir_dataset_resume(dataset, text), -EINVAL, "0-500", "no range");
	strcpy(range, "0-4,0-4"); /* would come twice */
	refused(weir_dataset_resume(dataset, text), -EINVAL, "0-4", "no range");
	must(weir_storage_close(storage));
	refused(weir_dataset_bread(dataset, 1, &batch), -EINVAL, "", "");
	(void)weir_dataset_unmount(dataset);
}

/* An archive that ends in the middle of a file; a header that is none. */
static void test_cut_archive(void **state)
{
	char command[400];

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && head -c 5000 /dev/zero | tee a b >c && tar -cf records a b c && truncate -s 7000 "
		 "records",
		 folder);
	assert_int_equal(system(command), 0);
	open_records("");
	refused(weir_dataset_index(storage, manifest_path, NULL), -ENODATA, "cut short", "'b'");
	must(weir_storage_close(storage));
	snprintf(command, sizeof(command), "cd %s && tar -cf records a b c", folder);
	assert_int_equal(system(command), 0);
	flip(path, 512 + 5120 + 10);
	open_records("");
	refused(weir_dataset_index(storage, manifest_path, NULL), -EINVAL, "checksum of the header", "5632");
	must(weir_storage_close(storage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manifest_damaged),
		cmocka_unit_test(test_manifest_without_checksums),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_no_manifest),
		cmocka_unit_test(test_data_changed),
		cmocka_unit_test(test_bad_block),
		cmocka_unit_test(test_bad_chunk_that_nobody_wants),
		cmocka_unit_test(test_interrupted_upload),
		cmocka_unit_test(test_upload_goes_on_by_other_blocks),
		cmocka_unit_test(test_parts_of_two_uploads),
		cmocka_unit_test(test_upload_mends),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_two_jobs),
		cmocka_unit_test(test_wrong_calls),
		cmocka_unit_test(test_cut_archive),
		cmocka_unit_test(test_enqueued_batch_fails),
		cmocka_unit_test(test_two_failures),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("dataset_fail", tests, set_up, tear_down);
}
