/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for what is done at edges: of queues, of arrays, of a cache's life. In a file of their own: few
 * changes of the core concern them.
 * Flags: -fno-unroll-loops -mllvm -rotation-max-header-size=0
 */
#include <weir/async.h>

#include "scenarios_parts.h"

/* Far more requests than the ring holds, from lanes that each submit as fast as they can: who waits, and for
 * how many others? */
WEIR_KERNEL(fair, struct scenario_args)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++) {
		explore_submits();
		explore_expect(
			"status of a submission",
			weir_read_async(disk, some_lba(args, r), 1, buffer_of(args, r), event_of(args, r)),
			WEIR_OK);
	}
	explore_expect("status of all", weir_wait_all(disk, event_of(args, 0), args->requests, 0), WEIR_OK);
	for (u32 r = 0; r < args->requests; r++)
		check_block(buffer_of(args, r), some_lba(args, r), 0);
}

enum { FOUR_BLOCKS = 11, FOUR_STRIDE = 3 }; /* more than two sets have lines */

/* Four elements at once: lines that are there, that are not, the same one twice, and one past the end. */
WEIR_KERNEL(four, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u32 word = (u32)weir_thread() % SCENARIO_BLOCK_WORDS;
		struct weir_four index, got;

		for (u32 k = 0; k < 4; k++)
			index.value[k] = (some_lba(args, r) + k / 2 * FOUR_STRIDE) % FOUR_BLOCKS *
						 SCENARIO_BLOCK_WORDS +
					 word + k;
		if ((r + weir_lane()) % 3 == 0)
			index.value[3] = array->count;
		got = weir_array_get_four_u64(array, index);
		for (u32 k = 0; k < 4; k++)
			explore_expect("one of four elements", got.value[k],
				       index.value[k] >= array->count
					       ? 0
					       : scenario_word(index.value[k] / SCENARIO_BLOCK_WORDS, 0,
							       index.value[k] % SCENARIO_BLOCK_WORDS));
		explore_progress();
	}
}

/* The span's last words are this array's last; what is behind them in its last line is nobody's. */
WEIR_FN void end_written(struct scenario_args *args, u64 first, u64 count, u32 r)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);

	for (u64 i = 0; i < count; i++)
		*weir_at(buffer_of(args, 0), u64, i) = scenario_word(
			(first + i) / SCENARIO_BLOCK_WORDS, r + 1, (first + i) % SCENARIO_BLOCK_WORDS);
	explore_expect("status of a write", weir_writer_write(writer, first, count, buffer_of(args, 0)),
		       WEIR_OK);
	explore_expect("status of a write past the end",
		       weir_writer_write(writer, first, count + 1, buffer_of(args, 0)), WEIR_E_INDEX);
	explore_expect("status of a flush past the end", weir_writer_flush(writer, first, count + 1, 0),
		       WEIR_E_INDEX);
}

/*
 * An array that ends in the middle of a line: each lane writes words of its own before the end, by element,
 * and the last lane of all the last words as a span. All read spans that end where the array does.
 */
