/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock chain: cycles are found and named, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "chain.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { LOCKS = 64, PATIENT = 100000000 };

static const uint32_t WIDTHS[] = { 1, 4, 32, 64 };
static const char *const NAMES[] = { "index", "bucket", NULL, "log" };

enum { WIDTH_COUNT = 4, NAME_COUNT = 4 };

/** struct bench - a context, a table and room for one kernel after the other */
struct bench {
	struct weir_context *context;
	struct test_chain_args args;
	struct test_chain_tally tally;
	uint64_t counts[LOCKS];
};

static void open_bench(struct bench *bench, uint32_t width, const struct weir_chain_options *options)
{
	memset(bench, 0, sizeof(*bench));
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width),
			       &bench->context));
	if (options)
		must(weir_chain_create(bench->context, options, &bench->args.chain));
	must(weir_alloc(bench->context, LOCKS * sizeof(struct weir_lock), &bench->args.locks));
	must(weir_alloc(bench->context, sizeof(bench->tally), &bench->args.tally));
	must(weir_alloc(bench->context, sizeof(bench->counts), &bench->args.counts));
	bench->args.stride = 1;
	bench->args.tries = PATIENT;
}

static void launch(struct bench *bench, const char *kernel, uint32_t blocks, uint32_t threads)
{
	must(weir_launch(bench->context, kernel, blocks, threads, &bench->args, sizeof(bench->args)));
	must(weir_sync(bench->context));
	must(weir_copy_from_device(bench->context, &bench->tally, bench->args.tally, sizeof(bench->tally)));
	must(weir_copy_from_device(bench->context, bench->counts, bench->args.counts, sizeof(bench->counts)));
}

static int report(struct bench *bench)
{
	return weir_chain_report(bench->context, bench->args.chain, NAMES, NAME_COUNT);
}

static uint64_t counted(weir_shared_u64 *word)
{
	return weir_load_u64_relaxed_sys(word);
}

static void reset_tally(struct bench *bench)
{
	memset(&bench->tally, 0, sizeof(bench->tally));
	memset(bench->counts, 0, sizeof(bench->counts));
	must(weir_copy_to_device(bench->context, bench->args.tally, &bench->tally, sizeof(bench->tally)));
	must(weir_copy_to_device(bench->context, bench->args.counts, bench->counts, sizeof(bench->counts)));
}

/* Blocks are multiples of every width, so waves follow from lanes. */
static void expect_ring(const struct bench *bench, uint32_t width, const char *said)
{
	static const char *const reported[] = { "\"index\"", "\"bucket\"", "lock 2", "\"log\"",
						"lock 4",    "lock 5",     "lock 6", "lock 7" };
	uint64_t count = bench->args.count;
	char expected[1024] = "lock cycle";
	size_t length = strlen(expected);

	for (uint64_t i = 0; i < count; i++)
		length += (size_t)snprintf(expected + length, sizeof(expected) - length,
					   "%s lane %llu (wave %llu) holds %s and wants %s", i ? ";" : ":",
					   (unsigned long long)(i * bench->args.stride),
					   (unsigned long long)(i * bench->args.stride / width), reported[i],
					   reported[(i + 1) % count]);
	assert_string_equal(said, expected);
}

static void run_ring(uint32_t width, uint64_t count, uint64_t stride, uint64_t guests, uint32_t retry_limit)
{
	struct bench bench;

	open_bench(&bench, width, WEIR_OPTIONS(chain, .lanes = 256, .retry_limit = retry_limit));
	bench.args.count = count;
	bench.args.stride = stride;
	bench.args.guests = guests;
	for (int again = 0; again < 2; again++) {
		launch(&bench, "test_chain_ring", 2, 128);
		assert_true(counted(&bench.tally.deadlocks) >= 1);
		assert_int_equal(counted(&bench.tally.gave_up), 0);
		assert_int_equal(counted(&bench.tally.deadlocks) + counted(&bench.tally.took),
				 count + guests);
		assert_int_equal(report(&bench), -EDEADLK);
		if (count <= WEIR_CHAIN_LINKS)
			expect_ring(&bench, width, weir_last_error());
		/* told once; the table is as new, and the locks are free */
		assert_int_equal(report(&bench), -ENODATA);
		reset_tally(&bench);
	}
	weir_context_close(bench.context);
}

static void test_two_lanes_the_wrong_way_round(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++) {
		run_ring(WIDTHS[w], 2, 128, 0, 0); /* of different blocks */
		run_ring(WIDTHS[w], 2, 1, 0, 0);   /* neighbours: of one wave, if it is wide enough */
		run_ring(WIDTHS[w], 2, 64, 0, 50);
	}
}

