/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/request.c: the life of a fetched I/O command until its completion.
 *
 * Owns: the per-thread pool, the line in front of a medium that refuses, and
 * the private buffers. All memory is taken beforehand.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../backend/error.h"
#include "../opcode.h"
#include "parts.h"

static u64 pool_size(const struct weir_virtual_options *options)
{
	u64 queues = (options->max_queue_pairs + options->threads - 1) / options->threads;
	u64 wanted = queues * options->max_queue_entries;

	if (wanted < VIRTUAL_REQUESTS_MIN)
		return VIRTUAL_REQUESTS_MIN;
	return wanted < VIRTUAL_REQUESTS_MAX ? wanted : VIRTUAL_REQUESTS_MAX;
}

static u64 bounce_bytes(const struct weir_virtual *controller)
{
	return controller->options.max_transfer_bytes; /* at least a page, so ranges fit too */
}

static void fill_pool(struct virtual_thread *thread, u64 count)
{
	u64 segments_max = thread->controller->segments_max;

	for (u64 i = count; i-- > 0;) {
		struct virtual_request *request = &thread->requests[i];

		request->thread = thread;
		request->segments = thread->segments + i * segments_max;
		request->next = thread->free;
		thread->free = request;
	}
	for (u32 i = 0; i < VIRTUAL_BOUNCES; i++)
		thread->bounces[i] = thread->bounce_memory + i * bounce_bytes(thread->controller);
	thread->bounce_count = VIRTUAL_BOUNCES;
}

int virtual_requests_create(struct virtual_thread *thread)
{
	struct weir_virtual *controller = thread->controller;
	u64 count = pool_size(&controller->options);

	thread->requests = calloc(count, sizeof(*thread->requests));
	thread->segments = calloc(count * controller->segments_max, sizeof(*thread->segments));
	thread->queues = calloc(controller->options.max_queue_pairs, sizeof(struct virtual_sq *));
	thread->list = aligned_alloc(NVME_PAGE_BYTES, NVME_PAGE_BYTES);
	thread->bounce_memory = aligned_alloc(NVME_PAGE_BYTES, VIRTUAL_BOUNCES * bounce_bytes(controller));
	if (!thread->requests || !thread->segments || !thread->queues || !thread->list ||
	    !thread->bounce_memory)
		return weir_fail(ENOMEM, "no memory for %llu requests of a virtual controller",
				 (unsigned long long)count);
	fill_pool(thread, count);
	return 0;
}

void virtual_requests_destroy(struct virtual_thread *thread)
{
	free(thread->bounce_memory);
	free(thread->list);
	free(thread->queues);
	free(thread->segments);
	free(thread->requests);
}

struct virtual_request *virtual_request_take(struct virtual_thread *thread, struct virtual_queue *queue)
{
	struct virtual_request *request = thread->free;

	thread->free = request->next;
	request->queue = queue;
	request->ended = false;
	request->place = 0;
	request->status = NVME_STATUS_SUCCESS;
	queue->inflight++;
	thread->inflight++;
	return request;
}

void virtual_request_unbounce(struct virtual_request *request)
{
	struct virtual_thread *thread = request->thread;

	if (request->bounce)
		thread->bounces[thread->bounce_count++] = request->bounce;
	request->bounce = NULL;
}

void virtual_request_free(struct virtual_request *request)
{
	struct virtual_thread *thread = request->thread;

	virtual_request_unbounce(request);
	request->queue->inflight--;
	thread->inflight--;
	request->next = thread->free;
	thread->free = request;
}

void virtual_request_forget(struct virtual_request *request)
{
	request->thread->front->release(request);
	virtual_request_free(request);
}

void virtual_request_count(const struct virtual_request *request, u32 status)
{
	struct virtual_counters *counters = &request->thread->counters;

	if (status)
		return;
	if (request->opcode == NVME_OPCODE_READ)
		count_u64(&counters->bytes_read, request->io.bytes);
	else if (request->opcode == NVME_OPCODE_WRITE)
		count_u64(&counters->bytes_written, request->io.bytes);
	if (weir_opcode_changes(request->opcode))
		count_u64(&counters->changes, 1);
}

