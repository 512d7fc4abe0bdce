/* SPDX-License-Identifier: BSD-3-Clause */
/* Several events at once, prefetches, and copies of lines into buffers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "async.h"
#include "../rig/context.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { MOST_DISKS = 2, BLOCK = 512, BLOCKS = 256, TIMEOUT_US = 30000000, THREADS = 37, STRIPE = 4096 };

/** struct rig - a context, storages, and a cache over them */
struct rig {
	struct weir_context *context;
	struct weir_storage *storages[MOST_DISKS];
	struct weir_cache *cache;
	unsigned disks;
	uint64_t bytes, verdict;
};

static uint64_t alloc(struct rig *rig, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(rig->context, bytes, &address));
	return address;
}

static void open_rig(struct rig *rig, uint32_t width, uint32_t depth, unsigned disks, const char *uri)
{
	memset(rig, 0, sizeof(*rig));
	rig->disks = disks;
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = width),
			       &rig->context));
	for (unsigned i = 0; i < disks; i++)
		must(test_storage_open(rig->context, uri,
				       WEIR_OPTIONS(storage, .queues = 2, .depth = depth,
						    .timeout_us = test_patient_us(TIMEOUT_US)),
				       &rig->storages[i]));
	rig->verdict = alloc(rig, sizeof(struct test_verdict));
}

static void close_rig(struct rig *rig)
{
	weir_cache_destroy(rig->cache);
	for (unsigned i = rig->disks; i > 0; i--)
		weir_storage_close(rig->storages[i - 1]);
	weir_context_close(rig->context);
}

/* A cache of @lines lines, and an array of words with test_word(1, w) in them. */
static void open_array(struct rig *rig, uint64_t lines, uint32_t line_bytes, uint64_t bytes_each,
		       struct weir_array *array)
{
	uint64_t unit = rig->disks == 1 ? bytes_each : STRIPE;
	uint64_t *words = malloc(unit);

	rig->bytes = bytes_each * rig->disks;
	for (uint64_t at = 0; at < rig->bytes; at += unit) {
		for (uint64_t i = 0; i < unit / 8; i++)
			words[i] = test_word(1, at / 8 + i);
		must(weir_storage_write(rig->storages[at / unit % rig->disks], at / unit / rig->disks * unit,
					words, unit));
	}
	free(words);
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = lines, .line_bytes = line_bytes),
			       &rig->cache));
	must(weir_array_open(rig->cache, rig->storages, rig->disks,
			     WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = STRIPE), array));
}

static uint64_t judge(struct rig *rig)
{
	struct test_verdict verdict, none;

	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("%llu mistakes; at %llu: %#llx instead of %#llx",
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	memset(&none, 0, sizeof(none));
	must(weir_copy_to_device(rig->context, rig->verdict, &none, sizeof(none)));
	return weir_load_u64_relaxed_sys(&verdict.good);
}

static void fill_blocks(struct rig *rig)
{
	uint32_t *words = malloc(BLOCKS * BLOCK);

	for (uint32_t i = 0; i < BLOCKS * BLOCK / 4; i++)
		words[i] = test_block_word(i / (BLOCK / 4), 1, i % (BLOCK / 4));
	must(weir_storage_write(rig->storages[0], 0, words, BLOCKS * BLOCK));
	free(words);
}

static void run_waits(uint32_t width, uint32_t depth, uint32_t kind)
{
	struct test_waits_args args = { .kind = kind, .outstanding = 5, .blocks = BLOCKS };
	uint64_t requests = 2 * THREADS * args.outstanding;
	struct rig rig;

	open_rig(&rig, width, depth, 1, "virt:128K?block=512");
	fill_blocks(&rig);
	must(weir_storage_disk(rig.storages[0], &args.disk));
	args.buffers = alloc(&rig, requests * BLOCK);
	args.events = alloc(&rig, requests * sizeof(struct weir_event));
	args.verdict = rig.verdict;
	must(weir_launch(rig.context, "test_waits", 2, THREADS, &args, sizeof(args)));
	assert_int_equal(judge(&rig), requests);
	close_rig(&rig);
}

/* More requests than slots, from every lane, before it waits for the first: at depth 2, too. */
static void test_every_way_to_wait(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t depth = 2; depth <= 32; depth *= 4)
			for (uint32_t kind = 0; kind < TEST_WAIT_KINDS; kind++)
				run_waits(test_width(w), depth, kind);
}

