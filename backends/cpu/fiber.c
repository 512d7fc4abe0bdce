/* SPDX-License-Identifier: BSD-3-Clause */
#include "fiber.h"

void weir_fiber_adopt(struct weir_fiber *fiber)
{
	weir_fiber_context_adopt(fiber);
	weir_fiber_hook_adopt(fiber);
}

static void first(void *self)
{
	struct weir_fiber *fiber = self;

	weir_fiber_hook_arrive(fiber);
	fiber->entry(fiber->argument);
}

void weir_fiber_prepare(struct weir_fiber *fiber, void (*entry)(void *), void *argument)
{
	fiber->entry = entry;
	fiber->argument = argument;
	weir_fiber_context_prepare(fiber, first);
	weir_fiber_hook_prepare(fiber);
}

void weir_fiber_switch(struct weir_fiber *from, struct weir_fiber *to)
{
	weir_fiber_hook_leave(from, to);
	weir_fiber_context_switch(from, to);
	weir_fiber_hook_arrive(from);
}

void weir_fiber_release(struct weir_fiber *fiber)
{
	weir_fiber_hook_release(fiber);
	weir_fiber_context_release(fiber);
}
