/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_power_test.c: what an engine keeps over an end, a loss of power at any write, full media, and long
 * random use beside a model.
 */
#include "engine_model.h"

enum { BYTES = 2 << 20 };

/* One random command; false: the medium has failed. */
static bool step(struct weir_engine *engine, struct model *model, u64 lot)
{
	struct model_command command = model_begin(model, lot);

	if (model_carry_out(engine, &command))
		return false;
	model_ended(model, &command);
	return true;
}

static void test_kept(void **state)
{
	struct nvme_volume_engine_status before, after;
	struct nvme_volume_permission permission = { 0 };
	unsigned char page[BLOCK] = { 0 };
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 5, false), 0);
	assert_int_equal(direct_write(engine, 2, 6, false), 0);
	assert_int_equal(direct_trim(engine, 2, 7, false), 0);
	before = direct_status(engine);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(weir_engine_admit(engine, &(struct weir_engine_access){ .vid = VID, .blocks = 1 }),
			 NVME_STATUS_VOLUME_NO_MAP);
	assert_int_equal(direct_map(engine, MAP - 1), NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_true(direct_holds(engine, 1, 5));
	assert_true(direct_holds(engine, 2, 0));
	assert_int_equal(direct_write(engine, 2, 6, false), NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET_PERMISSION, 0, 0, page), 0);
	memcpy(&permission, page, sizeof(permission));
	assert_string_equal(permission.hostnqn, "nqn.a");
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE - 1, CLIENT, NULL),
			 NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
	after = direct_status(engine);
	assert_int_equal(after.used, before.used);
	assert_int_equal(after.user_writes, before.user_writes);
	assert_int_equal(after.volumes, 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

#define COUNT(name) offsetof(struct nvme_volume_engine_status, name)

/* Counts, of which the first few go on with writes. */
static const size_t counts[] = { COUNT(user_writes), COUNT(medium_writes), COUNT(erases),  COUNT(erases_most),
				 COUNT(bad_blocks),  COUNT(refused),       COUNT(repaired) };

enum { COUNTS = sizeof(counts) / sizeof(counts[0]), GOING_ON = 3 };

/* Counts of before are high; a write has come to some of them. */
static void check_counts(struct weir_engine *engine)
{
	const struct nvme_volume_engine_status status = direct_status(engine);

	for (u64 i = 0; i < COUNTS; i++) {
		u64 found, least = (i + 1) << 40;

		memcpy(&found, (const char *)&status + counts[i], sizeof(found));
		assert_in_range(found, least, least + (i < GOING_ON));
	}
}

/* Counts are since it was formatted, and not since its start. */
static void test_counts_are_kept(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 i = 0; i < COUNTS; i++)
		memcpy((char *)&engine->status + counts[i], &(u64){ (i + 1) << 40 }, sizeof(u64));
	assert_int_equal(direct_write(engine, 1, 5, true), 0);
	check_counts(engine);
	for (unsigned in_order = 0; in_order < 2; in_order++) {
		lossy.off = !in_order;
		direct_close(engine);
		lossy_crash(&lossy, NOTHING_IS_KEPT);
		engine = direct_open(&lossy);
		assert_non_null(engine);
		check_counts(engine);
	}
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* What is formatted is an engine after a loss of power right behind it, before anything else is durable. */
static void test_format_durable(void **state)
{
	(void)state;
	for (u64 seed = NOTHING_IS_KEPT; seed < 8; seed++) {
		struct weir_engine *engine;
		struct lossy lossy;

		lossy_create(&lossy, BYTES);
		engine = direct_open(&lossy);
		assert_non_null(engine);
		lossy.off = true;
		direct_close(engine);
		lossy_crash(&lossy, seed);
		engine = direct_open(&lossy);
		assert_non_null(engine);
		assert_int_equal(direct_map(engine, MAP), 0);
		assert_int_equal(direct_prepare(engine), 0);
		assert_int_equal(direct_write(engine, 1, 5, true), 0);
		assert_true(direct_holds(engine, 1, 5));
		direct_close(engine);
		lossy_destroy(&lossy);
	}
}

/* What an admin command changed is there after a loss of power right behind it. */
static void test_admin_durable(void **state)
{
	struct weir_engine *engine;
	struct nvme_volume_engine_status status;
	struct lossy lossy;
	unsigned char page[BLOCK];
	struct nvme_volume volume;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	lossy.off = true;
	direct_close(engine);
	lossy_crash(&lossy, 1);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET, 0, 0, page), 0);
	memcpy(&volume, page, sizeof(volume));
	assert_int_equal(volume.lease_epoch, LEASE);
	assert_int_equal(direct_map(engine, MAP - 1), NVME_STATUS_VOLUME_STALE_MAP | NVME_STATUS_DNR);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), 0);
	lossy.off = true;
	direct_close(engine);
	lossy_crash(&lossy, 1);
	engine = direct_open(&lossy);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET, 0, 0, page),
			 NVME_STATUS_VOLUME_UNKNOWN | NVME_STATUS_DNR);
	direct_close(engine);
	engine = direct_open(&lossy); /* from a checkpoint: that there was one is still known */
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_STATUS, 0, 0, page), 0);
	memcpy(&status, page, sizeof(status));
	assert_int_equal(status.last_vid, volume.vid);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Until the power fails at write @cut; false: it did not. */
