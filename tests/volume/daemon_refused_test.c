/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_refused_test.c: the daemon over stand-in engines that refuse a command, or know what the daemon does
 * not, and one that lacks memory: what it then says, and what is as it was.
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
#include <weir/weir.h>

#include "daemon_client.h"

enum { FAULT = 0x280, FEW_STEPS = 2000 };

static void refuse(unsigned engine, u32 opcode, int status)
{
	array.engines[engine].refuses = opcode;
	array.engines[engine].refuses_status = status;
}

static void steps(unsigned count)
{
	for (unsigned i = 0; i < count; i++, clock_ms++)
		(void)volumed_step(d);
}

static int lease_end(void)
{
	int code;

	json_decref(ask("lease_end", json_pack("{s:s}", "name", "v"), &code));
	return code;
}

int __real_volumed_level_begin(struct volumed_level *level);
int __wrap_volumed_level_begin(struct volumed_level *level);

static unsigned no_memory; /* comparisons that cannot begin */

/* In place of volumed_level_begin(). */
int __wrap_volumed_level_begin(struct volumed_level *level)
{
	if (!no_memory)
		return __real_volumed_level_begin(level);
	no_memory--;
	return -ENOMEM;
}

/* A volume that was not compared counts as copied neither after a failure nor for an engine that comes back.
 */
