/* SPDX-License-Identifier: BSD-3-Clause */
/* What a dataset refuses: numbers and batches that there are not, options that cannot be, files that are not
 * what they seem. */
#include <dlfcn.h>
#include <fts.h>

#include "dataset_records.h"

#include <isa-l/crc.h>

#include <weir/dlfs.h>

#include "manifest.h"
#include "mounted.h"

enum { CHUNK = 64 << 10 };

static int mount(struct weir_dataset_mount_options options, struct weir_dataset **dataset)
{
	static const char *const manifests[] = { manifest_path };

	options.size = sizeof(options);
	options.manifests = manifests;
	options.chunk_bytes = CHUNK;
	return weir_dataset_mount(context, &storage, 1, &options, dataset);
}

/* Behind the last sample there is none, whoever asks. */
static void test_numbers_behind_the_last(void **state)
{
	static const uint64_t numbers[] = { RECORDS, RECORDS + 1, (uint64_t)1 << 32, UINT64_MAX };
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	struct weir_dataset *dataset;
	char text[RECORD];

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		refused(weir_dataset_sample(dataset, numbers[i], &sample), -ERANGE, "there is no sample",
			"the dataset has 400");
		refused(weir_dataset_name(dataset, numbers[i], text, sizeof(text)), -ERANGE,
			"there is no sample", "the dataset has 400");
		refused((int)weir_dataset_read(dataset, numbers[i], 0, text, 1), -ERANGE,
			"there is no sample", "the dataset has 400");
	}
	must(weir_dataset_sample(dataset, RECORDS - 1, &sample));
	assert_int_equal(sample.length, RECORD);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Of descriptors behind those of samples and files none is another's, whatever its lowest 32 bits are. */
static void test_descriptors_of_nothing(void **state)
{
	static const int64_t more[] = { 1, (int64_t)1 << 32, (int64_t)1 << 62 };
	struct weir_dataset *dataset;
	char byte;

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	assert_int_equal(dlfs_open(dataset, "records"), RECORDS);
	assert_int_equal(dlfs_read(dataset, RECORDS, &byte, 1, 0), 1);
	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		refused(dlfs_read(dataset, RECORDS + more[i], &byte, 1, 0), -ERANGE, "there is no file", "");
	assert_int_equal(dlfs_read(dataset, -1, &byte, 1, 0), -EBADF);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A sample, and the file that has it among others, from any byte on, up to the end. */
static void test_reads_of_dlfs(void **state)
{
	static const uint64_t offsets[] = { 0, 5, RECORD - 1 };
	struct weir_dataset *dataset;
	int64_t sample, whole;

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	sample = dlfs_open(dataset, "record-3");
	whole = dlfs_open(dataset, "records");
	assert_in_range(sample, 0, RECORDS - 1);
	assert_int_equal(whole, RECORDS);
	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		unsigned char of_sample = 0, of_file = 1, wanted = rig_byte(rig_seed("record-3"), offsets[i]);

		assert_int_equal(dlfs_read(dataset, sample, &of_sample, 1, offsets[i]), 1);
		assert_int_equal(of_sample, wanted);
		assert_int_equal(dlfs_read(dataset, whole, &of_file, 1, 3 * RECORD + offsets[i]), 1);
		assert_int_equal(of_file, wanted);
	}
	assert_int_equal(dlfs_read(dataset, sample, &whole, sizeof(whole), RECORD - 3), 3);
	assert_int_equal(dlfs_read(dataset, sample, &whole, 1, RECORD), 0);
	assert_int_equal(dlfs_read(dataset, RECORDS, &whole, 1, RECORDS * RECORD), 0);
	must(dlfs_close(dataset, sample));
	must(dlfs_close(dataset, RECORDS));
	assert_int_equal(dlfs_close(dataset, -1), -EBADF);
	must(dlfs_unmount(dataset));
	must(weir_storage_close(storage));
}

