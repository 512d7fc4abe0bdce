/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig_nic.c: a NIC between lanes and the controller: its entries, words and completions are in lanes' memory,
 * and a step of it is one message that goes, one that comes, or one acknowledgement, whichever chance picks.
 */
#include "../rig/soft_nic.h"
#include "explore.h"
#include "rig.h"
#include "rig_parts.h"

enum { MOST_NICS = 4, KINDS = 3 };

static struct soft_nic nics[MOST_NICS];

static uint64_t shared(const char *name, u32 count, u32 bytes)
{
	void *memory = rig_allocate((size_t)count * bytes, 4096);

	watch(memory, (size_t)count * bytes, bytes, WATCH_DATA, name, bytes);
	return (uint64_t)(uintptr_t)memory;
}

static void write_units(void *to, const void *from, uint32_t bytes)
{
	memory_device_units(to, from, bytes, 4);
}

void rig_lay_out_nic(struct weir_queue *queue, u32 index)
{
	struct weir_mlx5 *lanes = rig_allocate(sizeof(*lanes), 64);
	struct soft_nic_far far = { .sq = (struct nvme_sqe *)(uintptr_t)queue->sq,
				    .cq = (struct nvme_cqe *)(uintptr_t)queue->cq,
				    .sq_doorbell = (uint32_t *)(uintptr_t)queue->sq_doorbell,
				    .cq_doorbell = (uint32_t *)(uintptr_t)queue->cq_doorbell,
				    .lists = (uint64_t *)(uintptr_t)queue->prp_lists,
				    .list_entries = queue->prp_entries,
				    .depth = queue->depth,
				    .block_log2 = queue->block_log2 };
	struct soft_nic_memory memory = {
		.sends = shared("nic entry[%u]", queue->depth, WEIR_MLX5_BLOCK_BYTES),
		.sent = shared("nic sent[%u]", 2 * queue->depth, WEIR_MLX5_COMPLETION_BYTES),
		.received = shared("nic received[%u]", 2 * queue->depth, WEIR_MLX5_COMPLETION_BYTES),
		.words = shared("nic word[%u]", 16, 4),
		.messages = shared("nic message[%u]", 2 * queue->depth, sizeof(struct nvme_cqe)),
	};

	soft_nic_open(&nics[index], lanes, &far, &memory, rig.shape.iteration * queue->depth);
	nics[index].write = write_units;
	nics[index].eager = random_below(2) != 0;
	queue->sq = (weir_addr)(uintptr_t)rig_allocate(queue->depth * sizeof(struct nvme_sqe), 4096);
	queue->cq = (weir_addr)(uintptr_t)rig_allocate(queue->depth * sizeof(struct nvme_cqe), 4096);
	queue->sq_doorbell = lanes->doorbell;
	queue->cq_doorbell = lanes->receive_record;
	queue->nic = (weir_addr)(uintptr_t)lanes;
	queue->doorbell_kind = WEIR_DOORBELL_NIC;
	watch(&lanes->sent_read, 4, 4, WATCH_DATA, "nic sent_read", 4);
	watch(&lanes->sent_blocks, 4, 4, WATCH_DATA, "nic sent_blocks", 4);
}

static bool step(struct soft_nic *nic, u32 kind)
{
	switch (kind) {
	case 0: return soft_nic_send(nic);
	case 1: return soft_nic_respond(nic);
	default: return soft_nic_acknowledge(nic);
	}
}

bool rig_step_nics(void)
{
	u32 count = rig.shape.nic ? rig.shape.queues * KINDS : 0,
	    first = count ? (u32)random_below(count) : 0;
	bool moved = false;

	for (u32 i = 0; i < count && !moved; i++) {
		u32 at = (first + i) % count;

		moved = step(&nics[at / KINDS], at % KINDS);
		if (nics[at / KINDS].wrong)
			fail("the NIC of queue %u: %s", at / KINDS, nics[at / KINDS].wrong);
	}
	return moved;
}
