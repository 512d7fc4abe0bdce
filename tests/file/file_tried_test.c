/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_tried_test.c: what is tried before the first request of a file system goes by the kernel module's
 * path, and what becomes of it, on a pretended GPU.
 */
#include "file_module_rig.h"

#include "../rig/leaks.h"

/* A context's first read and write, which are tried before, leave nothing behind when it is closed. */
static void trials_leave_nothing_behind(void **state)
{
	uint64_t used = device_used;
	unsigned files, ranges = registered();

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	files = test_files();
	for (unsigned i = 0; i < 3; i++) {
		struct weir_registration *made;

		open_late();
		made = register_at(&late, 9 * BYTES, BYTES);
		memset(gpu + 9 * BYTES, 't', BYTES);
		reads(made, 9 * BYTES, PAGE);
		assert_int_equal(weir_file_write(made, open_file, 2 * PAGE, 0, 2 * PAGE), 2 * PAGE);
		must(weir_deregister(made));
		must(weir_files_close(&late));
		assert_int_equal(test_files(), files);
		assert_int_equal(registered(), ranges);
		assert_int_equal(device_used, used);
	}
}

static void routes(struct weir_registration *made, int file, enum weir_file_path by, const char *why)
{
	struct weir_file_route route = { .size = sizeof(route) };

	must(weir_file_route(made, file, &route));
	assert_int_equal(route.path, by);
	if (!strstr(route.reason, why))
		fail_msg("\"%s\" does not say \"%s\"", route.reason, why);
}

/* What could not be tried is neither good nor bad, and is tried again: a block that somebody writes to, a
 * file without data, one without O_DIRECT. */
static void what_was_not_tried_is_tried_again(void **state)
{
	char own[] = "/tmp/weir_file_module_XXXXXX";
	struct weir_registration *made;
	int buffered = mkstemp(own), direct = open(own, O_RDWR | O_DIRECT | O_CLOEXEC);

	(void)state;
	if (direct < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	made = register_at(&late, 9 * BYTES, BYTES);
	assert_int_equal(ftruncate(buffered, BYTES), 0);
	routes(made, buffered, WEIR_FILE_BOUNCE, "the file is not open with O_DIRECT");
	routes(made, direct, WEIR_FILE_BOUNCE, "the file has no block of data");
	memset(buffer, 'd', BYTES);
	assert_int_equal(pwrite(buffered, buffer, BYTES, 0), BYTES);
	block_changes = true;
	routes(made, direct, WEIR_FILE_BOUNCE, "somebody writes to the block");
	block_changes = false;
	routes(made, direct, WEIR_FILE_MODULE, "read into the device's memory arrived");
	must(weir_deregister(made));
	must(weir_files_close(&late));
	close(buffered);
	close(direct);
	unlink(own);
}

static uint64_t module_bytes(void)
{
	struct weir_file_stats stats = { .size = sizeof(stats) };

	must(weir_file_stats(&late, &stats));
	return stats.module_bytes;
}

/* The first write of a file system is tried: where it did not arrive it goes by staging, and so do all after
 * it; where it failed, the next one is tried. */
static void a_write_that_does_not_arrive_is_not_believed(void **state)
{
	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	for (unsigned lost = 0; lost < 2; lost++) {
		struct weir_registration *made;

		open_late();
		made = register_at(&late, 9 * BYTES, BYTES);
		memset(gpu + 9 * BYTES, lost ? 'l' : 'm', BYTES);
		writes_lost = lost;
		writes_failing = !lost;
		assert_int_equal(weir_file_write(made, open_file, 2 * PAGE, 0, 0), 2 * PAGE);
		assert_int_equal(writes_lost + writes_failing, 0);
		assert_int_equal(first_byte(), lost ? 'l' : 'm');
		assert_int_equal(module_bytes(), 0);
		memset(gpu + 9 * BYTES, 'n', BYTES);
		assert_int_equal(weir_file_write(made, open_file, 2 * PAGE, 0, 0), 2 * PAGE);
		assert_int_equal(first_byte(), 'n');
		assert_int_equal(module_bytes(), lost ? 0 : 2 * PAGE);
		must(weir_deregister(made));
		must(weir_files_close(&late));
	}
}

/* A first write is tried with its whole blocks, if it has any, and writes what it has, and no more. */
static void a_first_write_at_any_place(void **state)
{
	static const struct {
		size_t at, bytes, straight;
	} rows[] = { { 0, 100, 0 },  { 100, 200, 0 },       { PAGE - 8, 16, 0 },
		     { 8, PAGE, 0 }, { PAGE, PAGE - 1, 0 }, { 512, 3 * PAGE, 2 * PAGE } };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_registration *made;

		open_late();
		made = register_at(&late, 9 * BYTES, BYTES);
		memset(buffer, 'o', BYTES);
		assert_int_equal(pwrite(open_file, buffer, BYTES, 0), BYTES);
		for (size_t k = 0; k < BYTES; k++)
			gpu[9 * BYTES + k] = (char)(k % 83);
		assert_int_equal(
			weir_file_write(made, open_file, rows[i].bytes, (off_t)rows[i].at, rows[i].at),
			rows[i].bytes);
		assert_int_equal(pread(open_file, buffer, BYTES, 0), BYTES);
		for (size_t k = 0; k < BYTES; k++)
			assert_int_equal(buffer[k], k - rows[i].at < rows[i].bytes ? (char)(k % 83) : 'o');
		assert_int_equal(module_bytes(), rows[i].straight);
		must(weir_deregister(made));
		must(weir_files_close(&late));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trials_leave_nothing_behind),
		cmocka_unit_test(what_was_not_tried_is_tried_again),
		cmocka_unit_test(a_write_that_does_not_arrive_is_not_believed),
		cmocka_unit_test(a_first_write_at_any_place),
	};
	int failed;

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	failed = cmocka_run_group_tests_name("file_tried", tests, set_up, tear_down);

	fflush(NULL);
	_exit(failed); /* threads of files wait for more */
}
