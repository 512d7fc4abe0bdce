/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include "fiber.h"

void weir_fiber_swap(void **save, void *load);
void weir_fiber_begin(void);

void weir_fiber_context_adopt(struct weir_fiber *fiber)
{
	fiber->context = NULL; /* written when the thread is left */
}

void weir_fiber_context_prepare(struct weir_fiber *fiber, void (*first)(void *))
{
	uintptr_t top = ((uintptr_t)fiber->stack + fiber->stack_bytes) & ~(uintptr_t)15;
	/* r15 r14 r13 r12 rbx rbp and the return address, as weir_fiber_swap() takes them */
	uintptr_t frame[7] = { 0, 0, (uintptr_t)fiber, (uintptr_t)first, 0, 0, (uintptr_t)weir_fiber_begin };

	/* Once they are off, the stack pointer is a multiple of 16, as a call wants it. */
	fiber->context = memcpy((void *)(top - 16 - sizeof(frame)), frame, sizeof(frame));
}

void weir_fiber_context_switch(struct weir_fiber *from, struct weir_fiber *to)
{
	weir_fiber_swap(&from->context, to->context);
}

void weir_fiber_context_release(struct weir_fiber *fiber)
{
	(void)fiber;
}