static void test_longer_rings(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++) {
		run_ring(WIDTHS[w], 3, 1, 0, 0);
		run_ring(WIDTHS[w], 3, 67, 0, 1);
		run_ring(WIDTHS[w], WEIR_CHAIN_LINKS, 17, 0, 0);
		run_ring(WIDTHS[w], 40, 5, 0, 0);
	}
}

static void test_lanes_outside_the_cycle_end_too(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++) {
		run_ring(WIDTHS[w], 2, 3, 20, 0);
		run_ring(WIDTHS[w], 3, 16, 10, 1);
	}
}

static void test_a_lane_that_wants_its_own_lock(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++) {
		run_ring(WIDTHS[w], 1, 1, 0, 0);
		run_ring(WIDTHS[w], 1, 32, 3, 0);
	}
}

static void test_a_long_cycle_is_told_in_part(void **state)
{
	struct bench bench;
	const char *said;

	(void)state;
	open_bench(&bench, 1, WEIR_OPTIONS(chain, .lanes = 64));
	bench.args.count = 11;
	launch(&bench, "test_chain_ring", 1, 64);
	assert_int_equal(report(&bench), -EDEADLK);
	said = weir_last_error();
	assert_non_null(strstr(said, "lock cycle: lane "));
	assert_non_null(strstr(said, "; and so on through 3 more lanes to the first"));
	weir_context_close(bench.context);
}

static void run_order(uint32_t width, uint64_t locks, uint64_t mode, uint32_t retry_limit)
{
	struct bench bench;
	uint64_t sum = 0;

	open_bench(&bench, width, WEIR_OPTIONS(chain, .lanes = 192, .retry_limit = retry_limit));
	bench.args.count = locks;
	bench.args.mode = mode;
	bench.args.rounds = 20;
	launch(&bench, "test_chain_order", 3, 64);
	for (uint64_t i = 0; i < locks; i++)
		sum += bench.counts[i];
	assert_int_equal(sum, 192 * 20 * 2); /* each lock kept the others out */
	assert_true(mode != TEST_CHAIN_BACK_OFF || counted(&bench.tally.gave_up) > 0);
	assert_int_equal(counted(&bench.tally.deadlocks), 0);
	if (report(&bench) != 0)
		fail_msg("width %u, %llu locks, mode %llu: %s", width, (unsigned long long)locks,
			 (unsigned long long)mode, weir_last_error());
	weir_context_close(bench.context);
}

static void test_ordered_locking_is_never_reported(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++)
		for (uint64_t locks = 2; locks <= 32; locks *= 4) {
			run_order(WIDTHS[w], locks, TEST_CHAIN_ORDERED, 1);
			run_order(WIDTHS[w], locks, TEST_CHAIN_ORDERED, 2);
		}
}

static void test_backing_off_is_never_reported(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++)
		for (uint64_t locks = 2; locks <= 32; locks *= 4)
			run_order(WIDTHS[w], locks, TEST_CHAIN_BACK_OFF, 2);
}

static void test_a_lane_that_gave_up_does_not_wait(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++)
		for (int quit = 0; quit < 2; quit++) {
			struct bench bench;

			open_bench(&bench, WIDTHS[w], WEIR_OPTIONS(chain, .lanes = 128));
			bench.args.stride = w % 2 ? 64 : 1;
			bench.args.tries = 20;
			bench.args.mode = quit ? TEST_CHAIN_QUIT : 0;
			launch(&bench, "test_chain_hold", 1, 128);
			/* without a word it still counts as waiting: that is what quit is for */
			assert_int_equal(counted(&bench.tally.deadlocks), quit ? 0 : 1);
			assert_int_equal(counted(&bench.tally.gave_up), quit ? 2 : 1);
			assert_int_equal(report(&bench), quit ? 0 : -EDEADLK);
			weir_context_close(bench.context);
		}
}

static void test_waiting_within_a_wave(void **state)
{
	(void)state;
	for (size_t w = 0; w < WIDTH_COUNT; w++)
		for (uint32_t own_wave = 0; own_wave < 2; own_wave++)
			for (uint64_t stride = 1; stride <= 64; stride *= 64) {
				int within = own_wave && stride < WIDTHS[w];
				struct bench bench;
				char expected[128];

				open_bench(&bench, WIDTHS[w],
					   WEIR_OPTIONS(chain, .lanes = 128, .retry_limit = 5,
							.own_wave = own_wave));
				bench.args.stride = stride;
				bench.args.tries = 100;
				bench.args.count = 1;
				launch(&bench, "test_chain_keep", 1, 128);
				assert_int_equal(counted(&bench.tally.deadlocks), within);
				assert_int_equal(report(&bench), within ? -EDEADLK : 0);
				snprintf(expected, sizeof(expected),
					 "lock wait within a wave: lane 1 (wave 0) wants \"index\", "
					 "which lane 0 of the same wave keeps");
				if (within)
					assert_string_equal(weir_last_error(), expected);
				weir_context_close(bench.context);
			}
}

