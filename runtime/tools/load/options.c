/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "zipf.h"

const char *const perf_rw_names[] = { "randread", "read", "randwrite", "write", "randrw", "rw", NULL };
const char *const perf_plain_names[] = { "auto", "device", "host", "off", NULL };
const char *const perf_hit_names[] = { "random8", "wave256", "line4k", NULL };

const char perf_usage[] =
	"usage: weir-perf URI... [options]\n"
	"\n"
	"Device lanes read and write storages; beside them, in turns, a plain kernel copies the same\n"
	"blocks without weir. Sizes take K, M, G, T. Loads that write overwrite the storage.\n"
	"\n"
	"Load\n"
	"  --rw=KIND            randread (default), read, randwrite, write, randrw, rw\n"
	"  --rwmixread=PERCENT  share of reads of a mixed load (default 50)\n"
	"  --bs=SIZE            length of a request (default 4K)\n"
	"  --offset= --size=    range of each storage (default all of it)\n"
	"  --stride=SIZE        sequential: bytes from one place to the next (default --bs)\n"
	"  --zipf=THETA         random: some places are hot; --random_distribution=zipf:THETA is the same\n"
	"  --iodepth=N          lanes (default 128)\n"
	"  --window=N           requests in flight per lane (default 1)\n"
	"  --runtime=SECONDS    of one run (default 3)\n"
	"  --runs=N             runs; the median counts (default 5)\n"
	"  --seed=N             of the random places (default 1)\n"
	"  --verify             fill the range first, then check every word that is read; of a load that "
	"only writes: read\n"
	"                       what it wrote back from storage after each run, and check that\n"
	"  --no-latency         take no times: the pure rate\n"
	"\n"
	"Device and storage\n"
	"  --backend=NAME       auto, cpu, gpu:N or another (weir-info; default auto, or WEIR_BACKEND)\n"
	"  --queues=N --depth=N queue pairs of each storage and their depth (default 4, 256)\n"
	"  --workers=N --wave=N cpu: worker threads and wave width (default 1, 1)\n"
	"  --service=WAVES      a service of so many waves per storage reaps completions (cpu: one thread); "
	"raw\n"
	"                       loads run kernels that leave it all of that. Without: whoever waits helps\n"
	"\n"
	"Cache\n"
	"  --cached=SIZE        the load through a cache of that size, in turns with the raw one; what was "
	"written is\n"
	"                       written back at the end of each run, which counts\n"
	"  --line=SIZE          length of its lines (default --bs, if that is a power of two up to 64K)\n"
	"  --tier=SIZE          and host memory of that size behind it, for lines that made room\n"
	"  --tier-inclusive     what comes from there leaves a copy\n"
	"  --policy=NAME        which line makes room: clock (default), lru, fifo, random, direct, sieve, "
	"frequency,\n"
	"                       user (built in by -Duser_policy)\n"
	"  --hit=KIND           hits of a cache that holds the whole range, and plain memory: random8 (each\n"
	"                       lane 8 bytes anywhere), wave256 (each wave 8 bytes per lane in a row),\n"
	"                       line4k (each wave whole lines through views)\n"
	"\n"
	"Beside it\n"
	"  --plain=WHERE        what the plain kernel copies from: device, host, off, auto (default: off on\n"
	"                       the cpu; device memory where the controller reads that; host memory else)\n"
	"  --plain-bytes=SIZE   most of it (default 4G)\n"
	"  --plain-blocks=N     thread blocks of the plain kernel (default as many as the load has)\n"
	"  --plain-threads=N    lanes of each of these, at most 768 (default 128)\n"
	"  --peer=fio           file: only: fio (io_uring, one job), in turns with the runs\n"
	"\n"
	"Results\n"
	"  --json               one JSON object; with --sweep an array of them\n"
	"  --sweep=NAME:A,B,... repeat for each value of bs, iodepth, window, queues, depth, workers, "
	"service, cached,\n"
	"                       tier or plain-blocks\n"
	"  --plot=FILE.svg      draw throughput over the sweep, or the latencies (gnuplot)\n";

