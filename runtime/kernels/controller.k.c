/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller as persistent kernels: they serve its queues until the host says stop.
 *
 * A wave of 32 lanes has 4 KiB in flight. That takes 80 registers, and 768 lanes of
 * 80 leave no room for others on a multiprocessor that has 65,536: so many blocks of that
 * size fill so many multiprocessors.
 */
#define WEIR_BLOCK_LANES 768
#define WEIR_COPY_BATCH  8

#include "controller_timed.h"

WEIR_ASSERT_SIZE(char[WEIR_BLOCK_LANES], WEIR_CONTROLLER_BLOCK_LANES);

WEIR_KERNEL(weir_controller, struct weir_controller_args)
{
	u64 lanes = weir_active();
	struct weir_controller_beat beat =
		weir_controller_beat(args, (u32)weir_wave(), (u32)(weir_threads() / weir_lanes()));
	u32 idle = 0;

	weir_controller_notify(args);
	for (u32 iteration = 0; !weir_controller_stopped(args, lanes, iteration); iteration++)
		idle = weir_controller_rest(args, idle, weir_controller_round(args, lanes, beat));
}

/* With latency, a rate or faults: a kernel of its own, so that the other one does not pay for them. */
WEIR_KERNEL(weir_controller_timed, struct weir_controller_args)
{
	u64 lanes = weir_active();
	struct weir_controller_beat beat =
		weir_controller_beat(args, (u32)weir_wave(), (u32)(weir_threads() / weir_lanes()));
	u32 idle = 0;

	weir_controller_notify(args);
	for (u32 iteration = 0; !weir_controller_stopped(args, lanes, iteration); iteration++)
		idle = weir_controller_rest(args, idle, weir_controller_round_timed(args, lanes, beat));
}
