/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft_nic.h: a NIC of the mlx5 family that is a function, with an NVMe/RDMA target behind it whose
 * controller has rings in memory.
 *
 * It believes the doorbell record, the register, entries and registered memory alone, and says what is wrong
 * with them. The order in which it does things is its caller's: an acknowledgement comes when it likes, also
 * behind the response; until then it may read an entry and its capsule again.
 */
#ifndef WEIR_TESTS_SOFT_NIC_H
#define WEIR_TESTS_SOFT_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/core/queue/mlx5.h>
#include <weir/nvme.h>

enum { SOFT_NIC_DEPTH = 1024, SOFT_NIC_CAPSULE_KEY = 0x7a1b2c3d };

#define SOFT_NIC_DATA_KEY 0x9a69788fu

/** struct soft_nic_far - rings of the target's controller; @lists: PRP entries, @list_entries for each of
 * @depth */
struct soft_nic_far {
	struct nvme_sqe *sq;
	volatile struct nvme_cqe *cq;
	volatile uint32_t *sq_doorbell;
	volatile uint32_t *cq_doorbell;
	uint64_t *lists;
	uint32_t list_entries;
	uint32_t depth;
	uint32_t block_log2;
};

/** struct soft_nic_entry - an entry of the send queue, and the capsule that it names */
struct soft_nic_entry {
	uint32_t words[8];
	struct nvme_sqe capsule;
};

/**
 * struct soft_nic - one queue pair
 * @lanes: what lanes have of it
 * @far: the other end
 * @write: to memory of lanes, other words before the last; NULL: as a processor. After soft_nic_open(), as
 * @ring
 * @ring: a doorbell of the other end's; NULL: nobody sleeps there
 * @awake: it was rung, and reads on as long as the record says that there is more
 * @eager: it never sleeps
 * @heard: block of the register, as last seen
 * @executed: entries that were carried out, as blocks; @acknowledged: of these
 * @sent, @received: completions that were written; @taken: messages that came
 * @far_tail, @far_head: positions of the other end's rings
 * @entries: what was carried out
 * @wrong: a sentence; NULL: nothing was
 */
struct soft_nic {
	struct weir_mlx5 *lanes;
	struct soft_nic_far far;
	void (*write)(void *to, const void *from, uint32_t bytes);
	void (*ring)(volatile uint32_t *doorbell, uint32_t value);
	bool awake;
	bool eager;
	uint32_t heard;
	uint32_t executed, acknowledged;
	uint32_t sent, received, taken;
	uint64_t far_tail, far_head;
	struct soft_nic_entry entries[SOFT_NIC_DEPTH];
	const char *wrong;
};

/** struct soft_nic_memory - what lanes and the NIC share, zeroed; rings of twice @depth entries but for sends
 */
struct soft_nic_memory {
	uint64_t sends;    /* 64 bytes each */
	uint64_t sent;     /* 64 bytes each, 2 * depth */
	uint64_t received; /* 64 bytes each, 2 * depth */
	uint64_t words;    /* 64 bytes */
	uint64_t messages; /* 16 bytes each, 2 * depth */
};

/**
 * soft_nic_open() - lay out @nic and @lanes
 * @first_ticket: of the queue pair
 *
 * Counters of the NIC begin shortly before they wrap, as if the host had used it before.
 */
void soft_nic_open(struct soft_nic *nic, struct weir_mlx5 *lanes, const struct soft_nic_far *far,
		   const struct soft_nic_memory *memory, uint64_t first_ticket);

/** soft_nic_send(), soft_nic_acknowledge(), soft_nic_respond() - do one thing of a kind; false: there is none
 */
bool soft_nic_send(struct soft_nic *nic);
bool soft_nic_acknowledge(struct soft_nic *nic);
bool soft_nic_respond(struct soft_nic *nic);

#endif
