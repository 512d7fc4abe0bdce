/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that other programs wrote: the samples are all of theirs and nothing else, by name, bytes and label.
 */
#include "dataset_records.h"

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
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_formats", tests, set_up, tear_down);
}
