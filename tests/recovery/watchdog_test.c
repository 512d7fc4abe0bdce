/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog_test.c: a controller that fails, is pulled out, or is switched off by somebody else, with requests
 * under way. Deadlines here are ten minutes: that lanes return at all, and with the controller's own status,
 * shows that they were told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weir/status.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

enum { LANES = 64, BLOCK = 512 };

#define NEVER_US ((uint64_t)600 * 1000000)
#define BY_HOST  (WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_ABORTED_BY_HOST)

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static void open_dying(struct weir_context *context, const char *fault, struct weir_storage **storage)
{
	char uri[128];

	snprintf(uri, sizeof(uri), "virt:1M?block=512&fault=%s", fault);
	must(test_storage_open(context, uri,
			       WEIR_OPTIONS(storage, .queues = 3, .depth = 8, .timeout_us = NEVER_US),
			       storage));
}

static void open_context(uint32_t width, struct weir_context **context)
{
	must(weir_context_open(
		test_context_name(),
		WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width, .service_waves = test_service()),
		context));
}

/* Elements through a cache, by more lanes than the queues have slots. @says: of what cannot be read; NULL:
 * all can. */
static void read_elements(struct weir_context *context, struct weir_storage *storage, const char *says)
{
	struct test_array_args args = { .array_count = 1, .kind = TEST_READ_RANDOM, .reads = 100, .salt = 5 };
	struct weir_cache *cache;

	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = BLOCK), &cache));
	must(weir_array_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &args.array[0]));
	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	must(weir_launch(context, "test_array", 2, LANES, &args, sizeof(args)));
	if (!says)
		must(weir_sync(context));
	else if (weir_sync(context) != -EIO || !strstr(weir_last_error(), "could not get block") ||
		 !strstr(weir_last_error(), says))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), says);
	(void)weir_cache_destroy(cache);
}

/* Later requests are refused by the same status. Return: of one read. */
static uint32_t read_block(struct weir_context *context, struct weir_storage *storage)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .blocks = 1, .lba = 7 };
	uint32_t statuses[2];

	must(weir_storage_disk(storage, &args.disk));
	must(weir_alloc(context, BLOCK, &args.buffer));
	must(weir_alloc(context, sizeof(struct weir_event), &args.event));
	must(weir_alloc(context, sizeof(statuses), &args.statuses));
	must(weir_launch(context, "test_request", 1, 1, &args, sizeof(args)));
	(void)weir_sync(context);
	must(weir_copy_from_device(context, statuses, args.statuses, sizeof(statuses)));
	return statuses[0];
}

/* Another storage of the same context goes on, and one can be opened in the place of the dead one. */
static void check_alive(struct weir_context *context, struct weir_storage *other)
{
	uint8_t block[BLOCK], found[BLOCK];

	memset(block, 0x5a, sizeof(block));
	must(weir_storage_write(other, 512, block, sizeof(block)));
	must(weir_storage_read(other, 512, found, sizeof(found)));
	assert_memory_equal(block, found, sizeof(block));
	assert_int_equal(read_block(context, other), WEIR_OK);
}

static void lose(const char *fault, uint32_t status, const char *says)
{
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_storage *dying, *other;
		struct weir_context *context;

		open_context(test_width(w), &context);
		must(test_storage_open(context, "virt:64K?block=512", NULL, &other));
		open_dying(context, fault, &dying);
		read_elements(context, dying, says);
		assert_int_equal(read_block(context, dying), status);
		check_alive(context, other);
		weir_storage_close(dying);
		must(test_storage_open(context, "virt:1M?block=512", NULL, &dying));
		check_alive(context, dying);
		weir_storage_close(dying);
		weir_storage_close(other);
		weir_context_close(context);
	}
}

/* timeout_ms=0: that commands are late tells nobody. */
static void test_failed(void **state)
{
	(void)state;
	lose("fatal:after=40&timeout_ms=0", WEIR_E_DEVICE_DEAD, "the controller failed");
}

