/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenarios.k.c: what lanes do while schedules are explored. Each kernel checks
 * its own data; invariants and hangs are the explorer's.
 */
#include <weir/writer.h>

#include "scenarios_parts.h"

/* Each lane reads one block after the other. */
WEIR_KERNEL(raw, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = some_lba(args, r);
		weir_status status = weir_read(disk, lba, 1, buffer_of(args, r), event_of(args, r), 0);

		if (status == WEIR_OK)
			check_block(buffer_of(args, r), lba, 0);
		else
			explore_expect("status of a read", args->tolerant ? WEIR_OK : status, WEIR_OK);
	}
}

/* The events of this lane whose storage is dead, a mask: they are done, or nobody completes them any more.
 */
WEIR_FN void see_events_stay(struct scenario_args *args, WEIR_GLOBAL struct weir_disk *disk, u32 events)
{
	u32 before = 0, after = 0;

	/* acquire: that the commands were ended, and so what became of the events */
	for (u32 q = 0; q < disk->queue_count; q++)
		(void)weir_load_u32_acquire_sys(&weir_at(disk->queues, struct weir_queue, q)->dead);
	for (u32 r = 0; r < args->requests; r++)
		before |= (weir_event_peek(event_of(args, r)) != 0) << r;
	for (u32 i = 0; i < 100; i++)
		weir_relax(0);
	for (u32 r = 0; r < args->requests; r++)
		after |= (weir_event_peek(event_of(args, r)) != 0) << r;
	explore_expect("events done after the wait", after & events, before & events);
}

/* All requests first, more than the rings hold; then the waits, last one first. */
WEIR_KERNEL(burst, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u32 failed = 0, ended = 0;

	for (u32 r = 0; r < args->requests; r++) {
		weir_status status =
			weir_read_async(disk, some_lba(args, r), 1, buffer_of(args, r), event_of(args, r));

		failed |= (status != WEIR_OK) << r;
		explore_expect("status of a submission", args->tolerant ? WEIR_OK : status, WEIR_OK);
	}
	for (u32 r = args->requests; r-- > 0;) {
		weir_status status = WEIR_E_TIMEOUT;

		if (!((failed >> r) & 1))
			status = weir_wait(disk, event_of(args, r), 0);
		if (status == WEIR_OK)
			check_block(buffer_of(args, r), some_lba(args, r), 0);
		else
			explore_expect("status of a wait", args->tolerant ? WEIR_OK : status, WEIR_OK);
		ended |= (status == WEIR_E_DEVICE_DEAD && !(args->mode & SCENARIO_UNSAFE)) << r;
	}
	if (ended)
		see_events_stay(args, disk, ended);
}

/* Each lane writes its own block over and over and reads it back. */
WEIR_KERNEL(rewrite, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u64 lba = weir_thread();
	u32 last = SCENARIO_BLOCK_WORDS - 1;

	for (u32 r = 0; r + 1 < args->requests; r++) {
		WEIR_GLOBAL u64 *from = weir_at(buffer_of(args, r), u64, 0);
		weir_status status;

		from[0] = scenario_word(lba, r + 1, 0);
		from[last] = scenario_word(lba, r + 1, last);
		status = weir_write(disk, lba, 1, buffer_of(args, r), event_of(args, r), 0);
		if (status == WEIR_OK)
			status = weir_read(disk, lba, 1, buffer_of(args, r + 1), event_of(args, r + 1), 0);
		if (status == WEIR_OK)
			check_block(buffer_of(args, r + 1), lba, r + 1);
		else
			explore_expect("status of write and read", args->tolerant ? WEIR_OK : status,
				       WEIR_OK);
	}
}

