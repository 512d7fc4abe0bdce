/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault_hold.c: commands that ended, and whose completions faults hold
 * back: late ones, groups, and those that never come.
 *
 * Owns: the lines they stand in. One that is held keeps its request and its
 * identifier, and no private buffer, so that nobody waits for it in vain. A
 * dropped one also gives back what was promised to its completion.
 */
#include "parts.h"

static void insert_behind(struct virtual_line *line, struct virtual_request *before,
			  struct virtual_request *request)
{
	request->previous = before;
	request->next = before ? before->next : line->first;
	if (before)
		before->next = request;
	else
		line->first = request;
	if (request->next)
		request->next->previous = request;
	else
		line->last = request;
	line->count++;
	virtual_request_unbounce(request);
}

static void take_out(struct virtual_line *line, struct virtual_request *request)
{
	if (request->previous)
		request->previous->next = request->next;
	else
		line->first = request->next;
	if (request->next)
		request->next->previous = request->previous;
	else
		line->last = request->previous;
	line->count--;
}

/* One that will not be completed, in @line: of those that were dropped, or that are stuck. */
static void drop(struct virtual_request *request, struct virtual_line *line)
{
	insert_behind(line, line->last, request);
	request->thread->dropped++;
	request->thread->front->withhold(request);
}

static void hang(struct virtual_request *request)
{
	drop(request, &request->thread->faults->stuck);
	store_relaxed_u32(&request->thread->controller->hung,
			  1); /* relaxed: for good, and nothing goes with it */
}

static void delay(struct virtual_request *request, u32 us)
{
	struct virtual_line *line = &request->thread->faults->late;
	struct virtual_request *before = line->last;

	request->due_ns = virtual_clock_ns(request->thread->controller) + (u64)us * 1000;
	while (before && before->due_ns > request->due_ns)
		before = before->previous;
	insert_behind(line, before, request);
}

static struct virtual_request *pick(struct virtual_line *line, u32 index)
{
	struct virtual_request *request = line->first;

	while (index--)
		request = request->next;
	return request;
}

static void release_group(struct virtual_thread *thread, u32 row)
{
	const struct weir_fault_row *fault = &thread->controller->faults[row];
	struct virtual_faults *faults = thread->faults;
	struct virtual_line *line = &faults->groups[row];

	while (line->count) {
		bool by_lot = fault->kind == WEIR_VIRTUAL_FAULT_SHUFFLE;
		u64 lot = by_lot ? weir_fault_draw(fault->seed, faults->draws++) : 0;
		struct virtual_request *request = pick(line, (u32)(lot % line->count));

		take_out(line, request);
		faults->grouped--;
		virtual_fault_due(request, request->status);
	}
}

static void join_group(struct virtual_request *request, const struct weir_fault_row *row)
{
	struct virtual_thread *thread = request->thread;
	u32 index = (u32)(row - thread->controller->faults);
	struct virtual_line *line = &thread->faults->groups[index];

	insert_behind(line, line->last, request);
	thread->faults->grouped++;
	if (line->count >= row->of)
		release_group(thread, index);
}

static void finish(struct virtual_request *request, u32 status)
{
	virtual_request_count(request, status);
	request->thread->front->complete_wrong(request, status);
	virtual_request_free(request);
}

/* Each fault is taken once, so that this may be called again when one is over. */
void virtual_fault_due(struct virtual_request *request, u32 status)
{
	const struct weir_fault_row *row;

	request->status = status;
	if (request->thread->discard)
		virtual_request_forget(request);
	else if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_DROP))
		drop(request, &request->thread->faults->dropped);
	else if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_STUCK))
		drop(request, &request->thread->faults->stuck);
	else if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_HUNG))
		hang(request);
	else if ((row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_LATE)) != NULL)
		delay(request, row->us);
	else if ((row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_SHUFFLE)) != NULL ||
		 (row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_BURST)) != NULL)
		join_group(request, row);
	else
		finish(request, status);
}

static unsigned release_late(struct virtual_thread *thread)
{
	struct virtual_line *line = &thread->faults->late;
	unsigned released = 0;
	u64 now_ns;

	if (!line->count)
		return 0;
	now_ns = virtual_clock_ns(thread->controller);
	while (line->count && line->first->due_ns <= now_ns) {
		struct virtual_request *request = line->first;

		take_out(line, request);
		virtual_fault_due(request, request->status);
		released++;
	}
	return released;
}

/* Groups wait for no command that cannot come: none was fetched, none is under way. */
static unsigned release_groups(struct virtual_thread *thread, u32 fetched)
{
	struct virtual_faults *faults = thread->faults;
	unsigned released = faults->grouped;

	if (!released || fetched || thread->inflight > thread->dropped + faults->grouped)
		return 0;
	for (u32 i = 0; i < thread->controller->options.fault_count; i++)
		release_group(thread, i);
	return released;
}

unsigned virtual_fault_step(struct virtual_thread *thread, u32 fetched)
{
	unsigned done = virtual_fault_follow(thread);

	done += release_late(thread);
	return done + release_groups(thread, fetched);
}

static u32 abort_line(struct virtual_line *line, const struct virtual_queue *queue, u32 cid, u32 status)
{
	struct virtual_request *request = line->first, *next;
	u32 count = 0;

	for (; request; request = next) {
		next = request->next;
		if (!virtual_request_meant(request, queue, cid))
			continue;
		take_out(line, request);
		virtual_request_finish(request, status);
		count++;
	}
	return count;
}

/* Dropped commands end with their queue, and without a word: a device that lost one cannot abort it. */
static u32 forget_dropped(struct virtual_thread *thread, const struct virtual_queue *queue)
{
	struct virtual_request *request = thread->faults->dropped.first, *next;
	u32 count = 0;

	for (; request; request = next) {
		next = request->next;
		if (request->queue != queue)
			continue;
		take_out(&thread->faults->dropped, request);
		thread->dropped--;
		virtual_request_forget(request);
		count++;
	}
	return count;
}

u32 virtual_fault_abort(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid, u32 status)
{
	struct virtual_faults *faults = thread->faults;
	u32 count = 0;

	for (u32 i = 0; i < thread->controller->options.fault_count; i++)
		count += abort_line(&faults->groups[i], queue, cid, status);
	faults->grouped -= count;
	count += abort_line(&faults->late, queue, cid, status);
	if (cid == ~0u)
		count += forget_dropped(thread, queue);
	return count;
}

static void forget_line(struct virtual_line *line)
{
	while (line->count) {
		struct virtual_request *request = line->first;

		take_out(line, request);
		virtual_request_forget(request);
	}
}

void virtual_fault_discard(struct virtual_thread *thread)
{
	struct virtual_faults *faults = thread->faults;

	forget_line(&faults->late);
	forget_line(&faults->dropped);
	forget_line(&faults->stuck);
	for (u32 i = 0; i < thread->controller->options.fault_count; i++)
		forget_line(&faults->groups[i]);
	faults->grouped = 0;
	thread->dropped = 0;
}
