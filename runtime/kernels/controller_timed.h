/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_timed.h: the controller with a timing model and a fault table.
 *
 * Owns: who posts which completions when: the line's front, those that faults held back, the lock, a turn of
 * a queue. A command is carried out at once; its completion then stands in its queue's line
 * (controller_line.h), with the time at which it is due. Whichever wave looks first, when that has come,
 * posts it: no wave waits for a command, and none is tied to one. One wave at a time posts in a queue, under
 * a lock that is tried and never waited for, and gives completions their places in the ring as it goes, so
 * that one that is held back keeps no other from being read.
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

#include "controller_post.h"

enum { WEIR_CONTROLLER_WINDOWS = 32 }; /* of the line, posted in one go: bounds the work under the lock */

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
		/* what lanes wrote of entries, before others look for those held */
		weir_wave_sync(context.lanes);
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
	WEIR_GLOBAL struct weir_fault_row *fault = weir_at(args->faults, struct weir_fault_row, row);
	u32 ended = 0;

	if (weir_elected(context.lanes))
		*weir_at(context.later->groups, u32, row) -= count;
	for (; count; count--) {
		u64 lot = 0;

		if (fault->kind == WEIR_VIRTUAL_FAULT_SHUFFLE && weir_elected(context.lanes))
			lot = weir_fault_draw(fault->seed, context.later->draws++) % count;
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
		u32 of = weir_at(args->faults, struct weir_fault_row, row)->of;
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
