/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-explore: runs the core's lanes under schedules of its own choosing and
 * says which of them hang, corrupt or lose something.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exhaustive.h"
#include "explore.h"
#include "flow.h"
#include "report.h"
#include "rig.h"
#include "scenario.h"

enum {
	MOST_JOBS = 64,
	MOST_KERNELS = 16,
	SEEN_LOG2 = 23, /* room for distinct schedules */
	STRATEGIES = 8,
	EXHAUSTIVE = 7,
	BOUND = 2, /* preemptions, unless --bound says otherwise */
	MOST_BOUND = 8,
};

static const struct strategy *const strategies[STRATEGIES] = {
	&strategy_lockstep, &strategy_independent, &strategy_random, &strategy_pct,
	&strategy_starve,   &strategy_lag,         &strategy_rested, &strategy_exhaustive,
};

struct tally {
	u64 schedules, steps, failures, blocks;
};

/** struct job - what one process has done; in memory shared with the parent */
struct job {
	struct tally tally[STRATEGIES];
	double busy_s;
	u64 exhausted[MOST_BOUND + 1]; /* tiny cases of which every schedule was run, by bound */
	char token[4096];
};

struct shared {
	struct job jobs[MOST_JOBS];
	u64 distinct;
	u64 failures;
	u64 seen[(size_t)1 << SEEN_LOG2];
};

static struct options {
	const char *kernels[MOST_KERNELS];
	u32 kernel_count;
	const struct scenario *scenario;
	const struct strategy *strategy;
	const char *schedule;
	const char *memory;
	u64 seed;
	double seconds;
	u64 steps; /* instead of seconds */
	u64 schedules;
	u64 failures;
	u32 jobs, bound, last;
	bool trace, quiet;
} options = { .seconds = 10, .failures = 1, .bound = BOUND, .last = LOGGED_STEPS };

static struct shared *shared;
static void *library;
static const char *library_path;
static double started;

static double clock_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

__attribute__((noreturn, format(printf, 1, 2))) static void usage(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "weir-explore: ");
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr,
		"\nusage: weir-explore --kernels FILE.so [--kernels FILE.so ...]\n"
		"         [--seconds S | --steps N] [--schedules N] [--seed N] [--jobs N] [--scenario NAME] "
		"[--strategy NAME]\n"
		"         [--memory strong|weak] [--bound PREEMPTIONS] [--failures N] [--last STEPS] "
		"[--quiet]\n"
		"       weir-explore --kernels FILE.so --schedule TOKEN [--trace]\n"
		"       weir-explore --list\n");
	exit(2);
}

static void list(void)
{
	printf("scenarios:");
	for (size_t i = 0; i < SCENARIO_COUNT; i++)
		printf(" %s", scenarios[i].name);
	printf("\nstrategies:");
	for (size_t i = 0; i < STRATEGIES; i++)
		printf(" %s", strategies[i]->name);
	printf("\nmemory: strong weak\n");
	exit(0);
}

static const struct strategy *strategy_find(const char *name)
{
	for (size_t i = 0; i < STRATEGIES; i++)
		if (!strcmp(strategies[i]->name, name))
			return strategies[i];
	return NULL;
}

static u64 number(const char *option, const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end)
		usage("--%s \"%s\" is not a number", option, text);
	return value;
}

static void take_option(int option, const char *name, const char *value)
{
	switch (option) {
	case 'k':
		if (options.kernel_count == MOST_KERNELS)
			usage("at most %d kernel files", MOST_KERNELS);
		options.kernels[options.kernel_count++] = value;
		break;
	case 'c':
		options.scenario = scenario_find(value);
		if (!options.scenario)
			usage("no scenario is called \"%s\"; --list names them", value);
		break;
	case 'y':
		options.strategy = strategy_find(value);
		if (!options.strategy)
			usage("no strategy is called \"%s\"; --list names them", value);
		break;
	case 'm':
		if (strcmp(value, "strong") && strcmp(value, "weak"))
			usage("--memory \"%s\" is neither strong nor weak", value);
		options.memory = value;
		break;
	case 's': options.seconds = (double)number(name, value); break;
	case 'p': options.steps = number(name, value); break;
	case 'n': options.schedules = number(name, value); break;
	case 'e': options.seed = number(name, value); break;
	case 'j': options.jobs = (u32)number(name, value); break;
	case 'b': options.bound = (u32)number(name, value); break;
	case 'f': options.failures = number(name, value); break;
	case 'a': options.last = (u32)number(name, value); break;
	case 'r': options.schedule = value; break;
	case 't': options.trace = true; break;
	case 'q': options.quiet = true; break;
	case 'l': list(); break;
	default: usage("see below");
	}
}

