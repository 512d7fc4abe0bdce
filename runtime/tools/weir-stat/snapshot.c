/* SPDX-License-Identifier: BSD-3-Clause */
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/abi.h>

#include "process.h"

enum { MOST_TRIES = 32 };

/** struct bench - what is read of one queue pair */
struct bench {
	const struct note *note;
	const struct note_storage *storage;
	uint32_t index;
	struct weir_queue queue;
	struct weir_slot *slots;
	struct nvme_cqe *ring;
	struct weir_tracker_seen *seen;
	bool seen_read;
	bool *answered; /* by slot */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of a copy that is ours alone: relaxed, as nobody else writes it. */
static struct snapshot_plain plain(struct weir_queue *queue)
{
	return (struct snapshot_plain){ .tail = weir_load_u64_relaxed_sys(&queue->tail),
					.pending = weir_load_u64_relaxed_sys(&queue->pending),
					.committed = weir_load_u64_relaxed_sys(&queue->committed),
					.reap = weir_load_u64_relaxed_sys(&queue->reap),
					.rung = weir_load_u64_relaxed_sys(&queue->rung),
					.completed = weir_load_u64_relaxed_sys(&queue->completed),
					.failed = weir_load_u64_relaxed_sys(&queue->failed),
					.rogue = weir_load_u64_relaxed_sys(&queue->rogue),
					.retried = weir_load_u64_relaxed_sys(&queue->retried),
					.rings = weir_load_u64_relaxed_sys(&queue->rings),
					.shadow = queue->shadow,
					.dead = weir_load_u32_relaxed_sys(&queue->dead) &
						WEIR_QUEUE_DEAD_STATUS };
}

static bool same(const struct snapshot_plain *a, const struct snapshot_plain *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static int peek(const struct note *note, uint64_t address, void *to, size_t bytes)
{
	return process_peek(note->pid, address, to, bytes);
}

/* Queue pair @index; what is no queue pair of this depth is nothing to go on with. */
static int peek_queue(const struct note *note, const struct note_storage *storage, uint64_t base,
		      uint32_t index, struct weir_queue *queue)
{
	int error = peek(note, base + index * sizeof(*queue), queue, sizeof(*queue));

	if (!error && (queue->depth != storage->depth || (1u << (queue->depth_log2 & 31)) != queue->depth ||
		       queue->id != index + 1))
		error = -EFAULT;
	return error;
}

/* Words, slots and ring, until the words did not change meanwhile. */
static int peek_whole(struct bench *bench, struct snapshot_queue *snapshot)
{
	const struct note *note = bench->note;
	const struct note_storage *storage = bench->storage;
	int error = peek_queue(note, storage, storage->queues, bench->index, &bench->queue);

	snapshot->steady = false;
	for (unsigned i = 0; i < MOST_TRIES && !snapshot->steady && !error; i++) {
		snapshot->words = plain(&bench->queue);
		error = peek(note, bench->queue.slots, bench->slots, storage->depth * sizeof(*bench->slots));
		if (!error)
			error = peek(note, bench->queue.cq, bench->ring,
				     storage->depth * sizeof(*bench->ring));
		if (!error)
			error = peek_queue(note, storage, storage->queues, bench->index, &bench->queue);
		if (!error) {
			struct snapshot_plain after = plain(&bench->queue);

			snapshot->steady = same(&snapshot->words, &after);
		}
	}
	return error;
}

static void peek_seen(struct bench *bench)
{
	size_t bytes = bench->storage->depth * sizeof(*bench->seen);

	bench->seen_read =
		bench->storage->seen &&
		!peek(bench->note, bench->storage->seen + bench->index * bytes, bench->seen, bytes);
}

/* Which slots' completions lie in the ring, from where lanes are: those of this turn's phase. */
static void find_answers(struct bench *bench, uint64_t head)
{
	uint32_t depth = bench->storage->depth;

	memset(bench->answered, 0, depth * sizeof(*bench->answered));
	for (uint64_t position = head; position - head < depth; position++) {
		uint32_t dw3 = bench->ring[position & (depth - 1)].dw3;

		if (((dw3 >> 16) & 1) != ((uint32_t) ~(position / depth) & 1))
			return;
		bench->answered[dw3 & (depth - 1)] = true;
	}
}

/* The ticket that slot @slot had last: of those below @tail the highest. */
static uint64_t last_ticket(const struct bench *bench, uint64_t tail, uint32_t slot)
{
	uint64_t first = tail - bench->storage->depth;

	return first + ((slot - first) & (bench->storage->depth - 1));
}

static uint32_t free_sequence(const struct bench *bench, uint64_t ticket)
{
	return (uint32_t)((ticket >> bench->queue.depth_log2) << 1);
}

/* What a command asks for, of the submission ring. */
static void read_entry(const struct bench *bench, struct snapshot_command *command)
{
	struct nvme_sqe sqe;

	if (peek(bench->note, bench->queue.sq + command->slot * sizeof(sqe), &sqe, sizeof(sqe)) != 0 ||
	    sqe.cdw0 >> 16 != command->cid)
		return;
	command->read = true;
	command->opcode = sqe.cdw0 & 0xff;
	command->lba = (uint64_t)sqe.cdw11 << 32 | sqe.cdw10;
	command->blocks = command->opcode == NVME_OPCODE_FLUSH ? 0 : (sqe.cdw12 & 0xffff) + 1;
}

static void find_age(const struct bench *bench, struct snapshot_command *command)
{
	const struct weir_tracker_seen *seen = &bench->seen[command->slot];
	uint64_t now = now_ns();

	command->aged = command->location == SNAPSHOT_CONTROLLER && bench->seen_read &&
			seen->sequence == command->sequence && seen->since_ns && seen->since_ns <= now;
	command->age_ns = command->aged ? now - seen->since_ns : 0;
}

static bool goes_before(const struct snapshot_command *a, const struct snapshot_command *b)
{
	if ((a->location == SNAPSHOT_CONTROLLER) != (b->location == SNAPSHOT_CONTROLLER))
		return a->location == SNAPSHOT_CONTROLLER;
	return a->ticket < b->ticket;
}

static void count_slot(struct bench *bench, struct snapshot_queue *snapshot, uint32_t slot)
{
	struct snapshot_command command = { .ticket = last_ticket(bench, snapshot->words.tail, slot),
					    .slot = slot };
	uint32_t before = free_sequence(bench, command.ticket);

	command.sequence = weir_load_u32_relaxed_sys(&bench->slots[slot].sequence); /* relaxed: of our copy */
	snapshot->reserved += command.sequence == before &&
			      command.ticket - snapshot->words.committed < bench->storage->depth;
	if (command.sequence != before + 1)
		return;
	command.cid = (uint32_t)command.ticket & 0xffff;
	command.location = command.ticket - snapshot->words.committed < bench->storage->depth
				   ? SNAPSHOT_UNANNOUNCED
			   : bench->answered[slot] ? SNAPSHOT_ANSWERED
						   : SNAPSHOT_CONTROLLER;
	snapshot->count[command.location]++;
	if (!snapshot->any || goes_before(&command, &snapshot->oldest))
		snapshot->oldest = command;
	snapshot->any = true;
}

static int snapshot_live(struct bench *bench, struct snapshot_queue *snapshot)
{
	int error = peek_whole(bench, snapshot);

	if (error)
		return error;
	snapshot->id = bench->queue.id;
	snapshot->counted = true;
	peek_seen(bench);
	find_answers(bench, snapshot->words.reap >> 1);
	for (uint32_t slot = 0; slot < bench->storage->depth; slot++)
		count_slot(bench, snapshot, slot);
	return 0;
}

/* A slot of which only the watchdog's note can be read. */
static void recall_slot(struct bench *bench, struct snapshot_queue *snapshot, uint32_t slot)
{
	struct snapshot_command command = { .location = SNAPSHOT_CONTROLLER,
					    .ticket = last_ticket(bench, snapshot->words.tail, slot),
					    .slot = slot };

	command.sequence = bench->seen[slot].sequence;
	command.cid = (uint32_t)command.ticket & 0xffff;
	if (command.sequence != free_sequence(bench, command.ticket) + 1)
		return;
	if (!snapshot->any || goes_before(&command, &snapshot->oldest))
		snapshot->oldest = command;
	snapshot->any = true;
}

static int snapshot_copy(struct bench *bench, struct snapshot_queue *snapshot)
{
	int error =
		peek_queue(bench->note, bench->storage, bench->storage->copies, bench->index, &bench->queue);

	if (error)
		return error;
	snapshot->id = bench->queue.id;
	snapshot->words = plain(&bench->queue);
	peek_seen(bench);
	/* Once all have ended the watchdog does not look at slots, and its notes of them are old. */
	if (!bench->seen_read ||
	    snapshot->words.committed - bench->storage->first_ticket == snapshot->words.completed)
		return 0;
	for (uint32_t slot = 0; slot < bench->storage->depth; slot++)
		recall_slot(bench, snapshot, slot);
	return 0;
}

static int snapshot_at_queue(struct bench *bench, enum snapshot_words words, struct snapshot_queue *snapshot)
{
	int error = words == SNAPSHOT_LIVE ? snapshot_live(bench, snapshot) : snapshot_copy(bench, snapshot);

	if (!error && snapshot->any) {
		find_age(bench, &snapshot->oldest);
		read_entry(bench, &snapshot->oldest);
	}
	return error;
}

static int snapshot_at_queues(const struct note *note, const struct note_storage *storage,
			      struct snapshot_storage *snapshot)
{
	struct bench bench = { .note = note, .storage = storage };
	int error = -ENOMEM;

	bench.slots = calloc(storage->depth, sizeof(*bench.slots));
	bench.ring = calloc(storage->depth, sizeof(*bench.ring));
	bench.seen = calloc(storage->depth, sizeof(*bench.seen));
	bench.answered = calloc(storage->depth, sizeof(*bench.answered));
	snapshot->queues = calloc(storage->count + 1, sizeof(*snapshot->queues));
	if (bench.slots && bench.ring && bench.seen && bench.answered && snapshot->queues)
		for (error = 0; bench.index < storage->count && !error; bench.index++)
			error = snapshot_at_queue(&bench, snapshot->words, &snapshot->queues[bench.index]);
	free(bench.slots);
	free(bench.ring);
	free(bench.seen);
	free(bench.answered);
	return error;
}

static bool is_memory_error(int error)
{
	return error == -EFAULT || error == -EIO; /* a device's memory, or memory that is gone */
}

/* What lies in the process's own memory, whatever its device is. Return: as snapshot_at_storage() */
static int snapshot_at_notes(const struct note *note, const struct note_storage *storage,
			     struct snapshot_storage *snapshot)
{
	int error = peek(note, storage->recovered, snapshot->recovered, sizeof(snapshot->recovered));
	uint64_t snapped = 0, now;

	snapshot->recovered_read = !error;
	if (error)
		return is_memory_error(error) ? 0 : error;
	snapshot->network_read = storage->network && peek(note, storage->network, snapshot->network,
							  sizeof(snapshot->network)) == 0;
	if (!storage->snapped || peek(note, storage->snapped, &snapped, sizeof(snapped)) != 0)
		return 0;
	now = now_ns();
	snapshot->snapped = snapped && snapped <= now;
	snapshot->polled_ns = now - snapped;
	return 0;
}

int snapshot_at_target(const struct note *note, struct snapshot_target *target)
{
	uint64_t oldest = 0, now = now_ns() / 1000000;

	*target = (struct snapshot_target){ .age_ms = 0 };
	for (unsigned i = 0; i < note->target_threads; i++) {
		uint64_t words[WEIR_TARGET_COUNTERS];
		int error = peek(note, note->target + i * note->target_stride, words, sizeof(words));

		if (error)
			return error;
		for (unsigned j = 0; j < SNAPSHOT_TARGET_SUMS; j++)
			target->sums[j] += words[j];
		if (words[SNAPSHOT_TARGET_SUMS] && (!oldest || words[SNAPSHOT_TARGET_SUMS] < oldest))
			oldest = words[SNAPSHOT_TARGET_SUMS];
	}
	target->age_ms = oldest && oldest < now ? now - oldest : 0;
	return 0;
}

int snapshot_at_storage(const struct note *note, const struct note_storage *storage,
			struct snapshot_storage *snapshot)
{
	int error;

	memset(snapshot, 0, sizeof(*snapshot));
	error = snapshot_at_notes(note, storage, snapshot);
	snapshot->words = note->shared                           ? SNAPSHOT_LIVE
			  : storage->copies && snapshot->snapped ? SNAPSHOT_COPY
								 : SNAPSHOT_NONE;
	if (!error && snapshot->words != SNAPSHOT_NONE)
		error = snapshot_at_queues(note, storage, snapshot);
	if (!is_memory_error(error))
		return error;
	snapshot->words = SNAPSHOT_NONE;
	return 0;
}

void snapshot_again(const struct note *note, const struct note_storage *storage,
		    struct snapshot_storage *snapshot)
{
	struct weir_queue queue;

	for (uint32_t i = 0; snapshot->words == SNAPSHOT_LIVE && i < storage->count; i++) {
		struct snapshot_plain now;

		if (peek_queue(note, storage, storage->queues, i, &queue) != 0)
			continue;
		now = plain(&queue);
		snapshot->queues[i].moved =
			same(&snapshot->queues[i].words, &now) ? SNAPSHOT_STOOD : SNAPSHOT_MOVED;
	}
}

void snapshot_release(struct snapshot_storage *snapshot)
{
	free(snapshot->queues);
}

int snapshot_at_cache(const struct note *note, const struct note_cache *cache,
		      struct snapshot_cache *snapshot)
{
	struct weir_lines lines;
	int error = note->shared ? peek(note, cache->lines, &lines, sizeof(lines)) : -EFAULT;

	*snapshot = (struct snapshot_cache){ .read = !error };
	if (error)
		return is_memory_error(error) ? 0 : error;
	/* relaxed: of our copy */
	snapshot->misses = weir_load_u64_relaxed_sys(&lines.misses);
	snapshot->evictions = weir_load_u64_relaxed_sys(&lines.evictions);
	snapshot->retracted = weir_load_u64_relaxed_sys(&lines.retracted);
	snapshot->writebacks = weir_load_u64_relaxed_sys(&lines.writebacks);
	snapshot->write_errors = weir_load_u64_relaxed_sys(&lines.write_errors);
	return 0;
}
