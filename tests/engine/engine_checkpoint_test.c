/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_checkpoint_test.c: what is written and trimmed while a checkpoint is, and what is read of one.
 *
 * Owns: an engine whose checkpoint has many pages, and the moment between two of them.
 */
#include "engine_direct.h"

#include "engine/pages.h"

enum {
	BYTES = 160 << 20,
	USED = 28000,
	CHANGED = 400,
	TRIMMED = 3, /* one block in so many */
	MORE = 15000,
	FEW = 300,
	LARGE_GIB = 18,
	ENTERED = 300000,
	MANY = 4000, /* permissions, on more pages than are written at once */
	MANY_GIB = 1,
	SMALL_BYTES = 2 << 20,
	RECORDS = 1200, /* more than half of its journal has room for */
};

#define OLD_VERSION (NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR)

/**
 * struct scene - what happens while a checkpoint is written
 * @before: version of blocks as they are, which is durable; those of tombstones have one more
 * @next: block that changes next: tombstones are written, other blocks are written or, with @trims, trimmed
 * @heads: checkpoints whose head was written
 * @late: the power fails when the journal goes on behind it, with what was noted before all that
 */
struct scene {
	struct weir_engine *engine;
	u64 before;
	u64 next;
	u32 heads;
	bool trims;
	bool late;
};

static bool is_trimmed(u64 vba)
{
	return vba % TRIMMED == 0;
}

static u64 version_before(const struct scene *scene, u64 vba)
{
	return scene->before + is_trimmed(vba);
}

static bool is_of_checkpoint(const struct engine_shape *shape, u64 block)
{
	return block >= shape->checkpoint && block < shape->data;
}

static bool is_of_journal(const struct engine_shape *shape, u64 block)
{
	return block >= shape->journal && block < shape->checkpoint;
}

static bool is_head(const struct engine_shape *shape, u64 block)
{
	return block == shape->checkpoint || block == shape->checkpoint + shape->checkpoint_blocks;
}

static void change_block(const struct scene *scene, u64 vba)
{
	u64 version = version_before(scene, vba) + 1;

	/* the memory of a tombstone that was written is the next one's */
	scene->engine->tombstone_next = 0;
	if (scene->trims && !is_trimmed(vba))
		assert_int_equal(direct_trim(scene->engine, vba, version, false), 0);
	else
		assert_int_equal(direct_write(scene->engine, vba, version, false), 0);
}

/* Between two pages of a checkpoint blocks all over the volume change; when its head is there, the power
 * fails. */
static void change(struct lossy *lossy, const struct weir_io *io)
{
	struct scene *scene = lossy->argument;
	const struct engine_shape *shape = &scene->engine->shape;

	if (!is_of_checkpoint(shape, io->offset_bytes / BLOCK)) {
		lossy->off = scene->heads && is_of_journal(shape, io->offset_bytes / BLOCK);
		return;
	}
	if (is_head(shape, io->offset_bytes / BLOCK)) {
		scene->heads++;
		lossy->off = !scene->late;
		return;
	}
	scene->engine->started = true; /* as if the checkpoint were another thread's: polls leave it alone */
	for (u32 i = 0; i < CHANGED; i++, scene->next = (scene->next + 701) % USED)
		change_block(scene, scene->next);
	scene->engine->started = false;
}

/* All blocks, of which some are trimmed. */
static void fill(struct weir_engine *engine, u64 version)
{
	for (u64 vba = 0; vba < USED; vba++)
		assert_int_equal(direct_write(engine, vba * 7919 % USED, version, false), 0);
	for (u64 vba = 0; vba < USED; vba += TRIMMED)
		assert_int_equal(direct_trim(engine, vba, version + 1, false), 0);
	assert_int_equal(direct_flush(engine), 0);
}

/* Until the next checkpoint has its head: by trims, which need room in the journal alone. */
static void trim_until_off(struct weir_engine *engine, struct lossy *lossy)
{
	for (u64 i = 1; !lossy->off; i++)
		if (direct_trim(engine, USED, i, false) == 0 && i % 1000 == 0)
			(void)direct_flush(engine);
}

