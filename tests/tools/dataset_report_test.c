/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-dataset prints of a dataset that it measures, checks and describes, and how it ends. */
#include "dataset_stand_ins.h"

static struct tool tool;

static int begin(void **state)
{
	(void)state;
	memset(&stand_in, 0, sizeof(stand_in));
	stand_in.info = (struct weir_dataset_info){ .samples = SAMPLES,
						    .bytes = SAMPLES * 100 + 45,
						    .longest_bytes = 109,
						    .shortest_bytes = 100,
						    .labels = 7,
						    .storages = 2,
						    .chunks = large + 3,
						    .chunk_bytes = 65536,
						    .row_bytes = 112,
						    .directory_bytes = 22 * SAMPLES,
						    .cache_bytes = large + 4,
						    .mount_us = 12345 };
	stand_in.step = 1;
	ranks = (struct weir_dataset_communicator){ .ranks = RANKS, .gather = gather };
	tool = (struct tool){ .operands = operands,
			      .operand_count = 2,
			      .batch = 4,
			      .runs = 1,
			      .seconds = 3,
			      .depth = 8,
			      .threads = 2,
			      .seed = 5,
			      .json = true,
			      .no_drop = true,
			      .all_orders = true,
			      .communicator = &ranks };
	return 0;
}

static int run_work(int count, char **words)
{
	static int (*const works[])(struct tool *) = { tool_info,   tool_verify, tool_order, tool_index,
						       tool_upload, tool_bench,  print_stats };
	static const char *const names[] = { "info", "verify", "order", "index", "upload", "bench", "stats" };

	for (unsigned i = 0; i < sizeof(works) / sizeof(works[0]) && count; i++)
		if (!strcmp(words[0], names[i]))
			return works[i](&tool);
	return -1;
}

static int run(const char *line)
{
	return capture_run(run_work, line);
}

