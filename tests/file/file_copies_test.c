/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and memory that the host does not see: copies that fail, and those that lanes make. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>

#include "backend/error.h"
#include "file/files.h"
#include "kernels/copy_list.h"

enum { BYTES = 8192 };

static struct weir_backend_ops ops; /* of the cpu, but for one */
static bool refused;

static int copy(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	if (refused)
		return weir_fail(EIO, "a copy from the device failed");
	memcpy(host, (const void *)(uintptr_t)device, bytes);
	return 0;
}

/* What did not come from the device is not written: the file stays as it was. */
static void a_copy_that_fails_writes_nothing(void **state)
{
	char path[] = "/tmp/weir-file-copies-XXXXXX", found[BYTES], before[BYTES];
	struct weir_registration *registration;
	struct weir_context *context;
	int file = mkstemp(path);
	uint64_t memory;
	void *host;

	(void)state;
	memset(before, 'a', BYTES);
	assert_int_equal(write(file, before, BYTES), BYTES);
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context), 0);
	ops = *context->backend->ops;
	ops.d2h = copy;
	context->backend->ops = &ops;
	assert_int_equal(weir_alloc_host(context, BYTES, &memory, &host), 0);
	memset(host, 'b', BYTES);
	assert_int_equal(weir_register(context, memory, BYTES,
				       WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE), &registration),
			 0);
	registration->host = NULL;
	refused = true;
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), -EIO);
	assert_non_null(strstr(weir_last_error(), "a copy from the device failed"));
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, before, BYTES);
	refused = false;
	assert_int_equal(weir_file_write(registration, file, BYTES, 0, 0), BYTES);
	assert_int_equal(pread(file, found, BYTES, 0), BYTES);
	assert_memory_equal(found, host, BYTES);
	assert_int_equal(weir_deregister(registration), 0);
	assert_int_equal(weir_context_close(context), 0);
	close(file);
	unlink(path);
}

enum { MOVES = 150, LONGEST = 3001, ROOM = 1 << 19 };

/* Moves of any length and alignment, some of nothing, with a gap between any two; what is there afterwards.
 */
static void compose(struct weir_kernel_move moves[MOVES], uint64_t from, uint64_t to, unsigned char *expected)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < MOVES; i++) {
		uint64_t bytes = i % 11 ? i * 331 % LONGEST : 0, source = i * 2647 % (ROOM - LONGEST);

		at += 1 + i % 19;
		moves[i] = (struct weir_kernel_move){ .to = to + at, .from = from + source, .bytes = bytes };
		memcpy(expected + at, (const unsigned char *)(uintptr_t)from + source, bytes);
		at += bytes;
	}
	assert_true(at < ROOM);
}

/* By however many waves of whatever width: each move once, and nothing beside it. */
static void waves_move_what_is_in_a_list(void **state)
{
	static const struct {
		uint32_t width, blocks, threads;
	} grids[] = { { 1, 1, 1 }, { 1, 3, 5 }, { 4, 1, 4 }, { 4, 2, 12 }, { 32, 1, 32 }, { 32, 3, 128 } };
	static unsigned char expected[ROOM];

	(void)state;
	for (size_t g = 0; g < sizeof(grids) / sizeof(grids[0]); g++) {
		struct weir_copy_list_args args = { .count = MOVES };
		struct weir_context *context;
		uint64_t from, to;

		assert_int_equal(
			weir_context_open("cpu",
					  WEIR_OPTIONS(context, .workers = 2, .wave_lanes = grids[g].width),
					  &context),
			0);
		assert_int_equal(weir_alloc(context, ROOM, &from), 0);
		assert_int_equal(weir_alloc(context, ROOM, &to), 0);
		assert_int_equal(weir_alloc(context, MOVES * sizeof(struct weir_kernel_move), &args.copies),
				 0);
		for (unsigned i = 0; i < ROOM; i++)
			((unsigned char *)(uintptr_t)from)[i] = (unsigned char)(i * 2654435761u >> 11);
		memset(expected, 0, ROOM);
		compose((struct weir_kernel_move *)(uintptr_t)args.copies, from, to, expected);
		assert_int_equal(weir_launch(context, "weir_copy_list", grids[g].blocks, grids[g].threads,
					     &args, sizeof(args)),
				 0);
		assert_int_equal(weir_sync(context), 0);
		assert_memory_equal((const void *)(uintptr_t)to, expected, ROOM);
		assert_int_equal(weir_context_close(context), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_copy_that_fails_writes_nothing),
					    cmocka_unit_test(waves_move_what_is_in_a_list) };

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));

	return cmocka_run_group_tests(tests, NULL, NULL);
}
