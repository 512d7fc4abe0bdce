/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/front.c: the core as fronts see it whose queues it does not know.
 *
 * Owns: nothing; each function leads to the part that does.
 */
#include "parts.h"

enum { POLL_NS = 20 * 1000 }; /* between two polls of a medium that has no descriptor */

bool weir_virtual_may_begin(struct weir_virtual *controller, unsigned index, struct virtual_queue *queue)
{
	struct virtual_thread *thread = &controller->threads[index];

	if (!thread->free || thread->stalled)
		return false;
	if (thread->faults && virtual_fault_pauses(thread, queue))
		return false;
	return !controller->spacing_ns || virtual_time_quota(thread);
}

void weir_virtual_begin(struct weir_virtual *controller, unsigned index, struct virtual_queue *queue,
			const struct nvme_sqe *sqe, void *command)
{
	virtual_io_begin(&controller->threads[index], queue, sqe, true, command);
}

void *weir_virtual_command(const struct virtual_request *request)
{
	return request->command;
}

void weir_virtual_count(struct virtual_request *request, u32 status)
{
	virtual_count_command(request->thread, status);
}

bool weir_virtual_fault(struct virtual_request *request, enum weir_virtual_fault_kind kind)
{
	return virtual_fault_take(request, kind) != NULL;
}

u32 weir_virtual_abort(struct weir_virtual *controller, unsigned index, struct virtual_queue *queue, u32 cid,
		       u32 status)
{
	return virtual_requests_abort(&controller->threads[index], queue, cid, status);
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 from_now(u64 now_ns, u64 due_ns)
{
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

u64 weir_virtual_wait_ns(struct weir_virtual *controller, unsigned index)
{
	const struct virtual_thread *thread = &controller->threads[index];
	const struct weir_medium *medium = controller->options.medium;
	u64 wait = UINT64_MAX, now_ns;

	if (thread->stalled || thread->unstamped)
		return 0;
	if (thread->in_medium && !(medium->ops->descriptor && medium->ops->descriptor(medium, index) >= 0))
		wait = POLL_NS;
	now_ns = thread->first || thread->faults || controller->spacing_ns ? virtual_clock_ns(controller) : 0;
	if (thread->first)
		wait = least(wait, from_now(now_ns, thread->first->due_ns));
	if (thread->faults && thread->faults->grouped)
		wait = least(wait, POLL_NS);
	if (thread->faults && thread->faults->late.first)
		wait = least(wait, from_now(now_ns, thread->faults->late.first->due_ns));
	return wait;
}

struct weir_engine *weir_virtual_engine(const struct weir_virtual *controller)
{
	return controller->options.engine;
}

const struct weir_medium *weir_virtual_medium(const struct weir_virtual *controller)
{
	return controller->options.medium;
}

u32 weir_virtual_transfer_bytes(const struct weir_virtual *controller)
{
	return controller->options.max_transfer_bytes;
}

bool weir_virtual_failed(struct weir_virtual *controller, bool *gone)
{
	*gone = load_acquire_u32(&controller->gone);   /* register.R2: pairs with virtual_fault_follow() */
	return load_acquire_u32(&controller->failing); /* silence.F1: pairs with virtual_fault_fail() */
}
