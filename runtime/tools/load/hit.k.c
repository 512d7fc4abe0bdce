/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cache hits against plain memory: each loop twice, once through an array whose lines are
 * all resident, once over the same bytes in plain memory. The sums must agree.
 */
#include <weir/array.h>

#include "places.h"

enum { HIT_WIDE = 8 }; /* 16-byte loads a lane has in flight while it streams a line */

/* The whole array, read once; the plain memory gets it, or the pattern it should hold. */
WEIR_KERNEL(hit_fill, struct perf_words_args)
{
	u64 sum = 0;

	for (u64 i = weir_thread(); i < args->words; i += weir_threads()) {
		u64 word = weir_array_get_u64(&args->array, i);

		*weir_at(args->address, u64, i) =
			args->pattern ? perf_pattern(args->seed, 0, args->first_word + i) : word;
		sum += word;
		if (weir_array_failed(&args->array))
			break; /* the host says why */
	}
	(void)sum;
}

WEIR_FN void hit_report(WEIR_GLOBAL struct perf_hit_args *args, u64 sum)
{
	perf_add(&weir_at(args->results, struct perf_results, 0)->checksum, sum);
}

/* Each lane reads 8 bytes anywhere. */
WEIR_KERNEL(hit_random8, struct perf_hit_args)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->rounds; i++)
		sum += weir_array_get_u64(&args->array,
					  weir_mulhi(perf_random(args->seed, weir_thread(), i), args->words));
	hit_report(args, sum);
}

WEIR_KERNEL(hit_random8_plain, struct perf_hit_args)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->rounds; i++)
		sum += *weir_at(args->plain, u64,
				weir_mulhi(perf_random(args->seed, weir_thread(), i), args->words));
	hit_report(args, sum);
}

/* Where wave read @round begins: as many consecutive words as the wave has lanes, anywhere. */
WEIR_FN u64 hit_row(WEIR_GLOBAL struct perf_hit_args *args, u64 round)
{
	return weir_mulhi(perf_random(args->seed, weir_wave(), round), args->words / weir_lanes()) *
	       weir_lanes();
}

/* @count rows, each lane its word of each; by what always gets there. */
WEIR_FN u64 hit_rows_words(WEIR_GLOBAL struct perf_hit_args *args, u64 round, u32 count)
{
	u64 sum = 0;

	for (u32 i = 0; i < count; i++)
		sum += weir_array_get_u64(&args->array, hit_row(args, round + i) + weir_lane());
	return sum;
}

/* The same by views: each lane looks for a row, and all read it. */
WEIR_FN u64 hit_rows(WEIR_GLOBAL struct perf_hit_args *args, u64 round, u32 count)
{
	u64 wave = weir_active(), sum = 0;
	struct weir_view_u64 view =
		weir_array_view_by(wave, &args->array, hit_row(args, round + weir_lane()));
	u32 i = 0;

	if (weir_ballot(wave, view.own.count < weir_lanes()))
		return hit_rows_words(args, round, count);
	for (; i + HIT_WIDE <= count; i += HIT_WIDE) {
		u64 value[HIT_WIDE];

		for (u32 k = 0; k < HIT_WIDE; k++)
			value[k] = weir_view_u64_of(wave, view, i + k, weir_lane());
		for (u32 k = 0; k < HIT_WIDE; k++)
			sum += value[k];
	}
	for (; i < count; i++)
		sum += weir_view_u64_of(wave, view, i, weir_lane());
	if (weir_ballot(wave, !weir_view_valid_by_all(wave, view, sum)))
		return hit_rows_words(args, round, count);
	return sum;
}

WEIR_KERNEL(hit_wave256, struct perf_hit_args)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->rounds; i += weir_lanes())
		sum += hit_rows(args, i,
				args->rounds - i < weir_lanes() ? (u32)(args->rounds - i) : weir_lanes());
	hit_report(args, sum);
}

WEIR_FN u64 hit_plain_word(WEIR_GLOBAL struct perf_hit_args *args, u64 wave, u64 row, u32 lane)
{
	return *weir_at(args->plain, u64, weir_shuffle_u64(wave, row, lane) + weir_lane());
}

