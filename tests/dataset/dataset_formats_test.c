/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that other programs wrote: the samples are all of theirs and nothing else, by name, bytes and label.
 */
#include "dataset_records.h"

#include <weir/dlfs.h>

/* Writes `records` of the case that it is given, and to `truth` a line for each sample: name, label or -1,
 * bytes, number. Byte i of sample n is (n * 7 + i) % 251. */
static const char *const writer =
	"import io, struct, sys, tarfile\n"
	"truth, case, number = open('truth', 'w'), sys.argv[1], 0\n"
	"def sample(name, label, count):\n"
	"    global number\n"
	"    number += 1\n"
	"    truth.write(f'{name} {label} {count} {number}\\n')\n"
	"    return bytes((number * 7 + i) % 251 for i in range(count))\n"
	"def tar(how):\n"
	"    with tarfile.open('records', 'w', format=how) as archive:\n"
	"        def add(name, kind, data=b'', link='', size=None):\n"
	"            info = tarfile.TarInfo(name)\n"
	"            info.type, info.linkname = kind, link\n"
	"            info.size = len(data) if size is None else size\n"
	"            archive.addfile(info, io.BytesIO(data))\n"
	"        def file(name, label, count, kind=tarfile.REGTYPE):\n"
	"            add(name, kind, sample(name, label, count))\n"
	"        add('d', tarfile.DIRTYPE)\n"
	"        file('d/a.jpg', 3, 700)\n"
	"        add('d/a.cls', tarfile.REGTYPE, b'3\\n')\n"
	"        file('d/a.txt', 3, 512)\n"
	"        file('d/ab.jpg', -1, 513)\n"
	"        add('symbolic', tarfile.SYMTYPE, link='d/a.jpg')\n"
	"        add('hard', tarfile.LNKTYPE, link='d/a.jpg')\n"
	"        add('pipe', tarfile.FIFOTYPE)\n"
	"        add('letters', tarfile.CHRTYPE)\n"
	"        add('blocks', tarfile.BLKTYPE)\n"
	"        file('old', -1, 1, tarfile.AREGTYPE)\n"
	"        file('contiguous', -1, 1025, tarfile.CONTTYPE)\n"
	"        file('e' * 100, -1, 9)\n"
	"        file('f' * 155 + '/' + 'g' * 100, -1, 10)\n"
	"        if how != tarfile.USTAR_FORMAT:\n"
	"            add('h' * 300, tarfile.SYMTYPE, link='i' * 300)\n"
	"            file('j' * 300 + '/k', -1, 11)\n"
	"        file('behind', -1, 12)\n"
	"def records(header, count, skip, label_at):\n"
	"    with open('records', 'wb') as file:\n"
	"        file.write(bytes(header))\n"
	"        for i in range(20):\n"
	"            labels = bytes([200 + i, 100 + i][:skip])\n"
	"            file.write(labels + sample(f'record-{i}', labels[label_at] if skip else -1, count))\n"
	"def mds():\n"
	"    data = [sample(f'record-{i}', -1, i * 100) for i in range(20)]\n"
	"    about, at = b'{}' * 10, [4 + 4 * 21 + 20]\n"
	"    for one in data:\n"
	"        at.append(at[-1] + len(one))\n"
	"    open('records', 'wb').write(struct.pack('<22I', 20, *at) + about + b''.join(data))\n"
	"if case == 'mds':\n"
	"    mds()\n"
	"elif case in ('ustar', 'gnu', 'pax'):\n"
	"    tar({'ustar': tarfile.USTAR_FORMAT, 'gnu': tarfile.GNU_FORMAT, 'pax': "
	"tarfile.PAX_FORMAT}[case])\n"
	"else:\n"
	"    records(*(int(word) for word in case.split()))\n";

static void open_written(const char *script, const char *which)
{
	char command[9000];
	FILE *file;

	snprintf(command, sizeof(command), "%s/writer.py", folder);
	file = fopen(command, "w");
	assert_non_null(file);
	fputs(script, file);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command), "cd %s && python3 writer.py '%s'", folder, which);
	assert_int_equal(system(command), 0);
	open_records("");
}

static void check_sample(struct weir_dataset *dataset, const char *name, int label, uint32_t bytes,
			 unsigned number)
{
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	unsigned char data[4096];
	uint64_t index;

	must(weir_dataset_find(dataset, name, &index));
	must(weir_dataset_sample(dataset, index, &sample));
	assert_int_equal(sample.length, bytes);
	assert_int_equal(sample.label, (uint32_t)label);
	assert_int_equal(weir_dataset_read(dataset, index, 0, data, sizeof(data)), bytes);
	for (uint32_t i = 0; i < bytes; i++)
		if (data[i] != (number * 7 + i) % 251)
			fail_msg("byte %u of '%s' is %u", i, name, data[i]);
}

