/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/lanes_port.c: the primitives of the explorer's port for lanes of a simulated client.
 *
 * Owns: where a lane may be interrupted: at each access to a word that others have. Accesses happen in the
 * order of the program: what weaker orders allow is the explorer's to find.
 */
#include <stdlib.h>
#include <string.h>

#include "../explore/hooks.h"
#include "lanes.h"
#include "sim.h"

enum {
	SWITCH_OF = 24, /* accesses, one gives way */
	SWITCH_NS = 20000,
	PAUSE_OF = 8000, /* one pauses for long; where all are slow: */
	SLOW_PAUSE_OF = 300,
	PAUSE_MS = 400,
	MAP_PAUSE_MS = 1500,
	POLL_MS = 5,
	RELAX_FACTOR = 40,
	MOST_RELAX_NS = 3000000,
};

const struct explore_identity *explore_self;
static u64 pause_of;

/* The lane goes on as itself, whoever ran meanwhile. */
static void give_way(u64 ns)
{
	const struct explore_identity *self = explore_self;

	sim_sleep(ns);
	explore_self = self;
}

/* It pauses for some time, or until lanes have the next map. */
static void pause_long(void)
{
	u64 map = lane_map(), end = sim.now + MAP_PAUSE_MS * SIM_MS;

	if (sim_chance(1, 2)) {
		give_way(sim_below(PAUSE_MS) * SIM_MS);
		return;
	}
	while (lane_map() == map && sim.now < end)
		give_way(POLL_MS * SIM_MS);
}

static void access_word(void)
{
	if (sim_chance(1, pause_of))
		pause_long();
	else if (sim_chance(1, SWITCH_OF))
		give_way(sim_below(SWITCH_NS));
}

void lanes_draw_pauses(void)
{
	pause_of = sim_chance(1, 3) ? SLOW_PAUSE_OF : PAUSE_OF;
}

void lane_request_run(struct lane_request *request, u64 lane, u64 lanes)
{
	struct explore_identity self = { .lanes = 1, .thread = lane, .threads = lanes, .wave = lane };

	explore_self = &self;
	lane_kernel(request);
}

u64 explore_load(const void *address, u32 bytes, u32 order)
{
	u64 value = 0;

	(void)order;
	access_word();
	memcpy(&value, address, bytes);
	return value;
}

void explore_store(void *address, u32 bytes, u64 value, u32 order)
{
	(void)order;
	access_word();
	memcpy(address, &value, bytes);
}

u64 explore_change(void *address, u32 bytes, u32 change, u64 value, u64 expected, u32 order)
{
	u64 old = 0, made = value;

	(void)order;
	access_word();
	memcpy(&old, address, bytes);
	switch ((enum explore_change)change) {
	case EXPLORE_ADD: made = old + value; break;
	case EXPLORE_AND: made = old & value; break;
	case EXPLORE_OR: made = old | value; break;
	case EXPLORE_EXCHANGE: break;
	case EXPLORE_CAS: made = old == expected ? value : old; break;
	}
	memcpy(address, &made, bytes);
	return old;
}

void explore_mmio_store(void *address, u32 value)
{
	access_word();
	lane_rang(address, value);
}

void explore_order_loads(void)
{
}

void explore_fence_to_controller(void)
{
}

void explore_fence_from_controller(void)
{
}

void explore_fence_with_controller(void)
{
}

u64 explore_active(void)
{
	return 1;
}

u64 explore_ballot(u64 mask, u32 predicate)
{
	return mask & (predicate != 0);
}

u64 explore_shuffle(u64 mask, u64 value, u32 from)
{
	(void)mask;
	(void)from;
	return value;
}

u64 explore_match(u64 mask, u64 value)
{
	(void)value;
	return mask;
}

void explore_wave_sync(u64 mask)
{
	(void)mask;
}

void explore_reconverge(void)
{
}

/* Whoever posts a completion wakes those that wait. */
void explore_relax(u32 ns)
{
	u64 most = (u64)ns * RELAX_FACTOR;

	give_way(sim_below(most < MOST_RELAX_NS ? most + 1 : MOST_RELAX_NS));
}

u64 explore_clock_ns(void)
{
	return sim.now;
}
