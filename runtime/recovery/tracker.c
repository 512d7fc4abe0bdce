/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/error.h"
#include "../observe/publish.h"

/**
 * struct weir_late - what was seen
 * @shared: the host reads queue words where they are, else it copies them
 * @queues: all queue pairs, if copied
 * @slots: of one queue pair, if copied
 * @seen: depth of each queue pair
 * @answered: by slot, of the queue pair being looked at: its completion is in the ring
 * @heads: where lanes stood in each completion ring
 * @first_ticket: of every queue pair
 * @looked_ns: when all was last looked at
 */
struct weir_late {
	struct weir_storage *storage;
	bool shared;
	struct weir_queue *queues;
	struct weir_slot *slots;
	struct weir_late_seen *seen;
	bool *answered;
	uint64_t *heads;
	uint64_t first_ticket;
	uint64_t looked_ns;
};

/** struct view - a queue pair as it is just now */
struct view {
	struct weir_slot *slots;
	uint64_t committed;
	uint64_t completed;
	uint64_t head;
	uint64_t rung;
};

uint64_t weir_late_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int weir_late_open(struct weir_storage *storage, bool shared, uint64_t first_ticket, struct weir_late **out)
{
	struct weir_late *late = calloc(1, sizeof(*late));
	size_t count = storage->queue_count, depth = storage->depth;

	*out = late;
	if (!late)
		return -ENOMEM;
	late->storage = storage;
	late->shared = shared;
	late->first_ticket = first_ticket;
	late->seen = calloc(count * depth, sizeof(*late->seen));
	late->heads = calloc(count, sizeof(*late->heads));
	late->answered = calloc(depth, sizeof(*late->answered));
	late->queues = shared ? NULL : aligned_alloc(128, count * sizeof(*late->queues));
	late->slots = shared ? NULL : calloc(depth, sizeof(*late->slots));
	if (late->seen && late->heads && late->answered && (shared || (late->queues && late->slots)))
		return 0;
	weir_late_close(late);
	*out = NULL;
	return -ENOMEM;
}

void weir_late_close(struct weir_late *late)
{
	if (!late)
		return;
	free(late->seen);
	free(late->heads);
	free(late->answered);
	free(late->queues);
	free(late->slots);
	free(late);
}

/* Queue words of all pairs, where they have to be fetched. */
static int refresh(struct weir_late *late)
{
	struct weir_storage *storage = late->storage;
	struct weir_backend *backend = storage->context->backend;

	if (late->shared)
		return 0;
	return backend->ops->copy_out(backend, late->queues, storage->queues, storage->queue_count * sizeof(*late->queues));
}

static struct weir_queue *queue_of(struct weir_late *late, uint32_t index)
{
	return late->shared ? weir_at(late->storage->queues, struct weir_queue, index) : &late->queues[index];
}

/* Relaxed, but for what a slot's sequence guards: all of it is a snapshot, and looked at again. */
static void look_at(struct weir_late *late, uint32_t index, struct view *view)
{
	struct weir_queue *queue = queue_of(late, index);

	view->head = weir_load_u64_relaxed_sys(&queue->reap) >> 1;
	view->rung = weir_load_u64_relaxed_sys(&queue->rung);
	view->committed = weir_load_u64_relaxed_sys(&queue->committed);
	view->completed = weir_load_u64_relaxed_sys(&queue->completed);
	view->slots = late->shared ? weir_at(queue->slots, struct weir_slot, 0) : late->slots;
}

static int fetch_slots(struct weir_late *late, uint32_t index)
{
	struct weir_storage *storage = late->storage;
	struct weir_backend *backend = storage->context->backend;

	if (late->shared)
		return 0;
	return backend->ops->copy_out(backend, late->slots, storage->slots[index], storage->depth * sizeof(*late->slots));
}

static uint32_t entry_dw3(const struct weir_storage *storage, uint32_t index, uint64_t position)
{
	uint64_t ring = storage->rings[index] + weir_queue_cq_offset(storage->depth);
	struct nvme_cqe *entry = weir_at(ring, struct nvme_cqe, position & (storage->depth - 1));

	/* relaxed: only whether it is there */
	return __atomic_load_n(&entry->dw3, __ATOMIC_RELAXED);
}

/* The completion at @position is of this turn of the ring: nobody has taken it. */
static bool fresh(const struct weir_storage *storage, uint64_t position, uint32_t dw3)
{
	return ((dw3 >> 16) & 1) == ((uint32_t)(~(position / storage->depth)) & 1);
}

