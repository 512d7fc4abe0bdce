/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward.h: one doorbell that lanes store to memory and a thread of the host rings for them.
 *
 * Owns: the step from the word to the register, or to the register's shadow. Whose thread takes it, and how
 * often, is doorbells.c's. The explorer runs it, too.
 *
 * No ring is lost, though the thread reads a word and not each store to it. Lanes ring a position that is at
 * most depth - 1 ahead of the one that the controller knows: it has not consumed more, and has posted no
 * more. So the word differs from what was forwarded last until that is forwarded. A pair that is created anew
 * begins with weir_forward_begin().
 */
#ifndef WEIR_RUNTIME_FORWARD_H
#define WEIR_RUNTIME_FORWARD_H

#include <weir/core/queue/reach.h>

/**
 * struct weir_forward - a doorbell
 * @word: address of the word that lanes store
 * @doorbell: address of the controller's register
 * @shadow: address of the register's shadow, its EventIdx a page on; 0: none. Lanes do not see it: a register
 * that is rung late would take the shadow back behind theirs
 * @reported: what was forwarded last
 */
struct weir_forward {
	weir_addr word;
	weir_addr doorbell;
	weir_addr shadow;
	u32 reported;
};

/** enum weir_forwarded - what a step did */
enum weir_forwarded {
	WEIR_FORWARD_NOTHING, /* the word is as it was */
	WEIR_FORWARD_SHADOW,  /* the controller finds it by itself */
	WEIR_FORWARD_RANG,
};

/* Does the controller want the register rung, after its shadow went from @before to @value? */
WEIR_FN u32 weir_forward_shadow(const struct weir_forward *forward, u32 before, u32 value)
{
	weir_store_u32_release_sys(weir_at(forward->shadow, weir_shared_u32, 0),
				   value); /* doorbell.D0: ring before shadow */
	weir_fence_with_controller();      /* doorbell.B0: pairs with doorbell.B1, as in core/queue/reach.h */
	/* relaxed: doorbell.B0 has the order */
	return weir_event_passed(
		weir_load_u32_relaxed_sys(weir_at(forward->shadow + NVME_PAGE_BYTES, weir_shared_u32, 0)),
		before, value);
}

/** weir_forward_step() - one load, and a store if lanes have rung since the last step */
WEIR_FN enum weir_forwarded weir_forward_step(struct weir_forward *forward)
{
	/* forward.H1: pairs with doorbell.D0 of the lane that stored it: the ring's entries come before */
	u32 value = weir_load_u32_acquire_sys(weir_at(forward->word, weir_shared_u32, 0)),
	    before = forward->reported;

	if (value == before)
		return WEIR_FORWARD_NOTHING;
	forward->reported = value;
	if (forward->shadow && !weir_forward_shadow(forward, before, value))
		return WEIR_FORWARD_SHADOW;
	weir_fence_to_controller(); /* doorbell.D0: ring before doorbell */
	weir_mmio_store_u32(forward->doorbell, value);
	weir_fence_to_controller(); /* doorbell.D1: doorbell before the next one's */
	return WEIR_FORWARD_RANG;
}

/** weir_forward_begin() - its queue is about to be created, empty: no lane rings meanwhile, nor is there a
 * step */
WEIR_FN void weir_forward_begin(struct weir_forward *forward)
{
	forward->reported = 0;
	/* relaxed: the doorbell of the queue's creation orders them (admin.A0) */
	weir_store_u32_relaxed_sys(weir_at(forward->word, weir_shared_u32, 0), 0);
	if (!forward->shadow)
		return;
	weir_store_u32_relaxed_sys(weir_at(forward->shadow, weir_shared_u32, 0), 0);
	weir_store_u32_relaxed_sys(weir_at(forward->shadow + NVME_PAGE_BYTES, weir_shared_u32, 0), 0);
}

#endif
