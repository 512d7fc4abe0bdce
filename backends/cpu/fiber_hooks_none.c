/* SPDX-License-Identifier: BSD-3-Clause */
#include "fiber.h"

void weir_fiber_hook_adopt(struct weir_fiber *fiber)
{
	(void)fiber;
}

void weir_fiber_hook_prepare(struct weir_fiber *fiber)
{
	(void)fiber;
}

void weir_fiber_hook_leave(struct weir_fiber *from, struct weir_fiber *to)
{
	(void)from;
	(void)to;
}

void weir_fiber_hook_arrive(struct weir_fiber *self)
{
	(void)self;
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
