/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_paths_test.c: a storage with two paths to a target, of which some are cut, fall silent, or change
 * their ANA state while it is written and read: no request fails while one path works, and each byte is
 * right.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include <weir/disk.h>
#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "kernels/block_copy.h"
#include "paths_fixture.h"
#include "transport/fabrics/discover.h"
#include "transport/fabrics/nvmf.h"

enum { SILENCES = 20 };

static void the_optimized_path_is_used(void **state)
{
	unsigned long long before;

	(void)state;
	open_paths("&keep_alive_ms=600000");
	work_until(STATES + 0, NVME_ANA_OPTIMIZED);
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	before = atomic_load(&paths[1].bytes);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
	assert_true(atomic_load(&paths[1].bytes) - before < ROUND); /* what its state costs */
	assert_int_equal(value(PATH), 0);
	assert_int_equal(value(MOVES), 0);
}

/* One that is better is found behind the first, and taken. */
static void a_better_path_is_moved_to(void **state)
{
	(void)state;
	weir_target_set_ana(target, 0, NVME_ANA_NON_OPTIMIZED);
	weir_target_set_ana(target, 1, NVME_ANA_OPTIMIZED);
	open_paths("");
	work_until(PATH, 1);
	assert_int_equal(value(MOVES), 1);
}

static void a_path_is_cut_and_comes_back(void **state)
{
	(void)state;
	open_paths("");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	cuttable_set(&paths[0], CUTTABLE_CUT);
	work_until(PATH, 1);
	work_until(STATES + 0, WEIR_NETWORK_PATH_LOST);
	cuttable_set(&paths[0], CUTTABLE_WORKS);
	work_until(PATH, 0);
	assert_int_equal(value(STATES + 0), NVME_ANA_OPTIMIZED);
	assert_int_equal(value(MOVES), 2);
}

/* The one that is not in use: nobody notices, but for its state. */
static void the_other_path_is_cut(void **state)
{
	(void)state;
	open_paths("");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	cuttable_set(&paths[1], CUTTABLE_CUT);
	work_until(STATES + 1, WEIR_NETWORK_PATH_LOST);
	assert_int_equal(value(PATH), 0);
	assert_int_equal(value(MOVES), 0);
}

static void a_path_falls_silent(void **state)
{
	(void)state;
	open_paths("&keep_alive_ms=1000&connect_ms=10000");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	cuttable_set(&paths[0], CUTTABLE_SILENT);
	work_until(PATH, 1);
	cuttable_set(&paths[0], CUTTABLE_WORKS);
	work_until(PATH, 0);
}

/* By the event: no path is connected again before its time. */
static void ana_changes_by_event(void **state)
{
	static const unsigned states[] = { NVME_ANA_INACCESSIBLE, NVME_ANA_CHANGE, NVME_ANA_PERSISTENT_LOSS };

	(void)state;
	open_paths("&keep_alive_ms=600000");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		weir_target_set_ana(target, 0, states[i]);
		work_until(PATH, 1);
		work_until(STATES + 0, states[i]);
		weir_target_set_ana(target, 0, NVME_ANA_OPTIMIZED);
		work_until(PATH, 0);
		assert_int_equal(value(STATES + 0), NVME_ANA_OPTIMIZED);
	}
	assert_int_equal(value(MOVES), 2 * sizeof(states) / sizeof(states[0]));
}

static int64_t ms_between(const struct timespec *begun, const struct timespec *ended)
{
	return (ended->tv_sec - begun->tv_sec) * 1000 + (ended->tv_nsec - begun->tv_nsec) / 1000000;
}

static void *mend_soon(void *argument)
{
	poll(NULL, 0, 300);
	weir_target_set_ana(target, 0, NVME_ANA_OPTIMIZED);
	return argument;
}

/* No path takes commands now: they wait until one does. */
static void no_path_takes_commands_for_a_while(void **state)
{
	pthread_t thread;

	(void)state;
	open_paths("&timeout_ms=20000");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	weir_target_set_ana(target, 1, NVME_ANA_INACCESSIBLE);
	weir_target_set_ana(target, 0, NVME_ANA_CHANGE);
	assert_int_equal(pthread_create(&thread, NULL, mend_soon, NULL), 0);
	round_trip();
	pthread_join(thread, NULL);
	work_until(STATES + 0, NVME_ANA_OPTIMIZED);
}

