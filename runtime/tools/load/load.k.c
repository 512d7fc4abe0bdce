/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load on raw blocks: every lane keeps its requests in flight until the time is up.
 * load_service.k.c makes kernels of it that leave reaping to a service.
 */
#include <weir/disk.h>

#include "places.h"

#ifndef PERF_LOAD_KERNEL
#define PERF_LOAD_KERNEL(name, args_type) WEIR_KERNEL(name, args_type)
#endif

/* Lanes in a row share a storage, so that a wave's requests stay together. */
WEIR_FN u32 perf_disk_of(WEIR_GLOBAL struct perf_args *args, u32 lane)
{
	return lane * args->disks / (u32)args->load.lanes;
}

/* The first lane of storage @disk. */
WEIR_FN u32 perf_first_lane(WEIR_GLOBAL struct perf_args *args, u32 disk)
{
	return (disk * (u32)args->load.lanes + args->disks - 1) / args->disks;
}

/* Where step @step of lane @lane goes, which belongs to storage @disk; @any: Zipf places, too. */
WEIR_FN u64 perf_lba(WEIR_GLOBAL struct perf_args *args, u32 disk, u32 lane, u64 step, u32 any)
{
	u32 first = 0, count = 1;

	if (args->load.indices.kind == PERF_SEQUENTIAL) { /* only there it matters who else there is */
		first = perf_first_lane(args, disk);
		count = perf_first_lane(args, disk + 1) - first;
	}
	return args->first_lba +
	       (any ? perf_location(&args->load.indices, lane, lane - first, count, step)
		    : perf_even_location(&args->load.indices, lane, lane - first, count, step)) *
		       args->unit_blocks;
}

/* Which bits of perf_load.written block @lba of storage @disk has. */
WEIR_FN u64 perf_location_of(WEIR_GLOBAL struct perf_args *args, u32 disk, u64 lba)
{
	return disk * args->load.indices.spans + (lba - args->first_lba) / args->unit_blocks;
}

/* Relaxed: any one of them will do. */
WEIR_FN void perf_note_error(WEIR_GLOBAL struct perf_results *results, weir_status status)
{
	weir_store_u64_relaxed_dev(&results->status, status);
}

WEIR_FN void perf_write_pattern(WEIR_GLOBAL struct perf_args *args, u64 disk, u64 lba, weir_addr buffer)
{
	u32 block_log2 = args->disk[0].block_log2;
	u64 words = (u64)args->blocks << (block_log2 - 3), first = lba << (block_log2 - 3);

	for (u64 i = 0; i < words; i++)
		*weir_at(buffer, u64, i) = perf_pattern(args->pattern_seed, disk, first + i);
}

/* 1 if a word of the block is not what was written there. */
WEIR_FN u32 perf_check_pattern(WEIR_GLOBAL struct perf_args *args, u64 disk, u64 lba, weir_addr buffer)
{
	u32 block_log2 = args->disk[0].block_log2;
	u64 words = (u64)args->blocks << (block_log2 - 3), first = lba << (block_log2 - 3), wrong = 0;

	for (u64 i = 0; i < words; i++)
		if (weir_data_load_u64(buffer + i * 8) != perf_pattern(args->pattern_seed, disk, first + i))
			wrong = (first + i) * 8 + 1;
	if (wrong) /* relaxed: any one of them will do */
		weir_store_u64_relaxed_dev(&weir_at(args->load.results, struct perf_results, 0)->bad_byte,
					   wrong - 1);
	return wrong != 0;
}

