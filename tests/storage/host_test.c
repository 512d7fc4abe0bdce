/* SPDX-License-Identifier: BSD-3-Clause */
/* Every wrong call of weir.h is refused with an errno and a sentence that helps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>
#include <weir/abi.h>
#include <weir/disk.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"
#include "../rig/leaks.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/* @result is @error, and the sentence has @first and @second. */
static void refused(int result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%d instead of %d (\"%s\", \"%s\"); last: %s", result, error, first, second,
			 weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

static struct weir_context *context;
static struct weir_storage *storage; /* 1 MiB of 512-byte blocks */

static int set_up(void **state)
{
	(void)state;
	return weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &context) ||
	       weir_storage_open(context, "virt:1M",
				 WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &storage);
}

static int tear_down(void **state)
{
	(void)state;
	weir_storage_close(storage);
	weir_context_close(context);
	return 0;
}

static void test_contexts(void **state)
{
	struct weir_context *out;
	struct weir_context_options options = { .size = 3 };
	char large[128] = { 0 };
	size_t size = sizeof(large);

	(void)state;
	refused(weir_context_open("abacus", NULL, &out), -ENODEV, "abacus", "cpu");
	refused(weir_context_open("cpu:7", NULL, &out), -ENODEV, "cpu:7", "only one");
	refused(weir_context_open("cpu:memory=", NULL, &out), -ENOENT, "cpu:memory=", "cannot open");
	refused(weir_context_open("cpu:memory=/dev/null", NULL, &out), -EINVAL, "/dev/null",
		"is no window of the kernel module weir_p2p");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .wave_lanes = 3), &out), -EINVAL, "wave_lanes",
		"3");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .wave_lanes = 128), &out), -EINVAL, "128",
		"64");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 5000), &out), -EINVAL, "5000",
		"1024");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .stack_bytes = 64), &out), -EINVAL,
		"stack_bytes", "64");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .service_waves = 70000), &out), -EINVAL,
		"service_waves", "70000");
	refused(weir_context_open("cpu", &options, &out), -EINVAL, "context options", "3");
	options.size = 1 << 20;
	refused(weir_context_open("cpu", &options, &out), -EINVAL, "1048576", "WEIR_OPTIONS");
	memcpy(large, &size, sizeof(size));
	large[100] = 1;
	refused(weir_context_open("cpu", (void *)large, &out), -EINVAL, "byte 100", "does not know");
	assert_null(out);
	large[100] = 0; /* longer, but zero: a newer caller who set nothing new */
	must(weir_context_open("cpu", (void *)large, &out));
	weir_context_close(out);
	must(weir_context_open("auto", NULL, &out));
	weir_context_close(out);
	weir_context_close(NULL);
}

/* Device memory that is a file: what is copied in is in the file, what is freed is free, and no more is there
 * than that. */
static void test_memory_of_a_file(void **state)
{
	char path[] = "/tmp/weir_host_test_XXXXXX", name[64], read_back[6];
	int file = mkstemp(path);
	uint64_t first, second, third;
	struct weir_context *files, *other;

	(void)state;
	assert_true(file >= 0 && ftruncate(file, 3 * 4096 + 100) == 0 &&
		    pwrite(file, "remains", 7, 4096) == 7);
	snprintf(name, sizeof(name), "cpu:memory=%s", path);
	must(weir_context_open(name, WEIR_OPTIONS(context, .workers = 1),
			       &files)); /* has the first page itself */
	refused(weir_context_open(name, NULL, &other), -EBUSY, path, "another context");
	must(weir_alloc(files, 100, &first));
	must(weir_copy_from_device(files, read_back, first, 6));
	assert_memory_equal(read_back, "\0\0\0\0\0\0", 6);
	must(weir_copy_to_device(files, first, "memory", 6));
	must(weir_alloc(files, 4096, &second));
	refused(weir_alloc(files, 1, &third), -ENOMEM, path, "of which 0 are free");
	must(weir_free(files, first));
	refused(weir_alloc(files, 8192, &third), -ENOMEM, path, "of which 4096 are free");
	must(weir_alloc(files, 4096, &third));
	assert_int_equal(third, first);
	must(weir_copy_to_device(files, third, "memory", 6));
	weir_context_close(files);
	assert_int_equal(pread(file, read_back, 6, 4096), 6);
	assert_memory_equal(read_back, "memory", 6);
	close(file);
	unlink(path);
}

