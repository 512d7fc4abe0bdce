/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_join_test.c: the daemon over stand-in engines, one of which comes back while clients make volumes,
 * write them, and go.
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

#include <weir/core/volume/placement.h>

#include "../rig/leaks.h"
#include "daemon_client.h"
#include "volume/daemon/level.h"

/* Engine 1 comes back, and volume 1, which has no blocks, was compared in the first pass. */
static void begin_join(void)
{
	array.engines[1].dead = true;
	settle();
	stand_in_restart(&array.engines[1], false);
	for (unsigned i = 0;
	     i < MOST_STEPS && (d->copy.task != VOLUMED_JOIN || d->copy.next < 2 || d->copy.open); i++) {
		clock_ms++;
		(void)volumed_step(d);
	}
	assert_int_equal(d->copy.task, VOLUMED_JOIN);
	assert_int_equal(d->copy.pass, 0);
}

/* A writer comes and goes, in order; the pass takes so long that others follow, which list what came since
 * the one before. */
static void write_and_join(void)
{
	assert_int_equal(open_volume(&writer, HOST, true), 0);
	write_all(1000);
	do_call("lease_release",
		json_pack("{s:s, s:i, s:i}", "name", "v", "client", (int)writer.number, "epoch",
			  (int)writer.lease),
		0);
	clock_ms += 2 * VOLUMED_HEARTBEAT_MS;
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	check_all(&writer);
}

/* What is written first while an engine comes back is there afterwards. */
static void test_a_volume_is_first_written_while_an_engine_joins(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	make_volume();
	begin_join();
	write_and_join();
}

static void test_a_volume_is_made_while_an_engine_joins(void **state)
{
	(void)state;
	start_daemon(3, 0, true);
	do_call("volume_create", json_pack("{s:s, s:i}", "name", "w", "bytes", 4096), 0);
	begin_join();
	make_volume();
	write_and_join();
}

/* An engine fails, and its blocks are copied; then the next one may fail, as if it were the first. */
static void test_engines_fail_one_after_the_other(void **state)
{
	(void)state;
	begin_written(4);
	for (unsigned i = 0; i < 2; i++) {
		array.engines[i].dead = true;
		for (unsigned j = 0; j < VOLUMED_MISSES; j++)
			volumed_heartbeat(d);
		assert_int_equal(d->counts.taken_out, i + 1);
		settle();
		assert_int_equal(d->failed, 0);
		get_map(&writer);
		check_all(&writer);
	}
}

/* Whoever says that an engine is lost which is not has changed nothing. */
static void test_an_engine_that_is_not_lost_stays(void **state)
{
	json_int_t id;
	u32 before;

	(void)state;
	begin_written(3);
	id = d->engines[2].info.id;
	before = d->epoch;
	do_call("engine_remove", json_pack("{s:I, s:b}", "id", id, "lost", 1), -EBUSY);
	assert_false(d->engines[2].leaving);
	do_call("engine_keep", json_pack("{s:I}", "id", id), -EINVAL);
	assert_int_equal(d->epoch, before);
	do_call("engine_remove", json_pack("{s:I}", "id", id), 0);
	do_call("engine_remove", json_pack("{s:I, s:b}", "id", id, "lost", 1), -EBUSY);
	assert_true(d->engines[2].leaving); /* as before */
	settle();
	assert_int_equal(d->engine_count, 2);
	get_map(&writer);
	check_all(&writer);
}

/* ---- a volume of several slices, over two engines ---- */

enum { SLICE = VOLUMED_SLICE, LARGE_VID = 5, LARGE_MAP = 1, WRITTEN = 5, TRIMMED_AT = 2 * SLICE + 5 };

static const u64 written[WRITTEN] = { 5, SLICE - 1, SLICE, SLICE + 7, 2 * SLICE + 1 };
static const u64 version = 3ull << NVME_VOLUME_VERSION_EPOCH | 9;

/** struct large - an engine; @has: all of @written, and a trimmed block; @wrote, @trimmed: what it got */
struct large {
	struct volume_engine_link base;
	bool has;
	u64 wrote[2 * WRITTEN];
	unsigned writes;
	u64 trimmed;
	unsigned trims;
};

