/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wave.h"

/* A thread outside any kernel is a wave of one lane. */
static struct weir_cpu_lane host_lane = { .lanes = 1, .threads = 1 };

__thread struct weir_cpu_lane *weir_cpu_self = &host_lane;

static struct cpu_lane *current(void)
{
	return (struct cpu_lane *)weir_cpu_self;
}

/* Leave the lane for its worker; returns when the lane runs again. */
static void yield(struct cpu_lane *lane, enum cpu_lane_state state)
{
	lane->state = state;
	weir_fiber_switch(&lane->fiber, lane->wave->worker);
}

static void run(struct cpu_lane *lane)
{
	weir_cpu_self = &lane->self;
	weir_fiber_switch(lane->wave->worker, &lane->fiber);
	weir_cpu_self = &host_lane;
}

void cpu_lane_finish(struct cpu_lane *lane)
{
	lane->wave->live--;
	yield(lane, CPU_LANE_DONE);
}

/* Run what is READY until nothing is. */
static void run_ready(struct cpu_wave *wave)
{
	bool any;

	do {
		any = false;
		for (u32 i = 0; i < wave->width; i++) {
			if (wave->lanes[i].state != CPU_LANE_READY)
				continue;
			run(&wave->lanes[i]);
			any = true;
		}
	} while (any);
}

/*
 * Let the lanes go on that wait in weir_active() at the place where the first of
 * them waits: everyone who could join has arrived, as far as that can be known.
 */
static bool release_converged(struct cpu_wave *wave)
{
	const void *site = NULL;
	u64 mask = 0;

	for (u32 i = 0; i < wave->width; i++) {
		struct cpu_lane *lane = &wave->lanes[i];

		if (lane->state != CPU_LANE_CONVERGING || (site && lane->site != site))
			continue;
		site = lane->site;
		mask |= (u64)1 << i;
	}
	for (u32 i = 0; i < wave->width; i++) {
		if (!((mask >> i) & 1))
			continue;
		wave->lanes[i].result = mask;
		wave->lanes[i].state = CPU_LANE_READY;
	}
	return mask != 0;
}

/* Lanes that poll are ready for the next pass. Return: whether there were any. */
static bool wake_relaxed(struct cpu_wave *wave)
{
	bool any = false;

	wave->polls = UINT32_MAX;
	for (u32 i = 0; i < wave->width; i++) {
		struct cpu_lane *lane = &wave->lanes[i];

		if (lane->state != CPU_LANE_RELAXED)
			continue;
		lane->state = CPU_LANE_READY;
		if (lane->polls < wave->polls)
			wave->polls = lane->polls;
		any = true;
	}
	return any;
}

/* Where each lane of the wave waits, between what is wrong and what to do. */
static void die(const struct cpu_wave *wave, const char *what, const char *rule)
{
	static const char *const names[] = { "ballot", "shuffle", "match", "wave sync" };

	fprintf(stderr, "weir: %s:\n", what);
	for (u32 i = 0; i < wave->width; i++) {
		const struct cpu_lane *lane = &wave->lanes[i];

		if (lane->state == CPU_LANE_MEETING)
			fprintf(stderr, "  lane %u (thread %llu): %s over mask %#llx\n", i,
				(unsigned long long)lane->self.thread, names[lane->kind],
				(unsigned long long)lane->mask);
	}
	fprintf(stderr, "  %s\n", rule);
	abort();
}

bool cpu_wave_pass(struct cpu_wave *wave)
{
	do {
		run_ready(wave);
	} while (release_converged(wave));
	if (wave->live == 0)
		return true;
	if (!wake_relaxed(wave))
		die(wave, "lanes of a wave wait for each other in collectives that cannot meet",
		    "every lane of a mask must call the same collective with the same mask");
	return false;
}

u64 weir_cpu_active(void)
{
	struct cpu_lane *lane = current();

	lane->site = __builtin_return_address(0);
	yield(lane, CPU_LANE_CONVERGING);
	return lane->result;
}

