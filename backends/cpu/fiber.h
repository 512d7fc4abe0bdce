/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fiber.h: a stack and a place to go on.
 *
 * Owns: creating fibers and switching between them on one thread. Knows nothing
 * of lanes or waves. fiber_x86_64.S or fiber_ucontext.c does the switch; one of
 * fiber_hooks_*.c tells a sanitizer about it.
 */
#ifndef WEIR_CPU_FIBER_H
#define WEIR_CPU_FIBER_H

#include <stddef.h>

/**
 * struct weir_fiber - a suspended computation
 * @context: saved stack pointer (x86-64), or a ucontext_t
 * @stack: lowest byte of its stack, NULL for the thread's own
 * @stack_bytes: length of it
 * @entry: what it runs
 * @argument: for @entry
 * @sanitizer: what the sanitizer's interface needs
 */
struct weir_fiber {
	void *context;
	void *stack;
	size_t stack_bytes;
	void (*entry)(void *);
	void *argument;
	void *sanitizer;
};

/** weir_fiber_adopt() - make @fiber stand for the calling thread */
void weir_fiber_adopt(struct weir_fiber *fiber);

/**
 * weir_fiber_prepare() - a fiber that will run entry(argument); entry must not return
 * @fiber: its stack and stack_bytes are set
 */
void weir_fiber_prepare(struct weir_fiber *fiber, void (*entry)(void *), void *argument);

/** weir_fiber_switch() - suspend @from, the running one, and go on with @to */
void weir_fiber_switch(struct weir_fiber *from, struct weir_fiber *to);

/** weir_fiber_release() - forget a fiber that is not running; its stack is the caller's */
void weir_fiber_release(struct weir_fiber *fiber);

/* The architecture's part. */
void weir_fiber_context_adopt(struct weir_fiber *fiber);
void weir_fiber_context_prepare(struct weir_fiber *fiber, void (*first)(void *));
void weir_fiber_context_switch(struct weir_fiber *from, struct weir_fiber *to);
void weir_fiber_context_release(struct weir_fiber *fiber);

/* The sanitizer's part; all do nothing without one. */
void weir_fiber_hook_adopt(struct weir_fiber *fiber);
void weir_fiber_hook_prepare(struct weir_fiber *fiber);
void weir_fiber_hook_leave(struct weir_fiber *from, struct weir_fiber *to);
void weir_fiber_hook_arrive(struct weir_fiber *self);
void weir_fiber_hook_release(struct weir_fiber *fiber);
/* What came before any _meet() at @meeting is visible after a _part() from it. */
void weir_fiber_hook_meet(void *meeting);
void weir_fiber_hook_part(void *meeting);

#endif
