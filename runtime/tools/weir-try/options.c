/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tree.h"

enum { LEAST_FILE = 4 << 20 };

static const char usage_text[] =
	"usage: weir-try [--gpu NAME]... [--destroy-data-on ADDRESS[/NSID]]... [options]\n"
	"\n"
	"Does weir work on this machine? One command, and one report to attach to a bug report: what\n"
	"there is (weir-check), and what each path needs and lacks; for the host's lanes and each\n"
	"GPU, lanes write, and read back into poisoned buffers; queue pairs and caches under load,\n"
	"every block compared; reads per second beside a plain kernel, fio and pread.\n"
	"\n"
	"Storages are a temporary file, which has no name and goes with the program, and the disks\n"
	"that are named. Nothing else is written to, and no driver is bound or unbound. What this\n"
	"machine lacks is listed, and is no error.\n"
	"\n"
	"  --destroy-data-on ADDRESS[/NSID]\n"
	"                    also test the NVMe SSD at this PCI address, such as 0000:65:00.0, and\n"
	"                    destroy what is on it: through VFIO if vfio-pci has it (weir-bind bind\n"
	"                    ADDRESS), else through the kernel's driver. Refused, before anything is\n"
	"                    written, if it is mounted, swapped on, a part of md, dm or ZFS, has\n"
	"                    partitions, or does not begin and end with 1 MiB of zeros (as blkdiscard\n"
	"                    -z or nvme format leave it). What lies behind the first MiB is written,\n"
	"                    --size of it, with zeros in the end\n"
	"  --gpu NAME        these lanes alone: gpu:0, or cpu, the lanes on the host\n"
	"  --dir DIR         where the temporary file goes (default TMPDIR, or /var/tmp)\n"
	"  --size SIZE       of the temporary file, and of what is written to a disk (default 64M, 4M\n"
	"                    at least)\n"
	"  --file-keys KEYS  further keys of its URI, such as direct=off, with & between them\n"
	"  --runtime SECONDS of a measured run (default 1)\n"
	"  --report NAME     write the report to NAME.txt and NAME.json, too\n"
	"  --json            print the report as one JSON object (docs/hardware.md has its keys)\n"
	"  --root DIR        what there is on a machine in a folder (weir-check --help); only files are\n"
	"                    tested\n"
	"  --version         print the version\n"
	"\n"
	"Serial numbers are masked. Names, models, addresses and mount points are not: read the\n"
	"report before you hand it on.\n"
	"\n"
	"Ends with 0 if all that could be tested is good; with 1 if a test failed; with 2 for bad\n"
	"usage, and for a disk that is refused.\n";

static int usage(const char *what, const char *which)
{
	fprintf(stderr, "weir-try: %s%s; see weir-try --help\n", what, which);
	return TRY_REFUSED;
}

static int add_gpu(struct try_options *options, const char *name)
{
	if (options->gpu_count == TRY_MOST)
		return usage("too many times --gpu", "");
	options->gpus[options->gpu_count++] = name;
	return -1;
}

static int add_disk(struct try_options *options, const char *text)
{
	struct try_disk *disk = &options->disks[options->disk_count];
	const char *slash = strchr(text, '/');
	char address[TREE_NAME_BYTES], *end = NULL;
	unsigned long nsid = slash ? strtoul(slash + 1, &end, 10) : 0;

	if (options->disk_count == TRY_MOST)
		return usage("too many times --destroy-data-on", "");
	snprintf(address, sizeof(address), "%.*s", slash ? (int)(slash - text) : 63, text);
	if (!tree_address(address, disk->address) || (slash && (!nsid || *end || nsid >= UINT32_MAX)))
		return usage("--destroy-data-on takes a PCI address such as 0000:65:00.0, or 0000:65:00.0/2 "
			     "for namespace 2, not ",
			     text);
	disk->nsid = (uint32_t)nsid;
	options->disk_count++;
	return -1;
}

static int take_size(struct try_options *options, const char *text)
{
	if (weir_parse_bytes(text, &options->file_bytes) != 0 || options->file_bytes < LEAST_FILE)
		return usage("--size takes 4M or more, not ", text);
	options->file_bytes -= options->file_bytes % (1 << 20);
	return -1;
}

static int take_runtime(struct try_options *options, const char *text)
{
	char *end;

	options->runtime = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(options->runtime >= 0.01 && options->runtime <= 600))
		return usage("--runtime takes seconds from 0.01 to 600, not ", text);
	return -1;
}

static int take(struct try_options *options, int key)
{
	switch (key) {
	case 'h': return fputs(usage_text, stdout), 0;
	case 'v': return printf("weir-try %s\n", weir_version()), 0;
	case 'g': return add_gpu(options, optarg);
	case 'd': return add_disk(options, optarg);
	case 's': return take_size(options, optarg);
	case 't': return take_runtime(options, optarg);
	case 'k':
		options->file_keys = optarg;
		return *optarg ? -1 : usage("--file-keys takes keys such as direct=off", "");
	case 'f': options->folder = optarg; return -1;
	case 'p': options->report = optarg; return *optarg ? -1 : usage("--report takes a name", "");
	case 'j': options->json = true; return -1;
	case 'r': tree_root = optarg; return -1;
	default: return usage("an option that is none, or lacks its value", "");
	}
}

int try_options_read(struct try_options *options, int argc, char **argv)
{
	static const struct option table[] = { { "gpu", required_argument, NULL, 'g' },
					       { "destroy-data-on", required_argument, NULL, 'd' },
					       { "dir", required_argument, NULL, 'f' },
					       { "size", required_argument, NULL, 's' },
					       { "file-keys", required_argument, NULL, 'k' },
					       { "runtime", required_argument, NULL, 't' },
					       { "report", required_argument, NULL, 'p' },
					       { "json", no_argument, NULL, 'j' },
					       { "root", required_argument, NULL, 'r' },
					       { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'v' },
					       { NULL, 0, NULL, 0 } };
	const char *folder = getenv("TMPDIR");
	int key, status;

	*options = (struct try_options){ .folder = folder && *folder ? folder : "/var/tmp",
					 .file_bytes = 64 << 20,
					 .runtime = 1 };
	while ((key = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		status = take(options, key);
		if (status >= 0)
			return status;
	}
	return optind < argc ? usage("what is this for: ", argv[optind]) : -1;
}
