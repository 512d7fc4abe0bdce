/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/mlx5.h: the direct channel for NICs of the mlx5 family: lanes write work-queue entries, ring the
 * NIC, and read its completions, without a thread of the host.
 *
 * Owns: the layouts of entries, and the order in which a NIC is told. Words of a NIC are big-endian; here
 * they are put together from the device's own. Layouts: infiniband/mlx5dv.h of rdma-core; a test compares the
 * bytes with what that makes. No storage uses it yet, and it has met no NIC.
 *
 * Who may call: one lane at a time for the send queue, and one for the completion queue, as the combiner and
 * the reaper of a queue pair are (sq.h, cq.h).
 */
#ifndef WEIR_CORE_MLX5_H
#define WEIR_CORE_MLX5_H

#include <weir/port.h>

enum {
	WEIR_MLX5_BLOCK_BYTES = 64, /* of a send queue; entries begin at one, and are counted in them */
	WEIR_MLX5_SEGMENT_BYTES = 16,
	WEIR_MLX5_CAPSULE_BYTES = 64, /* an NVMe command */
	WEIR_MLX5_SEND_BLOCKS = 1,
	WEIR_MLX5_INLINE_BLOCKS = 2,
	WEIR_MLX5_RDMA_WRITE = 0x08,
	WEIR_MLX5_SEND = 0x0a,
	WEIR_MLX5_RDMA_READ = 0x10,
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
 * struct weir_mlx5 - queues of a NIC, where lanes reach them
 * @sends: ring of 2^@send_log2 blocks
 * @send_record: word of the doorbell record: the blocks that were written
 * @doorbell: the NIC's register, 8 bytes
 * @completions: ring of 2^@completion_log2 entries
 * @completion_record: word of its doorbell record: the entries that were read
 * @number: of the queue pair
 */
struct weir_mlx5 {
	weir_addr sends;
	weir_addr send_record;
	weir_addr doorbell;
	weir_addr completions;
	weir_addr completion_record;
	u32 send_log2;
	u32 completion_log2;
	u32 number;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_mlx5, 56);

/** struct weir_mlx5_completion - one that was read; @index: of the entry's block, or how many were received;
 * @syndrome: of one that failed */
struct weir_mlx5_completion {
	u32 kind;
	u32 index;
	u32 bytes;
	u32 syndrome;
};

/** weir_mlx5_word() - a word of the NIC's from one of the device's, or back; devices are little-endian */
WEIR_FN u32 weir_mlx5_word(u32 value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

/* Word @at of the entry that begins at block @index; an entry may go around the ring. */
WEIR_FN WEIR_GLOBAL u32 *weir_mlx5_at(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, u32 at)
{
	u32 words = WEIR_MLX5_BLOCK_BYTES / 4, mask = ((u32)1 << mlx5->send_log2) * words - 1;

	return weir_at(mlx5->sends, u32, (index * words + at) & mask);
}

/* The control segment: @segments of 16 bytes, this one included. */
WEIR_FN void weir_mlx5_control(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, u32 opcode, u32 segments,
			       u32 flags)
{
	*weir_mlx5_at(mlx5, index, 0) = weir_mlx5_word((index & WEIR_MLX5_INDEX_MASK) << 8 | opcode);
	*weir_mlx5_at(mlx5, index, 1) = weir_mlx5_word(mlx5->number << 8 | segments);
	*weir_mlx5_at(mlx5, index, 2) = weir_mlx5_word(flags); /* its signature, and the stream, are 0 */
	*weir_mlx5_at(mlx5, index, 3) = 0;
}

/* A segment of data, from word @at of the entry on. */
WEIR_FN void weir_mlx5_data(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, u32 at, weir_addr data,
			    u32 bytes, u32 key)
{
	*weir_mlx5_at(mlx5, index, at) = weir_mlx5_word(bytes);
	*weir_mlx5_at(mlx5, index, at + 1) = weir_mlx5_word(key);
	*weir_mlx5_at(mlx5, index, at + 2) = weir_mlx5_word((u32)(data >> 32));
	*weir_mlx5_at(mlx5, index, at + 3) = weir_mlx5_word((u32)data);
}

/**
 * weir_mlx5_put_send() - a message from registered memory, such as an entry of the submission ring
 * @mlx5: queues
 * @index: of its block, counted from the queue's making on; WEIR_MLX5_SEND_BLOCKS
 * @data: @bytes of it, under @key of the NIC's
 * @flags: WEIR_MLX5_SIGNALED or 0
 *
 * The block is free; nothing is seen of it before weir_mlx5_ring().
 */
WEIR_FN void weir_mlx5_put_send(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, weir_addr data,
				u32 bytes, u32 key, u32 flags)
{
	weir_mlx5_control(mlx5, index, WEIR_MLX5_SEND, 2, flags);
	weir_mlx5_data(mlx5, index, 4, data, bytes, key);
}

/**
 * weir_mlx5_put_inline() - the same of a capsule that the entry carries itself: the NIC reads it once
 * @capsule: WEIR_MLX5_CAPSULE_BYTES; the entry takes WEIR_MLX5_INLINE_BLOCKS
 */
WEIR_FN void weir_mlx5_put_inline(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, weir_addr capsule,
				  u32 flags)
{
	u32 words = WEIR_MLX5_CAPSULE_BYTES / 4;

	weir_mlx5_control(mlx5, index, WEIR_MLX5_SEND, 1 + (WEIR_MLX5_CAPSULE_BYTES + 4 + 15) / 16, flags);
	*weir_mlx5_at(mlx5, index, 4) = weir_mlx5_word((u32)1 << 31 | WEIR_MLX5_CAPSULE_BYTES);
	for (u32 i = 0; i < words; i++)
		*weir_mlx5_at(mlx5, index, 5 + i) = *weir_at(capsule, u32, i);
}

/**
 * weir_mlx5_put_transfer() - a write to, or a read of, memory of the other end
 * @opcode: WEIR_MLX5_RDMA_WRITE or WEIR_MLX5_RDMA_READ
 * @there: under @there_key of the other end's
 *
 * As weir_mlx5_put_send().
 */
WEIR_FN void weir_mlx5_put_transfer(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, u32 opcode,
				    u64 there, u32 there_key, weir_addr data, u32 bytes, u32 key, u32 flags)
{
	weir_mlx5_control(mlx5, index, opcode, 3, flags);
	*weir_mlx5_at(mlx5, index, 4) = weir_mlx5_word((u32)(there >> 32));
	*weir_mlx5_at(mlx5, index, 5) = weir_mlx5_word((u32)there);
	*weir_mlx5_at(mlx5, index, 6) = weir_mlx5_word(there_key);
	*weir_mlx5_at(mlx5, index, 7) = 0;
	weir_mlx5_data(mlx5, index, 8, data, bytes, key);
}

/**
 * weir_mlx5_ring() - have the NIC carry out what was put
 * @last: where the last entry begins
 * @next: the block behind it
 *
 * Entries before the record, the record before the register: a NIC that has heard the doorbell may read
 * further entries by the record alone. The register takes the entry's first 8 bytes; two stores of 4, which
 * may come as two writes, are what 32-bit hosts send, too.
 */
WEIR_FN void weir_mlx5_ring(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 last, u32 next)
{
	weir_fence_to_controller(); /* mlx5.D0: entries before the record */
	/* relaxed: the fences have the order */
	weir_store_u32_relaxed_sys(weir_at(mlx5->send_record, weir_shared_u32, 0),
				   weir_mlx5_word(next & WEIR_MLX5_INDEX_MASK));
	weir_fence_to_controller(); /* mlx5.D1: the record before the register */
	weir_mmio_store_u32(mlx5->doorbell, *weir_mlx5_at(mlx5, last, 0));
	weir_mmio_store_u32(mlx5->doorbell + 4, *weir_mlx5_at(mlx5, last, 1));
	weir_fence_to_controller(); /* mlx5.D2: before the next one's */
}

WEIR_FN u32 weir_mlx5_load(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index, u32 at)
{
	u32 entry = index & (((u32)1 << mlx5->completion_log2) - 1);

	/* relaxed: mlx5.C0 orders it, or it is what that waits for */
	return weir_load_u32_relaxed_sys(weir_at(
		mlx5->completions + (u64)entry * WEIR_MLX5_COMPLETION_BYTES + at, weir_shared_u32, 0));
}

/**
 * weir_mlx5_try_completion() - read completion @index, if it is there
 * @index: how many were read before, from the queue's making on
 * @out: what it says
 *
 * The lowest bit of an entry's last byte says on which lap the NIC wrote it. Return: 0: it is not there.
 */
WEIR_FN u32 weir_mlx5_try_completion(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index,
				     struct weir_mlx5_completion *out)
{
	u32 end = weir_mlx5_word(weir_mlx5_load(mlx5, index, 60)), lap = index >> mlx5->completion_log2 & 1;

	out->kind = end >> 4 & 0xf;
	if (out->kind == WEIR_MLX5_NONE || (end & 1) != lap)
		return 0;
	weir_fence_from_controller(); /* mlx5.C0: pairs with the NIC's write of the last byte: the rest */
	out->index = end >> 16;
	out->bytes = weir_mlx5_word(weir_mlx5_load(mlx5, index, 44));
	out->syndrome = out->kind == WEIR_MLX5_SEND_FAILED || out->kind == WEIR_MLX5_RECEIVE_FAILED
				? weir_mlx5_word(weir_mlx5_load(mlx5, index, 52)) & 0xff
				: 0;
	return 1;
}

/** weir_mlx5_took() - give the NIC the entries before @index again; they have been read */
WEIR_FN void weir_mlx5_took(WEIR_GLOBAL const struct weir_mlx5 *mlx5, u32 index)
{
	weir_fence_to_controller(); /* mlx5.C1: entries were read before they may be overwritten */
	weir_store_u32_relaxed_sys(weir_at(mlx5->completion_record, weir_shared_u32, 0),
				   weir_mlx5_word(index & WEIR_MLX5_COMPLETION_MASK)); /* relaxed: C1 */
}

#endif
