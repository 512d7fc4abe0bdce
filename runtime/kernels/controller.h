/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller.h: an NVMe controller made of lanes: the other side of the queue pairs.
 *
 * Owns: claiming and fetching commands, moving data between buffers and a medium that
 * lanes can reach, posting. Reads, writes and flushes only; the host's virtual
 * controller answers admin commands. controller_timed.h adds a timing model and faults.
 * NVM Express Base 2.0, section 3.3 (queues); NVM Command Set 1.0, section 3.2.
 *
 * Any number of waves serve a queue pair, and a wave any number of queue pairs. A wave
 * takes a piece of what was announced with one compare-and-swap of the queue's head, and
 * its completions belong at the same places of the completion ring as its commands had
 * in the submission ring. So completions of different waves appear out of order; whoever
 * reads the ring takes the unbroken prefix, as NVMe says. Rings, doorbells and the words
 * below are the device's own, hence `dev` scope; the medium is nobody else's either.
 */
#ifndef WEIR_KERNELS_CONTROLLER_H
#define WEIR_KERNELS_CONTROLLER_H

#include <weir/abi.h>
#include <weir/core/queue/copy.h>

/* Lanes of the largest blocks its kernels are built for, and the data of a claim if nobody says otherwise. */
enum { WEIR_CONTROLLER_BLOCK_LANES = 768, WEIR_CONTROLLER_CLAIM_BYTES = 32768 };

/**
 * struct weir_controller_queue - one queue pair as the controller sees it
 * @sq: struct nvme_sqe[depth]
 * @cq: struct nvme_cqe[depth]
 * @doorbells: u32: tail of the submission queue, then head of the completion queue
 * @later: struct weir_controller_later; 0 without timing and faults
 * @depth_log2: logarithm of the depth
 * @id: NVMe queue identifier
 * @head: 31:0 commands claimed, 63:32 entries of the completion ring promised beyond
 *        those, by faults; both modulo 2^32. Moved by compare-and-swap
 *
 * The first half never changes.
 */
struct weir_controller_queue {
	weir_addr sq;
	weir_addr cq;
	weir_addr doorbells;
	weir_addr later;
	u32 depth_log2;
	u32 id;
	u64 reserved[3];
	weir_shared_u64 head __attribute__((aligned(64)));
	u64 reserved_head[7];
} __attribute__((aligned(64)));

WEIR_ASSERT_SIZE(struct weir_controller_queue, 128);
WEIR_ASSERT_OFFSET(struct weir_controller_queue, head, 64);

/**
 * struct weir_controller_args - a controller
 * @queues: struct weir_controller_queue[queue_count]
 * @medium: the bytes, in memory of the device or of the host
 * @started: weir_shared_u32, 1 once it runs; the host's
 * @stop: weir_shared_u32 in the device's memory, not 0: end; the host sets it
 * @rate: weir_shared_u64 with @iops: when the next turn is, in 64ths of a nanosecond
 * @faults: struct weir_fault_row[fault_count]
 * @blocks: capacity
 * @latency_ns: least time from fetch to completion
 * @iops: most completions per second; 0: no limit
 * @claim_bytes: data a wave takes upon itself at once, or one command that has more
 * @queue_count: queue pairs
 * @block_log2: block size
 * @claim: commands a wave takes at once
 * @share_log2: and no more than this part of what is there, so that others have some
 * @rest: pauses of a wave that keeps finding nothing
 * @no_data: commands end without any data moved: what the queues alone can do
 * @fault_count: rows of @faults
 */
struct weir_controller_args {
	weir_addr queues;
	weir_addr medium;
	weir_addr started;
	weir_addr stop;
	weir_addr rate;
	weir_addr faults;
	u64 blocks;
	u64 latency_ns;
	u64 iops;
	u64 claim_bytes;
	u32 queue_count;
	u32 block_log2;
	u32 claim;
	u32 share_log2;
	u32 rest;
	u32 no_data;
	u32 fault_count;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_controller_args, 112);