static void test_storage_uris(void **state)
{
	static const struct {
		const char *uri;
		int error;
		const char *first, *second;
	} cases[] = {
		{ "nothing", -EINVAL, "nothing", "scheme" },
		{ "tape:1M", -EINVAL, "tape", "virt:SIZE" },
		{ "virt:", -EINVAL, "virt:", "nothing" },
		{ "virt:0", -EINVAL, "virt:0", "from 512 to 127T" },
		{ "virt:300T", -EINVAL, "virt:300T is not accepted", "from 512 to 127T" },
		{ "virt:17179869184T", -EINVAL, "17179869184T", "not a size" },
		{ "virt:lots", -EINVAL, "lots", "size" },
		{ "virt:-1", -EINVAL, "-1", "size" },
		{ "virt:1000", -EINVAL, "1000", "512" },
		{ "virt:1M?colour=red", -EINVAL, "colour", "unknown" },
		{ "virt:1M?block=1024", -EINVAL, "1024", "4096" },
		{ "virt:1M?block=x", -EINVAL, "block=x", "not accepted" },
		{ "virt:1M?lat_us=-5", -EINVAL, "lat_us", "-5" },
		{ "virt:1M?mdts=5000", -EINVAL, "mdts", "5000" },
		{ "virt:1M?mdts=4096", -EINVAL, "mdts=4096", "8K" },
		{ "virt:1M?mdts=12K", -EINVAL, "mdts", "power of two" },
		{ "virt:1M?mover=push", -EINVAL, "mover=push", "pull" },
		{ "virt:1M?shadow=maybe", -EINVAL, "shadow=maybe", "off" },
		{ "nvme:ff:1f.7?shadow=maybe", -EINVAL, "shadow=maybe", "auto" },
		{ "virt:1M?threads=0", -EINVAL, "threads", "0" },
		{ "virt:1M?threads=many", -EINVAL, "threads=many", "auto" },
		{ "virt:1M?iops=1&iops=2", -EINVAL, "iops", "twice" },
		{ "virt:1M?block", -EINVAL, "block", "key=value" },
		{ "virt:1M?fault=lte:us=5", -EINVAL, "lte", "late" },
		{ "virt:1M?fault=late:us=5,status", -EINVAL, "row 2", "code=" },
		{ "file:/no/such/file?fault=status:code=9999", -EINVAL, "code=9999", "2047" },
		{ "virt:1M?load=/no/such/file", -ENOENT, "/no/such/file", "No such" },
		{ "virt:1M?trace=/no/such/file", -ENOENT, "/no/such/file", "No such" },
		{ "virt:1M?content=noise", -EINVAL, "content=noise", "zeros or address" },
		{ "virt:1M?content=address&load=/etc/hostname", -EINVAL, "load", "content=address" },
		{ "virt:300T", -EINVAL, "300T", "to 127T" },
		{ "virt:2000000T?content=address", -EINVAL, "2000000T", "to 1048576T" },
		{ "virt:1M?on=device&content=address", -ENOTSUP, "content", "on the device" },
		{ "virt:1M?on=device&trace=/tmp/trace", -ENOTSUP, "trace", "on the device" },
		{ "file:/no/such/file", -ENOENT, "/no/such/file", "exist" },
		{ "file:/tmp", -EISDIR, "/tmp", "directory" },
		{ "file:/no/such%3Ffile", -ENOENT, "/no/such?file", "exist" },
		{ "file:/no/100%", -EINVAL, "'%' is no escape", "%25" },
	};
	struct weir_storage *out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused(weir_storage_open(context, cases[i].uri, NULL, &out), cases[i].error, cases[i].first,
			cases[i].second);
		assert_null(out);
	}
}

/* A path may hold what separates the parts of a URI. */
static void test_path_with_separators(void **state)
{
	char folder[] = "/tmp/weir-path-XXXXXX", path[64], uri[96];
	struct weir_storage *out;
	int file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/why?a=1&b,100%%", folder);
	file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(file >= 0 && !ftruncate(file, 8192));
	snprintf(uri, sizeof(uri), "file:%s/why%%3Fa=1%%26b%%2C100%%25?ro=1", folder);
	must(weir_storage_open(context, uri, NULL, &out));
	weir_storage_close(out);
	snprintf(uri, sizeof(uri), "virt:16K?load=%s/why%%3Fa=1%%26b%%2C100%%25", folder);
	must(weir_storage_open(context, uri, NULL, &out));
	weir_storage_close(out);
	close(file);
	unlink(path);
	rmdir(folder);
}

/* Storages that cannot be opened, each for a reason found at another stage, leave nothing behind. */
static void test_failing_storages_leave_nothing(void **state)
{
	static const struct {
		const char *uri;
		struct weir_storage_options options;
	} cases[] = {
		{ "virt:64M?colour=red", { .queues = 1 } },
		{ "virt:64M?load=/no/such/file", { .queues = 1 } },
		{ "virt:64M?content=address&trace=/no/such/file", { .queues = 1 } },
		{ "virt:64M?shadow=on",
		  { .queues = 600 } }, /* more than a page of shadow doorbells has room for */
		{ "virt:64M?fault=status:code=9999", { .queues = 1 } },
		{ "file:/no/such/file", { .queues = 1 } },
	};
	struct test_has before;
	struct weir_storage *out;

	(void)state;
	for (unsigned round = 0; round < 24; round++) {
		if (round == 4)
			before = test_has();
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct weir_storage_options options = cases[i].options;

			options.size = sizeof(options);
			assert_true(weir_storage_open(context, cases[i].uri, &options, &out) < 0);
			assert_null(out);
		}
		must(weir_storage_open(context, "virt:16M", NULL, &out));
		weir_storage_close(out);
	}
	test_keeps(before, 8 << 20);
}

/* How the file at @path is open in this process: O_RDONLY, O_RDWR; -1 if it is not. */
static int mode_of_open_file(const char *path)
{
	for (int fd = 3; fd < 256; fd++) {
		char link[64], target[128];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		if (!strcmp(target, path))
			return fcntl(fd, F_GETFL) & O_ACCMODE;
	}
	return -1;
}

