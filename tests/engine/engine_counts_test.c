/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_counts_test.c: what an engine counts, each by itself; and room that comes back after failures. */
#include "engine_direct.h"

enum { BYTES = 2 << 20, FEW = 40, RECORD_BYTES = 1 << 18 };

static void expect_writes(struct weir_engine *engine, u64 by_clients, u64 to_medium)
{
	const struct nvme_volume_engine_status status = direct_status(engine);

	assert_int_equal(status.user_writes, by_clients);
	assert_int_equal(status.medium_writes, to_medium);
}

/* Blocks that are written, one by one or together: by clients as many as to the medium, as long as no garbage
 * is collected; of what is there already, or refused, or trimmed, none. */
static void test_each_block_written_is_counted_once(void **state)
{
	unsigned char data[4 * BLOCK] __attribute__((aligned(BLOCK))) = { 1 };
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 vba = 0; vba < FEW; vba++)
		assert_int_equal(direct_write(engine, vba, 10, false), 0);
	expect_writes(engine, FEW, FEW);
	assert_int_equal(direct_io(engine, WEIR_IO_WRITE, 0, 4, 20, true, data), 0);
	expect_writes(engine, FEW + 4, FEW + 4);
	assert_int_equal(direct_io(engine, WEIR_IO_WRITE, 0, 4, 20, true, data), 0); /* it is there */
	assert_int_equal(direct_write(engine, 0, 5, false), NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
	assert_int_equal(direct_trim(engine, 1, 30, false), 0);
	expect_writes(engine, FEW + 4, FEW + 4);
	assert_int_equal(direct_status(engine).used, FEW - 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static void spoil(struct lossy *lossy, u64 vba, u64 version)
{
	lossy->now[direct_place(lossy, vba, version) + 9] ^= 1;
}

/* Of a request each block that is damaged is counted, and each of them takes its version once more. */
static void test_each_damaged_block_is_counted(void **state)
{
	unsigned char data[4 * BLOCK];
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 vba = 0; vba < 4; vba++)
		assert_int_equal(direct_write(engine, vba, 10 + vba, false), 0);
	spoil(&lossy, 1, 11);
	spoil(&lossy, 3, 13);
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 0, 4, 0, false, data), NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(direct_status(engine).bad_blocks, 2);
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 3, 1, 0, false, data), NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(direct_status(engine).bad_blocks, 3);
	for (u64 vba = 0; vba < 4; vba++)
		assert_int_equal(direct_write(engine, vba, 10 + vba, false), 0);
	assert_int_equal(direct_status(engine).repaired, 2);
	assert_int_equal(direct_status(engine).user_writes, 4 + 2);
	for (u64 vba = 0; vba < 4; vba++)
		assert_true(direct_holds(engine, vba, 10 + vba));
	assert_int_equal(direct_status(engine).bad_blocks, 3);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Garbage collection finds damage that nobody has read. */
static void test_damaged_garbage_is_counted(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, next++, false), 0);
	spoil(&lossy, 1, 2);
	for (u64 i = 0; i < 8 * blocks; i++, next++)
		assert_int_equal(direct_write(engine, i * 2 % blocks, next, false), 0);
	assert_true(direct_status(engine).bad_blocks >= 1);
	assert_int_equal(direct_status(engine).repaired, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* That a block was damaged is known of that block: another one that comes to its place is not. */
static void test_damage_ends_with_its_block(void **state)
{
	unsigned char data[BLOCK];
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, writes;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	for (u64 vba = 0; vba < blocks; vba++) {
		spoil(&lossy, vba, 1);
		assert_int_equal(direct_io(engine, WEIR_IO_READ, vba, 1, 0, false, data),
				 NVME_STATUS_UNRECOVERED_READ);
	}
	for (u64 version = 2; version < 6; version++)
		for (u64 vba = 0; vba < blocks; vba++)
			assert_int_equal(direct_write(engine, vba, version, false), 0);
	assert_true(direct_status(engine).erases > engine->shape.erase_count);
	writes = direct_status(engine).user_writes;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 5, false), 0); /* it is there */
	assert_int_equal(direct_status(engine).user_writes, writes);
	assert_int_equal(direct_status(engine).repaired, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Blocks that could not be written take no room. */
static void test_what_is_not_written_takes_no_room(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, faults;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	lossy.full_from = engine->shape.data * BLOCK;
	for (faults = 0; faults < 2 * blocks; faults++)
		assert_int_equal(direct_write(engine, faults, 1, false), NVME_STATUS_WRITE_FAULT);
	lossy.full_from = 0;
	assert_int_equal(direct_status(engine).write_faults, faults);
	assert_int_equal(direct_status(engine).used, 0);
	assert_int_equal(direct_status(engine).user_writes, 0);
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	assert_int_equal(direct_status(engine).used, blocks);
	assert_int_equal(direct_trim(engine, 3, 2, false), 0);
	assert_int_equal(direct_write(engine, blocks, 1, false), 0);
	assert_int_equal(direct_write(engine, 3, 3, false),
			 NVME_STATUS_CAPACITY_EXCEEDED); /* its place is taken */
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u32 give(struct weir_engine *engine, u32 epoch, u8 state)
{
	struct nvme_volume_map map = { .epoch = epoch, .count = 2 };

	for (u16 i = 0; i < 2; i++)
		map.engines[i] = (struct nvme_volume_engine){ .id = i + 1, .domain = i, .weight = 100 };
	map.engines[0].state = state;
	return direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map);
}

/* Writes that failed are told until the engine has been out: it gets what it lacks before it is in again. */
static void test_faults_are_told_until_it_has_been_out(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	lossy.full_from = engine->shape.data * BLOCK;
	assert_int_equal(direct_write(engine, 1, 1, false), NVME_STATUS_WRITE_FAULT);
	lossy.full_from = 0;
	assert_int_equal(give(engine, MAP + 1, NVME_VOLUME_ENGINE_IN), 0);
	assert_int_equal(direct_status(engine).write_faults, 1);
	assert_int_equal(give(engine, MAP + 2, NVME_VOLUME_ENGINE_OUT), 0);
	assert_int_equal(direct_status(engine).write_faults, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Commands that are not admitted are counted, flushes too; others are not. */
static void test_each_refusal_is_counted(void **state)
{
	struct weir_engine_access access = {
		.client = CLIENT, .vid = VID, .blocks = 1, .map_epoch = MAP, .lease_epoch = LEASE
	};
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(weir_engine_admit(engine, &access), 0);
	assert_int_equal(weir_engine_admit_flush(engine, &access), 0);
	assert_int_equal(direct_status(engine).refused, 0);
	access.map_epoch--;
	assert_int_not_equal(weir_engine_admit(engine, &access), 0);
	assert_int_equal(direct_status(engine).refused, 1);
	assert_int_not_equal(weir_engine_admit_flush(engine, &access), 0);
	assert_int_equal(direct_status(engine).refused, 2);
	access.map_epoch++;
	access.client++;
	assert_int_not_equal(weir_engine_admit(engine, &access), 0);
	assert_int_equal(direct_status(engine).refused, 3);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* How many of the blocks from 0 on a whole list has, each once. */
static u32 count_listed(struct weir_engine *engine, u32 blocks)
{
	struct nvme_volume_list list = { .next = 0 };
	bool *seen = calloc(blocks, sizeof(*seen));
	u32 count = 0;

	assert_non_null(seen);
	do {
		assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LIST, (u32)list.next,
					      (u32)(list.next >> 32), &list),
				 0);
		for (u32 i = 0; i < list.count; i++, count++) {
			u32 vba = (u32)list.entries[i].vba;

			assert_true(vba < blocks && !seen[vba]);
			seen[vba] = true;
		}
	} while (list.next != ~(u64)0);
	free(seen);
	return count;
}

/* Where lists begin that have what is written from now on. */
static u64 behind_what_is_written(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;

	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_STATUS, 0, 0, &status), 0);
	return status.written;
}

