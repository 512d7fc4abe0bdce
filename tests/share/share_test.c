/* SPDX-License-Identifier: BSD-3-Clause */
/* The Share Table under lanes: pointers shared, changes propagated, hazards, its limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "share.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum {
	LINES = 32,
	LINE = 1024,
	BYTES = LINES * LINE,
	WORDS = BYTES / 8,
	TIMEOUT_US = 30000000,
	THREADS = 37
};

/* All kernels of this build have code for a Share Table (-Dshare_table=true). */
#ifdef WEIR_SHARE_TABLE
enum { BUILT_FOR_TABLES = 1 };
#else
enum { BUILT_FOR_TABLES = 0 };
#endif

/** struct rig - a storage, a cache over it, with a Share Table, and an array that is written to */
struct rig {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct weir_writer writer;
	uint64_t verdict;
};

static uint64_t alloc(struct rig *rig, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(rig->context, bytes, &address));
	return address;
}

/* @faults: what the storage does wrong, as part of its URI. */
static void open_faulty_rig(struct rig *rig, uint32_t width, uint64_t cache_lines, uint64_t entries,
			    const char *faults)
{
	char uri[128];
	uint64_t words[WORDS];

	memset(rig, 0, sizeof(*rig));
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = width),
			       &rig->context));
	snprintf(uri, sizeof(uri), "virt:32K?block=512%s", faults);
	must(test_storage_open(
		rig->context, uri,
		WEIR_OPTIONS(storage, .queues = 2, .depth = 8, .timeout_us = test_patient_us(TIMEOUT_US)),
		&rig->storage));
	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = test_word(1, i);
	must(weir_storage_write(rig->storage, 0, words, sizeof(words)));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = cache_lines, .line_bytes = LINE),
			       &rig->cache));
	if (entries)
		must(weir_share_create(rig->cache, WEIR_OPTIONS(share, .entries = entries)));
	must(weir_writer_open(rig->cache, &rig->storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &rig->writer));
	rig->verdict = alloc(rig, sizeof(struct test_verdict));
}

static void open_rig(struct rig *rig, uint32_t width, uint64_t cache_lines, uint64_t entries)
{
	open_faulty_rig(rig, width, cache_lines, entries, "");
}

static void close_rig(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	weir_storage_close(rig->storage);
	weir_context_close(rig->context);
}

