/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 };

const char *tree_root = "";

bool tree_path(char path[PATH_MAX], const char *format, ...)
{
	size_t root = strlen(tree_root);
	va_list arguments;
	int length;

	if (root >= PATH_MAX)
		return false;
	memcpy(path, tree_root, root + 1);
	va_start(arguments, format);
	length = vsnprintf(path + root, PATH_MAX - root, format, arguments);
	va_end(arguments);
	return length >= 0 && (size_t)length < PATH_MAX - root;
}

void tree_read(char *text, size_t bytes, const char *path)
{
	FILE *file = fopen(path, "r");

	text[0] = '\0';
	if (!file)
		return;
	if (!fgets(text, (int)bytes, file))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

int tree_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;
	size_t bytes = strlen(text);

	if (fd < 0)
		return errno;
	if (write(fd, text, bytes) != (ssize_t)bytes)
		error = errno ? errno : EIO;
	if (close(fd) != 0 && !error)
		error = errno;
	return error;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add(struct tree_names *names, const char *name)
{
	if (names->count < TREE_MOST && strlen(name) < TREE_NAME_BYTES)
		strcpy(names->name[names->count++], name);
}

bool tree_has(const struct tree_names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

void tree_list(const char *path, struct tree_names *names)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	names->count = 0;
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			add(names, entry->d_name);
	if (folder)
		closedir(folder);
	qsort(names->name, names->count, sizeof(names->name[0]), compare);
}

void tree_link(char name[TREE_NAME_BYTES], const char *path)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	const char *slash;

	name[0] = '\0';
	if (length < 0)
		return;
	target[length] = '\0';
	slash = strrchr(target, '/');
	snprintf(name, TREE_NAME_BYTES, "%.63s", slash ? slash + 1 : target);
}

void tree_attribute(char text[TREE_NAME_BYTES], const char *address, const char *name)
{
	char path[PATH_MAX];

	text[0] = '\0';
	if (tree_path(path, "/sys/bus/pci/devices/%s/%s", address, name))
		tree_read(text, TREE_NAME_BYTES, path);
}

bool tree_address(const char *text, char address[TREE_NAME_BYTES])
{
	unsigned domain = 0, bus, slot, function;
	int end = 0;

	if (text[strspn(text, "0123456789abcdefABCDEF:.")]) /* %x takes 0x, signs and blanks, too */
		return false;
	if (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) != 4 || text[end]) {
		domain = 0;
		if (sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &end) != 3 || text[end])
			return false;
	}
	snprintf(address, TREE_NAME_BYTES, "%04x:%02x:%02x.%x", domain, bus, slot, function);
	/* Domains above 0xffff are those of controllers that have buses of their own (VMD). */
	return domain <= 0xfffffff && bus <= 0xff && slot <= 0x1f && function <= 7;
}

bool tree_function(const char *address, struct tree_function *function)
{
	char path[PATH_MAX], vendor[TREE_NAME_BYTES], device[TREE_NAME_BYTES];

	memset(function, 0, sizeof(*function));
	snprintf(function->address, sizeof(function->address), "%.63s", address);
	tree_attribute(function->class, address, "class");
	if (!function->class[0])
		return false;
	tree_attribute(vendor, address, "vendor");
	tree_attribute(device, address, "device");
	snprintf(function->id, sizeof(function->id), "%.20s:%.20s", vendor[0] ? vendor + 2 : "",
		 device[0] ? device + 2 : "");
	if (tree_path(path, "/sys/bus/pci/devices/%s/driver", address))
		tree_link(function->driver, path);
	if (tree_path(path, "/sys/bus/pci/devices/%s/iommu_group", address))
		tree_link(function->group, path);
	return true;
}

/* Looked at one by one: a server has many more functions than a list has room for. */
void tree_of_class(const char *prefix, struct tree_names *addresses)
{
	char path[PATH_MAX], class[TREE_NAME_BYTES];
	DIR *folder = tree_path(path, "/sys/bus/pci/devices") ? opendir(path) : NULL;
	struct dirent *entry;

	addresses->count = 0;
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		tree_attribute(class, entry->d_name, "class");
		if (!strncmp(class, prefix, strlen(prefix)))
			add(addresses, entry->d_name);
	}
	if (folder)
		closedir(folder);
	qsort(addresses->name, addresses->count, sizeof(addresses->name[0]), compare);
}

