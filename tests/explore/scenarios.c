/* SPDX-License-Identifier: BSD-3-Clause */
/* scenarios.c: the table of the cases that are explored: a kernel, and what it runs on. */
#include <weir/core/queue/sq.h>

#include "explore.h"
#include "rig.h"
#include "scenario.h"
#include "scenarios.h"

enum { SHORT_NS = 400 * 1000 };

static void bad_block(void)
{
	rig.bad_lba = SCENARIO_BAD_LBA;
}

/* One that a dataset has samples in. */
static void bad_sample(void)
{
	rig.bad_lba = random_below(6);
}

/* A block that never comes: only the deadline ends the wait. */
static void lost_block(void)
{
	rig.lost_lba = random_below(8);
	rig.disk->timeout_ns = SHORT_NS;
}

/* A controller fails while commands are in flight; then the host declares its storage dead. */
static void dying_within(u64 steps)
{
	rig.stop_step = 1 + random_below(steps);
	rig.dead_step = rig.stop_step + random_below(steps / 2);
}

static void dying(void)
{
	dying_within(3000);
}

static void dying_soon(void)
{
	rig.dead_after = 1 + random_below(2);
}

/* The same of a controller that nobody could stop: it may still write to memory, and may not. */
static void dying_unsafe(void)
{
	dying();
	rig.unsafe = true;
	if (random_below(2))
		rig.stop_step = 0;
}

/* Write-backs that fail, though not for ever: nothing that was put may be lost. */
static u32 unwritable(struct weir_virtual_fault *rows)
{
	rows[0] = (struct weir_virtual_fault){ .kind = WEIR_VIRTUAL_FAULT_STATUS,
					       .opcode = WEIR_VIRTUAL_FAULT_WRITE,
					       .code = SCENARIO_WRITE_FAULT,
					       .after = random_below(4),
					       .every = 1 + random_below(3),
					       .count = 1 + random_below(SCENARIO_WRITE_FAULTS) };
	return 1;
}

/* Commands that end for now with a status that is worth another try: as often as that is allowed. */
static u32 passing(struct weir_virtual_fault *rows, enum weir_virtual_fault_opcode opcode)
{
	rows[0] = (struct weir_virtual_fault){ .kind = WEIR_VIRTUAL_FAULT_STATUS,
					       .opcode = opcode,
					       .code = NVME_STATUS_COMMAND_INTERRUPTED,
					       .after = random_below(4),
					       .every = 1 + random_below(3),
					       .count = 1 + random_below(SCENARIO_WRITE_FAULTS) };
	return 1;
}

static u32 passing_reads(struct weir_virtual_fault *rows)
{
	return passing(rows, WEIR_VIRTUAL_FAULT_READ);
}

static u32 passing_writes(struct weir_virtual_fault *rows)
{
	return passing(rows, WEIR_VIRTUAL_FAULT_WRITE);
}

static void retrying(void)
{
	rig.disk->retry = SCENARIO_WRITE_FAULTS;
	for (u32 i = 0; i < rig.disk->queue_count; i++)
		weir_at(rig.disk->queues, struct weir_queue, i)->retry = SCENARIO_WRITE_FAULTS;
}

/* A set full of dirty lines. */
static void dirty_set(void)
{
	rig_leave_dirty(WEIR_WAYS);
}

/* A set of clean lines, and one behind it. */
static void both_levels(void)
{
	rig_leave_clean();
}

/* Faults that lose nothing: everything must come out right, and only that. */
static u32 rude(struct weir_virtual_fault *rows)
{
	static const enum weir_virtual_fault_kind kinds[] = {
		WEIR_VIRTUAL_FAULT_LATE,  WEIR_VIRTUAL_FAULT_SHUFFLE,   WEIR_VIRTUAL_FAULT_BURST,
		WEIR_VIRTUAL_FAULT_STALL, WEIR_VIRTUAL_FAULT_DUPLICATE, WEIR_VIRTUAL_FAULT_STRAY,
	};
	u32 count = 1 + (u32)random_below(3);

	for (u32 i = 0; i < count; i++)
		rows[i] = (struct weir_virtual_fault){
			.kind = kinds[random_below(6)],
			.every = 1 + random_below(4),
			.us = 1 + (u32)random_below(100),
			.of = 2 + (u32)random_below(3),
			.seed = random_below(1000),
			.cid_given = true,
			.cid = (u16)(0x8000 + random_below(16)), /* no ticket of a run comes near */
		};
	return count;
}