static uint64_t judge(struct rig *rig)
{
	struct test_verdict verdict;

	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("%llu mistakes; at %llu: %#llx instead of %#llx",
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	return weir_load_u64_relaxed_sys(&verdict.good);
}

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

/** struct shape - a run of the kernel test_share */
struct shape {
	uint64_t cache_lines, entries;
	uint32_t rounds, held, change, keep;
};

static uint64_t run_faulty_share(struct rig *rig, uint32_t width, const struct shape *shape,
				 const char *faults)
{
	struct test_share_args args = { .lines = LINES,
					.rounds = shape->rounds,
					.held = shape->held,
					.line_bytes = LINE,
					.change = shape->change,
					.keep = shape->keep };
	uint64_t lanes = 2 * THREADS, copies;

	open_faulty_rig(rig, width, shape->cache_lines, shape->entries, faults);
	args.writer = rig->writer;
	args.buffers = alloc(rig, lanes * args.held * LINE);
	args.events = alloc(rig, lanes * args.held * sizeof(struct weir_event));
	args.copies = alloc(rig, 8);
	args.verdict = rig->verdict;
	must(weir_launch(rig->context, "test_share", 2, THREADS, &args, sizeof(args)));
	assert_int_equal(judge(rig), lanes * args.rounds * args.held);
	must(weir_copy_from_device(rig->context, &copies, args.copies, sizeof(copies)));
	return copies;
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

/* How many blocks @steps are for. */
static uint32_t blocks_of(const struct test_step *steps, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = steps[i].kind / TEST_STEP_BLOCK > most ? steps[i].kind / TEST_STEP_BLOCK : most;
	return most + 1;
}

/* Lanes do @steps with @rig's array. Return: the number of those that went wrong. */
static uint64_t do_steps(struct rig *rig, const struct weir_writer *writer, const struct test_step *steps,
			 size_t count, int *synced)
{
	struct test_steps_args args = {
		.writer = *writer, .count = count, .line_bytes = LINE, .block_lanes = 5
	};
	struct test_verdict verdict;

	args.steps = alloc(rig, count * sizeof(*steps));
	args.buffers = alloc(rig, TEST_HOLDS * LINE + 8);
	args.events = alloc(rig, (TEST_HOLDS + 1) * sizeof(struct weir_event));
	args.iteration = alloc(rig, sizeof(weir_shared_u64));
	args.verdict = rig->verdict;
	must(weir_copy_to_device(rig->context, args.steps, steps, count * sizeof(*steps)));
	must(weir_launch(rig->context, "test_steps", blocks_of(steps, count), 5, &args, sizeof(args)));
	*synced = weir_sync(rig->context);
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), count);
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("step %llu: %#llx instead of %#llx", (unsigned long long)verdict.where,
			 (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
	return weir_load_u64_relaxed_sys(&verdict.bad);
}

/** struct ending - a word of the storage after a flush; value 0: as it was */
struct ending {
	uint64_t line, at, value;
};

static void check_steps(const struct test_step *steps, size_t count, const struct ending *endings,
			size_t ending_count)
{
	for (size_t w = 0; w < test_width_count(); w++) {
		uint64_t words[WORDS];
		struct rig rig;
		int synced;

		open_rig(&rig, test_width(w), 4, 64);
		do_steps(&rig, &rig.writer, steps, count, &synced);
		if (synced)
			fail_msg("%s", weir_last_error());
		must(weir_cache_flush(rig.cache, 1));
		must(weir_storage_read(rig.storage, 0, words, BYTES));
		for (size_t i = 0; i < ending_count; i++) {
			uint64_t word = endings[i].line * LINE / 8 + endings[i].at;

			if (words[word] != (endings[i].value ? endings[i].value : test_word(1, word)))
				fail_msg("word %llu of line %llu is %#llx on storage",
					 (unsigned long long)endings[i].at,
					 (unsigned long long)endings[i].line,
					 (unsigned long long)words[word]);
		}
		close_rig(&rig);
	}
}

#define STEPS(...)                                                                                           \
	((const struct test_step[]){ __VA_ARGS__ }),                                                         \
		sizeof((const struct test_step[]){ __VA_ARGS__ }) / sizeof(struct test_step)
#define ENDINGS(...)                                                                                         \
	((const struct ending[]){ __VA_ARGS__ }),                                                            \
		sizeof((const struct ending[]){ __VA_ARGS__ }) / sizeof(struct ending)

/* Kind, buffer, line, word, value; see enum test_step_kind. */
#define HOLD(buffer, line)                                                                                   \
	{ TEST_STEP_ACQUIRE, buffer, line, 0, 1 /* WEIR_SHARED_OWNER */ },                                   \
		{ TEST_STEP_WAIT, buffer, line, 0, WEIR_OK },                                                \
	{                                                                                                    \
		TEST_STEP_MODIFY, buffer, line, 0, WEIR_OK                                                   \
	}

/* Whatever wrote the line last, whatever reads it next sees it. */
static void test_read_after_write(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 3), { TEST_STEP_STORE, 0, 3, 0, 100 }, /* buffer ... */
			  { TEST_STEP_GET, 0, 3, 0, 100 },               /* ... to element */
			  { TEST_STEP_COPY, 2, 3, 0, WEIR_PATH_SHARE },
			  { TEST_STEP_LOAD, 2, 3, 0, 100 }, /* ... to copy */
			  { TEST_STEP_PUT, 0, 3, 1, 101 },  /* element ... */
			  { TEST_STEP_LOAD, 0, 3, 1, 101 }, /* ... to buffer */
			  { TEST_STEP_ADD, 0, 3, 1, 101 }, { TEST_STEP_GET, 0, 3, 1, 102 },
			  { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK }, /* buffer to cache ... */
			  { TEST_STEP_COPY, 2, 3, 0, WEIR_PATH_CACHE },
			  { TEST_STEP_LOAD, 2, 3, 1, 102 }, /* ... to copy */
			  { TEST_STEP_ACQUIRE, 1, 3, 0, 1 }, { TEST_STEP_WAIT, 1, 3, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 1, 3, 1, 102 }, /* ... to buffer */
			  { TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK }),
		    ENDINGS({ 3, 0, 100 }, { 3, 1, 102 }, { 3, 2, 0 }));
}

