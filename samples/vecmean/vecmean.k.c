/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sum of a vector: each wave takes whole lines, 16 bytes per lane and access. Through
 * views of an array on storage, and over the same bytes in plain device memory.
 */
#include <weir/array.h>

#include "vecmean.h"

enum { VECMEAN_WIDE = 4 }; /* accesses a lane has in flight */

WEIR_FN struct vecmean_sum vecmean_none(void)
{
	struct vecmean_sum sum;

	sum.low = sum.high = 0;
	for (u32 i = 0; i < 4; i++)
		sum.sum[i] = sum.rest[i] = 0;
	return sum;
}

WEIR_FN struct vecmean_sum vecmean_add_u64(struct vecmean_sum sum, u64 value)
{
	sum.low += value & 0xffffffffu;
	sum.high += value >> 32;
	return sum;
}

WEIR_FN float vecmean_float(u64 bits)
{
	union {
		u32 bits;
		float value;
	} pun;

	pun.bits = (u32)bits;
	return pun.value;
}

/* Kahan: what the sum cannot hold is kept and goes in with the next element. */
WEIR_FN struct vecmean_sum vecmean_add_f32(struct vecmean_sum sum, struct weir_u128 four)
{
	for (u32 i = 0; i < 4; i++) {
		float value = vecmean_float((i < 2 ? four.low : four.high) >> (i % 2 * 32)) - sum.rest[i];
		float next = sum.sum[i] + value;

		sum.rest[i] = (next - sum.sum[i]) - value;
		sum.sum[i] = next;
	}
	return sum;
}

WEIR_FN struct vecmean_sum vecmean_add(struct vecmean_sum sum, struct weir_u128 value, u32 is_float)
{
	if (is_float)
		return vecmean_add_f32(sum, value);
	return vecmean_add_u64(vecmean_add_u64(sum, value.low), value.high);
}

/** struct vecmean_seen - sums, and a mix of all that was loaded for them */
struct vecmean_seen {
	struct vecmean_sum sum;
	u64 mix;
};

/* This lane's share of a view. */
WEIR_FN struct vecmean_seen vecmean_add_view(struct vecmean_seen seen, struct weir_view view, u32 is_float)
{
	u64 step = weir_lanes();

	for (u64 i = weir_lane(); i < view.count; i += VECMEAN_WIDE * step) {
		struct weir_u128 value[VECMEAN_WIDE];

		for (u32 k = 0; k < VECMEAN_WIDE; k++) {
			value[k].low = value[k].high = 0;
			if (i + k * step < view.count)
				value[k] = weir_view_u128(view, i + k * step);
		}
		for (u32 k = 0; k < VECMEAN_WIDE; k++) {
			seen.sum = vecmean_add(seen.sum, value[k], is_float);
			seen.mix ^= value[k].low ^ value[k].high;
		}
	}
	return seen;
}

/* A line that did not stay for a view: element by element, which always gets there. */
WEIR_FN struct vecmean_sum vecmean_add_slowly(WEIR_GLOBAL struct vecmean_args *args, struct vecmean_sum sum,
					      u64 first, u64 end, u32 is_float)
{
	for (u64 i = first + weir_lane(); i < end; i += weir_lanes())
		sum = vecmean_add(sum, weir_array_get_u128(&args->wide, i), is_float);
	return sum;
}

/* Elements [first, end), one line. */
WEIR_FN struct vecmean_sum vecmean_line(WEIR_GLOBAL struct vecmean_args *args, struct vecmean_sum sum,
					u64 first, u64 end, u32 is_float)
{
	struct weir_view view = weir_array_view(&args->wide, first);
	struct vecmean_seen seen;

	seen.sum = sum;
	seen.mix = 0;
	seen = vecmean_add_view(seen, view, is_float);
	if (view.count == end - first && weir_view_valid_by(view, seen.mix))
		return seen.sum;
	return vecmean_add_slowly(args, sum, first, end, is_float);
}

WEIR_FN struct vecmean_sum vecmean_plain_line(WEIR_GLOBAL struct vecmean_args *args, struct vecmean_sum sum,
					      u64 first, u64 end, u32 is_float)
{
	u64 step = weir_lanes();

	for (u64 i = first + weir_lane(); i < end; i += VECMEAN_WIDE * step) {
		struct weir_u128 value[VECMEAN_WIDE];

		for (u32 k = 0; k < VECMEAN_WIDE; k++) {
			value[k].low = value[k].high = 0;
			if (i + k * step < end)
				value[k] = *weir_at(args->plain, struct weir_u128, i + k * step);
		}
		for (u32 k = 0; k < VECMEAN_WIDE; k++)
			sum = vecmean_add(sum, value[k], is_float);
	}
	return sum;
}

/* Lines one after the other over all waves. */
WEIR_FN void vecmean_run(WEIR_GLOBAL struct vecmean_args *args, u32 is_float, u32 is_plain)
{
	u64 waves = (weir_threads() + weir_lanes() - 1) / weir_lanes(), count = args->wide.count;
	u64 line = args->line_bytes / 16;
	struct vecmean_sum sum = vecmean_none();

	for (u64 at = weir_wave() * line; at < count; at += waves * line) {
		u64 end = count - at < line ? count : at + line;

		if (is_plain)
			sum = vecmean_plain_line(args, sum, at, end, is_float);
		else
			sum = vecmean_line(args, sum, at, end, is_float);
		if (!is_plain && weir_array_failed(&args->wide))
			break; /* the host says why */
	}
	*weir_at(args->results, struct vecmean_sum, weir_thread()) = sum;
}

WEIR_KERNEL(vecmean_u64, struct vecmean_args)
{
	vecmean_run(args, 0, 0);
}

WEIR_KERNEL(vecmean_f32, struct vecmean_args)
{
	vecmean_run(args, 1, 0);
}

WEIR_KERNEL(vecmean_plain_u64, struct vecmean_args)
{
	vecmean_run(args, 0, 1);
}

WEIR_KERNEL(vecmean_plain_f32, struct vecmean_args)
{
	vecmean_run(args, 1, 1);
}