/* All that it has, whatever is asked for. */
static void list_all(const struct large *engine, struct nvme_volume_list *list)
{
	list->next = ~0ull;
	for (unsigned i = 0; engine->has && i < WRITTEN; i++)
		list->entries[list->count++] = (struct nvme_volume_entry){ written[i], version };
	if (engine->has)
		list->entries[list->count++] =
			(struct nvme_volume_entry){ TRIMMED_AT | 1ull << 32, version + 1 };
}

static int large_command(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
			 uint32_t bytes, enum volume_way way, unsigned ms)
{
	struct large *engine = (struct large *)link;
	u64 vba = sqe->cdw10, of = (u64)sqe->cdw3 << 32 | sqe->cdw2;

	(void)bytes, (void)way, (void)ms;
	if (!io) {
		assert_int_equal(sqe->cdw0, NVME_ADMIN_VOLUME_LIST);
		list_all(engine, data);
		return 0;
	}
	assert_int_equal(sqe->cdw15, LARGE_MAP);
	if ((u8)sqe->cdw0 == NVME_OPCODE_DSM) {
		memcpy(&engine->trimmed, (const char *)data + 8, sizeof(engine->trimmed));
		assert_int_equal(of, version + 1);
		engine->trims++;
		return 0;
	}
	assert_int_equal(of, version);
	assert_int_equal(engine->has, (u8)sqe->cdw0 == NVME_OPCODE_READ);
	if (engine->has) {
		memcpy(data, &vba, sizeof(vba));
		return 0;
	}
	assert_memory_equal(data, &vba, sizeof(vba)); /* it was read as that block */
	if (engine->writes < 2 * WRITTEN)
		engine->wrote[engine->writes++] = vba;
	return 0;
}

static const struct volume_engine_link_ops large_ops = { .command = large_command };

/* Each block is compared once, and copied as the block that it is, those at the ends of slices, too. */
static void test_volumes_have_many_slices(void **state)
{
	static struct large engines[2];
	static u32 table[WEIR_PLACEMENT_GROUPS];
	static struct volumed_level level;
	struct test_has before;
	int status;

	(void)state;
	for (unsigned i = 0; i < WEIR_PLACEMENT_GROUPS; i++)
		table[i] = 0 | 1 << 8 | (u32)WEIR_PLACEMENT_NONE << 16 | (u32)WEIR_PLACEMENT_NONE << 24;
	for (unsigned i = 0; i < 2; i++)
		engines[i] = (struct large){ .base.ops = &large_ops, .has = !i };
	level = (struct volumed_level){ .links = { &engines[0].base, &engines[1].base },
					.authority = 3,
					.table = table,
					.vid = LARGE_VID,
					.blocks = 3 * (u64)SLICE - 3,
					.replicas = 2,
					.later = ~0ull,
					.settled = true,
					.map = LARGE_MAP };
	before = test_has();
	assert_int_equal(volumed_level_begin(&level), 0);
	do
		status = volumed_level_step(&level);
	while (status == 1);
	assert_int_equal(status, 0);
	volumed_level_end(&level);
	test_keeps(before, SLICE);
	assert_int_equal(level.compared, level.blocks);
	assert_int_equal(level.copied, WRITTEN + 1);
	assert_int_equal(engines[1].writes, WRITTEN);
	for (unsigned i = 0; i < WRITTEN; i++)
		assert_int_equal(engines[1].wrote[i], written[i]);
	assert_int_equal(engines[1].trims, 1);
	assert_int_equal((u32)engines[1].trimmed, TRIMMED_AT);
	assert_int_equal(engines[0].writes + engines[0].trims, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_a_volume_is_first_written_while_an_engine_joins),
		CASE(test_a_volume_is_made_while_an_engine_joins),
		CASE(test_engines_fail_one_after_the_other),
		CASE(test_an_engine_that_is_not_lost_stays),
		cmocka_unit_test(test_volumes_have_many_slices),
	};

	return cmocka_run_group_tests_name("daemon_join", tests, NULL, NULL);
}