/* What was read does not change with what is written later, and what was taken may change. */
static void test_write_after_read(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 31), { TEST_STEP_STORE, 0, 31, 0, 100 },
			  { TEST_STEP_COPY, 2, 31, 0, WEIR_PATH_SHARE }, { TEST_STEP_STORE, 0, 31, 0, 110 },
			  { TEST_STEP_LOAD, 2, 31, 0, 100 }, /* the copy is as it was */
			  { TEST_STEP_STORE, 2, 31, 1, 111 }, { TEST_STEP_WRITE, 2, 31, 0, WEIR_OK },
			  { TEST_STEP_STORE, 2, 31, 1, 112 }, /* its source is ours again */
			  { TEST_STEP_LOAD, 0, 31, 1, 111 }, { TEST_STEP_GET, 0, 31, 1, 111 },
			  { TEST_STEP_IN_USE, 0, 31, 0, 1 }, { TEST_STEP_RELEASE, 0, 31, 0, WEIR_OK },
			  { TEST_STEP_IN_USE, 0, 31, 0, 0 },
			  { TEST_STEP_STORE, 0, 31, 1, 113 }, /* so is the buffer */
			  { TEST_STEP_GET, 0, 31, 1, 111 },
			  { TEST_STEP_COPY, 3, 30, 0, test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT },
			  { TEST_STEP_PUT, 0, 30, 5, 114 },
			  { TEST_STEP_LOAD, 3, 30, 5, test_word(1, 30 * LINE / 8 + 5) }),
		    ENDINGS({ 31, 0, 100 }, { 31, 1, 111 }, { 30, 5, 114 }));
}

/* Of writes by buffer, copy and element the last one counts, on storage, too. */
static void test_write_after_write(void **state)
{
	(void)state;
	check_steps(STEPS(HOLD(0, 8), { TEST_STEP_STORE, 0, 8, 2, 120 },
			  { TEST_STEP_COPY, 2, 8, 0, WEIR_PATH_SHARE }, { TEST_STEP_STORE, 2, 8, 2, 121 },
			  { TEST_STEP_WRITE, 2, 8, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 0, 8, 2, 121 },  /* copy over buffer */
			  { TEST_STEP_PUT, 0, 8, 2, 122 },   /* element over copy */
			  { TEST_STEP_STORE, 0, 8, 3, 123 }, /* buffer over copy */
			  { TEST_STEP_RELEASE, 0, 8, 0, WEIR_OK }, { TEST_STEP_GET, 0, 8, 2, 122 },
			  { TEST_STEP_STORE, 2, 8, 2, 124 }, { TEST_STEP_STORE, 2, 8, 3, 125 },
			  { TEST_STEP_WRITE, 2, 8, 0, WEIR_OK }, /* copy over cache */
			  { TEST_STEP_PUT, 0, 8, 3, 126 },       /* element over copy, in the cache */
			  { TEST_STEP_WRITE, 2, 9, 0, WEIR_OK }, /* over storage, which is not read */
			  { TEST_STEP_GET, 0, 9, 2, 124 }),
		    ENDINGS({ 8, 2, 124 }, { 8, 3, 126 }, { 9, 2, 124 }, { 9, 3, 125 }));
}

/* Lines in every state move to a buffer and back: clean, dirty, evicted meanwhile, and while the set is full.
 */
static void test_lines_move_both_ways(void **state)
{
	(void)state;
	check_steps(STEPS({ TEST_STEP_PUT, 0, 4, 4, 140 }, /* dirty in the cache ... */
			  { TEST_STEP_ACQUIRE, 1, 4, 0, 1 }, { TEST_STEP_WAIT, 1, 4, 0, WEIR_OK },
			  { TEST_STEP_LOAD, 1, 4, 4, 140 }, /* ... in the buffer ... */
			  { TEST_STEP_PUT, 0, 5, 0, 150 }, { TEST_STEP_PUT, 0, 6, 0, 160 },
			  { TEST_STEP_PUT, 0, 7, 0, 170 },
			  { TEST_STEP_PUT, 0, 8, 0, 180 },         /* (all four lines dirty) */
			  { TEST_STEP_RELEASE, 1, 4, 0, WEIR_OK }, /* ... and back, unchanged there */
			  { TEST_STEP_GET, 0, 4, 4, 140 }, { TEST_STEP_GET, 0, 5, 0, 150 },
			  { TEST_STEP_GET, 0, 20, 0, test_word(1, 20 * LINE / 8) },
			  { TEST_STEP_ACQUIRE, 2, 20, 0, 1 }, /* clean in the cache: no command */
			  { TEST_STEP_WAIT, 2, 20, 0, WEIR_OK },
			  { TEST_STEP_ACQUIRE, 3, 20, 0, 2 },       /* a guest of its own */
			  { TEST_STEP_RELEASE, 2, 20, 0, WEIR_OK }, /* the owner goes first */
			  { TEST_STEP_IN_USE, 2, 20, 0, 1 }, { TEST_STEP_MODIFY, 3, 20, 0, WEIR_OK },
			  { TEST_STEP_STORE, 2, 20, 1, 200 },       /* into the owner's memory */
			  { TEST_STEP_RELEASE, 3, 20, 0, WEIR_OK }, /* the guest propagates */
			  { TEST_STEP_IN_USE, 2, 20, 0, 0 }, { TEST_STEP_GET, 0, 20, 1, 200 }),
		    ENDINGS({ 4, 4, 140 }, { 5, 0, 150 }, { 6, 0, 160 }, { 7, 0, 170 }, { 8, 0, 180 },
			    { 20, 1, 200 }));
}

