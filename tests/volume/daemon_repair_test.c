/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_repair_test.c: the daemon over stand-in engines some of whose blocks cannot be read. */
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

enum { VBA = 5, ENOUGH_STEPS = 20 };

static struct stand_in_block *replica(u32 vba, u32 which)
{
	return &array.engines[engine_at(writer.vid, vba, which)].volumes[writer.vid].blocks[vba];
}

static void report(u32 vba, u32 which, json_int_t blocks, int expected)
{
	u32 engine = engine_at(writer.vid, vba, which);

	do_call("block_damaged",
		json_pack("{s:s, s:I, s:I, s:I}", "name", "v", "id", (json_int_t)d->engines[engine].info.id,
			  "vba", (json_int_t)vba, "blocks", blocks),
		expected);
}

static unsigned writes(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < STAND_IN_ENGINES; i++)
		sum += array.engines[i].writes;
	return sum;
}

static void steps(void)
{
	for (unsigned i = 0; i < ENOUGH_STEPS; i++)
		(void)volumed_step(d);
}

static void test_a_damaged_block_is_repaired(void **state)
{
	unsigned before;

	(void)state;
	begin_written(3);
	before = writes();
	replica(VBA, 0)->bad = replica(VBA + 1, 1)->bad = true;
	replica(VBA, 0)->word = 77;
	for (unsigned i = 0; i < 3; i++)
		report(VBA, 0, 1, 0);
	steps();
	assert_false(replica(VBA, 0)->bad);
	assert_true(replica(VBA + 1, 1)->bad); /* nobody reported it */
	assert_int_equal(d->counts.repaired, 1);
	assert_int_equal(writes(), before + 1);
	report(VBA + 1, 1, 1, 0);
	steps();
	assert_int_equal(d->counts.repaired, 2);
	check_all(&writer);
}

/* What the engine can read is not written, whatever a client says. */
static void test_what_is_well_is_left(void **state)
{
	unsigned before;

	(void)state;
	begin_written(3);
	before = writes();
	report(VBA, 0, 1, 0);
	report(VBA, 1, 1, 0);
	report(VBA, 0, 2, -ERANGE); /* stripe units have one block */
	report(VBA, 0, 0, -ERANGE);
	do_call("block_damaged",
		json_pack("{s:s, s:i, s:i, s:i}", "name", "v", "id", 1, "vba", BLOCKS, "blocks", 1), -ERANGE);
	do_call("block_damaged",
		json_pack("{s:s, s:i, s:i, s:i}", "name", "other", "id", 1, "vba", 1, "blocks", 1), -ENOENT);
	do_call("block_damaged",
		json_pack("{s:s, s:i, s:i, s:i}", "name", "v", "id", 99, "vba", 1, "blocks", 1), -ENOENT);
	steps();
	assert_int_equal(d->counts.repaired, 0);
	assert_int_equal(writes(), before);
	check_all(&writer);
}

/* A version that no other engine has is its writer's to repeat: neither an older one nor a newer one takes
 * its place under its number. */
static void test_other_versions_are_not_copied(void **state)
{
	u64 version;

	(void)state;
	begin_written(3);
	write_one(VBA, 0, 4000);
	version = replica(VBA, 0)->version;
	replica(VBA, 0)->bad = true;
	report(VBA, 0, 1, 0);
	steps();
	assert_true(replica(VBA, 0)->bad);
	assert_int_equal(replica(VBA, 0)->version, version);
	write_one(VBA + 1, 1, 4001);
	replica(VBA + 1, 0)->bad = true;
	report(VBA + 1, 0, 1, 0);
	steps();
	assert_true(replica(VBA + 1, 0)->bad);
	assert_int_equal(d->counts.repaired, 0);
	assert_int_equal(write_block(&writer, VBA, 4002), 0);
	assert_int_equal(write_block(&writer, VBA + 1, 4003), 0);
	check_all(&writer);
}

/* More reports than are kept, of an engine that answers no more: nothing is asked of it for ever. */
static void test_too_many_reports(void **state)
{
	(void)state;
	begin_written(3);
	for (u32 vba = 0; vba < BLOCKS; vba++) {
		replica(vba, 0)->bad = true;
		report(vba, 0, 1, 0);
	}
	assert_int_equal(d->damage_count, VOLUMED_MOST_DAMAGE);
	for (unsigned i = 0; i < VOLUMED_MOST_DAMAGE; i++)
		(void)volumed_step(d);
	assert_int_equal(d->damage_count, 0);
	assert_int_equal(d->counts.repaired, VOLUMED_MOST_DAMAGE);
	for (u32 vba = 0; vba < BLOCKS; vba++) {
		report(vba, 0, 1, 0);
		replica(vba, 0)->bad = false; /* written since */
	}
	array.engines[1].dead = true;
	settle();
	assert_int_equal(d->damage_count, 0);
}

