/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-check: what this machine can do for each GPU and SSD, and why not. */
#include <stdio.h>

#include <weir/weir.h>

#include "storage.h"
#include "survey.h"
#include "tool_options.h"
#include "device/gpus.h"

static const char about[] =
	"usage: weir-check [--gpu NAME]... [--ssd ADDRESS]... [--json]\n"
	"       weir-check --storage URI... [--json]\n"
	"\n"
	"What stands between GPUs and NVMe SSDs: kernel, IOMMU, drivers, BARs, bridges, permissions; and "
	"for\n"
	"each pair which of these paths work, why the others do not, and what to do:\n"
	"\n"
	"  direct   lanes drive the controller by themselves, through VFIO (storages nvme:ADDRESS)\n"
	"  module   the same by the kernel module weir_p2p, shared with the kernel's driver\n"
	"  pull     host threads read into pinned memory through the kernel's driver, lanes copy from there\n"
	"           (file:PATH)\n"
	"  proxy    host threads put data where lanes use it (file:PATH)\n"
	"\n"
	"An answer is yes, no or unknown. It is unknown where something could not be read; a line then says "
	"what\n"
	"is missing. Root sees more: bridges' ACS. Nothing is opened for writing, and no driver is touched. "
	"VFIO\n"
	"has the last word.\n";

static const char notes[] =
	"Ends with 0 if each pair has direct or module; with 1 if one has slower paths alone; with 3 if one\n"
	"has none that is known to work, or what was named is not there; with 2 for wrong usage. GPUs that "
	"no\n"
	"backend can use count where they are named.";

/* Each name that is like a PCI address is one. Return: -1, or the exit status. */
static int check_names(const struct tool_names *names)
{
	struct weir_pci address;

	for (unsigned i = 0; i < names->count; i++) {
		if (!weir_pci_meant(names->item[i]) || weir_pci_parse(names->item[i], &address))
			continue;
		return tool_usage("no PCI address such as 0000:65:00.0: %s", names->item[i]);
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct tool_names storages = { .count = 0 };
	struct survey survey = { .json = false };
	const struct tool_option options[] = {
		{ "gpu", "NAME", TOOL_EACH, &survey.gpus, 0, 0,
		  "this one alone: gpu:0, a backend's device, a PCI address, or cpu, the lanes\non the host",
		  "give a device's name, or a PCI address such as 0000:65:00.0", NULL },
		{ "ssd", "ADDRESS", TOOL_EACH, &survey.ssds, 0, 0, "this NVMe controller alone",
		  "give a PCI address such as 0000:65:00.0", NULL },
		{ "storage", "URI", TOOL_EACH, &storages, 0, 0,
		  "instead: open this storage for reading, read its first block, and say what\n"
		  "it is, or why that fails; of nvmf: that says whether the host is reached\n"
		  "(weir-fabrics discover lists what it offers)",
		  "give a URI", NULL },
		{ "json", NULL, TOOL_FLAG, &survey.json, 0, 0,
		  "print one JSON object (docs/hardware.md has its keys)", NULL, NULL },
		{ "root", "DIR", TOOL_TEXT, &tree_root, 0, 0,
		  "a machine in a folder: take /sys, /proc, /dev and /boot from there, and what\n"
		  "backends say from DIR/weir-info.json (made by weir-info --json)",
		  NULL, NULL },
		{ .name = NULL },
	};
	const struct tool_program program = {
		.name = "weir-check", .about = about, .options = options, .notes = notes
	};
	int status = tool_parse(&program, argc, argv);

	if (status < 0)
		status = check_names(&survey.gpus);
	if (status < 0)
		status = check_names(&survey.ssds);
	if (status >= 0)
		return status;
	if (storages.count)
		return storages_report(storages.item, storages.count, survey.json);
	return survey_print(&survey);
}
