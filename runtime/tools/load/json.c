/* SPDX-License-Identifier: BSD-3-Clause */
/* An outcome as JSON: every figure, with what it was measured by. */
#include <string.h>

#include "results.h"

static void set_count(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_real(value));
}

/* "iops", "iops_min", "iops_max", "iops_runs", "iops_spread", "bytes_per_s", each after @prefix. */
static void set_series(json_t *object, const char *prefix, const struct perf_series *series, uint64_t bytes)
{
	const char *const names[] = { "iops", "iops_min", "iops_max", "iops_spread", "bytes_per_s" };
	double median = perf_median(series);
	double values[] = { median, perf_least(series), perf_most(series),
			    median > 0 ? (perf_most(series) - perf_least(series)) / median : 0,
			    median * (double)bytes };
	json_t *runs = json_array();
	char key[64];

	if (!series->count) {
		json_decref(runs);
		return;
	}
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, names[i]);
		set_real(object, key, values[i]);
	}
	for (uint32_t i = 0; i < series->count; i++)
		json_array_append_new(runs, json_real(series->value[i]));
	snprintf(key, sizeof(key), "%siops_runs", prefix);
	json_object_set_new(object, key, runs);
}

static void set_ratio(json_t *object, const char *key, const struct perf_outcome *outcome,
		      const struct perf_series *to)
{
	if (to->count && perf_median(to) > 0)
		set_real(object, key, perf_median(&outcome->weir) / perf_median(to));
}

static void set_latency(json_t *object, const char *prefix, const uint64_t *buckets)
{
	static const struct {
		const char *name;
		double share;
	} rows[] = {
		{ "p50_us", .5 },    { "p90_us", .9 },      { "p99_us", .99 },
		{ "p999_us", .999 }, { "p9999_us", .9999 },
	};
	char key[64];

	if (!(perf_percentile_us(buckets, .5) > 0))
		return;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, rows[i].name);
		set_real(object, key, perf_percentile_us(buckets, rows[i].share));
	}
}

static void set_load(json_t *object, const struct perf_outcome *outcome)
{
	const struct perf_options *options = &outcome->options;
	json_t *uris = json_array();

	for (uint32_t i = 0; i < options->uri_count; i++)
		json_array_append_new(uris, json_string(options->uris[i]));
	json_object_set_new(object, "uri", json_string(options->uris[0]));
	json_object_set_new(object, "uris", uris);
	json_object_set_new(object, "device", json_string(outcome->device));
	json_object_set_new(object, "path", json_string(outcome->path));
	set_count(object, "bs", outcome->bs);
	set_count(object, "iodepth", outcome->lanes);
	if (options->service)
		set_count(object, "service", options->service);
	set_count(object, "runs", options->runs);
	set_real(object, "runtime_s", options->runtime);
	set_count(object, "offset", options->offset);
	set_count(object, "size", outcome->range_bytes);
	set_count(object, "seed", options->seed);
	if (options->sweep) {
		json_object_set_new(object, "sweep", json_string(options->sweep));
		json_object_set_new(object, "swept", json_string(outcome->swept));
	}
}

static void set_kernels(json_t *object, const struct perf_outcome *outcome)
{
	json_t *kernels = json_array();

	for (unsigned i = 0; i < outcome->kernel_count; i++) {
		json_t *kernel = json_object();

		json_object_set_new(kernel, "name", json_string(outcome->kernels[i].name));
		set_count(kernel, "registers", outcome->kernels[i].info.registers);
		set_count(kernel, "local_bytes", outcome->kernels[i].info.local_bytes);
		set_count(kernel, "block_lanes", outcome->kernels[i].info.block_lanes);
		json_array_append_new(kernels, kernel);
	}
	json_object_set_new(object, "kernels", kernels);
}

static void set_places(json_t *object, const struct perf_outcome *outcome)
{
	const struct perf_options *options = &outcome->options;

	json_object_set_new(object, "rw", json_string(perf_rw_names[options->rw]));
	set_count(object, "window", options->window);
	if (perf_writes(options) && perf_reads_any(options))
		set_count(object, "rwmixread", options->mix);
	if (options->zipf > 0)
		set_real(object, "zipf", options->zipf);
	if (options->stride)
		set_count(object, "stride", options->stride);
}

