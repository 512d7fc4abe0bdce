/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/debug/chain.h: who waits for whom, while debugging locks (AGILE, section 3.5).
 *
 * Owns: the records of struct weir_chain. A lock's word names its holder, a lane's
 * record the lock it waits for; following the two in turn from a lane that cannot
 * get on, back to that lane, is a cycle. Without WEIR_LOCK_CHAIN every hook below is
 * a constant or nothing, and the table is not looked at.
 *
 * A lock that is only tried (the completion ring's in core/queue/cq.h, a set's in
 * core/cache/reserve.h) needs no record: whoever fails goes on without it, so no chain leads
 * through a wait for it, and weir frees both before any code of the user's runs. A
 * policy compiled in does run under the set's lock: if it also wants a lock of the
 * user's, whose holder may be missing in that set, the two can wait for each other
 * unseen. Therefore a policy may try a lock, and never loop on one.
 */
#ifndef WEIR_CORE_CHAIN_H
#define WEIR_CORE_CHAIN_H

#include <weir/abi.h>

#ifndef WEIR_LOCK_CHAIN

/* Off: what weir_lock_try() and its sisters do is a compare-and-swap and a store. */
#define WEIR_LOCK_CAS                        weir_cas_u64_acquire_dev
#define weir_chain_try(chain, lock)          ((void)(chain), (u64)1)
#define weir_chain_took(chain, lock, name)   ((void)(name))
#define weir_chain_failed(chain, lock, name) ((weir_status)WEIR_E_LOCKED)
#define weir_chain_freed(chain, lock)        ((void)(chain))
#define weir_chain_quit(chain)               ((void)(chain))

#else

/* Release too: whoever sees the holder in the word sees the wave in its record. */
#define WEIR_LOCK_CAS weir_cas_u64_acq_rel_dev

/** struct weir_chain_walk - lanes in a cycle, 0 for none; digest of the lanes and their turns */
struct weir_chain_walk {
	u64 length;
	u64 digest;
};

WEIR_FN WEIR_GLOBAL struct weir_chain_lane *weir_chain_at(WEIR_GLOBAL struct weir_chain *chain, u64 lane)
{
	return weir_at(chain->records, struct weir_chain_lane, lane);
}

/* Does this lane have a record in the table at @address? */
WEIR_FN u32 weir_chain_records(weir_addr address)
{
	WEIR_GLOBAL struct weir_chain *chain = weir_at(address, struct weir_chain, 0);

	if (!address)
		return 0;
	if (weir_thread() < chain->lanes)
		return 1;
	weir_store_u64_relaxed_dev(&chain->past, weir_thread() + 1); /* relaxed: any such lane will do */
	return 0;
}

/* The caller's record, where weir_chain_records() holds. */
WEIR_FN WEIR_GLOBAL struct weir_chain_lane *weir_chain_own(weir_addr address)
{
	return weir_chain_at(weir_at(address, struct weir_chain, 0), weir_thread());
}

/* The lane in a lock's word; >= lanes if it is free or its holder has no record. */
WEIR_FN u64 weir_chain_holder(WEIR_GLOBAL struct weir_chain *chain, u64 word)
{
	return (word >> 32) == 0 ? chain->lanes : (word & 0xffffffffu) - 1;
}

/* A lane's next take: tells its holds apart; never 0, which stands for a lane without a record. */
WEIR_FN u32 weir_chain_next(u32 takes)
{
	return takes + 1 ? takes + 1 : 1;
}

/* The lane's wait, if it was in one, is over: it takes, frees or tries something else. */
WEIR_FN void weir_chain_end(WEIR_GLOBAL struct weir_chain_lane *own)
{
	own->trying = 0;
	own->tries = 0;
	own->streak = 0;
	if (weir_load_u64_relaxed_dev(&own->want) == 0) /* relaxed: its own */
		return;
	weir_store_u64_relaxed_dev(&own->want, 0);
	/* chain.W1: pairs with chain.W2: whoever sees this turn sees no want of an earlier one */
	weir_store_u64_release_dev(&own->generation, weir_load_u64_relaxed_dev(&own->generation) + 1);
}

