/* SPDX-License-Identifier: BSD-3-Clause */
/* A sharing policy of a user's: share_policy_own.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "share.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { LINE = 512, OWNER = 1, GUEST = 2, COPY = 3 };

static const struct test_step STEPS[] = {
	{ TEST_STEP_ACQUIRE, 0, 3, 0, COPY }, /* this line is not admitted */
	{ TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	{ TEST_STEP_MODIFY, 0, 3, 0, WEIR_E_UNSHARED },
	{ TEST_STEP_ACQUIRE, 0, 5, 0, OWNER },
	{ TEST_STEP_WAIT, 0, 5, 0, WEIR_OK },
	{ TEST_STEP_ACQUIRE, 1, 5, 0, GUEST },
	{ TEST_STEP_MODIFY, 0, 5, 0, WEIR_OK },
	{ TEST_STEP_STORE, 0, 5, 2, 50 },
	{ TEST_STEP_ACQUIRE, 2, 5, 0, COPY },          /* a second guest is not */
	{ TEST_STEP_LOAD, 2, 5, 2, 50 },               /* but sees the line as it is */
	{ TEST_STEP_RELEASE, 0, 5, 0, WEIR_E_SHARED }, /* an owner stays */
	{ TEST_STEP_IN_USE, 0, 5, 0, 1 },
	{ TEST_STEP_RELEASE, 1, 5, 0, WEIR_OK },
	{ TEST_STEP_RELEASE, 0, 5, 0, WEIR_OK }, /* and propagates itself */
	{ TEST_STEP_IN_USE, 0, 5, 0, 0 },
	{ TEST_STEP_GET, 0, 5, 2, 50 },
};

enum { STEP_COUNT = sizeof(STEPS) / sizeof(STEPS[0]) };

static void test_what_the_policy_says(void **state)
{
	struct test_steps_args args = { .count = STEP_COUNT, .line_bytes = LINE, .block_lanes = 1 };
	struct weir_share_stats stats = { .size = sizeof(stats) };
	struct test_verdict verdict;
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;

	(void)state;
	must(weir_context_open("cpu", NULL, &context));
	must(weir_storage_open(context, "virt:8K?block=512", NULL, &storage));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = LINE), &cache));
	must(weir_share_create(cache, NULL));
	must(weir_writer_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &args.writer));
	must(weir_alloc(context, sizeof(STEPS), &args.steps));
	must(weir_alloc(context, TEST_HOLDS * LINE, &args.buffers));
	must(weir_alloc(context, TEST_HOLDS * 8, &args.events));
	must(weir_alloc(context, sizeof(weir_shared_u64), &args.iteration));
	must(weir_alloc(context, sizeof(verdict), &args.verdict));
	must(weir_copy_to_device(context, args.steps, STEPS, sizeof(STEPS)));
	must(weir_launch(context, "test_steps", 1, 1, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, &verdict, args.verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("step %llu: %#llx instead of %#llx", (unsigned long long)verdict.where,
			 (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), STEP_COUNT);
	must(weir_share_stats(cache, &stats));
	assert_int_equal(stats.declined, 2);
	assert_int_equal(stats.registered, 1);
	assert_int_equal(stats.joined, 1);
	assert_int_equal(stats.propagated, 1);
	assert_int_equal(stats.held, 0);
	must(weir_cache_destroy(cache));
	weir_storage_close(storage);
	weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_policy_says),
	};

	return cmocka_run_group_tests_name("share_policy", tests, NULL, NULL);
}
