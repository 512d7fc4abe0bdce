/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/share.h: the Share Table: which lines are in users' buffers just now (AGILE, section 3.4.1).
 *
 * Owns: the words of its entries. A line is in the cache or in the table, never in both, so
 * there is one copy that counts, and a hit in the cache need not look here. What makes a line
 * enter or leave either of them is done with the lock of the line's cache set held, in one
 * iteration; who joins and leaves an entry changes its word alone.
 *
 * An entry's word counts who shares the buffer. The five states follow from it:
 *
 *   Invalid    no entry
 *   Exclusive  one holder, as on storage        Shared  several, as on storage
 *   Modified   one holder, changed              Owned   several, changed
 *
 * docs/share.md has the table of transitions, which a test carries out.
 */
#ifndef WEIR_CORE_SHARE_H
#define WEIR_CORE_SHARE_H

#include <weir/core/cache/line.h>

/** enum weir_share_state - MOESI over pointers (Sweazey and Smith, 1986, as AGILE reads it) */
enum weir_share_state {
	WEIR_SHARE_INVALID,
	WEIR_SHARE_EXCLUSIVE,
	WEIR_SHARE_SHARED,
	WEIR_SHARE_MODIFIED,
	WEIR_SHARE_OWNED,
};

/** weir_share_refs() - holders of an entry whose word is @word */
WEIR_FN u32 weir_share_refs(u64 word)
{
	return (u32)(word & WEIR_SHARE_REFS) / (u32)WEIR_SHARE_REF;
}

/** weir_share_state() - enum weir_share_state of an entry whose word is @word, filled or not */
WEIR_FN u32 weir_share_state(u64 word)
{
	u32 refs = weir_share_refs(word), dirty = (word & WEIR_SHARE_DIRTY) != 0;

	if (refs == 0)
		return WEIR_SHARE_INVALID;
	return (refs == 1 ? (u32)WEIR_SHARE_EXCLUSIVE : (u32)WEIR_SHARE_SHARED) + 2 * dirty;
}

/** struct weir_share_found - an entry: its word as seen, and its place; word 0: none */
struct weir_share_found {
	u64 word;
	u64 position;
};

WEIR_FN WEIR_GLOBAL struct weir_set *weir_share_bucket(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	return weir_at(share->words, struct weir_set, position / WEIR_WAYS);
}

WEIR_FN WEIR_GLOBAL weir_shared_u64 *weir_share_word(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	return &weir_share_bucket(share, position)->word[position % WEIR_WAYS];
}

WEIR_FN WEIR_GLOBAL struct weir_share_slot *weir_share_slot(WEIR_GLOBAL struct weir_share *share,
							    u64 position)
{
	return weir_at(share->slots, struct weir_share_slot, position);
}

/* Place of the first way of @key's bucket: keys that follow each other lie apart. */
WEIR_FN u64 weir_share_position(WEIR_GLOBAL struct weir_share *share, u64 key)
{
	return weir_mulhi(key * (u64)0x9e3779b97f4a7c15u, share->buckets) * WEIR_WAYS;
}

/**
 * weir_share_find() - look for the entry of @key
 *
 * What its word guards may be loaded afterwards, by way of the place. Nothing is found where there is no
 * table (@share is at 0): lanes whose array has none go along with others.
 */
WEIR_FN struct weir_share_found weir_share_find(WEIR_GLOBAL struct weir_share *share, u64 key)
{
	struct weir_share_found found;
	struct weir_found seen;
	u64 position;

	found.word = 0;
	found.position = 0;
	if (WEIR_ADDR(share) == 0)
		return found;
	position = weir_share_position(share, key);
	seen = weir_set_find(weir_share_bucket(share, position),
			     key); /* share.T1: pairs with share.T0: the slot before the key */
	found.word = seen.word;
	found.position = position + seen.way % WEIR_WAYS;
	return found;
}

/** weir_share_holds() - true if @key's line is in a buffer; with the lock of its set held that stays so */
WEIR_FN u32 weir_share_holds(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	return lines->share != 0 &&
	       weir_share_find(weir_at(lines->share, struct weir_share, 0), key).word != 0;
}

/* The buffer of an entry, if one was found. */
WEIR_FN weir_addr weir_share_buffer(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found)
{
	/* relaxed: share.T1 came before */
	return found.word ? weir_load_u64_relaxed_dev(&weir_share_slot(share, found.position)->buffer) : 0;
}

/* Two looks at a word saw the same filled entry. */
WEIR_FN u32 weir_share_same(u64 a, u64 b)
{
	return ((a ^ b) & ~(u64)(WEIR_SHARE_REFS | WEIR_SHARE_DIRTY)) == 0;
}

/**
 * weir_share_reserve() - take an empty place of @key's bucket, which nobody else finds yet
 * @share: the table
 * @key: line, whose cache set's lock this lane holds
 * @buffer: where the line will be
 *
 * Return: the place, with one reference, being filled; ~0: the bucket is full.
 */
