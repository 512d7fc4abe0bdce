/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is once: kernel, IOMMU, VFIO, limits. */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

enum { CAPABILITY_IPC_LOCK = 14, LINE_BYTES = 4096, PEERS_FROM_FAMILY = 0x17 };

const char *const config_names[CONFIGS] = {
	"PCI_P2PDMA", "ZONE_DEVICE", "DMA_SHARED_BUFFER", "DMABUF_MOVE_NOTIFY", "IOMMU_API",
	"IOMMUFD",    "VFIO",        "VFIO_PCI",          "VFIO_IOMMU_TYPE1",
};

/* "CONFIG_NAME=y", of which those that matter are kept. */
static void take_option(const char *line, void *user)
{
	struct machine *machine = user;

	if (strncmp(line, "CONFIG_", 7))
		return;
	for (unsigned i = 0; i < CONFIGS; i++) {
		size_t length = strlen(config_names[i]);

		if (!strncmp(line + 7, config_names[i], length) && line[7 + length] == '=')
			machine->config[i] = line[7 + length + 1] == 'm' ? 'm' : 'y';
	}
}

static bool read_config_file(struct machine *machine, const char *path)
{
	if (!config_each(path, take_option, machine))
		return false;
	put_text(machine->config_file, sizeof(machine->config_file), "%s", path + strlen(tree_root));
	/* What a configuration does not have is off. */
	for (unsigned i = 0; i < CONFIGS; i++)
		if (!machine->config[i])
			machine->config[i] = 'n';
	return true;
}

static void read_kernel(struct machine *machine)
{
	char path[PATH_MAX];

	if (tree_path(path, "/proc/sys/kernel/osrelease"))
		tree_read(machine->kernel, sizeof(machine->kernel), path);
	if (tree_path(path, "/proc/config.gz") && read_config_file(machine, path))
		return;
	if (!machine->kernel[0])
		return;
	if (tree_path(path, "/boot/config-%s", machine->kernel) && read_config_file(machine, path))
		return;
	if (tree_path(path, "/lib/modules/%s/config", machine->kernel))
		(void)read_config_file(machine, path);
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];

	return tree_path(path, "%s", name) && access(path, F_OK) == 0;
}

/* Every group's type; a kernel without IOMMU groups has no IOMMU in use. */
static void read_iommu(struct machine *machine)
{
	unsigned translated = 0, passed = 0;
	char type[TREE_NAME_BYTES];

	if (!is_there("/sys/kernel"))
		return;
	for (unsigned missing = 0, group = 0; missing < 256 && group < 4096; group++) {
		char number[TREE_NAME_BYTES], path[PATH_MAX];

		put_text(number, sizeof(number), "%u", group);
		if (!tree_path(path, "/sys/kernel/iommu_groups/%s", number) || access(path, F_OK) != 0) {
			missing++;
			continue;
		}
		missing = 0;
		machine->groups++;
		group_type(type, number);
		translated += !strncmp(type, "DMA", 3);
		passed += !strcmp(type, "identity");
	}
	if (!machine->groups)
		machine->iommu = IOMMU_OFF;
	else if (translated && passed)
		machine->iommu = IOMMU_MIXED;
	else if (translated || passed)
		machine->iommu = translated ? IOMMU_TRANSLATED : IOMMU_PASSTHROUGH;
}

/* Words of the command line that are about it: iommu=pt, intel_iommu=on, pci=disable_acs_redir=... */
static void read_iommu_options(struct machine *machine)
{
	char path[PATH_MAX], line[LINE_BYTES], *rest = NULL;

	if (!tree_path(path, "/proc/cmdline"))
		return;
	tree_read(line, sizeof(line), path);
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		size_t used = strlen(machine->iommu_options);

		if (strstr(word, "iommu") || strstr(word, "acs"))
			put_text(machine->iommu_options + used, sizeof(machine->iommu_options) - used, "%s%s",
				 used ? " " : "", word);
	}
}

