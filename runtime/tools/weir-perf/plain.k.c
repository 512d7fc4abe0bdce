/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain baseline: the same places, the same lengths, the same buffers, and no weir:
 * a wave copies its lanes' blocks between two memories, 16 bytes per access.
 */
#include <weir/core/copy.h>

#include "places.h"

WEIR_KERNEL(perf_plain, struct perf_plain_args)
{
	u64 wave = weir_active(), lane = weir_thread(), step = 0, done = 0;
	u32 takes_part = lane < args->load.lanes;
	weir_addr buffer = args->buffers + lane % args->buffer_count * args->stride_bytes;
	u64 deadline = weir_broadcast_u64(wave, perf_deadline(&args->load));

	/* the exit is one lane's look at the clock: all of the wave copies or none does */
	for (; weir_broadcast_u64(wave, weir_clock_ns()) < deadline; step++) {
		weir_addr place = args->source + perf_place(&args->load.places, lane, lane, args->load.lanes, step) *
							 args->unit_bytes;
		u32 reads = perf_reads(&args->load, lane, step);

		weir_wave_copy(wave, reads ? buffer : place, reads ? place : buffer, takes_part ? args->bytes : 0);
		done += takes_part;
	}
	perf_add(&weir_at(args->load.results, struct perf_results, 0)->reads, done);
}
