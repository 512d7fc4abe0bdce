/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/lines.h: the cache. Hits without atomics, misses without held locks.
 *
 * Owns: line words. A hit probes the set's four words (one memory sector), loads
 * the data and loads the word again: the same word means the data is good. A miss
 * takes the set's try-lock, re-probes, claims a victim (BUSY, new key, next
 * version, one pin for its issuer), unlocks and submits with the line as
 * continuation. If no slot comes free for a few turns the claim is taken back, so
 * nothing is held across a full queue for long.
 *
 *   INVALID --claim--> BUSY --completion--> READY --claim--> BUSY (next version)
 *                        |                    ^
 *                        +--error--> FAILED --+-- claim
 *   BUSY --no slot--> INVALID
 *
 * The issuer's pin keeps the line until it has read what it asked for; without it
 * a cache smaller than the number of lanes would evict every line unread.
 */
#ifndef WEIR_CORE_LINES_H
#define WEIR_CORE_LINES_H

#include <weir/core/policy.h>
#include <weir/disk.h>

/*
 * Turns that a claim waits for a queue slot before it is taken back. Slots come free
 * whatever lines are claimed, so waiting is safe; only for ever it must not be.
 */
enum { WEIR_UNSENT_TURNS = 8 };

/* u64 words one read returns at most. */
enum { WEIR_RUN = 8 };

/**
 * struct weir_words - consecutive 8-byte words of a line, by value
 * @word: the words asked for
 * @status: how the read ended
 */
struct weir_words {
	u64 word[WEIR_RUN];
	weir_status status;
};

/** struct weir_found - outcome of a probe: the word seen, and its way (WEIR_WAYS: absent) */
struct weir_found {
	u64 word;
	u32 way;
};

/* key modulo sets: the product is short of the quotient by one at most. */
WEIR_FN u64 weir_lines_index(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	u64 rest = key - weir_mulhi(key, lines->set_magic) * lines->sets;

	return rest >= lines->sets ? rest - lines->sets : rest;
}

WEIR_FN WEIR_GLOBAL struct weir_set *weir_lines_set(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	return weir_at(lines->words, struct weir_set, index);
}

WEIR_FN WEIR_GLOBAL struct weir_set_policy *weir_lines_policy(WEIR_GLOBAL struct weir_lines *lines, u64 index)
{
	return weir_at(lines->policies, struct weir_set_policy, index);
}

WEIR_FN weir_addr weir_line_data(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	return lines->data + ((index * WEIR_WAYS + way) << lines->line_log2);
}

/** weir_line_holds() - @word is a line for @key, in whatever state; INVALID words have key 0, which no line has */
WEIR_FN u32 weir_line_holds(u64 word, u64 key)
{
	return (word ^ (key << WEIR_LINE_KEY_SHIFT)) < ((u64)1 << WEIR_LINE_KEY_SHIFT);
}

WEIR_FN struct weir_found weir_found_in(struct weir_found found, u64 word, u32 way, u64 key)
{
	if (weir_line_holds(word, key)) {
		found.word = word;
		found.way = way;
	}
	return found;
}

/** weir_set_look() - the words of a set: two accesses of one sector */
WEIR_FN struct weir_look weir_set_look(WEIR_GLOBAL struct weir_set *set)
{
	struct weir_look look;

	/* L1: pairs with L0; relaxed, and ordered by weir_look_find(), once for all four */
	look.low = weir_data_load_u128(WEIR_ADDR(&set->word[0]));
	look.high = weir_data_load_u128(WEIR_ADDR(&set->word[2]));
	return look;
}

/* @key among what was seen; what READY guards may be loaded afterwards, by way of the result. */
WEIR_FN struct weir_found weir_look_find(struct weir_look look, u64 key)
{
	struct weir_found found;

	found.word = 0;
	found.way = WEIR_WAYS;
	found = weir_found_in(found, look.low.low, 0, key);
	found = weir_found_in(found, look.low.high, 1, key);
	found = weir_found_in(found, look.high.low, 2, key);
	found = weir_found_in(found, look.high.high, 3, key);
	found.way = weir_after(found.way, found.word);
	return found;
}

/** weir_set_find() - look for @key in @set; what READY guards may be loaded afterwards, by way of the result */
WEIR_FN struct weir_found weir_set_find(WEIR_GLOBAL struct weir_set *set, u64 key)
{
	return weir_look_find(weir_set_look(set), key);
}