static uint64_t count_of(const json_t *row, const char *key)
{
	assert_true(json_is_integer(json_object_get(row, key)));
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* The @number-th line of what was printed. */
static json_t *line_of(unsigned number)
{
	char copy[CAPTURED_BYTES], *rest = NULL, *line;

	strcpy(copy, captured);
	line = strtok_r(copy, "\n", &rest);
	while (line && number--)
		line = strtok_r(NULL, "\n", &rest);
	return line ? json_loads(line, 0, NULL) : NULL;
}

/* Each counter is itself, of all ranks; memory is that of the rank that had most. */
static void test_counters_of_all_ranks(void **state)
{
	struct totals mine;
	char expected[600];

	(void)state;
	stand_in.stats = (struct weir_dataset_stats){ .samples = large + 1,
						      .reads = large + 2,
						      .read_bytes = large * 1024 + 3,
						      .direct_samples = large + 5,
						      .chunk_loads = large + 7,
						      .evictions = large + 11,
						      .cache_full_samples = large + 13,
						      .cache_hits = 1,
						      .batches = 1,
						      .copied_bytes = 1 };
	assert_int_equal(run("stats"), 0);
	memcpy(&mine, stand_in.mine, sizeof(mine));
	assert_true(stand_in.mine_bytes == sizeof(mine) && mine.peak_bytes >= 1 << 16);
	(void)snprintf(expected, sizeof(expected),
		       "{\"what\": \"all runs\", \"samples\": %llu, \"reads\": %llu, \"read_bytes\": %llu, "
		       "\"direct_samples\": %llu, \"chunk_loads\": %llu, \"evictions\": %llu, "
		       "\"cache_full_samples\": %llu, \"peak_rss_bytes\": %llu}",
		       6 * (unsigned long long)(large + 1), 6 * (unsigned long long)(large + 2),
		       6 * (unsigned long long)(large * 1024 + 3), 6 * (unsigned long long)(large + 5),
		       6 * (unsigned long long)(large + 7), 6 * (unsigned long long)(large + 11),
		       6 * (unsigned long long)(large + 13), 3 * (unsigned long long)mine.peak_bytes);
	capture_expect_json(captured, expected);
	tool.json = false;
	assert_int_equal(run("stats"), 0);
	(void)snprintf(
		expected, sizeof(expected),
		"  of all runs: %llu samples, %llu reads of 1.0 KiB, %llu straight to their rows, %llu "
		"chunks, %llu made room; ",
		6 * (unsigned long long)(large + 1), 6 * (unsigned long long)(large + 2),
		6 * (unsigned long long)(large + 5), 6 * (unsigned long long)(large + 7),
		6 * (unsigned long long)(large + 11));
	assert_non_null(strstr(captured, expected));
	(void)snprintf(expected, sizeof(expected), "\n  %llu samples one by one, ",
		       6 * (unsigned long long)(large + 13));
	assert_non_null(strstr(captured, expected));
	stand_in.refused = "stats";
	assert_int_equal(run("stats"), 1);
	stand_in.refused = "gather";
	assert_int_equal(run("stats"), 1);
	stand_in.refused = NULL;
	ranks.rank = 1; /* the first one prints */
	assert_int_equal(run("stats"), 0);
	assert_string_equal(captured, "");
}

/* A run is what all ranks read, in the time of the slowest. */
static void test_a_run_of_all_ranks(void **state)
{
	const struct way way = { .order = 2 };
	struct peer_result result;

	(void)state;
	tool.buffer_chunks = 9;
	assert_int_equal(run_weir(&tool, &way, 77, &result), 0);
	/* the clock says 1 at the beginning, and one more behind each batch */
	assert_int_equal(stand_in.sequence_count, 1);
	assert_true(stand_in.sequences[0].seed == 77 && stand_in.sequences[0].order == 2 &&
		    stand_in.sequences[0].epoch == 0 && stand_in.sequences[0].buffer_chunks == 9);
	assert_int_equal(stand_in.rows, 4);
	assert_int_equal(stand_in.gathers, 2);
	assert_true(result.seconds == 9);                 /* three times 3 */
	assert_true(result.samples == 6.0 * SAMPLES / 9); /* ranks have one, two and three times as many */
	assert_true(result.bytes == 6.0 * (SAMPLES * 100 + 45) / 9);
	tool.seconds = 10; /* an epoch takes four, the last of which brings none */
	stand_in.sequence_count = 0;
	assert_int_equal(run_weir(&tool, &way, 77, &result), 0);
	assert_int_equal(stand_in.sequence_count, 3);
	assert_true(stand_in.sequences[2].epoch == 2 && stand_in.sequences[2].seed == 77);
}

/* What comes before the ramp has ended does not count. */
static void test_a_ramp_does_not_count(void **state)
{
	const struct way way = { .order = 1 };
	struct peer_result result;

	(void)state;
	ranks.ranks = 1;
	tool.ramp = 2; /* two batches, of 8 samples */
	tool.seconds = 2;
	assert_int_equal(run_weir(&tool, &way, 0, &result), 0);
	assert_true(result.seconds == 2);
	assert_true(result.samples == 2 / 2.0); /* two, and then none */
	assert_true(result.bytes == (108 + 109) / 2.0);
}

/* Whichever rank fails fails the run of all. */
static void test_a_rank_that_fails(void **state)
{
	const struct way way = { .order = 0 };
	struct peer_result result;

	(void)state;
	for (stand_in.error_of = 1; stand_in.error_of < RANKS; stand_in.error_of++)
		assert_int_equal(run_weir(&tool, &way, 0, &result), 1);
	stand_in.error_of = 0;
	assert_int_equal(run_weir(&tool, &way, 0, &result), 0);
	for (unsigned i = 0; i < 2; i++) {
		stand_in.gathers = 0;
		stand_in.refused = i ? "sequence" : "bread";
		assert_int_equal(run("bench"), 1);
		assert_int_equal(stand_in.gathers, 2); /* nobody waits for this rank */
		assert_non_null(strstr(captured_errors, "is refused"));
	}
}

static int run_print(int count, char **words)
{
	static const double bytes[] = { 500, 100, 400, 200, 300 };
	struct way way = { .name = "way" };

	(void)words;
	tool.runs = (uint32_t)count - 1;
	for (uint32_t i = 0; i < tool.runs; i++)
		way.results[i] = (struct peer_result){ .samples = bytes[i] * 7,
						       .bytes = bytes[i],
						       .cores = bytes[i] / 100,
						       .seconds = bytes[i] / 10 };
	print(&tool, &way);
	return 0;
}

/* Of runs in any order the median, or the mean of the two in the middle; all runs in their own order. */
static void test_the_median_of_runs(void **state)
{
	static const struct {
		const char *line;
		double median;
	} rows[] = { { "p 1", 500 },
		     { "p 1 2", 300 },
		     { "p 1 2 3", 400 },
		     { "p 1 2 3 4", 300 },
		     { "p 1 2 3 4 5", 300 } };
	static const double bytes[] = { 500, 100, 400, 200, 300 };

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		json_t *found, *runs;

		assert_int_equal(capture_run(run_print, rows[i].line), 0);
		found = json_loads(captured, 0, NULL);
		runs = json_object_get(found, "runs");
		assert_string_equal(json_string_value(json_object_get(found, "what")), "way");
		assert_true(json_number_value(json_object_get(found, "bytes_per_s")) == rows[i].median);
		assert_true(json_number_value(json_object_get(found, "samples_per_s")) == 7 * rows[i].median);
		assert_true(json_number_value(json_object_get(found, "cores")) == rows[i].median / 100);
		assert_int_equal(count_of(found, "ranks"), RANKS);
		assert_int_equal(json_array_size(runs), i + 1);
		for (unsigned k = 0; k <= i; k++) {
			const json_t *one = json_array_get(runs, k);

			assert_true(json_number_value(json_object_get(one, "bytes_per_s")) == bytes[k]);
			assert_true(json_number_value(json_object_get(one, "samples_per_s")) == 7 * bytes[k]);
			assert_true(json_number_value(json_object_get(one, "cores")) == bytes[k] / 100);
			assert_true(json_number_value(json_object_get(one, "seconds")) == bytes[k] / 10);
		}
		json_decref(found);
	}
}

