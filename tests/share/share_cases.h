/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_cases.h: cases of share_test.c that lie in other files.
 *
 * Owns: a storage behind a cache with a Share Table, and what lanes do with its lines.
 */
#ifndef WEIR_TESTS_SHARE_CASES_H
#define WEIR_TESTS_SHARE_CASES_H

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

/** struct rig - a storage, a cache over it, with a Share Table, and an array that is written to */
struct rig {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct weir_writer writer;
	uint64_t verdict;
};

static inline uint64_t alloc(struct rig *rig, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(rig->context, bytes, &address));
	return address;
}

/* @faults: what the storage does wrong, as part of its URI. */
static inline void open_faulty_rig(struct rig *rig, uint32_t width, uint64_t cache_lines, uint64_t entries,
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

static inline void open_rig(struct rig *rig, uint32_t width, uint64_t cache_lines, uint64_t entries)
{
	open_faulty_rig(rig, width, cache_lines, entries, "");
}

static inline void close_rig(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	weir_storage_close(rig->storage);
	weir_context_close(rig->context);
}

static inline uint64_t judge(struct rig *rig)
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

/** struct shape - a run of the kernel test_share */
struct shape {
	uint64_t cache_lines, entries;
	uint32_t rounds, held, change, keep;
};

static inline uint64_t run_faulty_share(struct rig *rig, uint32_t width, const struct shape *shape,
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

/* How many blocks @steps are for. */
static inline uint32_t blocks_of(const struct test_step *steps, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = steps[i].kind / TEST_STEP_BLOCK > most ? steps[i].kind / TEST_STEP_BLOCK : most;
	return most + 1;
}

/* Lanes do @steps with @rig's array. Return: the number of those that went wrong. */
static inline uint64_t do_steps(struct rig *rig, const struct weir_writer *writer,
				const struct test_step *steps, size_t count, int *synced)
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

/* The cases of share_hazards.c. */
void test_read_after_write(void **state);
void test_write_after_read(void **state);
void test_write_after_write(void **state);
void test_lines_move_both_ways(void **state);
void test_a_store_is_seen_by_another_lane(void **state);
void test_stores_are_seen_after_the_owner_left(void **state);

/* The cases of share_errors.c. */
void test_bad_requests_name_the_block(void **state);
void test_what_fails_is_tried_again(void **state);
void test_it_is_tried_no_more_often(void **state);
void test_each_line_has_its_own_tries(void **state);
void test_many_lanes_try_again(void **state);
void test_closing_names_what_is_lost(void **state);
void test_a_buffer_outlives_its_storage(void **state);
void test_a_writer_that_is_last_leaves_no_hold(void **state);
void test_no_table_goes_under_commands(void **state);
void test_a_prefetch_passes_over_buffers(void **state);
void test_a_kernel_without_the_policy(void **state);
void test_a_kernel_without_a_tier(void **state);

#endif
