/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches with a tier in host memory: what goes down and comes up, and that nothing old ever does. */
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
static uint64_t read_lines(struct bench *bench, enum test_tier_kind kind, uint64_t first, uint64_t count,
			   uint32_t rounds, uint32_t lanes)
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
static struct weir_cache_stats settled(struct rig *rig)
{
	struct weir_cache_stats stats = stats_of(rig);

	assert_int_equal(stats.tier_lines, rig->shape.tier / 4 * 4);
	assert_int_equal(stats.evictions, stats.tier_stored + stats.tier_kept + stats.tier_dropped);
	return stats;
}

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

/* One lane does one thing after the other (test_steps of share.k.c). */
static void do_steps(struct bench *bench, const struct test_step *steps, uint64_t count)
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

static void do_step(struct bench *bench, uint32_t kind, uint64_t line, uint64_t value)
{
	do_steps(bench, &(struct test_step){ .kind = kind, .line = line, .at = 1, .value = value }, 1);
}

/* Word 1 of a line, by the model. */
static uint64_t *word_of(struct bench *bench, uint64_t line)
{
	return (uint64_t *)(bench->rig.model + line * bench->rig.shape.line_bytes) + 1;
}

static void get(struct bench *bench, uint64_t line)
{
	do_step(bench, TEST_STEP_GET, line, *word_of(bench, line));
}

static void put(struct bench *bench, uint64_t line, uint64_t value)
{
	*word_of(bench, line) = value;
	do_step(bench, TEST_STEP_PUT, line, value);
}

/* A copy of the line is right; where did it come from? */
static unsigned path_of(struct bench *bench, uint64_t line)
{
	uint64_t before = stats_of(&bench->rig).tier_hits;
	unsigned reads = (unsigned)read_lines(bench, TEST_TIER_ASYNC, line, 1, 1, 1);

	if (reads)
		return test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	return stats_of(&bench->rig).tier_hits > before ? WEIR_PATH_TIER : WEIR_PATH_CACHE;
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
	assert_int_equal(count_path(&bench, 6, WEIR_PATH_CACHE), 4);
	assert_int_equal(count_path(&bench, 6, WEIR_PATH_TIER), 2);
	for (unsigned i = 0; i < 9; i++) { /* one goes up, another one down */
		uint64_t line = line_in_tier(&bench, 6);

		stats = settled(&bench.rig);
		get(&bench, line);
		assert_int_equal(path_of(&bench, line), WEIR_PATH_CACHE);
		assert_int_equal(settled(&bench.rig).tier_stored, stats.tier_stored + 1);
		assert_int_equal(count_path(&bench, 6, WEIR_PATH_TIER), 2);
	}
	assert_int_equal(stats_of(&bench.rig).misses, 6);
	assert_int_equal(stats_of(&bench.rig).tier_kept, 0);
	close_bench(&bench);
}

/* In the cache there is no line of the first ones, but of other lines. */
static void push_out(struct bench *bench, uint64_t others)
{
	for (uint64_t line = 0; line < 8; line++)
		get(bench, others + line);
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
	get(&bench, 0);
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

static void test_random_reads_and_writes(void **state)
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
static void test_flushed_and_read_again(void **state)
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

static void test_stripes(void **state)
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

/* A block that cannot be read is told each time, and is never in the tier; others are. */
static void test_unreadable_blocks(void **state)
{
	struct bench bench;

	(void)state;
	open_bench(&bench, (struct shape){ .width = test_width(0),
					   .tier = 64,
					   .fault = "&fault=status:op=read:lba=5:code=0x281" });
	for (unsigned i = 0; i < 3; i++) {
		do_step(&bench, TEST_STEP_COPY, 5, WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x281);
		bench.args.kind = TEST_TIER_GET;
		bench.args.first = 5;
		bench.args.count = bench.args.rounds = 1;
		must(weir_launch(bench.rig.context, "tier_read", 1, 1, &bench.args, sizeof(bench.args)));
		assert_int_equal(weir_sync(bench.rig.context), -EIO);
		assert_non_null(strstr(weir_last_error(), "block 5 of"));
		must(weir_copy_to_device(bench.rig.context, bench.rig.verdict,
					 &(struct test_verdict){ .where = 0 }, sizeof(struct test_verdict)));
		get(&bench, 4);
		push_out(&bench, 8 + 8 * i);
	}
	assert_int_equal(path_of(&bench, 4), WEIR_PATH_TIER);
	must(weir_cache_destroy(bench.rig.cache));
	close_storages(&bench.rig);
}

/* Lines whose write-back fails stay in the cache, and go down once it did not. */
static void test_unwritable_blocks(void **state)
{
	(void)state;
	for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
		struct bench bench;

		open_bench(
			&bench,
			(struct shape){ .width = test_width(0),
					.tier = 64,
					.inclusive = inclusive,
					.fault = "&fault=status:op=write:lba=0:code=0x280:after=1:count=1" });
		get(&bench, 0);
		push_out(&bench, 8);
		get(&bench, 0);
		put(&bench, 0, 99);
		push_out(&bench, 16);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_CACHE);
		assert_int_equal(weir_cache_flush(bench.rig.cache, 0), -EIO);
		must(weir_cache_flush(bench.rig.cache, 0));
		push_out(&bench, 24);
		assert_int_equal(path_of(&bench, 0), WEIR_PATH_TIER);
		get(&bench, 0);
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
		close_bench(&bench);
	}
}

