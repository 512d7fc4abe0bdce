/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading and computing: one after the other, in turns, and at the same time. The model is
 * figure 4 of AGILE (SC'25): one block of 1,024 lanes, 64 commands each.
 */
#define WEIR_BLOCK_LANES 1024

#include <weir/disk.h>

#include "ctc.h"

/* One lane's view of a run. */
WEIR_FN weir_addr ctc_buffer(WEIR_GLOBAL struct ctc_args *args, u64 slot)
{
	return args->buffers + (weir_thread() * args->commands + slot) * CTC_BYTES;
}

WEIR_FN WEIR_GLOBAL struct weir_event *ctc_event(WEIR_GLOBAL struct ctc_args *args, u64 command)
{
	return weir_at(args->events, struct weir_event, weir_thread() * 2 + (command & 1));
}

/* Begin to read; one that cannot be submitted is told by its event, as if it had been. */
WEIR_FN void ctc_start(WEIR_GLOBAL struct ctc_args *args, u64 command, u64 slot)
{
	WEIR_GLOBAL struct weir_event *event = ctc_event(args, command);
	u32 blocks = CTC_BYTES >> args->disk.block_log2;
	u64 index = (weir_thread() + command * args->lanes) % args->indices;
	weir_status status =
		weir_read_async(&args->disk, index * blocks, blocks, ctc_buffer(args, slot), event);

	if (status != WEIR_OK) /* relaxed: this lane alone looks at it */
		weir_store_u64_relaxed_dev(&event->word, WEIR_EVENT_DONE | status);
}

WEIR_FN void ctc_finish(WEIR_GLOBAL struct ctc_args *args, u64 command)
{
	weir_status status = weir_wait(&args->disk, ctc_event(args, command), 0);

	if (status != WEIR_OK) /* relaxed: any one of them will do */
		weir_store_u64_relaxed_dev(weir_at(args->failure, weir_shared_u64, 0), status);
}

/* The data that was read: a word of each sector. */
WEIR_FN u64 ctc_check(weir_addr buffer)
{
	u64 sum = 0;

	for (u32 i = 0; i < CTC_BYTES / CTC_SECTOR_BYTES; i++)
		sum += weir_data_load_u64(buffer + i * CTC_SECTOR_BYTES + i * 8);
	return sum;
}

/* What an earlier run left is no result of the next one. Part of no time. */
WEIR_KERNEL(ctc_poison, struct ctc_args)
{
	if (weir_thread() >= args->lanes)
		return;
	for (u64 slot = 0; slot < args->commands; slot++)
		for (u32 i = 0; i < CTC_BYTES / CTC_SECTOR_BYTES; i++)
			weir_data_store_u64(ctc_buffer(args, slot) + i * CTC_SECTOR_BYTES + i * 8,
					    (u64)0xdeadd00ddeadd00du);
	weir_at(args->results, struct ctc_lane, weir_thread())->check = (u64)0xdeadd00ddeadd00du;
}

/* A chain in which each step needs the one before. */
WEIR_FN u64 ctc_chain(u64 value, u64 iterations)
{
	for (u64 i = 0; i < iterations; i++)
		value = (value ^ (value >> 29)) * (u64)0x94d049bb133111ebu + i;
	return value;
}

WEIR_FN struct ctc_lane ctc_begin(void)
{
	struct ctc_lane lane;

	lane.begin = weir_clock_ns();
	lane.end = lane.check = lane.sink = 0;
	return lane;
}

WEIR_FN struct ctc_lane ctc_compute(WEIR_GLOBAL struct ctc_args *args, struct ctc_lane lane, u64 slot)
{
	u64 check = ctc_check(ctc_buffer(args, slot));

	lane.check += check;
	lane.sink += ctc_chain(check, args->iterations);
	return lane;
}

WEIR_FN void ctc_end(WEIR_GLOBAL struct ctc_args *args, struct ctc_lane lane)
{
	lane.end = weir_clock_ns();
	*weir_at(args->results, struct ctc_lane, weir_thread()) = lane;
}

/* Computation begins when all the data is there. */
WEIR_KERNEL(ctc_sync, struct ctc_args)
{
	struct ctc_lane lane = ctc_begin();

	if (weir_thread() >= args->lanes)
		return;
	for (u64 i = 0; i < args->commands; i++) {
		ctc_start(args, i, i);
		ctc_finish(args, i);
	}
	for (u64 i = 0; i < args->commands; i++)
		lane = ctc_compute(args, lane, i);
	ctc_end(args, lane);
}

/* Read, wait, compute, in turns: other lanes of the processor may compute meanwhile. */
WEIR_KERNEL(ctc_iterations, struct ctc_args)
{
	struct ctc_lane lane = ctc_begin();

	if (weir_thread() >= args->lanes)
		return;
	for (u64 i = 0; i < args->commands; i++) {
		ctc_start(args, i, 0);
		ctc_finish(args, i);
		lane = ctc_compute(args, lane, 0);
	}
	ctc_end(args, lane);
}

/* The next read is on its way while the lane computes. */
WEIR_KERNEL(ctc_async, struct ctc_args)
{
	struct ctc_lane lane = ctc_begin();

	if (weir_thread() >= args->lanes)
		return;
	ctc_start(args, 0, 0);
	for (u64 i = 0; i < args->commands; i++) {
		ctc_finish(args, i);
		if (i + 1 < args->commands)
			ctc_start(args, i + 1, (i + 1) & 1);
		lane = ctc_compute(args, lane, i & 1);
	}
	ctc_end(args, lane);
}

/* Computation alone, on what an earlier run has left. */
WEIR_KERNEL(ctc_alone, struct ctc_args)
{
	struct ctc_lane lane = ctc_begin();

	if (weir_thread() >= args->lanes)
		return;
	for (u64 i = 0; i < args->commands; i++)
		lane = ctc_compute(args, lane, i);
	ctc_end(args, lane);
}
