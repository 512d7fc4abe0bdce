/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_row.h: a row of a fault table, as threads and lanes that are controllers see it.
 *
 * Owns: kinds of faults, the row with its counts, and which commands a row is for: one match and one draw for
 * the host's controller (runtime/transport/virtual) and the device's (controller_fault.h). Never counts.
 */
#ifndef WEIR_KERNELS_FAULT_ROW_H
#define WEIR_KERNELS_FAULT_ROW_H

#include <weir/core/mix.h>
#include <weir/nvme.h>
#include <weir/port.h>

enum {
	WEIR_VIRTUAL_FAULTS = 64,      /* most rows of a table: six bits */
	WEIR_FAULT_ANY_OPCODE = 0x100, /* not an opcode */
	WEIR_FAULT_IDLE_CID = 0x10000, /* not an identifier */
};

/** enum weir_virtual_fault_kind - what happens to a command that is matched */
enum weir_virtual_fault_kind {
	WEIR_VIRTUAL_FAULT_STATUS,    /* it ends with @code; the medium is not touched */
	WEIR_VIRTUAL_FAULT_LATE,      /* its completion comes @us after its time */
	WEIR_VIRTUAL_FAULT_SHUFFLE,   /* held until @of are, then posted in a random order */
	WEIR_VIRTUAL_FAULT_BURST,     /* held until @of are, then posted in theirs */
	WEIR_VIRTUAL_FAULT_STALL,     /* nothing is fetched from its queue for @us after it */
	WEIR_VIRTUAL_FAULT_DROP,      /* carried out, never completed; its identifier stays in use */
	WEIR_VIRTUAL_FAULT_DUPLICATE, /* its entry is posted twice */
	WEIR_VIRTUAL_FAULT_STRAY,     /* before its entry comes one for another identifier, @cid */
	WEIR_VIRTUAL_FAULT_PHASE,     /* its entry has the phase of the pass before */
	WEIR_VIRTUAL_FAULT_MISROUTE,  /* its entry names another submission queue */
	WEIR_VIRTUAL_FAULT_FATAL,     /* the controller fails: CSTS.CFS, and silence until a reset */
	WEIR_VIRTUAL_FAULT_GONE,      /* it is pulled out: silence for good, its registers read as ones */
	WEIR_VIRTUAL_FAULT_STUCK, /* never ends: neither Abort nor its queue's deletion, which hangs; a reset
				     ends it */
	WEIR_VIRTUAL_FAULT_HUNG,  /* likewise, and a reset does not end either: CSTS.RDY stays */
	WEIR_VIRTUAL_FAULT_OFF, /* somebody else clears CC.EN: CSTS.RDY becomes 0, and nothing ends, until it
				   is set again */
	WEIR_VIRTUAL_FAULT_KINDS,
};

/**
 * struct weir_fault_row - a row of the table
 * @kind: enum weir_virtual_fault_kind
 * @opcode: NVME_OPCODE_..., or WEIR_FAULT_ANY_OPCODE
 * @queue: identifier, or 0: any
 * @chance: per mille, or 0: always
 * @lba: with @blocks: first block of a range
 * @blocks: blocks of the range, or 0: any command
 * @after: the first so many commands are spared
 * @every: of the others each so many-th is matched
 * @count: at most so many, or 0: no limit
 * @seed: of the draws
 * @us: microseconds
 * @of: commands that a group waits for
 * @code: status field of the completion
 * @cid: an identifier, or WEIR_FAULT_IDLE_CID: one that is not in flight
 * @seen: commands it was for
 * @matched: commands it matched; on the device only with @count
 */
struct weir_fault_row {
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

WEIR_ASSERT_SIZE(struct weir_fault_row, 128);

/** weir_fault_draw() - number @number that @seed draws; no state that threads or lanes would share */
WEIR_FN u64 weir_fault_draw(u64 seed, u64 number)
{
	return weir_mix_u64(seed * (u64)0xd1342543de82ef95u + (number + 1) * WEIR_MIX_STEP);
}

/* Whether a command names one of the row's blocks. */
WEIR_FN u32 weir_fault_on_blocks(WEIR_GLOBAL const struct weir_fault_row *row, u32 opcode, u64 lba,
				 u64 blocks)
{
	if (opcode != NVME_OPCODE_READ && opcode != NVME_OPCODE_WRITE && opcode != NVME_OPCODE_COMPARE &&
	    opcode != NVME_OPCODE_WRITE_ZEROES)
		return 0;
	return lba >= row->lba ? lba - row->lba < row->blocks : row->lba - lba < blocks;
}

/** weir_fault_is_for() - whether the row is for a command of queue @queue */
WEIR_FN u32 weir_fault_is_for(WEIR_GLOBAL const struct weir_fault_row *row, u32 queue, u32 opcode, u64 lba,
			      u64 blocks)
{
	return (row->opcode == WEIR_FAULT_ANY_OPCODE || row->opcode == opcode) &&
	       (row->queue == 0 || row->queue == queue) &&
	       (row->blocks == 0 || weir_fault_on_blocks(row, opcode, lba, blocks));
}

/** weir_fault_matches() - whether the row matches command @number of those it is for, as long as its count
 * lasts */
WEIR_FN u32 weir_fault_matches(WEIR_GLOBAL const struct weir_fault_row *row, u64 number)
{
	if (number < row->after || (number - row->after + 1) % row->every)
		return 0;
	return !row->chance || weir_fault_draw(row->seed, number) % 1000 < row->chance;
}

#endif
