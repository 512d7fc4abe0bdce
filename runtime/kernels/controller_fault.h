/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_fault.h: which commands the fault table matches.
 *
 * Owns: the counts of the rows (fault_row.h), by lanes: commands that one wave fetched together are counted
 * in their order. What matches a command is noted, and others carry it out.
 */
#ifndef WEIR_KERNELS_CONTROLLER_FAULT_H
#define WEIR_KERNELS_CONTROLLER_FAULT_H

#include "controller.h"
#include "fault_row.h"

/**
 * struct weir_controller_matched - what happens to one lane's command
 * @rows: for each of @kinds the row, six bits from 6 x kind on
 * @kinds: 1 << kind for each
 */
struct weir_controller_matched {
	u64 rows;
	u32 kinds;
};

WEIR_FN WEIR_GLOBAL struct weir_fault_row *weir_controller_row(WEIR_GLOBAL struct weir_controller_args *args,
							       u64 rows, u32 kind)
{
	return weir_at(args->faults, struct weir_fault_row, (rows >> (6 * kind)) & (WEIR_VIRTUAL_FAULTS - 1));
}

/* How many of @wanted the row's count still allows: taken from it. */
WEIR_FN u32 weir_controller_granted(WEIR_GLOBAL struct weir_fault_row *fault, u64 lanes, u32 wanted)
{
	u64 done = wanted == 0 || fault->count == 0, matched, got = wanted;

	while (!done) { /* the same in all lanes; fails only if another wave got some */
		weir_reconverge();
		/* relaxed: the counts of a row order nothing but themselves */
		matched = weir_broadcast_u64(
			lanes, weir_elected(lanes) ? weir_load_u64_relaxed_dev(&fault->matched) : 0);
		got = fault->count - matched < wanted ? fault->count - matched : wanted;
		if (weir_elected(lanes))
			done = weir_cas_u64_relaxed_dev(&fault->matched, matched, matched + got) == matched;
		done = weir_broadcast_u64(lanes, done);
	}
	return (u32)got;
}

/* Take back what did not happen after all. */
WEIR_FN void weir_controller_spare(WEIR_GLOBAL struct weir_fault_row *fault)
{
	if (fault->count) /* relaxed: as above */
		(void)weir_add_u64_relaxed_dev(&fault->matched, ~(u64)0);
}

/* Whether one row strikes this lane's command, if it has one: @here. */
WEIR_FN u32 weir_controller_matched_by(WEIR_GLOBAL struct weir_fault_row *fault, u64 lanes, u32 queue,
				       u32 here, struct weir_controller_command command)
{
	u64 meant = weir_ballot(lanes, here && weir_fault_is_for(fault, queue, command.cdw0 & 0xff,
								 command.lba, command.blocks)),
	    number = 0, hits;
	u32 lane = weir_lane(), granted;

	if (meant == 0) /* the same in all lanes */
		return 0;
	if (weir_elected(lanes)) /* relaxed: as above */
		number = weir_add_u64_relaxed_dev(&fault->seen, weir_popcount(meant));
	number = weir_broadcast_u64(lanes, number) + weir_rank(meant, lane);
	hits = weir_ballot(lanes, (meant >> lane & 1) && weir_fault_matches(fault, number));
	granted = weir_controller_granted(fault, lanes, weir_popcount(hits));
	return (hits >> lane & 1) && weir_rank(hits, lane) < granted;
}

/**
 * weir_controller_strike() - what the table does to the commands of a claim
 * @queue: identifier of their queue
 * @here: this lane has one
 *
 * All lanes together. Of two rows of one kind the later one tells how.
 */
WEIR_FN struct weir_controller_matched weir_controller_strike(WEIR_GLOBAL struct weir_controller_args *args,
							      u64 lanes, u32 queue, u32 here,
							      struct weir_controller_command command)
{
	struct weir_controller_matched matched;

	matched.rows = 0;
	matched.kinds = 0;
	for (u32 i = 0; i < args->fault_count; i++) {
		WEIR_GLOBAL struct weir_fault_row *fault = weir_at(args->faults, struct weir_fault_row, i);

		if (weir_controller_matched_by(fault, lanes, queue, here, command)) {
			matched.kinds |= (u32)1 << fault->kind;
			matched.rows &= ~((u64)(WEIR_VIRTUAL_FAULTS - 1) << (6 * fault->kind));
			matched.rows |= (u64)i << (6 * fault->kind);
		}
		weir_reconverge();
	}
	return matched;
}

#endif
