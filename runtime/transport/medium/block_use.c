/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * block_use.c: finds words for a device in use: a mount of it or of a partition on it, then swap, then a
 * device stacked on it.
 */
#include "block_use.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Whether device @part is a partition of @whole. */
static bool is_partition_of(dev_t part, dev_t whole)
{
	char path[96];
	unsigned parent_major;
	unsigned parent_minor;
	FILE *file;
	int got;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(part), minor(part));
	file = fopen(path, "re");
	if (!file)
		return false;
	fclose(file);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(part), minor(part));
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fscanf(file, "%u:%u", &parent_major, &parent_minor);
	fclose(file);
	return got == 2 && makedev(parent_major, parent_minor) == whole;
}

static bool find_mount(dev_t device, char *use)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char line[4096];

	while (file && !found && fgets(line, sizeof(line), file)) {
		unsigned high;
		unsigned low;
		char where[160];

		if (sscanf(line, "%*u %*u %u:%u %*s %159s", &high, &low, where) != 3)
			continue;
		found = makedev(high, low) == device || is_partition_of(makedev(high, low), device);
		if (found)
			snprintf(use, WEIR_BLOCK_USE, "%s mounted at %s",
				 makedev(high, low) == device ? "it is" : "a partition of it is", where);
	}
	if (file)
		fclose(file);
	return found;
}

static bool find_swap(dev_t device, char *use)
{
	FILE *file = fopen("/proc/swaps", "re");
	bool found = false;
	char line[4096];

	while (file && !found && fgets(line, sizeof(line), file)) {
		struct stat stat_of;
		char name[256];

		found = sscanf(line, "%255s", name) == 1 && !stat(name, &stat_of) &&
			S_ISBLK(stat_of.st_mode) &&
			(stat_of.st_rdev == device || is_partition_of(stat_of.st_rdev, device));
		if (found)
			snprintf(use, WEIR_BLOCK_USE, "it is swap space");
	}
	if (file)
		fclose(file);
	return found;
}

static bool find_holder(dev_t device, char *use)
{
	struct dirent *entry;
	bool found = false;
	char path[96];
	DIR *holders;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(device), minor(device));
	holders = opendir(path);
	while (holders && !found && (entry = readdir(holders))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(use, WEIR_BLOCK_USE, "it is part of %.200s", entry->d_name);
	}
	if (holders)
		closedir(holders);
	return found;
}

bool weir_block_use(uint64_t device, char use[WEIR_BLOCK_USE])
{
	strcpy(use, "another program has claimed it");
	return find_mount(device, use) || find_swap(device, use) || find_holder(device, use);
}
