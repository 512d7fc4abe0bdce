/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads of weir-perf as tests: rows of a table; and what is measured beside other programs. */
#include "try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum { OPTIONS_BYTES = 256, TEST_BYTES = 16 << 20 };

/**
 * struct suite - one load
 * @name: in the report
 * @options: of weir-perf, without their dashes; all that is read is compared
 */
struct suite {
	const char *name;
	const char *options;
};

static const struct suite suites[] = {
	{ "queue: rings of 2 entries", "queues=1 depth=2 iodepth=16 rw=randrw verify" },
	{ "queue: rings that wrap", "queues=1 depth=8 iodepth=64 rw=randrw verify" },
	{ "queue: four pairs", "queues=4 depth=64 iodepth=256 rw=randread verify" },
	{ "queue: 8 requests a lane", "queues=2 depth=64 iodepth=32 window=8 rw=randrw verify" },
	{ "queue: 64 KiB requests", "queues=2 depth=16 iodepth=16 bs=64K rw=read verify" },
	{ "queue: writes read back", "queues=2 depth=32 iodepth=64 rw=randwrite verify" },
	{ "cache: reads", "queues=2 depth=64 iodepth=128 cached=1M rw=randread verify" },
	{ "cache: hot places", "queues=2 depth=64 iodepth=128 cached=1M zipf=0.99 rw=randread verify" },
	{ "cache: writes read back", "queues=2 depth=64 iodepth=128 cached=1M rw=randwrite verify" },
	{ "cache: a tier of host memory",
	  "queues=2 depth=64 iodepth=128 cached=1M tier=2M rw=randread verify" },
};

enum { SUITES = sizeof(suites) / sizeof(suites[0]) };

/** struct load - a suite for a pair, in a process of its own */
struct load {
	const struct try_pair *pair;
	const struct suite *suite;
};

/* "rw=randread verify" into @options. Return: 0; -1 after a sentence. */
static int set_options(struct perf_options *options, const char *text)
{
	char copy[OPTIONS_BYTES], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (perf_options_set(options, word, value ? value : word))
			return -1;
	}
	return perf_options_check(options);
}

/* The load, to its end. Return: 0; -1 after a sentence. */
static int run(const struct try_pair *pair, const char *text, double seconds, uint32_t runs,
	       struct perf_outcome *outcome)
{
	static char uri[TRY_PATH]; /* the outcome refers to it */
	const struct try_storage *storage = pair->storage;
	struct perf_options options = { .uri_count = 1,
					.backend = pair->lanes,
					.bs = 4096,
					.mix = PERF_MIX,
					.offset = storage->offset,
					.size = storage->bytes < TEST_BYTES || runs > 1 ? storage->bytes
											: TEST_BYTES,
					.window = 1,
					.runtime = seconds,
					.runs = runs,
					.workers = 1,
					.wave = 1,
					.seed = 1,
					.hit = PERF_HIT_NONE,
					.plain_bytes = (uint64_t)1 << 30 };

	try_uri(uri, storage, pair->variant);
	options.uris[0] = uri;
	if (set_options(&options, text))
		return -1;
	return perf_run(&options, outcome);
}

static json_t *judge(const struct perf_outcome *outcome)
{
	char text[80];

	weir_status_text(outcome->status, text);
	if (outcome->errors)
		return try_verdict("failed", "%llu of %llu requests failed, one of them with: %s",
				   (unsigned long long)outcome->errors, (unsigned long long)outcome->requests,
				   text);
	if (outcome->bad)
		return try_verdict("failed",
				   "%llu of %llu blocks that were read do not hold what was written, for one "
				   "near byte %llu",
				   (unsigned long long)outcome->bad, (unsigned long long)outcome->checked,
				   (unsigned long long)outcome->bad_byte);
	if (!outcome->checked)
		return try_verdict("failed", "no block was read and compared");
	return try_verdict("good", "%llu requests, %llu blocks compared",
			   (unsigned long long)outcome->requests, (unsigned long long)outcome->checked);
}