/* Two looks at a word saw the same occupant in the same state. */
WEIR_FN u32 weir_line_same(u64 a, u64 b)
{
	return ((a ^ b) & ~(WEIR_LINE_PINS | WEIR_LINE_USED)) == 0;
}

/*
 * L2: the data loads stay before this second look; whoever reuses the line stores
 * its word (claim) before its data (completion), so old data cannot pass.
 */
WEIR_FN u32 weir_line_unchanged(WEIR_GLOBAL struct weir_set *set, struct weir_found found)
{
	weir_order_loads();
	return weir_line_same(weir_load_u64_relaxed_dev(&set->word[found.way]), found.word);
}

/* The same for a few words, all loaded already: a look at them is the order. */
WEIR_FN u32 weir_line_unchanged_by(WEIR_GLOBAL struct weir_set *set, struct weir_found found,
				   struct weir_words words)
{
	u64 mixed = words.word[0];

	for (u32 i = 1; i < WEIR_RUN; i++)
		mixed ^= words.word[i];
	/* L2: in the rare case that another word is looked at, the line counts as changed */
	return weir_line_same(weir_load_u64_relaxed_dev(&set->word[weir_after(found.way, mixed)]), found.word);
}

WEIR_FN struct weir_words weir_line_load(weir_addr data, u32 count)
{
	struct weir_words words;

	for (u32 i = 0; i < WEIR_RUN; i++)
		words.word[i] = i < count ? weir_data_load_u64(data + i * sizeof(u64)) : 0;
	words.status = WEIR_OK;
	return words;
}

/**
 * weir_lines_try_read() - read words of a resident line, or fail at once
 * @lines: the cache
 * @key: line
 * @offset: byte offset in the line, a multiple of 8
 * @count: words, 0 to WEIR_RUN
 *
 * The hit path: no atomics, no pin, any lane by itself.
 *
 * Return: status 0 and the words; any other status means: not resident just now.
 */
WEIR_FN struct weir_words weir_lines_try_read(WEIR_GLOBAL struct weir_lines *lines, u64 key, u32 offset,
					      u32 count)
{
	u64 index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_found found = weir_set_find(set, key);
	struct weir_words words;

	if (weir_line_state(found.word) != WEIR_LINE_READY) {
		words = weir_line_load(0, 0);
		words.status = WEIR_E_TIMEOUT;
		return words;
	}
	words = weir_line_load(weir_line_data(lines, index, found.way) + offset, count);
	if (!weir_line_unchanged_by(set, found, words))
		words.status = WEIR_E_TIMEOUT;
	else
		weir_policy_hit(set, found.way, found.word);
	return words;
}

/** struct weir_four - four elements, or where they are */
struct weir_four {
	u64 value[4];
};

/** struct weir_hits - words of four lines; bit k of @missing: line k is not resident just now */
struct weir_hits {
	struct weir_four four;
	u32 missing;
};

/**
 * weir_lines_try_four() - read a word each of four lines, or fail at once
 * @lines: the cache
 * @key_base: key of the line at byte 0
 * @byte: where, multiples of 8
 *
 * weir_lines_try_read(), with all looks, then all data, then all second looks in flight.
 */
WEIR_FN struct weir_hits weir_lines_try_four(WEIR_GLOBAL struct weir_lines *lines, u64 key_base, struct weir_four byte)
{
	u64 mask = ((u64)1 << lines->line_log2) - 1, index[4];
	struct weir_found found[4];
	struct weir_look look[4];
	struct weir_hits hits;

	for (u32 k = 0; k < 4; k++) {
		index[k] = weir_lines_index(lines, key_base + (byte.value[k] >> lines->line_log2));
		look[k] = weir_set_look(weir_lines_set(lines, index[k]));
	}
	for (u32 k = 0; k < 4; k++) {
		found[k] = weir_look_find(look[k], key_base + (byte.value[k] >> lines->line_log2));
		/* Where there is no line, any address will do. */
		hits.four.value[k] = weir_data_load_u64(
			weir_line_data(lines, index[k], found[k].way % WEIR_WAYS) + (byte.value[k] & mask));
	}
	hits.missing = 0;
	for (u32 k = 0; k < 4; k++) {
		WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index[k]);
		/* L2, as in weir_line_unchanged_by() */
		u64 word = weir_load_u64_relaxed_dev(
			&set->word[weir_after(found[k].way % WEIR_WAYS, hits.four.value[k])]);

		if (weir_line_state(found[k].word) != WEIR_LINE_READY || !weir_line_same(word, found[k].word))
			hits.missing |= 1u << k;
		else
			weir_policy_hit(set, found[k].way, found[k].word);
	}
	return hits;
}

