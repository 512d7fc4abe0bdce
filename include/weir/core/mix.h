/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/mix.h: pseudo-random words by a mixer, on lanes and on the host.
 *
 * Owns: the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014; its constants are Stafford's
 * "Mix13"). Files on storage and orders of epochs depend on its values: it never changes.
 */
#ifndef WEIR_CORE_MIX_H
#define WEIR_CORE_MIX_H

#include <weir/port.h>

/** WEIR_MIX_STEP - what splitmix64 adds to its state for each word: 2^64 by the golden ratio */
#define WEIR_MIX_STEP ((u64)0x9e3779b97f4a7c15u)

/** weir_mix_u64() - a bijection on 64 bits in which each bit of @word moves about half of the bits of the
 * result */
WEIR_FN u64 weir_mix_u64(u64 word)
{
	word = (word ^ word >> 30) * (u64)0xbf58476d1ce4e5b9u;
	word = (word ^ word >> 27) * (u64)0x94d049bb133111ebu;
	return word ^ word >> 31;
}

/** weir_mix_next() - the next word of splitmix64 with the state *@state, which belongs to the caller alone */
WEIR_FN u64 weir_mix_next(u64 *state)
{
	return weir_mix_u64(*state += WEIR_MIX_STEP);
}

#endif