/* dlfs_sequence() sets the paper's order, by its seed and its epoch. */
static void test_sequences_of_dlfs(void **state)
{
	static const struct {
		uint64_t seed, epoch;
	} epochs[] = { { 5, 0 }, { 5, 1 }, { 6, 1 }, { 5, (uint64_t)1 << 32 }, { (uint64_t)1 << 32, 0 } };
	enum { EPOCHS = sizeof(epochs) / sizeof(epochs[0]) };
	static uint64_t orders[EPOCHS][RECORDS];
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	for (unsigned i = 0; i < EPOCHS; i++) {
		must(dlfs_sequence(dataset, epochs[i].seed, epochs[i].epoch));
		must(dlfs_bread(dataset, RECORDS, &batch));
		assert_int_equal(batch.count, RECORDS);
		memcpy(orders[i], batch.samples, sizeof(orders[i]));
		must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = epochs[i].seed,
								 .epoch = epochs[i].epoch,
								 .order = WEIR_DATASET_CHUNK)));
		must(weir_dataset_bread(dataset, RECORDS, &batch));
		assert_memory_equal(batch.samples, orders[i], sizeof(orders[i]));
		for (unsigned other = 0; other < i; other++)
			assert_memory_not_equal(orders[other], orders[i], sizeof(orders[i]));
	}
	must(dlfs_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A batch of another dataset, or of nobody, frees nothing. */
static void test_batches_of_others(void **state)
{
	enum { BATCHES = 2 };
	const struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence), .seed = 5 };
	struct weir_dataset_batch batch = { .size = sizeof(batch) }, other = { .size = sizeof(other) };
	struct weir_dataset *dataset;
	char text[100];

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ .batches = BATCHES }, &dataset));
	refused(weir_dataset_position(dataset, text, sizeof(text)), -EINVAL, "no epoch has begun",
		"weir_dataset_position");
	must(weir_dataset_sequence(dataset, &sequence));
	must(weir_dataset_bread(dataset, 8, &batch));
	refused(weir_dataset_release(dataset, NULL), -EINVAL, "no batch of this dataset", "release");
	other.slot = BATCHES;
	refused(weir_dataset_release(dataset, &other), -EINVAL, "no batch of this dataset", "release");
	other.slot = UINT32_MAX;
	refused(weir_dataset_release(dataset, &other), -EINVAL, "no batch of this dataset", "release");
	refused(weir_dataset_bread(dataset, 0, &batch), -EINVAL, "a count of rows", "weir_dataset_bread");
	refused(weir_dataset_bread(dataset, 8, NULL), -EINVAL, "a count of rows", "weir_dataset_bread");
	must(weir_dataset_release(dataset, &batch));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

static uint32_t
	other_order[2]; /* of the other rank: bytes of its chunks, chunks of its buffer; 0: as this one's */

/* Two ranks, of which the other one sends the same, but for its order. */
static int gather_of_two(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			 void **all, size_t *counts)
{
	unsigned char *both = malloc(2 * bytes + 1);

	(void)communicator;
	assert_non_null(both);
	if (bytes) {
		memcpy(both, mine, bytes);
		memcpy(both + bytes, mine, bytes);
	}
	for (unsigned i = 0; i < 2 && bytes == sizeof(other_order); i++)
		if (other_order[i])
			memcpy(both + bytes + i * sizeof(*other_order), &other_order[i],
			       sizeof(*other_order));
	*all = both;
	counts[0] = counts[1] = bytes;
	return 0;
}

/* Ranks whose chunks are others would each have an order of its own; those whose caches are others have the
 * same one, by the smallest. */
