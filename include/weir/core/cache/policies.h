/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/policies.h: the replacement policies, each a function of a miss.
 *
 * Owns: what each makes of its word of state. They run with the set's lock held and must
 * neither wait nor loop beyond the ways. They know of reads only by the marks: that a line
 * was read since, not when or how often. docs/cache-policies.md says what follows from that.
 *
 * All but direct mapping fill empty lines first.
 */
#ifndef WEIR_CORE_POLICIES_H
#define WEIR_CORE_POLICIES_H

#include <weir/core/cache/choice.h>
#include <weir/core/cache/sketch.h>

/* What a policy answers that passes nobody over and wants to hear of no read. */
WEIR_FN struct weir_choice weir_choice_of(u32 way, u32 state)
{
	struct weir_choice choice;

	choice.way = way;
	choice.unmark = 0;
	choice.state = state;
	choice.mark = 1;
	return choice;
}

/* Where to look: among empty lines if there are any. */
WEIR_FN u32 weir_miss_candidates(struct weir_miss miss)
{
	return miss.empty ? miss.empty : miss.evictable;
}

/*
 * Clock (Corbato, 1968): from the hand on, the first that was not read since the hand
 * passed last. A line comes marked. State: the hand.
 */
WEIR_FN struct weir_choice weir_clock_choose(struct weir_miss miss)
{
	u32 hand = miss.state % WEIR_WAYS;
	struct weir_hand sweep = weir_hand_from(weir_miss_candidates(miss), miss.used, hand);
	struct weir_choice choice = weir_choice_of(sweep.at, sweep.at + 1);

	choice.unmark = miss.empty ? 0 : sweep.passed;
	return choice;
}

/*
 * Least recently used, as far as marks tell: at each miss of the set what was read since
 * the last one becomes the newest, in the order it had; then the oldest goes. State: the order.
 */
WEIR_FN struct weir_choice weir_lru_choose(struct weir_miss miss)
{
	u32 order = weir_order_renew_all(weir_order_of(miss.state), miss.used);
	u32 at = weir_ways_lowest(weir_order_positions(order, weir_miss_candidates(miss)));
	struct weir_choice choice =
		weir_choice_of(weir_order_way(order, at), weir_order_state(weir_order_renew(order, at), 0));

	choice.unmark = miss.used;
	choice.mark = 0;
	return choice;
}

/* First in, first out: who came first goes, read or not. State: the order. */
WEIR_FN struct weir_choice weir_fifo_choose(struct weir_miss miss)
{
	u32 order = weir_order_of(miss.state);
	u32 at = weir_ways_lowest(weir_order_positions(order, weir_miss_candidates(miss)));

	return weir_choice_of(weir_order_way(order, at), weir_order_state(weir_order_renew(order, at), 0));
}

/* Any: the first candidate from a random way on. State: of a generator that the keys stir. */
WEIR_FN struct weir_choice weir_random_choose(struct weir_miss miss)
{
	u32 state = (miss.state + (u32)miss.key) * 0x9e3779b1u + 0x7f4a7c15u;

	return weir_choice_of(weir_ways_next(weir_miss_candidates(miss), state >> 30), state);
}

/* Direct mapping: line k of as many lines as the cache has, and no other. No state. */
WEIR_FN struct weir_choice weir_direct_choose(struct weir_miss miss)
{
	u32 way = (u32)miss.round % WEIR_WAYS;

	return weir_choice_of((miss.evictable >> way) & 1 ? way : (u32)WEIR_WAYS, 0);
}

/*
 * SIEVE (Zhang et al., NSDI 2024): a queue in order of arrival, which a hand sweeps from
 * the oldest on; unlike clock's, a line that comes goes to the queue's end, not to where
 * the hand is, so what has proved itself is not swept again before all new ones were. It comes
 * unmarked. State: the order of arrival; above it the hand, a position in that order.
 */
WEIR_FN struct weir_choice weir_sieve_choose(struct weir_miss miss)
{
	u32 order = weir_order_of(miss.state), hand = (miss.state >> WEIR_ORDER_BITS) % WEIR_WAYS;
	u32 candidates = weir_order_positions(order, weir_miss_candidates(miss));
	struct weir_hand sweep =
		weir_hand_from(candidates, weir_order_positions(order, miss.used), miss.empty ? 0 : hand);
	u32 next = sweep.at < WEIR_WAYS - 1 ? sweep.at : 0;
	struct weir_choice choice;

	/* Where a line went out of the queue those behind it move up, and the hand with them. */
	if (miss.empty)
		next = hand - (sweep.at < hand ? 1 : 0);
	choice = weir_choice_of(weir_order_way(order, sweep.at),
				weir_order_state(weir_order_renew(order, sweep.at), next));
	choice.unmark = miss.empty ? 0 : weir_order_ways(order, sweep.passed);
	choice.mark = 0;
	return choice;
}

/*
 * Admission by frequency, after W-TinyLFU (Einziger, Friedman and Manes, 2017) with a window
 * of one line per set: a line that comes takes the probation way. Who was there stays if it was
 * asked for more often than the least recently used of the other three, whose way is then the
 * probation way; else it goes. Asked for: missed, or marked at a miss of the set (core/cache/sketch.h).
 * State: the order as for LRU; above it the probation way.
 */
WEIR_FN struct weir_choice weir_frequency_choose(WEIR_GLOBAL struct weir_set_policy *policy,
						 struct weir_miss miss)
{
	u32 order = weir_order_renew_all(weir_order_of(miss.state), miss.used);
	u32 probation = (miss.state >> WEIR_ORDER_BITS) % WEIR_WAYS, candidates = weir_miss_candidates(miss),
	    at;
	u32 oldest = weir_order_way(
		order, weir_ways_lowest(weir_order_positions(order, candidates & ~(1u << probation))));
	struct weir_choice choice;

	choice.way = (candidates >> probation) & 1 ? probation : oldest;
	if (choice.way == probation && !miss.empty && oldest != WEIR_WAYS)
		choice.way = weir_sketch_ask(policy, weir_probe_key(miss.probe, probation)) +
						     ((miss.used >> probation) & 1) >
					     weir_sketch_ask(policy, weir_probe_key(miss.probe, oldest)) +
						     ((miss.used >> oldest) & 1)
				     ? oldest
				     : probation;
	at = weir_ways_lowest(weir_order_positions(order, (1u << choice.way) & WEIR_ALL_WAYS));
	choice.state = weir_order_state(weir_order_renew(order, at), choice.way % WEIR_WAYS);
	choice.unmark = miss.used;
	choice.mark = 0;
	return choice;
}

/* The line was claimed: count who was asked for. */
WEIR_FN void weir_frequency_chosen(WEIR_GLOBAL struct weir_set_policy *policy, struct weir_miss miss)
{
	for (u32 way = 0; way <= WEIR_WAYS; way++)
		if (way == WEIR_WAYS || (miss.used >> way) & 1)
			weir_sketch_add(policy,
					way == WEIR_WAYS ? miss.key : weir_probe_key(miss.probe, way));
}

#endif
