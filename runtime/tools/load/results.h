/* SPDX-License-Identifier: BSD-3-Clause */
/* results.h: what one measurement found, and how it is told. */
#ifndef WEIR_PERF_RESULTS_H
#define WEIR_PERF_RESULTS_H

#include <stdio.h>

#include <jansson.h>

#include "bench.h"

enum { PERF_KERNELS = 4, PERF_SWEEP_BYTES = 32 };

/**
 * struct perf_series - one figure per run
 * @value: in the order of the runs
 * @count: of them; 0: not measured
 */
struct perf_series {
	double value[PERF_MOST_RUNS];
	uint32_t count;
};

/** struct perf_kernel - a kernel that ran, and what its lanes take */
struct perf_kernel {
	const char *name;
	struct weir_kernel_info info;
};

/**
 * struct perf_outcome - one measurement
 * @options: of it, the swept value included
 * @swept: that value, as it was given
 * @device: what ran it
 * @path: how blocks travelled
 * @bs: bytes of one request, or of one read of a hit loop
 * @range_bytes: of each storage
 * @lanes: that worked
 * @plain_from: where the baseline copied from
 * @plain_blocks: its thread blocks
 * @plain_threads: lanes of each
 * @plain_bytes: what it copied from
 * @weir: requests per second; through the cache, if there is one
 * @raw: beside it, without the cache
 * @plain: of the baseline
 * @fio: of the peer, and
 * @fio_fixed: with registered files and buffers
 * @reads: that succeeded in all of weir's runs
 * @writes: likewise
 * @requests: all that ended: of weir's runs, those beside them, and reads back
 * @errors: failed ones of these
 * @status: of one of them
 * @checked: blocks that were read and compared
 * @bad: of these, with a wrong word
 * @bad_byte: one such place
 * @verified: blocks were to be checked
 * @read_latency: reads per bucket
 * @write_latency: writes per bucket
 * @stats: of all storages, over weir's runs
 * @cache: of the cache, over weir's runs
 * @cpu_seconds: processor time of the process, over weir's runs
 * @lines: lines a cached read takes
 * @hit_misses: misses while only hits were expected
 * @checksum: of a hit loop
 * @filled: hit: the data is the pattern
 * @kernels: that ran
 * @kernel_count: how many
 */
struct perf_outcome {
	struct perf_options options;
	char swept[PERF_SWEEP_BYTES];
	char device[128];
	char path[128];
	uint64_t bs, range_bytes;
	uint32_t lanes;
	enum perf_plain plain_from;
	uint32_t plain_blocks, plain_threads;
	uint64_t plain_bytes;
	struct perf_series weir, raw, plain, fio, fio_fixed;
	uint64_t reads, writes, requests, errors, checked, bad, bad_byte;
	uint32_t status;
	bool verified, filled;
	uint64_t read_latency[PERF_BUCKETS], write_latency[PERF_BUCKETS];
	struct weir_stats stats;
	struct weir_cache_stats cache;
	double cpu_seconds;
	uint64_t lines, hit_misses, checksum;
	struct perf_kernel kernels[PERF_KERNELS];
	unsigned kernel_count;
};

/** perf_series_add() - one more run */
void perf_series_add(struct perf_series *series, double value);

/** perf_median() - of the runs; 0 if there are none */
double perf_median(const struct perf_series *series);

/** perf_least() - of the runs */
double perf_least(const struct perf_series *series);

/** perf_most() - of the runs */
double perf_most(const struct perf_series *series);

/** perf_bucket_us() - lower end of latency bucket @i */
double perf_bucket_us(unsigned i);

/** perf_percentile_us() - upper end of the bucket in which @share of all is reached; 0 if nothing was counted
 */
double perf_percentile_us(const uint64_t *buckets, double share);

/** perf_kernel_note() - remember what @name takes; 0 or -1 with a sentence */
int perf_kernel_note(struct perf_outcome *outcome, struct weir_context *context, const char *name);

/** perf_complain() - a sentence on stderr for each reason why @outcome must not be trusted; true if there is
 * one */
bool perf_complain(const struct perf_outcome *outcome);

/** perf_print_text() - a few lines for people */
void perf_print_text(const struct perf_outcome *outcome);

/** perf_print_point() - one line of a sweep */
void perf_print_point(const struct perf_outcome *outcome, bool first);

/** perf_json() - everything, for programs */
json_t *perf_json(const struct perf_outcome *outcome);

#endif
