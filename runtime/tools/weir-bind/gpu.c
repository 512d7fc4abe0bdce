/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tool_options.h"
#include "../../../kmod-p2p/weir_p2p.h"

enum { BARS = 6, IS_MEMORY = 0x200, IS_PREFETCHABLE = 0x2000, WINDOW_ALIGN = 2 << 20 };

/** struct bar - of a function; @bytes: 0: there is no memory in it */
struct bar {
	int number;
	uint64_t first;
	uint64_t bytes;
	bool prefetchable;
};

static int complain(const char *address, const char *what)
{
	return tool_complain("%s: %s", address, what);
}

static unsigned read_bars(const char *address, struct bar bars[BARS])
{
	unsigned long long first, last, flags;
	char path[PATH_MAX];
	unsigned count = 0;
	FILE *file = tree_path(path, "/sys/bus/pci/devices/%s/resource", address) ? fopen(path, "r") : NULL;

	for (int i = 0; file && i < BARS && fscanf(file, "%llx %llx %llx", &first, &last, &flags) == 3; i++)
		if (flags & IS_MEMORY && last > first)
			bars[count++] = (struct bar){ i, first, last - first + 1, flags & IS_PREFETCHABLE };
	if (file)
		fclose(file);
	return count;
}

/* GPUs' memory is prefetchable, and in the largest BAR; their registers are not. */
static bool better(const struct bar *a, const struct bar *b)
{
	return a->prefetchable != b->prefetchable ? a->prefetchable : a->bytes > b->bytes;
}

/* The BAR that was asked for, or the one with the GPU's memory. Return: false: there is none; it was said. */
static bool find_bar(const char *address, int asked, struct bar *bar)
{
	struct bar bars[BARS], *found = NULL;
	unsigned count = read_bars(address, bars);
	char what[TREE_WHY_BYTES];

	for (unsigned i = 0; i < count; i++)
		if (asked < 0 ? !found || better(&bars[i], found) : bars[i].number == asked)
			found = &bars[i];
	if (!found) {
		snprintf(what, sizeof(what),
			 "it has no memory in %s; weir-bind gpu list %s shows what it has",
			 asked < 0 ? "any BAR" : "that BAR", address);
		complain(address, what);
		return false;
	}
	*bar = *found;
	if ((bar->first | bar->bytes) % WINDOW_ALIGN == 0)
		return true;
	snprintf(what, sizeof(what),
		 "BAR %d, %" PRIu64 " bytes at %#" PRIx64
		 ", is no multiple of 2 MiB: no window is laid over it",
		 bar->number, bar->bytes, bar->first);
	complain(address, what);
	return false;
}

static bool node_path(char path[PATH_MAX], const char *address, int bar)
{
	return tree_path(path, "/dev/weir_p2p/%s-%d", address, bar);
}

static int open_control(void)
{
	char path[PATH_MAX];
	int control = tree_path(path, "/dev/weir_p2p/control") ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (control < 0 && (errno == ENOENT || errno == ENXIO))
		complain(path, "the kernel module is not loaded: modprobe weir_p2p (docs/kernel.md says how "
			       "it is installed)");
	else if (control < 0)
		complain(path, errno == EACCES || errno == EPERM ? "only root may open it" : strerror(errno));
	return control;
}

static struct weir_p2p_claim make_claim(const char *address, int bar)
{
	struct weir_p2p_claim claim = { .size = sizeof(claim) };
	unsigned domain = 0, bus = 0, device = 0, function = 0;

	(void)sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function); /* tree_address() made it */
	claim.gpu = (struct weir_p2p_function){ domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function,
						(uint8_t)bar };
	return claim;
}

/* What the module says of the call that failed: it keeps the reason of its last refusal, which is of another
 * call where the errno is another. */
static int say_why(int control, const char *address, int error)
{
	struct weir_p2p_reason reason = { .size = sizeof(reason) };

	if (ioctl(control, WEIR_P2P_REASON, &reason) || !*reason.text || reason.error != (unsigned)error)
		return complain(address, strerror(error));
	return complain(address, reason.text);
}

/* Let a group open the node; udev's rule may do the same later, and more slowly. */
static int grant(const char *address, int bar, const char *name)
{
	const struct group *group = getgrnam(name);
	char path[PATH_MAX], what[TREE_WHY_BYTES];

	if (!group) {
		snprintf(what, sizeof(what),
			 "claimed, but there is no group %s to open its node: groupadd --system %s", name,
			 name);
		return complain(address, what);
	}
	if (node_path(path, address, bar) && !chown(path, (uid_t)-1, group->gr_gid) && !chmod(path, 0660))
		return 0;
	snprintf(what, sizeof(what), "claimed, but its node cannot be given to group %s: %s", name,
		 strerror(errno));
	return complain(address, what);
}