static void set_plain(json_t *object, const struct perf_outcome *outcome)
{
	json_object_set_new(object, "plain", json_string(perf_plain_names[outcome->plain_from]));
	if (outcome->plain_from == PERF_PLAIN_OFF)
		return;
	set_count(object, "plain_blocks", outcome->plain_blocks);
	set_count(object, "plain_threads", outcome->plain_threads);
	set_count(object, "plain_bytes", outcome->plain_bytes);
}

static void set_cache(json_t *object, const struct perf_outcome *outcome)
{
	if (!outcome->options.cached)
		return;
	set_count(object, "cache_bytes", outcome->cache.bytes);
	set_count(object, "cache_lines", outcome->cache.lines);
	set_count(object, "line_bytes", outcome->cache.line_bytes);
	json_object_set_new(object, "policy",
			    json_string(weir_policy_name((enum weir_policy)outcome->options.policy)));
	set_count(object, "lines_used", outcome->lines);
	set_count(object, "misses", outcome->cache.misses);
	set_count(object, "evictions", outcome->cache.evictions);
	set_count(object, "retracted", outcome->cache.retracted);
	set_count(object, "writebacks", outcome->cache.writebacks);
	if (!outcome->options.tier)
		return;
	set_count(object, "tier_lines", outcome->cache.tier_lines);
	json_object_set_new(object, "tier_inclusive", json_boolean(outcome->options.tier_inclusive));
	set_count(object, "tier_hits", outcome->cache.tier_hits);
	set_count(object, "tier_stored", outcome->cache.tier_stored);
	set_count(object, "tier_kept", outcome->cache.tier_kept);
	set_count(object, "tier_dropped", outcome->cache.tier_dropped);
}

static void set_counters(json_t *object, const struct perf_outcome *outcome)
{
	set_count(object, "reads", outcome->reads);
	set_count(object, "writes", outcome->writes);
	set_count(object, "requests", outcome->requests);
	set_count(object, "errors", outcome->errors);
	if (outcome->verified) {
		set_count(object, "verified_blocks", outcome->checked);
		set_count(object, "bad_blocks", outcome->bad);
		if (outcome->bad)
			set_count(object, "bad_byte", outcome->bad_byte);
	}
	set_count(object, "commands", outcome->stats.commands);
	set_count(object, "failed", outcome->stats.failed);
	set_count(object, "direct", outcome->stats.direct);
	set_count(object, "pull", outcome->stats.pull);
	set_count(object, "rings", outcome->stats.rings);
	set_real(object, "cpu_s", outcome->cpu_seconds);
	set_count(object, "bytes_read", outcome->stats.bytes_read);
	set_count(object, "bytes_written", outcome->stats.bytes_written);
}

static void set_hit(json_t *object, const struct perf_outcome *outcome)
{
	char text[32];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)outcome->checksum);
	json_object_set_new(object, "hit", json_string(perf_hit_names[outcome->options.hit]));
	json_object_set_new(object, "policy",
			    json_string(weir_policy_name((enum weir_policy)outcome->options.policy)));
	json_object_set_new(object, "checksum", json_string(text));
	json_object_set_new(object, "pattern", json_boolean(outcome->filled));
	set_count(object, "misses", outcome->hit_misses);
}

json_t *perf_json(const struct perf_outcome *outcome)
{
	json_t *object = json_object();

	set_load(object, outcome);
	set_series(object, "", &outcome->weir, outcome->bs);
	set_series(object, "raw_", &outcome->raw, outcome->bs);
	set_series(object, "plain_", &outcome->plain, outcome->bs);
	set_series(object, "fio_", &outcome->fio, outcome->bs);
	set_series(object, "fio_fixed_", &outcome->fio_fixed, outcome->bs);
	set_ratio(object, "ratio_to_raw", outcome, &outcome->raw);
	set_ratio(object, "ratio_to_plain", outcome, &outcome->plain);
	set_ratio(object, "ratio_to_fio", outcome, &outcome->fio);
	set_ratio(object, "ratio_to_fio_fixed", outcome, &outcome->fio_fixed);
	set_kernels(object, outcome);
	if (outcome->options.hit != PERF_HIT_NONE) {
		set_hit(object, outcome);
		return object;
	}
	set_places(object, outcome);
	set_latency(object, perf_reads_any(&outcome->options) ? "" : "read_", outcome->read_latency);
	set_latency(object, perf_reads_any(&outcome->options) ? "write_" : "", outcome->write_latency);
	set_plain(object, outcome);
	set_cache(object, outcome);
	set_counters(object, outcome);
	return object;
}
