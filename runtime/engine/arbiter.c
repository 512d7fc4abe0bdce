/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/arbiter.c: which request the medium behind gets next, when volumes want more than it gives.
 *
 * Owns: weighted fair queueing between volumes, by blocks and by volumes' weights, for each controller thread
 * by itself. While few blocks are under way every request goes on at once, and nothing is queued. Source:
 * start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996); GNStor, section 4, asks for shares between
 * volumes and leaves open how.
 */
#include "request.h"

enum { COST_SHIFT = 20 };

static u32 queue_of(const struct engine_request *request)
{
	return request_vid(request->given) % ENGINE_QUEUES;
}

/* What a request takes of its volume's time: the less, the greater the weight. */
static u64 cost(const struct engine_request *request)
{
	return ((u64)request->blocks << COST_SHIFT) / request->weight;
}

/* A volume that had nothing to do has not saved time up. */
static u64 start_of(const struct engine_arbiter *arbiter, u32 queue)
{
	u64 start = arbiter->queues[queue].start;

	return start < arbiter->now ? arbiter->now : start;
}

static void append(struct engine_arbiter *arbiter, struct engine_request *request)
{
	u32 number = queue_of(request);
	struct engine_queue *queue = &arbiter->queues[number];

	request->next = NULL;
	if (!queue->first) {
		queue->start = start_of(arbiter, number);
		queue->first = request;
	} else {
		queue->last->next = request;
	}
	queue->last = request;
	arbiter->active |= (u64)1 << number;
}

/* Of the queues that have something the one whose turn is earliest. */
static u32 next_queue(const struct engine_arbiter *arbiter)
{
	u32 best = (u32)__builtin_ctzll(arbiter->active);

	for (u64 left = arbiter->active; left; left &= left - 1) {
		u32 number = (u32)__builtin_ctzll(left);

		if (arbiter->queues[number].start < arbiter->queues[best].start)
			best = number;
	}
	return best;
}

static struct engine_request *take(struct engine_arbiter *arbiter, u32 number)
{
	struct engine_queue *queue = &arbiter->queues[number];
	struct engine_request *request = queue->first;

	queue->first = request->next;
	if (!queue->first)
		arbiter->active &= ~((u64)1 << number);
	return request;
}

/* One that is larger than the window goes alone. */
static bool is_full(const struct engine_arbiter *arbiter, const struct engine_request *request)
{
	return arbiter->blocks && arbiter->blocks + request->blocks > ENGINE_WINDOW_BLOCKS;
}

/* It may end inside, and its end may submit others: these are queued meanwhile. */
static void begin(struct engine_arbiter *arbiter, struct engine_request *request)
{
	u32 number = queue_of(request);
	bool pushed;

	arbiter->now = start_of(arbiter, number);
	arbiter->queues[number].start = arbiter->now + cost(request);
	arbiter->blocks += request->blocks;
	arbiter->pushing = true;
	pushed = engine_request_push(request);
	arbiter->pushing = false;
	if (!pushed)
		arbiter->stalled = request;
}

void engine_arbiter_submit(struct engine_arbiter *arbiter, struct engine_request *request)
{
	if (arbiter->pushing || arbiter->stalled || arbiter->active || is_full(arbiter, request))
		append(arbiter, request);
	else
		begin(arbiter, request);
}

static bool resume(struct engine_arbiter *arbiter)
{
	bool pushed = true;

	if (arbiter->stalled) {
		arbiter->pushing = true;
		pushed = engine_request_push(arbiter->stalled);
		arbiter->pushing = false;
		arbiter->stalled = pushed ? NULL : arbiter->stalled;
	}
	return pushed;
}

void engine_arbiter_run(struct engine_arbiter *arbiter)
{
	while (resume(arbiter) && arbiter->active) {
		u32 number = next_queue(arbiter);

		if (is_full(arbiter, arbiter->queues[number].first))
			return;
		begin(arbiter, take(arbiter, number));
	}
}