/* Whether the first block of the list from @next on is @vba. */
static bool is_listed_first(struct weir_engine *engine, u64 next, u32 vba)
{
	struct nvme_volume_list list;

	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LIST, (u32)next, (u32)(next >> 32), &list),
			 0);
	return list.count && list.entries[0].vba == vba;
}

static void expect_wear(struct weir_engine *engine, const struct weir_engine_wear *expected)
{
	struct weir_engine_wear wear;

	weir_engine_wear(engine, &wear);
	assert_int_equal(wear.least, expected->least);
	assert_int_equal(wear.most, expected->most);
	assert_int_equal(wear.count, expected->count);
}

/* Over a start, in order or not, each erase block keeps how often it was erased and when it was written: what
 * is listed afterwards is all that is there, of before and of now. */
static void test_wear_and_order_are_kept(void **state)
{
	struct weir_engine_wear wear;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, version = 1, written;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks * 3 / 4;
	for (unsigned start = 0; start < 3; start++) {
		for (u64 i = 0; i < 3 * blocks; i++)
			assert_int_equal(direct_write(engine, i * 7 % blocks, version++, false), 0);
		while (weir_engine_step(engine))
			;
		assert_int_equal(direct_flush(engine), 0);
		assert_int_equal(count_listed(engine, (u32)blocks), blocks);
		weir_engine_wear(engine, &wear);
		assert_true(wear.most > 0);
		written = behind_what_is_written(engine);
		lossy.off = start == 1;
		direct_close(engine);
		lossy_crash(&lossy, NOTHING_IS_KEPT);
		engine = direct_open(&lossy);
		assert_non_null(engine);
		assert_int_equal(direct_map(engine, MAP), 0);
		expect_wear(engine, &wear);
		assert_int_equal(count_listed(engine, (u32)blocks), blocks);
		assert_int_equal(direct_write(engine, start, version++, false), 0);
		assert_true(is_listed_first(engine, written, start));
	}
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Records are written when there are many, though nobody waits for them. */
static void test_records_do_not_pile_up(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 version = 1; version < 20000; version++) {
		assert_int_equal(direct_trim(engine, 1, version, false), 0);
		(void)weir_engine_step(engine);
		assert_true(engine->record_bytes < RECORD_BYTES);
	}
	direct_close(engine);
	lossy_destroy(&lossy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_block_written_is_counted_once),
		cmocka_unit_test(test_each_damaged_block_is_counted),
		cmocka_unit_test(test_damaged_garbage_is_counted),
		cmocka_unit_test(test_damage_ends_with_its_block),
		cmocka_unit_test(test_what_is_not_written_takes_no_room),
		cmocka_unit_test(test_faults_are_told_until_it_has_been_out),
		cmocka_unit_test(test_each_refusal_is_counted),
		cmocka_unit_test(test_wear_and_order_are_kept),
		cmocka_unit_test(test_records_do_not_pile_up),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("engine_counts", tests, NULL, NULL);
}
