/* SPDX-License-Identifier: BSD-3-Clause */
/* volume_copy_test.c: a file's bytes to a volume and back where both are longer than 4 GiB; stand-ins are the
 * storage and the file, and hold no byte of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

static int note_write(struct weir_storage *storage, uint64_t offset, const void *data, size_t bytes);
static int note_read(struct weir_storage *storage, uint64_t offset, void *data, size_t bytes);

#define weir_storage_write note_write
#define weir_storage_read  note_read
#include "tools/weir-volume/copy.c"

enum { BLOCK = 4096, ODD = 5000, MARK = 0x5a };

static const uint64_t LARGE = (uint64_t)5 << 30;

/** file - what is read of it, up to @bytes, or written; @full: it takes no more than so many
 * storage - @at: behind the last command; @fails_at: whose command there fails; @tail: zeros at its end */
static struct {
	uint64_t at, bytes, full;
} file_;
static struct {
	uint64_t at, fails_at, commands;
	size_t tail;
} storage_;

static int note_command(uint64_t offset, size_t bytes)
{
	storage_.commands++;
	if (offset == storage_.fails_at)
		return weir_fail(EIO, "it fails");
	assert_true(offset == storage_.at);
	assert_int_equal(bytes % BLOCK, 0);
	storage_.at += bytes;
	return 0;
}

static int note_write(struct weir_storage *storage, uint64_t offset, const void *data, size_t bytes)
{
	const unsigned char *end = (const unsigned char *)data + bytes;

	(void)storage;
	for (storage_.tail = 0; storage_.tail < bytes && end[-1 - (ptrdiff_t)storage_.tail] == 0;)
		storage_.tail++;
	return note_command(offset, bytes);
}

static int note_read(struct weir_storage *storage, uint64_t offset, void *data, size_t bytes)
{
	(void)storage;
	(void)data;
	return note_command(offset, bytes);
}

/* Bytes between its first and last ones stay as they are. */
static ssize_t read_file(void *cookie, char *to, size_t bytes)
{
	uint64_t left = file_.bytes - file_.at;

	(void)cookie;
	bytes = bytes < left ? bytes : (size_t)left;
	if (file_.at == 0 || bytes == left)
		memset(to, MARK, bytes);
	file_.at += bytes;
	return (ssize_t)bytes;
}

static ssize_t write_file(void *cookie, const char *from, size_t bytes)
{
	(void)cookie;
	(void)from;
	if (file_.full && file_.at + bytes > file_.full)
		return 0;
	file_.at += bytes;
	return (ssize_t)bytes;
}

static FILE *begin(bool put, uint64_t bytes)
{
	FILE *file = fopencookie(NULL, put ? "rb" : "wb",
				 (cookie_io_functions_t){ .read = read_file, .write = write_file });

	assert_non_null(file);
	memset(&file_, 0, sizeof(file_));
	memset(&storage_, 0, sizeof(storage_));
	storage_.fails_at = UINT64_MAX;
	file_.bytes = bytes;
	return file;
}

/* All of it, to the end of the block that its end lies in, which is zeros behind it. */
static void test_a_large_file_goes_to_a_volume(void **state)
{
	FILE *file = begin(true, LARGE + ODD);

	(void)state;
	assert_int_equal(put_all(NULL, file, "file", BLOCK, LARGE + 2 * BLOCK), 0);
	assert_true(storage_.at == LARGE + 2 * BLOCK);
	assert_int_equal(storage_.tail, 2 * BLOCK - ODD);
	assert_int_equal(storage_.commands, LARGE / PART_BYTES + 1);
	(void)fclose(file);
}

/* A pipe of which nobody knows how long it is: what there is room for is written, and nothing behind it. */
static void test_a_longer_file_has_no_room(void **state)
{
	FILE *file = begin(true, LARGE + 1);

	(void)state;
	assert_int_equal(put_all(NULL, file, "file", BLOCK, LARGE), -ENOSPC);
	assert_true(storage_.at == LARGE);
	(void)fclose(file);
}

static void test_a_write_that_fails_ends_it(void **state)
{
	FILE *file = begin(true, LARGE);

	(void)state;
	storage_.fails_at = LARGE - PART_BYTES;
	assert_int_equal(put_all(NULL, file, "file", BLOCK, LARGE), -EIO);
	assert_int_equal(storage_.commands, LARGE / PART_BYTES);
	(void)fclose(file);
	file = begin(true, LARGE);
	storage_.fails_at = PART_BYTES;
	assert_int_equal(put_all(NULL, file, "file", BLOCK, LARGE), -EIO);
	assert_int_equal(storage_.commands, 2);
	(void)fclose(file);
}

static void test_a_large_volume_comes_back(void **state)
{
	FILE *file = begin(false, 0);

	(void)state;
	assert_int_equal(get_all(NULL, file, "file", LARGE + BLOCK), 0);
	assert_int_equal(fflush(file), 0);
	assert_true(storage_.at == LARGE + BLOCK);
	assert_true(file_.at == LARGE + BLOCK);
	(void)fclose(file);
	file = begin(false, 0);
	storage_.fails_at = PART_BYTES;
	assert_int_equal(get_all(NULL, file, "file", LARGE), -EIO);
	assert_int_equal(storage_.commands, 2);
	(void)fclose(file);
	file = begin(false, 0);
	file_.full = PART_BYTES;
	assert_int_equal(get_all(NULL, file, "file", LARGE), -EIO);
	assert_int_equal(storage_.commands, 2);
	(void)fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_large_file_goes_to_a_volume),
		cmocka_unit_test(test_a_longer_file_has_no_room),
		cmocka_unit_test(test_a_write_that_fails_ends_it),
		cmocka_unit_test(test_a_large_volume_comes_back),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("volume_copy", tests, NULL, NULL);
}
