/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_held_test.c: requests that the medium behind has, while what they were admitted by comes to an end.
 */
#include "engine_direct.h"

enum { BYTES = 2 << 20 };

#define STALE_LEASE (NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR)

/* A write is under way when the lease that it was admitted by is changed to epoch @epoch of client @client.
 */
static u32 write_under_change(u32 epoch, u32 client)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;

	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 1, true), 0);
	direct_fill(data, 1, 2);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 2, data, &direct);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, epoch, client, NULL), 0);
	lossy_let_go(&lossy);
	while (!direct.ended)
		weir_engine_medium(engine)->ops->poll(weir_engine_medium(engine), 0);
	assert_true(direct_holds(engine, 1, direct.io.status ? 1 : 2));
	direct_close(engine);
	lossy_destroy(&lossy);
	return direct.io.status;
}

static void test_a_lease_ends_under_a_write(void **state)
{
	(void)state;
	assert_int_equal(write_under_change(LEASE, CLIENT), 0); /* the same once more */
	assert_int_equal(write_under_change(LEASE, 0), STALE_LEASE);
	assert_int_equal(write_under_change(LEASE + 1, NVME_VOLUME_MOST), STALE_LEASE);
	assert_int_equal(write_under_change(LEASE + 2, CLIENT), STALE_LEASE);
}

/* A write that waited for its turn while its lease ended is refused for that, although the next writer's
 * block is newer: from "old" its client concludes that it is done. */
static void test_a_write_begins_under_another_lease(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE + 2, CLIENT, NULL), 0);
	direct_lease = LEASE + 2;
	assert_int_equal(direct_write(engine, 1, 1, false), 0);
	direct_lease = LEASE;
	assert_int_equal(direct_write(engine, 1, 2, false), STALE_LEASE);
	assert_int_equal(direct_trim(engine, 1, 2, false), STALE_LEASE);
	assert_true(direct_holds(engine, 1, 1));
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u32 end_held(struct weir_engine *engine, struct lossy *lossy, const struct direct *direct)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	lossy_let_go(lossy);
	while (!direct->ended)
		medium->ops->poll(medium, 0);
	return direct->io.status;
}

static void check_nothing_is_wrong(struct weir_engine *engine)
{
	struct weir_engine_checked checked;

	weir_engine_check(engine, &checked, NULL);
	assert_int_equal(checked.bad + checked.lost + checked.orphans + checked.miscounted, 0);
}

/* A write is under way when a newer one of its block ends, or the same one: what was written last stays. */
static void test_a_newer_write_ends_under_a_write(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	direct_fill(data, 1, 5);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 5, data, &direct);
	assert_int_equal(direct_write(engine, 1, 6, false), 0);
	assert_int_equal(end_held(engine, &lossy, &direct), NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
	assert_true(direct_holds(engine, 1, 6));
	direct_fill(data, 1, 9);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 7, data, &direct);
	assert_int_equal(direct_write(engine, 1, 7, false), 0);
	assert_int_equal(end_held(engine, &lossy, &direct), 0);
	assert_true(direct_holds(engine, 1, 7));
	assert_int_equal(direct_status(engine).used, 1);
	check_nothing_is_wrong(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Blocks @vba and the one behind it, in versions 5 and 6, that the medium behind holds. */
static void hold_two(struct weir_engine *engine, struct lossy *lossy, u64 vba, unsigned char *data,
		     struct direct *direct)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	direct_fill(data, vba, 5);
	direct_fill(data + BLOCK, vba + 1, 6);
	*direct = (struct direct){ .io = { .kind = WEIR_IO_WRITE,
					   .offset_bytes = weir_engine_offset(VID, (u32)vba),
					   .bytes = 2 * BLOCK,
					   .iov = &direct->iov,
					   .iov_count = 1,
					   .version = direct_version(5),
					   .epochs = direct_epochs(),
					   .done = direct_done },
				   .iov = { data, 2 * BLOCK } };
	lossy->holds = true;
	assert_true(medium->ops->submit(medium, &direct->io));
	lossy->holds = false;
	assert_non_null(lossy->held);
}

/* A write of two blocks is under way when a newer one of either ends: that one stays, the other block is
 * written, and the end of the two says that one was old, whichever. */
