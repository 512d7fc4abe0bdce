/* SPDX-License-Identifier: BSD-3-Clause */
/* For architectures without a switch of their own: slower, always right. */
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include "fiber.h"

struct context {
	ucontext_t machine;
	void (*first)(void *);
	struct weir_fiber *fiber;
};

enum { CONTEXT_ALIGN = 64 };

/* Of the thread itself: no memory is needed that might not be had, or that somebody has to free. */
static _Thread_local struct context own;

static void begin(unsigned high, unsigned low)
{
	struct context *context = (struct context *)(uintptr_t)(((uint64_t)high << 32) | low);

	context->first(context->fiber);
	abort();
}

void weir_fiber_context_adopt(struct weir_fiber *fiber)
{
	fiber->context = &own;
}

void weir_fiber_context_prepare(struct weir_fiber *fiber, void (*first)(void *))
{
	/* At the upper end of its stack, which has room for it. */
	uintptr_t top = (uintptr_t)fiber->stack + fiber->stack_bytes - sizeof(struct context);
	struct context *context = (struct context *)(top & ~(uintptr_t)(CONTEXT_ALIGN - 1));
	uint64_t bits = (uintptr_t)context;

	getcontext(&context->machine);
	context->machine.uc_stack.ss_sp = fiber->stack;
	context->machine.uc_stack.ss_size = (uintptr_t)context - (uintptr_t)fiber->stack;
	context->machine.uc_link = NULL;
	context->first = first;
	context->fiber = fiber;
	makecontext(&context->machine, (void (*)(void))begin, 2, (unsigned)(bits >> 32), (unsigned)bits);
	fiber->context = context;
}

void weir_fiber_context_switch(struct weir_fiber *from, struct weir_fiber *to)
{
	struct context *save = from->context, *load = to->context;

	swapcontext(&save->machine, &load->machine);
}

void weir_fiber_context_release(struct weir_fiber *fiber)
{
	fiber->context = NULL;
}
