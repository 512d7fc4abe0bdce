/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches with a tier in host memory: what goes down and comes up, and that nothing old ever does. */
#include "tier_cases.h"

static void test_what_fits_the_tier_is_read_once(void **state)
{
	static const struct {
		uint64_t lines, tier;
	} caches[] = { { 4, 120 }, { 8, 160 }, { 16, 112 }, { 32, 96 } };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < 4; c++)
			for (unsigned kind = TEST_TIER_GET; kind <= TEST_TIER_SPAN; kind++) {
				struct weir_cache_stats stats;
				struct bench bench;

				open_bench(&bench, (struct shape){ .width = test_width(w),
								   .lines = caches[c].lines,
								   .tier = caches[c].tier });
				assert_int_equal(read_lines(&bench, kind, 0, 96, 1, THREADS), 96);
				assert_int_equal(read_lines(&bench, kind, 0, 96, 3, THREADS), 0);
				stats = settled(&bench.rig);
				assert_int_equal(stats.misses, 96);
				assert_int_equal(stats.tier_dropped, 0);
				assert_true(stats.tier_hits >= 96 - caches[c].lines);
				assert_true(stats.tier_stored >= stats.tier_hits);
				close_bench(&bench);
			}
}

static unsigned count_path(struct bench *bench, uint64_t lines, unsigned path)
{
	unsigned count = 0;

	for (uint64_t line = 0; line < lines; line++)
		count += path_of(bench, line) == path;
	return count;
}

/* The first of some lines that is in the tier. */
static uint64_t line_in_tier(struct bench *bench, uint64_t lines)
{
	for (uint64_t line = 0; line < lines; line++)
		if (path_of(bench, line) == WEIR_PATH_TIER)
			return line;
	fail_msg("none of %llu lines is in the tier", (unsigned long long)lines);
	return 0;
}

static void test_exclusive_moves(void **state)
{
	struct weir_cache_stats stats;
	struct bench bench;

	(void)state;
	open_bench(&bench, (struct shape){ .width = test_width(0), .tier = 16 });
	for (uint64_t line = 0; line < 6; line++)
		get(&bench, line);
	assert_int_equal(settled(&bench.rig).tier_stored, 2);
	assert_int_equal(settled(&bench.rig).tier_hits, 0);
	assert_int_equal(count_path(&bench, 6, WEIR_PATH_CACHE), 4);
	assert_int_equal(count_path(&bench, 6, WEIR_PATH_TIER), 2);
	assert_int_equal(settled(&bench.rig).tier_hits, 4); /* each look copied two from there */
	for (unsigned i = 0; i < 9; i++) {                  /* one goes up, another one down */
		uint64_t line = line_in_tier(&bench, 6);

		stats = settled(&bench.rig);
		get(&bench, line);
		assert_int_equal(path_of(&bench, line), WEIR_PATH_CACHE);
		assert_int_equal(settled(&bench.rig).tier_stored, stats.tier_stored + 1);
		assert_int_equal(settled(&bench.rig).tier_hits, stats.tier_hits + 1);
		assert_int_equal(count_path(&bench, 6, WEIR_PATH_TIER), 2);
	}
	assert_int_equal(stats_of(&bench.rig).misses, 6);
	assert_int_equal(stats_of(&bench.rig).tier_kept, 0);
	close_bench(&bench);
}

static void test_inclusive_keeps_copies(void **state)
{
	struct weir_cache_stats before, after;
	struct bench bench;

	(void)state;
	open_bench(&bench, (struct shape){ .width = test_width(0), .tier = 64, .inclusive = true });
	get(&bench, 0);
	push_out(&bench, 8);
	assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
	before = settled(&bench.rig);
	get(&bench, 0);
	assert_int_equal(settled(&bench.rig).tier_hits, before.tier_hits + 1);
	before = settled(&bench.rig);
	push_out(&bench, 16);
	after = settled(&bench.rig);
	assert_int_equal(after.tier_kept, before.tier_kept + 1); /* it went up, and need not be copied down */
	assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
	get(&bench, 0);
	put(&bench, 0, 4711);
	must(weir_cache_flush(bench.rig.cache, 0)); /* a dirty line would stay while there are clean ones */
	before = settled(&bench.rig);
	push_out(&bench, 24);
	after = settled(&bench.rig);
	assert_int_equal(after.tier_kept, before.tier_kept); /* changed: what the tier had is worth nothing */
	assert_int_equal(after.writebacks, 1);
	assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
	get(&bench, 0);
	close_bench(&bench);
}

/* Whole lines: the copy goes when they are claimed. */
static void test_overwritten_lines(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
		struct bench bench;

		open_bench(&bench,
			   (struct shape){ .width = test_width(0), .tier = 64, .inclusive = inclusive });
		get(&bench, 0);
		push_out(&bench, 8);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
		do_steps(&bench,
			 (struct test_step[]){ { TEST_STEP_COPY, 0, 30, 0,
						 test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT },
					       { TEST_STEP_WRITE, 0, 0, 0, WEIR_OK } },
			 2);
		memcpy(bench.rig.model, bench.rig.model + 30 * LINE_BYTES, LINE_BYTES);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_CACHE);
		must(weir_cache_flush(bench.rig.cache, 0));
		push_out(&bench, 16);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
		get(&bench, 0);
		close_bench(&bench);
	}
}

