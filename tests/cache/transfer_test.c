/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers: lanes that want one line share one command; writes wait for no room; storage to storage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/transfer.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "transfer.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { LINE = 512, LINES = 512, BYTES = LINE * LINES, MOST_LANES = 64 };

/** struct rig - a storage of known words, one to write to, and a cache over both */
struct rig {
	struct weir_context *context;
	struct weir_storage *source, *target;
	struct weir_cache *cache;
	struct test_transfer_args args;
	uint64_t words[BYTES / 8];
};

static void open_rig(struct rig *rig, uint32_t width, uint64_t lines, uint32_t depth, const char *fault)
{
	char uri[128];

	memset(rig, 0, sizeof(*rig));
	for (size_t i = 0; i < BYTES / 8; i++)
		rig->words[i] = test_word(1, i);
	must(weir_context_open(
		test_context_name(),
		WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width, .service_waves = test_service()),
		&rig->context));
	snprintf(uri, sizeof(uri), "virt:%d?block=512&lat_us=200",
		 BYTES); /* late enough for others to ask meanwhile */
	must(weir_storage_open(rig->context, uri, WEIR_OPTIONS(storage, .queues = 2, .depth = depth),
			       &rig->source));
	must(weir_storage_write(rig->source, 0, rig->words, BYTES));
	if (*fault) { /* the same words behind a controller that fails */
		must(weir_storage_close(rig->source));
		snprintf(uri, sizeof(uri), "virt:%d?block=512&fault=%s", BYTES, fault);
		must(weir_storage_open(rig->context, uri, WEIR_OPTIONS(storage, .queues = 2, .depth = depth),
				       &rig->source));
	}
	must(weir_storage_open(rig->context, "virt:256K?block=512",
			       WEIR_OPTIONS(storage, .queues = 2, .depth = depth), &rig->target));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = lines, .line_bytes = LINE),
			       &rig->cache));
	must(weir_array_open(rig->cache, &rig->source, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &rig->args.source));
	must(weir_writer_open(rig->cache, &rig->target, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &rig->args.target));
	must(weir_alloc(rig->context, sizeof(struct test_verdict), &rig->args.verdict));
}

/* Return: how many lanes or requests counted themselves as good. */
static uint64_t launch(struct rig *rig, const char *kernel, uint32_t lanes, uint32_t requests)
{
	struct test_verdict verdict;

	rig->args.requests = requests;
	must(weir_alloc(rig->context, (uint64_t)lanes * requests * sizeof(struct weir_transfer),
			&rig->args.transfers));
	must(weir_alloc(rig->context, (uint64_t)lanes * requests * LINE, &rig->args.buffers));
	must(weir_launch(rig->context, kernel, 1, lanes, &rig->args, sizeof(rig->args)));
	(void)weir_sync(rig->context); /* what lanes expect to fail is recorded there, too */
	must(weir_copy_from_device(rig->context, &verdict, rig->args.verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("%llu mistakes; at %llu: %#llx instead of %#llx",
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	return weir_load_u64_relaxed_sys(&verdict.good);
}

static uint64_t commands_of(struct weir_storage *storage)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(storage, &stats));
	return stats.commands;
}

/* 64 lanes, one line: one command, whatever the waves. */
static void test_one_line_one_command(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig *rig = malloc(sizeof(*rig));
		uint64_t before;

		open_rig(rig, test_width(w), 64, 64, "");
		rig->args.same = 1;
		before = commands_of(rig->source);
		assert_int_equal(launch(rig, "test_transfer_read", MOST_LANES, 1), MOST_LANES);
		assert_int_equal(commands_of(rig->source) - before, 1);
		assert_int_equal(launch(rig, "test_transfer_read", MOST_LANES, 1),
				 2 * MOST_LANES); /* it is there */
		assert_int_equal(commands_of(rig->source) - before, 1);
		must(weir_context_close(rig->context));
		free(rig);
	}
}

/* Many lines at once, of a cache that has a few only, and of queues with few slots: every word. */
static void test_many_lines(void **state)
{
	static const struct {
		uint64_t lines;
		uint32_t depth, requests;
	} shapes[] = { { 4, 2, 3 }, { 8, 64, 7 }, { 256, 8, 5 } };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < 3; i++)
			for (uint32_t same = 0; same < 2; same++) {
				struct rig *rig = malloc(sizeof(*rig));

				open_rig(rig, test_width(w), shapes[i].lines, shapes[i].depth, "");
				rig->args.same = same;
				assert_int_equal(
					launch(rig, "test_transfer_read", MOST_LANES, shapes[i].requests),
					MOST_LANES * shapes[i].requests);
				must(weir_context_close(rig->context));
				free(rig);
			}
}

static void check_target(struct rig *rig, uint64_t lines)
{
	unsigned char *found = malloc(BYTES);

	must(weir_cache_flush(rig->cache, 0));
	must(weir_storage_read(rig->target, 0, found, BYTES));
	assert_memory_equal(found, rig->words, lines * LINE);
	free(found);
}