static json_t *run_suite(const void *arguments)
{
	static struct perf_outcome outcome;
	const struct load *load = arguments;
	char text[OPTIONS_BYTES];
	double seconds = load->pair->options->runtime < .2 ? load->pair->options->runtime : .2;

	snprintf(text, sizeof(text), "%s plain=off", load->suite->options);
	if (run(load->pair, text, seconds, 1, &outcome))
		return try_verdict("failed", "%s", weir_last_error());
	return judge(&outcome);
}

/* Is fio here? */
static bool has_fio(void)
{
	return system("command -v fio >/dev/null 2>&1") == 0;
}

json_t *try_figures(const void *arguments)
{
	static struct perf_outcome outcome;
	const struct try_pair *pair = arguments;
	const struct try_storage *storage = pair->storage;
	bool others = storage->path[0] && !pair->variant[0], fio = others && has_fio(); /* once is enough */
	json_t *object, *measured;

	if (run(pair, fio ? "queues=4 depth=256 iodepth=256 peer=fio" : "queues=4 depth=256 iodepth=256",
		pair->options->runtime, 3, &outcome))
		return try_verdict("failed", "%s", weir_last_error());
	object = try_verdict("good", "%s",
			     fio || pair->variant[0] ? ""
			     : others                ? "fio is not installed"
						     : "other programs do not reach it");
	measured = perf_json(&outcome);
	if (others)
		json_object_set_new(measured, "pread_iops",
				    json_real(try_pread(storage, !strstr(outcome.path, "page cache"),
							pair->options->runtime)));
	json_object_set_new(object, "measured", measured);
	return object;
}

/* Who watches a terminal sees what runs: it takes minutes. */
static void show(const struct try_pair *pair, const char *name)
{
	if (isatty(STDERR_FILENO))
		(void)tool_complain("%s with %s: %s%s%s", pair->lanes, pair->storage->name, name,
				    *pair->variant ? ", " : "", pair->variant);
}

/* A test in a process of its own; what it found goes into the report's array @to. Return: it is good. */
static bool test(json_t *to, const struct try_pair *pair, const char *name, try_step step,
		 const void *arguments)
{
	json_t *found;
	bool good;

	show(pair, name);
	found = try_child(step, arguments);
	good = !strcmp(json_string_value(json_object_get(found, "verdict")), "good");
	json_object_update_new(found, json_pack("{s:s, s:s, s:s, s:s}", "lanes", pair->lanes, "storage",
						pair->storage->name, "keys", pair->variant, "test", name));
	json_array_append_new(to, found);
	return good;
}

/* With doorbells rung by whoever rings as a rule, and by a host thread where that was good, too. */
static void measure(const struct try_pair *pair, struct try_results *results, const char *const *variants,
		    unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct try_pair one = *pair;

		one.variant = variants[i];
		test(results->figures, &one, "randread 4 KiB", try_figures, &one);
	}
}

void try_pair_run(const struct try_options *options, const char *lanes, const struct try_storage *storage,
		  struct try_results *results)
{
	struct try_pair pair = { options, lanes, storage, "" };
	const char *measured[TRY_MOST] = { "" };
	unsigned count = 1;

	/* where the first does not go well, the others and the suites would say the same */
	if (!test(results->tests, &pair, "poison", try_poison, &pair))
		return;
	for (unsigned i = 1; storage->variants[i]; i++) {
		struct try_pair other = { options, lanes, storage, storage->variants[i] };

		if (test(results->tests, &other, "poison", try_poison, &other) &&
		    !strcmp(other.variant, "doorbell=host"))
			measured[count++] = other.variant;
	}
	for (unsigned i = 0; i < SUITES; i++)
		test(results->tests, &pair, suites[i].name, run_suite, &(struct load){ &pair, &suites[i] });
	measure(&pair, results, measured, count);
}