static void read_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "kernels", required_argument, NULL, 'k' },
		{ "scenario", required_argument, NULL, 'c' },
		{ "strategy", required_argument, NULL, 'y' },
		{ "memory", required_argument, NULL, 'm' },
		{ "seconds", required_argument, NULL, 's' },
		{ "schedules", required_argument, NULL, 'n' },
		{ "steps", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 'e' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "bound", required_argument, NULL, 'b' },
		{ "failures", required_argument, NULL, 'f' },
		{ "last", required_argument, NULL, 'a' },
		{ "schedule", required_argument, NULL, 'r' },
		{ "trace", no_argument, NULL, 't' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "list", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int option, index = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", known, &index)) != -1)
		take_option(option, option == '?' ? "" : known[index].name, optarg);
	if (optind < argc)
		usage("\"%s\" is not an option", argv[optind]);
	if (!options.kernel_count)
		usage("--kernels is missing");
	if (!options.jobs)
		options.jobs = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	if (options.jobs < options.kernel_count)
		options.jobs = options.kernel_count; /* each file has a job */
	if (options.jobs > MOST_JOBS)
		options.jobs = MOST_JOBS;
	if (options.bound > MOST_BOUND)
		options.bound = MOST_BOUND;
	if (options.last > LOGGED_STEPS)
		options.last = LOGGED_STEPS;
}

static void load(const char *path)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s%s", strchr(path, '/') ? "" : "./", path);
	library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "weir-explore: \"%s\" has no kernels to load: %s\n", path, dlerror());
		exit(2);
	}
	library_path = path;
	flow_load();
}

typedef void entry_function(void *);

static void *find_named(const char *name)
{
	char symbol[128];

	snprintf(symbol, sizeof(symbol), "explore_kernel_%s", name);
	return dlsym(library, symbol);
}

static entry_function *find_kernel(const char *name)
{
	void *found = find_named(name);
	entry_function *entry;

	if (!found) {
		fprintf(stderr, "weir-explore: %s has no kernel \"%s\"\n", library_path, name);
		exit(2);
	}
	memcpy(&entry, &found, sizeof(entry));
	return entry;
}

/* Runs of one seed differ by strategy and scenario, too. */
static u64 mix(u64 value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return (value ^ (value >> 31)) | 1;
}

static void write_token(char *token, size_t bytes)
{
	const char *file = strrchr(library_path, '/') ? strrchr(library_path, '/') + 1 : library_path;
	int used = snprintf(token, bytes, "%s:%s:%s:%.*s:%#" PRIx64, run.scenario->name, run.strategy->name,
			    run.weak ? "weak" : "strong", (int)strcspn(file, "."), file, run.seed);

	if (run.strategy == &strategy_exhaustive && used > 0 && (size_t)used < bytes - 1) {
		token[used++] = ':';
		exhaustive_token(token + used, bytes - (size_t)used);
	}
}

/* One schedule from start to end. Return: it was right. */
static bool run_one(const struct scenario *scenario, const struct strategy *strategy, bool weak, u64 seed)
{
	u32 waves, width;
	void *args;
	entry_function *entry = find_kernel(scenario->kernel);

	run.scenario = scenario;
	run.strategy = strategy;
	run.weak = weak;
	run.seed = seed;
	run.random = mix(seed);
	run.steps = 0;
	run.failed = false;
	run.wave_count = 0;
	memory_begin();
	if (strategy->lockstep) {
		void *function;

		memcpy(&function, &entry, sizeof(function));
		flow_prepare(function);
	}
	args = scenario_begin(scenario, &waves, &width);
	schedule_begin(waves, width, entry, args);
	schedule_run();
	scenario_end(scenario);
	return !run.failed;
}

static void remember_schedule(u64 hash)
{
	size_t mask = ((size_t)1 << SEEN_LOG2) - 1, at = hash & mask;

	for (u32 probes = 0; probes < 64; probes++, at = (at + 1) & mask) {
		u64 none = 0;

		if (__atomic_compare_exchange_n(&shared->seen[at], &none, hash, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&shared->distinct, 1, __ATOMIC_RELAXED);
			return;
		}
		if (none == hash)
			return;
	}
}

/* What a job may spend: its share of the steps, the same on every machine and under any load; else the
 * seconds. */
static double budget(void)
{
	return options.steps ? (double)options.steps / options.jobs : options.seconds;
}

static double spent(const struct job *job)
{
	u64 steps = 0;

	for (u32 i = 0; i < STRATEGIES; i++)
		steps += job->tally[i].steps;
	return options.steps ? (double)steps : now_s() - started;
}