static bool run_until(struct lossy *lossy, struct model *model, u64 cut, u64 seed, u32 steps)
{
	struct weir_engine *engine = direct_open(lossy);
	bool going;

	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	lossy->writes = 0;
	lossy->cut = cut;
	going = true;
	for (u32 i = 0; i < steps && going; i++)
		going = step(engine, model, weir_mix_next(&seed));
	lossy->off |= !going;
	direct_close(engine);
	return lossy->off;
}

/* At each write of all kinds: data, journal, checkpoint, garbage collection, the end. */
static void test_power_fails_at_each_write(void **state)
{
	bool cut = true;

	(void)state;
	for (u64 at = 1; cut; at += at < 200 ? 1 : 13) {
		struct model *model = model_create();
		struct weir_engine *engine;
		struct lossy lossy;

		lossy_create(&lossy, BYTES);
		cut = run_until(&lossy, model, at, 1, 1500);
		lossy_crash(&lossy, at);
		engine = direct_open(&lossy);
		assert_non_null(engine);
		assert_int_equal(direct_map(engine, MAP), 0);
		assert_int_equal(model_wrong(engine, model), 0);
		direct_close(engine);
		lossy_destroy(&lossy);
		free(model);
	}
}

/* Again and again on one medium: what a loss left behind misleads no later start. */
static void test_power_fails_again(void **state)
{
	struct model *model = model_create();
	struct lossy lossy;
	u64 seed = 77;

	(void)state;
	lossy_create(&lossy, BYTES);
	for (u32 round = 0; round < 40; round++) {
		struct weir_engine *engine;

		run_until(&lossy, model, 5 + weir_mix_next(&seed) % 120, seed, 80);
		lossy_crash(&lossy, weir_mix_next(&seed));
		engine = direct_open(&lossy);
		assert_non_null(engine);
		assert_int_equal(direct_map(engine, MAP), 0);
		assert_int_equal(model_wrong(engine, model), 0);
		for (u64 vba = 0; vba < MODEL; vba++) { /* what is there now is what counts from here on */
			u64 version = model_found(engine, model, vba);

			model->durable[vba] = model->acknowledged[vba] = model->begun[vba] = version;
		}
		direct_close(engine);
	}
	lossy_destroy(&lossy);
	free(model);
}

/* Until the power fails while pages of the journal are written, of which @seed keeps some: a gap is among
 * them. */
