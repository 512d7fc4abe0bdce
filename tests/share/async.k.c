/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of async_test.c. */
#include <weir/async.h>

#include "async.h"
#include "../rig/verdict.h"

WEIR_FN u64 waits_lba(WEIR_GLOBAL struct test_waits_args *args, u64 request)
{
	return request * 7 % args->blocks;
}

/* Request @request is done: its block must be there. */
WEIR_FN void waits_check(WEIR_GLOBAL struct test_waits_args *args, u64 request)
{
	u32 block_bytes = 1u << args->disk.block_log2, last = block_bytes / 4 - 1;
	WEIR_GLOBAL u32 *words = weir_at(args->buffers + request * block_bytes, u32, 0);

	expect(args->verdict, request, words[0], test_block_word(waits_lba(args, request), 1, 0));
	expect(args->verdict, request, words[last], test_block_word(waits_lba(args, request), 1, last));
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

WEIR_FN void wait_for_any(WEIR_GLOBAL struct test_waits_args *args, u64 first, u32 count)
{
	struct weir_any any;
	u32 index = 0;
	u64 wave = weir_active();

	while (weir_ballot(wave, index < count)) {
		weir_reconverge();
		if (index < count) {
			any = weir_wait_any(&args->disk, weir_at(args->events, struct weir_event, first),
					    count, 0);
			expect(args->verdict, first, any.status, WEIR_OK);
			index = any.status == WEIR_OK ? any.index : count;
			if (index < count)
				waits_check(args, first + index);
		}
	}
}

WEIR_FN void wait_by_tests(WEIR_GLOBAL struct test_waits_args *args, u64 first, u32 count)
{
	u64 wave = weir_active();
	u32 at = 0;

	for (u32 iteration = 0; weir_ballot(wave, at < count); iteration++) {
		weir_reconverge();
		if (at < count &&
		    weir_test(&args->disk, weir_at(args->events, struct weir_event, first + at)))
			waits_check(args, first + at++);
		weir_relax(iteration);
	}
}

WEIR_KERNEL(test_waits, struct test_waits_args)
{
	u64 first = weir_thread() * args->outstanding;

	for (u32 i = 0; i < args->outstanding; i++)
		expect(args->verdict, first + i,
		       weir_read_async(&args->disk, waits_lba(args, first + i), 1,
				       args->buffers + ((first + i) << args->disk.block_log2),
				       weir_at(args->events, struct weir_event, first + i)),
		       WEIR_OK);
	if (args->kind == TEST_WAIT_ALL) {
		expect(args->verdict, first,
		       weir_wait_all(&args->disk, weir_at(args->events, struct weir_event, first),
				     args->outstanding, 0),
		       WEIR_OK);
		for (u32 i = 0; i < args->outstanding; i++)
			waits_check(args, first + i);
	} else if (args->kind == TEST_WAIT_ANY) {
		wait_for_any(args, first, args->outstanding);
	} else if (args->kind == TEST_WAIT_TEST) {
		wait_by_tests(args, first, args->outstanding);
	} else {
		/* Those of the wave's first lane, by all of its lanes. */
		u64 lanes = weir_active();

		weir_wave_sync(lanes);
		first = weir_broadcast_u64(lanes, first);
		wait_for_any(args, first, args->outstanding * weir_popcount(lanes));
	}
}

WEIR_KERNEL(test_prefetch, struct test_prefetch_args)
{
	u64 first = weir_thread() * args->each, started;

	if (args->list)
		started = weir_prefetch_list(&args->array, args->list + first * 8, args->each);
	else
		started = weir_prefetch(&args->array, first, args->each);
	weir_add_u64_relaxed_dev(weir_at(args->started, weir_shared_u64, 0), started);
}

WEIR_FN u64 copies_line(WEIR_GLOBAL struct test_copies_args *args, u64 request)
{
	return (request * 5 + args->salt) % args->lines;
}

WEIR_FN void copies_check(WEIR_GLOBAL struct test_copies_args *args, u64 request)
{
	u64 line = copies_line(args, request);
	u64 words = (line + 1 == args->lines ? args->tail_bytes : args->line_bytes) / 8;

	for (u64 i = 0; i < words; i++)
		if (!expect(args->verdict, line, *weir_at(args->buffers + request * args->line_bytes, u64, i),
			    test_word(args->seed, line * args->line_bytes / 8 + i)))
			return;
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

WEIR_KERNEL(test_copies, struct test_copies_args)
{
	u64 first = weir_thread() * args->outstanding;

	for (u32 i = 0; i < args->outstanding; i++)
		expect(args->verdict, first + i,
		       weir_async_read(&args->array, copies_line(args, first + i),
				       args->buffers + (first + i) * args->line_bytes,
				       weir_at(args->events, struct weir_event, first + i)),
		       WEIR_OK);
	expect(args->verdict, first,
	       weir_async_wait_all(&args->array, weir_at(args->events, struct weir_event, first),
				   args->outstanding, 0),
	       WEIR_OK);
	for (u32 i = 0; i < args->outstanding; i++) {
		u64 word = weir_event_test(weir_at(args->events, struct weir_event, first + i));

		if (args->path)
			expect(args->verdict, first + i, weir_event_path(word), args->path);
		copies_check(args, first + i);
	}
}

WEIR_KERNEL(test_copy, struct test_copy_args)
{
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);

	if (weir_thread() != 0)
		return;
	statuses[0] = weir_async_read(&args->array, args->line, args->buffer, event);
	/* one that was refused, too: nothing is under way, and no wait takes its time */
	statuses[1] = weir_async_wait(&args->array, event, 0);
}

WEIR_KERNEL(test_copy_out, struct test_copy_out_args)
{
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);
	u64 word;

	if (weir_thread() != 0)
		return;
	(void)weir_async_read(&args->writer.array, 0, args->buffer, event);
	statuses[0] = weir_async_wait(&args->writer.array, event, 0);
	statuses[1] = weir_async_write(&args->writer, 1, args->buffer, event);
	word = weir_event_test(event);
	statuses[2] = word ? weir_event_status(word) : 0;
}

/*
 * Lanes of a wave wait for different storages, and the wave helps each of them, whoever comes first, and by
 * and by each of its queue pairs, to which others may have submitted who are gone.
 */
WEIR_KERNEL(test_help, struct test_help_args)
{
	WEIR_GLOBAL struct weir_disk *disk = &args->disks[weir_lane() & 1];
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	u64 wave = weir_active(), left = 1;
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, weir_wave() + args->queue);
	u32 sent = 0;
	struct weir_request request =
		weir_block_request(NVME_OPCODE_READ, weir_thread(), 1,
				   args->buffers + (weir_thread() << disk->block_log2), event);

	weir_event_reset(event);
	weir_reconverge();
	while (weir_ballot(wave, !sent) != 0) {
		weir_reconverge();
		sent |= weir_queues_try_submit(wave, !sent, WEIR_ADDR(queue), request, weir_age_none());
	}
	for (u32 i = 0; i < args->iterations && weir_ballot(wave, left != 0) != 0; i++) {
		weir_reconverge();
		if (weir_disk_help(wave, wave, disk, i) == 0)
			weir_relax(i);
		left = weir_event_test(event) == 0;
	}
	expect(args->verdict, weir_thread(), left, 0);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}
