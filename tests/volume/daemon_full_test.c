/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_full_test.c: the daemon over stand-in engines whose media fail writes. */
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

static void test_an_engine_that_fails_writes_goes(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[1].write_faults = 1;
	volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 1);
	assert_false(volumed_engine_in(&d->engines[1]));
	assert_int_equal(array.engines[1].map.epoch, d->epoch); /* it refuses who has the map of before */
	settle();
	assert_int_equal(d->counts.taken_in, 1); /* it has room again */
	check_all(&writer);
	array.engines[0].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 2);
	array.engines[1].write_faults = 1;
	array.engines[2].dead = true; /* it may have the only replica */
	volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 2);
}

/* Blocks of an engine that has just died are not on others yet: of some of them this one has the only
 * replica. */
static void test_an_engine_that_fails_writes_stays_beside_a_dead_one(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 1);
	array.engines[1].write_faults = 1;
	volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 1);
	settle();
	check_all(&writer);
}

/* While the disk of one is full, the other one comes back. */
static void test_an_engine_comes_back_beside_a_full_one(void **state)
{
	(void)state;
	begin_written(4);
	for (unsigned i = 1; i <= 2; i++) {
		array.engines[i].dead = true;
		settle();
	}
	write_all(3000);
	array.engines[1].faulty = true;
	for (unsigned i = 1; i <= 2; i++)
		stand_in_restart(&array.engines[i], false);
	for (unsigned i = 0; i < MOST_STEPS / 10 && !volumed_engine_in(&d->engines[2]); i++) {
		clock_ms += 10;
		(void)volumed_step(d);
	}
	assert_true(volumed_engine_in(&d->engines[2]));
	assert_false(volumed_engine_in(&d->engines[1]));
	array.engines[1].faulty = false;
	settle();
	assert_true(volumed_engine_in(&d->engines[1]));
	check_all(&writer);
}

/* Engines 2 and 3 are out; 2 has begun to join. */
static void begin_join(void)
{
	begin_written(4);
	for (unsigned i = 3; i >= 2; i--) {
		array.engines[i].dead = true;
		settle();
	}
	stand_in_restart(&array.engines[2], false);
	for (unsigned i = 0; i < MOST_STEPS && d->copy.task != VOLUMED_JOIN; i++, clock_ms++)
		(void)volumed_step(d);
	assert_int_equal(d->copy.task, VOLUMED_JOIN);
	assert_int_equal(d->copy.engine, 2);
}

static void end_without_joined(void)
{
	stand_in_restart(&array.engines[3], false);
	settle();
	assert_true(volumed_engine_in(&d->engines[3]));
	check_all(&writer);
	do_call("engine_remove", json_pack("{s:i, s:b}", "id", 3, "lost", array.engines[2].dead), 0);
	settle();
	assert_int_equal(d->engine_count, 3);
}

/* One that dies while it joins, for good, keeps no other one from joining, nor itself from being removed. */
static void test_an_engine_dies_while_it_joins(void **state)
{
	(void)state;
	begin_join();
	array.engines[2].dead = true;
	for (unsigned i = 0; i < 2000; i++, clock_ms++)
		(void)volumed_step(d);
	end_without_joined();
}

/* The same of one that answers, and keeps nothing. */
static void test_an_engine_fails_while_it_joins(void **state)
{
	(void)state;
	begin_join();
	array.engines[2].failed = array.engines[2].resets = true;
	for (unsigned i = 0; i < 2000; i++, clock_ms++)
		(void)volumed_step(d);
	assert_true(d->engines[2].answers);
	end_without_joined();
}

/* What the other one has acknowledged is not durable: one that failed writes, and has all, stays. */
static void test_an_engine_stays_beside_one_that_keeps_nothing(void **state)
{
	u32 epoch;

	(void)state;
	begin_written(2);
	epoch = d->epoch;
	array.engines[1].write_faults = 1;
	array.engines[0].failed = true;
	volumed_heartbeat(d);
	assert_int_equal(d->epoch, epoch);
	assert_true(volumed_engine_in(&d->engines[1]));
	array.engines[0].write_faults = 1;
	volumed_heartbeat(d);
	assert_false(volumed_engine_in(&d->engines[0]));
	assert_true(d->counted);
}

static void fail_with_the_map(struct stand_in_array *of, u32 opcode, unsigned engine)
{
	if (opcode == NVME_ADMIN_VOLUME_MAP && engine == 0)
		of->engines[0].failed = true;
}

/* The same, where the other one fails just then. */
static void test_an_engine_is_put_back(void **state)
{
	u32 epoch;

	(void)state;
	begin_written(2);
	epoch = d->epoch;
	array.engines[1].write_faults = 1;
	array.on_command = fail_with_the_map;
	volumed_heartbeat(d);
	assert_int_equal(d->epoch, epoch + 2);
	assert_true(d->counted);
	assert_true(volumed_engine_in(&d->engines[1]));
	assert_int_equal(array.engines[1].map.epoch, d->epoch);
	assert_int_equal(d->failed + d->counts.taken_out, 0);
}

static void die_with_the_map(struct stand_in_array *of, u32 opcode, unsigned engine)
{
	if (opcode == NVME_ADMIN_VOLUME_MAP && engine == 0)
		of->engines[0].dead = true;
}

/* Of some blocks it has the only replica that is left. All is where it belongs when the other one is back. */
static void test_an_engine_is_put_back_for_one_that_dies(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[1].write_faults = 1;
	array.on_command = die_with_the_map;
	volumed_heartbeat(d);
	array.on_command = NULL;
	assert_true(volumed_engine_in(&d->engines[1]));
	assert_int_equal(d->failed + d->counts.taken_out, 0);
	array.engines[0].dead = false;
	settle();
	assert_int_equal(d->counts.copied + d->counts.taken_out, 0);
	check_all(&writer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_engine_that_fails_writes_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_that_fails_writes_stays_beside_a_dead_one,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_comes_back_beside_a_full_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_dies_while_it_joins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_fails_while_it_joins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_stays_beside_one_that_keeps_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_is_put_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_engine_is_put_back_for_one_that_dies, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("daemon_full", tests, NULL, NULL);
}
