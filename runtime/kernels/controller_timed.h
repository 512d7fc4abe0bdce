/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_timed.h: the controller with a timing model and a fault table.
 *
 * Owns: when completions are due, and what becomes of them. A command is carried out
 * at once; its completion then stands in its queue's line, with the time at which it is
 * due. Whichever wave looks first, when that has come, posts it: no wave waits for a
 * command, and none is tied to one. One wave at a time posts in a queue, under a lock
 * that is tried and never waited for, and gives completions their places in the ring as
 * it goes, so that one that is held back keeps no other from being read.
 *
 * Due times grow in the order of fetching, since latency is constant and turns at the I/O
 * rate are handed out in order; so the line is one of commands, and only its front is
 * looked at. Those that faults hold back leave it and are looked for one by one.
 *
 * Where it differs from the host's controller: groups of the fault table are made of
 * commands of one queue; late ones that are due at one look are posted in the order
 * of fetching; commands fetched together with one that stalls its queue are carried out.
 */
#ifndef WEIR_KERNELS_CONTROLLER_TIMED_H
#define WEIR_KERNELS_CONTROLLER_TIMED_H

#include "controller_fault.h"

enum {
	WEIR_CONTROLLER_WINDOWS = 32,      /* of the line, posted in one go: bounds the work under the lock */
	WEIR_CONTROLLER_TRIES = 16,        /* to promise one more entry */
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

