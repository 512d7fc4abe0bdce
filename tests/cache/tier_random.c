/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiers of many sizes under many lanes: random reads and writes, shared buffers, stripes. */
#include "tier_cases.h"

/* Tiers from a set to more than there is, behind caches from a set on. */
static const struct {
	uint64_t lines, tier;
} SIZES[] = {
	{ 4, 4 }, { 4, 12 }, { 4, 64 }, { 8, 4 }, { 12, 40 }, { 16, 8 }, { 16, 64 }, { 32, 200 }, { 64, 12 },
};

enum { SIZE_COUNT = sizeof(SIZES) / sizeof(*SIZES) };

static void mix(struct bench *bench, bool whole, uint64_t seed)
{
	struct rig *rig = &bench->rig;
	struct test_mix_args args = { .writer = bench->writer,
				      .steps = 40,
				      .whole = whole,
				      .seed = seed,
				      .verdict = rig->verdict,
				      .buffers = bench->args.buffers,
				      .events = bench->args.events };
	uint64_t lanes = test_lanes(whole ? 32 : THREADS),
		 all = whole ? rig->bytes / LINE_BYTES : rig->bytes / 8;
	uint64_t *shadow = malloc(all * 8);
	struct test_verdict verdict;

	args.each = all / lanes;
	for (uint64_t i = 0; i < rig->bytes / 8 && whole; i++)
		((uint64_t *)rig->model)[i] =
			test_mix(seed + i * 8 / LINE_BYTES * 1000 + i % (LINE_BYTES / 8));
	each_unit(rig, fill_unit);
	for (uint64_t i = 0; i < all; i++)
		shadow[i] = whole ? seed + i * 1000 : ((uint64_t *)rig->model)[i];
	must(weir_alloc(rig->context, all * 8, &args.shadow));
	must(weir_copy_to_device(rig->context, args.shadow, shadow, all * 8));
	must(weir_launch(rig->context, "tier_mix", 1, (uint32_t)lanes, &args, sizeof(args)));
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), lanes * args.steps);
	must(weir_copy_from_device(rig->context, shadow, args.shadow, all * 8));
	for (uint64_t i = 0; i < rig->bytes / 8; i++)
		((uint64_t *)rig->model)[i] =
			whole ? test_mix(shadow[i * 8 / LINE_BYTES] + i % (LINE_BYTES / 8)) : shadow[i];
	must(weir_free(rig->context, args.shadow));
	free(shadow);
}

void test_random_reads_and_writes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < SIZE_COUNT; c++)
			for (unsigned kind = 0; kind < 4; kind++) {
				bool inclusive = kind % 2, whole = kind / 2;
				struct weir_cache_stats stats;
				struct bench bench;

				if (inclusive && SIZES[c].tier < SIZES[c].lines)
					continue;
				open_bench(&bench, (struct shape){ .width = test_width(w),
								   .lines = SIZES[c].lines,
								   .tier = SIZES[c].tier,
								   .inclusive = inclusive });
				mix(&bench, whole, w * 100 + c);
				stats = settled(&bench.rig);
				assert_true(stats.tier_stored > 0);
				assert_true(inclusive || stats.tier_kept == 0);
				close_bench(&bench);
			}
}

/* What was written is on storage after a flush, and right in whichever tier it is read from. */
void test_flushed_and_read_again(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < SIZE_COUNT; c++) {
			struct bench bench;

			open_bench(&bench,
				   (struct shape){ .width = test_width(w),
						   .lines = SIZES[c].lines,
						   .tier = SIZES[c].tier,
						   .inclusive = c % 2 && SIZES[c].tier >= SIZES[c].lines });
			mix(&bench, false, c);
			must(weir_cache_flush(bench.rig.cache, 0));
			check_storages(&bench.rig);
			assert_true(read_lines(&bench, TEST_TIER_GET, 0, 128, 1, THREADS) <= 128);
			(void)settled(&bench.rig);
			close_bench(&bench);
		}
}

void test_stripes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct bench bench;

		open_bench(&bench, (struct shape){ .width = test_width(w),
						   .lines = 16,
						   .tier = 400,
						   .disks = 3,
						   .stripe = 2048 });
		assert_int_equal(read_lines(&bench, TEST_TIER_GET, 0, 384, 1, THREADS), 384);
		assert_int_equal(read_lines(&bench, TEST_TIER_SPAN, 0, 384, 1, THREADS), 0);
		mix(&bench, false, w);
		close_bench(&bench);
	}
}

void test_many_share(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < SIZE_COUNT; c++) {
			struct test_share_args args = {
				.lines = 32, .rounds = 3, .held = 2, .line_bytes = LINE_BYTES, .change = 1
			};
			uint64_t lanes = THREADS;
			struct bench bench;
			struct test_verdict verdict;

			open_bench(&bench,
				   (struct shape){ .width = test_width(w),
						   .lines = SIZES[c].lines,
						   .tier = SIZES[c].tier,
						   .inclusive = c % 2 && SIZES[c].tier >= SIZES[c].lines });
			for (uint64_t i = 0; i < bench.rig.bytes / 8; i++)
				((uint64_t *)bench.rig.model)[i] = test_word(1, i);
			each_unit(&bench.rig, fill_unit);
			must(weir_share_create(bench.rig.cache, NULL));
			args.writer = bench.writer;
			must(weir_alloc(bench.rig.context, lanes * args.held * LINE_BYTES, &args.buffers));
			must(weir_alloc(bench.rig.context, lanes * args.held * sizeof(struct weir_event),
					&args.events));
			must(weir_alloc(bench.rig.context, 8, &args.copies));
			args.verdict = bench.rig.verdict;
			must(weir_launch(bench.rig.context, "test_share_tier", 1, THREADS, &args,
					 sizeof(args)));
			verdict = judge(&bench.rig);
			assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good),
					 lanes * args.rounds * args.held);
			for (uint64_t thread = 0; thread < lanes; thread++)
				for (uint32_t i = 0; i < args.rounds * args.held; i++) {
					uint64_t word = (thread + i) % args.lines * (LINE_BYTES / 8) +
							thread % (LINE_BYTES / 8);

					((uint64_t *)bench.rig.model)[word] = test_word(2, word);
				}
			must(weir_free(bench.rig.context, args.buffers));
			close_bench(&bench);
		}
}
