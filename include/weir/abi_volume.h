/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abi_volume.h: what host and lanes share of a volume whose blocks lanes place themselves; comes with abi.h.
 *
 * Owns: its layout. core/volume/place.h chooses engines by it, core/volume/capsule.h composes what they
 * check.
 */
#ifndef WEIR_ABI_VOLUME_H
#define WEIR_ABI_VOLUME_H

#include <weir/port.h>

enum {
	WEIR_PLACED_LEAST = 0xfd,   /* bytes of a table from here on are no engines */
	WEIR_PLACED_HIDDEN = 0xfe,  /* an engine to which lanes have no queue pair */
	WEIR_PLACED_NOBODY = 0xff,  /* fewer engines than replicas */
	WEIR_PLACED_MOST = 4,       /* replicas */
	WEIR_PLACED_GROUPS = 65536, /* words of a table */
};

/* struct weir_queue.placed */
enum {
	WEIR_QUEUE_FORWARDER =
		1, /* of the volume's own controller, whose host threads place what lanes do not */
	WEIR_QUEUE_ENGINE = 2, /* of an engine: commands have the fields of <weir/nvme_volume.h> */
};

/* struct weir_placed.map: 63:32 its epoch, and these. */
#define WEIR_PLACED_SECOND ((u64)1) /* the second table is its, not the first */
#define WEIR_PLACED_VALID  ((u64)2) /* lanes may go by it */

/**
 * struct weir_write_join - a write to several engines, which completes when all of them have answered
 * @left: 0: free; else one more than answers that are missing, and one more until the writer has sent all
 * @status: first error of an engine; WEIR_OK: none
 * @kind: WEIR_TARGET_... of whoever wrote, @target and @target_status likewise
 * @rest: engines that it has not been sent to yet, a byte each from the lowest on; bytes of 0xff: no more.
 * Like @version its writer's alone
 * @version: of its first block
 * @placed: struct weir_placed
 */
struct weir_write_join {
	weir_shared_u32 left;
	weir_shared_u32 status;
	u32 kind;
	weir_shared_u32 rest;
	u64 reserved;
	weir_addr target;
	weir_addr target_status;
	u64 version;
	weir_addr placed;
	u64 reserved_end;
};

WEIR_ASSERT_SIZE(struct weir_write_join, 64);

/**
 * struct weir_placed - a volume as lanes see it that place its blocks
 * @queues: struct weir_queue[engines * queues_each]: of engine e from e * queues_each on
 * @forwarder: struct weir_queue[forwarder_count] of the volume's own controller
 * @tables: two, of WEIR_PLACED_GROUPS words: of each group, a byte per replica, index of an engine, or from
 * WEIR_PLACED_LEAST on none
 * @joins: struct weir_write_join[join_count], a power of two
 * @tag: volume in 31:16, client in 15:0
 * @group_shift: so many groups, as a power of two, have one word of a table: 0, but in tests
 * @map: the map that lanes go by; the host writes the other table, then this word
 * @lease: lease epoch of writes; 0: the host places them
 * @stale: map epoch that an engine has refused
 * @written: blocks that got a version
 * @refused: commands that an engine refused, so that the host carries them out
 * @unequal: writes that not all engines have, until they are repeated
 */
struct weir_placed {
	weir_addr queues;
	weir_addr forwarder;
	weir_addr tables;
	weir_addr joins;
	u32 engines;
	u32 queues_each;
	u32 forwarder_count;
	u32 join_count;
	u32 tag;
	u32 unit_log2;
	u32 replicas;
	u32 group_shift;
	weir_shared_u64 map __attribute__((aligned(64)));
	weir_shared_u32 lease;
	weir_shared_u32 stale;
	u64 reserved_map[6];
	weir_shared_u64 written __attribute__((aligned(64)));
	weir_shared_u64 refused;
	weir_shared_u64 unequal;
	u64 reserved_counters[5];
};

WEIR_ASSERT_SIZE(struct weir_placed, 192);

#endif
