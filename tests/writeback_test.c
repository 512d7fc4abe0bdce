/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing through caches of every size: what ends up on storage, element by element. */
#include "writer_rig.h"

enum { BLOCKS = 2, THREADS = 70, LANES = BLOCKS * THREADS };

static void put_model(struct rig *rig, const struct test_put_args *args)
{
	for (uint64_t thread = 0; thread < LANES; thread++)
		for (uint64_t step = 0; step < args->puts; step++) {
			const struct weir_writer *writer = &args->writer[step % args->writer_count];
			uint64_t index = test_put_index(writer->array.count, LANES, thread, step, args->salt);
			uint64_t value[2] = { test_put_value(args->seed, index, step) };

			value[1] = ~value[0];
			model_put(rig, writer, index, value);
		}
}

static void put(struct rig *rig, struct test_put_args *args)
{
	struct test_verdict verdict;

	args->verdict = rig->verdict;
	must(weir_launch(rig->context, "test_put", BLOCKS, THREADS, args, sizeof(*args)));
	put_model(rig, args);
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), LANES * args->puts);
}

static const uint32_t ELEMENTS[] = { 1, 2, 4, 8, 16 };

static void test_every_element_cache_and_width(void **state)
{
	static const struct { uint64_t lines; uint32_t line_bytes; } caches[] = {
		{ 4, 512 }, { 8, 512 }, { 12, 4096 }, { 64, 512 }, { 4, 16384 }, { 512, 512 },
	};

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < 6; c++) {
			struct rig rig;

			open_rig(&rig, (struct shape){ .width = test_width(w), .lines = caches[c].lines,
						       .line_bytes = caches[c].line_bytes });
			for (size_t e = 0; e < 5; e++) {
				struct test_put_args args = { .writer_count = 1, .puts = 12, .seed = e, .salt = c };

				open_writer(&rig, ELEMENTS[e], e % 2 ? 16 : 0, &args.writer[0]);
				put(&rig, &args);
			}
			assert_true(stats_of(&rig).writebacks > 0 || caches[c].lines * caches[c].line_bytes >= rig.bytes);
			must(weir_cache_flush(rig.cache, c % 2));
			assert_int_equal(stats_of(&rig).dirty, 0);
			check_storages(&rig);
			close_rig(&rig);
		}
}

static void test_a_clean_close_writes_everything(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_put_args args = { .writer_count = 1, .puts = 12 };
		struct rig rig;

		open_rig(&rig, (struct shape){ .width = test_width(w), .lines = 512 });
		open_writer(&rig, 8, 0, &args.writer[0]);
		put(&rig, &args);
		assert_int_equal(stats_of(&rig).writebacks, 0);
		assert_true(stats_of(&rig).dirty > 0);
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_element_cache_and_width),
		cmocka_unit_test(test_a_clean_close_writes_everything),
	};

	if (test_absent())
		return 0;
	return cmocka_run_group_tests_name("writeback", tests, NULL, NULL);
}
