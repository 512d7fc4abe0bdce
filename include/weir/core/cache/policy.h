/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/policy.h: which line of a set goes when another must come.
 *
 * Owns: which policy a cache has, the used bit of a line's word, and the policy's words of a
 * set. Policies run on the miss path under the set's lock. A hit sets the bit if it is clear,
 * which the probe saw; where a policy has no use for it, lines come with it set, and no hit
 * ever writes. So the hit path is the same whatever the policy.
 *
 * A policy of one's own is a header, given to the build by -Duser_policy=HEADER, or to the
 * compiler of a program's kernels by -DWEIR_USER_POLICY='"HEADER"', and chosen as
 * WEIR_POLICY_USER. It sees <weir/core/cache/choice.h> and defines
 *
 *   WEIR_FN struct weir_choice weir_user_choose(WEIR_GLOBAL struct weir_set_policy *policy,
 *                                               struct weir_miss miss);
 *   WEIR_FN void weir_user_chosen(WEIR_GLOBAL struct weir_set_policy *policy,
 *                                 struct weir_miss miss, struct weir_choice choice);
 *
 * in the dialect of docs/porting.md. weir_user_choose() only looks: its answer may come to
 * nothing, if a pin is taken meanwhile, and it is asked again. weir_user_chosen() is called once
 * the line was claimed; what a policy needs beyond weir_choice.state it keeps in policy->own,
 * nine words, 0 at first, by relaxed loads and stores: the lock orders them. Both hold the
 * set's lock: no waiting, no locks, no collectives.
 */
#ifndef WEIR_CORE_POLICY_H
#define WEIR_CORE_POLICY_H

#include <weir/core/cache/policies.h>

#ifdef WEIR_USER_POLICY
#include WEIR_USER_POLICY
#endif

/** weir_policy_hit() - a lane read line @way, whose word was @word; writes only if that says anything new */
WEIR_FN void weir_policy_hit(WEIR_GLOBAL struct weir_set *set, u32 way, u64 word)
{
	/* relaxed: a hint; on the word of another occupant, which came meanwhile, it does no harm */
	if (!(word & WEIR_LINE_USED))
		(void)weir_or_u64_relaxed_dev(&set->word[way], WEIR_LINE_USED);
}

/** weir_policy_known() - this kernel was built with policy @policy */
WEIR_FN u32 weir_policy_known(u32 policy)
{
#ifdef WEIR_USER_POLICY
	return policy <= (u32)WEIR_POLICY_USER;
#else
	return policy < (u32)WEIR_POLICY_USER;
#endif
}

/** weir_lines_round() - @key / sets, rounded down: the keys of one set differ in it */
WEIR_FN u64 weir_lines_round(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	u64 quotient = weir_mulhi(key, lines->set_magic);

	return quotient + (key - quotient * lines->sets >= lines->sets ? 1 : 0);
}

/** weir_policy_ways() - mask of the ways that @key's line may ever take; a policy of the user's has all */
WEIR_FN u32 weir_policy_ways(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	return lines->policy == WEIR_POLICY_DIRECT ? 1u << (weir_lines_round(lines, key) % WEIR_WAYS)
						   : (u32)WEIR_ALL_WAYS;
}

/** weir_policy_miss() - what there is to tell of a miss of @key, with the set's lock held */
WEIR_FN struct weir_miss weir_policy_miss(WEIR_GLOBAL struct weir_lines *lines,
					  WEIR_GLOBAL struct weir_set_policy *policy, struct weir_probe probe,
					  u64 key)
{
	struct weir_miss miss = weir_miss_of(probe);

	miss.key = key;
	miss.round = weir_lines_round(lines, key);
	miss.parameter = lines->policy_parameter;
	miss.state = weir_load_u32_relaxed_dev(&policy->state); /* relaxed: the lock orders it */
	return miss;
}

/**
 * weir_policy_choose() - the line to replace, with the set's lock held; changes nothing
 * @lines: the cache
 * @policy: the set's policy words
 * @miss: from weir_policy_miss()
 *
 * All lanes of one cache take the same case.
 */
WEIR_FN struct weir_choice weir_policy_choose(WEIR_GLOBAL struct weir_lines *lines,
					      WEIR_GLOBAL struct weir_set_policy *policy,
					      struct weir_miss miss)
{
	switch (lines->policy) {
	case WEIR_POLICY_LRU: return weir_lru_choose(miss);
	case WEIR_POLICY_FIFO: return weir_fifo_choose(miss);
	case WEIR_POLICY_RANDOM: return weir_random_choose(miss);
	case WEIR_POLICY_DIRECT: return weir_direct_choose(miss);
	case WEIR_POLICY_SIEVE: return weir_sieve_choose(miss);
	case WEIR_POLICY_FREQUENCY: return weir_frequency_choose(policy, miss);
#ifdef WEIR_USER_POLICY
	case WEIR_POLICY_USER: return weir_user_choose(policy, miss);
#endif
	default: return weir_clock_choose(miss);
	}
}

/** weir_policy_chosen() - @choice was claimed: the marks go, and the policy's state goes on; lock still held
 */
WEIR_FN void weir_policy_chosen(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_set *set,
				WEIR_GLOBAL struct weir_set_policy *policy, struct weir_miss miss,
				struct weir_choice choice)
{
	/* relaxed: a hint; the line may be dropped meanwhile, which needs no lock: so the mark is masked, not
	 * subtracted */
	for (u32 way = 0; way < WEIR_WAYS; way++)
		if ((choice.unmark & miss.used) >> way & 1 && way != choice.way)
			(void)weir_and_u64_relaxed_dev(&set->word[way], ~WEIR_LINE_USED);
	weir_store_u32_relaxed_dev(&policy->state, choice.state); /* relaxed: the lock orders it */
	if (lines->policy == WEIR_POLICY_FREQUENCY)
		weir_frequency_chosen(policy, miss);
#ifdef WEIR_USER_POLICY
	if (lines->policy == WEIR_POLICY_USER)
		weir_user_chosen(policy, miss, choice);
#endif
}

#endif