/**
 * struct weir_controller_view - what one turn of a queue needs that never changes
 *
 * All of it is loaded at once, before the first word that does change: what is loaded
 * after an acquire comes from far away.
 */
struct weir_controller_view {
	WEIR_GLOBAL struct weir_controller_queue *queue;
	weir_addr sq;
	weir_addr cq;
	weir_addr doorbells;
	weir_addr medium;
	u64 blocks;
	u64 claim_bytes;
	u32 depth_log2;
	u32 id;
	u32 block_log2;
	u32 no_data;
	u32 claim;
	u32 share_log2;
};

/**
 * struct weir_controller_command - what a lane fetched
 * @prp1, @prp2: where its data is
 * @lba: first block
 * @bytes: length, 0 if there is nothing to move
 * @cdw0: opcode (7:0), command identifier (31:16)
 * @blocks: length in blocks, if it names any
 * @status: status field of its completion
 */
struct weir_controller_command {
	u64 prp1;
	u64 prp2;
	u64 lba;
	u32 bytes;
	u32 cdw0;
	u32 blocks;
	u32 status;
};

/**
 * struct weir_controller_claim - a piece of a queue that one wave has
 * @first: number of its first command, modulo 2^32
 * @count: commands; 0: another wave was faster
 * @command: this lane's, in lanes below @count; the others have nothing to move
 */
struct weir_controller_claim {
	u32 first;
	u32 count;
	struct weir_controller_command command;
};

WEIR_FN struct weir_controller_view weir_controller_poll(WEIR_GLOBAL struct weir_controller_args *args,
							 weir_addr address)
{
	WEIR_GLOBAL struct weir_controller_queue *queue = weir_at(address, struct weir_controller_queue, 0);
	struct weir_controller_view view;

	view.queue = queue;
	view.sq = queue->sq;
	view.cq = queue->cq;
	view.doorbells = queue->doorbells;
	view.medium = args->medium;
	view.blocks = args->blocks;
	view.claim_bytes = args->claim_bytes;
	view.depth_log2 = queue->depth_log2;
	view.id = queue->id;
	view.block_log2 = args->block_log2;
	view.no_data = args->no_data;
	view.claim = args->claim;
	view.share_log2 = args->share_log2;
	return view;
}

WEIR_FN u32 weir_controller_mask(struct weir_controller_view view)
{
	return ((u32)1 << view.depth_log2) - 1;
}

/* What is wrong with a command, or 0. */
WEIR_FN u32 weir_controller_check(struct weir_controller_view view, u32 opcode, u64 lba, u32 blocks, u64 prp1)
{
	if (opcode != NVME_OPCODE_READ && opcode != NVME_OPCODE_WRITE)
		return NVME_STATUS_INVALID_OPCODE | NVME_STATUS_DNR;
	if (lba >= view.blocks || blocks > view.blocks - lba)
		return NVME_STATUS_LBA_OUT_OF_RANGE | NVME_STATUS_DNR;
	if (prp1 & 3)
		return NVME_STATUS_INVALID_PRP_OFFSET | NVME_STATUS_DNR;
	return NVME_STATUS_SUCCESS;
}

/*
 * The command at @address. By data loads, since it may be another's by now: what was
 * read is believed only if the queue's head has not moved.
 */
WEIR_FN struct weir_controller_command weir_controller_fetch(struct weir_controller_view view,
							     weir_addr address)
{
	struct weir_u128 middle = weir_data_load_u128(address + 32); /* prp2; cdw10 and cdw11 */
	struct weir_controller_command command;
	u32 opcode;

	command.cdw0 = weir_data_load_u32(address);
	command.prp1 = weir_data_load_u64(address + 24);
	command.blocks = (weir_data_load_u32(address + 48) & 0xffff) + 1;
	command.prp2 = middle.low;
	command.lba = middle.high;
	command.bytes = 0;
	command.status = NVME_STATUS_SUCCESS;
	opcode = command.cdw0 & 0xff;
	if (opcode == NVME_OPCODE_FLUSH)
		return command;
	command.status = weir_controller_check(view, opcode, command.lba, command.blocks, command.prp1);
	if (command.status == NVME_STATUS_SUCCESS && !view.no_data)
		command.bytes = command.blocks << view.block_log2;
	return command;
}

