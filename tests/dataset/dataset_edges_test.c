/* SPDX-License-Identifier: BSD-3-Clause */
/* Edges of datasets: files that end early, manifests that do not fit, reads behind the end and of bad blocks.
 */
#include "dataset_records.h"

#include <isa-l/crc.h>
#include <sys/syscall.h>

#include "manifest.h"
#include "mounted.h"

static unsigned synced; /* files, before the manifest had its name */

int fsync(int file)
{
	synced += access(manifest_path, F_OK) != 0;
	return (int)syscall(SYS_fsync, file);
}

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

/* Whole by its checksums, and written by a program that counts in another way. */
static void test_manifest_of_other_sizes(void **state)
{
	static const uint64_t bytes[] = { [WEIR_DATASET_ENTRIES] = RECORDS * 16 - 16,
					  [WEIR_DATASET_LABELS] = RECORDS * 4 - 4,
					  [WEIR_DATASET_NAME_OFFSETS] = RECORDS * 8 };
	struct weir_dataset_header header, wrong;
	struct weir_dataset *dataset;
	int file;

	(void)state;
	fresh();
	file = open(manifest_path, O_RDONLY);
	assert_int_equal(pread(file, &header, sizeof(header), 0), sizeof(header));
	close(file);
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		wrong = header;
		wrong.sections[i].bytes = bytes[i];
		weir_dataset_header_seal(&wrong);
		change(manifest_path, 0, &wrong, sizeof(wrong));
		refused(mount(&dataset), -EBADMSG, "do not go with its 400 samples", "records.weir");
	}
	change(manifest_path, 0, &header, sizeof(header));
	must(mount(&dataset));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A manifest has its name when it is durable, and is there for others to read. */
static void test_manifest_is_durable(void **state)
{
	struct stat status;

	(void)state;
	unlink(manifest_path);
	synced = 0;
	fresh();
	assert_int_equal(synced, 1);
	assert_int_equal(stat(manifest_path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0644);
	must(weir_storage_close(storage));
}

/* A sample, and a part of a file, by themselves: what cannot be read is an error, what is behind the end is
 * not there. */
static void test_reads_of_one(void **state)
{
	struct weir_dataset *dataset;
	unsigned char data[2 * RECORD];
	uint64_t bytes = 0;
	uint32_t file;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	open_records("?block=4096&fault=status:code=0x281:op=read:lba=50-50");
	must(mount(&dataset));
	assert_int_equal(weir_dataset_read(dataset, 200, 0, data, RECORD), RECORD);
	assert_true(weir_dataset_read(dataset, 206, 0, data, RECORD) < 0); /* from byte 206000 on */
	assert_int_equal(weir_dataset_read(dataset, 206, RECORD, data, RECORD), 0);
	assert_int_equal(weir_dataset_read(dataset, 206, UINT64_MAX, data, RECORD), 0);
	must(weir_dataset_find_file(dataset, "records", &file, &bytes));
	assert_int_equal(bytes, RECORDS * RECORD);
	assert_true(weir_dataset_read_file(dataset, file, 204500, data, RECORD) < 0);
	assert_int_equal(weir_dataset_read_file(dataset, file, bytes - 10, data, RECORD), 10);
	assert_int_equal(weir_dataset_read_file(dataset, file, bytes, data, RECORD), 0);
	assert_int_equal(weir_dataset_read_file(dataset, file, bytes + 5, data, RECORD), 0);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Other samples, as many as there were: none of the first upload's is taken for one of these. */
static void test_upload_over_another(void **state)
{
	enum { SHORTER = 900 };
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct weir_storage *target;
	struct weir_dataset *dataset;

	(void)state;
	must(weir_storage_open(context, "virt:1M", NULL, &target));
	rig_records(path, 100, RECORD);
	must(weir_dataset_upload(&target, 1, path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	rig_records(path, 100, SHORTER);
	must(weir_dataset_upload(&target, 1, path, WEIR_OPTIONS(dataset_index, .format = "fixed:900")));
	must(weir_dataset_mount(context, &target, 1, NULL, &dataset));
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.longest_bytes, SHORTER);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(target));
}

/* The last file's data is all there; only what would fill its block up is not. */
static void test_archive_without_padding(void **state)
{
	struct weir_dataset *dataset;
	unsigned char data[6000];
	char command[400];
	uint64_t sample;

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && head -c 5000 /dev/zero | tee a >b && tar -cf records a b && truncate -s 11144 "
		 "records",
		 folder);
	assert_int_equal(system(command), 0);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, NULL));
	must(mount(&dataset));
	must(weir_dataset_find(dataset, "b", &sample));
	assert_int_equal(weir_dataset_read(dataset, sample, 0, data, sizeof(data)), 5000);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* An archive of two files of 5000 bytes, cut in the second one's header, or with no name there. */
