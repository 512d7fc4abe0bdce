/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/main.c: seeds one after the other.
 *
 * Owns: the command line, and the one line that repeats a failure. Seeds run in a child process, some
 * hundreds in each: what a killed process of the array had is memory that nobody gives back, and a seed that
 * crashes is a failure like others.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "record.h"

enum { BATCH = 250, SECONDS_IN_MINUTE = 60 };

/** struct options - @cluster_seconds: that faults go on, 0: drawn; @history: where all requests are noted */
struct options {
	u64 first;
	u64 count;
	u64 seconds;
	u64 cluster_seconds;
	bool trace;
	bool quiet;
	bool all;
	bool lanes;
	const char *history;
};

/** struct shared - what children leave; @seed: that is being run */
struct shared {
	u64 seed;
	u64 run;
	u64 failures;
	u64 hash;
	struct outcome sum;
};

int __real_clock_gettime(clockid_t clock, struct timespec *now);

static u64 now_s(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec;
}

static ssize_t swallow(void *cookie, const char *text, size_t bytes)
{
	(void)cookie;
	if (sim.trace)
		printf("          %.*s", (int)bytes, text);
	return (ssize_t)bytes;
}

/* What the product says is part of a trace, or of no interest. */
static void divert_sentences(void)
{
	static char buffer[4096];

	stderr = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = swallow });
	if (!stderr)
		abort();
	setvbuf(stderr, buffer, _IOLBF, sizeof(buffer));
}

static void say_failure(const struct options *options, u64 seed, const char *what)
{
	char minutes[64] = "";

	if (options->cluster_seconds)
		snprintf(minutes, sizeof(minutes), " --seconds-of-cluster %llu",
			 (unsigned long long)options->cluster_seconds);
	printf("FAILED: %s; again: ci/simulate --seed %llu%s%s --trace\n", what, (unsigned long long)seed,
	       options->lanes ? " --lanes" : "", minutes);
	fflush(stdout);
}

static void run_one(const struct options *options, struct shared *shared, u64 seed)
{
	struct outcome outcome;

	shared->seed = seed;
	cluster_run(seed, options->cluster_seconds, options->lanes, options->trace, &outcome);
	shared->run++;
	shared->hash = (shared->hash ^ outcome.hash) * 0x9fb21c651e98df25u;
	shared->sum.steps += outcome.steps;
	shared->sum.simulated_ns += outcome.simulated_ns;
	shared->sum.reads += outcome.reads;
	shared->sum.writes += outcome.writes;
	shared->sum.faults += outcome.faults;
	if (!outcome.failed)
		return;
	shared->failures++;
	say_failure(options, seed, outcome.failure);
}

static void run_batch(const struct options *options, struct shared *shared, u64 first, u64 count, u64 end)
{
	divert_sentences();
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (options->history && record_open(options->history) != 0)
		_exit(1);
	for (u64 i = 0; i < count && (!end || now_s() < end) && (options->all || !shared->failures); i++)
		run_one(options, shared, first + i);
	fflush(stdout);
	_exit(record_close() != 0);
}

/* false: the child crashed. */
static bool run_child(const struct options *options, struct shared *shared, u64 first, u64 count, u64 end)
{
	char what[64];
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		run_batch(options, shared, first, count, end);
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	snprintf(what, sizeof(what), "the process ended with status %#x", (unsigned)status);
	shared->failures++;
	shared->run++;
	say_failure(options, shared->seed, what);
	return false;
}

static void report(const struct options *options, const struct shared *shared)
{
	const struct outcome *sum = &shared->sum;

	if (options->quiet)
		return;
	printf("%llu seeds from %llu on, %llu failed: %llu s of cluster, %llu writes, %llu reads, %llu "
	       "faults, "
	       "%llu steps; hash %016llx\n",
	       (unsigned long long)shared->run, (unsigned long long)options->first,
	       (unsigned long long)shared->failures, (unsigned long long)(sum->simulated_ns / SIM_S),
	       (unsigned long long)sum->writes, (unsigned long long)sum->reads,
	       (unsigned long long)sum->faults, (unsigned long long)sum->steps,
	       (unsigned long long)shared->hash);
}

static int usage(void)
{
	fprintf(stderr,
		"weir-simulate [--seed N] [--seeds N] [--seconds S] [--minutes-of-cluster M] [--lanes] "
		"[--trace] [--all] [--history FILE]\n"
		"  --seed N: the first seed (1), --seeds N: how many (1 with --seed, else 1000)\n"
		"  --seconds S: run seeds for so long instead\n"
		"  --minutes-of-cluster M: simulated time in which faults happen, for each seed (drawn)\n"
		"  --lanes: most clients' requests are made by lanes, which have queue pairs to engines\n"
		"  --trace: print what happens, --all: go on after a failure\n"
		"  --history FILE: all requests of one seed and their answers, as JSON lines, or as EDN if "
		"FILE ends in .edn\n");
	return 2;
}

static bool take_number(int argc, char **argv, int *at, u64 *to)
{
	char *end;

	if (*at + 1 >= argc)
		return false;
	*to = strtoull(argv[++*at], &end, 10);
	return !*end;
}

static bool take_options(int argc, char **argv, struct options *options)
{
	bool good = true;

	for (int i = 1; i < argc && good; i++) {
		if (!strcmp(argv[i], "--seed")) {
			good = take_number(argc, argv, &i, &options->first);
			options->count = options->count ? options->count : 1;
		} else if (!strcmp(argv[i], "--seeds")) {
			good = take_number(argc, argv, &i, &options->count);
		} else if (!strcmp(argv[i], "--seconds")) {
			good = take_number(argc, argv, &i, &options->seconds);
			options->count = ~(u64)0 >> 1;
		} else if (!strcmp(argv[i], "--minutes-of-cluster")) {
			good = take_number(argc, argv, &i, &options->cluster_seconds);
			options->cluster_seconds *= SECONDS_IN_MINUTE;
		} else if (!strcmp(argv[i], "--seconds-of-cluster")) {
			good = take_number(argc, argv, &i, &options->cluster_seconds);
		} else if (!strcmp(argv[i], "--trace")) {
			options->trace = true;
		} else if (!strcmp(argv[i], "--history")) {
			good = i + 1 < argc;
			options->history = good ? argv[++i] : NULL;
		} else if (!strcmp(argv[i], "--lanes")) {
			options->lanes = true;
		} else if (!strcmp(argv[i], "--all")) {
			options->all = true;
		} else {
			good = false;
		}
	}
	options->count = options->count ? options->count : 1000;
	return good && (!options->history || options->count == 1);
}

int main(int argc, char **argv)
{
	struct options options = { .first = 1 };
	struct shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	u64 end;

	if (shared == MAP_FAILED || !take_options(argc, argv, &options))
		return usage();
	sim_system_begin();
	end = options.seconds ? now_s() + options.seconds : 0;
	while (shared->run < options.count && (!end || now_s() < end) && (options.all || !shared->failures)) {
		u64 left = options.count - shared->run;

		(void)run_child(&options, shared, options.first + shared->run, left < BATCH ? left : BATCH,
				end);
	}
	report(&options, shared);
	return shared->failures ? 1 : 0;
}
