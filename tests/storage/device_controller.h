/* SPDX-License-Identifier: BSD-3-Clause */
/* storage/device_controller.h: arguments of the kernels in storage/device_controller.k.c. */
#ifndef WEIR_TESTS_DEVICE_CONTROLLER_H
#define WEIR_TESTS_DEVICE_CONTROLLER_H

#include <weir/abi.h>

#include "../../runtime/kernels/controller_timed.h"

enum { DEVICE_CONTROLLER_MOST_BLOCKS = 24 };

/** struct device_controller_result - one command: how it ended, and when by the device's clock */
struct device_controller_result {
	u64 began_ns;
	u64 ended_ns;
	u32 status;
	u32 wrong; /* it ended well, with other data */
};

/**
 * struct device_controller_args - the first waves are the controller, the others are its clients
 * @controller: its queue pairs and medium
 * @disk: the same queue pairs, as clients see them
 * @events: struct weir_event per lane
 * @buffers: 2 x DEVICE_CONTROLLER_MOST_BLOCKS blocks of 512 bytes per lane
 * @results: test_device_controller_reads: struct device_controller_result[client lane][round]
 * @finished: weir_shared_u32, client lanes that are done
 * @wrong: weir_shared_u32, requests that failed or gave other words
 * @timeout_us: test_device_controller_reads: of each read; 0: the disk's
 * @rounds: writes, each read back, or reads per lane
 * @controllers: waves
 * @timed: with timing and faults
 */
struct device_controller_args {
	struct weir_controller_args controller;
	struct weir_disk disk;
	weir_addr events;
	weir_addr buffers;
	weir_addr results;
	weir_addr finished;
	weir_addr wrong;
	u64 timeout_us;
	u32 rounds;
	u32 controllers;
	u32 timed;
	u32 padding;
};

/**
 * struct device_controller_iterations_args - one wave, so many turns of queue 0, without any client
 * @served: u32[turns]
 */
struct device_controller_iterations_args {
	struct weir_controller_args controller;
	weir_addr served;
	u32 iterations;
	u32 timed;
};

/**
 * struct device_controller_copy_args - one wave copies; its lanes' blocks lie @stride apart
 * @to, @from: of lane 0
 * @bytes: u32 per lane
 * @stride: bytes
 * @mask: lanes that call
 */
struct device_controller_copy_args {
	weir_addr to;
	weir_addr from;
	weir_addr bytes;
	u64 stride;
	u64 mask;
};

/* Word @word of block @lba of a medium that nobody wrote. */
WEIR_FN u64 device_controller_word(u64 lba, u64 word)
{
	return lba << 32 | 0x5a000000u | word;
}

#endif