static void test_ranks_that_are_not_alike(void **state)
{
	struct weir_dataset_communicator two = { .size = sizeof(two), .ranks = 2, .gather = gather_of_two };
	struct weir_dataset *dataset;
	char text[400];

	(void)state;
	fresh();
	other_order[0] = 2 * CHUNK;
	refused(mount((struct weir_dataset_mount_options){ .communicator = &two }, &dataset), -EINVAL,
		"rank 1 has chunks of 131072 bytes, and rank 0 of 65536", "the same chunk_bytes");
	other_order[0] = 0;
	other_order[1] = 2;
	must(mount((struct weir_dataset_mount_options){ .communicator = &two }, &dataset));
	other_order[1] = 0;
	must(weir_dataset_sequence(dataset, NULL));
	must(weir_dataset_position(dataset, text, sizeof(text)));
	assert_non_null(strstr(text, " buffer=2 "));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Another rank has sent nothing of its storage, and then this one's next storage has no manifest: the first
 * failure is all ranks', with its own sentence. */
static void test_first_of_two_storages(void **state)
{
	struct weir_dataset_communicator two = { .size = sizeof(two), .ranks = 2, .gather = gather_of_two };
	const char *const manifests[] = { manifest_path, NULL, NULL };
	struct weir_storage *three[3];
	struct weir_dataset *dataset;

	(void)state;
	fresh();
	three[0] = storage;
	for (unsigned i = 1; i < 3; i++)
		must(weir_storage_open(context, "virt:1M", NULL, &three[i]));
	refused(weir_dataset_mount(context, three, 3,
				   WEIR_OPTIONS(dataset_mount, .manifests = manifests, .communicator = &two),
				   &dataset),
		-EIO, "rank 1: dataset: no directory of storage 1 came from it", "");
	for (unsigned i = 0; i < 3; i++)
		must(weir_storage_close(three[i]));
}

/* A structure without its size is refused, and no batch is taken for it: each sample still comes once. */
static void test_batch_without_size(void **state)
{
	struct weir_dataset_batch none = { .size = 0 };
	struct weir_dataset *dataset;
	uint8_t seen[RECORDS] = { 0 };

	(void)state;
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	refused(weir_dataset_bread(dataset, 50, &none), -EINVAL, "weir_dataset_bread", "size is 0");
	refused(weir_dataset_bread_enqueue(dataset, 50, &none), -EINVAL, "weir_dataset_bread_enqueue",
		"size is 0");
	assert_int_equal(rig_read_epoch(dataset, 50, seen, 1, UINT64_MAX), RECORDS);
	rig_all_once(seen, RECORDS);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A context that is closed takes the memory of its datasets along: they refuse to go on, and can go. */
static void test_context_closed_before(void **state)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_context *others = context;
	struct weir_dataset *dataset;
	unsigned char byte;

	(void)state;
	must(weir_context_open("cpu", NULL, &context));
	fresh();
	must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
	must(weir_dataset_sequence(dataset, NULL));
	must(weir_dataset_bread(dataset, 8, &batch)); /* the next ones are under way */
	assert_int_equal(weir_dataset_read(dataset, batch.samples[0], 0, &byte, 1), 1); /* from the cache */
	must(weir_context_close(context));
	refused((int)weir_dataset_read(dataset, batch.samples[0], 0, &byte, 1), -EINVAL, "closed", "storage");
	refused(weir_dataset_bread(dataset, 8, &batch), -EINVAL, "closed", "storage");
	refused(weir_dataset_sequence(dataset, NULL), -EINVAL, "closed", "storage");
	must(weir_dataset_unmount(dataset));
	context = others;
}

static void test_options_that_cannot_be(void **state)
{
	static const struct {
		struct weir_dataset_mount_options options;
		const char *says;
	} cases[] = {
		{ { .cache_bytes = CHUNK }, "room for fewer than" },
		{ { .batches = WEIR_DATASET_MAX_BATCHES + 1 }, "batches" },
		{ { .lookup = WEIR_DATASET_AVL + 1 }, "lookup" },
		{ { .row_bytes = UINT32_MAX }, "too long" },
	};
	struct weir_dataset *dataset = NULL;

	(void)state;
	fresh();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(mount(cases[i].options, &dataset), -EINVAL, cases[i].says, "weir_dataset_mount");
	refused(weir_dataset_mount(context, &storage, 0, NULL, &dataset), -EINVAL, "storages",
		"weir_dataset_mount");
	assert_null(dataset);
	must(weir_storage_close(storage));
}

/* Names are not read before somebody asks for one. */
static void test_damaged_names(void **state)
{
	static const uint64_t wrong[][2] = { { 200, 100 }, { 0, (uint64_t)1 << 40 } };
	struct weir_dataset_header header;
	struct weir_dataset *dataset;
	char text[100];
	int file;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fresh();
		must(mount((struct weir_dataset_mount_options){ 0 }, &dataset));
		must(weir_dataset_name(dataset, 7, text, sizeof(text)));
		file = open(manifest_path, O_RDWR);
		assert_int_equal(pread(file, &header, sizeof(header), 0), sizeof(header));
		assert_int_equal(pwrite(file, wrong[i], sizeof(wrong[i]),
					(off_t)header.sections[WEIR_DATASET_NAME_OFFSETS].offset + 7 * 8),
				 sizeof(wrong[i]));
		close(file);
		refused(weir_dataset_name(dataset, 7, text, sizeof(text)), -EBADMSG, "names of storage 0",
			"damaged");
		must(weir_dataset_unmount(dataset));
		must(weir_storage_close(storage));
	}
}

