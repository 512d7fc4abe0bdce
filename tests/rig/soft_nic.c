/* SPDX-License-Identifier: BSD-3-Clause */
/* soft_nic.c: a NIC of the mlx5 family, as software. */
#include "soft_nic.h"

#include <endian.h>
#include <string.h>

#include <weir/nvme_fabrics.h>

enum {
	BLOCK = WEIR_MLX5_BLOCK_BYTES,
	COMPLETION = WEIR_MLX5_COMPLETION_BYTES,
	INDEX = WEIR_MLX5_INDEX_MASK,
	SENDS_BEFORE = 0xfff9,
	RECEIVES_BEFORE = 0xfffb,
	COMPLETIONS_BEFORE = 0xfffffe,
};

static void *at(uint64_t address, uint64_t bytes)
{
	return (unsigned char *)(uintptr_t)address + bytes;
}

/* A word of lanes', which they store before or after others. */
static uint32_t load(uint64_t address)
{
	return be32toh(__atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE));
}

static bool wrong(struct soft_nic *nic, const char *what)
{
	nic->wrong = nic->wrong ? nic->wrong : what;
	return false;
}

static void put(struct soft_nic *nic, void *to, const void *from, uint32_t bytes)
{
	if (nic->write) {
		nic->write(to, from, bytes);
		return;
	}
	memcpy(to, from, bytes - 4);
	__atomic_store_n((uint32_t *)((unsigned char *)to + bytes - 4),
			 *(const uint32_t *)((const unsigned char *)from + bytes - 4), __ATOMIC_RELEASE);
}

static void ring(struct soft_nic *nic, volatile uint32_t *doorbell, uint64_t position)
{
	uint32_t value = (uint32_t)position & (nic->far.depth - 1);

	if (nic->ring)
		nic->ring(doorbell, value);
	else
		__atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
}

static void complete(struct soft_nic *nic, struct weir_mlx5_cq *cq, uint32_t *count, uint32_t kind,
		     uint32_t index)
{
	uint32_t entry[COMPLETION / 4], lap = *count >> cq->log2 & 1, entries = 1u << cq->log2;

	if (((*count - load(cq->record)) & WEIR_MLX5_COMPLETION_MASK) >= entries) {
		wrong(nic, "a completion queue overflows");
		return;
	}
	memset(entry, 0x77, sizeof(entry));
	entry[COMPLETION / 4 - 1] = htobe32((index & INDEX) << 16 | 0x77 << 8 | kind << 4 | lap);
	put(nic, at(cq->entries, (uint64_t)(*count & (entries - 1)) * COMPLETION), entry, sizeof(entry));
	++*count;
}

static void begin(struct weir_mlx5_cq *cq, uint64_t entries, uint64_t record, uint32_t depth)
{
	*cq = (struct weir_mlx5_cq){ .entries = entries, .record = record, .first = COMPLETIONS_BEFORE };
	cq->log2 = (uint32_t)__builtin_ctz(2 * depth);
	for (uint32_t i = 0; i < 2 * depth; i++)
		*(unsigned char *)at(entries, (uint64_t)i * COMPLETION + COMPLETION - 1) = WEIR_MLX5_NONE
											   << 4;
	*(uint32_t *)at(record, 0) = htobe32(cq->first & WEIR_MLX5_COMPLETION_MASK);
}

void soft_nic_open(struct soft_nic *nic, struct weir_mlx5 *lanes, const struct soft_nic_far *far,
		   const struct soft_nic_memory *memory, uint64_t first_ticket)
{
	uint64_t words = memory->words;

	memset(nic, 0, sizeof(*nic));
	nic->lanes = lanes;
	nic->far = *far;
	*lanes = (struct weir_mlx5){
		.sends = memory->sends,
		.send_record = words + 4,
		.receive_record = words,
		.doorbell = words + 16,
		.messages = memory->messages,
		.send_log2 = (uint32_t)__builtin_ctz(far->depth),
		.number = 0x123456,
		.capsule_key = SOFT_NIC_CAPSULE_KEY,
		.data_key = SOFT_NIC_DATA_KEY,
		.first_send = SENDS_BEFORE - (uint32_t)first_ticket,
		.first_receive = RECEIVES_BEFORE + 2 * far->depth - (uint32_t)first_ticket,
	};
	begin(&lanes->sent, memory->sent, words + 8, far->depth);
	begin(&lanes->received, memory->received, words + 12, far->depth);
	lanes->received.first -= (uint32_t)first_ticket;
	weir_store_u32_relaxed_sys(&lanes->sent_blocks, SENDS_BEFORE);
	*(uint32_t *)at(lanes->send_record, 0) = htobe32(SENDS_BEFORE);
	*(uint32_t *)at(lanes->receive_record, 0) = htobe32((RECEIVES_BEFORE + 2 * far->depth) & INDEX);
	*(uint32_t *)at(lanes->doorbell, 0) = weir_mlx5_head(SENDS_BEFORE - 1);
	nic->executed = nic->acknowledged = SENDS_BEFORE;
	nic->heard = SENDS_BEFORE - 1;
	nic->sent = nic->received = COMPLETIONS_BEFORE;
	nic->taken = RECEIVES_BEFORE;
	nic->far_tail = nic->far_head = first_ticket;
}