static bool over(const struct job *job)
{
	return __atomic_load_n(&shared->failures, __ATOMIC_RELAXED) >= options.failures ||
	       spent(job) > budget();
}

static void account(struct job *job, u32 strategy, bool right)
{
	job->tally[strategy].schedules++;
	job->tally[strategy].steps += run.steps;
	remember_schedule(
		mix(run.hash ^ mix((u64)(run.scenario - scenarios) * 16 + strategy * 2 + run.weak)));
	if (right)
		return;
	job->tally[strategy].failures++;
	if (__atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED) >= options.failures)
		return;
	write_token(job->token, sizeof(job->token));
	if (options.quiet)
		printf("FAILED %s: %s\n", job->token, run.failure);
	else
		report_failure(job->token, options.last);
	printf("replay: ci/explore --schedule '%s'\n", job->token);
	fflush(stdout);
}

/* Every schedule of one tiny case with at most @bound preemptions. Return: the budget was enough for all. */
static bool walk(struct job *job, const struct scenario *scenario, u32 bound, double until)
{
	exhaustive_start(bound);
	do {
		account(job, EXHAUSTIVE, run_one(scenario, &strategy_exhaustive, false, options.seed));
		if (over(job) || spent(job) > until)
			return false;
	} while (exhaustive_next());
	job->exhausted[bound]++;
	return true;
}

/* Jobs that have the same kernels share the tiny cases. */
static bool walks(u32 index, u32 scenario)
{
	u32 sharing = (options.jobs + options.kernel_count - 1) / options.kernel_count;

	return scenarios[scenario].tiny && find_named(scenarios[scenario].kernel) &&
	       (!options.scenario || options.scenario == &scenarios[scenario]) &&
	       scenario % sharing == index / options.kernel_count;
}

static void walk_all(struct job *job, u32 index)
{
	u32 left = 0;

	for (u32 i = 0; i < SCENARIO_COUNT; i++)
		left += walks(index, i);
	left *= options.bound + 1;
	for (u32 bound = 0; bound <= options.bound; bound++) {
		for (u32 i = 0; i < SCENARIO_COUNT && !over(job); i++)
			if (walks(index, i)) /* each its share of what is left */
				walk(job, &scenarios[i], bound,
				     spent(job) + (budget() - spent(job)) / left--);
	}
}

static u32 strategy_index(const struct strategy *strategy)
{
	for (u32 i = 0; i < STRATEGIES; i++)
		if (strategies[i] == strategy)
			return i;
	return 0;
}

/* The scenario chance says, or that was asked for, if the kernels that are loaded have it. */
static const struct scenario *pick_scenario(u64 choice)
{
	static const struct scenario *there[SCENARIO_COUNT];
	static u32 count;

	if (!count)
		for (u32 i = 0; i < SCENARIO_COUNT; i++)
			if (find_named(scenarios[i].kernel) &&
			    (!options.scenario || options.scenario == &scenarios[i]))
				there[count++] = &scenarios[i];
	return count ? there[choice % count] : NULL;
}