/*
 * How many commands may be fetched: announced, and with room for their completions.
 * Both doorbells were read after @head; if it is still the head when it is swapped, then
 * neither is further from it than the depth.
 */
WEIR_FN u32 weir_controller_ready(struct weir_controller_view view, u64 head, u32 tail, u32 read)
{
	u32 mask = weir_controller_mask(view), promised = (u32)head + (u32)(head >> 32);
	u32 ready = (tail - (u32)head) & mask, room = mask - ((promised - read) & mask);

	return ready < room ? ready : room;
}

/* How many of @ready to take: a share, so that other waves find some too. */
WEIR_FN u32 weir_controller_piece(struct weir_controller_view view, u32 ready)
{
	u32 piece = (ready + ((u32)1 << view.share_log2) - 1) >> view.share_log2;

	piece = piece < view.claim ? piece : view.claim;
	return piece < weir_lanes() ? piece : weir_lanes();
}

/* The queue's head, for all lanes, and before what they load next. */
WEIR_FN u64 weir_controller_head(struct weir_controller_view view, u64 lanes)
{
	/* controller.H0: the doorbells are loaded after it: one older than the head would look like a full
	 * ring */
	u64 head = weir_broadcast_u64(lanes,
				      weir_elected(lanes) ? weir_load_u64_acquire_dev(&view.queue->head) : 0);

	weir_wave_sync(lanes);
	return head;
}

/* weir_controller_ready() for all lanes: two of them load a doorbell each, at the same time. */
WEIR_FN u32 weir_controller_announced(struct weir_controller_view view, u64 lanes, u64 head)
{
	WEIR_GLOBAL weir_shared_u32 *doorbells = weir_at(view.doorbells, weir_shared_u32, 0);
	u32 word = 0, tail, read;

	/* doorbell.D1: pairs with the combiner's doorbell: commands; doorbell.D2: with the reaper's: its
	 * reads of old entries */
	if (weir_lane() < 2)
		word = weir_load_u32_acquire_dev(doorbells + weir_lane());
	tail = (u32)weir_shuffle_u64(lanes, word, 0);
	read = weir_lanes() > 1 ? (u32)weir_shuffle_u64(lanes, word, 1)
				: weir_load_u32_acquire_dev(doorbells + 1);
	weir_wave_sync(lanes); /* what two lanes acquired is every lane's */
	return weir_controller_ready(view, head, tail, read);
}

/**
 * weir_controller_claim() - fetch the first commands that were announced, and take them
 * @view: the queue
 * @lanes: all lanes of a whole wave
 * @head: from weir_controller_head()
 * @piece: commands wanted, as many as are there; at most one for each lane
 *
 * Commands are fetched before the head is moved past them, and thrown away if another
 * wave moved it first. So all commands below the head were fetched by whoever has them,
 * and it may be told to the host as the submission queue's head.
 */
