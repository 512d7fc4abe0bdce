/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-perf: raw reads by lanes, measured; with fio beside them if asked. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/port.h>
#include <weir/weir.h>

#include "fio.h"
#include "perf.h"

enum { ERROR_BYTES = 512, MOST_RUNS = 99, BLOCK_LANES = 128, RESULTS = PERF_BUCKETS + 3 };

static const char usage_text[] =
	"usage: weir-perf URI [options]\n"
	"\n"
	"Reads of a storage by device lanes, one in flight per lane.\n"
	"\n"
	"  --rw=randread|read   where (default randread)\n"
	"  --bs=BYTES           length of a read (default 4K)\n"
	"  --iodepth=N          lanes, and so reads in flight (default 128)\n"
	"  --runtime=SECONDS    of one run (default 3)\n"
	"  --runs=N             runs; the median counts (default 5)\n"
	"  --queues=N --depth=N queue pairs and their depth (default 4, 256)\n"
	"  --workers=N --wave=N cpu: worker threads and wave width (default 1, 1)\n"
	"  --backend=NAME       auto, cpu or another of this build (default auto, or WEIR_BACKEND)\n"
	"  --seed=N             of the random places (default 1)\n"
	"  --peer=fio           file: only: fio (io_uring, one job) in turns with the runs\n"
	"  --json               print one JSON object\n";

struct perf {
	const char *uri;
	const char *backend;
	bool sequential, json, peer;
	uint64_t bs, seed;
	uint32_t iodepth, runtime, runs, queues, depth, workers, wave;
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_storage_info info;
	struct perf_args args;
	double iops[MOST_RUNS], fio[MOST_RUNS], fio_fixed[MOST_RUNS];
	uint64_t histogram[PERF_BUCKETS];
	uint64_t reads, errors;
};

static int fail(char *error)
{
	snprintf(error, ERROR_BYTES, "%s", weir_last_error());
	return -1;
}

static int check(struct perf *perf, char *error)
{
	if (perf->bs % perf->info.block_bytes || perf->bs == 0 || perf->bs > perf->info.max_transfer_bytes)
		snprintf(error, ERROR_BYTES, "--bs=%llu: a read is whole blocks of %u bytes, %u bytes at most",
			 (unsigned long long)perf->bs, perf->info.block_bytes, perf->info.max_transfer_bytes);
	else if (perf->bs > perf->info.bytes)
		snprintf(error, ERROR_BYTES, "--bs=%llu: the storage has only %llu bytes", (unsigned long long)perf->bs,
			 (unsigned long long)perf->info.bytes);
	else if (perf->peer && strncmp(perf->uri, "file:", 5))
		snprintf(error, ERROR_BYTES, "--peer=fio reads files: it needs a file: storage, not %s", perf->uri);
	else
		return 0;
	return -1;
}

static int allocate(struct perf *perf, char *error)
{
	struct perf_args *args = &perf->args;
	int code = weir_storage_disk(perf->storage, &args->disk);

	args->blocks_per_read = (uint32_t)(perf->bs / perf->info.block_bytes);
	args->spans = perf->info.bytes / perf->bs;
	args->stride_bytes = (perf->bs + 4095) & ~(uint64_t)4095;
	args->sequential = perf->sequential;
	if (!code)
		code = weir_alloc(perf->context, args->stride_bytes * perf->iodepth, &args->buffers);
	if (!code)
		code = weir_alloc(perf->context, sizeof(struct weir_event) * perf->iodepth, &args->events);
	if (!code)
		code = weir_alloc(perf->context, RESULTS * sizeof(uint64_t), &args->histogram);
	args->reads = args->histogram + PERF_BUCKETS * sizeof(uint64_t);
	args->errors = args->reads + sizeof(uint64_t);
	args->start = args->errors + sizeof(uint64_t);
	args->lanes = perf->iodepth;
	return code ? fail(error) : 0;
}

static int prepare(struct perf *perf, char *error)
{
	int code = weir_context_open(perf->backend,
				     WEIR_OPTIONS(context, .workers = perf->workers, .wave_lanes = perf->wave),
				     &perf->context);

	if (!code)
		code = weir_storage_open(perf->context, perf->uri,
					 WEIR_OPTIONS(storage, .queues = perf->queues, .depth = perf->depth,
						      .read_only = 1),
					 &perf->storage);
	perf->info.size = sizeof(perf->info);
	if (!code)
		code = weir_storage_info(perf->storage, &perf->info);
	if (code)
		return fail(error);
	return check(perf, error) ? -1 : allocate(perf, error);
}