static void cut_journal(struct lossy *lossy, struct model *model, u64 seed)
{
	struct weir_engine *engine = direct_open(lossy);

	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	for (u64 version = 1; version < 5 * MODEL; version++) {
		u64 vba = version % MODEL;
		bool trim = version >= MODEL;

		model->begun[vba] = version;
		model->trimmed[vba][version] = trim;
		model->durable[vba] = trim ? model->durable[vba] : version;
		assert_int_equal(trim ? direct_trim(engine, vba, version, false)
				      : direct_write(engine, vba, version, true),
				 0);
	}
	lossy->cut = lossy->writes + 1;
	assert_int_not_equal(direct_flush(engine), 0);
	direct_close(engine);
	lossy_crash(lossy, seed);
}

/* The power fails at write @cut of a start on a copy of @from, or behind it; what was not durable is gone.
 * Return: at that write. */
static bool cut_start(const struct lossy *from, const struct model *model, u64 cut)
{
	struct weir_engine *engine;
	struct lossy lossy;
	bool failed;

	lossy_copy(&lossy, from);
	lossy.cut = cut;
	engine = direct_open(&lossy);
	failed = lossy.off;
	lossy.off = true;
	if (engine)
		direct_close(engine);
	lossy_crash(&lossy, NOTHING_IS_KEPT);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(model_wrong(engine, model), 0);
	direct_close(engine);
	lossy_destroy(&lossy);
	return failed;
}

/* At each write of a start that finds the journal cut off. */
static void test_power_fails_at_each_start(void **state)
{
	(void)state;
	for (u64 seed = 0; seed < 12; seed++) {
		struct model *model = model_create();
		struct lossy lossy;
		u64 cut = 1;

		lossy_create(&lossy, BYTES);
		cut_journal(&lossy, model, seed);
		while (cut_start(&lossy, model, cut))
			cut++;
		assert_true(cut > 1);
		lossy_destroy(&lossy);
		free(model);
	}
}