static int refuse(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(char *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, PERF_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return -1;
}

/* What an option's value is. */
enum kind { COUNT, SIZE, REAL, WORD, TEXT, FLAG, SWEEP, FIO_ZIPF, POLICY };

/**
 * struct rule - one option
 * @sweeps: --sweep takes it
 * @location: offset of its value in struct perf_options
 * @least: COUNT, REAL: bounds
 * @most: COUNT, REAL: bounds
 * @words: WORD: what it may be
 */
struct rule {
	const char *name;
	enum kind kind;
	bool sweeps;
	size_t location;
	double least, most;
	const char *const *words;
};

static const char *const peers[] = { "", "fio", NULL }; /* no peer is the empty one */

#define AT(member) offsetof(struct perf_options, member)

static const struct rule rules[] = {
	{ "rw", WORD, false, AT(rw), 0, 0, perf_rw_names },
	{ "rwmixread", COUNT, false, AT(mix), 0, 100, NULL },
	{ "bs", SIZE, true, AT(bs), 0, 0, NULL },
	{ "size", SIZE, false, AT(size), 0, 0, NULL },
	{ "offset", SIZE, false, AT(offset), 0, 0, NULL },
	{ "stride", SIZE, false, AT(stride), 0, 0, NULL },
	{ "zipf", REAL, false, AT(zipf), 0.01, PERF_ZIPF_MOST, NULL },
	{ "random_distribution", FIO_ZIPF, false, AT(zipf), 0.01, PERF_ZIPF_MOST, NULL },
	{ "iodepth", COUNT, true, AT(iodepth), 1, 1 << 20, NULL },
	{ "window", COUNT, true, AT(window), 1, 4096, NULL },
	{ "runtime", REAL, false, AT(runtime), 0.01, 3600, NULL },
	{ "runs", COUNT, false, AT(runs), 1, PERF_MOST_RUNS, NULL },
	{ "queues", COUNT, true, AT(queues), 1, 1024, NULL },
	{ "depth", COUNT, true, AT(depth), 2, 4096, NULL },
	{ "workers", COUNT, true, AT(workers), 1, 1024, NULL },
	{ "wave", COUNT, false, AT(wave), 1, 64, NULL },
	{ "service", COUNT, true, AT(service), 1, 65536, NULL },
	{ "backend", TEXT, false, AT(backend), 0, 0, NULL },
	{ "seed", COUNT, false, AT(seed), 0, UINT32_MAX, NULL },
	{ "verify", FLAG, false, AT(verify), 0, 0, NULL },
	{ "no-latency", FLAG, false, AT(no_latency), 0, 0, NULL },
	{ "cached", SIZE, true, AT(cached), 0, 0, NULL },
	{ "line", SIZE, false, AT(line), 0, 0, NULL },
	{ "tier", SIZE, true, AT(tier), 0, 0, NULL },
	{ "tier-inclusive", FLAG, false, AT(tier_inclusive), 0, 0, NULL },
	{ "policy", POLICY, false, AT(policy), 0, 0, NULL },
	{ "hit", WORD, false, AT(hit), 0, 0, perf_hit_names },
	{ "plain", WORD, false, AT(plain), 0, 0, perf_plain_names },
	{ "plain-bytes", SIZE, false, AT(plain_bytes), 0, 0, NULL },
	{ "plain-blocks", COUNT, true, AT(plain_blocks), 1, 1 << 20, NULL },
	{ "plain-threads", COUNT, false, AT(plain_threads), 1, PERF_PLAIN_LANES, NULL },
	{ "peer", WORD, false, AT(peer), 0, 0, peers },
	{ "sweep", SWEEP, false, AT(sweep), 0, 0, NULL },
	{ "plot", TEXT, false, AT(plot), 0, 0, NULL },
	{ "json", FLAG, false, AT(json), 0, 0, NULL },
	{ "help", FLAG, false, AT(help), 0, 0, NULL },
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static const struct rule *find_rule(const char *name, size_t length)
{
	for (size_t i = 0; i < RULES; i++)
		if (strlen(rules[i].name) == length && !strncmp(rules[i].name, name, length))
			return &rules[i];
	return NULL;
}

static int take_count(const struct rule *rule, const char *text, uint32_t *value, char *error)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || (double)number < rule->least || (double)number > rule->most)
		return refuse(error, "--%s=%s: it takes a whole number from %.0f to %.0f", rule->name, text,
			      rule->least, rule->most);
	*value = (uint32_t)number;
	return 0;
}

static int take_real(const struct rule *rule, const char *text, double *value, char *error)
{
	char *end;

	*value = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(*value >= rule->least && *value <= rule->most))
		return refuse(error, "--%s=%s: it takes a number from %g to %g", rule->name, text,
			      rule->least, rule->most);
	return 0;
}

