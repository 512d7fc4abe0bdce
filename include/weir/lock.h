/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h: locks for kernels and policies of the user's own.
 *
 * Owns: struct weir_lock. A lock is tried, never waited for here: the loop around
 * the try is the caller's, with a wave-uniform exit and weir_reconverge() in its body
 * (docs/locks.md shows one). Built with WEIR_LOCK_CHAIN, lanes note what they hold
 * and want, and a cycle ends the loop (core/debug/chain.h).
 */
#ifndef WEIR_LOCK_H
#define WEIR_LOCK_H

#include <weir/core/debug/chain.h>

/**
 * weir_lock_try() - take a lock if it is free
 * @lock: the lock
 * @chain: the launch's struct weir_chain, or 0; unused without WEIR_LOCK_CHAIN
 * @name: the user's number for this lock, for reports
 *
 * Any lane by itself; never waits. Acquire: what the last holder wrote is visible.
 *
 * Return: WEIR_OK with the lock; WEIR_E_LOCKED: somebody has it, try again;
 * WEIR_E_DEADLOCK: somebody has it and a cycle was reported, so free what you hold
 * and stop. Only with WEIR_LOCK_CHAIN and a @chain.
 */
WEIR_FN weir_status weir_lock_try(WEIR_GLOBAL struct weir_lock *lock, weir_addr chain, u32 name)
{
	u64 holder = weir_chain_try(chain, WEIR_ADDR(lock));

	/* lock.K0: pairs with lock.K1 of the previous holder */
	if (WEIR_LOCK_CAS(&lock->word, 0, holder) != 0)
		return weir_chain_failed(chain, WEIR_ADDR(lock), name);
	weir_chain_took(chain, WEIR_ADDR(lock), name);
	return WEIR_OK;
}

/**
 * weir_lock_free() - give back a lock this lane holds
 * @lock: the lock
 * @chain: as it was taken with
 *
 * Release: what this lane wrote is visible to the next holder.
 */
WEIR_FN void weir_lock_free(WEIR_GLOBAL struct weir_lock *lock, weir_addr chain)
{
	weir_chain_freed(chain, WEIR_ADDR(lock));
	/* lock.K1: pairs with lock.K0 of the next holder */
	weir_store_u64_release_dev(&lock->word, 0);
}

/**
 * weir_lock_quit() - this lane no longer wants the lock that it failed to take
 * @chain: as it was tried with
 *
 * For a lane that gives up and keeps what it holds; taking, freeing or trying
 * another lock says so by itself.
 */
WEIR_FN void weir_lock_quit(weir_addr chain)
{
	weir_chain_quit(chain);
}

#endif
