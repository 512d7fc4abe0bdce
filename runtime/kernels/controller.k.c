/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller as a kernel that stays: it serves its queues until the host says stop. */
#include "controller.h"

enum { STOP_TURNS = 64 };

WEIR_KERNEL(weir_controller, struct weir_controller_args)
{
	u64 lanes = weir_active(), stop = 0;
	u32 waves = (u32)(weir_threads() / weir_lanes());

	if (weir_thread() == 0)
		weir_store_u32_release_sys(weir_at(args->started, weir_shared_u32, 0), 1);
	for (u32 turn = 0; !stop; turn++) {
		u32 served = 0;

		for (u32 q = (u32)weir_wave(); q < args->queue_count; q += waves)
			served += weir_controller_serve(args, weir_at(args->queues, struct weir_controller_queue, q), lanes);
		if (turn % STOP_TURNS == 0) /* relaxed: a flag that only rises */
			stop = weir_broadcast_u64(
				lanes, weir_leader(lanes) ?
					       weir_load_u32_relaxed_sys(weir_at(args->stop, weir_shared_u32, 0)) : 0);
		if (served == 0)
			weir_relax();
	}
}
