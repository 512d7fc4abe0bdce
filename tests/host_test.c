/* SPDX-License-Identifier: BSD-3-Clause */
/* Every wrong call of weir.h is refused with an errno and a sentence that helps. */
#include <dirent.h>
#include <errno.h>
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

#include <weir/abi.h>
#include <weir/weir.h>

#include "context.h"
#include "kernels.h"

#define must(call)                                                                       \
	do {                                                                             \
		if ((call) != 0)                                                         \
			fail_msg("%s: %s", #call, weir_last_error());                    \
	} while (0)

/* @result is @error, and the sentence has @first and @second. */
static void refused(int result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%d instead of %d (\"%s\", \"%s\"); last: %s", result, error, first, second, weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

static struct weir_context *context;
static struct weir_storage *storage; /* 1 MiB of 512-byte blocks */

static int set_up(void **state)
{
	(void)state;
	return weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &context) ||
	       weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &storage);
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
	refused(weir_context_open("cpu:memory=/dev/null", NULL, &out), -EINVAL, "/dev/null", "is no window of the kernel module weir_p2p");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .wave_lanes = 3), &out), -EINVAL, "wave_lanes", "3");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .wave_lanes = 128), &out), -EINVAL, "128", "64");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 5000), &out), -EINVAL, "5000", "1024");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .stack_bytes = 64), &out), -EINVAL, "stack_bytes", "64");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .service_waves = 70000), &out), -EINVAL, "service_waves", "70000");
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

/* Device memory that is a file: what is copied in is in the file, what is freed is free, and no more is there than that. */
static void test_memory_of_a_file(void **state)
{
	char path[] = "/tmp/weir_host_test_XXXXXX", name[64], read_back[6];
	int file = mkstemp(path);
	uint64_t first, second, third;
	struct weir_context *files, *other;

	(void)state;
	assert_true(file >= 0 && ftruncate(file, 3 * 4096 + 100) == 0 && pwrite(file, "remains", 7, 4096) == 7);
	snprintf(name, sizeof(name), "cpu:memory=%s", path);
	must(weir_context_open(name, WEIR_OPTIONS(context, .workers = 1), &files)); /* has the first page itself */
	refused(weir_context_open(name, NULL, &other), -EBUSY, path, "another context");
	must(weir_alloc(files, 100, &first));
	must(weir_copy_out(files, read_back, first, 6));
	assert_memory_equal(read_back, "\0\0\0\0\0\0", 6);
	must(weir_copy_in(files, first, "memory", 6));
	must(weir_alloc(files, 4096, &second));
	refused(weir_alloc(files, 1, &third), -ENOMEM, path, "of which 0 are free");
	must(weir_free(files, first));
	refused(weir_alloc(files, 8192, &third), -ENOMEM, path, "of which 4096 are free");
	must(weir_alloc(files, 4096, &third));
	assert_int_equal(third, first);
	must(weir_copy_in(files, third, "memory", 6));
	weir_context_close(files);
	assert_int_equal(pread(file, read_back, 6, 4096), 6);
	assert_memory_equal(read_back, "memory", 6);
	close(file);
	unlink(path);
}

static void test_storage_uris(void **state)
{
	static const struct { const char *uri; int error; const char *first, *second; } cases[] = {
		{ "nothing", -EINVAL, "nothing", "scheme" },
		{ "tape:1M", -EINVAL, "tape", "virt:SIZE" },
		{ "virt:", -EINVAL, "virt:", "nothing" },
		{ "virt:0", -EINVAL, "virt:0", "size" },
		{ "virt:lots", -EINVAL, "lots", "size" },
		{ "virt:-1", -EINVAL, "-1", "size" },
		{ "virt:1000", -EINVAL, "1000", "512" },
		{ "virt:1M?colour=red", -EINVAL, "colour", "unknown" },
		{ "virt:1M?block=1024", -EINVAL, "1024", "4096" },
		{ "virt:1M?block=x", -EINVAL, "block=x", "not accepted" },
		{ "virt:1M?lat_us=-5", -EINVAL, "lat_us", "-5" },
		{ "virt:1M?mdts=5000", -EINVAL, "mdts", "5000" },
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
		{ "file:/no/such/file", -ENOENT, "/no/such/file", "exist" },
		{ "file:/tmp", -EISDIR, "/tmp", "directory" },
	};
	struct weir_storage *out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused(weir_storage_open(context, cases[i].uri, NULL, &out), cases[i].error, cases[i].first,
			cases[i].second);
		assert_null(out);
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

		must(weir_storage_open(context, "virt:1M?threads=auto", WEIR_OPTIONS(storage, .queues = queues), &out));
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
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 2000), &out), -EINVAL, "2000", "1024");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 1), &out), -EINVAL, "depth 1", "power");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 8192), &out), -EINVAL, "8192", "4096");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .max_transfer_bytes = 6000), &out), -EINVAL,
		"max_transfer_bytes", "6000");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 4, .first_ticket = 4), &out), -EINVAL,
		"first_ticket", "twice");
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
	refused(weir_copy_in(context, address + 4092, bytes, 8), -EFAULT, "weir_copy_in", "8 bytes");
	refused(weir_copy_out(context, bytes, address - 1, 8), -EFAULT, "weir_copy_out", "8 bytes");
	must(weir_copy_in(context, address + 4088, bytes, 8));
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
	must(weir_free(context, 0));
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
	must(weir_copy_out(context, copy, address + 4992, 8));
	assert_memory_equal(copy, "by host", 8);
	must(weir_copy_in(context, address, "by copy", 8));
	assert_memory_equal(host, "by copy", 8);
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
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
	snprintf(uri, sizeof(uri), "file:%s?fault=status:code=0x280:op=write:lba=1:count=1,late:us=200", path);
	must(weir_storage_open(context, uri, NULL, &faulty));
	must(weir_storage_write(faulty, 0, block, 4096));
	refused(weir_storage_write(faulty, 4096, block, 4096), -EIO, "NVMe status 2:80", "write fault");
	must(weir_storage_write(faulty, 4096, block, 4096));
	weir_storage_close(faulty);
	close(file);
	unlink(path);
}

