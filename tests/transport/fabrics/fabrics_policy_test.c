/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_policy_test.c: a storage whose commands go by several paths at a time: how many go by which, and
 * that each byte is right when paths are cut, fall silent, or change their ANA state.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <weir/disk.h>
#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "kernels/block_copy.h"
#include "paths_fixture.h"
#include "transport/fabrics/nvmf.h"

enum {
	CUTS = 8,
	CUT_MS = 100,
	LATE_MS = 10,
	CARRY_MS = 500,
	FEW = 4,
	SILENCES = 20,
	MOST_TRIES = 100,               /* each takes as long as a command may */
	COMMANDS = 2 * ROUND / TRANSFER /* of a round trip */
};

static unsigned char whole[BYTES], copy[BYTES];

static uint64_t carried(unsigned path)
{
	return value(CARRIED + path);
}

/* With both in one state. */
static void open_both(const char *keys)
{
	weir_target_set_ana(target, 1, NVME_ANA_OPTIMIZED);
	open_paths(keys);
}

/* Write and read until @path has carried @more commands. */
static void work_until_carried(unsigned path, uint64_t more)
{
	time_t last = time(NULL) + WAIT_S;

	for (uint64_t before = carried(path); carried(path) < before + more;) {
		round_trip();
		if (time(NULL) > last)
			fail_msg("path %u has carried %llu commands", path,
				 (unsigned long long)carried(path));
	}
}

/* Commands that each path carries of ROUNDS round trips. */
static void count_rounds(uint64_t counts[PATHS])
{
	for (unsigned i = 0; i < PATHS; i++)
		counts[i] = carried(i);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
	for (unsigned i = 0; i < PATHS; i++)
		counts[i] = carried(i) - counts[i];
	assert_int_equal(counts[0] + counts[1], ROUNDS * COMMANDS);
}

/* Write and read all of it: many commands for each that may be under way. */
static void whole_trip(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		whole[i] = (unsigned char)(i / 11 + rounds * 17);
	must(weir_storage_write(storage, 0, whole, BYTES));
	memset(copy, 0x5a, BYTES);
	must(weir_storage_read(storage, 0, copy, BYTES));
	assert_memory_equal(whole, copy, BYTES);
	rounds++;
}

static void one_path_carries_all_by_default(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_both("");
	work_until(STATES + 1, NVME_ANA_OPTIMIZED);
	count_rounds(counts);
	assert_int_equal(counts[1], 0);
	assert_int_equal(value(PATH), 0);
}

static void round_robin_alternates(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_both("&iopolicy=round-robin");
	work_until_carried(1, COMMANDS);
	count_rounds(counts);
	assert_true(counts[0] <= counts[1] + COMMANDS && counts[1] <= counts[0] + COMMANDS);
	assert_int_equal(value(MOVES), 0);
}

/* By FEW lanes: as many commands are under way at a time. */
static void copy_by_lanes(uint32_t opcode, unsigned char *bytes)
{
	struct weir_block_copy_args args = { .blocks = BYTES / 512,
					     .opcode = opcode,
					     .step = TRANSFER / 512 };
	uint32_t status = 0;

	must(weir_storage_disk(storage, &args.disk));
	must(weir_alloc(context, BYTES, &args.buffer));
	must(weir_alloc(context, FEW * sizeof(struct weir_event), &args.events));
	must(weir_alloc(context, sizeof(status), &args.result));
	must(weir_copy_to_device(context, args.buffer, bytes, BYTES));
	must(weir_copy_to_device(context, args.result, &status, sizeof(status)));
	must(weir_launch(context, "weir_block_copy", 1, FEW, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, &status, args.result, sizeof(status)));
	must(weir_copy_from_device(context, bytes, args.buffer, BYTES));
	assert_int_equal(status, WEIR_OK);
}