/* ... for as long as ctrl_loss_s says, each time anew. */
static void no_path_takes_commands_any_more(void **state)
{
	const int64_t ctrl_loss_ms = 1000;
	struct timespec begun, ended;

	(void)state;
	open_paths("&ctrl_loss_s=1");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	for (unsigned i = 0; i < PATHS; i++)
		weir_target_set_ana(target, i, NVME_ANA_INACCESSIBLE);
	assert_int_equal(weir_storage_read(storage, 0, found, ROUND), -EIO);
	assert_non_null(strstr(weir_last_error(), "path inaccessible")); /* its status, and no deadline */
	clock_gettime(CLOCK_MONOTONIC, &begun);
	assert_int_equal(weir_storage_read(storage, 0, found, ROUND), -EIO);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	assert_true(ms_between(&begun, &ended) >= ctrl_loss_ms);
}

static void write_bytes(void)
{
	must(weir_storage_write(storage, 0, wrote, 512));
}

/* A change without data. */
static void write_zeroes(void)
{
	struct weir_block_copy_args args = { .blocks = 1, .opcode = NVME_OPCODE_WRITE_ZEROES, .step = 1 };
	uint32_t status = 0;

	must(weir_storage_disk(storage, &args.disk));
	must(weir_alloc(context, 512, &args.buffer));
	must(weir_alloc(context, sizeof(struct weir_event), &args.events));
	must(weir_alloc(context, sizeof(status), &args.result));
	must(weir_copy_to_device(context, args.result, &status, sizeof(status)));
	must(weir_launch(context, "weir_block_copy", 1, 1, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, &status, args.result, sizeof(status)));
	assert_int_equal(status, WEIR_OK);
}

/* Milliseconds that a write takes whose path falls silent with it; 0: it went another way, since the path was
 * lost before. */
static int64_t write_into_silence(void (*write)(void))
{
	struct timespec begun, ended;
	uint64_t sent;

	work_until(PATH, 0);
	cuttable_set(&paths[0], CUTTABLE_SILENT);
	sent = value(CARRIED + 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	write();
	clock_gettime(CLOCK_MONOTONIC, &ended);
	sent = value(CARRIED + 0) - sent;
	cuttable_set(&paths[0], CUTTABLE_WORKS);
	return sent ? ms_between(&begun, &ended) : 0;
}

/* A target that falls silent with a write that it has: that is sent by the other path when the target must
 * have noticed, and not before. */
static void wait_under_way(void (*write)(void), unsigned keep_alive_ms, unsigned wait_ms)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	char text[80];
	int64_t ms;

	assert_non_null(file);
	snprintf(text, sizeof(text), "&keep_alive_ms=%u&connect_ms=10000", keep_alive_ms);
	open_paths(text);
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	dup2(fileno(file), STDERR_FILENO);
	while ((ms = write_into_silence(write)) == 0)
		;
	snprintf(text, sizeof(text), "writes that it may still carry out wait for %u ms", wait_ms);
	assert_true(printed(file, text, before));
	assert_true(ms >= wait_ms);
}

static void a_write_under_way_waits(void **state)
{
	(void)state;
	wait_under_way(write_bytes, 2000, 2000);
}

static void zeroes_under_way_wait(void **state)
{
	(void)state;
	wait_under_way(write_zeroes, 2000, 2000);
}

/* However short Keep Alive is: a target takes a second more, and looks twice a second. */
static void a_write_waits_for_the_look_of_a_target(void **state)
{
	(void)state;
	wait_under_way(write_bytes, 1000, 1500);
}

static void *write_one(void *argument)
{
	*(int *)argument = weir_storage_write(storage, 0, wrote, 512);
	return NULL;
}

/* Return: the write was under way when the path was lost, which was said; else it was answered before, or
 * went another way. */
static bool silence_with_the_log(FILE *file)
{
	off_t from = lseek(fileno(file), 0, SEEK_END);
	pthread_t thread;
	int error = -1;

	atomic_store(&paths[0].late_ms, 300);
	weir_target_set_ana(target, 0, NVME_ANA_NON_OPTIMIZED);
	poll(NULL, 0, 50);
	assert_int_equal(pthread_create(&thread, NULL, write_one, &error), 0);
	cuttable_set(&paths[0], CUTTABLE_SILENT);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(error, 0);
	atomic_store(&paths[0].late_ms, 0);
	cuttable_set(&paths[0], CUTTABLE_WORKS);
	return is_printed(file, from, "writes that it may still carry out wait for 4000 ms");
}

