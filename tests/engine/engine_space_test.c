/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_space_test.c: an engine that has to collect garbage, on a medium that fails. */
#include "engine_model.h"

enum { BYTES = 2 << 20, MORE_BYTES = 256 << 20 /* of several shards */, BYTES_OF_A_BLOCK = 26 };

/* Write over blocks until garbage is collected, and the medium behind is full. Return: of those that collect,
 * what the medium failed. */
static u64 fail_collecting(struct weir_engine *engine, struct lossy *lossy, u64 blocks, u64 *next)
{
	u64 faults = direct_status(engine).write_faults, own = 0;

	for (u64 i = 0; i < blocks && direct_status(engine).write_faults == faults + own; i++) {
		u32 status = direct_write(engine, *next * 7 % blocks, *next, false);

		own += status == NVME_STATUS_WRITE_FAULT;
		assert_true(!status == !lossy->full_from || status == NVME_STATUS_CAPACITY_EXCEEDED);
		*next += 1;
		lossy->full_from = engine->want_space ? (u64)engine->shape.data * BLOCK : 0;
	}
	lossy->full_from = 0;
	return direct_status(engine).write_faults - faults - own;
}

/* The medium behind is full again and again when garbage is to be moved: no erase block is lost by that. */
static void test_full_behind(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1, faults = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	for (u64 i = 0; i < 2 * blocks; i++, next++)
		assert_int_equal(direct_write(engine, next * 7 % blocks, next, false), 0);
	for (u32 i = 0; i < 3 * engine->shape.erase_count; i++)
		faults += fail_collecting(engine, &lossy, blocks, &next);
	assert_true(faults > engine->shape.erase_count);
	(void)direct_write(engine, 0, next++, false); /* has garbage looked for once more */
	for (u64 i = 0; i < 2 * blocks; i++, next++)
		assert_int_equal(direct_write(engine, next * 7 % blocks, next, false), 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* No garbage can be read: a write is refused, as no waiting would help. */
static void test_no_garbage_is_read(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1;
	u32 status = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	for (u64 i = 0; i < blocks; i++, next++)
		assert_int_equal(direct_write(engine, i, next, false), 0);
	for (u64 i = 0; i < blocks && !status; i++) {
		for (u32 erase = 0; erase < engine->shape.erase_count; erase++)
			if (engine->erases[erase].state == ENGINE_ERASE_FULL)
				engine->erases[erase].state = ENGINE_ERASE_BAD;
		status = direct_write(engine, 0, next++, false);
	}
	assert_int_equal(status, NVME_STATUS_CAPACITY_EXCEEDED);
	assert_true(direct_holds(engine, 1, 2));
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* One write needs more than is free: garbage is collected until there is room, however much is free without
 * it. */
static void test_large_writes(void **state)
{
	enum { LARGE = 64, ROUNDS = 50 };
	static unsigned char data[LARGE * BLOCK] __attribute__((aligned(BLOCK)));
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_true(engine->shape.erase_blocks * (ENGINE_LOW_ERASE + 1 - ENGINE_SPARE_ERASE) < LARGE);
	for (u64 i = 0; i < ROUNDS; i++) {
		for (u64 vba = 0; vba < LARGE; vba++)
			direct_fill(data + vba * BLOCK, vba, 1 + LARGE * i + vba);
		assert_int_equal(direct_io(engine, WEIR_IO_WRITE, 0, LARGE, 1 + LARGE * i, false, data), 0);
	}
	for (u64 vba = 0; vba < LARGE; vba++)
		assert_true(direct_holds(engine, vba, 1 + LARGE * (ROUNDS - 1) + vba));
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* One that there cannot be room for is refused. */
static void test_a_write_that_is_too_large(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	unsigned char *data;
	u32 blocks, large;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = engine->shape.user_blocks;
	large = engine_blocks(engine) - blocks;
	data = calloc(large, BLOCK);
	assert_non_null(data);
	for (u32 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1 + vba, false), 0);
	assert_int_equal(direct_io(engine, WEIR_IO_WRITE, 0, large, 1 + blocks, false, data),
			 NVME_STATUS_CAPACITY_EXCEEDED);
	for (u32 vba = 0; vba < blocks; vba++)
		assert_true(direct_holds(engine, vba, 1 + vba));
	assert_int_equal(direct_write(engine, 0, 1 + blocks, false), 0);
	free(data);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* @count blocks of a volume that there is not, as if they had been written; a sweep comes to them next. */
static void enter_gone(struct weir_engine *engine, u32 count)
{
	u32 index = ENGINE_NONE;

	engine_lock(engine);
	for (u32 i = 0; i < count; i++) {
		index = engine_take(engine, false);
		assert_int_not_equal(index, ENGINE_NONE);
		*engine_header(engine, index) = (struct engine_header){
			.version = 1, .vba = i, .vid = VID + 1, .state = ENGINE_BUSY
		};
		assert_true(engine_install(engine, index));
	}
	engine->sweep.at = index + 1 - count;
	engine_unlock(engine);
}

/* A write that there is no garbage for has what the end of a sweep makes of it. */
static void test_garbage_at_the_end_of_a_sweep(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	unsigned char *data;
	u32 blocks, large;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = engine->shape.user_blocks;
	large = engine_blocks(engine) - blocks;
	data = calloc(large, BLOCK);
	assert_non_null(data);
	while (weir_engine_step(engine))
		;
	enter_gone(engine, large);
	for (u32 vba = 0; vba < blocks - large; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	while (weir_engine_step(engine))
		;
	engine_lock(engine);
	engine_sweep_volume(engine, VID + 1);
	engine->sweep.left = large;
	engine_unlock(engine);
	assert_int_equal(direct_io(engine, WEIR_IO_WRITE, 0, large, 2, false, data), 0);
	free(data);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static const struct weir_medium_ops *behind_ops;
static bool garbage_unread;

/* Clients have thread 0. */
static bool submit_but_garbage(struct weir_medium *medium, struct weir_io *io)
{
	if (!garbage_unread || io->kind != WEIR_IO_READ || !io->thread)
		return behind_ops->submit(medium, io);
	memset(io->iov->iov_base, 0xee, io->iov->iov_len);
	io->status = NVME_STATUS_UNRECOVERED_READ;
	io->done(io);
	return true;
}

/* The medium behind fails each read of garbage: what is in use there stays there, and can be read. */
static void test_garbage_that_fails_stays(void **state)
{
	struct weir_medium_ops ops;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1;
	u32 status = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	behind_ops = lossy.medium.ops;
	ops = *behind_ops;
	ops.submit = submit_but_garbage;
	lossy.medium.ops = &ops;
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, next++, false), 0);
	garbage_unread = true;
	for (u64 i = 0; !status && i < 8 * blocks; i++, next++)
		status = direct_write(engine, i * 2 % blocks, next, false); /* each second one stays */
	garbage_unread = false;
	assert_true(!status || status == NVME_STATUS_CAPACITY_EXCEEDED);
	assert_int_equal(direct_status(engine).bad_blocks, 0);
	for (u64 vba = 1; vba < blocks; vba += 2)
		assert_true(direct_holds(engine, vba, vba + 1));
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u64 unread_at; /* the byte of a block that is not read before it is written again; 0: none */

static bool submit_but_one(struct weir_medium *medium, struct weir_io *io)
{
	bool covers = unread_at && io->offset_bytes <= unread_at && unread_at - io->offset_bytes < io->bytes;

	if (covers && io->kind == WEIR_IO_WRITE)
		unread_at = 0;
	if (!covers || io->kind != WEIR_IO_READ)
		return behind_ops->submit(medium, io);
	io->status = NVME_STATUS_UNRECOVERED_READ;
	io->done(io);
	return true;
}

static u32 runs, failing; /* of writes of clients: how many have come, and which one fails; 0: none */

static bool submit_but_a_run(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind != WEIR_IO_WRITE || io->thread || ++runs != failing)
		return behind_ops->submit(medium, io);
	io->status = NVME_STATUS_CAPACITY_EXCEEDED;
	io->done(io);
	return true;
}

enum { LARGE = 64 };

/* Blocks 0 to LARGE - 1 in version @version and those behind it; run @fails of that fails. */
static u32 write_large(struct weir_engine *engine, u64 version, u32 fails)
{
	static unsigned char data[LARGE * BLOCK] __attribute__((aligned(BLOCK)));
	u32 status;

	for (u64 vba = 0; vba < LARGE; vba++)
		direct_fill(data + vba * BLOCK, vba, version + vba);
	runs = 0;
	failing = fails;
	status = direct_io(engine, WEIR_IO_WRITE, 0, LARGE, version, false, data);
	failing = 0;
	return status;
}

/* A write goes to several places of the medium behind, and one of them fails: so does the write, whatever
 * becomes of the others, and all its blocks stay what they were. */
static void test_a_write_of_which_a_part_fails(void **state)
{
	enum { ROUNDS = 60 };
	struct weir_medium_ops ops;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 version = 1, faults = 0, before_others = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	behind_ops = lossy.medium.ops;
	ops = *behind_ops;
	ops.submit = submit_but_a_run;
	lossy.medium.ops = &ops;
	assert_int_equal(write_large(engine, version, 0), 0);
	for (u32 i = 0; i < ROUNDS; i++) {
		u32 fails = 1 + i % 3, status = write_large(engine, version + LARGE, fails);

		assert_int_equal(status, runs < fails ? 0 : NVME_STATUS_WRITE_FAULT);
		version += status ? 0 : LARGE;
		faults += status != 0;
		before_others += runs > fails;
		assert_int_equal(direct_status(engine).write_faults, faults);
		for (u64 vba = 0; vba < LARGE; vba++)
			assert_true(direct_holds(engine, vba, version + vba));
	}
	assert_true(before_others > 0 && faults < ROUNDS);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Each second of @blocks is written again and again, from version @next on. Return: the next one. */
static u64 make_garbage(struct weir_engine *engine, u64 blocks, u64 next)
{
	for (u64 i = 0; i < 8 * blocks; i++, next++)
		assert_int_equal(direct_write(engine, i * 2 % blocks, next, false), 0);
	for (u64 vba = 3; vba < blocks; vba += 2)
		assert_true(direct_holds(engine, vba, vba + 1));
	return next;
}

/* One block cannot be read: its erase block is collected when that one has been written elsewhere, though it
 * cannot be read there, still. */
static void test_garbage_beside_what_cannot_be_read(void **state)
{
	unsigned char data[BLOCK];
	struct weir_medium_ops ops;
	struct engine_erase *erase;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1;
	u32 erases;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	behind_ops = lossy.medium.ops;
	ops = *behind_ops;
	ops.submit = submit_but_one;
	lossy.medium.ops = &ops;
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, next++, false), 0);
	unread_at = direct_place(&lossy, 1, 2);
	erase = engine_erase_of(engine, (u32)(unread_at / BLOCK - engine->shape.data));
	next = make_garbage(engine, blocks, next);
	assert_int_equal(erase->state, ENGINE_ERASE_BAD);
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 1, 1, 0, false, data), NVME_STATUS_UNRECOVERED_READ);
	erases = erase->erases;
	assert_int_equal(direct_write(engine, 1, next, false), 0);
	assert_true(direct_holds(engine, 1, next));
	make_garbage(engine, blocks, next + 1);
	assert_true(erase->erases > erases);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Garbage collection moves a block that the medium has spoilt: that it is damaged stays known. */
static void test_damaged_garbage_stays_damaged(void **state)
{
	struct weir_engine_checked checked;
	unsigned char data[BLOCK];
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, next = 1, before, at;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks / 2;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, next++, false), 0);
	at = direct_place(&lossy, 1, 2);
	before = lossy.now[at];
	lossy.now[at] ^= 1;
	for (u64 i = 0; i < 8 * blocks; i++, next++)
		assert_int_equal(direct_write(engine, i * 2 % blocks, next, false), 0);
	assert_true(lossy.now[at] != (before ^ 1)); /* it is elsewhere, and others have its place */
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 1, 1, 0, false, data), NVME_STATUS_UNRECOVERED_READ);
	weir_engine_check(engine, &checked, NULL);
	assert_int_equal(checked.bad, 1);
	for (u64 vba = 3; vba < blocks; vba += 2)
		assert_true(direct_holds(engine, vba, vba + 1));
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u64 memory_of(const struct weir_engine *engine)
{
	u64 bytes = engine_table_bytes(&engine->table);

	bytes += (u64)engine_blocks(engine) * sizeof(struct engine_header);
	return bytes + (u64)engine->tombstone_room * sizeof(struct engine_header);
}