void tree_controllers(struct tree_names *addresses)
{
	tree_of_class("0x0108", addresses);
}

/*
 * The block device of a namespace. Where a namespace can have several controllers (nvme_core.multipath), the
 * controller has nvme0c1n1, which is hidden: what is mounted is nvme0n1.
 */
static void block_name(char name[TREE_NAME_BYTES], const char *space)
{
	unsigned subsystem, controller, number;
	int end = 0;

	if (sscanf(space, "nvme%uc%un%u%n", &subsystem, &controller, &number, &end) == 3 && !space[end])
		snprintf(name, TREE_NAME_BYTES, "nvme%un%u", subsystem, number);
	else
		snprintf(name, TREE_NAME_BYTES, "%.63s", space);
}

/** struct walk - over the block devices of the controller at @address; @space: the namespace under way */
struct walk {
	const char *address;
	bool (*visit)(void *to, const char *block);
	void *to;
	char space[TREE_NAME_BYTES];
};

/* Names in a folder, however many, until @visit returns true. Return: whether it did. */
static bool each(const char *path, bool (*visit)(void *to, const char *name), void *to)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool ended = false;

	while (folder && !ended && (entry = readdir(folder)))
		ended = entry->d_name[0] != '.' && visit(to, entry->d_name);
	if (folder)
		closedir(folder);
	return ended;
}

static bool visit_part(void *to, const char *name)
{
	struct walk *walk = to;
	size_t length = strlen(walk->space);

	return !strncmp(name, walk->space, length) && name[length] == 'p' && walk->visit(walk->to, name);
}

/* A namespace, and what partitions it has. */
static bool visit_space(void *to, const char *name)
{
	struct walk *walk = to;
	char path[PATH_MAX];

	block_name(walk->space, name);
	if (strncmp(walk->space, "nvme", 4) || !strchr(walk->space + 4, 'n') ||
	    !tree_path(path, "/sys/block/%s", walk->space))
		return false;
	return walk->visit(walk->to, walk->space) || each(path, visit_part, walk);
}

static bool visit_controller(void *to, const char *name)
{
	struct walk *walk = to;
	char path[PATH_MAX];

	return tree_path(path, "/sys/bus/pci/devices/%s/nvme/%s", walk->address, name) &&
	       each(path, visit_space, walk);
}

bool tree_blocks_each(const char *address, bool (*visit)(void *to, const char *block), void *to)
{
	struct walk walk = { .address = address, .visit = visit, .to = to };
	char path[PATH_MAX];

	if (!tree_path(path, "/sys/bus/pci/devices/%s/nvme", address))
		return false;
	return each(path, visit_controller, &walk);
}

static bool collect(void *blocks, const char *block)
{
	add(blocks, block);
	return false;
}

void tree_blocks(const char *address, struct tree_names *blocks)
{
	blocks->count = 0;
	(void)tree_blocks_each(address, collect, blocks);
	qsort(blocks->name, blocks->count, sizeof(blocks->name[0]), compare);
}

/* /sys/block/nvme0n1, or of a partition /sys/block/nvme0n1/nvme0n1p2, and @file in it. */
static bool block_path(char path[PATH_MAX], const char *block, const char *file)
{
	const char *part = strrchr(block, 'p');

	if (part)
		return tree_path(path, "/sys/block/%.*s/%s/%s", (int)(part - block), block, block, file);
	return tree_path(path, "/sys/block/%s/%s", block, file);
}

/* A file system on it is mounted: by its number, or by its name where a file system has numbers of its own.
 */
static bool mounted(const char *block, char why[TREE_WHY_BYTES])
{
	char path[PATH_MAX], number[TREE_NAME_BYTES], line[LINE_BYTES], seen[TREE_NAME_BYTES], location[1024],
		source[1024];
	bool found = false;
	FILE *file;

	number[0] = '\0';
	if (block_path(path, block, "dev"))
		tree_read(number, sizeof(number), path);
	if (!tree_path(path, "/proc/self/mountinfo") || !(file = fopen(path, "r")))
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		const char *rest = strstr(line, " - ");

		if (sscanf(line, "%*s %*s %63s %*s %1023s", seen, location) != 2 || !rest ||
		    sscanf(rest, " - %*s %1023s", source) != 1)
			continue;
		found = !strcmp(seen, number) || (!strncmp(source, "/dev/", 5) && !strcmp(source + 5, block));
	}
	fclose(file);
	if (found)
		snprintf(why, TREE_WHY_BYTES,
			 !strcmp(location, "/") ? "%s holds the root file system%.0s"
						: "%s is mounted on %.400s",
			 block, location);
	return found;
}

