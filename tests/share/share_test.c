/* SPDX-License-Identifier: BSD-3-Clause */
/* The Share Table under lanes: pointers shared, changes propagated, hazards, its limits. */
#include "share_cases.h"

/* All kernels of this build have code for a Share Table (-Dshare_table=true). */
#ifdef WEIR_SHARE_TABLE
enum { BUILT_FOR_TABLES = 1 };
#else
enum { BUILT_FOR_TABLES = 0 };
#endif

static struct weir_share_stats stats_of(struct rig *rig)
{
	struct weir_share_stats stats = { .size = sizeof(stats) };

	must(weir_share_stats(rig->cache, &stats));
	return stats;
}

static uint64_t commands_of(struct rig *rig)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storage, &stats));
	assert_int_equal(stats.failed, 0);
	return stats.commands;
}

static uint64_t run_share(struct rig *rig, uint32_t width, const struct shape *shape)
{
	return run_faulty_share(rig, width, shape, "");
}

static void test_pointers_are_shared(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t held = 1; held <= 3; held++) {
			uint64_t acquired = (uint64_t)2 * THREADS * 3 * held;
			struct weir_share_stats stats;
			struct rig rig;

			assert_int_equal(
				run_share(&rig, test_width(w), &(struct shape){ 8, 1024, 3, held, 0, 0 }), 0);
			stats = stats_of(&rig);
			assert_int_equal(stats.registered + stats.joined, acquired);
			assert_int_equal(stats.unshared + stats.declined + stats.held + stats.changed +
						 stats.propagated,
					 0);
			/* a buffer is filled once, by one command: the cache had none of the lines */
			assert_int_equal(commands_of(&rig), stats.registered + 1 /* written at the start */);
			close_rig(&rig);
		}
}

/* Held by all until the end: every line has one buffer. */
static void test_one_buffer_per_line(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_share_stats stats;
		struct rig rig;

		assert_int_equal(run_share(&rig, test_width(w), &(struct shape){ 8, 1024, 1, 2, 1, 1 }), 0);
		stats = stats_of(&rig);
		assert_int_equal(stats.registered, LINES);
		assert_int_equal(stats.joined, 2 * THREADS * 2 - LINES);
		assert_int_equal(stats.held, LINES);
		assert_int_equal(stats.changed, LINES);
		assert_int_equal(weir_share_destroy(rig.cache), -EBUSY);
		assert_non_null(strstr(weir_last_error(), "never released 32 lines, 32 of them changed"));
		assert_non_null(strstr(weir_last_error(), "of \"virt:32K"));
		close_rig(&rig);
	}
}

/* What each lane changed is there, in the cache and after a flush on storage. */
static void check_changes(struct rig *rig, const struct shape *shape)
{
	uint64_t words[WORDS], line_words = LINE / 8, changed = 0;
	uint8_t expected[WORDS] = { 0 };

	for (uint64_t thread = 0; thread < 2 * THREADS; thread++)
		for (uint32_t i = 0; i < shape->rounds * shape->held; i++)
			expected[(thread + i) % LINES * line_words + thread % line_words] = 1;
	must(weir_cache_flush(rig->cache, 1));
	must(weir_storage_read(rig->storage, 0, words, sizeof(words)));
	for (uint64_t i = 0; i < WORDS; i++) {
		changed += expected[i];
		if (words[i] != test_word(expected[i] ? 2 : 1, i))
			fail_msg("word %llu is %#llx", (unsigned long long)i, (unsigned long long)words[i]);
	}
	assert_true(changed > LINES);
}

static void test_changes_are_propagated(void **state)
{
	static const struct shape shapes[] = { { 4, 1024, 3, 1, 1, 0 },
					       { 64, 1024, 2, 3, 1, 0 },
					       { 8, 1024, 1, 2, 1, 0 } };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < 3; i++) {
			struct rig rig;

			assert_int_equal(run_share(&rig, test_width(w), &shapes[i]), 0);
			assert_int_equal(stats_of(&rig).held, 0);
			assert_in_range(stats_of(&rig).propagated, LINES, 2 * THREADS * 6);
			check_changes(&rig, &shapes[i]);
			close_rig(&rig);
		}
}

/* A bucket of four, and each lane wants five lines: who finds it full gets a copy, which is counted, and
 * nobody waits. */
static void test_a_full_table_gives_copies(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t change = 0; change < 2; change++) {
			struct shape shape = { 16, 4, 2, 5, change, 0 };
			uint64_t copies;
			struct rig rig;

			copies = run_share(&rig, test_width(w), &shape);
			assert_int_equal(stats_of(&rig).entries, 4);
			assert_int_equal(stats_of(&rig).unshared, copies);
			assert_true(copies > 0);
			if (change)
				check_changes(&rig, &shape);
			close_rig(&rig);
		}
}

