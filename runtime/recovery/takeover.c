/* SPDX-License-Identifier: BSD-3-Clause */
#include "takeover.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <weir/core/queue/cq.h>
#include <weir/core/queue/sq.h>

#include "../storage/doorbells.h"
#include "../backend/error.h"
#include "../base/timeout.h"
#include "tracker.h"

enum { ALONE = 1 }; /* the mask of a wave of one lane */

static struct weir_queue *queue_of(const struct weir_storage *storage, uint32_t index)
{
	return weir_at(storage->queues, struct weir_queue, index);
}

/* Let others go on. Return: there is time left. */
static bool time_left(struct weir_timeout *timeout)
{
	sched_yield();
	return weir_timeout_left(timeout, weir_tracker_now_ns());
}

static bool try_reaper(struct weir_queue *queue)
{
	uint64_t reap =
		weir_load_u64_relaxed_dev(&queue->reap); /* relaxed: a guess, as in weir_cq_try_lock() */

	/* cq.R0: pairs with cq.R1 of the previous reaper */
	return !(reap & 1) && weir_cas_u64_acquire_dev(&queue->reap, reap, reap | 1) == reap;
}

static void release_reaper(struct weir_queue *queue, uint64_t head)
{
	weir_store_u64_release_dev(&queue->reap, head << 1); /* cq.R1: pairs with cq.R0 */
}

/* Nobody raised pending: it is raised to 1, which makes us the combiner. */
static bool try_combiner(struct weir_queue *queue)
{
	/* sq.S6: pairs with sq.S7 of the previous combiner */
	return weir_cas_u64_acquire_dev(&queue->pending, 0, 1) == 0;
}

static int fail_busy(const struct weir_storage *storage, uint32_t index, unsigned ms)
{
	return weir_fail(ETIMEDOUT, "storage \"%s\": lanes did not let go of queue %u within %u ms",
			 storage->uri, index + 1, ms);
}

int weir_takeover_take(struct weir_storage *storage, uint32_t index, unsigned timeout_ms)
{
	struct weir_queue *queue = queue_of(storage, index);
	struct weir_timeout timeout = weir_timeout_from(weir_tracker_now_ns(), timeout_ms);

	while (!try_reaper(queue))
		if (!time_left(&timeout))
			return fail_busy(storage, index, timeout_ms);
	while (!try_combiner(queue))
		if (!time_left(&timeout)) {
			/* relaxed: ours */
			release_reaper(queue, weir_load_u64_relaxed_dev(&queue->reap) >> 1);
			return fail_busy(storage, index, timeout_ms);
		}
	return 0;
}

void weir_takeover_release(struct weir_storage *storage, uint32_t index)
{
	struct weir_queue *queue = queue_of(storage, index);

	while (weir_sq_combine(queue, ALONE, 0, 0) != 0)
		;
	release_reaper(queue, weir_load_u64_relaxed_dev(&queue->reap) >> 1); /* relaxed: ours */
}

/* The slot's sequence if it is filled for @ticket; else 0. */
static uint32_t filled(struct weir_queue *queue, uint64_t ticket)
{
	/* cq.R2: pairs with sq.S1 */
	uint32_t sequence = weir_load_u32_acquire_dev(&weir_sq_slot(queue, ticket)->sequence);

	return sequence == weir_sq_free_sequence(queue, ticket) + 1 ? sequence : 0;
}

uint32_t weir_takeover_end_commands(struct weir_storage *storage, uint32_t index)
{
	struct weir_queue *queue = queue_of(storage, index);
	uint64_t head = weir_load_u64_relaxed_dev(&queue->reap) >> 1; /* relaxed: ours, as committed */
	uint64_t committed = weir_load_u64_relaxed_dev(&queue->committed);
	uint32_t ended = 0, sequence;

	for (uint32_t i = 0; i < queue->depth && weir_cq_window(queue, ALONE, head) != 0; i++)
		head++;
	weir_store_u64_relaxed_dev(&queue->reap, head << 1 | 1);
	for (uint64_t ticket = committed - queue->depth; ticket != committed; ticket++)
		if ((sequence = filled(queue, ticket)) != 0) {
			uint32_t dw3 = ((uint32_t)ticket & 0xffff) | NVME_STATUS_ABORTED_BY_HOST << 17;

			weir_cq_count(queue, ALONE, weir_cq_handle(queue, dw3, sequence));
			ended++;
		}
	return ended;
}

