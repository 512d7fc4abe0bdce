/* SPDX-License-Identifier: BSD-3-Clause */
/* The load through a cache: a read brings in every line of its place and takes words of it. */
#include <weir/array.h>

#include "places.h"

/* Which storage of the array holds word @word, and which word of it that is. */
WEIR_FN u64 perf_array_pattern(WEIR_GLOBAL struct perf_cached_args *args, u64 word)
{
	WEIR_GLOBAL struct weir_extent *extent = &args->array.extent;
	u64 at = args->array.first_byte / 8 + word, line = at / args->line_words;
	u64 disk = extent->disk_count == 1 ? 0 : (line >> extent->unit_log2) % extent->disk_count;

	return perf_pattern(args->pattern_seed, disk,
			    weir_extent_line(extent, line) * args->line_words + at % args->line_words);
}

/* Number of wrong words among those of one run. */
WEIR_FN u32 perf_run_wrong(WEIR_GLOBAL struct perf_cached_args *args, struct weir_run run, u64 word)
{
	u32 wrong = 0;

	for (u32 i = 0; i < WEIR_RUN; i++)
		if (i < run.count && run.value[i] != perf_array_pattern(args, word + i))
			wrong++;
	return wrong;
}

/* Every word of a place is what it was filled with. */
WEIR_FN u32 perf_cached_bad(WEIR_GLOBAL struct perf_cached_args *args, u64 word)
{
	u64 end = word + args->words, bad = 0, at = word;

	while (at < end) {
		struct weir_run run = weir_array_run_u64(&args->array, at, end);

		if (run.count == 0)
			return 1; /* an error: the context has it */
		bad += perf_run_wrong(args, run, at);
		at += run.count;
	}
	if (bad) /* relaxed: any one of them will do */
		weir_store_u64_relaxed_dev(&weir_at(args->load.results, struct perf_results, 0)->bad_byte,
					   args->array.first_byte + word * 8);
	return bad != 0;
}

WEIR_FN void perf_cached_run(WEIR_GLOBAL struct perf_cached_args *args, u32 verify)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	u64 lane = weir_thread(), sum = 0, begin = weir_clock_ns(), deadline;
	struct perf_counts counts;

	if (lane >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.bad = 0;
	deadline = perf_deadline(&args->load);
	while (begin < deadline) {
		u64 word = perf_place(&args->load.places, lane, lane, args->load.lanes, counts.reads) * args->unit_words;

		if (verify)
			counts.bad += perf_cached_bad(args, word);
		else
			for (u64 i = 0; i < args->words; i += args->line_words)
				sum += weir_array_get_u64(&args->array, word + i);
		if (args->load.flags & PERF_LATENCY) {
			u64 end = weir_clock_ns();

			perf_time(results, 1, end - begin);
			begin = end;
		} else if (counts.reads % PERF_CLOCK_STEPS == 0) {
			begin = weir_clock_ns();
		}
		counts.reads++;
		if (weir_array_failed(&args->array))
			break; /* the host says why */
	}
	perf_add(&results->checksum, sum);
	perf_report(results, counts);
}

/* One word of every line. */
WEIR_KERNEL(perf_cached, struct perf_cached_args)
{
	perf_cached_run(args, 0);
}

/* All words, checked. */
WEIR_KERNEL(perf_cached_verify, struct perf_cached_args)
{
	perf_cached_run(args, 1);
}
