/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches with a tier in host memory: what goes down and comes up, and that nothing old ever does. */
#include "tier.h"
#include "writer_rig.h"

enum { THREADS = 70, LINE_BYTES = 512 };

/* A rig, its array of words, and what its lanes read with. */
struct bench {
	struct rig rig;
	struct weir_writer writer;
	struct test_tier_args args;
};

static void open_bench(struct bench *bench, struct shape shape)
{
	struct test_tier_args *args = &bench->args;

	memset(bench, 0, sizeof(*bench));
	open_rig(&bench->rig, shape);
	open_writer(&bench->rig, 8, 0, &bench->writer);
	args->array = bench->writer.array;
	args->verdict = bench->rig.verdict;
	must(weir_alloc(bench->rig.context, bench->rig.bytes, &args->model));
	must(weir_alloc(bench->rig.context, THREADS * (uint64_t)bench->rig.shape.line_bytes, &args->buffers));
	must(weir_alloc(bench->rig.context, THREADS * sizeof(struct weir_event), &args->events));
}

static void close_bench(struct bench *bench)
{
	must(weir_free(bench->rig.context, bench->args.model));
	must(weir_free(bench->rig.context, bench->args.buffers));
	must(weir_free(bench->rig.context, bench->args.events));
	close_rig(&bench->rig);
}

static uint64_t commands(struct rig *rig)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->shape.disks; i++) {
		must(weir_stats(rig->storages[i], &stats));
		sum += stats.commands;
	}
	return sum;
}

/* Lines are read by @lanes lanes, and right. Return: commands that took. */
static uint64_t read_lines(struct bench *bench, enum test_tier_kind kind, uint64_t first, uint64_t count, uint32_t rounds,
			   uint32_t lanes)
{
	struct test_verdict verdict;
	uint64_t before;

	bench->args.kind = kind;
	bench->args.first = first;
	bench->args.count = count;
	bench->args.rounds = rounds;
	must(weir_copy_in(bench->rig.context, bench->args.model, bench->rig.model, bench->rig.bytes));
	before = commands(&bench->rig);
	must(weir_launch(bench->rig.context, "tier_read", 1, lanes, &bench->args, sizeof(bench->args)));
	verdict = judge(&bench->rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), count * rounds);
	return commands(&bench->rig) - before;
}

/* Whatever happened, every line that made room is accounted for. */
static struct weir_cache_stats settled(struct rig *rig)
{
	struct weir_cache_stats stats = stats_of(rig);

	assert_int_equal(stats.tier_lines, rig->shape.tier / 4 * 4);
	assert_int_equal(stats.evictions, stats.tier_stored + stats.tier_kept + stats.tier_dropped);
	return stats;
}

static void test_what_fits_the_tier_is_read_once(void **state)
{
	static const struct { uint64_t lines, tier; } caches[] = { { 4, 120 }, { 8, 160 }, { 16, 112 }, { 32, 96 } };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < 4; c++)
			for (unsigned kind = TEST_TIER_GET; kind <= TEST_TIER_SPAN; kind++) {
				struct weir_cache_stats stats;
				struct bench bench;

				open_bench(&bench, (struct shape){ .width = test_width(w), .lines = caches[c].lines,
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_the_tier_is_read_once),
	};

	if (test_absent())
		return 0;
	return cmocka_run_group_tests_name("tier", tests, NULL, NULL);
}