/* The path in use falls silent while its ANA log is read: no Keep Alive tells, but the log that does not
 * come. The event arrives with the silence, and the write is sent before it, in one of some tries. */
static void a_silence_while_the_log_is_read(void **state)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	bool said = false;

	(void)state;
	assert_non_null(file);
	open_paths("&keep_alive_ms=4000&connect_ms=10000");
	for (unsigned i = 0; i < SILENCES && !said; i++) {
		weir_target_set_ana(target, 0, NVME_ANA_OPTIMIZED);
		work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
		work_until(PATH, 0);
		dup2(fileno(file), STDERR_FILENO);
		said = silence_with_the_log(file);
		dup2(before, STDERR_FILENO);
	}
	close(before);
	fclose(file);
	assert_true(said);
}

/* Both are gone: requests end by ctrl_loss_s, and the storage stays ended. */
static void both_paths_are_cut(void **state)
{
	(void)state;
	open_paths("&ctrl_loss_s=1");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_set(&paths[i], CUTTABLE_CUT);
	assert_int_not_equal(weir_storage_read(storage, 0, found, ROUND), 0);
	assert_int_not_equal(weir_storage_write(storage, 0, wrote, ROUND), 0);
}

/* For a while: nothing is lost. */
static void both_paths_are_cut_for_a_while(void **state)
{
	(void)state;
	open_paths("&ctrl_loss_s=60");
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_set(&paths[i], CUTTABLE_CUT);
	poll(NULL, 0, 100);
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	work_until(PATH, 1);
	cuttable_set(&paths[0], CUTTABLE_WORKS);
	work_until(PATH, 0);
}

/* A storage with one path is notified, too: of its state, and of a namespace that leaves. */
static void one_path_hears_events(void **state)
{
	FILE *file = tmpfile();
	char uri[256];
	int before;

	(void)state;
	assert_non_null(file);
	snprintf(uri, sizeof(uri),
		 "nvmf:tcp://127.0.0.1:%u/" NQN "?" HOST "&keep_alive_ms=600000&connect_ms=60000",
		 paths[0].port);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH),
			       &storage));
	weir_target_set_ana(target, 0, NVME_ANA_NON_OPTIMIZED);
	work_until(STATES + 0, NVME_ANA_NON_OPTIMIZED);
	weir_target_set_ana(target, 0, NVME_ANA_OPTIMIZED);
	work_until(STATES + 0, NVME_ANA_OPTIMIZED);
	before = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	space.detached = true;
	assert_int_equal(weir_target_reload(target, &options), 0);
	space.detached = false;
	assert_true(printed(file, "namespace 1 is not there any more", before));
	assert_int_not_equal(weir_storage_read(storage, 0, found, ROUND), 0);
	must(weir_target_reload(target, &options));
	must(weir_storage_read(storage, 0, found, ROUND));
	assert_int_equal(value(MOVES), 0);
}

/* More often than once, and once more in NVMF_REFUSED_S. */
static bool tried_again_and_again(time_t begun)
{
	return value(RECONNECTS) > 1 + (uint64_t)(time(NULL) - begun) / NVMF_REFUSED_S;
}

/* A better path that leads to another disk of the same name is tried once, and not again and again. */
static void a_path_to_another_disk_is_not_used(void **state)
{
	struct weir_target *wrong;
	time_t begun;

	(void)state;
	wrong = serve_smaller();
	weir_target_set_ana(target, 0, NVME_ANA_NON_OPTIMIZED);
	cuttable_set(&paths[1], CUTTABLE_CUT); /* until it is open */
	open_paths("");
	begun = time(NULL);
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	while (value(RECONNECTS) < 1) /* from the good path to the good path */
		round_trip();
	weir_target_set_ana(wrong, 0, NVME_ANA_NON_OPTIMIZED);
	weir_target_set_ana(wrong, 0, NVME_ANA_OPTIMIZED);
	while (value(STATES + 1) != NVME_ANA_OPTIMIZED && !tried_again_and_again(begun))
		round_trip(); /* until it is found again, and would be better */
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
	assert_false(tried_again_and_again(begun));
	assert_int_equal(value(PATH), 0);
	must(weir_storage_close(storage));
	storage = NULL;
	weir_target_stop(wrong, 5000);
	weir_target_destroy(wrong);
}

static int serve_fault(void **state, const char *uri)
{
	int error;

	space.uri = uri;
	error = serve(state);
	space.uri = "virt:1M?block=512";
	return error;
}

