/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_sweep_test.c: blocks that are gone, while they are being dropped and afterwards. */
#include <time.h>

#include "engine_direct.h"

enum {
	BYTES = 64 << 20,
	WRITTEN = 6000, /* more than a few slices of a sweep */
	OTHER = VID + 1,
	LARGE_GIB = 8,
	ENTERED = 4096,
	ROUNDS = 60000,
};

static u32 give(struct weir_engine *engine, u16 count, u32 rebuilding)
{
	struct nvme_volume_map map = { .epoch = MAP, .count = count, .rebuilding = rebuilding };

	for (u16 i = 0; i < count; i++)
		map.engines[i] = (struct nvme_volume_engine){ .id = i + 1, .domain = i, .weight = 100 };
	return direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map);
}

static u32 delete (struct weir_engine *engine)
{
	return direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL);
}

static struct weir_engine *begin_written(struct lossy *lossy)
{
	struct weir_engine *engine = direct_begin(lossy, BYTES);

	for (u64 i = 0; i < WRITTEN; i++)
		assert_int_equal(direct_write(engine, i, 5, false), 0);
	assert_int_equal(direct_flush(engine), 0);
	while (weir_engine_step(engine))
		; /* what its first map began: a checkpoint would end all sweeps with it */
	return engine;
}

static void crash(struct lossy *lossy, struct weir_engine **engine)
{
	lossy->off = true;
	direct_close(*engine);
	lossy_crash(lossy, 1);
	*engine = direct_open(lossy);
	assert_non_null(*engine);
}

static void check_nothing_is_there(struct weir_engine *engine)
{
	assert_int_equal(direct_status(engine).used, 0);
	for (u64 i = 0; i < WRITTEN; i += 7)
		assert_true(direct_holds(engine, i, 0));
}

static void end(struct lossy *lossy, struct weir_engine *engine)
{
	direct_close(engine);
	lossy_destroy(lossy);
}

/* The command ends at once; the next volume of that number has none of its blocks, and no versions of it. */
static void test_deleted_in_the_background(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_written(&lossy);
	assert_int_equal(delete (engine), 0);
	assert_in_range(direct_status(engine).used, 1, WRITTEN);
	assert_int_equal(direct_prepare(engine), 0);
	check_nothing_is_there(engine);
	assert_int_equal(direct_write(engine, WRITTEN - 1, 1, false), 0);
	while (weir_engine_step(engine))
		;
	assert_true(direct_holds(engine, WRITTEN - 1, 1));
	end(&lossy, engine);
}

/* A checkpoint that was written meanwhile has blocks of a volume that it has not. What comes in the journal
 * behind it is a new one. */
static void test_a_checkpoint_meanwhile(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_written(&lossy);
	for (u64 i = 0; i < 8; i++)
		assert_int_equal(direct_trim(engine, WRITTEN + i, 5, false), 0);
	assert_int_equal(delete (engine), 0);
	assert_in_range(direct_status(engine).used, 1, WRITTEN);
	assert_int_equal(engine_checkpoint(engine), 0);
	assert_int_equal(direct_prepare(engine), 0);
	assert_int_equal(direct_write(engine, 3, 1, true), 0);
	crash(&lossy, &engine);
	assert_int_equal(give(engine, 1, 0), 0);
	assert_int_equal(direct_status(engine).used, 1);
	assert_true(direct_holds(engine, 3, 1) && direct_holds(engine, WRITTEN - 1, 0));
	assert_int_equal(direct_write(engine, WRITTEN + 3, 1, false), 0); /* there is no tombstone */
	end(&lossy, engine);
}

/* Closed in mid-sweep. */
static void test_closed_meanwhile(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_written(&lossy);
	assert_int_equal(delete (engine), 0);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_status(engine).used, 0);
	assert_int_equal(give(engine, 1, 0), 0);
	assert_int_equal(direct_prepare(engine), 0);
	check_nothing_is_there(engine);
	end(&lossy, engine);
}

/* What garbage collection wants: more than there will ever be. */
static void want_all(struct weir_engine *engine)
{
	engine_lock(engine);
	engine->want_blocks = 1 << 30;
	engine_want_space(engine);
	engine_unlock(engine);
}

