/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/reach.h: order that reaches a queue pair's controller, and no further.
 *
 * A controller on the device itself is reached at device scope; any other at system
 * scope, which costs about a microsecond each time on a GPU, or by way of a NIC. Owns: that choice.
 */
#ifndef WEIR_CORE_REACH_H
#define WEIR_CORE_REACH_H

#include <weir/core/queue/nic.h>

/**
 * weir_event_passed() - does a controller that waits at @event want the doorbell of a move from @before to
 * @value?
 *
 * Of positions in a ring modulo 2^16: is @event one of @before up to the one in front of @value? Base 2.0,
 * annex B.5.
 */
WEIR_FN u32 weir_event_passed(u32 event, u32 before, u32 value)
{
	return ((value - event - 1) & 0xffff) < ((value - before) & 0xffff);
}

/*
 * weir_queue_ring() of a pair with shadow doorbells: the controller is rung only if it waits at a position
 * that this move leaves. It says so in the EventIdx word, and then looks at the shadow once more; we store
 * the shadow, and then look at EventIdx. So one of the two sees the other's, if neither's load overtakes its
 * store: else the command stays where it is, for ever. (Called instead of inlined it would cost lanes
 * registers that have no shadow.)
 */
WEIR_FN void weir_queue_ring_shadow(WEIR_GLOBAL struct weir_queue *queue, weir_addr doorbell, u32 before,
				    u32 value)
{
	weir_addr shadow = queue->shadow + (doorbell - queue->sq_doorbell);
	u32 wanted = 1;

	weir_store_u32_release_sys(weir_at(shadow, weir_shared_u32, 0),
				   value); /* doorbell.D0: ring before shadow */
#ifdef WEIR_NO_FENCE_WITH_CONTROLLER
	(void)before;
	weir_fence_to_controller(); /* shadow before doorbell, which is rung each time: that does no harm */
#else
	/* doorbell.B0: pairs with doorbell.B1, the controller's store of EventIdx and second look; and shadow
	 * before doorbell */
	weir_fence_with_controller();
	/* relaxed: doorbell.B0 has the order */
	wanted = weir_event_passed(
		weir_load_u32_relaxed_sys(weir_at(shadow + NVME_PAGE_BYTES, weir_shared_u32, 0)), before,
		value);
#endif
	if (wanted) {
		weir_mmio_store_u32(doorbell, value);
		(void)weir_add_u64_relaxed_dev(&queue->rings, 1); /* relaxed: the host reads a snapshot */
	}
	weir_fence_to_controller(); /* doorbell.D1: shadow and doorbell before the next one's */
}

/**
 * weir_queue_ring() - tell the controller of a new tail or head
 * @queue: the queue pair
 * @doorbell: its SQ or CQ doorbell
 * @before: the tail or head it was told before
 * @position: the new one
 *
 * What came before is seen by the controller before the doorbell is, or the doorbell's shadow (struct
 * weir_queue); what comes after, and the next one's doorbell, after it.
 */
WEIR_FN void weir_queue_ring(WEIR_GLOBAL struct weir_queue *queue, weir_addr doorbell, u64 before,
			     u64 position)
{
	u32 value = (u32)position & (queue->depth - 1);

	if (queue->doorbell_kind == WEIR_DOORBELL_DEVICE) {
		/* release: doorbell.D0; the role is handed on with a release, which is doorbell.D1 */
		weir_store_u32_release_dev(weir_at(doorbell, weir_shared_u32, 0), value);
		return;
	}
	if (queue->doorbell_kind == WEIR_DOORBELL_NIC) {
		weir_nic_ring(queue, doorbell, position);
		return;
	}
	if (queue->shadow) {
		weir_queue_ring_shadow(queue, doorbell, (u32)before & (queue->depth - 1), value);
		return;
	}
	weir_fence_to_controller(); /* doorbell.D0: ring before doorbell */
	weir_mmio_store_u32(doorbell, value);
	weir_fence_to_controller(); /* doorbell.D1: doorbell before the next one's */
}

/** weir_queue_load_acquire() - a word that the controller stores with release */
WEIR_FN u32 weir_queue_load_acquire(WEIR_GLOBAL struct weir_queue *queue, WEIR_GLOBAL weir_shared_u32 *word)
{
	return queue->doorbell_kind == WEIR_DOORBELL_DEVICE ? weir_load_u32_acquire_dev(word)
							    : weir_load_u32_acquire_sys(word);
}

#endif