/* What is not to be written is not even open for it, whichever way that was said. */
static void test_read_only_files(void **state)
{
	static const struct {
		const char *key;
		uint32_t option, read_only;
	} cases[] = {
		{ "", 0, 0 }, { "?ro=0", 0, 0 }, { "?ro=1", 0, 1 },
		{ "", 1, 1 }, { "?ro=0", 1, 1 }, { "?ro=1", 1, 1 },
	};
	char path[] = "/tmp/weir-ro-XXXXXX", uri[64];
	static char block[4096];
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	close(file);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_storage *out;

		snprintf(uri, sizeof(uri), "file:%s%s", path, cases[i].key);
		must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .read_only = cases[i].option),
				       &out));
		must(weir_storage_info(out, &info));
		assert_int_equal(info.read_only, cases[i].read_only);
		assert_int_equal(mode_of_open_file(path), cases[i].read_only ? O_RDONLY : O_RDWR);
		assert_int_equal(weir_storage_write(out, 0, block, sizeof(block)) < 0, cases[i].read_only);
		weir_storage_close(out);
	}
	unlink(path);
}

/* The largest transfer is what the controller takes, and longer ones are split. */
static void test_transfer_limits(void **state)
{
	static const struct {
		const char *uri;
		uint32_t wanted, expected;
	} cases[] = {
		{ "virt:1M?mdts=8192", 0, 8192 },  { "virt:1M?mdts=16K", 65536, 16384 },
		{ "virt:1M?mdts=1M", 0, 65536 },   { "virt:1M?mdts=1M", 1 << 20, 1 << 20 },
		{ "virt:1M", 1 << 20, 128 << 10 },
	};
	static unsigned char bytes[256 << 10], found[256 << 10];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 >> 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_stats stats = { .size = sizeof(stats) };
		struct weir_storage *out;

		must(weir_storage_open(context, cases[i].uri,
				       WEIR_OPTIONS(storage, .max_transfer_bytes = cases[i].wanted,
						    .timeout_us = test_patient_us(5000000)),
				       &out));
		must(weir_storage_info(out, &info));
		assert_int_equal(info.max_transfer_bytes, cases[i].expected);
		must(weir_storage_write(out, 512, bytes, sizeof(bytes)));
		memset(found, 0, sizeof(found));
		must(weir_storage_read(out, 512, found, sizeof(found)));
		assert_memory_equal(found, bytes, sizeof(bytes));
		must(weir_stats(out, &stats));
		assert_int_equal(stats.failed, 0);
		assert_int_equal(stats.commands,
				 2 * ((sizeof(bytes) + cases[i].expected - 1) / cases[i].expected));
		weir_storage_close(out);
	}
}

/* What of a medium of many TiB was never written holds its own address, to its end and in every size of
 * request. */
static void test_many_tebibytes(void **state)
{
	static const uint64_t at[] = { 0,
				       ((uint64_t)1 << 32) - 512,
				       (uint64_t)1 << 32,
				       ((uint64_t)1 << 41) - 512,
				       (uint64_t)1 << 41,
				       ((uint64_t)1 << 44) + 4096,
				       ((uint64_t)300 << 40) - 4096 };
	enum { PLACES = sizeof(at) / sizeof(at[0]) };
	static uint64_t words[512];

	(void)state;
	for (unsigned block = 512; block <= 4096; block *= 8) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_storage *out;
		char uri[64];

		snprintf(uri, sizeof(uri), "virt:300T?content=address&block=%u", block);
		must(weir_storage_open(context, uri,
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &out));
		must(weir_storage_info(out, &info));
		assert_true(info.bytes == (uint64_t)300 << 40);
		for (unsigned i = 0; i < PLACES; i++) {
			uint64_t from = at[i] / block * block;

			must(weir_storage_read(out, from, words, sizeof(words)));
			for (unsigned w = 0; w < 512; w++)
				assert_true(words[w] == from + 8 * w);
		}
		for (unsigned i = 0; i < PLACES; i++) {
			memset(words, (int)i + 1, block);
			must(weir_storage_write(out, at[i] / block * block, words, block));
		}
		for (unsigned i = 0; i < PLACES; i++) {
			if (i + 1 < PLACES && at[i + 1] / block == at[i] / block)
				continue; /* the next one went over it */
			must(weir_storage_read(out, at[i] / block * block, words, block));
			assert_true(words[0] == 0x0101010101010101u * (i + 1) &&
				    words[block / 8 - 1] == words[0]);
		}
		refused(weir_storage_read(out, (uint64_t)300 << 40, words, block), -ERANGE, "reach past",
			"329853488332800");
		weir_storage_close(out);
	}
}

/* The process's threads of the name that controllers' threads have. */
static unsigned controller_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		count += file && fgets(name, sizeof(name), file) && !strncmp(name, "weir-virt-", 10);
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return count;
}

static void test_storage_threads(void **state)
{
	unsigned before = controller_threads(), wanted;
	struct weir_storage *out;
	cpu_set_t cores;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(cores), &cores), 0);
	wanted = CPU_COUNT(&cores) > 2 ? (unsigned)CPU_COUNT(&cores) - 2 : 1;
	for (unsigned queues = 1; queues <= 32; queues *= 4) {
		unsigned most = queues < 16 ? queues : 16;

		must(weir_storage_open(context, "virt:1M?threads=auto",
				       WEIR_OPTIONS(storage, .queues = queues), &out));
		assert_int_equal(controller_threads() - before, wanted < most ? wanted : most);
		weir_storage_close(out);
	}
	must(weir_storage_open(context, "virt:1M?threads=3", NULL, &out));
	assert_int_equal(controller_threads() - before, 3);
	weir_storage_close(out);
}