/* Garbage collection does not move what is gone: the journal would have it behind the volume's end. */
static void test_garbage_meanwhile(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 moved;

	(void)state;
	engine = begin_written(&lossy);
	for (u64 i = 0; i < WRITTEN; i += 2)
		assert_int_equal(direct_write(engine, i, 6, false), 0);
	assert_int_equal(direct_flush(engine), 0);
	moved = direct_status(engine).medium_writes;
	want_all(engine);
	assert_int_equal(delete (engine), 0);
	assert_true(direct_status(engine).used > 0);
	assert_int_equal(direct_status(engine).medium_writes, moved);
	assert_int_equal(direct_prepare(engine), 0);
	crash(&lossy, &engine);
	assert_int_equal(give(engine, 1, 0), 0);
	check_nothing_is_there(engine);
	end(&lossy, engine);
}

/* When the first garbage is written to where it goes. */
static void delete_in_mid_move(struct lossy *lossy, const struct weir_io *io)
{
	struct weir_engine *engine = lossy->argument;

	if (io->offset_bytes < engine->shape.data * BLOCK || !engine_volume_find(engine, VID))
		return;
	engine_lock(engine);
	engine_volume_delete(engine, VID);
	engine_sweep_volume(engine, VID);
	engine_record(engine, ENGINE_RECORD_DELETE, VID, NULL, 0);
	engine_unlock(engine);
}

static void test_garbage_is_gone_while_it_moves(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_written(&lossy);
	for (u64 i = 0; i < WRITTEN; i += 2)
		assert_int_equal(direct_write(engine, i, 6, false), 0);
	while (weir_engine_step(engine))
		;
	want_all(engine);
	lossy.argument = engine;
	lossy.meanwhile = delete_in_mid_move;
	engine_collect(engine);
	lossy.meanwhile = NULL;
	assert_null(engine_volume_find(engine, VID));
	assert_int_equal(direct_flush(engine), 0);
	assert_int_equal(direct_prepare(engine), 0);
	crash(&lossy, &engine);
	assert_int_equal(give(engine, 1, 0), 0);
	check_nothing_is_there(engine);
	end(&lossy, engine);
}

static u32 write_other(struct weir_engine *engine, u32 vba)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	unsigned char data[BLOCK] = { 0 };
	struct direct direct = { .io = { .kind = WEIR_IO_WRITE,
					 .offset_bytes = weir_engine_offset(OTHER, vba),
					 .bytes = BLOCK,
					 .iov = &direct.iov,
					 .iov_count = 1,
					 .version = direct_version(1),
					 .epochs = direct_epochs(),
					 .done = direct_done },
				 .iov = { data, BLOCK } };

	while (!medium->ops->submit(medium, &direct.io))
		medium->ops->poll(medium, 0);
	while (!direct.ended)
		medium->ops->poll(medium, 0);
	return direct.io.status;
}

/* What is gone takes no room from another volume. */
static void test_its_room_is_there(void **state)
{
	struct nvme_volume volume = {
		.vid = OTHER, .replicas = 1, .unit_log2 = 4, .weight = 1, .blocks = 1 << 20, .name = "other"
	};
	struct weir_engine *engine;
	struct lossy lossy;
	u32 blocks;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = engine->shape.user_blocks;
	for (u64 i = 0; i < blocks; i++)
		assert_int_equal(direct_write(engine, i, 5, false), 0);
	engine_lock(engine);
	assert_int_equal(engine_volume_set(engine, &volume), 0);
	assert_int_equal(engine_lease_set(engine, OTHER, LEASE, CLIENT), 0);
	engine_unlock(engine);
	assert_int_equal(write_other(engine, 0), NVME_STATUS_CAPACITY_EXCEEDED);
	while (weir_engine_step(engine))
		;
	engine->sweep.at = engine_blocks(engine); /* tombstones come first */
	assert_int_equal(delete (engine), 0);
	for (u32 i = 0; i < blocks; i++)
		assert_int_equal(write_other(engine, i), 0);
	assert_int_equal(direct_status(engine).used, blocks);
	end(&lossy, engine);
}

