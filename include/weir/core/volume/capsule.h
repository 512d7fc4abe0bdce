/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/volume/capsule.h: commands of lanes to engines, and what becomes of their answers.
 *
 * Owns: the fields of <weir/nvme_volume.h> in an entry of a submission ring, and joins: writes to several
 * engines, told to their issuers once. Versions of a volume's writes all come from here, also of those that
 * the host's threads carry out, so that they grow in one order.
 *
 * What an engine refuses is for the host: its controller knows what to do about each status, and waits for
 * maps. So a lane sees a path error instead, which is worth another try, and core/volume/place.h sends that
 * try to the host. An engine takes a version once, and of two writes the newer one, whoever is first.
 *
 * No function here has collectives. Nothing here is on the path of other storages' commands.
 */
#ifndef WEIR_CORE_CAPSULE_H
#define WEIR_CORE_CAPSULE_H

#include <weir/abi.h>
#include <weir/nvme_volume.h>

/** weir_placed_of() - the volume that @queue belongs to */
WEIR_FN WEIR_GLOBAL struct weir_placed *weir_placed_of(WEIR_GLOBAL struct weir_queue *queue)
{
	return weir_at(queue->volume, struct weir_placed, 0);
}

/** weir_placed_version() - a version for each of @blocks, newer than all before; of the first */
WEIR_FN u64 weir_placed_version(WEIR_GLOBAL struct weir_placed *placed, u32 lease, u32 blocks)
{
	/* relaxed: a write that is acknowledged before another begins has its version before, in the order of
	 * this word */
	return ((u64)lease << NVME_VOLUME_VERSION_EPOCH) + 1 +
	       weir_add_u64_relaxed_dev(&placed->written, blocks);
}

WEIR_FN u32 weir_capsule_changes(u32 opcode)
{
	return opcode == NVME_OPCODE_WRITE || opcode == NVME_OPCODE_WRITE_ZEROES || opcode == NVME_OPCODE_DSM;
}

/** struct weir_capsule - fields of a command that a volume adds: @version to CDW2 and 3, the others by name
 */
struct weir_capsule {
	u64 version;
	u32 cdw11;
	u32 cdw14;
	u32 cdw15;
};

/**
 * weir_capsule_of() - what a volume adds to a command
 * @queue: one with weir_queue.placed
 * @opcode: the command's, like @blocks
 * @lba: its first block, to an engine with the map epoch in 63:32, as of core/volume/place.h
 * @join: its struct weir_write_join; 0: it has none
 */
WEIR_COLD struct weir_capsule weir_capsule_of(WEIR_GLOBAL struct weir_queue *queue, u32 opcode, u32 blocks,
					      u64 lba, weir_addr join)
{
	WEIR_GLOBAL struct weir_placed *placed = weir_placed_of(queue);
	/* relaxed: engines know which epoch is the volume's */
	u32 lease = weir_load_u32_relaxed_dev(&placed->lease), engine = queue->placed == WEIR_QUEUE_ENGINE;
	struct weir_capsule capsule;

	capsule.version = 0;
	capsule.cdw11 = engine ? placed->tag : (u32)(lba >> 32);
	capsule.cdw14 = 0;
	capsule.cdw15 = engine ? (u32)(lba >> 32) : 0;
	if (weir_capsule_changes(opcode)) {
		capsule.version = join ? weir_at(join, struct weir_write_join, 0)->version
				       : weir_placed_version(placed, lease, blocks);
		capsule.cdw14 = engine ? lease : 0;
	}
	return capsule;
}

/**
 * weir_join_try() - take a join for a write to @count engines
 * @placed: the volume
 * @from: where to begin to look for a free one
 *
 * One pass over a few of them. Return: its address; 0: none of these is free.
 */
WEIR_FN weir_addr weir_join_try(WEIR_GLOBAL struct weir_placed *placed, u32 from, u32 count)
{
	for (u32 i = 0; i < 8 && i < placed->join_count; i++) {
		WEIR_GLOBAL struct weir_write_join *join =
			weir_at(placed->joins, struct weir_write_join, (from + i) & (placed->join_count - 1));

		/* relaxed: a guess. join.J0: pairs with join.J2: what it was for was read before */
		if (weir_load_u32_relaxed_dev(&join->left) == 0 &&
		    weir_cas_u32_acquire_dev(&join->left, 0, count + 2) == 0)
			return WEIR_ADDR(join);
	}
	return 0;
}

/**
 * struct weir_answer - how a completion goes on
 * @kind: WEIR_TARGET_...; WEIR_TARGET_NONE: nobody is told, other engines' answers are missing
 * @status: as the issuer is to see it
 */