static void test_archive_cut_in_a_header(void **state)
{
	static const off_t cuts[] = { 5633, 5888, 6143 };
	char command[400];

	(void)state;
	for (unsigned i = 0; i <= sizeof(cuts) / sizeof(cuts[0]); i++) {
		bool cut = i < sizeof(cuts) / sizeof(cuts[0]);

		snprintf(command, sizeof(command),
			 "cd %s && head -c 5000 /dev/zero | tee a >b && tar -cf records a b", folder);
		assert_int_equal(system(command), 0);
		if (cut)
			assert_int_equal(truncate(path, cuts[i]), 0);
		else
			change(path, 5632, "", 1);
		open_records("");
		refused(weir_dataset_index(storage, manifest_path, NULL), cut ? -ENODATA : -EINVAL, "records",
			"5632");
		must(weir_storage_close(storage));
	}
}

/* Labels of a large batch, and a label that is the largest there can be. */
static void test_quality_of_large_batches(void **state)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_quality quality = { .size = sizeof(quality) };
	struct weir_dataset *dataset;
	char command[600];

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir many && cd many && for i in $(seq 100 699); do echo $i >$i.txt; "
		 "[ $i -lt 400 ] && echo 7 >$i.cls || echo 4294967294 >$i.cls; done && "
		 "tar --sort=name -cf ../records . && cd .. && rm -r many",
		 folder);
	assert_int_equal(system(command), 0);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, NULL));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 4 << 20),
				&dataset)); /* of one chunk: in the order of the archive */
	must(weir_dataset_quality(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_CHUNK), 300,
				  &quality, NULL));
	assert_true(quality.coverage < 0.6); /* a batch has one of both labels */
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* What is measured where no buffer is given is the order that an epoch has, in a small cache, too. */
static void test_quality_of_the_default(void **state)
{
	enum { MANY = 4000 };
	static const char *const manifests[] = { manifest_path };
	const struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence), .seed = 5 };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset_quality quality = { .size = sizeof(quality) };
	struct weir_dataset *dataset;
	static uint64_t order[MANY];

	(void)state;
	rig_records(path, MANY, RECORD);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 16 * 64 << 10),
				&dataset));
	must(weir_dataset_quality(dataset, &sequence, 8, &quality, order));
	must(weir_dataset_sequence(dataset, &sequence));
	for (unsigned at = 0; at < MANY; at += batch.count) {
		must(weir_dataset_bread(dataset, 8, &batch));
		assert_true(batch.count > 0);
		for (unsigned i = 0; i < batch.count; i++)
			assert_int_equal(batch.samples[i], order[at + i]);
	}
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A label is a number, with or without the end of its line; a word is none, and not class 0. */
static void test_labels(void **state)
{
	static const struct {
		const char *text;
		uint32_t label;
		bool good;
	} labels[] = {
		{ "7", 7, true },           { "7\\n", 7, true }, { "4294967294", UINT32_MAX - 1, true },
		{ "-1", UINT32_MAX, true }, { "cat", 0, false }, { "", 0, false },
		{ "7 cats", 0, false },     { "-2", 0, false },  { "4294967295", 0, false },
	};
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	struct weir_dataset *dataset;
	char command[400];

	(void)state;
	for (unsigned i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		int error;

		snprintf(command, sizeof(command),
			 "cd %s && printf sample >s.bin && printf -- '%s' >s.cls && tar -cf records s.bin "
			 "s.cls",
			 folder, labels[i].text);
		assert_int_equal(system(command), 0);
		open_records("");
		error = weir_dataset_index(storage, manifest_path, NULL);
		if (labels[i].good) {
			must(error);
			must(mount(&dataset));
			must(weir_dataset_sample(dataset, 0, &sample));
			assert_int_equal(sample.label, labels[i].label);
			must(weir_dataset_unmount(dataset));
		} else {
			refused(error, -EINVAL, "the label 's.cls'", "a number below 4294967295");
		}
		must(weir_storage_close(storage));
	}
}

