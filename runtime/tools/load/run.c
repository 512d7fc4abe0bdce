/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "backend/error.h"
#include "fio.h"

enum { PATH_BYTES = 4200, WHY_BYTES = 1024 };

static const double warm_seconds = 0.2; /* threads, registered buffers */

/* Where a service reaps, by the kernels that leave it all of that. */
static const char *raw_kernel(const struct perf_options *options)
{
	if (options->verify)
		return options->service ? "perf_verify_service" : "perf_verify";
	if (options->window > 1 || options->zipf > 0)
		return options->service ? "perf_window_service" : "perf_window";
	return options->service ? "perf_sync_service" : "perf_sync";
}

/* The counters of all storages, added to or, with @sign -1, taken from @sum. */
static int add_stats(struct perf_bench *bench, struct weir_stats *sum, int sign)
{
	uint64_t by = (uint64_t)(int64_t)sign;

	for (uint32_t i = 0; i < bench->options->uri_count; i++) {
		struct weir_stats stats = { .size = sizeof(stats) };

		if (weir_stats(bench->storages[i], &stats) != 0)
			return -1;
		sum->commands += by * stats.commands;
		sum->failed += by * stats.failed;
		sum->rogue += by * stats.rogue;
		sum->bytes_read += by * stats.bytes_read;
		sum->bytes_written += by * stats.bytes_written;
		sum->direct += by * stats.direct;
		sum->pull += by * stats.pull;
		sum->rings += by * stats.rings;
	}
	return 0;
}

static int add_cache(struct perf_bench *bench, struct weir_cache_stats *sum, int sign)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	uint64_t by = (uint64_t)(int64_t)sign;

	if (!bench->cache)
		return 0;
	if (weir_cache_stats(bench->cache, &stats) != 0)
		return -1;
	sum->lines = stats.lines;
	sum->line_bytes = stats.line_bytes;
	sum->bytes = stats.bytes;
	sum->tier_lines = stats.tier_lines;
	sum->misses += by * stats.misses;
	sum->evictions += by * stats.evictions;
	sum->tier_hits += by * stats.tier_hits;
	sum->tier_stored += by * stats.tier_stored;
	sum->tier_kept += by * stats.tier_kept;
	sum->tier_dropped += by * stats.tier_dropped;
	sum->retracted += by * stats.retracted;
	sum->writebacks += by * stats.writebacks;
	return 0;
}

/* What went wrong, and how much was looked at: in weir's runs and in those beside them. */
static void add_verdict(struct perf_outcome *outcome, const struct perf_results *found)
{
	outcome->requests += perf_word(&found->reads) + perf_word(&found->writes) + perf_word(&found->errors);
	outcome->errors += perf_word(&found->errors);
	outcome->checked += perf_word(&found->checked);
	outcome->bad += perf_word(&found->bad);
	if (perf_word(&found->errors))
		outcome->status = (uint32_t)perf_word(&found->status);
	if (perf_word(&found->bad))
		outcome->bad_byte = perf_word(&found->bad_byte);
}

static void add_results(struct perf_outcome *outcome, const struct perf_results *found)
{
	outcome->reads += perf_word(&found->reads);
	outcome->writes += perf_word(&found->writes);
	add_verdict(outcome, found);
	for (unsigned i = 0; i < PERF_BUCKETS; i++) {
		outcome->read_latency[i] += perf_word(&found->read_latency[i]);
		outcome->write_latency[i] += perf_word(&found->write_latency[i]);
	}
}

/**
 * struct turn - one kind of run
 * @launch: of its kernel
 * @load: what of its arguments is set for each run
 * @flushed: whose dirty lines its time includes, or NULL
 * @readback: kernel that reads back what it wrote, with the same arguments, or NULL
 */
struct iteration {
	struct perf_launch launch;
	struct perf_load *load;
	struct weir_cache *flushed;
	const char *readback;
};

static struct iteration raw_iteration(struct perf_bench *bench)
{
	return (struct iteration){ { raw_kernel(bench->options), bench->blocks, bench->threads, &bench->raw,
				     sizeof(bench->raw) },
				   &bench->raw.load,
				   NULL,
				   perf_reads_back(bench->options) ? "perf_readback" : NULL };
}

static struct iteration cached_iteration(struct perf_bench *bench)
{
	static const char *const kernels[2][2][2] = {
		{ { "perf_cached", "perf_cached_verify" },
		  { "perf_cached_write", "perf_cached_write_verify" } },
		{ { "perf_cached_tier", "perf_cached_verify_tier" },
		  { "perf_cached_write_tier", "perf_cached_write_verify_tier" } },
	};
	bool writes = perf_writes(bench->options), tier = bench->options->tier != 0;

