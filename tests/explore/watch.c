/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c: what words are called, and the invariants on them.
 *
 * Owns: one owner per lock, the life cycle of a slot, one completion per event,
 * the legal transitions of a cache line's word. Checked at every write that
 * reaches memory.
 */
#include <stdio.h>
#include <string.h>

#include <weir/core/queue/event.h>
#include <weir/core/share/share.h>

#include "explore.h"
#include "rig.h"
#include "scenario.h"

enum { RANGES = 96, WORDS = ARENA_BYTES / 4 };

struct range {
	const unsigned char *address;
	size_t bytes, word_bytes, stride;
	const char *format;
};

static struct range ranges[RANGES];
static u32 range_count;
static u8 kinds[WORDS];
static const void *guards[WORDS]; /* the lock that guards a line's word or a slot */
static int owners[WORDS];         /* lane + 1 that holds a lock */

void watch_begin(void)
{
	for (u32 i = 0; i < range_count; i++) {
		size_t first = (size_t)(ranges[i].address - arena) / 4;

		for (size_t at = 0; at < ranges[i].bytes / 4; at++)
			kinds[first + at] = WATCH_NONE;
	}
	range_count = 0;
}

static size_t index_of(const void *address)
{
	return (size_t)((const unsigned char *)address - arena) / 4;
}

void watch(const void *address, size_t bytes, size_t word_bytes, enum watch_kind kind, const char *format,
	   size_t stride)
{
	const unsigned char *byte = address;

	ranges[range_count++] = (struct range){ byte, bytes, word_bytes, stride, format };
	for (size_t at = 0; at < bytes; at += 4)
		kinds[index_of(byte + at)] = at % stride < word_bytes ? (u8)kind : (u8)WATCH_DATA;
	if (kind == WATCH_LOCK)
		owners[index_of(address)] = 0;
}

void watch_guard(const void *word, const void *lock)
{
	guards[index_of(word)] = lock;
}

u32 watch_kind_at(const void *address)
{
	return kinds[index_of(address)];
}

int watch_lock_owner(const void *lock)
{
	return owners[index_of(lock)] - 1;
}

const char *watch_name(const void *address)
{
	static char names[4][96];
	static u32 iteration;
	char *name = names[iteration++ % 4];
	const unsigned char *byte = address;

	for (u32 i = range_count; i-- > 0;) { /* later, narrower ranges first */
		const struct range *range = &ranges[i];
		size_t at = (size_t)(byte - range->address), inside;

		if (byte < range->address || at >= range->bytes)
			continue;
		inside = at % range->stride;
		snprintf(name, 48, range->format, (unsigned)(at / range->stride));
		if (inside)
			snprintf(name + strlen(name), 32, "+%zu", inside);
		return name;
	}
	snprintf(name, sizeof(names[0]), "%p", address);
	return name;
}

/* Bit 0 is the lock; above it may be what it guards. */
static void watch_lock(struct lane *lane, const void *lock, u64 old_word, u64 new_word)
{
	bool old = old_word & 1, new = new_word & 1;
	int *owner = &owners[index_of(lock)];
	int self = lane ? (int)lane->index + 1 : -1;

	if (!old && !new)
		fail("%s changes while nobody holds the lock", watch_name(lock));
	else if (new &&old)
		fail("lock %s is taken by lane %d while lane %d holds it", watch_name(lock), self - 1,
		     *owner - 1);
	else if (new)
		*owner = self;
	else if (old && *owner != self)
		fail("lock %s of lane %d is released by lane %d", watch_name(lock), *owner - 1, self - 1);
	else
		*owner = 0;
}

static bool guarded(const struct lane *lane, const void *word)
{
	int owner = watch_lock_owner(guards[index_of(word)]);

	return lane && owner >= 0 && run.lanes[owner].wave == lane->wave;
}

/* A lane filled a slot: its wait for one is over. */
static void note_submission(struct lane *lane)
{
	if (lane && lane->waits && run.submitted - lane->since > run.longest_wait)
		run.longest_wait = run.submitted - lane->since;
	if (lane)
		lane->submits = lane->waits = false;
	run.submitted++;
}

/* A submission made itself known as the oldest. */
static void note_oldest(struct lane *lane)
{
	if (!lane || !lane->submits)
		return;
	for (u32 i = 0; i < run.lane_count; i++)
		run.lanes[i].waits = false; /* one that was known before is not the oldest */
	lane->waits = true;
	lane->since = run.submitted;
}

static void watch_sequence(struct lane *lane, const void *word, u32 old, u32 new)
{
	if (new != old + 1)
		fail("%s goes from %u to %u; a slot's turn goes up by one", watch_name(word), old, new);
	else if ((new & 1) == 0 && !guarded(lane, word))
		fail("%s is freed by lane %d, whose wave does not hold the reap lock", watch_name(word),
		     lane ? (int)lane->index : -1);
	else if ((new & 1) == 0)
		run.progress_step = run.steps;
	else
		note_submission(lane);
}

static u64 pins(u64 word)
{
	return (word & WEIR_LINE_PINS) / WEIR_LINE_PIN;
}