static uint32_t masked_crc(unsigned char *data, int bytes)
{
	uint32_t crc = ~crc32_iscsi(data, bytes, UINT32_MAX);

	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

/* A TFRecord of @bytes zeros, behind the others of @file. */
static void put_tfrecord(int file, uint64_t bytes)
{
	unsigned char record[12 + 100 + 4] = { 0 };
	uint32_t crc;

	memcpy(record, &bytes, sizeof(bytes));
	crc = masked_crc(record, sizeof(bytes));
	memcpy(record + 8, &crc, sizeof(crc));
	crc = masked_crc(record + 12, (int)bytes);
	memcpy(record + 12 + bytes, &crc, sizeof(crc));
	assert_int_equal(write(file, record, 16 + bytes), 16 + bytes);
}

/* A file of records that ends before the last one does, be it by a byte of its checksum. */
static void test_cut_tfrecord(void **state)
{
	enum { BYTES = 60, WHOLE = 2 * (16 + BYTES) };
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	(void)state;
	assert_true(file >= 0);
	put_tfrecord(file, BYTES);
	put_tfrecord(file, BYTES);
	for (unsigned cut = 0; cut < 16 + BYTES; cut++) {
		int error;

		assert_int_equal(ftruncate(file, WHOLE - cut), 0);
		open_records("");
		error = weir_dataset_index(storage, manifest_path,
					   WEIR_OPTIONS(dataset_index, .format = "tfrecord"));
		if (cut)
			refused(error, -ENODATA, "cut short", "records");
		else
			must(error);
		must(weir_storage_close(storage));
	}
	close(file);
}

/* A shard of two samples that ends before the last one does. */
static void test_cut_mds(void **state)
{
	enum { BYTES = 60 };
	const uint32_t head[4] = { 2, sizeof(head), sizeof(head) + BYTES, sizeof(head) + 2 * BYTES };

	(void)state;
	for (unsigned cut = 0; cut < BYTES; cut++) {
		int error, file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		assert_int_equal(write(file, head, sizeof(head)), sizeof(head));
		assert_int_equal(ftruncate(file, (off_t)sizeof(head) + 2 * BYTES - cut), 0);
		close(file);
		open_records("");
		error = weir_dataset_index(storage, manifest_path,
					   WEIR_OPTIONS(dataset_index, .format = "mds"));
		if (cut)
			refused(error, -EINVAL, "cut short: sample 1", "records");
		else
			must(error);
		must(weir_storage_close(storage));
	}
}

/* Data that has become longer has samples that the manifest does not know of. */
static void test_data_that_grew(void **state)
{
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	assert_int_equal(truncate(path, (RECORDS + 1) * RECORD), 0);
	open_records("");
	refused(mount(&dataset), -ESTALE, "has 401000 bytes, and had 400000", "index it anew");
	must(weir_storage_close(storage));
}

/* Data that begins or ends otherwise was changed since it was indexed. Probes are whole bytes apart, so that
 * the last one may end up to 14 bytes before the data does. */
static void test_data_that_changed(void **state)
{
	static const off_t places[] = { 0, RECORDS * RECORD - 15 };
	struct weir_dataset *dataset;
	char was, is;

	(void)state;
	fresh();
	for (unsigned i = 0; i < 2; i++) {
		int file = open(path, O_RDWR);

		assert_true(file >= 0 && pread(file, &was, 1, places[i]) == 1);
		is = (char)~was;
		assert_int_equal(pwrite(file, &is, 1, places[i]), 1);
		refused(mount(&dataset), -ESTALE, "the data of storage 0 changed since", "index it anew");
		assert_int_equal(pwrite(file, &was, 1, places[i]), 1);
		close(file);
		must(mount(&dataset));
		must(weir_dataset_unmount(dataset));
	}
	must(weir_storage_close(storage));
}

/* A file that becomes shorter while it is read: what is not there is no data. */
static void test_file_that_shrinks(void **state)
{
	struct weir_dataset_source source;
	char to[RECORD];

	(void)state;
	rig_records(path, 1, RECORD);
	must(weir_dataset_source_file(&source, path));
	assert_int_equal(truncate(path, RECORD / 2), 0);
	refused(weir_dataset_source_read(&source, 0, to, RECORD), -ENODATA, "became shorter", "records");
	must(weir_dataset_source_read(&source, 0, to, RECORD / 2));
	weir_dataset_source_close(&source);
}

enum { FEW_BITS = 3 }; /* of a key: all samples have one that others have, too */

/* A manifest of the records as "@prefix 0", "@prefix 1" and so on, each with its number as its label or none
 * with any. */
static void make_by_hand(const char *prefix, bool labels, struct weir_dataset_manifest *manifest)
{
	struct weir_dataset_list list = { 0 };
	struct weir_dataset_source source;
	char name[32];

	must(weir_dataset_source_storage(&source, storage, "records"));
	for (uint32_t i = 0; i < RECORDS; i++) {
		snprintf(name, sizeof(name), "%s %u", prefix, i);
		must(weir_dataset_list_add(&list, name, (uint64_t)i * RECORD, RECORD,
					   labels ? i : WEIR_DATASET_NO_LABEL));
	}
	must(weir_dataset_manifest_build(manifest, &list, list.items, list.count, source.bytes, FEW_BITS));
	manifest->header.data_bytes = source.bytes;
	must(weir_dataset_fingerprint(&source, 0, source.bytes, &manifest->header.fingerprint));
	weir_dataset_list_clear(&list);
	weir_dataset_source_close(&source);
}

static void index_by_hand(const char *prefix, bool labels, const char *manifest_name)
{
	struct weir_dataset_manifest manifest;

	make_by_hand(prefix, labels, &manifest);
	must(weir_dataset_manifest_save(&manifest, manifest_name));
	weir_dataset_manifest_free(&manifest);
}

/* Names and labels of both: the first storage's samples have none, and the second one's stand behind them. */
static void check_names(struct weir_dataset *dataset)
{
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	uint64_t number;
	char name[32];

	for (uint32_t i = 0; i < 2 * RECORDS; i++) {
		bool second = i >= RECORDS;

		snprintf(name, sizeof(name), "%s %u", second ? "b" : "a", i % RECORDS);
		must(weir_dataset_find(dataset, name, &number));
		assert_int_equal(number, i);
		must(weir_dataset_sample(dataset, i, &sample));
		assert_int_equal(sample.label, second ? i % RECORDS : WEIR_DATASET_NO_LABEL);
	}
}

/* Whole by its checksums, and a sample does not lie behind the one before, or not in the data. */
static void test_manifest_of_other_places(void **state)
{
	static const struct {
		unsigned sample;
		uint64_t offset;
		uint32_t bytes;
	} places[] = { { 1, 0, RECORD }, { 0, 0, RECORD + 1 }, { RECORDS - 1, RECORDS * RECORD, 1 } };
	struct weir_dataset_manifest manifest;
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct weir_dataset_entry *entry;

		make_by_hand("a", false, &manifest);
		entry = (struct weir_dataset_entry *)manifest.sections[WEIR_DATASET_ENTRIES] +
			places[i].sample;
		*entry = weir_dataset_entry(0, weir_dataset_entry_key(*entry), places[i].offset,
					    places[i].bytes);
		must(weir_dataset_manifest_save(&manifest, manifest_path));
		weir_dataset_manifest_free(&manifest);
		refused(mount(&dataset), -EBADMSG, "records.weir' is damaged: its sample",
			"does not lie behind the one before");
	}
	must(weir_storage_close(storage));
}