static int claim_one(int control, const char *address, const struct gpu_options *options)
{
	struct weir_p2p_claim claim;
	struct bar bar;

	if (!find_bar(address, options->bar, &bar))
		return 1;
	if (options->dry_run) {
		printf("would claim BAR %d of %s, %" PRIu64 " MiB, as /dev/weir_p2p/%s-%d%s%s\n", bar.number,
		       address, bar.bytes >> 20, address, bar.number, options->group ? ", for group " : "",
		       options->group ? options->group : "");
		return 0;
	}
	claim = make_claim(address, bar.number);
	if (ioctl(control, WEIR_P2P_CLAIM, &claim))
		return say_why(control, address, errno);
	printf("claimed BAR %d of %s, %" PRIu64 " MiB: /dev/weir_p2p/%s-%d\n", bar.number, address,
	       (uint64_t)claim.bytes >> 20, address, bar.number);
	return options->group ? grant(address, bar.number, options->group) : 0;
}

/* Those BARs of the function that have a node. */
static int unclaim_one(int control, const char *address, const struct gpu_options *options)
{
	int failed = 0, found = 0;
	char path[PATH_MAX];

	for (int bar = 0; bar < BARS; bar++) {
		struct weir_p2p_claim claim = make_claim(address, bar);

		if ((options->bar >= 0 && bar != options->bar) || !node_path(path, address, bar) ||
		    access(path, F_OK))
			continue;
		found++;
		if (options->dry_run)
			printf("would give back BAR %d of %s\n", bar, address);
		else if (ioctl(control, WEIR_P2P_UNCLAIM, &claim))
			failed = say_why(control, address, errno);
		else
			printf("gave back BAR %d of %s\n", bar, address);
	}
	return found ? failed : complain(address, "it has no window; weir-bind gpu list shows who has");
}

static int change(const char *command, const struct tree_names *addresses, const struct gpu_options *options)
{
	bool claim = !strcmp(command, "claim");
	int control = options->dry_run ? -1 : open_control(), failed = 0;
	struct tree_function function;

	if (!options->dry_run && control < 0)
		return 1;
	for (unsigned i = 0; i < addresses->count; i++)
		if (!tree_function(addresses->name[i], &function))
			failed = complain(addresses->name[i],
					  "there is no such PCI device; weir-bind gpu list shows GPUs");
		else
			failed |= claim ? claim_one(control, addresses->name[i], options)
					: unclaim_one(control, addresses->name[i], options);
	if (control >= 0)
		close(control);
	return failed;
}

/* Who may open a window's node, or "" where there is none. */
static void window_of(const char *address, int bar, char text[TREE_NAME_BYTES])
{
	const struct group *group;
	char path[PATH_MAX];
	struct stat node;

	text[0] = '\0';
	if (!node_path(path, address, bar) || stat(path, &node))
		return;
	group = node.st_mode & 0060 ? getgrgid(node.st_gid) : NULL;
	snprintf(text, TREE_NAME_BYTES, "root%s%.40s", group ? " and group " : " alone",
		 group ? group->gr_name : "");
}

static void list_bar(const char *address, const struct bar *bar, json_t *list)
{
	char window[TREE_NAME_BYTES];

	window_of(address, bar->number, window);
	if (list)
		json_array_append_new(list, json_pack("{s:i, s:I, s:b, s:s}", "bar", bar->number, "bytes",
						      (json_int_t)bar->bytes, "window", window[0] != '\0',
						      "opened_by", window));
	else if (window[0])
		printf("    BAR %d, %" PRIu64 " MiB: claimed, /dev/weir_p2p/%s-%d, for %s\n", bar->number,
		       bar->bytes >> 20, address, bar->number, window);
	else
		printf("    BAR %d, %" PRIu64 " KiB: not claimed\n", bar->number, bar->bytes >> 10);
}

static void list_one(const struct tree_function *function, json_t *list)
{
	json_t *bars_list = list ? json_array() : NULL;
	struct bar bars[BARS];
	unsigned count = read_bars(function->address, bars);

	if (!list)
		printf("%s  [%s]  driver %s\n", function->address, function->id,
		       function->driver[0] ? function->driver : "none");
	for (unsigned i = 0; i < count; i++)
		list_bar(function->address, &bars[i], bars_list);
	if (list)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:o}", "address", function->address, "id",
						function->id, "driver", function->driver, "bars", bars_list));
}

/* Displays, and accelerators that drive none. */
static void all_gpus(struct tree_names *addresses)
{
	struct tree_names more;

	tree_of_class("0x03", addresses);
	tree_of_class("0x12", &more);
	for (unsigned i = 0; i < more.count && addresses->count < TREE_MOST; i++)
		memcpy(addresses->name[addresses->count++], more.name[i], TREE_NAME_BYTES);
}

static int list(const struct tree_names *named, const struct gpu_options *options)
{
	json_t *out = options->json ? json_array() : NULL;
	struct tree_function function;
	struct tree_names all;
	int failed = 0;

	all_gpus(&all);
	if (!named->count)
		named = &all;
	for (unsigned i = 0; i < named->count; i++)
		if (tree_function(named->name[i], &function))
			list_one(&function, out);
		else
			failed = complain(named->name[i], "there is no such PCI device");
	if (out) {
		json_t *object = json_pack("{s:o}", "gpus", out);

		json_dumpf(object, stdout, JSON_INDENT(1));
		json_decref(object);
		printf("\n");
	} else if (!named->count) {
		printf("no GPUs can be seen on this machine\n");
	}
	return failed;
}

int gpu_run(const char *command, const struct tree_names *addresses, const struct gpu_options *options)
{
	return strcmp(command, "list") ? change(command, addresses, options) : list(addresses, options);
}
