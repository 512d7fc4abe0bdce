/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes.h: a client whose requests are made by lanes, and go to engines by rings in memory.
 *
 * Owns: what the two sides of the port share: lane.c is compiled for the explorer's port, whose primitives
 * lanes_port.c gives; all else is the host's.
 */
#ifndef WEIR_SIMULATE_LANES_H
#define WEIR_SIMULATE_LANES_H

#include <stdbool.h>

#include <weir/abi.h>

/**
 * struct lane_request - what one lane does: a command, until it has ended
 * @disk: struct weir_disk
 * @event: struct weir_event of the lane's own
 * @flags: CDW12 above the number of blocks
 * @timeout_us: after which it is not tried again
 * @once: it is not tried again at all
 */
struct lane_request {
	weir_addr disk;
	weir_addr event;
	weir_addr buffer;
	u64 vba;
	u32 blocks;
	u32 opcode;
	u32 flags;
	u64 timeout_us;
	bool once;
	weir_status status;
};

/** lane_request_run() - by the current task, which stands for lane and wave number @lane of @lanes */
void lane_request_run(struct lane_request *request, u64 lane, u64 lanes);
/** lane_kernel() - the core's part of it */
void lane_kernel(struct lane_request *request);
/** lanes_draw_pauses() - how often lanes of this seed pause for long */
void lanes_draw_pauses(void);
/** lane_map() - the map's word that lanes of the current task's client go by */
u64 lane_map(void);
/** lane_rang() - a lane has stored @value to doorbell @address */
void lane_rang(void *address, u32 value);

#endif
