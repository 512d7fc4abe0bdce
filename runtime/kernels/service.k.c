/* SPDX-License-Identifier: BSD-3-Clause */
/* Reaping as a persistent kernel, so that no other lane has to (AGILE, section 3.3). */
#include <weir/core/queue/cq.h>

#include "service.h"

enum { STOP_ITERATIONS = 64 };

WEIR_KERNEL(weir_service, struct weir_service_args)
{
	u64 lanes = weir_active(), stop = 0;
	u32 waves = (u32)(weir_threads() / weir_lanes());

	if (weir_thread() == 0)
		weir_store_u32_release_sys(weir_at(args->started, weir_shared_u32, 0), 1);
	for (u32 iteration = 0; !stop; iteration++) {
		u32 reaped = 0;

		for (u32 q = (u32)weir_wave(); q < args->queue_count; q += waves)
			reaped += weir_cq_reap(weir_at(args->queues, struct weir_queue, q), lanes);
		if (iteration % STOP_ITERATIONS == 0) /* relaxed: a flag that only rises */
			stop = weir_broadcast_u64(lanes, weir_elected(lanes)
								 ? weir_load_u32_relaxed_sys(weir_at(
									   args->stop, weir_shared_u32, 0))
								 : 0);
		if (reaped == 0)
			weir_relax(0);
	}
}