/* A pax header's name that has no room is not cut: two that are cut alike would be one. */
static void test_long_pax_name(void **state)
{
	char command[9000];

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && python3 -c \"import tarfile; to = tarfile.open('records', 'w', "
		 "format=tarfile.PAX_FORMAT); to.addfile(tarfile.TarInfo('a' * 4096))\"",
		 folder);
	assert_int_equal(system(command), 0);
	open_records("");
	refused(weir_dataset_index(storage, manifest_path, NULL), -ENAMETOOLONG, "a name of 4096 characters",
		"4095 are the most");
	must(weir_storage_close(storage));
}

/* A file with holes that tar has left out has its bytes elsewhere: it is no sample, and not left out either.
 */
static void test_sparse_member(void **state)
{
	static const char *const kinds[] = { "gnu", "oldgnu", "posix --sparse-version=0.0",
					     "posix --sparse-version=0.1", "posix --sparse-version=1.0" };
	char command[300];

	(void)state;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(command, sizeof(command),
			 "cd %s && truncate -s 1M s.bin && tar --format=%s --sparse -cf records s.bin",
			 folder, kinds[i]);
		assert_int_equal(system(command), 0);
		open_records("");
		refused(weir_dataset_index(storage, manifest_path, NULL), -ENOTSUP,
			i < 2 ? "a sparse file at byte 0;" : "a sparse file at byte ", "--sparse");
		must(weir_storage_close(storage));
	}
}

/* A link to a folder above it would have samples without end. */
static void test_a_link_back(void **state)
{
	struct weir_storage *target;
	char source[64], link[100];

	(void)state;
	snprintf(source, sizeof(source), "%s/looped", folder);
	rig_folder(source, 4, 2, 10, 100);
	snprintf(link, sizeof(link), "%s/class01/back", source);
	assert_int_equal(symlink("..", link), 0);
	must(weir_storage_open(context, "virt:1M", NULL, &target));
	refused(weir_dataset_upload(&target, 1, source, NULL), -ELOOP,
		"class01/back' leads back to a folder above", "remove it");
	must(weir_storage_close(target));
}

/* What a listing says of some entry of a folder in the place of what is so. */
static struct {
	const char *name;
	int info;     /* in the place of FTS_D */
	off_t longer; /* than it is */
} listed;

FTSENT *fts_read(FTS *tree)
{
	void *next = dlsym(RTLD_NEXT, "fts64_read");
	FTSENT *entry;

	if (!next)
		next = dlsym(RTLD_NEXT, "fts_read");
	entry = (__extension__(FTSENT * (*)(FTS *)) next)(tree);
	if (!entry || !listed.name || strcmp(entry->fts_name, listed.name) != 0)
		return entry;
	if (entry->fts_info == FTS_D) {
		entry->fts_info = (unsigned short)listed.info;
		entry->fts_errno = EACCES;
	} else if (entry->fts_info == FTS_F) {
		entry->fts_statp->st_size += listed.longer;
	}
	return entry;
}