/* A controller that failed neither answers nor makes its storage's end wait for answers. */
static void test_failed_controller(void **state)
{
	struct weir_storage *dying;
	uint8_t block[512];
	struct timespec begin, end;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	must(weir_storage_open(context, "virt:1M?fault=fatal", WEIR_OPTIONS(storage, .timeout_us = 60000000), &dying));
	refused(weir_storage_read(dying, 0, block, 512), -EIO, "fault=fatal", "the controller failed");
	weir_storage_close(dying);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 8); /* its admin queue alone would wait 10 s a command */
}

static void test_caches(void **state)
{
	struct weir_cache *out;

	(void)state;
	refused(weir_cache_create(context, NULL, &out), -EINVAL, "zero lines", "4");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .bytes = 65536), &out), -EINVAL, "bytes", "both");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 5000), &out), -EINVAL, "5000", "needs");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 1), &out), -EINVAL, "1 bytes", "needs");
	refused(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = 1000), &out), -EINVAL, "line_bytes", "1000");
	assert_null(out);
}

static int array(struct weir_cache *cache, struct weir_storage **storages, unsigned count,
		 struct weir_array_options options)
{
	struct weir_array out;

	options.size = sizeof(options);
	return weir_array_open(cache, storages, count, &options, &out);
}

#define ARRAY(count, ...) array(cache, two, count, (struct weir_array_options){ __VA_ARGS__ })

static void test_arrays(void **state)
{
	struct weir_storage *two[2] = { storage, NULL };
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
	two[1] = storage; /* twice in one stripe */
	refused(ARRAY(2, .element_bytes = 8), -EINVAL, "number 0 and number 1 of one stripe", "name each storage once");
	refused(weir_writer_open(cache, two, 2, WEIR_OPTIONS(array, .element_bytes = 8), &writer), -EINVAL, "number 0 and number 1",
		"name each storage once");
	weir_cache_destroy(cache);
}

static void test_results_need_their_size(void **state)
{
	struct weir_stats stats = { .size = 0 };
	struct weir_context_info info = { .size = 0 };
	uint64_t bytes;

	(void)state;
	refused(weir_stats(storage, &stats), -EINVAL, "weir_stats", "size is 0");
	refused(weir_context_info(context, &info), -EINVAL, "weir_context_info", "size is 0");
	refused(weir_parse_bytes("12Q", &bytes), -EINVAL, "12Q", "64M");
	refused(weir_parse_bytes("99999999999T", &bytes), -EINVAL, "99999999999T", "2^64");
	must(weir_parse_bytes("64M", &bytes));
	assert_int_equal(bytes, 64 << 20);
}

/* A kernel without code to reap, in a context with a service and in one without. Return: the device can have the service. */
static bool run_service(uint32_t waves, uint64_t results[3])
{
	struct test_service_args args = { .event = 0 };
	struct weir_storage *disk;
	struct weir_context *device;
	struct weir_cache *cache;
	uint64_t words[128] = { [64] = 0x1234567 };
	int error;

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .service_waves = waves), &device));
	error = weir_storage_open(device, "virt:1M", WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &disk);
	if (waves && error == -ENOTSUP) {
		refused(error, -ENOTSUP, "service_waves", "side by side");
		weir_context_close(device);
		return false;
	}
	must(error);
	must(weir_cache_create(device, WEIR_OPTIONS(cache, .bytes = 1 << 20), &cache));
	must(weir_array_open(cache, &disk, 1, WEIR_OPTIONS(array, .element_bytes = 8, .count = 1 << 17), &args.array));
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
	must(weir_copy_out(device, results, args.results, 3 * sizeof(*results)));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contexts),	cmocka_unit_test(test_storage_uris),
		cmocka_unit_test(test_memory_of_a_file),
		cmocka_unit_test(test_storage_threads),
		cmocka_unit_test(test_storage_threads), cmocka_unit_test(test_storage_options), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_host_io),		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_failed_controller),
		cmocka_unit_test(test_caches),		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_host_memory),	cmocka_unit_test(test_kernel_info),
		cmocka_unit_test(test_results_need_their_size), cmocka_unit_test(test_a_service),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("host", tests, set_up, tear_down);
}