static int take_size(const struct rule *rule, const char *text, uint64_t *value, char *error)
{
	if (weir_parse_bytes(text, value) != 0)
		return refuse(error, "--%s=%s: %s", rule->name, text, weir_last_error());
	if (*value == 0 && strcmp(rule->name, "offset"))
		return refuse(error, "--%s=%s: it takes a size above 0", rule->name, text);
	return 0;
}

static int take_word(const struct rule *rule, const char *text, uint32_t *value, char *error)
{
	char names[128] = "";

	for (uint32_t i = 0; rule->words[i]; i++) {
		if (*text && !strcmp(rule->words[i], text)) {
			*value = i;
			return 0;
		}
		if (*rule->words[i]) {
			size_t used = strlen(names);

			snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
				 rule->words[i]);
		}
	}
	return refuse(error, "--%s=%s: it takes one of %s", rule->name, text, names);
}

static int take_fio_zipf(const struct rule *rule, const char *text, double *value, char *error)
{
	*value = 0;
	if (!strcmp(text, "random"))
		return 0;
	if (strncmp(text, "zipf:", 5))
		return refuse(error, "--%s=%s: it takes random or zipf:THETA", rule->name, text);
	return take_real(rule, text + 5, value, error);
}

static int take_policy(const struct rule *rule, const char *text, uint32_t *value, char *error)
{
	enum weir_policy policy;

	if (weir_policy_of_name(text, &policy) != 0)
		return refuse(error, "--%s=%s: %s", rule->name, text, weir_last_error());
	*value = policy;
	return 0;
}

static int take_sweep(struct perf_options *options, const char *text, char *error)
{
	const char *colon = strchr(text, ':');
	const struct rule *rule = colon ? find_rule(text, (size_t)(colon - text)) : NULL;

	if (!colon || !colon[1])
		return refuse(error, "--sweep=%s: it takes NAME:VALUE,VALUE,... such as iodepth:1,8,64",
			      text);
	if (!rule || !rule->sweeps)
		return refuse(
			error,
			"--sweep=%s: it takes bs, iodepth, window, queues, depth, workers, service, cached, "
			"tier or plain-blocks",
			text);
	options->sweep = rule->name;
	options->sweep_values = colon + 1;
	return 0;
}

static int take(struct perf_options *options, const struct rule *rule, const char *value, char *error)
{
	void *location = (char *)options + rule->location;
	uint32_t word;

	switch (rule->kind) {
	case COUNT: return take_count(rule, value, location, error);
	case SIZE: return take_size(rule, value, location, error);
	case REAL: return take_real(rule, value, location, error);
	case FIO_ZIPF: return take_fio_zipf(rule, value, location, error);
	case POLICY: return take_policy(rule, value, location, error);
	case SWEEP: return take_sweep(options, value, error);
	case TEXT:
		*(const char **)location = value;
		return *value ? 0 : refuse(error, "--%s= is empty", rule->name);
	case FLAG: *(bool *)location = true; return 0;
	case WORD:
		if (rule->words != peers)
			return take_word(rule, value, location, error);
		return take_word(rule, value, &word, error) ? -1 : (*(bool *)location = true, 0);
	}
	return -1;
}

int perf_options_set(struct perf_options *options, const char *name, const char *value, char *error)
{
	const struct rule *rule = find_rule(name, strlen(name));

	return rule ? take(options, rule, value, error) : refuse(error, "--%s is no option", name);
}

int perf_options_read(struct perf_options *options, int argc, char **argv, char *error)
{
	struct option table[RULES + 1] = { { NULL, 0, NULL, 0 } };
	int key, index = 0;

	for (int i = 0; i < RULES; i++)
		table[i] =
			(struct option){ rules[i].name,
					 rules[i].kind == FLAG ? no_argument : required_argument, NULL, 'x' };
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", table, &index)) != -1) {
		if (key == ':')
			return refuse(error, "%s needs a value", argv[optind - 1]);
		if (key == '?')
			return refuse(error, "%s is no option of weir-perf, or takes no value",
				      argv[optind - 1]);
		if (take(options, &rules[index], optarg, error))
			return -1;
	}
	for (; optind < argc; optind++) {
		if (options->uri_count == PERF_DISKS)
			return refuse(error, "%d storages at most, %s is one too many", PERF_DISKS,
				      argv[optind]);
		options->uris[options->uri_count++] = argv[optind];
	}
	return 0;
}

