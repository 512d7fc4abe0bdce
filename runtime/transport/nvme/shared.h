/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme/shared.h: one NVMe controller that several storages of this process use, each with queue pairs of its
 * own.
 *
 * Owns: which controllers the process has open, the admin queue of each, and the numbers of its I/O queue
 * pairs. To a storage such a controller is one that another driver keeps (struct weir_transport_ops): admin
 * commands go by it, and a reset that one storage needs is a reset by somebody else to the others, which
 * create their queue pairs anew. Knows nothing of VFIO.
 */
#ifndef WEIR_TRANSPORT_NVME_SHARED_H
#define WEIR_TRANSPORT_NVME_SHARED_H

#include "../transport.h"

/**
 * struct weir_nvme_raw - a controller by itself
 * @transport: its registers and doorbells; its @most_queues is how many queue pairs there are doorbells for
 * @dma: the memory that it may touch; what storages add goes in by weir_dma_map_share()
 * @map_registers: map its registers once more, for one storage: two devices' drivers do not take the same
 * addresses. NULL: the transport's doorbells are for all
 * @unmap_registers: that; @keep_addresses as in struct weir_transport
 */
struct weir_nvme_raw {
	struct weir_transport *transport;
	struct weir_dma_map *dma;
	int (*map_registers)(struct weir_transport *transport, void **registers);
	void (*unmap_registers)(struct weir_transport *transport, void *registers, bool keep_addresses);
};

/**
 * struct weir_nvme_source - which controller, and how it is opened
 * @key: the same for the same controller, and for no other one in the process
 * @name: for people, such as "NVMe controller 0000:65:00.0"
 * @of: what the two functions are given
 * @open: open it, for the first storage; 0 or a negative errno with a sentence
 * @join: whether one more storage may use one that is open, as it was opened; as @open. NULL: any may
 */
struct weir_nvme_source {
	const char *key;
	const char *name;
	void *of;
	int (*open)(void *of, struct weir_nvme_raw *out);
	int (*join)(void *of, const struct weir_nvme_raw *raw);
};

/**
 * weir_nvme_shared_open() - a storage's part in the controller that @source names: opened and started if no
 * storage has it yet
 * @base: what the URI's keys said; its ops and most_queues are set here
 *
 * The first storage decides on shadow doorbells, for all. Queue pairs are the storage's as it creates them,
 * up to what the controller has granted. The last storage to be closed shuts it down; if it fails, all of
 * them are lost.
 *
 * Any thread. Waits while another thread opens or closes the same controller. Return: 0; -EBUSY with a
 * sentence if other storages have all of its queue pairs, or if it failed and is not closed yet; what @source
 * said; -ENOMEM.
 */
int weir_nvme_shared_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_source *source, struct weir_transport **out);

#endif