/* The dataset is what `truth` says. */
static void check_written(const char *format)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct weir_dataset *dataset;
	uint64_t samples = 0, sum = 0;
	char truth[100], name[600];
	uint32_t bytes;
	unsigned number;
	int label;
	FILE *file;

	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = format)));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10),
				&dataset));
	snprintf(truth, sizeof(truth), "%s/truth", folder);
	file = fopen(truth, "r");
	assert_non_null(file);
	for (; fscanf(file, "%599s %d %u %u", name, &label, &bytes, &number) == 4; samples++, sum += bytes)
		check_sample(dataset, name, label, bytes, number);
	fclose(file);
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.samples, samples);
	assert_int_equal(info.bytes, sum);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

static void test_each_format(void **state)
{
	static const struct {
		const char *which, *format;
	} formats[] = {
		{ "ustar", "auto" },
		{ "gnu", "auto" },
		{ "pax", "tar" },
		{ "mds", "mds" },
		{ "0 3072 1 0", "cifar10" },
		{ "0 3072 2 1", "cifar100" },
		{ "0 700 0 0", "fixed:700" },
		{ "16 700 0 0", "fixed:700:16" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		open_written(writer, formats[i].which);
		check_written(formats[i].format);
	}
}

/* The first of the eleven digits of a size counts, as those behind it do. */
static void test_size_of_eleven_digits(void **state)
{
	(void)state;
	open_written("import tarfile\n"
		     "info = tarfile.TarInfo('large')\n"
		     "info.size = 0o77777777777\n"
		     "with open('records', 'wb') as file:\n"
		     "    file.write(info.tobuf(tarfile.USTAR_FORMAT))\n"
		     "    file.truncate(512 + info.size + 1)\n",
		     "");
	refused(weir_dataset_index(storage, manifest_path, NULL), -EFBIG, "'large'", "8589934591 bytes");
	must(weir_storage_close(storage));
}

enum { FEW = 40, CLASSES = 3, LEAST = 10, MOST = 3000, CHUNK = 64 << 10 };

/* Its numbers are the samples'; labels there are @classes. Return: bytes of its directory before a name is
 * asked for. */
static uint64_t check_info(struct weir_dataset *dataset, uint32_t classes)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	uint32_t longest = 0, shortest = UINT32_MAX;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < FEW; i++) {
		uint32_t length = LEAST + i * 7919u % (MOST - LEAST + 1);

		bytes += length;
		longest = length > longest ? length : longest;
		shortest = length < shortest ? length : shortest;
	}
	must(weir_dataset_info(dataset, &info));
	assert_int_equal(info.samples, FEW);
	assert_int_equal(info.bytes, bytes);
	assert_int_equal(info.longest_bytes, longest);
	assert_int_equal(info.shortest_bytes, shortest);
	assert_int_equal(info.labels, classes);
	assert_int_equal(info.storages, 1);
	assert_int_equal(info.chunk_bytes, CHUNK);
	assert_int_equal(info.row_bytes, (longest + 15) / 16 * 16);
	assert_in_range(info.chunks, (bytes + CHUNK - 1) / CHUNK, FEW);
	assert_int_equal(info.cache_bytes, info.chunks * CHUNK); /* all that would have a use for it */
	assert_true(info.mount_us > 0);
	return info.directory_bytes;
}

/* By their names, with their labels or without any. Return: bytes of the directory with its index. */
static uint64_t check_found(struct weir_dataset *dataset, bool labels)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	char name[64], other[64];
	uint64_t number;

	for (uint32_t i = 0; i < FEW; i++) {
		snprintf(name, sizeof(name), "class%02u/sample%06u.bin", i % CLASSES, i);
		must(weir_dataset_find(dataset, name, &number));
		must(weir_dataset_name(dataset, number, other, sizeof(other)));
		assert_string_equal(other, name);
		must(weir_dataset_sample(dataset, number, &sample));
		assert_int_equal(sample.length, LEAST + i * 7919u % (MOST - LEAST + 1));
		assert_int_equal(sample.label, labels ? i % CLASSES : WEIR_DATASET_NO_LABEL);
	}
	assert_int_equal(weir_dataset_find(dataset, "class00", &number), -ENOENT);
	must(weir_dataset_info(dataset, &info));
	return info.directory_bytes;
}

