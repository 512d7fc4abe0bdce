/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_link.h: a connection of RDMA, as both ends have it: its events, its queue pair, its completions.
 *
 * Owns: when a completion queue is armed. Nothing here waits.
 */
#ifndef WEIR_FABRICS_RDMA_LINK_H
#define WEIR_FABRICS_RDMA_LINK_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	WEIR_RDMA_INLINE_BYTES = 16, /* of a message that is sent without registered memory */
	WEIR_RDMA_RETRIES = 7,
};

/**
 * struct weir_rdma_link - a connection
 * @events: of its own; its descriptor does not block
 * @id: with a queue pair, once that was made
 * @channel: notifies of completions; its descriptor does not block
 * @armed: it will, of the next one
 */
struct weir_rdma_link {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
};

/** weir_rdma_events() - an event channel whose descriptor does not block; NULL: errno says why */
struct rdma_event_channel *weir_rdma_events(void);
/** weir_rdma_queues() - a queue pair for @id, whose device is known; 0 or a negative errno */
int weir_rdma_queues(struct weir_rdma_link *link, struct ibv_pd *pd, uint32_t receives, uint32_t sends);
/** weir_rdma_end() - disconnect, and free all of it; nothing moves by it afterwards */
void weir_rdma_end(struct weir_rdma_link *link);

/** weir_rdma_receive() - give @bytes at @memory to a message that comes; 0 or a negative errno */
int weir_rdma_receive(struct weir_rdma_link *link, uint64_t wr_id, void *memory, uint32_t bytes,
		      uint32_t key);
/** weir_rdma_poll() - what has completed, @most at a time; with nothing there it is armed. Negative: broken
 */
int weir_rdma_poll(struct weir_rdma_link *link, struct ibv_wc *completions, int most);
/** weir_rdma_notified() - take the notifications: it is to be polled */
void weir_rdma_notified(struct weir_rdma_link *link);

/** weir_rdma_reads() - as many reads as @wanted, @device and a byte allow */
uint8_t weir_rdma_reads(int wanted, int device);

#endif
