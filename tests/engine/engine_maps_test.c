/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_maps_test.c: which blocks an engine keeps from one map to the next. */
#include "engine_direct.h"

enum { BYTES = 64 << 20 /* a journal with room for all that is done here */, COPIES = 64 };

static u32 give(struct weir_engine *engine, u32 epoch, u16 count, u32 rebuilding)
{
	struct nvme_volume_map map = { .epoch = epoch, .count = count, .rebuilding = rebuilding };

	for (u16 i = 0; i < count; i++)
		map.engines[i] = (struct nvme_volume_engine){ .id = i + 1, .domain = i, .weight = 100 };
	return direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map);
}

/* With blocks of which a map of 8 engines places some on it. */
static struct weir_engine *open_copied(struct lossy *lossy, u32 rebuilding)
{
	struct weir_engine *engine;

	lossy_create(lossy, BYTES);
	engine = direct_open(lossy);
	assert_non_null(engine);
	assert_int_equal(give(engine, MAP, 8, rebuilding), 0);
	assert_int_equal(direct_prepare(engine), 0);
	for (u64 i = 0; i < COPIES; i++)
		assert_int_equal(direct_write(engine, i << 4, 5, false), 0);
	return engine;
}

/* Copies for a map to come are kept for it. */
static void test_kept_for_the_next_map(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, 0);
	assert_int_equal(give(engine, MAP + 1, 8, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	assert_int_equal(give(engine, MAP + 2, 1, 0), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Copies for a map to come are made under the present one. */
static void test_kept_when_the_same_map_comes_again(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, 0);
	assert_int_equal(give(engine, MAP, 8, 0), 0);
	while (weir_engine_step(engine))
		;
	assert_int_equal(direct_status(engine).used, COPIES);
	assert_int_equal(give(engine, MAP + 1, 8, 0), 0);
	assert_in_range(direct_status(engine).used, 1, COPIES - 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* After a failure another map comes, under which they would be read, although they were not written since. */
static void test_given_up_after_a_failure(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 left;

	(void)state;
	engine = open_copied(&lossy, 0);
	assert_int_equal(give(engine, MAP + 1, 8, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(give(engine, MAP + 2, 1, NVME_VOLUME_REBUILDING), 0);
	left = direct_status(engine).used;
	assert_in_range(left, 1, COPIES - 1);
	lossy.off = true;
	direct_close(engine);
	lossy_crash(&lossy, 1);
	engine = direct_open(&lossy); /* they do not come again from the journal */
	assert_non_null(engine);
	assert_int_equal(direct_status(engine).used, left);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Of two failures one after the other: the first map's places are all that there is of some blocks. */
static void test_kept_after_a_second_failure(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, NVME_VOLUME_REBUILDING);
	assert_int_equal(give(engine, MAP + 1, 1, NVME_VOLUME_REBUILDING), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* It is out, and another engine in. */
static struct nvme_volume_map without_it(u32 epoch, u32 rebuilding)
{
	struct nvme_volume_map map = { .epoch = epoch, .count = 2, .rebuilding = rebuilding };

	for (u16 i = 0; i < 2; i++)
		map.engines[i] = (struct nvme_volume_engine){ .id = i + 1, .domain = i, .weight = 100 };
	map.engines[0].state = NVME_VOLUME_ENGINE_OUT;
	return map;
}

static u32 give_out(struct weir_engine *engine, u32 epoch, u32 rebuilding)
{
	struct nvme_volume_map map = without_it(epoch, rebuilding);

	return direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map);
}

/* What it lacks after a loss of power others give it before it is in again, if a map that counts has it out.
 */
static void test_doubt_ends_by_a_map_that_counts(void **state)
{
	struct nvme_volume_map map = without_it(MAP + 1, NVME_VOLUME_REBUILDING);
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, 0);
	lossy.off = true;
	direct_close(engine);
	lossy_crash(&lossy, NOTHING_IS_KEPT);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_true(direct_status(engine).doubtful);
	map.uncounted = 1;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), 0);
	assert_true(direct_status(engine).doubtful);
	map.uncounted = 0;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), 0);
	assert_false(direct_status(engine).doubtful);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* No map places anything on an engine that is out: what it has may be the only replica. */
static void test_kept_while_it_is_out(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, 0);
	assert_int_equal(give_out(engine, MAP + 1, 0), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_status(engine).used, COPIES);
	assert_int_equal(give_out(engine, MAP + 1, 0), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	assert_int_equal(give_out(engine, MAP + 2, NVME_VOLUME_REBUILDING), 0);
	assert_int_equal(direct_status(engine).used, COPIES);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A command that changes volumes, of each kind, by a daemon whose map has epoch @epoch. */
static void change_all(struct weir_engine *engine, u32 epoch, u32 expected)
{
	struct nvme_volume volume = {
		.vid = VID, .replicas = 1, .unit_log2 = 4, .weight = 1, .blocks = 1 << 21, .name = "volume"
	};
	struct nvme_volume_permission permission = {
		.vid = VID, .client = CLIENT + 1, .rights = 3, .hostnqn = "nqn.b"
	};

	assert_int_equal(direct_admin_by(engine, epoch, NVME_ADMIN_VOLUME_ADD, 0, 0, &volume), expected);
	assert_int_equal(direct_admin_by(engine, epoch, NVME_ADMIN_VOLUME_CHMOD, 0, 0, &permission),
			 expected);
	assert_int_equal(direct_admin_by(engine, epoch, NVME_ADMIN_VOLUME_LEASE, LEASE, CLIENT, NULL),
			 expected);
	assert_int_equal(direct_admin_by(engine, epoch, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), expected);
}

/* What a daemon sent that is not active any more changes nothing. */
static void test_an_older_daemon_changes_no_volume(void **state)
{
	const u32 stale = NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR;
	struct nvme_volume there;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	lossy_create(&lossy, BYTES);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	change_all(engine, 0, 0); /* it has no map */
	assert_int_equal(give(engine, MAP, 1, 0), 0);
	assert_int_equal(direct_prepare(engine), 0);
	change_all(engine, MAP - 1, stale);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET, 0, 0, &there), 0);
	assert_int_equal(there.blocks, 1 << 20);
	assert_int_equal(engine->volumes[VID]->permission_count, 1);
	change_all(engine, MAP, 0);
	change_all(engine, MAP + 1, 0); /* it was away when that map came */
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	change_all(engine, MAP - 1, stale); /* it knows its map, although it waits for one */
	change_all(engine, MAP, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* The newest daemon has said so, and has given no map yet. */
static void test_a_fence_is_as_good_as_a_map(void **state)
{
	const u32 stale = NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_admin_by(engine, MAP - 1, NVME_ADMIN_VOLUME_FENCE, 0, 0, NULL), stale);
	assert_int_equal(direct_admin_by(engine, MAP + 2, NVME_ADMIN_VOLUME_FENCE, 0, 0, NULL), 0);
	assert_int_equal(direct_status(engine).fence, MAP + 2);
	assert_int_equal(direct_admin_by(engine, MAP + 1, NVME_ADMIN_VOLUME_FENCE, 0, 0, NULL), stale);
	change_all(engine, MAP + 1, stale);
	assert_int_equal(give(engine, MAP + 1, 1, 0), stale);
	assert_int_equal(direct_write(engine, 1, 1, false), 0); /* clients go on by the map that it has */
	assert_int_equal(give(engine, MAP + 2, 1, 0), 0);
	change_all(engine, MAP + 2, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u32 read_by(struct weir_engine *engine, u32 epoch, u64 vba)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	unsigned char data[BLOCK];
	struct direct direct = { .io = { .kind = WEIR_IO_READ,
					 .offset_bytes = weir_engine_offset(VID, (u32)vba),
					 .bytes = BLOCK,
					 .iov = &direct.iov,
					 .iov_count = 1,
					 .epochs = (u64)epoch << 32,
					 .done = direct_done },
				 .iov = { data, BLOCK } };

	assert_true(medium->ops->submit(medium, &direct.io));
	while (!direct.ended)
		medium->ops->poll(medium, 0);
	return direct.io.status;
}

/* A read that was admitted, and waits behind a write that there is no room for yet, begins when another map
 * has come, or its volume is gone: blocks that were dropped are no zeros. */
static void test_a_read_begins_under_another_map(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = open_copied(&lossy, 0);
	for (u64 i = 0; i < COPIES; i++)
		assert_int_equal(read_by(engine, MAP, i << 4), 0);
	assert_int_equal(give(engine, MAP + 1, 8, 0), 0);
	assert_in_range(direct_status(engine).used, 1, COPIES);
	for (u64 i = 0; i < COPIES; i++)
		assert_int_equal(read_by(engine, MAP, i << 4),
				 NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR);
	assert_int_equal(read_by(engine, MAP + 1, 0), 0);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), 0);
	assert_int_equal(read_by(engine, MAP + 1, 0), NVME_STATUS_VOLUME_UNKNOWN | NVME_STATUS_DNR);
	direct_close(engine);
	lossy_destroy(&lossy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_for_the_next_map),
		cmocka_unit_test(test_kept_when_the_same_map_comes_again),
		cmocka_unit_test(test_given_up_after_a_failure),
		cmocka_unit_test(test_kept_after_a_second_failure),
		cmocka_unit_test(test_doubt_ends_by_a_map_that_counts),
		cmocka_unit_test(test_kept_while_it_is_out),
		cmocka_unit_test(test_a_read_begins_under_another_map),
		cmocka_unit_test(test_an_older_daemon_changes_no_volume),
		cmocka_unit_test(test_a_fence_is_as_good_as_a_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
