/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_connection.h: a host's connection of RDMA; private to rdma.c and rdma_move.c. */
#ifndef WEIR_TARGET_RDMA_CONNECTION_H
#define WEIR_TARGET_RDMA_CONNECTION_H

#include "../transport/fabrics/rdma_link.h"
#include "../transport/fabrics/rdma_message.h"
#include "parts.h"

enum { TARGET_RDMA_CAPSULE_BYTES = NVME_CAPSULE_COMMAND_BYTES + TARGET_IN_CAPSULE_BYTES };

/**
 * struct target_rdma - what a connection of RDMA has besides; its thread's, once it has arrived there
 * @domain: of its memory and its queue pair
 * @count: capsules that it can receive
 * @capsules: TARGET_RDMA_CAPSULE_BYTES each
 * @kept: ring of those that came while no slot was free; @kept_bytes: how long each is
 * @invalidates: the device can end a host's key
 * @more: not all that has completed was looked at
 * @broken: it is to be ended by its thread
 */
struct target_rdma {
	struct weir_rdma_link link;
	struct ibv_pd *domain;
	u32 count;
	u8 *capsules;
	struct ibv_mr *region;
	u32 *kept;
	u32 *kept_bytes;
	u64 kept_head;
	u64 kept_tail;
	bool invalidates;
	bool more;
	bool broken;
};

/** target_rdma_receive() - post capsule @index; 0 or a negative errno */
int target_rdma_receive(struct target_rdma *rdma, u32 index);
/** target_rdma_free() - with its connection, or instead of one */
void target_rdma_free(struct target_rdma *rdma);
/** target_rdma_wire - see struct target_wire */
extern const struct target_wire target_rdma_wire;

#endif
