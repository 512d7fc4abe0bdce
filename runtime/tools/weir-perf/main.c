/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-perf: loads by lanes, measured beside a plain kernel that does the same without weir. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "plot.h"
#include "run.h"
#include "tool_options.h"

/* One value of the sweep after the other, or the one measurement there is. */
static int next_point(struct perf_options *options, const char **rest, char *swept)
{
	size_t length = strcspn(*rest, ",");

	if (length == 0 || length >= PERF_SWEEP_BYTES)
		return weir_fail(EINVAL, "--sweep does not take \"%s:%s\"; values have commas between them",
				 options->sweep, options->sweep_values);
	memcpy(swept, *rest, length);
	swept[length] = '\0';
	*rest += length;
	*rest += **rest == ',' && (*rest)[1];
	return perf_options_set(options, options->sweep, swept) || perf_options_check(options) ? -1 : 0;
}

/* Values of the whole sweep, before the first of them costs time. */
static int check_sweep(struct perf_options options)
{
	const char *rest = options.sweep_values;
	char swept[PERF_SWEEP_BYTES];
	unsigned count = 0;

	for (; options.sweep && *rest; count++)
		if (next_point(&options, &rest, swept))
			return -1;
	if (count > PERF_MOST_POINTS)
		return weir_fail(EINVAL, "--sweep: %u values; %d at most", count, PERF_MOST_POINTS);
	return 0;
}

/* Points of the sweep that were measured. *@error: the next one could not be, with a sentence. */
static unsigned measure(struct perf_options options, struct perf_outcome *outcomes, int *error)
{
	const char *rest = options.sweep_values;
	unsigned count = 0;

	do {
		struct perf_outcome *outcome = &outcomes[count];

		*error = options.sweep ? next_point(&options, &rest, outcome->swept) : 0;
		if (!*error)
			*error = perf_run(&options, outcome);
		if (*error)
			return count;
		if (options.sweep && !options.json) {
			perf_print_point(outcome, count == 0);
			fflush(stdout);
		}
		count++;
	} while (options.sweep && *rest);
	return count;
}

static void print(const struct perf_options *options, const struct perf_outcome *outcomes, unsigned count)
{
	json_t *root = options->json && options->sweep ? json_array() : NULL;

	if (!options->json && !options->sweep)
		perf_print_text(outcomes);
	if (!options->json)
		return;
	for (unsigned i = 0; i < count && root; i++)
		json_array_append_new(root, perf_json(&outcomes[i]));
	if (!root)
		root = perf_json(outcomes);
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

/* 0; 1 after an error, a failed request, a wrong block, or if nothing was verified that should have been. */
static int work(const struct perf_options *options)
{
	struct perf_outcome *outcomes = calloc(PERF_MOST_POINTS, sizeof(*outcomes));
	int code = 0, error = -ENOMEM;
	unsigned count = outcomes ? measure(*options, outcomes, &error) : 0;

	if (!outcomes)
		(void)weir_fail(ENOMEM, "no memory for results");
	if (error) /* what was measured before is printed all the same */
		code = tool_failed();
	if (count)
		print(options, outcomes, count);
	if (count && options->plot && perf_plot(outcomes, count))
		code = tool_failed();
	for (unsigned i = 0; i < count; i++)
		code |= perf_complain(&outcomes[i]);
	free(outcomes);
	return code;
}

int main(int argc, char **argv)
{
	const char *backend = getenv("WEIR_BACKEND");
	struct perf_options options = { .backend = backend && *backend ? backend : "auto",
					.bs = 4096,
					.mix = PERF_MIX_LEFT_OUT,
					.window = 1,
					.runtime = 3,
					.runs = 5,
					.workers = 1,
					.wave = 1,
					.seed = 1,
					.hit = PERF_HIT_NONE,
					.plain_bytes = (uint64_t)4 << 30 };
	int status = perf_options_read(&options, argc, argv), error;

	if (status >= 0)
		return status;
	error = check_sweep(options);
	if (!error && !options.sweep)
		error = perf_options_check(&options);
	if (!error && options.plot)
		error = perf_plot_check(options.plot);
	return error ? tool_usage("%s", weir_last_error()) : work(&options);
}