static void test_without_a_table_it_is_a_copy(void **state)
{
	struct weir_share_stats stats = { .size = sizeof(stats) };
	struct rig rig;

	(void)state;
	assert_int_equal(run_share(&rig, test_width(0), &(struct shape){ 8, 0, 1, 2, 0, 0 }),
			 2 * THREADS * 2);
	assert_int_equal(weir_share_stats(rig.cache, &stats), -ENOENT);
	must(weir_share_create(rig.cache, NULL));
	assert_int_equal(weir_share_create(rig.cache, NULL), -EEXIST);
	assert_int_equal(stats_of(&rig).entries, 1024);
	must(weir_share_destroy(rig.cache));
	must(weir_share_create(rig.cache, WEIR_OPTIONS(share, .entries = 5)));
	assert_int_equal(stats_of(&rig).entries, 8); /* as many as asked for, and whole buckets of four */
	must(weir_share_destroy(rig.cache));
	assert_int_equal(weir_share_create(rig.cache, WEIR_OPTIONS(share, .entries = ~(uint64_t)0)), -EINVAL);
	close_rig(&rig);
}

/* Lanes of one wave whose arrays are of two caches: one has a table, and lines in it; the other has none. */
static void test_mixed_with_a_cache_without_a_table(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_mixed_args args = { .line_bytes = LINE };
		struct weir_cache *other;
		uint64_t words[WORDS];
		struct rig rig;

		open_rig(&rig, test_width(w), 4, 64);
		must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = LINE),
				       &other));
		must(weir_writer_open(other, &rig.storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				      &args.other));
		args.writer = rig.writer;
		args.buffers = alloc(&rig, LINES * LINE);
		args.events = alloc(&rig, LINES * sizeof(struct weir_event));
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_mixed", 1, LINES, &args, sizeof(args)));
		assert_int_equal(judge(&rig), LINES);
		must(weir_cache_destroy(other));
		must(weir_cache_flush(rig.cache, 1));
		must(weir_storage_read(rig.storage, 0, words, sizeof(words)));
		for (uint64_t line = 0; line < LINES; line++)
			assert_int_equal(words[line * LINE / 8], test_word(2, line * LINE / 8));
		close_rig(&rig);
	}
}

/* The table goes although lanes hold lines: what a later kernel does with such a hold is refused. */
static void test_holds_of_a_table_that_is_gone(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_share_args args = { .lines = LINES };
		struct rig rig;

		open_rig(&rig, test_width(w), 4, 64);
		args.writer = rig.writer;
		args.buffers = alloc(&rig, LINE);
		args.verdict = rig.verdict;
		must(weir_share_destroy(rig.cache));
		must(weir_launch(rig.context, "test_share_gone", 1, 5, &args, sizeof(args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		assert_int_equal(judge(&rig), 5);
		close_rig(&rig);
	}
}

/* A kernel without code for the table would read storage past a changed buffer. */
static void test_a_kernel_built_without_it_is_refused(void **state)
{
	struct test_get_args args = { .index = 3, .lane = 1 };
	struct rig rig;

	(void)state;
	open_rig(&rig, test_width(0), 4, 64);
	args.array = rig.writer.array;
	args.verdict = rig.verdict;
	must(weir_launch(rig.context, "test_get", 1, 5, &args, sizeof(args)));
	if (BUILT_FOR_TABLES) {
		must(weir_sync(rig.context));
	} else {
		assert_int_equal(weir_sync(rig.context), -EIO);
		assert_non_null(strstr(weir_last_error(), "block 0 of"));
		assert_non_null(strstr(weir_last_error(), "WEIR_SHARE_TABLE"));
	}
	must(weir_share_destroy(rig.cache));
	must(weir_launch(rig.context, "test_get", 1, 5, &args, sizeof(args)));
	must(weir_sync(rig.context));
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pointers_are_shared),
		cmocka_unit_test(test_one_buffer_per_line),
		cmocka_unit_test(test_changes_are_propagated),
		cmocka_unit_test(test_a_full_table_gives_copies),
		cmocka_unit_test(test_without_a_table_it_is_a_copy),
		cmocka_unit_test(test_mixed_with_a_cache_without_a_table),
		cmocka_unit_test(test_holds_of_a_table_that_is_gone),
		cmocka_unit_test(test_read_after_write),
		cmocka_unit_test(test_write_after_read),
		cmocka_unit_test(test_write_after_write),
		cmocka_unit_test(test_lines_move_both_ways),
		cmocka_unit_test(test_a_store_is_seen_by_another_lane),
		cmocka_unit_test(test_stores_are_seen_after_the_owner_left),
		cmocka_unit_test(test_bad_requests_name_the_block),
		cmocka_unit_test(test_what_fails_is_tried_again),
		cmocka_unit_test(test_it_is_tried_no_more_often),
		cmocka_unit_test(test_each_line_has_its_own_tries),
		cmocka_unit_test(test_many_lanes_try_again),
		cmocka_unit_test(test_closing_names_what_is_lost),
		cmocka_unit_test(test_a_buffer_outlives_its_storage),
		cmocka_unit_test(test_a_writer_that_is_last_leaves_no_hold),
		cmocka_unit_test(test_no_table_goes_under_commands),
		cmocka_unit_test(test_a_prefetch_passes_over_buffers),
		cmocka_unit_test(test_a_kernel_without_the_policy),
		cmocka_unit_test(test_a_kernel_without_a_tier),
		cmocka_unit_test(test_a_kernel_built_without_it_is_refused),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