struct weir_answer {
	u32 kind;
	weir_status status;
	weir_addr target;
	weir_addr target_status;
};

/**
 * weir_join_leave() - one engine fewer whose answer is missing
 * @join: the write
 * @status: how it ended there
 *
 * Whoever is last tells the issuer, with the first error if there was one.
 */
WEIR_FN struct weir_answer weir_join_leave(WEIR_GLOBAL struct weir_write_join *join, weir_status status)
{
	struct weir_answer answer;

	answer.kind = WEIR_TARGET_NONE;
	answer.status = WEIR_OK;
	answer.target = 0;
	answer.target_status = 0;
	if (status != WEIR_OK) /* relaxed: join.J1 publishes it */
		weir_store_u32_relaxed_dev(&join->status, status);
	/* join.J1: pairs with itself: every engine's answer before the last one's */
	if (weir_add_u32_acq_rel_dev(&join->left, ~(u32)0) != 2)
		return answer;
	answer.kind = join->kind;
	answer.status = weir_load_u32_relaxed_dev(&join->status); /* relaxed: join.J1 came before */
	answer.target = join->target;
	answer.target_status = join->target_status;
	weir_store_u32_release_dev(&join->left, 0); /* join.J2: pairs with join.J0 */
	return answer;
}

/** weir_capsule_path_error() - what a lane is told of a command that the host is to carry out */
WEIR_FN weir_status weir_capsule_path_error(void)
{
	return (u32)WEIR_STATUS_NVME | (u32)WEIR_GROUP_REQUEST | (u32)NVME_STATUS_PATH_INTERNAL;
}

/** weir_capsule_unequal() - a write may not be on all engines: for the host, when it gives the lease back */
WEIR_FN void weir_capsule_unequal(WEIR_GLOBAL struct weir_placed *placed)
{
	(void)weir_add_u64_relaxed_dev(&placed->unequal, 1); /* relaxed: the host reads it at the end */
}

/* An engine refused the command of @sqe: the host carries it out, and perhaps all others of that map. */
WEIR_FN weir_status weir_capsule_refused(WEIR_GLOBAL struct weir_placed *placed,
					 WEIR_GLOBAL struct nvme_sqe *sqe, weir_status status)
{
	/* relaxed, like the others: hints, and counts that the host reads */
	if (weir_status_nvme(status) == NVME_STATUS_VOLUME_STALE_MAP)
		weir_store_u32_relaxed_dev(&placed->stale, sqe->cdw15);
	(void)weir_add_u64_relaxed_dev(&placed->refused, 1);
	if (weir_capsule_changes(sqe->cdw0 & 0xff))
		weir_capsule_unequal(placed);
	return weir_capsule_path_error();
}

/**
 * weir_capsule_end() - the command of slot @index of an engine's queue has ended with @status
 *
 * Before the issuer is told, and the slot is free.
 */
WEIR_COLD struct weir_answer weir_capsule_end(WEIR_GLOBAL struct weir_queue *queue, u32 index,
					      weir_status status)
{
	WEIR_GLOBAL struct weir_slot *slot = weir_at(queue->slots, struct weir_slot, index);
	struct weir_answer answer;

	if (status != WEIR_OK)
		status = weir_capsule_refused(weir_placed_of(queue),
					      weir_at(queue->sq, struct nvme_sqe, index), status);
	if (slot->target_kind == WEIR_TARGET_JOIN)
		return weir_join_leave(weir_at(slot->target, struct weir_write_join, 0), status);
	answer.kind = slot->target_kind;
	answer.status = status;
	answer.target = slot->target;
	answer.target_status = slot->status;
	return answer;
}

/** weir_capsule_block() - the block of the volume that the command @sqe of @queue begins with */
WEIR_FN u64 weir_capsule_block(WEIR_GLOBAL struct weir_queue *queue, WEIR_GLOBAL struct nvme_sqe *sqe)
{
	return queue->placed == WEIR_QUEUE_ENGINE ? sqe->cdw10 : sqe->cdw10 | (u64)sqe->cdw11 << 32;
}

/** weir_capsule_again() - the queue pair to which a command of @queue is to be submitted again */
WEIR_FN weir_addr weir_capsule_again(WEIR_GLOBAL struct weir_queue *queue)
{
	WEIR_GLOBAL struct weir_placed *placed;

	if (queue->placed != WEIR_QUEUE_ENGINE)
		return WEIR_ADDR(queue);
	placed = weir_placed_of(queue);
	return WEIR_ADDR(
		weir_at(placed->forwarder, struct weir_queue, (u32)weir_wave() % placed->forwarder_count));
}

#endif
