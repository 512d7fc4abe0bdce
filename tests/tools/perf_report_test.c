/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-perf prints of an outcome, as JSON, as text and as a line of a sweep: each number in it is
 * another one. */
#include "capture.h"

#include <stdlib.h>

#include "tools/load/results.h"

static const uint64_t large = UINT64_C(1) << 33;
static struct perf_outcome outcome;
static void (*print)(const struct perf_outcome *outcome);

static int run_print(int count, char **words)
{
	(void)count;
	(void)words;
	print(&outcome);
	return 0;
}

static void print_first_point(const struct perf_outcome *of)
{
	perf_print_point(of, true);
}

static void print_next_point(const struct perf_outcome *of)
{
	perf_print_point(of, false);
}

static void expect_json(const char *expected)
{
	json_t *object = perf_json(&outcome);
	char *text = json_dumps(object, 0);

	assert_non_null(text);
	capture_expect_json(text, expected);
	free(text);
	json_decref(object);
}

static void expect_text(void (*printed)(const struct perf_outcome *of), const char *expected)
{
	print = printed;
	assert_int_equal(capture_run(run_print, ""), 0);
	assert_string_equal(captured, expected);
}

static void add(struct perf_series *series, double least, double median, double most)
{
	perf_series_add(series, most); /* in no order */
	perf_series_add(series, least);
	perf_series_add(series, median);
}

/* Of 100,000 requests so many that each percentile lies in a bucket of its own: from @first nanoseconds on.
 */
