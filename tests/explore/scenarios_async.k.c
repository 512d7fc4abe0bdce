/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels for wait.h, async.h and share.h. In a file of their own: few changes of the core concern them.
 *
 * Loops stand here as they were written: to turn and unroll them takes the optimiser three quarters of the
 * time in kernels of this size, and what it makes of the same core's loops is seen with scenarios.k.c.
 *
 * Flags: -fno-unroll-loops -mllvm -rotation-max-header-size=0
 */
#include <weir/share.h>
#include <weir/transfer.h>

#include "scenarios_parts.h"

/* All requests first, more than the rings hold; then each event once, as it comes, or all, or by tests. */
WEIR_KERNEL(any, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u32 kind = (args->salt + (u32)weir_wave()) % 3, left = args->requests;
	u64 wave = weir_active();

	for (u32 r = 0; r < args->requests; r++)
		explore_expect(
			"status of a submission",
			weir_read_async(disk, some_lba(args, r), 1, buffer_of(args, r), event_of(args, r)),
			WEIR_OK);
	if (kind == 0) {
		explore_expect("status of all", weir_wait_all(disk, event_of(args, 0), args->requests, 0),
			       WEIR_OK);
		for (u32 r = 0; r < args->requests; r++)
			check_block(buffer_of(args, r), some_lba(args, r), 0);
		left = 0;
	}
	for (u32 iteration = 0; weir_ballot(wave, left != 0); iteration++) {
		struct weir_any any;

		weir_reconverge();
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
		weir_relax(iteration);
	}
	if (kind == 1)
		explore_expect("no event left",
			       weir_wait_any(disk, event_of(args, 0), args->requests, 0).index,
			       args->requests);
}

/* Commands that a queue pair has under way. */
WEIR_FN u64 under_way(WEIR_GLOBAL struct weir_queue *queue)
{
	return (weir_load_u64_relaxed_dev(&queue->tail) << 1) -
	       (weir_load_u64_relaxed_dev(&queue->reap) & ~(u64)1);
}

/* Nobody waits for a prefetch: whoever leaves last sees the rest of them come. */
WEIR_FN void see_them_come(WEIR_GLOBAL struct weir_disk *disk)
{
	u64 wave = weir_active();
	u32 left = 1, iteration = 0;

	while (weir_ballot(wave, left)) {
		weir_reconverge();
		left = 0;
		for (u32 q = 0; q < disk->queue_count; q++)
			left |= under_way(weir_at(disk->queues, struct weir_queue, q)) != 0;
		if (weir_ballot(wave, left) && weir_disk_help(wave, wave, disk, iteration++) == 0)
			weir_relax(iteration);
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
		explore_expect(
			"status of a copy",
			weir_async_read(array, some_lba(args, r) % 8, buffer_of(args, r), event_of(args, r)),
			WEIR_OK);
	explore_expect("element read",
		       weir_array_get_u64(array, (some_lba(args, 1) % 8) * SCENARIO_BLOCK_WORDS + 1),
		       scenario_word(some_lba(args, 1) % 8, 0, 1));
	explore_expect("status of all", weir_async_wait_all(array, event_of(args, 0), args->requests, 0),
		       WEIR_OK);
	for (u32 r = 0; r < args->requests; r++)
		check_block(buffer_of(args, r), some_lba(args, r) % 8, 0);
}

/* The last lane to come sees that one command brought the line of all. */
WEIR_FN void one_command(struct scenario_args *args, u64 commands)
{
	WEIR_GLOBAL weir_shared_u64 *all = weir_at(args->marks, weir_shared_u64, 0);

	(void)weir_add_u64_relaxed_dev(all, commands);
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 == weir_threads())
		explore_expect("commands for one line", weir_load_u64_relaxed_dev(all), 1);
}

/*
 * Lines that all lanes ask for, each before the first has come; then one of this lane's own is written, and
 * read back. With SCENARIO_ONCE one line for all, in a cache that keeps it: one command brings it, whoever
 * asks, and however often.
 */
