/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-bind: give NVMe controllers to programs (vfio-pci), lay windows over GPUs (weir_p2p), and give both
 * back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "gpu.h"
#include "tool_options.h"
#include "tree.h"

static const char about[] =
	"usage: weir-bind show [--json] [ADDRESS...]\n"
	"       weir-bind bind|unbind|restore [--dry-run] ADDRESS...\n"
	"       weir-bind gpu list [--json] [ADDRESS...]\n"
	"       weir-bind gpu claim|unclaim [--dry-run] [--bar N] [--group NAME] ADDRESS...\n"
	"\n"
	"show     NVMe controllers: driver, disks and what uses them, IOMMU group, and why one cannot be\n"
	"         bound\n"
	"bind     take each from its driver and give it to vfio-pci, for storages nvme:ADDRESS\n"
	"unbind   take each from its driver, and give it to none\n"
	"restore  give each back to the driver that it had before\n"
	"gpu      windows of the kernel module weir_p2p over GPUs' memory, which SSDs then read into:\n"
	"         list GPUs with their BARs; claim the largest one, whatever driver the GPU has; give it\n"
	"         back\n"
	"\n"
	"A controller is refused if anything on it is mounted, swapped on, part of md or dm, or in use by\n"
	"ZFS or another program. With several, all are checked before the first is touched.\n";

enum command { SHOW, BIND, UNBIND, RESTORE, COMMANDS };

static const char *const command_names[COMMANDS] = { "show", "bind", "unbind", "restore" };
static bool dry_run, json;
static uint32_t bar;
static bool bar_given;
static const char *group;
static char **words;

static const struct tool_option options[] = {
	{ "dry-run", NULL, TOOL_FLAG, &dry_run, 0, 0, "say what would be written, and write nothing", NULL,
	  NULL },
	{ "json", NULL, TOOL_FLAG, &json, 0, 0, "print one JSON object", NULL, NULL },
	{ "bar", "N", TOOL_U32, &bar, 0, 5, "that BAR of a GPU", NULL, &bar_given },
	{ "group", "NAME", TOOL_TEXT, &group, 0, 0, "who may open the GPU's node, besides root", NULL, NULL },
	{ "root", "DIR", TOOL_TEXT, &tree_root, 0, 0,
	  "take /sys, /proc, /dev and /run from there, and believe what was\nwritten", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-bind", .about = about, .options = options, .all = &words
};

static int complain(const char *address, const char *what)
{
	return tool_complain("%s: %s", address, what);
}

static bool is_used(void *why, const char *block)
{
	return tree_used(block, why) != TREE_FREE;
}

/* Why the controller must stay where it is. Return: false: it need not. */
static bool in_use(const char *address, char why[TREE_WHY_BYTES])
{
	return tree_blocks_each(address, is_used, why);
}

static bool refused(enum command command, const struct tree_function *function, const struct tree_names *with,
		    char why[TREE_WHY_BYTES])
{
	char path[PATH_MAX], reason[TREE_WHY_BYTES], remedy[TREE_WHY_BYTES];

	if (strncmp(function->class, "0x0108", 6)) {
		snprintf(why, TREE_WHY_BYTES, "it is no NVMe controller, but of class %s", function->class);
		return true;
	}
	if (in_use(function->address, why))
		return true;
	if (command != BIND)
		return false;
	if (tree_shared(function, with, reason, remedy)) {
		snprintf(why, TREE_WHY_BYTES, "%.350s; %.150s", reason, remedy);
		return true;
	}
	if (!tree_path(path, "/sys/bus/pci/drivers/vfio-pci") || access(path, F_OK) != 0) {
		snprintf(why, TREE_WHY_BYTES,
			 "there is no driver vfio-pci in this kernel: load it (modprobe vfio-pci)");
		return true;
	}
	return false;
}

static const char *needs_root(int error)
{
	return error == EACCES || error == EPERM ? "; this needs root" : "";
}

/* One write, or the word that it would be. */
static int put(const char *address, const char *text, const char *path)
{
	char what[TREE_WHY_BYTES];
	int error;

	if (dry_run) {
		printf("would write \"%s\" to %s\n", text[0] == '\n' ? "" : text, path);
		return 0;
	}
	error = tree_write(path, text);
	if (!error)
		return 0;
	snprintf(what, sizeof(what), "cannot write to %.300s: %s%s", path, strerror(error),
		 needs_root(error));
	return complain(address, what);
}

static bool state_path(char path[PATH_MAX], const char *address)
{
	return tree_path(path, "/run/weir/bind/%s", address);
}

/* What restore will need: the driver there is now, unless that was noted before. */
static int note(const struct tree_function *function)
{
	char path[PATH_MAX], folder[PATH_MAX], driver[TREE_NAME_BYTES];
	FILE *file;
	bool good;

	if (dry_run || !state_path(path, function->address))
		return 0;
	tree_read(driver, sizeof(driver), path);
	if (driver[0])
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		char what[TREE_WHY_BYTES];
		int error;

		if (!tree_path(folder, i ? "/run/weir/bind" : "/run/weir") || mkdir(folder, 0755) == 0 ||
		    errno == EEXIST)
			continue;
		error = errno;
		snprintf(what, sizeof(what), "cannot make %.300s, where its driver is noted: %s%s", folder,
			 strerror(error), needs_root(error));
		return complain(function->address, what);
	}
	file = fopen(path, "w");
	good = file && fprintf(file, "%s\n", function->driver[0] ? function->driver : "none") > 0;
	if (file && fclose(file) != 0)
		good = false;
	return good ? 0 : complain(function->address, "cannot note its driver in /run/weir/bind");
}