/* Of blocks that are reported together each is repaired. */
static void test_blocks_of_a_report_are_repaired(void **state)
{
	u32 vba = 0;

	(void)state;
	begin_written(3);
	while (engine_at(writer.vid, vba, 0) != engine_at(writer.vid, vba + 1, 0))
		vba++;
	replica(vba, 0)->bad = replica(vba + 1, 0)->bad = true;
	volumed_repair_note(
		d, &(struct volumed_damage){ .vid = writer.vid,
					     .engine = d->engines[engine_at(writer.vid, vba, 0)].info.id,
					     .vba = vba,
					     .blocks = 2 });
	steps();
	assert_false(replica(vba, 0)->bad || replica(vba + 1, 0)->bad);
	assert_int_equal(d->counts.repaired, 2);
	check_all(&writer);
}

/* A step says how long there is nothing to do: not at all as long as blocks wait to be repaired or copied, a
 * millisecond where copies have to wait for clients, and else until the next heartbeat. */
static void test_a_step_says_when_there_is_more(void **state)
{
	(void)state;
	begin_written(4);
	settle();
	assert_in_range(volumed_step(d), 1, VOLUMED_HEARTBEAT_MS);
	clock_ms = d->heartbeat_at_ms - 3;
	assert_int_equal(volumed_step(d), 3);
	for (u32 vba = VBA; vba < VBA + 2; vba++)
		report(vba, 0, 1, 0);
	assert_int_equal(volumed_step(d), 0);
	assert_int_equal(volumed_step(d), 3);
	array.engines[3].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_true(d->rebuilding);
	assert_int_equal(volumed_step(d), 0); /* it begins */
	d->options.rebuild_blocks = 1;
	for (unsigned i = 0; i < ENOUGH_STEPS; i++)
		(void)volumed_step(d);
	assert_int_equal(volumed_step(d), 1);
	d->options.rebuild_blocks = 0;
	settle();
	get_map(&writer);
	check_all(&writer);
}

/* The only replica of a dead writer's last write cannot be read: it was not acknowledged. */
static void test_what_was_not_acknowledged_is_given_up(void **state)
{
	u64 version;

	(void)state;
	begin_written(3);
	write_one(VBA, 1, 55);
	version = replica(VBA, 1)->version;
	replica(VBA, 1)->bad = true;
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	assert_false(replica(VBA, 1)->bad);
	assert_true(replica(VBA, 0)->version > version);
	check_all(&writer);
}

/* While blocks are copied, a replica that lacks one says nothing of it. */
static void test_what_was_acknowledged_is_not_given_up(void **state)
{
	u32 vba = 0, left;

	(void)state;
	begin_written(3);
	while (engine_at(writer.vid, vba, 0) != 2 && engine_at(writer.vid, vba, 1) != 2)
		vba++;
	left = engine_at(writer.vid, vba, engine_at(writer.vid, vba, 0) == 2);
	array.engines[left].volumes[writer.vid].blocks[vba].bad = true;
	array.engines[2].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_true(d->rebuilding);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), -ENOSPC);
	assert_true(array.engines[left].volumes[writer.vid].blocks[vba].bad);
}

/* Its replicas are both there, and the older one has what was acknowledged: it keeps no rebuild from its end.
 */
static void test_what_was_not_acknowledged_is_given_up_in_a_rebuild(void **state)
{
	u32 vba = 0;

	(void)state;
	begin_written(4);
	while (engine_at(writer.vid, vba, 0) == 3 || engine_at(writer.vid, vba, 1) == 3)
		vba++;
	write_one(vba, 1, 55);
	replica(vba, 1)->bad = true;
	array.engines[3].dead = true;
	for (unsigned i = 0; i < VOLUMED_MISSES; i++)
		volumed_heartbeat(d);
	assert_true(d->rebuilding);
	for (unsigned i = 0; i < MOST_STEPS / 10; i++, clock_ms++)
		(void)volumed_step(d);
	assert_true(replica(vba, 1)->bad); /* its writer may repeat it */
	do_call("lease_end", json_pack("{s:s}", "name", "v"), -ENOSPC);
	settle();
	assert_false(d->rebuilding || replica(vba, 1)->bad);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	check_all(&writer);
}