/* Submit a change of block @vba that there is no room for, until it is taken; nobody else does anything. */
static void submit_until_refused(struct weir_engine *engine, enum weir_io_kind kind, u64 vba)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	unsigned char data[BLOCK] = { 0 };
	struct direct direct = { .io = { .kind = kind,
					 .offset_bytes = weir_engine_offset(VID, (u32)vba),
					 .bytes = BLOCK,
					 .iov = &direct.iov,
					 .iov_count = kind == WEIR_IO_WRITE,
					 .version = direct_version(1),
					 .epochs = direct_epochs(),
					 .done = direct_done },
				 .iov = { data, BLOCK } };
	u32 tries = 0;

	engine_lock(engine);
	engine_sweep_volume(engine, OTHER);
	engine_unlock(engine);
	while (!medium->ops->submit(medium, &direct.io))
		assert_true(++tries <= engine_blocks(engine));
	assert_true(tries && direct.ended);
	assert_int_equal(direct.io.status, NVME_STATUS_CAPACITY_EXCEEDED);
	assert_int_equal(engine->sweep.left, 0);
}

/* Who has to know whether the sweep makes room does not leave it to a worker that lets others by. */
static void test_who_waits_helps(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u32 blocks, tombstones;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = engine->shape.user_blocks;
	tombstones = engine->shape.tombstones;
	for (u64 i = 0; i < blocks; i++)
		assert_int_equal(direct_write(engine, i, 1, false), 0);
	for (u64 i = blocks; i < blocks + tombstones; i++)
		assert_int_equal(direct_trim(engine, i, 1, false), 0);
	submit_until_refused(engine, WEIR_IO_WRITE, blocks + tombstones);
	submit_until_refused(engine, WEIR_IO_ZERO, blocks + tombstones);
	end(&lossy, engine);
}

/* ---- maps ---- */

/* A map of eight engines is settled, which places most of what is here elsewhere; it is being dropped. */
static struct weir_engine *begin_misplaced(struct lossy *lossy)
{
	struct weir_engine *engine = begin_written(lossy);

	assert_int_equal(give(engine, 1, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(engine_checkpoint(engine), 0); /* none comes by itself soon */
	assert_int_equal(give(engine, 8, 0), 0);
	assert_true(engine->sweep.left > 0);
	assert_true(direct_status(engine).used > WRITTEN / 4);
	return engine;
}

static u32 list(struct weir_engine *engine)
{
	struct nvme_volume_list page = { .next = 0 };
	u32 count = 0;

	do {
		assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LIST, (u32)page.next,
					      (u32)(page.next >> 32), &page),
				 0);
		count += page.count;
	} while (page.next != ~(u64)0);
	return count;
}

static u32 count_read(struct weir_engine *engine, u32 *misplaced)
{
	u32 count = 0;

	for (u32 i = 0; i < WRITTEN; i++) {
		bool is = direct_holds(engine, i, 5);

		count += is;
		if (!is)
			*misplaced = i;
	}
	return count;
}

/* Nobody sees it; copies of the same version, for a map to come, are kept. */
static void test_misplaced_in_the_background(void **state)
{
	u32 misplaced = 0, placed, listed, trimmed = 0;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_misplaced(&lossy);
	listed = list(engine);
	assert_true(engine->sweep.left > 0);
	direct_lease = ~(u32)0;                 /* the manager's */
	for (u32 i = WRITTEN; i-- && !trimmed;) /* before anybody has come to it */
		if (engine_is_gone(engine, engine_header(engine, engine_table_find(engine, VID, i))))
			trimmed = i;
	assert_int_equal(direct_io(engine, WEIR_IO_WRITE, trimmed, 1, (u64)LEASE << 40 | 5, false,
				   (unsigned char[BLOCK]){ 1 }),
			 0);
	direct_lease = LEASE;
	placed = count_read(engine, &misplaced);
	assert_int_equal(listed, placed);
	assert_in_range(placed, 1, WRITTEN / 2);
	while (weir_engine_step(engine))
		;
	assert_int_equal(engine->sweep.left, 0);
	assert_int_equal(direct_status(engine).used, placed + 1);
	assert_int_equal(list(engine), placed + 1);
	assert_false(direct_holds(engine, trimmed, 0));
	/* the same map again leaves it, a failure does not */
	assert_int_equal(give(engine, 8, 0), 0);
	while (weir_engine_step(engine))
		;
	assert_int_equal(direct_status(engine).used, placed + 1);
	assert_int_equal(give(engine, 1, NVME_VOLUME_REBUILDING), 0);
	assert_int_equal(direct_status(engine).used, placed);
	end(&lossy, engine);
}

