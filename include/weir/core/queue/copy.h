/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/copy.h: a wave moves its lanes' blocks together.
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

/* Jobs that only 4-byte accesses can do, one after the other. */
WEIR_FN void weir_copy_narrow(u64 lanes, u64 jobs, weir_addr to, weir_addr from, u32 bytes)
{
	u32 step = weir_popcount(lanes) * 4, mine = weir_rank(lanes, weir_lane()) * 4;

	for (; jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane),
			  source = weir_shuffle_u64(lanes, from, lane);

		for (u32 at = mine; at < end; at += step)
			*weir_at(target + at, u32, 0) = weir_data_load_u32(source + at);
		weir_reconverge();
	}
}

/*
 * Of each job the part that whole batches of a whole wave cover, job after job: nothing
 * is decided between the accesses of a batch, so that all its loads are under way at
 * once, at distances the compiler knows.
 */
WEIR_FN void weir_copy_batches(u64 lanes, u64 jobs, weir_addr to, weir_addr from, u32 bytes)
{
	u32 step = weir_lanes() * 16, mine = weir_lane() * 16;

	for (; jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane) + mine;
		weir_addr source = weir_shuffle_u64(lanes, from, lane) + mine;

		for (u32 at = 0; at < end; at += WEIR_COPY_BATCH * step) {
			struct weir_u128 data[WEIR_COPY_BATCH];

			for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
				data[i] = weir_data_load_u128(source + at + i * step);
			for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
				*weir_at(target + at + i * step, struct weir_u128, 0) = data[i];
		}
		weir_reconverge();
	}
}

/*
 * Of blocks of one row of a whole wave each (512 bytes for 32 lanes) whole batches, from the first lane's on
 * until one that is not @even: nothing but addresses is looked up. Return: how many blocks are done.
 */
WEIR_FN u32 weir_copy_even_rows(u64 lanes, weir_addr to, weir_addr from, u32 even)
{
	u64 others = weir_ballot(lanes, !even);
	u32 count = others ? weir_lowest_bit(others) : weir_lanes(), mine = weir_lane() * 16, done = 0;

	for (; done + WEIR_COPY_BATCH <= count; done += WEIR_COPY_BATCH) {
		struct weir_u128 data[WEIR_COPY_BATCH];

		for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
			data[i] = weir_data_load_u128(weir_shuffle_u64(lanes, from, done + i) + mine);
		for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
			*weir_at(weir_shuffle_u64(lanes, to, done + i) + mine, struct weir_u128, 0) = data[i];
	}
	weir_reconverge();
	return done;
}

/*
 * What is less than a batch: a batch has rows of several jobs. It is walked twice,
 * for the loads and for the stores, since that takes fewer registers than a list of
 * addresses.
 */
