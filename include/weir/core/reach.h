/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/reach.h: order that reaches a queue pair's controller, and no further.
 *
 * A controller on the device itself is reached at device scope; any other at system
 * scope, which costs about a microsecond each time on a GPU. Owns: that choice.
 */
#ifndef WEIR_CORE_REACH_H
#define WEIR_CORE_REACH_H

#include <weir/abi.h>

/**
 * weir_queue_ring() - write a doorbell
 * @queue: the queue pair
 * @doorbell: its SQ or CQ doorbell
 * @position: the new tail or head
 *
 * What came before is seen by the controller before the doorbell is; what comes
 * after, and the next one's doorbell, after it.
 */
WEIR_FN void weir_queue_ring(WEIR_GLOBAL struct weir_queue *queue, weir_addr doorbell, u64 position)
{
	u32 value = (u32)position & (queue->depth - 1);

	if (queue->on_device) {
		/* release: D0; the role is handed on with a release, which is D1 */
		weir_store_u32_release_dev(weir_at(doorbell, weir_shared_u32, 0), value);
		return;
	}
	weir_fence_to_controller(); /* D0: ring before doorbell */
	weir_mmio_store_u32(doorbell, value);
	weir_fence_to_controller(); /* D1: doorbell before the next one's */
}

/** weir_queue_load_acquire() - a word that the controller stores with release */
WEIR_FN u32 weir_queue_load_acquire(WEIR_GLOBAL struct weir_queue *queue, WEIR_GLOBAL weir_shared_u32 *word)
{
	return queue->on_device ? weir_load_u32_acquire_dev(word) : weir_load_u32_acquire_sys(word);
}

#endif
