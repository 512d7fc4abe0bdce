/* SPDX-License-Identifier: BSD-3-Clause */
/* AddressSanitizer must know which stack is in use. */
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>

#include "fiber.h"

void weir_fiber_hook_adopt(struct weir_fiber *fiber)
{
	pthread_attr_t attributes;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &fiber->stack, &fiber->stack_bytes);
	pthread_attr_destroy(&attributes);
	fiber->sanitizer = NULL;
}

void weir_fiber_hook_prepare(struct weir_fiber *fiber)
{
	fiber->sanitizer = NULL;
}

void weir_fiber_hook_leave(struct weir_fiber *from, struct weir_fiber *to)
{
	__sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->stack_bytes);
}

void weir_fiber_hook_arrive(struct weir_fiber *self)
{
	__sanitizer_finish_switch_fiber(self->sanitizer, NULL, NULL);
}

void weir_fiber_hook_release(struct weir_fiber *fiber)
{
	(void)fiber;
}

void weir_fiber_hook_meet(void *meeting)
{
	(void)meeting;
}

void weir_fiber_hook_part(void *meeting)
{
	(void)meeting;
}
