/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_line.h: a queue's line of commands that were carried out and are not completed.
 *
 * Owns: its entries, when each is due, and how a claim's commands get into it: their turns at the I/O rate,
 * and what faults do to them at once. controller_post.h and controller_timed.h take them out.
 */
#ifndef WEIR_KERNELS_CONTROLLER_LINE_H
#define WEIR_KERNELS_CONTROLLER_LINE_H

#include "controller_fault.h"

enum {
	WEIR_CONTROLLER_AHEAD_NS = 200000, /* turns taken in advance; as the host's controller */
	WEIR_CONTROLLER_TICKS_LOG2 = 6,    /* of a nanosecond, in which turns are counted */
};

/* What an entry is, or what becomes of it. */
enum {
	WEIR_CONTROLLER_IN_LINE = 0,
	WEIR_CONTROLLER_GONE = 1,    /* posted */
	WEIR_CONTROLLER_DROPPED = 2, /* never to be posted */
	WEIR_CONTROLLER_WAITING = 3, /* late, until its new due time */
	WEIR_CONTROLLER_GROUPED = 4, /* this plus its row: until there are enough of it */
};

/**
 * struct weir_controller_entry - a command that was carried out and is not completed
 * @filled: its number plus one, once the rest is there
 * @dw3: of its completion, without the phase
 * @due_ns: not before
 * @rows, @kinds: as in struct weir_controller_matched; those to come
 * @state: WEIR_CONTROLLER_IN_LINE and so on; the lock's
 */
struct weir_controller_entry {
	weir_shared_u32 filled;
	u32 dw3;
	weir_shared_u64 due_ns;
	u64 rows;
	u32 kinds;
	u32 state;
};

WEIR_ASSERT_SIZE(struct weir_controller_entry, 32);

/**
 * struct weir_controller_later - a queue's completions that are not posted
 * @entries: struct weir_controller_entry[depth], by number
 * @groups: u32 per fault row: entries that it holds
 * @resume_ns: nothing is fetched before
 * @lock: 1 while a wave posts; what follows is its own. Numbers are modulo 2^32
 * @oldest: all below have no entry any more
 * @next: front of the line; all below are posted, dropped or held
 * @held: entries behind the front of the line
 * @grouped: of these, in groups
 * @posted: entries of the completion ring written
 * @draws: lots drawn
 */
struct weir_controller_later {
	weir_addr entries;
	weir_addr groups;
	weir_shared_u64 resume_ns;
	weir_shared_u32 lock;
	weir_shared_u32 oldest;
	weir_shared_u32 next;
	weir_shared_u32 held;
	u32 grouped;
	u32 posted;
	u32 draws;
	u32 reserved[3];
};

WEIR_ASSERT_SIZE(struct weir_controller_later, 64);

/** struct weir_controller_context - what the wave that has a queue's lock works with */
struct weir_controller_context {
	struct weir_controller_view view;
	WEIR_GLOBAL struct weir_controller_later *later;
	u64 lanes;
	u64 now;
};

/* @time is @now or before it. */
WEIR_FN u32 weir_controller_passed(u64 time, u64 now)
{
	return (i64)(time - now) <= 0;
}

WEIR_FN u64 weir_controller_clock(u64 lanes)
{
	return weir_broadcast_u64(lanes, weir_elected(lanes) ? weir_clock_ns() : 0);
}

WEIR_FN WEIR_GLOBAL struct weir_controller_later *weir_controller_later_of(struct weir_controller_view view)
{
	return weir_at(view.queue->later, struct weir_controller_later, 0);
}

WEIR_FN WEIR_GLOBAL struct weir_controller_entry *weir_controller_entry_of(struct weir_controller_view view,
									   u32 number)
{
	return weir_at(weir_controller_later_of(view)->entries, struct weir_controller_entry,
		       number & weir_controller_mask(view));
}

/* What @count completions cost of the time, in ticks; rounded up, so that the rate is never exceeded. */
WEIR_FN u64 weir_controller_cost(WEIR_GLOBAL struct weir_controller_args *args, u64 count)
{
	return ((count * 1000000000u << WEIR_CONTROLLER_TICKS_LOG2) + args->iops - 1) / args->iops;
}

/*
 * How far the turns that were taken reach past @clock, in ticks. Before the first one was taken @word is 0,
 * and lies behind wherever the clock stands: a device's may count from 1970.
 */
WEIR_FN i64 weir_controller_ahead(u64 word, u64 clock)
{
	return word ? (i64)(word - clock) : 0;
}

/*
 * Take @count turns at the I/O rate. Return: ticks from @now to the first of them. Turns
 * that nobody took are lost: a word that lies behind is swapped for the present, once;
 * one that is ahead is only added to. One lane calls.
 */
WEIR_FN u64 weir_controller_iterations(WEIR_GLOBAL struct weir_controller_args *args, u64 now, u32 count)
{
	WEIR_GLOBAL weir_shared_u64 *rate = weir_at(args->rate, weir_shared_u64, 0);
	u64 clock = now << WEIR_CONTROLLER_TICKS_LOG2, cost = weir_controller_cost(args, count);
	u64 word =
		weir_load_u64_relaxed_dev(rate); /* relaxed, all three: the word carries nothing but itself */

	while (weir_controller_ahead(word, clock) <= 0) {
		u64 seen = weir_cas_u64_relaxed_dev(rate, word, clock + cost);

		if (seen == word)
			return 0;
		word = seen; /* another wave has moved it, most likely to the present */
	}
	return weir_add_u64_relaxed_dev(rate, cost) - clock;
}