/* Two storages of one dataset, the second of which takes the shortest commands. */
static void test_two_storages(void **state)
{
	static char second_path[sizeof(manifest_path) + 2];
	const char *const manifests[] = { manifest_path, second_path };
	struct weir_storage *both[2];
	struct weir_dataset *dataset;

	(void)state;
	snprintf(second_path, sizeof(second_path), "%s.2", manifest_path);
	rig_records(path, RECORDS, RECORD);
	open_records("?mdts=8K");
	both[1] = storage;
	open_records("");
	both[0] = storage;
	index_by_hand("a", false, manifest_path);
	index_by_hand("b", true, second_path);
	must(weir_dataset_mount(context, both, 2,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10),
				&dataset));
	check_names(dataset);
	assert_int_equal(dataset->cache.events_per_slot, 64 / 8); /* commands for a chunk */
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(both[0]));
	must(weir_storage_close(both[1]));
}

/* What the other rank met, of a gather of two. */
static int gather_other(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			void **all, size_t *counts)
{
	unsigned char *both = malloc(2 * bytes);
	char *sentence;

	(void)communicator;
	assert_non_null(both);
	memcpy(both, mine, bytes);
	memcpy(both + bytes, mine, bytes);
	sentence = (char *)both + bytes + sizeof(int32_t);
	memcpy(sentence, "another", sizeof("another"));
	counts[0] = counts[1] = bytes;
	*all = both;
	return 0;
}

