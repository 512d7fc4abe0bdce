/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier_walk.h: the lanes' side of frontier.h.
 *
 * A kernel file includes it after graph_stored.h, graph_gapbs.h or graph_plain.h, and after defining
 *   FRONTIER_ARGS       its arguments: a structure with members graph and frontier
 *   frontier_visit()    what to do with a few edges of a vertex, after graph_known(); returns
 *                       how many vertices it found
 * Its kernels are frontier_walk_level() and frontier_walk_hubs(), and perhaps both of them once more, run
 * before, to try
 * (@tries, a constant): they do what is in the cache and leave the rest in the frontier. They hold no code
 * for misses, so that the registers which a miss takes are theirs, and nothing is spilled around hits.
 */
#ifndef SAMPLE_FRONTIER_WALK_H
#define SAMPLE_FRONTIER_WALK_H

#include "frontier.h"

/* Into the next level. Return: 1 unless it was there already. */
WEIR_FN u32 frontier_add(weir_addr bitmap, u64 vertex)
{
	u64 bit = (u64)1 << (vertex % 64);

	/* relaxed: levels are separate launches */
	return (weir_or_u64_relaxed_dev(weir_at(bitmap, weir_shared_u64, vertex / 64), bit) & bit) == 0;
}

/** struct frontier_steps - what a lane did with some edges, as in struct graph_tally; @missed: some were
 * tried in vain */
struct frontier_steps {
	u32 found;
	u32 edges;
	u32 lookups;
	u32 missed;
};

WEIR_FN struct frontier_steps frontier_no_steps(void)
{
	struct frontier_steps steps;

	steps.found = steps.edges = steps.lookups = steps.missed = 0;
	return steps;
}

/* Follow edges [begin, end) of @vertex; those tried as far as they are in the cache. */
WEIR_FN struct frontier_steps frontier_follow(WEIR_GLOBAL FRONTIER_ARGS *args, struct frontier_steps steps,
					      u64 vertex, u64 begin, u64 end, u32 tries)
{
	while (begin < end) {
		struct weir_run run = tries ? graph_try_neighbours(&args->graph, begin, end)
					    : graph_neighbours(&args->graph, begin, end);

		if (tries && run.count == 0) {
			steps.missed = 1;
			break;
		}
		steps.lookups++;
		steps.found += frontier_visit(args, vertex, begin, run);
		steps.edges += run.count;
		begin = run.count ? begin + run.count : end; /* an error ends the list */
	}
	return steps;
}

/* Steps of a wave. Those that missed (@late: of any lane) are all done again later, which finds nothing
 * twice. */
WEIR_FN struct graph_tally frontier_count(struct graph_tally tally, struct frontier_steps steps, u64 late)
{
	tally.found += steps.found;
	tally.edges += late ? 0 : steps.edges;
	tally.lookups += late ? 0 : steps.lookups;
	return tally;
}

/* A hub's edges into the list, a piece at a time. */
WEIR_FN void frontier_cut(WEIR_GLOBAL FRONTIER_ARGS *args, u64 vertex, u64 begin, u64 end)
{
	u64 count = (end - begin + FRONTIER_PIECE - 1) / FRONTIER_PIECE;
	/* relaxed: an index dispenser; the list is read by a later launch */
	u64 position = weir_add_u64_relaxed_dev(&graph_counters_of(&args->graph)->pieces, count);

	/* more pieces than edges allow: bad offsets, reported by the host */
	for (; begin < end && position < args->frontier.piece_limit; begin += FRONTIER_PIECE, position++) {
		WEIR_GLOBAL struct frontier_piece *piece =
			weir_at(args->frontier.pieces, struct frontier_piece, position);

		piece->vertex = vertex;
		piece->begin = begin;
		piece->end = end - begin > FRONTIER_PIECE ? begin + FRONTIER_PIECE : end;
	}
}

/** struct frontier_edges - a vertex's, none if @begin is @end, and the @lookups to find out; @late: tried in
 * vain */
struct frontier_edges {
	u64 begin;
	u64 end;
	u32 lookups;
	u32 late;
};

WEIR_FN struct weir_run frontier_offsets(WEIR_GLOBAL FRONTIER_ARGS *args, u64 index, u64 end, u32 tries)
{
	return tries ? graph_try_offsets(&args->graph, index, end) : graph_offsets(&args->graph, index, end);
}