static void test_many_share(void **state)
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

/* Kernels that know of no tier read what the cache has, and are told so when they miss. */
static void test_kernels_without_a_tier(void **state)
{
#ifndef WEIR_TIER /* not all kernels of this build have code for a tier (-Dtier=true) */
	struct test_put_args args = { .writer_count = 1, .puts = 1 };
	struct bench bench;

	open_bench(&bench, (struct shape){ .width = test_width(0), .tier = 64 });
	args.writer[0] = bench.writer;
	args.verdict = bench.rig.verdict;
	must(weir_launch(bench.rig.context, "test_put", 1, 1, &args, sizeof(args)));
	assert_int_equal(weir_sync(bench.rig.context), -EIO);
	assert_non_null(strstr(weir_last_error(), "WEIR_TIER"));
	close_bench(&bench);
#endif
	(void)state;
}

static void refused(struct rig *rig, struct weir_cache_options options, int error, const char *why)
{
	struct weir_cache *cache;

	options.size = sizeof(options);
	assert_int_equal(weir_cache_create(rig->context, &options, &cache), error);
	assert_null(cache);
	if (!strstr(weir_last_error(), why))
		fail_msg("\"%s\" does not tell of \"%s\"", weir_last_error(), why);
}

static void test_bad_sizes(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, (struct shape){ .width = test_width(0) });
	refused(&rig,
		(struct weir_cache_options){ .lines = 4, .line_bytes = 4096, .tier_bytes = 16384 + 512 },
		-EINVAL, "tier_bytes is 16896; it must be a multiple of the lines of 4096 bytes");
	refused(&rig, (struct weir_cache_options){ .lines = 4, .line_bytes = 4096, .tier_bytes = 3 * 4096 },
		-EINVAL, "a tier of 12288 bytes: one set of 4 lines of 4096 bytes needs 16384");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 8, .line_bytes = 512, .tier_bytes = 4 * 512, .tier_inclusive = 1 },
		-EINVAL,
		"inclusive tier of 4 lines has copies of less than the 8 lines before it; give it 4096 "
		"bytes");
	refused(&rig, (struct weir_cache_options){ .lines = 8, .tier_inclusive = 1 }, -EINVAL,
		"tier_inclusive without a tier");
	refused(&rig, (struct weir_cache_options){ .lines = 8, .tier_bytes = 65536, .tier_inclusive = 2 },
		-EINVAL, "tier_inclusive is 2");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 4, .line_bytes = 65536, .tier_bytes = (uint64_t)1 << 50 },
		-EINVAL, "at most 8589934592 each; use longer lines");
	refused(&rig,
		(struct weir_cache_options){
			.lines = 4, .line_bytes = 65536, .tier_bytes = (uint64_t)1 << 48 },
		-ENOMEM, "no 281474976710656 bytes of host memory for its tier (");
	close_rig(&rig);
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
