/* SPDX-License-Identifier: BSD-3-Clause */
/* For architectures without a switch of their own: slower, always right. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "fiber.h"

struct context {
	ucontext_t machine;
	void (*first)(void *);
	struct weir_fiber *fiber;
};

static struct context *context_new(void)
{
	struct context *context = calloc(1, sizeof(*context));

	if (!context) {
		fprintf(stderr, "weir: out of memory for a fiber's context\n");
		abort();
	}
	return context;
}

static void begin(unsigned high, unsigned low)
{
	struct context *context = (struct context *)(uintptr_t)(((uint64_t)high << 32) | low);

	context->first(context->fiber);
	abort();
}

void weir_fiber_context_adopt(struct weir_fiber *fiber)
{
	fiber->context = context_new();
}

void weir_fiber_context_prepare(struct weir_fiber *fiber, void (*first)(void *))
{
	struct context *context = context_new();
	uint64_t bits = (uintptr_t)context;

	getcontext(&context->machine);
	context->machine.uc_stack.ss_sp = fiber->stack;
	context->machine.uc_stack.ss_size = fiber->stack_bytes;
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
	free(fiber->context);
	fiber->context = NULL;
}