/* Commands that each path carries while the second one's answers are late. */
static void count_late(const char *keys, uint64_t counts[PATHS])
{
	open_both(keys);
	work_until_carried(1, COMMANDS);
	atomic_store(&paths[1].late_ms, LATE_MS);
	for (unsigned i = 0; i < PATHS; i++)
		counts[i] = carried(i);
	memset(whole, (int)rounds + 1, BYTES);
	copy_by_lanes(NVME_OPCODE_WRITE, whole);
	copy_by_lanes(NVME_OPCODE_READ, copy);
	assert_memory_equal(whole, copy, BYTES);
	for (unsigned i = 0; i < PATHS; i++)
		counts[i] = carried(i) - counts[i];
}

/* However late one answers. */
static void round_robin_is_blind_to_answers(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	count_late("&iopolicy=round-robin&keep_alive_ms=60000&queues=1", counts);
	assert_true(counts[0] <= counts[1] + 2 && counts[1] <= counts[0] + 2);
}

/* Lets path 1 answer once path 0 has carried so many commands more that the ring is nearly full, or path 1
 * more than half of those that may be under way; @first: that each had carried before; @late: that path 1
 * has. */
struct mender {
	uint64_t first[PATHS];
	uint64_t late;
};

static void *mend_at_last(void *argument)
{
	struct mender *mender = argument;
	uint64_t done;

	do {
		poll(NULL, 0, 1);
		done = carried(0) - mender->first[0];
		mender->late = carried(1) - mender->first[1];
	} while (mender->late <= FEW / 2 &&
		 (done < DEPTH - FEW || (!mender->late && done < BYTES / TRANSFER)));
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	return NULL;
}

/* Of FEW commands at a time no more than half stay with it, and all else goes by the other one. */
static void queue_depth_avoids_a_path_that_answers_late(void **state)
{
	struct mender mender;
	pthread_t thread;

	(void)state;
	open_both("&iopolicy=queue-depth&keep_alive_ms=60000&queues=1");
	work_until_carried(1, COMMANDS);
	cuttable_set(&paths[1], CUTTABLE_SILENT);
	mender = (struct mender){ .first = { carried(0), carried(1) } };
	assert_int_equal(pthread_create(&thread, NULL, mend_at_last, &mender), 0);
	memset(whole, 0x6b, BYTES);
	copy_by_lanes(NVME_OPCODE_WRITE, whole);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_in_range(mender.late, 1, FEW / 2);
	copy_by_lanes(NVME_OPCODE_READ, copy);
	assert_memory_equal(whole, copy, BYTES);
}

static void queue_depth_uses_both(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_both("&iopolicy=queue-depth");
	work_until_carried(1, COMMANDS);
	count_rounds(counts);
	assert_true(counts[0] > ROUNDS && counts[1] > ROUNDS);
}

/* A non-optimized path carries nothing while an optimized one works; a change is obeyed both ways. */
static void only_the_best_state_carries(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_paths("&iopolicy=round-robin");
	while (value(STATES + 0) != NVME_ANA_OPTIMIZED) /* until then the other one may be the better */
		poll(NULL, 0, 1);
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	count_rounds(counts);
	assert_int_equal(carried(1), 0);
	weir_target_set_ana(target, 1, NVME_ANA_OPTIMIZED);
	work_until_carried(1, 4 * COMMANDS);
	weir_target_set_ana(target, 1, NVME_ANA_NON_OPTIMIZED);
	work_until(STATES + 1, NVME_ANA_NON_OPTIMIZED);
	count_rounds(counts);
	assert_int_equal(counts[1], 0);
	assert_int_equal(value(PATH), 0);
}

/* Commands that a path does not take go by the other one, and their status is nobody's. */
static void an_inaccessible_path_is_left(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_both("&iopolicy=round-robin&keep_alive_ms=600000");
	for (unsigned path = 0; path < PATHS; path++) {
		work_until_carried(!path, COMMANDS);
		work_until_carried(path, COMMANDS);
		weir_target_set_ana(target, path, NVME_ANA_INACCESSIBLE);
		work_until(STATES + path, NVME_ANA_INACCESSIBLE);
		count_rounds(counts);
		assert_int_equal(counts[path], 0);
		weir_target_set_ana(target, path, NVME_ANA_OPTIMIZED);
	}
	work_until_carried(1, COMMANDS);
	work_until_carried(0, COMMANDS);
}

