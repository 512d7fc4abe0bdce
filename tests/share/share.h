/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h: arguments of the kernels in share.k.c. Word w of the storage is test_word(1, w).
 */
#ifndef WEIR_TESTS_SHARE_H
#define WEIR_TESTS_SHARE_H

#include "../rig/kernels.h"

/**
 * struct test_share_args - lanes hold lines together
 * @writer: the array, of 8-byte elements
 * @lines: lane t takes the lines t, t + 1, ... modulo this
 * @rounds: how many of them
 * @held: at once
 * @line_bytes: of a line
 * @change: write word t of the line, modulo its words, to test_word(2, word)
 * @keep: release nothing
 * @buffers: @held lines each
 * @events: @held each
 * @copies: counts holds that were copies
 */
struct test_share_args {
	struct weir_writer writer;
	u64 lines;
	u32 rounds;
	u32 held;
	u64 line_bytes;
	u32 change;
	u32 keep;
	weir_addr buffers;
	weir_addr events;
	weir_addr copies;
	weir_addr verdict;
};

/* What a step does, and what its value is compared with, or stored. */
enum test_step_kind {
	TEST_STEP_STORE,   /* value to word @at of buffer @buffer */
	TEST_STEP_LOAD,    /* that word */
	TEST_STEP_GET,     /* word @at of the line, as an element of the array */
	TEST_STEP_PUT,     /* value to that element */
	TEST_STEP_ADD,     /* 1 to that element; what it was */
	TEST_STEP_COPY,    /* the line to buffer @buffer: WEIR_PATH_... of its event, or the status */
	TEST_STEP_WRITE,   /* buffer @buffer to the line: the status */
	TEST_STEP_ACQUIRE, /* hold @buffer: WEIR_SHARED_... */
	TEST_STEP_WAIT,    /* for hold @buffer: the status */
	TEST_STEP_MODIFY,  /* hold @buffer: the status */
	TEST_STEP_RELEASE, /* hold @buffer: the status */
	TEST_STEP_IN_USE,  /* of buffer @buffer */
	TEST_STEP_SEND,    /* value to word @at of what hold @buffer points to */
	TEST_STEP_SEE,     /* that word */
	TEST_STEP_POLL,    /* for hold @buffer, by weir_share_test(): the status */
	TEST_STEP_AHEAD,   /* prefetch @at lines from that line on: commands */
};

enum { TEST_HOLDS = 4, TEST_STEP_BLOCK = 256 /* times the block, as part of a kind */ };

/** struct test_step - one thing that a block's first lane does, with line @line and buffer @buffer; @kind:
 * also which block's */
struct test_step {
	u32 kind;
	u32 buffer;
	u64 line;
	u64 at;
	u64 value;
};

/**
 * struct test_steps_args - one thing after the other; @verdict: where: the first step that went wrong
 * @writer: the array, of 8-byte elements
 * @steps: struct test_step[count]
 * @line_bytes: of a line
 * @buffers: TEST_HOLDS lines
 * @events: TEST_HOLDS + 1, of which the last one is never told
 * @iteration: weir_shared_u64, steps that have been done
 * @block_lanes: lanes of a block
 */
struct test_steps_args {
	struct weir_writer writer;
	weir_addr steps;
	u64 count;
	u64 line_bytes;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
	weir_addr iteration;
	u64 block_lanes;
};

/**
 * struct test_mixed_args - lane t puts test_word(2, word) to word 0 of line t, while it holds that line
 * @writer: the array of the even lanes, of 8-byte elements
 * @other: of the odd ones, by way of a cache without a table
 * @line_bytes: of a line
 * @buffers: a line each
 * @events: one each
 */
struct test_mixed_args {
	struct weir_writer writer;
	struct weir_writer other;
	u64 line_bytes;
	weir_addr buffers;
	weir_addr events;
	weir_addr verdict;
};

#endif
