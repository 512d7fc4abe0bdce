/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_start_test.c: what a daemon makes, at its start, of engines that know different things. */
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

#define THIRD "nqn.2026-11.org.example:host-c"

enum { FAULT = 0x280 };

/* An engine that is given beside those of the array has volumes, which are not the array's to delete. */
static void test_an_engine_of_another_array(void **state)
{
	int error;

	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	volumed_destroy(d);
	array.engines[3].volumes[2].is = (struct nvme_volume){ .vid = 2, .replicas = 1, .name = "theirs" };
	error = volumed_create(
		&(struct volumed_options){ .linker = &array.base, .lease_ms = LEASE_MS, .now_ms = now }, &d);
	assert_int_equal(error, 0);
	for (unsigned i = 0; i < 4; i++) {
		struct nvme_volume_engine info = { .domain = i, .weight = 100, .nqn = "nqn.engine" };

		info.address[0] = (char)('0' + i);
		assert_int_equal(volumed_engine_note(d, &info, false), 0);
	}
	assert_int_equal(volumed_gather(d), -EEXIST);
	assert_string_equal(array.engines[3].volumes[2].is.name, "theirs");
	array.engines[3].volumes[2].is.vid = 0; /* as if it were formatted */
	assert_int_equal(volumed_gather(d), 0);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	assert_int_equal(d->engines[3].info.id, 4);
}

/* Each engine in turn has what the others were not told of. */
static void test_the_newest_of_each_engine_counts(void **state)
{
	(void)state;
	begin_written(3);
	for (unsigned i = 0; i < 3; i++) {
		struct nvme_volume *there = &array.engines[i].volumes[1].is;

		there->lease_epoch += 2;
		there->lease_client = writer.number;
		there->blocks++;
		volumed_destroy(d);
		start_daemon(3, 0, true);
		assert_int_equal(d->volumes[0].info.lease_epoch, writer.lease + 2 * (i + 1));
		assert_int_equal(d->volumes[0].info.blocks, BLOCKS + 1 + i);
		for (unsigned j = 0; j < 3; j++) {
			assert_int_equal(array.engines[j].volumes[1].is.lease_epoch,
					 writer.lease + 2 * (i + 1));
			assert_int_equal(array.engines[j].volumes[1].is.blocks, BLOCKS + 1 + i);
		}
	}
}

/* At one engine the writer was kept off already: it is by all, and blocks are made equal. */
static void test_a_fence_at_one_engine_counts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin_written(3);
		array.engines[i].volumes[1].is.lease_client = VOLUMED_NOBODY;
		volumed_destroy(d);
		start_daemon(3, 0, true);
		assert_int_equal(d->volumes[0].info.lease_client, VOLUMED_NOBODY);
		assert_true(d->volumes[0].unclean);
		if (i == 2)
			break;
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
	}
}

/* What a start that failed has read may have changed by the next one. */
static void test_a_start_that_failed_leaves_nothing(void **state)
{
	(void)state;
	begin_written(3);
	volumed_destroy(d);
	for (unsigned i = 0; i < 3; i++) {
		array.engines[i].refuses = NVME_ADMIN_VOLUME_MAP;
		array.engines[i].refuses_status = FAULT;
	}
	start_daemon(3, 0, false);
	for (unsigned i = 0; i < 3; i++) { /* another daemon takes a permission away */
		struct stand_in_volume *volume = &array.engines[i].volumes[1];

		array.engines[i].refuses_status = 0;
		assert_string_equal(volume->permissions[0].hostnqn, HOST);
		volume->permissions[0] = volume->permissions[--volume->permission_count];
	}
	assert_int_equal(volumed_gather(d), 0);
	assert_int_equal(d->volume_count, 1);
	assert_int_equal(open_volume(&reader, HOST, false), -EACCES);
	assert_int_equal(open_volume(&reader, OTHER, false), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(array.engines[i].volumes[1].permission_count, 1);
}

static void set_rights(const char *host, const char *rights)
{
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", host, "rights", rights),
		0);
}

/* An engine was away when rights were taken away, and the daemon that did it is no more: neither that engine
 * nor a later daemon gives them again. */
