/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller.h: an NVMe controller made of lanes: the other side of the queue pairs.
 *
 * Owns: fetching, moving data between buffers and a medium that lanes can reach,
 * posting. Reads, writes and flushes only; the host's virtual controller answers
 * admin commands. Each queue pair is one wave's, so nothing in its state is shared.
 * NVM Express Base 2.0, section 3.3 (queues); NVM Command Set 1.0, section 3.2.
 */
#ifndef WEIR_KERNELS_CONTROLLER_H
#define WEIR_KERNELS_CONTROLLER_H

#include <weir/abi.h>

/**
 * struct weir_controller_queue - one queue pair as the controller sees it
 * @sq: struct nvme_sqe[depth]
 * @cq: struct nvme_cqe[depth]
 * @sq_doorbell: u32
 * @cq_doorbell: u32
 * @depth: power of two
 * @depth_log2: its logarithm
 * @id: NVMe queue identifier
 * @head: commands fetched, modulo 2^32
 */
struct weir_controller_queue {
	weir_addr sq;
	weir_addr cq;
	weir_addr sq_doorbell;
	weir_addr cq_doorbell;
	u32 depth;
	u32 depth_log2;
	u32 id;
	u32 head;
	u64 reserved[2];
};

WEIR_ASSERT_SIZE(struct weir_controller_queue, 64);

/**
 * struct weir_controller_args - a controller
 * @queues: struct weir_controller_queue[queue_count]
 * @medium: the bytes, in memory of the device or of the host
 * @started: weir_shared_u32, 1 once it runs; the host's
 * @stop: weir_shared_u32 in the device's memory, not 0: end; the host sets it
 * @blocks: capacity
 * @queue_count: queue pairs
 * @block_log2: block size
 * @no_data: commands end without any data moved: what the queues alone can do
 */
struct weir_controller_args {
	weir_addr queues;
	weir_addr medium;
	weir_addr started;
	weir_addr stop;
	u64 blocks;
	u32 queue_count;
	u32 block_log2;
	u32 no_data;
	u32 reserved;
};

/**
 * struct weir_controller_command - what a lane fetched
 * @prp1, @prp2: where its data is
 * @offset: byte of the medium
 * @bytes: length, 0 if there is nothing to move
 * @write: from the buffer to the medium
 * @cid: command identifier
 * @status: status field of its completion
 */
struct weir_controller_command {
	u64 prp1;
	u64 prp2;
	u64 offset;
	u32 bytes;
	u32 write;
	u32 cid;
	u32 status;
};

WEIR_FN struct weir_controller_command weir_controller_decide(WEIR_GLOBAL struct weir_controller_args *args,
							      WEIR_GLOBAL struct nvme_sqe *sqe)
{
	u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10;
	u64 blocks = (u64)(sqe->cdw12 & 0xffff) + 1;
	u32 opcode = sqe->cdw0 & 0xff;
	struct weir_controller_command command;

	command.prp1 = sqe->prp1;
	command.prp2 = sqe->prp2;
	command.offset = lba << args->block_log2;
	command.bytes = 0;
	command.write = opcode == NVME_OPCODE_WRITE;
	command.cid = sqe->cdw0 >> 16;
	command.status = NVME_STATUS_SUCCESS;
	if (opcode == NVME_OPCODE_FLUSH)
		return command;
	if (opcode != NVME_OPCODE_READ && opcode != NVME_OPCODE_WRITE)
		command.status = NVME_STATUS_INVALID_OPCODE | NVME_STATUS_DNR;
	else if (lba >= args->blocks || blocks > args->blocks - lba)
		command.status = NVME_STATUS_LBA_OUT_OF_RANGE | NVME_STATUS_DNR;
	else if (!args->no_data)
		command.bytes = (u32)(blocks << args->block_log2);
	return command;
}

/* All lanes together copy @bytes, a multiple of 8: up to eight words of each in flight. */
WEIR_FN void weir_controller_copy(weir_addr to, weir_addr from, u32 bytes, u32 rank, u32 width)
{
	u32 step = width * 8, at = rank * 8;
	u64 word[8];

	for (; at + 7 * step < bytes; at += 8 * step) {
		for (u32 i = 0; i < 8; i++)
			word[i] = weir_data_load_u64(from + at + i * step);
		for (u32 i = 0; i < 8; i++)
			*weir_at(to + at + i * step, u64, 0) = word[i];
	}
	for (; at < bytes; at += step)
		*weir_at(to + at, u64, 0) = weir_data_load_u64(from + at);
}