/* A read of block 0 into the admin queue's page of data. */
static struct weir_request spare_read(const struct weir_storage *storage)
{
	return (struct weir_request){ .opcode = NVME_OPCODE_READ,
				      .blocks = 1,
				      .target_kind = WEIR_TARGET_NONE,
				      .buffer = storage->admin_memory + 2 * NVME_PAGE_BYTES };
}

/*
 * Fill what slots lanes leave free, but the one that always is. Afterwards no lane can reserve,
 * and none is between reserving and filling: the ring stands still.
 */
static int fill_up(struct weir_storage *storage, uint32_t index, struct weir_timeout *timeout)
{
	struct weir_queue *queue = queue_of(storage, index);
	uint64_t committed = weir_load_u64_relaxed_dev(&queue->committed); /* relaxed: ours */
	uint64_t last = committed + queue->depth - 1, reserved, ticket = committed;

	while (weir_load_u64_relaxed_dev(&queue->tail) != last) { /* relaxed: it only rises, and no further */
		reserved = weir_sq_try_reserve(queue, ALONE, ALONE, 1);
		if (reserved)
			weir_sq_fill(queue, (reserved >> 8) - 1, spare_read(storage));
		else if (!time_left(timeout))
			return -ETIMEDOUT;
	}
	while (ticket != last) /* filled() acquires: the entries are in the ring */
		if (filled(queue, ticket))
			ticket++;
		else if (!time_left(timeout))
			return -ETIMEDOUT;
	return 0;
}

/*
 * No entry looks as if it were there: the controller will write the first pass's phase, 1. If the pair is not
 * created after all, the phase that is due may be 0: so these are of no queue, and answer nobody's command.
 */
static void clear_completions(struct weir_queue *queue)
{
	for (uint32_t i = 0; i < queue->depth; i++) {
		/* relaxed: lanes only peek, until cq.R1 */
		weir_store_u32_relaxed_sys((weir_shared_u32 *)&weir_cq_entry(queue, i)->dw2, 0);
		weir_store_u32_relaxed_sys((weir_shared_u32 *)&weir_cq_entry(queue, i)->dw3, 0);
	}
}

/* Both doorbells' shadow and EventIdx words are 0, as those of a new pair have to be. */
static void clear_shadow(struct weir_queue *queue)
{
	weir_addr cq = queue->shadow + (queue->cq_doorbell - queue->sq_doorbell);

	if (!queue->shadow)
		return;
	/* relaxed: the doorbell of its creation orders them (admin.A0) */
	weir_store_u32_relaxed_sys(weir_at(queue->shadow, weir_shared_u32, 0), 0);
	weir_store_u32_relaxed_sys(weir_at(queue->shadow + NVME_PAGE_BYTES, weir_shared_u32, 0), 0);
	weir_store_u32_relaxed_sys(weir_at(cq, weir_shared_u32, 0), 0);
	weir_store_u32_relaxed_sys(weir_at(cq + NVME_PAGE_BYTES, weir_shared_u32, 0), 0);
}

static void write_spare_entries(struct weir_storage *storage, struct weir_queue *queue, uint32_t count)
{
	struct nvme_sqe *ring = weir_at(queue->sq, struct nvme_sqe, 0);
	uint64_t data = weir_bus_of(queue, storage->admin_memory + 2 * NVME_PAGE_BYTES).address;
	/* Identifiers of commands that have ended: what answers ours answers none of theirs. relaxed: ours */
	uint32_t first = (uint32_t)weir_load_u64_relaxed_dev(&queue->committed) - count;

	for (uint32_t i = 0; i < count; i++)
		ring[i] = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_READ | (first + i) << 16,
					     .nsid = queue->nsid,
					     .prp1 = data };
}