WEIR_FN u64 hit_plain_rows(WEIR_GLOBAL struct perf_hit_args *args, u64 round, u32 count)
{
	u64 wave = weir_active(), row = hit_row(args, round + weir_lane()), sum = 0;
	u32 i = 0;

	for (; i + HIT_WIDE <= count; i += HIT_WIDE) {
		u64 value[HIT_WIDE];

		for (u32 k = 0; k < HIT_WIDE; k++)
			value[k] = hit_plain_word(args, wave, row, i + k);
		for (u32 k = 0; k < HIT_WIDE; k++)
			sum += value[k];
	}
	for (; i < count; i++)
		sum += hit_plain_word(args, wave, row, i);
	return sum;
}

WEIR_KERNEL(hit_wave256_plain, struct perf_hit_args)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->rounds; i += weir_lanes())
		sum += hit_plain_rows(
			args, i, args->rounds - i < weir_lanes() ? (u32)(args->rounds - i) : weir_lanes());
	hit_report(args, sum);
}

/* The line that this wave streams in round @round: one after the other over all waves. */
WEIR_FN u64 hit_line(WEIR_GLOBAL struct perf_hit_args *args, u64 round)
{
	u64 waves = (weir_threads() + weir_lanes() - 1) / weir_lanes();

	return (round * waves + weir_wave()) % (args->words * 8 / args->line_bytes);
}

/* A line that did not stay for a view: its words one after the other, which always gets there. */
WEIR_FN u64 hit_line_words(WEIR_GLOBAL struct perf_hit_args *args, u64 word, u64 words)
{
	u64 sum = 0;

	for (u64 i = weir_lane(); i < words / 2; i += weir_lanes()) {
		struct weir_u128 value = weir_array_get_u128(&args->wide, word / 2 + i);

		sum += value.low + value.high;
	}
	return sum;
}

WEIR_FN u64 hit_line_view(struct weir_view view)
{
	u64 sum = 0, step = weir_lanes(), i = weir_lane();

	for (; i + (HIT_WIDE - 1) * step < view.count; i += HIT_WIDE * step) {
		struct weir_u128 value[HIT_WIDE];

		for (u32 k = 0; k < HIT_WIDE; k++)
			value[k] = weir_view_u128(view, i + k * step);
		for (u32 k = 0; k < HIT_WIDE; k++)
			sum += value[k].low + value[k].high;
	}
	for (; i < view.count; i += step) {
		struct weir_u128 value = weir_view_u128(view, i);

		sum += value.low + value.high;
	}
	return sum;
}

WEIR_KERNEL(hit_line4k, struct perf_hit_args)
{
	u64 words = args->line_bytes / 8, sum = 0;

	for (u64 i = 0; i < args->rounds; i++) {
		u64 word = hit_line(args, i) * words, part;
		struct weir_view view = weir_array_view(&args->wide, word / 2);

		part = hit_line_view(view);
		sum += view.count * 2 == words && weir_view_valid_by(view, part)
			       ? part
			       : hit_line_words(args, word, words);
	}
	hit_report(args, sum);
}

WEIR_FN u64 hit_plain_line(weir_addr data, u64 count)
{
	u64 sum = 0, step = weir_lanes(), i = weir_lane();

	for (; i + (HIT_WIDE - 1) * step < count; i += HIT_WIDE * step) {
		struct weir_u128 value[HIT_WIDE];

		for (u32 k = 0; k < HIT_WIDE; k++)
			value[k] = *weir_at(data, struct weir_u128, i + k * step);
		for (u32 k = 0; k < HIT_WIDE; k++)
			sum += value[k].low + value[k].high;
	}
	for (; i < count; i += step) {
		struct weir_u128 value = *weir_at(data, struct weir_u128, i);

		sum += value.low + value.high;
	}
	return sum;
}

WEIR_KERNEL(hit_line4k_plain, struct perf_hit_args)
{
	u64 words = args->line_bytes / 8, sum = 0;

	for (u64 i = 0; i < args->rounds; i++)
		sum += hit_plain_line(args->plain + hit_line(args, i) * args->line_bytes, words / 2);
	hit_report(args, sum);
}