/* The data of @sqe by PRPs, as its controller wants it. */
static bool translate(struct soft_nic *nic, struct nvme_sqe *sqe)
{
	uint32_t data = sqe->cdw0 & 3, key = (uint32_t)(sqe->prp2 >> 24);
	uint64_t bytes = sqe->prp2 & 0xffffff, page = NVME_PAGE_BYTES - (sqe->prp1 & (NVME_PAGE_BYTES - 1));
	uint64_t *list = nic->far.lists + (nic->far_tail & (nic->far.depth - 1)) * nic->far.list_entries;

	if ((sqe->cdw0 & 0xc000) != NVME_PSDT_SGL || sqe->prp2 >> 56 != NVME_SGL_KEYED)
		return wrong(nic, "a capsule has no keyed SGL");
	if (bytes != (data ? (uint64_t)((sqe->cdw12 & 0xffff) + 1) << nic->far.block_log2 : 0))
		return wrong(nic, "an SGL has another length than the command");
	if (bytes && key != SOFT_NIC_DATA_KEY)
		return wrong(nic, "an SGL has another key");
	sqe->cdw0 &= ~(uint32_t)0xc000;
	sqe->prp2 = 0;
	if (bytes <= page)
		return true;
	sqe->prp2 = sqe->prp1 + page;
	if (bytes <= page + NVME_PAGE_BYTES)
		return true;
	for (uint64_t i = 0; page + i * NVME_PAGE_BYTES < bytes; i++)
		list[i] = sqe->prp1 + page + i * NVME_PAGE_BYTES;
	sqe->prp2 = (uint64_t)(uintptr_t)list;
	return true;
}

/* The entry of @block and its capsule, as they are now; false: it is none. */
static bool fetch(struct soft_nic *nic, uint32_t block, struct soft_nic_entry *out)
{
	uint32_t *words = out->words;

	memcpy(words, at(nic->lanes->sends, (uint64_t)(block & (nic->far.depth - 1)) * BLOCK),
	       sizeof(out->words));
	if (be32toh(words[0]) != ((block & INDEX) << 8 | WEIR_MLX5_SEND))
		return wrong(nic, "an entry is another block's, or was read before it was written");
	if (be32toh(words[1]) != (nic->lanes->number << 8 | 2))
		return wrong(nic, "an entry is another queue pair's, or of another size");
	if (be32toh(words[4]) != NVME_CAPSULE_COMMAND_BYTES || be32toh(words[5]) != SOFT_NIC_CAPSULE_KEY)
		return wrong(nic, "an entry's memory is no capsule");
	memcpy(&out->capsule, at((uint64_t)be32toh(words[6]) << 32 | be32toh(words[7]), 0),
	       sizeof(out->capsule));
	return true;
}

bool soft_nic_send(struct soft_nic *nic)
{
	uint32_t rung = load(nic->lanes->doorbell) >> 8 & INDEX;
	struct soft_nic_entry *entry = &nic->entries[nic->executed & (nic->far.depth - 1)];
	struct nvme_sqe sqe;

	nic->awake |= rung != nic->heard;
	nic->heard = rung;
	if (!nic->awake && !nic->eager)
		return false;
	if ((load(nic->lanes->send_record) & INDEX) == (nic->executed & INDEX)) {
		nic->awake = false;
		return false;
	}
	if (nic->far_tail - nic->far_head >= nic->far.depth - 1)
		return wrong(nic, "more commands are under way than the ring has");
	if (!fetch(nic, nic->executed, entry))
		return false;
	sqe = entry->capsule;
	if (!translate(nic, &sqe))
		return false;
	nic->far.sq[nic->far_tail & (nic->far.depth - 1)] = sqe;
	nic->far_tail++;
	nic->executed++;
	ring(nic, nic->far.sq_doorbell, nic->far_tail);
	return true;
}

bool soft_nic_acknowledge(struct soft_nic *nic)
{
	struct soft_nic_entry *entry = &nic->entries[nic->acknowledged & (nic->far.depth - 1)], again;

	if (nic->acknowledged == nic->executed)
		return false;
	/* it sends it again, as after a loss */
	if (!fetch(nic, nic->acknowledged, &again) || memcmp(entry, &again, sizeof(again)))
		return wrong(nic, "an entry or its capsule changed before it was acknowledged");
	if (be32toh(entry->words[2]) & WEIR_MLX5_SIGNALED)
		complete(nic, &nic->lanes->sent, &nic->sent, WEIR_MLX5_SENT, nic->acknowledged);
	nic->acknowledged++;
	return true;
}

bool soft_nic_respond(struct soft_nic *nic)
{
	volatile struct nvme_cqe *from = &nic->far.cq[nic->far_head & (nic->far.depth - 1)];
	uint32_t phase = (nic->far_head / nic->far.depth & 1) ^ 1, dw3;
	struct nvme_cqe response;

	if (nic->far_head == nic->far_tail)
		return false;
	dw3 = __atomic_load_n(&from->dw3, __ATOMIC_ACQUIRE);
	if ((dw3 >> 16 & 1) != phase)
		return false;
	/* neither a phase nor a queue */
	response = (struct nvme_cqe){ from->dw0, from->dw1, from->dw2 & 0xffff, dw3 & ~(1u << 16) };
	if (((load(nic->lanes->receive_record) - nic->taken) & INDEX) == 0)
		return false; /* no memory was given: it comes again */
	/* of as much memory as was given once; ticket 0's is the first */
	put(nic,
	    at(nic->lanes->messages, (nic->far_head & (2 * (uint64_t)nic->far.depth - 1)) * sizeof(response)),
	    &response, sizeof(response));
	nic->far_head++;
	ring(nic, nic->far.cq_doorbell, nic->far_head);
	/* Behind all that is the other end's: who sees that the last command has ended may close that. */
	complete(nic, &nic->lanes->received, &nic->received, WEIR_MLX5_RECEIVED, nic->taken);
	nic->taken++;
	return true;
}