/* One lane of the report; @holds is what the lane before it wants. */
WEIR_FN void weir_chain_write(WEIR_GLOBAL struct weir_chain *chain, u64 position, u64 lane, u32 holds,
			      u32 wants)
{
	WEIR_GLOBAL struct weir_chain_link *link = &chain->link[position];

	if (position >= WEIR_CHAIN_LINKS)
		return;
	link->lane = lane;
	/* relaxed: ordered by the acquire that led here, chain.W3 or the lock's word */
	link->wave = weir_load_u64_relaxed_dev(&weir_chain_at(chain, lane)->wave);
	link->holds = holds;
	link->wants = wants;
}

/*
 * Follow lanes and locks from @self until they end or come back; @notify: into the
 * report. Lanes that move meanwhile can make a cycle appear that never was, so only
 * two walks with the same digest count. A turn has one wait at most, in which the lane
 * neither takes nor frees anything, and W1..W3 let nobody see the want of another turn:
 * each lane of both walks was in the same wait from its first visit to its second. All
 * these times include the moment between the walks, and then every lane held what the
 * second walk found it holding. A cycle that passes @self by is left to its own lanes.
 */
WEIR_FN struct weir_chain_walk weir_chain_follow(WEIR_GLOBAL struct weir_chain *chain, u64 self, u32 notify)
{
	struct weir_chain_walk walk;
	u64 at = self;
	u32 name = 0;

	walk.length = 0;
	walk.digest = 0;
	do {
		WEIR_GLOBAL struct weir_chain_lane *lane = weir_chain_at(chain, at);
		u32 holds = name;
		u64 generation, want, word;

		generation = weir_load_u64_acquire_dev(&lane->generation); /* chain.W2: pairs with chain.W1 */
		/* chain.W3: pairs with chain.W0, and comes before the rest */
		want = weir_load_u64_acquire_dev(&lane->want);
		if (!want || weir_load_u64_relaxed_dev(&lane->generation) != generation)
			break;
		name = weir_load_u32_relaxed_dev(&lane->want_name);
		/* chain.W4: pairs with lock.K0: the next lane's record is no older than its lock */
		word = weir_load_u64_acquire_dev(weir_at(want, weir_shared_u64, 0));
		walk.digest = (walk.digest ^ at ^ (generation << 32)) * (u64)0x9e3779b97f4a7c15u;
		walk.digest ^= walk.digest >> 29;
		if (notify)
			weir_chain_write(chain, walk.length, at, holds, name);
		walk.length++;
		at = weir_chain_holder(chain, word);
	} while (at < chain->lanes && at != self && walk.length <= chain->lanes);
	if (at != self)
		walk.length = 0;
	if (notify)
		chain->link[0].holds = name;
	return walk;
}

/* Report the cycle through @self if there is one and nobody reported before. */
WEIR_FN void weir_chain_cycle(WEIR_GLOBAL struct weir_chain *chain, u64 self)
{
	struct weir_chain_walk first = weir_chain_follow(chain, self, 0);
	struct weir_chain_walk second;

	/* chain.D0: pairs with chain.D1 of a lane that took its report back */
	if (!first.length || weir_cas_u32_acquire_dev(&chain->claimed, 0, 1) != 0)
		return;
	second = weir_chain_follow(chain, self, 1);
	chain->kind = WEIR_CHAIN_CYCLE;
	chain->length = second.length;
	/* chain.D1: pairs with chain.D0; the host reads after the launch */
	weir_store_u32_release_dev(&chain->claimed,
				   second.length == first.length && second.digest == first.digest ? 2 : 0);
}