/* Whatever a dataset says of itself, by either index, and mounted without labels. */
static void test_what_a_dataset_says_of_itself(void **state)
{
	const struct weir_dataset_mount_options ways[] = {
		{ .size = sizeof(ways[0]), .chunk_bytes = CHUNK },
		{ .size = sizeof(ways[0]), .chunk_bytes = CHUNK, .lookup = WEIR_DATASET_AVL },
		{ .size = sizeof(ways[0]), .chunk_bytes = CHUNK, .no_labels = 1 },
	};
	struct weir_dataset *dataset;
	struct weir_storage *target;
	uint64_t before[3], after[3];
	char source[100];

	(void)state;
	snprintf(source, sizeof(source), "%s/few", folder);
	rig_folder(source, FEW, CLASSES, LEAST, MOST);
	must(weir_storage_open(context, "virt:1M", NULL, &target));
	must(weir_dataset_upload(&target, 1, source, NULL));
	for (unsigned i = 0; i < 3; i++) {
		must(weir_dataset_mount(context, &target, 1, &ways[i], &dataset));
		before[i] = check_info(dataset, i < 2 ? CLASSES : 0);
		after[i] = check_found(dataset, i < 2);
		must(weir_dataset_unmount(dataset));
	}
	must(weir_storage_close(target));
	assert_true(before[0] >= FEW * (16 + 4));
	assert_int_equal(before[1], before[0]);
	assert_int_equal(before[2], before[0] - FEW * 4); /* the labels */
	assert_true(after[0] > before[0] && after[2] == after[0] - FEW * 4);
	assert_true(after[1] - before[1] >= FEW * 9); /* two children and a height */
}

enum { OTHERS = 300, OTHER = 700, ALL = RECORDS + OTHERS };

/* Byte @at of record @record of either file. */
static unsigned char byte_of(uint64_t record, uint64_t at)
{
	char name[32];

	snprintf(name, sizeof(name), "record-%llu", (unsigned long long)record);
	return rig_byte(rig_seed(name), at);
}

/* A few parts of a few samples, the first and the last of both storages among them. */
static void check_parts(struct weir_dataset *dataset)
{
	static const uint64_t numbers[] = { 0, 7, RECORDS - 1, RECORDS, RECORDS + 33, ALL - 1 };
	static const uint64_t offsets[] = { 0, 1, 299, 512, OTHER - 1, RECORD };
	unsigned char data[124];

	for (unsigned i = 0; i < 36; i++) {
		uint64_t number = numbers[i / 6], offset = offsets[i % 6];
		uint64_t length = number < RECORDS ? RECORD : OTHER,
			 left = offset < length ? length - offset : 0;
		uint64_t comes = left < 123 ? left : 123;

		memset(data, 0x5a, sizeof(data));
		assert_int_equal(i % 2 ? weir_dataset_read(dataset, number, offset, data, 123)
				       : dlfs_read(dataset, (int64_t)number, data, 123, (off_t)offset),
				 comes);
		for (uint64_t at = 0; at < sizeof(data); at++)
			if (data[at] != (at < comes ? byte_of(number % RECORDS, offset + at) : 0x5a))
				fail_msg("byte %llu of sample %llu from %llu on is %u",
					 (unsigned long long)at, (unsigned long long)number,
					 (unsigned long long)offset, data[at]);
	}
}

/* Parts of a whole file. */
static void check_file(struct weir_dataset *dataset, const char *name, uint64_t count, uint64_t each)
{
	const uint64_t offsets[] = { 0, 12345, count * each - 50 };
	unsigned char data[100];
	uint64_t bytes;
	uint32_t file;

	must(weir_dataset_find_file(dataset, name, &file, &bytes));
	assert_int_equal(bytes, count * each);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t comes = i < 2 ? 100 : 50;

		assert_int_equal(weir_dataset_read_file(dataset, file, offsets[i], data, 100), comes);
		for (uint64_t at = offsets[i]; at < offsets[i] + comes; at++)
			assert_int_equal(data[at - offsets[i]], byte_of(at / each, at % each));
	}
}

/* More names than are looked up at the same time, and some that are none. */
static void check_many(struct weir_dataset *dataset)
{
	enum { NAMES = 50 };
	char texts[NAMES][32];
	const char *names[NAMES];
	uint64_t found[NAMES];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s-%u", i % 9 ? "record" : "none", i * 7 % RECORDS);
		names[i] = texts[i];
	}
	must(weir_dataset_find_many(dataset, names, NAMES, found));
	for (unsigned i = 0; i < NAMES; i++)
		assert_true(found[i] == (i % 9 ? i * 7 % RECORDS : UINT64_MAX));
}

