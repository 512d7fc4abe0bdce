/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays read through caches of every size: contents, stripes, errors, counters. */
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

#include "../rig/context.h"
#include "../rig/kernels.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { MOST_DISKS = 4, THREADS = 70, READS = 12, TIMEOUT_US = 30000000 };

/** struct rig - a context, a cache, and a dataset over some storages */
struct rig {
	struct weir_context *context;
	struct weir_cache *cache;
	struct weir_storage *storages[MOST_DISKS];
	unsigned disks;
	uint64_t bytes, stripe, verdict;
};

/* Word w of the dataset is test_word(seed, w), wherever the stripe puts it. */
static void fill(struct rig *rig, uint64_t seed)
{
	uint64_t unit = rig->disks == 1 ? rig->bytes : rig->stripe;
	uint64_t *words = malloc(unit);

	for (uint64_t at = 0; at < rig->bytes; at += unit) {
		uint64_t number = at / unit;

		for (uint64_t i = 0; i < unit / 8; i++)
			words[i] = test_word(seed, at / 8 + i);
		must(weir_storage_write(rig->storages[number % rig->disks], number / rig->disks * unit, words,
					unit));
	}
	free(words);
}

static void open_rig(struct rig *rig, uint32_t width, uint64_t lines, uint32_t line_bytes, unsigned disks,
		     uint64_t bytes_each, uint64_t stripe)
{
	char uri[64];

	memset(rig, 0, sizeof(*rig));
	rig->disks = disks;
	rig->bytes = bytes_each * disks;
	rig->stripe = stripe;
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = width),
			       &rig->context));
	snprintf(uri, sizeof(uri), "virt:%llu?block=512", (unsigned long long)bytes_each);
	for (unsigned i = 0; i < disks; i++)
		must(test_storage_open(rig->context, uri,
				       WEIR_OPTIONS(storage, .queues = 2, .depth = 16,
						    .timeout_us = test_patient_us(TIMEOUT_US)),
				       &rig->storages[i]));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = lines, .line_bytes = line_bytes),
			       &rig->cache));
	must(weir_alloc(rig->context, sizeof(struct test_verdict), &rig->verdict));
	fill(rig, 1);
}

static void close_rig(struct rig *rig)
{
	weir_cache_destroy(rig->cache);
	for (unsigned i = rig->disks; i > 0; i--)
		weir_storage_close(rig->storages[i - 1]);
	weir_context_close(rig->context);
}

static void open_array(struct rig *rig, uint32_t element, uint64_t first, struct weir_array *array)
{
	must(weir_array_open(rig->cache, rig->storages, rig->disks,
			     WEIR_OPTIONS(array, .element_bytes = element, .first_byte = first,
					  .stripe_bytes = rig->stripe),
			     array));
	assert_int_equal(array->count, (rig->bytes - first) / element);
}

static struct test_verdict judge(struct rig *rig)
{
	struct test_verdict verdict, none;

	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("%llu mistakes; element %llu: %#llx instead of %#llx",
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	memset(&none, 0, sizeof(none));
	must(weir_copy_to_device(rig->context, rig->verdict, &none, sizeof(none)));
	return verdict;
}

static void read_array(struct rig *rig, struct test_array_args *args)
{
	struct test_verdict verdict;

	args->verdict = rig->verdict;
	must(weir_launch(rig->context, "test_array", 2, test_lanes(THREADS), args, sizeof(*args)));
	verdict = judge(rig);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 2 * test_lanes(THREADS) * args->reads);
}

/* Some lanes of a wave read here, others there, through a cache that is much too small: each gets its own
 * words. */
