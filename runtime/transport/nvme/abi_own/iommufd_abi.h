/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iommufd_abi.h: VFIO's device files and iommufd, for systems whose headers are older than Linux 6.6.
 *
 * Only what weir uses, under Linux's names; numbers and layouts are its ABI
 * (Documentation/userspace-api/iommufd.rst, Documentation/driver-api/vfio.rst). vfio_iommufd.c asserts them
 * of either header.
 */
#ifndef WEIR_TRANSPORT_IOMMUFD_ABI_H
#define WEIR_TRANSPORT_IOMMUFD_ABI_H

#include <linux/types.h>
#include <linux/vfio.h>

/* The file descriptor of /dev/iommu that the device belongs to from then on. */
struct vfio_device_bind_iommufd {
	__u32 argsz;
	__u32 flags;
	__s32 iommufd;
	__u32 out_devid;
};

/* The address space of its DMA. */
struct vfio_device_attach_iommufd_pt {
	__u32 argsz;
	__u32 flags;
	__u32 pt_id;
};

#define VFIO_DEVICE_BIND_IOMMUFD      _IO(VFIO_TYPE, VFIO_BASE + 18)
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT _IO(VFIO_TYPE, VFIO_BASE + 19)

/* An address space, empty. */
struct iommu_ioas_alloc {
	__u32 size;
	__u32 flags;
	__u32 out_ioas_id;
};

struct iommu_iova_range {
	__aligned_u64 start;
	__aligned_u64 last;
};

/* What can be mapped in it: @num_iovas is how many there are, and, when asking, how many there is room for.
 */
struct iommu_ioas_iova_ranges {
	__u32 size;
	__u32 ioas_id;
	__u32 num_iovas;
	__u32 __reserved;
	__aligned_u64 allowed_iovas;
	__aligned_u64 out_iova_alignment;
};

enum {
	IOMMU_IOAS_MAP_FIXED_IOVA = 1 << 0,
	IOMMU_IOAS_MAP_WRITEABLE = 1 << 1,
	IOMMU_IOAS_MAP_READABLE = 1 << 2,
};

struct iommu_ioas_map {
	__u32 size;
	__u32 flags;
	__u32 ioas_id;
	__u32 __reserved;
	__aligned_u64 user_va;
	__aligned_u64 length;
	__aligned_u64 iova;
};

struct iommu_ioas_unmap {
	__u32 size;
	__u32 ioas_id;
	__aligned_u64 iova;
	__aligned_u64 length;
};

#define IOMMU_IOAS_ALLOC       _IO(';', 0x81)
#define IOMMU_IOAS_IOVA_RANGES _IO(';', 0x84)
#define IOMMU_IOAS_MAP         _IO(';', 0x85)
#define IOMMU_IOAS_UNMAP       _IO(';', 0x86)

#endif
