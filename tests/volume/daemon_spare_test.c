/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_spare_test.c: the daemon over stand-in engines, one of them a spare. What clients read while it
 * takes another one's place is what was acknowledged last, whichever engine they ask first.
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
#include "volume/daemon/command.h"

enum { INTERRUPTS = 1 << 20 };

/* @count engines in failure domains, the last one a spare. */
static void start_in_domains(const u32 *domains, unsigned count)
{
	assert_int_equal(volumed_create(&(struct volumed_options){ .linker = &array.base,
								   .lease_ms = LEASE_MS,
								   .now_ms = now },
					&d),
			 0);
	for (unsigned i = 0; i < count; i++) {
		struct nvme_volume_engine info = { .domain = domains[i], .weight = 100, .nqn = "nqn.engine" };

		info.address[0] = (char)('0' + i);
		assert_int_equal(volumed_engine_note(d, &info, i + 1 == count), 0);
	}
	assert_int_equal(volumed_gather(d), 0);
}

static void begin_in_domains(const u32 *domains, unsigned count)
{
	start_in_domains(domains, count);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
}

/* As a client reads: "not here" by all of the engines is zeros. Where one of them is dead, or has another
 * map, the client asks again later. */
static void check_read(u32 vba)
{
	unsigned lacking = 0;

	for (u32 replica = 0; replica < REPLICAS; replica++) {
		u64 word = 0;
		int status = stand_in_read(&array.engines[engine_at(writer.vid, vba, replica)], writer.number,
					   d->epoch, writer.vid, vba, &word);

		lacking += status == NVME_STATUS_VOLUME_NOT_HERE;
		if (!status)
			assert_int_equal(word, writer.acknowledged[vba]);
	}
	assert_true(lacking < REPLICAS);
}

/* As settle(). */
static void settle_reading(void)
{
	for (unsigned i = 0; i < MOST_STEPS; i++) {
		clock_ms += 1;
		(void)volumed_step(d);
		for (u32 vba = i % 16; vba < BLOCKS; vba += 16)
			check_read(vba);
		if (i > 5 * VOLUMED_HEARTBEAT_MS && d->copy.task == VOLUMED_IDLE && !d->rebuilding)
			return;
	}
	fail_msg("it does not come to rest");
}

/* What it has of a time when it was in is older than what the others have. */
static void test_a_spare_that_was_in_has_nothing(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[2].dead = true;
	settle();
	volumed_destroy(d);
	stand_in_restart(&array.engines[2], false);
	start_daemon(2, 1, true);
	assert_false(volumed_engine_in(&d->engines[2]));
	get_map(&writer);
	write_all(2000);
	array.engines[0].dead = true;
	settle_reading();
	assert_true(volumed_engine_in(&d->engines[2]));
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
}

/* Two of four engines end when they are given a map. */
static void die_at_a_map(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	engines->engines[engine].dead |= opcode == NVME_ADMIN_VOLUME_MAP && (engine == 1 || engine == 2);
}

/* A map reaches one engine of the four that were in, and two spares: it does not count. */
static void test_spares_have_no_voice(void **state)
{
	(void)state;
	start_daemon(4, 2, true);
	make_volume();
	array.engines[3].dead = true;
	array.on_command = die_at_a_map;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	array.on_command = NULL;
	assert_int_equal(d->counts.taken_out, 1);
	assert_true(d->engines[4].current && d->engines[5].current);
	assert_false(d->counted);
}

/* It is as far as the engine that has failed: of each group one that has the blocks stays. */
static void test_a_spare_comes_in_at_once(void **state)
{
	static const u32 domains[] = { 1, 2, 3, 1 };

	(void)state;
	begin_in_domains(domains, 4);
	array.engines[0].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_true(volumed_engine_in(&d->engines[3]));
	settle_reading();
	assert_int_equal(d->counts.taken_in, 0);
	check_all(&writer);
}

/* With it in, groups would have it and the other engine of the domain in which one has failed: neither has
 * the blocks of these two. */
static void test_a_spare_in_the_domain_that_is_left(void **state)
{
	static const u32 domains[] = { 1, 1, 2, 2 };

	(void)state;
	begin_in_domains(domains, 4);
	array.engines[0].dead = true;
	settle_reading();
	assert_true(volumed_engine_in(&d->engines[3]));
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
	write_all(2000);
	settle_reading();
}

/* Of one replica each group has a single engine: a spare in its place has none of the blocks. */
static void test_a_spare_beside_single_replicas(void **state)
{
	(void)state;
	start_daemon(3, 1, true);
	make_volume();
	do_call("volume_create", json_pack("{s:s, s:i, s:i}", "name", "w", "bytes", 4096, "replicas", 1), 0);
	array.engines[0].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_false(volumed_engine_in(&d->engines[3]));
	settle();
	assert_true(volumed_engine_in(&d->engines[3]));
}

static void die_with_the_map(struct stand_in_array *of, u32 opcode, unsigned engine)
{
	if (opcode == NVME_ADMIN_VOLUME_MAP && engine == 0)
		of->engines[0].dead = true;
}

/* The engine whose place it took is in again: with both, that one would be asked for less than it has. */
static void test_a_spare_goes_when_an_engine_is_put_back(void **state)
{
	(void)state;
	start_daemon(4, 1, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.engines[1].write_faults = 1;
	array.on_command = die_with_the_map;
	volumed_heartbeat(d);
	array.on_command = NULL;
	assert_true(volumed_engine_in(&d->engines[1]));
	assert_false(volumed_engine_in(&d->engines[4]));
	assert_true(d->engines[4].spare);
	settle_reading(); /* the other one is taken out */
	assert_true(volumed_engine_in(&d->engines[4]));
	check_all(&writer);
}

/* Whoever has much to drop before a volume or a map may come is asked again, and not taken for dead. */
static void test_an_engine_that_drops_much_is_asked_again(void **state)
{
	(void)state;
	start_daemon(4, 0, true);
	array.engines[1].interrupts = 3;
	make_volume();
	assert_int_equal(array.engines[1].interrupts, 0);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	array.engines[3].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++) {
		array.engines[1].interrupts = 5;
		volumed_heartbeat(d);
	}
	assert_int_equal(array.engines[1].interrupts, 0);
	assert_int_equal(array.engines[1].map.epoch, d->epoch);
	assert_true(d->engines[1].answers && d->engines[1].current);
	settle();
	check_all(&writer);
}

/* One that gets nowhere does not keep the daemon. */
static void test_an_engine_that_gets_nowhere_is_left(void **state)
{
	struct nvme_volume_map map;

	(void)state;
	start_daemon(2, 0, true);
	volumed_map_fill(d, 1, &map);
	array.engines[1].interrupts = INTERRUPTS;
	assert_int_equal(volume_engine_map(d->engines[1].link, &map), NVME_STATUS_COMMAND_INTERRUPTED);
	assert_in_range(array.engines[1].interrupts, 1, INTERRUPTS - 1);
	array.engines[1].interrupts = 0;
	assert_int_equal(volume_engine_map(d->engines[1].link, &map), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_a_spare_that_was_in_has_nothing),
		CASE(test_spares_have_no_voice),
		CASE(test_a_spare_comes_in_at_once),
		CASE(test_a_spare_in_the_domain_that_is_left),
		CASE(test_a_spare_beside_single_replicas),
		CASE(test_a_spare_goes_when_an_engine_is_put_back),
		CASE(test_an_engine_that_drops_much_is_asked_again),
		CASE(test_an_engine_that_gets_nowhere_is_left),
	};

	return cmocka_run_group_tests_name("daemon_spare", tests, NULL, NULL);
}
