/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/mlx5.h: the queues of NICs of the mlx5 family: lanes write work-queue entries, ring the NIC, and
 * read its completions, without a thread of the host.
 *
 * Owns: the layouts of entries, and the order in which a NIC is told. Words of a NIC are big-endian; here
 * they are put together from the device's own. Layouts: infiniband/mlx5dv.h of rdma-core; a test compares the
 * bytes with what that makes. It has met no NIC. What a queue pair does with it is in core/queue/nic.h.
 *
 * Who may call: the combiner of a queue pair for what is sent, its reaper for what has completed (sq.h,
 * cq.h).
 */
#ifndef WEIR_CORE_MLX5_H
#define WEIR_CORE_MLX5_H

#include <weir/port.h>

enum {
	WEIR_MLX5_BLOCK_BYTES = 64, /* of a send queue; entries begin at one, and are counted in them */
	WEIR_MLX5_SEGMENT_BYTES = 16,
	WEIR_MLX5_SEND = 0x0a,
	WEIR_MLX5_SIGNALED = 2 << 2, /* an entry that has a completion of its own */
	WEIR_MLX5_COMPLETION_BYTES = 64,
	WEIR_MLX5_INDEX_MASK = 0xffff,        /* of a block, as the NIC has it */
	WEIR_MLX5_COMPLETION_MASK = 0xffffff, /* of a completion */
};

/* Kinds of a completion. */
enum {
	WEIR_MLX5_SENT = 0,
	WEIR_MLX5_RECEIVED = 2,
	WEIR_MLX5_RECEIVED_INVALIDATED = 4,
	WEIR_MLX5_SEND_FAILED = 13,
	WEIR_MLX5_RECEIVE_FAILED = 14,
	WEIR_MLX5_NONE = 15, /* as the host leaves them */
};

/**
 * struct weir_mlx5_cq - a completion queue of a NIC
 * @entries: ring of 2^@log2
 * @record: word of its doorbell record: the entries that were read
 * @first: how many the host read before lanes came
 */
struct weir_mlx5_cq {
	weir_addr entries;
	weir_addr record;
	u32 log2;
	u32 first;
};

/**
 * struct weir_mlx5 - a queue pair of a NIC, where lanes reach it
 * @sends: ring of 2^@send_log2 blocks, as many as the submission ring has entries at least
 * @send_record: word of the doorbell record: the blocks that were written
 * @receive_record: the other word of it: the memory that was given to messages that come
 * @doorbell: the NIC's register, 8 bytes
 * @messages: memory for those that come, 16 bytes each, twice as many as the completion ring has entries;
 *            that of ticket 0 first
 * @sent: completions of what was sent
 * @received: completions of what came
 * @send_log2: see @sends
 * @first_send: block of ticket 0, modulo 2^32
 * @first_receive: what @receive_record is while the completion ring's head is 0, modulo 2^32
 * @number: of the queue pair
 * @capsule_key: by which the NIC reads the submission ring
 * @data_key: by which the other end reaches the data of every command
 * @sent_read: how many of @sent were read; the reaper's, as the next one
 * @sent_blocks: up to which block everything has arrived, modulo 2^32
 * @failed: 0; or the syndrome of a completion with an error, plus one: the NIC carries nothing any more
 */
struct weir_mlx5 {
	weir_addr sends;
	weir_addr send_record;
	weir_addr receive_record;
	weir_addr doorbell;
	weir_addr messages;
	struct weir_mlx5_cq sent;
	struct weir_mlx5_cq received;
	u32 send_log2;
	u32 first_send;
	u32 first_receive;
	u32 number;
	u32 capsule_key;
	u32 data_key;
	weir_shared_u32 sent_read;
	weir_shared_u32 sent_blocks;
	weir_shared_u32 failed;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_mlx5, 128);

/** struct weir_mlx5_completion - one that was read; @index: of the entry's block, or how many were received;
 * @syndrome: of one that failed */
struct weir_mlx5_completion {
	u32 kind;
	u32 index;
	u32 syndrome;
};