/* Each round has every way, by a seed of its own; ranks measure the orders alone. */
static void test_ways_of_a_bench(void **state)
{
	static const char *const alone_says[] = {
		"weir shuffled-chunk",
		"weir chunk",
		"weir full",
		"io_uring, 256 KiB in order (limit)",
		"packed file, io_uring, depth 8",
		"files, open + pread, 1 thread",
		"files, open + pread, 2 threads",
		"all runs",
	};

	(void)state;
	tool.runs = 2;
	assert_int_equal(run("bench"), 0);
	assert_int_equal(stand_in.sequence_count, 6);
	for (unsigned i = 0; i < 6; i++)
		assert_true(stand_in.sequences[i].order == i % 3 && stand_in.sequences[i].seed == 5 + i / 3);
	for (unsigned i = 0; i < 4; i++) {
		json_t *row = line_of(i);

		assert_string_equal(json_string_value(json_object_get(row, "what")),
				    alone_says[i < 3 ? i : 7]);
		json_decref(row);
	}
	assert_null(line_of(4));
	ranks.ranks = 1;
	tool.peers = "folder";
	tool.parts = TOOL_ORDERS | TOOL_PEERS;
	assert_int_equal(run("bench"), 0);
	for (unsigned i = 0; i < 8; i++) {
		json_t *row = line_of(i);

		assert_string_equal(json_string_value(json_object_get(row, "what")), alone_says[i]);
		if (i == 3)
			assert_int_equal(count_of(row, "samples_per_s"), 0); /* its reads are none */
		else if (i > 3 && i < 7)
			assert_int_equal(count_of(row, "samples_per_s"), 2000);
		json_decref(row);
	}
	stand_in.refused = "peers";
	assert_int_equal(run("bench"), 1);
}

