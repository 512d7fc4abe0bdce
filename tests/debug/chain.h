/* SPDX-License-Identifier: BSD-3-Clause */
/* chain.h: arguments of the kernels that lock, in every wrong way and some right ones. */
#ifndef WEIR_TESTS_CHAIN_H
#define WEIR_TESTS_CHAIN_H

#include <weir/lock.h>

/**
 * struct test_chain_tally - what became of the lanes
 * @ready: lanes that came as far as they all must
 * @deadlocks: waits that ended with WEIR_E_DEADLOCK
 * @took: waits that ended with the lock
 * @gave_up: waits that ended otherwise
 */
struct test_chain_tally {
	weir_shared_u64 ready;
	weir_shared_u64 deadlocks;
	weir_shared_u64 took;
	weir_shared_u64 gave_up;
};

/**
 * struct test_chain_args - what all of the kernels take
 * @chain: struct weir_chain, or 0
 * @locks: struct weir_lock[]; lock i is named i % 100
 * @tally: struct test_chain_tally
 * @counts: test_chain_order: u64 per lock, counted under it and in no atomic way
 * @count: test_chain_ring: lanes in the ring; test_chain_order: locks
 * @stride: every how many lanes one takes part
 * @guests: test_chain_ring: further lanes that hold nothing and want lock 0
 * @rounds: test_chain_order: how often each lane takes two locks
 * @mode: what a lane does that fails; TEST_CHAIN_...
 * @tries: most tries of a wait
 */
struct test_chain_args {
	weir_addr chain;
	weir_addr locks;
	weir_addr tally;
	weir_addr counts;
	u64 count;
	u64 stride;
	u64 guests;
	u64 rounds;
	u64 mode;
	u64 tries;
};

enum {
	TEST_CHAIN_ORDERED = 0,  /* test_chain_order: the lower lock first */
	TEST_CHAIN_BACK_OFF = 1, /* in any order, and free the first if the second is not free */
	TEST_CHAIN_QUIT = 2,     /* test_chain_hold: say so when it gives up */
};

#endif
