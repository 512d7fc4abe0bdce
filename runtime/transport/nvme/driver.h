/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme/driver.h: an NVMe controller that the kernel's own driver has: what sysfs says of it, and admin
 * commands by that driver.
 *
 * Owns: /dev/nvmeN, and the file of its state. Changes nothing by itself; whoever sends admin commands may.
 */
#ifndef WEIR_TRANSPORT_NVME_DRIVER_H
#define WEIR_TRANSPORT_NVME_DRIVER_H

#include <sys/types.h>
#include <weir/nvme.h>

#include "pcie.h"

enum { WEIR_NVME_DRIVER_NAME = 32 };

/** enum weir_nvme_driver_state - what the driver does with the controller */
enum weir_nvme_driver_state {
	WEIR_NVME_DRIVER_LIVE,
	WEIR_NVME_DRIVER_BUSY, /* it resets it, or starts it */
	WEIR_NVME_DRIVER_GONE, /* it has given it up, or has it no longer */
};

/**
 * struct weir_nvme_driver - a controller under the kernel's driver
 * @name: the driver's for it, such as nvme0
 * @device: /dev/nvmeN, open; -1: not
 * @state: its file in sysfs, open; -1: not
 * @queues: queue pairs that are the driver's, its admin queue's among them
 * @most_entries: of each queue
 */
struct weir_nvme_driver {
	struct weir_pcie function;
	char name[WEIR_NVME_DRIVER_NAME];
	int device;
	int state;
	unsigned queues;
	unsigned most_entries;
};

/**
 * weir_nvme_driver_open() - find the controller at @address, and open it
 * @root: as in struct weir_pcie, as is @storage; both must stay
 *
 * Return: 0, or a negative errno with a sentence; @out is to be closed either way.
 */
int weir_nvme_driver_open(const char *root, const char *storage, struct weir_pci address,
			  struct weir_nvme_driver *out);
/** weir_nvme_driver_close() - let go of it */
void weir_nvme_driver_close(struct weir_nvme_driver *driver);
/** weir_nvme_driver_state() - what it does just now */
enum weir_nvme_driver_state weir_nvme_driver_state(const struct weir_nvme_driver *driver);
/**
 * weir_nvme_driver_await() - wait until it is live again
 *
 * Return: 0; -ENODEV, or -ETIMEDOUT after a minute, with a sentence.
 */
int weir_nvme_driver_await(const struct weir_nvme_driver *driver);
/**
 * weir_nvme_driver_admin() - have the driver send an admin command, and wait for its end
 * @command: prp1 is the address of the data in this process, a page from there; 0: none
 * @result: dw0 of its completion
 *
 * Return: the NVMe status; a negative errno with a sentence if it was not sent.
 */
int weir_nvme_driver_admin(const struct weir_nvme_driver *driver, const struct nvme_sqe *command,
			   uint32_t *result);
/** weir_nvme_driver_reset() - have the driver reset its controller, and go on; 0 or a negative errno with a
 * sentence */
int weir_nvme_driver_reset(const struct weir_nvme_driver *driver);
/** weir_nvme_driver_disk() - the block device of namespace @nsid, such as nvme0n1; false if it has none */
bool weir_nvme_driver_disk(const struct weir_nvme_driver *driver, uint32_t nsid,
			   char disk[WEIR_NVME_DRIVER_NAME]);

#endif