static void test_storage_options(void **state)
{
	struct weir_storage *out;
	struct weir_storage_options options = { .size = 1 };

	(void)state;
	refused(weir_storage_open(context, "virt:1M", &options, &out), -EINVAL, "storage options", "1");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 2000), &out), -EINVAL,
		"2000", "1024");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 1), &out), -EINVAL,
		"depth 1", "power");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 8192), &out), -EINVAL,
		"8192", "4096");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .max_transfer_bytes = 6000),
				  &out),
		-EINVAL, "max_transfer_bytes", "6000");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 4, .first_ticket = 4),
				  &out),
		-EINVAL, "first_ticket", "twice");
}

static void test_memory(void **state)
{
	uint64_t address, other = 0x1000;
	char bytes[8] = { 0 };

	(void)state;
	refused(weir_alloc(context, 0, &address), -EINVAL, "allocate", "0 bytes");
	refused(weir_free(context, other), -EINVAL, "0x1000", "allocation");
	must(weir_alloc(context, 100, &address));
	refused(weir_free(context, address + 8), -EINVAL, "free", "start");
	refused(weir_copy_to_device(context, address + 4092, bytes, 8), -EFAULT, "weir_copy_to_device",
		"8 bytes");
	refused(weir_copy_from_device(context, bytes, address - 1, 8), -EFAULT, "weir_copy_from_device",
		"8 bytes");
	must(weir_copy_to_device(context, address + 4088, bytes, 8));
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
	must(weir_free(context, 0));
}

/* What is freed is given back, all of it. */
static void test_memory_is_given_back(void **state)
{
	struct test_has before;

	(void)state;
	if (!test_on_cpu())
		skip();
	for (unsigned round = 0; round < 64; round++) {
		uint64_t address;

		if (round == 4)
			before = test_has();
		must(weir_alloc(context, 4 << 20, &address));
		must(weir_free(context, address));
	}
	test_keeps(before, 8 << 20);
}

/* The machine's memory, as its kernel tells. */
static void test_memory_of_the_machine(void **state)
{
	struct weir_context_info info = { .size = sizeof(info) };
	unsigned long long total = 0, available = 0, kib;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	(void)state;
	if (!test_on_cpu())
		skip();
	while (file && fgets(line, sizeof(line), file)) {
		total = sscanf(line, "MemTotal: %llu kB", &kib) == 1 ? kib << 10 : total;
		available = sscanf(line, "MemAvailable: %llu kB", &kib) == 1 ? kib << 10 : available;
	}
	assert_non_null(file);
	fclose(file);
	must(weir_context_info(context, &info));
	assert_true(info.memory_bytes == total);
	assert_true(info.memory_free_bytes <= total && info.memory_free_bytes > available / 4);
}

static void expect_in_flight(uint64_t address, const char *what)
{
	refused(weir_free(context, address), -EBUSY, what, "wait for its event first");
}

/* Memory of a command under way: from its first to its last byte, of any queue and any storage, and its
 * event. */
static void test_memory_in_flight(void **state)
{
	struct weir_storage *storages[2];
	uint64_t page[6], event;
	struct weir_disk disk[2];

	(void)state;
	if (!test_on_cpu()) /* the host is a lane there */
		skip();
	for (unsigned i = 0; i < 2; i++) {
		must(weir_storage_open(context, i ? "virt:2M?lat_us=400000" : "virt:1M?lat_us=400000",
				       WEIR_OPTIONS(storage, .queues = 3, .depth = 8,
						    .timeout_us = test_patient_us(60000000)),
				       &storages[i]));
		must(weir_storage_disk(storages[i], &disk[i]));
		disk[i].queues += 2 * sizeof(struct weir_queue); /* the third queue alone */
		disk[i].queue_count = 1;
	}
	for (unsigned i = 0; i < 6; i++) /* neighbours, as long as nothing else is mapped between them */
		must(weir_alloc(context, 4096, &page[i]));
	must(weir_alloc(context, 4096, &event));
	for (unsigned s = 0; s < 2; s++) {
		uint64_t low = page[0];
		unsigned pages = 1;

		for (unsigned i = 1; i < 6; i++)
			low = page[i] < low ? page[i] : low;
		for (unsigned again = 0; again < 6; again++)
			for (unsigned i = 0; i < 6; i++)
				pages += page[i] == low + pages * 4096;
		assert_int_equal(
			weir_read_async(&disk[s], 0, pages * 8, low, weir_at(event, struct weir_event, 0)),
			WEIR_OK);
		for (unsigned i = 0; i < 6; i++)
			if (page[i] >= low && page[i] < low + pages * 4096)
				expect_in_flight(page[i], s ? "virt:2M" : "virt:1M");
		expect_in_flight(event, "a read of block 0");
		assert_int_equal(weir_wait(&disk[s], weir_at(event, struct weir_event, 0), 0), WEIR_OK);
	}
	for (unsigned i = 0; i < 6; i++)
		must(weir_free(context, page[i]));
	must(weir_free(context, event));
	weir_storage_close(storages[1]);
	weir_storage_close(storages[0]);
}