static void test_a_volume_that_is_not_compared_is_not_copied(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[2].dead = true;
	no_memory = 3;
	settle();
	assert_int_equal(no_memory, 0);
	assert_int_equal(d->counts.taken_out, 1);
	check_all(&writer);
	write_all(2000);
	stand_in_restart(&array.engines[2], false);
	no_memory = 3;
	settle();
	assert_int_equal(no_memory, 0);
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

/* What was copied is not durable on an engine: what it was copied from is not forgotten. */
static void test_a_rebuild_ends_when_copies_are_durable(void **state)
{
	(void)state;
	begin_written(4);
	refuse(0, NVME_OPCODE_FLUSH, FAULT);
	array.engines[2].dead = true;
	steps(FEW_STEPS);
	assert_int_equal(d->counts.taken_out, 1);
	assert_true(d->rebuilding && d->failed);
	assert_true(array.engines[1].map.rebuilding);
	refuse(0, 0, 0);
	settle();
	assert_int_equal(d->failed, 0);
	check_all(&writer);
}

/* The same of an engine that is to come in. */
static void test_an_engine_joins_when_copies_are_durable(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[2].dead = true;
	settle();
	stand_in_restart(&array.engines[2], false);
	refuse(2, NVME_OPCODE_FLUSH, FAULT);
	steps(2 * FEW_STEPS);
	assert_int_equal(d->counts.taken_in, 0);
	assert_false(volumed_engine_in(&d->engines[2]));
	refuse(2, 0, 0);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

/* A rebuild has counted what it copied from one engine before another one's list was refused: it begins anew,
 * and ends with all of it. */
static void test_a_list_that_is_refused_is_no_empty_one(void **state)
{
	(void)state;
	begin_written(3);
	write_one(5, 0, 77);
	for (unsigned i = 0; i < 3; i++)
		refuse(i, NVME_ADMIN_VOLUME_LIST, FAULT);
	assert_int_equal(lease_end(), -EIO);
	assert_true(d->volumes[0].unclean);
	for (unsigned i = 0; i < 3; i++)
		refuse(i, 0, 0);
	assert_int_equal(lease_end(), 0);
	assert_false(d->volumes[0].unclean);
	writer.acknowledged[5] = 77;
	check_all(&writer);
}

/* An engine that is in, and does not answer for a moment, has blocks that are to be compared, too. */
static void test_blocks_are_compared_with_all_engines(void **state)
{
	(void)state;
	begin_written(3);
	write_one(5, 0, 77);
	refuse(0, NVME_ADMIN_VOLUME_LIST, FAULT);
	assert_int_equal(lease_end(), -EIO);
	refuse(0, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		array.engines[i].dead = true;
		volumed_heartbeat(d);
		assert_true(volumed_engine_in(&d->engines[i]));
		assert_int_equal(lease_end(), -EAGAIN);
		assert_true(d->volumes[0].unclean);
		array.engines[i].dead = false;
		volumed_heartbeat(d);
	}
	assert_int_equal(lease_end(), 0);
	writer.acknowledged[5] = 77;
	check_all(&writer);
}

/* An engine has a lease of a call that failed at another one: the next client gets one above it. */
static void test_a_lease_of_a_call_that_failed_is_overtaken(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	refuse(1, NVME_ADMIN_VOLUME_LEASE, FAULT);
	assert_int_equal(open_volume(&writer, HOST, true), -EIO);
	assert_int_equal(array.engines[0].volumes[1].is.lease_epoch, 1);
	assert_int_equal(d->volumes[0].info.lease_epoch, 0);
	refuse(1, 0, 0);
	assert_int_equal(open_volume(&writer, OTHER, true), 0);
	assert_int_equal(writer.lease, 3);
	assert_false(d->volumes[0].unclean);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(array.engines[i].volumes[1].is.lease_epoch, 3);
	write_all(1000);
	check_all(&writer);
}

/* The same where it is the writer of now that is to be kept off. */
static void test_an_end_of_a_lease_that_failed_is_overtaken(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].volumes[1].is.lease_epoch = writer.lease + 3;
	array.engines[0].volumes[1].is.lease_client = VOLUMED_NOBODY;
	write_one(6, engine_at(writer.vid, 6, 0) == 0, 88);
	assert_int_equal(lease_end(), 0);
	assert_true(d->volumes[0].info.lease_epoch > writer.lease + 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(array.engines[i].volumes[1].is.lease_epoch, d->volumes[0].info.lease_epoch);
	writer.acknowledged[6] = 88;
	check_all(&writer);
}

/* An engine that refuses the fence takes writes of the writer of before: nobody becomes the next one, and the
 * volume is not clean. */
static void test_a_fence_that_is_refused(void **state)
{
	struct client other = { .number = 0 };

	(void)state;
	begin_written(3);
	refuse(1, NVME_ADMIN_VOLUME_LEASE, FAULT);
	assert_int_equal(lease_end(), -EIO);
	assert_true(d->volumes[0].unclean);
	clock_ms += LEASE_MS;
	assert_int_equal(open_volume(&other, OTHER, true), -EIO);
	assert_true(d->volumes[0].unclean);
	refuse(1, 0, 0);
	assert_int_equal(lease_end(), 0);
	assert_false(d->volumes[0].unclean);
	check_all(&writer);
}

/* An engine that is in keeps such a lease when its connection comes back, and is used. */
static void test_an_engine_with_a_newer_lease_is_brought(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].volumes[1].is.lease_epoch = writer.lease + 1;
	array.engines[0].volumes[1].is.lease_client = VOLUMED_NOBODY;
	array.engines[0].resets = true;
	volumed_heartbeat(d);
	assert_true(d->engines[0].current && volumed_engine_in(&d->engines[0]));
	assert_int_equal(d->counts.taken_out, 0);
	assert_int_equal(array.engines[0].volumes[1].is.lease_epoch, writer.lease + 1);
	assert_int_equal(lease_end(), 0);
	check_all(&writer);
}

/* An engine that is in and comes back, and refuses what it is brought, is not used before it takes that. */
static void test_an_engine_that_refuses_a_volume_is_not_used(void **state)
{
	(void)state;
	begin_written(3);
	refuse(0, NVME_ADMIN_VOLUME_ADD, FAULT);
	array.engines[0].resets = true;
	volumed_heartbeat(d);
	assert_false(d->engines[0].current);
	refuse(0, 0, 0);
	settle();
	assert_true(d->engines[0].current && volumed_engine_in(&d->engines[0]));
	assert_int_equal(lease_end(), 0);
	check_all(&writer);
}

/* An engine that is out, and refuses a change, has no part in it: it gets all before it comes in. */
static void test_an_engine_that_is_out_bars_no_change(void **state)
{
	(void)state;
	start_daemon(3, 1, true);
	make_volume();
	assert_true(d->engines[3].current);
	refuse(3, NVME_ADMIN_VOLUME_LEASE, FAULT);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	assert_false(d->engines[3].current);
	refuse(3, 0, 0);
	volumed_heartbeat(d);
	assert_true(d->engines[3].current);
	assert_int_equal(array.engines[3].volumes[1].is.lease_epoch, writer.lease);
}

/* Nor in what is durable: the blocks that are counted on are on others. */
static void test_an_engine_that_is_out_bars_no_rebuild(void **state)
{
	(void)state;
	start_daemon(3, 2, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	refuse(4, NVME_OPCODE_FLUSH, FAULT);
	array.engines[2].dead = true;
	settle();
	assert_true(volumed_engine_in(&d->engines[3]) && d->engines[4].current);
	assert_false(volumed_engine_in(&d->engines[4]));
	assert_int_equal(d->failed, 0);
	check_all(&writer);
}

/* Of one that is out the volume is made anew: what it wrote under that lease nobody else has. */
static void test_an_engine_that_is_out_with_a_newer_lease_is_copied_anew(void **state)
{
	(void)state;
	begin_written(3);
	array.engines[0].dead = true;
	settle();
	for (u32 vba = 0; vba < BLOCKS; vba++)
		array.engines[0].volumes[1].blocks[vba] =
			(struct stand_in_block){ .version = ~0ull >> 1, .word = 4 };
	array.engines[0].volumes[1].is.lease_epoch = writer.lease + 8;
	array.engines[0].volumes[1].is.lease_client = 9;
	stand_in_restart(&array.engines[0], false);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	assert_int_equal(array.engines[0].volumes[1].is.lease_epoch, writer.lease);
	check_all(&writer);
}

/* There are no epochs behind the last ones, which may not come round. */
static void test_the_last_lease(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	d->volumes[0].info.lease_epoch = NVME_VOLUME_LAST_EPOCH - 3;
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	d->volumes[0].info.lease_client = 0;
	d->volumes[0].info.lease_epoch = NVME_VOLUME_LAST_EPOCH - 2;
	assert_int_equal(open_volume(&writer, HOST, true), -EOVERFLOW);
	assert_int_equal(open_volume(&writer, HOST, false), 0);
}

static void call_lease(const char *method, const char *name, u32 client, u32 epoch, int expected)
{
	do_call(method,
		json_pack("{s:s, s:I, s:I}", "name", name, "client", (json_int_t)client, "epoch",
			  (json_int_t)epoch),
		expected);
}

/* A lease is its client's, of its epoch, of its volume. */
static void test_whose_lease(void **state)
{
	static const char *const methods[] = { "lease_renew", "lease_release" };

	(void)state;
	begin_written(3);
	for (unsigned i = 0; i < 2; i++) {
		call_lease(methods[i], "w", writer.number, writer.lease, -ESTALE);
		call_lease(methods[i], "v", writer.number + 1, writer.lease, -ESTALE);
		call_lease(methods[i], "v", writer.number, writer.lease - 1, -ESTALE);
		call_lease(methods[i], "v", writer.number, writer.lease + 2, -ESTALE);
	}
	assert_int_equal(write_block(&writer, 0, 1), 0);
	assert_int_equal(lease_end(), 0);
	call_lease("lease_release", "v", VOLUMED_NOBODY, d->volumes[0].info.lease_epoch, -ESTALE);
	assert_int_equal(d->volumes[0].info.lease_client, VOLUMED_NOBODY);
}

static void refuse_first_copy(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	if (opcode == NVME_OPCODE_WRITE)
		refuse(engine, opcode, engines->engines[engine].refuses != opcode ? FAULT : 0);
}

/* Copies that an engine makes do not make up for one that it has not made. */
static void test_a_copy_that_fails_is_not_forgotten(void **state)
{
	(void)state;
	begin_written(2);
	for (u32 vba = 0; vba < 4; vba++)
		write_one(vba, 0, 5000 + vba);
	array.on_command = refuse_first_copy;
	assert_int_equal(lease_end(), -EIO);
	array.on_command = NULL;
	assert_true(d->volumes[0].unclean);
	for (unsigned i = 0; i < 2; i++)
		refuse(i, 0, 0);
	assert_int_equal(lease_end(), 0);
	for (u32 vba = 0; vba < 4; vba++)
		writer.acknowledged[vba] = 5000 + vba;
	check_all(&writer);
}

/* A lease that nobody was told of, and that an engine keeps: whoever comes next need not wait for its end,
 * and what was to be said is said. */
static void test_a_lease_that_is_not_given_back(void **state)
{
	(void)state;
	begin_written(3);
	refuse(1, NVME_ADMIN_VOLUME_LEASE, NVME_STATUS_WRITE_FAULT);
	do_call("volume_info", json_pack("{s:s}", "name", "w"), -ENOENT);
	volumed_lease_take_back(d, "v", writer.number, writer.lease);
	assert_non_null(strstr(weir_last_error(), "there is no volume 'w'"));
	refuse(1, 0, 0);
	assert_int_equal(open_volume(&reader, OTHER, true), 0);
	assert_int_equal(write_block(&writer, 0, 1), NVME_STATUS_VOLUME_STALE_LEASE);
	assert_int_equal(write_block(&reader, 0, 2), 0);
}

/* A change that one engine refuses is none. */
static void test_a_change_that_is_refused_is_none(void **state)
{
	(void)state;
	begin_written(3);
	refuse(2, NVME_ADMIN_VOLUME_ADD, FAULT);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 8 * 4096), -EIO);
	do_call("volume_info", json_pack("{s:s}", "name", "w"), -ENOENT);
	do_call("volume_resize", json_pack("{s:s, s:i}", "name", "v", "bytes", 2 * BLOCKS * 4096), -EIO);
	assert_int_equal(d->volumes[0].info.blocks, BLOCKS);
	refuse(2, NVME_ADMIN_VOLUME_CHMOD, FAULT);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", HOST, "rights", ""),
		-EIO);
	assert_int_equal(open_volume(&reader, HOST, false), 0);
	refuse(2, NVME_ADMIN_VOLUME_LEASE, FAULT);
	call_lease("lease_release", "v", writer.number, writer.lease, -EIO);
	assert_int_equal(d->volumes[0].info.lease_client, writer.number);
	refuse(2, NVME_ADMIN_VOLUME_DELETE, FAULT);
	d->volumes[0].info.lease_client = 0;
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), -EIO);
	do_call("volume_info", json_pack("{s:s}", "name", "v"), 0);
}