static void a_cut_path_is_done_without(void **state)
{
	uint64_t counts[PATHS];

	(void)state;
	open_both("&iopolicy=round-robin");
	work_until_carried(1, COMMANDS);
	cuttable_set(&paths[1], CUTTABLE_CUT);
	work_until(STATES + 1, NVMF_PATH_LOST);
	count_rounds(counts);
	assert_int_equal(counts[1], 0);
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	work_until_carried(1, 4 * COMMANDS);
	assert_int_equal(value(RECONNECTS), 0); /* the path in use is what it was */
	assert_int_equal(value(PATH), 0);
}

static atomic_uint cuts;

/* One path after the other is cut under load, and comes back. */
static void *cut_alternately(void *argument)
{
	for (unsigned i = 0; i < CUTS; i++) {
		poll(NULL, 0, CUT_MS);
		cuttable_set(&paths[i % PATHS], CUTTABLE_CUT);
		poll(NULL, 0, CUT_MS);
		cuttable_set(&paths[i % PATHS], CUTTABLE_WORKS);
		atomic_fetch_add(&cuts, 1);
	}
	return argument;
}

static void work_while_cut(const char *keys)
{
	pthread_t thread;

	open_both(keys);
	work_until_carried(1, COMMANDS);
	atomic_store(&cuts, 0);
	assert_int_equal(pthread_create(&thread, NULL, cut_alternately, NULL), 0);
	while (atomic_load(&cuts) < CUTS)
		whole_trip();
	pthread_join(thread, NULL);
	work_until_carried(0, COMMANDS);
	work_until_carried(1, COMMANDS);
}

static void round_robin_loses_nothing(void **state)
{
	(void)state;
	work_while_cut("&iopolicy=round-robin");
}

static void queue_depth_loses_nothing(void **state)
{
	(void)state;
	work_while_cut("&iopolicy=queue-depth");
}

/* Both are gone for a while. */
static void no_path_works_for_a_while(void **state)
{
	(void)state;
	open_both("&iopolicy=round-robin");
	work_until_carried(1, COMMANDS);
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_set(&paths[i], CUTTABLE_CUT);
	poll(NULL, 0, CUT_MS);
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_set(&paths[i], CUTTABLE_WORKS);
	work_until_carried(0, COMMANDS);
	work_until_carried(1, COMMANDS);
}

/* Return: a write was under way by the path when that was lost, which was said, and the path in use was not.
 * On a busy machine it may be lost before. */
static bool leave_silent_path(FILE *file)
{
	off_t from = lseek(fileno(file), 0, SEEK_END);
	uint64_t reconnects = value(RECONNECTS);
	bool good;

	cuttable_set(&paths[1], CUTTABLE_SILENT);
	memset(whole, 0x3c, BYTES);
	while (value(STATES + 1) != NVMF_PATH_LOST)
		must(weir_storage_write(storage, 0, whole, BYTES));
	good = is_printed(file, from, "its commands go by the others in 2000 ms") &&
	       value(RECONNECTS) == reconnects;
	must(weir_storage_read(storage, 0, copy, BYTES));
	assert_true(!good || !memcmp(whole, copy, BYTES));
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	return good;
}

/* Writes that it may still carry out go by the other path when it must have noticed: in one of some tries. */
static void a_silent_path_is_left(void **state)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	bool good = false;

	(void)state;
	assert_non_null(file);
	open_both("&iopolicy=round-robin&keep_alive_ms=2000&connect_ms=10000");
	for (unsigned i = 0; i < SILENCES && !good; i++) {
		work_until_carried(1, COMMANDS);
		dup2(fileno(file), STDERR_FILENO);
		good = leave_silent_path(file);
		dup2(before, STDERR_FILENO);
	}
	close(before);
	fclose(file);
	assert_true(good);
	work_until_carried(1, COMMANDS);
}