/* Report a lane of the caller's wave that kept the lock through @retry_limit tries. */
WEIR_FN void weir_chain_mate(WEIR_GLOBAL struct weir_chain *chain, weir_addr lock, u32 name)
{
	WEIR_GLOBAL struct weir_chain_lane *own = weir_chain_at(chain, weir_thread());
	u64 word = weir_load_u64_acquire_dev(weir_at(lock, weir_shared_u64, 0)); /* chain.W4 */
	u64 holder = weir_chain_holder(chain, word);

	if (holder >= chain->lanes || holder == weir_thread() ||
	    weir_load_u64_relaxed_dev(&weir_chain_at(chain, holder)->wave) != weir_wave())
		word = 0;
	own->streak = word && word == own->seen ? own->streak + 1 : 1;
	own->seen = word;
	if (!word || own->streak < chain->retry_limit || weir_cas_u32_acquire_dev(&chain->claimed, 0, 1) != 0)
		return;
	weir_chain_write(chain, 0, weir_thread(), 0, name);
	weir_chain_write(chain, 1, holder, name, 0);
	chain->kind = WEIR_CHAIN_WAVE;
	chain->length = 2;
	weir_store_u32_release_dev(&chain->claimed, 2); /* chain.D1 */
}

/** weir_chain_try() - before a try of @lock; the word that says this lane holds it */
WEIR_FN u64 weir_chain_try(weir_addr chain, weir_addr lock)
{
	WEIR_GLOBAL struct weir_chain_lane *own;

	if (!weir_chain_records(chain))
		return 1;
	own = weir_chain_own(chain);
	if (own->trying != lock)
		weir_chain_end(own);
	weir_store_u64_relaxed_dev(&own->wave,
				   weir_wave()); /* relaxed: chain.W0 or the lock's word publishes it */
	return ((u64)weir_chain_next(own->takes) << 32) | (weir_thread() + 1);
}

/** weir_chain_took() - after a try that took @lock */
WEIR_FN void weir_chain_took(weir_addr chain, weir_addr lock, u32 name)
{
	WEIR_GLOBAL struct weir_chain_lane *own;

	if (!weir_chain_records(chain))
		return;
	own = weir_chain_own(chain);
	weir_chain_end(own);
	own->takes = weir_chain_next(own->takes);
	if (own->held < WEIR_CHAIN_HOLDS) {
		own->hold[own->held] = lock;
		own->holder_name[own->held] = name;
		own->held++;
	}
}

/**
 * weir_chain_failed() - after a try that did not take @lock
 *
 * From the table's timeout on the lane counts as waiting, and looks for a cycle each
 * time: two lanes that close one together may miss each other once, not for ever.
 *
 * Return: what weir_lock_try() returns.
 */
WEIR_FN weir_status weir_chain_failed(weir_addr address, weir_addr lock, u32 name)
{
	WEIR_GLOBAL struct weir_chain *chain = weir_at(address, struct weir_chain, 0);
	WEIR_GLOBAL struct weir_chain_lane *own;

	if (!weir_chain_records(address))
		return WEIR_E_LOCKED;
	own = weir_chain_own(address);
	own->trying = lock;
	if (own->tries < chain->retry_limit && ++own->tries == chain->retry_limit) {
		weir_store_u32_relaxed_dev(&own->want_name, name);
		/* chain.W0: pairs with chain.W3: name and wave, and all this lane took and freed, before the
		 * wait */
		weir_store_u64_release_dev(&own->want, lock);
	}
	if (own->tries == chain->retry_limit)
		weir_chain_cycle(chain, weir_thread());
	if (chain->own_wave)
		weir_chain_mate(chain, lock, name);
	/* relaxed: only the number counts here */
	return weir_load_u32_relaxed_dev(&chain->claimed) == 2 ? WEIR_E_DEADLOCK : WEIR_E_LOCKED;
}

/** weir_chain_freed() - before @lock is freed */
WEIR_FN void weir_chain_freed(weir_addr chain, weir_addr lock)
{
	WEIR_GLOBAL struct weir_chain_lane *own;

	if (!weir_chain_records(chain))
		return;
	own = weir_chain_own(chain);
	weir_chain_end(own);
	for (u32 i = 0; i < own->held; i++)
		if (own->hold[i] == lock) {
			own->held--;
			own->hold[i] = own->hold[own->held];
			own->holder_name[i] = own->holder_name[own->held];
			return;
		}
}

/** weir_chain_quit() - the lane wants nothing any more */
WEIR_FN void weir_chain_quit(weir_addr chain)
{
	if (weir_chain_records(chain))
		weir_chain_end(weir_chain_own(chain));
}

#endif
#endif