static void test_pulled_out(void **state)
{
	(void)state;
	lose("gone:after=40&timeout_ms=0", WEIR_E_DEVICE_GONE, "no longer answers");
}

/* Nothing else is under way: the one who waits is told, too. */
static void test_the_first_request(void **state)
{
	static const char *const faults[] = { "fatal&timeout_ms=0", "gone&timeout_ms=0" };
	static const uint32_t statuses[] = { WEIR_E_DEVICE_DEAD, WEIR_E_DEVICE_GONE };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct weir_storage *storage;
		struct weir_context *context;

		open_context(test_width(0), &context);
		open_dying(context, faults[i], &storage);
		assert_int_equal(read_block(context, storage), statuses[i]);
		weir_storage_close(storage);
		weir_context_close(context);
	}
}

static struct weir_stats stats_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(storage, &stats));
	return stats;
}

/* Lanes may know that a command ended before the watchdog has counted why. */
static void check_resets(struct weir_storage *storage, uint64_t resets)
{
	for (unsigned i = 0; i < 30000 && stats_of(storage).resets < resets; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(stats_of(storage).resets, resets);
	assert_int_equal(stats_of(storage).rogue, 0);
}

static void switch_off(uint32_t width, bool retries)
{
	struct weir_storage *storage, *other;
	struct weir_context *context;

	open_context(width, &context);
	must(test_storage_open(context, "virt:64K?block=512", NULL, &other));
	open_dying(context,
		   retries ? "off:after=40:count=1&timeout_ms=0"
			   : "off:after=40:count=1&timeout_ms=0&retries=0",
		   &storage);
	read_elements(context, storage, retries ? NULL : "ended by the host");
	check_resets(storage, 1);
	assert_true(stats_of(storage).failed >= 1 && stats_of(storage).failed <= 3 * 7);
	assert_int_equal(stats_of(storage).late, 0);
	for (unsigned i = 0; i < 20; i++)
		check_alive(context, storage);
	check_alive(context, other);
	check_resets(storage, 1);
	weir_storage_close(storage);
	weir_storage_close(other);
	weir_context_close(context);
}

/*
 * Somebody else switches it off, between commands of all queue pairs: it is started again. Reads that it had
 * are made again, or end with an error, and that for the lanes who asked; the rest is as if nothing had
 * happened. No time limit has a part in it.
 */
static void test_switched_off(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count() && test_on_cpu(); w++) {
		switch_off(test_width(w), false);
		switch_off(test_width(w), true);
	}
}

/* Nothing else is under way; and it happens again and again: five times it is started, then that is enough.
 */
static void test_switched_off_too_often(void **state)
{
	struct weir_storage *storage;
	struct weir_context *context;

	(void)state;
	if (!test_on_cpu())
		return;
	open_context(test_width(1), &context);
	open_dying(context, "off:lba=7&retries=0", &storage);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(read_block(context, storage), BY_HOST);
		check_resets(storage, i);
	}
	assert_int_equal(read_block(context, storage), WEIR_E_DEVICE_DEAD);
	assert_int_equal(read_block(context, storage), WEIR_E_DEVICE_DEAD);
	check_resets(storage, 5);
	weir_storage_close(storage);
	weir_context_close(context);
}

/* Of lanes elsewhere: where the host does not reach queue words it cannot be started again, but they are
 * told. */
static void test_switched_off_elsewhere(void **state)
{
	struct weir_storage *storage;
	struct weir_context *context;
	weir_status status;

	(void)state;
	if (test_on_cpu())
		return;
	open_context(test_width(0), &context);
	open_dying(context, "off:lba=7&retries=0", &storage);
	status = read_block(context, storage);
	if (status == BY_HOST)
		check_resets(storage, 1);
	else
		assert_int_equal(status, WEIR_E_DEVICE_DEAD);
	weir_storage_close(storage);
	weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_pulled_out),
		cmocka_unit_test(test_the_first_request),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_switched_off_too_often),
		cmocka_unit_test(test_switched_off_elsewhere),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
