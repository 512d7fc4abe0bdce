/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h: what the host side of NVMe over Fabrics asks of a transport below it: TCP, or RDMA. */
#ifndef WEIR_TRANSPORT_FABRICS_WIRE_H
#define WEIR_TRANSPORT_FABRICS_WIRE_H

#include <stdbool.h>

#include "../virtual/word.h"

struct nvmf;
struct nvmf_queue;
struct nvmf_request;
struct weir_address;

/**
 * struct nvmf_wire - what carries capsules and data; all above it is the same for each
 * @name: for people
 * @create: memory for a queue of @entries; 0 or a negative errno with a sentence
 * @destroy: that
 * @open: connect, within keys.connect_ms; 0 or a negative errno with a sentence
 * @close: nothing comes by it any more
 * @release: what is the storage's and no queue's; all are closed
 * @room: requests that can be begun
 * @begin: send @request, which has its state; there is room
 * @send: what is in line, as far as the connection takes it; whether anything was sent
 * @receive: take what has come; whether anything had
 */
struct nvmf_wire {
	const char *name;
	int (*create)(struct nvmf_queue *queue, u32 entries);
	void (*destroy)(struct nvmf_queue *queue);
	int (*open)(struct nvmf_queue *queue, const struct weir_address *address);
	void (*close)(struct nvmf_queue *queue);
	void (*release)(struct nvmf *nvmf);
	u32 (*room)(const struct nvmf_queue *queue);
	void (*begin)(struct nvmf_queue *queue, struct nvmf_request *request);
	bool (*send)(struct nvmf_queue *queue);
	bool (*receive)(struct nvmf_queue *queue);
};

/* connection.c: sockets and their agreement. rdma.c: RDMA; a build without it has NULL (rdma_none.c). */

extern const struct nvmf_wire nvmf_wire_tcp;
extern const struct nvmf_wire *const nvmf_wire_rdma;

#endif