/* The next map does not find what the one before had placed elsewhere. */
static void test_the_next_map_meanwhile(void **state)
{
	u32 placed, misplaced = 0;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_misplaced(&lossy);
	placed = list(engine);
	assert_true(engine->sweep.left > 0);
	assert_int_equal(give(engine, 1, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(give(engine, 1, 0), 0);
	assert_int_equal(count_read(engine, &misplaced), placed);
	assert_int_equal(direct_status(engine).used, placed);
	end(&lossy, engine);
}

/* A failure while what is placed elsewhere is being dropped, and copies for a map to come are here, too. */
static void test_a_failure_meanwhile(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u32 placed;

	(void)state;
	engine = begin_written(&lossy);
	assert_int_equal(give(engine, 1, NVME_VOLUME_CHANGING), 0);
	while (weir_engine_step(engine))
		;
	engine->sweep.at = engine_blocks(engine); /* tombstones come first */
	assert_int_equal(give(engine, 8, 0), 0);
	placed = list(engine);
	direct_lease = ~(u32)0; /* the manager's */
	for (u32 i = 0; !engine->strays; i++)
		if (engine_find(engine, VID, i) == ENGINE_NONE)
			assert_int_equal(direct_write(engine, i, (u64)LEASE << 40 | 6, false), 0);
	direct_lease = LEASE;
	assert_true(engine->sweep.left > engine_blocks(engine));
	assert_true(direct_status(engine).used > placed + 1);
	assert_int_equal(give(engine, 1, NVME_VOLUME_REBUILDING), 0);
	assert_int_equal(direct_status(engine).used, placed);
	assert_int_equal(list(engine), placed);
	end(&lossy, engine);
}

/* What a map has dropped does not come back with the power, wherever later maps place it; copies that were
 * made behind it do. */
static void check_dropped_before_a_loss_of_power(bool checkpoint)
{
	u32 placed, copied = 0;
	struct weir_engine *engine;
	struct lossy lossy;

	engine = begin_misplaced(&lossy);
	placed = list(engine);
	direct_lease = ~(u32)0; /* the manager's */
	while (engine_find(engine, VID, copied) != ENGINE_NONE)
		copied++;
	assert_int_equal(direct_write(engine, copied, (u64)LEASE << 40 | 6, true), 0);
	direct_lease = LEASE;
	assert_true(engine->sweep.left > 0);
	if (checkpoint)
		assert_int_equal(engine_checkpoint(engine), 0);
	assert_int_equal(give(engine, 8, 0), 0); /* once more */
	assert_int_equal(give(engine, 8, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(give(engine, 1, 0), 0);
	assert_int_equal(direct_status(engine).used, placed + 1);
	crash(&lossy, &engine);
	assert_int_equal(direct_status(engine).used, placed + 1);
	assert_true(engine_find(engine, VID, copied) != ENGINE_NONE);
	end(&lossy, engine);
}

static void test_dropped_before_a_loss_of_power(void **state)
{
	(void)state;
	check_dropped_before_a_loss_of_power(false);
	check_dropped_before_a_loss_of_power(true);
}

/* What a start has dropped does not come back with the power, either: its place may be another one's. */
static void test_dropped_at_a_start(void **state)
{
	u32 placed, copied = 0;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = begin_misplaced(&lossy);
	placed = list(engine);
	direct_lease = ~(u32)0; /* the manager's */
	while (engine_find(engine, VID, copied) != ENGINE_NONE)
		copied++;
	assert_int_equal(direct_write(engine, copied, (u64)LEASE << 40 | 6, true), 0);
	direct_lease = LEASE;
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_status(engine).used, placed);
	assert_int_equal(give(engine, 8, NVME_VOLUME_CHANGING), 0);
	crash(&lossy, &engine);
	assert_int_equal(direct_status(engine).used, placed);
	end(&lossy, engine);
}

/* With fewer replicas there are more blocks that are not placed here. */
static void test_fewer_replicas(void **state)
{
	struct nvme_volume volume = {
		.vid = VID, .replicas = 4, .unit_log2 = 4, .weight = 1, .blocks = 1 << 20, .name = "volume"
	};
	struct weir_engine *engine;
	struct lossy lossy;
	u64 placed;

	(void)state;
	engine = begin_written(&lossy);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_ADD, 0, 0, &volume), 0);
	assert_int_equal(give(engine, 8, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(give(engine, 8, 0), 0);
	while (weir_engine_step(engine))
		;
	placed = direct_status(engine).used;
	volume.replicas = 1;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_ADD, 0, 0, &volume), 0);
	assert_int_equal(give(engine, 8, NVME_VOLUME_REBUILDING), 0);
	assert_in_range(direct_status(engine).used, 1, placed - 1);
	end(&lossy, engine);
}

/* ---- a large one ---- */

static u32 again(struct weir_engine *engine, u32 opcode, void *page)
{
	u32 status, count = 0;

	do {
		status = direct_admin(engine, opcode, 0, 0, page);
		count++;
	} while (status == NVME_STATUS_COMMAND_INTERRUPTED && count < ROUNDS);
	assert_int_equal(status, 0);
	return count;
}

/* Where all is too much for one command, it is to be repeated. */
static void test_a_large_engine(void **state)
{
	struct nvme_volume volume = {
		.vid = VID, .replicas = 1, .unit_log2 = 4, .weight = 1, .blocks = 1 << 20, .name = "again"
	};
	struct nvme_volume_map map = { .epoch = MAP, .count = 1, .rebuilding = NVME_VOLUME_REBUILDING };
	struct weir_medium *medium;
	struct weir_engine *engine;

	(void)state;
	map.engines[0] = (struct nvme_volume_engine){ .id = 1, .weight = 100 };
	assert_int_equal(weir_medium_sparse_open((u64)LARGE_GIB << 30, BLOCK, &medium), 0);
	assert_int_equal(
		weir_engine_open(
			&(struct weir_engine_options){ .behind = medium, .threads = 1, .format = true },
			&engine),
		0);
	assert_int_equal(give(engine, 1, NVME_VOLUME_CHANGING), 0);
	assert_int_equal(direct_prepare(engine), 0);
	engine_lock(engine);
	for (u32 i = 0; i < ENTERED; i++) {
		u32 index = (u32)((u64)i * engine_blocks(engine) / ENTERED);

		*engine_header(engine, index) = (struct engine_header){ .version = 1, .vba = i, .vid = VID };
		assert_true(engine_install(engine, index));
	}
	engine_unlock(engine);
	assert_int_equal(give(engine, 8, 0), 0);
	assert_in_range(again(engine, NVME_ADMIN_VOLUME_MAP, &map), 2, ROUNDS - 1);
	assert_in_range(direct_status(engine).used, 1, ENTERED - 1);
	assert_int_equal(delete (engine), 0);
	assert_in_range(again(engine, NVME_ADMIN_VOLUME_ADD, &volume), 2, ROUNDS - 1);
	assert_int_equal(direct_status(engine).used, 0);
	direct_close(engine);
}

/* With a thread of its own it does all that by itself. */
static void test_by_its_own_thread(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u32 rounds = 0;

	(void)state;
	direct_close(begin_written(&lossy));
	assert_int_equal(weir_engine_open(&(struct weir_engine_options){ .behind = &lossy.medium,
									 .threads = 1,
									 .own_thread = true },
					  &engine),
			 0);
	assert_int_equal(delete (engine), 0);
	while (direct_status(engine).used && ++rounds < ROUNDS)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(direct_status(engine).used, 0);
	end(&lossy, engine);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deleted_in_the_background),
		cmocka_unit_test(test_a_checkpoint_meanwhile),
		cmocka_unit_test(test_closed_meanwhile),
		cmocka_unit_test(test_garbage_meanwhile),
		cmocka_unit_test(test_garbage_is_gone_while_it_moves),
		cmocka_unit_test(test_its_room_is_there),
		cmocka_unit_test(test_who_waits_helps),
		cmocka_unit_test(test_misplaced_in_the_background),
		cmocka_unit_test(test_the_next_map_meanwhile),
		cmocka_unit_test(test_a_failure_meanwhile),
		cmocka_unit_test(test_dropped_before_a_loss_of_power),
		cmocka_unit_test(test_dropped_at_a_start),
		cmocka_unit_test(test_fewer_replicas),
		cmocka_unit_test(test_a_large_engine),
		cmocka_unit_test(test_by_its_own_thread),
	};

	return cmocka_run_group_tests_name("engine_sweep", tests, NULL, NULL);
}
