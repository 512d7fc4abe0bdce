/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/error.h"
#include "../base/timeout.h"
#include "../observe/publish.h"

/**
 * struct weir_tracker - what was seen
 * @shared: the host reads queue words where they are, else it copies them
 * @queues: all queue pairs, if copied
 * @slots: of one queue pair, if copied
 * @entries: completion ring of one queue pair, if that is in device memory, and copied; else NULL
 * @seen: depth of each queue pair
 * @answered: by slot, of the queue pair being looked at: its completion is in the ring
 * @heads: where lanes stood in each completion ring
 * @first_ticket: of every queue pair
 * @polled_ns: when all was last looked at
 * @stood_ns: since then, how much younger commands were made by polls that failed
 */
struct weir_tracker {
	struct weir_storage *storage;
	bool shared;
	struct weir_queue *queues;
	struct weir_slot *slots;
	struct nvme_cqe *entries;
	struct weir_tracker_seen *seen;
	bool *answered;
	uint64_t *heads;
	uint64_t first_ticket;
	uint64_t polled_ns;
	uint64_t stood_ns;
};

/** struct view - a queue pair as it is just now */
struct view {
	struct weir_slot *slots;
	uint64_t committed;
	uint64_t completed;
	uint64_t head;
	uint64_t rung;
};

uint64_t weir_tracker_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Completion rings that the host reads by copies alone, as its lanes' words: gpu_memory=queues. */
static bool copies_entries(const struct weir_tracker *tracker)
{
	return !tracker->shared && tracker->storage->transport->gpu_memory == WEIR_GPU_MEMORY_QUEUES;
}

int weir_tracker_open(struct weir_storage *storage, bool shared, uint64_t first_ticket,
		      struct weir_tracker **out)
{
	struct weir_tracker *tracker = calloc(1, sizeof(*tracker));
	size_t count = storage->queue_count, depth = storage->depth;

	*out = tracker;
	if (!tracker)
		return -ENOMEM;
	tracker->storage = storage;
	tracker->shared = shared;
	tracker->first_ticket = first_ticket;
	tracker->seen = calloc(count * depth, sizeof(*tracker->seen));
	tracker->heads = calloc(count, sizeof(*tracker->heads));
	tracker->answered = calloc(depth, sizeof(*tracker->answered));
	tracker->queues = shared ? NULL : aligned_alloc(128, count * sizeof(*tracker->queues));
	tracker->slots = shared ? NULL : calloc(depth, sizeof(*tracker->slots));
	tracker->entries = copies_entries(tracker) ? calloc(depth, sizeof(*tracker->entries)) : NULL;
	if (tracker->seen && tracker->heads && tracker->answered &&
	    (shared || (tracker->queues && tracker->slots)) && (tracker->entries || !copies_entries(tracker)))
		return 0;
	weir_tracker_close(tracker);
	*out = NULL;
	return -ENOMEM;
}

void weir_tracker_close(struct weir_tracker *tracker)
{
	if (!tracker)
		return;
	free(tracker->seen);
	free(tracker->heads);
	free(tracker->answered);
	free(tracker->queues);
	free(tracker->slots);
	free(tracker->entries);
	free(tracker);
}

/* Queue words of all pairs, where they have to be fetched. */
static int refresh(struct weir_tracker *tracker)
{
	struct weir_storage *storage = tracker->storage;
	struct weir_backend *backend = storage->context->backend;

	if (tracker->shared)
		return 0;
	return backend->ops->d2h(backend, tracker->queues, storage->queues,
				 storage->queue_count * sizeof(*tracker->queues));
}

static struct weir_queue *queue_of(struct weir_tracker *tracker, uint32_t index)
{
	return tracker->shared ? weir_at(tracker->storage->queues, struct weir_queue, index)
			       : &tracker->queues[index];
}

/* Relaxed, but for what a slot's sequence guards: all of it is a snapshot, and looked at again. */
static void poll_at(struct weir_tracker *tracker, uint32_t index, struct view *view)
{
	struct weir_queue *queue = queue_of(tracker, index);

	view->head = weir_load_u64_relaxed_sys(&queue->reap) >> 1;
	view->rung = weir_load_u64_relaxed_sys(&queue->rung);
	view->committed = weir_load_u64_relaxed_sys(&queue->committed);
	view->completed = weir_load_u64_relaxed_sys(&queue->completed);
	view->slots = tracker->shared ? weir_at(queue->slots, struct weir_slot, 0) : tracker->slots;
}

static uint64_t entries_at(const struct weir_storage *storage, uint32_t index)
{
	return storage->rings[index] + weir_queue_cq_offset(storage->depth);
}

/* Of one queue pair what is copied; completions last, so that none of them is missing for a slot. */
static int fetch(struct weir_tracker *tracker, uint32_t index)
{
	struct weir_storage *storage = tracker->storage;
	struct weir_backend *backend = storage->context->backend;
	int error = tracker->shared ? 0
				    : backend->ops->d2h(backend, tracker->slots, storage->slots[index],
							storage->depth * sizeof(*tracker->slots));

	if (error || !tracker->entries)
		return error;
	return backend->ops->d2h(backend, tracker->entries, entries_at(storage, index),
				 storage->depth * sizeof(*tracker->entries));
}

static uint32_t entry_dw3(const struct weir_tracker *tracker, uint32_t index, uint64_t position)
{
	const struct weir_storage *storage = tracker->storage;
	uint64_t at = position & (storage->depth - 1);
	struct nvme_cqe *entry = tracker->entries ? &tracker->entries[at]
						  : weir_at(entries_at(storage, index), struct nvme_cqe, at);

	/* relaxed: only whether it is there */
	return __atomic_load_n(&entry->dw3, __ATOMIC_RELAXED);
}

