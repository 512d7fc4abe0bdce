/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_queue.h: a queue's connection of RDMA; private to rdma.c and rdma_move.c.
 *
 * Each request has a slot: its capsule, and memory for data that the other end does not reach where lanes
 * have it. The mover's alone.
 */
#ifndef WEIR_FABRICS_RDMA_QUEUE_H
#define WEIR_FABRICS_RDMA_QUEUE_H

#include "nvmf.h"
#include "rdma_link.h"
#include "rdma_memory.h"
#include "rdma_message.h"

/** struct nvmf_rdma_slot - @copy: @bytes of registered memory, kept; @copied: the request's data goes there
 */
struct nvmf_rdma_slot {
	void *copy;
	u32 bytes;
	bool copied;
	struct ibv_mr *region;
};

/**
 * struct nvmf_rdma_queue - a queue pair
 * @slots: @count of them: those of the ring, then the host's own
 * @capsules: @count of @capsule_bytes each
 * @responses: as many, received
 */
struct nvmf_rdma_queue {
	struct weir_rdma_link link;
	u32 count;
	u32 capsule_bytes;
	struct nvmf_rdma_slot *slots;
	u8 *capsules;
	struct nvme_cqe *responses;
	struct ibv_mr *capsules_region;
	struct ibv_mr *responses_region;
};

/** nvmf_rdma_receive_all() - post every response's memory; 0 or a negative errno */
int nvmf_rdma_receive_all(struct nvmf_rdma_queue *rdma);
/** nvmf_rdma_begin(), nvmf_rdma_receive() - of struct nvmf_wire */
void nvmf_rdma_begin(struct nvmf_queue *queue, struct nvmf_request *request);
bool nvmf_rdma_receive(struct nvmf_queue *queue);

#endif