/* A full engine needs no more than what docs/volumes.md says, and what it has is found. */
static void test_tables_are_small(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, memory;

	(void)state;
	engine = direct_begin(&lossy, MORE_BYTES);
	blocks = direct_status(engine).blocks;
	memory = memory_of(engine);
	assert_in_range(memory, 20 * blocks, BYTES_OF_A_BLOCK * blocks);
	for (u64 i = 0; i < blocks; i++)
		assert_int_equal(direct_write(engine, i, 1, false), 0);
	assert_int_equal(memory_of(engine), memory);
	for (u64 i = 0; i < blocks; i++)
		assert_true(direct_holds(engine, i, 1));
	direct_close(engine);
	lossy_destroy(&lossy);
}

static void check_tombstones(struct weir_engine *engine, u64 blocks, u64 tombstones)
{
	struct weir_engine_checked checked;

	weir_engine_check(engine, &checked, NULL);
	assert_int_equal(checked.blocks, blocks);
	assert_int_equal(checked.tombstones, tombstones);
	assert_int_equal(checked.lost, 0);
	for (u64 i = blocks; i < blocks + tombstones; i++)
		assert_int_equal(direct_write(engine, i, 4, false),
				 NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
}

/* Of a full engine with as many tombstones as there can be the table is larger, and none of them is lost. */
static void test_tombstones_have_memory_as_they_come(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 blocks, most, memory;

	(void)state;
	engine = direct_begin(&lossy, MORE_BYTES);
	blocks = direct_status(engine).blocks;
	most = engine->shape.tombstones;
	memory = memory_of(engine);
	for (u64 i = 0; i < blocks; i++)
		assert_int_equal(direct_write(engine, i, 5, false), 0);
	for (u64 i = blocks; i < blocks + most; i++)
		assert_int_equal(direct_trim(engine, i, 5, false), 0);
	assert_int_equal(direct_trim(engine, blocks + most, 5, false), NVME_STATUS_CAPACITY_EXCEEDED);
	assert_in_range(memory_of(engine), memory + most * 20, memory + most * BYTES_OF_A_BLOCK);
	check_tombstones(engine, blocks, most);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	check_tombstones(engine, blocks, most);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static struct weir_engine_checked check(struct weir_engine *engine)
{
	struct weir_engine_checked checked;

	weir_engine_check(engine, &checked, NULL);
	return checked;
}

/* Each kind of disorder is told, of tombstones as of blocks, and no other with it. */
static void test_what_is_wrong_is_counted(void **state)
{
	static const struct weir_engine_checked good = { .blocks = 2, .tombstones = 2 };
	struct weir_engine_checked expected = good, found;
	struct engine_volume *volume;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 all;
	u32 at[4], was;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u32 vba = 0; vba < 4; vba++) {
		assert_int_equal(vba & 1 ? direct_trim(engine, vba, 1 + vba, false)
					 : direct_write(engine, vba, 1 + vba, false),
				 0);
		at[vba] = engine_table_find(engine, VID, vba);
		assert_int_equal(engine_is_tombstone(engine, at[vba]), vba & 1);
	}
	found = check(engine);
	assert_memory_equal(&found, &good, sizeof(good));
	assert_int_equal(weir_engine_volume_blocks(engine, VID), 2);
	assert_int_equal(weir_engine_volume_blocks(engine, VID + 1), 0);
	for (u32 vba = 0; vba < 4; vba++) {
		engine_table_remove(engine, at[vba]);
		expected.lost++;
		found = check(engine);
		assert_memory_equal(&found, &expected, sizeof(found));
	}
	for (u32 vba = 0; vba < 4; vba++)
		assert_true(engine_table_put(engine, at[vba], &was));
	expected = good;
	volume = engine_volume_find(engine, VID);
	all = volume->is.blocks;
	for (u32 blocks = 4; blocks-- > 0;) { /* of the volume, as if the others were not its */
		volume->is.blocks = blocks;
		expected.orphans++;
		found = check(engine);
		assert_memory_equal(&found, &expected, sizeof(found));
	}
	volume->is.blocks = all;
	expected = good;
	engine_erase_of(engine, at[0])->valid++;
	expected.miscounted = 1;
	found = check(engine);
	assert_memory_equal(&found, &expected, sizeof(found));
	engine_erase_of(engine, at[0])->valid--;
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Blocks that come and go take the tombstones of before. */
static void test_tombstones_are_used_again(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, MORE_BYTES);
	for (u64 version = 1; version < 40; version += 2)
		for (u64 i = 0; i < 1000; i++) {
			assert_int_equal(direct_write(engine, i, version, false), 0);
			assert_int_equal(direct_trim(engine, i, version + 1, false), 0);
		}
	assert_int_equal(engine->tombstone_count, 1000);
	assert_int_equal(engine->tombstone_room, ENGINE_CHUNK);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A log that is trimmed, and written over later: which tombstones are in use goes round through all of them.
 * The last chunk has fewer than others. */
static void test_tombstones_of_a_shorter_chunk(void **state)
{
	enum { TRIMMED = 3000, LOG = 8192, ROUNDS = 30000, LOG_BYTES = 100 << 20 };
	struct weir_engine *engine;
	struct lossy lossy;
	u64 version = 1;

	(void)state;
	engine = direct_begin(&lossy, LOG_BYTES);
	assert_true(engine->shape.tombstones % ENGINE_CHUNK);
	for (u64 i = 0; i < ROUNDS; i++) {
		if (i >= TRIMMED)
			assert_int_equal(direct_write(engine, (i - TRIMMED) % LOG, version++, false), 0);
		assert_int_equal(direct_trim(engine, i % LOG, version++, false), 0);
	}
	assert_int_equal(engine->tombstone_count, TRIMMED);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* All that there can be have been there; after a start there is memory for some of them. */
static void test_tombstones_after_a_start(void **state)
{
	enum { LEFT = 10, AGAIN = 6000, SOME_BYTES = 100 << 20 };
	struct weir_engine *engine;
	struct lossy lossy;
	u64 version = 1;
	u32 most;

	(void)state;
	engine = direct_begin(&lossy, SOME_BYTES);
	most = engine->shape.tombstones;
	for (u32 i = 0; i < most; i++)
		assert_int_equal(direct_trim(engine, i, version++, false), 0);
	assert_int_equal(engine->tombstone_room, most);
	for (u32 i = 0; i < most - LEFT; i++)
		assert_int_equal(direct_write(engine, i, version++, false), 0);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_in_range(engine->tombstone_room, LEFT, most);
	for (u32 i = 0; i < AGAIN; i++)
		assert_int_equal(direct_trim(engine, i, version++, false), 0);
	assert_int_equal(engine->tombstone_count, LEFT + AGAIN);
	direct_close(engine);
	lossy_destroy(&lossy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_behind),
		cmocka_unit_test(test_no_garbage_is_read),
		cmocka_unit_test(test_large_writes),
		cmocka_unit_test(test_a_write_that_is_too_large),
		cmocka_unit_test(test_garbage_at_the_end_of_a_sweep),
		cmocka_unit_test(test_garbage_that_fails_stays),
		cmocka_unit_test(test_a_write_of_which_a_part_fails),
		cmocka_unit_test(test_garbage_beside_what_cannot_be_read),
		cmocka_unit_test(test_damaged_garbage_stays_damaged),
		cmocka_unit_test(test_tables_are_small),
		cmocka_unit_test(test_tombstones_have_memory_as_they_come),
		cmocka_unit_test(test_what_is_wrong_is_counted),
		cmocka_unit_test(test_tombstones_are_used_again),
		cmocka_unit_test(test_tombstones_of_a_shorter_chunk),
		cmocka_unit_test(test_tombstones_after_a_start),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("engine_space", tests, NULL, NULL);
}