static int check_load(const struct perf_options *options, char *error)
{
	const char *rw = perf_rw_names[options->rw];

	if (options->stride && perf_is_random(options))
		return refuse(error,
			      "--stride is a step between sequential places: it goes with read, write or rw, "
			      "not %s",
			      rw);
	if (options->zipf > 0 && !perf_is_random(options))
		return refuse(
			error,
			"--zipf is about random places: it goes with randread, randwrite or randrw, not %s",
			rw);
	if (options->stride && options->stride < options->bs)
		return refuse(error,
			      "--stride=%llu: requests of %llu bytes would overlap; give --bs at least",
			      (unsigned long long)options->stride, (unsigned long long)options->bs);
	if (options->plain_threads && !options->plain_blocks)
		return refuse(error,
			      "--plain-threads is about the blocks that --plain-blocks counts; give both");
	if (options->iodepth && options->iodepth < options->uri_count)
		return refuse(error, "--iodepth=%u: %u storages need a lane each at least", options->iodepth,
			      options->uri_count);
	return 0;
}

static int check_cache(const struct perf_options *options, char *error)
{
	if (options->tier && !options->cached)
		return refuse(error, "--tier is host memory behind a cache: it goes with --cached");
	if (options->tier_inclusive && !options->tier)
		return refuse(error, "--tier-inclusive is about a tier: it goes with --tier");
	if (!options->cached && options->hit == PERF_HIT_NONE && options->policy != WEIR_POLICY_CLOCK)
		return refuse(
			error,
			"--policy is the replacement policy of a cache: it goes with --cached or --hit");
	if (!options->cached && options->hit == PERF_HIT_NONE)
		return options->line
			       ? refuse(error,
					"--line is the length of cache lines: it goes with --cached or --hit")
			       : 0;
	if (options->cached && options->hit != PERF_HIT_NONE)
		return refuse(error, "--hit makes its own cache, of the range's size; leave --cached out");
	if (perf_writes(options) && options->hit != PERF_HIT_NONE)
		return refuse(error, "--hit reads only: --rw=%s has no hits of its own",
			      perf_rw_names[options->rw]);
	if (options->window > 1)
		return refuse(error,
			      "--window=%u: a lane waits for each read through a cache; --window goes with "
			      "raw requests",
			      options->window);
	if (options->line &&
	    (options->line < 512 || options->line > 65536 || (options->line & (options->line - 1))))
		return refuse(error, "--line=%llu: it takes a power of two from 512 to 64K",
			      (unsigned long long)options->line);
	return 0;
}

static int check_hit(const struct perf_options *options, char *error)
{
	if (options->hit == PERF_HIT_NONE)
		return 0;
	if (options->uri_count > 1)
		return refuse(error, "--hit takes one storage, not %u", options->uri_count);
	if (options->peer)
		return refuse(error, "--peer=fio and --hit have nothing in common; leave one out");
	if (options->stride || options->zipf > 0 || options->rw != PERF_RANDREAD)
		return refuse(error, "--hit has places of its own; leave --rw, --stride and --zipf out");
	if (options->plot && !options->sweep)
		return refuse(error, "--plot draws latencies, and --hit takes none; add --sweep, such as "
				     "--sweep=iodepth:256,1024");
	return 0;
}

static int check_peers(const struct perf_options *options, char *error)
{
	if (options->peer && perf_writes(options))
		return refuse(error, "--peer=fio reads beside weir; it does not go with --rw=%s",
			      perf_rw_names[options->rw]);
	if (options->peer && (options->uri_count != 1 || strncmp(options->uris[0], "file:", 5)))
		return refuse(error, "--peer=fio reads a file: it needs one file: storage, not %s",
			      options->uris[0]);
	if (options->peer && (options->stride || options->zipf > 0 || options->window > 1))
		return refuse(error, "--peer=fio is compared at plain places, one request per lane: leave "
				     "--stride, --zipf and "
				     "--window out");
	if (options->peer && options->iodepth > 32768)
		return refuse(error, "--peer=fio: io_uring takes 32768 requests in flight at most, not %u",
			      options->iodepth);
	if (options->plot && !options->sweep && options->no_latency)
		return refuse(
			error,
			"--plot draws latencies, and --no-latency takes none; leave it out or add --sweep");
	return 0;
}

int perf_options_check(const struct perf_options *options, char *error)
{
	if (!options->uri_count)
		return refuse(
			error,
			"give a storage URI, such as file:/data/disk.img or virt:1G; see weir-perf --help");
	if (check_load(options, error) || check_cache(options, error) || check_hit(options, error))
		return -1;
	return check_peers(options, error);
}
