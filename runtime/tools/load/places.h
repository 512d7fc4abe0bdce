/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * places.h: which place a lane's next request goes to, what blocks hold, how time counts.
 *
 * Owns: random words, the Zipf law, the pattern of verified storages, latency buckets.
 * All of it is a function of (seed, lane, step), so that no lane carries a state.
 *
 * Zipf: rank r of n is drawn with a probability proportional to r^-theta. Ranks are taken
 * in octaves [2^k, 2^(k+1)). The host sums each octave's share; a lane draws an octave by
 * these, then a rank evenly in it, and keeps it with probability (r / 2^k)^-theta, else
 * draws again: rejection, exact but for the rounding. With r / 2^k = 2 - s that power is
 * 2^-theta times a series in s whose terms are all positive, so that 24 of them in 32-bit
 * fixed point do: no tables that grow, no floating point. Ranks are then scattered over the
 * places by a permutation, the same one in every run: hot places are far from each other.
 */
#ifndef WEIR_PERF_LOCATIONS_H
#define WEIR_PERF_LOCATIONS_H

#include <weir/core/mix.h>

#include "perf.h"

enum { PERF_ZIPF_TRIES = 64 };

/* A well-mixed word per (seed, lane, step); no state to carry. */
WEIR_FN u64 perf_random(u64 seed, u64 lane, u64 step)
{
	return weir_mix_u64(seed + lane * WEIR_MIX_STEP + step * 0xbf58476d1ce4e5b9ul);
}

/* What the 8-byte word @word of storage @disk holds once it has been filled. */
WEIR_FN u64 perf_pattern(u64 seed, u64 disk, u64 word)
{
	return perf_random(seed * 0x94d049bb133111ebul + 0x5851f42d4c957f2dul, disk, word);
}

/* (1 + t)^-theta in 2^-32, for t = @offset / 2^@octave below 1. */
WEIR_FN u64 perf_zipf_keep(WEIR_GLOBAL struct perf_zipf *zipf, u64 offset, u32 octave)
{
	u64 t = octave <= 32 ? offset << (32 - octave) : offset >> (octave - 32);
	u64 s = ((u64)1 << 32) - t, sum = 0;

	for (u32 i = PERF_TERMS; i-- > 0;)
		sum = ((sum * s) >> 32) + zipf->term[i];
	return sum;
}

/* A rank from 1 to @spans. */
WEIR_FN u64 perf_zipf_rank(WEIR_GLOBAL struct perf_zipf *zipf, u64 spans, u64 seed, u64 lane, u64 step)
{
	u64 draw = perf_random(seed, lane, step), low, width, offset = 0;
	u32 octave = 0;

	while (octave + 1 < zipf->octaves && draw >= zipf->share[octave])
		octave++;
	low = (u64)1 << octave;
	width = low <= spans - low + 1 ? low : spans - low + 1;
	for (u32 i = 0; i < PERF_ZIPF_TRIES; i++) {
		draw = perf_random(~seed, lane, step * PERF_ZIPF_TRIES + i);
		offset = weir_mulhi(draw, width);
		if ((u32)draw < perf_zipf_keep(zipf, offset, octave))
			break;
	}
	return low + offset;
}

/* A permutation of [0, @spans): one of [0, 2^@bits), walked until it comes back below. */
WEIR_FN u64 perf_scatter(u64 value, u64 spans, u32 bits)
{
	u64 mask = bits < 64 ? ((u64)1 << bits) - 1 : ~(u64)0;
	u32 shift = (bits + 1) / 2;

	do {
		value = ((value ^ (value >> shift)) * 0x9e3779b97f4a7c15ul) & mask;
		value = ((value ^ (value >> shift)) * 0xbf58476d1ce4e5b9ul + 0x2545f491ul) & mask;
		value ^= value >> shift;
	} while (value >= spans);
	return value;
}

/* Step @step of lane @lane, number @rank of the @count that share a storage; every place as likely as any
 * other. */
