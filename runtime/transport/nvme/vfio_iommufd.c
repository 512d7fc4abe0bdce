/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_iommufd.c: the way through the device's own file and /dev/iommu, of Linux 6.6 and later.
 *
 * Documentation/driver-api/vfio.rst (VFIO device cdev) and Documentation/userspace-api/iommufd.rst of Linux.
 */
#include <errno.h>
#include <fcntl.h>
#include <iommufd_abi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vfio_way.h"

/* The ABI, whichever header it comes from. */
_Static_assert(VFIO_DEVICE_BIND_IOMMUFD == 0x3b76 && sizeof(struct vfio_device_bind_iommufd) == 16, "ABI");
_Static_assert(offsetof(struct vfio_device_bind_iommufd, iommufd) == 8, "ABI");
_Static_assert(VFIO_DEVICE_ATTACH_IOMMUFD_PT == 0x3b77 && sizeof(struct vfio_device_attach_iommufd_pt) == 12,
	       "ABI");
_Static_assert(IOMMU_IOAS_ALLOC == 0x3b81 && sizeof(struct iommu_ioas_alloc) == 12, "ABI");
_Static_assert(IOMMU_IOAS_IOVA_RANGES == 0x3b84 && sizeof(struct iommu_ioas_iova_ranges) == 32, "ABI");
_Static_assert(offsetof(struct iommu_ioas_iova_ranges, allowed_iovas) == 16 &&
		       sizeof(struct iommu_iova_range) == 16,
	       "ABI");
_Static_assert(IOMMU_IOAS_MAP == 0x3b85 && sizeof(struct iommu_ioas_map) == 40, "ABI");
_Static_assert(offsetof(struct iommu_ioas_map, user_va) == 16 && offsetof(struct iommu_ioas_map, iova) == 32,
	       "ABI");
_Static_assert(IOMMU_IOAS_MAP_FIXED_IOVA == 1 && IOMMU_IOAS_MAP_WRITEABLE == 2 &&
		       IOMMU_IOAS_MAP_READABLE == 4,
	       "ABI");
_Static_assert(IOMMU_IOAS_UNMAP == 0x3b86 && sizeof(struct iommu_ioas_unmap) == 24, "ABI");
_Static_assert(offsetof(struct iommu_ioas_unmap, iova) == 8, "ABI");

static int open_iommu(struct weir_vfio *vfio)
{
	char path[WEIR_PCIE_PATH];

	snprintf(path, sizeof(path), "%s/dev/iommu", vfio->function.root);
	vfio->space->iommu = open(path, O_RDWR | O_CLOEXEC);
	return vfio->space->iommu < 0 ? weir_pcie_iommu_fail(&vfio->function, errno) : 0;
}

/* EINVAL is what Linux says of a device file that is bound already, by whomever. */
static int bind_fail(const struct weir_vfio *vfio, const char *node, int error)
{
	if (error == EBUSY || error == EINVAL)
		return weir_pcie_vfio_fail(&vfio->function, node, EBUSY);
	if (error == EPERM)
		return weir_pcie_denied_fail(&vfio->function);
	errno = error;
	return weir_vfio_kernel_says(vfio, "use the IOMMU");
}

static int bind_device(struct weir_vfio *vfio, const char *node)
{
	struct vfio_device_bind_iommufd request = { .argsz = sizeof(request), .iommufd = vfio->space->iommu };

	return ioctl(vfio->device, VFIO_DEVICE_BIND_IOMMUFD, &request) ? bind_fail(vfio, node, errno) : 0;
}

static int allocate_space(struct weir_vfio *vfio)
{
	struct iommu_ioas_alloc space = { .size = sizeof(space) };

	if (ioctl(vfio->space->iommu, IOMMU_IOAS_ALLOC, &space) != 0)
		return weir_vfio_kernel_says(vfio, "make an address space");
	vfio->space->ioas = space.out_ioas_id;
	return 0;
}

static int attach(struct weir_vfio *vfio)
{
	struct vfio_device_attach_iommufd_pt request = { .argsz = sizeof(request),
							 .pt_id = vfio->space->ioas };

	return ioctl(vfio->device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &request)
		       ? weir_vfio_kernel_says(vfio, "attach the address space")
		       : 0;
}

/* Asked twice: how many ranges there are, with no room for any (EMSGSIZE), and then for them. */
static void ask_highest(struct weir_vfio *vfio)
{
	struct iommu_ioas_iova_ranges request = { .size = sizeof(request), .ioas_id = vfio->space->ioas };
	struct iommu_iova_range *ranges;
	uint64_t highest = 0;

	if (ioctl(vfio->space->iommu, IOMMU_IOAS_IOVA_RANGES, &request) == 0 || errno != EMSGSIZE)
		return;
	ranges = calloc(request.num_iovas, sizeof(*ranges));
	if (!ranges)
		return;
	request.allowed_iovas = (uintptr_t)ranges;
	if (ioctl(vfio->space->iommu, IOMMU_IOAS_IOVA_RANGES, &request) == 0)
		for (uint32_t i = 0; i < request.num_iovas; i++)
			highest = ranges[i].last > highest ? ranges[i].last : highest;
	if (highest)
		vfio->space->highest = highest;
	free(ranges);
}

static int iommufd_open(struct weir_vfio *vfio)
{
	char node[WEIR_PCIE_NODE];
	bool fresh = !vfio->space->devices;
	int error;

	if (!weir_pcie_device_node(&vfio->function, node))
		return weir_pcie_no_node_fail(&vfio->function);
	error = weir_vfio_open_node(vfio, node, &vfio->device);
	if (!error && fresh)
		error = open_iommu(vfio);
	if (!error)
		error = bind_device(vfio, node);
	if (!error && fresh)
		error = allocate_space(vfio);
	if (!error)
		error = attach(vfio);
	if (!error)
		ask_highest(vfio);
	return error;
}

static int iommufd_map(struct weir_vfio_space *space, uint64_t address, uint64_t bytes, void *host)
{
	struct iommu_ioas_map request = {
		.size = sizeof(request),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE,
		.ioas_id = space->ioas,
		.user_va = (uintptr_t)host,
		.length = bytes,
		.iova = address,
	};

	return ioctl(space->iommu, IOMMU_IOAS_MAP, &request);
}

static int iommufd_unmap(struct weir_vfio_space *space, uint64_t address, uint64_t bytes)
{
	struct iommu_ioas_unmap request = {
		.size = sizeof(request), .ioas_id = space->ioas, .iova = address, .length = bytes
	};

	return ioctl(space->iommu, IOMMU_IOAS_UNMAP, &request);
}

const struct weir_vfio_way weir_vfio_iommufd = {
	.name = "iommufd",
	.open = iommufd_open,
	.map = iommufd_map,
	.unmap = iommufd_unmap,
};