/* Kind, buffer, line, word, value; and which block's lane does it. */
#define BY(block, kind, buffer, line, at, value)                                                             \
	{                                                                                                    \
		TEST_STEP_##kind + (block)*TEST_STEP_BLOCK, buffer, line, at, value                          \
	}

/*
 * What one lane stores into a buffer that it shares another lane finds there, whoever of them owns it: after
 * a store, after a load and after another store to the same word. The owner goes last.
 */
static void test_a_store_is_seen_by_another_lane(void **state)
{
	(void)state;
	if (!test_blocks_together())
		skip();
	check_steps(STEPS(BY(0, ACQUIRE, 0, 3, 0, 1 /* WEIR_SHARED_OWNER */), BY(0, WAIT, 0, 3, 0, WEIR_OK),
			  BY(1, ACQUIRE, 1, 3, 0, 2 /* WEIR_SHARED_GUEST */), BY(1, WAIT, 1, 3, 0, WEIR_OK),
			  BY(1, SEE, 1, 3, 0, test_word(1, 3 * LINE / 8)), BY(0, MODIFY, 0, 3, 0, WEIR_OK),
			  BY(0, SEND, 0, 3, 0, 100), BY(1, SEE, 1, 3, 0, 100), /* owner to guest */
			  BY(1, MODIFY, 1, 3, 0, WEIR_OK), BY(1, SEND, 1, 3, 1, 101),
			  BY(0, SEE, 0, 3, 1, 101),                               /* guest to owner */
			  BY(1, SEND, 1, 3, 0, 102), BY(0, SEE, 0, 3, 0, 102),    /* over the owner's */
			  BY(0, SEND, 0, 3, 1, 103), BY(1, SEE, 1, 3, 1, 103),    /* over the guest's */
			  BY(0, PUT, 0, 3, 127, 104), BY(1, SEE, 1, 3, 127, 104), /* as an element */
			  BY(1, SEND, 1, 3, 126, 105), BY(0, GET, 0, 3, 126, 105),
			  BY(1, RELEASE, 1, 3, 0, WEIR_OK), BY(0, IN_USE, 0, 3, 0, 1),
			  BY(0, SEND, 0, 3, 2, 106), BY(0, RELEASE, 0, 3, 0, WEIR_OK),
			  BY(1, GET, 0, 3, 0, 102), BY(1, GET, 0, 3, 1, 103), BY(1, GET, 0, 3, 2, 106)),
		    ENDINGS({ 3, 0, 102 }, { 3, 1, 103 }, { 3, 2, 106 }, { 3, 126, 105 }, { 3, 127, 104 },
			    { 3, 3, 0 }));
}

