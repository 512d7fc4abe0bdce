/* SPDX-License-Identifier: BSD-3-Clause */
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "report.h"
#include "tool_options.h"

/** struct report - blocks in the order of their output; NULL for text */
struct report {
	json_t *lanes, *ssds, *pairs;
	int status;
};

/* Is @lanes what @name means: cpu, gpu:0, gpu, BACKEND:0, an address, or one behind a backend's name? */
static bool is_named(const struct lanes *lanes, const char *name)
{
	const char *colon = strchr(name, ':');
	char address[TREE_NAME_BYTES];

	if (!strcmp(name, lanes->name) || (lanes->device[0] && !strcmp(name, lanes->device)))
		return true;
	if (lanes->host)
		return false;
	if (!strcmp(name, "gpu"))
		return !strcmp(lanes->name, "gpu:0");
	if (tree_address(name, address) || (colon && tree_address(colon + 1, address)))
		return !strcmp(lanes->function.address, address);
	return false;
}

/* Does an option's list leave it in? Without one, all. */
static bool wanted(const struct tool_names *names, const struct lanes *lanes)
{
	for (unsigned i = 0; i < names->count; i++)
		if (is_named(lanes, names->item[i]))
			return true;
	return !names->count;
}

static int usage(const char *which)
{
	return tool_usage("no PCI address such as 0000:65:00.0: %s", which);
}

static int absent(const char *kind, const char *name)
{
	(void)tool_complain("there is no %s %s; weir-check without it lists what there is", kind, name);
	return STATUS_NONE;
}

static int check_gpus(const struct tool_names *names, const struct lanes_list *list)
{
	for (unsigned i = 0; i < names->count; i++) {
		bool found = false;

		for (unsigned j = 0; j < list->count; j++)
			found = found || is_named(&list->item[j], names->item[i]);
		if (!found)
			return absent("GPU", names->item[i]);
	}
	return 0;
}

static bool is_controller(const char *address)
{
	struct tree_function function;

	return tree_function(address, &function) && !strncmp(function.class, "0x0108", 6);
}

/* All controllers, or those named, as addresses. */
static int choose_ssds(const struct tool_names *names, struct tree_names *addresses)
{
	if (!names->count) {
		tree_controllers(addresses);
		return 0;
	}
	addresses->count = 0;
	for (unsigned i = 0; i < names->count && addresses->count < TREE_MOST; i++) {
		if (!tree_address(names->item[i], addresses->name[addresses->count]))
			return usage(names->item[i]);
		if (!is_controller(addresses->name[addresses->count++]))
			return absent("NVMe controller", names->item[i]);
	}
	return 0;
}

static void report_pair(struct report *report, const struct pair *pair, bool counts)
{
	int status = pair_status(pair);

	if (counts && status > report->status)
		report->status = status;
	if (report->pairs)
		json_array_append_new(report->pairs, json_pair(pair));
	else
		text_pair(pair);
}

static void report_lanes(struct report *report, const struct lanes *lanes)
{
	if (report->lanes)
		json_array_append_new(report->lanes, json_lanes(lanes));
	else
		text_lanes(lanes);
}

static void report_ssd(struct report *report, const struct ssd *ssd)
{
	if (report->ssds)
		json_array_append_new(report->ssds, json_ssd(ssd));
	else
		text_ssd(ssd);
}

static int no_memory(void)
{
	(void)tool_complain("no memory");
	return STATUS_NONE;
}

static int report_pairs(const struct survey *survey, const struct machine *machine,
			const struct lanes_list *list, const struct ssd *ssds, unsigned count,
			struct report *report)
{
	struct pair *pair = malloc(sizeof(*pair));

	if (!pair)
		return no_memory();
	for (unsigned l = 0; l < list->count; l++)
		for (unsigned s = 0; s < count; s++) {
			if (!wanted(&survey->gpus, &list->item[l]))
				continue;
			pair_read(machine, &list->item[l], &ssds[s], pair);
			report_pair(report, pair, survey->gpus.count || list->item[l].usable != NO);
		}
	free(pair);
	return 0;
}

static int report_all(const struct survey *survey, const struct machine *machine,
		      const struct lanes_list *list, const struct tree_names *addresses,
		      struct report *report)
{
	struct ssd *ssds = calloc(addresses->count + 1, sizeof(*ssds));
	unsigned count = 0;
	int error;

	if (!ssds)
		return no_memory();
	for (unsigned i = 0; i < list->count; i++)
		if (wanted(&survey->gpus, &list->item[i]))
			report_lanes(report, &list->item[i]);
	for (unsigned i = 0; i < addresses->count; i++)
		if (ssd_read(machine, addresses->name[i], &ssds[count]))
			report_ssd(report, &ssds[count++]);
	if (!count) {
		report->status = STATUS_NONE;
		(void)tool_complain("no NVMe controller can be seen on this machine");
	}
	error = report_pairs(survey, machine, list, ssds, count, report);
	free(ssds);
	return error;
}

static void dump(const struct machine *machine, struct report *report)
{
	json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:i}", "version", weir_version(), "machine",
				 json_machine(machine), "gpus", report->lanes, "ssds", report->ssds, "pairs",
				 report->pairs, "status", report->status);

	json_dumpf(root, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(root);
}

static int run(const struct survey *survey, struct lanes_list *list)
{
	struct report report = { .status = STATUS_FAST };
	struct tree_names addresses;
	struct machine machine;
	int error = choose_ssds(&survey->ssds, &addresses);

	if (error)
		return error;
	lanes_read(list);
	error = check_gpus(&survey->gpus, list);
	if (error)
		return error;
	machine_read(&machine);
	if (survey->json)
		report = (struct report){ json_array(), json_array(), json_array(), STATUS_FAST };
	else
		text_machine(&machine);
	error = report_all(survey, &machine, list, &addresses, &report);
	if (survey->json)
		dump(&machine, &report);
	return error ? error : report.status;
}

int survey_print(const struct survey *survey)
{
	struct lanes_list *list = malloc(sizeof(*list));
	int status = list ? run(survey, list) : no_memory();

	free(list);
	return status;
}