/* A write that reached engine @engine alone, in the version that is @above those of the lease's blocks. */
static void write_at(u32 engine, u32 vba, u64 above, u64 word)
{
	u64 version = (u64)writer.lease << NVME_VOLUME_VERSION_EPOCH | (5000 + above);

	assert_int_equal(stand_in_write(&array.engines[engine], writer.number, writer.lease, writer.map,
					writer.vid, vba, version, word),
			 0);
}

/* A volume with three replicas, all of whose blocks are written. */
static void begin_three(void)
{
	start_daemon(4, 0, true);
	make_volume();
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), 0);
	do_call("volume_create",
		json_pack("{s:s, s:i, s:i, s:i}", "name", "v", "bytes", BLOCKS * 4096, "replicas", 3,
			  "unit_bytes", 4096),
		0);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", HOST, "rights", "rw"),
		0);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	for (u32 vba = 0; vba < BLOCKS; vba++)
		for (u32 i = 0; i < 3; i++)
			write_at(engine_at(writer.vid, vba, i), vba, 0, 1000 + vba);
}

static void check_three(u32 vba, u64 word)
{
	for (u32 i = 0; i < 3; i++) {
		assert_false(replica(vba, i)->bad);
		assert_int_equal(replica(vba, i)->version, replica(vba, 0)->version);
		assert_int_equal(replica(vba, i)->word, word);
	}
}

/* Each second block is damaged at the engine that is listed with it first: another one has it, too. */
static void test_a_damaged_block_is_copied_from_another_engine(void **state)
{
	(void)state;
	begin_three();
	for (u32 vba = 0; vba < BLOCKS; vba += 2) {
		u32 first = engine_at(writer.vid, vba, 0);

		for (u32 i = 1; i < 3; i++)
			first = engine_at(writer.vid, vba, i) < first ? engine_at(writer.vid, vba, i) : first;
		array.engines[first].volumes[writer.vid].blocks[vba].bad = true;
		array.engines[first].volumes[writer.vid].blocks[vba].word = 4;
	}
	array.engines[3].dead = true;
	settle();
	assert_int_equal(d->failed, 0);
	for (u32 vba = 0; vba < BLOCKS; vba++) {
		unsigned well = 0;

		for (u32 i = 0; i < 3; i++)
			well += !replica(vba, i)->bad && replica(vba, i)->word == 1000 + vba;
		assert_true(well >= 2);
	}
}

/* Of two older versions the newer one takes the place of the newest, which cannot be read. */
static void test_the_newer_of_the_older_versions_is_left(void **state)
{
	(void)state;
	begin_three();
	for (u32 which = 0; which < 3; which++) {
		u32 vba = VBA + which;

		for (u32 i = 0; i < 3; i++)
			write_at(engine_at(writer.vid, vba, (which + i) % 3), vba, 1 + i, 70 + i);
		replica(vba, (which + 2) % 3)->bad = true;
	}
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	for (u32 vba = VBA; vba < VBA + 3; vba++)
		check_three(vba, 71);
}

/* Where no replica has an older one, it was never written. */
static void test_what_nobody_else_has_was_never_written(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_one(VBA, 0, 55);
	replica(VBA, 0)->bad = true;
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	for (u32 i = 0; i < REPLICAS; i++) {
		assert_true(replica(VBA, i)->trimmed && !replica(VBA, i)->bad);
		assert_int_equal(replica(VBA, i)->word, 0);
	}
	check_all(&writer);
}

/* A start that found an engine in doubt has all of a volume compared. It is not less if a writer dies first.
 */
static void test_a_writer_dies_before_all_is_compared(void **state)
{
	struct client next;

	(void)state;
	begin_written(2);
	do_call("lease_release",
		json_pack("{s:s, s:i, s:i}", "name", "v", "client", (int)writer.number, "epoch",
			  (int)writer.lease),
		0);
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	d->volumes[0].unclean = true; /* as that start leaves it */
	d->volumes[0].from = 0;
	array.engines[1].volumes[1].blocks[3] = (struct stand_in_block){ .version = 0 };
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0);
	assert_int_equal(open_volume(&next, OTHER, true), 0);
	check_all(&writer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_was_not_acknowledged_is_given_up, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_acknowledged_is_not_given_up, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_not_acknowledged_is_given_up_in_a_rebuild,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_block_is_repaired, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_well_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_versions_are_not_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many_reports, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_blocks_of_a_report_are_repaired, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_step_says_when_there_is_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_block_is_copied_from_another_engine, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_the_newer_of_the_older_versions_is_left, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_nobody_else_has_was_never_written, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_writer_dies_before_all_is_compared, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("daemon_repair", tests, NULL, NULL);
}
