/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes with asynchronous requests, told in one sentence: an event used twice, memory freed too early. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "async.h"
#include "../rig/context.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/** struct rig - a storage that takes its time, and room for two reads */
struct rig {
	struct weir_context *context;
	struct weir_storage *storage;
	struct test_reuse_args args;
};

static void open_rig(struct rig *rig, uint32_t width)
{
	memset(rig, 0, sizeof(*rig));
	must(weir_context_open(
		test_context_name(),
		WEIR_OPTIONS(context, .workers = 1, .service_waves = test_service(), .wave_lanes = width),
		&rig->context));
	must(test_storage_open(
		rig->context, "virt:64K?block=512&lat_us=100000",
		WEIR_OPTIONS(storage, .queues = 1, .depth = 4, .timeout_us = test_patient_us(5000000)),
		&rig->storage));
	must(weir_storage_disk(rig->storage, &rig->args.disk));
	must(weir_alloc(rig->context, 8192, &rig->args.buffer));
	must(weir_alloc(rig->context, 8, &rig->args.event));
	must(weir_alloc(rig->context, 16, &rig->args.statuses));
}

static void run_kernel(struct rig *rig, const char *kernel, uint32_t statuses[4], int synced)
{
	must(weir_launch(rig->context, kernel, 1, 5, &rig->args, sizeof(rig->args)));
	assert_int_equal(weir_sync(rig->context), synced);
	must(weir_copy_from_device(rig->context, statuses, rig->args.statuses, 16));
}

static void close_rig(struct rig *rig)
{
	weir_storage_close(rig->storage);
	must(weir_free(rig->context, rig->args.buffer)); /* with the storage goes what it had under way */
	weir_context_close(rig->context);
}

static void test_an_event_used_twice_is_refused(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		uint32_t statuses[4];
		struct rig rig;

		open_rig(&rig, test_width(w));
		run_kernel(&rig, "test_event_reused", statuses, -EIO);
		assert_non_null(strstr(weir_last_error(), "block 6 of storage \""));
		assert_non_null(strstr(weir_last_error(), "last request has not ended"));
		assert_int_equal(statuses[0], WEIR_OK);
		assert_int_equal(statuses[1], WEIR_E_EVENT);
		assert_int_equal(statuses[2], WEIR_OK);
		assert_int_equal(statuses[3], WEIR_OK);
		close_rig(&rig);
	}
}

static void test_memory_in_flight_is_not_freed(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		uint32_t statuses[4];
		uint64_t other;
		struct rig rig;

		open_rig(&rig, test_width(w));
		rig.args.leave = 1;
		run_kernel(&rig, "test_event_reused", statuses, -EIO);
		if (!test_service()) { /* which would see it end, in time */
			assert_int_equal(weir_free(rig.context, rig.args.buffer), -EBUSY);
			assert_non_null(
				strstr(weir_last_error(), "a read of block 5 (512 bytes) of \"virt:64K"));
			assert_non_null(strstr(weir_last_error(), "wait for its event first"));
			assert_int_equal(weir_free(rig.context, rig.args.event), -EBUSY);
		}
		must(weir_alloc(rig.context, 4096, &other));
		must(weir_free(rig.context, other));
		run_kernel(&rig, "test_event_seen", statuses, 0);
		assert_int_equal(statuses[2], WEIR_OK);
		must(weir_free(rig.context, rig.args.buffer));
		rig.args.buffer = 0;
		close_rig(&rig);
	}
}

/* Each status has a text, and a text of its own: two of one value would share one. */
static void test_statuses_differ(void **state)
{
	static const uint32_t statuses[] = {
		WEIR_OK,           WEIR_E_INDEX,       WEIR_E_RANGE,  WEIR_E_TRANSFER, WEIR_E_ALIGNMENT,
		WEIR_E_READ_ONLY,  WEIR_E_TIMEOUT,     WEIR_E_LOCKED, WEIR_E_DEADLOCK, WEIR_E_SERVICE,
		WEIR_E_POLICY,     WEIR_E_EVENT,       WEIR_E_SHARED, WEIR_E_UNSHARED, WEIR_E_SHARE_TABLE,
		WEIR_E_TIER,       WEIR_E_WINDOW,      WEIR_E_WIDTH,  WEIR_E_POOL,     WEIR_E_QUEUE_FULL,
		WEIR_E_QUEUE_DEAD, WEIR_E_DEVICE_DEAD,
	};
	enum { COUNT = sizeof(statuses) / sizeof(statuses[0]) };
	char text[COUNT][80];

	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		weir_status_text(statuses[i], text[i]);
		assert_string_not_equal(text[i], "unknown");
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(text[i], text[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_event_used_twice_is_refused),
		cmocka_unit_test(test_memory_in_flight_is_not_freed),
		cmocka_unit_test(test_statuses_differ),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("async_debug", tests, NULL, NULL);
}
