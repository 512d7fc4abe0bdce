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

/** weir_line_evictable() - no command and no pin is on it */
WEIR_FN u32 weir_line_evictable(u64 word)
{
	return weir_line_state(word) != WEIR_LINE_BUSY && (word & WEIR_LINE_PINS) == 0;
}

/* Give @way a second chance, or take it. Return: 1 if it is the victim. */
WEIR_FN u32 weir_clock_take(WEIR_GLOBAL struct weir_set *set, u64 word, u32 way)
{
	if (!weir_line_evictable(word))
		return 0;
	if (weir_line_state(word) != WEIR_LINE_READY)
		return 1;
	if (!(word & WEIR_LINE_USED))
		return 1;
	/* relaxed: a hint; whoever pins the line just now keeps its mark, too */
	(void)weir_cas_u64_relaxed_dev(&set->word[way], word, word & ~WEIR_LINE_USED);
	return 0;
}

/**
 * weir_policy_victim() - the line to replace, with the set's lock held
 * @set: the set
 * @policy: its policy words
 *
 * Empty lines first, then the clock's choice.
 *
 * Return: a way, or WEIR_WAYS if every line is busy or pinned.
 */
WEIR_FN u32 weir_policy_victim(WEIR_GLOBAL struct weir_set *set, WEIR_GLOBAL struct weir_set_policy *policy)
{
	u32 hand = weir_load_u32_relaxed_dev(&policy->hand); /* relaxed: the lock orders it */

	for (u32 way = 0; way < WEIR_WAYS; way++)
		if ((weir_load_u64_relaxed_dev(&set->word[way]) & (WEIR_LINE_STATE | WEIR_LINE_PINS)) ==
		    WEIR_LINE_INVALID)
			return way;
	for (u32 step = 0; step < 2 * WEIR_WAYS; step++, hand++) {
		u32 way = hand % WEIR_WAYS;

		if (weir_clock_take(set, weir_load_u64_relaxed_dev(&set->word[way]), way)) {
			weir_store_u32_relaxed_dev(&policy->hand, way + 1);
			return way;
		}
	}
	return WEIR_WAYS;
}

#endif