	return (struct iteration){ { kernels[tier][writes][bench->options->verify], bench->blocks,
				     bench->threads, &bench->cached, sizeof(bench->cached) },
				   &bench->cached.load,
				   writes ? bench->cache : NULL,
				   !perf_reads_back(bench->options) ? NULL
				   : tier                           ? "perf_cached_readback_tier"
								    : "perf_cached_readback" };
}

/* Zipf places have a kernel of their own. */
static const char *plain_kernel(const struct perf_bench *bench)
{
	return bench->options->zipf > 0 ? "perf_plain_zipf" : "perf_plain";
}

static struct iteration plain_iteration(struct perf_bench *bench)
{
	return (struct iteration){ { plain_kernel(bench), bench->plain_blocks, bench->plain_threads,
				     &bench->alongside, sizeof(bench->alongside) },
				   &bench->alongside.load,
				   NULL,
				   NULL };
}

/* Write back what a run left dirty. Return: the seconds it took, or -1. */
static double flush(struct weir_cache *cache)
{
	uint64_t begin = weir_clock_ns();

	if (!cache)
		return 0;
	return weir_cache_flush(cache, 0) ? -1 : (double)(weir_clock_ns() - begin) / 1e9;
}

/* One run of @seconds; successful requests per second, all of them on storage at the end, come out in @rate.
 */
static int take_iteration(struct perf_bench *bench, struct iteration iteration, uint32_t index,
			  double seconds, struct perf_results *found, double *rate)
{
	double elapsed, flushed;

	iteration.load->indices.seed = (uint64_t)bench->options->seed + index;
	iteration.load->runtime_ns = (uint64_t)(seconds * 1e9);
	if ((iteration.readback && perf_bench_renew(bench)) ||
	    perf_bench_launch(bench, iteration.launch, found, &elapsed))
		return -1;
	flushed = flush(iteration.flushed);
	if (flushed < 0)
		return -1;
	*rate = (double)(perf_word(&found->reads) + perf_word(&found->writes)) / (elapsed + flushed);
	return 0;
}

/* What a run wrote, read back: what is wrong, and how much was looked at. */
static int read_back(struct perf_bench *bench, struct perf_outcome *outcome, struct iteration iteration)
{
	struct perf_results found;
	double seconds;

	if (!iteration.readback)
		return 0;
	iteration.launch.kernel = iteration.readback;
	if (perf_bench_launch(bench, iteration.launch, &found, &seconds))
		return -1;
	add_verdict(outcome, &found);
	return 0;
}

/* Processor time of all threads of this process, lanes of the host and threads that serve storages among
 * them. */
static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* weir's own run, with the counters before and after. */
static int run_weir(struct perf_bench *bench, struct perf_outcome *outcome, uint32_t index)
{
	struct iteration iteration = bench->cache ? cached_iteration(bench) : raw_iteration(bench);
	double rate, begin = cpu_seconds();
	struct perf_results found;

	if (add_stats(bench, &outcome->stats, -1) || add_cache(bench, &outcome->cache, -1) ||
	    take_iteration(bench, iteration, index, bench->options->runtime, &found, &rate) ||
	    add_stats(bench, &outcome->stats, 1) || add_cache(bench, &outcome->cache, 1))
		return -1;
	outcome->cpu_seconds += cpu_seconds() - begin;
	add_results(outcome, &found);
	perf_series_add(&outcome->weir, rate);
	return read_back(bench, outcome, iteration);
}

static int run_peers(struct perf_bench *bench, struct perf_outcome *outcome, struct iteration iteration,
		     struct perf_series *series, uint32_t index)
{
	struct perf_results found;
	double rate;

	if (take_iteration(bench, iteration, index, bench->options->runtime, &found, &rate))
		return -1;
	add_verdict(outcome, &found);
	perf_series_add(series, rate);
	return read_back(bench, outcome, iteration);
}

/* The path of file: URI @uri as fio takes it: escapes decoded, and a backslash before what separates files
 * there. */
static void peer_path(const char *uri, char path[PATH_BYTES])
{
	static const struct {
		char escape[4];
		char letter;
	} escapes[] = { { "%25", '%' }, { "%3F", '?' }, { "%26", '&' }, { "%2C", ',' } };
	size_t used = 0;

	for (uri += strlen("file:"); *uri && *uri != '?' && used + 3 < PATH_BYTES; uri++) {
		char letter = *uri;

		for (size_t i = 0; letter == '%' && i < sizeof(escapes) / sizeof(escapes[0]); i++)
			if (!strncasecmp(uri, escapes[i].escape, 3)) {
				letter = escapes[i].letter;
				uri += 2;
				break;
			}
		if (letter == ':')
			path[used++] = '\\';
		path[used++] = letter;
	}
	path[used] = '\0';
}