/** weir_mlx5_word() - a word of the NIC's from one of the device's, or back; devices are little-endian */
WEIR_FN u32 weir_mlx5_word(u32 value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

/* The first word of the send at block @index. */
WEIR_FN u32 weir_mlx5_head(u32 index)
{
	return weir_mlx5_word((index & WEIR_MLX5_INDEX_MASK) << 8 | WEIR_MLX5_SEND);
}

/**
 * weir_mlx5_put_send() - a message from registered memory, such as an entry of the submission ring
 * @mlx5: queues
 * @index: of its block, counted from the queue's making on
 * @data: @bytes of it, under @key of the NIC's
 * @flags: WEIR_MLX5_SIGNALED or 0
 *
 * Any lane; the block is free. Nothing is seen of it before weir_mlx5_ring().
 */
WEIR_FN void weir_mlx5_put_send(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, weir_addr data,
				u32 bytes, u32 key, u32 flags)
{
	u32 block = index & (((u32)1 << mlx5->send_log2) - 1);
	WEIR_GLOBAL u32 *entry = weir_at(mlx5->sends + (u64)block * WEIR_MLX5_BLOCK_BYTES, u32, 0);

	/* the control segment: index and what it is; queue pair and the segments; its signature and the
	 * stream are 0 */
	entry[0] = weir_mlx5_head(index);
	entry[1] = weir_mlx5_word(mlx5->number << 8 | 2);
	entry[2] = weir_mlx5_word(flags);
	entry[3] = 0;
	/* the segment of data */
	entry[4] = weir_mlx5_word(bytes);
	entry[5] = weir_mlx5_word(key);
	entry[6] = weir_mlx5_word((u32)(data >> 32));
	entry[7] = weir_mlx5_word((u32)data);
}

/**
 * weir_mlx5_ring() - have the NIC carry out what was put
 * @next: the block behind the last entry, which has one block
 *
 * Entries before the record, the record before the register: a NIC that has heard the doorbell may read
 * further entries by the record alone. The register takes the entry's first 8 bytes; two stores of 4, which
 * may come as two writes, are what 32-bit hosts send, too.
 */
WEIR_FN void weir_mlx5_ring(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 next)
{
	weir_fence_to_controller(); /* mlx5.D0: entries before the record */
	/* relaxed: the fences have the order */
	weir_store_u32_relaxed_sys(weir_at(mlx5->send_record, weir_shared_u32, 0),
				   weir_mlx5_word(next & WEIR_MLX5_INDEX_MASK));
	weir_fence_to_controller(); /* mlx5.D1: the record before the register */
	weir_mmio_store_u32(mlx5->doorbell, weir_mlx5_head(next - 1));
	weir_mmio_store_u32(mlx5->doorbell + 4, weir_mlx5_word(mlx5->number << 8 | 2));
	weir_fence_to_controller(); /* mlx5.D2: before the next one's */
}

WEIR_FN u32 weir_mlx5_load(WEIR_GLOBAL const struct weir_mlx5_cq *cq, u32 index, u32 at)
{
	u32 entry = index & (((u32)1 << cq->log2) - 1);

	/* relaxed: mlx5.C0 orders it, or it is what that waits for */
	return weir_load_u32_relaxed_sys(
		weir_at(cq->entries + (u64)entry * WEIR_MLX5_COMPLETION_BYTES + at, weir_shared_u32, 0));
}

/**
 * weir_mlx5_try_completion() - read a completion, if it is there
 * @cq: the queue
 * @index: how many were read before, from the queue's making on
 * @out: what it says
 *
 * The lowest bit of an entry's last byte says on which lap the NIC wrote it. Return: 0: it is not there.
 */
WEIR_FN u32 weir_mlx5_try_completion(WEIR_GLOBAL const struct weir_mlx5_cq *cq, u32 index,
				     struct weir_mlx5_completion *out)
{
	u32 end = weir_mlx5_word(weir_mlx5_load(cq, index, 60)), lap = index >> cq->log2 & 1;

	out->kind = end >> 4 & 0xf;
	if (out->kind == WEIR_MLX5_NONE || (end & 1) != lap)
		return 0;
	weir_fence_from_controller(); /* mlx5.C0: pairs with the NIC's write of the last byte: the rest */
	out->index = end >> 16;
	out->syndrome = out->kind == WEIR_MLX5_SEND_FAILED || out->kind == WEIR_MLX5_RECEIVE_FAILED
				? weir_mlx5_word(weir_mlx5_load(cq, index, 52)) & 0xff
				: 0;
	return 1;
}

/** weir_mlx5_took() - give the NIC the entries before @index again; they have been read, and a fence was
 * since */
WEIR_FN void weir_mlx5_took(WEIR_GLOBAL const struct weir_mlx5_cq *cq, u32 index)
{
	/* relaxed: the caller's fence is mlx5.C1 */
	weir_store_u32_relaxed_sys(weir_at(cq->record, weir_shared_u32, 0),
				   weir_mlx5_word(index & WEIR_MLX5_COMPLETION_MASK));
}

#endif