/* All ranks say the same: what the first of those that failed met. */
static void test_first_of_two_errors(void **state)
{
	struct weir_dataset_communicator pair = { .size = sizeof(pair), .ranks = 2, .gather = gather_other };
	uint64_t bytes;

	(void)state;
	assert_int_equal(weir_parse_bytes("12Q", &bytes), -EINVAL);
	refused(weir_dataset_agree(&pair, -EINVAL), -EINVAL, "rank 0: ", "12Q");
	assert_int_equal(weir_dataset_agree(&pair, 0), 0);
}

/* Above 1 TiB offsets are kept in units of 512 bytes; above 512 TiB they are not kept. */
static void test_above_a_tebibyte(void **state)
{
	enum { LONG = 4 << 20, MANY = 1 << 19 };
	const uint64_t bytes = (uint64_t)LONG * MANY;
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	struct weir_dataset_list list = { 0 };
	struct weir_dataset_manifest manifest;
	struct weir_dataset *dataset;
	unsigned char there[RECORD], got[RECORD];
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	rig_fill(there, 7, RECORD);
	assert_int_equal(ftruncate(file, (off_t)bytes), 0); /* all but the last one are holes */
	assert_int_equal(pwrite(file, there, RECORD, (off_t)(bytes - LONG)), RECORD);
	close(file);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = "fixed:4M")));
	must(mount(&dataset));
	must(weir_dataset_sample(dataset, MANY - 1, &sample));
	assert_int_equal(sample.offset, bytes - LONG);
	assert_int_equal(sample.length, LONG);
	assert_int_equal(weir_dataset_read(dataset, MANY - 1, 0, got, RECORD), RECORD);
	assert_memory_equal(got, there, RECORD);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
	must(weir_dataset_list_add(&list, "far", UINT64_C(1) << 49, RECORD, WEIR_DATASET_NO_LABEL));
	refused(weir_dataset_manifest_build(&manifest, &list, list.items, 1, UINT64_C(1) << 50, FEW_BITS),
		-EFBIG, "'far'", "512 TiB");
	weir_dataset_list_clear(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manifest_of_other_sizes),
		cmocka_unit_test(test_manifest_is_durable),
		cmocka_unit_test(test_reads_of_one),
		cmocka_unit_test(test_upload_over_another),
		cmocka_unit_test(test_archive_without_padding),
		cmocka_unit_test(test_archive_cut_in_a_header),
		cmocka_unit_test(test_manifest_of_other_places),
		cmocka_unit_test(test_quality_of_large_batches),
		cmocka_unit_test(test_quality_of_the_default),
		cmocka_unit_test(test_cut_tfrecord),
		cmocka_unit_test(test_cut_mds),
		cmocka_unit_test(test_data_that_grew),
		cmocka_unit_test(test_data_that_changed),
		cmocka_unit_test(test_file_that_shrinks),
		cmocka_unit_test(test_two_storages),
		cmocka_unit_test(test_first_of_two_errors),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_above_a_tebibyte),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_edges", tests, set_up, tear_down);
}
