/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/nic.h: a queue pair whose controller is another machine's, and whose entries a NIC carries
 * there.
 *
 * Owns: what a NIC is given of a submission ring, and when an entry of a completion ring counts as there. The
 * rings are as they are for any controller: command @t of the submission ring is the NIC's block of ticket
 * @t, and message @p that comes becomes entry @p of the completion ring. There is memory for twice as many
 * messages as that has entries, which the host has given the NIC once and for all: so there is some while the
 * head waits to be told. The transport is NVMe/RDMA: data is named by a keyed SGL, a response has no phase
 * and no queue.
 */
#ifndef WEIR_CORE_NIC_H
#define WEIR_CORE_NIC_H

#include <weir/abi.h>
#include <weir/core/queue/mlx5.h>
#include <weir/nvme_fabrics.h>

/* Completions of what was sent that one call reads: bounds the work done under the reaper's lock. */
enum { WEIR_NIC_SENT_MOST = 64 };

WEIR_FN WEIR_GLOBAL struct weir_mlx5 *weir_nic_of(WEIR_GLOBAL struct weir_queue *queue)
{
	return weir_at(queue->nic, struct weir_mlx5, 0);
}

/* The data of @sqe as the other end reaches it: a keyed SGL in place of PRPs. Base 2.0, 4.1.2. */
WEIR_FN void weir_nic_address(WEIR_GLOBAL struct weir_queue *queue, WEIR_GLOBAL struct nvme_sqe *sqe)
{
	u32 cdw0 = sqe->cdw0;
	u64 bytes = cdw0 & (NVME_OPCODE_TO_CONTROLLER | NVME_OPCODE_FROM_CONTROLLER)
			    ? (u64)((sqe->cdw12 & 0xffff) + 1) << queue->block_log2
			    : 0;
	u64 key = bytes ? weir_nic_of(queue)->data_key : 0;

	sqe->cdw0 = cdw0 | NVME_PSDT_SGL;
	sqe->prp2 = bytes | key << 24 | (u64)NVME_SGL_KEYED << 56; /* 24 bits of length, 32 of key */
}

/**
 * weir_nic_put() - give the NIC the entries of tickets @before up to the one in front of @after
 * @queue: the queue
 * @lanes: all lanes of it call together, with the combiner's role; a few entries each
 *
 * The last one has a completion. Nothing is seen before weir_queue_ring(), in front of which they meet.
 */
WEIR_COLD void weir_nic_put(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 before, u64 after)
{
	WEIR_GLOBAL struct weir_mlx5 *mlx5 = weir_nic_of(queue);

	for (u64 ticket = before + weir_rank(lanes, weir_lane()); ticket < after;
	     ticket += weir_popcount(lanes)) {
		u64 at = ticket & (queue->depth - 1);

		weir_nic_address(queue, weir_at(queue->sq, struct nvme_sqe, at));
		weir_mlx5_put_send(mlx5, mlx5->first_send + (u32)ticket,
				   queue->sq + queue->bus_offset + at * sizeof(struct nvme_sqe),
				   NVME_CAPSULE_COMMAND_BYTES, mlx5->capsule_key,
				   ticket + 1 == after ? WEIR_MLX5_SIGNALED : 0);
	}
}

/**
 * weir_nic_ring() - weir_queue_ring() of such a pair
 * @doorbell: of the submission ring, or else of the completion ring
 * @position: the new tail or head
 */
WEIR_COLD void weir_nic_ring(WEIR_GLOBAL struct weir_queue *queue, weir_addr doorbell, u64 position)
{
	WEIR_GLOBAL struct weir_mlx5 *mlx5 = weir_nic_of(queue);

	if (doorbell == queue->sq_doorbell) {
		weir_mlx5_ring(mlx5, mlx5->first_send + (u32)position);
		return;
	}
	weir_fence_to_controller(); /* mlx5.C1: entries were read before they may be overwritten */
	weir_mlx5_took(&mlx5->received, mlx5->received.first + (u32)position);
	/* relaxed: likewise; the memory was given once, and is only counted */
	weir_store_u32_relaxed_sys(
		weir_at(mlx5->receive_record, weir_shared_u32, 0),
		weir_mlx5_word((mlx5->first_receive + (u32)position) & WEIR_MLX5_INDEX_MASK));
	weir_fence_to_controller(); /* mlx5.C2: before the next one's */
}

/* A completion with an error: the NIC has stopped. The host, whom it tells as well, declares the pair dead.
 */
WEIR_COLD void weir_nic_failed(WEIR_GLOBAL struct weir_mlx5 *mlx5, u32 syndrome)
{
	weir_store_u32_relaxed_sys(&mlx5->failed, syndrome + 1); /* relaxed: a figure for the host */
}

/**
 * weir_nic_reap_sent() - find out what has arrived at the other end
 * @queue: the queue; one lane, with the reaper's lock
 *
 * A response can be here before the completion of what it answers: an acknowledgement was lost. Until that
 * comes the NIC may read the command's block and its entry of the ring once more.
 */