/* An engine whose connection is lost in the middle of a change, and can be made again, is asked again. */
static void test_a_connection_is_lost_during_a_change(void **state)
{
	(void)state;
	begin_written(3);
	for (unsigned i = 0; i < 3; i++) {
		array.engines[i].resets = true;
		do_call("volume_resize",
			json_pack("{s:s, s:I}", "name", "v", "bytes", (json_int_t)(BLOCKS + 1 + i) * 4096),
			0);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(array.engines[j].volumes[1].is.blocks, BLOCKS + 1 + i);
	}
	assert_int_equal(d->counts.taken_out, 0);
}

static void lose_each_change(struct stand_in_array *of, u32 opcode, unsigned engine)
{
	if (opcode == NVME_ADMIN_VOLUME_CHMOD && engine == 1 && !d->engines[1].current)
		return; /* as it is brought */
	if (opcode == NVME_ADMIN_VOLUME_CHMOD && engine == 1)
		of->engines[1].resets = true;
}

/* Nor for ever. */
static void test_a_connection_is_lost_in_each_change(void **state)
{
	(void)state;
	begin_written(3);
	array.on_command = lose_each_change;
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", OTHER, "rights", "r"),
		-EAGAIN);
	array.on_command = NULL;
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", OTHER, "rights", "r"),
		0);
	assert_int_equal(open_volume(&reader, OTHER, true), -EACCES);
	assert_int_equal(d->counts.taken_out, 0);
}