static void check_nothing_is_wrong(struct weir_engine *engine)
{
	struct weir_engine_checked checked;

	weir_engine_check(engine, &checked, NULL);
	assert_int_equal(checked.bad + checked.lost + checked.orphans + checked.miscounted, 0);
	assert_int_equal(checked.blocks, direct_status(engine).used);
	assert_int_equal(checked.tombstones, engine->tombstone_count);
}

/* As it was before, or as it became; and older versions do not come back. */
static bool is_kept(const struct scene *scene, u64 vba)
{
	u64 before = version_before(scene, vba), after = before + 1;

	return (direct_holds(scene->engine, vba, is_trimmed(vba) ? 0 : before) ||
		direct_holds(scene->engine, vba, scene->trims && !is_trimmed(vba) ? 0 : after)) &&
	       direct_write(scene->engine, vba, before - 1, false) == OLD_VERSION;
}

static void lose_power_behind_checkpoint(bool trims, bool late)
{
	struct scene scene = { .before = 2, .trims = trims, .late = late };
	struct lossy lossy;
	u32 lost = 0;

	scene.engine = direct_begin(&lossy, BYTES);
	fill(scene.engine, scene.before);
	lossy.argument = &scene;
	lossy.meanwhile = change;
	trim_until_off(scene.engine, &lossy);
	assert_true(scene.heads == 1 && scene.next != 0);
	direct_close(scene.engine);
	lossy.meanwhile = NULL;
	lossy_crash(&lossy, 1);
	scene.engine = direct_open(&lossy);
	assert_non_null(scene.engine);
	assert_int_equal(direct_map(scene.engine, MAP), 0);
	for (u64 vba = 0; vba < USED; vba++)
		lost += !is_kept(&scene, vba);
	assert_int_equal(lost, 0);
	check_nothing_is_wrong(scene.engine);
	direct_close(scene.engine);
	lossy_destroy(&lossy);
}

static void test_written_meanwhile(void **state)
{
	(void)state;
	lose_power_behind_checkpoint(false, false);
}

static void test_trimmed_meanwhile(void **state)
{
	(void)state;
	lose_power_behind_checkpoint(true, false);
}

/* What the journal says of tombstones is older than the checkpoint: their memory is another one's there. */
static void test_older_records(void **state)
{
	(void)state;
	lose_power_behind_checkpoint(false, true);
	lose_power_behind_checkpoint(true, true);
}

/* More blocks and tombstones than there is room for in shards as they begin. */
static void write_more(struct weir_engine *engine)
{
	for (u64 vba = 0; vba < USED; vba++)
		assert_int_equal(direct_write(engine, vba, 2, false), 0);
	for (u64 vba = USED; vba < USED + MORE; vba++)
		assert_int_equal(direct_trim(engine, vba, 2, false), 0);
}

static void check_more(struct weir_engine *engine)
{
	assert_int_equal(direct_map(engine, MAP), 0);
	check_nothing_is_wrong(engine);
	for (u64 vba = 0; vba < USED + MORE; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), OLD_VERSION);
}

