/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h: a virtual controller that is stepped, a medium that ends requests in any
 * order, and queues and a cache laid out afresh for every run.
 */
#ifndef EXPLORE_RIG_H
#define EXPLORE_RIG_H

#include <stdbool.h>

#include <weir/abi.h>

#include "../../runtime/transport/virtual/fault.h"

enum { RIG_FAULTS = 8 };

/**
 * struct rig_shape - what to lay out
 * @queues: queue pairs
 * @depth: entries of each
 * @iteration: turn of the slots to begin with; even
 * @sets: sets of the cache
 * @timeout_ns: the disk's, in virtual time
 * @pull: lanes move the data, by way of staging
 * @places: they copy what they read from the medium
 * @shadow: lanes write shadow doorbells, and ring as EventIdx says
 * @forwarded: lanes store doorbells to words, and a thread of the host rings for them, at any time
 * @shares: the cache has a Share Table, of one bucket
 * @tier: sets of lines behind the cache's; 0: it has no tier
 * @inclusive: that tier
 * @on_device: as if the controller were on the device
 * @nic: lanes have a NIC carry what they submit, and what comes back
 * @partner: the second half of the queue pairs is a storage of its own, behind the same cache
 * @replicas: lanes place the blocks of a volume, with so many; the first queue pair is its own controller's,
 * the other three are engines'. 0: they do not
 * @faults: what the controller does wrong
 * @fault_count: rows of @faults
 */
struct rig_shape {
	u32 queues;
	u32 depth;
	u64 iteration;
	u32 sets;
	u64 timeout_ns;
	bool pull;
	bool places;
	bool on_device;
	bool nic;
	bool partner;
	bool shadow;
	bool forwarded;
	bool shares;
	u32 tier;
	bool inclusive;
	u32 replicas;
	struct weir_virtual_fault faults[RIG_FAULTS];
	u32 fault_count;
};

/** struct rig - addresses of what was laid out */
struct rig {
	struct rig_shape shape;
	struct weir_disk *disk;
	struct weir_queue *queues;
	struct weir_lines *lines;
	struct weir_array *array;
	struct weir_writer *writer; /* array's */
	struct weir_array *other;   /* shape.partner: of the other storage */
	bool written;               /* the scenario writes through the cache, and flushes at its end */
	struct weir_fault *fault;
	u64 bad_lba;    /* its reads end with an unrecovered read error; ~0 for none */
	u64 lost_lba;   /* its reads never end; ~0 for none */
	u64 dead_step;  /* the host declares the storage dead at this step, the partner if there is one; 0 for
			   never */
	u64 stop_step;  /* from here on the dying storage's controller ends nothing, and touches no memory; 0
			   for never */
	u64 dead_after; /* both are the step after so many commands of it were announced; 0: as they are */
	bool unsafe;    /* it is declared dead as one that may touch memory still (WEIR_QUEUE_UNSAFE) */
};

extern struct rig rig;

struct scenario_args;

/** rig_create() - once per process */
void rig_create(void);
/** rig_open() - lay out queues, cache and array for a run; all memory of the arena is fresh */
void rig_open(const struct rig_shape *shape);
/** rig_allocate() - zeroed memory of the arena, for this run */
void *rig_allocate(size_t bytes, size_t align);
/** rig_check() - all lanes are done and nothing was lost on purpose: is everything at rest? */
void rig_check(void);
/** rig_check_lossy() - all lanes are done, and commands may have been lost: what holds even then */
void rig_check_lossy(void);
/** rig_leave_dirty() - the first blocks are in the first lines of the cache, in generation 1, and not on
 * storage */
void rig_leave_dirty(u32 lines);
/** rig_leave_clean() - the first blocks are in the first lines of the cache, the next in those of its tier,
 * as on storage */
void rig_leave_clean(void);
/** rig_lay_out_pool() - a pool of @chunks chunks, for the arguments of a scenario */
void rig_lay_out_pool(struct scenario_args *args, u32 chunks);
/** rig_lay_out_batches() - one for each of @waves waves, likewise */
void rig_lay_out_batches(struct scenario_args *args, u32 waves);
/** rig_close() - take the queues away from the controller */
void rig_close(void);

#endif
