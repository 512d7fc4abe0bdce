/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wave.h: lanes as fibers, and where the lanes of a wave meet.
 *
 * Owns: one wave's lanes, their states, the collectives. All lanes of a wave live
 * on one worker thread, so nothing in here is atomic.
 */
#ifndef WEIR_CPU_WAVE_H
#define WEIR_CPU_WAVE_H

#include <stdbool.h>

#include <weir/port.h>

#include "fiber.h"

enum cpu_lane_state {
	CPU_LANE_READY,      /* may run */
	CPU_LANE_RELAXED,    /* polls something; may run in the next pass */
	CPU_LANE_CONVERGING, /* in weir_active(): waits for lanes that could join */
	CPU_LANE_MEETING,    /* in a collective: waits for the rest of its mask */
	CPU_LANE_DONE,       /* its kernel has returned, or it was never there */
};

enum cpu_collective { CPU_BALLOT, CPU_SHUFFLE, CPU_MATCH, CPU_SYNC };

/**
 * struct cpu_lane - one lane
 * @self: what the port's identity functions read; first, so that it is the lane
 * @state: see above
 * @fiber: its stack and registers
 * @wave: its wave
 * @polls: RELAXED: how often it has polled in vain
 * @site: CONVERGING: where it called from; lanes of one site become one mask
 * @kind: MEETING: which collective
 * @mask: MEETING: the lanes expected
 * @value: MEETING: this lane's contribution
 * @from: MEETING: shuffle source
 * @result: what it gets
 */
struct cpu_lane {
	struct weir_cpu_lane self;
	enum cpu_lane_state state;
	struct weir_fiber fiber;
	struct cpu_wave *wave;
	u32 polls;
	const void *site;
	enum cpu_collective kind;
	u64 mask;
	u64 value;
	u32 from;
	u64 result;
};

/**
 * struct cpu_wave - lanes that run together
 * @worker: whose main fiber the lanes yield to
 * @lanes: struct cpu_lane[width]
 * @live: lanes not DONE
 * @polls: the fewest of the lanes that polled in the last pass
 * @strict: the program ends where a GPU may never go on (WEIR_CPU_STRICT)
 */
struct cpu_wave {
	struct weir_fiber *worker;
	struct cpu_lane *lanes;
	u32 width;
	u32 live;
	u32 polls;
	bool strict;
};

/**
 * cpu_wave_pass() - run every lane until it polls, meets nobody, or ends
 *
 * Return: true once all lanes are done.
 */
bool cpu_wave_pass(struct cpu_wave *wave);

/** cpu_rest() - let others have the core, after @polls polls in vain */
void cpu_rest(u32 polls);

/** cpu_lane_finish() - the running lane's kernel has returned; does not come back until reused */
void cpu_lane_finish(struct cpu_lane *lane);

#endif
