/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/policy.h: which line of a set goes when another must come.
 *
 * Owns: the policy words of a set, and the used bit of a line's word. Runs on the miss
 * path under the set's lock; a hit sets the bit if it is clear, which the probe saw.
 * Clock (second chance) so far.
 */
#ifndef WEIR_CORE_POLICY_H
#define WEIR_CORE_POLICY_H

#include <weir/abi.h>

/** weir_policy_hit() - a lane read line @way, whose word was @word; writes only if that says anything new */
WEIR_FN void weir_policy_hit(WEIR_GLOBAL struct weir_set *set, u32 way, u64 word)
{
	/* relaxed: a hint; on another occupant's word, which a claim marks anyway, it does no harm */
	if (!(word & WEIR_LINE_USED))
		(void)weir_or_u64_relaxed_dev(&set->word[way], WEIR_LINE_USED);
}

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
	return weir_line_state(word) == WEIR_LINE_BUSY || (word & 5) == (WEIR_LINE_BIT_READY | WEIR_LINE_BIT_WRITING);
}

/** weir_line_evictable() - no command and no pin is on it; MODIFIED must be written back first */
WEIR_FN u32 weir_line_evictable(u64 word)
{
	return !weir_line_under_way(word) && (word & WEIR_LINE_PINS) == 0;
}

/** struct weir_look - the words of a set as one lane saw them */
struct weir_look {
	struct weir_u128 low;
	struct weir_u128 high;
};

/** weir_look_word() - word @way of it; selects, so that lanes with different ways stay together */
WEIR_FN u64 weir_look_word(struct weir_look look, u32 way)
{
	u64 low = way == 0 ? look.low.low : look.low.high, high = way == 2 ? look.high.low : look.high.high;

	return way < 2 ? low : high;
}

/** struct weir_choice - a way, WEIR_WAYS if every line is busy or pinned; and the ways that lose their used mark */
struct weir_choice {
	u32 way;
	u32 unmark;
};

/**
 * weir_policy_choose() - the line to replace, with the set's lock held
 * @look: the set's words
 * @hand: the policy's position
 *
 * Empty lines first; then, from the hand on, the first that was not used since the hand
 * passed last; then the first. Those passed over lose their mark. Written without
 * branches: each way out would be one more path that a wave takes alone.
 */
WEIR_FN struct weir_choice weir_policy_choose(struct weir_look look, u32 hand)
{
	u32 empty = WEIR_WAYS, idle = WEIR_WAYS, used = WEIR_WAYS;
	struct weir_choice choice;

	choice.unmark = 0;
	for (u32 step = 0; step < WEIR_WAYS; step++) {
		u32 way = (hand + step) % WEIR_WAYS, evictable, marked;
		u64 word = weir_look_word(look, way);

		evictable = weir_line_evictable(word);
		marked = evictable && weir_line_readable(word) && (word & WEIR_LINE_USED) != 0;
		empty = empty == WEIR_WAYS && (word & (WEIR_LINE_STATE | WEIR_LINE_PINS)) == WEIR_LINE_INVALID ? way : empty;
		choice.unmark |= idle == WEIR_WAYS && marked ? 1u << way : 0;
		used = used == WEIR_WAYS && marked ? way : used;
		idle = idle == WEIR_WAYS && evictable && !marked ? way : idle;
	}
	choice.way = idle != WEIR_WAYS ? idle : used;
	choice.way = empty != WEIR_WAYS ? empty : choice.way;
	choice.unmark = empty != WEIR_WAYS ? 0 : choice.unmark;
	return choice;
}

/* With the set's lock held: the marks go, and the hand goes on. */
WEIR_FN void weir_policy_chosen(WEIR_GLOBAL struct weir_set *set, WEIR_GLOBAL struct weir_set_policy *policy,
				struct weir_choice choice)
{
	/* relaxed: only the lock's holder takes marks away, so each is there to be subtracted */
	for (u32 way = 0; way < WEIR_WAYS; way++)
		if ((choice.unmark >> way) & 1 && way != choice.way)
			(void)weir_add_u64_relaxed_dev(&set->word[way], (u64)0 - WEIR_LINE_USED);
	weir_store_u32_relaxed_dev(&policy->hand, choice.way + 1); /* relaxed: the lock orders it */
}

#endif
