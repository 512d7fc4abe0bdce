/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: the simulated disk of an engine: a medium with a volatile cache.
 *
 * Owns: its blocks as reads see them, and as they are after a loss of power: of what was not flushed some
 * blocks are there, some are not, some are torn between their sectors. It may be slow, and bits of it may
 * rot.
 */
#ifndef WEIR_SIMULATE_DISK_H
#define WEIR_SIMULATE_DISK_H

#include "sim.h"
#include "transport/medium/medium.h"

enum { DISK_BLOCK = 4096, DISK_MOST_BLOCKS = 1024, DISK_SECTOR = 512 };

/** struct sim_io - a request that has not ended; @next: of its disk's */
struct sim_io {
	struct weir_io *io;
	struct sim_disk *disk;
	struct sim_io *next;
	bool applied;
	bool ended;
};

/**
 * struct sim_disk - @now: blocks, NULL: zeros; @before: as before writes that are not durable; @dirty: differ
 * @slow_ns: what a request takes at most
 * @off: the power is off: all requests fail
 * @full: as a file on a full file system: blocks that were never written cannot be
 * @task: who polls for threads' requests
 */
struct sim_disk {
	struct weir_medium medium;
	u8 *now[DISK_MOST_BLOCKS];
	u8 *before[DISK_MOST_BLOCKS];
	bool dirty[DISK_MOST_BLOCKS];
	u64 slow_ns;
	bool off;
	bool full;
	struct sim_task **task;
	struct sim_io *pending;
};

void sim_disk_create(struct sim_disk *disk, u64 bytes, struct sim_task **task);
void sim_disk_destroy(struct sim_disk *disk);
/** sim_disk_off() - what has not ended fails */
void sim_disk_off(struct sim_disk *disk);
/** sim_disk_on() - the power is back; @lossy: it was lost for the disk, too, else for the process alone */
void sim_disk_on(struct sim_disk *disk, bool lossy);
/** sim_disk_wipe() - another, empty disk is in its place */
void sim_disk_wipe(struct sim_disk *disk);
/** sim_disk_rot() - turn a bit of block @block over; false: nothing is there */
bool sim_disk_rot(struct sim_disk *disk, u64 block);

#endif