WEIR_FN struct weir_controller_claim weir_controller_claim(struct weir_controller_view view, u64 lanes,
							   u64 head, u32 piece)
{
	u32 lane = weir_lane(), mask = weir_controller_mask(view);
	u32 index = ((u32)head + (lane < piece ? lane : 0)) & mask;
	struct weir_controller_claim claim;
	u64 after, won = 0;

	claim.command = weir_controller_fetch(view, view.sq + (u64)index * sizeof(struct nvme_sqe));
	claim.first = (u32)head;
	claim.count = weir_prefix(lanes, weir_ballot(lanes, lane < piece && (u64)lane * claim.command.bytes <
										    view.claim_bytes));
	after = (head & ~(u64)0xffffffff) | (u32)(claim.first + claim.count);
	/*
	 * relaxed: doorbell.D1 and doorbell.D2 order what follows. What comes before has been loaded, since
	 * the new head is computed from it: doorbells, so that who sees this head sees none that is older
	 * (controller.H0), and the commands
	 */
	if (weir_elected(lanes))
		won = weir_cas_u64_relaxed_dev(&view.queue->head, head, after) == head;
	if (!weir_broadcast_u64(lanes, won))
		claim.count = 0;
	if (lane >= claim.count)
		claim.command.bytes = 0;
	return claim;
}

/**
 * weir_controller_move() - carry out a claim's commands, all lanes together
 *
 * In rounds: the first pages of all of them, then the second ones, and so on; a buffer
 * of two pages that lie one behind the other is one piece. Base 2.0, section 4.1.1.
 * Gives no order.
 */
WEIR_FN void weir_controller_move(struct weir_controller_view view, u64 lanes,
				  struct weir_controller_command command)
{
	u32 left = command.bytes, part = NVME_PAGE_BYTES - (u32)(command.prp1 & (NVME_PAGE_BYTES - 1));
	u32 write = (command.cdw0 & 0xff) == NVME_OPCODE_WRITE, list = left > part + NVME_PAGE_BYTES;
	weir_addr medium = view.medium + (command.lba << view.block_log2), next = command.prp2;
	weir_addr to = write ? medium : command.prp1, from = write ? command.prp1 : medium;

	if (!list && next == command.prp1 + part)
		part = left;
	while (weir_ballot(lanes, left != 0)) {
		weir_addr page;

		part = part < left ? part : left;
		weir_wave_copy(lanes, to, from, part);
		left -= part;
		page = left && list ? weir_data_load_u64(next) : next;
		to = write ? to + part : page;
		from = write ? page : from + part;
		next += list ? sizeof(u64) : 0;
		part = NVME_PAGE_BYTES;
		weir_reconverge();
	}
}

/* Where the completion at @position of the ring is. */
WEIR_FN weir_addr weir_controller_cqe(struct weir_controller_view view, u32 position)
{
	return view.cq + (u64)(position & weir_controller_mask(view)) * sizeof(struct nvme_cqe);
}

/* dw3 of the completion at @position: with the phase, 1 in the first turn of the ring. */
WEIR_FN u32 weir_controller_phased(struct weir_controller_view view, u32 position, u32 dw3)
{
	return dw3 ^ ((~(position >> view.depth_log2)) & 1) << 16;
}

WEIR_FN void weir_controller_post(weir_addr address, u32 dw2, u32 dw3)
{
	WEIR_GLOBAL struct nvme_cqe *cqe = weir_at(address, struct nvme_cqe, 0);

	cqe->dw0 = 0;
	cqe->dw1 = 0;
	cqe->dw2 = dw2;
	/* doorbell.C1: pairs with the reaper's load: data and the rest of the entry before the phase */
	weir_store_u32_release_dev((WEIR_GLOBAL weir_shared_u32 *)&cqe->dw3, dw3);
}

/* dw2 of completions: @head of the submission queue, which is told apart from others by its number. */
WEIR_FN u32 weir_controller_dw2(struct weir_controller_view view, u32 head)
{
	return (head & weir_controller_mask(view)) | view.id << 16;
}

/* dw3, without the phase */
WEIR_FN u32 weir_controller_dw3(struct weir_controller_command command)
{
	return command.cdw0 >> 16 | command.status << 17;
}

/**
 * weir_controller_serve() - one turn of one queue: claim, move, post
 * @args: the controller, without timing and faults
 * @queue: struct weir_controller_queue
 * @lanes: all lanes of a whole wave
 *
 * Little is kept while data is moved, for the sake of registers.
 *
 * Return: commands served.
 */
