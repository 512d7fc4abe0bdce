/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lockstep.c: wavefronts whose lanes share one program counter.
 *
 * The lanes of a wave that stand before the same block run it together, primitive
 * by primitive. Where they part, one side runs until it meets the other again or
 * ends; meanwhile the other gets nothing, so a spin that waits for a sibling never
 * ends. Two machines, chosen by the seed, each with either side first:
 *   stack       a stack of reconvergence points, at immediate post-dominators
 *   structured  the earliest waiting block in an order with contiguous loops, as
 *               an EXEC mask over structured control flow does
 * Waves take turns at random; controller and memory as in strategy random.
 */
#include "explore.h"
#include "flow.h"

enum { STACK_DEPTH = 256 };

struct entry {
	u32 block, reconvergence;
	u64 mask;
};

/**
 * struct front - what a wave executes
 * @mask: lanes that run the block
 * @inside: they are in it, else they stand before it
 */
struct front {
	u64 mask;
	bool inside;
	u32 block;
	u32 depth;
	struct entry stack[STACK_DEPTH];
};

static struct front fronts[MOST_WAVES];
static bool structured, flipped;

static void lockstep_begin(void)
{
	structured = random_below(2);
	flipped = random_below(2);
	for (u32 i = 0; i < run.wave_count; i++)
		fronts[i] = (struct front){ .mask = run.waves[i].live, .inside = true, .block = FLOW_EXIT };
}

static struct lane *lane_of(const struct wave *wave, u32 i)
{
	return &run.lanes[wave->first + i];
}

static void push(struct front *front, u32 block, u32 reconvergence, u64 mask)
{
	if (front->depth == STACK_DEPTH) {
		fail("a wave diverged %u deep", STACK_DEPTH);
		return;
	}
	front->stack[front->depth++] = (struct entry){ block, reconvergence, mask };
}

static u64 lanes_before(const struct wave *wave, u64 mask, u32 block)
{
	u64 found = 0;

	for (u32 i = 0; i < wave->width; i++)
		if (((mask >> i) & 1) && lane_of(wave, i)->state == LANE_AT_BLOCK &&
		    lane_of(wave, i)->block == block)
			found |= (u64)1 << i;
	return found;
}

static u32 first_block(const struct wave *wave, u64 mask)
{
	return lane_of(wave, (u32)__builtin_ctzll(mask))->block;
}

/* The lanes of the running entry parted: join again at the post-dominator, one side first. */
static void stack_part(struct front *front, const struct wave *wave, u64 live)
{
	struct entry *top = &front->stack[front->depth - 1];
	u32 join = flow_join(front->block);
	u64 rest = live;

	if (join == top->reconvergence)
		front->depth--; /* the entry below already waits there */
	else
		top->block = join, top->mask = live;
	u32 first = front->depth;

	while (rest) {
		u32 block = first_block(wave, rest);
		u64 side = lanes_before(wave, rest, block);

		rest &= ~side;
		if (block != join)
			push(front, block, join, side);
	}
	if (flipped && front->depth > first + 1) {
		struct entry swap = front->stack[first];

		front->stack[first] = front->stack[front->depth - 1];
		front->stack[front->depth - 1] = swap;
	}
}

static void stack_select(struct front *front, const struct wave *wave)
{
	u64 live = front->mask & wave->live;

	if (front->depth == 0) {
		push(front, first_block(wave, wave->live), FLOW_EXIT, wave->live);
		if (lanes_before(wave, wave->live, front->stack[0].block) != wave->live)
			fail("lanes of a wave begin in different blocks");
	} else if (live) {
		u32 block = first_block(wave, live);

		if (lanes_before(wave, live, block) == live)
			front->stack[front->depth - 1].block = block;
		else
			stack_part(front, wave, live);
	}
	while (front->depth > 0) { /* what has arrived at its join, or ended, is done */
		struct entry *top = &front->stack[front->depth - 1];

		top->mask &= wave->live;
		if (top->mask && (top->block != top->reconvergence || front->depth == 1))
			break;
		front->depth--;
	}
	if (front->depth == 0)
		return;
	front->block = front->stack[front->depth - 1].block;
	front->mask = lanes_before(wave, front->stack[front->depth - 1].mask, front->block);
	if (front->mask != front->stack[front->depth - 1].mask)
		fail("lanes of wave %u lost each other", wave->index);
}

