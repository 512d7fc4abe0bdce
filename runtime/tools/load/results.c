/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians, percentiles, and the text for people. */
#include "results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "tool_options.h"

void perf_series_add(struct perf_series *series, double value)
{
	if (series->count < PERF_MOST_RUNS)
		series->value[series->count++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double perf_median(const struct perf_series *series)
{
	struct perf_series sorted = *series;
	uint32_t half = sorted.count / 2;

	if (!sorted.count)
		return 0;
	qsort(sorted.value, sorted.count, sizeof(sorted.value[0]), compare);
	return sorted.count % 2 ? sorted.value[half] : (sorted.value[half - 1] + sorted.value[half]) / 2;
}

double perf_least(const struct perf_series *series)
{
	double least = series->count ? series->value[0] : 0;

	for (uint32_t i = 1; i < series->count; i++)
		least = series->value[i] < least ? series->value[i] : least;
	return least;
}

double perf_most(const struct perf_series *series)
{
	double most = 0;

	for (uint32_t i = 0; i < series->count; i++)
		most = series->value[i] > most ? series->value[i] : most;
	return most;
}

double perf_bucket_us(unsigned i)
{
	unsigned power = i < 2 * PERF_PER_POWER ? 0 : i / PERF_PER_POWER - 1;

	return (double)((uint64_t)(i - power * PERF_PER_POWER) << power) / 1e3;
}

double perf_percentile_us(const uint64_t *buckets, double share)
{
	uint64_t all = 0, seen = 0, wanted;

	for (unsigned i = 0; i < PERF_BUCKETS; i++)
		all += buckets[i];
	wanted = (uint64_t)((double)all * share);
	for (unsigned i = 0; i < PERF_BUCKETS && all; i++) {
		seen += buckets[i];
		if (seen > wanted)
			return perf_bucket_us(i + 1);
	}
	return all ? perf_bucket_us(PERF_BUCKETS) : 0;
}

int perf_kernel_note(struct perf_outcome *outcome, struct weir_context *context, const char *name)
{
	struct perf_kernel *kernel = &outcome->kernels[outcome->kernel_count];

	if (outcome->kernel_count == PERF_KERNELS)
		return weir_fail(EINVAL, "no room to note kernel %s", name);
	kernel->name = name;
	kernel->info.size = sizeof(kernel->info);
	outcome->kernel_count++;
	return weir_kernel_info(context, name, &kernel->info) == 0 ? 0 : -1;
}

/* "1,234.5 thousand reads/s (low to high), GB/s" in the unit that suits it. */
static void print_rate(const char *name, const struct perf_series *series, const char *what, uint64_t bytes)
{
	double median = perf_median(series), scale = median >= 1e9 ? 1e9 : median >= 1e6 ? 1e6 : 1e3;

	printf("%-9s %.2f %s %s/s (%.2f to %.2f), %.3f GB/s", name, median / scale,
	       scale > 1e8   ? "billion"
	       : scale > 1e5 ? "million"
			     : "thousand",
	       what, perf_least(series) / scale, perf_most(series) / scale, median * (double)bytes / 1e9);
}

static void print_peers(const char *name, const struct perf_outcome *outcome,
			const struct perf_series *series, const char *what)
{
	if (!series->count)
		return;
	print_rate(name, series, what, outcome->bs);
	printf("; weir / %s = %.2f\n", name, perf_median(&outcome->weir) / perf_median(series));
}

static void print_latency(const char *name, const uint64_t *buckets)
{
	if (perf_percentile_us(buckets, .5) > 0)
		printf("%-9s p50 %.1f us, p90 %.1f us, p99 %.1f us, p99.9 %.1f us, p99.99 %.1f us\n", name,
		       perf_percentile_us(buckets, .5), perf_percentile_us(buckets, .9),
		       perf_percentile_us(buckets, .99), perf_percentile_us(buckets, .999),
		       perf_percentile_us(buckets, .9999));
}

static void print_load(const struct perf_outcome *outcome)
{
	const struct perf_options *options = &outcome->options;

	printf("load      %s, %llu bytes, %u lanes x %u in flight", perf_rw_names[options->rw],
	       (unsigned long long)outcome->bs, outcome->lanes, options->window);
	if (options->zipf > 0)
		printf(", zipf %.2f", options->zipf);
	if (options->stride)
		printf(", stride %llu", (unsigned long long)options->stride);
	printf(", %u runs of %g s\n", options->runs, options->runtime);
}

static void print_cache(const struct perf_outcome *outcome)
{
	if (!outcome->options.cached)
		return;
	printf("cache     %llu lines of %llu bytes, %s; %llu lines used, %llu misses, %llu evictions, %llu "
	       "writebacks\n",
	       (unsigned long long)outcome->cache.lines, (unsigned long long)outcome->cache.line_bytes,
	       weir_policy_name((enum weir_policy)outcome->options.policy),
	       (unsigned long long)outcome->lines, (unsigned long long)outcome->cache.misses,
	       (unsigned long long)outcome->cache.evictions, (unsigned long long)outcome->cache.writebacks);
	if (outcome->options.tier)
		printf("tier      %llu lines, %s; %llu hits, %llu stored, %llu kept, %llu dropped\n",
		       (unsigned long long)outcome->cache.tier_lines,
		       outcome->options.tier_inclusive ? "inclusive" : "exclusive",
		       (unsigned long long)outcome->cache.tier_hits,
		       (unsigned long long)outcome->cache.tier_stored,
		       (unsigned long long)outcome->cache.tier_kept,
		       (unsigned long long)outcome->cache.tier_dropped);
}

static void print_kernels(const struct perf_outcome *outcome)
{
	if (!outcome->kernels[0].info.registers)
		return;
	printf("registers");
	for (unsigned i = 0; i < outcome->kernel_count; i++)
		printf("%s %s %u (%u bytes local)", i ? "," : "", outcome->kernels[i].name,
		       outcome->kernels[i].info.registers, outcome->kernels[i].info.local_bytes);
	printf("\n");
}

static void print_verdict(const struct perf_outcome *outcome)
{
	if (outcome->verified && outcome->checked)
		printf("verified  %llu of %llu blocks of %llu bytes wrong\n",
		       (unsigned long long)outcome->bad, (unsigned long long)outcome->checked,
		       (unsigned long long)outcome->bs);
	if (outcome->bad)
		printf("wrong     for one, near byte %llu\n", (unsigned long long)outcome->bad_byte);
	if (!outcome->errors)
		printf("errors    0 of %llu requests\n", (unsigned long long)outcome->requests);
}

/* Before any figure: those that follow are of the requests that did not fail. */
static void print_failures(const struct perf_outcome *outcome)
{
	char text[80];

	if (!outcome->errors)
		return;
	weir_status_text(outcome->status, text);
	printf("FAILED    %llu of %llu requests, one of them with: %s\n", (unsigned long long)outcome->errors,
	       (unsigned long long)outcome->requests, text);
	printf("          rates and latencies below are of the others\n");
}

bool perf_complain(const struct perf_outcome *outcome)
{
	char text[80];
	bool unverified = outcome->verified && !outcome->checked;

	if (outcome->errors) {
		weir_status_text(outcome->status, text);
		(void)tool_complain("%llu of %llu requests failed, one of them with: %s; they are in no "
				    "rate",
				    (unsigned long long)outcome->errors,
				    (unsigned long long)outcome->requests, text);
	}
	if (outcome->bad)
		(void)tool_complain(
			"%llu of %llu blocks that were read do not hold what was written, for one "
			"near byte %llu",
			(unsigned long long)outcome->bad, (unsigned long long)outcome->checked,
			(unsigned long long)outcome->bad_byte);
	if (unverified)
		(void)tool_complain("nothing is verified, for no block was read and compared");
	return outcome->errors || outcome->bad || unverified;
}

static void print_hit(const struct perf_outcome *outcome)
{
	const char *what = outcome->options.hit == PERF_HIT_LINE4K ? "lines" : "reads";

	printf("load      hits, %s, %llu bytes a read, %u lanes, %u runs\n",
	       perf_hit_names[outcome->options.hit], (unsigned long long)outcome->bs, outcome->lanes,
	       outcome->options.runs);
	print_rate("weir", &outcome->weir, what, outcome->bs);
	printf("\n");
	print_peers("plain", outcome, &outcome->plain, what);
	print_kernels(outcome);
	printf("checksum  %016llx, the same by both; %llu misses\n", (unsigned long long)outcome->checksum,
	       (unsigned long long)outcome->hit_misses);
}

void perf_print_text(const struct perf_outcome *outcome)
{
	const char *what = !perf_writes(&outcome->options)      ? "reads"
			   : !perf_reads_any(&outcome->options) ? "writes"
								: "requests";

	printf("storage   %s%s: %s\n", outcome->options.uris[0],
	       outcome->options.uri_count > 1 ? " and others" : "", outcome->path);
	printf("device    %s\n", outcome->device);
	if (outcome->options.hit != PERF_HIT_NONE) {
		print_hit(outcome);
		return;
	}
	print_load(outcome);
	print_failures(outcome);
	print_rate(outcome->options.cached ? "cached" : "weir", &outcome->weir, what, outcome->bs);
	printf("\n");
	print_peers("raw", outcome, &outcome->raw, what);
	print_peers("plain", outcome, &outcome->plain, "copies");
	print_peers("fio", outcome, &outcome->fio, what);
	print_peers("fio fixed", outcome, &outcome->fio_fixed, what);
	print_latency("read", outcome->read_latency);
	print_latency("write", outcome->write_latency);
	print_cache(outcome);
	print_kernels(outcome);
	printf("path      %llu commands direct, %llu pull\n", (unsigned long long)outcome->stats.direct,
	       (unsigned long long)outcome->stats.pull);
	if (outcome->stats.rings)
		printf("doorbells %llu rung, for the rest their shadows did\n",
		       (unsigned long long)outcome->stats.rings);
	print_verdict(outcome);
}

/* Of reads and writes together, as the rate is; nothing was timed with --no-latency and --hit. */
static void print_point_latency(const struct perf_outcome *outcome)
{
	uint64_t both[PERF_BUCKETS];

	for (unsigned i = 0; i < PERF_BUCKETS; i++)
		both[i] = outcome->read_latency[i] + outcome->write_latency[i];
	if (perf_percentile_us(both, .5) > 0)
		printf("%8.1f %8.1f ", perf_percentile_us(both, .5), perf_percentile_us(both, .99));
	else
		printf("%8s %8s ", "-", "-");
}

void perf_print_point(const struct perf_outcome *outcome, bool first)
{
	double weir = perf_median(&outcome->weir), plain = perf_median(&outcome->plain);

	if (first)
		printf("%12s %14s %10s %14s %8s %8s %8s %8s\n", outcome->options.sweep, "weir/s", "GB/s",
		       "plain/s", "ratio", "p50 us", "p99 us", "errors");
	printf("%12s %14.0f %10.3f ", outcome->swept, weir, weir * (double)outcome->bs / 1e9);
	if (outcome->plain.count)
		printf("%14.0f %8.3f ", plain, weir / plain);
	else
		printf("%14s %8s ", "-", "-");
	print_point_latency(outcome);
	printf("%8llu\n", (unsigned long long)outcome->errors);
}
