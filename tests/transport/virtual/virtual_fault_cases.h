/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_cases.h: cases of virtual_fault_test that have files of their own. */
#ifndef WEIR_TESTS_VIRTUAL_FAULT_CASES_H
#define WEIR_TESTS_VIRTUAL_FAULT_CASES_H

/* Cases of virtual_fault_entries.c. */
void test_duplicate(void **state);
void test_stray(void **state);
void test_phase(void **state);
void test_misroute(void **state);
void test_room(void **state);
void test_room_while_fetching(void **state);
void test_room_spares_the_row(void **state);
void test_room_after_drops(void **state);

#endif