WEIR_FN void weir_copy_rows(u64 lanes, u64 jobs, weir_addr to, weir_addr from, u32 bytes)
{
	u32 step = weir_popcount(lanes) * 16, mine = weir_rank(lanes, weir_lane()) * 16;
	u32 at = 0;

	while (jobs) { /* the same in all lanes, like all that steers the walks */
		struct weir_u128 data[WEIR_COPY_BATCH];
		u64 left = jobs;
		u32 there = at;

		for (u32 i = 0; i < WEIR_COPY_BATCH && left; i++) {
			u32 lane = weir_lowest_bit(left), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
			weir_addr source = weir_shuffle_u64(lanes, from, lane) + there + mine;

			if (there + mine < end)
				data[i] = weir_data_load_u128(source);
			there = end - there <= step ? 0 : there + step;
			left = there ? left : left & (left - 1);
		}
		for (u32 i = 0; i < WEIR_COPY_BATCH && jobs; i++) {
			u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
			weir_addr target = weir_shuffle_u64(lanes, to, lane) + at + mine;

			if (at + mine < end)
				*weir_at(target, struct weir_u128, 0) = data[i];
			at = end - at <= step ? 0 : at + step;
			jobs = at ? jobs : jobs & (jobs - 1);
		}
		weir_reconverge();
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
	u32 aligned = ((to | from | bytes) & 15) == 0, together = weir_popcount(lanes) == weir_lanes(), wide,
	    whole;
	u64 jobs, rest, narrow;

	if (together) { /* the same in all lanes */
		u32 done = weir_copy_even_rows(lanes, to, from, aligned && bytes == 16 * weir_lanes());

		bytes = weir_lane() < done ? 0 : bytes;
	}
	wide = aligned ? bytes : 0;
	whole = together ? wide - wide % (WEIR_COPY_BATCH * 16 * weir_lanes()) : 0;
	jobs = weir_ballot(lanes, whole != 0);
	rest = weir_ballot(lanes, wide != whole);
	narrow = weir_ballot(lanes, bytes != wide);
	if (jobs)
		weir_copy_batches(lanes, jobs, to, from, whole);
	if (rest)
		weir_copy_rows(lanes, rest, to + whole, from + whole, wide - whole);
	if (narrow)
		weir_copy_narrow(lanes, narrow, to, from, bytes);
}

/* The largest access, 1 to 16 bytes, that both addresses allow at the same distances. */
WEIR_FN u32 weir_move_unit(weir_addr to, weir_addr from)
{
	u32 apart = (u32)(to ^ from) & 15;

	return apart == 0 ? 16 : apart % 8 == 0 ? 8 : apart % 4 == 0 ? 4 : 1;
}

/* [begin, end) of one job in accesses of @unit bytes, which divides all but the addresses' common rest. */
WEIR_FN void weir_move_part(u32 unit, weir_addr to, weir_addr from, u32 begin, u32 end, u32 rank, u32 width)
{
	u32 skip = rank * unit, step = width * unit, at = begin + skip;

	/* by what is left: the last step of a job of almost 2^32 bytes may go past that */
	for (u32 left = end - begin > skip ? end - begin - skip : 0; left; at += step) {
		if (unit == 16)
			weir_data_store_u128(to + at, weir_data_load_u128(from + at));
		else if (unit == 8)
			weir_data_store_u64(to + at, weir_data_load_u64(from + at));
		else if (unit == 4)
			weir_data_store_u32(to + at, weir_data_load_u32(from + at));
		else
			weir_data_store_u8(to + at, weir_data_load_u8(from + at));
		left = left > step ? left - step : 0;
	}
}

/* As weir_copy_batches(), with data stores: of one job the part that whole batches of the wave cover. */
WEIR_FN u32 weir_move_batches(weir_addr to, weir_addr from, u32 begin, u32 end, u32 rank, u32 width)
{
	u32 batch = WEIR_COPY_BATCH * width * 16, at = begin;

	for (; end - at >= batch; at += batch) {
		struct weir_u128 data[WEIR_COPY_BATCH];

		for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
			data[i] = weir_data_load_u128(from + at + (i * width + rank) * 16);
		for (u32 i = 0; i < WEIR_COPY_BATCH; i++)
			weir_data_store_u128(to + at + (i * width + rank) * 16, data[i]);
	}
	return at;
}

/**
 * weir_wave_move() - every lane's bytes copied by all lanes together, for lines that others access
 * @lanes: all lanes of it call together
 * @to: this lane's destination
 * @from: this lane's source
 * @bytes: this lane's length, whatever it is; 0: this lane has none
 *
 * weir_wave_copy() for any alignment: 16 bytes per access where the addresses are equal modulo
 * 16, less where they are not. Destinations are written by data stores, which others may read
 * or overwrite meanwhile. Gives no order by itself.
 */
WEIR_FN void weir_wave_move(u64 lanes, weir_addr to, weir_addr from, u32 bytes)
{
	u32 width = weir_popcount(lanes), rank = weir_rank(lanes, weir_lane());

	for (u64 jobs = weir_ballot(lanes, bytes != 0); jobs; jobs &= jobs - 1) {
		u32 lane = weir_lowest_bit(jobs), end = (u32)weir_shuffle_u64(lanes, bytes, lane);
		weir_addr target = weir_shuffle_u64(lanes, to, lane),
			  source = weir_shuffle_u64(lanes, from, lane);
		u32 unit = weir_move_unit(target, source), head = (u32)(0 - target) & (unit - 1), tail, done;

		head = head < end ? head : end;
		tail = head + (end - head) / unit * unit;
		weir_move_part(1, target, source, 0, head, rank, width);
		done = unit == 16 ? weir_move_batches(target, source, head, tail, rank, width) : head;
		weir_move_part(unit, target, source, done, tail, rank, width);
		weir_move_part(1, target, source, tail, end, rank, width);
		weir_reconverge();
	}
}

#endif
