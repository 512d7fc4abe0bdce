/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcie.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../backend/error.h"

enum { LIST_TEXT = 160, CLASS_NVME = 0x010802, CLASS_STORAGE_NVM = 0x0108 };

#define DEVICES "/sys/bus/pci/devices"

static void path_of(char path[WEIR_PCIE_PATH], const char *root, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void path_of(char path[WEIR_PCIE_PATH], const char *root, const char *format, ...)
{
	va_list arguments;
	int used = snprintf(path, WEIR_PCIE_PATH, "%s", root);

	if (used < 0 || used >= WEIR_PCIE_PATH)
		return;
	va_start(arguments, format);
	vsnprintf(path + used, WEIR_PCIE_PATH - (size_t)used, format, arguments);
	va_end(arguments);
}

/* Last part of what a link points to; "" if there is none. */
static void link_name(const char *path, char *name, size_t bytes)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	const char *last;

	name[0] = '\0';
	if (length < 0)
		return;
	target[length] = '\0';
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	if (strlen(last) < bytes)
		strcpy(name, last);
}

static uint32_t read_hex(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned value = 0;

	if (file && fscanf(file, "%x", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

/* Text with more in it, ", " between. What no longer fits is left out. */
static void append(char text[LIST_TEXT], const char *more)
{
	size_t used = strlen(text);

	if (used + strlen(more) + 3 < LIST_TEXT)
		snprintf(text + used, LIST_TEXT - used, "%s%s", used ? ", " : "", more);
}

/* The NVMe controllers of the machine, for whoever mistyped one. */
static void list_controllers(const char *root, char text[LIST_TEXT])
{
	char path[WEIR_PCIE_PATH];
	struct dirent **names;
	int count;

	text[0] = '\0';
	path_of(path, root, DEVICES);
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		path_of(path, root, DEVICES "/%.20s/class", names[i]->d_name);
		if (read_hex(path) >> 8 == CLASS_STORAGE_NVM)
			append(text, names[i]->d_name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

static int absent(const struct weir_pcie *function)
{
	char there[LIST_TEXT];

	list_controllers(function->root, there);
	return weir_fail(ENODEV, "storage \"%s\": there is no PCI device %s; NVMe controllers here: %s",
			 function->storage, function->address, there[0] ? there : "none");
}

static int something_else(const struct weir_pcie *function)
{
	char there[LIST_TEXT];

	list_controllers(function->root, there);
	return weir_fail(
		ENODEV,
		"storage \"%s\": %s is no NVMe controller (its PCI class is %06x); NVMe controllers here: %s",
		function->storage, function->address, function->class, there[0] ? there : "none");
}

/* Whether anybody uses what is on it, weir-bind finds out. */
static int other_driver(const struct weir_pcie *function)
{
	const char *address = function->address;

	if (!function->driver[0])
		return weir_fail(EBUSY, "storage \"%s\": %s has no driver; as root: weir-bind bind %s",
				 function->storage, address, address);
	return weir_fail(EBUSY,
			 "storage \"%s\": %s is bound to the driver %s; as root: weir-bind bind %s, which "
			 "takes it away from "
			 "the system unless it is in use%s",
			 function->storage, address, function->driver, address,
			 strcmp(function->driver, "nvme")
				 ? ""
				 : "; or leave it there (driver=kernel, docs/kernel.md)");
}

static int group_of(const struct weir_pcie *function)
{
	char path[WEIR_PCIE_PATH], name[32], *end;
	long number;

	path_of(path, function->root, DEVICES "/%s/iommu_group", function->address);
	link_name(path, name, sizeof(name));
	number = strtol(name, &end, 10);
	return name[0] && !*end ? (int)number : -1;
}

int weir_pcie_find(const char *root, const char *storage, struct weir_pci address, struct weir_pcie *out)
{
	char path[WEIR_PCIE_PATH];

	*out = (struct weir_pcie){ .root = root, .storage = storage, .group = -1 };
	weir_pci_print(address, out->address);
	path_of(path, root, DEVICES "/%s", out->address);
	if (access(path, F_OK) != 0)
		return absent(out);
	path_of(path, root, DEVICES "/%s/class", out->address);
	out->class = read_hex(path);
	if (out->class != CLASS_NVME)
		return something_else(out);
	path_of(path, root, DEVICES "/%s/driver", out->address);
	link_name(path, out->driver, sizeof(out->driver));
	return 0;
}

int weir_pcie_read(const char *root, const char *storage, struct weir_pci address, struct weir_pcie *out)
{
	int error = weir_pcie_find(root, storage, address, out);

	if (error)
		return error;
	if (strcmp(out->driver, "vfio-pci") != 0)
		return other_driver(out);
	out->group = group_of(out);
	if (out->group < 0)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": %s is in no IOMMU group, so nothing would confine its DMA; "
				 "switch the "
				 "IOMMU on in the firmware and for the kernel (intel_iommu=on where it is "
				 "not the default)",
				 storage, out->address);
	return 0;
}

/* A member that keeps its group from being viable: one that a driver of the kernel's has. */
static bool in_the_way(const struct weir_pcie *function, const char *member, char what[LIST_TEXT])
{
	char path[WEIR_PCIE_PATH], driver[WEIR_PCIE_DRIVER];

	path_of(path, function->root, DEVICES "/%.20s/driver", member);
	link_name(path, driver, sizeof(driver));
	if (!driver[0] || !strncmp(driver, "vfio", 4) || !strcmp(driver, "pcieport") ||
	    !strcmp(driver, "pci-stub"))
		return false;
	snprintf(what, LIST_TEXT, "%.20s (%s)", member, driver);
	return true;
}

/* Another member that somebody may drive as we do. */
static bool alongside(const struct weir_pcie *function, const char *member, char what[LIST_TEXT])
{
	char path[WEIR_PCIE_PATH], driver[WEIR_PCIE_DRIVER];

	path_of(path, function->root, DEVICES "/%.20s/driver", member);
	link_name(path, driver, sizeof(driver));
	snprintf(what, LIST_TEXT, "%.20s", member);
	return !strncmp(driver, "vfio", 4) && strcmp(member, function->address) != 0;
}

/* Which members of its group are such. */
static void list_members(const struct weir_pcie *function, char members[LIST_TEXT],
			 bool (*such)(const struct weir_pcie *function, const char *member,
				      char what[LIST_TEXT]))
{
	char path[WEIR_PCIE_PATH], one[LIST_TEXT];
	struct dirent **names;
	int count;

	members[0] = '\0';
	path_of(path, function->root, "/sys/kernel/iommu_groups/%d/devices", function->group);
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (names[i]->d_name[0] != '.' && such(function, names[i]->d_name, one))
			append(members, one);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

int weir_pcie_group_fail(const struct weir_pcie *function)
{
	char members[LIST_TEXT];

	list_members(function, members, in_the_way);
	return weir_fail(EBUSY,
			 "storage \"%s\": %s shares IOMMU group %d with devices that other drivers have: %s; "
			 "bind them to "
			 "vfio-pci too, or move the controller to another slot",
			 function->storage, function->address, function->group,
			 members[0] ? members : "none that can be seen");
}

static bool exists(const struct weir_pcie *function, const char *name)
{
	char path[WEIR_PCIE_PATH];

	path_of(path, function->root, "/dev/vfio/%s", name);
	return access(path, F_OK) == 0;
}

/* /dev/vfio/@node is somebody's, or cannot be anybody's. A group's file tells the latter later, a device's
 * file does at once. */
static int busy(const struct weir_pcie *function, const char *node)
{
	char members[LIST_TEXT];

	list_members(function, members, in_the_way);
	if (members[0])
		return weir_pcie_group_fail(function);
	return weir_fail(EBUSY,
			 "storage \"%s\": /dev/vfio/%s is open already: another program has "
			 "a device of IOMMU group %d",
			 function->storage, node, function->group);
}

int weir_pcie_vfio_fail(const struct weir_pcie *function, const char *node, int error)
{
	char unconfined[32];

	snprintf(unconfined, sizeof(unconfined), "noiommu-%d", function->group);
	if (error == EACCES || error == EPERM)
		return weir_fail(
			error,
			"storage \"%s\": no permission to open /dev/vfio/%s; the queues of a controller are "
			"all of "
			"its data, so an administrator grants them (chown USER /dev/vfio/%s), or run as root",
			function->storage, node, node);
	if (error == EBUSY)
		return busy(function, node);
	if (error == ENOENT && exists(function, unconfined))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": %s is bound without an IOMMU (/dev/vfio/%s), which weir "
				 "does not drive; "
				 "switch the IOMMU on",
				 function->storage, function->address, unconfined);
	if ((error == ENOENT || error == ENODEV) && !strncmp(node, "devices/", 8))
		return weir_fail(ENODEV,
				 "storage \"%s\": there is no /dev/vfio/%s; in a container, pass "
				 "/dev/vfio/devices in; or use "
				 "vfio=group",
				 function->storage, node);
	if (error == ENOENT || error == ENODEV)
		return weir_fail(ENODEV,
				 "storage \"%s\": there is no /dev/vfio/%s; as root: modprobe vfio-pci "
				 "vfio_iommu_type1; in a "
				 "container, pass /dev/vfio in",
				 function->storage, node);
	return weir_fail(error, "storage \"%s\": cannot open /dev/vfio/%s: %s", function->storage, node,
			 strerror(error));
}

bool weir_pcie_device_node(const struct weir_pcie *function, char node[WEIR_PCIE_NODE])
{
	char path[WEIR_PCIE_PATH];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	path_of(path, function->root, DEVICES "/%s/vfio-dev", function->address);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		path_of(path, function->root, DEVICES "/%s/vfio-dev/%.20s/dev", function->address,
			entry->d_name);
		found = !strncmp(entry->d_name, "vfio", 4) && access(path, F_OK) == 0;
		if (found)
			snprintf(node, WEIR_PCIE_NODE, "devices/%.20s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return found;
}

bool weir_pcie_iommufd_permitted(const struct weir_pcie *function)
{
	char path[WEIR_PCIE_PATH], node[WEIR_PCIE_NODE];

	if (!weir_pcie_device_node(function, node))
		return false;
	path_of(path, function->root, "/dev/vfio/%s", node);
	if (access(path, R_OK | W_OK) != 0)
		return false;
	path_of(path, function->root, "/dev/iommu");
	return access(path, R_OK | W_OK) == 0;
}

int weir_pcie_no_node_fail(const struct weir_pcie *function)
{
	return weir_fail(ENOTSUP,
			 "storage \"%s\": %s has no device file below /dev/vfio/devices: that takes Linux "
			 "6.6 or later, built "
			 "with VFIO_DEVICE_CDEV and IOMMUFD; vfio=group uses /dev/vfio/%d instead",
			 function->storage, function->address, function->group);
}

int weir_pcie_iommu_fail(const struct weir_pcie *function, int error)
{
	if (error == EACCES || error == EPERM)
		return weir_fail(
			error,
			"storage \"%s\": no permission to open /dev/iommu, which takes no device from "
			"anybody; an "
			"administrator grants it (chmod 666 /dev/iommu), or run as root, or use vfio=group",
			function->storage);
	if (error == ENOENT || error == ENODEV)
		return weir_fail(ENODEV,
				 "storage \"%s\": there is no /dev/iommu; as root: modprobe iommufd; in a "
				 "container, pass it "
				 "in; or use vfio=group",
				 function->storage);
	return weir_fail(error, "storage \"%s\": cannot open /dev/iommu: %s", function->storage,
			 strerror(error));
}

int weir_pcie_interrupts_fail(const struct weir_pcie *function, const char *module)
{
	return weir_fail(
		EPERM,
		"storage \"%s\": the IOMMU of %s does not remap interrupts, so VFIO refuses it; switch that "
		"on in the "
		"firmware (or, trusting all programs that use VFIO, load %s with allow_unsafe_interrupts=1)",
		function->storage, function->address, module);
}

int weir_pcie_denied_fail(const struct weir_pcie *function)
{
	char members[LIST_TEXT];

	list_members(function, members, in_the_way);
	if (members[0])
		return weir_pcie_group_fail(function);
	list_members(function, members, alongside);
	if (!members[0])
		return weir_pcie_interrupts_fail(function, "iommufd");
	return weir_fail(EBUSY,
			 "storage \"%s\": another program has a device of IOMMU group "
			 "%d (%s beside %s), which it has to close first; or the IOMMU does not remap "
			 "interrupts, which VFIO insists on",
			 function->storage, function->group, members, function->address);
}
