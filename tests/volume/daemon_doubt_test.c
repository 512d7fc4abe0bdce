/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_doubt_test.c: engines that were not closed in order, and may lack what they acknowledged: who is
 * taken out, who stays in, and what is read meanwhile.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon_client.h"

/* The connection to an engine that was not closed in order is lost, and made again. */
static void doubt(unsigned index)
{
	array.engines[index].doubtful = true;
	array.engines[index].dead = true;
	volumed_heartbeat(d);
	array.engines[index].dead = false;
}

static void test_an_engine_in_doubt_stays_if_the_other_has_a_new_disk(void **state)
{
	(void)state;
	start_daemon(2, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	doubt(0);
	stand_in_restart(&array.engines[1], true); /* nobody has heard of it */
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

static void test_the_only_engine_left_stays_in_doubt(void **state)
{
	(void)state;
	start_daemon(2, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.engines[1].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	doubt(0);
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	assert_true(d->counted && d->engines[0].current);
}

/* What it lacks was made equal; a connection that is made again changes nothing about that, another start
 * does. */
static void test_an_engine_in_doubt_is_compared_once(void **state)
{
	u32 before;

	(void)state;
	start_daemon(2, 0, true);
	make_volume();
	array.engines[1].dead = true;
	settle();
	doubt(0);
	settle();
	before = d->epoch;
	doubt(0);
	settle();
	assert_int_equal(d->epoch, before);
	assert_true(d->engines[0].current);
	stand_in_restart(&array.engines[0], false);
	doubt(0);
	settle();
	assert_true(d->epoch > before);
}

/* Engine 0 loses a block, and the last write of another one, and is not taken out: a volume has its replica
 * there alone. */
static void lose_two(unsigned engines, u32 vbas[2])
{
	struct stand_in_block *blocks = array.engines[0].volumes[1].blocks;
	u32 count = 0;

	start_daemon(engines, 0, true);
	make_volume();
	do_call("volume_create", json_pack("{s:s, s:i, s:i}", "name", "w", "bytes", 4096, "replicas", 1), 0);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	for (u32 i = 0; count < 2; i++)
		if (engine_at(writer.vid, i, 0) == 0)
			vbas[count++] = i;
	blocks[vbas[0]] = (struct stand_in_block){ .version = 0 };
	blocks[vbas[1]].version--;
	blocks[vbas[1]].word = 7;
}

/* The connection to the other one, which has all, is lost just then. */
static void test_an_engine_in_doubt_is_compared_with_all(void **state)
{
	u32 vbas[2];

	(void)state;
	lose_two(2, vbas);
	doubt(0);
	array.engines[1].resets = true;
	settle();
	assert_false(array.engines[1].resets);
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* Both were not closed in order, and the second one has lost a block. */
static void test_of_two_in_doubt_none_is_taken_out(void **state)
{
	(void)state;
	begin_written(2);
	array.engines[1].volumes[1].blocks[3] = (struct stand_in_block){ .version = 0 };
	stand_in_restart(&array.engines[1], false);
	array.engines[1].doubtful = array.engines[1].resets = true;
	doubt(0);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* Engine 0 dies at this command. Clients have the map of before: none in doubt is given that. */
static u32 fatal_opcode;

static void die_beside_another_in_doubt(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	const struct stand_in *other = &engines->engines[1];

	assert_false(other->has_map && other->map.epoch <= writer.map);
	engines->engines[0].dead |= opcode == fatal_opcode && engine == 0;
}

/* Engines 0 and 1 were not closed in order, and engine 1 has lost the last write of a block. */
static void check_two_in_doubt_are_not_read(u32 opcode)
{
	u32 vba = 0;
	u64 word;

	begin_written(5);
	while (engine_at(writer.vid, vba, 0) != 1)
		vba++;
	array.engines[1].volumes[writer.vid].blocks[vba].version--;
	array.engines[1].volumes[writer.vid].blocks[vba].word = 7;
	for (unsigned i = 0; i < 2; i++) {
		stand_in_restart(&array.engines[i], false);
		array.engines[i].doubtful = array.engines[i].resets = true;
	}
	fatal_opcode = opcode;
	array.on_command = die_beside_another_in_doubt;
	volumed_heartbeat(d);
	assert_true(array.engines[0].dead);
	array.on_command = NULL;
	get_map(&writer);
	assert_int_equal(stand_in_read(&array.engines[1], writer.number, writer.map, writer.vid, vba, &word),
			 NVME_STATUS_VOLUME_STALE_MAP);
	volumed_heartbeat(d);
	assert_int_equal(d->epoch, writer.map); /* nothing can be done: clients are not kept off for it */
	array.engines[0].dead = false;
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	assert_true(d->engines[0].accepted && d->engines[1].accepted);
	check_all(&writer);
}

static void test_of_two_in_doubt_the_first_dies_as_it_is_given_the_map(void **state)
{
	(void)state;
	check_two_in_doubt_are_not_read(NVME_ADMIN_VOLUME_MAP);
}

static void test_of_two_in_doubt_the_first_dies_as_they_are_compared(void **state)
{
	(void)state;
	check_two_in_doubt_are_not_read(NVME_ADMIN_VOLUME_LIST);
}

static void die_when_asked(struct stand_in_array *of, u32 opcode, unsigned engine)
{
	if (opcode == NVME_ADMIN_VOLUME_GET && engine == 0)
		of->engines[0].dead = true;
}

/* One that does not say whether it has its volumes has not forgotten them. */
static void test_an_engine_that_is_silent_has_not_forgotten(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].resets = true;
	array.on_command = die_when_asked;
	volumed_heartbeat(d);
	array.on_command = NULL;
	assert_true(array.engines[0].dead);
	array.engines[0].dead = false;
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* One that joins starts again with nothing, when a part is copied. */
static void test_what_was_copied_is_copied_again(void **state)
{
	(void)state;
	begin_written(3);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0); /* else all is compared in the end */
	array.engines[1].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	stand_in_restart(&array.engines[1], true);
	while (d->copy.task != VOLUMED_JOIN || d->copy.level.copied < 4) {
		clock_ms += 10;
		(void)volumed_step(d);
	}
	stand_in_restart(&array.engines[1], true);
	array.engines[1].resets = true;
	volumed_heartbeat(d);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

/* One leaves; what was copied for the map without it engines drop with another map, which comes for two that
 * are in doubt. */
static void test_what_was_copied_is_copied_again_for_another_map(void **state)
{
	(void)state;
	begin_written(5);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	do_call("engine_remove", json_pack("{s:i}", "id", (int)d->engines[4].info.id), 0);
	while (d->copy.task != VOLUMED_LEAVE || d->copy.level.copied < 4) {
		clock_ms += 10;
		(void)volumed_step(d);
	}
	for (unsigned i = 2; i < 4; i++)
		array.engines[i].doubtful = array.engines[i].resets = true;
	volumed_heartbeat(d);
	settle();
	assert_int_equal(d->engine_count, 4);
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* One that was to stay fails: another one goes once there are as many as there are replicas. */
static void test_the_last_engine_does_not_leave(void **state)
{
	(void)state;
	begin_written(3);
	do_call("engine_remove", json_pack("{s:i}", "id", (int)d->engines[0].info.id), 0);
	array.engines[1].dead = true;
	for (unsigned i = 0; i < 100 * VOLUMED_HEARTBEAT_MS; i++) {
		clock_ms += 1;
		(void)volumed_step(d);
	}
	assert_int_equal(d->counts.taken_out, 1);
	assert_true(volumed_engine_in(&d->engines[0]) && d->counted);
	stand_in_restart(&array.engines[1], true);
	settle();
	assert_int_equal(d->engine_count, 2);
	assert_int_equal(d->counts.taken_in, 1);
}

static void test_what_an_engine_in_doubt_has_no_room_for_it_does_not_have(void **state)
{
	u32 vbas[2];
	u64 word;

	(void)state;
	lose_two(2, vbas);
	array.engines[0].full = true;
	doubt(0);
	for (unsigned i = 0; i < MOST_STEPS / 10; i++, clock_ms++)
		(void)volumed_step(d);
	get_map(&writer);
	assert_int_equal(
		stand_in_read(&array.engines[0], writer.number, writer.map, writer.vid, vbas[0], &word),
		NVME_STATUS_VOLUME_NOT_HERE);
	assert_int_equal(
		stand_in_read(&array.engines[0], writer.number, writer.map, writer.vid, vbas[1], &word), 0);
	assert_int_equal(word, writer.acknowledged[vbas[1]]);
	array.engines[0].full = false;
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

static void die_while_lists_are_read(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	engines->engines[1].dead |= opcode == NVME_ADMIN_VOLUME_LIST && engine == 1;
}

static void test_an_engine_in_doubt_is_not_read_before_it_is_compared(void **state)
{
	u32 vbas[2];
	u64 word;

	(void)state;
	lose_two(4, vbas);
	array.on_command = die_while_lists_are_read;
	doubt(0);
	volumed_heartbeat(d);
	array.on_command = NULL;
	get_map(&writer);
	assert_int_equal(
		stand_in_read(&array.engines[0], writer.number, writer.map, writer.vid, vbas[0], &word),
		NVME_STATUS_VOLUME_STALE_MAP);
	array.engines[1].dead = false;
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* Each may have what the other one lacks. */
static void test_of_two_silent_engines_none_is_taken_out(void **state)
{
	(void)state;
	start_daemon(5, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.engines[1].dead = array.engines[2].dead = true;
	for (unsigned i = 0; i < 3 * VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 0);
	stand_in_restart(&array.engines[2], false);
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
}

/* A block whose replicas are on engines 0 and 1. */
static u32 block_of_first_two(void)
{
	u32 vba = 0;

	while (engine_at(writer.vid, vba, 0) != 0 || engine_at(writer.vid, vba, 1) != 1)
		vba++;
	return vba;
}

/* Engine 0 has lost block @vba, and is in doubt; engine 1, which alone has it, falls silent. */
static void lose_beside_a_silent_one(u32 vba)
{
	array.engines[0].volumes[1].blocks[vba] = (struct stand_in_block){ .version = 0 };
	stand_in_restart(&array.engines[0], false);
	array.engines[0].doubtful = array.engines[0].dead = array.engines[1].dead = true;
	volumed_heartbeat(d);
	array.engines[0].dead = false;
	for (unsigned i = 0; i < 3 * VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 0);
}

static void test_a_start_with_a_new_disk_and_a_silent_engine_is_a_rebuild(void **state)
{
	u32 vba;
	u64 word;

	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	vba = block_of_first_two();
	volumed_destroy(d);
	stand_in_restart(&array.engines[0], true);
	array.engines[1].dead = true;
	start_daemon(3, 0, true);
	get_map(&writer);
	assert_int_equal(stand_in_read(&array.engines[0], writer.number, writer.map, writer.vid, vba, &word),
			 NVME_STATUS_VOLUME_NOT_HERE);
	stand_in_restart(&array.engines[1], false);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* An engine in doubt has lost a block; the only other one that has it is silent when the daemon starts, and
 * stays in until it is heard of. */
static void test_a_start_with_an_engine_in_doubt_and_a_silent_one(void **state)
{
	u32 vba;

	(void)state;
	begin_written(3);
	vba = block_of_first_two();
	volumed_destroy(d);
	array.engines[0].volumes[1].blocks[vba] = (struct stand_in_block){ .version = 0 };
	stand_in_restart(&array.engines[0], false);
	array.engines[0].doubtful = true;
	array.engines[1].dead = true;
	start_daemon(3, 0, true);
	for (unsigned i = 0; i < 3 * VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 0);
	stand_in_restart(&array.engines[1], false);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

/* The same; and somebody knows that the silent one is gone for good. */
static void test_a_silent_engine_is_given_up(void **state)
{
	u32 vba, id;

	(void)state;
	begin_written(3);
	vba = block_of_first_two();
	id = d->engines[1].info.id;
	do_call("engine_remove", json_pack("{s:i, s:b}", "id", (int)id, "lost", 1), -EBUSY);
	assert_false(d->engines[1].leaving);
	lose_beside_a_silent_one(vba);
	do_call("engine_remove", json_pack("{s:i, s:b}", "id", (int)id, "lost", 1), 0);
	settle();
	assert_int_equal(d->engine_count, 2);
	for (u32 i = 0; i < BLOCKS; i++) {
		const struct stand_in_block *first = stand_in_block(&array.engines[0], writer.vid, i),
					    *other = stand_in_block(&array.engines[2], writer.vid, i);

		assert_int_equal(first->version, other->version);
		if (i != vba) /* which that one had alone */
			assert_int_equal(first->word, writer.acknowledged[i]);
	}
}

/* After a loss of power one engine has a write that all others have lost. */
static void test_what_all_others_have_lost_is_compared(void **state)
{
	u32 vba = 0;

	(void)state;
	begin_written(3);
	while (engine_at(writer.vid, vba, 0) != 0)
		vba++;
	volumed_destroy(d);
	array.engines[0].volumes[1].blocks[vba].version++;
	array.engines[0].volumes[1].blocks[vba].word = 7;
	writer.acknowledged[vba] = 0; /* it may be there or not, but the same everywhere */
	for (unsigned i = 0; i < 3; i++)
		stand_in_restart(&array.engines[i], false);
	array.engines[0].doubtful = true;
	start_daemon(3, 0, true);
	assert_int_equal(d->counts.taken_out, 1);
	assert_true(d->volumes[0].unclean); /* all of it is compared before anybody else writes */
	assert_int_equal(d->volumes[0].from, 0);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	check_all(&writer);
	assert_false(d->volumes[0].unclean);
}

/* An engine in doubt has lost a block; the only other one that has it falls silent. */
static void test_no_silent_engine_goes_beside_one_in_doubt(void **state)
{
	u32 vba;

	(void)state;
	begin_written(3);
	vba = block_of_first_two();
	lose_beside_a_silent_one(vba);
	array.engines[1].dead = false;
	settle();
	check_all(&writer);
}

/* The volume was compared, in the first pass; or the next one begins. */
static bool is_compared(unsigned pass)
{
	return d->copy.task == VOLUMED_JOIN && d->copy.pass == pass &&
	       (pass ? !d->copy.next : d->copy.next > writer.vid && !d->copy.open);
}

/* Its block was left to the writer, whose lease ends before the engine is in. */
static void join_while_a_writer_dies(unsigned pass)
{
	u32 vba = 0;

	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	while (engine_at(writer.vid, vba, 0) != 1)
		vba++;
	write_one(vba, 0, 77);
	array.engines[1].dead = true;
	settle();
	stand_in_restart(&array.engines[1], false);
	for (unsigned i = 0; !is_compared(pass) && i < MOST_STEPS; i++) {
		clock_ms++;
		(void)volumed_step(d);
	}
	assert_true(is_compared(pass));
	clock_ms += LEASE_MS;
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

static void test_a_writer_dies_while_an_engine_joins(void **state)
{
	(void)state;
	join_while_a_writer_dies(0);
}

static void test_a_writer_dies_in_a_later_pass(void **state)
{
	(void)state;
	join_while_a_writer_dies(1);
}

/* Engine 2 ends before it deletes the volume, and engine 1 is not reached when that is to be taken out. */
static void die_at_its_map(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	engines->engines[2].dead |= opcode == NVME_ADMIN_VOLUME_DELETE && engine == 2;
	engines->engines[1].dead |= opcode == NVME_ADMIN_VOLUME_MAP && engine == 1;
}

static void test_a_volume_deleted_by_half_is_not_forgotten(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 4096), 0);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.on_command = die_at_its_map;
	do_call("volume_delete", json_pack("{s:s}", "name", "w"), -EAGAIN);
	array.on_command = NULL;
	assert_int_equal(array.engines[1].volumes[2].is.vid, 0);
	array.engines[1].dead = false;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	do_call("volume_delete", json_pack("{s:s}", "name", "w"), 0);
	stand_in_restart(&array.engines[2], false);
	settle();
	check_all(&writer);
}

/* A volume is made on engine 0 alone, since engine 1 is silent; the next daemon takes it for one. */
static void test_an_engine_that_was_not_told_of_a_volume_has_not_forgotten(void **state)
{
	(void)state;
	begin_written(3);
	volumed_destroy(d);
	stand_in_restart(&array.engines[0], true);
	array.engines[1].dead = true;
	start_daemon(3, 0, true);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 4096), -EAGAIN);
	volumed_destroy(d);
	start_daemon(3, 0, true);
	stand_in_restart(&array.engines[1], false);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_an_engine_in_doubt_is_compared_with_all),
		CASE(test_of_two_in_doubt_none_is_taken_out),
		CASE(test_of_two_in_doubt_the_first_dies_as_it_is_given_the_map),
		CASE(test_of_two_in_doubt_the_first_dies_as_they_are_compared),
		CASE(test_an_engine_that_is_silent_has_not_forgotten),
		CASE(test_what_was_copied_is_copied_again),
		CASE(test_what_was_copied_is_copied_again_for_another_map),
		CASE(test_the_last_engine_does_not_leave),
		CASE(test_an_engine_in_doubt_stays_if_the_other_has_a_new_disk),
		CASE(test_the_only_engine_left_stays_in_doubt),
		CASE(test_an_engine_in_doubt_is_compared_once),
		CASE(test_what_an_engine_in_doubt_has_no_room_for_it_does_not_have),
		CASE(test_an_engine_in_doubt_is_not_read_before_it_is_compared),
		CASE(test_of_two_silent_engines_none_is_taken_out),
		CASE(test_a_start_with_a_new_disk_and_a_silent_engine_is_a_rebuild),
		CASE(test_a_start_with_an_engine_in_doubt_and_a_silent_one),
		CASE(test_no_silent_engine_goes_beside_one_in_doubt),
		CASE(test_a_silent_engine_is_given_up),
		CASE(test_what_all_others_have_lost_is_compared),
		CASE(test_a_writer_dies_while_an_engine_joins),
		CASE(test_a_writer_dies_in_a_later_pass),
		CASE(test_a_volume_deleted_by_half_is_not_forgotten),
		CASE(test_an_engine_that_was_not_told_of_a_volume_has_not_forgotten),
	};

	return cmocka_run_group_tests_name("daemon_doubt", tests, NULL, NULL);
}
