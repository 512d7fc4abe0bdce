/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/copy.h: a wave moves its lanes' blocks together.
 *
 * Owns: the order in which a wave walks over jobs of different lanes, so that its
 * accesses are wide and adjacent and several blocks are in flight at once. Touches
 * no ring and gives no order: whoever needs one puts weir_wave_sync() and a fence
 * behind it.
 */
#ifndef WEIR_CORE_COPY_H
#define WEIR_CORE_COPY_H

#include <weir/port.h>

/* Accesses of 16 bytes that each lane has in flight; a kernel may choose its own. */
#ifndef WEIR_COPY_BATCH
#define WEIR_COPY_BATCH 4
#endif

/** struct weir_copy_row - one lane's part of what the wave moves at once; bytes of it or none */
struct weir_copy_row {
	weir_addr to;
	struct weir_u128 data;
};

/* Jobs that only 4-byte accesses can do, one after the other. */
WEIR_FN void weir_copy_narrow(u64 lanes, u64 jobs, weir_addr to, weir_addr from, u32 bytes)
{
	u32 step = weir_popcount(lanes) * 4, mine = weir_rank(lanes, weir_lane()) * 4;

	for (; jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane), source = weir_shuffle_u64(lanes, from, lane);

		for (u32 at = mine; at < end; at += step)
			*weir_at(target + at, u32, 0) = weir_data_load_u32(source + at);
		weir_converge();
	}
}

/**
 * weir_wave_copy() - every lane's block copied by all lanes together
 * @lanes: all lanes of it call together
 * @to: this lane's destination
 * @from: this lane's source, which may be written by others of the device or the host
 * @bytes: this lane's length, a multiple of 4; 0: this lane has none
 *
 * Addresses are multiples of 4; where addresses and length are multiples of 16, so
 * are the accesses. Bounded; gives no order by itself.
 */
WEIR_FN void weir_wave_copy(u64 lanes, weir_addr to, weir_addr from, u32 bytes)
{
	u32 wide = bytes != 0 && ((to | from | bytes) & 15) == 0;
	u32 step = weir_popcount(lanes) * 16, mine = weir_rank(lanes, weir_lane()) * 16;
	u64 jobs = weir_ballot(lanes, wide), narrow = weir_ballot(lanes, bytes != 0 && !wide);
	u32 at = 0, end = 0;
	weir_addr target = 0, source = 0;

	while (jobs) {
		struct weir_copy_row row[WEIR_COPY_BATCH];

		for (u32 i = 0; i < WEIR_COPY_BATCH; i++) {
			if (at == 0 && jobs) { /* the same in all lanes */
				u32 lane = weir_lowest_bit(jobs);

				target = weir_shuffle_u64(lanes, to, lane);
				source = weir_shuffle_u64(lanes, from, lane);
				end = (u32)weir_shuffle_u64(lanes, bytes, lane);
			}
			row[i].to = jobs && at + mine < end ? target + at + mine : 0;
			if (row[i].to)
				row[i].data = weir_data_load_u128(source + at + mine);
			at += step;
			if (at >= end) {
				at = 0;
				jobs &= jobs - 1;
			}
		}
		for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
			if (row[i].to)
				*weir_at(row[i].to, struct weir_u128, 0) = row[i].data;
		weir_converge();
	}
	if (narrow)
		weir_copy_narrow(lanes, narrow, to, from, bytes);
}

#endif
