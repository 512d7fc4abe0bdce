/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plain baseline: the same places, the same lengths, the same buffers, and no weir:
 * a wave copies its lanes' blocks between two memories, 16 bytes per access. Its blocks may
 * be as large as those of a controller on the device.
 */
#define WEIR_BLOCK_LANES 768
#include <weir/core/queue/copy.h>

#include "places.h"

WEIR_FN void perf_plain_copies(WEIR_GLOBAL struct perf_plain_args *args, u32 zipf)
{
	WEIR_GLOBAL struct perf_locations *indices = &args->load.indices;
	u64 wave = weir_active(), lane = weir_thread(), lanes = args->load.lanes, step = 0, done = 0;
	u64 apart = lanes % args->buffer_count,
	    iteration = lane % args->buffer_count; /* all buffers in turn */
	u32 takes_part = lane < lanes;
	u64 deadline = weir_broadcast_u64(wave, perf_deadline(&args->load));

	/* the exit is one lane's look at the clock: all of the wave copies or none does */
	for (; weir_broadcast_u64(wave, weir_clock_ns()) < deadline; step++) {
		u64 span = zipf ? perf_location(indices, lane, lane, lanes, step)
				: perf_even_location(indices, lane, lane, lanes, step);
		weir_addr index = args->source + span * args->unit_bytes;
		weir_addr buffer = args->buffers + iteration * args->stride_bytes;
		u32 reads = perf_reads(&args->load, lane, step);

		weir_wave_copy(wave, reads ? buffer : index, reads ? index : buffer,
			       takes_part ? args->bytes : 0);
		done += takes_part;
		iteration += iteration + apart < args->buffer_count ? apart : apart - args->buffer_count;
	}
	perf_add(&weir_at(args->load.results, struct perf_results, 0)->reads, done);
}

WEIR_KERNEL(perf_plain, struct perf_plain_args)
{
	perf_plain_copies(args, 0);
}

/* Zipf places take more registers than the copies do. */
WEIR_KERNEL(perf_plain_zipf, struct perf_plain_args)
{
	perf_plain_copies(args, 1);
}