static void test_a_newer_write_ends_under_a_part_of_a_write(void **state)
{
	unsigned char data[2 * BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u32 newer = 0; newer < 2; newer++) {
		u64 vba = 4 * newer;

		hold_two(engine, &lossy, vba, data, &direct);
		assert_int_equal(direct_write(engine, vba + newer, 8, false), 0);
		assert_int_equal(end_held(engine, &lossy, &direct),
				 NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
		assert_true(direct_holds(engine, vba + newer, 8));
		assert_true(direct_holds(engine, vba + !newer, newer ? 5 : 6));
	}
	assert_int_equal(direct_status(engine).used, 4);
	check_nothing_is_wrong(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A write of another map's time, or of a volume that is deleted, does not appear when that has ended. */
static void test_a_map_ends_under_a_write(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 1, false), 0);
	direct_fill(data, 1, 2);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 2, data, &direct);
	assert_int_equal(direct_map(engine, MAP + 1), 0);
	assert_int_equal(end_held(engine, &lossy, &direct), NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR);
	assert_true(direct_holds(engine, 1, 1));
	assert_int_equal(direct_map(engine, MAP + 1), 0);
	direct_close(engine);
	lossy_destroy(&lossy);

	engine = direct_begin(&lossy, BYTES);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 1, 2, data, &direct);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), 0);
	assert_int_equal(end_held(engine, &lossy, &direct), NVME_STATUS_VOLUME_UNKNOWN | NVME_STATUS_DNR);
	assert_int_equal(direct_status(engine).used, 0);
	assert_int_equal(direct_prepare(engine), 0);
	assert_true(direct_holds(engine, 1, 0));
	check_nothing_is_wrong(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* From @next on, what follows is in @list. */
static u64 list_from(struct weir_engine *engine, u64 next, struct nvme_volume_list *list)
{
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LIST, (u32)next, (u32)(next >> 32), list), 0);
	return list->next;
}

/* A block that is being written is listed when it is written, and nothing behind it before: whoever lists
 * blocks copies all that was acknowledged. */
static void test_blocks_are_listed_under_a_write(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK)));
	struct nvme_volume_list list;
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;
	u64 next;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 1, false), 0);
	direct_fill(data, 2, 2);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 2, 2, data, &direct);
	assert_int_equal(direct_write(engine, 3, 3, false), 0);
	next = list_from(engine, 0, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.entries[0].vba, 1);
	assert_true(list_from(engine, next, &list) == next && !list.count);
	assert_int_equal(end_held(engine, &lossy, &direct), 0);
	while (next != ~(u64)0 && !list.count)
		next = list_from(engine, next, &list);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.entries[0].vba, 2);
	assert_int_equal(list.entries[1].vba, 3);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A read is under way while all that its erase block had is written over, and erase blocks are erased by the
 * dozen. */
static void test_garbage_is_collected_under_a_read(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK))), expected[BLOCK];
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;
	u64 blocks, erases;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	assert_int_equal(direct_flush(engine), 0);
	direct_hold(engine, &lossy, WEIR_IO_READ, 0, 0, data, &direct);
	erases = direct_status(engine).erases;
	for (u64 version = 2; direct_status(engine).erases < erases + 3 * engine->shape.erase_count;
	     version++)
		for (u64 vba = 0; vba < blocks; vba++)
			assert_int_equal(direct_write(engine, vba, version, false), 0);
	assert_false(direct.ended);
	lossy_let_go(&lossy);
	while (!direct.ended)
		weir_engine_medium(engine)->ops->poll(weir_engine_medium(engine), 0);
	assert_int_equal(direct.io.status, 0);
	direct_fill(expected, 0, 1);
	assert_memory_equal(data, expected, BLOCK);
	assert_int_equal(direct_status(engine).bad_blocks, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lease_ends_under_a_write),
		cmocka_unit_test(test_a_write_begins_under_another_lease),
		cmocka_unit_test(test_a_newer_write_ends_under_a_write),
		cmocka_unit_test(test_a_newer_write_ends_under_a_part_of_a_write),
		cmocka_unit_test(test_a_map_ends_under_a_write),
		cmocka_unit_test(test_blocks_are_listed_under_a_write),
		cmocka_unit_test(test_garbage_is_collected_under_a_read),
	};

	return cmocka_run_group_tests_name("engine_held", tests, NULL, NULL);
}
