/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/access.h: accesses to a line wherever it is: in the cache, on storage, in a buffer.
 *
 * Owns: finding a line's buffer, reading it without a reference, writing it with one, and filling it again
 * after a command that failed. Never moves a line between the cache and the table: core/share/sharing.h
 * does.
 */
#ifndef WEIR_CORE_SHARE_ACCESS_H
#define WEIR_CORE_SHARE_ACCESS_H

#include <weir/core/cache/access.h>
#include <weir/core/queue/retry.h>
#include <weir/core/share/sharing.h>

/* How often an access goes from cache to table and back before it counts as not getting there. */
enum { WEIR_SHARE_ROUNDS = 256 };

/*
 * What an access finds: WEIR_OK a filled buffer, WEIR_E_SHARED no entry, WEIR_E_LOCKED one that is
 * being filled; else why it could not be.
 */
WEIR_FN weir_status weir_share_probe(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found)
{
	u32 state = weir_line_state(found.word);
	weir_status status;

	if (found.word == 0)
		return WEIR_E_SHARED;
	if (state != WEIR_LINE_FAILED)
		return state == WEIR_LINE_BUSY ? (u32)WEIR_E_LOCKED : (u32)WEIR_OK;
	/* relaxed: share.T1 came before, and the word is looked at again */
	status = weir_load_u32_relaxed_dev(&weir_share_slot(share, found.position)->status);
	weir_order_loads();
	return weir_share_same(weir_load_u64_relaxed_dev(weir_share_word(share, found.position)), found.word)
		       ? status
		       : (u32)WEIR_E_LOCKED;
}

/* line.L2, as of a line: the buffer was this line's until all of it was loaded. Relaxed: behind
 * weir_order_loads(). share.T5: pairs with share.T4: so was what the slot and the buffer had. */
WEIR_FN u32 weir_share_unchanged(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found)
{
	return weir_share_same(weir_load_u64_relaxed_dev(weir_share_word(share, found.position)), found.word);
}

/* As weir_retry(), for the command of a failed entry that ended with @status; 0 counts only if
 * weir_share_unchanged() afterwards. */
WEIR_FN u32 weir_share_retries(WEIR_GLOBAL struct weir_share *share, WEIR_GLOBAL struct weir_disk *disk,
			       struct weir_share_found found, weir_status status, u64 deadline)
{
	if (weir_line_state(found.word) != WEIR_LINE_FAILED || !weir_status_retryable(status) ||
	    weir_disk_dead(disk) != WEIR_OK)
		return 0;
	/* relaxed: share.T1 came before, or whoever turns the word looks once more */
	return weir_retry(disk, status,
			  weir_load_u32_relaxed_dev(&weir_share_slot(share, found.position)->retry),
			  deadline);
}

/* @state from weir_share_retries() says that there are no tries left: that is so only if nobody has begun the
 * last one meanwhile. */
WEIR_FN u32 weir_share_has_failed(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found,
				  u32 state)
{
	weir_order_loads(); /* line.L4: how often it was tried before the second look; pairs with line.L5 */
	return state == 0 && weir_share_unchanged(share, found);
}

/*
 * One lane: let the entry count as being filled again, so that no last holder lets go of it and nobody else
 * does the same. Return: 1 if this lane is to submit its command.
 */
WEIR_FN u32 weir_share_try_refill(WEIR_GLOBAL struct weir_share *share, struct weir_share_found found,
				  u32 seen, u32 state)
{
	WEIR_GLOBAL weir_shared_u64 *word = weir_share_word(share, found.position);
	WEIR_GLOBAL weir_shared_u32 *retry = &weir_share_slot(share, found.position)->retry;

	/* line.L1: pairs with line.L0 of the command that failed; share.T3: for the last holder, who waits
	 * for it */
	if (weir_cas_u64_acq_rel_dev(word, found.word, found.word & ~(u64)WEIR_LINE_BIT_FAILED) != found.word)
		return 0;
	if (weir_load_u32_relaxed_dev(retry) == seen) { /* relaxed: line.L1 */
		/* line.L5: that it is being filled comes before; pairs with line.L4 */
		weir_store_u32_release_dev(retry, state & WEIR_RETRY_COUNTS);
		return 1;
	}
	(void)weir_or_u64_acq_rel_dev(word,
				      (u64)WEIR_LINE_BIT_FAILED); /* it failed once more since that look */
	return 0;
}

