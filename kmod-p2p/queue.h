/* SPDX-License-Identifier: GPL-2.0-only */
/* Queue pairs (queue.c) and their doorbells (doorbell.c). */
#ifndef WEIR_P2P_QUEUE_H
#define WEIR_P2P_QUEUE_H

#include "p2p.h"

#define WEIR_DOORBELLS 0x1000 /* in BAR 0: NVM Express over PCIe 1.0, section 3.1 */
/* mmap() offsets of doorbells have this bit; those of ranges have not. */
#define WEIR_DOORBELL_OFFSETS (1ULL << 61)

/**
 * struct weir_pair - a queue pair in ranges of a window
 * @refs: one until it has ended, one per mapping, one per call that uses it
 * @batch: among those that end together
 * @file: whose; valid until it has ended
 * @window: of @file
 * @mapping: where @file's mappings are found
 * @ssd: the controller
 * @rings: ranges that its rings lie in, held busy
 * @qid: of both queues
 * @handle: its number
 * @stride: from one doorbell to the next
 * @doorbell: of the submission queue, in BAR 0
 * @ending: somebody sees to its end; under pairs_lock
 * @gone: the controller has no such queue any more, nor does it any DMA for it; under the SSD's device_lock()
 * @lock: protects what follows; taken in mmap()
 * @zapped: doorbells are not mapped any more
 * @mm: who has mapped them, NULL: nobody
 * @maps: how many mappings there are; more than one while it is moved, which fails
 */
struct weir_pair {
	struct kref refs;
	struct list_head batch;
	struct weir_file *file;
	struct weir_window *window;
	struct address_space *mapping;
	struct pci_dev *ssd;
	struct weir_range *rings[2];
	u32 qid;
	u32 handle;
	u32 stride;
	u64 doorbell;
	bool ending;
	bool gone;
	struct mutex lock;
	bool zapped;
	struct mm_struct *mm;
	unsigned int maps;
};

/* queue.c */
struct weir_pair *weir_pair_get(struct weir_file *file, u32 handle);
void weir_pair_put(struct weir_pair *pair);

/* doorbell.c */
u64 weir_doorbell_bytes(const struct weir_pair *pair);
void weir_doorbell_zap(struct weir_pair *pair);

#endif
