/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tier_cases.h: cases of tier_test.c that lie in other files.
 *
 * Owns: the bench, a rig with an array of words, and what its lanes do with a line.
 */
#ifndef WEIR_TESTS_TIER_CASES_H
#define WEIR_TESTS_TIER_CASES_H

#include "../share/share.h"
#include "tier.h"
#include "writer_rig.h"

enum { THREADS = 70, LINE_BYTES = 512 };

/* A rig, its array of words, and what its lanes read with. */
struct bench {
	struct rig rig;
	struct weir_writer writer;
	struct test_tier_args args;
};

static inline void open_bench(struct bench *bench, struct shape shape)
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

static inline void close_bench(struct bench *bench)
{
	must(weir_free(bench->rig.context, bench->args.model));
	must(weir_free(bench->rig.context, bench->args.buffers));
	must(weir_free(bench->rig.context, bench->args.events));
	close_rig(&bench->rig);
}

static inline uint64_t commands(struct rig *rig)
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
static inline uint64_t read_lines(struct bench *bench, enum test_tier_kind kind, uint64_t first,
				  uint64_t count, uint32_t rounds, uint32_t lanes)
{
	struct test_verdict verdict;
	uint64_t before;

	bench->args.kind = kind;
	bench->args.first = first;
	bench->args.count = count;
	bench->args.rounds = rounds;
	must(weir_copy_to_device(bench->rig.context, bench->args.model, bench->rig.model, bench->rig.bytes));
	before = commands(&bench->rig);
	must(weir_launch(bench->rig.context, "tier_read", 1, lanes, &bench->args, sizeof(bench->args)));
	verdict = judge(&bench->rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), count * rounds);
	return commands(&bench->rig) - before;
}

/* Whatever happened, every line that made room is accounted for. */
static inline struct weir_cache_stats settled(struct rig *rig)
{
	struct weir_cache_stats stats = stats_of(rig);

	assert_int_equal(stats.tier_lines, rig->shape.tier / 4 * 4);
	assert_int_equal(stats.evictions, stats.tier_stored + stats.tier_kept + stats.tier_dropped);
	return stats;
}

/* One lane does one thing after the other (test_steps of share.k.c). */
static inline void do_steps(struct bench *bench, const struct test_step *steps, uint64_t count)
{
	struct rig *rig = &bench->rig;
	struct test_steps_args args = { .writer = bench->writer,
					.count = count,
					.line_bytes = rig->shape.line_bytes,
					.verdict = rig->verdict,
					.buffers = bench->args.buffers,
					.events = bench->args.events,
					.block_lanes = 1 };
	struct test_verdict verdict;

	must(weir_alloc(rig->context, count * sizeof(*steps), &args.steps));
	must(weir_alloc(rig->context, sizeof(weir_shared_u64), &args.iteration));
	must(weir_copy_to_device(rig->context, args.steps, steps, count * sizeof(*steps)));
	must(weir_launch(rig->context, "test_steps_tier", 1, 1, &args, sizeof(args)));
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), count);
	must(weir_free(rig->context, args.steps));
	must(weir_free(rig->context, args.iteration));
}

static inline void do_step(struct bench *bench, uint32_t kind, uint64_t line, uint64_t value)
{
	do_steps(bench, &(struct test_step){ .kind = kind, .line = line, .at = 1, .value = value }, 1);
}

/* Word 1 of a line, by the model. */
static inline uint64_t *word_of(struct bench *bench, uint64_t line)
{
	return (uint64_t *)(bench->rig.model + line * bench->rig.shape.line_bytes) + 1;
}

static inline void get(struct bench *bench, uint64_t line)
{
	do_step(bench, TEST_STEP_GET, line, *word_of(bench, line));
}

static inline void put(struct bench *bench, uint64_t line, uint64_t value)
{
	*word_of(bench, line) = value;
	do_step(bench, TEST_STEP_PUT, line, value);
}

/* A copy of the line is right; where did it come from? */
static inline unsigned path_of(struct bench *bench, uint64_t line)
{
	uint64_t before = stats_of(&bench->rig).tier_hits;
	unsigned reads = (unsigned)read_lines(bench, TEST_TIER_ASYNC, line, 1, 1, 1);

	if (reads)
		return test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	return stats_of(&bench->rig).tier_hits > before ? WEIR_PATH_TIER : WEIR_PATH_CACHE;
}

/* In the cache there is no line of the first ones, but of other lines. */
static inline void push_out(struct bench *bench, uint64_t others)
{
	for (uint64_t line = 0; line < 8; line++)
		get(bench, others + line);
}

/* The cases of tier_random.c. */
void test_random_reads_and_writes(void **state);
void test_flushed_and_read_again(void **state);
void test_stripes(void **state);
void test_many_share(void **state);

/* The cases of tier_errors.c. */
void test_unreadable_blocks(void **state);
void test_unwritable_blocks(void **state);
void test_kernels_without_a_tier(void **state);
void test_bad_sizes(void **state);

#endif
