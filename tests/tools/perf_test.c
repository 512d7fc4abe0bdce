/* SPDX-License-Identifier: BSD-3-Clause */
/* Where weir-perf's requests go: the Zipf law, the permutation that scatters it, the mixes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "places.h"
#include "zipf.h"

enum { DRAWS = 400000 };

/* What has a share of @share of all draws was seen as often: within five standard deviations. */
static void expect_share(uint64_t seen, double share)
{
	double sigma = sqrt(DRAWS * share * (1 - share)) + 1;

	if (fabs((double)seen - DRAWS * share) > 5 * sigma)
		fail_msg("%llu draws instead of %.0f", (unsigned long long)seen, DRAWS * share);
}

static void check_law(uint64_t spans, double theta)
{
	struct perf_zipf zipf;
	uint64_t *seen = calloc(spans + 1, sizeof(*seen)), from = 1;
	double total = 0;

	assert_non_null(seen);
	perf_zipf_prepare(&zipf, spans, theta);
	for (uint64_t i = 0; i < DRAWS; i++) {
		uint64_t rank = perf_zipf_rank(&zipf, spans, 7, i % 61, i / 61);

		assert_in_range(rank, 1, spans);
		seen[rank]++;
	}
	for (uint64_t rank = 1; rank <= spans; rank++)
		total += pow((double)rank, -theta);
	/* each of the first ranks, then ever wider stretches */
	while (from <= spans) {
		uint64_t to = from + from / 8 < spans ? from + from / 8 : spans, sum = 0;
		double share = 0;

		for (uint64_t rank = from; rank <= to; rank++) {
			sum += seen[rank];
			share += pow((double)rank, -theta) / total;
		}
		expect_share(sum, share);
		from = to + 1;
	}
	free(seen);
}

static void test_zipf_law(void **state)
{
	static const double thetas[] = { 0.2, 0.99, 1, 1.2, 2, PERF_ZIPF_MOST };
	static const uint64_t spans[] = { 1, 2, 3, 7, 1000, 65536, 100003 };

	(void)state;
	for (size_t i = 0; i < sizeof(thetas) / sizeof(thetas[0]); i++)
		for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++)
			check_law(spans[k], thetas[i]);
}

/* As many places as 64-bit offsets can have: ranks stay in range, and their octaves are as they should be. */
static void test_zipf_huge(void **state)
{
	struct perf_zipf zipf;
	uint64_t spans = ((uint64_t)1 << 55) - 12345, low = 0, lowest_half = 0;

	(void)state;
	perf_zipf_prepare(&zipf, spans, 1);
	assert_int_equal(zipf.octaves, 55);
	for (uint64_t i = 0; i < DRAWS; i++) {
		uint64_t rank = perf_zipf_rank(&zipf, spans, 3, 5, i);

		assert_in_range(rank, 1, spans);
		low += rank < (uint64_t)1 << 27;
		lowest_half += rank >= (uint64_t)1 << 40 && rank < (uint64_t)3 << 39;
		assert_true(perf_scatter(rank - 1, spans, zipf.bits) < spans);
	}
	/* the harmonic number of n is ln n + 0.5772; of [2^40, 1.5 x 2^40) the sum is ln 1.5 */
	expect_share(low, (27 * log(2) + 0.57722) / (log((double)spans) + 0.57722));
	expect_share(lowest_half, log(1.5) / (log((double)spans) + 0.57722));
}

static void test_scatter(void **state)
{
	static const uint64_t spans[] = { 1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		unsigned char *seen = calloc(spans[i], 1);
		struct perf_zipf zipf;

		assert_non_null(seen);
		perf_zipf_prepare(&zipf, spans[i], 1);
		for (uint64_t value = 0; value < spans[i]; value++) {
			uint64_t location = perf_scatter(value, spans[i], zipf.bits);

			assert_in_range(location, 0, spans[i] - 1);
			assert_int_equal(seen[location]++, 0);
		}
		free(seen);
	}
}

/* Lanes that read one after the other leave out nothing and take nothing twice. */
static void test_sequential(void **state)
{
	struct perf_locations locations = { .spans = 120, .kind = PERF_SEQUENTIAL };
	unsigned char seen[120] = { 0 };

	(void)state;
	for (uint64_t lane = 0; lane < 8; lane++)
		for (uint64_t step = 0; step < 15; step++)
			seen[perf_location(&locations, lane, lane, 8, step)]++;
	for (unsigned i = 0; i < 120; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(perf_location(&locations, 0, 0, 8, 15), 0);
}

static void test_mix(void **state)
{
	struct perf_load load = { .reads_percent = 30 };
	uint64_t reads = 0;

	(void)state;
	for (uint64_t i = 0; i < DRAWS; i++)
		reads += perf_reads(&load, i % 32, i / 32);
	expect_share(reads, .3);
	load.reads_percent = 0;
	assert_int_equal(perf_reads(&load, 1, 1), 0);
	load.reads_percent = 100;
	assert_int_equal(perf_reads(&load, 1, 1), 1);
}

static void test_buckets(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (uint64_t ns = 0; ns < 1 << 20; ns++) {
		assert_in_range(perf_bucket(ns), last, last + 1);
		last = perf_bucket(ns);
	}
	assert_int_equal(perf_bucket(127), 127);
	assert_int_equal(perf_bucket(129), 128);
	assert_int_equal(perf_bucket(256), 192);
	assert_int_equal(perf_bucket(UINT64_MAX), PERF_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zipf_law), cmocka_unit_test(test_zipf_huge),
		cmocka_unit_test(test_scatter),  cmocka_unit_test(test_sequential),
		cmocka_unit_test(test_mix),      cmocka_unit_test(test_buckets),
	};

	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
