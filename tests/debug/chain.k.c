/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that wait for each other's locks, and lanes that never do. */
#include "chain.h"
#include "../rig/kernels.h"

WEIR_FN WEIR_GLOBAL struct test_chain_tally *chain_tally(WEIR_GLOBAL struct test_chain_args *args)
{
	return weir_at(args->tally, struct test_chain_tally, 0);
}

WEIR_FN weir_status chain_try(WEIR_GLOBAL struct test_chain_args *args, u64 lock)
{
	return weir_lock_try(weir_at(args->locks, struct weir_lock, lock), args->chain, (u32)lock % 100);
}

WEIR_FN void chain_free(WEIR_GLOBAL struct test_chain_args *args, u64 lock)
{
	weir_lock_free(weir_at(args->locks, struct weir_lock, lock), args->chain);
}

/* Say that this lane is there, and wait for @all to be. */
WEIR_FN void chain_meet(WEIR_GLOBAL struct test_chain_args *args, u64 all)
{
	weir_add_u64_acq_rel_dev(&chain_tally(args)->ready, 1);
	for (u32 generation = 0; weir_load_u64_acquire_dev(&chain_tally(args)->ready) < all; generation++) {
		weir_relax(generation);
		weir_reconverge();
	}
}

/* Want a lock until it is there, there is no hope, or the tries are spent. */
WEIR_FN weir_status chain_want(WEIR_GLOBAL struct test_chain_args *args, u64 lock, u64 tries)
{
	weir_status status = WEIR_E_LOCKED;

	for (u64 i = 0; i < tries && status == WEIR_E_LOCKED; i++) {
		status = chain_try(args, lock);
		weir_relax((u32)i);
		weir_reconverge();
	}
	weir_add_u64_relaxed_dev(status == WEIR_OK           ? &chain_tally(args)->took
				 : status == WEIR_E_DEADLOCK ? &chain_tally(args)->deadlocks
							     : &chain_tally(args)->gave_up,
				 1);
	return status;
}

/* Each of count lanes takes one lock, then all want their neighbour's. */
WEIR_KERNEL(test_chain_ring, struct test_chain_args)
{
	u64 location = weir_thread() / args->stride;
	u64 next = location < args->count ? (location + 1) % args->count : 0;

	if (weir_thread() % args->stride != 0 || location >= args->count + args->guests)
		return;
	if (location < args->count && chain_try(args, location) != WEIR_OK)
		return;
	chain_meet(args, args->count + args->guests);
	if (chain_want(args, next, args->tries) == WEIR_OK)
		chain_free(args, next);
	if (location < args->count)
		chain_free(args, location);
}

/* Both locks are held: count under each, and free them. */
WEIR_FN void chain_work(WEIR_GLOBAL struct test_chain_args *args, u64 first, u64 second)
{
	*weir_at(args->counts, u64, first) += 1;
	*weir_at(args->counts, u64, second) += 1;
	chain_free(args, second);
	chain_free(args, first);
}

/* Two locks at a time, in one order for all lanes, or backing off: no cycle lasts. */
WEIR_KERNEL(test_chain_order, struct test_chain_args)
{
	u64 round = 0, held = 0, pause = 0, mixed = weir_thread() + 1;
	u64 lanes = weir_active();

	while (weir_ballot(lanes, round < args->rounds)) {
		u64 some = mixed % args->count;
		u64 other = (some + 1 + (mixed >> 20) % (args->count - 1)) % args->count;
		u64 first = args->mode == TEST_CHAIN_BACK_OFF || some < other ? some : other;
		u64 second = first == some ? other : some;
		weir_status status = WEIR_E_TIMEOUT; /* not tried */

		if (pause > 0)
			pause--;
		else if (round < args->rounds)
			status = chain_try(args, held ? second : first);
		if (status == WEIR_E_DEADLOCK)
			weir_add_u64_relaxed_dev(&chain_tally(args)->deadlocks, 1);
		if (status == WEIR_OK && !held) {
			held = 1;
			pause = mixed >> 63;
		} else if (status == WEIR_OK) {
			chain_work(args, first, second);
			held = 0;
			round++;
			mixed = test_mix(mixed);
		} else if (held && status == WEIR_E_LOCKED && args->mode == TEST_CHAIN_BACK_OFF) {
			chain_free(args, first);
			weir_add_u64_relaxed_dev(&chain_tally(args)->gave_up, 1);
			held = 0;
			mixed = test_mix(mixed);
			pause = mixed >> 56;
		}
		weir_relax(0);
		weir_reconverge();
	}
}

/*
 * Two lanes, each with a lock. The second gives up the first one's lock, keeping its
 * own; only then does the first want that.
 */
WEIR_KERNEL(test_chain_hold, struct test_chain_args)
{
	u64 location = weir_thread() / args->stride;

	if (weir_thread() % args->stride != 0 || location >= 2 || chain_try(args, location) != WEIR_OK)
		return;
	chain_meet(args, 2);
	if (location == 1) {
		chain_want(args, 0, args->tries);
		if (args->mode == TEST_CHAIN_QUIT)
			weir_lock_quit(args->chain);
		chain_meet(args, 3);
		chain_meet(args, 5);
	} else {
		for (u32 generation = 0; weir_load_u64_acquire_dev(&chain_tally(args)->ready) < 3;
		     generation++) {
			weir_relax(generation);
			weir_reconverge();
		}
		chain_want(args, 1, args->tries);
		chain_meet(args, 5);
	}
	chain_free(args, location);
}

/* One lane keeps lock 0 while the next one tries; then it ends, and still has it if count is 0. */
WEIR_KERNEL(test_chain_keep, struct test_chain_args)
{
	u64 location = weir_thread() / args->stride;

	if (weir_thread() % args->stride != 0 || location >= 2)
		return;
	if (location == 0 && chain_try(args, 0) != WEIR_OK)
		return;
	chain_meet(args, 2);
	if (location == 1)
		chain_want(args, 0, args->tries);
	chain_meet(args, 4);
	if (location == 0 && args->count)
		chain_free(args, 0);
}
