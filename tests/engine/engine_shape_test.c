/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_shape_test.c: where things are on media of each size, up to the largest; and blocks beyond 4 GiB. */
#include <errno.h>

#include "engine_direct.h"

enum { FAR_GIB = 18, FAR = 40, ENDS_LOG2 = 43, LEAST_LOG2 = 20 };

/* All that the shape has lies on the medium, one behind the other, and volumes leave room for garbage. */
static void check_shape(u64 bytes)
{
	struct engine_shape shape;
	u64 blocks = bytes / BLOCK, all;

	assert_int_equal(engine_shape_of(bytes, &shape), 0);
	assert_true(shape.journal == 2 && shape.journal_blocks >= 16 && shape.journal_blocks >= blocks / 128);
	assert_true(shape.checkpoint == shape.journal + shape.journal_blocks);
	assert_true(shape.data == shape.checkpoint + 2 * (u64)shape.checkpoint_blocks);
	all = (u64)shape.erase_blocks * shape.erase_count;
	assert_true(shape.data + all <= blocks && shape.data + all + shape.erase_blocks > blocks);
	assert_true(shape.user_blocks + 6 * (u64)shape.erase_blocks <= all);
	assert_true(shape.user_blocks + all / 16 <= all + shape.erase_blocks);
	assert_true(shape.user_blocks > all / 2);
	assert_true(shape.tombstones == all / 2);
	assert_true(all + shape.tombstones < ENGINE_NONE);
	assert_true((u64)shape.checkpoint_blocks * 126 > blocks + blocks / 2); /* records of all of them */
}

static void test_shapes_of_each_size(void **state)
{
	const u64 most = (u64)(ENGINE_NONE / 2) * BLOCK;
	struct engine_shape shape;

	(void)state;
	for (unsigned log2 = LEAST_LOG2; log2 < ENDS_LOG2; log2++) {
		check_shape((u64)1 << log2);
		check_shape(((u64)1 << log2) + 5 * BLOCK + 1);
		check_shape(((u64)3 << log2) / 2);
	}
	check_shape(most - 1);
	assert_int_equal(engine_shape_of(most, &shape), -EINVAL);
	assert_int_equal(engine_shape_of((u64)1 << 60, &shape), -EINVAL);
	assert_int_equal(engine_shape_of(((u64)1 << LEAST_LOG2) - 1, &shape), -EINVAL);
	assert_int_equal(engine_shape_of(((u64)1 << 44) + ((u64)1 << LEAST_LOG2), &shape), -EINVAL);
}

static const struct weir_medium_ops *sparse_ops;

static void never_closed(struct weir_medium *medium)
{
	(void)medium;
}

static struct weir_engine *open_far(struct weir_medium *medium, bool format)
{
	struct weir_engine *engine;

	assert_int_equal(
		weir_engine_open(
			&(struct weir_engine_options){ .behind = medium, .threads = 1, .format = format },
			&engine),
		0);
	assert_int_equal(direct_map(engine, MAP), 0);
	return engine;
}

/* Whether @block of the medium holds block @vba in @version. */
static bool medium_has(struct weir_medium *medium, u64 block, u64 vba, u64 version)
{
	unsigned char data[BLOCK], expected[BLOCK];
	struct direct direct = { .io = { .kind = WEIR_IO_READ,
					 .offset_bytes = block * BLOCK,
					 .bytes = BLOCK,
					 .iov = &direct.iov,
					 .iov_count = 1,
					 .done = direct_done },
				 .iov = { data, BLOCK } };

	assert_true(medium->ops->submit(medium, &direct.io));
	while (!direct.ended)
		medium->ops->poll(medium, 0);
	direct_fill(expected, vba, version);
	return !memcmp(data, expected, BLOCK);
}

static void write_far(struct weir_engine *engine, struct weir_medium *medium, u64 version)
{
	engine_lock(engine);
	if (engine->open == ENGINE_NONE) /* the next erase block that is opened is one of the last */
		engine->sequence = engine->shape.erase_count - 3;
	engine_unlock(engine);
	for (u64 vba = 0; vba < FAR; vba++) {
		u32 index;

		assert_int_equal(direct_write(engine, vba, version, true), 0);
		index = engine_table_find(engine, VID, (u32)vba);
		assert_true(index > engine->shape.erase_blocks * (engine->shape.erase_count - 4));
		assert_true(medium_has(medium, engine->shape.data + index, vba, version));
	}
}

/* Blocks that are written beyond 4 GiB are there, and read from there, by the controller, a check and the
 * next start. */
static void test_blocks_beyond_4_gib(void **state)
{
	struct weir_engine_checked checked;
	struct weir_medium_ops ops;
	struct weir_medium *medium;
	struct weir_engine *engine;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)FAR_GIB << 30, BLOCK, &medium), 0);
	ops = *(sparse_ops = medium->ops);
	ops.close = never_closed;
	medium->ops = &ops;
	engine = open_far(medium, true);
	assert_int_equal(direct_prepare(engine), 0);
	write_far(engine, medium, 5);
	for (unsigned start = 0; start < 2; start++) {
		for (u64 vba = 0; vba < FAR; vba++)
			assert_true(direct_holds(engine, vba, 5));
		weir_engine_check(engine, &checked, NULL);
		assert_int_equal(checked.blocks, FAR);
		assert_int_equal(checked.bad + checked.lost + checked.orphans + checked.miscounted, 0);
		direct_close(engine);
		engine = open_far(medium, false);
	}
	direct_close(engine);
	sparse_ops->close(medium);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes_of_each_size),
		cmocka_unit_test(test_blocks_beyond_4_gib),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("engine_shape", tests, NULL, NULL);
}
