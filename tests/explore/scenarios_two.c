/* SPDX-License-Identifier: BSD-3-Clause */
/* scenarios_two.c: sets in which lines of two storages meet, as a run begins with them. */
#include "explore.h"
#include "rig.h"
#include "scenario.h"
#include "scenarios.h"

enum { LATE = 8 }; /* so many times as long nothing may be done as in other cases: lanes count their tries */

static void one_set(void)
{
	rig.lines->sets = 1;
	rig.lines->set_magic = ~(u64)0;
}

/* Lines of the first set from @first on become the partner's. */
static void give_to_partner(u32 first)
{
	struct weir_set *set = weir_at(rig.lines->words, struct weir_set, 0);

	for (u32 way = first; way < WEIR_WAYS; way++)
		set->word[way].value_ += (u64)SCENARIO_BLOCKS << WEIR_LINE_KEY_SHIFT;
}

/* A set full of dirty lines of the partner's. */
void two_of_theirs(void)
{
	one_set();
	rig_leave_dirty(WEIR_WAYS);
	give_to_partner(0);
}

void two_stuck_fetch(void)
{
	one_set();
	rig.lost_lba = SCENARIO_STUCK_LBA;
}

/* A set full of dirty lines, of which one is the partner's. */
void two_stuck_write_back(void)
{
	two_stuck_fetch();
	run.hang_steps *= LATE;
	rig_leave_dirty(WEIR_WAYS);
	give_to_partner(SCENARIO_STUCK_LBA);
}

/* The partner ends nothing, and dies. */
void two_stuck_partner(void)
{
	one_set();
	rig.unsafe = true;
	run.hang_steps *= LATE;
	rig.stop_step = 1;
	rig.dead_step = 1 + random_below(2000);
}

/* That with its first command; the set's other lines are dirty, and could not be written. */
void two_unwritable(void)
{
	struct weir_set_policy *policy = weir_at(rig.lines->policies, struct weir_set_policy, 0);

	one_set();
	rig.unsafe = true;
	run.hang_steps *= LATE;
	rig.dead_after = 1;
	rig_leave_dirty(WEIR_WAYS - 1);
	for (u32 way = 0; way < WEIR_WAYS - 1; way++)
		policy->status[way].value_ =
			(u32)WEIR_STATUS_NVME | (u32)WEIR_GROUP_REQUEST | SCENARIO_WRITE_FAULT;
}