/* Lanes of a wave go different ways: some read much, some little, some only now and then. */
WEIR_KERNEL(divergent, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u32 mine = weir_lane() % 3 == 2 ? 0 : args->requests - weir_lane() % 2;

	for (u32 r = 0; r < mine; r++) {
		u64 lba = some_lba(args, r);

		if ((r + weir_lane()) & 1) {
			explore_expect("status of a read",
				       weir_read(disk, lba, 1, buffer_of(args, r), event_of(args, r), 0),
				       WEIR_OK);
			check_block(buffer_of(args, r), lba, 0);
		} else {
			explore_expect("status of a submission",
				       weir_read_async(disk, lba, 1, buffer_of(args, r), event_of(args, r)),
				       WEIR_OK);
			explore_expect("status of a wait", weir_wait(disk, event_of(args, r), 0), WEIR_OK);
			check_block(buffer_of(args, r), lba, 0);
		}
	}
}

/* Elements through a cache far too small for the lanes. */
WEIR_KERNEL(cached, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = some_lba(args, r) % (SCENARIO_BLOCKS / 4),
		    word = (weir_thread() + r) % SCENARIO_BLOCK_WORDS;
		u64 got = weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + word);

		if (!args->tolerant || !weir_array_failed(array))
			explore_expect("element read", got, scenario_word(lba, 0, word));
		explore_progress();
	}
}

/* Lanes of a wave want the same few lines at the same time. */
WEIR_KERNEL(shared, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (r + args->salt + (weir_lane() & 1)) % 6;
		u64 got = weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + r);

		explore_expect("element read", got, scenario_word(lba, 0, r));
		explore_progress();
	}
}

WEIR_FN void check_run(u64 first, struct weir_run got)
{
	for (u32 i = 0; i < got.count; i++)
		explore_expect("element of a run", got.value[i],
			       scenario_word((first + i) / SCENARIO_BLOCK_WORDS, 0,
					     (first + i) % SCENARIO_BLOCK_WORDS));
}

/* Runs of elements and views, falling back from one to the other. */
WEIR_KERNEL(streamed, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 first = (some_lba(args, r) % 12) * SCENARIO_BLOCK_WORDS + 60;
		struct weir_view view = weir_array_view(array, first);
		u64 a = 0, b = 0;

		if (view.count >= 4) {
			a = weir_view_u64(view, 0);
			b = weir_view_u64(view, 3);
		}
		if (weir_view_valid(view)) {
			explore_expect("first element of a view", a, scenario_word(first / 64, 0, 60));
			explore_expect("last element of a view", b, scenario_word(first / 64, 0, 63));
		} else {
			struct weir_run got = weir_array_run_u64(array, first, first + 4);

			explore_expect("length of a run", got.count, 4);
			check_run(first, got);
		}
		explore_progress();
	}
}

/* Rows that lanes look for, and waves read: what is found valid was right for each lane. */
WEIR_KERNEL(rows, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	/* the whole wave, so that one of its lanes may be far behind in a row that another one looks at again
	 */
	u64 wave = ((u64)1 << weir_lanes()) - 1;

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = some_lba(args, r) % 12, i = weir_lane() % 4, seen = 0, wrong = 0, valid;
		struct weir_view_u64 view = weir_array_view_by(wave, array, lba * SCENARIO_BLOCK_WORDS + 60);

		for (u64 left = weir_ballot(wave, view.own.count >= 4); left; left &= left - 1) {
			u32 lane = weir_lowest_bit(left);
			u64 theirs = weir_shuffle_u64(wave, lba, lane),
			    value = weir_view_u64_of(wave, view, lane, i);

			wrong |= (u64)(value != scenario_word(theirs, 0, 60 + i)) << lane;
			seen += value;
		}
		valid = weir_ballot(wave, weir_view_valid_by_all(wave, view, seen));
		explore_expect("lanes whose row stayed, and was wrong", wrong & valid, 0);
		explore_progress();
	}
}

/* One block cannot be read: whoever asks for it is told, nobody else notices. */
WEIR_KERNEL(failing, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() + r) % (2 * SCENARIO_BAD_LBA);
		weir_status status = weir_read(disk, lba, 1, buffer_of(args, r), event_of(args, r), 0);

		if (lba == SCENARIO_BAD_LBA) {
			explore_expect("status of reading the bad block", weir_status_nvme(status), 0x281);
			explore_progress();
		} else {
			explore_expect("status of a read", status, WEIR_OK);
			check_block(buffer_of(args, r), lba, 0);
		}
	}
}

