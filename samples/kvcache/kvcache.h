/* SPDX-License-Identifier: BSD-3-Clause */
/* kvcache.h: what is in the file, and the kernels that look whether it arrived, or make it. */
#ifndef KVCACHE_H
#define KVCACHE_H

#include <weir/abi.h>

#define KVCACHE_POISON 0xdeadd00ddeadd00du

/**
 * struct kvcache_verdict - what lanes found
 * @bad: words that are not what the file has
 */
struct kvcache_verdict {
	weir_shared_u64 bad;
};

/**
 * struct kvcache_check_args - blocks side by side, each of which is block blocks[i] of the file
 * @pool: @count blocks; poisoned on the way, so that what is not loaded again is seen
 * @blocks: u64[@count]
 * @count: blocks
 * @block_words: 8-byte words of a block
 * @verdict: struct kvcache_verdict
 */
struct kvcache_check_args {
	weir_addr pool;
	weir_addr blocks;
	u64 count;
	u64 block_words;
	weir_addr verdict;
};

/* Word @index of the file: a spread that no shift or neighbour has, too. */
WEIR_FN u64 kvcache_word(u64 index)
{
	u64 value = (index + 0x51ed270b27b4c5ffu) * 0x9e3779b97f4a7c15u;

	value ^= value >> 31;
	value *= 0xbf58476d1ce4e5b9u;
	return value ^ (value >> 29);
}

#endif