static int serve_slow_flushes(void **state)
{
	return serve_fault(state, "virt:1M?block=512&fault=late:op=flush:us=7000000:count=1");
}

/* The flush at the end takes longer than a host may be silent: it is kept all the while. */
static void a_long_flush_at_the_end(void **state)
{
	(void)state;
	open_paths("&keep_alive_ms=4000");
	round_trip();
	must(weir_storage_close(storage));
	storage = NULL;
}

static int serve_refused_flush(void **state)
{
	return serve_fault(state, "virt:1M?block=512&fault=status:code=0x280:op=flush:count=1");
}

/* Zeroes are a change that may be lost, though no data went to the controller. */
static void a_refused_flush_behind_zeroes_is_said(void **state)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	(void)state;
	open_paths("");
	write_zeroes();
	must(weir_stats(storage, &stats));
	assert_int_equal(stats.bytes_written, 0);
	assert_int_equal(weir_storage_close(storage), -EIO);
	assert_non_null(strstr(weir_last_error(), "may be lost"));
	storage = NULL;
}

/* What weir-fabrics paths prints. */
static void paths_are_reported(void **state)
{
	struct weir_path_report reports[WEIR_ADDRESS_MOST];
	char uri[512];
	unsigned count;

	(void)state;
	uri_of(uri, sizeof(uri), "&nsid=1");
	cuttable_set(&paths[0], CUTTABLE_CUT);
	must(weir_fabrics_paths(uri, reports, &count));
	assert_int_equal(count, 2);
	assert_int_not_equal(reports[0].error, 0);
	assert_non_null(strstr(reports[0].sentence, "cannot connect to 127.0.0.1"));
	assert_int_equal(reports[1].error, 0);
	assert_int_equal(reports[1].state, NVME_ANA_NON_OPTIMIZED);
	assert_string_equal(weir_ana_text(reports[1].state), "non-optimized");
}

/* What could have been meant is said, an entry for each of the target's addresses. */
static void a_uri_without_a_subsystem_lists_them(void **state)
{
	char uri[512];

	(void)state;
	snprintf(uri, sizeof(uri), "nvmf:tcp://127.0.0.1:%u?" HOST "&connect_ms=60000", paths[0].port);
	assert_int_equal(weir_storage_open(context, uri, NULL, &storage), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "it names no subsystem; the host offers " NQN ", " NQN));
	assert_string_equal(strstr(weir_last_error(), "offers"), "offers " NQN ", " NQN);
	storage = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_optimized_path_is_used, serve, end),
		cmocka_unit_test_setup_teardown(a_better_path_is_moved_to, serve, end),
		cmocka_unit_test_setup_teardown(a_path_is_cut_and_comes_back, serve, end),
		cmocka_unit_test_setup_teardown(the_other_path_is_cut, serve, end),
		cmocka_unit_test_setup_teardown(a_path_falls_silent, serve, end),
		cmocka_unit_test_setup_teardown(ana_changes_by_event, serve, end),
		cmocka_unit_test_setup_teardown(no_path_takes_commands_for_a_while, serve, end),
		cmocka_unit_test_setup_teardown(no_path_takes_commands_any_more, serve, end),
		cmocka_unit_test_setup_teardown(a_write_under_way_waits, serve, end),
		cmocka_unit_test_setup_teardown(zeroes_under_way_wait, serve, end),
		cmocka_unit_test_setup_teardown(a_write_waits_for_the_look_of_a_target, serve, end),
		cmocka_unit_test_setup_teardown(a_silence_while_the_log_is_read, serve, end),
		cmocka_unit_test_setup_teardown(both_paths_are_cut, serve, end),
		cmocka_unit_test_setup_teardown(both_paths_are_cut_for_a_while, serve, end),
		cmocka_unit_test_setup_teardown(one_path_hears_events, serve, end),
		cmocka_unit_test_setup_teardown(a_path_to_another_disk_is_not_used, serve, end),
		cmocka_unit_test_setup_teardown(a_long_flush_at_the_end, serve_slow_flushes, end),
		cmocka_unit_test_setup_teardown(a_refused_flush_behind_zeroes_is_said, serve_refused_flush,
						end),
		cmocka_unit_test_setup_teardown(paths_are_reported, serve, end),
		cmocka_unit_test_setup_teardown(a_uri_without_a_subsystem_lists_them, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