static void explore(struct job *job, u32 index)
{
	u64 limit = options.schedules ? (options.schedules + options.jobs - 1) / options.jobs : ~(u64)0;
	bool walking = !options.strategy ? !options.memory && !options.schedules
					 : options.strategy == &strategy_exhaustive;
	/* chance has all of the budget, or three quarters, or none */
	double chance_until = budget() * (options.strategy == &strategy_exhaustive ? 0 : walking ? 0.75 : 1);

	rig_create();
	load(options.kernels[index % options.kernel_count]);
	for (u64 i = 0; i < limit && !over(job) && spent(job) < chance_until && pick_scenario(0); i++) {
		u64 seed = options.seed + index + i * options.jobs;
		u64 choice = mix(seed ^ 0x77656972);
		const struct scenario *scenario = pick_scenario(choice);
		const struct strategy *strategy =
			options.strategy ? options.strategy : strategies[(choice >> 16) % EXHAUSTIVE];
		bool weak = options.memory ? !strcmp(options.memory, "weak") : (choice >> 32) & 1;

		run.seed = seed;
		run.scenario = scenario;
		run.strategy = strategy;
		run.weak = weak;
		if (shared) /* so that the parent can tell which schedule killed us */
			snprintf(job->token, 128, "%s:%s:%s:%.40s:%#" PRIx64, scenario->name, strategy->name,
				 weak ? "weak" : "strong", library_path, seed);
		account(job, strategy_index(strategy), run_one(scenario, strategy, weak, seed));
	}
	if (walking)
		walk_all(job, index);
	job->busy_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

/* SCENARIO:STRATEGY:MEMORY:KERNELS:SEED[:CHOICES] */
static int replay(void)
{
	char *text = strdup(options.schedule), *part[6] = { NULL }, *at = text;
	const struct scenario *scenario;
	const struct strategy *strategy;
	bool right;

	for (u32 i = 0; i < 6 && at; i++)
		part[i] = strsep(&at, ":");
	if (!part[4])
		usage("--schedule \"%s\" is no schedule; the line after \"replay\" has one",
		      options.schedule);
	scenario = scenario_find(part[0]);
	strategy = strategy_find(part[1]);
	if (!scenario || !strategy ||
	    (strategy == &strategy_exhaustive && (!part[5] || !exhaustive_replay(part[5]))))
		usage("--schedule \"%s\" names no scenario or strategy of this build", options.schedule);
	for (u32 i = 0; i < options.kernel_count; i++)
		if (strstr(options.kernels[i], part[3])) {
			options.kernels[0] = options.kernels[i];
			break;
		}
	rig_create();
	load(options.kernels[0]);
	run.trace = options.trace;
	right = run_one(scenario, strategy, !strcmp(part[2], "weak"), number("schedule", part[4]));
	if (right)
		printf("%s: right, %" PRIu64 " steps\n", options.schedule, run.steps);
	else
		report_failure(options.schedule, options.trace ? 0 : options.last);
	free(text);
	return right ? 0 : 1;
}

static void start_jobs(pid_t *children)
{
	for (u32 i = 0; i < options.jobs; i++) {
		children[i] = fork();
		if (children[i] < 0) {
			fprintf(stderr, "weir-explore: fork: %s\n", strerror(errno));
			exit(2);
		}
		if (children[i] == 0) {
			explore(&shared->jobs[i], i);
			fflush(stdout);
			_exit(0);
		}
	}
}

/* Return: a job broke for a reason of its own, which is not a finding. */
static bool wait_jobs(const pid_t *children)
{
	bool broken = false;

	for (u32 i = 0; i < options.jobs; i++) {
		struct job *job = &shared->jobs[i];
		int status = 0;

		waitpid(children[i], &status, 0);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) { /* for want of memory, say */
			broken = true;
			fprintf(stderr, "weir-explore: job %u was killed\n", i);
		} else if (WIFSIGNALED(status)) {
			shared->failures++;
			printf("FAILED %s: the process died of signal %d (%s)\nreplay: ci/explore --schedule "
			       "'%s'\n",
			       job->token, WTERMSIG(status), strsignal(WTERMSIG(status)), job->token);
		} else if (WEXITSTATUS(status)) {
			broken = true;
		}
	}
	return broken;
}

static int summary(double elapsed)
{
	struct tally all = { 0 };
	double busy = 0;

	for (u32 s = 0; s < STRATEGIES; s++) {
		struct tally sum = { 0 };

		for (u32 i = 0; i < options.jobs; i++) {
			sum.schedules += shared->jobs[i].tally[s].schedules;
			sum.steps += shared->jobs[i].tally[s].steps;
			sum.failures += shared->jobs[i].tally[s].failures;
		}
		if (sum.schedules)
			printf("%-12s %10" PRIu64 " schedules %14" PRIu64 " steps %6" PRIu64 " failures\n",
			       strategies[s]->name, sum.schedules, sum.steps, sum.failures);
		all.schedules += sum.schedules;
		all.steps += sum.steps;
	}
	for (u32 i = 0; i < options.jobs; i++)
		busy += shared->jobs[i].busy_s;
	for (u32 bound = 0; bound <= options.bound; bound++) {
		u64 cases = 0;

		for (u32 i = 0; i < options.jobs; i++)
			cases += shared->jobs[i].exhausted[bound];
		if (cases)
			printf("%" PRIu64 " tiny cases tried in every schedule of at most %u preemptions\n",
			       cases, bound);
	}
	printf("%" PRIu64 " schedules (%" PRIu64
	       " distinct), %.0f M steps, %.2f M steps/s per core, %.0f s, seed %" PRIu64 ", %" PRIu64
	       " failures\n",
	       all.schedules, shared->distinct, (double)all.steps / 1e6,
	       busy > 0 ? (double)all.steps / busy / 1e6 : 0.0, elapsed, options.seed, shared->failures);
	return shared->failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	pid_t children[MOST_JOBS];
	bool broken;

	read_options(argc, argv);
	if (options.schedule)
		return replay();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED) {
		fprintf(stderr, "weir-explore: no memory: %s\n", strerror(errno));
		return 2;
	}
	started = now_s();
	setvbuf(stdout, NULL, _IOFBF, 1 << 20); /* reports of two jobs do not mix */
	start_jobs(children);
	broken = wait_jobs(children);
	return broken && !shared->failures ? 2 : summary(now_s() - started);
}
