/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * level.h: making the blocks of a volume the same on all engines where they are placed.
 *
 * Owns: the comparison of engines' lists, a slice of the volume at a time, and the copies that follow. While
 * it runs a writer may write.
 *
 * Why a copy never does harm. The list says that engine S has block b in version v. The copy is read from S
 * in version v and no other: a read of the manager names the version, and is refused once another is there.
 * So what is written to T as (b, v) is what the writer wrote as (b, v). T keeps the newest version of all
 * that arrive, in whatever order: if the writer's (b, w), w > v, came first, the copy is refused as old; if
 * it comes later, it replaces the copy. Where a read was refused, or nothing was listed, because b changed
 * meanwhile, the writer sends (b, w) to every engine of the map itself, and repeats it until all have
 * answered; if it dies before that, the end of its lease makes b equal (volumed_equalize()).
 *
 * Why the versions of an engine that was away do not count. It may have a version v that was never
 * acknowledged, of a writer that is dead, while the others were made equal without it, and have been read
 * since. Its v is above theirs; taken as the newest, an old value would become another one behind readers'
 * backs. So only engines with @authority say what is the newest. A version above that, of a lease that is
 * over, is repaired: what the others have is written to all as the first version of the even epoch behind
 * v's, which no writer has: above v, below all of later leases. One of the present lease is left: its writer
 * is about to write it everywhere.
 *
 * Why a version that cannot be read any more does not keep a volume from its next writer. Where each replica
 * has all that was acknowledged (@settled), one that has an older version shows that the newest was not; what
 * that replica has is repaired in the same way.
 */
#ifndef WEIR_VOLUMED_LEVEL_H
#define WEIR_VOLUMED_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/nvme_volume.h>

#include "link.h"

/* Blocks that are compared at a time, and of these those that are looked at together. */
enum { VOLUMED_SLICE = 1 << 22, VOLUMED_CHUNK = 1 << 12 };

/**
 * struct volumed_level - a comparison
 * @links: by index in the map; NULL: not asked
 * @authority: bits, by index
 * @table: where blocks are placed
 * @vid, @blocks, @replicas, @unit_log2: the volume's
 * @from: versions below are the same already
 * @since: what each engine's list begins with; NULL: with all that it has
 * @later: versions from there on are compared again in the end, with clients kept off; ~0: none are
 * @live: lease epoch of a writer that may be at work; 0: none
 * @settled: no writer is at work, and no replica lacks what was acknowledged
 * @map: epoch for commands
 * @base: first block of the slice
 * @engine, @cursor: whose list is read, from where on; @waits: how often it did not go on there
 * @listed: all lists were read
 * @changed: a block was written meanwhile: the slice is compared once more
 * @left: blocks that differ still: an engine has no room for them, or they are damaged wherever they are
 * @at: block of the slice that is compared next
 * @best, @versions, @source: of each block of the slice: the newest version, those of its replicas, who has
 * the newest (bit 7: it was trimmed)
 * @touched: chunks of the slice that any list has a block of
 */
struct volumed_level {
	struct volume_engine_link *links[NVME_VOLUME_MOST_ENGINES];
	u32 authority;
	const u32 *table;
	u16 vid;
	u64 blocks;
	u32 replicas;
	u32 unit_log2;
	u64 from;
	const u64 *since;
	u64 later;
	u32 live;
	bool settled;
	u32 map;
	u64 base;
	unsigned engine;
	u64 cursor;
	u64 waits;
	bool listed;
	bool changed;
	u64 left;
	u64 at;
	u64 *best;
	u64 *versions[NVME_VOLUME_MOST_REPLICAS];
	u8 *source;
	bool touched[VOLUMED_SLICE / VOLUMED_CHUNK];
	u64 compared;
	u64 copied;
};

/** volumed_level_begin() - of @level the members before @base are set; 0 or a negative errno with a
 * sentence
 */
int volumed_level_begin(struct volumed_level *level);
/** volumed_level_step() - some of it. Return: 1: there is more; 0: done; or a negative errno with a sentence:
 * an engine did not do what was asked; -ENOSPC: all is compared, and some blocks are left */
int volumed_level_step(struct volumed_level *level);
void volumed_level_end(struct volumed_level *level);

#endif