/* The owner goes first: guests share its memory, and the last of them brings all changes to the cache. */
static void test_stores_are_seen_after_the_owner_left(void **state)
{
	(void)state;
	if (!test_blocks_together())
		skip();
	check_steps(
		STEPS(BY(0, ACQUIRE, 0, 9, 0, 1), BY(0, WAIT, 0, 9, 0, WEIR_OK),
		      BY(0, MODIFY, 0, 9, 0, WEIR_OK), BY(1, ACQUIRE, 1, 9, 0, 2),
		      BY(1, WAIT, 1, 9, 0, WEIR_OK), BY(0, SEND, 0, 9, 0, 200),
		      BY(0, RELEASE, 0, 9, 0, WEIR_OK), BY(0, IN_USE, 0, 9, 0, 1),
		      BY(1, SEE, 1, 9, 0, 200), /* of the owner that left */
		      BY(1, MODIFY, 1, 9, 0, WEIR_OK), BY(1, SEND, 1, 9, 1, 201), BY(0, ACQUIRE, 2, 9, 0, 2),
		      BY(0, WAIT, 2, 9, 0, WEIR_OK), /* it comes back as a guest */
		      BY(0, SEE, 2, 9, 1, 201), BY(0, MODIFY, 2, 9, 0, WEIR_OK), BY(0, SEND, 2, 9, 1, 202),
		      BY(1, SEE, 1, 9, 1, 202), BY(1, SEND, 1, 9, 2, 203), BY(1, RELEASE, 1, 9, 0, WEIR_OK),
		      BY(0, SEE, 2, 9, 2, 203), BY(0, IN_USE, 0, 9, 0, 1), BY(0, RELEASE, 2, 9, 0, WEIR_OK),
		      BY(0, IN_USE, 0, 9, 0, 0), BY(0, GET, 0, 9, 0, 200), BY(1, GET, 0, 9, 1, 202),
		      BY(1, GET, 0, 9, 2, 203)),
		ENDINGS({ 9, 0, 200 }, { 9, 1, 202 }, { 9, 2, 203 }, { 9, 3, 0 }));
}

/* One step that cannot be, on a storage that may be read-only; what weir_sync() says of it. */
static const struct bad {
	uint32_t read_only;
	struct test_step steps[4];
	const char *says;
} BAD[] = {
	{ 0,
	  { { TEST_STEP_ACQUIRE, 0, LINES, 0, 0 },
	    { TEST_STEP_WAIT, 0, 0, 0, WEIR_E_RANGE },
	    { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK },
	    { TEST_STEP_GET, 0, 0, 0, 0 } },
	  "block 64 of" },
	{ 0,
	  { { TEST_STEP_WRITE, 0, LINES + 5, 0, WEIR_E_RANGE },
	    { TEST_STEP_GET, 0, 0, 0, 0 },
	    { TEST_STEP_IN_USE, 0, 0, 0, 0 },
	    { TEST_STEP_IN_USE, 0, 5, 0, 0 } },
	  "block 74 of" },
	{ 1,
	  { { TEST_STEP_WRITE, 0, 6, 0, WEIR_E_READ_ONLY },
	    { TEST_STEP_GET, 0, 6, 0, 0 },
	    { TEST_STEP_COPY, 0, 6, 0, WEIR_PATH_CACHE },
	    { TEST_STEP_LOAD, 0, 0, 0, 0 } },
	  "block 12 of" },
	{ 1,
	  { { TEST_STEP_ACQUIRE, 0, 7, 0, 1 },
	    { TEST_STEP_WAIT, 0, 0, 0, WEIR_OK },
	    { TEST_STEP_MODIFY, 0, 0, 0, WEIR_E_READ_ONLY },
	    { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK } },
	  "block 14 of" },
};

/* The lanes' view of the array's one storage is read-only from here on. */
static void make_read_only(struct rig *rig, const struct weir_writer *writer)
{
	struct weir_disk disk;

	must(weir_copy_from_device(rig->context, &disk, writer->array.extent.disks, sizeof(disk)));
	disk.flags |= WEIR_DISK_READ_ONLY;
	must(weir_copy_to_device(rig->context, writer->array.extent.disks, &disk, sizeof(disk)));
}

static void test_bad_requests_name_the_block(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		struct weir_storage *storage;
		struct weir_writer writer;
		uint64_t zeros[WORDS] = { 0 };
		struct rig rig;
		int synced;

		open_rig(&rig, test_width(0), 64, 64);
		must(test_storage_open(rig.context, "virt:32K?block=512",
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(TIMEOUT_US)),
				       &storage));
		must(weir_storage_write(storage, 0, zeros, sizeof(zeros)));
		/* as if it could be written: only the device stands in the way */
		memset(&writer, 0, sizeof(writer));
		must(weir_array_open(rig.cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				     &writer.array));
		if (BAD[i].read_only)
			make_read_only(&rig, &writer);
		do_steps(&rig, &writer, BAD[i].steps, 4, &synced);
		assert_int_equal(synced, -EIO);
		if (!strstr(weir_last_error(), BAD[i].says))
			fail_msg("%s", weir_last_error());
		must(weir_cache_destroy(rig.cache));
		rig.cache = NULL;
		weir_storage_close(storage);
		close_rig(&rig);
	}
}