/**
 * weir_share_retry() - one step of a wait for an entry whose command failed and can be submitted again
 * @wave: lanes calling together
 * @status: what this lane's look at its entry gave
 * @found: the entry as seen; word 0: it has none
 * @lines: the cache
 * @extent: whose line
 * @line: line of @extent
 * @deadline: of the wait
 *
 * One pass, no waiting; with a reference or without. The command goes to the same buffer, which is the
 * entry's as long as it is being filled. What there is to know between two tries is in the entry, so any lane
 * that waits may do it.
 *
 * Return: WEIR_E_LOCKED: look again; else @status, which stays.
 */
WEIR_FN weir_status weir_share_retry(u64 wave, weir_status status, struct weir_share_found found,
				     WEIR_GLOBAL struct weir_lines *lines,
				     WEIR_GLOBAL struct weir_extent *extent, u64 line, u64 deadline)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u32 failed = weir_line_state(found.word) == WEIR_LINE_FAILED && weir_status_retryable(status),
	    over = 1, seen = 0, state = 0, sends = 0;
	struct weir_request request;

	if (weir_ballot(wave, failed) == 0)
		return status;
	request = weir_line_request(lines, extent, line, 0, 0, NVME_OPCODE_READ);
	if (failed) {
		WEIR_GLOBAL struct weir_share_slot *slot = weir_share_slot(share, found.position);

		seen = weir_load_u32_relaxed_dev(&slot->retry); /* relaxed: as in weir_share_retries() */
		state = weir_share_retries(share, disk, found, status, deadline);
		request.buffer = weir_share_buffer(share, found);
		request.target = WEIR_ADDR(weir_share_word(share, found.position));
		request.status = WEIR_ADDR(&slot->status);
		over = weir_share_has_failed(share, found, state);
		if (weir_retry_now(state))
			sends = weir_share_try_refill(share, found, seen, state);
		else if (state != 0 && state != seen) /* relaxed: of two that wait one sets the time */
			(void)weir_cas_u32_relaxed_dev(&slot->retry, seen, state);
	}
	weir_reconverge();
	if (weir_disk_try_submit(wave, sends, disk, request)) {
		weir_retry_count(disk);
	} else if (sends) { /* no slot: as if nothing had been */
		weir_store_u32_relaxed_dev(&weir_share_slot(share, found.position)->retry,
					   seen); /* relaxed: line.L0 */
		(void)weir_or_u64_acq_rel_dev(weir_share_word(share, found.position),
					      (u64)WEIR_LINE_BIT_FAILED);
	}
	weir_reconverge();
	return over ? status : (u32)WEIR_E_LOCKED;
}

/**
 * weir_share_read() - read a line that is in a buffer, without a reference
 *
 * As weir_lines_access(), with @kind WEIR_ACCESS_LOAD or WEIR_ACCESS_READ; no code that writes.
 *
 * Return: also WEIR_E_SHARED: it is in no buffer any more.
 */
WEIR_FN struct weir_words weir_share_read(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					  WEIR_GLOBAL struct weir_extent *extent, u64 line, u32 kind,
					  struct weir_access access)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0);
	struct weir_words words = weir_line_load(0, 0);
	u32 done = access.length == 0;

	WEIR_WAIT_LOOP(wave, !done, iteration) {
		struct weir_share_found found;
		weir_status status = WEIR_E_LOCKED;
		weir_addr from;
		u32 there;

		found = weir_share_find(share, extent->key_base + line);
		from = weir_share_buffer(share, found) + access.offset;
		if (!done)
			status = weir_share_probe(share, found);
		status = weir_share_retry(wave, status, found, lines, extent, line, deadline);
		there = status == WEIR_OK;
		weir_reconverge(); /* else a compiler may send those without an entry straight into the
				      collectives */
		if (kind == WEIR_ACCESS_READ) {
			weir_order_loads();
			/* what each lane's look guards (share.T1) is all lanes' to load */
			weir_wave_sync(wave);
			weir_wave_move(wave, access.buffer, from, there ? access.length : 0);
			weir_order_loads();
			weir_wave_sync(wave); /* every lane's loads before the second look */
		} else if (there) {
			words = weir_line_load(from, access.length);
			weir_order_loads();
		}
		if (there && !weir_share_unchanged(share, found))
			status = WEIR_E_LOCKED;
		if (!done && status == WEIR_E_LOCKED)
			status = weir_share_over(disk, deadline, iteration);
		words.status = done ? words.status : status;
		done |= status != WEIR_E_LOCKED;
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	return words;
}

