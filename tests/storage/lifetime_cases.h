/* SPDX-License-Identifier: BSD-3-Clause */
/* lifetime_cases.h: how lifetime_test's cases judge calls, and cases of other files. */
#ifndef WEIR_TESTS_LIFETIME_CASES_H
#define WEIR_TESTS_LIFETIME_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/weir.h>

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

/* @result is @error, and the sentence has @first and @second. */
void refused(int64_t result, int64_t error, const char *first, const char *second);

/* The handles of lifetime_calls.c, opened once for all. */
int set_up_handles(void **state);
int tear_down_handles(void **state);

/* Cases of lifetime_calls.c. */
void test_null_handles(void **state);
void test_closed_handles(void **state);
void test_wrong_handles(void **state);
void test_null_arguments(void **state);
void test_the_table_is_whole(void **state);
void test_addresses_are_not_reused(void **state);

/* Cases of lifetime_virtual.c. */
void test_readers_are_waited_for(void **state);
void test_a_read_that_was_left_in_a_late_slot(void **state);
void test_every_queue_of_a_closed_storage(void **state);
void test_waves_with_a_closed_cache(void **state);

#endif
