/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_steps_test.c: what one lane of a controller on the device reckons by itself: when a command is
 * due, how many may be fetched, which queues are its wave's, how long it rests. This thread is the lane.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device_controller.h"

enum { IOPS = 1000000, TICKS = 1 << WEIR_CONTROLLER_TICKS_LOG2 };

static weir_shared_u64 rate;

/* A command is due after the latency or at its turn, whichever is later, and no later than that. */
static void test_due(void **state)
{
	struct weir_controller_args args = { .rate = WEIR_ADDR(&rate), .iops = IOPS, .latency_ns = 5000 };
	uint64_t now = (uint64_t)1 << 50;

	(void)state;
	weir_store_u64_relaxed_dev(&rate, 0);
	assert_true(weir_controller_due(&args, 1, now, 3) == now + 5000);
	assert_true(weir_controller_due(&args, 1, now, 8) == now + 5000); /* its turn is in 3 us */
	assert_true(weir_controller_due(&args, 1, now, 1) == now + 11000);
	assert_true(weir_controller_due(&args, 1, now + 10000, 1) == now + 15000);
	args.iops = 0;
	assert_true(weir_controller_due(&args, 1, now, 100) == now + 5000);
	assert_true(weir_load_u64_relaxed_dev(&rate) == (now + 13000) * TICKS);
}

/* Rounded up: the rate is never exceeded. */
static void test_cost(void **state)
{
	static const uint64_t rates[] = { 1, 3, 7, 999999, 1000000, 3000000, 2000000000, 63999999999u };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct weir_controller_args args = { .iops = rates[i] };

		for (uint64_t count = 1; count < 70; count++) {
			uint64_t ticks = weir_controller_cost(&args, count),
				 time = count * 1000000000u * TICKS;

			assert_true(ticks * rates[i] >= time && (ticks - 1) * rates[i] < time);
		}
	}
}

/* As many as there are turns of the next 200 us; none if those are taken. */
static void test_quota(void **state)
{
	struct weir_controller_args args = { .rate = WEIR_ADDR(&rate) };
	struct weir_controller_view view = { .queue = NULL };
	uint64_t clock;

	(void)state;
	assert_int_equal(weir_controller_quota(&args, view), ~0u);
	args.iops = IOPS;
	weir_store_u64_relaxed_dev(&rate, 0);
	assert_int_equal(weir_controller_quota(&args, view), WEIR_CONTROLLER_AHEAD_NS / 1000 + 1);
	args.iops = (uint64_t)64 * 1000000000; /* a tick each */
	assert_int_equal(weir_controller_quota(&args, view), WEIR_CONTROLLER_AHEAD_NS * TICKS + 1);
	clock = weir_clock_ns() + 3600u * (uint64_t)1000000000;
	weir_store_u64_relaxed_dev(&rate, clock * TICKS);
	assert_int_equal(weir_controller_quota(&args, view), 0);
}

/* Each queue is some wave's, and none is a wave's that is not there. */
static void test_queues_of_waves(void **state)
{
	(void)state;
	for (uint32_t queues = 1; queues < 9; queues++)
		for (uint32_t waves = 1; waves < 12; waves++) {
			struct weir_controller_args args = { .queues = 4096, .queue_count = queues };
			uint32_t served = 0;

			for (uint32_t wave = 0; wave < waves; wave++) {
				struct weir_controller_beat beat = weir_controller_beat(&args, wave, waves);

				assert_true(beat.count > 0);
				for (uint32_t i = 0; i < beat.count; i++) {
					uint64_t at = beat.first + (uint64_t)i * beat.step - args.queues;
					uint64_t queue = at / sizeof(struct weir_controller_queue);

					assert_int_equal(at % sizeof(struct weir_controller_queue), 0);
					assert_true(queue < queues);
					served |= 1u << queue;
				}
			}
			assert_int_equal(served, (1u << queues) - 1);
		}
}

