/* SPDX-License-Identifier: BSD-3-Clause */
#include "vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../error.h"

/**
 * struct weir_vfio - an open function
 * @mapper: first, so that it is found again
 * @highest: highest address that its IOMMU takes, UINT64_MAX if that is not told
 * @config: where its configuration space lies in @device
 */
struct weir_vfio {
	struct weir_dma_mapper mapper;
	struct weir_pcie function;
	int container;
	int group;
	int device;
	void *bar;
	size_t bar_bytes;
	uint64_t highest;
	uint64_t config;
};

/* An errno of the kernel's, with what it was about. */
static int kernel_says(const struct weir_vfio *vfio, const char *what)
{
	int error = errno;

	return weir_fail(error, "storage \"%s\": VFIO cannot %s of %s: %s", vfio->function.storage, what, vfio->function.address,
			 strerror(error));
}

static int open_node(const struct weir_vfio *vfio, const char *node, int *out)
{
	char path[WEIR_PCIE_PATH];

	snprintf(path, sizeof(path), "%s/dev/vfio/%s", vfio->function.root, node);
	*out = open(path, O_RDWR | O_CLOEXEC);
	return *out < 0 ? weir_pcie_vfio_fail(&vfio->function, node, errno) : 0;
}

static int open_container(struct weir_vfio *vfio)
{
	int error = open_node(vfio, "vfio", &vfio->container);

	if (error)
		return error;
	if (ioctl(vfio->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION)
		return weir_fail(ENOTSUP, "storage \"%s\": the kernel's VFIO has another version than %d", vfio->function.storage,
				 VFIO_API_VERSION);
	return 0;
}

static int open_group(struct weir_vfio *vfio)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char node[16];
	int error;

	snprintf(node, sizeof(node), "%d", vfio->function.group);
	error = open_node(vfio, node, &vfio->group);
	if (error)
		return error;
	if (ioctl(vfio->group, VFIO_GROUP_GET_STATUS, &status) != 0)
		return kernel_says(vfio, "tell the status of the IOMMU group");
	return status.flags & VFIO_GROUP_FLAGS_VIABLE ? 0 : weir_pcie_group_fail(&vfio->function);
}

/* The capability list behind VFIO_IOMMU_GET_INFO: the end of the last range of addresses. */
static uint64_t highest_address(const struct vfio_iommu_type1_info *info)
{
	uint32_t at = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0;
	uint64_t highest = 0;

	while (at && at + sizeof(struct vfio_info_cap_header) <= info->argsz) {
		const struct vfio_info_cap_header *header = (const void *)((const char *)info + at);
		const struct vfio_iommu_type1_info_cap_iova_range *ranges = (const void *)header;

		if (header->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE)
			for (uint32_t i = 0; i < ranges->nr_iovas; i++)
				highest = ranges->iova_ranges[i].end > highest ? ranges->iova_ranges[i].end : highest;
		at = header->next;
	}
	return highest ? highest : UINT64_MAX;
}

static void ask_highest(struct weir_vfio *vfio)
{
	struct vfio_iommu_type1_info first = { .argsz = sizeof(first) }, *info = NULL;

	vfio->highest = UINT64_MAX;
	if (ioctl(vfio->container, VFIO_IOMMU_GET_INFO, &first) == 0 && first.argsz > sizeof(first))
		info = calloc(1, first.argsz);
	if (!info)
		return;
	info->argsz = first.argsz;
	if (ioctl(vfio->container, VFIO_IOMMU_GET_INFO, info) == 0)
		vfio->highest = highest_address(info);
	free(info);
}

