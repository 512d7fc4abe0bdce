/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for wait.h and async.h; a part of scenarios.k.c. */
#include <weir/async.h>

/* All requests first, more than the rings hold; then each event once, as it comes, or all, or by tests. */
WEIR_KERNEL(any, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u32 kind = (args->salt + (u32)weir_wave()) % 3, left = args->requests;
	u64 wave = weir_active();

	for (u32 r = 0; r < args->requests; r++)
		explore_expect("status of a submission",
			       weir_read_async(disk, some_lba(args, r), 1, buffer_of(args, r), event_of(args, r)),
			       WEIR_OK);
	if (kind == 0) {
		explore_expect("status of all", weir_wait_all(disk, event_of(args, 0), args->requests, 0), WEIR_OK);
		for (u32 r = 0; r < args->requests; r++)
			check_block(buffer_of(args, r), some_lba(args, r), 0);
		left = 0;
	}
	while (weir_ballot(wave, left != 0)) {
		struct weir_any any;

		weir_converge();
		any.index = args->requests - left;
		if (left && kind == 1) {
			any = weir_wait_any(disk, event_of(args, 0), args->requests, 0);
			explore_expect("status of any", any.status, WEIR_OK);
			explore_expect("an event not given before", any.index < args->requests, 1);
		}
		if (left && (kind == 1 || weir_test(disk, event_of(args, any.index)))) {
			check_block(buffer_of(args, any.index), some_lba(args, any.index), 0);
			left--;
		}
		weir_relax();
	}
	if (kind == 1)
		explore_expect("no event left",
			       weir_wait_any(disk, event_of(args, 0), args->requests, 0).index, args->requests);
}

/* Commands that a queue pair has under way. */
WEIR_FN u64 under_way(WEIR_GLOBAL struct weir_queue *queue)
{
	return (weir_load_u64_relaxed_dev(&queue->tail) << 1) - (weir_load_u64_relaxed_dev(&queue->reap) & ~(u64)1);
}

/* Nobody waits for a prefetch: whoever leaves last sees the rest of them come. */
WEIR_FN void see_them_come(WEIR_GLOBAL struct weir_disk *disk)
{
	u64 wave = weir_active();
	u32 left = 1, turn = 0;

	while (weir_ballot(wave, left)) {
		weir_converge();
		left = 0;
		for (u32 q = 0; q < disk->queue_count; q++)
			left |= under_way(weir_at(disk->queues, struct weir_queue, q)) != 0;
		if (weir_ballot(wave, left) && weir_disk_help(wave, wave, disk, turn++) == 0)
			weir_relax();
	}
}

/* Lines fetched ahead, for oneself and others, through a cache far too small; then read. */
WEIR_KERNEL(ahead, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = some_lba(args, r) % (SCENARIO_BLOCKS / 4);

		weir_prefetch(array, lba * SCENARIO_BLOCK_WORDS, 2 * SCENARIO_BLOCK_WORDS);
		explore_expect("element read", weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + r),
			       scenario_word(lba, 0, r));
		explore_progress();
	}
	see_them_come(weir_at(args->disk, struct weir_disk, 0));
}

/* Copies of lines beside reads of them, so that some are in the cache, and some on their way. */
WEIR_KERNEL(copies, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++)
		explore_expect("status of a copy",
			       weir_async_read(array, some_lba(args, r) % 8, buffer_of(args, r), event_of(args, r)),
			       WEIR_OK);
	explore_expect("element read",
		       weir_array_get_u64(array, (some_lba(args, 1) % 8) * SCENARIO_BLOCK_WORDS + 1),
		       scenario_word(some_lba(args, 1) % 8, 0, 1));
	explore_expect("status of all", weir_async_wait_all(array, event_of(args, 0), args->requests, 0), WEIR_OK);
	for (u32 r = 0; r < args->requests; r++)
		check_block(buffer_of(args, r), some_lba(args, r) % 8, 0);
}