/* A wave that finds nothing rests longer each time, up to its limit; one that found something not at all. */
static void test_rests(void **state)
{
	struct weir_controller_args args = { .rest = 5 };
	static const uint32_t idle[] = { 1, 3, 5, 5 };
	uint32_t now = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		assert_int_equal(now = weir_controller_rest(&args, now, 0), idle[i]);
	assert_int_equal(weir_controller_rest(&args, now, 1), 0);
	args.rest = 0;
	assert_int_equal(weir_controller_rest(&args, 0, 0), 0);
}

/* What may be fetched: what is announced, as far as its completions have room, and a share of that. */
static void test_pieces(void **state)
{
	struct weir_controller_view view = { .depth_log2 = 3, .claim = 64 };

	(void)state;
	assert_int_equal(weir_controller_ready(view, 0, 0, 0), 0);
	assert_int_equal(weir_controller_ready(view, 0, 7, 0), 7);
	assert_int_equal(weir_controller_ready(view, 5, 2, 0), 2); /* five are unread: two have room */
	assert_int_equal(weir_controller_ready(view, 5, 2, 5), 5);
	assert_int_equal(weir_controller_ready(view, 0xfffffffe, 3, 6), 5); /* the head comes round */
	assert_int_equal(weir_controller_ready(view, (uint64_t)2 << 32 | 5, 2, 5),
			 5); /* of two more entries */
	assert_int_equal(weir_controller_ready(view, (uint64_t)2 << 32 | 5, 2, 1), 1);
	assert_int_equal(weir_controller_piece(view, 5), 1); /* a lane's wave has one */
	assert_int_equal(weir_controller_dw2(view, 13), 5);
	view.id = 3;
	assert_int_equal(weir_controller_dw2(view, 8), 3 << 16);
	assert_int_equal(weir_controller_phased(view, 7, 9), 9 | 1 << 16);
	assert_int_equal(weir_controller_phased(view, 8, 9), 9);
	assert_int_equal(weir_controller_phased(view, 16, 9), 9 | 1 << 16);
}

/* Times of rows are of 32 bits in microseconds: in nanoseconds they are not. */
static void test_long_times(void **state)
{
	struct weir_fault_row rows[] = { { .kind = WEIR_VIRTUAL_FAULT_LATE, .us = ~0u },
					 { .kind = WEIR_VIRTUAL_FAULT_STALL, .us = ~0u } };
	struct weir_controller_args args = { .faults = WEIR_ADDR(rows), .fault_count = 2 };
	struct weir_controller_later later = { .entries = 0 };
	struct weir_controller_queue queue = { .later = WEIR_ADDR(&later) };
	struct weir_controller_view view = { .queue = &queue };
	struct weir_controller_entry entry = { .kinds = 1u << WEIR_VIRTUAL_FAULT_LATE };
	struct weir_controller_matched stalls = { .rows = (uint64_t)1 << (6 * WEIR_VIRTUAL_FAULT_STALL),
						  .kinds = 1u << WEIR_VIRTUAL_FAULT_STALL };
	uint64_t longest = (uint64_t)~0u * 1000, now = weir_clock_ns();

	(void)state;
	assert_int_equal(weir_controller_fate(&args, &entry, 5), WEIR_CONTROLLER_WAITING);
	assert_true(weir_load_u64_relaxed_sys(&entry.due_ns) == longest + 5);
	assert_int_equal(weir_controller_fate(&args, &entry, longest + 5), WEIR_CONTROLLER_GONE);
	assert_int_equal(weir_controller_inject(&args, view, stalls, 3, now), 3);
	assert_true(weir_load_u64_relaxed_sys(&later.resume_ns) == longest + now);
	assert_int_equal(weir_controller_quota(&args, view), 0);
	weir_store_u64_relaxed_sys(&later.resume_ns, now);
	assert_int_equal(weir_controller_quota(&args, view), ~0u);
	for (uint32_t id = 1; id < 5; id++) /* a queue that is there, as far as one is */
		assert_int_equal(weir_controller_other(id), id == 1 ? 2 : id - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_due),        cmocka_unit_test(test_cost),
		cmocka_unit_test(test_quota),      cmocka_unit_test(test_queues_of_waves),
		cmocka_unit_test(test_rests),      cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_long_times),
	};

	return cmocka_run_group_tests_name("controller_steps", tests, NULL, NULL);
}
