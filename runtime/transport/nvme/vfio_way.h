/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_way.h: what vfio.c shares with the two ways of Linux to a function and its IOMMU.
 *
 * vfio_group.c: a container, the group's file, the device from the group. vfio_iommufd.c: the device's own
 * file, attached to an address space of /dev/iommu. The device behaves alike after that. vfio_space.c: what
 * devices of one IOMMU group share, which is what they may touch.
 */
#ifndef WEIR_TRANSPORT_VFIO_WAY_H
#define WEIR_TRANSPORT_VFIO_WAY_H

#include <pthread.h>
#include <stdbool.h>

#include "vfio.h"

/**
 * struct weir_vfio_way - a way
 * @name: for people
 * @open: fill in @device of @vfio, confined to its space, whose files are opened if they are not; 0 or a
 * negative errno with a sentence
 * @map: what the process has at @host, to be [address, address + bytes) for the devices; 0, or -1 with errno
 * @unmap: the same range; 0, or -1 with errno
 */
struct weir_vfio_way {
	const char *name;
	int (*open)(struct weir_vfio *vfio);
	int (*map)(struct weir_vfio_space *space, uint64_t address, uint64_t bytes, void *host);
	int (*unmap)(struct weir_vfio_space *space, uint64_t address, uint64_t bytes);
};

extern const struct weir_vfio_way weir_vfio_group;
extern const struct weir_vfio_way weir_vfio_iommufd;

/**
 * struct weir_vfio_space - what the devices of an IOMMU group may touch, those that this process has open
 * @mapper: follows @map; first, so that the space is found from it
 * @next: in the process's list
 * @map: memory of all their storages; it outlives the files
 * @storage: URI of whoever opened it, for sentences
 * @number: of the IOMMU group
 * @users: devices that refer to it
 * @devices: those of them that have not left
 * @over: all devices have been let go of: nothing is mapped any more. The files stay open until nobody refers
 * to it: Linux takes the group back from them as it removes the last device, and closing them meanwhile would
 * race with that
 * @iommu: the container, or /dev/iommu; -1: not open
 * @group: the group's file, where there is one
 * @ioas: the address space in /dev/iommu
 * @highest: highest address that its IOMMU takes, UINT64_MAX if that is not known
 * @lock: around @over, between the end of its devices and the mapper
 */
struct weir_vfio_space {
	struct weir_dma_mapper mapper;
	struct weir_vfio_space *next;
	const struct weir_vfio_way *way;
	struct weir_dma_map *map;
	char *storage;
	int number;
	unsigned users;
	unsigned devices;
	bool over;
	int iommu;
	int group;
	uint32_t ioas;
	uint64_t highest;
	pthread_mutex_t lock;
};

/** struct weir_vfio_bar - a mapping of BAR 0; it stays until it is unmapped, in the end of memory that is
 * nobody's */
struct weir_vfio_bar {
	struct weir_vfio_bar *next;
	void *address;
};

/**
 * struct weir_vfio - an open function
 * @wanted: an eventfd that counts how often the system asked for the function
 * @bars: mappings of BAR 0, the first one last
 * @bar_offset: where BAR 0 lies in @device
 * @config: where its configuration space lies in @device
 * @lock: around @bars
 * @left: files are closed, the function is the system's
 * @asked: the system wants it back
 */
struct weir_vfio {
	struct weir_pcie function;
	struct weir_vfio_space *space;
	int device;
	int wanted;
	struct weir_vfio_bar *bars;
	size_t bar_bytes;
	uint64_t bar_offset;
	uint64_t config;
	pthread_mutex_t lock;
	bool left;
	bool asked;
};

/** weir_vfio_kernel_says() - "VFIO cannot @what of the function", with errno; -errno */
int weir_vfio_kernel_says(const struct weir_vfio *vfio, const char *what);

/** weir_vfio_open_node() - /dev/vfio/@node */
int weir_vfio_open_node(const struct weir_vfio *vfio, const char *node, int *out);

/**
 * weir_vfio_space_join() - the space of @vfio's IOMMU group: the one that this process has, or a new one,
 * with no files yet
 * @choice: the way; auto: the one there is
 *
 * Return: 0 with @vfio->space set; -EBUSY with a sentence where there is one by another way; -ENOMEM. The
 * files are opened by the way's open, between this and weir_vfio_space_joined(): until that is called no
 * other thread joins any space.
 */
int weir_vfio_space_join(struct weir_vfio *vfio, enum weir_vfio_choice choice);
/** weir_vfio_space_joined() - @vfio's device is open, or could not be opened (@good) */
void weir_vfio_space_joined(struct weir_vfio *vfio, bool good);
/** weir_vfio_space_part() - @vfio's device is closed; with the last one of them the space is over */
void weir_vfio_space_part(struct weir_vfio *vfio);
/** weir_vfio_space_leave() - @vfio refers to it no longer; with the last one its files are closed */
void weir_vfio_space_leave(struct weir_vfio *vfio);

#endif