enum { RETRIES = 3 };

/* How the line of a failed command is asked for. What goes before is the hold whose command it is; nobody
 * else waits for that. */
static const struct {
	struct test_step steps[6];
	size_t count;
	uint64_t entries;
} WAYS[] = {
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_GET, 0, 3, 5, 0 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_COPY, 1, 3, 0, WEIR_PATH_SHARE },
	    { TEST_STEP_LOAD, 1, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_PUT, 0, 3, 4, 1 },
	    { TEST_STEP_GET, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_ACQUIRE, 1, 3, 0, 2 },
	    { TEST_STEP_WAIT, 1, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 1, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK } },
	  6,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_POLL, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 3 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  0 },
};

static struct weir_stats failures_of(struct rig *rig)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storage, &stats));
	return stats;
}

/* A read that the controller refuses for now is tried again by whoever wants what is to be in a shared
 * buffer. */
static void test_what_fails_is_tried_again(void **state)
{
	(void)state;
	for (size_t way = 0; way < sizeof(WAYS) / sizeof(*WAYS); way++)
		for (unsigned times = 1; times <= RETRIES; times++) {
			struct test_step steps[6];
			char faults[96];
			struct rig rig;
			int synced;

			memcpy(steps, WAYS[way].steps, sizeof(steps));
			for (size_t i = 0; i < WAYS[way].count; i++)
				if (!steps[i].value && steps[i].at == 5)
					steps[i].value = test_word(1, 3 * LINE / 8 + 5);
			snprintf(faults, sizeof(faults),
				 "&retries=%d&fault=status:op=read:code=0x82:count=%u", RETRIES, times);
			open_faulty_rig(&rig, test_width(way), 4, WAYS[way].entries, faults);
			do_steps(&rig, &rig.writer, steps, WAYS[way].count, &synced);
			if (synced)
				fail_msg("way %zu: %s", way, weir_last_error());
			assert_int_equal(failures_of(&rig).failed, times);
			assert_int_equal(failures_of(&rig).retried, times);
			close_rig(&rig);
		}
}

/* No more often than the storage says, whoever waits; then everybody is told. */
static void test_it_is_tried_no_more_often(void **state)
{
	static const struct test_step steps[] = {
		{ TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
		{ TEST_STEP_ACQUIRE, 1, 3, 0, 2 },
		{ TEST_STEP_WAIT, 1, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_WAIT, 0, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_COPY, 2, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK },
	};
	char faults[96];
	struct rig rig;
	int synced;

	(void)state;
	snprintf(faults, sizeof(faults), "&retries=%d&fault=status:op=read:code=0x82", RETRIES);
	open_faulty_rig(&rig, test_width(0), 4, 64, faults);
	do_steps(&rig, &rig.writer, steps, sizeof(steps) / sizeof(*steps), &synced);
	assert_int_equal(synced, -EIO);
	assert_int_equal(failures_of(&rig).failed, 1 + RETRIES);
	assert_int_equal(failures_of(&rig).retried, RETRIES);
	close_rig(&rig);
}

/* Many lanes, many lines, in the table, in the cache and on their way. */
static void test_many_lanes_try_again(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig rig;

		(void)run_faulty_share(&rig, test_width(w), &(struct shape){ 8, 64, 3, 2, 1, 0 },
				       "&retries=20&fault=status:op=read:code=0x82:every=3:count=40");
		assert_true(failures_of(&rig).failed > 1);
		assert_int_equal(failures_of(&rig).failed, failures_of(&rig).retried);
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
		cmocka_unit_test(test_read_after_write),
		cmocka_unit_test(test_write_after_read),
		cmocka_unit_test(test_write_after_write),
		cmocka_unit_test(test_lines_move_both_ways),
		cmocka_unit_test(test_a_store_is_seen_by_another_lane),
		cmocka_unit_test(test_stores_are_seen_after_the_owner_left),
		cmocka_unit_test(test_bad_requests_name_the_block),
		cmocka_unit_test(test_what_fails_is_tried_again),
		cmocka_unit_test(test_it_is_tried_no_more_often),
		cmocka_unit_test(test_many_lanes_try_again),
		cmocka_unit_test(test_a_kernel_built_without_it_is_refused),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
