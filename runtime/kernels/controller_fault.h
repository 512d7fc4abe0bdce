/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_fault.h: which commands the fault table strikes.
 *
 * Owns: the table as lanes see it, and its counts. The rows mean what those of
 * runtime/transport/virtual/fault.h mean; commands that one wave fetched together are
 * counted in their order. What strikes a command is noted, and others carry it out.
 */
#ifndef WEIR_KERNELS_CONTROLLER_FAULT_H
#define WEIR_KERNELS_CONTROLLER_FAULT_H

#include "controller.h"

/* Kinds, numbered as the host's are. A controller's failure as a whole is the host's alone. */
enum {
	WEIR_CONTROLLER_STATUS = 0,
	WEIR_CONTROLLER_LATE = 1,
	WEIR_CONTROLLER_SHUFFLE = 2,
	WEIR_CONTROLLER_BURST = 3,
	WEIR_CONTROLLER_STALL = 4,
	WEIR_CONTROLLER_DROP = 5,
	WEIR_CONTROLLER_DUPLICATE = 6,
	WEIR_CONTROLLER_STRAY = 7,
	WEIR_CONTROLLER_PHASE = 8,
	WEIR_CONTROLLER_MISROUTE = 9,
	WEIR_CONTROLLER_ROWS = 64,   /* most of a table: six bits */
	WEIR_CONTROLLER_ANY = 0x100, /* not an opcode */
};

/**
 * struct weir_controller_fault - a row of the table
 * @kind: WEIR_CONTROLLER_STATUS and so on
 * @opcode: NVME_OPCODE_..., or WEIR_CONTROLLER_ANY
 * @queue: identifier, or 0: any
 * @chance: per mille, or 0: always
 * @lba, @blocks: a range, or 0 blocks: any command
 * @after, @every: the first ones spared; of the others each so many-th
 * @count: at most so many, or 0: no limit
 * @seed: of the lots
 * @us: microseconds
 * @of: commands that a group waits for
 * @code: status field of the completion
 * @cid: an identifier, or 65536: one that is not in flight
 * @seen: commands it was for
 * @matched: with @count: of these, matched
 */
struct weir_controller_fault {
	u32 kind;
	u32 opcode;
	u32 queue;
	u32 chance;
	u64 lba;
	u64 blocks;
	u64 after;
	u64 every;
	u64 count;
	u64 seed;
	u32 us;
	u32 of;
	u32 code;
	u32 cid;
	weir_shared_u64 seen;
	weir_shared_u64 matched;
	u64 reserved[4];
};

WEIR_ASSERT_SIZE(struct weir_controller_fault, 128);

/**
 * struct weir_controller_matched - what happens to one lane's command
 * @rows: for each of @kinds the row, six bits from 6 x kind on
 * @kinds: 1 << kind for each
 */
struct weir_controller_matched {
	u64 rows;
	u32 kinds;
};

WEIR_FN WEIR_GLOBAL struct weir_controller_fault *weir_controller_row(
	WEIR_GLOBAL struct weir_controller_args *args, u64 rows, u32 kind)
{
	return weir_at(args->faults, struct weir_controller_fault,
		       (rows >> (6 * kind)) & (WEIR_CONTROLLER_ROWS - 1));
}