/* A driver or a module: loaded, built in, or neither. */
static enum answer part(const struct machine *machine, const char *folder, enum config option)
{
	if (!is_there("/sys/bus/pci"))
		return UNKNOWN;
	return is_there(folder) || machine->config[option] == 'y' ? YES : NO;
}

static void read_vfio(struct machine *machine)
{
	char path[PATH_MAX];

	machine->vfio_pci = part(machine, "/sys/bus/pci/drivers/vfio-pci", CONFIG_VFIO_PCI);
	machine->vfio_type1 = part(machine, "/sys/module/vfio_iommu_type1", CONFIG_VFIO_IOMMU_TYPE1);
	machine->vfio_node = ENAMETOOLONG;
	if (tree_path(path, "/dev/vfio/vfio"))
		machine->vfio_node = faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) ? errno : 0;
}

/* The line of /proc/self/@file that begins with @key, behind it; "" if there is none. */
static void read_line(const char *file_name, const char *key, char *text, size_t bytes)
{
	char path[PATH_MAX], line[LINE_BYTES];
	size_t length = strlen(key);
	FILE *file;

	text[0] = '\0';
	if (!tree_path(path, "%s", file_name) || !(file = fopen(path, "re")))
		return;
	while (!text[0] && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length))
			put_text(text, bytes, "%s", line + length + strspn(line + length, " \t:"));
	fclose(file);
}

static void read_memlock(struct machine *machine)
{
	char limit[TREE_NAME_BYTES], capabilities[TREE_NAME_BYTES], *end;

	read_line("/proc/self/limits", "Max locked memory", limit, sizeof(limit));
	read_line("/proc/self/status", "CapEff", capabilities, sizeof(capabilities));
	machine->memlock_bytes = strtoull(limit, &end, 10);
	if (!strncmp(limit, "unlimited", 9) || strtoull(capabilities, NULL, 16) >> CAPABILITY_IPC_LOCK & 1)
		machine->memlock_bytes = MEMLOCK_UNLIMITED;
	else if (end == limit)
		machine->memlock_bytes = MEMLOCK_UNKNOWN;
}

/* Linux lets peers talk through the processors of one vendor from a family on (cpu_supports_p2pdma()). */
static void read_cpu(struct machine *machine)
{
	char vendor[TREE_NAME_BYTES], family[TREE_NAME_BYTES];

	read_line("/proc/cpuinfo", "vendor_id", vendor, sizeof(vendor));
	read_line("/proc/cpuinfo", "cpu family", family, sizeof(family));
	if (vendor[0] && family[0])
		machine->peer_cpu =
			!strncmp(vendor, "AuthenticAMD", 12) && atoi(family) >= PEERS_FROM_FAMILY ? YES : NO;
}

static void read_uring(struct machine *machine)
{
	char path[PATH_MAX], value[TREE_NAME_BYTES];

	if (!tree_path(path, "/proc/sys/kernel/io_uring_disabled"))
		return;
	tree_read(value, sizeof(value), path);
	if (!value[0]) /* kernels before 6.6 have no such switch */
		machine->uring = machine->kernel[0] ? YES : UNKNOWN;
	else /* 1: for a group of users alone */
		machine->uring = value[0] == '2' ? NO : value[0] == '1' && geteuid() != 0 ? UNKNOWN : YES;
}

void machine_read(struct machine *machine)
{
	char path[PATH_MAX];

	memset(machine, 0, sizeof(*machine));
	machine->pci = is_there("/sys/bus/pci/devices");
	read_kernel(machine);
	read_iommu(machine);
	read_iommu_options(machine);
	read_vfio(machine);
	read_memlock(machine);
	read_cpu(machine);
	read_uring(machine);
	if (is_there("/sys/module"))
		machine->module = is_there("/sys/module/weir_p2p") ? YES : NO;
	if (tree_path(path, "/sys/module/weir_p2p/version"))
		tree_read(machine->module_version, sizeof(machine->module_version), path);
}