/*
 * With the set's lock held: make a victim BUSY for @key. A pin or a mark set meanwhile
 * makes the exchange fail, and the caller looks again in its next turn.
 */
WEIR_FN u32 weir_set_claim_locked(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_set *set,
				  WEIR_GLOBAL struct weir_set_policy *policy, u64 key)
{
	struct weir_look look = weir_set_look(set);
	struct weir_found found = weir_look_find(look, key);
	struct weir_miss miss = weir_policy_miss(lines, policy, look, key);
	struct weir_choice choice = weir_policy_choose(lines, policy, miss);
	u32 failed = weir_line_state(found.word) == WEIR_LINE_FAILED && weir_line_evictable(found.word);
	u64 old, claimed;

	/* A failed fetch is tried again in its place; any other line is there or about to be. */
	choice.way = failed ? found.way : choice.way;
	choice.unmark = failed ? 0 : choice.unmark;
	choice.state = failed ? miss.state : choice.state;
	if (choice.way == WEIR_WAYS || (found.word != 0 && !failed))
		return WEIR_WAYS;
	old = weir_look_word(look, choice.way);
	claimed = (key << WEIR_LINE_KEY_SHIFT) | ((old + WEIR_LINE_VERSION) & WEIR_LINE_VERSIONS) |
		  WEIR_LINE_PIN | (choice.mark ? WEIR_LINE_USED : 0) | WEIR_LINE_BUSY;
	/*
	 * L3: pairs with L2 of readers: the word turns before any byte of the line does, because the
	 * command that brings them is released later (S1). Acquire: after the reads of whoever let go.
	 */
	if (weir_cas_u64_acquire_dev(&set->word[choice.way], old, claimed) != old)
		return WEIR_WAYS;
	weir_policy_chosen(lines, set, policy, miss, choice);
	weir_add_u64_relaxed_dev(&lines->misses, 1);
	if (weir_line_state(old) == WEIR_LINE_READY)
		weir_add_u64_relaxed_dev(&lines->evictions, 1);
	return choice.way;
}

/**
 * weir_set_try_claim() - claim a line for @key if the set's lock is free
 *
 * Lock, bounded work and unlock in one turn.
 *
 * Return: the way, now BUSY and pinned once by this lane, or WEIR_WAYS.
 */
WEIR_FN u32 weir_set_try_claim(WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	WEIR_GLOBAL struct weir_set_policy *policy = weir_lines_policy(lines, index);
	u32 way = WEIR_WAYS;

	/* P0: pairs with P1 of the previous holder */
	if (weir_cas_u32_acquire_dev(&policy->lock, 0, 1) == 0) {
		way = weir_set_claim_locked(lines, weir_lines_set(lines, index), policy, key);
		weir_store_u32_release_dev(&policy->lock, 0); /* P1 */
	}
	weir_converge();
	return way;
}