static int join(struct weir_vfio *vfio)
{
	if (ioctl(vfio->group, VFIO_GROUP_SET_CONTAINER, &vfio->container) != 0)
		return kernel_says(vfio, "use the IOMMU group");
	if (!ioctl(vfio->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU))
		return weir_fail(ENOTSUP, "storage \"%s\": the kernel's VFIO has no type 1 IOMMU; as root: modprobe "
				 "vfio_iommu_type1", vfio->function.storage);
	if (ioctl(vfio->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0) {
		ask_highest(vfio);
		return 0;
	}
	if (errno == EPERM)
		return weir_fail(EPERM, "storage \"%s\": the IOMMU of %s does not remap interrupts, so VFIO refuses it; switch that "
				 "on in the firmware (or, trusting all programs that use VFIO, load vfio_iommu_type1 with "
				 "allow_unsafe_interrupts=1)", vfio->function.storage, vfio->function.address);
	return kernel_says(vfio, "use the IOMMU");
}

static int map_registers(struct weir_vfio *vfio)
{
	struct vfio_region_info bar = { .argsz = sizeof(bar), .index = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfio_region_info config = { .argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX };

	if (ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &bar) != 0 ||
	    ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, &config) != 0)
		return kernel_says(vfio, "describe the regions");
	vfio->config = config.offset;
	if (bar.size == 0 || !(bar.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return weir_fail(ENOTSUP, "storage \"%s\": VFIO does not map BAR 0 of %s (%" PRIu64 " bytes), where an NVMe "
				 "controller has its registers", vfio->function.storage, vfio->function.address,
				 (uint64_t)bar.size);
	vfio->bar = mmap(NULL, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, vfio->device, (off_t)bar.offset);
	if (vfio->bar == MAP_FAILED) {
		vfio->bar = NULL;
		return kernel_says(vfio, "map BAR 0");
	}
	vfio->bar_bytes = bar.size;
	return 0;
}

/* Whether the function may do DMA, and answers to its registers. */
static int set_master(struct weir_vfio *vfio, bool on)
{
	off_t at = (off_t)(vfio->config + PCI_COMMAND);
	uint16_t command;

	if (pread(vfio->device, &command, sizeof(command), at) != sizeof(command))
		return kernel_says(vfio, "read the configuration space");
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE;
	command = (uint16_t)(on ? command | PCI_COMMAND_MASTER : command & ~PCI_COMMAND_MASTER);
	if (pwrite(vfio->device, &command, sizeof(command), at) != sizeof(command))
		return kernel_says(vfio, "write the configuration space");
	return 0;
}

static int open_device(struct weir_vfio *vfio)
{
	int error;

	vfio->device = ioctl(vfio->group, VFIO_GROUP_GET_DEVICE_FD, vfio->function.address);
	if (vfio->device < 0)
		return kernel_says(vfio, "open the device file");
	error = map_registers(vfio);
	return error ? error : set_master(vfio, true);
}

static int map_fail(const struct weir_vfio *vfio, uint64_t address, uint64_t bytes, int error)
{
	const char *storage = vfio->function.storage;

	if (address + (bytes - 1) > vfio->highest)
		return weir_fail(ERANGE, "storage \"%s\": memory lies at %#" PRIx64 ", and the IOMMU takes addresses up to %#" PRIx64
				 " only; weir needs one with 48 bits", storage, address, vfio->highest);
	if (error == ENOMEM)
		return weir_fail(error, "storage \"%s\": cannot pin %" PRIu64 " bytes for its controller; raise the limit of locked "
				 "memory (ulimit -l)", storage, bytes);
	if (error == ENOSPC)
		return weir_fail(error, "storage \"%s\": too many allocations to map for its controller; raise dma_entry_limit of "
				 "vfio_iommu_type1, or allocate fewer, larger ones", storage);
	return weir_fail(error, "storage \"%s\": cannot map %" PRIu64 " bytes at %#" PRIx64 " for its controller: %s", storage, bytes,
			 address, strerror(error));
}

static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_vfio *vfio = (struct weir_vfio *)mapper;
	struct vfio_iommu_type1_dma_map request = {
		.argsz = sizeof(request),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = address,
		.iova = address,
		.size = bytes,
	};

	return ioctl(vfio->container, VFIO_IOMMU_MAP_DMA, &request) ? map_fail(vfio, address, bytes, errno) : 0;
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_vfio *vfio = (struct weir_vfio *)mapper;
	struct vfio_iommu_type1_dma_unmap request = { .argsz = sizeof(request), .iova = address, .size = bytes };

	if (ioctl(vfio->container, VFIO_IOMMU_UNMAP_DMA, &request) != 0)
		fprintf(stderr, "weir: storage \"%s\": VFIO cannot unmap %" PRIu64 " bytes at %#" PRIx64 ": %s\n",
			vfio->function.storage, bytes, address, strerror(errno));
}

int weir_vfio_open(const struct weir_pcie *function, struct weir_vfio **out)
{
	struct weir_vfio *vfio = calloc(1, sizeof(*vfio));
	int error;

	if (!vfio)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", function->storage);
	*vfio = (struct weir_vfio){ .mapper = { .map = map, .unmap = unmap }, .function = *function,
				    .container = -1, .group = -1, .device = -1 };
	error = open_container(vfio);
	if (!error)
		error = open_group(vfio);
	if (!error)
		error = join(vfio);
	if (!error)
		error = open_device(vfio);
	if (error) {
		weir_vfio_close(vfio);
		return error;
	}
	*out = vfio;
	return 0;
}

volatile uint32_t *weir_vfio_registers(struct weir_vfio *vfio, size_t *bytes)
{
	*bytes = vfio->bar_bytes;
	return vfio->bar;
}

struct weir_dma_mapper *weir_vfio_mapper(struct weir_vfio *vfio)
{
	return &vfio->mapper;
}

int weir_vfio_restart(struct weir_vfio *vfio)
{
	return set_master(vfio, true);
}

static void close_file(int file)
{
	if (file >= 0)
		close(file);
}

void weir_vfio_close(struct weir_vfio *vfio)
{
	if (vfio->bar) {
		(void)set_master(vfio, false);
		munmap(vfio->bar, vfio->bar_bytes);
	}
	close_file(vfio->device);
	close_file(vfio->group);
	close_file(vfio->container);
	free(vfio);
}
