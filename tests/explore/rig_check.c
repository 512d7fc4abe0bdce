/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_check.c: what holds of queues, lines, tier and Share Table when all lanes are done, and lines left
 * before a run. */
#include <string.h>

#include <weir/core/cache/policy.h>

#include "explore.h"
#include "rig.h"
#include "rig_parts.h"
#include "scenarios.h"

static void check_queue(const struct weir_queue *queue, u32 index)
{
	const struct weir_slot *slots = (const struct weir_slot *)(uintptr_t)queue->slots;
	u64 first = rig.shape.iteration * queue->depth;

	if (queue->pending.value_ != 0 || queue->committed.value_ != queue->tail.value_)
		fail("queue %u: %llu of %llu commands were announced, pending is %llu at rest", index,
		     (unsigned long long)(queue->committed.value_ - first),
		     (unsigned long long)(queue->tail.value_ - first),
		     (unsigned long long)queue->pending.value_);
	if (queue->completed.value_ != queue->tail.value_ - first)
		fail("queue %u: %llu commands went in, %llu completions came out", index,
		     (unsigned long long)(queue->tail.value_ - first),
		     (unsigned long long)queue->completed.value_);
	if (queue->reap.value_ & 1)
		fail("queue %u: the reap lock is held at rest", index);
	for (u32 i = 0; i < queue->depth; i++)
		if (slots[i].sequence.value_ & 1)
			fail("queue %u: slot %u is filled at rest", index, i);
}

/* A line of the storage that died: a command may have come too late for anybody to end it. */
static bool is_dead(u64 word)
{
	return rig.dead_step && rig.shape.partner &&
	       word >> WEIR_LINE_KEY_SHIFT >= rig.other->extent.key_base;
}

static void check_lines(void)
{
	const struct weir_set *sets = (const struct weir_set *)(uintptr_t)rig.lines->words;

	for (u32 i = 0; i < rig.shape.sets * WEIR_WAYS; i++) {
		u64 word = sets[i / WEIR_WAYS].word[i % WEIR_WAYS].value_;

		if ((word & WEIR_LINE_PINS) || (weir_line_under_way(word) && !is_dead(word)))
			fail("line %u is pinned or busy at rest: %#llx", i, (unsigned long long)word);
		if (rig.written && weir_line_state(word) == WEIR_LINE_MODIFIED)
			fail("line %u is dirty after the flush: %#llx", i, (unsigned long long)word);
	}
}

/* Each write-back that failed was told of, once, or tried again, once. */
static void check_errors(void)
{
	u64 failed = 0, again = 0;

	for (u32 i = 0; i < rig.shape.queues; i++) {
		failed += rig.queues[i].failed.value_;
		again += rig.queues[i].retried.value_;
	}
	if (rig.lines->write_errors.value_ + again != failed)
		fail("%llu write-backs failed, %llu were told of and %llu tried again",
		     (unsigned long long)failed, (unsigned long long)rig.lines->write_errors.value_,
		     (unsigned long long)again);
}

static void check_share(void)
{
	const struct weir_share *share = (const struct weir_share *)(uintptr_t)rig.lines->share;
	const struct weir_set *set = share ? (const struct weir_set *)(uintptr_t)share->words : NULL;

	for (u32 i = 0; set && i < WEIR_WAYS; i++)
		if (set->word[i].value_ & ~(u64)WEIR_SHARE_VERSIONS)
			fail("entry %u of the Share Table is held at rest: %#llx", i,
			     (unsigned long long)set->word[i].value_);
}

/* The cache's word for @key, 0 if there is none. */
static u64 cache_word(u64 key)
{
	const struct weir_set *sets = (const struct weir_set *)(uintptr_t)rig.lines->words;

	for (u32 i = 0; i < rig.shape.sets * WEIR_WAYS; i++)
		if (sets[i / WEIR_WAYS].word[i % WEIR_WAYS].value_ >> WEIR_LINE_KEY_SHIFT == key)
			return sets[i / WEIR_WAYS].word[i % WEIR_WAYS].value_;
	return 0;
}

/* What the tier has is what storage has, or is known to be older: its line in the cache has yet to be written
 * back. */
static void check_tier(void)
{
	const struct weir_tier *tier = (const struct weir_tier *)(uintptr_t)rig.lines->tier;
	const struct weir_set *sets = tier ? (const struct weir_set *)(uintptr_t)tier->words : NULL;

	for (u32 i = 0; i < rig.shape.tier * WEIR_WAYS; i++) {
		u64 word = sets[i / WEIR_WAYS].word[i % WEIR_WAYS].value_, key = word >> WEIR_LINE_KEY_SHIFT;
		const void *data = (const void *)(uintptr_t)(tier->data + (i << LINE_LOG2));

		if ((word & WEIR_LINE_PINS) || weir_line_under_way(word))
			fail("the tier's line %u is pinned or busy at rest: %#llx", i,
			     (unsigned long long)word);
		else if (key && !rig.shape.inclusive && cache_word(key))
			fail("block %llu is in the cache, and in the exclusive tier",
			     (unsigned long long)key - 1);
		else if (key && memcmp(data, rig_blocks[key - 1], sizeof(rig_blocks[0])) != 0 &&
			 weir_line_state(cache_word(key)) != WEIR_LINE_MODIFIED)
			fail("block %llu in the tier is older than on storage", (unsigned long long)key - 1);
	}
}

/* Commands whose completion is to be told to @word. */
static u32 commands_on(const void *word)
{
	u32 found = 0;

	for (u32 q = 0; q < rig.shape.queues; q++) {
		const struct weir_slot *slots = (const struct weir_slot *)(uintptr_t)rig.queues[q].slots;

		for (u32 i = 0; i < rig.shape.depth; i++)
			found += (slots[i].sequence.value_ & 1) &&
				 slots[i].target == (weir_addr)(uintptr_t)word;
	}
	return found;
}

