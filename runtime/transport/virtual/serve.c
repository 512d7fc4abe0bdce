/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/serve.c: which commands have their turn.
 *
 * Owns: fairness between queues, and looking ahead. Where the medium wants to
 * know early what it will be asked, some commands are copied before the first of
 * them begins, across queues; each is taken from its ring only when it begins.
 */
#include "parts.h"

/* How many commands are copied before they begin. */
static u32 places_ahead(const struct virtual_thread *thread)
{
	const struct weir_virtual *controller = thread->controller;

	/* Faults and turns at a rate decide after each command what comes next. */
	if (!controller->options.medium->ops->expect || thread->faults || controller->spacing_ns)
		return 1;
	return VIRTUAL_AHEAD;
}

static bool may_begin(const struct virtual_thread *thread)
{
	return thread->free && !thread->stalled;
}

static void begin(struct virtual_thread *thread, const struct virtual_copy *copy)
{
	bool owns_cid = virtual_sq_claim(copy->sq, copy->sqe.cdw0 >> 16);

	virtual_sq_take(copy->sq);
	virtual_io_begin(thread, &copy->sq->queue, &copy->sqe, owns_cid, NULL);
}

/* What cannot begin now is forgotten, and copied anew in a later poll: no queue lost its place. */
static u32 begin_all(struct virtual_thread *thread)
{
	struct virtual_ahead *ahead = &thread->ahead;
	u32 begun = 0;

	for (; begun < ahead->count; begun++) {
		const struct virtual_copy *copy = &ahead->copies[begun];

		if (!may_begin(thread) || !copy->sq->cq->free)
			break;
		begin(thread, copy);
	}
	ahead->count = 0;
	return begun;
}

static void copy_one(struct virtual_thread *thread, struct virtual_sq *sq, u32 location)
{
	const struct weir_virtual *controller = thread->controller;
	struct virtual_copy *copy = &thread->ahead.copies[thread->ahead.count++];

	copy->sq = sq;
	virtual_sq_copy(sq, location, &copy->sqe);
	if (controller->options.medium->ops->expect)
		virtual_io_expect(controller, &copy->sqe);
}

static u32 serve_queue(struct virtual_thread *thread, struct virtual_sq *sq, u32 most, u32 locations)
{
	u32 begun = 0, copied = 0;

	if (thread->faults && virtual_fault_pauses(thread, &sq->queue))
		return 0;
	thread->ready = virtual_sq_ready(thread, sq);
	if (thread->ready > most)
		thread->ready = most;
	while (thread->ready && may_begin(thread)) {
		thread->ready--; /* what comes may lower it further */
		copy_one(thread, sq, copied++);
		if (thread->ahead.count < locations)
			continue;
		begun += begin_all(thread);
		copied = 0;
	}
	return begun;
}

/* A lot that waits for the medium's poll leaves the caches, and all of it completes late. */
static void push(struct virtual_thread *thread)
{
	struct weir_medium *medium = thread->controller->options.medium;

	if (thread->in_medium)
		medium->ops->poll(medium, thread->index);
}

static u32 queue_after(const struct virtual_thread *thread, u32 at)
{
	return at + 1 < thread->queue_count ? at + 1 : 0;
}

/* The lines of an idle queue are left to the host, which writes the ones and polls the others. */
static void expect_next(const struct virtual_thread *thread, u32 at)
{
	const struct virtual_sq *next = thread->queues[queue_after(thread, at)];

	if (!virtual_sq_idle(thread, next))
		virtual_sq_expect(next);
}

/* One round over the queues; each poll begins with another one. */
static u32 serve_round(struct virtual_thread *thread, u32 batch, u32 quota, u32 locations)
{
	u32 taken = 0, pushed = 0, at = queue_after(thread, thread->iteration);

	thread->iteration = at;
	for (u32 i = 0; i < thread->queue_count && taken < quota; i++, at = queue_after(thread, at)) {
		struct virtual_sq *sq = thread->queues[at];
		u32 left = quota - taken;

		if (virtual_sq_idle(thread, sq))
			continue;
		expect_next(thread, at);
		taken += serve_queue(thread, sq, batch < left ? batch : left, locations);
		if (taken - pushed >= VIRTUAL_FETCH_BATCH) {
			push(thread);
			pushed = taken;
		}
	}
	return taken + begin_all(thread);
}

/* Under a rate limit the queues take turns command by command. */
u32 virtual_serve(struct virtual_thread *thread)
{
	u32 quota = virtual_time_quota(thread), locations = places_ahead(thread), taken, total = 0;

	if (!thread->controller->spacing_ns)
		return serve_round(thread, thread->controller->options.fetch_batch, quota, locations);
	do {
		taken = serve_round(thread, 1, quota - total, locations);
		total += taken;
	} while (taken && total < quota);
	return total;
}
