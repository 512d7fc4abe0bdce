/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h: the table of cases (scenarios.c), and how one begins and ends (scenario.c). */
#ifndef EXPLORE_SCENARIO_H
#define EXPLORE_SCENARIO_H

#include <stdbool.h>

#include <weir/types.h>

struct weir_virtual_fault;

/**
 * struct scenario - a case
 * @name: for the command line
 * @kernel: what lanes run
 * @requests: per lane; 0 for 2
 * @waves: with @tiny: how many
 * @width: with @tiny: lanes per wave; 0 for 1
 * @depth: of the rings; 0 for what chance says, 4 or 8 with @tiny
 * @prepare: spoils something after the rig was laid out, or NULL
 * @faults: fills the controller's fault table and says how many rows, or NULL
 * @tolerant: requests may fail, and commands may be in flight at the end; the rest is at rest all the same
 * @pull: lanes move the data: 1 from staging, 2 from the medium
 * @shadow: doorbells have shadows
 * @forwarded: a thread of the host rings for lanes
 * @on_device: order reaches the device only, as for a controller that is part of it
 * @nic: a NIC carries commands and responses
 * @mode: for the kernel
 * @partner: two storages behind the cache
 * @shares: the cache has a Share Table
 * @tier: and lines behind it: 1 exclusive, 2 inclusive
 * @placed: a volume of three engines, whose blocks lanes place
 * @written: lanes write through the cache, and the last one flushes it
 * @pool: megabytes of a pool of buffers
 * @batches: waves have batches
 * @hosted: behind the lanes' waves there is one of a single lane: the host's program, which launches kernels
 * @fair: more lanes than slots, of one queue pair; the oldest is not overtaken for ever
 * (docs/guide/blocks.md)
 * @tiny: small enough to try every schedule; shape fixed
 */
struct scenario {
	const char *name;
	const char *kernel;
	u32 requests;
	u32 waves;
	u32 width;
	u32 mode;
	u32 depth;
	void (*prepare)(void);
	u32 (*faults)(struct weir_virtual_fault *rows);
	bool tolerant;
	u32 pull;
	bool shadow;
	bool forwarded;
	bool on_device;
	bool nic;
	bool partner;
	bool shares;
	u32 tier;
	u32 pool;
	bool batches;
	bool placed;
	bool written;
	bool hosted;
	bool fair;
	bool tiny;
};

enum { SCENARIO_COUNT = 162 };

extern const struct scenario scenarios[SCENARIO_COUNT];

/* What sets begin with in which lines of two storages meet (scenarios_two.c). */
void two_of_theirs(void);
void two_stuck_fetch(void);
void two_stuck_write_back(void);
void two_stuck_partner(void);
void two_unwritable(void);

const struct scenario *scenario_find(const char *name);
/** scenario_begin() - lay everything out as run.random says. Return: the kernel's argument. */
void *scenario_begin(const struct scenario *scenario, u32 *waves, u32 *width);
/** scenario_end() - check what must hold at rest, and let go of the queues */
void scenario_end(const struct scenario *scenario);

#endif