/* One memory, seen by the host, by copies and by a controller. */
static void test_host_memory(void **state)
{
	uint64_t address, none;
	unsigned char *host, copy[8], zeros[64] = { 0 };
	void *nothing = copy;

	(void)state;
	refused(weir_alloc_host(context, 0, &none, &nothing), -EINVAL, "allocate", "0 bytes");
	assert_null(nothing);
	must(weir_alloc_host(context, 5000, &address, (void **)&host));
	assert_int_equal(address % 4096, 0);
	assert_memory_equal(host, zeros, sizeof(zeros));
	memcpy(host + 4992, "by host", 8);
	must(weir_copy_from_device(context, copy, address + 4992, 8));
	assert_memory_equal(copy, "by host", 8);
	must(weir_copy_to_device(context, address, "by copy", 8));
	assert_memory_equal(host, "by copy", 8);
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
}

/* The stream of launches itself has no handle: NULL. */
static void test_launches_on_streams(void **state)
{
	struct test_count_args args = { .adds = 0 };
	struct weir_context *context;
	int own;

	(void)state;
	must(weir_context_open("cpu", NULL, &context));
	refused(weir_launch_on(context, &own, "test_count", 1, 1, &args, sizeof(args)), -ENOTSUP,
		"test_count", "give NULL");
	refused(weir_launch_on(context, NULL, "no_such_kernel", 1, 1, &args, sizeof(args)), -ENOENT,
		"no_such_kernel", "");
	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	args.adds = 1;
	must(weir_launch_on(context, NULL, "test_count", 1, 1, &args, sizeof(args)));
	must(weir_context_close(context));
}

static void test_kernel_info(void **state)
{
	struct weir_kernel_info info = { .size = sizeof(info) }, unset = { .size = 0 };

	(void)state;
	refused(weir_kernel_info(context, "no_such_kernel", &info), -ENOENT, "no_such_kernel", "linked");
	refused(weir_kernel_info(context, "test_count", &unset), -EINVAL, "weir_kernel_info", "size is 0");
	must(weir_kernel_info(context, "test_count", &info));
	assert_true(info.block_lanes >= test_device()->wave_lanes);
	assert_in_range(info.registers, 0, 1024);
	if (info.registers == 0) /* lanes are the cpu's, or nothing is known of their registers */
		assert_int_equal(info.local_bytes, 0);
	if (info.block_lanes == UINT32_MAX)
		assert_int_equal(info.registers, 0);
}

static void test_host_io(void **state)
{
	static char block[1024];
	struct weir_storage *fixed;

	(void)state;
	refused(weir_storage_write(storage, 1, block, 512), -EINVAL, "offset 1", "512");
	refused(weir_storage_read(storage, 0, block, 100), -EINVAL, "100", "512");
	refused(weir_storage_write(storage, 1048064, block, 1024), -ERANGE, "1048064", "1048576");
	refused(weir_storage_write(storage, UINT64_MAX - 511, block, 1024), -ERANGE, "18446744073709551104",
		"1048576");
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .read_only = 1), &fixed));
	assert_true(weir_storage_write(fixed, 0, block, 512) < 0);
	assert_non_null(strstr(weir_last_error(), "read-only"));
	weir_storage_close(fixed);
}

/* What the controller is told to do wrong arrives as what it is. */
static void test_faults(void **state)
{
	static char block[4096];
	char path[] = "/tmp/weir-fault-XXXXXX", uri[128];
	struct weir_storage *faulty;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	must(weir_storage_open(context, "virt:1M?fault=status:code=0x281", NULL, &faulty));
	refused(weir_storage_read(faulty, 0, block, 512), -EIO, "NVMe status 2:81", "unrecovered read");
	weir_storage_close(faulty);
	snprintf(uri, sizeof(uri), "file:%s?fault=status:code=0x280:op=write:lba=1:count=1,late:us=200",
		 path);
	must(weir_storage_open(context, uri, NULL, &faulty));
	must(weir_storage_write(faulty, 0, block, 4096));
	refused(weir_storage_write(faulty, 4096, block, 4096), -EIO, "NVMe status 2:80", "write fault");
	must(weir_storage_write(faulty, 4096, block, 4096));
	weir_storage_close(faulty);
	close(file);
	unlink(path);
}

/* One command of many fails, be it the first of its lane or of another lane: all of it is told. */
static void test_faults_among_many(void **state)
{
	static const unsigned blocks[] = { 0, 8 * 3, 8 * 70 };
	static char bytes[1 << 20];
	struct weir_storage *faulty;
	char uri[128];

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		snprintf(uri, sizeof(uri), "virt:1M?block=512&fault=status:code=0x281:op=read:lba=%u:count=1",
			 blocks[i]);
		must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .max_transfer_bytes = 4096),
				       &faulty));
		refused(weir_storage_read(faulty, 0, bytes, sizeof(bytes)), -EIO, "NVMe status 2:81",
			"unrecovered read");
		must(weir_storage_read(faulty, 0, bytes, sizeof(bytes)));
		weir_storage_close(faulty);
	}
	must(weir_storage_open(context, "virt:1M?fault=status:code=0x6:op=flush:count=1", NULL, &faulty));
	refused(weir_storage_flush(faulty), -EIO, "flush", "internal error");
	must(weir_storage_flush(faulty));
	weir_storage_close(faulty);
}