static struct weir_cache_stats stats_of(struct rig *rig)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(rig->cache, &stats));
	return stats;
}

static uint64_t prefetch(struct rig *rig, struct test_prefetch_args *args, uint32_t lanes)
{
	uint64_t started, none = 0;

	must(weir_copy_to_device(rig->context, args->started, &none, sizeof(none)));
	must(weir_launch(rig->context, "test_prefetch", 1, lanes, args, sizeof(*args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &started, args->started, sizeof(started)));
	return started;
}

/* Lanes read everything: what was fetched ahead must be right, and is not fetched again. */
static void read_all(struct rig *rig, const struct weir_array *array)
{
	struct test_array_args args = { .array = { *array },
					.seed = { 1 },
					.array_count = 1,
					.kind = TEST_READ_SEQUENTIAL,
					.verdict = rig->verdict };

	args.reads = array->count / 64 + 1;
	must(weir_launch(rig->context, "test_array", 1, 64, &args, sizeof(args)));
	assert_int_equal(judge(rig), 64 * args.reads);
}

/* Ranges and lists; what they leave out for want of a slot, a second and third call brings. */
static void test_prefetched_lines_are_hits(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t kind = 0; kind < 2; kind++) {
			struct test_prefetch_args args = { .each = 512 };
			uint64_t indices[16 * 8], sum = 0;
			struct rig rig;

			open_rig(&rig, test_width(w), 8, 1, "virt:64K?block=512");
			open_array(&rig, 256, 512, 65536, &args.array);
			args.started = alloc(&rig, 8);
			for (uint32_t i = 0; i < 128; i++) /* each in a line of its own, one past the end */
				indices[i] = (uint64_t)(i * 37 % 129) * 64 + i % 64;
			if (kind) {
				args.list = alloc(&rig, sizeof(indices));
				args.each = 8;
				must(weir_copy_to_device(rig.context, args.list, indices, sizeof(indices)));
			}
			/* It gives up where queues stay full, as they do while a service has no core to run
			 * on. */
			for (uint32_t i = 0; i < 5000 && sum < 128 - kind; i++) {
				sum += prefetch(&rig, &args, kind ? 16 : 17);
				if (i > 10)
					usleep(2000);
			}
			assert_int_equal(stats_of(&rig).misses, sum);
			assert_int_equal(sum, 128 - kind); /* one line is not in the list */
			read_all(&rig, &args.array);
			assert_int_equal(stats_of(&rig).misses, 128);
			assert_int_equal(prefetch(&rig, &args, 17 - kind), 0);
			close_rig(&rig);
		}
}

/* Elements that lie across lines: up to the line with the last byte of the last one. */
static void test_a_prefetch_up_to_the_last_byte(void **state)
{
	static const struct {
		uint64_t elements, lines; /* of 24 bytes, of 512 */
	} cases[] = { { 21, 1 }, { 22, 1 }, { 42, 0 }, { 43, 1 }, { 64, 0 }, { 65, 1 } };
	struct test_prefetch_args args = { .each = 0 };
	struct rig rig;

	(void)state;
	open_rig(&rig, test_width(0), 8, 1, "virt:64K?block=512");
	open_array(&rig, 256, 512, 65536, &args.array);
	must(weir_array_open(rig.cache, rig.storages, 1, WEIR_OPTIONS(array, .element_bytes = 24),
			     &args.array));
	args.started = alloc(&rig, 8);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) { /* each goes on where the last ended */
		args.each = cases[i].elements;
		assert_int_equal(prefetch(&rig, &args, 1), cases[i].lines);
	}
	close_rig(&rig);
}