/* Of a queue pair some of whose commands may never end: the others have, nobody is told twice, and nothing is
 * held. */
static void check_lossy_queue(const struct weir_queue *queue, u32 index)
{
	const struct weir_slot *slots = (const struct weir_slot *)(uintptr_t)queue->slots;
	u64 first = rig.shape.iteration * queue->depth, filled = 0;

	/* of a dead one commands end that were not announced yet */
	if (queue->pending.value_ != 0 ||
	    (!queue->dead.value_ && queue->committed.value_ != queue->tail.value_))
		fail("queue %u: %llu of %llu commands were announced, pending is %llu when all lanes have "
		     "left",
		     index, (unsigned long long)(queue->committed.value_ - first),
		     (unsigned long long)(queue->tail.value_ - first),
		     (unsigned long long)queue->pending.value_);
	if (queue->reap.value_ & 1)
		fail("queue %u: the reap lock is held when all lanes have left", index);
	for (u32 i = 0; i < queue->depth; i++) {
		const weir_shared_u64 *target = (const weir_shared_u64 *)(uintptr_t)slots[i].target;

		if (!(slots[i].sequence.value_ & 1))
			continue;
		filled++;
		if (slots[i].target_kind == WEIR_TARGET_EVENT && (target->value_ & WEIR_EVENT_DONE))
			fail("queue %u: the event of slot %u is done, and its command is under way", index,
			     i);
		else if ((slots[i].target_kind == WEIR_TARGET_LINE ||
			  slots[i].target_kind == WEIR_TARGET_WRITTEN) &&
			 !weir_line_under_way(target->value_))
			fail("queue %u: the command of slot %u is on %s, which nothing is under way on: "
			     "%#llx",
			     index, i, watch_name(target), (unsigned long long)target->value_);
	}
	if (queue->completed.value_ + filled != queue->tail.value_ - first)
		fail("queue %u: %llu commands went in, %llu completions came out, and %llu are under way",
		     index, (unsigned long long)(queue->tail.value_ - first),
		     (unsigned long long)queue->completed.value_, (unsigned long long)filled);
}

/* Lines are pinned by nobody, and one that is being read or written has a command. */
static void check_lossy_lines(void)
{
	const struct weir_set *sets = (const struct weir_set *)(uintptr_t)rig.lines->words;
	const struct weir_set_policy *policies =
		(const struct weir_set_policy *)(uintptr_t)rig.lines->policies;

	for (u32 i = 0; i < rig.shape.sets * WEIR_WAYS && !run.failed; i++) {
		const weir_shared_u64 *word = &sets[i / WEIR_WAYS].word[i % WEIR_WAYS];
		u32 commands = commands_on(word), under_way = weir_line_under_way(word->value_);

		if (word->value_ & WEIR_LINE_PINS)
			fail("line %u is pinned when all lanes have left: %#llx", i,
			     (unsigned long long)word->value_);
		else if (commands != under_way)
			fail("line %u has %u commands under way, and says %u: %#llx", i, commands, under_way,
			     (unsigned long long)word->value_);
	}
	for (u32 i = 0; i < rig.shape.sets && !run.failed; i++)
		if (policies[i].lock.value_)
			fail("the lock of set %u is held when all lanes have left", i);
}

void rig_check_lossy(void)
{
	while (memory_drain_one())
		;
	for (u32 i = 0; i < rig.shape.queues && !run.failed; i++)
		check_lossy_queue(&rig.queues[i], i);
	if (!run.failed)
		check_lossy_lines();
}

void rig_check(void)
{
	while (memory_drain_one())
		;
	if (rig.dead_step)
		rig_check_lossy();
	for (u32 i = 0; i < (rig.dead_step ? rig_first_dying() : rig.shape.queues) && !run.failed; i++)
		check_queue(&rig.queues[i], i);
	if (!run.failed)
		check_lines();
	if (!run.failed && rig.shape.replicas)
		rig_check_placed();
	else if (!run.failed && rig.written)
		check_errors();
	if (!run.failed)
		check_share();
	if (!run.failed)
		check_tier();
}

void rig_leave_dirty(u32 lines)
{
	struct weir_set *set = (struct weir_set *)(uintptr_t)rig.lines->words;

	for (u32 i = 0; i < lines; i++) {
		u64 *data = (u64 *)(uintptr_t)(rig.lines->data + (i << LINE_LOG2));

		set[i / WEIR_WAYS].word[i % WEIR_WAYS].value_ =
			(u64)(i + 1) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_MODIFIED;
		for (u32 word = 0; word < SCENARIO_BLOCK_WORDS; word++)
			data[word] = scenario_word(i, 1, word);
	}
}

/* Block @lba is in a line, as on storage. */
static void leave_clean(weir_shared_u64 *word, weir_addr data, u64 lba)
{
	word->value_ = (lba + 1) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_READY;
	memcpy((void *)(uintptr_t)data, rig_blocks[lba], sizeof(rig_blocks[0]));
}

void rig_leave_clean(void)
{
	const struct weir_tier *tier = (const struct weir_tier *)(uintptr_t)rig.lines->tier;
	struct weir_set *first = (struct weir_set *)(uintptr_t)rig.lines->words,
			*second = (struct weir_set *)(uintptr_t)tier->words;

	for (u32 way = 0; way < WEIR_WAYS; way++) {
		leave_clean(&first->word[way], rig.lines->data + (way << LINE_LOG2), way);
		leave_clean(&second->word[way], tier->data + (way << LINE_LOG2), WEIR_WAYS + way);
	}
}