/* Take a claim back: no command was submitted, so nobody else may change the word. */
WEIR_FN void weir_line_retract(WEIR_GLOBAL struct weir_lines *lines, u64 index, u32 way)
{
	WEIR_GLOBAL weir_shared_u64 *word = &weir_lines_set(lines, index)->word[way];
	u64 busy = weir_load_u64_relaxed_dev(word);

	weir_store_u64_release_dev(word, (busy & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID);
	weir_add_u64_relaxed_dev(&lines->misses, ~(u64)0);
	weir_add_u64_relaxed_dev(&lines->retracted, 1);
}

WEIR_FN void weir_line_unpin(WEIR_GLOBAL struct weir_set *set, u32 way)
{
	/* release: this lane's reads stay before the line can be claimed again */
	weir_add_u64_acq_rel_dev(&set->word[way], (u64)0 - WEIR_LINE_PIN);
}

/** weir_extent_disk() - member storage that holds line @line of @extent */
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_extent_disk(WEIR_GLOBAL struct weir_extent *extent, u64 line)
{
	u64 member = extent->disk_count == 1 ? 0 : (line >> extent->unit_log2) % extent->disk_count;

	return weir_at(extent->disks, struct weir_disk, member);
}

/** weir_extent_line() - which line of its member storage line @line of @extent is */
WEIR_FN u64 weir_extent_line(WEIR_GLOBAL struct weir_extent *extent, u64 line)
{
	u64 unit = line >> extent->unit_log2;

	if (extent->disk_count == 1)
		return line;
	return ((unit / extent->disk_count) << extent->unit_log2) |
	       (line & (((u64)1 << extent->unit_log2) - 1));
}

/* The command that fills line (@index, @way) with line @line of @extent. */
WEIR_FN struct weir_request weir_line_request(WEIR_GLOBAL struct weir_lines *lines,
					      WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 index,
					      u32 way)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u32 block_log2 = lines->line_log2 - disk->block_log2;
	struct weir_request request;
	u64 left;

	request.opcode = NVME_OPCODE_READ;
	request.flags = 0;
	request.target_kind = WEIR_TARGET_LINE;
	request.lba = weir_extent_line(extent, line) << block_log2;
	left = disk->blocks - request.lba;
	request.blocks = left < ((u64)1 << block_log2) ? (u32)left : 1u << block_log2;
	request.buffer = weir_line_data(lines, index, way % WEIR_WAYS);
	request.target = WEIR_ADDR(&weir_lines_set(lines, index)->word[way % WEIR_WAYS]);
	request.status = WEIR_ADDR(&weir_lines_policy(lines, index)->status[way % WEIR_WAYS]);
	return request;
}

/**
 * struct weir_fetch - one lane's progress in weir_lines_fetch()
 * @words: the result
 * @mine: way this lane claimed and pinned, WEIR_WAYS if none
 * @unsent: turns that the claim has waited for a queue slot, from 1 on; 0: its command is under way
 * @absent: nobody brings the line as far as this lane saw just now
 * @waited: a fetch that was under way while this lane waited may report its error to it
 * @done: ended
 */
struct weir_fetch {
	struct weir_words words;
	u32 mine;
	u32 unsent;
	u32 absent;
	u32 waited;
	u32 done;
};

WEIR_FN struct weir_fetch weir_fetch_fail(struct weir_fetch fetch, weir_status status)
{
	fetch.words.status = status;
	fetch.done = 1;
	return fetch;
}

/* A lane that claimed the line: the pin holds it still, so no second look is needed. */
WEIR_FN struct weir_fetch weir_fetch_mine(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					  u64 index, u32 offset, u32 count)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	u32 state;

	/* L1: pairs with L0 */
	state = weir_line_state(weir_poll_u64_dev(&set->word[fetch.mine], WEIR_LINE_BIT_READY | WEIR_LINE_BIT_FAILED));
	if (state == WEIR_LINE_BUSY)
		return fetch;
	if (state == WEIR_LINE_READY)
		fetch.words = weir_line_load(weir_line_data(lines, index, fetch.mine) + offset, count);
	else
		fetch.words.status =
			weir_load_u32_relaxed_dev(&weir_lines_policy(lines, index)->status[fetch.mine]);
	weir_line_unpin(set, fetch.mine);
	fetch.mine = WEIR_WAYS;
	fetch.done = 1;
	return fetch;
}

/* A lane without a line of its own: read it, wait for it, take its error, or find it absent. */
WEIR_FN struct weir_fetch weir_fetch_other(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					   u64 index, u64 key, u32 offset, u32 count)
{
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_found found = weir_set_find(set, key);
	u32 state = weir_line_state(found.word);

	if (state == WEIR_LINE_READY) {
		fetch.words = weir_line_load(weir_line_data(lines, index, found.way) + offset, count);
		fetch.done = weir_line_unchanged(set, found);
	} else if (state == WEIR_LINE_BUSY) {
		fetch.waited = 1;
	} else if (state == WEIR_LINE_FAILED && fetch.waited) {
		fetch.words.status =
			weir_load_u32_relaxed_dev(&weir_lines_policy(lines, index)->status[found.way]);
		fetch.done = weir_line_unchanged(set, found);
	} else {
		fetch.absent = 1;
	}
	return fetch;
}

/*
 * Lanes of @wave that found the same line absent go as one: the first of them claims it,
 * and the others will find it on its way. (Two caches' keys may fall together; then one
 * of them goes in the next turn.)
 *
 * Return: the way claimed, or WEIR_WAYS.
 */