static int leave_driver(const struct tree_function *function)
{
	char path[PATH_MAX];

	if (!function->driver[0] || !tree_path(path, "/sys/bus/pci/drivers/%s/unbind", function->driver))
		return 0;
	return put(function->address, function->address, path);
}

/* Choose @driver, "" for the kernel's own choice. */
static int choose_driver(const struct tree_function *function, const char *driver)
{
	char path[PATH_MAX];

	if (!tree_path(path, "/sys/bus/pci/devices/%s/driver_override", function->address))
		return 1;
	return put(function->address, driver[0] ? driver : "\n", path);
}

/* Have the chosen one take it. */
static int probe_driver(const struct tree_function *function)
{
	char path[PATH_MAX];

	if (!tree_path(path, "/sys/bus/pci/drivers_probe"))
		return 1;
	return put(function->address, function->address, path);
}

/* Did the kernel do as it was told? A tree of files cannot. */
static int confirm(const struct tree_function *function, const char *driver)
{
	struct tree_function now;
	char what[TREE_WHY_BYTES];

	if (dry_run || tree_root[0])
		return 0;
	if (tree_function(function->address, &now) && !strcmp(now.driver, driver))
		return 0;
	snprintf(what, sizeof(what), "the kernel left it with %s instead of %s; dmesg says why",
		 now.driver[0] ? now.driver : "no driver", driver[0] ? driver : "none");
	return complain(function->address, what);
}

static int bind_one(const struct tree_function *function)
{
	if (!strcmp(function->driver, "vfio-pci")) {
		printf("%s is with vfio-pci already\n", function->address);
		return 0;
	}
	return note(function) || leave_driver(function) || choose_driver(function, "vfio-pci") ||
	       probe_driver(function) || confirm(function, "vfio-pci");
}

static int unbind_one(const struct tree_function *function)
{
	return note(function) || leave_driver(function) || confirm(function, "");
}

static int restore_one(const struct tree_function *function)
{
	char path[PATH_MAX], driver[TREE_NAME_BYTES];
	bool had_one;

	if (!state_path(path, function->address))
		return 1;
	tree_read(driver, sizeof(driver), path);
	had_one = strcmp(driver, "none") != 0;
	if (!driver[0])
		return complain(function->address, "it was not bound or unbound by weir-bind since the "
						   "machine started: nothing to restore");
	if (leave_driver(function) || choose_driver(function, "") || (had_one && probe_driver(function)))
		return 1;
	if (confirm(function, had_one ? driver : ""))
		return 1;
	if (!dry_run)
		(void)unlink(path);
	return 0;
}

/* All are looked at before the first is touched. */
static int change(enum command command, const struct tree_names *addresses)
{
	int (*const change_one[COMMANDS])(const struct tree_function *) = { NULL, bind_one, unbind_one,
									    restore_one };
	struct tree_function function;
	char why[TREE_WHY_BYTES];
	int failed = 0;

	for (unsigned i = 0; i < addresses->count; i++)
		if (!tree_function(addresses->name[i], &function))
			failed = complain(
				addresses->name[i],
				"there is no such PCI device; weir-bind show lists NVMe controllers");
		else if (command != RESTORE && refused(command, &function, addresses, why))
			failed = complain(addresses->name[i], why);
	for (unsigned i = 0; i < addresses->count && !failed; i++)
		failed = !tree_function(addresses->name[i], &function) || change_one[command](&function);
	return failed;
}

static json_t *names_json(const struct tree_names *names)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < names->count; i++)
		json_array_append_new(list, json_string(names->name[i]));
	return list;
}

