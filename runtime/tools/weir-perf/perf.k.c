/* SPDX-License-Identifier: BSD-3-Clause */
/* The load: every lane keeps one read in flight until the time is up. */
#include <weir/disk.h>

#include "perf.h"

/* A well-mixed word per (seed, lane, step); no state to carry. */
WEIR_FN u64 perf_random(u64 seed, u64 lane, u64 step)
{
	u64 value = seed + lane * 0x9e3779b97f4a7c15ul + step * 0xbf58476d1ce4e5b9ul;

	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ul;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebul;
	return value ^ (value >> 31);
}

/* Exact below 8, then four buckets per power of two: 8, 10, 12, 14, 16, 20, ... */
WEIR_FN u32 perf_bucket(u64 ns)
{
	u32 power = 0;

	for (; ns >= 8; ns >>= 1)
		power++;
	return power * 4 + (u32)ns;
}

WEIR_FN u64 perf_place(WEIR_GLOBAL struct perf_args *args, u64 step)
{
	if (args->sequential)
		return (step * args->lanes + weir_thread()) % args->spans;
	/* the high half of a 128-bit product: even over any number of places */
	return weir_mulhi(perf_random(args->seed, weir_thread(), step), args->spans);
}

/* When the time is up: the same moment for all lanes, however late one begins. */
WEIR_FN u64 perf_deadline(WEIR_GLOBAL struct perf_args *args)
{
	u64 now = weir_clock_ns();
	/* relaxed: the word itself is all that is told */
	u64 start = weir_cas_u64_relaxed_dev(weir_at(args->start, weir_shared_u64, 0), 0, now);

	return (start ? start : now) + args->runtime_ns;
}

WEIR_KERNEL(perf_read, struct perf_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	u64 reads = 0, errors = 0, begin = weir_clock_ns(), deadline;

	if (weir_thread() >= args->lanes)
		return;
	deadline = perf_deadline(args);
	while (begin < deadline) {
		u64 lba = perf_place(args, reads) * args->blocks_per_read;
		weir_status status = weir_read(&args->disk, lba, args->blocks_per_read, buffer, event, 0);
		u64 end = weir_clock_ns();

		/* relaxed: sums, read by the host after the launch */
		(void)weir_add_u64_relaxed_dev(
			weir_at(args->histogram, weir_shared_u64, perf_bucket(end - begin) % PERF_BUCKETS), 1);
		reads++;
		errors += status != WEIR_OK;
		begin = end;
	}
	(void)weir_add_u64_relaxed_dev(weir_at(args->reads, weir_shared_u64, 0), reads);
	if (errors)
		(void)weir_add_u64_relaxed_dev(weir_at(args->errors, weir_shared_u64, 0), errors);
}
