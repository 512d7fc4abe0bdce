/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nvme.h: what the two transports of nvme: share: the URI's keys. */
#ifndef WEIR_TRANSPORT_NVME_H
#define WEIR_TRANSPORT_NVME_H

#include "../transport.h"
#include "vfio.h"

/** enum weir_nvme_owner - whose the controller is, key driver */
enum weir_nvme_owner {
	WEIR_NVME_OWNER_VFIO,   /* weir's alone */
	WEIR_NVME_OWNER_KERNEL, /* the kernel's driver's; weir has queue pairs beside it */
};

/** enum weir_nvme_in_use - key in_use: what if the system uses the namespace, and it is to be written */
enum weir_nvme_in_use {
	WEIR_NVME_IN_USE_REFUSE,
	WEIR_NVME_IN_USE_ALLOW,
};

/**
 * struct weir_nvme_keys - those that are not in struct weir_transport
 * @address: of the function
 * @memory_given: gpu_memory was
 */
struct weir_nvme_keys {
	struct weir_pci address;
	enum weir_nvme_owner owner;
	enum weir_vfio_choice choice;
	enum weir_nvme_in_use in_use;
	bool memory_given;
};

enum { WEIR_NVME_MOST_QUEUES = 1024 };

/**
 * weir_nvme_kernel_open() - queue pairs beside those of the kernel's driver, by the kernel module weir_p2p
 * @base: what the keys said; its ops are not set
 */
int weir_nvme_kernel_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_keys *keys, struct weir_transport **out);

#endif
