/* SPDX-License-Identifier: BSD-3-Clause */
/* The load through a cache: a read brings in every line of its place and takes words of it; a write covers
 * whole lines. */
#include <weir/disk.h>
#include <weir/writer.h>

#include "places.h"

/* cached_tier.k.c has them once more. */
#ifndef PERF_CACHED_KERNEL
#define PERF_CACHED_KERNEL(name, args_type) WEIR_KERNEL(name, args_type)
#endif

/* Which storage of the array holds word @word, and which word of it that is. */
WEIR_FN u64 perf_array_pattern(WEIR_GLOBAL struct perf_cached_args *args, u64 word)
{
	WEIR_GLOBAL struct weir_extent *extent = &args->writer.array.extent;
	u64 at = args->writer.array.first_byte / 8 + word, line = at / args->line_words;
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
		struct weir_run run = weir_array_run_u64(&args->writer.array, at, end);

		if (run.count == 0)
			return 1; /* an error: the context has it */
		bad += perf_run_wrong(args, run, at);
		at += run.count;
	}
	if (bad) /* relaxed: any one of them will do */
		weir_store_u64_relaxed_dev(&weir_at(args->load.results, struct perf_results, 0)->bad_byte,
					   args->writer.array.first_byte + word * 8);
	return bad != 0;
}

/* The sum of a word of each line of a place. */
WEIR_FN u64 perf_cached_sum(WEIR_GLOBAL struct perf_cached_args *args, u64 word)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->words; i += args->line_words)
		sum += weir_array_get_u64(&args->writer.array, word + i);
	return sum;
}

/* The lane's buffer over a place; with @verify what is there already. Return: it failed. */
WEIR_FN u32 perf_cached_put(WEIR_GLOBAL struct perf_cached_args *args, u64 word, u32 verify)
{
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;

	for (u64 i = 0; verify && i < args->words; i++)
		weir_data_store_u64(buffer + i * 8, perf_array_pattern(args, word + i));
	return weir_writer_write(&args->writer, word, args->words, buffer) != WEIR_OK;
}

/* @writes and @verify are constants of each kernel: who only reads holds no code that writes. */
WEIR_FN void perf_cached_run(WEIR_GLOBAL struct perf_cached_args *args, u32 writes, u32 verify)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	u64 lane = weir_thread(), sum = 0, begin = weir_clock_ns(), deadline;
	struct perf_counts counts;

	if (lane >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	deadline = perf_deadline(&args->load);
	while (begin < deadline) {
		u64 step = counts.reads + counts.writes;
		u64 index = perf_location(&args->load.indices, lane, lane, args->load.lanes, step),
		    word = index * args->unit_words;
		u32 reads = !writes || perf_reads(&args->load, lane, step);

		if (reads && verify)
			counts.bad += perf_cached_bad(args, word);
		else if (reads)
			sum += perf_cached_sum(args, word);
		else
			counts.errors += perf_cached_put(args, word, verify);
		if (weir_array_failed(&args->writer.array))
			break; /* the host says why, and no figure */
		if (!reads && verify)
			perf_note_written(&args->load, index, 0);
		if (args->load.flags & PERF_LATENCY) {
			u64 end = weir_clock_ns();

			perf_time(results, reads, end - begin);
			begin = end;
		} else if (step % PERF_CLOCK_STEPS == 0) {
			begin = weir_clock_ns();
		}
		counts.reads += reads;
		counts.writes += !reads;
		counts.checked += reads && verify;
	}
	perf_add(&results->checksum, sum);
	perf_report(results, counts);
}

/* One word of every line. */
PERF_CACHED_KERNEL(perf_cached, struct perf_cached_args)
{
	perf_cached_run(args, 0, 0);
}

/* All words, checked. */
PERF_CACHED_KERNEL(perf_cached_verify, struct perf_cached_args)
{
	perf_cached_run(args, 0, 1);
}

/* The same where some requests write, or all. */
PERF_CACHED_KERNEL(perf_cached_write, struct perf_cached_args)
{
	perf_cached_run(args, 1, 0);
}

PERF_CACHED_KERNEL(perf_cached_write_verify, struct perf_cached_args)
{
	perf_cached_run(args, 1, 1);
}

/* The lines of place @word, from storage into @buffer, past the cache. */
WEIR_FN weir_status perf_cached_fetch(WEIR_GLOBAL struct perf_cached_args *args, u64 word, weir_addr buffer,
				      WEIR_GLOBAL struct weir_event *event)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 line = (array->first_byte / 8 + word) / args->line_words;
	weir_status status = WEIR_OK;

	for (u64 i = 0; i < args->words && status == WEIR_OK; i += args->line_words, line++)
		status = weir_read(weir_extent_disk(&array->extent, line),
				   weir_extent_lba(lines, &array->extent, line),
				   weir_extent_blocks(lines, &array->extent, line), buffer + i * 8, event, 0);
	return status;
}

/* What a load wrote and a flush wrote back, once per place: it is on storage. */
PERF_CACHED_KERNEL(perf_cached_readback, struct perf_cached_args)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	struct perf_counts counts;

	if (weir_thread() >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	for (u64 index = weir_thread(); index < args->load.indices.spans; index += args->load.lanes) {
		u64 word = index * args->unit_words, wrong = 0;
		weir_status status;

		if (!perf_was_written(&args->load, index))
			continue;
		status = perf_cached_fetch(args, word, buffer, event);
		if (status == WEIR_E_TIMEOUT) {
			perf_add(&results->stuck, 1);
			break;
		}
		counts = perf_count(counts, 1, status != WEIR_OK);
		if (status != WEIR_OK) { /* relaxed: any one of them will do */
			weir_store_u64_relaxed_dev(&results->status, status);
			continue;
		}
		for (u64 i = 0; i < args->words; i++)
			wrong += weir_data_load_u64(buffer + i * 8) != perf_array_pattern(args, word + i);
		if (wrong) /* likewise */
			weir_store_u64_relaxed_dev(&results->bad_byte,
						   args->writer.array.first_byte + word * 8);
		counts.checked++;
		counts.bad += wrong != 0;
	}
	perf_report(results, counts);
}
