/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ThreadSanitizer sees every fiber as a thread of its own, and a switch as no
 * synchronisation at all: so a missing order between two lanes is a race even
 * though both run on one worker.
 */
#include <sanitizer/tsan_interface.h>

#include "fiber.h"

/* Flag of __tsan_switch_to_fiber(): do not synchronise. */
enum { NO_SYNC = 1 };

void weir_fiber_hook_adopt(struct weir_fiber *fiber)
{
	fiber->sanitizer = __tsan_get_current_fiber();
}

void weir_fiber_hook_prepare(struct weir_fiber *fiber)
{
	fiber->sanitizer = __tsan_create_fiber(0);
}

void weir_fiber_hook_leave(struct weir_fiber *from, struct weir_fiber *to)
{
	(void)from;
	__tsan_switch_to_fiber(to->sanitizer, NO_SYNC);
}

void weir_fiber_hook_arrive(struct weir_fiber *self)
{
	(void)self;
}

void weir_fiber_hook_release(struct weir_fiber *fiber)
{
	__tsan_destroy_fiber(fiber->sanitizer);
}

void weir_fiber_hook_meet(void *meeting)
{
	__tsan_release(meeting);
}

void weir_fiber_hook_part(void *meeting)
{
	__tsan_acquire(meeting);
}