static void call_add(const char *address, int expected)
{
	do_call("engine_add", json_pack("{s:s, s:s}", "address", address, "nqn", "nqn.engine"), expected);
}

/* What cannot be added leaves no engine behind. */
static void test_engines_that_are_not_added(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	call_add("1", -EEXIST);
	array.engines[3].dead = true;
	call_add("3", -ENOTCONN);
	array.engines[3].dead = false;
	array.engines[3].volumes[2].is = (struct nvme_volume){ .vid = 2, .name = "theirs" };
	call_add("3", -EEXIST);
	assert_int_equal(array.engines[3].volumes[2].is.vid, 2);
	assert_int_equal(d->engine_count, 3);
	array.engines[3].volumes[2].is.vid = 0;
	call_add("3", 0);
	assert_int_equal(d->engine_count, 4);
	assert_int_equal(d->engines[3].info.id, 4);
}

/* It is in the array: what it lacks it gets by heartbeats. */
static void test_an_engine_that_is_added_gets_its_map_later(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	refuse(3, NVME_ADMIN_VOLUME_MAP, FAULT);
	call_add("3", 0);
	assert_int_equal(d->engine_count, 4);
	assert_false(d->engines[3].current);
	refuse(3, 0, 0);
	settle();
	assert_int_equal(d->counts.taken_in, 1);
}

static void test_the_last_engine_is_not_removed(void **state)
{
	(void)state;
	start_daemon(2, 0, true);
	do_call("engine_remove", json_pack("{s:i}", "id", 1), 0);
	settle();
	assert_int_equal(d->engine_count, 1);
	do_call("engine_remove", json_pack("{s:i}", "id", 2), -EBUSY);
	do_call("engine_remove", json_pack("{s:i, s:b}", "id", 2, "lost", true), -EBUSY);
	assert_false(d->engines[0].leaving);
}

