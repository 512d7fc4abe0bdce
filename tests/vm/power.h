/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power.h: what vm_power writes in the guest, so that vm_replay knows it on the host.
 *
 * In each generation, from 1 on, POWER_WRITES ranges of the first POWER_BLOCKS blocks of 512 bytes are
 * written one after the other; generation 0 is what was there before. A block tells by its contents of which
 * generation it is.
 */
#ifndef WEIR_TESTS_VM_POWER_H
#define WEIR_TESTS_VM_POWER_H

#include "../rig/kernels.h"

enum { POWER_BLOCKS = 512, POWER_WRITES = 8, POWER_MOST = 16, POWER_WORDS = 512 / 8 };

/* Write @index of @generation: its first block, and how many. */
WEIR_FN u64 power_first(u64 seed, u64 generation, u64 index)
{
	return test_word(seed ^ 0x70, generation * POWER_WRITES + index) % (POWER_BLOCKS - POWER_MOST);
}

WEIR_FN u64 power_count(u64 seed, u64 generation, u64 index)
{
	return 1 + test_word(seed ^ 0x71, generation * POWER_WRITES + index) % POWER_MOST;
}

/* Word @word of the storage as @generation writes it. */
WEIR_FN u64 power_word(u64 seed, u64 generation, u64 word)
{
	return test_word(seed + generation, word);
}

#endif