/* Which slots' completions lie in the ring. Return: how many do. */
static uint32_t find_answers(struct weir_late *late, uint32_t index, uint64_t head)
{
	const struct weir_storage *storage = late->storage;
	uint32_t count = 0, dw3;

	memset(late->answered, 0, storage->depth * sizeof(*late->answered));
	while (count < storage->depth && (dw3 = entry_dw3(storage, index, head + count), fresh(storage, head + count, dw3))) {
		late->answered[dw3 & (storage->depth - 1)] = true;
		count++;
	}
	return count;
}

/* Ticket of a filled slot is below @committed: of 2^31 turns that the sequence tells apart, those around it. */
static bool announced(const struct weir_storage *storage, uint64_t committed, uint32_t slot, uint32_t sequence)
{
	uint64_t turns = (uint64_t)1 << 31, ticket = (uint64_t)(sequence >> 1) * storage->depth + slot;
	uint64_t behind = (committed - ticket) & (turns * storage->depth - 1);

	return behind != 0 && behind <= storage->depth;
}

static uint32_t cid_of(const struct weir_storage *storage, uint32_t slot, uint32_t sequence)
{
	return ((sequence >> 1) * storage->depth + slot) & 0xffff;
}

/* The slot holds a command that the controller alone keeps from ending. */
static bool with_controller(struct weir_late *late, const struct view *view, uint32_t slot, uint32_t *sequence)
{
	*sequence = weir_load_u32_acquire_dev(&view->slots[slot].sequence); /* pairs with S1, as R2 does */
	return (*sequence & 1) && announced(late->storage, view->committed, slot, *sequence) && !late->answered[slot];
}

static void look_at_slot(struct weir_late *late, const struct view *view, struct weir_late_command *oldest,
			 struct weir_late_command command, bool lanes_late)
{
	struct weir_late_seen *seen = &late->seen[(size_t)command.queue * late->storage->depth + command.slot];
	uint64_t now;

	if (!with_controller(late, view, command.slot, &command.sequence)) {
		seen->sequence = 0;
		return;
	}
	now = weir_late_now_ns();
	if (seen->sequence != command.sequence || lanes_late) {
		seen->sequence = command.sequence;
		seen->since_ns = now;
	}
	command.cid = cid_of(late->storage, command.slot, command.sequence);
	command.age_ns = now - seen->since_ns + 1;
	if (command.age_ns > oldest->age_ns)
		*oldest = command;
}

static int look_at_queue(struct weir_late *late, uint32_t index, struct weir_late_command *oldest)
{
	struct view view;
	bool lanes_late;
	int error;

	look_at(late, index, &view);
	if (view.committed - late->first_ticket == view.completed) /* all ended: there are no slots to fetch */
		return 0;
	error = fetch_slots(late, index);
	if (error)
		return error;
	lanes_late = (find_answers(late, index, view.head) || view.rung != view.head) && late->heads[index] == view.head;
	late->heads[index] = view.head;
	for (uint32_t slot = 0; slot < late->storage->depth; slot++)
		look_at_slot(late, &view, oldest, (struct weir_late_command){ .queue = index, .slot = slot }, lanes_late);
	return 0;
}

int weir_late_look(struct weir_late *late, struct weir_late_command *oldest)
{
	int error = refresh(late);

	*oldest = (struct weir_late_command){ .age_ns = 0 };
	for (uint32_t i = 0; i < late->storage->queue_count && !error; i++)
		error = look_at_queue(late, i, oldest);
	if (!error)
		late->looked_ns = weir_late_now_ns();
	return error;
}

bool weir_late_pending(struct weir_late *late, const struct weir_late_command *command)
{
	struct view view;
	uint32_t sequence;

	if (refresh(late) || fetch_slots(late, command->queue))
		return true;
	look_at(late, command->queue, &view);
	find_answers(late, command->queue, view.head);
	return with_controller(late, &view, command->slot, &sequence) && sequence == command->sequence;
}

void weir_late_places(const struct weir_late *late, struct weir_late_places *places)
{
	*places = (struct weir_late_places){ .seen = (uintptr_t)late->seen,
					     .looked = (uintptr_t)&late->looked_ns,
					     .copies = (uintptr_t)late->queues,
					     .first_ticket = late->first_ticket };
}
