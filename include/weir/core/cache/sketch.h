/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/sketch.h: how often lines were asked for lately, of a set, in nine words.
 *
 * Owns: weir_set_policy.own where the policy is WEIR_POLICY_FREQUENCY. A count-min sketch
 * (Cormode and Muthukrishnan, 2005) of two rows of 32 counters of four bits, each add
 * raising the lower one only, halved as in TinyLFU (Einziger, Friedman and Manes, 2017).
 * There is one per set, because only keys of one set compete: so the set's lock guards it
 * and it lies beside that lock.
 */
#ifndef WEIR_CORE_SKETCH_H
#define WEIR_CORE_SKETCH_H

#include <weir/abi.h>

enum {
	WEIR_SKETCH_ROW = 4,     /* words of a row */
	WEIR_SKETCH_MOST = 15,   /* what a counter can hold */
	WEIR_SKETCH_SAMPLE = 64, /* adds until all counters are halved */
	WEIR_SKETCH_ADDS = 8,    /* word that counts them */
};

/** weir_sketch_index() - which of the 32 counters of row @row is @key's */
WEIR_FN u32 weir_sketch_index(u64 key, u32 row)
{
	return (u32)((key * (u64)0x9e3779b97f4a7c15u) >> (row ? 54 : 59)) & 31;
}

/* Relaxed, here and below: the set's lock orders them. */
WEIR_FN u32 weir_sketch_count(WEIR_GLOBAL struct weir_set_policy *policy, u32 row, u32 slot)
{
	return (weir_load_u32_relaxed_dev(&policy->own[row * WEIR_SKETCH_ROW + slot / 8]) >> (slot % 8 * 4)) &
	       WEIR_SKETCH_MOST;
}

/** weir_sketch_ask() - about how often @key was added lately, rather too much than too little */
WEIR_FN u32 weir_sketch_ask(WEIR_GLOBAL struct weir_set_policy *policy, u64 key)
{
	u32 first = weir_sketch_count(policy, 0, weir_sketch_index(key, 0));
	u32 second = weir_sketch_count(policy, 1, weir_sketch_index(key, 1));

	return first < second ? first : second;
}

WEIR_FN void weir_sketch_raise(WEIR_GLOBAL struct weir_set_policy *policy, u32 row, u32 slot)
{
	WEIR_GLOBAL weir_shared_u32 *word = &policy->own[row * WEIR_SKETCH_ROW + slot / 8];

	weir_store_u32_relaxed_dev(word, weir_load_u32_relaxed_dev(word) + (1u << (slot % 8 * 4)));
}

WEIR_FN void weir_sketch_halve(WEIR_GLOBAL struct weir_set_policy *policy)
{
	for (u32 i = 0; i < WEIR_SKETCH_ADDS; i++) {
		WEIR_GLOBAL weir_shared_u32 *word = &policy->own[i];

		weir_store_u32_relaxed_dev(word, (weir_load_u32_relaxed_dev(word) >> 1) & 0x77777777u);
	}
}

/** weir_sketch_add() - @key was asked for; halves everything now and then */
WEIR_FN void weir_sketch_add(WEIR_GLOBAL struct weir_set_policy *policy, u64 key)
{
	u32 slots[2], counts[2], adds = weir_load_u32_relaxed_dev(&policy->own[WEIR_SKETCH_ADDS]) + 1;

	for (u32 row = 0; row < 2; row++) {
		slots[row] = weir_sketch_index(key, row);
		counts[row] = weir_sketch_count(policy, row, slots[row]);
	}
	for (u32 row = 0; row < 2; row++)
		if (counts[row] <= counts[1 - row] && counts[row] < WEIR_SKETCH_MOST)
			weir_sketch_raise(policy, row, slots[row]);
	if (adds >= WEIR_SKETCH_SAMPLE) {
		weir_sketch_halve(policy);
		adds /= 2;
	}
	weir_store_u32_relaxed_dev(&policy->own[WEIR_SKETCH_ADDS], adds);
}

#endif