/* Faults that lose completions, or the controller: lanes must end, with errors. */
static u32 broken(struct weir_virtual_fault *rows)
{
	static const enum weir_virtual_fault_kind kinds[] = {
		WEIR_VIRTUAL_FAULT_DROP,  WEIR_VIRTUAL_FAULT_PHASE,  WEIR_VIRTUAL_FAULT_MISROUTE,
		WEIR_VIRTUAL_FAULT_FATAL, WEIR_VIRTUAL_FAULT_STATUS,
	};
	u32 count = rude(rows + 1) + 1;

	rows[0] = (struct weir_virtual_fault){ .kind = kinds[random_below(5)],
					       .after = random_below(6),
					       .every = 1 + random_below(4),
					       .code = 1 + (u32)random_below(0x7ff),
					       .count = 1 + random_below(3) };
	return count;
}

/* Any policy but clock, which all other cases have. */
static void some_policy(void)
{
	rig.lines->policy = 1 + (u32)random_below(WEIR_POLICY_USER - 1);
}

/* The array ends in the middle of its last line (spans of 16 bytes: memory keeps no past of single bytes). */
static void odd_end(void)
{
	rig.array->count -= SCENARIO_BLOCK_WORDS / 2 + 4;
}

static void impatient(void)
{
	rig.disk->timeout_ns = SHORT_NS;
}

