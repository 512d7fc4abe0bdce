/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h: what a context can be opened on: devices of backends, the machine's GPUs, and the disks near
 * them.
 *
 * Part of weir.h, whose rules hold here: 0 or a negative errno, and a sentence in weir_last_error().
 */
#ifndef WEIR_DEVICES_H
#define WEIR_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What libweir exports. */
#define WEIR_API __attribute__((visibility("default")))

struct weir_gpus;

/**
 * struct weir_device - a device, or why a kind of devices has none here
 * @size: sizeof the structure
 * @name: for weir_context_open(), such as "cpu"; the backend's name if it has no device
 * @error: 0, or the negative errno that opening it would give
 * @why: if so, the sentence
 */
struct weir_device {
	size_t size;
	char name[64];
	int32_t error;
	char why[256];
};

/**
 * weir_device_at() - the devices that this build of weir can see, one after the other
 * @index: 0, 1, ...: the preferred ones first
 * @device: receives it
 *
 * Opens none of them. Return: 0; -ENOENT behind the last one, which is no failure and
 * leaves weir_last_error() alone; -EINVAL.
 */
WEIR_API int weir_device_at(uint32_t index, struct weir_device *device);

/**
 * weir_gpus_open() - the GPUs of the machine as it is now, whether a backend can use them or not
 * @out: a snapshot, good until weir_gpus_close()
 *
 * Opens none of them. Where the machine has none, or shows none to this process, the snapshot is empty.
 * Return: 0; -ENOMEM; what the system says of its topology.
 */
WEIR_API int weir_gpus_open(struct weir_gpus **out);

/** weir_gpus_close() - forget a snapshot; NULL is fine. Return: 0; -EINVAL for one that is closed, or none.
 */
WEIR_API int weir_gpus_close(struct weir_gpus *gpus);

/**
 * struct weir_gpu - a GPU and its place
 * @size: sizeof the structure
 * @pci_address: "0000:41:00.0" (domain:bus:device.function)
 * @vendor_id: of PCI; 0: not known. @device_id too
 * @vendor: name of the vendor, @model of the device, "" where the system has no name for them
 * @numa_node: node of the host that is nearest; -1: not known
 * @node: device file of the system's graphics driver, such as "/dev/dri/renderD128"; "": none, or this build
 * cannot tell
 * @device: for weir_context_open(); "" if no backend can use it
 * @number: of "gpu:N"; -1 if no backend can use it
 * @why: if so, the reason
 */
struct weir_gpu {
	size_t size;
	char pci_address[16];
	uint32_t vendor_id;
	uint32_t device_id;
	char vendor[64];
	char model[96];
	int32_t numa_node;
	char node[32];
	char device[64];
	int32_t number;
	char why[512];
};

/**
 * weir_gpu_at() - a GPU of the snapshot
 * @gpus: the snapshot
 * @index: 0, 1, ...: by PCI address
 * @gpu: receives it
 *
 * Return: 0; -ENOENT behind the last one, which is no failure and leaves weir_last_error() alone; -EINVAL.
 */
WEIR_API int weir_gpu_at(const struct weir_gpus *gpus, uint32_t index, struct weir_gpu *gpu);

/**
 * enum weir_distance - how far a disk is from a GPU; the nearest first
 * @WEIR_DISTANCE_SWITCH: below the same PCIe switch: transfers need not pass the processor
 * @WEIR_DISTANCE_ROOT_PORT: below the same root port, without a switch
 * @WEIR_DISTANCE_NUMA_NODE: at the same NUMA node, by different root ports
 * @WEIR_DISTANCE_ACROSS: at different nodes
 * @WEIR_DISTANCE_UNKNOWN: the system does not tell
 */
enum weir_distance {
	WEIR_DISTANCE_SWITCH,
	WEIR_DISTANCE_ROOT_PORT,
	WEIR_DISTANCE_NUMA_NODE,
	WEIR_DISTANCE_ACROSS,
	WEIR_DISTANCE_UNKNOWN,
};

/**
 * struct weir_gpu_disk - a disk on the PCI bus, as a GPU sees it
 * @size: sizeof the structure
 * @name: of the block device, such as "nvme0n1"; "": an NVMe controller without one
 * @pci_address: of its controller
 * @numa_node: node of the host that is nearest; -1: not known
 * @distance: enum weir_distance
 */
struct weir_gpu_disk {
	size_t size;
	char name[32];
	char pci_address[16];
	int32_t numa_node;
	uint32_t distance;
};

/**
 * weir_gpu_disk_at() - a disk of the machine, and how far it is from a GPU
 * @gpus: the snapshot
 * @gpu: index of the GPU in it
 * @index: 0, 1, ...: the nearest first
 * @disk: receives it
 *
 * Return: 0; -ENOENT behind the last one or for a GPU that is not there, as weir_gpu_at(); -EINVAL.
 */
WEIR_API int weir_gpu_disk_at(const struct weir_gpus *gpus, uint32_t gpu, uint32_t index,
			      struct weir_gpu_disk *disk);

#ifdef __cplusplus
}
#endif

#endif