static void test_a_lane_that_ends_with_a_lock(void **state)
{
	struct bench bench;

	(void)state;
	open_bench(&bench, 4, WEIR_OPTIONS(chain, .lanes = 128));
	bench.args.stride = 8;
	bench.args.tries = 30;
	launch(&bench, "test_chain_keep", 1, 128);
	assert_int_equal(counted(&bench.tally.gave_up), 1);
	assert_int_equal(report(&bench), -EOWNERDEAD);
	assert_string_equal(weir_last_error(), "lane 0 (wave 0) ended and kept \"index\"");
	weir_context_close(bench.context);
}

/* Lanes without a record lock as ever; a cycle of theirs is not found, and that is said. */
static void test_lanes_past_the_table(void **state)
{
	struct bench bench;

	(void)state;
	open_bench(&bench, 1, WEIR_OPTIONS(chain, .lanes = 1));
	bench.args.count = 2;
	bench.args.tries = 100;
	launch(&bench, "test_chain_ring", 1, 2);
	assert_int_equal(counted(&bench.tally.deadlocks), 0);
	assert_int_equal(report(&bench), -ERANGE);
	assert_string_equal(
		weir_last_error(),
		"lock chain: lane 1 had no record among 1; create it for all lanes of the launch");
	launch(&bench, "test_chain_ring", 1, 1); /* one that has room: what was reported is over */
	assert_int_equal(report(&bench), 0);
	weir_context_close(bench.context);
}

static void test_locks_without_a_table(void **state)
{
	struct bench bench;
	uint64_t sum = 0;

	(void)state;
	open_bench(&bench, 4, NULL);
	bench.args.count = 4;
	bench.args.rounds = 40;
	launch(&bench, "test_chain_order", 3, 64);
	for (uint64_t i = 0; i < 4; i++)
		sum += bench.counts[i];
	assert_int_equal(sum, 192 * 40 * 2);
	reset_tally(&bench);
	bench.args.count = 2;
	bench.args.tries = 100;
	launch(&bench, "test_chain_ring", 1, 64);
	assert_int_equal(counted(&bench.tally.deadlocks), 0);
	assert_true(counted(&bench.tally.gave_up) >= 1);
	weir_context_close(bench.context);
}

static void test_bad_tables_are_refused(void **state)
{
	struct bench bench;
	uint64_t chain;

	(void)state;
	open_bench(&bench, 1, NULL);
	assert_int_equal(weir_chain_create(bench.context, NULL, &chain), -EINVAL);
	assert_int_equal(weir_chain_create(bench.context, WEIR_OPTIONS(chain, .lanes = UINT32_MAX), &chain),
			 -EINVAL);
	assert_int_equal(chain, 0);
	assert_int_equal(weir_chain_report(bench.context, bench.args.locks, NULL, 0), -EINVAL);
	assert_int_equal(weir_chain_report(bench.context, 0, NULL, 0), -EFAULT);
	must(weir_chain_create(bench.context, WEIR_OPTIONS(chain, .lanes = 7), &chain));
	assert_int_equal(weir_chain_report(bench.context, chain, NULL, 0), -ENODATA);
	must(weir_free(bench.context, chain));
	weir_context_close(bench.context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_lanes_the_wrong_way_round),
		cmocka_unit_test(test_longer_rings),
		cmocka_unit_test(test_lanes_outside_the_cycle_end_too),
		cmocka_unit_test(test_a_lane_that_wants_its_own_lock),
		cmocka_unit_test(test_a_long_cycle_is_told_in_part),
		cmocka_unit_test(test_ordered_locking_is_never_reported),
		cmocka_unit_test(test_backing_off_is_never_reported),
		cmocka_unit_test(test_a_lane_that_gave_up_does_not_wait),
		cmocka_unit_test(test_waiting_within_a_wave),
		cmocka_unit_test(test_a_lane_that_ends_with_a_lock),
		cmocka_unit_test(test_lanes_past_the_table),
		cmocka_unit_test(test_locks_without_a_table),
		cmocka_unit_test(test_bad_tables_are_refused),
	};

	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
