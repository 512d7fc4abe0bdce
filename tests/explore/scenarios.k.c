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

/* All requests first, more than the rings hold; then the waits, last one first. */
WEIR_KERNEL(burst, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	u32 failed = 0;

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
	}
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

enum { PUT_BLOCKS = 7 }; /* more than a set has lines */

WEIR_FN u64 put_lba(struct scenario_args *args, u32 r)
{
	return (weir_thread() * 5 + r * 3 + args->salt) % PUT_BLOCKS;
}

/* The status of putting @value into word @word of block @lba. */
WEIR_FN weir_status put_word(struct scenario_args *args, u64 lba, u64 word, u64 value)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	struct weir_access access;

	access.offset = (u32)word * 8;
	access.length = 8;
	access.buffer = 0;
	access.value.low = value;
	access.value.high = 0;
	return weir_lines_access(weir_active(), weir_at(array->lines, struct weir_lines, 0), &array->extent, lba,
				 WEIR_ACCESS_STORE, access).status;
}

/* Each lane has a word of its own in every block. */
WEIR_KERNEL(put, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = put_lba(args, r), value = scenario_word(lba, r + 1, weir_thread());
		u64 index = lba * SCENARIO_BLOCK_WORDS + weir_thread();

		weir_writer_put_u64(writer, index, value);
		*mark_of(args, weir_thread(), lba) = r + 1;
		explore_expect("element put", weir_array_get_u64(&writer->array, index), value);
		explore_progress();
	}
	check_storage(args, PUT_BLOCKS, (u32)weir_threads() + 1);
}

/* The same, where a write-back may fail: a put that says so has not happened. */
WEIR_KERNEL(unwritable, struct scenario_args)
{
	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = put_lba(args, r);
		weir_status status = put_word(args, lba, weir_thread(), scenario_word(lba, r + 1, weir_thread()));

		if (status == WEIR_OK)
			*mark_of(args, weir_thread(), lba) = r + 1;
		else
			explore_expect("status of a put", weir_status_nvme(status), SCENARIO_WRITE_FAULT);
		explore_progress();
	}
	check_storage(args, PUT_BLOCKS, (u32)weir_threads() + 1);
}

/* Controllers that die: what was put can be read, and every lane ends. */
WEIR_KERNEL(put_dying, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = put_lba(args, r), value = scenario_word(lba, r + 1, weir_thread()), got;
		weir_status status = put_word(args, lba, weir_thread(), value);

		if (status != WEIR_OK)
			continue;
		got = weir_array_get_u64(&writer->array, lba * SCENARIO_BLOCK_WORDS + weir_thread());
		if (!weir_array_failed(&writer->array))
			explore_expect("element put", got, value);
		explore_progress();
	}
	(void)weir_writer_flush(writer, 0, writer->array.count, 0);
}

/* All lanes add to the same few words. */
WEIR_KERNEL(add, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++) {
		(void)weir_writer_add_u64(writer, (r + args->salt) % PUT_BLOCKS * SCENARIO_BLOCK_WORDS, 1);
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_all(args);
	for (u64 lba = 0; lba < PUT_BLOCKS; lba++) {
		u64 sum = scenario_word(lba, 0, 0);

		for (u32 r = 0; r < args->requests; r++)
			sum += (r + args->salt) % PUT_BLOCKS == lba ? weir_threads() : 0;
		explore_expect("status of a raw read", weir_read(disk, lba, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
		explore_expect("sum on storage", weir_data_load_u64(buffer_of(args, 0)), sum);
		explore_progress();
	}
}

/* Whole blocks, and words of them, from buffers; each lane has blocks of its own. */
WEIR_KERNEL(span, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = weir_thread() + (r & 1) * weir_threads(), first = r == 1 ? 0 : r * 2, value;
		u64 count = r == 1 ? SCENARIO_BLOCK_WORDS : 4;

		for (u64 i = 0; i < count; i++)
			*weir_at(buffer_of(args, 0), u64, i) = scenario_word(lba, r + 1, first + i);
		explore_expect("status of a write",
			       weir_writer_write(writer, lba * SCENARIO_BLOCK_WORDS + first, count, buffer_of(args, 0)), WEIR_OK);
		explore_expect("status of a read",
			       weir_array_read(&writer->array, lba * SCENARIO_BLOCK_WORDS + first, count, buffer_of(args, 1)), WEIR_OK);
		value = weir_data_load_u64(buffer_of(args, 1) + (count - 1) * 8);
		explore_expect("last word of a span", value, scenario_word(lba, r + 1, first + count - 1));
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 == weir_threads())
		flush_all(args);
}

/* A flush of what a lane wrote, while others write beside it. */
WEIR_KERNEL(flush, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (r + args->salt + weir_thread() / 2) % 3, index = lba * SCENARIO_BLOCK_WORDS + weir_thread();

		weir_writer_put_u64(writer, index, scenario_word(lba, r + 1, weir_thread()));
		*mark_of(args, weir_thread(), lba) = r + 1;
		if ((r + weir_thread()) & 1)
			continue;
		explore_expect("status of a flush", weir_writer_flush(writer, index, 1, 0), WEIR_OK);
		explore_expect("status of a raw read", weir_read(disk, lba, 1, buffer_of(args, r), event_of(args, r), 0), WEIR_OK);
		explore_expect("word flushed", weir_data_load_u64(buffer_of(args, r) + weir_thread() * 8),
			       scenario_word(lba, r + 1, weir_thread()));
		explore_progress();
	}
	check_storage(args, 3, (u32)weir_threads() + 1);
}

/* The cache begins with a set of dirty lines: one must go. */
WEIR_KERNEL(evict, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	u64 lba = WEIR_WAYS + weir_thread();

	explore_expect("element read", weir_array_get_u64(&writer->array, lba * SCENARIO_BLOCK_WORDS), scenario_word(lba, 0, 0));
	for (lba = 0; lba < WEIR_WAYS; lba++) /* every word of these is of generation 1 */
		*mark_of(args, weir_thread(), lba) = 1;
	check_storage(args, WEIR_WAYS, (u32)weir_threads());
}

/* Both lanes write to a line that is dirty already. */
WEIR_KERNEL(put_one, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	weir_writer_put_u64(writer, weir_thread(), scenario_word(0, 2, weir_thread()));
	*mark_of(args, weir_thread(), 0) = 2;
	explore_progress();
	explore_expect("status of a flush", weir_writer_flush(writer, weir_thread(), 1, 0), WEIR_OK);
	for (u64 lba = 1; lba < WEIR_WAYS; lba++)
		*mark_of(args, weir_thread(), lba) = 1;
	check_storage(args, 1, (u32)weir_threads());
}
