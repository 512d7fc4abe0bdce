/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/choice.h: what a policy is told of a miss, and what it answers.
 *
 * Owns: the set as one lane saw it, as masks of ways; and an order of the ways in eight
 * bits. All of it by value: a policy is a function of these.
 */
#ifndef WEIR_CORE_CHOICE_H
#define WEIR_CORE_CHOICE_H

#include <weir/abi.h>

/* All ways, as a mask. */
enum { WEIR_ALL_WAYS = (1 << WEIR_WAYS) - 1 };

/** weir_line_state() - WEIR_LINE_... of a line's word */
WEIR_FN u32 weir_line_state(u64 word)
{
	return (u32)(word & WEIR_LINE_STATE);
}

/** weir_line_readable() - @word is of a line that holds its data, dirty or clean */
WEIR_FN u32 weir_line_readable(u64 word)
{
	return (u32)word & WEIR_LINE_BIT_READY;
}

/** weir_line_under_way() - a command is on it: BUSY, WRITING or REWRITTEN */
WEIR_FN u32 weir_line_under_way(u64 word)
{
	return weir_line_state(word) == WEIR_LINE_BUSY ||
	       (word & 5) == (WEIR_LINE_BIT_READY | WEIR_LINE_BIT_WRITING);
}

/** weir_line_evictable() - no command and no pin is on it; MODIFIED must be written back first */
WEIR_FN u32 weir_line_evictable(u64 word)
{
	return !weir_line_under_way(word) && (word & WEIR_LINE_PINS) == 0;
}

/**
 * weir_line_used() - it was read since its mark was taken away
 *
 * Of lines that can be read only: the words of these are changed by exchanges and single bits, never
 * stored over, so that with the set's lock held a mark that was seen is still there to be subtracted.
 */
WEIR_FN u32 weir_line_used(u64 word)
{
	return weir_line_readable(word) && (word & WEIR_LINE_USED) != 0;
}

/** weir_line_empty() - nothing is in it */
WEIR_FN u32 weir_line_empty(u64 word)
{
	return (word & (WEIR_LINE_STATE | WEIR_LINE_PINS)) == WEIR_LINE_INVALID;
}

/** struct weir_probe - the words of a set as one lane saw them */
struct weir_probe {
	struct weir_u128 low;
	struct weir_u128 high;
};

/** weir_probe_word() - word @way of it; selects, so that lanes with different ways stay together */
WEIR_FN u64 weir_probe_word(struct weir_probe probe, u32 way)
{
	u64 low = way == 0 ? probe.low.low : probe.low.high,
	    high = way == 2 ? probe.high.low : probe.high.high;

	return way < 2 ? low : high;
}

/** weir_probe_key() - key of the line in way @way, 0 if there is none */
WEIR_FN u64 weir_probe_key(struct weir_probe probe, u32 way)
{
	return weir_probe_word(probe, way) >> WEIR_LINE_KEY_SHIFT;
}

/**
 * struct weir_miss - what a policy is told
 * @probe: the set's words
 * @key: the line that comes
 * @round: key / sets: what tells the keys of one set apart
 * @parameter: weir_cache_options.policy_parameter
 * @state: the policy's word of this set, 0 at first
 * @evictable: mask of ways that may be chosen, empty ones among them
 * @empty: mask of ways that hold nothing
 * @used: mask of ways whose line was read since its mark was taken away; some may be pinned
 */
struct weir_miss {
	struct weir_probe probe;
	u64 key;
	u64 round;
	u64 parameter;
	u32 state;
	u32 evictable;
	u32 empty;
	u32 used;
};

/**
 * struct weir_choice - what a policy answers
 * @way: the way to replace, one of weir_miss.evictable; WEIR_WAYS: none just now
 * @unmark: mask out of weir_miss.used: ways that lose their mark; @way does in any case
 * @state: the policy's word of this set from now on
 * @mark: not 0: the line that comes is marked already, so that its first read says nothing
 *
 * A policy that never wants to hear of reads answers with a @mark and without an @unmark.
 */
struct weir_choice {
	u32 way;
	u32 unmark;
	u32 state;
	u32 mark;
};

/** weir_miss_of() - @probe as masks; the other members are 0 */
WEIR_FN struct weir_miss weir_miss_of(struct weir_probe probe)
{
	struct weir_miss miss;

	miss.probe = probe;
	miss.key = miss.round = miss.parameter = 0;
	miss.state = miss.evictable = miss.empty = miss.used = 0;
	for (u32 way = 0; way < WEIR_WAYS; way++) {
		u64 word = weir_probe_word(probe, way);

		miss.evictable |= weir_line_evictable(word) << way;
		miss.empty |= weir_line_empty(word) << way;
		miss.used |= weir_line_used(word) << way;
	}
	return miss;
}