WEIR_KERNEL(failing_lines, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = r == 0 ? SCENARIO_BAD_LBA : (weir_thread() * 3 + r) % 8;
		struct weir_words words = weir_lines_fetch(lines, &array->extent, lba, 0, 1);

		if (lba == SCENARIO_BAD_LBA)
			explore_expect("status of fetching the bad line", weir_status_nvme(words.status),
				       0x281);
		else
			explore_expect("word fetched", words.word[0], scenario_word(lba, 0, 0));
		explore_progress();
	}
}

enum { PUT_BLOCKS = 7, FLUSHED_BLOCKS = 3 }; /* more than a set has lines; fewer */

WEIR_FN u64 put_lba(struct scenario_args *args, u32 r)
{
	if (args->mode & SCENARIO_READS)
		return WEIR_WAYS + weir_thread();
	if (args->mode & SCENARIO_FLUSHES)
		return (r + args->salt + weir_thread() / 2) % FLUSHED_BLOCKS;
	return (weir_thread() * 5 + r * 3 + args->salt) % PUT_BLOCKS;
}

/* The status of putting @value into this lane's word of block @lba. */
WEIR_FN weir_status put_word(struct scenario_args *args, u64 lba, u64 value)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	struct weir_access access;

	access.offset = (u32)weir_thread() * 8;
	access.length = args->mode & SCENARIO_READS ? 0 : 8;
	access.buffer = 0;
	access.value.low = value;
	access.value.high = 0;
	return weir_lines_access(weir_active(), weir_at(array->lines, struct weir_lines, 0), &array->extent,
				 lba, WEIR_ACCESS_STORE, access)
		.status;
}

/* Put, and see what was put. */
WEIR_FN void put_and_get(struct scenario_args *args, u32 r)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u64 lba = put_lba(args, r),
	    value = scenario_word(lba, args->mode & SCENARIO_READS ? 0 : r + 1, weir_thread()), got;
	weir_status status = put_word(args, lba, value);

	if (status == WEIR_OK && !(args->mode & SCENARIO_READS))
		*mark_of(args, weir_thread(), lba) = r + 1;
	if (status != WEIR_OK && args->mode & SCENARIO_UNWRITABLE)
		explore_expect("status of a put", weir_status_nvme(status), SCENARIO_WRITE_FAULT);
	else if (status != WEIR_OK)
		explore_expect("status of a put", args->tolerant ? WEIR_OK : status, WEIR_OK);
	if (status == WEIR_OK) {
		got = weir_array_get_u64(array, lba * SCENARIO_BLOCK_WORDS + weir_thread());
		if (!weir_array_failed(array))
			explore_expect("element put", got, value);
	}
	explore_progress();
}

/* Flush until it succeeds: each error is told once. */
WEIR_FN void flush_range(struct scenario_args *args, u64 index, u64 count)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	weir_status status = WEIR_E_TIMEOUT;

	for (u32 i = 0; i <= SCENARIO_WRITE_FAULTS && status != WEIR_OK; i++) {
		status = weir_writer_flush(writer, index, count, 0);
		if (args->tolerant)
			return;
		if (status != WEIR_OK)
			explore_expect("status of a flush", weir_status_nvme(status), SCENARIO_WRITE_FAULT);
	}
	explore_expect("status of the last flush", status, WEIR_OK);
}