/* What was asked for is what lanes are told. */
static void test_times(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *out;
	struct weir_disk disk;

	(void)state;
	must(weir_storage_open(context, "virt:1M?mdts=8K",
			       WEIR_OPTIONS(storage, .timeout_us = 1234567, .max_transfer_bytes = 65536),
			       &out));
	must(weir_storage_disk(out, &disk));
	assert_int_equal(disk.timeout_ns, 1234567000);
	must(weir_storage_info(out, &info));
	assert_int_equal(info.max_transfer_bytes, 8192);
	assert_int_equal(disk.max_blocks << disk.block_log2, 8192);
	weir_storage_close(out);
}

/* A URI says that nothing is written there. */
static void test_read_only_by_uri(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	char path[] = "/tmp/weir-fixed-XXXXXX", uri[64], block[512] = { 0 };
	struct weir_storage *fixed;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	snprintf(uri, sizeof(uri), "file:%s?ro=1&block=512", path);
	must(weir_storage_open(context, uri, NULL, &fixed));
	must(weir_storage_info(fixed, &info));
	assert_int_equal(info.read_only, 1);
	refused(weir_storage_write(fixed, 0, block, 512), -EIO, "the storage is read-only", path);
	weir_storage_close(fixed);
	close(file);
	unlink(path);
}

static void test_counts(void **state)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	static char bytes[8192];

	(void)state;
	must(weir_stats(storage, &before));
	must(weir_storage_write(storage, 0, bytes, 8192));
	must(weir_storage_read(storage, 0, bytes, 512));
	must(weir_stats(storage, &after));
	assert_int_equal(after.bytes_written - before.bytes_written, 8192);
	assert_int_equal(after.bytes_read - before.bytes_read, 512);
	assert_int_equal(after.commands - before.commands, 2);
}

/* More blocks than 2^32, and more bytes at a time than the host moves in one go. */
static void test_large_storage(void **state)
{
	const size_t bytes = (8 << 20) + 4096;
	const uint64_t size = (uint64_t)3 << 40,
		       ends[] = { 0, (uint64_t)1 << 32, (uint64_t)1 << 41, size - bytes };
	struct weir_storage_info info = { .size = sizeof(info) };
	uint64_t *words = malloc(bytes);
	struct weir_storage *large;

	(void)state;
	must(weir_storage_open(context, "virt:3T?block=512",
			       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(60000000)), &large));
	must(weir_storage_info(large, &info));
	assert_true(info.bytes == size);
	for (size_t i = 0; i < 4; i++) {
		for (size_t w = 0; w < bytes / 8; w++)
			words[w] = ends[i] + w * 8 + 1;
		must(weir_storage_write(large, ends[i], words, bytes));
	}
	for (size_t i = 0; i < 4; i++) {
		must(weir_storage_read(large, ends[i], words, bytes));
		for (size_t w = 0; w < bytes / 8; w++)
			assert_true(words[w] == ends[i] + w * 8 + 1);
	}
	weir_storage_close(large);
	free(words);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Return: how long it takes from opening @uri to the end of its closing. */
static uint64_t open_and_close(const char *uri, bool fails)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	struct weir_storage *out;
	uint8_t block[512];

	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .timeout_us = test_patient_us(60000000)),
			       &out));
	if (fails)
		refused(weir_storage_read(out, 0, block, 512), -EIO, uri, "the controller failed");
	else
		must(weir_storage_read(out, 0, block, 512));
	weir_storage_close(out);
	return clock_ns(CLOCK_MONOTONIC) - begin;
}

/*
 * A controller that failed neither answers nor makes its storage's end wait for answers: 10 s a command for
 * the admin queue alone. Measured by one that answers, for a machine with other work.
 */
static void test_failed_controller(void **state)
{
	uint64_t sound_ns;

	(void)state;
	sound_ns = open_and_close("virt:1M", false);
	assert_true(open_and_close("virt:1M?fault=fatal", true) < 8000000000 + 50 * sound_ns);
}

static void test_caches(void **state)
{
	struct weir_cache *out;

	(void)state;
	refused(weir_cache_create(context, NULL, &out), -EINVAL, "zero lines", "4");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .bytes = 65536), &out), -EINVAL,
		"bytes", "both");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 5000), &out), -EINVAL, "5000",
		"needs");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 1), &out), -EINVAL, "1 bytes",
		"needs");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = 1000), &out),
		-EINVAL, "line_bytes", "1000");
	assert_null(out);
}

/* No fewer lines than asked for, in whole sets, and no more bytes. */
static void test_cache_sizes(void **state)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) }, other = { .size = sizeof(other) };
	struct weir_cache *out;

	(void)state;
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 5), &out));
	must(weir_cache_stats(out, &stats));
	assert_int_equal(stats.lines, 8);
	must(weir_cache_destroy(out));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = stats.bytes), &out));
	must(weir_cache_stats(out, &other));
	assert_int_equal(other.lines, 8);
	assert_int_equal(other.bytes, stats.bytes);
	must(weir_cache_destroy(out));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = stats.bytes - 1), &out));
	must(weir_cache_stats(out, &other));
	assert_int_equal(other.lines, 4);
	must(weir_cache_destroy(out));
}

static int array(struct weir_cache *cache, struct weir_storage **storages, unsigned count,
		 struct weir_array_options options)
{
	struct weir_array out;

	options.size = sizeof(options);
	return weir_array_open(cache, storages, count, &options, &out);
}

#define ARRAY(count, ...) array(cache, two, count, (struct weir_array_options){ __VA_ARGS__ })

/* Arrays of the same stripe share their lines; those of another one have their own, whatever they have in
 * common. */
