/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weir-perf makes of its command line: each option is where it belongs, and what opens a device, a
 * storage and a cache gets it. The library's calls are noted here and go on to it.
 */
#include "capture.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "tools/load/options.h"
#include "tools/load/run.h"

/** noted - the latest calls, and how many there were */
static struct {
	char backend[64];
	struct weir_context_options context;
	struct weir_storage_options storage;
	struct weir_cache_options cache;
	unsigned storages, caches, writable;
} noted;

static uint64_t limit_us; /* of each request, if not 0, in the place of what was said */

/* POSIX has dlsym()'s result be a function, which C knows nothing of. */
#define NEXT(name) (__extension__(__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

int weir_context_open(const char *name, const struct weir_context_options *options, struct weir_context **out)
{
	(void)snprintf(noted.backend, sizeof(noted.backend), "%s", name);
	noted.context = *options;
	return NEXT(weir_context_open)(name, options, out);
}

int weir_storage_open(struct weir_context *context, const char *uri,
		      const struct weir_storage_options *options, struct weir_storage **out)
{
	struct weir_storage_options limited = *options;

	noted.storage = *options;
	noted.storages++;
	noted.writable += !options->read_only;
	if (limit_us)
		limited.timeout_us = limit_us;
	return NEXT(weir_storage_open)(context, uri, &limited, out);
}

int weir_cache_create(struct weir_context *context, const struct weir_cache_options *options,
		      struct weir_cache **out)
{
	noted.cache = *options;
	noted.caches++;
	return NEXT(weir_cache_create)(context, options, out);
}

static struct perf_options options;
static struct perf_outcome outcome;

static int run_read(int count, char **words)
{
	char one[] = "1";

	options = (struct perf_options){ .backend = "cpu",
					 .bs = 4096,
					 .mix = PERF_MIX_LEFT_OUT,
					 .window = 1,
					 .runtime = 0.01,
					 .runs = 1,
					 .workers = 1,
					 .wave = 1,
					 .seed = 1,
					 .hit = PERF_HIT_NONE,
					 .plain_bytes = 1 << 20 };
	assert_int_equal(perf_options_set(&options, "runs", one), 0); /* which begins anew, too */
	return perf_options_read(&options, count, words);
}

static void test_each_option_is_where_it_belongs(void **state)
{
	(void)state;
	assert_int_equal(
		capture_run(
			run_read,
			"weir-perf a b --rw randrw --rwmixread 31 --bs 5T --offset 6T --size 7T --stride 8T"
			" --zipf 0.25 --iodepth 11 --window 12 --runtime 0.5 --runs 13 --seed 4294967295"
			" --verify --no-latency --backend x --queues 14 --depth 15 --workers 16 --wave 17"
			" --service 18 --cached 9T --line 10T --tier 11T --tier-inclusive --policy sieve"
			" --hit wave256 --plain device --plain-bytes 12T --plain-blocks 19"
			" --plain-threads 20 --peer fio --json --sweep bs:1,2 --plot p"),
		-1);
	assert_int_equal(options.uri_count, 2);
	assert_string_equal(options.uris[0], "a");
	assert_string_equal(options.uris[1], "b");
	assert_int_equal(options.rw, PERF_RANDRW);
	assert_true(options.mix == 31 && options.mix_given);
	assert_true(options.bs == 5ull << 40 && options.offset == 6ull << 40 && options.size == 7ull << 40);
	assert_true(options.stride == 8ull << 40 && options.zipf == 0.25 && options.runtime == 0.5);
	assert_true(options.iodepth == 11 && options.window == 12 && options.runs == 13 &&
		    options.seed == UINT32_MAX);
	assert_true(options.verify && options.no_latency && options.json && options.peer);
	assert_string_equal(options.backend, "x");
	assert_true(options.queues == 14 && options.depth == 15 && options.workers == 16 &&
		    options.wave == 17);
	assert_true(options.service == 18 && options.cached == 9ull << 40 && options.line == 10ull << 40);
	assert_true(options.tier == 11ull << 40 && options.tier_inclusive &&
		    options.policy == WEIR_POLICY_SIEVE);
	assert_true(options.hit == PERF_HIT_WAVE256 && options.plain == PERF_PLAIN_DEVICE);
	assert_true(options.plain_bytes == 12ull << 40 && options.plain_blocks == 19 &&
		    options.plain_threads == 20);
	assert_string_equal(options.sweep, "bs");
	assert_string_equal(options.sweep_values, "1,2");
	assert_string_equal(options.plot, "p");
	assert_int_equal(capture_run(run_read, "weir-perf a --random_distribution zipf:0.75"), -1);
	assert_true(options.zipf == 0.75 && options.mix == PERF_MIX && !options.mix_given);
	assert_int_equal(capture_run(run_read, "weir-perf a --zipf 0.75 --random_distribution random"), -1);
	assert_true(options.zipf == 0);
}

