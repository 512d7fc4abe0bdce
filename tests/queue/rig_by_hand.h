/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_by_hand.h: a storage of one queue pair in ordinary memory, which nobody serves. */
#ifndef WEIR_TESTS_RIG_BY_HAND_H
#define WEIR_TESTS_RIG_BY_HAND_H

#include <string.h>

#include <weir/disk.h>

enum { DEPTH = 4, LIST = 8 };

/** struct rig - a storage of one queue pair, whose slots have lists of pages */
struct rig {
	struct weir_queue queue;
	struct weir_slot slots[DEPTH];
	struct nvme_sqe sq[DEPTH];
	struct nvme_cqe cq[DEPTH];
	struct weir_retry_record records[DEPTH];
	uint64_t lists[DEPTH * LIST];
	uint32_t doorbells[2];
	struct weir_disk disk;
};

static struct rig rig __attribute__((aligned(128)));

static inline void rig_begin(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.queue.sq = WEIR_ADDR(rig.sq);
	rig.queue.cq = WEIR_ADDR(rig.cq);
	rig.queue.slots = WEIR_ADDR(rig.slots);
	rig.queue.records = WEIR_ADDR(rig.records);
	rig.queue.prp_lists = WEIR_ADDR(rig.lists);
	rig.queue.prp_entries = LIST;
	rig.queue.sq_doorbell = WEIR_ADDR(&rig.doorbells[0]);
	rig.queue.cq_doorbell = WEIR_ADDR(&rig.doorbells[1]);
	rig.queue.depth = DEPTH;
	rig.queue.depth_log2 = 2;
	rig.queue.block_log2 = 9;
	rig.disk.queues = WEIR_ADDR(&rig.queue);
	rig.disk.queue_count = 1;
}

#endif