WEIR_KERNEL(joined, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_transfer *transfers =
		weir_at(buffer_of(args, args->requests - 1), struct weir_transfer, 0);
	u64 own = 8 + weir_thread(), lines = args->mode == SCENARIO_ONCE ? SCENARIO_BLOCKS : 4;

	for (u32 writes = 0; writes < 2; writes++) {
		u32 count = writes ? 1 : args->requests - 1;

		for (u64 word = 0; writes && word < SCENARIO_BLOCK_WORDS; word++)
			weir_data_store_u64(buffer_of(args, 0) + word * 8, scenario_word(own, 1, word));
		for (u32 r = 0; r < count; r++)
			explore_expect(
				"status of a transfer",
				writes ? weir_transfer_write(writer, own, buffer_of(args, r), transfers + r)
				       : weir_transfer_read(array, (args->salt + r) % lines,
							    buffer_of(args, r), transfers + r),
				WEIR_OK);
		explore_expect("status of transfers", weir_transfer_wait(array, transfers, count, 0),
			       WEIR_OK);
		for (u32 r = 0; !writes && r < count; r++)
			check_block(buffer_of(args, r), (args->salt + r) % lines, 0);
		if (args->mode == SCENARIO_ONCE) {
			one_command(args, transfers->commands);
			return;
		}
	}
	explore_expect("element written", weir_array_get_u64(array, own * SCENARIO_BLOCK_WORDS + 5),
		       scenario_word(own, 1, 5));
	explore_progress();
	see_them_come(weir_at(args->disk, struct weir_disk, 0));
}

enum { SHARE_BLOCKS = 3, SHARE_FULL = 7 }; /* fewer than a bucket of the table has entries, and more */

/* What this lane holds is what was written. */
WEIR_FN void check_shared(struct scenario_args *args, struct weir_shared shared)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	explore_expect("status of a shared buffer", weir_share_wait(array, shared, 0), WEIR_OK);
	explore_expect("own word of a shared buffer", weir_data_load_u64(shared.buffer + weir_thread() * 8),
		       word_marked(args, shared.line, weir_thread()));
	explore_expect("a word that nobody changes", weir_data_load_u64(shared.buffer + 63 * 8),
		       scenario_word(shared.line, 0, 63));
}

/* This lane's word of block @lba gets generation @generation, by way of the cache. */
WEIR_FN void put_own(struct scenario_args *args, u64 lba, u64 generation)
{
	weir_writer_put_u64(weir_at(args->writer, struct weir_writer, 0),
			    lba * SCENARIO_BLOCK_WORDS + weir_thread(),
			    scenario_word(lba, generation, weir_thread()));
	*mark_of(args, weir_thread(), lba) = generation;
}

/* The same in the buffer that is held. Return: 0: it is a copy, and nothing is changed. */
WEIR_FN u32 change_in_place(struct scenario_args *args, struct weir_shared shared, u64 generation)
{
	if (shared.kind == WEIR_SHARED_COPY)
		return 0;
	explore_expect("status of a change",
		       weir_share_modify(weir_at(args->writer, struct weir_writer, 0), shared), WEIR_OK);
	weir_data_store_u64(shared.buffer + weir_thread() * 8,
			    scenario_word(shared.line, generation, weir_thread()));
	*mark_of(args, weir_thread(), shared.line) = generation;
	return 1;
}

WEIR_FN void change_shared(struct scenario_args *args, struct weir_shared shared, u64 generation)
{
	if (!change_in_place(args, shared, generation))
		put_own(args, shared.line, generation);
}

WEIR_FN void read_own(struct scenario_args *args, u64 lba)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	explore_expect("own word, as an element",
		       weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + weir_thread()),
		       word_marked(args, lba, weir_thread()));
	explore_progress();
}

WEIR_FN void copy_own(struct scenario_args *args, u64 lba, u32 r)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	explore_expect("status of a copy", weir_async_read(array, lba, buffer_of(args, r), event_of(args, r)),
		       WEIR_OK);
	explore_expect("status of its wait", weir_async_wait(array, event_of(args, r), 0), WEIR_OK);
	explore_expect("own word, copied", weir_data_load_u64(buffer_of(args, r) + weir_thread() * 8),
		       word_marked(args, lba, weir_thread()));
}

/*
 * Lanes write words of their own in few blocks, in every way there is, and read them back in another. With
 * SCENARIO_COPIED one block goes from the cache to buffers and back by some waves, while others write it in
 * the cache and copy it.
 */