/* Words [@word, @word_end) of blocks [@lba, @lba_end) on storage, against lanes' marks. */
WEIR_FN void check_blocks(struct scenario_args *args, u64 lba, u64 lba_end, u64 word, u64 word_end)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (; lba < lba_end; lba++) {
		explore_expect("status of a raw read",
			       weir_read(disk, lba, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
		for (u64 i = word; i < word_end; i++)
			explore_expect(
				"word on storage", weir_data_load_u64(buffer_of(args, 0) + i * 8),
				scenario_word(lba, i < weir_threads() ? *mark_of(args, i, lba) : 0, i));
		explore_progress();
	}
}

/* Each lane has a word of its own in every block. The last lane to come flushes all, and looks at the
 * storage. */
WEIR_KERNEL(put, struct scenario_args)
{
	u32 dirty = args->mode & SCENARIO_DIRTY;

	for (u64 lba = 0; dirty && lba < WEIR_WAYS; lba++)
		*mark_of(args, weir_thread(), lba) = 1;
	for (u32 r = 0; r <= args->requests; r++) {
		u64 lba = put_lba(args, r), end = lba + 1, word = weir_thread(), word_end = word + 1;

		if (r == args->requests) {
			if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
				return;
			lba = word = 0;
			end = dirty ? (u64)WEIR_WAYS : (u64)PUT_BLOCKS;
			word_end = weir_threads() + !dirty;
		} else {
			put_and_get(args, r);
			if (!(args->mode & SCENARIO_FLUSHES) || (r + weir_thread()) & 1)
				continue;
		}
		flush_range(args, lba * SCENARIO_BLOCK_WORDS + word,
			    (end - lba - 1) * SCENARIO_BLOCK_WORDS + 1);
		if (!args->tolerant)
			check_blocks(args, lba, end, word, word_end);
	}
}

enum { PARTNER_BLOCKS = 9 }; /* of each storage: more than two sets have lines */

/* Mostly the partner, which may die, so that its lines fill sets. */
WEIR_FN u32 partner_asked(u32 r)
{
	return (r + weir_thread()) % 3 != 0;
}

WEIR_FN WEIR_GLOBAL struct weir_array *partner_array(struct scenario_args *args, u32 theirs)
{
	return weir_at(theirs ? args->other : args->array, struct weir_array, 0);
}

/* Blocks that differ between the two, so that one's data is not taken for the other's. */
WEIR_FN u64 partner_lba(struct scenario_args *args, u32 r, u32 theirs)
{
	return (weir_thread() * 5 + r * 3 + args->salt) % PARTNER_BLOCKS + (theirs ? SCENARIO_BLOCKS / 2 : 0);
}

/* Of two storages behind one cache one dies: whoever asks for its blocks is told, and the other's are read as
 * ever. */
WEIR_KERNEL(partner, struct scenario_args)
{
	for (u32 r = 0; r < args->requests; r++) {
		u32 theirs = partner_asked(r);
		WEIR_GLOBAL struct weir_array *array = partner_array(args, theirs);
		u64 lba = partner_lba(args, r, theirs);
		struct weir_words words = weir_lines_fetch(weir_at(array->lines, struct weir_lines, 0),
							   &array->extent, lba, 0, 1);

		if (words.status == WEIR_OK)
			explore_expect("word fetched", words.word[0], scenario_word(lba, 0, 0));
		else
			explore_expect("status of a fetch", words.status,
				       theirs || args->mode & SCENARIO_UNSAFE ? (u32)WEIR_E_DEVICE_DEAD
									      : (u32)WEIR_OK);
		explore_progress();
	}
}

/* The same with lines that cannot be written any more: where they fill a set, that is told at once. */
WEIR_KERNEL(partner_put, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u32 theirs = partner_asked(r);
		WEIR_GLOBAL struct weir_array *array = partner_array(args, theirs);
		u64 lba = partner_lba(args, r, theirs);
		struct weir_access access;
		weir_status status;

		access.offset = (u32)weir_thread() * 8;
		access.length = 8;
		access.buffer = 0;
		access.value.low = scenario_word(lba, r + 1, weir_thread());
		access.value.high = 0;
		status = weir_lines_access(weir_active(), weir_at(array->lines, struct weir_lines, 0),
					   &array->extent, lba, WEIR_ACCESS_STORE, access)
				 .status;
		if (status != WEIR_OK)
			explore_expect("status of a put", status, WEIR_E_DEVICE_DEAD);
		else if (!theirs)
			*mark_of(args, weir_thread(), lba) = r + 1;
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	explore_expect("status of a flush",
		       weir_writer_flush(writer, 0, PARTNER_BLOCKS * SCENARIO_BLOCK_WORDS, 0), WEIR_OK);
	check_blocks(args, 0, PARTNER_BLOCKS, 0, weir_threads());
}

/* The third word becomes the largest of what lanes give, the fourth one more each time that a lane finds it
 * as it was. */
WEIR_FN void change_others(struct scenario_args *args, u64 value)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL weir_shared_u64 *stepped = weir_at(args->marks, weir_shared_u64, 1);
	u64 old = weir_writer_max_u64(writer, 3, 0);

	(void)weir_writer_max_u64(writer, 2, scenario_word(0, 0, 2) + value);
	if (weir_writer_cas_u64(writer, 3, old, old + 1) == old)
		(void)weir_add_u64_relaxed_dev(stepped, 1); /* relaxed: a sum */
}