static void show_one(const struct tree_function *function, const struct tree_names *addresses, json_t *list)
{
	struct tree_names blocks;
	char why[TREE_WHY_BYTES] = "";
	bool no = refused(BIND, function, addresses, why);

	tree_blocks(function->address, &blocks);
	if (list) {
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:o, s:b, s:s}", "address",
						function->address, "id", function->id, "driver",
						function->driver, "iommu_group", function->group, "blocks",
						names_json(&blocks), "can_bind", !no, "why_not", why));
		return;
	}
	printf("%s  [%s]  driver %s, IOMMU group %s", function->address, function->id,
	       function->driver[0] ? function->driver : "none",
	       function->group[0] ? function->group : "none");
	for (unsigned i = 0; i < blocks.count; i++)
		printf("%s%s", i ? " " : ", disks ", blocks.name[i]);
	printf("\n    %s%s\n", no ? "cannot be bound: " : "can be bound", why);
}

static int show(const struct tree_names *named)
{
	struct tree_function function;
	struct tree_names all, alone = { .count = 0 };
	const struct tree_names *addresses = named->count ? named : &all;
	json_t *list = json ? json_array() : NULL;
	int failed = 0;

	tree_controllers(&all);
	for (unsigned i = 0; i < addresses->count; i++)
		if (tree_function(addresses->name[i], &function))
			show_one(&function, &alone, list);
		else
			failed = complain(addresses->name[i], "there is no such PCI device");
	if (list) {
		json_t *object = json_pack("{s:o}", "controllers", list);

		json_dumpf(object, stdout, JSON_INDENT(1));
		json_decref(object);
		printf("\n");
	} else if (!addresses->count) {
		printf("no NVMe controllers can be seen on this machine\n");
	}
	return failed;
}

static int take_addresses(char **operands, struct tree_names *addresses)
{
	addresses->count = 0;
	for (; *operands; operands++) {
		if (addresses->count == TREE_MOST)
			return tool_usage("too many addresses, from here on: %s", *operands);
		if (!tree_address(*operands, addresses->name[addresses->count++]))
			return tool_usage("no PCI address such as 0000:65:00.0: %s", *operands);
	}
	return 0;
}

static int list_gpus(const struct tree_names *addresses, const struct gpu_options *options)
{
	if (dry_run || group || bar_given)
		return tool_usage("gpu list changes nothing: leave --dry-run, --bar and --group out");
	return gpu_run("list", addresses, options);
}

/* gpu COMMAND [ADDRESS...] */
static int run_gpu(char **operands)
{
	const struct gpu_options gpu_options = { dry_run, json, bar_given ? (int)bar : -1, group };
	struct tree_names addresses;
	const char *command = operands[0];

	if (strcmp(command, "list") != 0 && strcmp(command, "claim") != 0 && strcmp(command, "unclaim") != 0)
		return tool_usage("give gpu list, gpu claim or gpu unclaim");
	if (take_addresses(operands + 1, &addresses))
		return 2;
	if (!strcmp(command, "list"))
		return list_gpus(&addresses, &gpu_options);
	if (json)
		return tool_usage("--json is for gpu list alone");
	if (!addresses.count)
		return tool_usage("which GPUs? weir-bind gpu list shows them; name addresses to %s", command);
	return gpu_run(command, &addresses, &gpu_options);
}

static int run(enum command command, char **operands)
{
	struct tree_names addresses;

	if (group || bar_given)
		return tool_usage("--bar and --group are for gpu claim and unclaim");
	if (take_addresses(operands, &addresses))
		return 2;
	if (command == SHOW)
		return dry_run ? tool_usage("--dry-run is not for show") : show(&addresses);
	if (json)
		return tool_usage("--json is for show alone");
	if (!addresses.count)
		return tool_usage("which controllers? Name their addresses to %s", command_names[command]);
	return change(command, &addresses);
}

static int run_show(char **operands)
{
	return run(SHOW, operands);
}

static int run_bind(char **operands)
{
	return run(BIND, operands);
}

static int run_unbind(char **operands)
{
	return run(UNBIND, operands);
}

static int run_restore(char **operands)
{
	return run(RESTORE, operands);
}

static const struct tool_command commands[] = {
	{ "show", "ADDRESS...", 0, 0, run_show },
	{ "bind", "ADDRESS...", 0, 0, run_bind },
	{ "unbind", "ADDRESS...", 0, 0, run_unbind },
	{ "restore", "ADDRESS...", 0, 0, run_restore },
	{ "gpu", "list, gpu claim or gpu unclaim", 1, 0, run_gpu },
	{ NULL, NULL, 0, 0, NULL },
};

int main(int argc, char **argv)
{
	int status = tool_parse(&program, argc, argv);

	return status < 0 ? tool_run(&program, commands) : status;
}