/* Commands that a wave may fetch just now: none of a stalled queue, and few turns in advance. One lane calls.
 */
WEIR_FN u32 weir_controller_quota(WEIR_GLOBAL struct weir_controller_args *args,
				  struct weir_controller_view view)
{
	u64 now = weir_clock_ns(), resume, room;
	i64 ahead;

	if (args->fault_count) {
		/* relaxed: a time to wait for; nothing is read on its strength */
		resume = weir_load_u64_relaxed_dev(&weir_controller_later_of(view)->resume_ns);
		if (resume && !weir_controller_passed(resume, now))
			return 0;
	}
	if (!args->iops)
		return ~(u32)0;
	/* relaxed: an estimate; turns are taken by weir_controller_iterations() */
	ahead = weir_controller_ahead(weir_load_u64_relaxed_dev(weir_at(args->rate, weir_shared_u64, 0)),
				      now << WEIR_CONTROLLER_TICKS_LOG2);
	room = (u64)WEIR_CONTROLLER_AHEAD_NS << WEIR_CONTROLLER_TICKS_LOG2;
	if (ahead >= (i64)room)
		return 0;
	room = (room - (u64)(ahead > 0 ? ahead : 0)) / weir_controller_cost(args, 1) + 1;
	return room < ~(u32)0 ? (u32)room : ~(u32)0;
}

/*
 * Put this lane's command in the line: all of its entry but that it is filled. Before the
 * data is moved, so that the lane need not remember it.
 */
WEIR_FN void weir_controller_note(struct weir_controller_view view, u32 number, u64 due_ns, u32 dw3,
				  struct weir_controller_matched matched)
{
	WEIR_GLOBAL struct weir_controller_entry *entry = weir_controller_entry_of(view, number);

	entry->dw3 = dw3;
	entry->rows = matched.rows;
	entry->kinds = matched.kinds;
	entry->state = WEIR_CONTROLLER_IN_LINE;
	weir_store_u64_relaxed_dev(&entry->due_ns, due_ns); /* relaxed: controller.T1 follows */
}

/* What happens to a matched command at once. Return: its status. */
WEIR_FN u32 weir_controller_inject(WEIR_GLOBAL struct weir_controller_args *args,
				   struct weir_controller_view view, struct weir_controller_matched matched,
				   u32 status, u64 now)
{
	if (matched.kinds >> WEIR_VIRTUAL_FAULT_STALL & 1) /* relaxed: as where it is read */
		weir_store_u64_relaxed_dev(
			&weir_controller_later_of(view)->resume_ns,
			now + (u64)weir_controller_row(args, matched.rows, WEIR_VIRTUAL_FAULT_STALL)->us *
					1000);
	if (matched.kinds >> WEIR_VIRTUAL_FAULT_STATUS & 1)
		return weir_controller_row(args, matched.rows, WEIR_VIRTUAL_FAULT_STATUS)->code;
	return status;
}

/* When this lane's command of a claim is due: after the latency, and not before its turn. */
WEIR_FN u64 weir_controller_due(WEIR_GLOBAL struct weir_controller_args *args, u64 lanes, u64 now, u32 count)
{
	u64 latency = args->latency_ns, iteration = 0;

	if (args->iops) {
		iteration = weir_broadcast_u64(
			lanes, weir_elected(lanes) ? weir_controller_iterations(args, now, count) : 0);
		iteration += weir_controller_cost(args, weir_lane());
		iteration = (iteration + ((u64)1 << WEIR_CONTROLLER_TICKS_LOG2) - 1) >>
			    WEIR_CONTROLLER_TICKS_LOG2;
	}
	return now + (latency > iteration ? latency : iteration);
}

/*
 * What the faults do to a claim's command at once, and its place in the line; @count
 * commands. Return: its length, if it is carried out.
 */
WEIR_FN u32 weir_controller_begin(WEIR_GLOBAL struct weir_controller_args *args,
				  struct weir_controller_view view, u64 lanes,
				  struct weir_controller_claim claim)
{
	u32 here = weir_lane() < claim.count;
	u64 now = weir_controller_clock(lanes), due_ns;
	struct weir_controller_matched matched;

	matched.rows = 0;
	matched.kinds = 0;
	if (args->fault_count)
		matched = weir_controller_strike(args, lanes, view.id, here, claim.command);
	if (matched.kinds)
		claim.command.status = weir_controller_inject(args, view, matched, claim.command.status, now);
	due_ns = weir_controller_due(args, lanes, now, claim.count);
	if (here)
		weir_controller_note(view, claim.first + weir_lane(), due_ns,
				     weir_controller_dw3(claim.command), matched);
	weir_reconverge();
	return claim.command.status == NVME_STATUS_SUCCESS ? claim.command.bytes : 0;
}

/* Carry out a claim, and put its completions off until they are due. */
WEIR_FN void weir_controller_carry_out(WEIR_GLOBAL struct weir_controller_args *args,
				       struct weir_controller_view view, u64 lanes,
				       struct weir_controller_claim claim)
{
	u32 number = claim.first + weir_lane();
	WEIR_GLOBAL struct weir_controller_entry *entry = weir_controller_entry_of(view, number);

	claim.command.bytes = weir_controller_begin(args, view, lanes, claim);
	weir_controller_move(view, lanes, claim.command);
	weir_wave_sync(lanes); /* every lane's part of the data before anybody's controller.T1 */
	if (number - claim.first <
	    claim.count) /* controller.T1: pairs with controller.T2: data, and the rest of the entry */
		weir_store_u32_release_dev(&entry->filled, number + 1);
	weir_reconverge();
}

#endif