static void call_remove(unsigned id, bool lost, int expected)
{
	do_call("engine_remove", json_pack("{s:i, s:b}", "id", (int)id, "lost", (int)lost), expected);
}

static void call_keep(unsigned id, int expected)
{
	do_call("engine_keep", json_pack("{s:i}", "id", (int)id), expected);
}

/* Before others have its blocks an engine that was to leave may stay, and a daemon that starts then knows. */
static void test_a_removal_is_called_off(void **state)
{
	(void)state;
	begin_written(4);
	call_keep(4, -EINVAL);
	call_keep(9, -ENOENT);
	call_remove(4, false, 0);
	for (unsigned i = 0; i < 20; i++)
		(void)volumed_step(d);
	assert_true(d->engines[3].leaving);
	call_keep(4, 0);
	settle();
	assert_int_equal(d->engine_count, 4);
	assert_true(volumed_engine_in(&d->engines[3]));
	check_all(&writer);
	volumed_destroy(d);
	start_daemon(4, 0, true);
	settle();
	assert_int_equal(d->engine_count, 4);
	call_remove(4, false, 0);
	settle();
	assert_int_equal(d->engine_count, 3);
	call_keep(4, -ENOENT);
	check_all(&writer);
}

/* Of each block the replicas are on different engines: as many stay, but for one that is lost. */
static void test_engines_that_volumes_need_stay(void **state)
{
	(void)state;
	begin_written(3);
	call_remove(1, false, 0);
	call_remove(1, false, 0);
	call_remove(2, false, -EBUSY);
	assert_non_null(strstr(weir_last_error(), "without engine 2 there are 1 engines"));
	assert_false(d->engines[1].leaving);
	do_call("volume_create", json_pack("{s:s, s:i, s:i}", "name", "w", "bytes", 8 * 4096, "replicas", 3),
		-EINVAL);
	settle();
	assert_int_equal(d->engine_count, 2);
	call_remove(2, true, -EBUSY); /* it answers */
	assert_false(d->engines[0].leaving);
	array.engines[1].dead = true;
	call_remove(2, false, -EBUSY);
	call_remove(2, true, 0);
	settle();
	assert_int_equal(d->engine_count, 1);
}

/* An engine has a volume of that number by another name: its disk is another one's. */
static void test_a_volume_of_another_name_is_a_stranger(void **state)
{
	(void)state;
	begin_written(3);
	strcpy(array.engines[1].volumes[1].is.name, "theirs");
	array.engines[1].resets = true;
	volumed_heartbeat(d);
	assert_int_equal(d->counts.taken_out, 1);
	for (u32 vba = 0; vba < BLOCKS; vba++)
		array.engines[1].volumes[1].blocks[vba] =
			(struct stand_in_block){ .version = ~0ull >> 1, .word = 4 };
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	assert_string_equal(array.engines[1].volumes[1].is.name, "v");
	check_all(&writer);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_a_volume_that_is_not_compared_is_not_copied),
		CASE(test_a_rebuild_ends_when_copies_are_durable),
		CASE(test_an_engine_joins_when_copies_are_durable),
		CASE(test_a_list_that_is_refused_is_no_empty_one),
		CASE(test_blocks_are_compared_with_all_engines),
		CASE(test_a_lease_of_a_call_that_failed_is_overtaken),
		CASE(test_an_end_of_a_lease_that_failed_is_overtaken),
		CASE(test_a_fence_that_is_refused),
		CASE(test_an_engine_with_a_newer_lease_is_brought),
		CASE(test_an_engine_that_refuses_a_volume_is_not_used),
		CASE(test_an_engine_that_is_out_bars_no_change),
		CASE(test_an_engine_that_is_out_bars_no_rebuild),
		CASE(test_an_engine_that_is_out_with_a_newer_lease_is_copied_anew),
		CASE(test_the_last_lease),
		CASE(test_whose_lease),
		CASE(test_a_copy_that_fails_is_not_forgotten),
		CASE(test_a_lease_that_is_not_given_back),
		CASE(test_a_change_that_is_refused_is_none),
		CASE(test_a_connection_is_lost_during_a_change),
		CASE(test_a_connection_is_lost_in_each_change),
		CASE(test_engines_that_are_not_added),
		CASE(test_an_engine_that_is_added_gets_its_map_later),
		CASE(test_the_last_engine_is_not_removed),
		CASE(test_a_removal_is_called_off),
		CASE(test_engines_that_volumes_need_stay),
		CASE(test_a_volume_of_another_name_is_a_stranger),
	};

	return cmocka_run_group_tests_name("daemon_refused", tests, NULL, NULL);
}
