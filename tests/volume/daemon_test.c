/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_test.c: the daemon over stand-in engines, a client of them, and what becomes of both when one thing
 * fails. Judged by what engines have and by counts; the clock is the test's.
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

static void test_a_volume_is_created_shared_and_opened(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	do_call("volume_open", json_pack("{s:s, s:s}", "name", "v", "hostnqn", HOST), -ENOENT);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "v", "bytes", 4096 * 8), 0);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "v", "bytes", 4096 * 8), -EEXIST);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 4097), -EINVAL);
	do_call("volume_create", json_pack("{s:s}", "name", "w"), -32602);
	do_call("volume_burn", NULL, -32601);
	do_call("volume_open", json_pack("{s:s, s:s}", "name", "v", "hostnqn", HOST), -EACCES);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", HOST, "rights", "r"), 0);
	assert_int_equal(open_volume(&reader, HOST, false), 0);
	assert_int_equal(reader.lease, 0);
	assert_int_equal(open_volume(&writer, HOST, true), -EACCES);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(array.engines[i].volumes[1].is.name, "v");
}

static void test_one_writer_at_a_time(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	assert_int_equal(open_volume(&reader, OTHER, true), -EBUSY);
	assert_int_equal(open_volume(&reader, OTHER, false), 0);
	assert_int_not_equal(reader.number, writer.number);
	clock_ms += LEASE_MS / 2;
	do_call("lease_renew",
		json_pack("{s:s, s:i, s:I}", "name", "v", "client", writer.number, "epoch",
			  (json_int_t)writer.lease),
		0);
	clock_ms += LEASE_MS - 1;
	assert_int_equal(open_volume(&reader, OTHER, true), -EBUSY);
	do_call("lease_release",
		json_pack("{s:s, s:i, s:I}", "name", "v", "client", writer.number, "epoch",
			  (json_int_t)writer.lease),
		0);
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	assert_true(reader.lease > writer.lease + 1);
	assert_int_equal(write_block(&writer, 0, 1), NVME_STATUS_VOLUME_STALE_LEASE);
	do_call("lease_renew",
		json_pack("{s:s, s:i, s:I}", "name", "v", "client", writer.number, "epoch",
			  (json_int_t)writer.lease),
		-ESTALE);
}

static void test_a_writer_dies_between_replicas(void **state)
{
	(void)state;
	begin_written(4);
	for (u32 i = 0; i < 20; i++)
		write_one(i, i % REPLICAS, 5000 + i);
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	for (u32 i = 0; i < 20; i++) /* wholly there */
		writer.acknowledged[i] = 5000 + i;
	check_all(&writer);
	assert_int_equal(d->counts.equalized, 20);
	assert_int_equal(write_block(&writer, 3, 1), NVME_STATUS_VOLUME_STALE_LEASE);
}

/* Its writes are refused before the first block is compared. */
static void write_late(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	if (opcode != NVME_ADMIN_VOLUME_LIST)
		return;
	writer.acknowledged[0]++;
	for (u32 i = 0; i < BLOCKS; i++)
		if (engine_at(writer.vid, i, 0) == engine)
			assert_int_equal(stand_in_write(&engines->engines[engine], writer.number,
							writer.lease, writer.map, writer.vid, i,
							(u64)writer.lease << NVME_VOLUME_VERSION_EPOCH | 9999,
							1),
					 NVME_STATUS_VOLUME_STALE_LEASE);
}

static void test_a_writer_is_kept_off_first(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_one(5, 0, 8);
	clock_ms += LEASE_MS;
	array.on_command = write_late;
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	array.on_command = NULL;
	assert_true(writer.acknowledged[0] > 0);
}

static void test_a_lease_that_is_over_is_cleaned_up_without_a_successor(void **state)
{
	(void)state;
	begin_written(3);
	write_one(7, 1, 9);
	clock_ms += LEASE_MS;
	(void)volumed_step(d);
	writer.acknowledged[7] = 9;
	check_all(&writer);
}

static void test_an_engine_dies(void **state)
{
	u32 before;

	(void)state;
	begin_written(4);
	before = d->epoch;
	array.engines[2].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++) {
		assert_int_equal(d->epoch, before);
		volumed_heartbeat(d);
	}
	assert_int_equal(d->epoch, before + 1);
	assert_true(d->rebuilding);
	/* an engine with the new map takes nothing of the old one */
	assert_int_equal(
		stand_in_write(&array.engines[0], writer.number, writer.lease, before, 1, 0, ~0ull >> 1, 1),
		NVME_STATUS_VOLUME_STALE_MAP);
	for (u32 i = 0; i < BLOCKS; i += 3) { /* while blocks are copied */
		assert_int_equal(write_block(&writer, i, 2000 + i), 0);
		(void)volumed_step(d);
	}
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	assert_false(array.engines[0].map.rebuilding);
	assert_true(d->counts.copied > 0);
	check_all(&writer);
}

