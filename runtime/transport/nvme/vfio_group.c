/* SPDX-License-Identifier: BSD-3-Clause */
/* vfio_group.c: the way through a container and the group's file, which every Linux with VFIO has. */
#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../../backend/error.h"
#include "vfio_way.h"

static int open_container(struct weir_vfio *vfio)
{
	int error = weir_vfio_open_node(vfio, "vfio", &vfio->space->iommu);

	if (error)
		return error;
	if (ioctl(vfio->space->iommu, VFIO_GET_API_VERSION) != VFIO_API_VERSION)
		return weir_fail(ENOTSUP, "storage \"%s\": the kernel's VFIO has another version than %d",
				 vfio->function.storage, VFIO_API_VERSION);
	return 0;
}

static int open_group(struct weir_vfio *vfio)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char node[16];
	int error;

	snprintf(node, sizeof(node), "%d", vfio->function.group);
	error = weir_vfio_open_node(vfio, node, &vfio->space->group);
	if (error)
		return error;
	if (ioctl(vfio->space->group, VFIO_GROUP_GET_STATUS, &status) != 0)
		return weir_vfio_kernel_says(vfio, "report the status of the IOMMU group");
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
				highest = ranges->iova_ranges[i].end > highest ? ranges->iova_ranges[i].end
									       : highest;
		at = header->next;
	}
	return highest ? highest : UINT64_MAX;
}

static void ask_highest(struct weir_vfio *vfio)
{
	struct vfio_iommu_type1_info first = { .argsz = sizeof(first) }, *info = NULL;

	if (ioctl(vfio->space->iommu, VFIO_IOMMU_GET_INFO, &first) == 0 && first.argsz > sizeof(first))
		info = calloc(1, first.argsz);
	if (!info)
		return;
	info->argsz = first.argsz;
	if (ioctl(vfio->space->iommu, VFIO_IOMMU_GET_INFO, info) == 0)
		vfio->space->highest = highest_address(info);
	free(info);
}

static int join(struct weir_vfio *vfio)
{
	if (ioctl(vfio->space->group, VFIO_GROUP_SET_CONTAINER, &vfio->space->iommu) != 0)
		return weir_vfio_kernel_says(vfio, "use the IOMMU group");
	if (!ioctl(vfio->space->iommu, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": the kernel's VFIO has no type 1 IOMMU; as root: modprobe "
				 "vfio_iommu_type1",
				 vfio->function.storage);
	if (ioctl(vfio->space->iommu, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0) {
		ask_highest(vfio);
		return 0;
	}
	return errno == EPERM ? weir_pcie_interrupts_fail(&vfio->function, "vfio_iommu_type1")
			      : weir_vfio_kernel_says(vfio, "use the IOMMU");
}

static int open_space(struct weir_vfio *vfio)
{
	int error = open_container(vfio);

	if (!error)
		error = open_group(vfio);
	return error ? error : join(vfio);
}

static int group_open(struct weir_vfio *vfio)
{
	int error = vfio->space->devices ? 0 : open_space(vfio);

	if (error)
		return error;
	vfio->device = ioctl(vfio->space->group, VFIO_GROUP_GET_DEVICE_FD, vfio->function.address);
	return vfio->device < 0 ? weir_vfio_kernel_says(vfio, "open the device file") : 0;
}

static int group_map(struct weir_vfio_space *space, uint64_t address, uint64_t bytes, void *host)
{
	struct vfio_iommu_type1_dma_map request = {
		.argsz = sizeof(request),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)host,
		.iova = address,
		.size = bytes,
	};

	return ioctl(space->iommu, VFIO_IOMMU_MAP_DMA, &request);
}

static int group_unmap(struct weir_vfio_space *space, uint64_t address, uint64_t bytes)
{
	struct vfio_iommu_type1_dma_unmap request = { .argsz = sizeof(request),
						      .iova = address,
						      .size = bytes };

	return ioctl(space->iommu, VFIO_IOMMU_UNMAP_DMA, &request);
}

const struct weir_vfio_way weir_vfio_group = {
	.name = "its group's file",
	.open = group_open,
	.map = group_map,
	.unmap = group_unmap,
};