static void test_lanes_that_part(void **state)
{
	static const uint32_t blocks[] = { 32, 44, 140 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t b = 0; b < 3; b++) {
			struct test_array_args args = { .seed = { 1, 1 }, .reads = READS };
			struct rig rig;

			open_rig(&rig, test_width(w), 16, 512, 1, 65536, 65536);
			open_array(&rig, 4, 0, &args.array[0]);
			args.verdict = rig.verdict;
			for (args.salt = 0; args.salt < 4; args.salt++) {
				struct test_verdict verdict;
				uint32_t lanes = test_lanes(blocks[b]);

				must(weir_launch(rig.context, "test_parted", 4, lanes, &args, sizeof(args)));
				verdict = judge(&rig);
				assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good),
						 4 * lanes * args.reads);
			}
			close_rig(&rig);
		}
}

static struct weir_cache_stats stats_of(struct rig *rig)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(rig->cache, &stats));
	return stats;
}

static void sweep(struct rig *rig, uint32_t element, uint64_t first)
{
	struct test_array_args args = { .seed = { 1, 1 }, .array_count = 1, .reads = READS, .salt = element };

	open_array(rig, element, first, &args.array[0]);
	for (args.kind = TEST_READ_RANDOM; args.kind <= TEST_READ_SEQUENTIAL; args.kind++)
		read_array(rig, &args);
}

static const uint32_t ELEMENTS[] = { 1, 2, 4, 8, 16, 24 };

static void test_every_element_cache_and_width(void **state)
{
	static const struct {
		uint64_t lines;
		uint32_t line_bytes;
	} caches[] = {
		{ 4, 512 }, { 8, 512 }, { 12, 4096 }, { 64, 512 }, { 4, 65536 }, { 512, 512 },
	};

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t c = 0; c < 6; c++) {
			struct rig rig;

			open_rig(&rig, test_width(w), caches[c].lines, caches[c].line_bytes, 1, 196608,
				 65536);
			for (size_t e = 0; e < 6; e++)
				sweep(&rig, ELEMENTS[e], e % 2 ? 16 : 0);
			close_rig(&rig);
		}
}

static void test_stripes_and_two_arrays(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t stripe = 4096; stripe <= 65536; stripe *= 16) {
			struct test_array_args args = { .seed = { 1, 1 }, .array_count = 2, .reads = READS };
			struct rig rig;

			open_rig(&rig, test_width(w), 12, 4096, 4, 131072, stripe);
			sweep(&rig, 8, 16);
			open_array(&rig, 8, 0, &args.array[0]);
			open_array(&rig, 4, 16, &args.array[1]);
			read_array(&rig, &args);
			close_rig(&rig);
		}
}

static void test_partial_last_line(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, 4, 4, 4096, 1, 5120, 65536);
	sweep(&rig, 8, 0);
	sweep(&rig, 1, 0);
	close_rig(&rig);
}

static void test_resident_data_misses_once(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_array_args args = {
			.seed = { 1, 1 }, .array_count = 1, .reads = 64, .kind = TEST_READ_SEQUENTIAL
		};
		struct rig rig;

		open_rig(&rig, test_width(w), 128, 512, 1, 65536, 65536);
		open_array(&rig, 8, 0, &args.array[0]); /* 8192 elements < 64 x 140 */
		read_array(&rig, &args);
		assert_int_equal(stats_of(&rig).misses, 128);
		assert_int_equal(stats_of(&rig).evictions, 0);
		read_array(&rig, &args);
		assert_int_equal(stats_of(&rig).misses, 128);
		close_rig(&rig);
	}
}

static void test_views_and_runs_sum(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t lines = 4; lines <= 256; lines *= 8)
			for (uint32_t by_view = 0; by_view < 2; by_view++) {
				struct test_sum_args args = { .by_view = by_view };
				struct test_verdict verdict;
				struct rig rig;
				uint64_t sum = 0;

				open_rig(&rig, test_width(w), lines, 512, 1, 32768, 65536);
				open_array(&rig, 8, 16, &args.array);
				args.verdict = rig.verdict;
				for (uint64_t i = 2; i < 4096; i++)
					sum += test_word(1, i);
				must(weir_launch(rig.context, "test_sum", 1, 37, &args, sizeof(args)));
				verdict = judge(&rig);
				assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 4094);
				assert_true(weir_load_u64_relaxed_sys(&verdict.sum) == sum);
				close_rig(&rig);
			}
}