/* One that leads to a smaller disk carries nothing. */
static void a_path_to_another_disk_carries_nothing(void **state)
{
	struct weir_target *wrong;
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);

	(void)state;
	assert_non_null(file);
	wrong = serve_smaller();
	dup2(fileno(file), STDERR_FILENO);
	open_paths("&iopolicy=round-robin");
	work_until(STATES + 1, NVME_ANA_OPTIMIZED);
	assert_true(printed(file, "and has 1024 of 512 now", before));
	assert_int_equal(carried(1), 0);
	must(weir_storage_close(storage));
	storage = NULL;
	weir_target_stop(wrong, 5000);
	weir_target_destroy(wrong);
}

/* By two paths, with a flush; then read by each alone. */
static void each_path_reads_what_both_wrote(void **state)
{
	(void)state;
	open_both("&iopolicy=round-robin");
	work_until_carried(1, COMMANDS);
	whole_trip();
	must(weir_storage_flush(storage));
	for (unsigned path = 0; path < PATHS; path++) {
		cuttable_set(&paths[path], CUTTABLE_CUT);
		must(weir_storage_read(storage, 0, copy, BYTES));
		assert_memory_equal(whole, copy, BYTES);
		cuttable_set(&paths[path], CUTTABLE_WORKS);
		work_until(STATES + path, NVME_ANA_OPTIMIZED);
		whole_trip();
	}
}

/* Write @byte to the first block, again where the one before ended by its deadline. */
static void write_at_last(int byte)
{
	unsigned tries = 1;

	memset(whole, byte, TRANSFER);
	while (weir_storage_write(storage, 0, whole, TRANSFER) != 0)
		if (++tries > MOST_TRIES)
			fail_msg("%s", weir_last_error());
}

/* Read it likewise, and compare. */
static void read_at_last(void)
{
	unsigned tries = 1;

	while (weir_storage_read(storage, 0, copy, TRANSFER) != 0)
		if (++tries > MOST_TRIES)
			fail_msg("%s", weir_last_error());
	assert_memory_equal(whole, copy, TRANSFER);
}

/* Write and read until a path has carried some, where a busy machine is late now and then. */
static void work_at_last_until_carried(unsigned path)
{
	for (uint64_t before = carried(path); carried(path) < before + COMMANDS;) {
		write_at_last((int)(carried(path) & 0xff));
		read_at_last();
	}
}

/* A command that a path never answers ends by its deadline, and the queue's connections are replaced at each
 * path: no late answer is taken for one of another command. */
static void a_command_without_an_answer_ends(void **state)
{
	(void)state;
	open_both("&iopolicy=round-robin&keep_alive_ms=15000&connect_ms=3000&timeout_ms=4000&retries=0");
	work_at_last_until_carried(1);
	cuttable_set(&paths[1], CUTTABLE_SILENT);
	assert_int_not_equal(weir_storage_read(storage, 0, copy, BYTES), 0);
	cuttable_set(&paths[1], CUTTABLE_WORKS);
	work_at_last_until_carried(1);
	assert_int_equal(value(MOVES), 0);
}

/* A write without an answer ends by its deadline, and its path may carry it out later. The next one to its
 * block is acknowledged when that can no longer happen. */
static void a_late_write_overwrites_no_newer_one(void **state)
{
	(void)state;
	open_both("&iopolicy=round-robin&keep_alive_ms=5000&connect_ms=1000&timeout_ms=4000&retries=0"
		  "&queues=1");
	work_at_last_until_carried(1);
	cuttable_set(&paths[1], CUTTABLE_SILENT);
	memset(whole, 0x11, TRANSFER);
	for (uint64_t before = carried(1); carried(1) == before;)
		(void)weir_storage_write(storage, 0, whole, TRANSFER);
	write_at_last(0x22);
	cuttable_set(&paths[1], CUTTABLE_WORKS); /* and carries what it has */
	poll(NULL, 0, CARRY_MS);
	read_at_last();
}