/** weir_ways_from() - mask @ways turned so that way @from is bit 0 */
WEIR_FN u32 weir_ways_from(u32 ways, u32 from)
{
	return ((ways | ways << WEIR_WAYS) >> from) & WEIR_ALL_WAYS;
}

/** weir_ways_lowest() - the lowest way of a mask, WEIR_WAYS if it is empty */
WEIR_FN u32 weir_ways_lowest(u32 ways)
{
	return weir_lowest_bit(ways | 1u << WEIR_WAYS);
}

/** weir_ways_next() - the first way of mask @ways from @from on, around; WEIR_WAYS if it is empty */
WEIR_FN u32 weir_ways_next(u32 ways, u32 from)
{
	u32 steps = weir_ways_lowest(weir_ways_from(ways, from));

	return steps == WEIR_WAYS ? steps : (from + steps) % WEIR_WAYS;
}

/**
 * struct weir_hand - where a hand stops
 * @at: there; WEIR_WAYS: nowhere
 * @passed: mask of what was marked and gets a second chance; @at may be among it
 */
struct weir_hand {
	u32 at;
	u32 passed;
};

/**
 * weir_hand_from() - second chance: from @from on, the first without a mark, else the first
 * @candidates: mask
 * @marked: mask
 * @from: where the hand is
 */
WEIR_FN struct weir_hand weir_hand_from(u32 candidates, u32 marked, u32 from)
{
	u32 idle = weir_ways_from(candidates & ~marked, from),
	    used = weir_ways_from(candidates & marked, from);
	u32 stop = weir_ways_lowest(idle);
	struct weir_hand sweep;

	sweep.at = stop != WEIR_WAYS ? (from + stop) % WEIR_WAYS : weir_ways_next(candidates & marked, from);
	sweep.passed = weir_ways_from(used & ((1u << stop) - 1), (WEIR_WAYS - from) % WEIR_WAYS);
	return sweep;
}

/*
 * An order of the ways: two bits each, the oldest lowest. It is kept in a set's state
 * XORed with the order 0, 1, 2, 3, so that the first state, 0, is that one.
 */
enum { WEIR_ORDER_FIRST = 0xe4, WEIR_ORDER_BITS = 8, WEIR_ORDER_MASK = 0xff };

/** weir_order_of() - the order in state @state */
WEIR_FN u32 weir_order_of(u32 state)
{
	return (state ^ WEIR_ORDER_FIRST) & WEIR_ORDER_MASK;
}

/** weir_order_state() - a state with @order, and @more above it */
WEIR_FN u32 weir_order_state(u32 order, u32 more)
{
	return (order ^ WEIR_ORDER_FIRST) | more << WEIR_ORDER_BITS;
}

/** weir_order_way() - which way is at position @at, 0 for the oldest; WEIR_WAYS there for none */
WEIR_FN u32 weir_order_way(u32 order, u32 at)
{
	return at == WEIR_WAYS ? at : (order >> (2 * at)) & 3;
}

/** weir_order_positions() - mask @ways as positions */
WEIR_FN u32 weir_order_positions(u32 order, u32 ways)
{
	u32 indices = 0;

	for (u32 at = 0; at < WEIR_WAYS; at++)
		indices |= ((ways >> weir_order_way(order, at)) & 1) << at;
	return indices;
}

/** weir_order_ways() - mask @indices as ways */
WEIR_FN u32 weir_order_ways(u32 order, u32 indices)
{
	u32 ways = 0;

	for (u32 at = 0; at < WEIR_WAYS; at++)
		ways |= ((indices >> at) & 1) << weir_order_way(order, at);
	return ways;
}

/** weir_order_renew() - what is at position @at becomes the newest; WEIR_WAYS: nothing does */
WEIR_FN u32 weir_order_renew(u32 order, u32 at)
{
	u32 below = order & ((1u << (2 * at)) - 1);
	u32 above = (order >> (2 * at)) >> 2;

	return at == WEIR_WAYS
		       ? order
		       : below | above << (2 * at) | weir_order_way(order, at) << (2 * (WEIR_WAYS - 1));
}

/** weir_order_renew_all() - those of mask @ways become the newest, in the order they have */
WEIR_FN u32 weir_order_renew_all(u32 order, u32 ways)
{
	u32 old = 0, renewed = 0, old_bits = 0, renewed_bits = 0;

	for (u32 at = 0; at < WEIR_WAYS; at++) {
		u32 way = weir_order_way(order, at), yes = (ways >> way) & 1;

		renewed |= yes ? way << renewed_bits : 0;
		old |= yes ? 0 : way << old_bits;
		renewed_bits += 2 * yes;
		old_bits += 2 * (1 - yes);
	}
	return old | renewed << old_bits;
}

#endif