/* One run of @seconds; its figures are added to the totals if @index is not negative. */
static int run(struct perf *perf, int index, double seconds, char *error)
{
	uint64_t results[RESULTS] = { 0 }, begin;
	uint32_t threads = perf->iodepth < BLOCK_LANES ? perf->iodepth : BLOCK_LANES;
	double elapsed;
	int code = weir_copy_in(perf->context, perf->args.histogram, results, sizeof(results));

	begin = weir_clock_ns();
	perf->args.runtime_ns = (uint64_t)(seconds * 1e9);
	perf->args.seed = perf->seed + (uint64_t)(index + 1);
	if (!code)
		code = weir_launch(perf->context, "perf_read", (perf->iodepth + threads - 1) / threads, threads, &perf->args,
				   sizeof(perf->args));
	if (!code)
		code = weir_sync(perf->context);
	elapsed = (double)(weir_clock_ns() - begin) / 1e9;
	if (!code)
		code = weir_copy_out(perf->context, results, perf->args.histogram, sizeof(results));
	if (code)
		return fail(error);
	if (index < 0)
		return 0;
	for (unsigned i = 0; i < PERF_BUCKETS; i++)
		perf->histogram[i] += results[i];
	perf->iops[index] = (double)results[PERF_BUCKETS] / elapsed;
	perf->reads += results[PERF_BUCKETS];
	perf->errors += results[PERF_BUCKETS + 1];
	return 0;
}

static int run_peer(struct perf *perf, int index, char *error)
{
	char path[4200];
	struct perf_fio_job job = { .path = path, .block_bytes = perf->bs, .depth = perf->iodepth,
				    .seconds = perf->runtime, .sequential = perf->sequential };
	const char *body = perf->uri + 5;

	snprintf(path, sizeof(path), "%.*s", (int)strcspn(body, "?"), body);
	job.direct = !strstr(perf->info.path, "page cache");
	if (perf_fio(&job, &perf->fio[index], error) != 0)
		return -1;
	job.fixed = true;
	return perf_fio(&job, &perf->fio_fixed[index], error);
}

static int run_all(struct perf *perf, char *error)
{
	int code = run(perf, -1, 0.2, error); /* warm: threads, registered buffers */

	for (uint32_t i = 0; i < perf->runs && !code; i++) {
		code = run(perf, (int)i, perf->runtime, error);
		if (!code && perf->peer)
			code = run_peer(perf, (int)i, error);
	}
	(void)weir_storage_info(perf->storage, &perf->info); /* the path may have changed with use */
	return code;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts @values. */
static double median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Lower end of bucket @i, in microseconds. */
static double bucket_us(unsigned i)
{
	unsigned power = i < 8 ? 0 : (i - 4) / 4;

	return (double)((uint64_t)(i - power * 4) << power) / 1e3;
}

static double percentile(const struct perf *perf, double share)
{
	uint64_t seen = 0, wanted = (uint64_t)((double)perf->reads * share);

	for (unsigned i = 0; i < PERF_BUCKETS; i++) {
		seen += perf->histogram[i];
		if (seen > wanted)
			return bucket_us(i + 1);
	}
	return bucket_us(PERF_BUCKETS);
}

static void print_text(struct perf *perf, double iops, double fio, double fixed)
{
	printf("storage   %s: %s\n", perf->uri, perf->info.path);
	printf("load      %s, %llu bytes, %u in flight, %u runs of %u s\n", perf->sequential ? "read" : "randread",
	       (unsigned long long)perf->bs, perf->iodepth, perf->runs, perf->runtime);
	printf("weir      %.1f thousand reads/s (%.1f to %.1f), %.0f MB/s\n", iops / 1e3, perf->iops[0] / 1e3,
	       perf->iops[perf->runs - 1] / 1e3, iops * (double)perf->bs / 1e6);
	printf("latency   p50 %.0f us, p99 %.0f us, p99.9 %.0f us, p99.99 %.0f us\n", percentile(perf, .5),
	       percentile(perf, .99), percentile(perf, .999), percentile(perf, .9999));
	if (perf->peer) {
		printf("fio       %.1f thousand reads/s (%.1f to %.1f); weir / fio = %.2f\n", fio / 1e3,
		       perf->fio[0] / 1e3, perf->fio[perf->runs - 1] / 1e3, iops / fio);
		printf("fio fixed %.1f thousand reads/s (%.1f to %.1f); weir / fio = %.2f\n", fixed / 1e3,
		       perf->fio_fixed[0] / 1e3, perf->fio_fixed[perf->runs - 1] / 1e3, iops / fixed);
	}
	printf("errors    %llu of %llu reads\n", (unsigned long long)perf->errors, (unsigned long long)perf->reads);
}

static void print_json(struct perf *perf, double iops, double fio, double fixed)
{
	json_t *root = json_pack(
		"{s:s, s:s, s:s, s:I, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "uri", perf->uri,
		"path", perf->info.path, "rw", perf->sequential ? "read" : "randread", "bs", (json_int_t)perf->bs,
		"iodepth", (int)perf->iodepth, "runs", (int)perf->runs, "runtime_s", (int)perf->runtime, "iops", iops,
		"iops_min", perf->iops[0], "iops_max", perf->iops[perf->runs - 1], "p50_us", percentile(perf, .5),
		"p99_us", percentile(perf, .99), "p999_us", percentile(perf, .999), "p9999_us",
		percentile(perf, .9999), "reads", (json_int_t)perf->reads, "errors", (json_int_t)perf->errors);

	if (root && perf->peer) {
		json_object_set_new(root, "fio_iops", json_real(fio));
		json_object_set_new(root, "fio_fixed_iops", json_real(fixed));
		json_object_set_new(root, "ratio_to_fio", json_real(iops / fio));
		json_object_set_new(root, "ratio_to_fio_fixed", json_real(iops / fixed));
	}
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static int measure(struct perf *perf)
{
	char error[ERROR_BYTES] = "";
	int code = prepare(perf, error);

	if (!code)
		code = run_all(perf, error);
	if (code) {
		fprintf(stderr, "weir-perf: %s\n", error);
	} else {
		double iops = median(perf->iops, perf->runs);
		double fio = median(perf->fio, perf->runs);
		double fixed = median(perf->fio_fixed, perf->runs);

		(perf->json ? print_json : print_text)(perf, iops, fio, fixed);
	}
	weir_storage_close(perf->storage);
	weir_context_close(perf->context);
	return code || perf->errors ? 1 : 0;
}

enum option_key {
	OPT_RW = 256, OPT_BS, OPT_IODEPTH, OPT_RUNTIME, OPT_RUNS, OPT_QUEUES, OPT_DEPTH, OPT_WORKERS, OPT_WAVE,
	OPT_BACKEND, OPT_SEED, OPT_PEER, OPT_JSON, OPT_HELP,
};

static const struct option long_options[] = {
	{ "rw", required_argument, NULL, OPT_RW },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "iodepth", required_argument, NULL, OPT_IODEPTH },
	{ "runtime", required_argument, NULL, OPT_RUNTIME },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "queues", required_argument, NULL, OPT_QUEUES },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "wave", required_argument, NULL, OPT_WAVE },
	{ "backend", required_argument, NULL, OPT_BACKEND },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "peer", required_argument, NULL, OPT_PEER },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool take_count(const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*value = (uint32_t)number;
	return *text >= '0' && *text <= '9' && !*end && number >= least && number <= most;
}

