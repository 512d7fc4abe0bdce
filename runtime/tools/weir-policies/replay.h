/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.h: a trace read through a real cache.
 *
 * Owns: what the lines hold, and the kernel's argument. Every word read is compared.
 */
#ifndef WEIR_POLICIES_REPLAY_H
#define WEIR_POLICIES_REPLAY_H

#include <weir/abi.h>

enum { REPLAY_LINE_BYTES = 512, REPLAY_LINE_WORDS = 64 };

/**
 * struct replay_args - a trace
 * @array: 8-byte words, REPLAY_LINE_WORDS per line
 * @lines: u64[count]
 * @count: reads; lane t takes number t, t + lanes, ...
 * @verdict: struct replay_verdict
 */
struct replay_args {
	struct weir_array array;
	weir_addr lines;
	u64 count;
	weir_addr verdict;
};

/** struct replay_verdict - @wrong: words that were not replay_word() */
struct replay_verdict {
	weir_shared_u64 wrong;
};

/** replay_word() - what the first word of line @line holds */
WEIR_FN u64 replay_word(u64 line)
{
	return (line + 1) * (u64)0x9e3779b97f4a7c15u;
}

#endif