WEIR_KERNEL(hold, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u32 copied = args->mode == SCENARIO_COPIED;
	u32 blocks = copied ? 1 : args->mode == SCENARIO_FULL ? SHARE_FULL : SHARE_BLOCKS;

	for (u32 r = 0; r < args->requests; r++) {
		enum { WATCH, CHANGE, PUT, COPY } way = (args->salt / 8 + (u32)weir_wave() + r) % 4;
		u64 lba = (weir_thread() + r + args->salt) % blocks;
		struct weir_shared shared;
		u32 put;

		if (copied)
			way = weir_wave() % 2 == 0 ? WATCH : r % 2 ? COPY : PUT;
		put = way == PUT;
		if (way == WATCH || way == CHANGE) {
			shared = weir_share_acquire(array, lba, buffer_of(args, r), event_of(args, r));
			explore_expect("a hold", shared.kind != WEIR_SHARED_NOTHING, 1);
			check_shared(args, shared);
			put = way == CHANGE && !change_in_place(args, shared, r + 1);
		}
		if (put)
			put_own(args, lba, r + 1);
		if (way == COPY)
			copy_own(args, lba, r);
		if (way == CHANGE)
			read_own(args, lba);
		if (way == WATCH || way == CHANGE)
			explore_expect("status of a release", weir_share_release(array, shared), WEIR_OK);
		read_own(args, lba);
	}
	check_storage(args, blocks, (u32)weir_threads() + 1);
}

enum { ADDED = SCENARIO_BLOCK_WORDS - 2 }; /* the word of a block that is counted up */

/* The last lane to come sees that each block's word is as much more as was counted. */
WEIR_FN void check_added(struct scenario_args *args)
{
	WEIR_GLOBAL weir_shared_u64 *added = weir_at(args->marks, weir_shared_u64, SCENARIO_BLOCKS / 2);

	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_all(args);
	for (u64 lba = 0; lba < SHARE_BLOCKS; lba++) {
		explore_expect("status of a raw read",
			       weir_read(weir_at(args->disk, struct weir_disk, 0), lba, 1, buffer_of(args, 0),
					 event_of(args, 0), 0),
			       WEIR_OK);
		explore_expect("what was added", weir_data_load_u64(buffer_of(args, 0) + ADDED * 8),
			       scenario_word(lba, 0, ADDED) + weir_load_u64_relaxed_dev(added + lba));
		explore_progress();
	}
}

/* The lanes of some waves add one to words of blocks that other waves hold and let go, each lane to another
 * block: it does so once, however often the lanes beside it have to try. */
WEIR_KERNEL(hold_add, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL weir_shared_u64 *added = weir_at(args->marks, weir_shared_u64, SCENARIO_BLOCKS / 2);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() + r + args->salt) % SHARE_BLOCKS;
		struct weir_shared shared;

		if ((args->salt / 8 + weir_wave()) % 2 == 0) {
			(void)weir_writer_add_u64(writer, lba * SCENARIO_BLOCK_WORDS + ADDED, 1);
			(void)weir_add_u64_relaxed_dev(added + lba, 1); /* relaxed: a sum */
		} else {
			shared = weir_share_acquire(&writer->array, lba, buffer_of(args, r),
						    event_of(args, r));
			check_shared(args, shared);
			explore_expect("status of a release", weir_share_release(&writer->array, shared),
				       WEIR_OK);
		}
		explore_progress();
	}
	check_added(args);
}

/* The last lane to come looks at the first words of the first blocks, wherever they are. */
WEIR_FN void check_elements(struct scenario_args *args, u32 blocks)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	explore_progress();
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	for (u64 lba = 0; lba < blocks; lba++)
		for (u64 word = 0; word <= weir_threads(); word++)
			explore_expect("element at the end",
				       weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + word),
				       word_marked(args, lba, word));
}

/*
 * Each lane holds both blocks at once, taken in opposite orders, and changes both: every transition there is.
 * The same with one block, that one lane only reads.
 */
WEIR_KERNEL(hold_each, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u32 blocks = args->requests, reader = blocks == 1 && weir_thread() == 0;
	struct weir_shared shared[2];

	for (u32 i = 0; i < blocks; i++)
		shared[i] = weir_share_acquire(array, (weir_thread() + i) % blocks, buffer_of(args, i),
					       event_of(args, i));
	for (u32 i = 0; i < blocks; i++) {
		if (!reader) {
			check_shared(args, shared[i]);
			change_shared(args, shared[i], 1);
		}
		explore_expect("status of a release", weir_share_release(array, shared[i]), WEIR_OK);
	}
	check_elements(args, blocks);
}

