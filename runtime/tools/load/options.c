/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "tool_options.h"
#include "zipf.h"

const char *const perf_rw_names[] = { "randread", "read", "randwrite", "write", "randrw", "rw", NULL };
const char *const perf_plain_names[] = { "auto", "device", "host", "off", NULL };
const char *const perf_hit_names[] = { "random8", "wave256", "line4k", NULL };

static const char about[] =
	"usage: weir-perf URI... [options]\n"
	"\n"
	"Device lanes read and write storages; alternating with them, a plain kernel copies the same\n"
	"blocks without weir. Sizes take K, M, G, T. Loads that write overwrite the storage.";

static const char *const peer_names[] = { "", "fio", NULL }; /* no peer is the empty one */

enum { SWEEP_NAME_BYTES = 16 };

/* What the command line, or perf_options_set(), fills in. */
static struct perf_options given;
static uint32_t peer;
static char **words;

static int take_distribution(void *to, const char *text)
{
	char *end;

	given.zipf = 0;
	if (!strcmp(text, "random"))
		return 0;
	if (strncmp(text, "zipf:", 5) != 0)
		return -EINVAL;
	*(double *)to = strtod(text + 5, &end);
	return end != text + 5 && !*end && given.zipf >= PERF_ZIPF_LEAST && given.zipf <= PERF_ZIPF_MOST
		       ? 0
		       : -EINVAL;
}

static bool has_word(const char *list, const char *word, size_t length)
{
	for (; *list; list += strcspn(list, " "), list += *list == ' ')
		if (strcspn(list, " ") == length && !strncmp(list, word, length))
			return true;
	return false;
}

#define SWEEPS "bs iodepth window queues depth workers service cached tier plain-blocks"

static int take_sweep(void *to, const char *text)
{
	static char name[SWEEP_NAME_BYTES];
	const char *colon = strchr(text, ':');

	(void)to;
	if (!colon || !colon[1])
		return weir_fail(
			EINVAL,
			"--sweep does not take \"%s\"; it is NAME:VALUE,VALUE,... such as iodepth:1,8,64",
			text);
	if (!has_word(SWEEPS, text, (size_t)(colon - text)))
		return weir_fail(EINVAL, "--sweep does not take \"%s\"; its name is one of " SWEEPS, text);
	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	given.sweep = name;
	given.sweep_values = colon + 1;
	return 0;
}

#define HEADING(text)                                                                                        \
	{                                                                                                    \
		.name = "", .help = text                                                                     \
	}
#define WORDS(names, to) (&(struct tool_word){ names, to })