static void test_grown_shards(void **state)
{
	struct lossy lossy;
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	u32 before = engine->table.shards[0].buckets, after;

	(void)state;
	write_more(engine);
	after = engine->table.shards[0].buckets;
	assert_true(engine->table.shard_count > 1 && after > before);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(engine->table.shards[0].buckets, after);
	check_more(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* The last page of the checkpoint of generation @generation, whose head says how many it has. */
static void damage(struct lossy *lossy, const struct engine_shape *shape, u64 generation)
{
	u64 slot = shape->checkpoint + generation % 2 * shape->checkpoint_blocks, pages;

	memcpy(&pages, lossy->now + slot * BLOCK + 40, sizeof(pages)); /* struct engine_page: reserved */
	assert_true(pages > 2 && pages < shape->checkpoint_blocks);
	lossy->now[(slot + pages) * BLOCK + 100] ^= 1;
}

/* A byte of the last page of the journal. */
static unsigned char *journal_end(struct lossy *lossy, const struct engine_shape *shape)
{
	struct engine_page *last = NULL;

	for (u32 i = 0; i < shape->journal_blocks; i++) {
		struct engine_page *page = (void *)(lossy->now + (shape->journal + i) * BLOCK);

		if (page->magic == ENGINE_MAGIC_JOURNAL && (!last || page->sequence > last->sequence))
			last = page;
	}
	assert_non_null(last);
	return &last->records[100];
}

/* Fewer than have a checkpoint written: blocks that become tombstones, and the reverse. */
static void change_few(struct weir_engine *engine)
{
	for (u64 vba = USED - FEW; vba < USED; vba++)
		assert_int_equal(direct_trim(engine, vba, 3, false), 0);
	for (u64 vba = USED; vba < USED + FEW; vba++)
		assert_int_equal(direct_write(engine, vba, 3, false), 0);
}

/* The newest checkpoint is not whole, as its last page shows: what was read of it does not stay. All that is
 * newer than the one before has to be in the journal. */
static void test_older_checkpoint(void **state)
{
	struct lossy lossy;
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct engine_shape shape = engine->shape;
	u64 generation;

	(void)state;
	write_more(engine);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_int_equal(direct_map(engine, MAP), 0);
	generation = engine->generation;
	change_few(engine);
	assert_int_equal(engine->generation, generation);
	direct_close(engine);
	damage(&lossy, &shape, generation + 1);
	*journal_end(&lossy, &shape) ^= 1;
	assert_null(direct_open(&lossy));
	*journal_end(&lossy, &shape) ^= 1;
	engine = direct_open(&lossy);
	assert_non_null(engine);
	check_more(engine);
	assert_true(direct_holds(engine, USED - 1, 0) && direct_holds(engine, USED, 3));
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* As volume_delete() does it, which waits for its commit then. */
static void delete_volume(struct weir_engine *engine)
{
	engine_lock(engine);
	engine_volume_delete(engine, VID);
	engine_record(engine, ENGINE_RECORD_DELETE, VID, NULL, 0);
	engine_unlock(engine);
}

/* The volume is deleted when the first pages of a batch are there; a checkpoint follows, then the rest of the
 * batch, and the power fails. */
static void delete_in_mid_batch(struct lossy *lossy, const struct weir_io *io)
{
	struct scene *scene = lossy->argument;
	const struct engine_shape *shape = &scene->engine->shape;

	scene->heads += is_head(shape, io->offset_bytes / BLOCK);
	if (!is_of_journal(shape, io->offset_bytes / BLOCK))
		return;
	if (engine_volume_find(scene->engine, VID))
		delete_volume(scene->engine);
	lossy->off = scene->heads;
}

/* What is behind the checkpoint is of a volume that it has not; that it was deleted did not get there. */
static void test_deleted_meanwhile(void **state)
{
	struct scene scene = { .heads = 0 };
	struct lossy lossy;

	(void)state;
	scene.engine = direct_begin(&lossy, SMALL_BYTES);
	for (u64 i = 1; i <= RECORDS; i++)
		assert_int_equal(direct_trim(scene.engine, USED, i, false), 0);
	lossy.argument = &scene;
	lossy.meanwhile = delete_in_mid_batch;
	assert_int_not_equal(direct_flush(scene.engine), 0);
	assert_int_equal(scene.heads, 1);
	direct_close(scene.engine);
	lossy.meanwhile = NULL;
	lossy_crash(&lossy, NOTHING_IS_KEPT);
	scene.engine = direct_open(&lossy);
	assert_non_null(scene.engine);
	assert_int_equal(direct_status(scene.engine).volumes, 0);
	check_nothing_is_wrong(scene.engine);
	direct_close(scene.engine);
	lossy_destroy(&lossy);
}

static struct weir_engine *open_large(struct weir_medium *medium, bool format)
{
	struct weir_engine *engine;

	assert_int_equal(
		weir_engine_open(
			&(struct weir_engine_options){ .behind = medium, .threads = 3, .format = format },
			&engine),
		0);
	return engine;
}

static u32 index_of(const struct weir_engine *engine, u32 i)
{
	return (u32)((u64)i * engine->shape.user_blocks / ENTERED);
}

/* Entered into the tables as writes do it, without their data. */
static void enter(struct weir_engine *engine, u32 index)
{
	*engine_header(engine, index) =
		(struct engine_header){ .version = index + 1, .vba = index * 7u, .vid = VID, .crc = index };
	assert_true(engine_install(engine, index));
}

static void never_closed(struct weir_medium *medium)
{
	(void)medium;
}

/* An engine with more shards than parts of a checkpoint, which several threads read. */
static void test_many_shards(void **state)
{
	struct weir_medium_ops ops;
	struct weir_medium *medium;
	struct weir_engine *engine;
	void (*close)(struct weir_medium * medium);

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)LARGE_GIB << 30, BLOCK, &medium), 0);
	ops = *medium->ops;
	close = ops.close;
	ops.close = never_closed;
	medium->ops = &ops;
	engine = open_large(medium, true);
	assert_int_equal(direct_prepare(engine), 0);
	assert_true(engine->table.shard_count > engine_checkpoint_parts(engine));
	for (u32 i = 0; i < ENTERED; i++)
		enter(engine, index_of(engine, i));
	direct_close(engine);
	engine = open_large(medium, false);
	assert_int_equal(direct_status(engine).used, ENTERED);
	for (u32 i = 0; i < ENTERED; i++) {
		u32 index = index_of(engine, i);

		assert_int_equal(engine_table_find(engine, VID, index * 7u), index);
		assert_int_equal(engine_header(engine, index)->version, index + 1);
	}
	direct_close(engine);
	close(medium);
}

