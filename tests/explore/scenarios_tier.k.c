/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for caches with a tier behind them (core/cache/tier.h). In a file of their own: lanes have code for
 * it here only. */
#define WEIR_TIER
#include <weir/async.h>

#include "scenarios_parts.h"

enum { TIER_BLOCKS = 9 }; /* more than a set and its tier may hold */

/* This lane's word of a block is what it wrote last. */
WEIR_FN void tier_expect(struct scenario_args *args, const char *what, u64 lba, u64 got)
{
	explore_expect(what, got, scenario_word(lba, *mark_of(args, weir_thread(), lba), weir_thread()));
	explore_progress();
}

WEIR_FN void tier_get(struct scenario_args *args, u64 lba)
{
	tier_expect(args, "element read", lba,
		    weir_array_get_u64(weir_at(args->array, struct weir_array, 0),
				       lba * SCENARIO_BLOCK_WORDS + weir_thread()));
}

WEIR_FN void tier_put(struct scenario_args *args, u64 lba, u64 generation)
{
	weir_writer_put_u64(weir_at(args->writer, struct weir_writer, 0),
			    lba * SCENARIO_BLOCK_WORDS + weir_thread(),
			    scenario_word(lba, generation, weir_thread()));
	*mark_of(args, weir_thread(), lba) = generation;
}

/* Words of blocks that all lanes share out are put, and read, by element and by copy. The last lane looks at
 * storage. */
WEIR_KERNEL(tier, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);

	for (u32 r = 0; r < args->requests; r++) {
		u64 lba = (weir_thread() * 5 + r * 3 + args->salt) % TIER_BLOCKS;
		u32 action = (r + (u32)weir_thread() + args->salt) % 4;

		if (action == 0)
			tier_put(args, lba, r + 1);
		if (action == 1) {
			explore_expect("status of a copy",
				       weir_async_read(array, lba, buffer_of(args, r), event_of(args, r)),
				       WEIR_OK);
			explore_expect("status of its wait", weir_async_wait(array, event_of(args, r), 0),
				       WEIR_OK);
			tier_expect(args, "word copied", lba,
				    weir_data_load_u64(buffer_of(args, r) + weir_thread() * 8));
		}
		tier_get(args, lba);
	}
	check_storage(args, TIER_BLOCKS, weir_threads());
}

/* A block of each lane's own is overwritten as a whole, and read again behind others that push it out. */
WEIR_KERNEL(tier_whole, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	u64 mine = weir_thread();

	for (u32 r = 0; r < args->requests; r++) {
		if ((r + mine) & 1) {
			for (u64 word = 0; word < SCENARIO_BLOCK_WORDS; word++)
				*weir_at(buffer_of(args, 0), u64, word) = scenario_word(mine, r + 1, word);
			explore_expect("status of a write",
				       weir_writer_write(writer, mine * SCENARIO_BLOCK_WORDS,
							 SCENARIO_BLOCK_WORDS, buffer_of(args, 0)),
				       WEIR_OK);
			*mark_of(args, mine, mine) = r + 1;
		}
		for (u64 i = 0; i < 3; i++) {
			u64 lba =
				i == 2 ? mine : weir_threads() + (mine + r * 2 + i + args->salt) % WEIR_WAYS;

			tier_get(args, lba);
		}
	}
	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 == weir_threads())
		flush_all(args);
}

/* Block @lba as of generation @generation is written past the cache, which then forgets it. */
WEIR_FN void tier_rewrite(struct scenario_args *args, u64 lba, u64 generation)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	WEIR_GLOBAL u64 *from = weir_at(buffer_of(args, 0), u64, 0);
	struct weir_sweep sweep;

	for (u64 word = 0; word < SCENARIO_BLOCK_WORDS; word++)
		from[word] = scenario_word(lba, generation, word);
	explore_expect("status of a raw write",
		       weir_write(disk, lba, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
	sweep.first_key = array->extent.key_base + lba;
	sweep.end_key = sweep.first_key + 1;
	sweep.first = 0;
	sweep.stride = 1;
	sweep.kind = WEIR_SWEEP_DROP;
	sweep.flags = 0;
	sweep.note = 0;
	explore_expect(
		"status of a drop",
		weir_lines_drop(weir_active(), weir_at(array->lines, struct weir_lines, 0), sweep).status,
		WEIR_OK);
	*mark_of(args, weir_thread(), lba) = generation;
	explore_progress();
}

/* Each lane has a block of its own, which others read, too; nothing older than the last drop is read. */
WEIR_KERNEL(tier_drop, struct scenario_args)
{
	WEIR_GLOBAL struct weir_array *array = weir_at(args->array, struct weir_array, 0);
	u64 mine = weir_thread();

	for (u32 r = 0; r < args->requests; r++) {
		u64 other = (weir_thread() + 1 + r + args->salt) % (weir_threads() + 4);

		explore_expect("some word of the block",
			       weir_array_get_u64(array, other * SCENARIO_BLOCK_WORDS) >> 32, other + 1);
		explore_progress();
		if ((r + weir_thread()) & 1)
			tier_rewrite(args, mine, r + 1);
		tier_get(args, mine);
	}
}

/*
 * Two blocks, two lanes, one set of either level, all in it ready: blocks 0 to 3 in the cache, 4 to 7 behind
 * it. One goes up and another one down; with SCENARIO_FLUSHES one is written to and flushed; with
 * SCENARIO_DROPS forgotten.
 */
WEIR_KERNEL(tier_two, struct scenario_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	u64 lba = WEIR_WAYS + (args->mode ? 0 : weir_thread());

	if (args->mode & SCENARIO_DROPS && weir_thread() == 0) {
		tier_rewrite(args, lba, 1);
	} else if (args->mode & SCENARIO_FLUSHES && weir_thread() == 0) {
		tier_put(args, lba, 1);
		explore_expect("status of a flush",
			       weir_writer_flush(writer, lba * SCENARIO_BLOCK_WORDS, 1, 0), WEIR_OK);
	}
	for (u64 other = lba; other < lba + 2 && args->mode && weir_thread() != 0; other++)
		explore_expect("some word of the block",
			       weir_array_get_u64(&writer->array, other * SCENARIO_BLOCK_WORDS) >> 32,
			       other + 1);
	if (!(args->mode & SCENARIO_DROPS) || weir_thread() == 0)
		tier_get(args, lba);
}