static bool take_option(struct perf *perf, int key, const char *value)
{
	uint32_t number;

	switch (key) {
	case OPT_RW:
		perf->sequential = !strcmp(value, "read");
		return perf->sequential || !strcmp(value, "randread");
	case OPT_BS: return weir_parse_bytes(value, &perf->bs) == 0;
	case OPT_IODEPTH: return take_count(value, 1, 1 << 20, &perf->iodepth);
	case OPT_RUNTIME: return take_count(value, 1, 3600, &perf->runtime);
	case OPT_RUNS: return take_count(value, 1, MOST_RUNS, &perf->runs);
	case OPT_QUEUES: return take_count(value, 1, 1024, &perf->queues);
	case OPT_DEPTH: return take_count(value, 2, 4096, &perf->depth);
	case OPT_WORKERS: return take_count(value, 1, 1024, &perf->workers);
	case OPT_WAVE: return take_count(value, 1, 64, &perf->wave);
	case OPT_BACKEND: perf->backend = value; return true;
	case OPT_SEED:
		if (!take_count(value, 0, UINT32_MAX, &number))
			return false;
		perf->seed = number;
		return true;
	case OPT_PEER: return perf->peer = !strcmp(value, "fio");
	case OPT_JSON: return perf->json = true;
	default: return false;
	}
}

int main(int argc, char **argv)
{
	const char *backend = getenv("WEIR_BACKEND");
	struct perf perf = { .backend = backend && *backend ? backend : "auto", .bs = 4096, .iodepth = 128,
			     .runtime = 3, .runs = 5, .workers = 1, .wave = 1, .seed = 1 };
	int key, index = 0;

	while ((key = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (key == OPT_HELP) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (key == '?')
			return 2;
		if (!take_option(&perf, key, optarg)) {
			fprintf(stderr, "weir-perf: --%s does not take \"%s\"; see weir-perf --help\n",
				long_options[index].name, optarg);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "weir-perf: give one storage URI, such as file:/data/disk.img; see weir-perf --help\n");
		return 2;
	}
	perf.uri = argv[optind];
	return measure(&perf);
}