WEIR_FN u32 weir_fetch_claim(u64 wave, u32 absent, WEIR_GLOBAL struct weir_lines *lines, u64 index, u64 key)
{
	u64 wanting = weir_ballot(wave, absent);
	u32 way = WEIR_WAYS;

	if (absent && weir_leader(weir_match_u64(wanting, WEIR_ADDR(lines) + key)))
		way = weir_set_try_claim(lines, index, key);
	weir_converge();
	return way;
}

/* After a submission was tried: a claim that has waited long enough is taken back. */
WEIR_FN struct weir_fetch weir_fetch_sent(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines, u64 index,
					  u32 submitted)
{
	fetch.unsent = submitted ? 0 : fetch.unsent + 1;
	if (fetch.unsent > WEIR_UNSENT_TURNS) {
		weir_line_retract(lines, index, fetch.mine);
		fetch.mine = WEIR_WAYS;
		fetch.unsent = 0;
	}
	return fetch;
}

/* Deadline or a dead storage: let go of the pin; a command in flight still ends. */
WEIR_FN struct weir_fetch weir_fetch_give_up(struct weir_fetch fetch, WEIR_GLOBAL struct weir_lines *lines,
					     u64 index, weir_status status)
{
	if (fetch.unsent)
		weir_line_retract(lines, index, fetch.mine);
	else if (fetch.mine != WEIR_WAYS)
		weir_line_unpin(weir_lines_set(lines, index), fetch.mine);
	fetch.unsent = 0;
	fetch.mine = WEIR_WAYS;
	return weir_fetch_fail(fetch, status);
}

/**
 * weir_lines_fetch() - read words of a line, bringing it in if it is not there
 * @lines: the cache
 * @extent: where the line comes from
 * @line: line of @extent, below extent->lines
 * @offset: byte offset in the line, a multiple of 8
 * @count: words, 0 to WEIR_RUN
 *
 * Any subset of a wave, different arguments in each lane. The flat wait loop of
 * the miss path; the data is read inside it, while the line is known to be there.
 *
 * Return: words and WEIR_OK; the completion's status; WEIR_E_TIMEOUT after the
 * storage's timeout.
 */
WEIR_FN struct weir_words weir_lines_fetch(WEIR_GLOBAL struct weir_lines *lines,
					   WEIR_GLOBAL struct weir_extent *extent, u64 line, u32 offset,
					   u32 count)
{
	u64 wave = weir_active();
	u64 key = extent->key_base + line;
	u64 index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0);
	struct weir_fetch fetch;
	u64 needy;

	fetch.words = weir_line_load(0, 0);
	fetch.mine = WEIR_WAYS;
	fetch.unsent = 0;
	fetch.absent = 0;
	fetch.waited = 0;
	fetch.done = 0;
	if (WEIR_ONLY_SERVICE && !(disk->flags & WEIR_DISK_SERVICE))
		fetch = weir_fetch_fail(fetch, WEIR_E_SERVICE);
	if (!weir_policy_known(lines->policy))
		fetch = weir_fetch_fail(fetch, WEIR_E_POLICY);
	for (u32 turn = 0; (needy = weir_ballot(wave, !fetch.done)) != 0; turn++) {
		u32 submitted, way;

		weir_converge();
		fetch.absent = 0;
		if (!fetch.done && !fetch.unsent && fetch.mine != WEIR_WAYS)
			fetch = weir_fetch_mine(fetch, lines, index, offset, count);
		else if (!fetch.done && !fetch.unsent)
			fetch = weir_fetch_other(fetch, lines, index, key, offset, count);
		way = weir_fetch_claim(wave, fetch.absent, lines, index, key);
		if (way != WEIR_WAYS) {
			fetch.mine = way;
			fetch.unsent = 1;
		}
		submitted = weir_disk_try_submit(wave, fetch.unsent != 0, disk,
						 weir_line_request(lines, extent, line, index, fetch.mine));
		if (fetch.unsent)
			fetch = weir_fetch_sent(fetch, lines, index, submitted);
		if (!fetch.done && weir_disk_dead(disk) != WEIR_OK)
			fetch = weir_fetch_give_up(fetch, lines, index, weir_disk_dead(disk));
		else if (!fetch.done && weir_expired(deadline, turn))
			fetch = weir_fetch_give_up(fetch, lines, index, WEIR_E_TIMEOUT);
		needy = weir_ballot(wave, !fetch.done);
		if (needy && weir_disk_help(wave, needy, disk, turn) == 0)
			weir_relax();
	}
	return fetch.words;
}

#endif