/* Names that are not there count as such, one by one and many at once; the directory is as long as with its
 * index. */
static void test_lookups(void **state)
{
	static const char *const refused[] = { "info", "name", "find", "find_many" };
	json_t *row;

	(void)state;
	ranks.ranks = 1;
	tool.parts = TOOL_LOOKUP;
	stand_in.info.samples = 1000;
	stand_in.info.directory_bytes = 22 * 1000;
	assert_int_equal(run("bench"), 0);
	row = line_of(0);
	assert_string_equal(json_string_value(json_object_get(row, "what")), "lookup buckets");
	assert_int_equal(count_of(row, "names"), 2000);
	assert_in_range(count_of(row, "found"), 2000 * 3 / 5, 2000 - 200);
	assert_true(json_number_value(json_object_get(row, "bytes_per_sample")) == 25);
	/* one second of a clock that each question moves by one: in 200 rounds of 2000 names */
	assert_true(json_number_value(json_object_get(row, "one_ns")) == 2500);
	json_decref(row);
	assert_null(line_of(1));
	tool.lookup = WEIR_DATASET_AVL;
	assert_int_equal(run("bench"), 0);
	row = line_of(0);
	assert_string_equal(json_string_value(json_object_get(row, "what")), "lookup avl");
	json_decref(row);
	for (unsigned i = 0; i < 4; i++) {
		stand_in.refused = refused[i];
		assert_int_equal(run("bench"), 1);
		assert_non_null(strstr(captured_errors, "is refused"));
	}
}

/* Names of files are those of samples behind their folder, however that was written. */
static void test_names_of_the_peers(void **state)
{
	static char *const folders[] = { "folder", "folder/", "folder//" };

	(void)state;
	ranks.ranks = 1;
	tool.parts = TOOL_LOOKUP;
	for (unsigned i = 0; i < 3; i++) {
		json_t *row;

		tool.peers = folders[i];
		assert_int_equal(run("bench"), 0);
		row = line_of(0);
		assert_int_equal(count_of(row, "names"), 10);
		assert_int_equal(count_of(row, "found"), 8);
		json_decref(row);
		row = line_of(1); /* the library's caches are left as they are */
		assert_string_equal(json_string_value(json_object_get(row, "what")), "open(2) + close(2)");
		assert_true(json_number_value(json_object_get(row, "one_ns")) == 1e9 / 2000);
		assert_true(json_number_value(json_object_get(row, "one_processor_ns")) == 0.5e9 / 2000);
		json_decref(row);
		assert_null(line_of(2));
	}
	tool.no_drop = false;
	assert_int_equal(run("bench"), 0);
	assert_non_null(strstr(captured, "\"open(2) + close(2), not cached\""));
	stand_in.refused = "names";
	assert_int_equal(run("bench"), 1);
}

static void test_info_of_a_dataset(void **state)
{
	(void)state;
	assert_int_equal(run("info"), 0);
	assert_string_equal(captured,
			    "samples         10\nbytes           1045\nlengths         100 to 109\n"
			    "labels          7\nstorages        2\nchunks          8589934595 of 65536\n"
			    "row             112\ndirectory       220 bytes, 22.00 per sample\n"
			    "cache           8589934596\nmount           12.3 ms\nranks           3\n");
	ranks.rank = 2;
	assert_int_equal(run("info"), 0);
	assert_string_equal(captured, "");
	stand_in.refused = "info";
	assert_int_equal(run("info"), 1);
	stand_in.refused = "mount";
	assert_int_equal(run("info"), 1);
}

/* As many samples and bytes as there are, and each sample once. Ranks have one, two and three times what this
 * one has, so that there are six times as many. */