/* Page @page of a command's buffer. Base 2.0, section 4.1.1. */
WEIR_FN weir_addr weir_controller_page(u64 prp1, u64 prp2, u32 page, u32 pages)
{
	if (page == 0)
		return prp1;
	return pages == 2 ? prp2 : *weir_at(prp2, u64, page - 1);
}

/* All lanes together carry out one command. */
WEIR_FN void weir_controller_move(WEIR_GLOBAL struct weir_controller_args *args, u64 prp1, u64 prp2, u64 offset,
				  u32 bytes, u32 write, u32 rank, u32 width)
{
	u32 inside = (u32)(prp1 & (NVME_PAGE_BYTES - 1));
	u32 pages = (inside + bytes + NVME_PAGE_BYTES - 1) >> NVME_PAGE_LOG2, done = 0;

	for (u32 page = 0; page < pages; page++) {
		weir_addr buffer = weir_controller_page(prp1, prp2, page, pages);
		u32 part = NVME_PAGE_BYTES - (page ? 0 : inside);
		weir_addr medium = args->medium + offset + done;

		if (part > bytes - done)
			part = bytes - done;
		weir_controller_copy(write ? medium : buffer, write ? buffer : medium, part, rank, width);
		done += part;
	}
}

WEIR_FN void weir_controller_post(WEIR_GLOBAL struct weir_controller_queue *queue, u32 position, u32 head, u32 cid,
				  u32 status)
{
	WEIR_GLOBAL struct nvme_cqe *cqe = weir_at(queue->cq, struct nvme_cqe, position & (queue->depth - 1));
	u32 phase = (~(position >> queue->depth_log2)) & 1;

	cqe->dw0 = 0;
	cqe->dw1 = 0;
	cqe->dw2 = (head & (queue->depth - 1)) | queue->id << 16;
	/* C1: pairs with the reaper's load: data and the rest of the entry before the phase */
	weir_store_u32_release_sys((WEIR_GLOBAL weir_shared_u32 *)&cqe->dw3, cid | phase << 16 | status << 17);
}

/* How many commands may be fetched now: announced, and with room for their completions. */
WEIR_FN u32 weir_controller_ready(WEIR_GLOBAL struct weir_controller_queue *queue, u64 lanes, u32 width)
{
	u32 mask = queue->depth - 1;
	u32 ready = 0, room = 0;

	if (weir_leader(lanes)) {
		/* D1: pairs with the combiner's doorbell; D2: with the reaper's */
		u32 tail = weir_load_u32_acquire_sys(weir_at(queue->sq_doorbell, weir_shared_u32, 0));
		u32 read = weir_load_u32_acquire_sys(weir_at(queue->cq_doorbell, weir_shared_u32, 0));

		ready = (tail - queue->head) & mask;
		room = mask - ((queue->head - read) & mask);
		ready = ready < room ? ready : room;
	}
	ready = (u32)weir_broadcast_u64(lanes, ready);
	return ready < width ? ready : width;
}

/**
 * weir_controller_serve() - one turn of one queue: fetch, move, post
 * @args: the controller
 * @queue: the queue, this wave's own
 * @lanes: all lanes of a whole wave
 *
 * Return: commands served.
 */
WEIR_FN u32 weir_controller_serve(WEIR_GLOBAL struct weir_controller_args *args,
				  WEIR_GLOBAL struct weir_controller_queue *queue, u64 lanes)
{
	u32 width = weir_popcount(lanes), rank = weir_rank(lanes, weir_lane());
	u32 count = weir_controller_ready(queue, lanes, width), head = queue->head;
	struct weir_controller_command command;

	if (count == 0)
		return 0;
	weir_wave_sync(lanes); /* what the leader acquired at D1 and D2 is every lane's */
	command = weir_controller_decide(
		args, weir_at(queue->sq, struct nvme_sqe, (head + (rank < count ? rank : 0)) & (queue->depth - 1)));
	for (u32 i = 0; i < count && !args->no_data; i++) {
		u64 shape = weir_shuffle_u64(lanes, (u64)command.write << 32 | command.bytes, i);
		u64 prp1 = weir_shuffle_u64(lanes, command.prp1, i), prp2 = weir_shuffle_u64(lanes, command.prp2, i);
		u64 offset = weir_shuffle_u64(lanes, command.offset, i);

		weir_controller_move(args, prp1, prp2, offset, (u32)shape, (u32)(shape >> 32), rank, width);
	}
	weir_wave_sync(lanes); /* every lane's part of the data before anybody's phase */
	if (rank < count)
		weir_controller_post(queue, head + rank, head + count, command.cid, command.status);
	if (weir_leader(lanes))
		queue->head = head + count;
	weir_wave_sync(lanes); /* the new head before the next turn */
	return count;
}

#endif
