/* SPDX-License-Identifier: BSD-3-Clause */
/* A controller made of lanes and its clients, in one kernel: for devices that run one at a time. */
#include <weir/disk.h>

#include "resident.h"

WEIR_FN void serve_until_finished(WEIR_GLOBAL struct resident_args *args)
{
	u64 lanes = weir_active();
	u32 clients = (u32)(weir_threads() - weir_lanes()), finished = 0;

	while (finished != clients) {
		u32 served = 0;

		for (u32 q = 0; q < args->controller.queue_count; q++)
			served += weir_controller_serve(
				&args->controller,
				weir_at(args->controller.queues, struct weir_controller_queue, q), lanes);
		finished = (u32)weir_broadcast_u64(
			lanes, weir_leader(lanes) ?
				       weir_load_u32_acquire_dev(weir_at(args->finished, weir_shared_u32, 0)) : 0);
		if (served == 0)
			weir_relax();
	}
}

WEIR_FN u64 word_of(u64 lba, u32 round, u64 word)
{
	return lba << 40 | (u64)round << 16 | word;
}

/* Write @blocks blocks, read them back elsewhere, compare every word. Return: something was wrong. */
WEIR_FN u32 round_trip(WEIR_GLOBAL struct resident_args *args, u64 lba, u32 blocks, u32 round)
{
	u64 each = RESIDENT_MOST_BLOCKS * 512, words = (u64)blocks * 64;
	/* 8 bytes in: first pages are no whole ones */
	weir_addr from = args->buffers + weir_thread() * 2 * each + (blocks < RESIDENT_MOST_BLOCKS ? 8 : 0);
	weir_addr to = from + each;
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_status status;

	for (u64 i = 0; i < words; i++)
		*weir_at(from, u64, i) = word_of(lba, round, i);
	status = weir_write(&args->disk, lba, blocks, from, event, 0);
	if (status == WEIR_OK)
		status = weir_read(&args->disk, lba, blocks, to, event, 0);
	for (u64 i = 0; i < words && status == WEIR_OK; i++)
		if (weir_data_load_u64(to + i * 8) != word_of(lba, round, i))
			status = WEIR_E_TRANSFER;
	return status != WEIR_OK;
}

WEIR_KERNEL(test_resident, struct resident_args)
{
	u64 lba = weir_thread() * RESIDENT_MOST_BLOCKS;
	u32 wrong = 0;

	if (weir_wave() == 0) {
		serve_until_finished(args);
		return;
	}
	for (u32 round = 0; round < args->rounds; round++)
		wrong += round_trip(args, lba, 1 + (round * 7 + (u32)weir_thread()) % RESIDENT_MOST_BLOCKS, round);
	(void)weir_add_u32_relaxed_dev(weir_at(args->wrong, weir_shared_u32, 0), wrong);
	(void)weir_add_u32_acq_rel_dev(weir_at(args->finished, weir_shared_u32, 0), 1);
}
