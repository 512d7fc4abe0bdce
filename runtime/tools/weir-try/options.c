/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

enum { LEAST_FILE = 4 << 20 };

static const char about[] =
	"usage: weir-try [--gpu NAME]... [--destroy-data-on ADDRESS[/NSID]]... [options]\n"
	"\n"
	"Does weir work on this machine? One command, and one report to attach to a bug report: what\n"
	"there is (weir-check), and what each path needs and lacks; for the host's lanes and each\n"
	"GPU, lanes write, and read back into poisoned buffers; queue pairs and caches under load,\n"
	"every block compared; reads per second next to a plain kernel, fio and pread.\n"
	"\n"
	"Storages are a temporary file, which has no name and goes with the program, and the disks\n"
	"that are named. Nothing else is written to, and no driver is bound or unbound. What this\n"
	"machine lacks is listed, and is no error.\n";

static const char notes[] =
	"Serial numbers are masked. Names, models, addresses and mount points are not: read the\n"
	"report before you hand it on.\n"
	"\n"
	"Ends with 0 if all that could be tested is good; with 1 if a test failed; with 2 for wrong\n"
	"usage, and for a disk that is refused.";

/* Return: -1, or the exit status. */
static int add_disk(struct try_options *options, const char *text)
{
	struct try_disk *disk = &options->disks[options->disk_count];
	const char *slash = strchr(text, '/');
	char address[TREE_NAME_BYTES], *end = NULL;
	unsigned long nsid = slash ? strtoul(slash + 1, &end, 10) : 0;

	if (options->disk_count == TRY_MOST)
		return tool_usage("--destroy-data-on is given more than 16 times");
	snprintf(address, sizeof(address), "%.*s", slash ? (int)(slash - text) : 63, text);
	if (!tree_address(address, disk->address) || (slash && (!nsid || *end || nsid >= UINT32_MAX))) {
		return tool_usage(
			"--destroy-data-on takes a PCI address such as 0000:65:00.0, or 0000:65:00.0/2 for "
			"namespace 2, not %.80s",
			text);
	}
	disk->nsid = (uint32_t)nsid;
	options->disk_count++;
	return -1;
}

static int add_disks(struct try_options *options, const struct tool_names *disks)
{
	int status = -1;

	for (unsigned i = 0; status < 0 && i < disks->count; i++)
		status = add_disk(options, disks->item[i]);
	options->file_bytes -= options->file_bytes % (1 << 20);
	return status;
}

int try_options_read(struct try_options *options, int argc, char **argv)
{
	struct tool_names disks = { .count = 0 };
	const struct tool_option table[] = {
		{ "destroy-data-on", "ADDRESS[/NSID]", TOOL_EACH, &disks, 0, 0,
		  "also test the NVMe SSD at this PCI address, such as 0000:65:00.0, and\n"
		  "destroy what is on it: through VFIO if vfio-pci has it (weir-bind bind\n"
		  "ADDRESS), else through the kernel's driver. Refused, before anything is\n"
		  "written, if it is mounted, swapped on, a part of md, dm or ZFS, has\n"
		  "partitions, or does not begin and end with 1 MiB of zeros (as blkdiscard\n"
		  "-z or nvme format leave it). What lies behind the first MiB is written,\n"
		  "--size of it, with zeros in the end",
		  "it takes a PCI address such as 0000:65:00.0", NULL },
		{ "gpu", "NAME", TOOL_EACH, &options->gpus, 0, 0,
		  "these lanes alone: gpu:0, or cpu, the lanes on the host", "it takes a device's name",
		  NULL },
		{ "dir", "DIR", TOOL_TEXT, &options->folder, 0, 0,
		  "where the temporary file goes (default TMPDIR, or /var/tmp)", NULL, NULL },
		{ "size", "SIZE", TOOL_BYTES, &options->file_bytes, LEAST_FILE, 0,
		  "of the temporary file, and of what is written to a disk (default 64M)", NULL, NULL },
		{ "file-keys", "KEYS", TOOL_TEXT, &options->file_keys, 0, 0,
		  "further keys of its URI, such as direct=off, with & between them", NULL, NULL },
		{ "runtime", "SECONDS", TOOL_REAL, &options->runtime, 0.01, 600,
		  "of a measured run (default 1)", NULL, NULL },
		{ "report", "NAME", TOOL_TEXT, &options->report, 0, 0,
		  "write the report to NAME.txt and NAME.json, too", NULL, NULL },
		{ "json", NULL, TOOL_FLAG, &options->json, 0, 0,
		  "print the report as one JSON object (docs/hardware.md has its keys)", NULL, NULL },
		{ "root", "DIR", TOOL_TEXT, &tree_root, 0, 0,
		  "what there is on a machine in a folder (weir-check --help); only files are\ntested", NULL,
		  NULL },
		{ .name = NULL },
	};
	const struct tool_program program = {
		.name = "weir-try", .about = about, .options = table, .notes = notes
	};
	const char *folder = getenv("TMPDIR");
	int status;

	*options = (struct try_options){ .folder = folder && *folder ? folder : "/var/tmp",
					 .file_bytes = 64 << 20,
					 .runtime = 1 };
	status = tool_parse(&program, argc, argv);
	return status < 0 ? add_disks(options, &disks) : status;
}