WEIR_FN u64 perf_even_location(WEIR_GLOBAL struct perf_locations *indices, u64 lane, u64 rank, u64 count,
			       u64 step)
{
	if (indices->kind == PERF_SEQUENTIAL)
		return (step * count + rank) % indices->spans;
	/* the high half of a 128-bit product: even over any number of places */
	return weir_mulhi(perf_random(indices->seed, lane, step), indices->spans);
}

/* The same for all kinds of places. */
WEIR_FN u64 perf_location(WEIR_GLOBAL struct perf_locations *indices, u64 lane, u64 rank, u64 count, u64 step)
{
	if (indices->kind != PERF_ZIPF)
		return perf_even_location(indices, lane, rank, count, step);
	return perf_scatter(perf_zipf_rank(&indices->zipf, indices->spans, indices->seed, lane, step) - 1,
			    indices->spans, indices->zipf.bits);
}

/* Step @step of lane @lane is a read. */
WEIR_FN u32 perf_reads(WEIR_GLOBAL struct perf_load *load, u64 lane, u64 step)
{
	if (load->reads_percent == 100 || load->reads_percent == 0)
		return load->reads_percent != 0;
	return weir_mulhi(perf_random(load->indices.seed + 1, ~lane, step), 100) < load->reads_percent;
}

/* Exact below 128, then 64 buckets per power of two: 128, 130, 132, ..., 256, 260, ... */
WEIR_FN u32 perf_bucket(u64 ns)
{
	u32 power = 0;

	for (; ns >= 2 * PERF_PER_POWER; ns >>= 1)
		power++;
	return power * PERF_PER_POWER + (u32)ns;
}

/* When the time is up: the same moment for all lanes, however late one begins. */
WEIR_FN u64 perf_deadline(WEIR_GLOBAL struct perf_load *load)
{
	u64 now = weir_clock_ns();
	/* relaxed: the word itself is all that is told */
	u64 start = weir_cas_u64_relaxed_dev(&weir_at(load->results, struct perf_results, 0)->start, 0, now);

	return (start ? start : now) + load->runtime_ns;
}

/** struct perf_counts - one lane's part of the results */
struct perf_counts {
	u64 reads;
	u64 writes;
	u64 errors;
	u64 checked;
	u64 bad;
};

/* Relaxed: sums, read by the host after the launch. */
WEIR_FN void perf_add(WEIR_GLOBAL weir_shared_u64 *word, u64 value)
{
	if (value)
		(void)weir_add_u64_relaxed_dev(word, value);
}

WEIR_FN void perf_report(WEIR_GLOBAL struct perf_results *results, struct perf_counts counts)
{
	perf_add(&results->reads, counts.reads);
	perf_add(&results->writes, counts.writes);
	perf_add(&results->errors, counts.errors);
	perf_add(&results->checked, counts.checked);
	perf_add(&results->bad, counts.bad);
}

/* A request ended. A failed one is no throughput, whatever its time. */
WEIR_FN struct perf_counts perf_count(struct perf_counts counts, u32 reads, u32 failed)
{
	counts.reads += !failed && reads;
	counts.writes += !failed && !reads;
	counts.errors += failed;
	return counts;
}

/* A write to @index ended. Relaxed: looked at after the launch. */
WEIR_FN void perf_note_written(WEIR_GLOBAL struct perf_load *load, u64 index, u32 failed)
{
	if (load->written)
		(void)weir_or_u64_relaxed_dev(weir_at(load->written, weir_shared_u64, index / 32),
					      (u64)(failed ? 2 : 1) << (index % 32 * 2));
}

/* What @index holds is known: it was written, and no write to it failed. */
WEIR_FN u32 perf_was_written(WEIR_GLOBAL struct perf_load *load, u64 index)
{
	return (weir_load_u64_relaxed_dev(weir_at(load->written, weir_shared_u64, index / 32)) >>
			(index % 32 * 2) &
		3) == 1;
}

WEIR_FN void perf_time(WEIR_GLOBAL struct perf_results *results, u32 reads, u64 ns)
{
	u32 bucket = perf_bucket(ns);

	perf_add(reads ? &results->read_latency[bucket] : &results->write_latency[bucket], 1);
}

#endif
