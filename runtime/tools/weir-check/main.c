/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-check: what this machine can do for each GPU and SSD, and why not. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "gpus.h"
#include "report.h"

static const char usage_text[] =
	"usage: weir-check [--gpu NAME]... [--ssd ADDRESS]... [--json]\n"
	"\n"
	"What stands between GPUs and NVMe SSDs: kernel, IOMMU, drivers, BARs, bridges, permissions; and for each pair\n"
	"whether there is each of these paths, why not, and what to do:\n"
	"\n"
	"  direct   lanes drive the controller by themselves, through VFIO (storages nvme:ADDRESS)\n"
	"  module   the same by the kernel module weir_p2p, beside the kernel's driver\n"
	"  pull     host threads read into pinned memory through the kernel's driver, lanes copy from there (file:PATH)\n"
	"  proxy    host threads put data where lanes use it (file:PATH)\n"
	"\n"
	"An answer is yes, no or unknown; what could not be read is unknown, and a line says what would tell. Root sees\n"
	"more: bridges' ACS. Nothing is opened for writing, and no driver is touched. VFIO has the last word.\n"
	"\n"
	"  --gpu NAME     this one alone: gpu:0, a backend's device, a PCI address, or cpu, the lanes on the host\n"
	"  --ssd ADDRESS  this NVMe controller alone\n"
	"  --json         print one JSON object (docs/hardware.md has its keys)\n"
	"  --root DIR     a machine in a folder: take /sys, /proc, /dev and /boot from there, and what backends say from\n"
	"                 DIR/weir-info.json (made by weir-info --json)\n"
	"  --version      print the version\n"
	"\n"
	"Ends with 0 if each pair has direct or module; with 1 if one has slower paths alone; with 3 if one has none that is\n"
	"known to work, or what was named is not there; with 2 for bad usage. GPUs that no backend can use count where\n"
	"they are named.\n";

/** struct names - values of an option */
struct names {
	const char *item[CHECK_DEVICES];
	unsigned count;
};

/** struct asked - what the command line says */
struct asked {
	struct names gpus, ssds;
	bool json;
};

/** struct report - blocks in the order of their output; NULL for text */
struct report {
	json_t *lanes, *ssds, *pairs;
	int status;
};

static int usage(const char *what, const char *which)
{
	fprintf(stderr, "weir-check: %s%s; see weir-check --help\n", what, which);
	return STATUS_USAGE;
}

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
static bool wanted(const struct names *names, const struct lanes *lanes)
{
	for (unsigned i = 0; i < names->count; i++)
		if (is_named(lanes, names->item[i]))
			return true;
	return !names->count;
}

static int absent(const char *kind, const char *name)
{
	fprintf(stderr, "weir-check: there is no %s %s; weir-check without it lists what there is\n", kind, name);
	return STATUS_NONE;
}

static int check_gpus(const struct names *names, const struct lanes_list *list)
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

/* All controllers, or those named, as addresses. */
static int choose_ssds(const struct names *names, struct tree_names *addresses)
{
	struct tree_names all;

	tree_controllers(&all);
	*addresses = all;
	if (!names->count)
		return 0;
	addresses->count = 0;
	for (unsigned i = 0; i < names->count && addresses->count < TREE_MOST; i++) {
		if (!tree_address(names->item[i], addresses->name[addresses->count]))
			return usage("no PCI address such as 0000:65:00.0: ", names->item[i]);
		if (!tree_has(&all, addresses->name[addresses->count++]))
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
	fprintf(stderr, "weir-check: no memory\n");
	return STATUS_NONE;
}

static int report_pairs(const struct asked *asked, const struct machine *machine, const struct lanes_list *list,
			const struct ssd *ssds, unsigned count, struct report *report)
{
	struct pair *pair = malloc(sizeof(*pair));

	if (!pair)
		return no_memory();
	for (unsigned l = 0; l < list->count; l++)
		for (unsigned s = 0; s < count; s++) {
			if (!wanted(&asked->gpus, &list->item[l]))
				continue;
			pair_read(machine, &list->item[l], &ssds[s], pair);
			report_pair(report, pair, asked->gpus.count || list->item[l].usable != NO);
		}
	free(pair);
	return 0;
}

static int report_all(const struct asked *asked, const struct machine *machine, const struct lanes_list *list,
		      const struct tree_names *addresses, struct report *report)
{
	struct ssd *ssds = calloc(addresses->count + 1, sizeof(*ssds));
	unsigned count = 0;
	int error;

	if (!ssds)
		return no_memory();
	for (unsigned i = 0; i < list->count; i++)
		if (wanted(&asked->gpus, &list->item[i]))
			report_lanes(report, &list->item[i]);
	for (unsigned i = 0; i < addresses->count; i++)
		if (ssd_read(machine, addresses->name[i], &ssds[count]))
			report_ssd(report, &ssds[count++]);
	if (!count) {
		report->status = STATUS_NONE;
		fprintf(stderr, "weir-check: no NVMe controller can be seen on this machine\n");
	}
	error = report_pairs(asked, machine, list, ssds, count, report);
	free(ssds);
	return error;
}

static void dump(const struct machine *machine, struct report *report)
{
	json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:i}", "version", weir_version(), "machine",
				 json_machine(machine), "gpus", report->lanes, "ssds", report->ssds, "pairs", report->pairs, "status", report->status);

	json_dumpf(root, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(root);
}

static int run(const struct asked *asked, struct lanes_list *list)
{
	struct report report = { .status = STATUS_FAST };
	struct tree_names addresses;
	struct machine machine;
	int error = choose_ssds(&asked->ssds, &addresses);

	if (error)
		return error;
	lanes_read(list);
	error = check_gpus(&asked->gpus, list);
	if (error)
		return error;
	machine_read(&machine);
	if (asked->json)
		report = (struct report){ json_array(), json_array(), json_array(), STATUS_FAST };
	else
		text_machine(&machine);
	error = report_all(asked, &machine, list, &addresses, &report);
	if (asked->json)
		dump(&machine, &report);
	return error ? error : report.status;
}

static int add_name(struct names *names, const char *option, const char *value)
{
	struct weir_pci address;

	if (names->count == CHECK_DEVICES)
		return usage("too many times ", option);
	if (!*value || (weir_pci_meant(value) && !weir_pci_parse(value, &address)))
		return usage("no PCI address such as 0000:65:00.0: ", value);
	names->item[names->count++] = value;
	return 0;
}

/* Return: -1 to go on; else the exit status. */
static int take_option(int key, struct asked *asked)
{
	int error = 0;

	if (key == 'h') {
		fputs(usage_text, stdout);
		return 0;
	}
	if (key == 'v') {
		printf("weir-check %s\n", weir_version());
		return 0;
	}
	if (key == '?')
		return usage("an option that is none, or lacks its value", "");
	asked->json = asked->json || key == 'j';
	if (key == 'r')
		tree_root = optarg;
	if (key == 'g' || key == 's')
		error = add_name(key == 'g' ? &asked->gpus : &asked->ssds, key == 'g' ? "--gpu" : "--ssd", optarg);
	return error ? error : -1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "gpu", required_argument, NULL, 'g' }, { "ssd", required_argument, NULL, 's' }, { "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' }, { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 }
	};
	struct asked asked = { .json = false };
	struct lanes_list *list;
	int key, status;

	while ((key = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		status = take_option(key, &asked);
		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return usage("what is this for: ", argv[optind]);
	list = malloc(sizeof(*list));
	status = list ? run(&asked, list) : no_memory();
	free(list);
	return status;
}