static void fill_latency(uint64_t *buckets, unsigned first)
{
	static const uint64_t counts[] = { 50001, 40000, 9000, 900, 90, 9 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		buckets[first + 10 * i] = counts[i];
}

/* A load of random reads, and what every load has. */
static int begin(void **state)
{
	(void)state;
	memset(&outcome, 0, sizeof(outcome));
	outcome.options = (struct perf_options){ .uris = { "virt:1G" },
						 .uri_count = 1,
						 .rw = PERF_RANDREAD,
						 .mix = 50,
						 .bs = 4096,
						 .offset = large,
						 .window = 3,
						 .runs = 5,
						 .runtime = 0.25,
						 .seed = 4,
						 .hit = PERF_HIT_NONE };
	(void)snprintf(outcome.device, sizeof(outcome.device), "cpu");
	(void)snprintf(outcome.path, sizeof(outcome.path), "direct");
	outcome.bs = 4096;
	outcome.lanes = 7;
	outcome.range_bytes = large + 1;
	outcome.plain_from = PERF_PLAIN_OFF;
	add(&outcome.weir, 100, 200, 300);
	outcome.requests = large + 6;
	outcome.reads = large + 7;
	outcome.stats = (struct weir_stats){ .commands = large + 11,
					     .failed = 12,
					     .rogue = 90,
					     .bytes_read = large + 13,
					     .bytes_written = large + 14,
					     .direct = large + 15,
					     .pull = large + 16,
					     .late = 91,
					     .rings = 0 };
	outcome.cpu_seconds = 1.5;
	return 0;
}

/* All that there can be, beside each other, though no load has all of it. */
static void fill_everything(void)
{
	outcome.options.uris[1] = "virt:2G";
	outcome.options.uri_count = 2;
	outcome.options.rw = PERF_RANDRW;
	outcome.options.mix = 70;
	outcome.options.zipf = 0.5;
	outcome.options.stride = large + 2;
	outcome.options.service = 8;
	outcome.options.sweep = "bs";
	(void)snprintf(outcome.swept, sizeof(outcome.swept), "4K");
	outcome.options.cached = 1;
	outcome.options.policy = WEIR_POLICY_LRU;
	outcome.options.tier = 1;
	outcome.options.tier_inclusive = true;
	outcome.plain_from = PERF_PLAIN_HOST;
	outcome.plain_blocks = 21;
	outcome.plain_threads = 22;
	outcome.plain_bytes = large + 23;
	add(&outcome.raw, 300, 400, 500);
	add(&outcome.plain, 700, 800, 900);
	add(&outcome.fio, 1500, 1600, 1700);
	add(&outcome.fio_fixed, 3100, 3200, 3300);
	outcome.writes = large + 31;
	outcome.errors = large + 32;
	outcome.status = weir_status_from_nvme((u32)0x281 << 17);
	outcome.verified = true;
	outcome.checked = large + 33;
	outcome.bad = large + 34;
	outcome.bad_byte = large + 35;
	outcome.stats.rings = large + 36;
	outcome.lines = large + 37;
	outcome.cache = (struct weir_cache_stats){ .lines = large + 41,
						   .line_bytes = 512,
						   .bytes = large + 42,
						   .misses = large + 43,
						   .evictions = large + 44,
						   .retracted = large + 45,
						   .writebacks = large + 46,
						   .write_errors = 92,
						   .dirty = 93,
						   .tier_lines = large + 47,
						   .tier_hits = large + 48,
						   .tier_stored = large + 49,
						   .tier_kept = large + 50,
						   .tier_dropped = large + 51 };
	fill_latency(outcome.read_latency, 10);
	fill_latency(outcome.write_latency, 15);
	outcome.kernel_count = 2;
	outcome.kernels[0] =
		(struct perf_kernel){ "one", { .registers = 61, .local_bytes = 62, .block_lanes = 63 } };
	outcome.kernels[1] =
		(struct perf_kernel){ "two", { .registers = 64, .local_bytes = 65, .block_lanes = 66 } };
}

#define LOAD                                                                                                 \
	"\"device\": \"cpu\", \"path\": \"direct\", \"bs\": 4096, \"iodepth\": 7, \"runs\": 5, "             \
	"\"runtime_s\": 0.25,"                                                                               \
	" \"offset\": 8589934592, \"size\": 8589934593, \"seed\": 4, "
#define SERIES(prefix, least, median, most, spread, bytes)                                                   \
	"\"" prefix "iops\": " median ".0, \"" prefix "iops_min\": " least ".0, \"" prefix                   \
	"iops_max\": " most ".0, \"" prefix "iops_spread\": " spread ", \"" prefix "bytes_per_s\": " bytes   \
	".0, \"" prefix "iops_runs\": [" most ".0, " least ".0, " median ".0], "

static void test_every_key_has_its_number(void **state)
{
	(void)state;
	fill_everything();
	expect_json(
		"{\"uri\": \"virt:1G\", \"uris\": [\"virt:1G\", \"virt:2G\"], " LOAD
		"\"service\": 8, \"sweep\": \"bs\", \"swept\": \"4K\", " SERIES(
			"", "100", "200", "300", "1.0",
			"819200") SERIES("raw_", "300", "400", "500", "0.5",
					 "1638400") SERIES("plain_", "700", "800", "900", "0.25", "3276800")
			SERIES("fio_", "1500", "1600", "1700", "0.125", "6553600")
				SERIES("fio_fixed_", "3100", "3200", "3300", "0.0625",
				       "13107200") "\"ratio_to_raw\": 0.5, \"ratio_to_plain\": 0.25, "
						   "\"ratio_to_fio\": 0.125,"
						   " \"ratio_to_fio_fixed\": 0.0625, \"kernels\": ["
						   "{\"name\": \"one\", \"registers\": 61, \"local_bytes\": "
						   "62, \"block_lanes\": 63},"
						   "{\"name\": \"two\", \"registers\": 64, \"local_bytes\": "
						   "65, \"block_lanes\": 66}],"
						   " \"rw\": \"randrw\", \"window\": 3, \"rwmixread\": 70, "
						   "\"zipf\": 0.5, \"stride\": 8589934594,"
						   " \"p50_us\": 0.011, \"p90_us\": 0.021, \"p99_us\": "
						   "0.031, \"p999_us\": 0.041, \"p9999_us\": 0.051,"
						   " \"write_p50_us\": 0.016, \"write_p90_us\": 0.026, "
						   "\"write_p99_us\": 0.036,"
						   " \"write_p999_us\": 0.046, \"write_p9999_us\": 0.056,"
						   " \"plain\": \"host\", \"plain_blocks\": 21, "
						   "\"plain_threads\": 22, \"plain_bytes\": 8589934615,"
						   " \"cache_bytes\": 8589934634, \"cache_lines\": "
						   "8589934633, \"line_bytes\": 512, \"policy\": \"lru\","
						   " \"lines_used\": 8589934629, \"misses\": 8589934635, "
						   "\"evictions\": 8589934636,"
						   " \"retracted\": 8589934637, \"writebacks\": 8589934638, "
						   "\"tier_lines\": 8589934639,"
						   " \"tier_inclusive\": true, \"tier_hits\": 8589934640, "
						   "\"tier_stored\": 8589934641,"
						   " \"tier_kept\": 8589934642, \"tier_dropped\": 8589934643,"
						   " \"reads\": 8589934599, \"writes\": 8589934623, "
						   "\"requests\": 8589934598,"
						   " \"errors\": 8589934624, \"verified_blocks\": "
						   "8589934625, \"bad_blocks\": 8589934626,"
						   " \"bad_byte\": 8589934627, \"commands\": 8589934603, "
						   "\"failed\": 12, \"direct\": 8589934607,"
						   " \"pull\": 8589934608, \"rings\": 8589934628, \"cpu_s\": "
						   "1.5, \"bytes_read\": 8589934605,"
						   " \"bytes_written\": 8589934606}");
}

#define COUNTERS                                                                                             \
	"\"requests\": 8589934598, \"errors\": 0, \"commands\": 8589934603, \"failed\": 12, \"direct\": "    \
	"8589934607,"                                                                                        \
	" \"pull\": 8589934608, \"rings\": 0, \"cpu_s\": 1.5, \"bytes_read\": 8589934605, "                  \
	"\"bytes_written\": 8589934606"

/* What was not asked for is not there, not even as a zero. */
static void test_keys_that_are_not_there(void **state)
{
	(void)state;
	expect_json("{\"uri\": \"virt:1G\", \"uris\": [\"virt:1G\"], " LOAD SERIES(
		"", "100", "200", "300", "1.0",
		"819200") "\"kernels\": [], \"rw\": \"randread\", \"window\": 3, \"plain\": \"off\", "
			  "\"reads\": 8589934599,"
			  " \"writes\": 0, " COUNTERS "}");
}

/* A load that only writes has its latencies by the plain names. */
static void test_latencies_of_a_load_that_writes(void **state)
{
	(void)state;
	outcome.options.rw = PERF_WRITE;
	outcome.verified = true;
	fill_latency(outcome.write_latency, 15);
	expect_json("{\"uri\": \"virt:1G\", \"uris\": [\"virt:1G\"], " LOAD SERIES(
		"", "100", "200", "300", "1.0",
		"819200") "\"kernels\": [], \"rw\": \"write\", \"window\": 3, \"plain\": \"off\", "
			  "\"p50_us\": 0.016,"
			  " \"p90_us\": 0.026, \"p99_us\": 0.036, \"p999_us\": 0.046, \"p9999_us\": 0.056,"
			  " \"verified_blocks\": 0, \"bad_blocks\": 0, \"reads\": 8589934599, \"writes\": "
			  "0, " COUNTERS "}");
}

static void test_hits(void **state)
{
	(void)state;
	fill_everything();
	outcome.options.hit = PERF_HIT_LINE4K;
	outcome.options.cached = outcome.options.service = 0;
	outcome.options.sweep = NULL;
	outcome.options.uri_count = 1;
	outcome.raw.count = outcome.fio.count = outcome.fio_fixed.count = 0;
	outcome.kernel_count = outcome.kernels[0].info.registers = 0;
	outcome.checksum = 0xabcdef;
	outcome.filled = true;
	outcome.hit_misses = large;
	expect_json("{\"uri\": \"virt:1G\", \"uris\": [\"virt:1G\"], " LOAD SERIES("", "100", "200", "300",
										   "1.0", "819200")
			    SERIES("plain_", "700", "800", "900", "0.25",
				   "3276800") "\"ratio_to_plain\": 0.25, \"kernels\": [], \"hit\": "
					      "\"line4k\", \"policy\": \"lru\","
					      " \"checksum\": \"0000000000abcdef\", \"pattern\": true, "
					      "\"misses\": 8589934592}");
	expect_text(perf_print_text,
		    "storage   virt:1G: direct\ndevice    cpu\n"
		    "load      hits, line4k, 4096 bytes a read, 7 lanes, 5 runs\n"
		    "weir      0.20 thousand lines/s (0.10 to 0.30), 0.001 GB/s\n"
		    "plain     0.80 thousand lines/s (0.70 to 0.90), 0.003 GB/s; weir / plain = 0.25\n"
		    "checksum  0000000000abcdef, the same by both; 8589934592 misses\n");
}

static void test_everything_as_text(void **state)
{
	(void)state;
	fill_everything();
	expect_text(
		perf_print_text,
		"storage   virt:1G and others: direct\ndevice    cpu\n"
		"load      randrw, 4096 bytes, 7 lanes x 3 in flight, zipf 0.50, stride 8589934594, 5 runs "
		"of 0.25 s\n"
		"FAILED    8589934624 of 8589934598 requests, one of them with: unrecovered read error "
		"(NVMe status 2:81)\n"
		"          rates and latencies below are of the others\n"
		"cached    0.20 thousand requests/s (0.10 to 0.30), 0.001 GB/s\n"
		"raw       0.40 thousand requests/s (0.30 to 0.50), 0.002 GB/s; weir / raw = 0.50\n"
		"plain     0.80 thousand copies/s (0.70 to 0.90), 0.003 GB/s; weir / plain = 0.25\n"
		"fio       1.60 thousand requests/s (1.50 to 1.70), 0.007 GB/s; weir / fio = 0.12\n"
		"fio fixed 3.20 thousand requests/s (3.10 to 3.30), 0.013 GB/s; weir / fio fixed = 0.06\n"
		"read      p50 0.0 us, p90 0.0 us, p99 0.0 us, p99.9 0.0 us, p99.99 0.1 us\n"
		"write     p50 0.0 us, p90 0.0 us, p99 0.0 us, p99.9 0.0 us, p99.99 0.1 us\n"
		"cache     8589934633 lines of 512 bytes, lru; 8589934629 lines used, 8589934635 misses, "
		"8589934636 evictions, 8589934638 writebacks\n"
		"tier      8589934639 lines, inclusive; 8589934640 hits, 8589934641 stored, 8589934642 kept, "
		"8589934643 dropped\n"
		"registers one 61 (62 bytes local), two 64 (65 bytes local)\n"
		"path      8589934607 commands direct, 8589934608 pull\n"
		"doorbells 8589934628 rung, for the rest their shadows did\n"
		"verified  8589934626 of 8589934625 blocks of 4096 bytes wrong\n"
		"wrong     for one, near byte 8589934627\n");
}

static void test_a_plain_load_as_text(void **state)
{
	(void)state;
	outcome.weir.count = 0;
	add(&outcome.weir, 1e6, 2e6, 3e9);
	outcome.options.rw = PERF_RANDWRITE;
	memset(outcome.read_latency, 0, sizeof(outcome.read_latency));
	outcome.write_latency[20 * PERF_PER_POWER] = 1; /* 2^25 ns */
	expect_text(perf_print_text,
		    "storage   virt:1G: direct\ndevice    cpu\n"
		    "load      randwrite, 4096 bytes, 7 lanes x 3 in flight, 5 runs of 0.25 s\n"
		    "weir      2.00 million writes/s (1.00 to 3000.00), 8.192 GB/s\n"
		    "write     p50 34078.7 us, p90 34078.7 us, p99 34078.7 us, p99.9 34078.7 us, p99.99 "
		    "34078.7 us\n"
		    "path      8589934607 commands direct, 8589934608 pull\n"
		    "errors    0 of 8589934598 requests\n");
}

/* Latencies of a line are of reads and writes together. */
static void test_lines_of_a_sweep(void **state)
{
	(void)state;
	fill_everything();
	memset(outcome.read_latency, 0, sizeof(outcome.read_latency));
	memset(outcome.write_latency, 0, sizeof(outcome.write_latency));
	outcome.read_latency[20 * PERF_PER_POWER] = 98;
	outcome.write_latency[10 * PERF_PER_POWER] = 1;
	outcome.write_latency[22 * PERF_PER_POWER] = 1;
	expect_text(
		print_first_point,
		"          bs         weir/s       GB/s        plain/s    ratio   p50 us   p99 us   errors\n"
		"          4K            200      0.001            800    0.250  34078.7 136314.9 "
		"8589934624\n");
	begin(NULL);
	outcome.options.sweep = "iodepth";
	(void)snprintf(outcome.swept, sizeof(outcome.swept), "64");
	expect_text(print_next_point, "          64            200      0.001              -        -        "
				      "-        -        0\n");
}

/* Each reason alone makes a load fail, and is said. */
static bool complain;

static int run_complain(int count, char **words)
{
	(void)count;
	(void)words;
	complain = perf_complain(&outcome);
	return 0;
}

static void expect_complaint(const char *sentence)
{
	assert_int_equal(capture_run(run_complain, ""), 0);
	assert_int_equal(complain, *sentence != '\0');
	if (*sentence)
		assert_non_null(strstr(captured_errors, sentence));
	else
		assert_string_equal(captured_errors, "");
	begin(NULL);
}

static void test_complaints(void **state)
{
	(void)state;
	expect_complaint("");
	outcome.verified = true;
	outcome.checked = large;
	expect_complaint("");
	outcome.verified = true;
	expect_complaint("nothing is verified, for no block was read and compared");
	outcome.errors = large << 8;
	outcome.status = weir_status_from_nvme((u32)0x281 << 17);
	expect_complaint(
		"2199023255552 of 8589934598 requests failed, one of them with: unrecovered read error");
	outcome.checked = large << 9;
	outcome.bad = large << 8;
	outcome.bad_byte = large + 1;
	expect_complaint("2199023255552 of 4398046511104 blocks that were read do not hold what was written, "
			 "for one near "
			 "byte 8589934593");
}

static void test_percentiles_and_medians(void **state)
{
	static uint64_t buckets[PERF_BUCKETS];
	struct perf_series series = { .count = 0 };

	(void)state;
	assert_true(perf_percentile_us(buckets, .5) == 0);
	buckets[0] = 1; /* a single one is every percentile */
	assert_true(perf_percentile_us(buckets, .5) == .001 && perf_percentile_us(buckets, .9999) == .001);
	buckets[7] = 1; /* of two the second is above the middle */
	assert_true(perf_percentile_us(buckets, .5) == .008 && perf_percentile_us(buckets, .4) == .001);
	buckets[PERF_BUCKETS - 1] = 1000000;
	assert_true(perf_percentile_us(buckets, .5) == perf_bucket_us(PERF_BUCKETS));
	assert_true(perf_bucket_us(127) == .127 && perf_bucket_us(128) == .128 &&
		    perf_bucket_us(129) == .130);
	assert_true(perf_bucket_us(191) == .254 && perf_bucket_us(192) == .256 &&
		    perf_bucket_us(193) == .260);
	assert_true(perf_median(&series) == 0 && perf_least(&series) == 0 && perf_most(&series) == 0);
	perf_series_add(&series, 7);
	assert_true(perf_median(&series) == 7 && perf_least(&series) == 7 && perf_most(&series) == 7);
	perf_series_add(&series, 2);
	assert_true(perf_median(&series) == 4.5 && perf_least(&series) == 2 && perf_most(&series) == 7);
	assert_true(series.value[0] == 7 && series.value[1] == 2); /* runs stay in their order */
	for (unsigned i = 2; i < PERF_MOST_RUNS + 3; i++)
		perf_series_add(&series, 1);
	assert_int_equal(series.count, PERF_MOST_RUNS);
	assert_true(perf_median(&series) == 1 && perf_most(&series) == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_key_has_its_number, begin),
		cmocka_unit_test_setup(test_keys_that_are_not_there, begin),
		cmocka_unit_test_setup(test_latencies_of_a_load_that_writes, begin),
		cmocka_unit_test_setup(test_hits, begin),
		cmocka_unit_test_setup(test_everything_as_text, begin),
		cmocka_unit_test_setup(test_a_plain_load_as_text, begin),
		cmocka_unit_test_setup(test_lines_of_a_sweep, begin),
		cmocka_unit_test_setup(test_complaints, begin),
		cmocka_unit_test(test_percentiles_and_medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