static int run_load(int count, char **words)
{
	int status;

	memset(&noted, 0, sizeof(noted));
	memset(&outcome, 0, sizeof(outcome));
	status = run_read(count, words);
	return status >= 0 ? status : perf_options_check(&options) || perf_run(&options, &outcome);
}

static void test_what_is_opened_gets_it(void **state)
{
	(void)state;
	assert_int_equal(
		capture_run(run_load,
			    "weir-perf virt:1M virt:1M --backend cpu --queues 3 --depth 16 --workers 2"
			    " --wave 4 --service 5 --bs 8K --cached 96K --line 2K --tier 192K"
			    " --tier-inclusive --policy lru"),
		0);
	assert_string_equal(noted.backend, "cpu");
	assert_int_equal(noted.context.workers, 2);
	assert_int_equal(noted.context.wave_lanes, 4);
	assert_int_equal(noted.context.service_waves, 5);
	assert_int_equal(noted.storages, 2);
	assert_int_equal(noted.storage.queues, 3);
	assert_int_equal(noted.storage.depth, 16);
	assert_int_equal(noted.storage.max_transfer_bytes, 65536);
	assert_int_equal(noted.writable, 0);
	assert_int_equal(noted.caches, 1);
	assert_int_equal(noted.cache.bytes, 96 << 10);
	assert_int_equal(noted.cache.line_bytes, 2 << 10);
	assert_int_equal(noted.cache.tier_bytes, 192 << 10);
	assert_true(noted.cache.tier_inclusive);
	assert_int_equal(noted.cache.policy, WEIR_POLICY_LRU);
	assert_int_equal(outcome.cache.tier_lines, 96);
}