static struct test_verdict try_array(struct rig *rig, struct test_sum_args *args)
{
	must(weir_launch(rig->context, "test_try", 1, 37, args, sizeof(*args)));
	return judge(rig);
}

/* Runs that are tried: nothing of an empty cache, which stays empty; everything once it is there. */
static void test_tries(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_sum_args args = { .by_view = 0 };
		struct test_verdict verdict;
		struct rig rig;
		uint64_t sum = 0;

		open_rig(&rig, test_width(w), 256, 512, 1, 32768, 65536);
		open_array(&rig, 8, 24, &args.array); /* runs begin at odd words, and cross lines */
		args.verdict = rig.verdict;
		for (uint64_t i = 3; i < 4096; i++)
			sum += test_word(1, i);
		verdict = try_array(&rig, &args);
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 0);
		assert_int_equal(stats_of(&rig).misses, 0);
		must(weir_launch(rig.context, "test_sum", 1, 37, &args, sizeof(args)));
		(void)judge(&rig);
		verdict = try_array(&rig, &args);
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), 4093);
		assert_true(weir_load_u64_relaxed_sys(&verdict.sum) == sum);
		assert_int_equal(stats_of(&rig).misses, 64);
		close_rig(&rig);
	}
}

/* Rows that lanes look for and waves read: never wrong, and all of them there once the cache holds
 * everything. */
static void test_rows_by_waves(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (uint64_t lines = 4; lines <= 256; lines *= 8) {
			struct test_array_args args = { .seed = { 1, 1 }, .array_count = 1, .reads = READS };
			struct test_verdict verdict;
			struct rig rig;

			open_rig(&rig, test_width(w), lines, 512, 1, 65536, 65536);
			open_array(&rig, 8, 0, &args.array[0]);
			args.verdict = rig.verdict;
			if (lines >= 128) {
				must(weir_launch(rig.context, "test_array", 2, test_lanes(THREADS),
						 &(struct test_array_args){ .array = { args.array[0] },
									    .seed = { 1, 1 },
									    .array_count = 1,
									    .kind = TEST_READ_SEQUENTIAL,
									    .reads = 8192,
									    .verdict = rig.verdict },
						 sizeof(args)));
				judge(&rig);
			}
			must(weir_launch(rig.context, "test_rows", 2, test_lanes(THREADS), &args,
					 sizeof(args)));
			verdict = judge(&rig);
			assert_true(weir_load_u64_relaxed_sys(&verdict.sum) > test_lanes(THREADS) * READS);
			if (lines >= 128)
				assert_true(weir_load_u64_relaxed_sys(&verdict.good) ==
					    weir_load_u64_relaxed_sys(&verdict.sum));
			close_rig(&rig);
		}
}

static void test_index_past_the_end(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct test_get_args args = { .index = 12345, .lane = 3 };
		struct rig rig;

		open_rig(&rig, test_width(w), 4, 512, 1, 8192, 65536);
		open_array(&rig, 8, 0, &args.array);
		args.verdict = rig.verdict;
		must(weir_launch(rig.context, "test_get", 1, 5, &args, sizeof(args)));
		assert_int_equal(weir_sync(rig.context), -EIO);
		assert_non_null(strstr(weir_last_error(), "12345"));
		assert_non_null(strstr(weir_last_error(), "1024"));
		must(weir_sync(rig.context));
		close_rig(&rig);
	}
}