/* A block that cannot be read: whoever acquires, copies or reads it is told, and nobody waits for ever. */
WEIR_KERNEL(hold_failing, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() + r) % 2 ? SCENARIO_BAD_LBA : 1;
		struct weir_shared shared =
			weir_share_acquire(&writer->array, lba, buffer_of(args, r), event_of(args, r));
		weir_status status = weir_share_wait(&writer->array, shared, 0);

		explore_expect("status of a hold", weir_status_nvme(status), lba == 1 ? 0 : 0x281);
		explore_expect("status of a release", weir_share_release(&writer->array, shared), WEIR_OK);
		explore_progress();
	}
}

/* The same block, held in buffers by some while others have it brought to their own: it never counts as
 * there. */
WEIR_KERNEL(hold_move, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	WEIR_GLOBAL struct weir_transfer *transfer =
		weir_at(buffer_of(args, args->requests - 1), struct weir_transfer, 0);

	for (u32 r = 0; r + 1 < args->requests; r++) {
		struct weir_shared shared;
		weir_status status;

		if ((weir_wave() + r + args->salt) % 2) {
			(void)weir_transfer_read(array, SCENARIO_BAD_LBA, buffer_of(args, r), transfer);
			status = weir_transfer_wait(array, transfer, 1, 0);
			explore_expect("status of a transfer", weir_status_nvme(status), 0x281);
		} else {
			shared = weir_share_acquire(array, SCENARIO_BAD_LBA, buffer_of(args, r),
						    event_of(args, r));
			status = weir_share_wait(array, shared, 0);
			explore_expect("status of a hold", weir_status_nvme(status), 0x281);
			explore_expect("status of a release", weir_share_release(array, shared), WEIR_OK);
		}
		explore_progress();
	}
	see_them_come(weir_at(args->disk, struct weir_disk, 0));
}

/* A lane's one buffer, for one block after the other: it is registered again as soon as nobody holds it for
 * the last one. */
WEIR_KERNEL(hold_again, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() / 2 + r + args->salt) % SHARE_BLOCKS, wave;
		struct weir_shared shared =
			weir_share_acquire(&writer->array, lba, buffer_of(args, 0), event_of(args, 0));
		u32 used = 1, iteration = 0;

		explore_expect("a hold", shared.kind != WEIR_SHARED_NOTHING, 1);
		check_shared(args, shared);
		if ((r + weir_thread()) % 3)
			change_shared(args, shared, r + 1);
		explore_expect("status of a release", weir_share_release(&writer->array, shared), WEIR_OK);
		wave = weir_active();
		weir_wave_sync(wave); /* none of the wave waits before all have let go */
		while (weir_ballot(wave, used)) {
			weir_reconverge();
			used = used && weir_share_in_use(&writer->array, lba, buffer_of(args, 0));
			weir_relax(iteration++);
		}
		explore_progress();
	}
	check_storage(args, SHARE_BLOCKS, (u32)weir_threads() + 1);
}

/* Lanes with one buffer for one block after the other, and others that read these blocks without a hold: what
 * is in the buffer by now is never taken for what was there. */
WEIR_KERNEL(hold_read, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u32 holds = (weir_thread() & 1) == 0;

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() / 2 + r + args->salt) % SHARE_BLOCKS, wave;
		struct weir_shared shared = weir_shared_none(lba, WEIR_OK);
		u32 used = holds, iteration = 0;

		if (holds) {
			shared = weir_share_acquire(array, lba, buffer_of(args, 0), event_of(args, 0));
			explore_expect("status of a hold", weir_share_wait(array, shared, 0), WEIR_OK);
			explore_expect("status of a release", weir_share_release(array, shared), WEIR_OK);
		} else {
			for (u64 word = 0; word < SHARE_BLOCKS; word++)
				explore_expect("element read",
					       weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + word),
					       scenario_word(lba, 0, word));
		}
		weir_reconverge();
		wave = weir_active();
		weir_wave_sync(wave); /* none of the wave waits before all have let go */
		while (weir_ballot(wave, used)) {
			weir_reconverge();
			used = used && weir_share_in_use(array, lba, buffer_of(args, 0));
			weir_relax(iteration++);
		}
		explore_progress();
	}
}