/* A cache of 4 lines: a prefetch of 128 neither waits for anybody nor leaves a line pinned. */
static void test_a_prefetch_larger_than_the_cache(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_prefetch_args args = { .each = 8192 };
		struct rig rig;

		open_rig(&rig, test_width(w), 2, 1, "virt:64K?block=512");
		open_array(&rig, 4, 512, 65536, &args.array);
		args.started = alloc(&rig, 8);
		assert_true(prefetch(&rig, &args, 33) > 0);
		read_all(&rig, &args.array);
		close_rig(&rig);
	}
}

/* Does the memory at @address belong to the context still? */
static bool is_there(struct rig *rig, uint64_t address)
{
	uint64_t word;

	return weir_copy_from_device(rig->context, &word, address, sizeof(word)) == 0;
}

/* A storage of which no read ends, by no timeout either; one of a target's is not told of those. */
static const char *never_read(void)
{
	return getenv("WEIR_TEST_NETWORK")
		       ? "virt:64K?block=512&fault=late:op=read:us=1000000000"
		       : "virt:64K?block=512&timeout_ms=0&fault=late:op=read:us=1000000000";
}

/* What was fetched ahead is under way, and no lane waits for it: the lines stay when their cache goes. */
static void test_a_cache_that_goes_before_its_commands(void **state)
{
	(void)state;
	for (uint32_t fetches = 0; fetches < 2; fetches++) {
		struct test_prefetch_args args = { .each = 512 };
		struct weir_lines lines;
		struct rig rig;

		open_rig(&rig, 1, 32, 1, never_read());
		open_array(&rig, 64, 512, 65536, &args.array);
		args.started = alloc(&rig, 8);
		must(weir_copy_from_device(rig.context, &lines, args.array.lines, sizeof(lines)));
		if (fetches)
			assert_int_equal(prefetch(&rig, &args, 1), 8);
		must(weir_cache_destroy(rig.cache));
		rig.cache = NULL;
		assert_int_equal(is_there(&rig, lines.words), fetches);
		assert_int_equal(is_there(&rig, lines.policies), fetches);
		assert_int_equal(is_there(&rig, lines.data), fetches);
		close_rig(&rig);
	}
}

static void run_copies(uint32_t width, uint32_t depth, unsigned disks, uint64_t cache_lines, bool resident)
{
	struct test_copies_args args = { .seed = 1, .outstanding = 4, .line_bytes = 1024, .salt = width };
	uint64_t requests = 2 * THREADS * args.outstanding;
	struct rig rig;

	open_rig(&rig, width, depth, disks, disks == 1 ? "virt:65024?block=512" : "virt:64K?block=512");
	open_array(&rig, cache_lines, (uint32_t)args.line_bytes, disks == 1 ? 65024 : 65536, &args.array);
	args.lines = (rig.bytes + args.line_bytes - 1) / args.line_bytes;
	args.tail_bytes = rig.bytes - (args.lines - 1) * args.line_bytes;
	args.buffers = alloc(&rig, requests * args.line_bytes);
	args.events = alloc(&rig, requests * sizeof(struct weir_event));
	args.verdict = rig.verdict;
	if (resident)
		read_all(&rig, &args.array);
	args.path = resident ? WEIR_PATH_CACHE : test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	for (uint32_t i = 0; i < 2; i++) {
		must(weir_launch(rig.context, "test_copies", 2, THREADS, &args, sizeof(args)));
		assert_int_equal(judge(&rig), requests);
	}
	assert_int_equal(stats_of(&rig).misses, resident ? args.lines : 0);
	close_rig(&rig);
}

static void test_copies_from_storage_and_cache(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint32_t depth = 2; depth <= 8; depth *= 4)
			for (unsigned disks = 1; disks <= 2; disks++) {
				run_copies(test_width(w), depth, disks, 4, false);
				run_copies(test_width(w), depth, disks, 128, true);
			}
}

