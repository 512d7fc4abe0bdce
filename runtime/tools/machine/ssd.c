/* SPDX-License-Identifier: BSD-3-Clause */
/* An NVMe controller: who has it, and what its own two ways need: VFIO, and the kernel's driver. */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "transport/nvme/pcie.h"

enum { IOMMU_BITS_NEEDED = 48, MEMLOCK_ENOUGH = 64 << 20 };

static void read_node(struct node *node, const char *block)
{
	char path[PATH_MAX];

	memset(node, 0, sizeof(*node));
	put_text(node->name, sizeof(node->name), "%s", block);
	node->use = tree_used(block, node->used);
	if (!tree_path(path, "/dev/%s", block))
		return;
	node->there = access(path, F_OK) == 0;
	node->readable = faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
	node->writable = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static bool is_used(void *why, const char *block)
{
	return tree_used(block, why) != TREE_FREE;
}

static void read_nodes(struct ssd *ssd)
{
	char why[TREE_WHY_BYTES];
	struct tree_names blocks;

	tree_blocks(ssd->function.address, &blocks);
	for (unsigned i = 0; i < blocks.count; i++) {
		struct node node;

		read_node(&node, blocks.name[i]);
		if (node.use != TREE_FREE && !ssd->used[0])
			put_text(ssd->used, sizeof(ssd->used), "%s", node.used);
		if (ssd->node_count < CHECK_NODES)
			ssd->nodes[ssd->node_count++] = node;
	}
	if (!ssd->used[0] && tree_blocks_each(ssd->function.address, is_used, why)) /* behind the list */
		put_text(ssd->used, sizeof(ssd->used), "%s", why);
}

static void read_model(struct ssd *ssd)
{
	struct tree_names controllers;
	char path[PATH_MAX];

	if (!tree_path(path, "/sys/bus/pci/devices/%s/nvme", ssd->function.address))
		return;
	tree_list(path, &controllers);
	if (!controllers.count)
		return;
	if (tree_path(path, "/sys/bus/pci/devices/%s/nvme/%s/model", ssd->function.address,
		      controllers.name[0]))
		tree_read(ssd->model, sizeof(ssd->model), path);
	if (tree_path(path, "/sys/bus/pci/devices/%s/nvme/%s/firmware_rev", ssd->function.address,
		      controllers.name[0]))
		tree_read(ssd->firmware, sizeof(ssd->firmware), path);
	for (size_t end = strlen(ssd->model); end && ssd->model[end - 1] == ' '; end--)
		ssd->model[end - 1] = '\0';
}

/* Intel's VT-d, section 11.4.2: MGAW and SAGAW of the capability register. Others do not tell, and have 48.
 */
static unsigned iommu_bits(const char *address)
{
	char text[TREE_NAME_BYTES];
	unsigned most, bits = 30;
	uint64_t capabilities;

	tree_attribute(text, address, "iommu/intel-iommu/cap");
	capabilities = strtoull(text, NULL, 16);
	if (!capabilities)
		return 0;
	most = (capabilities >> 16 & 0x3f) + 1;
	for (unsigned levels = 0; levels < 5; levels++)
		if (capabilities >> (8 + levels) & 1)
			bits = 30 + 9 * levels;
	return most < bits ? most : bits;
}

/* A sentence of the runtime's, 'storage "URI": what; what to do', as the two that it is made of. */
static void add_sentence(struct verdict *verdict)
{
	const char *sentence = weir_last_error(), *colon = strstr(sentence, "\": ");
	char why[CHECK_TEXT], *semicolon;

	put_text(why, sizeof(why), "%s", colon ? colon + 3 : sentence);
	semicolon = strstr(why, "; ");
	if (semicolon)
		*semicolon = '\0';
	verdict_add(verdict, NO, semicolon ? semicolon + 2 : "", "%s", why);
}

/* The driver, and the files of VFIO. */
static void judge_driver(const struct machine *machine, struct ssd *ssd, const char *uri)
{
	struct weir_pci address;
	struct weir_pcie function;
	char node[TREE_NAME_BYTES], path[PATH_MAX];

	if (!weir_pci_parse(ssd->function.address, &address))
		return;
	if (strcmp(ssd->function.driver, "vfio-pci") && !ssd->used[0] &&
	    weir_pcie_read(tree_root, uri, address, &function) != 0)
		add_sentence(&ssd->vfio);
	if (machine->vfio_pci == NO)
		verdict_add(&ssd->vfio, NO, "as root: modprobe vfio-pci vfio_iommu_type1",
			    "the kernel has no driver vfio-pci");
	if (strcmp(ssd->function.driver, "vfio-pci") ||
	    weir_pcie_read(tree_root, uri, address, &function) != 0)
		return;
	if (machine->vfio_node) {
		weir_pcie_vfio_fail(&function, "vfio", machine->vfio_node);
		add_sentence(&ssd->vfio);
	}
	put_text(node, sizeof(node), "%d", function.group);
	if (tree_path(path, "/dev/vfio/%s", node) &&
	    faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0) {
		weir_pcie_vfio_fail(&function, node, errno);
		add_sentence(&ssd->vfio);
	}
}

static void judge_memlock(const struct machine *machine, struct verdict *verdict)
{
	if (machine->memlock_bytes == MEMLOCK_UNKNOWN)
		verdict_add(verdict, UNKNOWN, "ulimit -l says it",
			    "how much memory may be locked could not be read");
	else if (machine->memlock_bytes < MEMLOCK_ENOUGH)
		verdict_add(verdict, UNKNOWN,
			    "raise the limit of locked memory (ulimit -l, or memlock in "
			    "/etc/security/limits.conf)",
			    "all memory of a context is pinned, and %" PRIu64
			    " KiB may be: little programs fit, others do not",
			    machine->memlock_bytes >> 10);
}

static void judge_vfio(const struct machine *machine, struct ssd *ssd)
{
	struct tree_names alone = { .count = 0 };
	char uri[TREE_NAME_BYTES], why[TREE_WHY_BYTES], remedy[TREE_WHY_BYTES];

	put_text(uri, sizeof(uri), "nvme:%s", ssd->function.address);
	verdict_start(&ssd->vfio);
	put_text(ssd->vfio.use, sizeof(ssd->vfio.use), "%s", uri);
	if (ssd->used[0])
		verdict_add(&ssd->vfio, NO,
			    "weir takes a whole controller: free it first, or name another SSD",
			    "it is in use: %s", ssd->used);
	if (machine->config[CONFIG_VFIO] == 'n')
		verdict_add(&ssd->vfio, NO, "use a kernel with CONFIG_VFIO and CONFIG_VFIO_PCI",
			    "the kernel is built without VFIO");
	if (tree_shared(&ssd->function, &alone, why, remedy))
		verdict_add(&ssd->vfio,
			    machine->iommu == IOMMU_UNKNOWN && !ssd->function.group[0] ? UNKNOWN : NO, remedy,
			    "%s", why);
	judge_driver(machine, ssd, uri);
	if (ssd->iommu_bits && ssd->iommu_bits < IOMMU_BITS_NEEDED)
		verdict_add(&ssd->vfio, NO, "use another machine: this is the processor's",
			    "its IOMMU takes addresses of %u bits, and weir maps memory where the process "
			    "has it, near 2^47",
			    ssd->iommu_bits);
	judge_memlock(machine, &ssd->vfio);
}

/* Why host threads cannot have this one. Return: false: they can. */
static bool node_lacks(const struct node *node, struct verdict *verdict)
{
	char remedy[CHECK_TEXT];

	if (node->use == TREE_MOUNTED)
		return false;
	if (node->use == TREE_TAKEN)
		verdict_add(verdict, NO, "name the device that it is part of, or free it", "%s", node->used);
	else if (!node->there)
		verdict_add(verdict, UNKNOWN, "in a container, pass the device in",
			    "there is no /dev/%s here", node->name);
	else if (!node->readable) {
		put_text(remedy, sizeof(remedy),
			 "as root: setfacl -m u:USER:rw /dev/%s, or put a file system on it", node->name);
		verdict_add(verdict, NO, remedy, "no permission to read /dev/%s", node->name);
	} else {
		return false;
	}
	return true;
}

static void file_use(const struct node *node, char use[CHECK_TEXT])
{
	if (node->use == TREE_MOUNTED)
		put_text(use, CHECK_TEXT, "file:PATH, a file there: %.400s", node->used);
	else
		put_text(use, CHECK_TEXT, "file:/dev/%s%s", node->name,
			 node->writable ? "" : "?ro=1, reading only: no permission to write");
}

static void judge_nodes(struct ssd *ssd)
{
	struct verdict lacks;

	verdict_start(&lacks);
	for (unsigned i = 0; i < ssd->node_count; i++)
		if (!node_lacks(&ssd->nodes[i], &lacks)) {
			file_use(&ssd->nodes[i], ssd->file.use);
			return;
		}
	verdict_join(&ssd->file, &lacks);
}

static void judge_file(const struct machine *machine, struct ssd *ssd)
{
	const char *address = ssd->function.address, *driver = ssd->function.driver;
	char remedy[CHECK_TEXT];

	verdict_start(&ssd->file);
	put_text(remedy, sizeof(remedy), "as root: weir-bind restore %s", address);
	if (!ssd->node_count && strcmp(driver, "nvme"))
		verdict_add(&ssd->file, NO, remedy, "%s%s: the kernel has no block device of it",
			    driver[0] ? "its driver is " : "it has no driver", driver);
	else if (!ssd->node_count)
		verdict_add(&ssd->file, NO, "nvme list, dmesg",
			    "the kernel's driver has it, and shows no namespace");
	judge_nodes(ssd);
	if (machine->uring == NO)
		verdict_add(&ssd->file, NO, "as root: sysctl kernel.io_uring_disabled=0",
			    "io_uring is switched off");
	else if (machine->uring == UNKNOWN)
		verdict_add(&ssd->file, UNKNOWN,
			    "sysctl kernel.io_uring_disabled; weir-perf file:PATH tries it",
			    "whether this process may use io_uring is not known");
}

bool ssd_read(const struct machine *machine, const char *address, struct ssd *ssd)
{
	struct tree_names alone = { .count = 0 };

	memset(ssd, 0, sizeof(*ssd));
	if (!tree_function(address, &ssd->function))
		return false;
	group_type(ssd->group_type, ssd->function.group);
	ssd->numa_node = numa_node(address);
	tree_group(&ssd->function, &alone, &ssd->others);
	ssd->iommu_bits = iommu_bits(address);
	read_model(ssd);
	read_nodes(ssd);
	judge_vfio(machine, ssd);
	judge_file(machine, ssd);
	return true;
}
