/* SPDX-License-Identifier: BSD-3-Clause */
/* The report, as text and as JSON; keys are in docs/hardware.md. */
#include "try.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "tool_options.h"

/** struct counts - tests by verdict */
struct counts {
	unsigned good, failed, impossible;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void count(const json_t *list, struct counts *counts)
{
	const json_t *test;
	size_t index;

	json_array_foreach(list, index, test)
	{
		const char *verdict = text_of(test, "verdict");

		if (!strcmp(verdict, "good"))
			counts->good++;
		else if (!strcmp(verdict, "failed"))
			counts->failed++;
		else
			counts->impossible++;
	}
}

static void print_tests(FILE *out, const json_t *tests)
{
	char before[TRY_PATH] = "", now[TRY_PATH];
	const json_t *test;
	size_t index;

	json_array_foreach(tests, index, test)
	{
		const char *keys = text_of(test, "keys");

		snprintf(now, sizeof(now), "%s with %s", text_of(test, "lanes"), text_of(test, "storage"));
		if (strcmp(now, before))
			fprintf(out, "\n%s\n", now);
		strcpy(before, now);
		fprintf(out, "  %-12s %s%s%s\n", text_of(test, "verdict"), text_of(test, "test"),
			*keys ? ", " : "", keys);
		if (*text_of(test, "path"))
			fprintf(out, "               by %s\n", text_of(test, "path"));
		fprintf(out, "               %s\n", text_of(test, "why"));
		if (strcmp(text_of(test, "verdict"), "good") && *text_of(test, "said"))
			fprintf(out, "               it said: %s\n", text_of(test, "said"));
	}
}

static void print_rate(FILE *out, const json_t *measured, const char *key, const char *name)
{
	const json_t *value = json_object_get(measured, key);

	if (value && json_number_value(value) > 0)
		fprintf(out, "  %-28s %12.0f\n", name, json_number_value(value));
}

static void print_figures(FILE *out, const json_t *figures)
{
	static const char *const rows[][2] = { { "iops", "weir" },
					       { "plain_iops", "a plain kernel, no storage" },
					       { "fio_iops", "fio" },
					       { "fio_fixed_iops", "fio, registered buffers" },
					       { "pread_iops", "pread by 32 threads" } };
	const json_t *figure;
	size_t index;

	if (json_array_size(figures))
		fprintf(out, "\nfigures: random reads of 4 KiB per second, median of the runs\n");
	json_array_foreach(figures, index, figure)
	{
		const json_t *measured = json_object_get(figure, "measured");

		fprintf(out, "\n%s with %s%s%s%s%s\n", text_of(figure, "lanes"), text_of(figure, "storage"),
			*text_of(figure, "keys") ? ", " : "", text_of(figure, "keys"),
			*text_of(figure, "why") ? ": " : "", text_of(figure, "why"));
		if (measured)
			fprintf(out, "  by %s\n", text_of(measured, "path"));
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			print_rate(out, measured, rows[i][0], rows[i][1]);
	}
}

static void print_missing(FILE *out, const json_t *missing)
{
	const json_t *row;
	size_t index;

	if (json_array_size(missing))
		fprintf(out, "\nmissing on this machine\n");
	json_array_foreach(missing, index, row)
	{
		fprintf(out, "  %s: %s\n", text_of(row, "what"), text_of(row, "why"));
		if (*text_of(row, "remedy"))
			fprintf(out, "    > %s\n", text_of(row, "remedy"));
	}
}

static void print_text(FILE *out, const struct try_results *results, struct counts counts)
{
	fprintf(out, "weir-try %s\n\n%s", weir_version(), results->machine_text ? results->machine_text : "");
	print_tests(out, results->tests);
	print_figures(out, results->figures);
	print_missing(out, results->missing);
	fprintf(out, "\n%u good, %u failed, %u not possible here\n", counts.good, counts.failed,
		counts.impossible);
}

static char *make_text(const struct try_results *results, struct counts counts)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	print_text(out, results, counts);
	fclose(out);
	try_mask(text);
	return text;
}

static char *make_json(const struct try_results *results, struct counts counts)
{
	json_t *root = json_pack("{s:s, s:I, s:O, s:O, s:O, s:O, s:O, s:i, s:i, s:i}", "version",
				 weir_version(), "time", (json_int_t)time(NULL), "machine", results->machine,
				 "storages", results->storages, "tests", results->tests, "figures",
				 results->figures, "missing", results->missing, "good", (int)counts.good,
				 "failed", (int)counts.failed, "not_possible", (int)counts.impossible);
	char *text = json_dumps(root, JSON_INDENT(1));

	json_decref(root);
	if (text)
		try_mask(text);
	return text;
}

/* Return: 0, or 1 after a sentence. */
static int write_file(const char *name, const char *end, const char *text)
{
	char path[PATH_MAX];
	FILE *file;
	int bad;

	snprintf(path, sizeof(path), "%s%s", name, end);
	file = fopen(path, "w");
	bad = !file || fputs(text, file) < 0;
	bad |= file && fclose(file) != 0;
	if (bad)
		(void)tool_complain("cannot write %s: %s", path, strerror(errno));
	else
		(void)tool_complain("the report is in %s", path);
	return bad;
}

int try_report(const struct try_options *options, struct try_results *results)
{
	struct counts counts = { 0, 0, 0 };
	char *text, *json;
	int status;

	count(results->tests, &counts);
	count(results->figures, &counts);
	text = make_text(results, counts);
	json = make_json(results, counts);
	if (!counts.good && !counts.failed)
		(void)tool_complain("nothing was tested; the report says what is missing");
	status = !text || !json || counts.failed || !counts.good;
	if (text && json) {
		fputs(options->json ? json : text, stdout);
		putchar('\n');
		if (options->report)
			status |= write_file(options->report, ".txt", text) |
				  write_file(options->report, ".json", json);
	}
	free(text);
	free(json);
	return status;
}