/* A folder without its samples is another dataset: one that cannot be read is no empty one, and a file that
 * has another length by the time it is read is not cut. */
static void test_a_folder_that_cannot_be_read(void **state)
{
	static const int infos[] = { FTS_DNR, FTS_ERR, FTS_NS };
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage *target;
	char source[64];

	(void)state;
	snprintf(source, sizeof(source), "%s/locked", folder);
	rig_folder(source, 6, 3, 100, 200);
	must(weir_storage_open(context, "virt:1M", NULL, &target));
	listed.name = "class01";
	for (unsigned i = 0; i < sizeof(infos) / sizeof(infos[0]); i++) {
		listed.info = infos[i];
		refused(weir_dataset_upload(&target, 1, source, NULL), -EACCES, "cannot read",
			"locked/class01");
	}
	must(weir_stats(target, &stats));
	assert_int_equal(stats.bytes_written, 0);
	listed.name = "sample000004.bin";
	for (listed.longer = -1; listed.longer < 2; listed.longer += 2)
		refused(weir_dataset_upload(&target, 1, source, NULL), -ESTALE, "sample000004.bin' has",
			"when the upload began; run it again");
	listed.name = NULL;
	must(weir_dataset_upload(&target, 1, source, NULL));
	must(weir_storage_close(target));
}