static void structured_select(struct front *front, const struct wave *wave)
{
	u32 best = FLOW_EXIT, block = FLOW_EXIT;

	for (u32 i = 0; i < wave->width; i++) {
		const struct lane *lane = lane_of(wave, i);

		if (lane->state != LANE_AT_BLOCK || flow_position(lane->block, flipped) >= best)
			continue;
		block = lane->block;
		best = flow_position(block, flipped);
	}
	front->block = block;
	front->mask = lanes_before(wave, wave->live, block);
}

/* All lanes of the front that are not at its end meet in a collective, or wait for it in vain. */
static void meet(struct front *front, const struct wave *wave)
{
	u64 arrived = 0;
	const struct lane *first = NULL;

	for (u32 i = 0; i < wave->width; i++) {
		struct lane *lane = lane_of(wave, i);

		if (!((front->mask >> i) & 1) ||
		    (lane->state != LANE_MEETING && lane->state != LANE_CONVERGING))
			continue;
		arrived |= (u64)1 << i;
		if (!first)
			first = lane;
	}
	if (!first)
		return;
	for (u32 i = 0; i < wave->width; i++) {
		struct lane *lane = lane_of(wave, i);

		if (!((arrived >> i) & 1))
			continue;
		if (lane->kind != first->kind || (lane->state == LANE_MEETING && lane->mask != arrived))
			fail("lane %u calls a collective over mask %#llx, but lanes %#llx of its wave "
			     "execute it",
			     lane->index, (unsigned long long)lane->mask, (unsigned long long)arrived);
		lane->result = collective_result(lane, arrived);
	}
	if (first->kind == STEP_WAVE_SYNC)
		memory_wave_sync((struct wave *)wave, arrived);
	for (u32 i = 0; i < wave->width; i++)
		if ((arrived >> i) & 1)
			lane_of(wave, i)->state = LANE_READY;
}

/* One primitive in each lane of the front. Return: some lane is not at its block's end. */
static bool round_of(struct front *front, const struct wave *wave)
{
	bool unfinished = false;

	if (front->inside)
		meet(front, wave);
	for (u32 i = 0; i < wave->width && !run.failed; i++) {
		struct lane *lane = lane_of(wave, i);

		if (!((front->mask >> i) & 1) || lane->state == LANE_DONE)
			continue;
		if (!front->inside || lane->state != LANE_AT_BLOCK)
			lane_resume(lane);
		unfinished |= lane->state != LANE_AT_BLOCK && lane->state != LANE_DONE;
	}
	front->inside = unfinished;
	return unfinished;
}

static void step_wave(const struct wave *wave)
{
	struct front *front = &fronts[wave->index];

	if (!front->inside) {
		if (structured)
			structured_select(front, wave);
		else
			stack_select(front, wave);
		if (!run.failed && ++run.blocks % 16 == 0)
			run.steps++; /* circles without primitives end, too */
	}
	if (!run.failed)
		round_of(front, wave);
}

static void lockstep_step(void)
{
	u32 first = (u32)random_below(run.wave_count);

	if (schedule_others())
		return;
	for (u32 i = 0; i < run.wave_count; i++) {
		const struct wave *wave = &run.waves[(first + i) % run.wave_count];

		if (wave->live) {
			step_wave(wave);
			return;
		}
	}
}

const struct strategy strategy_lockstep = {
	.name = "lockstep", .begin = lockstep_begin, .step = lockstep_step, .lockstep = true, .even = true
};