static void test_a_client_reports_an_engine(void **state)
{
	u32 before;

	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	before = d->epoch;
	suspect(&writer, 1); /* it answers the daemon */
	assert_int_equal(d->epoch, before);
	array.engines[1].dead = true;
	write_all(10); /* without a heartbeat */
	assert_int_equal(d->counts.taken_out, 1);
	settle();
	check_all(&writer);
}

static void test_a_spare_takes_the_place(void **state)
{
	unsigned placed = 0;

	(void)state;
	start_daemon(3, 1, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	assert_int_equal(array.engines[3].writes, 0);
	array.engines[0].dead = true;
	settle();
	for (u32 i = 0; i < BLOCKS; i++)
		placed += stand_in_block(&array.engines[3], writer.vid, i)->version != 0;
	assert_true(placed > 0);
	check_all(&writer);
}

static void test_an_engine_comes_back(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[1].dead = true;
	settle();
	write_all(2000); /* of which it has nothing */
	stand_in_restart(&array.engines[1], false);
	for (unsigned i = 0; d->counts.taken_in == 0 && i < MOST_STEPS; i++) {
		u64 word;
		int status = stand_in_read(&array.engines[1], writer.number, writer.map, writer.vid,
					   i % BLOCKS, &word);

		assert_true(status == NVME_STATUS_VOLUME_NO_MAP || status == NVME_STATUS_VOLUME_MISPLACED ||
			    status == NVME_STATUS_VOLUME_STALE_MAP ||
			    word == writer.acknowledged[i % BLOCKS]);
		assert_int_equal(write_block(&writer, i % BLOCKS, 3000 + i), 0);
		clock_ms += 1;
		(void)volumed_step(d);
	}
	assert_int_equal(d->counts.taken_in, 1);
	assert_false(d->rebuilding);
	check_all(&writer);
}

/* It has a write that was never acknowledged, and that the others were made equal without. */
static void test_what_only_a_stale_engine_has_stays_lost(void **state)
{
	u32 vba = 0;

	(void)state;
	begin_written(3);
	while (engine_at(writer.vid, vba, 0) != 1)
		vba++;
	write_one(vba, 0, 77);
	array.engines[1].dead = true;
	settle();
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&reader, OTHER, true), 0); /* the value is 1000 + vba from here on */
	stand_in_restart(&array.engines[1], false);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

static void test_an_engine_that_forgot_is_no_source(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].dead = true;
	volumed_heartbeat(d);
	stand_in_restart(&array.engines[0], true); /* before it is taken out */
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

static void test_an_engine_that_was_away_shortly_stays_in(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].dead = true;
	volumed_heartbeat(d);
	stand_in_restart(&array.engines[0], false);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	write_all(2000);
	check_all(&writer);
}

static void test_another_daemon_knows_all(void **state)
{
	struct client again = { .number = 0 };

	(void)state;
	begin_written(4);
	write_one(5, 1, 55);
	volumed_destroy(d);
	array.engines[3].dead = true;
	start_daemon(1, 0, true); /* one engine knows the others */
	assert_int_equal(d->engine_count, 4);
	assert_int_equal(write_block(&writer, 9, 99), 0); /* its lease goes on */
	do_call("lease_renew",
		json_pack("{s:s, s:i, s:I}", "name", "v", "client", writer.number, "epoch",
			  (json_int_t)writer.lease),
		0);
	assert_int_equal(open_volume(&reader, OTHER, true), -EBUSY);
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&again, HOST, true), 0);
	assert_int_equal(again.number, writer.number);
	writer.acknowledged[5] = 55;
	settle();
	check_all(&writer);
}

static void test_a_daemon_does_not_start_with_half(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	volumed_destroy(d);
	array.engines[0].dead = array.engines[2].dead = true;
	start_daemon(4, 0, false);
	array.engines[2].dead = false;
	assert_int_equal(volumed_gather(d), 0);
	assert_int_equal(d->engine_count, 4);
}

/* Two of three fail one after the other; then those two come back alone: theirs is not the newest map. */
static void test_an_old_majority_is_none(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	array.engines[0].dead = true;
	settle();
	array.engines[1].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 2);
	volumed_destroy(d);
	stand_in_restart(&array.engines[0], false);
	stand_in_restart(&array.engines[1], false);
	array.engines[2].dead = true;
	start_daemon(3, 0, false);
}