/**
 * weir_share_write() - write to a line that is in a buffer, with a reference while it does
 *
 * As weir_lines_access(), with @kind WEIR_ACCESS_STORE, _ADD or _WRITE.
 *
 * Return: also WEIR_E_SHARED: it is in no buffer any more.
 */
WEIR_FN struct weir_words weir_share_write(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
					   WEIR_GLOBAL struct weir_extent *extent, u64 line, u32 kind,
					   struct weir_access access)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 deadline = weir_deadline(disk, 0), position = 0;
	struct weir_fetch fetch;
	u32 held = 0;
	weir_status left;

	fetch.words = weir_line_load(0, 0);
	fetch.done = access.length == 0;
	WEIR_WAIT_LOOP(wave, !fetch.done, iteration) {
		struct weir_share_found found;
		weir_status status = WEIR_E_LOCKED;
		weir_addr to;
		u32 joins;

		found = weir_share_find(share, extent->key_base + line);
		if (!fetch.done)
			status = weir_share_probe(share, found);
		status = weir_share_retry(wave, status, found, lines, extent, line, deadline);
		joins = status == WEIR_OK && weir_share_try_join(share, found);
		if (joins) {
			(void)weir_share_changed(share, found.position);
			position = found.position;
			held = 1;
		} else if (!fetch.done && (status == WEIR_OK || status == WEIR_E_LOCKED)) {
			status = weir_share_over(disk, deadline, iteration);
		}
		weir_reconverge();
		to = weir_share_buffer(share, found) +
		     access.offset; /* a holder's: as it was when it joined */
		weir_reconverge();
		if (kind == WEIR_ACCESS_WRITE) {
			weir_wave_sync(wave); /* what a lane wrote to its buffer is all lanes' */
			weir_wave_move(wave, to, access.buffer, joins ? access.length : 0);
			weir_wave_sync(wave); /* every lane's part before share.T3 */
		} else if (joins) {
			fetch.words.word[0] = weir_access_element(kind, to, access);
		}
		fetch.words.status = fetch.done ? fetch.words.status : status;
		fetch.done |= status != WEIR_E_LOCKED;
		weir_wait_help(wave, !fetch.done, disk, iteration, iteration);
	}
	left = weir_share_leave(wave, held, lines, extent, line, position);
	if (left != WEIR_OK)
		weir_share_abandon(share, position);
	fetch.words.status = fetch.words.status == WEIR_OK ? left : fetch.words.status;
	return fetch.words;
}

/**
 * weir_lines_reach() - weir_lines_access(), wherever the line is: in the cache, on storage, in a buffer
 */
WEIR_FN WEIR_FORCE_INLINE struct weir_words weir_lines_reach(u64 wave, WEIR_GLOBAL struct weir_lines *lines,
							     WEIR_GLOBAL struct weir_extent *extent, u64 line,
							     u32 kind, struct weir_access access)
{
	u32 reads = kind == WEIR_ACCESS_LOAD || kind == WEIR_ACCESS_READ;
	struct weir_words words = weir_line_load(0, 0);

	if (!WEIR_SHARE_KNOWN)
		return weir_lines_access(wave, lines, extent, line, kind, access);
	words.status = WEIR_E_SHARED;
	for (u32 round = 0; weir_ballot(wave, words.status == WEIR_E_SHARED) != 0; round++) {
		struct weir_words found;

		weir_reconverge();
		if (words.status != WEIR_E_SHARED)
			access.length = 0; /* it only helps the others */
		found = weir_lines_access(wave, lines, extent, line, kind, access);
		words = words.status == WEIR_E_SHARED ? found : words;
		weir_reconverge();
		if (words.status != WEIR_E_SHARED)
			access.length = 0;
		found = reads ? weir_share_read(wave, lines, extent, line, kind, access)
			      : weir_share_write(wave, lines, extent, line, kind, access);
		words = words.status == WEIR_E_SHARED ? found : words;
		if (words.status == WEIR_E_SHARED && round == WEIR_SHARE_ROUNDS)
			words.status = WEIR_E_TIMEOUT;
		weir_reconverge();
	}
	return words;
}

#endif