static bool same_occupant(u64 old, u64 new)
{
	return ((old ^ new) & ~(WEIR_LINE_PINS | WEIR_LINE_STATE | WEIR_LINE_USED)) == 0;
}

static bool legal_reserve(u64 old, u64 new)
{
	u64 version = (old + WEIR_LINE_VERSION) & WEIR_LINE_VERSIONS;

	return weir_line_state(new) == WEIR_LINE_BUSY && pins(new) == 1 && weir_line_evictable(old) &&
	       weir_line_state(old) != WEIR_LINE_MODIFIED && (new &WEIR_LINE_VERSIONS) == version;
}

static bool legal_completion(u64 old, u64 new)
{
	u32 state = weir_line_state(new);

	return same_occupant(old, new) && pins(old) == pins(new) && weir_line_state(old) == WEIR_LINE_BUSY &&
	       (state == WEIR_LINE_READY || state == WEIR_LINE_FAILED);
}

/* Whoever issued a fetch that failed holds the line, and tries again. */
static bool legal_refetch(u64 old, u64 new)
{
	return same_occupant(old, new) && pins(old) == 1 && pins(new) == 1 &&
	       weir_line_state(old) == WEIR_LINE_FAILED && weir_line_state(new) == WEIR_LINE_BUSY;
}

static bool legal_pin(u64 old, u64 new)
{
	return same_occupant(old, new) && weir_line_state(old) == weir_line_state(new) &&
	       (pins(new) == pins(old) + 1 || pins(old) == pins(new) + 1);
}

static bool legal_use(u64 old, u64 new)
{
	return ((old ^ new) & ~WEIR_LINE_USED) == 0;
}

