/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault_fail.c: the controller fails, as a whole, by a fault.
 *
 * Owns: the way from one thread's fault to CSTS.CFS. Each thread falls silent by
 * itself, and thread 0 tells the host when all have: whoever reads CFS sees no
 * completion after it. A reset ends it. Also the reset that nobody asked for.
 */
#include "parts.h"

void virtual_fault_fail(struct virtual_thread *thread)
{
	thread->discard = true;
	thread->ready = 0;
	/* silence.F1: pairs with virtual_fault_follow(); it carries nothing but itself */
	store_release_u32(&thread->controller->failing, 1);
}

void virtual_fault_off(struct virtual_thread *thread)
{
	thread->discard = true; /* until the reset's letter is answered */
	thread->ready = 0;
	weir_virtual_write32(thread->controller, NVME_REGISTER_CC, 0);
}

static bool all_silent(const struct weir_virtual *controller)
{
	for (u32 i = 0; i < controller->options.threads; i++)
		/* silence.F2: pairs with fall_silent(): its completions come before CSTS (register.R2) */
		if (!load_acquire_u32(&controller->threads[i].counters.silent))
			return false;
	return true;
}

static void fall_silent(struct virtual_thread *thread, bool silent)
{
	thread->failed = silent;
	if (silent)
		virtual_requests_discard(thread);
	else
		thread->discard = false;                     /* the reset left nothing in flight */
	store_release_u32(&thread->counters.silent, silent); /* silence.F2: pairs with all_silent() */
}

unsigned virtual_fault_follow(struct virtual_thread *thread)
{
	struct weir_virtual *controller = thread->controller;
	bool failing = load_acquire_u32(&controller->failing); /* silence.F1, silence.F3 */
	unsigned done = failing != thread->failed;

	if (done)
		fall_silent(thread, failing);
	if (thread->index || !failing || controller->failed || !all_silent(controller))
		return done;
	controller->failed = true;
	virtual_control_fail(controller);
	if (load_relaxed_u32(&controller->pulled))
		/* register.R2: pairs with weir_virtual_read32(): all are silent */
		store_release_u32(&controller->gone, 1);
	return done + 1;
}

void virtual_fault_reset(struct weir_virtual *controller)
{
	controller->failed = false;
	/* silence.F3: pairs with virtual_fault_follow(): all threads answered the reset's letter */
	store_release_u32(&controller->failing, 0);
}