static void test_rights_that_ended_do_not_come_back(void **state)
{
	(void)state;
	begin_written(3);
	set_rights(THIRD, "r");
	assert_int_equal(array.engines[2].volumes[1].permission_count, 3);
	array.engines[2].dead = true;
	settle();
	set_rights(OTHER, "");
	set_rights(THIRD, "");
	for (unsigned i = 0; i < 2; i++) {
		volumed_destroy(d);
		start_daemon(3, 0, true);
		stand_in_restart(&array.engines[2], false);
		settle();
		assert_true(volumed_engine_in(&d->engines[2]));
		assert_int_equal(array.engines[2].volumes[1].permission_count, 1);
		assert_int_equal(open_volume(&reader, OTHER, false), -EACCES);
	}
	check_all(&writer);
}

/* A daemon ends while an engine leaves: the next one goes on with it. */
static void test_a_removal_outlives_the_daemon(void **state)
{
	(void)state;
	begin_written(4);
	do_call("engine_remove", json_pack("{s:i}", "id", 4), 0);
	volumed_destroy(d);
	start_daemon(4, 0, true);
	assert_true(d->engines[3].leaving && !d->engines[2].leaving);
	settle();
	assert_int_equal(d->engine_count, 3);
	check_all(&writer);
}

static u32 late_epoch; /* of a daemon that stands still */
static int late_status[STAND_IN_ENGINES];

/* Its command to delete the volume arrives when the next daemon first reads what the engine has. */
static void delete_late(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	struct volume_engine_link *link;
	char address[] = { (char)('0' + engine), '\0' };

	if (opcode != NVME_ADMIN_VOLUME_GET || late_status[engine] >= 0)
		return;
	late_status[engine] = 0;
	assert_int_equal(engines->base.create(&engines->base, address, "nqn.engine", &link), 0);
	assert_int_equal(link->ops->open(link), 0);
	link->epoch = &late_epoch;
	late_status[engine] = volume_engine_delete(link, 1);
	link->ops->close(link);
}

static void expect_late_refused(unsigned engine)
{
	assert_int_equal(late_status[engine], NVME_STATUS_VOLUME_STALE_MAP);
	assert_int_equal(array.engines[engine].volumes[1].is.vid, 1);
}

/* What the daemon of before has sent is void before this one reads anything, at engines that come back, too.
 */
static void test_an_older_daemon_is_shut_out(void **state)
{
	(void)state;
	begin_written(3);
	late_epoch = d->epoch;
	for (unsigned i = 0; i < 3; i++)
		late_status[i] = -1;
	volumed_destroy(d);
	array.engines[2].dead = true;
	array.on_command = delete_late;
	start_daemon(3, 0, true);
	expect_late_refused(0);
	expect_late_refused(1);
	stand_in_restart(&array.engines[2], false);
	settle();
	expect_late_refused(2);
	assert_int_equal(d->volume_count, 1);
}

/* Its next map arrives at each engine with the first command behind the next daemon's fence. */
static void map_late(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	struct nvme_volume_map map = engines->engines[engine].map;
	struct volume_engine_link *link;
	char address[] = { (char)('0' + engine), '\0' };

	if (engines->engines[engine].fence <= late_epoch || opcode == NVME_ADMIN_VOLUME_FENCE ||
	    late_status[engine] >= 0)
		return;
	late_status[engine] = 0;
	map.epoch = late_epoch + 1;
	map.engines[(engine + 1) % 3].state = NVME_VOLUME_ENGINE_OUT;
	assert_int_equal(engines->base.create(&engines->base, address, "nqn.engine", &link), 0);
	assert_int_equal(link->ops->open(link), 0);
	link->epoch = &late_epoch;
	late_status[engine] = volume_engine_map(link, &map);
	link->ops->close(link);
}