/* The longest request decides, in powers of two; who only reads opens for reading. */
static void test_transfers_and_rights(void **state)
{
	static const struct {
		const char *line;
		unsigned transfer, writable;
	} rows[] = {
		{ "weir-perf virt:1M --bs 64K", 64 << 10, 0 },
		{ "weir-perf virt:4M --bs 68K --iodepth 2", 128 << 10, 0 },
		{ "weir-perf virt:4M --bs 128K --iodepth 2", 128 << 10, 0 },
		{ "weir-perf virt:1M --rw write", 64 << 10, 1 },
		{ "weir-perf virt:1M --rw randrw", 64 << 10, 1 },
		{ "weir-perf virt:1M --verify", 64 << 10, 1 },
		{ "weir-perf virt:1M --hit random8 --iodepth 8", 64 << 10, 1 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (capture_run(run_load, rows[i].line) != 0)
			fail_msg("%s: %s", rows[i].line, weir_last_error());
		assert_int_equal(noted.storage.max_transfer_bytes, rows[i].transfer);
		assert_int_equal(noted.writable, rows[i].writable);
	}
}

/* What is not said follows from what is: the range of each storage, lanes, lines, and what the plain kernel
 * copies. */
static void test_what_follows(void **state)
{
	static const struct {
		const char *line;
		uint64_t range, line_bytes, plain_bytes;
		unsigned lanes, plain_blocks, plain_threads;
	} rows[] = {
		{ "weir-perf virt:1M", 1 << 20, 0, 0, 128, 0, 0 },
		{ "weir-perf virt:1M --size 100000 --iodepth 5", 99840, 0, 0, 5, 0, 0 },
		{ "weir-perf virt:1M --offset 512K", 512 << 10, 0, 0, 128, 0, 0 },
		{ "weir-perf virt:1M virt:768K --offset 512", (768 << 10) - 512, 0, 0, 128, 0, 0 },
		{ "weir-perf virt:768K virt:1M", 768 << 10, 0, 0, 128, 0, 0 },
		{ "weir-perf virt:1M virt:1M --cached 64K --size 200000", 3 << 16, 4096, 0, 128, 0, 0 },
		{ "weir-perf virt:1M --cached 64K --size 200000", 199680, 4096, 0, 128, 0, 0 },
		{ "weir-perf virt:1M --cached 96K --bs 12K --iodepth 4", 1 << 20, 4096, 0, 4, 0, 0 },
		{ "weir-perf virt:1M --cached 1M --bs 128K --iodepth 4", 1 << 20, 65536, 0, 4, 0, 0 },
		{ "weir-perf virt:1M --cached 64K --bs 8K --line 1K --iodepth 4", 1 << 20, 1024, 0, 4, 0, 0 },
		{ "weir-perf virt:1M --plain host --plain-bytes 64K --iodepth 300", 1 << 20, 0, 64 << 10, 300,
		  3, 128 },
		{ "weir-perf virt:1M --plain host --plain-bytes 10000 --iodepth 7", 1 << 20, 0, 8192, 7, 1,
		  7 },
		{ "weir-perf virt:1M --plain device --rw read --stride 8K --plain-bytes 20000 --iodepth 7",
		  1 << 20, 0, 12288, 7, 1, 7 },
		{ "weir-perf virt:16K virt:16K --plain host --iodepth 7", 16 << 10, 0, 32 << 10, 7, 1, 7 },
		{ "weir-perf virt:1M --plain host --plain-bytes 4096 --plain-blocks 2 --plain-threads 64 "
		  "--iodepth 7",
		  1 << 20, 0, 4096, 7, 2, 64 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (capture_run(run_load, rows[i].line) != 0)
			fail_msg("%s: %s", rows[i].line, weir_last_error());
		if (outcome.range_bytes != rows[i].range || outcome.cache.line_bytes != rows[i].line_bytes ||
		    outcome.plain_bytes != rows[i].plain_bytes || outcome.lanes != rows[i].lanes ||
		    outcome.plain_blocks != rows[i].plain_blocks ||
		    outcome.plain_threads != rows[i].plain_threads)
			fail_msg("%s: range %llu, lines of %llu, plain %llu bytes by %u x %u, %u lanes",
				 rows[i].line, (unsigned long long)outcome.range_bytes,
				 (unsigned long long)outcome.cache.line_bytes,
				 (unsigned long long)outcome.plain_bytes, outcome.plain_blocks,
				 outcome.plain_threads, outcome.lanes);
		assert_int_equal(outcome.weir.count, 1);
		assert_int_equal(outcome.plain.count, rows[i].plain_bytes != 0);
		assert_int_equal(outcome.raw.count, rows[i].line_bytes != 0);
		if (rows[i].line_bytes)
			assert_true(outcome.lines == outcome.reads * (options.bs / rows[i].line_bytes));
	}
}

/* A request of which nothing is heard again is no request less: the load has no figure, wherever that
 * happens. */
static void test_a_request_that_has_no_answer(void **state)
{
	static const char *const lines[] = {
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=read:count=1 --iodepth 4",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=write:count=1 --iodepth 4 --rw write",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=read:count=1 --iodepth 4 --window 3",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=read:count=1 --iodepth 4 --verify",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=write:count=1 --iodepth 4 --verify",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=read:count=1 --iodepth 4 --verify --rw "
		"randwrite",
		"weir-perf virt:1M?timeout_ms=0&fault=drop:op=read:count=1 --iodepth 4 --verify --rw write "
		"--cached 64K",
	};

	(void)state;
	limit_us = 300000;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (capture_run(run_load, lines[i]) == 0 ||
		    !strstr(weir_last_error(), "requests had no answer within the storage's time limit"))
			fail_msg("%s: %s", lines[i], weir_last_error());
	limit_us = 0;
}

/* Each rule that a command line breaks has its own sentence. */
static void test_what_does_not_go_together(void **state)
{
	static const struct {
		const char *line, *sentence;
	} rows[] = {
		{ "weir-perf", "give a storage URI" },
		{ "weir-perf a --rwmixread 50", "it goes with randrw or rw, not randread" },
		{ "weir-perf a --rwmixread 50 --rw write", "it goes with randrw or rw, not write" },
		{ "weir-perf a --stride 8K --rw randrw", "it goes with read, write or rw, not randrw" },
		{ "weir-perf a --zipf 1 --rw rw", "it goes with randread, randwrite or randrw, not rw" },
		{ "weir-perf a --rw read --stride 4095", "requests of 4096 bytes would overlap" },
		{ "weir-perf a --plain-threads 2", "--plain-blocks counts" },
		{ "weir-perf a b c --iodepth 2", "3 storages need a lane each" },
		{ "weir-perf a --tier 1M", "goes with --cached" },
		{ "weir-perf a --tier 1M --hit random8", "goes with --cached" },
		{ "weir-perf a --cached 1M --tier-inclusive", "goes with --tier" },
		{ "weir-perf a --policy fifo", "goes with --cached or --hit" },
		{ "weir-perf a --line 4K", "--cached or --hit" },
		{ "weir-perf a --cached 1M --hit random8", "leave --cached out" },
		{ "weir-perf a --hit random8 --rw randrw", "has no hits of its own" },
		{ "weir-perf a --cached 1M --window 2", "waits for each read" },
		{ "weir-perf a --hit random8 --window 2", "waits for each read" },
		{ "weir-perf a --cached 1M --line 256", "power of two from 512 to 64K" },
		{ "weir-perf a --cached 1M --line 128K", "power of two from 512 to 64K" },
		{ "weir-perf a --cached 1M --line 1536", "power of two from 512 to 64K" },
		{ "weir-perf a b --hit random8", "--hit takes one storage, not 2" },
		{ "weir-perf file:a --hit random8 --peer fio", "nothing in common" },
		{ "weir-perf a --hit random8 --rw read", "places of its own" },
		{ "weir-perf a --hit random8 --zipf 1", "places of its own" },
		{ "weir-perf a --hit random8 --plot p", "--hit takes none" },
		{ "weir-perf file:a --peer fio --rw rw", "only reads; it does not go with --rw=rw" },
		{ "weir-perf a --peer fio", "it needs one file: storage, not a" },
		{ "weir-perf file:a file:b --peer fio", "it needs one file: storage" },
		{ "weir-perf file:a --peer fio --rw read --stride 8K", "--window out" },
		{ "weir-perf file:a --peer fio --zipf 1", "--window out" },
		{ "weir-perf file:a --peer fio --window 2", "--window out" },
		{ "weir-perf file:a --peer fio --iodepth 32769", "not 32769" },
		{ "weir-perf a --no-latency --plot p", "--no-latency takes none" },
	};
	static const char *const good[] = {
		"weir-perf a --rwmixread 50 --rw rw",
		"weir-perf a --stride 8K --rw rw",
		"weir-perf a --rw read --stride 4K",
		"weir-perf a b c --iodepth 3",
		"weir-perf a --cached 1M --line 512",
		"weir-perf a --cached 1M --line 64K",
		"weir-perf a --hit random8 --plot p --sweep iodepth:1,2",
		"weir-perf file:a --peer fio --iodepth 32768",
		"weir-perf a --no-latency --plot p --sweep bs:1K,2K",
		"weir-perf a --hit random8 --line 4K --policy fifo",
		"weir-perf a --plain-threads 2 --plain-blocks 1",
		"weir-perf a --zipf 1 --rw randrw",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(capture_run(run_read, rows[i].line), -1);
		if (perf_options_check(&options) == 0 || !strstr(weir_last_error(), rows[i].sentence))
			fail_msg("%s: %s", rows[i].line, weir_last_error());
	}
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(capture_run(run_read, good[i]), -1);
		if (perf_options_check(&options) != 0)
			fail_msg("%s: %s", good[i], weir_last_error());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_option_is_where_it_belongs),
		cmocka_unit_test(test_what_is_opened_gets_it),
		cmocka_unit_test(test_transfers_and_rights),
		cmocka_unit_test(test_what_follows),
		cmocka_unit_test(test_a_request_that_has_no_answer),
		cmocka_unit_test(test_what_does_not_go_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