static void test_what_is_verified(void **state)
{
	static const char *const refused[] = { "info", "sequence", "bread", "mount", "gather" };
	uint64_t numbers = 0;

	(void)state;
	tool.order = 1;
	ranks.ranks = 1;
	assert_int_equal(run("verify"), 0);
	assert_string_equal(captured, "10 samples, 1045 bytes, 1 ranks: all there\n");
	assert_true(stand_in.sequences[0].seed == 5 && stand_in.sequences[0].order == 1);
	assert_int_equal(stand_in.rows, 4);
	stand_in.info.bytes++;
	assert_int_equal(run("verify"), 1);
	assert_non_null(
		strstr(captured_errors, "10 samples with 1045 bytes were read, and there are 10 with 1046"));
	stand_in.info.bytes--;
	stand_in.info.samples++;
	assert_int_equal(run("verify"), 1);
	stand_in.info.samples--;
	stand_in.twice = 3;
	assert_int_equal(run("verify"), 1);
	assert_non_null(strstr(captured_errors, "not each of them once"));
	stand_in.twice = 0;
	for (unsigned i = 0; i < 5; i++) {
		stand_in.refused = refused[i];
		stand_in.agreements = 0;
		assert_int_equal(run("verify"), 1);
		assert_string_equal(captured, "");
		if (i < 3) /* before others would wait for what this rank has read */
			assert_true(stand_in.agreements == 1 && stand_in.agreed == -EIO);
	}
	stand_in.refused = "progress";
	assert_int_equal(run("verify"), 1);
	assert_non_null(strstr(captured_errors, "stopped after 8 samples"));
	stand_in.refused = NULL;
	ranks.ranks = RANKS;
	assert_int_equal(run("verify"), 1); /* of each sample six */
	assert_non_null(strstr(captured_errors, "60 samples with 6270 bytes were read"));
	assert_int_equal(sum(&tool, &numbers), 0);
	numbers = large;
	assert_int_equal(sum(&tool, &numbers), 0);
	assert_true(numbers == 6 * large);
}