/* Of epochs that the daemon of before has used no engine knew: its map is refused all the same. */
static void test_a_late_map_is_refused(void **state)
{
	(void)state;
	begin_written(3);
	late_epoch = d->epoch;
	for (unsigned i = 0; i < 3; i++)
		late_status[i] = -1;
	volumed_destroy(d);
	array.on_command = map_late;
	start_daemon(3, 0, true);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(late_status[i], NVME_STATUS_VOLUME_STALE_MAP);
		assert_int_equal(array.engines[i].map.epoch, d->epoch);
	}
}

/* Daemons that cannot start, and try once a second, do not come to the last epoch. */
static void test_starts_that_fail_use_few_epochs(void **state)
{
	u32 epoch;

	(void)state;
	begin_written(3);
	volumed_destroy(d);
	for (unsigned i = 0; i < 3; i++) {
		array.engines[i].refuses = NVME_ADMIN_VOLUME_MAP;
		array.engines[i].refuses_status = FAULT;
	}
	start_daemon(3, 0, false);
	epoch = d->epoch;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(volumed_gather(d), -EAGAIN);
	assert_int_equal(d->epoch, epoch + 10);
	for (unsigned i = 0; i < 3; i++)
		array.engines[i].refuses_status = 0;
	assert_int_equal(volumed_gather(d), 0);
}

/* A daemon that ended before it gave a map has kept all others off: the next one goes above it. */
static void test_a_fence_without_a_map(void **state)
{
	(void)state;
	begin_written(3);
	for (unsigned i = 0; i < 3; i++)
		array.engines[i].fence = d->epoch + 5000 * (i + 1);
	volumed_destroy(d);
	start_daemon(3, 0, true);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(d->engines[i].current);
		assert_true(array.engines[i].map.epoch >= array.engines[i].fence);
	}
}

/* Engines that are given without a domain, and one that is given to a later daemon, have one each. */
static void test_engines_without_a_domain_have_their_own(void **state)
{
	const struct volumed_engine *engines;

	(void)state;
	for (unsigned count = 3; count <= 4; count++) {
		if (count > 3)
			volumed_destroy(d);
		assert_int_equal(volumed_create(&(struct volumed_options){ .linker = &array.base,
									   .lease_ms = LEASE_MS,
									   .now_ms = now },
						&d),
				 0);
		for (unsigned i = 4 - count; i < 4; i++) { /* the one that is new is the first */
			struct nvme_volume_engine info = { .domain = VOLUMED_OWN_DOMAIN,
							   .weight = 100,
							   .nqn = "nqn.engine" };

			info.address[0] = (char)('0' + i);
			assert_int_equal(volumed_engine_note(d, &info, false), 0);
		}
		assert_int_equal(volumed_gather(d), 0);
	}
	engines = d->engines;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(engines[i].info.domain, engines[j].info.domain);
}

/* A new array has all of its engines: one that is silent may have the blocks of an array. */
static void test_a_new_array_begins_with_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		array.engines[i].dead = true;
		start_daemon(3, 0, false);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(array.engines[j].map.epoch, 0);
		volumed_destroy(d);
		array.engines[i].dead = false;
	}
	start_daemon(3, 0, true);
}

/* A volume that was made with the number of one that is gone stands among others by its number: copying goes
 * by numbers. */
static void test_numbers_are_used_again(void **state)
{
	static const char *const names[] = { "v", "w", "x" };

	(void)state;
	start_daemon(4, 0, true);
	for (unsigned i = 0; i < 3; i++)
		do_call("volume_create",
			json_pack("{s:s, s:i, s:i}", "name", names[i], "bytes", BLOCKS * 4096, "unit_bytes",
				  4096),
			0);
	do_call("volume_delete", json_pack("{s:s}", "name", "w"), 0);
	d->last_vid = NVME_VOLUME_MOST;
	do_call("volume_create",
		json_pack("{s:s, s:i, s:i}", "name", "again", "bytes", BLOCKS * 4096, "unit_bytes", 4096), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(d->volumes[i].info.vid, i + 1);
	assert_string_equal(d->volumes[1].info.name, "again");
	do_call("volume_chmod",
		json_pack("{s:s, s:s, s:s}", "name", "again", "hostnqn", HOST, "rights", "rw"), 0);
	assert_int_equal(volumed_lease_grant(d, &d->volumes[1], d->volumes[1].permissions[0].client), 0);
	writer = (struct client){ .number = d->volumes[1].permissions[0].client,
				  .vid = 2,
				  .lease = d->volumes[1].info.lease_epoch,
				  .map = d->epoch };
	write_all(1000);
	array.engines[3].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
	d->last_vid = NVME_VOLUME_MOST;
	for (u32 vid = 4; vid <= NVME_VOLUME_MOST; vid++)
		assert_non_null(volumed_volume_insert(d, &(struct nvme_volume){ .vid = (u16)vid }));
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "more", "bytes", 4096), -ENOSPC);
}