/* A shift-and-multiply of the number, as in virtual/fault.c: the same seed draws the same lots. */
WEIR_FN u64 weir_controller_draw(u64 seed, u64 number)
{
	u64 x = seed * 0xd1342543de82ef95u + (number + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

WEIR_FN u32 weir_controller_on_blocks(WEIR_GLOBAL struct weir_controller_fault *fault,
				      struct weir_controller_command command)
{
	u32 opcode = command.cdw0 & 0xff;

	if (opcode != NVME_OPCODE_READ && opcode != NVME_OPCODE_WRITE)
		return 0;
	if (command.lba >= fault->lba)
		return command.lba - fault->lba < fault->blocks;
	return fault->lba - command.lba < command.blocks;
}

WEIR_FN u32 weir_controller_meant(WEIR_GLOBAL struct weir_controller_fault *fault, u32 queue,
				  struct weir_controller_command command)
{
	return (fault->opcode == WEIR_CONTROLLER_ANY || fault->opcode == (command.cdw0 & 0xff)) &&
	       (fault->queue == 0 || fault->queue == queue) &&
	       (fault->blocks == 0 || weir_controller_on_blocks(fault, command));
}

/* Whether the row strikes command @number of those it is for, as long as its count lasts. */
WEIR_FN u32 weir_controller_drawn(WEIR_GLOBAL struct weir_controller_fault *fault, u64 number)
{
	if (number < fault->after || (number - fault->after + 1) % fault->every)
		return 0;
	return !fault->chance || weir_controller_draw(fault->seed, number) % 1000 < fault->chance;
}

/* How many of @wanted the row's count still allows: taken from it. */
WEIR_FN u32 weir_controller_granted(WEIR_GLOBAL struct weir_controller_fault *fault, u64 lanes, u32 wanted)
{
	u64 done = wanted == 0 || fault->count == 0, matched, got = wanted;

	while (!done) { /* the same in all lanes; fails only if another wave got some */
		weir_reconverge();
		/* relaxed: the counts of a row order nothing but themselves */
		matched = weir_broadcast_u64(
			lanes, weir_elected(lanes) ? weir_load_u64_relaxed_dev(&fault->matched) : 0);
		got = fault->count - matched < wanted ? fault->count - matched : wanted;
		if (weir_elected(lanes))
			done = weir_cas_u64_relaxed_dev(&fault->matched, matched, matched + got) == matched;
		done = weir_broadcast_u64(lanes, done);
	}
	return (u32)got;
}

/* Take back what did not happen after all. */
WEIR_FN void weir_controller_spare(WEIR_GLOBAL struct weir_controller_fault *fault)
{
	if (fault->count) /* relaxed: as above */
		(void)weir_add_u64_relaxed_dev(&fault->matched, ~(u64)0);
}

/* Whether one row strikes this lane's command, if it has one: @here. */
WEIR_FN u32 weir_controller_matched_by(WEIR_GLOBAL struct weir_controller_fault *fault, u64 lanes, u32 queue,
				       u32 here, struct weir_controller_command command)
{
	u64 meant = weir_ballot(lanes, here && weir_controller_meant(fault, queue, command)), number = 0,
	    hits;
	u32 lane = weir_lane(), granted;

	if (meant == 0) /* the same in all lanes */
		return 0;
	if (weir_elected(lanes)) /* relaxed: as above */
		number = weir_add_u64_relaxed_dev(&fault->seen, weir_popcount(meant));
	number = weir_broadcast_u64(lanes, number) + weir_rank(meant, lane);
	hits = weir_ballot(lanes, (meant >> lane & 1) && weir_controller_drawn(fault, number));
	granted = weir_controller_granted(fault, lanes, weir_popcount(hits));
	return (hits >> lane & 1) && weir_rank(hits, lane) < granted;
}

/**
 * weir_controller_strike() - what the table does to the commands of a claim
 * @queue: identifier of their queue
 * @here: this lane has one
 *
 * All lanes together. Of two rows of one kind the later one tells how.
 */
WEIR_FN struct weir_controller_matched weir_controller_strike(WEIR_GLOBAL struct weir_controller_args *args,
							      u64 lanes, u32 queue, u32 here,
							      struct weir_controller_command command)
{
	struct weir_controller_matched matched;

	matched.rows = 0;
	matched.kinds = 0;
	for (u32 i = 0; i < args->fault_count; i++) {
		WEIR_GLOBAL struct weir_controller_fault *fault =
			weir_at(args->faults, struct weir_controller_fault, i);

		if (weir_controller_matched_by(fault, lanes, queue, here, command)) {
			matched.kinds |= (u32)1 << fault->kind;
			matched.rows &= ~((u64)(WEIR_CONTROLLER_ROWS - 1) << (6 * fault->kind));
			matched.rows |= (u64)i << (6 * fault->kind);
		}
		weir_reconverge();
	}
	return matched;
}

#endif