static void die_at_a_map(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	(void)engine;
	for (unsigned i = 0; opcode == NVME_ADMIN_VOLUME_MAP && i < STAND_IN_ENGINES; i++)
		engines->engines[i].dead = true;
}

/* The daemon dies when it wants to take out the engine that is away: that one is in still, and has the volume
 * that the others have deleted. */
static void test_what_was_deleted_does_not_come_back(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	array.engines[2].dead = true;
	array.on_command = die_at_a_map;
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), -EAGAIN);
	array.on_command = NULL;
	for (unsigned away = 2; away < 4; away++) { /* 3: none */
		volumed_destroy(d);
		for (unsigned i = 0; i < 3; i++)
			array.engines[i].dead = i == away;
		start_daemon(3, 0, true);
		do_call("volume_delete", json_pack("{s:s}", "name", "v"), -ENOENT);
	}
	assert_int_equal(array.engines[2].volumes[1].is.vid, 0);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "v", "bytes", 4096), 0);
	assert_int_equal(array.engines[2].volumes[2].is.vid, 2);
}

/* Its disk is new, and nobody has told it of the others. */
static void test_an_empty_engine_is_no_array(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	volumed_destroy(d);
	stand_in_restart(&array.engines[0], true);
	start_daemon(1, 0, false);
	assert_int_equal(array.engines[0].map.epoch, 0);
	assert_int_equal(volumed_gather(d), -EAGAIN);
	d->options.alone = true; /* it was one of no array */
	assert_int_equal(volumed_gather(d), 0);
}

/* A page that says again where it began: nobody waits for its end. */
static void test_a_list_that_ends_nowhere_holds_nobody(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.engines[1].lists_again = true;
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&reader, OTHER, true), -EIO);
	array.engines[2].dead = true;
	for (unsigned i = 0; i < MOST_STEPS / 10; i++, clock_ms++)
		(void)volumed_step(d);
	assert_true(d->rebuilding);
	array.engines[1].lists_again = false;
	array.engines[1].lists_later = 3; /* blocks that were being written */
	settle();
	assert_int_equal(array.engines[1].lists_later, 0);
	array.engines[1].lists_later = 3;
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	check_all(&writer);
}

static void test_a_daemon_dies_while_it_makes_equal(void **state)
{
	(void)state;
	begin_written(3);
	for (u32 i = 0; i < 30; i++)
		write_one(i, 0, 7000 + i);
	clock_ms += LEASE_MS;
	/* The fence is there; then an engine is away, and nothing is made equal. */
	array.engines[0].dies_after = 2;
	(void)open_volume(&reader, OTHER, true);
	volumed_destroy(d);
	stand_in_restart(&array.engines[0], false);
	start_daemon(3, 0, true);
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	settle();
	for (u32 i = 0; i < 30; i++)
		writer.acknowledged[i] = 7000 + i;
	check_all(&writer);
}

/* Between the daemon's list and its read, and between its read and its write, the writer writes. */
static void write_behind_its_back(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	static u32 next;

	(void)engine;
	if ((opcode != NVME_OPCODE_READ && opcode != NVME_OPCODE_WRITE) || !d->rebuilding)
		return;
	engines->on_command = NULL;
	for (u32 i = 0; i < 10; i++, next = (next + 1) % BLOCKS)
		assert_int_equal(write_block(&writer, next, 90000 + d->counts.heartbeats + i), 0);
	engines->on_command = write_behind_its_back;
}

static void test_copies_and_writes_meet(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[2].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	get_map(&writer);
	array.on_command = write_behind_its_back;
	settle();
	array.on_command = NULL;
	check_all(&writer);
}

/* What the daemon is about to copy is written on the engine that it reads, and nowhere else. */
static void write_where_it_reads(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	static u32 next;

	if (opcode != NVME_OPCODE_READ || !d->rebuilding)
		return;
	for (u32 i = 0; i < 10; i++, next = (next + 1) % BLOCKS) {
		u64 version = (u64)writer.lease << NVME_VOLUME_VERSION_EPOCH | ++writer.counter,
		    word = 80000 + next;

		if (stand_in_write(&engines->engines[engine], writer.number, writer.lease, writer.map,
				   writer.vid, next, version, word) == 0)
			writer.acknowledged[next] = word;
		if (next == BLOCKS - 1)
			engines->on_command = NULL; /* it dies */
	}
}

