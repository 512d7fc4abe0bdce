/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_torn_test.c: power that fails while a checkpoint takes the place of one that is damaged, and while
 * an engine is closed.
 */
#include "engine_direct.h"

#include "engine/pages.h"

enum {
	BYTES = 160 << 20,
	OLDER = 1000,   /* blocks that the older checkpoint has */
	NEWER = 5000,   /* that the newer one has */
	BLOCKS = 13000, /* with those of the journal */
	SMALL_BYTES = 2 << 20,
	RECORDS = 1200, /* more than half of its journal has room for */
	SEEDS = 16,
};

#define OLD_VERSION (NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR)

static void write_blocks(struct weir_engine *engine, u64 first, u64 end)
{
	for (u64 vba = first; vba < end; vba++)
		assert_int_equal(direct_write(engine, vba, 1, false), 0);
}

static struct weir_engine *open_again(struct lossy *lossy)
{
	struct weir_engine *engine = direct_open(lossy);

	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	return engine;
}

/* Two checkpoints and a journal behind them; the first page of the newer checkpoint is damaged then. */
static void prepare(struct lossy *lossy)
{
	struct weir_engine *engine = direct_begin(lossy, BYTES);
	struct engine_shape shape = engine->shape;
	u64 generation, page;

	write_blocks(engine, 0, OLDER);
	direct_close(engine);
	engine = open_again(lossy);
	write_blocks(engine, OLDER, NEWER);
	direct_close(engine);
	engine = open_again(lossy);
	generation = engine->generation;
	write_blocks(engine, NEWER, BLOCKS);
	assert_int_equal(direct_flush(engine), 0);
	assert_int_equal(engine->generation, generation);
	lossy->off = true;
	direct_close(engine);
	lossy_crash(lossy, NOTHING_IS_KEPT);
	page = shape.checkpoint + generation % 2 * shape.checkpoint_blocks + 1;
	lossy->now[page * BLOCK + 100] ^= 1;
	lossy->durable[page * BLOCK + 100] ^= 1;
}

static u32 count_lost(struct weir_engine *engine)
{
	u32 lost = 0;

	for (u64 vba = 0; vba < BLOCKS; vba++)
		lost += !direct_holds(engine, vba, 1);
	return lost;
}

static void check_all(struct weir_engine *engine)
{
	struct weir_engine_checked checked;

	assert_int_equal(count_lost(engine), 0);
	weir_engine_check(engine, &checked, NULL);
	assert_int_equal(checked.bad + checked.lost + checked.orphans + checked.miscounted, 0);
	assert_int_equal(checked.blocks, BLOCKS);
}

/* What was written of the next checkpoint is not taken for pages of the damaged one. */
static void test_power_fails_while_a_damaged_checkpoint_is_replaced(void **state)
{
	struct lossy prepared;
	bool ended = false;

	(void)state;
	prepare(&prepared);
	for (u64 cut = 1; !ended; cut++) {
		struct weir_engine *engine;
		struct lossy lossy;

		lossy_copy(&lossy, &prepared);
		lossy.cut = cut;
		engine = direct_open(&lossy);
		ended = !lossy.off;
		assert_true(ended == (engine != NULL));
		if (ended)
			direct_close(engine);
		for (u64 i = 0; i < lossy.medium.bytes / BLOCK; i++) /* the medium has kept what came to it */
			if (lossy.dirty[i])
				lossy_keep(&lossy, i);
		lossy_crash(&lossy, NOTHING_IS_KEPT);
		engine = open_again(&lossy);
		check_all(engine);
		direct_close(engine);
		lossy_destroy(&lossy);
	}
	lossy_destroy(&prepared);
}

/* An engine is closed whose last records do not fit into its journal; the power fails during write @cut of
 * that. false: there were fewer. */
static bool close_without_power(struct lossy *lossy, u64 cut)
{
	struct weir_engine *engine = direct_begin(lossy, SMALL_BYTES);
	bool is_cut;

	for (u64 version = 1; version <= RECORDS; version++)
		assert_int_equal(direct_trim(engine, 1, version, false), 0);
	lossy->writes = 0;
	lossy->cut = cut;
	direct_close(engine);
	is_cut = lossy->off;
	lossy->cut = 0;
	return is_cut;
}

/* Whatever is there of its last writes: an engine that says nothing of doubt has the newest version. */
static void test_power_fails_while_an_engine_is_closed(void **state)
{
	bool cut = true;

	(void)state;
	for (u64 write = 1; cut; write++)
		for (u64 seed = 0; seed < SEEDS; seed++) {
			struct weir_engine *engine;
			struct lossy lossy;

			cut = close_without_power(&lossy, write);
			lossy_crash(&lossy, seed);
			engine = open_again(&lossy);
			assert_true(direct_status(engine).doubtful ||
				    direct_trim(engine, 1, RECORDS - 1, false) == OLD_VERSION);
			assert_true(cut || !direct_status(engine).doubtful);
			direct_close(engine);
			lossy_destroy(&lossy);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_fails_while_a_damaged_checkpoint_is_replaced),
		cmocka_unit_test(test_power_fails_while_an_engine_is_closed),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