static void test_stripes_apart(void **state)
{
	struct weir_storage *storages[2][2] = { { storage, NULL }, { storage, NULL } };
	struct weir_array arrays[4];
	struct weir_cache *cache;

	(void)state;
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 16), &cache));
	for (unsigned i = 0; i < 2; i++)
		must(weir_storage_open(context, "virt:1M", NULL, &storages[i][1]));
	for (unsigned i = 0; i < 4; i++)
		must(weir_array_open(
			cache, storages[i == 1], 2,
			WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = i == 2 ? 131072 : 65536),
			&arrays[i]));
	assert_true(arrays[1].extent.key_base != arrays[0].extent.key_base);
	assert_true(arrays[2].extent.key_base != arrays[0].extent.key_base);
	assert_true(arrays[3].extent.key_base == arrays[0].extent.key_base);
	/* one that begins late ends with its storage */
	must(weir_array_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = 4096),
			     &arrays[1]));
	assert_int_equal(arrays[1].count, ((1 << 20) - 4096) / 8);
	weir_cache_destroy(cache);
	for (unsigned i = 0; i < 2; i++)
		weir_storage_close(storages[i][1]);
}

static void test_arrays(void **state)
{
	struct weir_storage *two[2] = { storage, NULL }, *three[3];
	struct weir_context *other;
	struct weir_writer writer;
	struct weir_cache *cache;

	(void)state;
	must(weir_storage_open(context, "virt:1M?block=4096", NULL, &two[1]));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4), &cache));
	refused(ARRAY(1, .element_bytes = 3), -EINVAL, "element_bytes", "3");
	refused(ARRAY(1, .element_bytes = 0), -EINVAL, "element_bytes", "0");
	refused(ARRAY(1, .element_bytes = 8, .first_byte = 4), -EINVAL, "first_byte 4", "8");
	refused(ARRAY(1, .element_bytes = 16, .first_byte = 8), -EINVAL, "first_byte 8", "16");
	refused(ARRAY(1, .element_bytes = 8, .count = 131073), -ERANGE, "131073", "1048576");
	refused(ARRAY(1, .element_bytes = 8, .first_byte = 2097152), -ERANGE, "2097152", "1048576");
	refused(ARRAY(0, .element_bytes = 8), -EINVAL, "0 storages", "64");
	refused(ARRAY(1, .element_bytes = 8, .stripe_bytes = 2048), -EINVAL, "stripe_bytes", "2048");
	refused(ARRAY(2, .element_bytes = 8), -EINVAL, "different block sizes", "block=4096");
	must(ARRAY(1, .element_bytes = 8, .count = 131072));
	weir_storage_close(two[1]);
	/* stripes of 64 KiB over 1 and 3 MiB: 16 rows; the other way round the first unit of one more */
	must(weir_storage_open(context, "virt:3M", NULL, &two[1]));
	must(ARRAY(2, .element_bytes = 8, .count = 32 * 8192));
	refused(ARRAY(2, .element_bytes = 8, .count = 32 * 8192 + 1), -ERANGE, "262145", "2097152");
	two[0] = two[1];
	two[1] = storage;
	must(ARRAY(2, .element_bytes = 8, .count = 33 * 8192));
	refused(ARRAY(2, .element_bytes = 8, .count = 33 * 8192 + 1), -ERANGE, "270337", "2162688");
	weir_storage_close(two[0]);
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &other));
	must(weir_storage_open(other, "virt:1M", NULL, &two[0]));
	refused(ARRAY(1, .element_bytes = 8), -EINVAL, "virt:1M", "another context");
	weir_storage_close(two[0]);
	weir_context_close(other);
	two[0] = two[1] = storage; /* twice in one stripe */
	refused(ARRAY(2, .element_bytes = 8), -EINVAL, "number 0 and number 1 of one stripe",
		"name each storage once");
	refused(weir_writer_open(cache, two, 2, WEIR_OPTIONS(array, .element_bytes = 8), &writer), -EINVAL,
		"number 0 and number 1", "name each storage once");
	must(weir_storage_open(context, "virt:1M", NULL, &three[1]));
	three[0] = three[2] = storage;
	refused(weir_writer_open(cache, three, 3, WEIR_OPTIONS(array, .element_bytes = 8), &writer), -EINVAL,
		"number 0 and number 2", "name each storage once");
	weir_storage_close(three[1]);
	weir_cache_destroy(cache);
}

static void test_results_need_their_size(void **state)
{
	struct weir_stats stats = { .size = 0 };
	struct weir_context_info info = { .size = 0 };
	struct {
		struct weir_stats stats;
		uint64_t newer[4];
	} longer;
	uint64_t bytes;

	(void)state;
	memset(&longer, 0x55, sizeof(longer));
	longer.stats.size = sizeof(longer); /* of a caller who knows more than this version: that is zero */
	must(weir_stats(storage, &longer.stats));
	assert_int_equal(longer.stats.size, sizeof(longer));
	for (unsigned i = 0; i < 4; i++)
		assert_true(longer.newer[i] == 0);
	memset(&longer, 0x55, sizeof(longer));
	longer.stats.size =
		offsetof(struct weir_stats, rogue); /* and one who knows less gets no more than that */
	must(weir_stats(storage, &longer.stats));
	assert_true(longer.stats.rogue == 0x5555555555555555u && longer.stats.failed == 0);
	refused(weir_stats(storage, &stats), -EINVAL, "weir_stats", "size is 0");
	refused(weir_context_info(context, &info), -EINVAL, "weir_context_info", "size is 0");
	refused(weir_parse_bytes("12Q", &bytes), -EINVAL, "12Q", "64M");
	refused(weir_parse_bytes("99999999999T", &bytes), -EINVAL, "99999999999T", "2^64");
	must(weir_parse_bytes("64M", &bytes));
	assert_int_equal(bytes, 64 << 20);
}