WEIR_FN struct frontier_edges frontier_edges_of(WEIR_GLOBAL FRONTIER_ARGS *args, u64 vertex, u32 tries)
{
	struct weir_run bounds = frontier_offsets(args, vertex, vertex + 2, tries);
	struct frontier_edges edges;
	u32 count = bounds.count;

	edges.begin = bounds.value[0];
	edges.end = bounds.value[1];
	edges.lookups = 1;
	if (count == 1) { /* the two lie on different lines */
		bounds = frontier_offsets(args, vertex + 1, vertex + 2, tries);
		edges.end = bounds.value[0];
		edges.lookups++;
		count = bounds.count;
	}
	edges.late = tries && count == 0;
	edges.lookups = edges.late ? 0 : edges.lookups;
	if (count == 0 || graph_failed(&args->graph)) {
		edges.end = edges.begin;
	} else if (edges.begin > edges.end || edges.end > args->graph.edges) {
		graph_report_bad(&args->graph, GRAPH_BAD_OFFSETS, vertex,
				 edges.begin > edges.end ? edges.begin : edges.end);
		edges.end = edges.begin;
	} else if (edges.end - edges.begin > FRONTIER_PIECE) {
		frontier_cut(args, vertex, edges.begin, edges.end);
		edges.end = edges.begin;
	}
	return edges;
}

/* The sum of @value over this lane and those before it. */
WEIR_FN u32 frontier_sum_to_here(u64 wave, u32 value)
{
	u32 lane = weir_lane();

	for (u32 back = 1; back < weir_lanes(); back *= 2) {
		u32 other = (u32)weir_shuffle_u64(wave, value, lane < back ? lane : lane - back);

		value += lane < back ? 0 : other;
	}
	return value;
}

/* The first lane whose @sum, which never falls from lane to lane, is above @wanted; the last lane if there is
 * none. */
WEIR_FN u32 frontier_lane_above(u64 wave, u32 sum, u32 wanted)
{
	u32 lane = 0;

	for (u32 step = weir_lanes() / 2; step; step /= 2)
		if ((u32)weir_shuffle_u64(wave, sum, lane + step - 1) <= wanted)
			lane += step;
	return lane;
}

/* Edges that a lane takes at a time, a stretch: what one look gives, or if it is alone all there can be. */
WEIR_FN u64 frontier_stretch(void)
{
	return weir_lanes() == 1 ? FRONTIER_PIECE : GRAPH_RUN;
}

/*
 * Each lane comes with the edges of a vertex, any one. The wave goes over all of them together, a stretch for
 * each lane at a time, lanes side by side taking stretches side by side.
 */
WEIR_FN struct frontier_steps frontier_share(WEIR_GLOBAL FRONTIER_ARGS *args, u64 vertex,
					     struct frontier_edges mine, u32 tries)
{
	u64 wave = graph_wave(), stretch = frontier_stretch();
	u32 lanes = weir_lanes(), count = (u32)((mine.end - mine.begin + stretch - 1) / stretch);
	u32 sum = frontier_sum_to_here(wave, count), all = (u32)weir_shuffle_u64(wave, sum, lanes - 1);
	u64 origin = mine.begin - (sum - count) * stretch; /* where the wave's first stretch would begin */
	struct frontier_steps steps = frontier_no_steps();

	for (u32 which = weir_lane(); which - weir_lane() < all;
	     which += lanes) { /* the same turns in all lanes */
		u32 owner = frontier_lane_above(wave, sum, which);
		u64 begin = weir_shuffle_u64(wave, origin, owner) + which * stretch;
		u64 end = weir_shuffle_u64(wave, mine.end, owner),
		    whose = weir_shuffle_u64(wave, vertex, owner);

		if (which < all)
			steps = frontier_follow(args, steps, whose, begin,
						end - begin > stretch ? begin + stretch : end, tries);
		weir_reconverge();
	}
	return steps;
}

/* Which bit of @word is set and has @before set bits below it; it has more than that. */
WEIR_FN u32 frontier_bit(u64 word, u32 before)
{
	u32 at = 0;

	for (u32 bits = 32; bits; bits /= 2) {
		u32 low = weir_popcount(word >> at & (((u64)1 << bits) - 1));

		at += before < low ? 0 : bits;
		before -= before < low ? 0 : low;
	}
	return at;
}

