/* SPDX-License-Identifier: BSD-3-Clause */
/* history_test.c: histories that are right, and each kind of those that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "history.h"

static struct history history;

static int set_up(void **state)
{
	(void)state;
	history_create(&history, 2);
	history_granted(&history, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	history_destroy(&history);
	return 0;
}

static u32 begin(u64 value)
{
	return history_write_begin(&history, 0, 1, value);
}

static void acknowledge(u32 number)
{
	assert_null(history_write_end(&history, 0, number, true));
}

static const char *reads(u64 value)
{
	return history_read_end(&history, 0, history_read_begin(&history, 0), value);
}

static void test_what_was_acknowledged_is_read(void **state)
{
	(void)state;
	assert_null(reads(0));
	acknowledge(begin(5));
	assert_null(reads(5));
	assert_non_null(reads(0));
	assert_non_null(reads(6));
	assert_null(history_read_end(&history, 1, history_read_begin(&history, 1), 0));
}

static void test_a_read_at_the_same_time_has_either(void **state)
{
	struct history_read old;
	u32 number;

	(void)state;
	acknowledge(begin(5));
	old = history_read_begin(&history, 0);
	number = begin(6);
	assert_null(reads(5));
	assert_null(reads(6));
	acknowledge(number);
	assert_null(history_read_end(&history, 0, old, 5));
	assert_null(history_read_end(&history, 0, old, 6));
	assert_non_null(reads(5));
}

static void test_writes_under_way_together_keep_their_order(void **state)
{
	u32 first = begin(5), second = begin(6);

	(void)state;
	acknowledge(second);
	assert_null(reads(5)); /* it is under way, still */
	acknowledge(first);
	assert_null(reads(6));
	assert_non_null(reads(5));
}

static void test_a_failed_write_is_decided_by_the_next_lease(void **state)
{
	(void)state;
	acknowledge(begin(5));
	assert_null(history_write_end(&history, 0, begin(6), false));
	assert_null(reads(6));
	assert_null(reads(5));
	history_granted(&history, 3);
	assert_null(reads(5));
	assert_non_null(reads(6));
}

static void test_what_a_dead_writer_left_stays_once_it_was_read(void **state)
{
	(void)state;
	acknowledge(begin(5));
	(void)begin(6);
	(void)begin(7);
	history_granted(&history, 3);
	assert_null(reads(6));
	assert_non_null(reads(5));
	assert_non_null(reads(7));
	acknowledge(history_write_begin(&history, 0, 3, 8));
	assert_null(reads(8));
	assert_non_null(reads(6));
}

static void test_a_read_older_than_the_lease_decides_nothing(void **state)
{
	struct history_read old;

	(void)state;
	(void)begin(6);
	old = history_read_begin(&history, 0);
	history_granted(&history, 3);
	assert_null(history_read_end(&history, 0, old, 0));
	assert_null(reads(6));
	assert_non_null(reads(0));
}

static void test_a_read_older_than_the_lease_has_what_is_gone(void **state)
{
	struct history_read old;

	(void)state;
	(void)begin(6);
	old = history_read_begin(&history, 0);
	history_granted(&history, 3);
	assert_null(reads(0));
	assert_non_null(reads(6));
	assert_null(history_read_end(&history, 0, old, 6));
}

static void test_power_takes_what_was_not_durable(void **state)
{
	u32 floors[2], number = begin(5);

	(void)state;
	acknowledge(number);
	history_flush_begin(&history, floors);
	acknowledge(begin(6));
	history_flush_end(&history, floors);
	acknowledge(begin(7));
	history_power_lost(&history);
	assert_null(reads(5));
	assert_null(reads(6));
	assert_null(reads(7));
	assert_non_null(reads(0));
	number = begin(8);
	acknowledge(number);
	history_write_durable(&history, 0, number);
	history_power_lost(&history);
	assert_null(reads(8));
	assert_non_null(reads(7));
}

static void test_zeros_that_may_be_two_writes_decide_nothing(void **state)
{
	(void)state;
	acknowledge(begin(5));
	(void)begin(0);
	(void)begin(6);
	(void)begin(0);
	history_granted(&history, 3);
	assert_null(reads(0));
	assert_null(reads(6));
	assert_non_null(reads(5));
}

static void test_a_lease_that_is_over_writes_nothing(void **state)
{
	u32 number;

	(void)state;
	history_granted(&history, 3);
	number = begin(5);
	assert_non_null(reads(5));
	assert_non_null(history_write_end(&history, 0, number, true));
	assert_null(history_write_end(&history, 0, number, false));
	history_granted(&history, 2);
	assert_int_equal(history.lease, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_what_was_acknowledged_is_read),
		CASE(test_a_read_at_the_same_time_has_either),
		CASE(test_writes_under_way_together_keep_their_order),
		CASE(test_a_failed_write_is_decided_by_the_next_lease),
		CASE(test_what_a_dead_writer_left_stays_once_it_was_read),
		CASE(test_a_read_older_than_the_lease_decides_nothing),
		CASE(test_a_read_older_than_the_lease_has_what_is_gone),
		CASE(test_power_takes_what_was_not_durable),
		CASE(test_zeros_that_may_be_two_writes_decide_nothing),
		CASE(test_a_lease_that_is_over_writes_nothing),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