static const struct tool_option options[] = {
	HEADING("Load"),
	{ "rw", "KIND", TOOL_WORD, WORDS(perf_rw_names, &given.rw), 0, 0,
	  "randread (default), read, randwrite, write, randrw, rw", NULL, NULL },
	{ "rwmixread", "PERCENT", TOOL_U32, &given.mix, 0, 100, "share of reads of a mixed load (default 50)",
	  NULL, NULL },
	{ "bs", "SIZE", TOOL_BYTES, &given.bs, 1, 0, "length of a request (default 4K)", NULL, NULL },
	{ "offset", "SIZE", TOOL_BYTES, &given.offset, 0, 0,
	  "where the range of each storage begins (default 0)", NULL, NULL },
	{ "size", "SIZE", TOOL_BYTES, &given.size, 1, 0, "of that range (default all that follows)", NULL,
	  NULL },
	{ "stride", "SIZE", TOOL_BYTES, &given.stride, 1, 0,
	  "sequential: bytes from one offset to the next (default --bs)", NULL, NULL },
	{ "zipf", "THETA", TOOL_REAL, &given.zipf, PERF_ZIPF_LEAST, PERF_ZIPF_MOST,
	  "random: some offsets are hot", NULL, NULL },
	{ "random_distribution", "NAME", TOOL_PARSED, &(struct tool_parser){ take_distribution, &given.zipf },
	  0, 0, "random, or zipf:THETA, which is --zipf",
	  "it is random, or zipf:THETA with a number from 0.01 to 4", NULL },
	{ "iodepth", "N", TOOL_U32, &given.iodepth, 1, 1 << 20, "lanes (default 128)", NULL, NULL },
	{ "window", "N", TOOL_U32, &given.window, 1, 4096, "requests in flight per lane (default 1)", NULL,
	  NULL },
	{ "runtime", "SECONDS", TOOL_REAL, &given.runtime, 0.01, 3600, "of one run (default 3)", NULL, NULL },
	{ "runs", "N", TOOL_U32, &given.runs, 1, PERF_MOST_RUNS, "runs; the median counts (default 5)", NULL,
	  NULL },
	{ "seed", "N", TOOL_U32, &given.seed, 0, 0, "of the random offsets (default 1)", NULL, NULL },
	{ "verify", NULL, TOOL_FLAG, &given.verify, 0, 0,
	  "fill the range first, then check every word that is read; of a load that\nonly writes: read what "
	  "it "
	  "wrote back from storage after each run, and\ncheck that; of a mixed load its reads alone are "
	  "checked",
	  NULL, NULL },
	{ "no-latency", NULL, TOOL_FLAG, &given.no_latency, 0, 0, "take no times: the pure rate", NULL,
	  NULL },
	HEADING("Device and storage"),
	{ "backend", "NAME", TOOL_TEXT, &given.backend, 0, 0,
	  "auto, cpu, gpu:N or another (weir-info; default auto, or WEIR_BACKEND)", NULL, NULL },
	{ "queues", "N", TOOL_U32, &given.queues, 1, 1024, "queue pairs of each storage (default 4)", NULL,
	  NULL },
	{ "depth", "N", TOOL_U32, &given.depth, 2, 4096, "their depth (default 256)", NULL, NULL },
	{ "workers", "N", TOOL_U32, &given.workers, 1, 1024, "cpu: worker threads (default 1)", NULL, NULL },
	{ "wave", "N", TOOL_U32, &given.wave, 1, 64, "cpu: wave width (default 1)", NULL, NULL },
	{ "service", "WAVES", TOOL_U32, &given.service, 1, 65536,
	  "a service of so many waves per storage reaps completions (cpu: one\nthread); raw loads run "
	  "kernels that "
	  "leave it all of that. Without:\nwhoever waits helps",
	  NULL, NULL },
	HEADING("Cache"),
	{ "cached", "SIZE", TOOL_BYTES, &given.cached, 1, 0,
	  "the load through a cache of that size, alternating with the raw one;\nwhat was written is written "
	  "back at "
	  "the end of each run, which counts",
	  NULL, NULL },
	{ "line", "SIZE", TOOL_BYTES, &given.line, 1, 0,
	  "length of its lines (default --bs, if that is a power of two up to 64K)", NULL, NULL },
	{ "tier", "SIZE", TOOL_BYTES, &given.tier, 1, 0,
	  "and host memory of that size behind it, for lines that made room", NULL, NULL },
	{ "tier-inclusive", NULL, TOOL_FLAG, &given.tier_inclusive, 0, 0,
	  "what comes from there leaves a copy", NULL, NULL },
	{ "policy", "NAME", TOOL_POLICY, &given.policy, 0, 0,
	  "which line makes room: clock (default), lru, fifo, random, direct,\nsieve, frequency, user (built "
	  "in by "
	  "-Duser_policy)",
	  NULL, NULL },
	{ "hit", "KIND", TOOL_WORD, WORDS(perf_hit_names, &given.hit), 0, 0,
	  "hits of a cache that holds the whole range, and plain memory: random8\n(each lane 8 bytes "
	  "anywhere), "
	  "wave256 (each wave 8 bytes per lane in a\nrow), line4k (each wave whole lines through views)",
	  NULL, NULL },
	HEADING("Beside it"),
	{ "plain", "WHERE", TOOL_WORD, WORDS(perf_plain_names, &given.plain), 0, 0,
	  "what the plain kernel copies from: device, host, off, auto (default:\noff on the cpu; device "
	  "memory where "
	  "the controller reads that; host\nmemory else)",
	  NULL, NULL },
	{ "plain-bytes", "SIZE", TOOL_BYTES, &given.plain_bytes, 1, 0, "most of it (default 4G)", NULL,
	  NULL },
	{ "plain-blocks", "N", TOOL_U32, &given.plain_blocks, 1, 1 << 20,
	  "thread blocks of the plain kernel (default as many as the load has)", NULL, NULL },
	{ "plain-threads", "N", TOOL_U32, &given.plain_threads, 1, PERF_PLAIN_LANES,
	  "lanes of each of these (default 128)", NULL, NULL },
	{ "peer", "NAME", TOOL_WORD, WORDS(peer_names, &peer), 0, 0,
	  "fio: file: only: fio (io_uring, one job), alternating with the runs", NULL, NULL },
	HEADING("Results"),
	{ "json", NULL, TOOL_FLAG, &given.json, 0, 0, "one JSON object; with --sweep an array of them", NULL,
	  NULL },
	{ "sweep", "NAME:A,B,...", TOOL_PARSED, &(struct tool_parser){ take_sweep, NULL }, 0, 0,
	  "repeat for each value of bs, iodepth, window, queues, depth, workers,\nservice, cached, tier or "
	  "plain-blocks",
	  NULL, NULL },
	{ "plot", "FILE.svg", TOOL_TEXT, &given.plot, 0, 0,
	  "draw throughput over the sweep, or the latencies (gnuplot)", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-perf", .about = about, .options = options, .all = &words
};

int perf_options_set(struct perf_options *to, const char *name, char *value)
{
	int error;

	given = *to;
	peer = to->peer;
	error = tool_set(&program, name, value);
	*to = given;
	to->peer = peer;
	return error;
}

int perf_options_read(struct perf_options *to, int argc, char **argv)
{
	int status;

	given = *to;
	status = tool_parse(&program, argc, argv);
	*to = given;
	to->mix_given = to->mix != PERF_MIX_LEFT_OUT;
	to->mix = to->mix_given ? to->mix : PERF_MIX;
	to->peer = peer;
	for (; status < 0 && *words; words++) {
		if (to->uri_count == PERF_DISKS)
			return tool_usage("%d storages at most, %s is one too many", PERF_DISKS, *words);
		to->uris[to->uri_count++] = *words;
	}
	return status;
}

static int check_load(const struct perf_options *options)
{
	const char *rw = perf_rw_names[options->rw];

	if (options->mix_given && !(perf_writes(options) && perf_reads_any(options)))
		return weir_fail(
			EINVAL,
			"--rwmixread is the share of reads of a mixed load: it goes with randrw or rw, "
			"not %s",
			rw);
	if (options->stride && perf_is_random(options))
		return weir_fail(
			EINVAL,
			"--stride is a step between sequential places: it goes with read, write or rw, "
			"not %s",
			rw);
	if (options->zipf > 0 && !perf_is_random(options))
		return weir_fail(
			EINVAL,
			"--zipf is about random places: it goes with randread, randwrite or randrw, not %s",
			rw);
	if (options->stride && options->stride < options->bs)
		return weir_fail(EINVAL,
				 "--stride=%llu: requests of %llu bytes would overlap; give --bs at least",
				 (unsigned long long)options->stride, (unsigned long long)options->bs);
	if (options->plain_threads && !options->plain_blocks)
		return weir_fail(EINVAL,
				 "--plain-threads is about the blocks that --plain-blocks counts; give both");
	if (options->iodepth && options->iodepth < options->uri_count)
		return weir_fail(EINVAL, "--iodepth=%u: %u storages need a lane each at least",
				 options->iodepth, options->uri_count);
	return 0;
}

static int check_cache(const struct perf_options *options)
{
	if (options->tier && !options->cached)
		return weir_fail(EINVAL, "--tier is host memory behind a cache: it goes with --cached");
	if (options->tier_inclusive && !options->tier)
		return weir_fail(EINVAL, "--tier-inclusive is about a tier: it goes with --tier");
	if (!options->cached && options->hit == PERF_HIT_NONE && options->policy != WEIR_POLICY_CLOCK)
		return weir_fail(
			EINVAL,
			"--policy is the replacement policy of a cache: it goes with --cached or --hit");
	if (!options->cached && options->hit == PERF_HIT_NONE)
		return options->line ? weir_fail(EINVAL, "--line is the length of cache lines: it goes with "
							 "--cached or --hit")
				     : 0;
	if (options->cached && options->hit != PERF_HIT_NONE)
		return weir_fail(EINVAL,
				 "--hit makes its own cache, of the range's size; leave --cached out");
	if (perf_writes(options) && options->hit != PERF_HIT_NONE)
		return weir_fail(EINVAL, "--hit reads only: --rw=%s has no hits of its own",
				 perf_rw_names[options->rw]);
	if (options->window > 1)
		return weir_fail(
			EINVAL,
			"--window=%u: a lane waits for each read through a cache; --window goes with "
			"raw requests",
			options->window);
	if (options->line &&
	    (options->line < 512 || options->line > 65536 || (options->line & (options->line - 1))))
		return weir_fail(EINVAL, "--line=%llu: it takes a power of two from 512 to 64K",
				 (unsigned long long)options->line);
	return 0;
}

static int check_hit(const struct perf_options *options)
{
	if (options->hit == PERF_HIT_NONE)
		return 0;
	if (options->uri_count > 1)
		return weir_fail(EINVAL, "--hit takes one storage, not %u", options->uri_count);
	if (options->peer)
		return weir_fail(EINVAL, "--peer=fio and --hit have nothing in common; leave one out");
	if (options->stride || options->zipf > 0 || options->rw != PERF_RANDREAD)
		return weir_fail(EINVAL, "--hit has places of its own; leave --rw, --stride and --zipf out");
	if (options->plot && !options->sweep)
		return weir_fail(EINVAL, "--plot draws latencies, and --hit takes none; add --sweep, such as "
					 "--sweep=iodepth:256,1024");
	return 0;
}

static int check_peers(const struct perf_options *options)
{
	if (options->peer && perf_writes(options))
		return weir_fail(EINVAL, "--peer=fio only reads; it does not go with --rw=%s",
				 perf_rw_names[options->rw]);
	if (options->peer && (options->uri_count != 1 || strncmp(options->uris[0], "file:", 5)))
		return weir_fail(EINVAL, "--peer=fio reads a file: it needs one file: storage, not %s",
				 options->uris[0]);
	if (options->peer && (options->stride || options->zipf > 0 || options->window > 1))
		return weir_fail(EINVAL,
				 "--peer=fio is compared at plain places, one request per lane: leave "
				 "--stride, --zipf and "
				 "--window out");
	if (options->peer && options->iodepth > 32768)
		return weir_fail(EINVAL,
				 "--peer=fio: io_uring takes 32768 requests in flight at most, not %u",
				 options->iodepth);
	if (options->plot && !options->sweep && options->no_latency)
		return weir_fail(
			EINVAL,
			"--plot draws latencies, and --no-latency takes none; leave it out or add --sweep");
	return 0;
}

int perf_options_check(const struct perf_options *options)
{
	if (!options->uri_count)
		return weir_fail(EINVAL, "give a storage URI, such as file:/data/disk.img or virt:1G");
	if (check_load(options) || check_cache(options) || check_hit(options))
		return -1;
	return check_peers(options);
}
