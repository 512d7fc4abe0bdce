/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_post.h: what becomes of a command that is due.
 *
 * Owns: its completion's place in the ring, with those that faults put beside it; or what holds it back.
 * The wave that calls has the queue's lock.
 */
#ifndef WEIR_KERNELS_CONTROLLER_POST_H
#define WEIR_KERNELS_CONTROLLER_POST_H

#include "controller_line.h"

enum { WEIR_CONTROLLER_TRIES = 16 }; /* to promise one more entry */

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
WEIR_FN u32 weir_controller_stray(WEIR_GLOBAL struct weir_fault_row *fault, u32 cid)
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
			weir_controller_stray(
				weir_controller_row(args, entry->rows, WEIR_VIRTUAL_FAULT_STRAY), dw3));
	if (entry->kinds >> WEIR_VIRTUAL_FAULT_PHASE & 1)
		dw3 ^= (u32)1 << 16;
	if (entry->kinds >> WEIR_VIRTUAL_FAULT_MISROUTE & 1)
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
		strays = weir_controller_extras(args, context, entry, here, WEIR_VIRTUAL_FAULT_STRAY);
		twice = weir_controller_extras(args, context, entry, here, WEIR_VIRTUAL_FAULT_DUPLICATE);
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

	if (kinds >> WEIR_VIRTUAL_FAULT_DROP & 1)
		return WEIR_CONTROLLER_DROPPED;
	if (kinds >> WEIR_VIRTUAL_FAULT_LATE & 1) {
		entry->kinds = kinds & ~((u32)1 << WEIR_VIRTUAL_FAULT_LATE);
		/* relaxed: the lock's own by now */
		weir_store_u64_relaxed_dev(
			&entry->due_ns,
			now + (u64)weir_controller_row(args, entry->rows, WEIR_VIRTUAL_FAULT_LATE)->us *
					1000);
		return WEIR_CONTROLLER_WAITING;
	}
	kind = kinds >> WEIR_VIRTUAL_FAULT_SHUFFLE & 1 ? WEIR_VIRTUAL_FAULT_SHUFFLE
						       : WEIR_VIRTUAL_FAULT_BURST;
	if (!(kinds >> kind & 1))
		return WEIR_CONTROLLER_GONE;
	entry->kinds = kinds & ~((u32)1 << kind);
	return WEIR_CONTROLLER_GROUPED + (u32)(entry->rows >> (6 * kind) & (WEIR_VIRTUAL_FAULTS - 1));
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

#endif
