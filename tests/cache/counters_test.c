/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters_test.c: what lanes count is told under its own name, all 64 bits of it. The test writes the
 * counters in lanes' place, each another number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/cache.h"
#include "device/context.h"

enum { QUEUES = 3, DEPTH = 16, TRANSFER = 32 << 10 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_context *context;

static int open_context(void **state)
{
	(void)state;
	return weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context);
}

static int close_context(void **state)
{
	(void)state;
	return weir_context_close(context);
}

/* Number @index of a counter: none is the sum of others in 32 bits. */
static uint64_t number(unsigned index)
{
	return ((uint64_t)(index + 1) << 36) + (1u << index);
}

static void put(weir_shared_u64 *counter, unsigned index)
{
	weir_store_u64_relaxed_sys(counter, number(index));
}

#define is(value, index) assert_true((value) == number(index))

static void test_counters_of_a_cache(void **state)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	struct weir_cache *plain, *cache;
	struct weir_lines *lines;
	struct weir_tier *tier;
	uint64_t bytes;

	(void)state;
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 20, .line_bytes = 512), &plain));
	must(weir_cache_stats(plain, &stats));
	bytes = stats.bytes;
	assert_true(bytes == sizeof(struct weir_lines) + 5 * (4 * 512 + sizeof(struct weir_set) +
							      sizeof(struct weir_set_policy)));
	assert_int_equal(stats.tier_lines, 0);
	must(weir_cache_create(
		context,
		WEIR_OPTIONS(cache, .lines = 20, .line_bytes = 512, .tier_bytes = (uint64_t)12 * 512),
		&cache));
	lines = weir_at(cache->lines, struct weir_lines, 0);
	tier = weir_at(cache->tier, struct weir_tier, 0);
	put(&lines->misses, 0);
	put(&lines->evictions, 1);
	put(&lines->retracted, 2);
	put(&lines->writebacks, 3);
	put(&lines->write_errors, 4);
	put(&tier->hits, 5);
	put(&tier->stored, 6);
	put(&tier->kept, 7);
	put(&tier->dropped, 8);
	memset((char *)&stats + sizeof(stats.size), 0x55, sizeof(stats) - sizeof(stats.size));
	must(weir_cache_stats(cache, &stats));
	is(stats.misses, 0);
	is(stats.evictions, 1);
	is(stats.retracted, 2);
	is(stats.writebacks, 3);
	is(stats.write_errors, 4);
	is(stats.tier_hits, 5);
	is(stats.tier_stored, 6);
	is(stats.tier_kept, 7);
	is(stats.tier_dropped, 8);
	assert_int_equal(stats.lines, 20);
	assert_int_equal(stats.line_bytes, 512);
	assert_int_equal(stats.dirty, 0);
	assert_int_equal(stats.tier_lines, 12);
	assert_true(stats.bytes == bytes + sizeof(struct weir_tier) + 3 * sizeof(struct weir_set));
	must(weir_cache_stats(plain, &stats)); /* of each cache its own */
	assert_true(stats.misses == 0 && stats.tier_hits == 0);
	must(weir_cache_destroy(cache));
	must(weir_cache_destroy(plain));
}

static void test_counters_of_a_share_table(void **state)
{
	struct weir_share_stats stats = { .size = sizeof(stats) };
	struct weir_cache *cache;
	struct weir_share *share;

	(void)state;
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4), &cache));
	must(weir_share_create(cache, WEIR_OPTIONS(share, .entries = 9)));
	share = weir_at(cache->share, struct weir_share, 0);
	put(&share->registered, 0);
	put(&share->joined, 1);
	put(&share->unshared, 2);
	put(&share->declined, 3);
	put(&share->propagated, 4);
	must(weir_share_stats(cache, &stats));
	is(stats.registered, 0);
	is(stats.joined, 1);
	is(stats.unshared, 2);
	is(stats.declined, 3);
	is(stats.propagated, 4);
	assert_int_equal(stats.entries, 12);
	assert_true(stats.held == 0 && stats.changed == 0);
	must(weir_cache_destroy(cache));
}

/* Those of queue pairs are sums over all of them, and those of who moved the data over those that move so. */
static void test_counters_of_a_storage(void **state)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage *storage;
	struct weir_queue *queues;
	char block[4096] = "";

	(void)state;
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH),
			       &storage));
	must(weir_storage_write(storage, 0, block, 4096));
	must(weir_storage_read(storage, 0, block, 512));
	queues = weir_at(storage->queues, struct weir_queue, 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		put(&queues[i].completed, 5 * i);
		put(&queues[i].failed, 5 * i + 1);
		put(&queues[i].rogue, 5 * i + 2);
		put(&queues[i].retried, 5 * i + 3);
		put(&queues[i].rings, 5 * i + 4);
	}
	queues[1].path = WEIR_PATH_PULL;
	put(&storage->recovered.late, 20);
	put(&storage->recovered.aborted, 21);
	put(&storage->recovered.queues, 22);
	put(&storage->recovered.resets, 23);
	must(weir_stats(storage, &stats));
	assert_true(stats.commands == number(0) + number(5) + number(10));
	assert_true(stats.failed == number(1) + number(6) + number(11));
	assert_true(stats.rogue == number(2) + number(7) + number(12));
	assert_true(stats.retried == number(3) + number(8) + number(13));
	assert_true(stats.rings == number(4) + number(9) + number(14));
	assert_true(stats.direct == number(0) + number(10));
	is(stats.pull, 5);
	is(stats.late, 20);
	is(stats.aborted, 21);
	is(stats.queues_replaced, 22);
	is(stats.resets, 23);
	assert_int_equal(stats.bytes_written, 4096);
	assert_int_equal(stats.bytes_read, 512);
	must(weir_storage_close(storage));
}

/* What a storage was opened with, and what memory its queue pairs have. */
static void test_what_a_storage_is(void **state)
{
	static const struct {
		const char *uri, *path;
		bool pull, read_only;
	} rows[] = {
		{ "virt:3M?block=512", "direct", false, false },
		{ "virt:3M?block=512&mover=pull&zero_copy=off", "pull", true, true },
		{ "virt:3M?block=512&shadow=on", "direct", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_storage *storage;

		must(weir_storage_open(context, rows[i].uri,
				       WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH,
						    .max_transfer_bytes = TRANSFER,
						    .read_only = rows[i].read_only),
				       &storage));
		must(weir_storage_info(storage, &info));
		assert_int_equal(info.bytes, 3 << 20);
		assert_int_equal(info.block_bytes, 512);
		assert_int_equal(info.max_transfer_bytes, TRANSFER);
		assert_int_equal(info.queues, QUEUES);
		assert_int_equal(info.depth, DEPTH);
		assert_int_equal(info.read_only, rows[i].read_only);
		assert_true(info.queue_bytes == weir_queue_memory_bytes(DEPTH, TRANSFER, rows[i].pull));
		assert_ptr_equal(strstr(info.path, rows[i].path), info.path);
		assert_int_equal(strstr(info.path, "shadow doorbells") != NULL, i == 2);
		must(weir_storage_close(storage));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_of_a_cache),
		cmocka_unit_test(test_counters_of_a_share_table),
		cmocka_unit_test(test_counters_of_a_storage),
		cmocka_unit_test(test_what_a_storage_is),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("counters", tests, open_context, close_context);
}
