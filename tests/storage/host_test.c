/* SPDX-License-Identifier: BSD-3-Clause */
/* host_test.c: every wrong call of weir.h is refused with an errno and a sentence that helps. */
#include "host_cases.h"

#include <errno.h>
#include <string.h>

#include <weir/abi.h>
#include <weir/disk.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

/* @result is @error, and the sentence has @first and @second. */
void refused(int result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%d instead of %d (\"%s\", \"%s\"); last: %s", result, error, first, second,
			 weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

struct weir_context *context;
struct weir_storage *storage; /* 1 MiB of 512-byte blocks */

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
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .stack_bytes = 16383), &out), -EINVAL,
		"stack_bytes is 16383", "16384");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .resident_lanes = (1 << 24) + 1), &out),
		-EINVAL, "resident_lanes is 16777217", "16777216");
	refused(weir_context_open("cpu", WEIR_OPTIONS(context, .stack_bytes = UINT32_MAX), &out), -EINVAL,
		"stack_bytes is 4294967295", "2147483648");
	refused(weir_context_open(
			"cpu", WEIR_OPTIONS(context, .wave_lanes = 64, .resident_lanes = UINT32_MAX), &out),
		-EINVAL, "resident_lanes is 4294967295", "16777216");
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
	struct weir_storage *two[2] = { storage, NULL }, *three[3], *many[65];
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
	for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		many[i] = storage;
	refused(array(cache, many, 65, (struct weir_array_options){ .element_bytes = 8 }), -EINVAL,
		"65 storages", "64");
	refused(ARRAY(1, .element_bytes = 8, .stripe_bytes = 12288), -EINVAL, "stripe_bytes is 12288",
		"power of two");
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
static bool run_service(uint32_t waves, uint64_t results[4])
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
	must(weir_writer_open(cache, &disk, 1, WEIR_OPTIONS(array, .element_bytes = 8, .count = 1 << 17),
			      &args.writer));
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
	must(weir_copy_from_device(device, results, args.results, 4 * sizeof(*results)));
	weir_cache_destroy(cache);
	weir_storage_close(disk);
	weir_context_close(device);
	return true;
}

static void test_a_service(void **state)
{
	uint64_t results[4];

	(void)state;
	assert_true(run_service(0, results));
	assert_int_equal(results[0], WEIR_E_SERVICE);
	assert_int_equal(results[2], 0);
	assert_int_equal(results[3], WEIR_E_SERVICE);
	if (strstr(test_device()->name, "pretended")) /* runs one kernel at a time */
		return;
	if (!run_service(4, results))
		skip();
	assert_int_equal(results[0], WEIR_OK);
	assert_int_equal(results[1], 0x1234567);
	assert_int_equal(results[2], 0x1234567);
	assert_int_equal(results[3], WEIR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_storage_uris),
		cmocka_unit_test(test_path_with_separators),
		cmocka_unit_test(test_volume_uris),
		cmocka_unit_test(test_memory_of_a_file),
		cmocka_unit_test(test_storage_threads),
		cmocka_unit_test(test_storage_threads),
		cmocka_unit_test(test_storage_options),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_host_io),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_faults_among_many),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_default_times),
		cmocka_unit_test(test_read_only_by_uri),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_large_storage),
		cmocka_unit_test(test_failed_controller),
		cmocka_unit_test(test_failing_storages_leave_nothing),
		cmocka_unit_test(test_read_only_files),
		cmocka_unit_test(test_transfer_limits),
		cmocka_unit_test(test_zero_copy),
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