/* Parts of samples and files of two storages are what is there; where chunks are in the cache no storage is
 * asked. */
static void test_parts_of_samples_and_files(void **state)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	static char other_path[100], other_manifest[100];
	const char *const manifests[] = { manifest_path, other_manifest };
	struct weir_storage *both[2];
	struct weir_dataset *dataset;
	uint8_t seen[ALL] = { 0 };
	char uri[128];

	(void)state;
	fresh();
	both[0] = storage;
	snprintf(other_path, sizeof(other_path), "%s/others", folder);
	snprintf(other_manifest, sizeof(other_manifest), "%s/others.weir", folder);
	rig_records(other_path, OTHERS, OTHER);
	snprintf(uri, sizeof(uri), "file:%s", other_path);
	must(weir_storage_open(context, uri, NULL, &both[1]));
	must(weir_dataset_index(both[1], other_manifest, WEIR_OPTIONS(dataset_index, .format = "fixed:700")));
	must(weir_dataset_mount(context, both, 2,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = CHUNK),
				&dataset));
	check_many(dataset);
	check_file(dataset, "records", RECORDS, RECORD);
	check_file(dataset, "others", OTHERS, OTHER);
	check_parts(dataset);
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 50, seen, 1, UINT64_MAX), ALL);
	must(weir_stats(both[1], &before));
	check_parts(dataset);
	must(weir_stats(both[1], &after));
	assert_int_equal(after.commands, before.commands);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(both[0]));
	must(weir_storage_close(both[1]));
}

/* Subfolders are classes by their names, with all that is below them; files beside them have none. */
static void test_classes_of_a_folder(void **state)
{
	static const struct {
		const char *name;
		int label;
	} files[] = { { "b/deep/er/x", 1 }, { "a/y", 0 }, { "b/z", 1 },
		      { "top", -1 },        { "c/w", 2 }, { "aa", -1 } };
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	struct weir_dataset *dataset;
	struct weir_storage *target;
	char command[400], source[100];
	uint64_t number;

	(void)state;
	snprintf(source, sizeof(source), "%s/classes", folder);
	snprintf(command, sizeof(command), "mkdir -p %s/b/deep/er %s/a %s/c", source, source, source);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < 6; i++)
		rig_file(source, files[i].name, 100 + i);
	must(weir_storage_open(context, "virt:1M", NULL, &target));
	must(weir_dataset_upload(&target, 1, source, NULL));
	must(weir_dataset_mount(context, &target, 1, NULL, &dataset));
	for (unsigned i = 0; i < 6; i++) {
		must(weir_dataset_find(dataset, files[i].name, &number));
		must(weir_dataset_sample(dataset, number, &sample));
		assert_int_equal(sample.length, 100 + i);
		assert_int_equal(sample.label, (uint32_t)files[i].label);
	}
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(target));
}

static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	FILE *file = fopen(name, "rb");
	int byte;

	assert_non_null(file);
	while ((byte = getc(file)) != EOF)
		hash = (hash ^ (uint64_t)byte) * UINT64_C(0x100000001b3);
	fclose(file);
	return hash;
}

/* What an earlier version wrote is read: a manifest beside the data, and what is uploaded, are what they have
 * always been, to the byte. */
static void test_bytes_stay(void **state)
{
	char target[100], source[100], command[300];
	struct weir_storage *other;

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	assert_int_equal(hash_of(manifest_path), UINT64_C(0x1d9ce150a0596e22));
	snprintf(source, sizeof(source), "%s/pictures", folder);
	rig_folder(source, 50, 3, 1, 3000);
	snprintf(command, sizeof(command), "truncate -s 1M %s/target", folder);
	assert_int_equal(system(command), 0);
	snprintf(target, sizeof(target), "file:%s/target", folder);
	must(weir_storage_open(context, target, NULL, &other));
	must(weir_dataset_upload(&other, 1, source, NULL));
	must(weir_storage_close(other));
	assert_int_equal(hash_of(target + strlen("file:")), UINT64_C(0x57ae4175d858174f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_format),
		cmocka_unit_test(test_size_of_eleven_digits),
		cmocka_unit_test(test_bytes_stay),
		cmocka_unit_test(test_what_a_dataset_says_of_itself),
		cmocka_unit_test(test_parts_of_samples_and_files),
		cmocka_unit_test(test_classes_of_a_folder),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_formats", tests, set_up, tear_down);
}