static const struct weir_medium_ops *sparse_ops;
static struct weir_engine *permitted; /* whose volume changes with the next write */
static void (*change_permitted)(struct weir_engine *engine);
static u64 written_bytes;

static bool submit_and_change(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind == WEIR_IO_WRITE && permitted) {
		change_permitted(permitted);
		permitted = NULL;
	}
	if (io->kind == WEIR_IO_WRITE)
		written_bytes += io->bytes;
	return sparse_ops->submit(medium, io);
}

static void permit_many(struct weir_engine *engine)
{
	struct nvme_volume_permission permission = { .vid = VID, .rights = 1, .hostnqn = "nqn.b" };

	for (u32 i = 0; i < MANY; i++) {
		permission.client = (u16)(CLIENT + 1 + i);
		engine_lock(engine);
		assert_int_equal(engine_permission_set(engine, &permission), 0);
		engine_unlock(engine);
	}
}

/* Between two pages of a volume's permissions @change is made. */
static struct weir_engine *change_between_pages(struct weir_medium **medium, struct weir_medium_ops *ops,
						void (*change)(struct weir_engine *engine))
{
	struct weir_engine *engine;

	assert_int_equal(weir_medium_sparse_open((u64)MANY_GIB << 30, BLOCK, medium), 0);
	sparse_ops = (*medium)->ops;
	*ops = *sparse_ops;
	ops->submit = submit_and_change;
	ops->close = never_closed;
	(*medium)->ops = ops;
	engine = open_large(*medium, true);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	permit_many(engine);
	permitted = engine;
	change_permitted = change;
	written_bytes = 0;
	assert_int_equal(engine_checkpoint(engine), 0);
	assert_null(permitted);
	return engine;
}

