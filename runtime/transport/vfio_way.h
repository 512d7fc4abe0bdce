/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_way.h: what vfio.c shares with the two ways of Linux to a function and its IOMMU.
 *
 * vfio_group.c: a container, the group's file, the device from the group. vfio_iommufd.c: the device's own
 * file, attached to an address space of /dev/iommu. The device behaves alike after that.
 */
#ifndef WEIR_TRANSPORT_VFIO_WAY_H
#define WEIR_TRANSPORT_VFIO_WAY_H

#include <pthread.h>
#include <stdbool.h>

#include "vfio.h"

/**
 * struct weir_vfio_way - a way
 * @name: for people
 * @open: fill in @iommu and @device (also @group, @space), confined; 0 or a negative errno with a sentence
 * @map: [address, address + bytes) at the same addresses; 0, or -1 with errno
 * @unmap: the same range; 0, or -1 with errno
 */
struct weir_vfio_way {
	const char *name;
	int (*open)(struct weir_vfio *vfio);
	int (*map)(struct weir_vfio *vfio, uint64_t address, uint64_t bytes);
	int (*unmap)(struct weir_vfio *vfio, uint64_t address, uint64_t bytes);
};

extern const struct weir_vfio_way weir_vfio_group;
extern const struct weir_vfio_way weir_vfio_iommufd;

/**
 * struct weir_vfio - an open function
 * @mapper: first, so that it is found again
 * @iommu: the container, or /dev/iommu
 * @group: the group's file, where there is one
 * @space: the address space in /dev/iommu
 * @wanted: an eventfd that counts how often the system asked for the function
 * @bar: stays mapped until the end; @left: to nothing that is anybody's
 * @highest: highest address that its IOMMU takes, UINT64_MAX if that is not told
 * @config: where its configuration space lies in @device
 * @lock: between weir_vfio_give_way() and the mapper
 * @left: files are closed, the function is the system's
 * @asked: the system wants it back
 */
struct weir_vfio {
	struct weir_dma_mapper mapper;
	struct weir_pcie function;
	const struct weir_vfio_way *way;
	int iommu;
	int group;
	int device;
	int wanted;
	uint32_t space;
	void *bar;
	size_t bar_bytes;
	uint64_t highest;
	uint64_t config;
	pthread_mutex_t lock;
	bool left;
	bool asked;
};

/** weir_vfio_kernel_says() - "VFIO cannot @what of the function", with errno; -errno */
int weir_vfio_kernel_says(const struct weir_vfio *vfio, const char *what);

/** weir_vfio_open_node() - /dev/vfio/@node */
int weir_vfio_open_node(const struct weir_vfio *vfio, const char *node, int *out);

#endif
