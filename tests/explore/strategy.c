/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.c: who runs next, when lanes are independent of each other.
 *
 * random        every agent has the same chance at every step
 * independent   an agent runs until it polls or cannot go on, then another one
 * pct           priorities, changed at a few random steps (Burckhardt et al., ASPLOS'10)
 * starve        one wave, or the controller, gets almost no steps
 * lag           one lane gets almost no steps, wherever its wave is
 * rested        of a wave, a lane that rested a short while ago
 *
 * The controller and the arrival of delayed stores are agents too.
 */
#include "explore.h"

enum {
	PCT_CHANGES_MOST = 6,
	PCT_LENGTH = 3000,
	STARVED_SHARE = 48,
	STARVED_LIMIT = 16,
	SHORT_REST = 64,
	RESTED_LATELY = 512
};

/* A runnable lane, each with the same chance; NULL if everybody waits for somebody. */
static struct lane *any_lane(void)
{
	u32 first = (u32)random_below(run.lane_count);

	for (u32 i = 0; i < run.lane_count; i++) {
		struct lane *lane = &run.lanes[(first + i) % run.lane_count];

		if (lane_runnable(lane))
			return lane;
	}
	return NULL;
}

static void run_lane(struct lane *lane)
{
	if (lane)
		schedule_lane(lane);
	else
		fail("lanes wait for each other in collectives that cannot meet");
}

static void nothing(void)
{
}

static void random_step(void)
{
	if (!schedule_others())
		run_lane(any_lane());
}

const struct strategy strategy_random = {
	.name = "random", .begin = nothing, .step = random_step, .even = true
};

/* independent: who runs until it polls */
static u32 current;

static void independent_begin(void)
{
	current = (u32)random_below(run.lane_count);
}

static u32 any_agent(void)
{
	u64 choice = random_below(run.lane_count + (run.weak ? 2 : 1));

	if (choice < run.lane_count) {
		struct lane *lane = any_lane();

		return lane ? lane->index : AGENT_CONTROLLER;
	}
	return choice == run.lane_count ? AGENT_CONTROLLER : AGENT_MEMORY;
}

/* Run @agent once. Return: it can go on and has not just polled in vain. */
static bool run_agent(u32 agent)
{
	if (agent == AGENT_CONTROLLER) {
		run.steps++;
		return rig_poll();
	}
	if (agent == AGENT_MEMORY) {
		run.steps++;
		return memory_drain_one();
	}
	schedule_lane(&run.lanes[agent]);
	return lane_runnable(&run.lanes[agent]) && run.lanes[agent].state != LANE_RELAXED;
}

static void check_runnable(void)
{
	for (u32 i = 0; i < run.lane_count; i++)
		if (lane_runnable(&run.lanes[i]))
			return;
	fail("lanes wait for each other in collectives that cannot meet");
}

static void independent_step(void)
{
	if (current < MOST_LANES && !lane_runnable(&run.lanes[current])) {
		check_runnable();
		current = any_agent();
	} else if (!run_agent(current)) {
		current = any_agent();
	}
}

const struct strategy strategy_independent = { .name = "independent",
					       .begin = independent_begin,
					       .step = independent_step };

/* pct: the highest priority runs; who polls in vain goes to the end of the line */
static i64 priorities[AGENTS];
static u64 change_steps[PCT_CHANGES_MOST];
static i64 lowest;

static void pct_begin(void)
{
	u32 changes = (u32)random_below(PCT_CHANGES_MOST);

	lowest = 0;
	for (u32 i = 0; i < AGENTS; i++)
		priorities[i] = 1 + (i64)random_below(1 << 20);
	for (u32 i = 0; i < PCT_CHANGES_MOST; i++)
		change_steps[i] = i < changes ? random_below(PCT_LENGTH) : ~(u64)0;
}

static u32 pct_highest(void)
{
	u32 best = AGENT_CONTROLLER;

	if (run.weak && memory_pending() && priorities[AGENT_MEMORY] > priorities[best])
		best = AGENT_MEMORY;
	for (u32 i = 0; i < run.lane_count; i++)
		if (lane_runnable(&run.lanes[i]) && priorities[i] > priorities[best])
			best = i;
	return best;
}

static void pct_step(void)
{
	u32 agent = pct_highest();

	check_runnable();
	for (u32 i = 0; i < PCT_CHANGES_MOST; i++) {
		if (run.steps >= change_steps[i]) {
			change_steps[i] = ~(u64)0;
			priorities[agent] = --lowest;
			return;
		}
	}
	if (!run_agent(agent))
		priorities[agent] = --lowest;
}

const struct strategy strategy_pct = { .name = "pct", .begin = pct_begin, .step = pct_step };

/* starve: as random, but the victim mostly has to wait */
static u32 victim; /* a wave, or run.wave_count for the controller; of lag a lane */

static void starve_begin(void)
{
	victim = (u32)random_below(run.wave_count + 1);
	run.hang_steps *= STARVED_LIMIT; /* what the victim holds, others have to wait for */
}

static bool starves(const struct lane *lane)
{
	return lane->wave->index == victim;
}

/* Mostly not @lane if it is a victim, but the next one that is none and can go on. */
static struct lane *rather_than(struct lane *lane, bool (*is_victim)(const struct lane *lane), bool mercy)
{
	if (!lane || mercy || !is_victim(lane))
		return lane;
	for (u32 i = 1; i < run.lane_count; i++) {
		struct lane *other = &run.lanes[(lane->index + i) % run.lane_count];

		if (!is_victim(other) && lane_runnable(other))
			return other;
	}
	return lane;
}

static void starve_step(void)
{
	bool mercy = random_below(STARVED_SHARE) == 0;
	struct lane *lane = rather_than(any_lane(), starves, mercy);

	if ((victim != run.wave_count || mercy) && schedule_others())
		return;
	if (victim == run.wave_count && run.weak && random_below(run.memory_share) == 0 && memory_drain_one())
		return;
	run_lane(lane);
}

const struct strategy strategy_starve = { .name = "starve", .begin = starve_begin, .step = starve_step };

/* lag: the same of one lane, which its wave waits for at the next collective only */
static bool lags(const struct lane *lane)
{
	return lane->index == victim;
}

static void lag_begin(void)
{
	victim = (u32)random_below(run.lane_count);
	run.hang_steps *= STARVED_LIMIT;
}

static void lag_step(void)
{
	bool mercy = random_below(STARVED_SHARE) == 0;
	struct lane *lane = rather_than(any_lane(), lags, mercy);

	if (!schedule_others())
		run_lane(lane);
}

const struct strategy strategy_lag = { .name = "lag", .begin = lag_begin, .step = lag_step };

/*
 * rested: of a wave some lane whose rest ended a short while ago, or soon will. So lanes that rest shortly go
 * on at once, and those of their wave that do not rest wait until all of them rest for long: what an H100 was
 * seen to do under a checker (docs/porting.md).
 */
static bool awake(const struct lane *lane)
{
	return lane->wakes <= run.steps + SHORT_REST;
}

static struct lane *rested_of(const struct wave *wave)
{
	u32 first = (u32)random_below(wave->width);
	struct lane *other = NULL;

	for (u32 i = 0; i < wave->width; i++) {
		struct lane *lane = &run.lanes[wave->first + (first + i) % wave->width];

		if (!lane_runnable(lane) || !awake(lane))
			continue;
		if (lane->wakes && lane->wakes + RESTED_LATELY > run.steps)
			return lane;
		other = lane;
	}
	return other;
}

static void rested_begin(void)
{
	run.hang_steps *= STARVED_LIMIT; /* rests grow for a while before all lanes of a wave rest at once */
}

static void rested_step(void)
{
	u32 first = (u32)random_below(run.wave_count);
	struct lane *lane = NULL;

	if (schedule_others())
		return;
	for (u32 i = 0; i < run.wave_count && !lane; i++)
		lane = rested_of(&run.waves[(first + i) % run.wave_count]);
	if (lane) {
		schedule_lane(lane);
	} else {
		check_runnable();
		run.steps++; /* all who could go on rest */
	}
}

const struct strategy strategy_rested = { .name = "rested", .begin = rested_begin, .step = rested_step };