/* More lines than the cache has: a call that finds no room returns, and a later one gets there. */
static void test_writes(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig *rig = malloc(sizeof(*rig));

		open_rig(rig, test_width(w), w % 2 ? 8 : 64, 8, "");
		assert_int_equal(launch(rig, "test_transfer_write", 32, 6), 32);
		check_target(rig, 32 * 6);
		must(weir_context_close(rig->context));
		free(rig);
	}
}

/* Into a cache with room for all: the write to storage begins at once, without a flush. */
static void test_writes_begin(void **state)
{
	struct rig *rig = malloc(sizeof(*rig));
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	(void)state;
	open_rig(rig, 1, 256, 64, "");
	assert_int_equal(launch(rig, "test_transfer_write", 8, 4), 8);
	must(weir_cache_stats(rig->cache, &stats));
	assert_int_equal(stats.writebacks, 32);
	check_target(rig, 32);
	must(weir_context_close(rig->context));
	free(rig);
}

static void test_storage_to_storage(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig *rig = malloc(sizeof(*rig));

		open_rig(rig, test_width(w), w % 2 ? 8 : 64, 8, "");
		assert_int_equal(launch(rig, "test_transfer_lines", 32, 9), 32);
		check_target(rig, 32 * 9);
		must(weir_context_close(rig->context));
		free(rig);
	}
}

/* What cannot be read is not written, nor what would have come behind it; other lanes' lines are. */
static void test_copies_end_with_an_error(void **state)
{
	enum { COPIERS = 16, EACH = 4 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig *rig = malloc(sizeof(*rig));
		unsigned char *found = malloc(BYTES);

		open_rig(rig, test_width(w), 64, 8, "status:code=0x281:op=read:lba=0:dnr=1");
		must(weir_storage_write(rig->source, 0, rig->words, BYTES));
		assert_int_equal(launch(rig, "test_transfer_lines_failed", COPIERS, EACH), COPIERS);
		memset(rig->words, 0, EACH * LINE);
		must(weir_cache_flush(rig->cache, 0));
		must(weir_storage_read(rig->target, 0, found, BYTES));
		assert_memory_equal(found, rig->words, COPIERS * EACH * LINE);
		free(found);
		(void)weir_context_close(rig->context);
		free(rig);
	}
}

/* Three lines and a half, to where there is room for four: behind the end comes nothing of the third. */
static void test_a_short_last_line(void **state)
{
	enum { SHORT = 7 * LINE, WHOLE = 8 * LINE };
	struct rig *rig = calloc(1, sizeof(*rig));
	unsigned char found[WHOLE];

	(void)state;
	for (size_t i = 0; i < SHORT / 8; i++)
		rig->words[i] = test_word(1, i);
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .service_waves = test_service()),
			       &rig->context));
	must(weir_storage_open(rig->context, "virt:3584?block=512", NULL, &rig->source));
	must(weir_storage_write(rig->source, 0, rig->words, SHORT));
	must(weir_storage_open(rig->context, "virt:4096?block=512", NULL, &rig->target));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = 8, .line_bytes = 2 * LINE),
			       &rig->cache));
	must(weir_array_open(rig->cache, &rig->source, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &rig->args.source));
	must(weir_writer_open(rig->cache, &rig->target, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &rig->args.target));
	must(weir_alloc(rig->context, sizeof(struct test_verdict), &rig->args.verdict));
	rig->args.same = 1;
	(void)launch(rig, "test_transfer_lines", 1, 4);
	must(weir_cache_flush(rig->cache, 0));
	must(weir_storage_read(rig->target, 0, found, sizeof(found)));
	assert_memory_equal(found, rig->words, WHOLE); /* zeros at the end */
	must(weir_context_close(rig->context));
	free(rig);
}

static void test_refusals(void **state)
{
	struct rig *rig = malloc(sizeof(*rig));

	(void)state;
	open_rig(rig, 1, 64, 8, "");
	assert_int_equal(launch(rig, "test_transfer_refused", 1, 2), 1);
	must(weir_context_close(rig->context));
	open_rig(rig, 1, 64, 8, "status:code=0x281:op=read:lba=0:dnr=1");
	for (uint32_t requests = 1; requests <= 3; requests++)
		assert_int_equal(launch(rig, "test_transfer_failed", 16, requests), 16 * requests);
	(void)weir_context_close(rig->context);
	free(rig);
}

static uint64_t misses_of(struct weir_cache *cache)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(cache, &stats));
	return stats.misses;
}

/* What is asked of a dead storage takes no line of the cache, which others share. */
static void test_a_dead_storage_takes_no_line(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig *rig = malloc(sizeof(*rig));
		uint64_t misses;

		open_rig(rig, test_width(w), 64, 8, "fatal:op=read");
		assert_int_equal(launch(rig, "test_transfer_dead", 1, 1), 1);
		misses = misses_of(rig->cache);
		assert_int_equal(launch(rig, "test_transfer_dead", 16, 1), 1 + 16);
		assert_int_equal(misses_of(rig->cache), misses);
		(void)weir_context_close(rig->context);
		free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_line_one_command),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_writes_begin),
		cmocka_unit_test(test_storage_to_storage),
		cmocka_unit_test(test_copies_end_with_an_error),
		cmocka_unit_test(test_a_short_last_line),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_dead_storage_takes_no_line),
	};

	return test_begins() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