const struct scenario scenarios[] = {
	{ .name = "raw", .kernel = "raw" },
	{ .name = "burst", .kernel = "burst", .requests = 5 },
	{ .name = "rewrite", .kernel = "rewrite", .requests = 4 },
	{ .name = "divergent", .kernel = "divergent", .requests = 3 },
	{ .name = "cached", .kernel = "cached", .requests = 4 },
	{ .name = "shared", .kernel = "shared", .requests = 5 },
	{ .name = "policies", .kernel = "cached", .requests = 5, .prepare = some_policy },
	{ .name = "streamed", .kernel = "streamed", .requests = 4 },
	{ .name = "rows", .kernel = "rows", .requests = 12 },
	{ .name = "failing", .kernel = "failing", .requests = 3, .prepare = bad_block },
	{ .name = "failing-lines", .kernel = "failing_lines", .requests = 4, .prepare = bad_block },
	{ .name = "lost", .kernel = "burst", .requests = 3, .prepare = lost_block, .tolerant = true },
	{ .name = "lost-lines", .kernel = "cached", .requests = 3, .prepare = lost_block, .tolerant = true },
	{ .name = "dying", .kernel = "burst", .requests = 4, .prepare = dying, .tolerant = true },
	{ .name = "dying-lines", .kernel = "cached", .requests = 4, .prepare = dying, .tolerant = true },
	{ .name = "partner", .kernel = "partner", .requests = 5, .prepare = dying, .partner = true },
	{ .name = "pulled-partner",
	  .kernel = "partner",
	  .requests = 4,
	  .prepare = dying,
	  .partner = true,
	  .pull = true },
	{ .name = "partner-unsafe",
	  .kernel = "partner",
	  .requests = 5,
	  .mode = SCENARIO_UNSAFE,
	  .prepare = dying_unsafe,
	  .partner = true },
	{ .name = "partner-put", .kernel = "partner_put", .requests = 5, .prepare = dying, .partner = true },
	{ .name = "partner-put-unsafe",
	  .kernel = "partner_put",
	  .requests = 5,
	  .mode = SCENARIO_UNSAFE,
	  .prepare = dying_unsafe,
	  .partner = true },
	{ .name = "tiny-partner",
	  .kernel = "partner",
	  .requests = 2,
	  .prepare = dying_soon,
	  .partner = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "rude", .kernel = "burst", .requests = 4, .faults = rude },
	{ .name = "rude-rewrite", .kernel = "rewrite", .requests = 3, .faults = rude },
	{ .name = "rude-lines", .kernel = "cached", .requests = 4, .faults = rude },
	{ .name = "broken",
	  .kernel = "burst",
	  .requests = 4,
	  .faults = broken,
	  .prepare = impatient,
	  .tolerant = true },
	{ .name = "broken-lines",
	  .kernel = "cached",
	  .requests = 4,
	  .faults = broken,
	  .prepare = impatient,
	  .tolerant = true },
	{ .name = "pulled", .kernel = "burst", .requests = 4, .pull = true },
	{ .name = "pulled-rewrite", .kernel = "rewrite", .requests = 3, .pull = true },
	{ .name = "pulled-divergent", .kernel = "divergent", .requests = 3, .pull = true },
	{ .name = "pulled-lines", .kernel = "cached", .requests = 3, .pull = true },
	{ .name = "medium-rewrite", .kernel = "rewrite", .requests = 3, .pull = 2 },
	{ .name = "medium-lines", .kernel = "cached", .requests = 3, .pull = 2 },
	{ .name = "medium-put", .kernel = "put", .requests = 3, .pull = 2, .written = true },
	{ .name = "pulled-rude", .kernel = "rewrite", .requests = 3, .faults = rude, .pull = true },
	{ .name = "pulled-failing",
	  .kernel = "failing_lines",
	  .requests = 3,
	  .prepare = bad_block,
	  .pull = true },
	{ .name = "on-device", .kernel = "burst", .requests = 4, .on_device = true },
	{ .name = "on-device-rewrite", .kernel = "rewrite", .requests = 4, .on_device = true },
	{ .name = "nic", .kernel = "burst", .requests = 4, .nic = true },
	{ .name = "nic-rewrite", .kernel = "rewrite", .requests = 4, .nic = true },
	{ .name = "nic-divergent", .kernel = "divergent", .requests = 3, .nic = true },
	{ .name = "nic-figure-1", .kernel = "burst", .requests = 5, .depth = 2, .nic = true },
	{ .name = "nic-lines", .kernel = "cached", .requests = 4, .nic = true },
	{ .name = "nic-pulled", .kernel = "burst", .requests = 4, .pull = true, .nic = true },
	{ .name = "shadow", .kernel = "burst", .requests = 4, .shadow = true },
	{ .name = "shadow-rewrite", .kernel = "rewrite", .requests = 4, .shadow = true },
	{ .name = "shadow-figure-1", .kernel = "burst", .requests = 5, .depth = 2, .shadow = true },
	{ .name = "shadow-lines", .kernel = "cached", .requests = 4, .shadow = true },
	{ .name = "rude-shadow", .kernel = "rewrite", .requests = 3, .faults = rude, .shadow = true },
	{ .name = "tiny-shadow", .kernel = "raw", .requests = 2, .tiny = true, .waves = 2, .shadow = true },
	{ .name = "tiny-shadow-figure-1",
	  .kernel = "burst",
	  .requests = 2,
	  .tiny = true,
	  .waves = 2,
	  .depth = 2,
	  .shadow = true },
	{ .name = "forwarded", .kernel = "burst", .requests = 4, .forwarded = true },
	{ .name = "forwarded-rewrite", .kernel = "rewrite", .requests = 4, .forwarded = true },
	{ .name = "forwarded-figure-1", .kernel = "burst", .requests = 5, .depth = 2, .forwarded = true },
	{ .name = "forwarded-shadow", .kernel = "burst", .requests = 4, .shadow = true, .forwarded = true },
	{ .name = "forwarded-pulled", .kernel = "burst", .requests = 4, .pull = true, .forwarded = true },
	{ .name = "rude-forwarded", .kernel = "rewrite", .requests = 3, .faults = rude, .forwarded = true },
	{ .name = "any", .kernel = "any", .requests = 3 },
	{ .name = "figure-1", .kernel = "any", .requests = 3, .depth = 2 },
	{ .name = "ahead", .kernel = "ahead", .requests = 3 },
	{ .name = "joined", .kernel = "joined", .requests = 3 },
	{ .name = "pulled-joined", .kernel = "joined", .requests = 3, .pull = true },
	{ .name = "joined-once", .kernel = "joined", .requests = 2, .mode = SCENARIO_ONCE },
	{ .name = "copies", .kernel = "copies", .requests = 3 },
	{ .name = "pulled-copies", .kernel = "copies", .requests = 3, .pull = true },
	{ .name = "hold", .kernel = "hold", .requests = 4, .shares = true, .written = true },
	{ .name = "hold-full",
	  .kernel = "hold",
	  .requests = 4,
	  .mode = SCENARIO_FULL,
	  .shares = true,
	  .written = true },
	{ .name = "hold-copied",
	  .kernel = "hold",
	  .requests = 4,
	  .mode = SCENARIO_COPIED,
	  .shares = true,
	  .written = true },
	{ .name = "pulled-hold",
	  .kernel = "hold",
	  .requests = 3,
	  .shares = true,
	  .pull = true,
	  .written = true },
	{ .name = "rude-hold",
	  .kernel = "hold",
	  .requests = 3,
	  .shares = true,
	  .faults = rude,
	  .written = true },
	{ .name = "hold-again", .kernel = "hold_again", .requests = 4, .shares = true, .written = true },
	{ .name = "hold-add", .kernel = "hold_add", .requests = 4, .shares = true, .written = true },
	{ .name = "hold-read", .kernel = "hold_read", .requests = 4, .shares = true },
	{ .name = "hold-retried",
	  .kernel = "hold_again",
	  .requests = 3,
	  .shares = true,
	  .faults = passing_reads,
	  .prepare = retrying },
	{ .name = "hold-failing",
	  .kernel = "hold_failing",
	  .requests = 3,
	  .shares = true,
	  .prepare = bad_block },
	{ .name = "hold-move", .kernel = "hold_move", .requests = 4, .shares = true, .prepare = bad_block },
	{ .name = "tiny-hold",
	  .kernel = "hold_each",
	  .requests = 2,
	  .shares = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-hold-one",
	  .kernel = "hold_each",
	  .requests = 1,
	  .shares = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-figure-1", .kernel = "burst", .requests = 2, .tiny = true, .waves = 2, .depth = 2 },
	{ .name = "tiny-queue", .kernel = "raw", .requests = 1, .tiny = true, .waves = 2 },
	{ .name = "tiny-wave", .kernel = "raw", .requests = 1, .tiny = true, .waves = 2, .width = 2 },
	{ .name = "tiny-three", .kernel = "raw", .requests = 1, .tiny = true, .waves = 3 },
	{ .name = "tiny-line", .kernel = "shared", .requests = 1, .tiny = true, .waves = 2 },
	{ .name = "tiny-failing",
	  .kernel = "failing_lines",
	  .requests = 1,
	  .prepare = bad_block,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-lines", .kernel = "cached", .requests = 1, .tiny = true, .waves = 3 },
	{ .name = "put", .kernel = "put", .requests = 4, .written = true },
	{ .name = "add", .kernel = "add", .requests = 4, .written = true },
	{ .name = "span", .kernel = "span", .requests = 3, .written = true },
	{ .name = "flush", .kernel = "put", .requests = 3, .mode = SCENARIO_FLUSHES, .written = true },
	{ .name = "unwritable",
	  .kernel = "put",
	  .requests = 4,
	  .mode = SCENARIO_UNWRITABLE,
	  .faults = unwritable,
	  .written = true },
	{ .name = "reread", .kernel = "raw", .requests = 3, .faults = passing_reads, .prepare = retrying },
	{ .name = "retried",
	  .kernel = "burst",
	  .requests = 4,
	  .faults = passing_reads,
	  .prepare = retrying,
	  .tolerant = true },
	{ .name = "refetch",
	  .kernel = "shared",
	  .requests = 4,
	  .faults = passing_reads,
	  .prepare = retrying },
	{ .name = "rewritten",
	  .kernel = "put",
	  .requests = 4,
	  .faults = passing_writes,
	  .prepare = retrying,
	  .written = true },
	{ .name = "tiny-refetch",
	  .kernel = "shared",
	  .requests = 1,
	  .faults = passing_reads,
	  .prepare = retrying,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "rude-put", .kernel = "put", .requests = 3, .faults = rude, .written = true },
	{ .name = "pulled-put", .kernel = "put", .requests = 3, .pull = true, .written = true },
	{ .name = "pulled-add", .kernel = "add", .requests = 3, .pull = true, .written = true },
	{ .name = "pulled-span", .kernel = "span", .requests = 2, .pull = true, .written = true },
	{ .name = "pulled-flush",
	  .kernel = "put",
	  .requests = 3,
	  .mode = SCENARIO_FLUSHES,
	  .pull = true,
	  .written = true },
	{ .name = "dying-put", .kernel = "put", .requests = 4, .prepare = dying, .tolerant = true },
	{ .name = "broken-put",
	  .kernel = "put",
	  .requests = 4,
	  .faults = broken,
	  .prepare = impatient,
	  .tolerant = true },
	{ .name = "tiny-evict",
	  .kernel = "put",
	  .requests = 1,
	  .mode = SCENARIO_DIRTY | SCENARIO_READS,
	  .prepare = dirty_set,
	  .written = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-put",
	  .kernel = "put",
	  .requests = 1,
	  .mode = SCENARIO_DIRTY | SCENARIO_FLUSHES,
	  .prepare = dirty_set,
	  .written = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "fair", .kernel = "fair", .requests = 12, .depth = 2, .fair = true },
	{ .name = "fair-4", .kernel = "fair", .requests = 12, .depth = 4, .fair = true },
	{ .name = "four", .kernel = "four", .requests = 4 },
	{ .name = "ends", .kernel = "ends", .requests = 3, .prepare = odd_end, .written = true },
	{ .name = "dropped", .kernel = "dropped", .requests = 4, .written = true },
	{ .name = "gone", .kernel = "gone", .requests = 2 },
	{ .name = "reported", .kernel = "reported", .requests = 2 },
	{ .name = "tier", .kernel = "tier", .requests = 4, .tier = 1, .written = true },
	{ .name = "tier-inclusive", .kernel = "tier", .requests = 4, .tier = 2, .written = true },
	{ .name = "tier-whole", .kernel = "tier_whole", .requests = 4, .tier = 1, .written = true },
	{ .name = "tier-drop", .kernel = "tier_drop", .requests = 4, .tier = 1 },
	{ .name = "tier-drop-inclusive", .kernel = "tier_drop", .requests = 4, .tier = 2 },
	{ .name = "rude-tier", .kernel = "tier", .requests = 3, .tier = 2, .faults = rude, .written = true },
	{ .name = "pulled-tier", .kernel = "tier", .requests = 3, .tier = 1, .pull = true, .written = true },
	{ .name = "tiny-tier",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 1,
	  .prepare = both_levels,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-tier-inclusive",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 2,
	  .prepare = both_levels,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-tier-write",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 1,
	  .mode = SCENARIO_FLUSHES,
	  .prepare = both_levels,
	  .written = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-tier-write-inclusive",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 2,
	  .mode = SCENARIO_FLUSHES,
	  .prepare = both_levels,
	  .written = true,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-tier-drop",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 1,
	  .mode = SCENARIO_DROPS,
	  .prepare = both_levels,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-tier-drop-inclusive",
	  .kernel = "tier_two",
	  .requests = 1,
	  .tier = 2,
	  .mode = SCENARIO_DROPS,
	  .prepare = both_levels,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "two-transfer",
	  .kernel = "two",
	  .prepare = two_of_theirs,
	  .partner = true,
	  .written = true },
	{ .name = "two-hold",
	  .kernel = "two_hold",
	  .requests = 3,
	  .shares = true,
	  .prepare = two_stuck_fetch,
	  .partner = true,
	  .tolerant = true },
	{ .name = "two-stuck",
	  .kernel = "two",
	  .mode = SCENARIO_STUCK,
	  .shares = true,
	  .prepare = two_stuck_write_back,
	  .partner = true,
	  .tolerant = true },
	{ .name = "two-lost",
	  .kernel = "two",
	  .mode = SCENARIO_LOST,
	  .shares = true,
	  .prepare = two_stuck_partner,
	  .partner = true,
	  .tolerant = true },
	{ .name = "two-flushed",
	  .kernel = "two_flushed",
	  .prepare = two_unwritable,
	  .partner = true,
	  .tolerant = true },
	{ .name = "two-left",
	  .kernel = "two_left",
	  .requests = 1,
	  .shares = true,
	  .prepare = dying,
	  .tolerant = true },
	{ .name = "two-copies",
	  .kernel = "two_copies",
	  .requests = 3,
	  .shares = true,
	  .prepare = dying,
	  .tolerant = true },
	{ .name = "pool", .kernel = "pool", .requests = 3, .mode = SCENARIO_POOL_PAGES, .pool = 1 },
	{ .name = "pool-levels", .kernel = "pool", .requests = 3, .mode = SCENARIO_POOL_LEVELS, .pool = 2 },
	{ .name = "pool-twice", .kernel = "pool_twice", .requests = 2, .pool = 1 },
	{ .name = "tiny-pool",
	  .kernel = "pool",
	  .requests = 1,
	  .mode = SCENARIO_POOL_PAGES,
	  .pool = 1,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "tiny-pool-twice",
	  .kernel = "pool_twice",
	  .requests = 1,
	  .pool = 1,
	  .tiny = true,
	  .waves = 2 },
	{ .name = "batch", .kernel = "batch", .requests = 4, .batches = true },
	{ .name = "rude-batch", .kernel = "batch", .requests = 3, .batches = true, .faults = rude },
	{ .name = "pulled-batch", .kernel = "batch", .requests = 3, .batches = true, .pull = true },
	{ .name = "placed", .kernel = "raw", .requests = 4, .placed = true },
	{ .name = "placed-burst", .kernel = "burst", .requests = 4, .placed = true, .tolerant = true },
	{ .name = "placed-rewrite", .kernel = "rewrite", .requests = 4, .placed = true },
	{ .name = "placed-lines", .kernel = "cached", .requests = 4, .placed = true },
	{ .name = "placed-put", .kernel = "put", .requests = 4, .written = true, .placed = true },
	{ .name = "placed-batch", .kernel = "batch", .requests = 3, .batches = true, .placed = true },
	{ .name = "pulled-placed", .kernel = "rewrite", .requests = 3, .pull = true, .placed = true },
	{ .name = "dataset", .kernel = "dataset", .hosted = true },
	{ .name = "dataset-enqueued", .kernel = "dataset", .mode = SCENARIO_DATASET_ENQUEUE, .hosted = true },
	{ .name = "dataset-small", .kernel = "dataset", .mode = SCENARIO_DATASET_SMALL, .hosted = true },
	{ .name = "dataset-small-enqueued",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_ENQUEUE,
	  .hosted = true },
	{ .name = "dataset-blocks", .kernel = "dataset", .mode = SCENARIO_DATASET_BLOCKS, .hosted = true },
	{ .name = "dataset-blocks-enqueued",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_BLOCKS | SCENARIO_DATASET_ENQUEUE,
	  .hosted = true },
	{ .name = "dataset-two",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_ENQUEUE,
	  .partner = true,
	  .hosted = true },
	{ .name = "dataset-failing",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL,
	  .prepare = bad_sample,
	  .hosted = true },
	{ .name = "dataset-failing-enqueued",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_ENQUEUE,
	  .prepare = bad_sample,
	  .hosted = true },
	{ .name = "dataset-failing-blocks",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_BLOCKS | SCENARIO_DATASET_ENQUEUE,
	  .prepare = bad_sample,
	  .hosted = true },
	{ .name = "dataset-late",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_LATE,
	  .prepare = lost_block,
	  .depth = 16,
	  .hosted = true },
	{ .name = "dataset-late-blocks",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_BLOCKS | SCENARIO_DATASET_LATE,
	  .prepare = lost_block,
	  .depth = 16,
	  .hosted = true },
	{ .name = "dataset-refused",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_REFUSED,
	  .hosted = true },
	{ .name = "dataset-refused-enqueued",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_ENQUEUE | SCENARIO_DATASET_REFUSED,
	  .hosted = true },
	{ .name = "dataset-refused-blocks",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_BLOCKS | SCENARIO_DATASET_ENQUEUE | SCENARIO_DATASET_REFUSED,
	  .hosted = true },
	{ .name = "rude-dataset",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_SMALL | SCENARIO_DATASET_ENQUEUE,
	  .faults = rude,
	  .hosted = true },
	{ .name = "pulled-dataset",
	  .kernel = "dataset",
	  .mode = SCENARIO_DATASET_ENQUEUE,
	  .pull = true,
	  .hosted = true },
};
