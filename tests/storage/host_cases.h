/* SPDX-License-Identifier: BSD-3-Clause */
/* host_cases.h: the context and storage of host_test, how calls are judged, and cases of other files. */
#ifndef WEIR_TESTS_HOST_CASES_H
#define WEIR_TESTS_HOST_CASES_H

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
void refused(int result, int error, const char *first, const char *second);

extern struct weir_context *context;
extern struct weir_storage *storage; /* 1 MiB of 512-byte blocks */

/* Cases of host_storage.c. */
void test_storage_uris(void **state);
void test_path_with_separators(void **state);
void test_volume_uris(void **state);
void test_failing_storages_leave_nothing(void **state);
void test_read_only_files(void **state);
void test_storage_threads(void **state);
void test_storage_options(void **state);
void test_read_only_by_uri(void **state);

/* Cases of host_memory.c. */
void test_memory_of_a_file(void **state);
void test_memory(void **state);
void test_memory_is_given_back(void **state);
void test_memory_of_the_machine(void **state);
void test_memory_in_flight(void **state);
void test_host_memory(void **state);

/* Cases of host_io.c. */
void test_transfer_limits(void **state);
void test_zero_copy(void **state);
void test_many_tebibytes(void **state);
void test_host_io(void **state);
void test_faults(void **state);
void test_faults_among_many(void **state);
void test_times(void **state);
void test_default_times(void **state);
void test_counts(void **state);
void test_large_storage(void **state);
void test_failed_controller(void **state);
void test_a_long_wait_sleeps(void **state);

#endif