/* The volume is deleted: the checkpoint goes on behind it. */
static void test_deleted_between_pages(void **state)
{
	struct weir_medium_ops ops;
	struct weir_medium *medium;
	struct weir_engine *engine = change_between_pages(&medium, &ops, delete_volume);

	(void)state;
	assert_true(written_bytes < MANY * sizeof(struct nvme_volume_permission));
	direct_close(engine);
	engine = open_large(medium, false);
	assert_int_equal(direct_status(engine).volumes, 0);
	check_nothing_is_wrong(engine);
	direct_close(engine);
	sparse_ops->close(medium);
}

static void take_first_permission(struct weir_engine *engine)
{
	const struct nvme_volume_permission none = { .vid = VID, .client = CLIENT };

	engine_lock(engine);
	assert_int_equal(engine_permission_set(engine, &none), 0);
	engine_unlock(engine);
}

/* The first permission is taken away: the checkpoint has all others. */
static void test_permission_taken_between_pages(void **state)
{
	struct weir_medium_ops ops;
	struct weir_medium *medium;
	struct weir_engine *engine = change_between_pages(&medium, &ops, take_first_permission);
	struct weir_engine *other = open_large(medium, false); /* as if the power had failed */

	(void)state;
	for (u32 i = 0; i < MANY; i++)
		assert_non_null(engine_permission_find(engine_volume_find(other, VID), CLIENT + 1 + i));
	direct_close(other);
	direct_close(engine);
	sparse_ops->close(medium);
}

static u32 permit(struct weir_engine *engine, u32 client)
{
	struct nvme_volume_permission permission = { .vid = VID, .client = (u16)client, .rights = 1 };

	memset(permission.hostnqn, 'h', sizeof(permission.hostnqn) - 1);
	return direct_admin(engine, NVME_ADMIN_VOLUME_CHMOD, 0, 0, &permission);
}

/* Every block and tombstone that there can be, on media of each size up to 32 MiB; the blocks are not side by
 * side. */
static void fill_tables(struct weir_engine *engine)
{
	u32 blocks = engine->shape.user_blocks, client = CLIENT + 1;

	for (u32 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
	for (u32 round = 2; round < 5; round++)
		for (u32 vba = 0; vba < blocks; vba += round)
			assert_int_equal(direct_write(engine, vba, round, false), 0);
	for (u32 i = 0; i < engine->shape.tombstones; i++)
		assert_int_equal(direct_trim(engine, blocks + i, 1, false), 0);
	while (permit(engine, client) == 0)
		assert_true(++client < NVME_VOLUME_MOST);
}

/* An end in order, or of the power behind a flush. */
static void end(struct weir_engine *engine, struct lossy *lossy, bool in_order)
{
	assert_int_equal(direct_flush(engine), 0);
	lossy->off = !in_order;
	direct_close(engine);
	if (!in_order)
		lossy_crash(lossy, NOTHING_IS_KEPT);
}

static void fill_and_end(u64 bytes, bool in_order)
{
	struct lossy lossy;
	struct weir_engine *engine = direct_begin(&lossy, bytes);
	u32 blocks = engine->shape.user_blocks, tombstones = engine->shape.tombstones;
	u64 generation;

	fill_tables(engine);
	generation = engine->generation;
	end(engine, &lossy, in_order);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(engine->generation, generation + 1);
	assert_int_equal(engine->tombstone_count, tombstones);
	assert_int_equal(direct_status(engine).used, blocks);
	check_nothing_is_wrong(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A checkpoint has room for all of it. */
static void test_full_tables(void **state)
{
	(void)state;
	for (u64 bytes = 1 << 20; bytes <= 32 << 20; bytes *= 2) {
		fill_and_end(bytes, true);
		fill_and_end(bytes, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_meanwhile),
		cmocka_unit_test(test_trimmed_meanwhile),
		cmocka_unit_test(test_older_records),
		cmocka_unit_test(test_grown_shards),
		cmocka_unit_test(test_older_checkpoint),
		cmocka_unit_test(test_deleted_meanwhile),
		cmocka_unit_test(test_many_shards),
		cmocka_unit_test(test_deleted_between_pages),
		cmocka_unit_test(test_permission_taken_between_pages),
		cmocka_unit_test(test_full_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