void virtual_request_finish(struct virtual_request *request, u32 status)
{
	if (request->timed)
		virtual_time_remove(request->thread, request);
	virtual_request_count(request, status);
	if (request->thread->discard) {
		virtual_request_forget(request);
		return;
	}
	request->thread->front->complete(request, status);
	virtual_request_free(request);
}

void virtual_request_due(struct virtual_request *request, u32 status)
{
	if (request->faults)
		virtual_fault_due(request, status);
	else
		virtual_request_finish(request, status);
}

void virtual_request_end(struct virtual_request *request, u32 status)
{
	if (request->timed) {
		request->status = status;
		request->ended = true;
		return;
	}
	virtual_request_due(request, status);
}

bool virtual_request_submit(struct virtual_request *request, void (*done)(struct weir_io *io))
{
	struct virtual_thread *thread = request->thread;
	struct weir_medium *medium = thread->controller->options.medium;

	request->io.thread = thread->index;
	request->io.done = done;
	thread->in_medium++; /* each done() takes it back, perhaps inside submit() */
	if (medium->ops->submit(medium, &request->io))
		return true;
	thread->in_medium--;
	return false;
}

bool virtual_request_bounce(struct virtual_request *request)
{
	struct virtual_thread *thread = request->thread;

	if (request->bounce)
		return true;
	if (!thread->bounce_count)
		return false;
	request->bounce = thread->bounces[--thread->bounce_count];
	return true;
}

void virtual_stall(struct virtual_request *request)
{
	struct virtual_thread *thread = request->thread;

	request->stalled_next = NULL;
	if (thread->stalled)
		thread->stalled_last->stalled_next = request;
	else
		thread->stalled = request;
	thread->stalled_last = request;
}

unsigned virtual_stalled_step(struct virtual_thread *thread)
{
	unsigned started = 0;

	while (thread->stalled) {
		struct virtual_request *request = thread->stalled;
		struct virtual_request *behind = request->stalled_next;

		/* Out of the line first: it may end, and be used again, inside. */
		thread->stalled = behind;
		if (!virtual_io_start(request)) {
			request->stalled_next = behind;
			thread->stalled = request;
			if (!behind)
				thread->stalled_last = request;
			break;
		}
		started++;
	}
	return started;
}

bool virtual_request_meant(const struct virtual_request *request, const struct virtual_queue *queue, u32 cid)
{
	return request->queue == queue && (cid == ~0u || (request->cid == cid && request->owns_cid));
}

static u32 abort_stalled(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid,
			 u32 status)
{
	struct virtual_request *line = thread->stalled;
	u32 count = 0;

	thread->stalled = NULL;
	while (line) {
		struct virtual_request *request = line;

		line = request->stalled_next;
		if (virtual_request_meant(request, queue, cid)) {
			virtual_request_finish(request, status);
			count++;
		} else {
			virtual_stall(request);
		}
	}
	return count;
}

static u32 abort_ended(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid, u32 status)
{
	struct virtual_request *request = thread->first, *next;
	u32 count = 0;

	for (; request; request = next) {
		next = request->next;
		if (!request->ended || !virtual_request_meant(request, queue, cid))
			continue;
		virtual_request_finish(request, status);
		count++;
	}
	return count;
}

u32 virtual_requests_abort(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid,
			   u32 status)
{
	u32 count = abort_stalled(thread, queue, cid, status) + abort_ended(thread, queue, cid, status);

	if (thread->faults)
		count += virtual_fault_abort(thread, queue, cid, status);
	return count;
}

void virtual_requests_discard(struct virtual_thread *thread)
{
	thread->discard = true;
	while (thread->stalled) {
		struct virtual_request *request = thread->stalled;

		thread->stalled = request->stalled_next;
		virtual_request_finish(request, NVME_STATUS_ABORT_REQUESTED);
	}
	while (thread->first) {
		struct virtual_request *request = thread->first;

		if (request->ended)
			virtual_request_finish(request, NVME_STATUS_ABORT_REQUESTED);
		else
			virtual_time_remove(thread, request);
	}
	if (thread->faults)
		virtual_fault_discard(thread);
}