static bool swapped_on(const char *block, char why[TREE_WHY_BYTES])
{
	char path[PATH_MAX], line[LINE_BYTES], name[1024];
	bool found = false;
	FILE *file;

	if (!tree_path(path, "/proc/swaps") || !(file = fopen(path, "r")))
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%1023s", name) == 1 && !strncmp(name, "/dev/", 5) &&
			!strcmp(name + 5, block);
	fclose(file);
	if (found)
		snprintf(why, TREE_WHY_BYTES, "%s is swapped on", block);
	return found;
}

/* md, dm and their like. */
static bool held(const char *block, char why[TREE_WHY_BYTES])
{
	struct tree_names holders;
	char path[PATH_MAX];

	if (!block_path(path, block, "holders"))
		return false;
	tree_list(path, &holders);
	if (holders.count)
		snprintf(why, TREE_WHY_BYTES, "%s is part of %s", block, holders.name[0]);
	return holders.count != 0;
}

/* Whoever else has it for himself alone: ZFS, another program. */
static bool opened(const char *block, char why[TREE_WHY_BYTES])
{
	char path[PATH_MAX];
	int fd;

	if (!tree_path(path, "/dev/%s", block))
		return false;
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno != EBUSY)
		return false;
	snprintf(why, TREE_WHY_BYTES, "%s is in use, by ZFS or another program that has it for itself",
		 block);
	return true;
}

enum tree_use tree_used(const char *block, char why[TREE_WHY_BYTES])
{
	if (mounted(block, why))
		return TREE_MOUNTED;
	return swapped_on(block, why) || held(block, why) || opened(block, why) ? TREE_TAKEN : TREE_FREE;
}

/** struct neighbours - of @function in its IOMMU group: those that count go to @others */
struct neighbours {
	const struct tree_function *function;
	const struct tree_names *with;
	struct tree_names *others;
};

static bool visit_member(void *to, const char *name)
{
	const struct neighbours *neighbours = to;
	struct tree_function member;
	bool good = !tree_function(name, &member) || !strncmp(member.class, "0x0604", 6) ||
		    !member.driver[0] || !strcmp(member.driver, "vfio-pci") ||
		    !strcmp(member.address, neighbours->function->address) ||
		    tree_has(neighbours->with, member.address);

	if (!good)
		add(neighbours->others, member.address);
	return false;
}

void tree_group(const struct tree_function *function, const struct tree_names *with,
		struct tree_names *others)
{
	struct neighbours neighbours = { function, with, others };
	char path[PATH_MAX];

	others->count = 0;
	if (!function->group[0] || !tree_path(path, "/sys/kernel/iommu_groups/%s/devices", function->group))
		return;
	(void)each(path, visit_member, &neighbours);
	qsort(others->name, others->count, sizeof(others->name[0]), compare);
}

bool tree_shared(const struct tree_function *function, const struct tree_names *with,
		 char why[TREE_WHY_BYTES], char remedy[TREE_WHY_BYTES])
{
	struct tree_names others;
	size_t used;

	if (!function->group[0]) {
		snprintf(why, TREE_WHY_BYTES, "it is in no IOMMU group");
		snprintf(remedy, TREE_WHY_BYTES,
			 "turn the IOMMU on in the firmware's setup, and boot with intel_iommu=on where that "
			 "is "
			 "not the default");
		return true;
	}
	tree_group(function, with, &others);
	if (!others.count)
		return false;
	used = (size_t)snprintf(
		why, TREE_WHY_BYTES,
		"its IOMMU group %s has devices that other drivers use, which could reach its memory:",
		function->group);
	for (unsigned i = 0; i < others.count && used + TREE_NAME_BYTES < TREE_WHY_BYTES / 2; i++)
		used += (size_t)snprintf(why + used, TREE_WHY_BYTES - used, " %s", others.name[i]);
	snprintf(remedy, TREE_WHY_BYTES, "bind those, too, or put the controller into another slot");
	return true;
}