static u32 refused_once;
static bool was_refused[STAND_IN_ENGINES];

static void refuse_once(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	struct stand_in *at = &engines->engines[engine];

	at->refuses = opcode;
	at->refuses_status = opcode == refused_once && !was_refused[engine] ? FAULT : 0;
	was_refused[engine] |= opcode == refused_once;
}

/* The next daemon's first command of @opcode is refused by each engine, of which the last one is out. */
static void start_refused(u32 opcode)
{
	begin_written(3);
	array.engines[2].dead = true;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	volumed_destroy(d);
	stand_in_restart(&array.engines[2], false);
	refused_once = opcode;
	memset(was_refused, 0, sizeof(was_refused));
	array.on_command = refuse_once;
	start_daemon(3, 0, false);
	while (!was_refused[1] || (!was_refused[2] && opcode == NVME_ADMIN_VOLUME_GET_MAP))
		assert_int_equal(volumed_gather(d), -EAGAIN);
	assert_int_equal(volumed_gather(d), 0);
	assert_int_equal(d->volume_count, 1);
	assert_int_equal(d->volumes[0].count, 2);
	assert_false(volumed_engine_in(&d->engines[2]));
	settle();
	check_all(&writer);
}

/* Else a map of before counts, in which an engine is that has been out since. */
static void test_a_map_that_is_refused(void **state)
{
	(void)state;
	start_refused(NVME_ADMIN_VOLUME_GET_MAP);
}

/* Else they are not the array's, and are deleted. */
static void test_volumes_that_are_refused(void **state)
{
	(void)state;
	start_refused(NVME_ADMIN_VOLUME_GET);
}

static void test_permissions_that_are_refused(void **state)
{
	(void)state;
	start_refused(NVME_ADMIN_VOLUME_GET_PERMISSION);
}

/* What they may lack was compared at the start: a connection that is made again changes nothing about that,
 * another start does. */
static void test_engines_in_doubt_are_compared_once(void **state)
{
	u32 epoch;

	(void)state;
	begin_written(2);
	volumed_destroy(d);
	for (unsigned i = 0; i < 2; i++) {
		stand_in_restart(&array.engines[i], false);
		array.engines[i].doubtful = true;
	}
	start_daemon(2, 0, true);
	settle();
	epoch = d->epoch;
	for (unsigned i = 0; i < 2; i++)
		array.engines[i].resets = true;
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	assert_int_equal(d->epoch, epoch);
	stand_in_restart(&array.engines[0], false);
	array.engines[0].resets = true;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
}

static u32 block_of_first_two(void)
{
	u32 vba = 0;

	while (engine_at(writer.vid, vba, 0) != 0 || engine_at(writer.vid, vba, 1) != 1)
		vba++;
	return vba;
}

/* The daemon has ended, and engine 0, which is in doubt, has lost the newest version of the block returned.
 */
static u32 lose_newest(void)
{
	struct stand_in_block before;
	u32 vba;

	begin_written(3);
	vba = block_of_first_two();
	before = *stand_in_block(&array.engines[0], writer.vid, vba);
	assert_int_equal(write_block(&writer, vba, 77), 0);
	volumed_destroy(d);
	array.engines[0].volumes[1].blocks[vba] = before;
	stand_in_restart(&array.engines[0], false);
	array.engines[0].doubtful = true;
	return vba;
}

static void die_at_its_map(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	engines->engines[engine].dead |= opcode == NVME_ADMIN_VOLUME_MAP && engine != 0;
}