/* One request in flight per lane; no Zipf places, for their registers would be everybody's. */
PERF_LOAD_KERNEL(perf_sync, struct perf_args)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	u64 step = 0, begin = weir_clock_ns(), deadline;
	u32 lane = (u32)weir_thread(), disk;
	struct perf_counts counts;

	if (lane >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	disk = perf_disk_of(args, lane);
	deadline = perf_deadline(&args->load);
	for (; begin < deadline; step++) {
		u32 reads = perf_reads(&args->load, lane, step);
		weir_status status =
			weir_block_async(&args->disk[disk], reads ? NVME_OPCODE_READ : NVME_OPCODE_WRITE,
					 perf_lba(args, disk, lane, step, 0), args->blocks, buffer, event);

		if (status == WEIR_OK) {
			status = weir_wait(&args->disk[disk], event, 0);
			if (status == WEIR_E_TIMEOUT) {
				perf_add(&results->stuck, 1);
				break;
			}
		}
		if (args->load.flags & PERF_LATENCY) {
			u64 end = weir_clock_ns();

			if (status == WEIR_OK)
				perf_time(results, reads, end - begin);
			begin = end;
		} else if (step % PERF_CLOCK_STEPS == 0) {
			begin = weir_clock_ns();
		}
		counts = perf_count(counts, reads, status != WEIR_OK);
		if (status != WEIR_OK)
			perf_note_error(results, status);
	}
	perf_report(results, counts);
}

/*
 * One turn of a lane with several requests in flight: number @step is submitted. One that
 * could not be is told by its event, as if it had been.
 */
WEIR_FN void perf_window_submit(WEIR_GLOBAL struct perf_args *args, u32 disk, u64 step, u64 slot, u64 begin,
				u32 verify)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, slot);
	weir_addr buffer = args->buffers + slot * args->stride_bytes;
	u64 lba = perf_lba(args, disk, (u32)weir_thread(), step, 1);
	u32 reads = perf_reads(&args->load, weir_thread(), step);
	weir_status status;

	*weir_at(args->begins, u64, slot) = begin;
	if (verify && !reads)
		perf_write_pattern(args, disk, lba, buffer);
	status = weir_block_async(&args->disk[disk], reads ? NVME_OPCODE_READ : NVME_OPCODE_WRITE, lba,
				  args->blocks, buffer, event);
	if (status != WEIR_OK) /* relaxed: this lane alone looks at it */
		weir_store_u64_relaxed_dev(&event->word, WEIR_EVENT_DONE | status);
}

/* The other turn: number @step, the oldest, is waited for. 0 if it did not end. */
WEIR_FN struct perf_counts perf_window_end(WEIR_GLOBAL struct perf_args *args, u32 disk, u64 step, u64 slot,
					   struct perf_counts counts, weir_status status, u32 verify)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	u32 reads = perf_reads(&args->load, weir_thread(), step);

	if ((args->load.flags & PERF_LATENCY) && status == WEIR_OK)
		perf_time(results, reads, weir_clock_ns() - *weir_at(args->begins, u64, slot));
	counts = perf_count(counts, reads, status != WEIR_OK);
	if (verify && !reads)
		perf_note_written(
			&args->load,
			perf_location_of(args, disk, perf_lba(args, disk, (u32)weir_thread(), step, 1)),
			status != WEIR_OK);
	if (status != WEIR_OK) {
		perf_note_error(results, status);
	} else if (verify && reads) {
		counts.checked++;
		counts.bad +=
			perf_check_pattern(args, disk, perf_lba(args, disk, (u32)weir_thread(), step, 1),
					   args->buffers + slot * args->stride_bytes);
	}
	return counts;
}

