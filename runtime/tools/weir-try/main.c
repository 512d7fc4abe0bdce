/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-try: one command that says whether weir works on a machine, and writes a report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tool_options.h"
#include "try.h"

/** struct storages - the file, and the disks that were named */
struct storages {
	struct try_storage item[TRY_MOST + 1];
	unsigned count;
};

/* Disks first: if one is refused, nothing at all is done. Return: 0, or the exit status. */
static int open_storages(const struct try_options *options, struct storages *storages)
{
	for (unsigned i = 0; i < options->disk_count; i++) {
		int status = try_disk_open(options, &options->disks[i], &storages->item[i + 1]);

		if (status)
			return status;
	}
	storages->count = options->disk_count + 1;
	return try_file_open(options, &storages->item[0]) ? 1 : 0;
}

static bool wanted(const struct try_options *options, const char *name, const char *device)
{
	for (unsigned i = 0; i < options->gpus.count; i++)
		if (!strcmp(options->gpus.item[i], name) || !strcmp(options->gpus.item[i], device))
			return true;
	return !options->gpus.count;
}

/* A row of weir-check's list that a backend can use, and that was asked for. */
static bool is_usable(const struct try_options *options, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *device = json_string_value(json_object_get(row, "device"));

	return name && *name && wanted(options, name, device ? device : "");
}

/* Of the names that were given, one that is no device's; NULL: there is none. */
static const char *unknown(const struct try_options *options, const struct try_results *results)
{
	const json_t *row;
	size_t index;

	for (unsigned i = 0; i < options->gpus.count; i++) {
		const struct try_options one = { .gpus = { .count = 1, .item = { options->gpus.item[i] } } };
		bool found = false;

		json_array_foreach(json_object_get(results->machine, "gpus"), index, row)
		{
			found = found || is_usable(&one, row);
		}
		if (!found)
			return options->gpus.item[i];
	}
	return NULL;
}

/* Names of lanes to test: of weir-check's list, those that a backend can use. */
static unsigned choose_lanes(const struct try_options *options, const struct try_results *results,
			     const char **names)
{
	const json_t *row;
	unsigned count = 0;
	size_t index;

	json_array_foreach(json_object_get(results->machine, "gpus"), index, row)
	{
		if (count < TRY_MOST && is_usable(options, row))
			names[count++] = json_string_value(json_object_get(row, "name"));
	}
	return count;
}

static void add_storage(struct try_results *results, const struct try_storage *storage)
{
	json_array_append_new(results->storages,
			      json_pack("{s:s, s:s, s:I, s:I}", "name", storage->name, "uri", storage->uri,
					"offset", (json_int_t)storage->offset, "bytes",
					(json_int_t)storage->bytes));
}

static void add_clean(struct try_results *results, const struct try_storage *storage)
{
	json_t *found = try_child(try_disk_clean, storage);

	json_object_update_new(found, json_pack("{s:s, s:s, s:s, s:s}", "lanes", "cpu", "storage",
						storage->name, "keys", "", "test", "zeros in the end"));
	json_array_append_new(results->tests, found);
}

static int run(const struct try_options *options, struct storages *storages, struct try_results *results)
{
	const char *lanes[TRY_MOST], *stranger;
	unsigned count;

	try_machine(results);
	stranger = unknown(options, results);
	if (stranger) {
		(void)tool_complain("no backend can use %s; weir-info lists what there is", stranger);
		return TRY_REFUSED;
	}
	count = choose_lanes(options, results, lanes);
	for (unsigned s = 0; s < storages->count; s++) {
		add_storage(results, &storages->item[s]);
		for (unsigned i = 0; i < count; i++)
			try_pair_run(options, lanes[i], &storages->item[s], results);
		if (s)
			add_clean(results, &storages->item[s]);
	}
	return try_report(options, results);
}

int main(int argc, char **argv)
{
	static struct storages storages;
	struct try_options options;
	struct try_results results;
	int status = try_options_read(&options, argc, argv);

	if (status < 0)
		status = open_storages(&options, &storages);
	if (!storages.count || status)
		return status;
	results = (struct try_results){ .storages = json_array(),
					.tests = json_array(),
					.figures = json_array(),
					.missing = json_array() };
	status = run(&options, &storages, &results);
	json_decref(results.machine);
	json_decref(results.storages);
	json_decref(results.tests);
	json_decref(results.figures);
	json_decref(results.missing);
	free(results.machine_text);
	return status;
}
