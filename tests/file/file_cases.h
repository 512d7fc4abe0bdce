/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_cases.h: cases of file_test.c that lie in other files.
 *
 * Owns: the file, the registered buffer beside it, and what each must have.
 */
#ifndef WEIR_TESTS_FILE_CASES_H
#define WEIR_TESTS_FILE_CASES_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

enum { FILE_BYTES = (3 << 20) + 777, BUFFER_BYTES = 4 << 20, MOST_BATCH = 700, WAIT_ITERATIONS = 120000 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

extern struct weir_context *context;
extern uint64_t buffer;
extern char path[], *want, *got;
extern int file;

/* @result is @error, and the sentence has @first and @second. */
static inline void refused(int64_t result, int error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%lld instead of %d (\"%s\", \"%s\"); last: %s", (long long)result, error, first,
			 second, weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

/* The paths that the buffer can have, each in turn; false behind the last. */
static inline bool register_by(unsigned *iteration, struct weir_registration **registration)
{
	static const enum weir_file_path paths[] = { WEIR_FILE_AUTO, WEIR_FILE_DIRECT, WEIR_FILE_PULL,
						     WEIR_FILE_BOUNCE };

	while (*iteration < sizeof(paths) / sizeof(paths[0])) {
		int error =
			weir_register(context, buffer, BUFFER_BYTES,
				      WEIR_OPTIONS(register, .path = paths[(*iteration)++]), registration);

		if (!error)
			return true;
		assert_int_equal(error, -ENOTSUP);
	}
	return false;
}

/* A descriptor with O_DIRECT, or without where the file system has none. */
static inline int open_direct(int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC);

	return fd >= 0 ? fd : open(path, flags | O_CLOEXEC);
}

static inline void clear(void)
{
	memset(got, 0x5a, BUFFER_BYTES);
	must(weir_copy_to_device(context, buffer, got, BUFFER_BYTES));
}

/* The buffer has @bytes of the file from @offset at @at, and beside the @asked ones what it had. */
static inline void check(size_t at, uint64_t offset, size_t bytes, size_t asked, const char *what)
{
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	for (size_t i = 0; i < BUFFER_BYTES; i++) {
		char right = i >= at && i < at + bytes ? want[offset + i - at] : 0x5a;

		/* Behind the end of a file O_DIRECT pads with zeros what it was asked for. */
		if (got[i] != right && !(i >= at + bytes && i < at + asked))
			fail_msg("%s: byte %zu is %02x, not %02x (%zu bytes of %llu at %zu)", what, i,
				 got[i] & 255, right & 255, bytes, (unsigned long long)offset, at);
	}
}

/* Blocks of the file in another order, of both descriptors, with some that are none, short or beyond the end.
 */
static inline void make_batch(struct weir_file_io *io, struct weir_registration *registration, const int *fds)
{
	for (size_t i = 0; i < MOST_BATCH; i++) {
		size_t block = i * 419 % MOST_BATCH;

		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = fds[i % 3 == 0],
					       .operation = WEIR_FILE_READ,
					       .at = i * 4096 + i % 5,
					       .offset = block * 4096 + i % 7,
					       .bytes = i % 11 ? 4000 : 0 };
	}
	io[MOST_BATCH - 1].offset = FILE_BYTES - 5;
	io[MOST_BATCH - 2].offset = FILE_BYTES + 5;
}

/* The cases of file_enqueued.c. */
void test_enqueued(void **state);
void test_enqueued_failure(void **state);
void test_enqueued_elsewhere(void **state);

/* The cases of file_refused.c. */
void test_wrong_registrations(void **state);
void test_wrong_requests(void **state);
void test_failures(void **state);
void test_busy(void **state);

/* The cases of file_attached.c. */
void test_attach(void **state);
void test_attached_bounds(void **state);

/* The cases of file_single_calls.c. */
void test_short_calls(void **state);
void test_failed_in_the_middle(void **state);
void test_without_uring(void **state);
void test_an_interrupted_ring(void **state);

/* The cases of file_far.c. */
void test_far_offsets(void **state);
void test_far_places(void **state);

#endif