WEIR_FN void perf_window_run(WEIR_GLOBAL struct perf_args *args, u32 verify)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	u64 base = weir_thread() * args->window, submitted = 0, ended = 0, now = weir_clock_ns(), deadline;
	u32 disk, in = 0, out = 0; /* submitted and ended, modulo the window */
	struct perf_counts counts;

	if (weir_thread() >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	disk = perf_disk_of(args, (u32)weir_thread());
	deadline = perf_deadline(&args->load);
	for (;;) {
		u32 room = now < deadline && submitted - ended < args->window;

		if (!room && submitted == ended)
			break;
		if (room) {
			if ((args->load.flags & PERF_LATENCY) || submitted % PERF_CLOCK_STEPS == 0)
				now = weir_clock_ns();
			perf_window_submit(args, disk, submitted++, base + in, now, verify);
			in = in + 1 == args->window ? 0 : in + 1;
		} else {
			weir_status status = weir_wait(
				&args->disk[disk], weir_at(args->events, struct weir_event, base + out), 0);

			if (status == WEIR_E_TIMEOUT) {
				perf_add(&results->stuck, submitted - ended);
				break;
			}
			counts = perf_window_end(args, disk, ended++, base + out, counts, status, verify);
			out = out + 1 == args->window ? 0 : out + 1;
		}
	}
	perf_report(results, counts);
}

/* Several requests in flight per lane; the oldest is waited for. */
PERF_LOAD_KERNEL(perf_window, struct perf_args)
{
	perf_window_run(args, 0);
}

/* The same; every word that was read is checked, and what is written is the pattern. */
PERF_LOAD_KERNEL(perf_verify, struct perf_args)
{
	perf_window_run(args, 1);
}

#ifndef WEIR_SERVICE_ONLY /* what comes before the load is there once */

/* The pattern into the whole range, once. */
WEIR_KERNEL(perf_fill, struct perf_args)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	struct perf_counts counts;
	u32 disk, first;

	if (weir_thread() >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	disk = perf_disk_of(args, (u32)weir_thread());
	first = perf_first_lane(args, disk);
	for (u64 i = weir_thread() - first; i < args->chunks; i += perf_first_lane(args, disk + 1) - first) {
		u64 lba = i + 1 == args->chunks ? args->last_lba : args->first_lba + i * args->blocks;
		weir_status status;

		perf_write_pattern(args, disk, lba, buffer);
		status = weir_write(&args->disk[disk], lba, args->blocks, buffer, event, 0);
		if (status == WEIR_E_TIMEOUT) {
			perf_add(&results->stuck, 1);
			break;
		}
		counts = perf_count(counts, 0, status != WEIR_OK);
		if (status != WEIR_OK)
			perf_note_error(results, status);
	}
	perf_report(results, counts);
}

/* What a load wrote, once more and once per place: it is what was written. */
WEIR_KERNEL(perf_readback, struct perf_args)
{
	WEIR_GLOBAL struct perf_results *results = weir_at(args->load.results, struct perf_results, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	u64 spans = args->load.indices.spans;
	struct perf_counts counts;
	u32 disk, first;

	if (weir_thread() >= args->load.lanes)
		return;
	counts.reads = counts.writes = counts.errors = counts.checked = counts.bad = 0;
	disk = perf_disk_of(args, (u32)weir_thread());
	first = perf_first_lane(args, disk);
	for (u64 i = weir_thread() - first; i < spans; i += perf_first_lane(args, disk + 1) - first) {
		u64 lba = args->first_lba + i * args->unit_blocks;
		weir_status status;

		if (!perf_was_written(&args->load, disk * spans + i))
			continue;
		status = weir_read(&args->disk[disk], lba, args->blocks, buffer, event, 0);
		if (status == WEIR_E_TIMEOUT) {
			perf_add(&results->stuck, 1);
			break;
		}
		counts = perf_count(counts, 1, status != WEIR_OK);
		if (status != WEIR_OK) {
			perf_note_error(results, status);
		} else {
			counts.checked++;
			counts.bad += perf_check_pattern(args, disk, lba, buffer);
		}
	}
	perf_report(results, counts);
}

/* Memory of a load, before it begins: neither zeros nor never touched. */
WEIR_KERNEL(perf_words, struct perf_words_args)
{
	for (u64 i = weir_thread(); i < args->words; i += weir_threads())
		*weir_at(args->address, u64, i) = perf_random(args->seed, 0, i);
}

#endif