static char file_uri[64] = "file:/tmp/weir-policy-XXXXXX";

/* Another target of the same disk, which grants a host one queue. */
static struct weir_target *serve_again(unsigned queues)
{
	static const struct weir_target_namespace_options same = { .uri = file_uri };
	static const struct weir_target_subsystem_options of_same = { .nqn = NQN,
								      .namespaces = &same,
								      .namespace_count = 1 };
	const struct weir_target_options again = { .size = sizeof(again),
						   .listen = listen_at,
						   .listen_count = 1,
						   .subsystems = &of_same,
						   .subsystem_count = 1,
						   .queues = queues };
	struct weir_target *other;

	must(weir_target_create(&again, &other));
	must(weir_target_start(other));
	return other;
}

static void lead_to(unsigned path, const struct weir_target *to)
{
	cuttable_end(&paths[path]);
	cuttable_start(&paths[path], (unsigned)atoi(strrchr(weir_target_address(to, 0), ':') + 1));
}

/* A path whose controller grants fewer queues carries what is of those. */
static void a_path_with_fewer_queues(void **state)
{
	int file = mkstemp(file_uri + strlen("file:"));
	struct weir_target *targets[PATHS];
	uint64_t counts[PATHS];

	(void)state;
	assert_int_equal(ftruncate(file, BYTES), 0);
	close(file);
	for (unsigned i = 0; i < PATHS; i++) {
		targets[i] = serve_again(i ? 1 : 0);
		lead_to(i, targets[i]);
	}
	open_paths("&iopolicy=round-robin");
	work_until_carried(1, COMMANDS);
	count_rounds(counts);
	assert_true(counts[1] > 0 && counts[0] > 2 * counts[1]);
	must(weir_storage_close(storage));
	storage = NULL;
	for (unsigned i = 0; i < PATHS; i++) {
		weir_target_stop(targets[i], 5000);
		weir_target_destroy(targets[i]);
	}
	unlink(file_uri + strlen("file:"));
}

static void an_unknown_policy_is_refused(void **state)
{
	char uri[512];

	(void)state;
	uri_of(uri, sizeof(uri), "&iopolicy=numa");
	assert_int_equal(weir_storage_open(context, uri, NULL, &storage), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "iopolicy=numa is not accepted: iopolicy is failover, "
						  "round-robin"));
	storage = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_path_carries_all_by_default, serve, end),
		cmocka_unit_test_setup_teardown(round_robin_alternates, serve, end),
		cmocka_unit_test_setup_teardown(round_robin_is_blind_to_answers, serve, end),
		cmocka_unit_test_setup_teardown(queue_depth_avoids_a_path_that_answers_late, serve, end),
		cmocka_unit_test_setup_teardown(queue_depth_uses_both, serve, end),
		cmocka_unit_test_setup_teardown(only_the_best_state_carries, serve, end),
		cmocka_unit_test_setup_teardown(an_inaccessible_path_is_left, serve, end),
		cmocka_unit_test_setup_teardown(a_cut_path_is_done_without, serve, end),
		cmocka_unit_test_setup_teardown(round_robin_loses_nothing, serve, end),
		cmocka_unit_test_setup_teardown(queue_depth_loses_nothing, serve, end),
		cmocka_unit_test_setup_teardown(no_path_works_for_a_while, serve, end),
		cmocka_unit_test_setup_teardown(a_silent_path_is_left, serve, end),
		cmocka_unit_test_setup_teardown(a_path_to_another_disk_carries_nothing, serve, end),
		cmocka_unit_test_setup_teardown(each_path_reads_what_both_wrote, serve, end),
		cmocka_unit_test_setup_teardown(a_command_without_an_answer_ends, serve, end),
		cmocka_unit_test_setup_teardown(a_late_write_overwrites_no_newer_one, serve, end),
		cmocka_unit_test_setup_teardown(a_path_with_fewer_queues, serve, end),
		cmocka_unit_test_setup_teardown(an_unknown_policy_is_refused, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