static bool legal_retraction(u64 old, u64 new)
{
	return weir_line_state(old) == WEIR_LINE_BUSY && pins(old) == 1 &&
	       new == ((old & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID);
}

/* A writer's mark, with or without its pin going; or an overwritten line that becomes readable. */
static bool legal_mark(u64 old, u64 new)
{
	u32 from = weir_line_state(old), to = weir_line_state(new);

	if (!same_occupant(old, new) || pins(old) == 0 || pins(new) > pins(old) || pins(new) + 1 < pins(old))
		return false;
	return (from == WEIR_LINE_READY && to == WEIR_LINE_MODIFIED) ||
	       (from == WEIR_LINE_WRITING && to == WEIR_LINE_REWRITTEN) ||
	       (from == WEIR_LINE_BUSY && to == WEIR_LINE_MODIFIED && pins(new) < pins(old));
}

/* A write-back begins, ends, or is taken back. */
static bool legal_writing(u64 old, u64 new)
{
	u32 from = weir_line_state(old), to = weir_line_state(new);

	if (!same_occupant(old, new) || pins(old) != pins(new))
		return false;
	return (from == WEIR_LINE_MODIFIED && to == WEIR_LINE_WRITING) ||
	       (from == WEIR_LINE_WRITING && (to == WEIR_LINE_READY || to == WEIR_LINE_MODIFIED)) ||
	       (from == WEIR_LINE_REWRITTEN && to == WEIR_LINE_MODIFIED);
}

static bool legal_drop(u64 old, u64 new)
{
	return weir_line_evictable(old) && new == ((old & WEIR_LINE_VERSIONS) | WEIR_LINE_INVALID);
}

static void watch_line(struct lane *lane, const void *word, u64 old, u64 new)
{
	if (legal_use(old, new))
		return;
	if (legal_completion(old, new) || legal_pin(old, new) || legal_retraction(old, new) ||
	    legal_mark(old, new) || legal_writing(old, new) || legal_drop(old, new) ||
	    legal_refetch(old, new)) {
		run.progress_step = run.steps;
		return;
	}
	if (!legal_reserve(old, new))
		fail("%s goes from %#llx to %#llx, which no rule allows", watch_name(word),
		     (unsigned long long)old, (unsigned long long)new);
	else if (!guarded(lane, word))
		fail("%s is claimed by lane %d, which does not hold the set's lock", watch_name(word),
		     lane ? (int)lane->index : -1);
}

/* An entry: taken and made known, by one lane; joined and left, by any; filled by its command; changed. */
static bool legal_entry(u64 old, u64 new)
{
	u64 version = (old + WEIR_SHARE_VERSION) & WEIR_SHARE_VERSIONS, empty = old & WEIR_SHARE_VERSIONS;
	u64 key = new & ~(u64)0 << WEIR_LINE_KEY_SHIFT, added = new - old;
	u32 state = weir_line_state(old), refs = weir_share_refs(old);

	if (refs == 0 && key && (old & WEIR_SHARE_DIRTY)) /* joined, after it was abandoned */
		return added == WEIR_SHARE_REF;
	if (refs == 0) /* reserved */
		return old == empty && new == (version | WEIR_SHARE_REF | WEIR_LINE_BUSY);
	if (old >> WEIR_LINE_KEY_SHIFT == 0 && key) /* made known, filled or not */
		return refs == 1 &&
		       (added == key || (state == WEIR_LINE_BUSY &&
					 (added == (key | 1) || added == (key | 1 | WEIR_SHARE_DIRTY))));
	if (state == WEIR_LINE_BUSY && (new == (old | WEIR_LINE_READY) || new == (old | WEIR_LINE_FAILED)))
		return true;
	if (state == WEIR_LINE_FAILED && key &&
	    new == (old & ~(u64)WEIR_LINE_BIT_FAILED)) /* its command is submitted again */
		return true;
	if (new == empty) /* given back unknown; or left by the last holder, or propagated by it */
		return refs == 1 && (state != WEIR_LINE_BUSY || (old & WEIR_SHARE_DIRTY) ||
				     old >> WEIR_LINE_KEY_SHIFT == 0);
	if (new == old - 1) /* being propagated */
		return refs == 1 && state == WEIR_LINE_READY && (old & WEIR_SHARE_DIRTY);
	return (old >> WEIR_LINE_KEY_SHIFT) != 0 &&
	       (added == WEIR_SHARE_REF ||
		(added == (u64)0 - WEIR_SHARE_REF &&
		 (refs > 1 || (state == WEIR_LINE_READY && (old & WEIR_SHARE_DIRTY)))) || /* or abandoned */
		(new == (old | WEIR_SHARE_DIRTY) && state == WEIR_LINE_READY));
}

static void watch_share(const void *word, u64 old, u64 new)
{
	if (!legal_entry(old, new))
		fail("%s goes from %#llx to %#llx, which no rule allows", watch_name(word),
		     (unsigned long long)old, (unsigned long long)new);
	run.progress_step = run.steps;
}

/* Does this lane's wave hold the lock of the set of the cache that line @key is of? */
static bool key_guarded(const struct lane *lane, u64 key)
{
	struct weir_set_policy *policies = (struct weir_set_policy *)(uintptr_t)rig.lines->policies;
	int owner = watch_lock_owner(&policies[key % rig.lines->sets].lock);

	return lane && owner >= 0 && run.lanes[owner].wave == lane->wave;
}

/* A line of the tier: what is done to it by whoever holds the lock of its set. */
static bool legal_tier_locked(u64 old, u64 new)
{
	u64 changed = (old ^ new) & ~(u64)(WEIR_LINE_VERSIONS | WEIR_LINE_PINS);

	if (weir_line_state(new) == WEIR_LINE_BUSY) /* reserved */
		return weir_line_evictable(old) && pins(new) == 0 && !(new &WEIR_LINE_USED) &&
		       (new &WEIR_LINE_VERSIONS) != (old & WEIR_LINE_VERSIONS);
	if (weir_line_state(old) == WEIR_LINE_BUSY) /* and given back */
		return new == (old & WEIR_LINE_VERSIONS);
	/* taken */
	return changed == 0 && weir_line_state(old) == WEIR_LINE_READY && pins(old) == 0 && pins(new) == 1;
}

/* By whoever copied it, or dropped it because it is getting too old. */
static bool legal_tier(u64 old, u64 new)
{
	if (weir_line_state(old) == WEIR_LINE_BUSY)
		return new == (old | WEIR_LINE_READY);
	return weir_line_state(old) == WEIR_LINE_READY && pins(old) <= 1 &&
	       (new == (old & WEIR_LINE_VERSIONS) || new == (old & ~(u64)WEIR_LINE_PINS));
}

static void watch_tier(struct lane *lane, const void *word, u64 old, u64 new)
{
	u64 key = (weir_line_state(new) == WEIR_LINE_INVALID ? old : new) >> WEIR_LINE_KEY_SHIFT;

	if (!legal_tier(old, new) && !legal_tier_locked(old, new))
		fail("%s goes from %#llx to %#llx, which no rule allows", watch_name(word),
		     (unsigned long long)old, (unsigned long long)new);
	else if (!legal_tier(old, new) && !key_guarded(lane, key))
		fail("%s is changed by lane %d, which does not hold the lock of its set", watch_name(word),
		     lane ? (int)lane->index : -1);
	run.progress_step = run.steps;
}

void watch_write(struct lane *lane, void *address, u32 bytes, u64 old, u64 new)
{
	(void)bytes;
	if (run.scenario->fair && address == (void *)&rig.queues[0].first && new != 0)
		note_oldest(lane);
	switch (kinds[index_of(address)]) {
	case WATCH_LOCK: watch_lock(lane, address, old, new); break;
	case WATCH_SEQUENCE: watch_sequence(lane, address, (u32)old, (u32) new); break;
	case WATCH_EVENT:
		/* a request that is not tried again says so, or that its record is another one's */
		if (old && new &&new != (old | WEIR_EVENT_CONSUMED) &&
		    (new & ~WEIR_EVENT_LOST) != weir_event_plain(old))
			fail("%s is completed twice: %#llx, then %#llx", watch_name(address),
			     (unsigned long long)old, (unsigned long long)new);
		break;
	case WATCH_LINE: watch_line(lane, address, old, new); break;
	case WATCH_SHARE: watch_share(address, old, new); break;
	case WATCH_TIER: watch_tier(lane, address, old, new); break;
	default: break;
	}
}
