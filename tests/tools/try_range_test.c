/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try_range_test.c: of a disk weir-try writes what it may and nothing else, by each of its tests: neither
 * what lies before that, nor what lies behind.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/weir-try/try.h"

enum { MIB = 1 << 20, DISK_BYTES = 28 * MIB, BYTES = 4 * MIB };

static const uint64_t offset = 5 * MIB;
static unsigned char disk[DISK_BYTES];
static char name[64];
static const struct try_options options = { .runtime = 0.02 };
static const char *const variants[] = { "", "mover=pull", NULL };

static int make_disk(void)
{
	int file;

	snprintf(name, sizeof(name), "try_range_test.%d", (int)getpid());
	file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	memset(disk, 'x', sizeof(disk));
	assert_true(file >= 0 && pwrite(file, disk, sizeof(disk), 0) == (ssize_t)sizeof(disk));
	return file;
}

/* Something is written in @bytes from the offset on, and around them all is as it was. */
static void expect_writes(int file, uint64_t bytes)
{
	uint64_t written = 0;

	assert_int_equal(pread(file, disk, sizeof(disk), 0), sizeof(disk));
	for (uint64_t i = 0; i < sizeof(disk); i++) {
		written += disk[i] != 'x';
		if (disk[i] != 'x' && (i < offset || i >= offset + bytes))
			fail_msg("byte %llu was written, of %llu from %llu on", (unsigned long long)i,
				 (unsigned long long)bytes, (unsigned long long)offset);
	}
	assert_true(written > 0);
}

static void expect_good(json_t *tests)
{
	const json_t *test;
	size_t index;

	json_array_foreach(tests, index, test)
	{
		if (strcmp(json_string_value(json_object_get(test, "verdict")), "good"))
			fail_msg("%s: %s", json_string_value(json_object_get(test, "test")),
				 json_string_value(json_object_get(test, "why")));
	}
}

static void runs_within(uint64_t bytes, unsigned tests)
{
	struct try_storage storage = {
		.name = "a file", .variants = variants, .offset = offset, .bytes = bytes
	};
	struct try_results results = { .tests = json_array(), .figures = json_array() };
	int file = make_disk();

	snprintf(storage.uri, sizeof(storage.uri), "file:%s?direct=off", name);
	storage.keys = true;
	try_pair_run(&options, "cpu", &storage, &results);
	expect_good(results.tests);
	expect_good(results.figures);
	assert_int_equal(json_array_size(results.tests), tests);
	expect_writes(file, bytes);
	json_decref(results.tests);
	json_decref(results.figures);
	close(file);
	unlink(name);
}

static void test_nothing_is_written_around_the_range(void **state)
{
	(void)state;
	runs_within(BYTES, 12);
}

/* Of more than 16 MiB loads take no more than these. */
static void test_a_large_range(void **state)
{
	(void)state;
	runs_within(20 * MIB, 12);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_written_around_the_range),
		cmocka_unit_test(test_a_large_range),
	};

	return cmocka_run_group_tests_name("try_range", tests, NULL, NULL);
}