	while ((i64)(word - clock) <= 0) {
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
	ahead = (i64)(weir_load_u64_relaxed_dev(weir_at(args->rate, weir_shared_u64, 0)) -
		      (now << WEIR_CONTROLLER_TICKS_LOG2));
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
	if (matched.kinds >> WEIR_CONTROLLER_STALL & 1) /* relaxed: as where it is read */
		weir_store_u64_relaxed_dev(
			&weir_controller_later_of(view)->resume_ns,
			now + (u64)weir_controller_row(args, matched.rows, WEIR_CONTROLLER_STALL)->us * 1000);
	if (matched.kinds >> WEIR_CONTROLLER_STATUS & 1)
		return weir_controller_row(args, matched.rows, WEIR_CONTROLLER_STATUS)->code;
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

/*
 * One more entry of the completion ring than there are commands, if it has room. One
 * lane calls.
 */
WEIR_FN u32 weir_controller_promise(struct weir_controller_view view)
{
	u32 mask = weir_controller_mask(view);

	for (u32 i = 0; i < WEIR_CONTROLLER_TRIES; i++) {
		u64 head = weir_load_u64_acquire_dev(&view.queue->head); /* controller.H0 */
		u32 promised = (u32)head + (u32)(head >> 32);
		/* doorbell.D2 */
		u32 read = weir_load_u32_acquire_dev(weir_at(view.doorbells, weir_shared_u32, 1));

		if (((promised - read) & mask) == mask)
			return 0;
		/* relaxed: as that of a claim */
		if (weir_cas_u64_relaxed_dev(&view.queue->head, head, head + ((u64)1 << 32)) == head)
			return 1;
	}
	return 0;
}

/* Lanes of those that want an entry of their own for a fault of @kind which get one; the others are spared.
 */
WEIR_FN u64 weir_controller_extras(WEIR_GLOBAL struct weir_controller_args *args,
				   struct weir_controller_context context,
				   WEIR_GLOBAL struct weir_controller_entry *entry, u32 here, u32 kind)
{
	u32 wanted = here && (entry->kinds >> kind & 1);
	u64 granted = 0;

	for (u64 left = weir_ballot(context.lanes, wanted); left; left &= left - 1) {
		u64 got = weir_elected(context.lanes) ? weir_controller_promise(context.view) : 0;

		if (weir_broadcast_u64(context.lanes, got))
			granted |= left & (~left + 1);
		weir_reconverge();
	}
	if (wanted && !weir_is_in(granted))
		weir_controller_spare(weir_controller_row(args, entry->rows, kind));
	return granted;
}

/* Identifier of an entry made up beside that of @cid: as given, or one half way round, which is not in
 * flight. */
WEIR_FN u32 weir_controller_stray(WEIR_GLOBAL struct weir_controller_fault *fault, u32 cid)
{
	return fault->cid < 0x10000 ? fault->cid : (cid & 0xffff) ^ 0x8000;
}

/* A neighbour queue, one that exists where that can be. */
WEIR_FN u32 weir_controller_other(u32 id)
{
	return id == 1 ? 2 : id - 1;
}

/* An entry of the ring, its phase as it should be if @dw3 has none. */
WEIR_FN void weir_controller_post_at(struct weir_controller_view view, u32 position, u32 dw2, u32 dw3)
{
	weir_controller_post(weir_controller_cqe(view, position), dw2,
			     weir_controller_phased(view, position, dw3));
}

/* One lane's completion at @position, and those that faults put before and behind it. */
WEIR_FN void weir_controller_post_entry(WEIR_GLOBAL struct weir_controller_args *args,
					struct weir_controller_view view,
					WEIR_GLOBAL struct weir_controller_entry *entry, u32 position,
					u32 head, u32 stray, u32 twice)
{
	u32 dw2 = weir_controller_dw2(view, head), dw3 = entry->dw3;

	if (stray)
		weir_controller_post_at(
			view, position - 1, dw2,
			weir_controller_stray(weir_controller_row(args, entry->rows, WEIR_CONTROLLER_STRAY),
					      dw3));
	if (entry->kinds >> WEIR_CONTROLLER_PHASE & 1)
		dw3 ^= (u32)1 << 16;
	if (entry->kinds >> WEIR_CONTROLLER_MISROUTE & 1)
		dw2 = (dw2 & 0xffff) | weir_controller_other(view.id) << 16;
	weir_controller_post_at(view, position, dw2, dw3);
	if (twice)
		weir_controller_post_at(view, position + 1, dw2, dw3);
}

/* Post the completions of those lanes that have one: the next places of the ring, in the lanes' order. */
WEIR_FN void weir_controller_post_all(WEIR_GLOBAL struct weir_controller_args *args,
				      struct weir_controller_context context,
				      WEIR_GLOBAL struct weir_controller_entry *entry, u32 here)
{
	u64 posting = weir_ballot(context.lanes, here), strays = 0, twice = 0,
	    below = ((u64)1 << weir_lane()) - 1;
	u32 position, head;

	if (posting == 0) /* the same in all lanes */
		return;
	if (args->fault_count) {
		strays = weir_controller_extras(args, context, entry, here, WEIR_CONTROLLER_STRAY);
		twice = weir_controller_extras(args, context, entry, here, WEIR_CONTROLLER_DUPLICATE);
	}
	/* relaxed: what is below the head was fetched, and it only grows */
	head = (u32)weir_broadcast_u64(
		context.lanes,
		weir_elected(context.lanes) ? weir_load_u64_relaxed_dev(&context.view.queue->head) : 0);
	position = (u32)weir_broadcast_u64(context.lanes,
					   weir_elected(context.lanes) ? context.later->posted : 0);
	weir_wave_sync(context.lanes); /* entries of any lane, controller.T2 and doorbell.D2, before anything
					  is written in the ring */
	if (here)
		weir_controller_post_entry(args, context.view, entry,
					   position + weir_popcount(posting & below) +
						   weir_popcount(twice & below) +
						   weir_popcount(strays & (below << 1 | 1)),
					   head, weir_is_in(strays), weir_is_in(twice));
	weir_reconverge();
	if (weir_elected(context.lanes))
		context.later->posted =
			position + weir_popcount(posting) + weir_popcount(twice) + weir_popcount(strays);
}

/* What becomes of an entry that is due: the first of its faults that holds it, or else its end. */
WEIR_FN u32 weir_controller_fate(WEIR_GLOBAL struct weir_controller_args *args,
				 WEIR_GLOBAL struct weir_controller_entry *entry, u64 now)
{
	u32 kinds = entry->kinds, kind;

	if (kinds >> WEIR_CONTROLLER_DROP & 1)
		return WEIR_CONTROLLER_DROPPED;
	if (kinds >> WEIR_CONTROLLER_LATE & 1) {
		entry->kinds = kinds & ~((u32)1 << WEIR_CONTROLLER_LATE);
		/* relaxed: the lock's own by now */
		weir_store_u64_relaxed_dev(
			&entry->due_ns,
			now + (u64)weir_controller_row(args, entry->rows, WEIR_CONTROLLER_LATE)->us * 1000);
		return WEIR_CONTROLLER_WAITING;
	}
	kind = kinds >> WEIR_CONTROLLER_SHUFFLE & 1 ? WEIR_CONTROLLER_SHUFFLE : WEIR_CONTROLLER_BURST;
	if (!(kinds >> kind & 1))
		return WEIR_CONTROLLER_GONE;
	entry->kinds = kinds & ~((u32)1 << kind);
	return WEIR_CONTROLLER_GROUPED + (u32)(entry->rows >> (6 * kind) & (WEIR_CONTROLLER_ROWS - 1));
}

/* Count those of @joining, lanes whose entry has just joined the group of row @row. */
WEIR_FN void weir_controller_join(struct weir_controller_context context, u64 joining, u32 row)
{
	while (joining) {
		u32 first = (u32)weir_shuffle_u64(context.lanes, row, weir_lowest_bit(joining));
		u64 same = weir_ballot(context.lanes, weir_is_in(joining) && row == first);

		if (weir_elected(context.lanes))
			*weir_at(context.later->groups, u32, first) += weir_popcount(same);
		joining &= ~same;
		weir_reconverge();
	}
}

/*
 * Deal with the entries of those lanes that have one which is due. Return: how many, of
 * them posted or dropped.
 */
WEIR_FN u32 weir_controller_settle(WEIR_GLOBAL struct weir_controller_args *args,
				   struct weir_controller_context context,
				   WEIR_GLOBAL struct weir_controller_entry *entry, u32 here)
{
	u32 fate = WEIR_CONTROLLER_IN_LINE;
	u64 held, grouped, dropped;

	if (here)
		entry->state = fate = weir_controller_fate(args, entry, context.now);
	held = weir_ballot(context.lanes, fate >= WEIR_CONTROLLER_WAITING);
	grouped = weir_ballot(context.lanes, fate >= WEIR_CONTROLLER_GROUPED);
	dropped = weir_ballot(context.lanes, fate == WEIR_CONTROLLER_DROPPED);
	if (weir_elected(context.lanes) && dropped) /* relaxed: a promise less; only room depends on it */
		(void)weir_add_u64_relaxed_dev(&context.view.queue->head,
					       ~((u64)weir_popcount(dropped) << 32) + 1);
	if (weir_elected(context.lanes) && held) {
		/* relaxed: the lock's own; others only guess by it */
		weir_store_u32_relaxed_dev(&context.later->held,
					   weir_load_u32_relaxed_dev(&context.later->held) +
						   weir_popcount(held));
		context.later->grouped += weir_popcount(grouped);
	}
	weir_controller_join(context, grouped, fate - WEIR_CONTROLLER_GROUPED);
	weir_controller_post_all(args, context, entry, fate == WEIR_CONTROLLER_GONE);
	return weir_popcount(weir_ballot(context.lanes, here)) - weir_popcount(held);
}

/* Entries leave those that are held: @count, of them @grouped in groups. The elected lane's. */
WEIR_FN void weir_controller_let_go(struct weir_controller_context context, u32 count, u32 grouped)
{
	if (!weir_elected(context.lanes))
		return;
	/* relaxed: the lock's own; others only guess by it */
	weir_store_u32_relaxed_dev(&context.later->held,
				   weir_load_u32_relaxed_dev(&context.later->held) - count);
	context.later->grouped -= grouped;
}

/* The front of the line, as far as it is due. Return: commands ended. */
WEIR_FN u32 weir_controller_line(WEIR_GLOBAL struct weir_controller_args *args,
				 struct weir_controller_context context)
{
	u32 next = (u32)weir_broadcast_u64(
		context.lanes,
		weir_elected(context.lanes) ? weir_load_u32_relaxed_dev(&context.later->next) : 0);
	u32 ended = 0, found = weir_lanes();

	for (u32 i = 0; i < WEIR_CONTROLLER_WINDOWS && found == weir_lanes(); i++) {
		u32 number = next + weir_lane();
		WEIR_GLOBAL struct weir_controller_entry *entry =
			weir_controller_entry_of(context.view, number);
		/* controller.T2: pairs with controller.T1 */
		u32 due = weir_load_u32_acquire_dev(&entry->filled) == number + 1 &&
			  weir_controller_passed(weir_load_u64_relaxed_dev(&entry->due_ns), context.now);

		found = weir_prefix(context.lanes, weir_ballot(context.lanes, due));
		ended += weir_controller_settle(args, context, entry, weir_lane() < found);
		next += found;
		weir_wave_sync(
			context.lanes); /* what lanes wrote of entries, before others look for those held */
	}
	if (weir_elected(context.lanes)) /* relaxed: the lock's own; others only guess by it */
		weir_store_u32_relaxed_dev(&context.later->next, next);
	return ended;
}

/* Late entries whose new time has come, of @span from @oldest on. Return: commands ended. */
WEIR_FN u32 weir_controller_late(WEIR_GLOBAL struct weir_controller_args *args,
				 struct weir_controller_context context, u32 oldest, u32 span)
{
	u32 ended = 0;

	for (u32 i = 0; i < span; i += weir_lanes()) {
		WEIR_GLOBAL struct weir_controller_entry *entry =
			weir_controller_entry_of(context.view, oldest + i + weir_lane());
		u32 due = i + weir_lane() < span && entry->state == WEIR_CONTROLLER_WAITING &&
			  weir_controller_passed(weir_load_u64_relaxed_dev(&entry->due_ns), context.now);
		u32 found = weir_popcount(weir_ballot(context.lanes, due));

		if (found) { /* the same in all lanes */
			weir_controller_let_go(context, found, 0);
			ended += weir_controller_settle(args, context, entry, due);
		}
		weir_wave_sync(context.lanes);
	}
	return ended;
}

/* Let go of member @index of the group of @row. Return: commands ended. */
WEIR_FN u32 weir_controller_pick(WEIR_GLOBAL struct weir_controller_args *args,
				 struct weir_controller_context context, u32 oldest, u32 span, u32 row,
				 u32 index)
{
	for (u32 i = 0; i < span; i += weir_lanes()) {
		WEIR_GLOBAL struct weir_controller_entry *entry =
			weir_controller_entry_of(context.view, oldest + i + weir_lane());
		u32 member = i + weir_lane() < span && entry->state == WEIR_CONTROLLER_GROUPED + row;
		u64 members = weir_ballot(context.lanes, member);
		u32 chosen = member && weir_rank(members, weir_lane()) == index;

		if (weir_ballot(context.lanes, chosen)) {
			weir_controller_let_go(context, 1, 1);
			return weir_controller_settle(args, context, entry, chosen);
		}
		index -= weir_popcount(members);
		weir_reconverge();
	}
	return 0;
}

/* Let go of the @count oldest of the group of @row, in their order or by lot. Return: commands ended. */
WEIR_FN u32 weir_controller_release(WEIR_GLOBAL struct weir_controller_args *args,
				    struct weir_controller_context context, u32 oldest, u32 span, u32 row,
				    u32 count)
{
	WEIR_GLOBAL struct weir_controller_fault *fault =
		weir_at(args->faults, struct weir_controller_fault, row);
	u32 ended = 0;

	if (weir_elected(context.lanes))
		*weir_at(context.later->groups, u32, row) -= count;
	for (; count; count--) {
		u64 lot = 0;

		if (fault->kind == WEIR_CONTROLLER_SHUFFLE && weir_elected(context.lanes))
			lot = weir_controller_draw(fault->seed, context.later->draws++) % count;
		lot = weir_broadcast_u64(context.lanes, lot);
		ended += weir_controller_pick(args, context, oldest, span, row, (u32)lot);
		weir_wave_sync(context.lanes);
	}
	return ended;
}

/*
 * Groups that have enough members; all of them if no other command can come: @last.
 * Return: commands ended.
 */
WEIR_FN u32 weir_controller_groups(WEIR_GLOBAL struct weir_controller_args *args,
				   struct weir_controller_context context, u32 oldest, u32 span, u32 last)
{
	u32 ended = 0;

	for (u32 row = 0; row < args->fault_count; row++) {
		u32 of = weir_at(args->faults, struct weir_controller_fault, row)->of;
		u32 count = (u32)weir_broadcast_u64(
			context.lanes,
			weir_elected(context.lanes) ? *weir_at(context.later->groups, u32, row) : 0);

		for (; count && (last || count >= of); count -= count < of ? count : of)
			ended += weir_controller_release(args, context, oldest, span, row,
							 count < of ? count : of);
		weir_reconverge();
	}
	return ended;
}

/* Move the oldest entry past those that have ended. */
WEIR_FN void weir_controller_forget(struct weir_controller_context context, u32 oldest, u32 span)
{
	u32 ended = weir_lanes(), i = 0;

	for (; i < span && ended == weir_lanes(); i += ended) {
		u32 state = WEIR_CONTROLLER_IN_LINE;

		if (i + weir_lane() < span)
			state = weir_controller_entry_of(context.view, oldest + i + weir_lane())->state;
		ended = weir_prefix(context.lanes,
				    weir_ballot(context.lanes, state == WEIR_CONTROLLER_GONE ||
								       state == WEIR_CONTROLLER_DROPPED));
		weir_reconverge();
	}
	if (weir_elected(
		    context.lanes)) /* controller.T3: pairs with controller.T4: their entries are done with */
		weir_store_u32_release_dev(&context.later->oldest, oldest + i);
}

/*
 * Entries that faults hold back. @idle: there was nothing to fetch. Return: commands
 * ended.
 */
WEIR_FN u32 weir_controller_held(WEIR_GLOBAL struct weir_controller_args *args,
				 struct weir_controller_context context, u32 idle)
{
	/* relaxed: the lock's own */
	u32 elected = weir_elected(context.lanes), last = 0, ended;
	u32 oldest = (u32)weir_broadcast_u64(context.lanes,
					     elected ? weir_load_u32_relaxed_dev(&context.later->oldest) : 0);
	u32 next = (u32)weir_broadcast_u64(context.lanes,
					   elected ? weir_load_u32_relaxed_dev(&context.later->next) : 0);

	ended = weir_controller_late(args, context, oldest, next - oldest);
	if (elected) /* relaxed: a guess does no harm, groups are released a little early */
		last = idle && (u32)weir_load_u64_relaxed_dev(&context.view.queue->head) == next &&
		       weir_load_u32_relaxed_dev(&context.later->held) == context.later->grouped;
	last = (u32)weir_broadcast_u64(context.lanes, last);
	ended += weir_controller_groups(args, context, oldest, next - oldest, last);
	weir_controller_forget(context, oldest, next - oldest);
	return ended;
}

/* The elected lane's look before anybody takes the lock. */
WEIR_FN u32 weir_controller_worth_a_try(struct weir_controller_view view)
{
	WEIR_GLOBAL struct weir_controller_later *later = weir_controller_later_of(view);
	/* relaxed, all of it: a hint; the lock's holder looks again */
	u32 next = weir_load_u32_relaxed_dev(&later->next);
	WEIR_GLOBAL struct weir_controller_entry *entry = weir_controller_entry_of(view, next);

	if (weir_load_u32_relaxed_dev(&later->held))
		return 1;
	return weir_load_u32_relaxed_dev(&entry->filled) == next + 1 &&
	       weir_controller_passed(weir_load_u64_relaxed_dev(&entry->due_ns), weir_clock_ns());
}

/* Post what is due in a queue, if nobody else does. Never waits. Return: commands ended. */
WEIR_FN u32 weir_controller_finish(WEIR_GLOBAL struct weir_controller_args *args,
				   struct weir_controller_view view, u64 lanes, u32 idle)
{
	struct weir_controller_context context;
	u64 locked = 0, held;
	u32 ended;

	context.view = view;
	context.later = weir_controller_later_of(view);
	context.lanes = lanes;
	if (weir_elected(lanes) && weir_controller_worth_a_try(view))
		/* controller.L0: pairs with controller.L1 of the one before */
		locked = weir_cas_u32_acquire_dev(&context.later->lock, 0, 1) == 0;
	if (!weir_broadcast_u64(lanes, locked))
		return 0;
	weir_wave_sync(lanes); /* what the elected lane acquired at controller.L0 is every lane's */
	context.now = weir_controller_clock(lanes);
	ended = weir_controller_line(args, context);
	/* relaxed: the lock's own */
	held = weir_broadcast_u64(lanes,
				  weir_elected(lanes) ? weir_load_u32_relaxed_dev(&context.later->held) : 0);
	if (held)
		ended += weir_controller_held(args, context, idle);
	weir_wave_sync(lanes); /* every lane's part before controller.L1 */
	if (weir_elected(lanes)) {
		if (!held) /* controller.T3: pairs with controller.T4 */
			weir_store_u32_release_dev(&context.later->oldest,
						   weir_load_u32_relaxed_dev(&context.later->next));
		weir_store_u32_release_dev(&context.later->lock,
					   0); /* controller.L1: pairs with controller.L0 */
	}
	weir_reconverge();
	return ended;
}

/* How many of @ready to take: those that have an entry free, and as time and faults allow. */
WEIR_FN u32 weir_controller_allowed(WEIR_GLOBAL struct weir_controller_args *args,
				    struct weir_controller_view view, u64 lanes, u64 head, u32 ready)
{
	u32 piece = weir_controller_piece(view, ready), room, quota = 0, oldest = 0;

	if (weir_elected(lanes)) {
		/* controller.T4: pairs with controller.T3: entries used again were done with; an old value
		 * only makes for less room */
		oldest = weir_load_u32_acquire_dev(&weir_controller_later_of(view)->oldest);
		quota = weir_controller_quota(args, view);
	}
	room = oldest + weir_controller_mask(view) + 1 - (u32)head;
	room = (i32)room > 0 ? room : 0;
	quota = (u32)weir_broadcast_u64(lanes, quota < room ? quota : room);
	weir_wave_sync(lanes); /* what the elected lane acquired at controller.T4 is every lane's */
	return piece < quota ? piece : quota;
}

/**
 * weir_controller_serve_timed() - one turn of one queue: claim and carry out, post what is due
 * @args: the controller
 * @queue: struct weir_controller_queue, which has a struct weir_controller_later
 * @lanes: all lanes of a whole wave
 *
 * Return: commands fetched and commands ended, together.
 */
WEIR_FN u32 weir_controller_serve_timed(WEIR_GLOBAL struct weir_controller_args *args, weir_addr queue,
					u64 lanes)
{
	struct weir_controller_view view = weir_controller_poll(args, queue);
	u64 head = weir_controller_head(view, lanes);
	u32 ready = weir_controller_announced(view, lanes, head), fetched = 0, piece = 0;

	if (ready)
		piece = weir_controller_allowed(args, view, lanes, head, ready);
	if (piece) {
		struct weir_controller_claim claim = weir_controller_claim(view, lanes, head, piece);

		fetched = claim.count;
		if (fetched)
			weir_controller_carry_out(args, view, lanes, claim);
	}
	/* a fresh look, so that nothing of the first one is kept while data is moved */
	return fetched + weir_controller_finish(args, weir_controller_poll(args, queue), lanes, ready == 0);
}

/** weir_controller_round_timed() - as weir_controller_round(), with timing and faults */
WEIR_FN u32 weir_controller_round_timed(WEIR_GLOBAL struct weir_controller_args *args, u64 lanes,
					struct weir_controller_beat beat)
{
	u32 served = 0;

	for (u32 i = 0; i < beat.count; i++)
		served += weir_controller_serve_timed(args, beat.first + (u64)i * beat.step, lanes);
	return served;
}

#endif