static void test_bad_copies_are_refused_by_their_block(void **state)
{
	static const struct {
		uint64_t line, buffer;
		uint32_t status;
		const char *says;
	} bad[] = {
		{ 16, 0, WEIR_E_RANGE, "block 128 " },
		{ (uint64_t)1 << 39, 0, WEIR_E_RANGE, "past the end" },
		{ 3, 2, WEIR_E_ALIGNMENT, "block 24 " },
		{ 15, 4, WEIR_OK, NULL },
	};

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct test_copy_args args = { .line = bad[i].line };
			uint32_t statuses[2];
			struct rig rig;

			open_rig(&rig, test_width(w), 4, 1, "virt:64K?block=512");
			open_array(&rig, 4, 4096, 65536, &args.array);
			args.buffer = alloc(&rig, 8192) + bad[i].buffer;
			args.event = alloc(&rig, 8);
			args.statuses = alloc(&rig, sizeof(statuses));
			must(weir_launch(rig.context, "test_copy", 1, 5, &args, sizeof(args)));
			assert_int_equal(weir_sync(rig.context), bad[i].says ? -EIO : 0);
			if (bad[i].says)
				assert_non_null(strstr(weir_last_error(), bad[i].says));
			must(weir_copy_from_device(rig.context, statuses, args.statuses, sizeof(statuses)));
			assert_int_equal(statuses[0], bad[i].status);
			assert_int_equal(statuses[1], bad[i].status);
			close_rig(&rig);
		}
}

/* A copy that the cache cannot take is over, and its event says so. */
static void test_copies_to_a_dead_storage(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_copy_out_args args = { .statuses = 0 };
		struct weir_array array;
		uint32_t statuses[3];
		struct rig rig;

		open_rig(&rig, test_width(w), 4, 1, "virt:64K?block=512&fault=fatal:op=read");
		open_array(&rig, 4, 4096, 65536, &array);
		must(weir_writer_open(rig.cache, rig.storages, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				      &args.writer));
		args.buffer = alloc(&rig, 4096);
		args.event = alloc(&rig, 8);
		args.statuses = alloc(&rig, sizeof(statuses));
		must(weir_launch(rig.context, "test_copy_out", 1, 5, &args, sizeof(args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		must(weir_copy_from_device(rig.context, statuses, args.statuses, sizeof(statuses)));
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(statuses[i], WEIR_E_DEVICE_DEAD);
		close_rig(&rig);
	}
}

/* The lanes of a wave wait for two storages, and none of them stops counting as one that waits: all queue
 * pairs of both are helped. */
static void test_every_storage_is_helped(void **state)
{
	(void)state;
	for (size_t w = 0; w < 2 * test_width_count(); w++) {
		struct test_help_args args = { .iterations = 1 << 16, .queue = w % 2 };
		uint32_t lanes = test_lanes(16);
		struct rig rig;

		open_rig(&rig, test_width(w / 2), 32, 2, "virt:64K?block=512");
		for (unsigned i = 0; i < 2; i++)
			must(weir_storage_disk(rig.storages[i], &args.disks[i]));
		args.buffers = alloc(&rig, (uint64_t)lanes * BLOCK);
		args.events = alloc(&rig, lanes * sizeof(struct weir_event));
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_help", 1, lanes, &args, sizeof(args)));
		assert_int_equal(judge(&rig), lanes);
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_way_to_wait),
		cmocka_unit_test(test_prefetched_lines_are_hits),
		cmocka_unit_test(test_a_prefetch_up_to_the_last_byte),
		cmocka_unit_test(test_a_prefetch_larger_than_the_cache),
		cmocka_unit_test(test_a_cache_that_goes_before_its_commands),
		cmocka_unit_test(test_copies_from_storage_and_cache),
		cmocka_unit_test(test_bad_copies_are_refused_by_their_block),
		cmocka_unit_test(test_copies_to_a_dead_storage),
		cmocka_unit_test(test_every_storage_is_helped),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