WEIR_FN u64 weir_share_reserve(WEIR_GLOBAL struct weir_share *share, u64 key, weir_addr buffer)
{
	u64 position = weir_share_position(share, key);

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		WEIR_GLOBAL weir_shared_u64 *word = weir_share_word(share, position + way);
		u64 old = weir_load_u64_relaxed_dev(word); /* relaxed: the exchange decides */
		u64 next =
			((old + WEIR_SHARE_VERSION) & WEIR_SHARE_VERSIONS) | WEIR_SHARE_REF | WEIR_LINE_BUSY;

		/* share.T2: pairs with share.T3: the last holder's look at the slot before ours is there */
		if ((old & ~(u64)WEIR_SHARE_VERSIONS) == 0 &&
		    weir_cas_u64_acquire_dev(word, old, next) == old) {
			WEIR_GLOBAL struct weir_share_slot *slot = weir_share_slot(share, position + way);

			/* share.T4: pairs with share.T5: the version, which is new, before what the slot and
			 * the buffer get now: else that is taken for the last entry's */
			weir_fence_to_lanes();
			/* relaxed: share.T0 publishes it */
			weir_store_u64_relaxed_dev(&slot->buffer, buffer);
			weir_store_u32_relaxed_dev(&slot->status, WEIR_OK);
			weir_store_u32_relaxed_dev(&slot->retry, 0);
			return position + way;
		}
	}
	return ~(u64)0;
}

/**
 * weir_share_publish() - let a reserved place be found
 * @share: the table
 * @position: from weir_share_reserve()
 * @key: whose it is
 * @state: bits to add: 0 while its command is under way; WEIR_LINE_BIT_READY once it is filled,
 *         by this lane or lanes it met in weir_wave_sync(); with WEIR_SHARE_DIRTY if storage has not got it
 */
WEIR_FN void weir_share_publish(WEIR_GLOBAL struct weir_share *share, u64 position, u64 key, u64 state)
{
	/* share.T0: pairs with share.T1; an addition, since the command may have completed already and set
	 * its bit */
	(void)weir_add_u64_acq_rel_dev(weir_share_word(share, position),
				       (key << WEIR_LINE_KEY_SHIFT) + state);
}

/** weir_share_forget() - give a reserved place back that was never published */
WEIR_FN void weir_share_forget(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_share_word(share, position);

	/* relaxed: nobody else knows it; share.T3 */
	weir_store_u64_release_dev(word, weir_load_u64_relaxed_dev(word) & WEIR_SHARE_VERSIONS);
}

/**
 * weir_share_try_join() - one more holder for the entry that was found
 *
 * Return: 1 if this lane holds a reference now; 0: look again. Never past WEIR_SHARE_MOST of them.
 */
WEIR_FN u32 weir_share_try_join(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found)
{
	if (weir_share_refs(found.word) == WEIR_SHARE_MOST)
		return 0;
	/* share.T1: pairs with share.T0, and with share.T3 of whoever changed the buffer and left */
	return weir_cas_u64_acquire_dev(weir_share_word(share, found.position), found.word,
					found.word + WEIR_SHARE_REF) == found.word;
}

/* What weir_share_try_leave() did. */
enum {
	WEIR_LEAVE_RETRY,  /* another lane changed the word: look again */
	WEIR_LEAVE_FILLED, /* the buffer is being filled: look again after that */
	WEIR_LEAVE_LEFT,   /* others hold it still */
	WEIR_LEAVE_LAST,   /* nobody does; the entry is gone, and the buffer its owner's */
	WEIR_LEAVE_CHANGED /* this lane is the last holder, of a changed buffer: it must go to the cache first
			    */
};

/**
 * weir_share_try_leave() - give up a reference, unless that would lose data
 *
 * Never waits: one look, one exchange.
 */
WEIR_FN u32 weir_share_try_leave(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_share_word(share, position);
	u64 seen = weir_load_u64_relaxed_dev(word), next; /* relaxed: the exchange decides */
	u32 last = weir_share_refs(seen) == 1;

	if (last && weir_line_state(seen) == WEIR_LINE_BUSY) /* it must be filled first */
		return WEIR_LEAVE_FILLED;
	if (last && (seen & WEIR_SHARE_DIRTY) && weir_line_readable(seen))
		return WEIR_LEAVE_CHANGED;
	next = last ? seen & WEIR_SHARE_VERSIONS : seen - WEIR_SHARE_REF;
	/* share.T3: pairs with share.T1 and share.T2: what this lane did to the buffer, and read of it,
	 * before it lets go */
	if (weir_cas_u64_acq_rel_dev(word, seen, next) != seen)
		return WEIR_LEAVE_RETRY;
	return last ? WEIR_LEAVE_LAST : WEIR_LEAVE_LEFT;
}

/**
 * weir_share_abandon() - give up a reference that could not be given up otherwise, and that nobody would
 * later
 *
 * If it was the last one, the entry stays, changed and without a holder: whoever joins it next, and leaves,
 * propagates it.
 */
WEIR_FN void weir_share_abandon(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	/* share.T3: as by weir_share_try_leave() */
	(void)weir_add_u64_acq_rel_dev(weir_share_word(share, position), (u64)0 - WEIR_SHARE_REF);
}

/** weir_share_changed() - a holder is about to change the buffer. Return: the word before. */
WEIR_FN u64 weir_share_changed(WEIR_GLOBAL struct weir_share *share, u64 position)
{
	/* relaxed: the data goes with share.T3 of this lane's leaving */
	return weir_or_u64_relaxed_dev(weir_share_word(share, position), WEIR_SHARE_DIRTY);
}

#endif