/* A map without an engine in doubt reached that one alone when its daemon ended; the next daemon does not
 * hear of it, and begins with the map of before. */
static void test_doubt_ends_with_a_map_that_counts(void **state)
{
	(void)state;
	(void)lose_newest();
	array.on_command = die_at_its_map;
	start_daemon(3, 0, false);
	array.on_command = NULL;
	volumed_destroy(d);
	array.engines[0].dead = true;
	array.engines[1].dead = array.engines[2].dead = false;
	start_daemon(3, 0, true);
	array.engines[0].dead = false;
	settle();
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
}

/* The same by a heartbeat of the first daemon; and another one that has the map ends the doubt. */
static void test_doubt_ends_with_a_map_that_counts_later(void **state)
{
	(void)state;
	for (unsigned counts = 0; counts < 2; counts++) {
		(void)lose_newest();
		array.engines[0].dead = true;
		start_daemon(3, 0, true);
		for (unsigned i = 1; i < 3; i++) {
			array.engines[i].refuses = NVME_ADMIN_VOLUME_MAP;
			array.engines[i].refuses_status = FAULT;
		}
		array.engines[0].dead = false;
		for (unsigned i = 0; i < 3; i++)
			volumed_heartbeat(d);
		assert_false(d->counted || volumed_engine_in(&d->engines[0]));
		assert_int_equal(array.engines[0].map.epoch, d->epoch);
		assert_true(array.engines[0].doubtful);
		array.engines[1].refuses_status = array.engines[2].refuses_status = 0;
		if (counts) {
			d->options.heartbeat_ms = 5000; /* far longer than it takes to join */
			for (unsigned i = 0; i < 3; i++)
				settle();
			assert_false(array.engines[0].doubtful);
			assert_int_equal(d->counts.taken_in, 1);
			break;
		}
		volumed_destroy(d);
		array.engines[0].dead = true;
		start_daemon(3, 0, true);
		array.engines[0].dead = false;
		settle();
		assert_int_equal(d->counts.taken_out, 1);
		check_all(&writer);
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
	}
	check_all(&writer);
}

/* An engine in doubt has lost the newest version of a block, which a silent one has alone: it is not read
 * before that one was heard of. */
static void test_an_engine_in_doubt_is_not_read_beside_a_silent_one(void **state)
{
	u64 word;
	u32 vba;

	(void)state;
	vba = lose_newest();
	array.engines[1].dead = true;
	start_daemon(3, 0, true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			stand_in_read(&array.engines[0], writer.number, d->epoch, writer.vid, vba, &word),
			NVME_STATUS_VOLUME_STALE_MAP);
		clock_ms += VOLUMED_HEARTBEAT_MS;
		(void)volumed_step(d);
	}
	stand_in_restart(&array.engines[1], false);
	settle();
	assert_int_equal(d->counts.taken_out, 0);
	check_all(&writer);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_an_engine_of_another_array),
		CASE(test_the_newest_of_each_engine_counts),
		CASE(test_a_fence_at_one_engine_counts),
		CASE(test_a_start_that_failed_leaves_nothing),
		CASE(test_rights_that_ended_do_not_come_back),
		CASE(test_a_removal_outlives_the_daemon),
		CASE(test_a_new_array_begins_with_all),
		CASE(test_numbers_are_used_again),
		CASE(test_an_older_daemon_is_shut_out),
		CASE(test_a_fence_without_a_map),
		CASE(test_engines_without_a_domain_have_their_own),
		CASE(test_a_late_map_is_refused),
		CASE(test_starts_that_fail_use_few_epochs),
		CASE(test_a_map_that_is_refused),
		CASE(test_volumes_that_are_refused),
		CASE(test_permissions_that_are_refused),
		CASE(test_engines_in_doubt_are_compared_once),
		CASE(test_doubt_ends_with_a_map_that_counts),
		CASE(test_doubt_ends_with_a_map_that_counts_later),
		CASE(test_an_engine_in_doubt_is_not_read_beside_a_silent_one),
	};

	return cmocka_run_group_tests_name("daemon_start", tests, NULL, NULL);
}
