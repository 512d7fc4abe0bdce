/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels for sets in which lines of two storages meet, written by transfers and by way of shared buffers. In
 * a file of their own: few changes of the core concern them.
 *
 * Flags: -fno-unroll-loops -mllvm -rotation-max-header-size=0
 */
#include <weir/share.h>
#include <weir/transfer.h>

#include "scenarios_parts.h"

enum {
	TWO_OWN = 16,   /* the first block that is written to: behind those that the set has at first */
	TWO_LANES = 2,  /* of kernels that wait for many iterations; the others are done at once */
	TWO_DELAY = 64, /* loads: lanes come to meet another one in any of its iterations */
};

WEIR_FN u64 own_block(u32 r)
{
	return TWO_OWN + weir_thread() + r * weir_threads();
}

/* This lane's word of an own block of its, as an element. */
WEIR_FN void see_own(struct scenario_args *args, u64 lba, u64 value)
{
	explore_expect("element written",
		       weir_array_get_u64(weir_at(args->array, struct weir_array, 0),
					  lba * SCENARIO_BLOCK_WORDS + weir_thread()),
		       value);
	explore_progress();
}

/* A block by way of a transfer. Return: how it ended. */
WEIR_FN weir_status transfer_block(struct scenario_args *args, u64 lba)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_transfer *transfer = weir_at(buffer_of(args, 1), struct weir_transfer, 0);
	weir_status status;

	for (u64 word = 0; word < SCENARIO_BLOCK_WORDS; word++)
		weir_data_store_u64(buffer_of(args, 0) + word * 8, scenario_word(lba, 1, word));
	status = weir_transfer_write(writer, lba, buffer_of(args, 0), transfer);
	return status == WEIR_OK ? weir_transfer_wait(&writer->array, transfer, 1, 0) : status;
}

/* A word of it in a buffer. A hold that is not waited for is let go of all the same. */
WEIR_FN weir_status hold_block(struct scenario_args *args, u64 lba, u32 r, u32 waits)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	struct weir_shared shared =
		weir_share_acquire(&writer->array, lba, buffer_of(args, r), event_of(args, r));
	weir_status status;

	explore_expect("a hold", shared.kind != WEIR_SHARED_NOTHING, 1);
	if (waits) {
		status = weir_share_wait(&writer->array, shared, 0);
		explore_expect("status of a shared buffer", status, WEIR_OK);
		status = weir_share_modify(writer, shared);
		if (status == WEIR_E_UNSHARED) /* a copy */
			weir_writer_put_u64(writer, lba * SCENARIO_BLOCK_WORDS + weir_thread(),
					    scenario_word(lba, 1, weir_thread()));
		else
			weir_data_store_u64(shared.buffer + weir_thread() * 8,
					    scenario_word(lba, 1, weir_thread()));
	}
	return weir_share_release(&writer->array, shared);
}

/* Flush both storages, and look at what was written. */
WEIR_FN void check_both(struct scenario_args *args)
{
	WEIR_GLOBAL struct weir_writer *theirs = weir_at(args->other, struct weir_writer, 0);

	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_all(args);
	explore_expect("status of a flush", weir_writer_flush(theirs, 0, theirs->array.count, 0), WEIR_OK);
	for (u64 thread = 0; thread < weir_threads(); thread++) {
		u64 lba = TWO_OWN + thread;

		explore_expect("status of a raw read",
			       weir_read(weir_at(args->disk, struct weir_disk, 0), lba, 1, buffer_of(args, 0),
					 event_of(args, 0), 0),
			       WEIR_OK);
		explore_expect("word on storage", weir_data_load_u64(buffer_of(args, 0) + thread * 8),
			       scenario_word(lba, 1, thread));
	}
}

/* Beside a line of the set whose command never ends. */
WEIR_KERNEL(two_hold, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *theirs = weir_at(args->other, struct weir_array, 0);

	(void)weir_prefetch(theirs, SCENARIO_STUCK_LBA * SCENARIO_BLOCK_WORDS, 1);
	for (u32 r = 0; r < args->requests; r++) {
		explore_expect("status of a release", hold_block(args, own_block(r), r, 0), WEIR_OK);
		explore_progress();
	}
}

WEIR_FN void see_dead(WEIR_GLOBAL struct weir_array *array)
{
	u64 wave = weir_active();

	for (u32 i = 0;
	     weir_ballot(wave, weir_disk_dead(weir_extent_disk(&array->extent, 0)) == WEIR_OK) != 0; i++) {
		weir_reconverge();
		weir_relax(i);
	}
}

