/* SPDX-License-Identifier: BSD-3-Clause */
/* ctc.h: arguments of the kernels that read and compute, shared by host and lanes. */
#ifndef CTC_H
#define CTC_H

#include <weir/abi.h>

enum { CTC_BYTES = 4096, CTC_SECTOR_BYTES = 512, CTC_BLOCK_LANES = 1024 };

/**
 * struct ctc_lane - what one lane reports
 * @begin, @end: weir_clock_ns()
 * @check: sum of ctc_check() over all it read
 * @sink: what it computed
 */
struct ctc_lane {
	u64 begin;
	u64 end;
	u64 check;
	u64 sink;
};

/**
 * struct ctc_args - one run
 * @disk: what is read
 * @lanes: lanes that take part
 * @commands: reads of each
 * @buffers: CTC_BYTES for each lane and each command
 * @events: two struct weir_event per lane
 * @results: struct ctc_lane per lane
 * @failure: u64: weir_status of a read that failed; 0: none did
 * @indices: blocks of CTC_BYTES to read from
 * @iterations: of the computation for each command
 */
struct ctc_args {
	struct weir_disk disk;
	u64 lanes;
	u64 commands;
	weir_addr buffers;
	weir_addr events;
	weir_addr results;
	weir_addr failure;
	u64 indices;
	u64 iterations;
};

#endif
