/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-check: what this machine can do for each GPU and SSD, and why not. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "device/gpus.h"
#include "storage.h"
#include "survey.h"

static const char usage_text[] =
	"usage: weir-check [--gpu NAME]... [--ssd ADDRESS]... [--json]\n"
	"       weir-check --storage URI... [--json]\n"
	"\n"
	"What stands between GPUs and NVMe SSDs: kernel, IOMMU, drivers, BARs, bridges, permissions; and for "
	"each pair\n"
	"whether there is each of these paths, why not, and what to do:\n"
	"\n"
	"  direct   lanes drive the controller by themselves, through VFIO (storages nvme:ADDRESS)\n"
	"  module   the same by the kernel module weir_p2p, beside the kernel's driver\n"
	"  pull     host threads read into pinned memory through the kernel's driver, lanes copy from there "
	"(file:PATH)\n"
	"  proxy    host threads put data where lanes use it (file:PATH)\n"
	"\n"
	"An answer is yes, no or unknown; what could not be read is unknown, and a line says what would "
	"tell. Root sees\n"
	"more: bridges' ACS. Nothing is opened for writing, and no driver is touched. VFIO has the last "
	"word.\n"
	"\n"
	"  --gpu NAME     this one alone: gpu:0, a backend's device, a PCI address, or cpu, the lanes on the "
	"host\n"
	"  --ssd ADDRESS  this NVMe controller alone\n"
	"  --storage URI  instead: open this storage for reading, read its first block, and say what it is, "
	"or why not; of\n"
	"                 nvmf: that says whether the host is reached (weir-fabrics discover lists what it "
	"offers)\n"
	"  --json         print one JSON object (docs/hardware.md has its keys)\n"
	"  --root DIR     a machine in a folder: take /sys, /proc, /dev and /boot from there, and what "
	"backends say from\n"
	"                 DIR/weir-info.json (made by weir-info --json)\n"
	"  --version      print the version\n"
	"\n"
	"Ends with 0 if each pair has direct or module; with 1 if one has slower paths alone; with 3 if one "
	"has none that is\n"
	"known to work, or what was named is not there; with 2 for bad usage. GPUs that no backend can use "
	"count where\n"
	"they are named.\n";

static int usage(const char *what, const char *which)
{
	fprintf(stderr, "weir-check: %s%s; see weir-check --help\n", what, which);
	return STATUS_USAGE;
}

static int add_name(struct survey_names *names, const char *option, const char *value)
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
static int take_option(int key, struct survey *survey, struct survey_names *storages)
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
	survey->json = survey->json || key == 'j';
	if (key == 'r')
		tree_root = optarg;
	if (key == 'S' && storages->count < CHECK_DEVICES)
		storages->item[storages->count++] = optarg;
	if (key == 'g' || key == 's')
		error = add_name(key == 'g' ? &survey->gpus : &survey->ssds, key == 'g' ? "--gpu" : "--ssd",
				 optarg);
	return error ? error : -1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "gpu", required_argument, NULL, 'g' },  { "ssd", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },       { "storage", required_argument, NULL, 'S' },
		{ "root", required_argument, NULL, 'r' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },    { NULL, 0, NULL, 0 }
	};
	struct survey_names storages = { .count = 0 };
	struct survey survey = { .json = false };
	int key, status;

	while ((key = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		status = take_option(key, &survey, &storages);
		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return usage("what is this for: ", argv[optind]);
	if (storages.count)
		return storages_report(storages.item, storages.count, survey.json);
	return survey_print(&survey);
}