WEIR_COLD void weir_nic_reap_sent(WEIR_GLOBAL struct weir_queue *queue)
{
	WEIR_GLOBAL struct weir_mlx5 *mlx5 = weir_nic_of(queue);
	struct weir_mlx5_completion completion;
	/* relaxed: the lock orders them */
	u32 begin = weir_load_u32_relaxed_dev(&mlx5->sent_read), read = begin;
	u32 blocks = weir_load_u32_relaxed_dev(&mlx5->sent_blocks);

	while (read - begin < WEIR_NIC_SENT_MOST &&
	       weir_mlx5_try_completion(&mlx5->sent, mlx5->sent.first + read, &completion)) {
		if (completion.kind == WEIR_MLX5_SENT) /* it and all in front of it */
			blocks += (completion.index + 1 - blocks) & WEIR_MLX5_INDEX_MASK;
		else
			weir_nic_failed(mlx5, completion.syndrome);
		read++;
	}
	if (read == begin)
		return;
	weir_store_u32_relaxed_dev(&mlx5->sent_read, read);
	weir_store_u32_relaxed_dev(&mlx5->sent_blocks, blocks);
	weir_fence_to_controller(); /* mlx5.C1 */
	weir_mlx5_took(&mlx5->sent, mlx5->sent.first + read);
	weir_fence_to_controller(); /* mlx5.C2 */
}

/** weir_nic_arrived() - is there a message for entry @position of the completion ring? */
WEIR_COLD u32 weir_nic_arrived(WEIR_GLOBAL struct weir_queue *queue, u64 position)
{
	WEIR_GLOBAL struct weir_mlx5 *mlx5 = weir_nic_of(queue);
	struct weir_mlx5_completion completion;

	if (!weir_mlx5_try_completion(&mlx5->received, mlx5->received.first + (u32)position, &completion))
		return 0;
	if (completion.kind == WEIR_MLX5_RECEIVED)
		return 1;
	weir_nic_failed(mlx5, completion.syndrome);
	return 0;
}

/* Has the NIC done with the command that a message with @dw3 answers? Both are counted modulo 2^16. */
WEIR_FN u32 weir_nic_is_sent(WEIR_GLOBAL struct weir_mlx5 *mlx5, u32 dw3)
{
	/* relaxed: the lock orders it */
	u32 behind = weir_load_u32_relaxed_dev(&mlx5->sent_blocks) - (mlx5->first_send + dw3);

	/* of a command under way it is 1 to the depth; half of the numbers are for those not sent */
	return (((behind - 1) & WEIR_MLX5_INDEX_MASK) >> 15) == 0;
}

/* The message of @position becomes an entry of the completion ring. Return: 1; 0: it is not to be seen yet.
 */
WEIR_FN u32 weir_nic_post(WEIR_GLOBAL struct weir_queue *queue, WEIR_GLOBAL struct weir_mlx5 *mlx5,
			  u64 position)
{
	u32 at = (u32)position & (2 * queue->depth - 1), phase = (u32)(~(position >> queue->depth_log2)) & 1;
	WEIR_GLOBAL struct nvme_cqe *message = weir_at(mlx5->messages, struct nvme_cqe, at), *entry;
	u32 dw3;

	if (!weir_nic_arrived(queue, position))
		return 0;
	/* relaxed, as all of these: mlx5.C0 came before */
	dw3 = weir_load_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&message->dw3);
	if (!weir_nic_is_sent(mlx5, dw3))
		return 0;
	entry = weir_at(queue->cq, struct nvme_cqe, at & (queue->depth - 1));
	weir_store_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&entry->dw0,
				   weir_load_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&message->dw0));
	/* a response does not name its queue: it came by this pair's connection */
	weir_store_u32_relaxed_sys((WEIR_GLOBAL weir_shared_u32 *)&entry->dw2, queue->id << 16);
	/* release: doorbell.C1: the rest of the entry, and the data, for whoever has the lock next */
	weir_store_u32_release_sys((WEIR_GLOBAL weir_shared_u32 *)&entry->dw3,
				   (dw3 & ~((u32)1 << 16)) | phase << 16);
	return 1;
}

/**
 * weir_nic_receive() - messages that came become entries of the completion ring, from position @head on
 * @queue: the queue
 * @lanes: all lanes of it call together, with the reaper's lock; a few messages each
 *
 * A message stays where it is as long as the command that it answers may be sent once more. Whoever calls
 * lets all lanes meet before entries are read.
 */
WEIR_FN void weir_nic_receive(WEIR_GLOBAL struct weir_queue *queue, u64 lanes, u64 head)
{
	WEIR_GLOBAL struct weir_mlx5 *mlx5 = weir_nic_of(queue);
	u64 position = head + weir_rank(lanes, weir_lane());

	if (weir_elected(lanes))
		weir_nic_reap_sent(queue);
	weir_reconverge();
	weir_wave_sync(
		lanes); /* what the elected lane acquired at cq.R0, and read of the NIC, is every lane's */
	while (position - head < queue->depth && weir_nic_post(queue, mlx5, position))
		position += weir_popcount(lanes);
	weir_reconverge();
}

#endif
