/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * assemble.h: how lanes copy samples into the rows of a batch. Portable; owns no memory, gives no order by
 * itself.
 */
#ifndef WEIR_DATASET_ASSEMBLE_H
#define WEIR_DATASET_ASSEMBLE_H

#include <weir/core/queue/copy.h>

/* Words of 8 bytes of one job whose source lies @from & 7 bytes off, put together from two words each. */
WEIR_FN void weir_dataset_shift_words(weir_addr to, weir_addr from, u32 words, u32 rank, u32 width)
{
	u32 shift = (u32)(from & 7) * 8;
	weir_addr base = from & ~(u64)7;

	for (u32 i = rank; i < words; i += width) {
		u64 low = weir_data_load_u64(base + (u64)i * 8),
		    high = weir_data_load_u64(base + (u64)i * 8 + 8);

		weir_data_store_u64(to + (u64)i * 8, low >> shift | high << (64 - shift));
	}
}

/*
 * Every lane's bytes to a place that is a multiple of 8, by all lanes together. The source may begin
 * anywhere; up to 7 bytes behind its end are read. weir_wave_move() would take single bytes where the two
 * differ modulo 4.
 */
WEIR_FN void weir_dataset_copy(u64 lanes, weir_addr to, weir_addr from, u32 bytes)
{
	u32 off = (from & 7) != 0, width = weir_popcount(lanes), rank = weir_rank(lanes, weir_lane());

	weir_wave_move(lanes, to, from, off ? 0 : bytes);
	for (u64 jobs = weir_ballot(lanes, off && bytes != 0); jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane),
			  source = weir_shuffle_u64(lanes, from, lane);

		weir_dataset_shift_words(target, source, end / 8, rank, width);
		for (u32 at = end / 8 * 8 + rank; at < end; at += width)
			weir_data_store_u8(target + at, weir_data_load_u8(source + at));
		weir_reconverge();
	}
}

/* Zeros for every lane's place, by all lanes together. */
WEIR_FN void weir_dataset_fill(u64 lanes, weir_addr to, u32 bytes)
{
	u32 width = weir_popcount(lanes), rank = weir_rank(lanes, weir_lane());

	for (u64 jobs = weir_ballot(lanes, bytes != 0); jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane);
		u32 head = (u32)(0 - target) & 7, words;

		head = head < end ? head : end;
		words = (end - head) / 8;
		for (u32 at = rank; at < head; at += width)
			weir_data_store_u8(target + at, 0);
		for (u32 i = rank; i < words; i += width)
			weir_data_store_u64(target + head + (u64)i * 8, 0);
		for (u32 at = head + words * 8 + rank; at < end; at += width)
			weir_data_store_u8(target + at, 0);
		weir_reconverge();
	}
}

#endif