static void test_invalidated_lines(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++)
		for (uint64_t lines = 4; lines <= 32; lines *= 8)
			for (uint64_t range = 3; range <= 60;
			     range += 57) { /* fewer and more than there are sets */
				struct bench bench;

				open_bench(&bench, (struct shape){ .width = test_width(lines % 3),
								   .lines = lines,
								   .tier = 96,
								   .inclusive = inclusive });
				for (unsigned i = 0; i < 2; i++)
					(void)read_lines(&bench, TEST_TIER_GET, 0, 64, 1, THREADS);
				for (uint64_t i = 0; i < range * LINE_BYTES; i++)
					bench.rig.model[LINE_BYTES + i] ^= 0x5a;
				must(weir_storage_write(bench.rig.storages[0], LINE_BYTES,
							bench.rig.model + LINE_BYTES, range * LINE_BYTES));
				must(weir_array_invalidate(bench.rig.cache, &bench.writer.array,
							   LINE_BYTES / 8, range * LINE_BYTES / 8));
				assert_int_equal(read_lines(&bench, TEST_TIER_GET, 0, 64, 1, THREADS), range);
				close_bench(&bench);
			}
}

static void test_prefetch_comes_from_the_tier(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct bench bench;

		open_bench(&bench, (struct shape){ .width = test_width(w), .lines = 8, .tier = 64 });
		assert_int_equal(read_lines(&bench, TEST_TIER_GET, 0, 60, 1, THREADS), 60);
		assert_int_equal(read_lines(&bench, TEST_TIER_PREFETCH, 0, 60, 1, THREADS), 0);
		assert_int_equal(read_lines(&bench, TEST_TIER_GET, 0, 60, 1, THREADS), 0);
		assert_int_equal(settled(&bench.rig).tier_dropped, 0);
		close_bench(&bench);
	}
}

static void test_copies_tell_their_path(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_verdict verdict;
		struct bench bench;

		open_bench(&bench, (struct shape){ .width = test_width(w), .tier = 64 });
		assert_int_equal(read_lines(&bench, TEST_TIER_GET, 0, 60, 1, THREADS), 60);
		must(weir_launch(bench.rig.context, "tier_read", 1, THREADS,
				 (bench.args.kind = TEST_TIER_ASYNC, &bench.args), sizeof(bench.args)));
		verdict = judge(&bench.rig);
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 60);
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.sum),
				 56); /* the rest is in the cache, and stays there */
		close_bench(&bench);
	}
}

/* A line of the tier moves into a shared buffer, and comes back changed. */
static void test_shared_buffers(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
		struct bench bench;
		uint64_t before;

		open_bench(&bench,
			   (struct shape){ .width = test_width(0), .tier = 64, .inclusive = inclusive });
		must(weir_share_create(bench.rig.cache, NULL));
		for (uint64_t line = 0; line < 10; line++)
			do_step(&bench, TEST_STEP_GET, line, *word_of(&bench, line));
		before = commands(&bench.rig);
		do_steps(&bench,
			 (struct test_step[]){ { TEST_STEP_ACQUIRE, 0, 0, 0, 1 /* its owner */ },
					       { TEST_STEP_WAIT, 0, 0, 0, WEIR_OK },
					       { TEST_STEP_LOAD, 0, 0, 1, *word_of(&bench, 0) },
					       { TEST_STEP_MODIFY, 0, 0, 0, WEIR_OK },
					       { TEST_STEP_STORE, 0, 0, 1, 12345 },
					       { TEST_STEP_GET, 0, 0, 1, 12345 },
					       { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK },
					       { TEST_STEP_GET, 0, 0, 1, 12345 } },
			 8);
		*word_of(&bench, 0) = 12345;
		assert_int_equal(commands(&bench.rig), before); /* it came from the tier */
		must(weir_cache_flush(bench.rig.cache, 0));
		for (uint64_t line = 10; line < 30; line++)
			do_step(&bench, TEST_STEP_GET, line, *word_of(&bench, line));
		do_step(&bench, TEST_STEP_COPY, 0, WEIR_PATH_TIER);
		do_step(&bench, TEST_STEP_GET, 0, 12345);
		/* what the cache has is newer than a copy that the tier kept */
		do_steps(&bench,
			 (struct test_step[]){ { TEST_STEP_PUT, 0, 0, 1, 777 },
					       { TEST_STEP_ACQUIRE, 0, 0, 0, 1 },
					       { TEST_STEP_WAIT, 0, 0, 0, WEIR_OK },
					       { TEST_STEP_LOAD, 0, 0, 1, 777 },
					       { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK },
					       { TEST_STEP_GET, 0, 0, 1, 777 } },
			 6);
		*word_of(&bench, 0) = 777;
		close_bench(&bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_the_tier_is_read_once),
		cmocka_unit_test(test_exclusive_moves),
		cmocka_unit_test(test_inclusive_keeps_copies),
		cmocka_unit_test(test_overwritten_lines),
		cmocka_unit_test(test_invalidated_lines),
		cmocka_unit_test(test_prefetch_comes_from_the_tier),
		cmocka_unit_test(test_copies_tell_their_path),
		cmocka_unit_test(test_random_reads_and_writes),
		cmocka_unit_test(test_flushed_and_read_again),
		cmocka_unit_test(test_stripes),
		cmocka_unit_test(test_unreadable_blocks),
		cmocka_unit_test(test_unwritable_blocks),
		cmocka_unit_test(test_shared_buffers),
		cmocka_unit_test(test_many_share),
		cmocka_unit_test(test_kernels_without_a_tier),
		cmocka_unit_test(test_bad_sizes),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("tier", tests, NULL, NULL);
}