/* Far more is written than there is room for, and every block is compared. */
static void garbage(bool in_memory)
{
	struct nvme_volume_engine_status status;
	struct weir_engine *engine;
	struct lossy lossy;
	u64 seed = 5, *versions, blocks, next = 1;

	lossy_create(&lossy, BYTES);
	lossy.medium.in_memory = in_memory;
	engine = direct_open(&lossy);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	blocks = direct_status(engine).blocks * 9 / 10;
	versions = calloc(blocks, sizeof(*versions));
	for (u32 i = 0; i < 12000; i++) {
		u64 vba = weir_mix_next(&seed) % blocks;

		assert_int_equal(direct_write(engine, vba, next, false), 0);
		versions[vba] = next++;
	}
	for (u64 vba = 0; vba < blocks; vba++)
		assert_true(direct_holds(engine, vba, versions[vba]));
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	for (u64 vba = 0; vba < blocks; vba++)
		assert_true(direct_holds(engine, vba, versions[vba]));
	status = direct_status(engine);
	assert_int_equal(status.user_writes, 12000);
	assert_true(status.medium_writes > status.user_writes);
	assert_true(status.erases > 100);
	assert_true(status.erases_most * 4 < status.erases);
	assert_int_equal(lossy.discarded % status.erases, 0);
	assert_int_equal(lossy.discarded > 0, !in_memory);
	free(versions);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static void test_garbage(void **state)
{
	(void)state;
	garbage(false);
	garbage(true);
}

static void test_full(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	unsigned char data[BLOCK];
	u64 blocks;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	for (u64 vba = 0; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1 + vba, false), 0);
	assert_int_equal(direct_write(engine, blocks, 1, false), NVME_STATUS_CAPACITY_EXCEEDED);
	for (u64 vba = 0; vba < blocks; vba++) /* refused, and nothing is kept for it */
		assert_int_equal(direct_io(engine, WEIR_IO_READ, vba, 1, 1000000, false, data),
				 NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
	for (u32 round = 1; round < 6; round++) /* what is there can be written over */
		for (u64 vba = 0; vba < blocks; vba += 3)
			assert_int_equal(direct_write(engine, vba, round * 10000 + vba, false), 0);
	for (u64 vba = 0; vba < blocks; vba++)
		assert_true(direct_holds(engine, vba, vba % 3 ? 1 + vba : 50000 + vba));
	assert_int_equal(direct_trim(engine, 1, 20000, false), 0);
	assert_int_equal(direct_write(engine, blocks, 1, false), 0);
	assert_true(direct_holds(engine, blocks, 1));
	assert_int_equal(direct_write(engine, blocks + 1, 1, false), NVME_STATUS_CAPACITY_EXCEEDED);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* The last block is taken by a write that is under way. */
static void test_full_by_what_is_coming(void **state)
{
	unsigned char data[BLOCK] __attribute__((aligned(BLOCK))) = { 1 };
	struct weir_engine *engine;
	struct direct direct;
	struct lossy lossy;
	u64 blocks;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	blocks = direct_status(engine).blocks;
	for (u64 vba = 1; vba < blocks; vba++)
		assert_int_equal(direct_write(engine, vba, 1 + vba, false), 0);
	direct_hold(engine, &lossy, WEIR_IO_WRITE, 0, 1, data, &direct);
	assert_int_equal(direct_write(engine, blocks, 1, false), NVME_STATUS_CAPACITY_EXCEEDED);
	lossy_let_go(&lossy);
	assert_true(direct.ended);
	assert_int_equal(direct.io.status, 0);
	assert_int_equal(direct_write(engine, blocks, 1, false), NVME_STATUS_CAPACITY_EXCEEDED);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Any bit of the medium turned over, any block lost: what was written is read, or an error, or the engine
 * does not open. */
static void test_damage(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	unsigned char *copy, data[BLOCK], expected[BLOCK];
	struct weir_engine_checked checked;
	u32 bad = 0, found = 0, refused = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 vba = 0; vba < 300; vba++)
		assert_int_equal(direct_write(engine, vba % 150, 1 + vba, false), 0);
	direct_close(engine);
	copy = malloc(BYTES);
	memcpy(copy, lossy.now, BYTES);
	for (u64 i = 0; i < 2 * BYTES / BLOCK; i++) { /* a bit of each block, then all of it */
		u64 at = i / 2;

		memcpy(lossy.now, copy, BYTES);
		memcpy(lossy.durable, copy, BYTES);
		if (i % 2)
			memset(lossy.now + at * BLOCK, 0, BLOCK);
		else
			lossy.now[at * BLOCK + at * 7919 % BLOCK] ^= 1u << at % 8;
		engine = direct_open(&lossy);
		if (!engine) {
			refused++;
			continue;
		}
		assert_int_equal(direct_map(engine, MAP), 0);
		for (u64 vba = 0; vba < 150; vba++) {
			u32 status = direct_io(engine, WEIR_IO_READ, vba, 1, 0, false, data);

			direct_fill(expected, vba, 151 + vba);
			assert_true(status == NVME_STATUS_UNRECOVERED_READ ||
				    (!status && !memcmp(data, expected, BLOCK)));
			bad += status != 0;
		}
		weir_engine_check(engine, &checked, NULL);
		assert_int_equal(checked.lost + checked.orphans + checked.miscounted, 0);
		found += (u32)checked.bad;
		direct_close(engine);
	}
	assert_int_equal(bad, 300); /* each block of data that is in use */
	assert_int_equal(found, 300);
	assert_int_equal(refused, 0); /* of each table there are two, or it can be made again */
	free(copy);
	lossy_destroy(&lossy);
}

/* A block that is known to be damaged takes the version that it has once more; no other block does. */
static void test_repair(void **state)
{
	unsigned char data[4 * BLOCK], expected[BLOCK];
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	for (u64 vba = 0; vba < 4; vba++)
		assert_int_equal(direct_write(engine, vba, 10 + vba, true), 0);
	lossy.now[direct_place(&lossy, 1, 11) + 9] ^= 1;
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 0, 4, 0, false, data), NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(direct_write(engine, 1, 10, true), NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR);
	for (unsigned i = 0; i < 2; i++) {
		for (u64 vba = 0; vba < 4; vba++)
			assert_int_equal(direct_write(engine, vba, 10 + vba, true), 0);
		assert_int_equal(direct_status(engine).user_writes, 5);
		assert_int_equal(direct_status(engine).repaired, 1);
	}
	direct_fill(expected, 1, 11);
	assert_int_equal(direct_io(engine, WEIR_IO_READ, 1, 1, 11, false, data), 0);
	assert_memory_equal(data, expected, BLOCK);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_true(direct_holds(engine, 1, 11));
	assert_int_equal(direct_status(engine).repaired, 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static const struct weir_medium_ops *behind_ops;
static u32 reads_to_fail; /* of a block */

static bool submit_but_reads(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind != WEIR_IO_READ || !reads_to_fail)
		return behind_ops->submit(medium, io);
	reads_to_fail--;
	io->status = NVME_STATUS_UNRECOVERED_READ;
	io->done(io);
	return true;
}

/* A block that the medium failed to read takes its version once more; of several that were read together
 * nobody knows which one that was. */
static void test_repair_of_a_read_that_fails(void **state)
{
	unsigned char data[2 * BLOCK];
	struct weir_medium_ops ops;
	struct weir_engine *engine;
	struct lossy lossy;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	behind_ops = lossy.medium.ops;
	ops = *behind_ops;
	ops.submit = submit_but_reads;
	lossy.medium.ops = &ops;
	for (u64 vba = 0; vba < 2; vba++)
		assert_int_equal(direct_write(engine, vba, 10 + vba, true), 0);
	for (u32 blocks = 2; blocks > 0; blocks--) {
		reads_to_fail = 1;
		assert_int_equal(direct_io(engine, WEIR_IO_READ, 0, blocks, 0, false, data),
				 NVME_STATUS_UNRECOVERED_READ);
		assert_int_equal(reads_to_fail, 0);
		for (u64 vba = 0; vba < 2; vba++)
			assert_int_equal(direct_write(engine, vba, 10 + vba, true), 0);
		assert_int_equal(direct_status(engine).repaired, blocks == 1);
	}
	assert_true(direct_holds(engine, 0, 10) && direct_holds(engine, 1, 11));
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A page of the journal that later pages say was durable, and is not there: that is no loss of power. */
static void test_journal_damaged(void **state)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u32 refused = 0;

	(void)state;
	engine = direct_begin(&lossy, BYTES);
	assert_int_equal(direct_write(engine, 1, 1, true), 0);
	assert_int_equal(direct_write(engine, 1, 2, true), 0);
	lossy.off = true;
	direct_close(engine);
	lossy_crash(&lossy, 1);
	for (u64 at = 2; at < 20; at++) {
		lossy.now[at * BLOCK + 100] ^= 1;
		engine = direct_open(&lossy);
		refused += !engine;
		if (engine) {
			lossy.off = true; /* nothing of this start is kept */
			direct_close(engine);
			lossy.off = false;
		}
		memcpy(lossy.now, lossy.durable, BYTES);
		lossy.now[at * BLOCK + 100] = lossy.durable[at * BLOCK + 100];
	}
	assert_in_range(refused, 4, 12);
	lossy_destroy(&lossy);
}

static void test_foreign(void **state)
{
	struct lossy lossy;

	(void)state;
	lossy_create(&lossy, BYTES);
	lossy.now[5000] = 1;
	assert_null(direct_open(&lossy));
	assert_non_null(strstr(weir_last_error(), "weir-engine format"));
	lossy_destroy(&lossy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_counts_are_kept),
		cmocka_unit_test(test_format_durable),
		cmocka_unit_test(test_admin_durable),
		cmocka_unit_test(test_power_fails_at_each_write),
		cmocka_unit_test(test_power_fails_again),
		cmocka_unit_test(test_power_fails_at_each_start),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_full_by_what_is_coming),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_repair_of_a_read_that_fails),
		cmocka_unit_test(test_journal_damaged),
		cmocka_unit_test(test_foreign),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