static int run_peer(struct perf_bench *bench, struct perf_outcome *outcome)
{
	const struct perf_options *options = bench->options;
	char path[PATH_BYTES];
	struct perf_fio_job job = { .path = path,
				    .block_bytes = options->bs,
				    .depth = bench->lanes,
				    .offset = options->offset,
				    .size = bench->range_bytes,
				    .seconds = options->runtime < 1 ? 1 : (uint32_t)options->runtime,
				    .sequential = !perf_is_random(options) };
	double iops;

	peer_path(options->uris[0], path);
	job.direct = !strstr(bench->info[0].path, "page cache");
	if (perf_fio(&job, &iops) != 0)
		return -1;
	perf_series_add(&outcome->fio, iops);
	job.fixed = true;
	if (perf_fio(&job, &iops) != 0)
		return -1;
	perf_series_add(&outcome->fio_fixed, iops);
	return 0;
}

static int run_round(struct perf_bench *bench, struct perf_outcome *outcome, uint32_t index)
{
	if (run_weir(bench, outcome, index))
		return -1;
	if (bench->cache && run_peers(bench, outcome, raw_iteration(bench), &outcome->raw, index))
		return -1;
	if (bench->plain != PERF_PLAIN_OFF &&
	    run_peers(bench, outcome, plain_iteration(bench), &outcome->plain, index))
		return -1;
	return bench->options->peer ? run_peer(bench, outcome) : 0;
}

/* Everything once, for its threads, pages and registered buffers. */
static int warm(struct perf_bench *bench)
{
	double seconds = bench->options->runtime < warm_seconds ? bench->options->runtime : warm_seconds,
	       rate;
	struct perf_results found;

	if (take_iteration(bench, raw_iteration(bench), 0, seconds, &found, &rate))
		return -1;
	if (bench->cache && take_iteration(bench, cached_iteration(bench), 0, seconds, &found, &rate))
		return -1;
	return bench->plain == PERF_PLAIN_OFF
		       ? 0
		       : take_iteration(bench, plain_iteration(bench), 0, seconds, &found, &rate);
}

static int note_kernels(struct perf_bench *bench, struct perf_outcome *outcome)
{
	if (bench->cache && perf_kernel_note(outcome, bench->context, cached_iteration(bench).launch.kernel))
		return -1;
	if (perf_kernel_note(outcome, bench->context, raw_iteration(bench).launch.kernel))
		return -1;
	return bench->plain == PERF_PLAIN_OFF
		       ? 0
		       : perf_kernel_note(outcome, bench->context, plain_kernel(bench));
}

/* What can be told only when all has run: the path may have changed with use. */
static void describe(struct perf_bench *bench, struct perf_outcome *outcome)
{
	struct weir_storage_info info = { .size = sizeof(info) };

	if (weir_storage_info(bench->storages[0], &info) == 0)
		memcpy(outcome->path, info.path, sizeof(outcome->path));
	memcpy(outcome->device, bench->device.name, sizeof(outcome->device));
	outcome->lanes = bench->lanes;
	outcome->range_bytes = bench->range_bytes;
	outcome->plain_from = bench->plain;
	outcome->plain_blocks = bench->plain_blocks;
	outcome->plain_threads = bench->plain_threads;
	outcome->plain_bytes = bench->plain_bytes;
	if (bench->cache && bench->line_bytes)
		outcome->lines =
			(outcome->reads + outcome->writes) * (bench->options->bs / bench->line_bytes);
}

static int run_open(struct perf_bench *bench, struct perf_outcome *outcome)
{
	if (bench->options->hit != PERF_HIT_NONE)
		return perf_hit_run(bench, outcome);
	if (note_kernels(bench, outcome) || warm(bench))
		return -1;
	for (uint32_t i = 1; i <= bench->options->runs; i++)
		if (run_round(bench, outcome, i))
			return -1;
	return 0;
}

int perf_run(const struct perf_options *options, struct perf_outcome *outcome)
{
	static struct perf_bench bench;
	char why[WHY_BYTES];
	int code;

	outcome->options = *options;
	outcome->bs = options->bs;
	outcome->verified = options->verify && options->hit == PERF_HIT_NONE;
	code = perf_bench_open(&bench, options);
	if (!code)
		code = run_open(&bench, outcome);
	if (!code)
		describe(&bench, outcome);
	snprintf(why, sizeof(why), "%s", weir_last_error());
	if (perf_bench_close(&bench) && !code)
		return -1;
	return code ? weir_fail(-code, "%s", why) : 0; /* the first sentence counts */
}
