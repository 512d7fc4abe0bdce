/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/time.c: when completions are due.
 *
 * Owns: the order of fetching of one thread, and the rate all threads share. A
 * command is due a constant time after it was fetched and not before its turn
 * at the I/O rate; both only grow, so the order of fetching is the order of due
 * times and a list is enough. The clock is read after the fetching, so that no
 * command is due too early, and once per poll.
 */
#include <time.h>

#include "parts.h"

/*
 * How far ahead commands are fetched under a rate limit: enough to bridge the
 * time between two polls, little enough that a deep queue cannot take the turns
 * of one that wakes up later.
 */
enum { AHEAD_NS = 200 * 1000 };

u64 virtual_monotonic_ns(void *argument)
{
	struct timespec now;

	(void)argument;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

u64 virtual_clock_ns(const struct weir_virtual *controller)
{
	return controller->options.clock_ns(controller->options.clock_argument);
}

u32 virtual_time_quota(struct virtual_thread *thread)
{
	const struct weir_virtual *controller = thread->controller;
	u64 next, quota;

	if (!controller->spacing_ns)
		return ~0u;
	thread->now_ns = virtual_clock_ns(thread->controller);
	/* Relaxed: an estimate; the turns themselves are taken by take_iterations(). */
	next = load_relaxed_u64(&controller->rate_ns);
	if (next < thread->now_ns)
		next = thread->now_ns;
	if (next >= thread->now_ns + AHEAD_NS)
		return 0;
	quota = (thread->now_ns + AHEAD_NS - next) / controller->spacing_ns + 1;
	return quota < ~0u ? (u32)quota : ~0u;
}

void virtual_time_add(struct virtual_thread *thread, struct virtual_request *request)
{
	request->timed = true;
	request->next = NULL;
	request->previous = thread->last;
	if (thread->last)
		thread->last->next = request;
	else
		thread->first = request;
	thread->last = request;
	if (!thread->unstamped)
		thread->unstamped = request;
}

void virtual_time_remove(struct virtual_thread *thread, struct virtual_request *request)
{
	if (thread->unstamped == request)
		thread->unstamped = request->next;
	if (request->previous)
		request->previous->next = request->next;
	else
		thread->first = request->next;
	if (request->next)
		request->next->previous = request->previous;
	else
		thread->last = request->previous;
	request->timed = false;
}

/* Take @count turns at the shared rate; the first is returned. */
static u64 take_iterations(struct weir_virtual *controller, u64 now_ns, u32 count)
{
	u64 next = load_relaxed_u64(&controller->rate_ns), start;

	/* Relaxed: the word carries nothing but itself. */
	do {
		start = next < now_ns ? now_ns : next;
	} while (!compare_exchange_relaxed_u64(&controller->rate_ns, &next,
					       start + count * controller->spacing_ns));
	return start;
}

static u32 count_unstamped(const struct virtual_thread *thread)
{
	u32 count = 0;

	for (const struct virtual_request *at = thread->unstamped; at; at = at->next)
		count++;
	return count;
}

static void stamp(struct virtual_thread *thread)
{
	struct weir_virtual *controller = thread->controller;
	u64 earliest = thread->now_ns + (u64)controller->options.latency_us * 1000;
	u64 iteration = 0;

	if (controller->spacing_ns)
		iteration = take_iterations(controller, thread->now_ns, count_unstamped(thread));
	while (thread->unstamped) {
		struct virtual_request *request = thread->unstamped;

		request->due_ns = iteration > earliest ? iteration : earliest;
		iteration += controller->spacing_ns;
		thread->unstamped = request->next;
	}
}

unsigned virtual_time_step(struct virtual_thread *thread)
{
	unsigned completed = 0;

	if (!thread->first)
		return 0;
	thread->now_ns = virtual_clock_ns(thread->controller);
	if (thread->unstamped)
		stamp(thread);
	while (thread->first && thread->first->due_ns <= thread->now_ns) {
		struct virtual_request *request = thread->first;

		virtual_time_remove(thread, request); /* completes when it ends, if it has not */
		if (request->ended) {
			virtual_request_due(request, request->status);
			completed++;
		}
	}
	return completed;
}