static bool all_here(const struct cpu_lane *lane)
{
	for (u32 i = 0; i < lane->wave->width; i++) {
		const struct cpu_lane *other = &lane->wave->lanes[i];

		if (!((lane->mask >> i) & 1))
			continue;
		if (other->state != CPU_LANE_MEETING || other->kind != lane->kind ||
		    other->mask != lane->mask)
			return false;
	}
	return true;
}

/* The lanes of a collective have all come: none may have left others of its wave waiting for it in another
 * one. */
static void check_left_behind(const struct cpu_lane *lane)
{
	const struct cpu_wave *wave = lane->wave;

	for (u32 i = 0; i < wave->width; i++)
		if (!((lane->mask >> i) & 1) && wave->lanes[i].state == CPU_LANE_MEETING &&
		    (wave->lanes[i].mask & lane->mask))
			die(wave,
			    "lanes of a wave meet among themselves, while others of it wait for them "
			    "(WEIR_CPU_STRICT)",
			    "all of a wave that go on together must call all collectives, those with nothing "
			    "to say too");
}

static u64 result_for(const struct cpu_lane *lane)
{
	const struct cpu_lane *lanes = lane->wave->lanes;
	u64 result = 0;

	if (lane->kind == CPU_SHUFFLE)
		return lanes[lane->from].value;
	for (u32 i = 0; i < lane->wave->width; i++) {
		if (!((lane->mask >> i) & 1))
			continue;
		if (lane->kind == CPU_BALLOT ? lanes[i].value != 0 : lanes[i].value == lane->value)
			result |= (u64)1 << i;
	}
	return result;
}

/* The last lane to arrive computes everybody's result before any of them moves on. */
static u64 meet(enum cpu_collective kind, u64 mask, u64 value, u32 from)
{
	struct cpu_lane *lane = current();

	lane->kind = kind;
	lane->mask = mask;
	lane->value = value;
	lane->from = from;
	lane->state = CPU_LANE_MEETING;
	weir_fiber_hook_meet(lane->wave);
	if (!all_here(lane)) {
		yield(lane, CPU_LANE_MEETING);
		weir_fiber_hook_part(lane->wave);
		return lane->result;
	}
	if (lane->wave->strict)
		check_left_behind(lane);
	for (u32 i = 0; i < lane->wave->width; i++)
		if ((mask >> i) & 1)
			lane->wave->lanes[i].result = result_for(&lane->wave->lanes[i]);
	for (u32 i = 0; i < lane->wave->width; i++)
		if ((mask >> i) & 1)
			lane->wave->lanes[i].state = CPU_LANE_READY;
	weir_fiber_hook_part(lane->wave);
	return lane->result;
}

u64 weir_cpu_ballot(u64 mask, u32 predicate)
{
	return meet(CPU_BALLOT, mask, predicate, 0);
}

u64 weir_cpu_shuffle(u64 mask, u64 value, u32 from)
{
	return meet(CPU_SHUFFLE, mask, value, from);
}

u64 weir_cpu_match(u64 mask, u64 value)
{
	return meet(CPU_MATCH, mask, value, 0);
}

void weir_cpu_wave_sync(u64 mask)
{
	(void)meet(CPU_SYNC, mask, 0, 0);
}

void cpu_rest(u32 polls)
{
	struct timespec rest = { .tv_nsec = WEIR_RELAX_NS(polls) };

	if (polls < WEIR_RELAX_AWAKE)
		sched_yield();
	else
		nanosleep(&rest, NULL);
}

void weir_cpu_relax(u32 polls)
{
	if (weir_cpu_self == &host_lane) {
		cpu_rest(polls);
	} else {
		current()->polls = polls;
		yield(current(), CPU_LANE_RELAXED);
	}
}

u64 weir_cpu_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}