/* The samples have room, and their manifest behind them has none: nothing is written. */
static void test_no_room_for_the_manifest(void **state)
{
	enum { HEADER = 4096, EACH = 1024, SECTIONS = 4 * 4096 };
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage *target;
	char uri[64];

	(void)state;
	rig_records(path, RECORDS, RECORD);
	for (unsigned more = 0; more <= SECTIONS; more += 4096) {
		bool room = more == SECTIONS;

		snprintf(uri, sizeof(uri), "virt:%u?block=512", HEADER + RECORDS * EACH + more);
		must(weir_storage_open(context, uri, NULL, &target));
		if (room)
			must(weir_dataset_upload(&target, 1, path,
						 WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
		else
			refused(weir_dataset_upload(&target, 1, path,
						    WEIR_OPTIONS(dataset_index, .format = "fixed:1000")),
				-ENOSPC, "its 400 samples with the manifest take", "larger");
		must(weir_stats(target, &stats));
		assert_int_equal(stats.bytes_written != 0, room);
		must(weir_storage_close(target));
	}
}

/* A manifest that cannot have its name leaves nothing behind. */
static void test_a_manifest_without_a_place(void **state)
{
	char taken[64], command[200];

	(void)state;
	rig_records(path, RECORDS, RECORD);
	open_records("");
	snprintf(taken, sizeof(taken), "%s/taken", folder);
	assert_int_equal(mkdir(taken, 0755), 0);
	refused(weir_dataset_index(storage, taken, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")),
		-EISDIR, "cannot write the manifest", "taken");
	snprintf(taken, sizeof(taken), "%s/none/x.weir", folder);
	refused(weir_dataset_index(storage, taken, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")),
		-ENOENT, "cannot write the manifest", "x.weir");
	snprintf(command, sizeof(command), "[ -z \"$(ls %s | grep taken.)\" ]", folder);
	assert_int_equal(system(command), 0);
	must(weir_storage_close(storage));
}

/* Data whose beginning cannot be read is not of no format: who asks again may well be given it. */
static void test_format_that_cannot_be_read(void **state)
{
	(void)state;
	rig_records(path, RECORDS, RECORD);
	open_records("?fault=status:code=0x281:op=read:lba=0-0");
	refused(weir_dataset_index(storage, manifest_path, NULL), -EIO, "unrecovered read error", "blocks 0");
	must(weir_storage_close(storage));
	open_records("");
	refused(weir_dataset_index(storage, manifest_path, NULL), -EINVAL, "neither tar, TFRecord nor MDS",
		"records");
	must(weir_storage_close(storage));
}

/* The first sample of a shard would be in the list of samples. */
static void test_samples_in_their_list(void **state)
{
	static const uint32_t heads[][4] = { { 2, 8, 40, 50 }, { 2, 15, 40, 50 } };
	const unsigned char rest[64] = { 0 };

	(void)state;
	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		assert_int_equal(write(file, heads[i], sizeof(heads[i])), sizeof(heads[i]));
		assert_int_equal(write(file, rest, sizeof(rest)), sizeof(rest));
		close(file);
		open_records("");
		refused(weir_dataset_index(storage, manifest_path,
					   WEIR_OPTIONS(dataset_index, .format = "mds")),
			-EINVAL, "in their own offsets", "records");
		must(weir_storage_close(storage));
	}
}

static void put(off_t at, const void *bytes, size_t count)
{
	int file = open(path, O_WRONLY);

	assert_int_equal(pwrite(file, bytes, count, at), count);
	close(file);
}

static int index_tfrecords(const unsigned char *record, size_t bytes)
{
	rig_records(path, 1, bytes);
	put(0, record, bytes);
	open_records("");
	return weir_dataset_index(storage, manifest_path,
				  WEIR_OPTIONS(dataset_index, .format = "tfrecord", .checks = 1));
}

static void put_masked_crc(unsigned char *data, int bytes)
{
	uint32_t crc = ~crc32_iscsi(data, bytes, UINT32_MAX);

	crc = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
	memcpy(data + bytes, &crc, sizeof(crc));
}

/* A record of zeros, and an archive: a checksum of 0 is as wrong as others. */
static void test_data_without_checksums(void **state)
{
	unsigned char record[12 + 20 + 4] = { 20 };
	char command[400];

	(void)state;
	refused(index_tfrecords(record, sizeof(record)), -EBADMSG, "no TFRecord file",
		"checksum of the length");
	must(weir_storage_close(storage));
	put_masked_crc(record, 8);
	refused(index_tfrecords(record, sizeof(record)), -EBADMSG, "record 0",
		"checksum of its 20 bytes at byte 12");
	must(weir_storage_close(storage));
	put_masked_crc(record + 12, 20);
	must(index_tfrecords(record, sizeof(record)));
	must(weir_storage_close(storage));
	snprintf(command, sizeof(command), "cd %s && echo >a && echo >b && tar -cf records a b", folder);
	assert_int_equal(system(command), 0);
	put(1024 + 148, "\0\0\0\0\0\0\0", 8);
	open_records("");
	refused(weir_dataset_index(storage, manifest_path, NULL), -EINVAL, "checksum of the header", "1024");
	must(weir_storage_close(storage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_behind_the_last),
		cmocka_unit_test(test_batches_of_others),
		cmocka_unit_test(test_options_that_cannot_be),
		cmocka_unit_test(test_damaged_names),
		cmocka_unit_test(test_long_pax_name),
		cmocka_unit_test(test_sparse_member),
		cmocka_unit_test(test_a_link_back),
		cmocka_unit_test(test_a_folder_that_cannot_be_read),
		cmocka_unit_test(test_no_room_for_the_manifest),
		cmocka_unit_test(test_a_manifest_without_a_place),
		cmocka_unit_test(test_samples_in_their_list),
		cmocka_unit_test(test_context_closed_before),
		cmocka_unit_test(test_format_that_cannot_be_read),
		cmocka_unit_test(test_batch_without_size),
		cmocka_unit_test(test_descriptors_of_nothing),
		cmocka_unit_test(test_reads_of_dlfs),
		cmocka_unit_test(test_sequences_of_dlfs),
		cmocka_unit_test(test_ranks_that_are_not_alike),
		cmocka_unit_test(test_first_of_two_storages),
		cmocka_unit_test(test_data_without_checksums),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