/* A kernel without code to reap, in a context with a service and in one without. Return: the device can have
 * the service. */
static bool run_service(uint32_t waves, uint64_t results[3])
{
	struct test_service_args args = { .event = 0 };
	struct weir_storage *disk;
	struct weir_context *device;
	struct weir_cache *cache;
	uint64_t words[128] = { [64] = 0x1234567 };
	int error;

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .service_waves = waves), &device));
	error = weir_storage_open(device, "virt:1M",
				  WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &disk);
	if (waves && error == -ENOTSUP) {
		refused(error, -ENOTSUP, "service_waves", "side by side");
		weir_context_close(device);
		return false;
	}
	must(error);
	must(weir_cache_create(device, WEIR_OPTIONS(cache, .bytes = 1 << 20), &cache));
	must(weir_array_open(cache, &disk, 1, WEIR_OPTIONS(array, .element_bytes = 8, .count = 1 << 17),
			     &args.array));
	must(weir_storage_disk(disk, &args.disk));
	must(weir_storage_write(disk, 0, words, sizeof(words)));
	must(weir_alloc(device, 4096, &args.buffer));
	must(weir_alloc(device, 4096, &args.event));
	args.results = args.event + 2048;
	must(weir_launch(device, "test_service", 1, 1, &args, sizeof(args)));
	if (waves)
		must(weir_sync(device));
	else
		refused(weir_sync(device), -EIO, "service_waves", "block 0");
	must(weir_copy_from_device(device, results, args.results, 3 * sizeof(*results)));
	weir_cache_destroy(cache);
	weir_storage_close(disk);
	weir_context_close(device);
	return true;
}

static void test_a_service(void **state)
{
	uint64_t results[3];

	(void)state;
	assert_true(run_service(0, results));
	assert_int_equal(results[0], WEIR_E_SERVICE);
	assert_int_equal(results[2], 0);
	if (strstr(test_device()->name, "pretended")) /* runs one kernel at a time */
		return;
	if (!run_service(4, results))
		skip();
	assert_int_equal(results[0], WEIR_OK);
	assert_int_equal(results[1], 0x1234567);
	assert_int_equal(results[2], 0x1234567);
}

/*
 * A completion never comes. The lane's worker leaves the core to others until the deadline: on a busy machine
 * it takes less still. What other threads of this process take is small beside it, and measured by the same
 * wait without a lane.
 */
static void test_a_long_wait_sleeps(void **state)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .blocks = 1, .timeout_us = 1000000 };
	struct weir_storage *silent;
	uint64_t begun, spent, others;
	uint32_t statuses[2];

	(void)state;
	if (!test_on_cpu())
		skip();
	must(weir_storage_open(context, "virt:1M?fault=drop", WEIR_OPTIONS(storage, .timeout_us = 10),
			       &silent));
	must(weir_storage_disk(silent, &args.disk));
	must(weir_alloc(context, 4096, &args.buffer));
	must(weir_alloc(context, 4096, &args.event));
	args.statuses = args.event + 2048;
	others = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	others = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - others;
	begun = clock_ns(CLOCK_MONOTONIC);
	spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	must(weir_launch(context, "test_request", 1, 1, &args, sizeof(args)));
	must(weir_sync(context));
	spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - spent;
	begun = clock_ns(CLOCK_MONOTONIC) - begun;
	must(weir_copy_from_device(context, statuses, args.statuses, sizeof(statuses)));
	assert_int_equal(statuses[0], WEIR_E_TIMEOUT);
	weir_storage_close(silent);
	must(weir_free(context, args.buffer));
	must(weir_free(context, args.event));
	if (spent > begun / 2 + 2 * others)
		fail_msg("a wait of %llu us took %llu us of processor time", (unsigned long long)begun / 1000,
			 (unsigned long long)spent / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_storage_uris),
		cmocka_unit_test(test_path_with_separators),
		cmocka_unit_test(test_memory_of_a_file),
		cmocka_unit_test(test_storage_threads),
		cmocka_unit_test(test_storage_threads),
		cmocka_unit_test(test_storage_options),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_host_io),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_faults_among_many),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_read_only_by_uri),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_large_storage),
		cmocka_unit_test(test_failed_controller),
		cmocka_unit_test(test_failing_storages_leave_nothing),
		cmocka_unit_test(test_read_only_files),
		cmocka_unit_test(test_transfer_limits),
		cmocka_unit_test(test_many_tebibytes),
		cmocka_unit_test(test_memory_is_given_back),
		cmocka_unit_test(test_memory_of_the_machine),
		cmocka_unit_test(test_memory_in_flight),
		cmocka_unit_test(test_cache_sizes),
		cmocka_unit_test(test_caches),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_stripes_apart),
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_kernel_info),
		cmocka_unit_test(test_launches_on_streams),
		cmocka_unit_test(test_results_need_their_size),
		cmocka_unit_test(test_a_service),
		cmocka_unit_test(test_a_long_wait_sleeps),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("host", tests, set_up, tear_down);
}