WEIR_FN u32 weir_controller_serve(WEIR_GLOBAL struct weir_controller_args *args, weir_addr queue, u64 lanes)
{
	struct weir_controller_view view = weir_controller_poll(args, queue);
	u64 head = weir_controller_head(view, lanes);
	u32 ready = weir_controller_announced(view, lanes, head), position, dw2, dw3;
	struct weir_controller_claim claim;
	weir_addr cqe;

	if (ready == 0) /* the same in all lanes */
		return 0;
	claim = weir_controller_claim(view, lanes, head, weir_controller_piece(view, ready));
	if (claim.count == 0)
		return 0;
	position = claim.first + weir_lane();
	cqe = weir_lane() < claim.count ? weir_controller_cqe(view, position) : 0;
	dw2 = weir_controller_dw2(view, claim.first + claim.count);
	dw3 = weir_controller_phased(view, position, weir_controller_dw3(claim.command));
	weir_controller_move(view, lanes, claim.command);
	weir_wave_sync(lanes); /* every lane's part of the data before anybody's phase */
	if (cqe)
		weir_controller_post(cqe, dw2, dw3);
	weir_reconverge();
	return claim.count;
}

/**
 * struct weir_controller_beat - the queues a wave serves
 * @first: struct weir_controller_queue of the first
 * @step: bytes from each to the next
 * @count: how many
 */
struct weir_controller_beat {
	weir_addr first;
	u32 step;
	u32 count;
};

/** weir_controller_beat() - the queues of wave @wave, one of @waves that are the controller */
WEIR_FN struct weir_controller_beat weir_controller_beat(WEIR_GLOBAL struct weir_controller_args *args,
							 u32 wave, u32 waves)
{
	u32 first = wave % args->queue_count;
	struct weir_controller_beat beat;

	beat.first = args->queues + (u64)first * sizeof(struct weir_controller_queue);
	beat.step = waves * (u32)sizeof(struct weir_controller_queue);
	beat.count = (args->queue_count - first + waves - 1) / waves;
	return beat;
}

/** weir_controller_round() - one turn of each queue that a wave serves. Return: commands served */
WEIR_FN u32 weir_controller_round(WEIR_GLOBAL struct weir_controller_args *args, u64 lanes,
				  struct weir_controller_beat beat)
{
	u32 served = 0;

	for (u32 i = 0; i < beat.count; i++)
		served += weir_controller_serve(args, beat.first + (u64)i * beat.step, lanes);
	return served;
}

/* A wave that found nothing @idle times pauses longer and longer. Return: the new @idle. */
WEIR_FN u32 weir_controller_rest(WEIR_GLOBAL struct weir_controller_args *args, u32 idle, u32 served)
{
	if (served)
		return 0;
	for (u32 i = 0; i <= idle; i++)
		weir_relax(0);
	idle = 2 * idle + 1;
	return idle < args->rest ? idle : args->rest;
}

/* Tell the host that it runs. */
WEIR_FN void weir_controller_notify(WEIR_GLOBAL struct weir_controller_args *args)
{
	if (weir_thread() == 0)
		weir_store_u32_release_sys(weir_at(args->started, weir_shared_u32, 0), 1);
	weir_reconverge();
}

/* Whether the host wants an end: asked now and then. */
WEIR_FN u32 weir_controller_stopped(WEIR_GLOBAL struct weir_controller_args *args, u64 lanes, u32 iteration)
{
	u64 stop = 0;

	if (iteration % 64 == 0) { /* relaxed: a flag that only rises */
		if (weir_elected(lanes))
			stop = weir_load_u32_relaxed_sys(weir_at(args->stop, weir_shared_u32, 0));
		stop = weir_broadcast_u64(lanes, stop);
	}
	return stop != 0;
}

#endif