static void test_a_file_that_shrinks(void **state)
{
	char path[] = "/tmp/weir_cache_XXXXXX", uri[64];
	int file = mkstemp(path);
	struct test_get_args args = { .index = 65536 / 8 };
	struct rig rig;

	(void)state;
	open_rig(&rig, 4, 8, 4096, 1, 4096, 65536);
	assert_true(file >= 0 && ftruncate(file, 131072) == 0);
	snprintf(uri, sizeof(uri), "file:%s?block=512", path);
	weir_storage_close(rig.storages[0]);
	must(test_storage_open(rig.context, uri,
			       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(TIMEOUT_US)),
			       &rig.storages[0]));
	rig.bytes = 131072;
	open_array(&rig, 8, 0, &args.array);
	args.verdict = rig.verdict;
	assert_int_equal(ftruncate(file, 4096), 0);
	must(weir_launch(rig.context, "test_get", 1, 5, &args, sizeof(args)));
	assert_int_equal(weir_sync(rig.context), -EIO);
	assert_non_null(strstr(weir_last_error(), "block 128 "));
	must(weir_sync(rig.context));
	close(file);
	unlink(path);
	close_rig(&rig);
}

/* What lanes read of @array at @index. */
static uint64_t element(struct rig *rig, const struct weir_array *array, uint64_t index)
{
	struct test_get_args args = { .array = *array, .index = index, .verdict = rig->verdict };
	struct test_verdict verdict;

	must(weir_launch(rig->context, "test_get", 1, 1, &args, sizeof(args)));
	verdict = judge(rig);
	return weir_load_u64_relaxed_sys(&verdict.sum);
}

/*
 * Arrays of many TiB, whose words hold their addresses on their own storage: elements on both sides of 4 GiB,
 * 2^32 elements, 2^32 blocks and 2^32 lines, of one storage and of several.
 */
static void test_many_tebibytes(void **state)
{
	static const uint64_t bytes[] = { 0,
					  (uint64_t)1 << 32,
					  (uint64_t)1 << 35,
					  (uint64_t)1 << 41,
					  (uint64_t)1 << 44,
					  (uint64_t)100 << 40 };
	enum { EACH_TIB = 100, STRIPE = 65536 };

	(void)state;
	for (unsigned disks = 1; disks <= 3; disks += 2) {
		struct rig rig = { .disks = disks };
		struct weir_array array;

		must(weir_context_open(test_context_name(),
				       WEIR_OPTIONS(context, .workers = 2, .service_waves = test_service(),
						    .wave_lanes = test_width(0)),
				       &rig.context));
		for (unsigned i = 0; i < disks; i++)
			must(test_storage_open(rig.context, "virt:100T?content=address&block=512",
					       WEIR_OPTIONS(storage, .queues = 2, .depth = 16,
							    .timeout_us = test_patient_us(TIMEOUT_US)),
					       &rig.storages[i]));
		must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = 4096),
				       &rig.cache));
		must(weir_alloc(rig.context, sizeof(struct test_verdict), &rig.verdict));
		must(weir_array_open(rig.cache, rig.storages, disks,
				     WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = STRIPE),
				     &array));
		assert_true(array.count == ((uint64_t)EACH_TIB << 40) / 8 * disks);
		for (unsigned i = 0; i < 6; i++)
			for (int step = -1; step <= 1; step++) {
				uint64_t index = (bytes[i] / 8 + (uint64_t)step * (i % 2 ? 1 : 700)) %
						 array.count,
					 at = index * 8;
				uint64_t unit = at / STRIPE,
					 expected = disks == 1 ? at : unit / disks * STRIPE + at % STRIPE;

				if (element(&rig, &array, index) != expected)
					fail_msg("element %llu of %u storages", (unsigned long long)index,
						 disks);
			}
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_element_cache_and_width),
		cmocka_unit_test(test_stripes_and_two_arrays),
		cmocka_unit_test(test_lanes_that_part),
		cmocka_unit_test(test_partial_last_line),
		cmocka_unit_test(test_resident_data_misses_once),
		cmocka_unit_test(test_views_and_runs_sum),
		cmocka_unit_test(test_tries),
		cmocka_unit_test(test_rows_by_waves),
		cmocka_unit_test(test_index_past_the_end),
		cmocka_unit_test(test_a_file_that_shrinks),
		cmocka_unit_test(test_many_tebibytes),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
