/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.h: what the kernel tells of NVMe controllers in /sys and /proc.
 *
 * Owns: reading and writing these files, all below one root folder, so that a test can have a tree of its
 * own.
 */
#ifndef WEIR_BIND_TREE_H
#define WEIR_BIND_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { TREE_NAME_BYTES = 64, TREE_MOST = 64, TREE_WHY_BYTES = 512 };

/** struct tree_names - a short list of names */
struct tree_names {
	char name[TREE_MOST][TREE_NAME_BYTES];
	unsigned count;
};

/**
 * struct tree_function - a PCI function
 * @address: 0000:65:00.0
 * @driver: its driver, or ""
 * @class: as the kernel prints it, 0x010802 for an NVMe controller
 * @id: vendor:device
 * @group: number of its IOMMU group, or ""
 */
struct tree_function {
	char address[TREE_NAME_BYTES];
	char driver[TREE_NAME_BYTES];
	char class[TREE_NAME_BYTES];
	char id[TREE_NAME_BYTES];
	char group[TREE_NAME_BYTES];
};

/** tree_root - what stands before /sys, /proc, /dev and /run; "" unless it is a test's */
extern const char *tree_root;

/** tree_path() - a path below the root, by format. Return: false if it is too long. */
bool tree_path(char path[PATH_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

/** tree_read() - first line of a file, "" if there is none */
void tree_read(char *text, size_t bytes, const char *path);

/** tree_write() - @text into an existing file. Return: 0 or an errno value. */
int tree_write(const char *path, const char *text);

/** tree_list() - names in a folder, sorted; none if there is no such folder */
void tree_list(const char *path, struct tree_names *names);

/** tree_function() - what there is to know of the function at @address; false if there is none */
bool tree_function(const char *address, struct tree_function *function);

/** tree_link() - the last part of where the link @path leads; "" if it is none */
void tree_link(char name[TREE_NAME_BYTES], const char *path);

/** tree_attribute() - first line of the function's file @name, "" if there is none */
void tree_attribute(char text[TREE_NAME_BYTES], const char *address, const char *name);

/** tree_address() - 0000:65:00.0, of which @text may leave the domain out. Return: it is one */
bool tree_address(const char *text, char address[TREE_NAME_BYTES]);

/** tree_of_class() - addresses of all functions whose class begins with @prefix, such as 0x0108, sorted */
void tree_of_class(const char *prefix, struct tree_names *addresses);

/** tree_controllers() - addresses of all NVMe controllers */
void tree_controllers(struct tree_names *addresses);

/** tree_blocks() - block devices of a controller, namespaces and their partitions: nvme0n1, nvme0n1p2; to be
 * shown, for there may be more of them than the list has room for */
void tree_blocks(const char *address, struct tree_names *blocks);

/** tree_blocks_each() - all of them, in any order, until @visit returns true. Return: whether it did */
bool tree_blocks_each(const char *address, bool (*visit)(void *to, const char *block), void *to);

/** enum tree_use - a block device is free, has a file system that is mounted, or is swap, a part of md or dm,
 * or taken */
enum tree_use { TREE_FREE, TREE_MOUNTED, TREE_TAKEN };

/** tree_used() - what uses block device @block, as part of a sentence */
enum tree_use tree_used(const char *block, char why[TREE_WHY_BYTES]);

/** tree_group() - other functions of the IOMMU group that are neither bridges, nor free, nor vfio-pci's, nor
 * in @with */
void tree_group(const struct tree_function *function, const struct tree_names *with,
		struct tree_names *others);

/**
 * tree_shared() - why vfio-pci could not have @function: no IOMMU group, or others that could reach it
 * @function: to bind
 * @with: controllers that will be vfio-pci's, too
 * @why: receives part of a sentence, @remedy: likewise
 *
 * Return: false: it could.
 */
bool tree_shared(const struct tree_function *function, const struct tree_names *with,
		 char why[TREE_WHY_BYTES], char remedy[TREE_WHY_BYTES]);

/** tree_has() - is @name in the list? */
bool tree_has(const struct tree_names *names, const char *name);

#endif