static void test_orders_of_a_dataset(void **state)
{
	(void)state;
	tool.buffer_chunks = 17;
	stand_in.quality = (struct weir_dataset_quality){
		.coverage = 0.25, .displacement = 0.5, .autocorrelation = 0.125, .neighbours = 0.0625
	};
	assert_int_equal(run("order"), 0);
	assert_int_equal(stand_in.sequence_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(stand_in.sequences[i].order == i && stand_in.sequences[i].seed == 5 &&
			    stand_in.sequences[i].buffer_chunks == 17);
	assert_int_equal(stand_in.quality_batch, 4);
	assert_non_null(strstr(captured,
			       "batch 4\nshuffled-chunk        0.250          0.500            0.1250       "
			       "0.0625\nchunk                 1.250          0.500 "));
	assert_non_null(strstr(
		captured, "\nfull                  2.250          0.500            0.1250       0.0625\n"));
	stand_in.refused = "quality";
	assert_int_equal(run("order"), 1);
}

/* Points of each order go to gnuplot, some thousands at most. */
static void test_positions_as_a_picture(void **state)
{
	static const struct {
		uint64_t samples;
		unsigned points, last;
	} rows[] = { { 10, 10, 9 }, { 3999, 3999, 3998 }, { 4000, 2000, 3998 }, { 12345, 3087, 12344 } };
	char folder[] = "/tmp/weir-dataset-plot-XXXXXX", command[600], said[64], path[600];
	const char *paths = getenv("PATH");

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(command, sizeof(command),
		       "printf '#!/bin/sh\\ncat >%s/said; exit $(cat %s/status)\\n' >%s/gnuplot && chmod +x "
		       "%s/gnuplot && echo 0 >%s/status",
		       folder, folder, folder, folder, folder);
	assert_int_equal(system(command), 0);
	(void)snprintf(path, sizeof(path), "%s:%s", folder, paths ? paths : "/usr/bin:/bin");
	assert_int_equal(setenv("PATH", path, 1), 0);
	(void)snprintf(said, sizeof(said), "%s/said", folder);
	tool.plot = "picture.svg";
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned points = 0, ends = 0, titles = 0, outputs = 0, at, number, last = 0;
		char line[600];
		FILE *file;

		stand_in.info.samples = rows[i].samples;
		assert_int_equal(run("order"), 0);
		file = fopen(said, "r");
		assert_non_null(file);
		while (fgets(line, sizeof(line), file)) {
			ends += !strcmp(line, "e\n");
			titles += !strcmp(line, "set title 'chunk'\n") ||
				  !strcmp(line, "set title 'full'\n") ||
				  !strcmp(line, "set title 'shuffled-chunk'\n");
			outputs += !strcmp(line, "set output 'picture.svg'\n");
			if (sscanf(line, "%u %u", &at, &number) == 2) {
				assert_int_equal(number, at);
				last = at;
				points++;
			}
		}
		(void)fclose(file);
		assert_true(ends == 3 && titles == 3 && outputs == 1);
		assert_int_equal(points, 3 * rows[i].points);
		assert_int_equal(last, rows[i].last);
	}
	(void)snprintf(command, sizeof(command), "echo 3 >%s/status", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(run("order"), 1);
	assert_non_null(strstr(captured_errors, "gnuplot could not write picture.svg"));
	tool.plot = "it's";
	assert_int_equal(run("order"), 1);
	assert_non_null(strstr(captured_errors, "a file name with quotes"));
	assert_int_equal(setenv("PATH", paths ? paths : "/usr/bin:/bin", 1), 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

/* Each storage has its own manifest; options are what was asked for; the first rank alone uploads. */
static void test_manifests_of_an_index(void **state)
{
	(void)state;
	tool.format = "fixed:7";
	tool.checks = true;
	assert_int_equal(run("index"), 0);
	assert_string_equal(captured, "a.weir\nb.weir\n");
	assert_int_equal(stand_in.indexed, 2);
	assert_string_equal(stand_in.names[0], "a.weir");
	assert_string_equal(stand_in.names[1], "b.weir");
	assert_string_equal(stand_in.index.format, "fixed:7");
	assert_true(stand_in.index.checks && stand_in.index.progress == tool_progress);
	tool.storage_count = 0;
	assert_int_equal(run("upload"), 0);
	assert_string_equal(stand_in.names[0], "file:a");
	assert_int_equal(stand_in.uploaded, 1);
	assert_string_equal(stand_in.index.format, "fixed:7");
	assert_true(stand_in.index.checks && stand_in.index.progress == tool_progress);
	stand_in.uploaded = tool.storage_count = 0;
	ranks.rank = 1;
	assert_int_equal(run("upload"), 0);
	assert_int_equal(stand_in.uploaded, 0);
	ranks.rank = 0;
	stand_in.refused = "communicator";
	assert_int_equal(run("upload"), 1);
	for (unsigned i = 0; i < 2; i++) {
		tool.storage_count = 0;
		stand_in.refused = i ? "open" : "upload";
		assert_int_equal(run("upload"), 1);
		tool.storage_count = 0;
		stand_in.refused = i ? "open" : "index";
		assert_int_equal(run("index"), 1);
		assert_string_equal(captured, "");
	}
}

#define CASE(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_counters_of_all_ranks),
		CASE(test_a_run_of_all_ranks),
		CASE(test_a_ramp_does_not_count),
		CASE(test_a_rank_that_fails),
		CASE(test_the_median_of_runs),
		CASE(test_ways_of_a_bench),
		CASE(test_lookups),
		CASE(test_names_of_the_peers),
		CASE(test_info_of_a_dataset),
		CASE(test_positions_as_a_picture),
		CASE(test_what_is_verified),
		CASE(test_orders_of_a_dataset),
		CASE(test_manifests_of_an_index),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
