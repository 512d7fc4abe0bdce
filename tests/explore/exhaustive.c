/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exhaustive.c: every schedule of a small case with few preemptions.
 *
 * A run is a list of choices; after it, the last choice that has an alternative is
 * changed and everything behind it forgotten (depth first). An agent that can go on
 * is interrupted at most `bound` times; where it cannot, every other agent is
 * tried. A lane that polled in vain sleeps until a word it looked at changes, the
 * controller until a doorbell rings, so spinning adds nothing; if everybody sleeps,
 * that is a hang, at once. Choices are made only before
 * accesses to shared memory: elsewhere their order does not matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exhaustive.h"
#include "explore.h"

enum { CHOICES_MOST = 1 << 16 };

struct choice {
	u8 taken, options;
};

static struct choice path[CHOICES_MOST];
static u32 length, at, preemptions, bound, current;
static u64 controller_slept_at;
static bool controller_sleeps, fixed;

void exhaustive_start(u32 preemption_bound)
{
	length = 0;
	bound = preemption_bound;
	fixed = false;
}

bool exhaustive_next(void)
{
	length = at < length ? at : length;
	while (length && path[length - 1].taken + 1u >= path[length - 1].options)
		length--;
	if (!length || fixed)
		return false;
	path[length - 1].taken++;
	return true;
}

/* Choices other than the first, as "place.choice+place.choice". */
void exhaustive_token(char *text, size_t bytes)
{
	size_t used = (size_t)snprintf(text, bytes, "p%u", bound);

	for (u32 i = 0; i < at && used + 16 < bytes; i++)
		if (path[i].taken)
			used += (size_t)snprintf(text + used, bytes - used, "+%u.%u", i, path[i].taken);
}

bool exhaustive_replay(const char *text)
{
	unsigned location, taken;
	int read = 0;

	if (sscanf(text, "p%u%n", &bound, &read) != 1)
		return false;
	memset(path, 0, sizeof(path));
	length = 0;
	for (text += read; *text; text += read) {
		if (sscanf(text, "+%u.%u%n", &location, &taken, &read) != 2 || location >= CHOICES_MOST)
			return false;
		path[location].taken = (u8)taken;
		length = location + 1;
	}
	fixed = true;
	return true;
}

static u32 choose(u32 options)
{
	u32 location = at++;

	if (location >= CHOICES_MOST) {
		fail("a run of more than %d choices", CHOICES_MOST);
		return 0;
	}
	if (location >= length) {
		path[location].taken = 0;
		length = location + 1;
	}
	path[location].options = (u8)options;
	return path[location].taken < options ? path[location].taken : 0;
}

static bool enabled(u32 agent)
{
	const struct lane *lane = &run.lanes[agent];

	if (agent == AGENT_CONTROLLER)
		return !controller_sleeps || controller_slept_at != run.rings;
	return lane_runnable(lane) && (lane->state != LANE_RELAXED || !lane->sleeps);
}

/* Does it matter when the lane's next step happens? */
static bool shared_step(u32 agent)
{
	const struct lane *lane = &run.lanes[agent];
	u32 kind;

	if (agent == AGENT_CONTROLLER || !lane->logged)
		return true;
	kind = lane->log[(lane->logged - 1) % LOGGED_STEPS].kind;
	return kind <= STEP_MMIO || kind == STEP_PLAIN_LOAD || kind == STEP_PLAIN_STORE ||
	       kind == STEP_ACTIVE;
}

static void exhaustive_begin(void)
{
	at = 0;
	preemptions = 0;
	current = AGENTS;
	controller_sleeps = false;
}

static void run_agent(u32 agent)
{
	if (agent != AGENT_CONTROLLER) {
		schedule_lane(&run.lanes[agent]);
		return;
	}
	run.steps++;
	controller_sleeps = !rig_poll();
	controller_slept_at = run.rings;
}

/* The next lane that the wave of the current one, in a collective, waits for. */
static u32 sibling(u32 *agents)
{
	const struct lane *lane = &run.lanes[current];

	if (current >= MOST_LANES || lane->state != LANE_MEETING)
		return 0;
	for (u32 i = 0; i < lane->wave->width; i++) {
		agents[0] = lane->wave->first + i;
		if (((lane->mask >> i) & 1) && lane_runnable(&run.lanes[agents[0]]) && enabled(agents[0]))
			return 1;
	}
	return 0;
}

static void exhaustive_step(void)
{
	u32 agents[AGENTS], count = 0;
	bool goes_on = current != AGENTS && enabled(current) &&
		       (current == AGENT_CONTROLLER || run.lanes[current].state != LANE_RELAXED);

	if (goes_on)
		agents[count++] = current;
	else
		count = sibling(agents); /* if it waits for its wave, that is all there is to try */
	if (count == 0 || (goes_on && preemptions < bound && shared_step(current))) {
		for (u32 i = 0; i < run.lane_count; i++)
			if (enabled(i) && i != current)
				agents[count++] = i;
		if (current != AGENT_CONTROLLER && enabled(AGENT_CONTROLLER))
			agents[count++] = AGENT_CONTROLLER;
		if (count == 0 && current != AGENTS && enabled(current))
			agents[count++] = current;
	}
	if (count == 0) {
		fail("hang: every lane polls or waits, and nothing will change any more");
		return;
	}
	if (count > 1) {
		u32 taken = choose(count);

		preemptions += goes_on && taken != 0;
		current = agents[taken];
	} else {
		current = agents[0];
	}
	run_agent(current);
}

const struct strategy strategy_exhaustive = { .name = "exhaustive",
					      .begin = exhaustive_begin,
					      .step = exhaustive_step };