/* The completion at @position is of this turn of the ring: nobody has taken it. */
static bool fresh(const struct weir_storage *storage, uint64_t position, uint32_t dw3)
{
	return ((dw3 >> 16) & 1) == ((uint32_t)(~(position / storage->depth)) & 1);
}

/* Which slots' completions lie in the ring. Return: how many do. */
static uint32_t find_answers(struct weir_tracker *tracker, uint32_t index, uint64_t head)
{
	const struct weir_storage *storage = tracker->storage;
	uint32_t count = 0, dw3;

	memset(tracker->answered, 0, storage->depth * sizeof(*tracker->answered));
	while (count < storage->depth &&
	       (dw3 = entry_dw3(tracker, index, head + count), fresh(storage, head + count, dw3))) {
		tracker->answered[dw3 & (storage->depth - 1)] = true;
		count++;
	}
	return count;
}

/* Ticket of a filled slot is below @committed: of 2^31 turns that the sequence tells apart, those around it.
 */
static bool announced(const struct weir_storage *storage, uint64_t committed, uint32_t slot,
		      uint32_t sequence)
{
	uint64_t iterations = (uint64_t)1 << 31, ticket = (uint64_t)(sequence >> 1) * storage->depth + slot;
	uint64_t behind = (committed - ticket) & (iterations * storage->depth - 1);

	return behind != 0 && behind <= storage->depth;
}

static uint32_t cid_of(const struct weir_storage *storage, uint32_t slot, uint32_t sequence)
{
	return ((sequence >> 1) * storage->depth + slot) & 0xffff;
}

/* The slot holds a command that the controller alone keeps from ending. */
static bool with_controller(struct weir_tracker *tracker, const struct view *view, uint32_t slot,
			    uint32_t *sequence)
{
	*sequence =
		weir_load_u32_acquire_dev(&view->slots[slot].sequence); /* pairs with sq.S1, as cq.R2 does */
	return (*sequence & 1) && announced(tracker->storage, view->committed, slot, *sequence) &&
	       !tracker->answered[slot];
}

static void poll_slot(struct weir_tracker *tracker, const struct view *view,
		      struct weir_tracked_command *oldest, struct weir_tracked_command command,
		      bool slots_tracked)
{
	struct weir_tracker_seen *seen =
		&tracker->seen[(size_t)command.queue * tracker->storage->depth + command.slot];
	uint64_t now;

	if (!with_controller(tracker, view, command.slot, &command.sequence)) {
		seen->sequence = 0;
		return;
	}
	now = weir_tracker_now_ns();
	if (seen->sequence != command.sequence || slots_tracked) {
		seen->sequence = command.sequence;
		seen->since_ns = now;
	}
	command.cid = cid_of(tracker->storage, command.slot, command.sequence);
	command.age_ns = now - seen->since_ns + 1;
	if (command.age_ns > oldest->age_ns)
		*oldest = command;
}

static int snapshot_at_queue(struct weir_tracker *tracker, uint32_t index,
			     struct weir_tracked_command *oldest)
{
	struct view view;
	bool slots_tracked;
	int error;

	poll_at(tracker, index, &view);
	if (view.committed - tracker->first_ticket ==
	    view.completed) /* all ended: there are no slots to fetch */
		return 0;
	error = fetch(tracker, index);
	if (error)
		return error;
	slots_tracked = (find_answers(tracker, index, view.head) || view.rung != view.head) &&
			tracker->heads[index] == view.head;
	tracker->heads[index] = view.head;
	for (uint32_t slot = 0; slot < tracker->storage->depth; slot++)
		poll_slot(tracker, &view, oldest,
			  (struct weir_tracked_command){ .queue = index, .slot = slot }, slots_tracked);
	return 0;
}

/* What passed since the last poll, beyond a quarter of the limit, makes no command older (base/timeout.h). */
static void stand_still(struct weir_tracker *tracker)
{
	size_t count = (size_t)tracker->storage->queue_count * tracker->storage->depth;
	uint64_t step = tracker->storage->answer_ns / WEIR_TIMEOUT_POLLS;
	uint64_t passed = weir_tracker_now_ns() - tracker->polled_ns;

	if (!tracker->polled_ns || !step || passed <= step)
		return;
	for (size_t i = 0; i < count; i++)
		tracker->seen[i].since_ns += passed - step - tracker->stood_ns;
	tracker->stood_ns = passed - step;
}

int weir_tracker_poll(struct weir_tracker *tracker, struct weir_tracked_command *oldest)
{
	int error = refresh(tracker);

	stand_still(tracker);
	*oldest = (struct weir_tracked_command){ .age_ns = 0 };
	for (uint32_t i = 0; i < tracker->storage->queue_count && !error; i++)
		error = snapshot_at_queue(tracker, i, oldest);
	if (error)
		return error;
	tracker->polled_ns = weir_tracker_now_ns();
	tracker->stood_ns = 0;
	return 0;
}

bool weir_tracker_pending(struct weir_tracker *tracker, const struct weir_tracked_command *command)
{
	struct view view;
	uint32_t sequence;

	if (refresh(tracker) || fetch(tracker, command->queue))
		return true;
	poll_at(tracker, command->queue, &view);
	find_answers(tracker, command->queue, view.head);
	return with_controller(tracker, &view, command->slot, &sequence) && sequence == command->sequence;
}

void weir_tracker_slots(const struct weir_tracker *tracker, struct weir_tracker_slots *locations)
{
	*locations = (struct weir_tracker_slots){ .seen = (uintptr_t)tracker->seen,
						  .polled = (uintptr_t)&tracker->polled_ns,
						  .copies = (uintptr_t)tracker->queues,
						  .first_ticket = tracker->first_ticket };
}
