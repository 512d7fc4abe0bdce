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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_for_the_next_map),
		cmocka_unit_test(test_kept_when_the_same_map_comes_again),
		cmocka_unit_test(test_given_up_after_a_failure),
		cmocka_unit_test(test_kept_after_a_second_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