WEIR_KERNEL(ends, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	u64 end = writer->array.count, mine = end - 2 * SCENARIO_BLOCK_WORDS - 4 + weir_thread(),
	    last = SCENARIO_BLOCK_WORDS;
	u64 line = end / SCENARIO_BLOCK_WORDS;

	for (u32 r = 0; r < args->requests; r++) {
		u64 count = SCENARIO_BLOCK_WORDS + 2 * weir_thread(), first = end - count, got;
		WEIR_GLOBAL u64 *behind = weir_at(buffer_of(args, 1), u64, count);

		weir_writer_put_u64(
			writer, mine,
			scenario_word(mine / SCENARIO_BLOCK_WORDS, r + 1, mine % SCENARIO_BLOCK_WORDS));
		weir_writer_put_u64(writer, end + weir_thread(), 0); /* refused */
		if (weir_thread() == 0)
			end_written(args, end - 4, 4, r);
		*behind = 0;
		explore_expect("status of a read",
			       weir_array_read(&writer->array, first, count, buffer_of(args, 1)), WEIR_OK);
		explore_expect("status of a read past the end",
			       weir_array_read(&writer->array, first, count + 1, buffer_of(args, 1)),
			       WEIR_E_INDEX);
		/* as many elements as make eight bytes in 64 bits, whose last one has the index 0 */
		explore_expect("status of a read around all indices",
			       weir_array_read(&writer->array, (u64)0 - ((u64)1 << 61), ((u64)1 << 61) + 1,
					       buffer_of(args, 1)),
			       WEIR_E_INDEX);
		explore_expect("what is behind a span", *behind, 0);
		got = weir_data_load_u64(buffer_of(args, 1) + (count - 1) * 8);
		explore_expect("block of a span's last word", got >> 32, line + 1);
		explore_expect("a span's last word", (u32)got & 0xffff, end - line * SCENARIO_BLOCK_WORDS);
		if (weir_thread() == 0)
			explore_expect("generation of a span's last word", (u32)got >> 16, r + 1);
		explore_expect("an element past the end", weir_array_get_u64(&writer->array, end), 0);
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_all(args);
	explore_expect("status of a raw read",
		       weir_read(weir_at(args->disk, struct weir_disk, 0), line, 1, buffer_of(args, 1),
				 event_of(args, 0), 0),
		       WEIR_OK);
	for (u64 word = end - line * SCENARIO_BLOCK_WORDS; word < last; word++)
		explore_expect("a word behind the array", weir_data_load_u64(buffer_of(args, 1) + word * 8),
			       scenario_word(line, 0, word));
}

/* A sweep of the whole array's keys, which are far more than the cache has lines, or of block @lba's alone.
 */
WEIR_FN struct weir_sweep sweep_of(WEIR_GLOBAL struct weir_array *array, u32 kind, u64 lba)
{
	struct weir_sweep sweep;

	sweep.first_key = array->extent.key_base + (lba == SCENARIO_BLOCKS ? 0 : lba);
	sweep.end_key =
		lba == SCENARIO_BLOCKS ? array->extent.key_base + array->extent.lines : sweep.first_key + 1;
	sweep.first = 0;
	sweep.stride = 1;
	sweep.kind = kind;
	sweep.flags = 0;
	sweep.note = 0;
	return sweep;
}

enum { DROPPED_BLOCKS = 6 };

/*
 * Lanes write words of their own, and some of them have lines forgotten meanwhile, all or one, that others
 * are just reading, writing and writing back. A word is of some generation that was written, and what a lane
 * flushed is never lost.
 */
WEIR_KERNEL(dropped, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	WEIR_GLOBAL struct weir_lines *lines = weir_at(writer->array.lines, struct weir_lines, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() + r + args->salt) % DROPPED_BLOCKS,
		    at = lba * SCENARIO_BLOCK_WORDS + weir_thread(), got;
		u32 iteration = (r + (u32)weir_thread() + args->salt / 8) % 4,
		    since = (u32)*mark_of(args, weir_thread(), lba);

		weir_writer_put_u64(writer, at, scenario_word(lba, r + 1, weir_thread()));
		if (iteration == 0)
			explore_expect(
				"status of forgetting all",
				weir_lines_sweep(weir_active(), lines,
						 sweep_of(&writer->array, WEIR_SWEEP_DROP, SCENARIO_BLOCKS))
					.status,
				WEIR_OK);
		if (iteration == 1)
			explore_expect("status of forgetting one",
				       weir_lines_sweep(weir_active(), lines,
							sweep_of(&writer->array, WEIR_SWEEP_DROP, lba))
					       .status,
				       WEIR_OK);
		got = weir_array_get_u64(&writer->array, at);
		explore_expect("block of an own word", got >> 32, lba + 1);
		explore_expect("an own word of its block", got & 0xffff, weir_thread() + 1);
		explore_expect("a generation that was written, or forgotten",
			       (got >> 16 & 0xffff) <= r + 1 && (got >> 16 & 0xffff) >= since, 1);
		if (iteration >= 2) { /* what it reads now it will have at least */
			explore_expect("status of a flush", weir_writer_flush(writer, at, 1, 0), WEIR_OK);
			got = weir_array_get_u64(&writer->array, at);
			*mark_of(args, weir_thread(), lba) = got >> 16 & 0xffff;
		}
		explore_progress();
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 == weir_threads())
		flush_all(args);
}

enum { GONE_WORD = 0x60de };

/* Is what was left behind in the cache's memory there still? */
WEIR_FN void check_gone(WEIR_GLOBAL struct weir_lines *lines)
{
	for (u64 i = 0; i < lines->sets * WEIR_WAYS; i++)
		explore_expect("memory that a cache had",
			       weir_data_load_u64(lines->data + (i << lines->line_log2)), GONE_WORD);
}

/*
 * Lines are fetched ahead, and nobody reads them; the last lane does what the host does before it gives the
 * cache's memory back, and uses that for something else. No command comes too late.
 */
WEIR_KERNEL(gone, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	for (u32 r = 0; r < args->requests; r++)
		(void)weir_prefetch(array, some_lba(args, r) * SCENARIO_BLOCK_WORDS, SCENARIO_BLOCK_WORDS);
	explore_progress();
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	explore_expect(
		"status of a drain",
		weir_lines_sweep(weir_active(), lines, sweep_of(array, WEIR_SWEEP_DRAIN, SCENARIO_BLOCKS))
			.status,
		WEIR_OK);
	for (u64 i = 0; i < lines->sets * WEIR_WAYS; i++) {
		u64 word =
			weir_load_u64_acquire_dev(weir_line_word(lines, i / WEIR_WAYS, (u32)(i % WEIR_WAYS)));

		explore_expect("a line that a command is on", weir_line_under_way(word), 0);
		weir_data_store_u64(lines->data + (i << lines->line_log2), GONE_WORD);
	}
	weir_fence_to_lanes();
	/* as many commands as could be late */
	for (u32 r = 0; r < 4; r++)
		explore_expect("status of a raw read",
			       weir_read(disk, r, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
	check_gone(lines);
}

/* Copies of lines that are in the cache, which end at once, or are read: another lane waits for each, of this
 * wave or another one. */
WEIR_KERNEL(reported, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u64 other = (weir_thread() + 1 + args->salt) % weir_threads(), location = other * args->requests;

	(void)weir_array_get_u64(array, some_lba(args, 0) % 3 * SCENARIO_BLOCK_WORDS);
	for (u32 r = 0; r < args->requests; r++)
		explore_expect("status of a copy",
			       weir_async_read(array, (some_lba(args, 0) + r) % 3, buffer_of(args, r),
					       event_of(args, r)),
			       WEIR_OK);
	explore_expect("status of another lane's copies",
		       weir_async_wait_all(array, weir_at(args->events, struct weir_event, location),
					   args->requests, 0),
		       WEIR_OK);
	for (u32 r = 0; r < args->requests; r++)
		check_block(args->buffers + (location + r) * SCENARIO_BLOCK_BYTES,
			    ((other * 7 + args->salt) % SCENARIO_BLOCKS + r) % 3, 0);
}