/*
 * The vertices of the wave's words, of which each lane brings one, as many at a time as the wave has lanes:
 * however few there are in each word, each lane has a vertex. Those that were tried in vain stay in their
 * words; of hubs, whose edges are in the list, none.
 */
WEIR_FN struct graph_tally frontier_expand(WEIR_GLOBAL FRONTIER_ARGS *args, struct graph_tally tally,
					   u64 index, u64 bits, u32 tries)
{
	u64 wave = graph_wave(), late;
	u32 lanes = weir_lanes(), count = weir_popcount(bits), sum = frontier_sum_to_here(wave, count);
	u32 all = (u32)weir_shuffle_u64(wave, sum, lanes - 1);

	for (u32 which = weir_lane(); which - weir_lane() < all;
	     which += lanes) { /* the same turns in all lanes */
		u32 owner = frontier_lane_above(wave, sum, which);
		u64 word = weir_shuffle_u64(wave, bits, owner), at = weir_shuffle_u64(wave, index, owner);
		u32 bit = frontier_bit(word, which - (u32)weir_shuffle_u64(wave, sum - count, owner));
		struct frontier_edges mine;
		struct frontier_steps steps;

		mine.begin = mine.end = 0;
		mine.lookups = mine.late = 0;
		if (which < all)
			mine = frontier_edges_of(args, at * 64 + bit, tries);
		steps = frontier_share(args, at * 64 + bit, mine, tries);
		late = tries ? weir_ballot(wave, steps.missed) : 0;
		steps.lookups += mine.lookups;
		tally = frontier_count(tally, steps, late);
		if (mine.late || (late && mine.begin != mine.end)) {
			(void)frontier_add(args->frontier.current, at * 64 + bit);
			tally.missed++;
		}
	}
	return tally;
}

/*
 * Every lane looks through words of the current bitmap for one that has vertices, and clears it; what a
 * wave's lanes have found they do together. A lane's words lie far apart: where many vertices with many edges
 * lie side by side, they are many waves'.
 */
WEIR_FN void frontier_walk_level(WEIR_GLOBAL FRONTIER_ARGS *args, u32 tries)
{
	u64 wave = graph_wave(), waves = weir_threads() / weir_lanes(),
	    words = (args->graph.vertices + 63) / 64;
	u64 next = weir_wave() + weir_lane() * waves;
	struct graph_tally tally = graph_no_tally();

	for (;;) {
		u64 mine = 0, bits = 0;

		for (; bits == 0 && next < words; next += weir_threads()) {
			mine = next; /* relaxed, here and below: written by an earlier launch, and read by a
					later one */
			bits = weir_load_u64_relaxed_dev(
				weir_at(args->frontier.current, weir_shared_u64, mine));
		}
		weir_reconverge();
		if (weir_ballot(wave, bits != 0) == 0)
			break;
		if (bits)
			weir_store_u64_relaxed_dev(weir_at(args->frontier.current, weir_shared_u64, mine), 0);
		weir_wave_sync(wave); /* before a lane puts back a vertex of another one's word */
		tally = frontier_expand(args, tally, mine, bits, tries);
	}
	graph_add_tally(&args->graph, tally);
}

/* Every wave takes pieces of hubs, its lanes stretches of a piece; one that was tried with success has no
 * edges left. */
WEIR_FN void frontier_walk_hubs(WEIR_GLOBAL FRONTIER_ARGS *args, u32 tries)
{
	u64 waves = weir_threads() / weir_lanes(), stretch = frontier_stretch(), late;
	struct graph_tally tally = graph_no_tally();

	for (u64 p = weir_wave(); p < args->frontier.piece_count; p += waves) {
		WEIR_GLOBAL struct frontier_piece *piece =
			weir_at(args->frontier.pieces, struct frontier_piece, p);
		struct frontier_steps steps = frontier_no_steps();
		u64 end = piece->end;

		for (u64 at = piece->begin + weir_lane() * stretch; at < end; at += weir_lanes() * stretch)
			steps = frontier_follow(args, steps, piece->vertex, at,
						end - at > stretch ? at + stretch : end, tries);
		late = tries ? weir_ballot(graph_wave(), steps.missed) : 0;
		tally = frontier_count(tally, steps, late);
		tally.missed += late != 0;
		if (tries && !late && weir_lane() == 0)
			piece->begin = end;
	}
	graph_add_tally(&args->graph, tally);
}

#endif