static void test_a_writer_dies_while_blocks_are_copied(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[2].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	get_map(&writer);
	array.on_command = write_where_it_reads;
	settle();
	assert_null(array.on_command);
	for (u32 vba = 0; vba < BLOCKS; vba++)
		for (u32 i = 0; i < REPLICAS; i++) {
			const struct stand_in_block *block = stand_in_block(
				&array.engines[engine_at(writer.vid, vba, i)], writer.vid, vba);

			assert_int_not_equal(block->version, 0); /* as zeros it would be read */
			assert_true((u32)block->version <= BLOCKS ? block->word == 1000 + vba
								  : block->word >= 80000);
		}
	clock_ms += LEASE_MS;
	settle();
	for (u32 vba = 0; vba < BLOCKS; vba++) /* some were written twice, on one engine each */
		writer.acknowledged[vba] = 0;
	check_all(&writer);
}

static void add_engine(void)
{
	int code;
	json_t *result =
		ask("engine_add",
		    json_pack("{s:s, s:s, s:i}", "address", "3", "nqn", "nqn.engine", "domain", 3), &code);

	assert_int_equal(json_integer_value(json_object_get(result, "id")), 4);
	json_decref(result);
}

static void test_an_engine_leaves_and_another_joins(void **state)
{
	(void)state;
	begin_written(3);
	add_engine();
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	do_call("engine_remove", json_pack("{s:i}", "id", 4), 0);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(write_block(&writer, i, 4000 + i), 0);
		(void)volumed_step(d);
	}
	settle();
	assert_int_equal(d->engine_count, 3);
	check_all(&writer);
	assert_int_equal(d->counts.taken_out, 0);
}

/* Whatever the daemon is about to copy has just been written, until clients are kept off. */
static void write_before_each_read(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	(void)engine;
	if (opcode != NVME_OPCODE_READ || d->copy.task != VOLUMED_JOIN || d->rebuilding)
		return;
	engines->on_command = NULL;
	write_all(50000 + writer.counter);
	engines->on_command = write_before_each_read;
}

static void test_an_engine_joins_whatever_is_written(void **state)
{
	(void)state;
	begin_written(3);
	add_engine();
	array.on_command = write_before_each_read;
	settle();
	array.on_command = NULL;
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

static unsigned kept_off; /* copies that were made while clients were kept off */

/* Time passes, and a writer writes, but while it is kept off. */
static void write_now_and_then(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	(void)engine;
	kept_off += d->changing && opcode == NVME_OPCODE_WRITE;
	if (++clock_ms % 10 || d->changing)
		return;
	engines->on_command = NULL;
	assert_int_equal(write_block(&writer, (u32)(clock_ms / 10 * 7 % BLOCKS), clock_ms), 0);
	engines->on_command = write_now_and_then;
}

/* What is written while all is copied is copied before clients are kept off, but for the last of it. */
static void test_clients_are_kept_off_for_the_last_blocks(void **state)
{
	(void)state;
	begin_written(3);
	add_engine();
	array.on_command = write_now_and_then;
	settle();
	array.on_command = NULL;
	assert_int_equal(d->counts.taken_in, 1);
	assert_in_range(kept_off, 1, 20);
	check_all(&writer);
}

static void test_an_engine_dies_during_a_call(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	array.engines[1].dies_after = 1;
	make_volume();
	assert_int_equal(d->counts.taken_out, 1);
	assert_string_equal(array.engines[2].volumes[1].is.name, "v");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_a_volume_is_created_shared_and_opened),
		CASE(test_one_writer_at_a_time),
		CASE(test_a_writer_dies_between_replicas),
		CASE(test_a_writer_is_kept_off_first),
		CASE(test_a_lease_that_is_over_is_cleaned_up_without_a_successor),
		CASE(test_an_engine_dies),
		CASE(test_a_client_reports_an_engine),
		CASE(test_a_spare_takes_the_place),
		CASE(test_an_engine_comes_back),
		CASE(test_what_only_a_stale_engine_has_stays_lost),
		CASE(test_an_engine_that_forgot_is_no_source),
		CASE(test_an_engine_that_was_away_shortly_stays_in),
		CASE(test_another_daemon_knows_all),
		CASE(test_a_daemon_does_not_start_with_half),
		CASE(test_an_old_majority_is_none),
		CASE(test_what_was_deleted_does_not_come_back),
		CASE(test_an_empty_engine_is_no_array),
		CASE(test_a_list_that_ends_nowhere_holds_nobody),
		CASE(test_a_daemon_dies_while_it_makes_equal),
		CASE(test_copies_and_writes_meet),
		CASE(test_a_writer_dies_while_blocks_are_copied),
		CASE(test_an_engine_leaves_and_another_joins),
		CASE(test_an_engine_joins_whatever_is_written),
		CASE(test_clients_are_kept_off_for_the_last_blocks),
		CASE(test_an_engine_dies_during_a_call),
	};

	return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