/* @count completions in a fresh ring, whatever they say. */
static int await_completions(struct weir_queue *queue, uint32_t count, struct weir_timeout *timeout)
{
	for (uint32_t i = 0; i < count; i++)
		while (!weir_cq_fresh(queue, i, weir_cq_load(queue, i))) /* doorbell.C1 */
			if (!time_left(timeout))
				return -ETIMEDOUT;
	return 0;
}

/* Lead the controller's head from 0 to @count, by commands of our own in place of those of the lanes. */
static int lead(struct weir_storage *storage, struct weir_queue *queue, uint32_t count,
		struct weir_timeout *timeout)
{
	size_t bytes = count * sizeof(struct nvme_sqe);
	void *saved = malloc(bytes + 1);
	int error;

	if (!saved)
		return -ENOMEM;
	memcpy(saved, weir_at(queue->sq, struct nvme_sqe, 0), bytes);
	write_spare_entries(storage, queue, count);
	if (count)
		weir_queue_ring(queue, queue->sq_doorbell, 0, count);
	error = await_completions(queue, count, timeout);
	memcpy(weir_at(queue->sq, struct nvme_sqe, 0), saved, bytes);
	free(saved);
	if (!error && count)
		weir_queue_ring(queue, queue->cq_doorbell, 0, count);
	return error;
}

/*
 * The entry of the one free slot was ours, too, and no completion will tell its next filler so:
 * its sequence word does, unchanged.
 */
static void publish_free_slot(struct weir_queue *queue)
{
	uint64_t ticket = weir_load_u64_relaxed_dev(&queue->committed) + queue->depth - 1; /* relaxed: ours */

	/* sq.S2: pairs with sq.S3 */
	weir_store_u32_release_dev(&weir_sq_slot(queue, ticket)->sequence,
				   weir_sq_free_sequence(queue, ticket));
}

/* Completions are taken from entry @count on, in the first pass of a ring. */
static void restart_completions(struct weir_queue *queue, uint32_t count)
{
	uint64_t passes = (uint64_t)2 * queue->depth;
	uint64_t head = weir_load_u64_relaxed_dev(&queue->reap) >> 1; /* relaxed: ours */

	head = (head / passes + 1) * passes + count;
	weir_store_u64_relaxed_dev(&queue->rung, head); /* relaxed: cq.R1 orders both */
	weir_store_u64_relaxed_dev(&queue->reap, head << 1 | 1);
}

int weir_takeover_create(struct weir_storage *storage, uint32_t index, unsigned timeout_ms)
{
	struct weir_queue *queue = queue_of(storage, index);
	/* relaxed: ours */
	uint32_t at = (uint32_t)weir_load_u64_relaxed_dev(&queue->committed) & (queue->depth - 1);
	struct weir_timeout timeout = weir_timeout_from(weir_tracker_now_ns(), timeout_ms);
	int error = fill_up(storage, index, &timeout);

	if (error)
		return fail_busy(storage, index, timeout_ms);
	clear_completions(queue);
	clear_shadow(queue);
	weir_doorbells_begin(storage, index);
	error = weir_admin_create_queue(&storage->admin, queue->id, queue->depth, queue->sq, queue->cq);
	if (error)
		return error;
	timeout = weir_timeout_from(weir_tracker_now_ns(), timeout_ms);
	error = lead(storage, queue, at, &timeout);
	publish_free_slot(queue);
	if (error)
		return weir_fail(ETIMEDOUT, "storage \"%s\": the new queue %u did not answer within %u ms",
				 storage->uri, index + 1, timeout_ms);
	restart_completions(queue, at);
	return 0;
}