WEIR_FN void check_others(struct scenario_args *args)
{
	WEIR_GLOBAL weir_shared_u64 *stepped = weir_at(args->marks, weir_shared_u64, 1);

	explore_expect("the largest of all", weir_data_load_u64(buffer_of(args, 0) + 16),
		       scenario_word(0, 0, 2) + weir_threads() * args->requests);
	explore_expect("what was stepped up", weir_data_load_u64(buffer_of(args, 0) + 24),
		       scenario_word(0, 0, 3) + weir_load_u64_relaxed_dev(stepped));
}

/* All lanes add to the same few words, and exchange what another one has: what comes out, and what stays, is
 * what went in. */
WEIR_KERNEL(add, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	WEIR_GLOBAL weir_shared_u64 *balance = weir_at(args->marks, weir_shared_u64, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 value = weir_thread() * args->requests + r + 1;

		(void)weir_writer_add_u64(writer, (r + args->salt) % PUT_BLOCKS * SCENARIO_BLOCK_WORDS, 1);
		/* relaxed: a sum */
		(void)weir_add_u64_relaxed_dev(balance, value - weir_writer_exchange_u64(writer, 1, value));
		change_others(args, value);
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_range(args, 0, writer->array.count);
	for (u64 lba = 0; lba < PUT_BLOCKS; lba++) {
		u64 sum = scenario_word(lba, 0, 0);

		for (u32 r = 0; r < args->requests; r++)
			sum += (r + args->salt) % PUT_BLOCKS == lba ? weir_threads() : 0;
		explore_expect("status of a raw read",
			       weir_read(disk, lba, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
		explore_expect("sum on storage", weir_data_load_u64(buffer_of(args, 0)), sum);
		if (lba == 0) {
			explore_expect("what stays of exchanges", weir_data_load_u64(buffer_of(args, 0) + 8),
				       scenario_word(0, 0, 1) + weir_load_u64_relaxed_dev(balance));
			check_others(args);
		}
		explore_progress();
	}
}

/* Whole blocks, and words of them, from buffers; each lane has blocks of its own. */
WEIR_KERNEL(span, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u32 whole = (r + weir_lane()) & 1;
		u64 lba = weir_thread() + whole * weir_threads(), first = whole ? 0 : r * 2, value;
		u64 count = whole ? SCENARIO_BLOCK_WORDS : 4;

		for (u64 i = 0; i < count; i++)
			*weir_at(buffer_of(args, 0), u64, i) = scenario_word(lba, r + 1, first + i);
		explore_expect("status of a write",
			       weir_writer_write(writer, lba * SCENARIO_BLOCK_WORDS + first, count,
						 buffer_of(args, 0)),
			       WEIR_OK);
		explore_expect("status of a read",
			       weir_array_read(&writer->array, lba * SCENARIO_BLOCK_WORDS + first, count,
					       buffer_of(args, 1)),
			       WEIR_OK);
		value = weir_data_load_u64(buffer_of(args, 1) + (count - 1) * 8);
		explore_expect("last word of a span", value, scenario_word(lba, r + 1, first + count - 1));
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 == weir_threads())
		flush_range(args, 0, writer->array.count);
}