/*
 * Where all lines of the set are another storage's, and dirty: who wants room there sees to that storage,
 * too. SCENARIO_STUCK: a write-back that never ends is not waited for, since there are other lines.
 * SCENARIO_LOST: a dead storage keeps the lines that its commands have; who gets no room is told, and nobody
 * waits for ever.
 */
WEIR_KERNEL(two, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *theirs = weir_at(args->other, struct weir_array, 0);
	u32 stuck = args->mode == SCENARIO_STUCK, lost = args->mode == SCENARIO_LOST;
	u64 wave = weir_active();
	weir_status status;

	weir_transfer_write_back(wave, stuck && weir_thread() == 0, theirs, SCENARIO_STUCK_LBA);
	weir_reconverge();
	if (lost) {
		(void)weir_prefetch(theirs, 0, WEIR_WAYS * SCENARIO_BLOCK_WORDS);
		see_dead(theirs);
	}
	if ((stuck || lost) && weir_thread() >= TWO_LANES)
		return;
	if ((stuck || lost) && ((args->salt + weir_wave()) & 1) == 0)
		status = hold_block(args, own_block(0), 0, 1);
	else
		status = transfer_block(args, own_block(0));
	if (lost && status != WEIR_OK) {
		explore_expect("status where no room is", status, WEIR_E_DEVICE_DEAD);
		explore_progress();
		return;
	}
	explore_expect("status of a write", status, WEIR_OK);
	see_own(args, own_block(0), scenario_word(own_block(0), 1, weir_thread()));
	if (!stuck && !lost)
		check_both(args);
}

/* One line is a dead storage's, the others cannot be written; then a flush is told why, and they can again. A
 * word that counts as put is there. */
WEIR_KERNEL(two_flushed, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_array *theirs = weir_at(args->other, struct weir_array, 0);
	struct weir_access access;
	weir_status status;

	if (weir_thread() == 0) {
		(void)weir_prefetch(theirs, SCENARIO_STUCK_LBA * SCENARIO_BLOCK_WORDS, 1);
		see_dead(theirs);
		access.offset = 0;
		access.length = 8;
		access.buffer = 0;
		access.value.low = scenario_word(TWO_OWN, 1, 0);
		access.value.high = 0;
		status = weir_lines_access(weir_active(), weir_at(writer->array.lines, struct weir_lines, 0),
					   &writer->array.extent, TWO_OWN, WEIR_ACCESS_STORE, access)
				 .status;
		if (status == WEIR_OK)
			see_own(args, TWO_OWN, access.value.low);
		else
			explore_expect("status of a put", status, WEIR_E_DEVICE_DEAD);
	} else if (weir_thread() < TWO_LANES) {
		for (u32 i = 0; i < TWO_DELAY * args->salt; i++)
			(void)weir_disk_dead(weir_extent_disk(&theirs->extent, 0));
		status = weir_writer_flush(writer, weir_thread() % 3 * SCENARIO_BLOCK_WORDS, 1, 0);
		if (status != WEIR_OK)
			explore_expect("status of a flush", weir_status_nvme(status), SCENARIO_WRITE_FAULT);
	}
	explore_progress();
}

/* More copies than the table has entries, of a storage that dies: who is told so has its event back. */
WEIR_KERNEL(two_copies, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		struct weir_shared shared =
			weir_share_acquire(array, own_block(r), buffer_of(args, r), event_of(args, r));
		u64 before, after;

		if (shared.kind == WEIR_SHARED_NOTHING ||
		    weir_share_wait(array, shared, 0) != WEIR_E_DEVICE_DEAD ||
		    shared.kind != WEIR_SHARED_COPY)
			continue;
		before = weir_event_peek(event_of(args, r)) != 0;
		for (u32 i = 0; i < 100; i++)
			weir_relax(0);
		after = weir_event_peek(event_of(args, r)) != 0;
		explore_expect("an event done after the wait", after, before);
		explore_progress();
	}
}

/* A buffer that lanes share, of a storage that dies then: they leave it all the same, whoever comes first. */
WEIR_KERNEL(two_left, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	struct weir_shared shared =
		weir_share_acquire(array, own_block(0) & 1, buffer_of(args, 0), event_of(args, 0));

	if (shared.kind == WEIR_SHARED_NOTHING || weir_share_wait(array, shared, 0) != WEIR_OK)
		return;
	see_dead(array);
	explore_expect("status of a release", weir_share_release(array, shared), WEIR_OK);
	explore_progress();
}
