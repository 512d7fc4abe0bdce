/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/volume/place.h: to which engines a lane sends a command for a volume.
 *
 * Owns: the choice, by the map that the host gave; the steps of a write from engine to engine. What lanes
 * cannot place goes to the volume's own controller, whose host threads can: a command over two stripe units,
 * a flush, whatever was refused once, all of it while there is no map that engines accept.
 *
 * The lane says in the command by which map it goes, and the engine checks that. So a lane that is late needs
 * no protection: the worst that an old table does is a refusal.
 *
 * No function here has collectives; all are off the path of other storages.
 */
#ifndef WEIR_CORE_PLACE_H
#define WEIR_CORE_PLACE_H

#include <weir/core/queue/event.h>
#include <weir/core/queue/sq.h>
#include <weir/core/volume/placement.h>
#include <weir/core/wait_loop.h>

/**
 * struct weir_place - where a lane's command goes
 * @queue: its struct weir_queue; 0: nowhere just now, try again
 * @lba: what is its first block there
 * @join: of a write to several engines; else 0
 */
struct weir_place {
	weir_addr queue;
	u64 lba;
	weir_addr join;
};

/* The queue pair of engine @engine that this wave uses. */
WEIR_FN WEIR_GLOBAL struct weir_queue *weir_place_queue(WEIR_GLOBAL struct weir_placed *placed, u32 engine)
{
	return weir_at(placed->queues, struct weir_queue,
		       engine * placed->queues_each + (u32)weir_wave() % placed->queues_each);
}

/* Commands that have no answer yet. Relaxed: a hint. */
WEIR_FN u64 weir_place_load(WEIR_GLOBAL struct weir_queue *queue)
{
	return weir_load_u64_relaxed_dev(&queue->tail) - (weir_load_u64_relaxed_dev(&queue->reap) >> 1);
}

WEIR_FN u32 weir_place_alive(WEIR_GLOBAL struct weir_queue *queue)
{
	return weir_load_u32_relaxed_sys(&queue->dead) == WEIR_OK; /* relaxed: a flag that only ever rises */
}

/* To the one of the engines @word with the least to do; among equals, by the stripe unit. */
WEIR_FN struct weir_place weir_place_read(WEIR_GLOBAL struct weir_placed *placed, struct weir_place place,
					  u32 word, u32 unit)
{
	u64 least = ~(u64)0;

	for (u32 i = 0; i < placed->replicas; i++) {
		u32 engine = (word >> (8 * ((unit + i) % placed->replicas))) & 0xff;
		WEIR_GLOBAL struct weir_queue *queue;

		if (engine >= placed->engines)
			continue;
		queue = weir_place_queue(placed, engine);
		if (weir_place_alive(queue) && weir_place_load(queue) < least) {
			least = weir_place_load(queue);
			place.queue = WEIR_ADDR(queue);
		}
	}
	return place;
}

/* How many engines a write of a group goes to, in 7:0; 0: the host knows. Bit 8: each has a free slot. */
WEIR_FN u32 weir_place_count(WEIR_GLOBAL struct weir_placed *placed, u32 word)
{
	u32 count = 0, room = 1;

	for (; count < placed->replicas; count++) {
		u32 engine = (word >> (8 * count)) & 0xff;
		WEIR_GLOBAL struct weir_queue *queue;
		u64 next;

		if (engine == WEIR_PLACED_NOBODY)
			break;
		if (engine >= placed->engines)
			return 0;
		queue = weir_place_queue(placed, engine);
		if (!weir_place_alive(queue))
			return 0;
		next = weir_load_u64_relaxed_dev(&queue->tail) + 1; /* relaxed: a guess, all of it */
		room &= weir_load_u32_relaxed_dev(&weir_sq_slot(queue, next)->sequence) ==
			weir_sq_free_sequence(queue, next);
	}
	return count | room << 8;
}

/* A write of several engines is under way from here on: its answers come together. */
WEIR_FN weir_addr weir_place_join(WEIR_GLOBAL struct weir_placed *placed, struct weir_request request,
				  u32 word, u32 count, u32 lease)
{
	weir_addr address = weir_join_try(placed, (u32)weir_thread() * 5, count);
	WEIR_GLOBAL struct weir_write_join *join = weir_at(address, struct weir_write_join, 0);

	if (!address)
		return 0;
	weir_store_u32_relaxed_dev(&join->status, WEIR_OK); /* relaxed: sq.S1 publishes all of it */
	join->kind = request.target_kind;
	join->target = request.target;
	join->target_status = request.status;
	/* relaxed: this lane's own */
	weir_store_u32_relaxed_dev(&join->rest, count < 4 ? word | ~(u32)0 << (8 * count) : word);
	join->version = weir_placed_version(placed, lease, request.blocks);
	join->placed = WEIR_ADDR(placed);
	return address;
}

/* The next engine that the write of @join goes to, as the address of its queue pair; 0: none. */
WEIR_FN weir_addr weir_join_next(WEIR_GLOBAL struct weir_write_join *join)
{
	WEIR_GLOBAL struct weir_placed *placed = weir_at(join->placed, struct weir_placed, 0);
	u32 rest = weir_load_u32_relaxed_dev(&join->rest),
	    engine = rest & 0xff; /* relaxed: this lane's own */

	if (engine == WEIR_PLACED_NOBODY)
		return 0;
	weir_store_u32_relaxed_dev(&join->rest,
				   rest >> 8 | (u32)WEIR_PLACED_NOBODY << 24); /* relaxed: likewise */
	return WEIR_ADDR(weir_place_queue(placed, engine));
}

WEIR_FN struct weir_place weir_place_write(WEIR_GLOBAL struct weir_placed *placed, struct weir_place place,
					   struct weir_request request, u32 word)
{
	u32 lease = weir_load_u32_relaxed_dev(&placed->lease); /* relaxed: as in weir_capsule_of() */
	u32 found = lease ? weir_place_count(placed, word) : 0, count = found & 0xff;

	if (count == 0)
		return place;
	place.queue = 0;
	if (count > 1 && found >> 8) {
		place.join = weir_place_join(placed, request, word, count, lease);
		if (place.join)
			place.queue = weir_join_next(weir_at(place.join, struct weir_write_join, 0));
	} else if (count == 1) {
		place.queue = WEIR_ADDR(weir_place_queue(placed, word & 0xff));
	}
	return place;
}

/** struct weir_place_map - @engines of a block, a byte each, by the map of @epoch; @known: 0: the host knows
 */
struct weir_place_map {
	u32 engines;
	u32 epoch;
	u32 known;
};

/* The engines of block @vba by the newest map. A table that is written anew meanwhile is two maps older: its
 * engines refuse the epoch. */
WEIR_FN struct weir_place_map weir_place_engines(WEIR_GLOBAL struct weir_placed *placed, u64 vba)
{
	/* place.M1: pairs with place.M0 (runtime/volume/lanes.c): the table before the map's word */
	u64 map = weir_load_u64_acquire_dev(&placed->map);
	u64 group = weir_placement_group(placed->tag >> 16, vba, placed->unit_log2);
	struct weir_place_map found;

	group += (map & WEIR_PLACED_SECOND) * WEIR_PLACED_GROUPS;
	found.epoch = (u32)(map >> 32);
	/* relaxed: place.M1 came before; and a map that engines have refused is a hint */
	found.engines = weir_load_u32_relaxed_dev(
		weir_at(placed->tables, weir_shared_u32, group >> placed->group_shift));
	found.known = (map & WEIR_PLACED_VALID) && weir_load_u32_relaxed_dev(&placed->stale) != found.epoch;
	return found;
}

/* A try of a command that was refused once: it goes to the host. Of a line its status says so until another
 * block is there, or it is written back. */
WEIR_FN u32 weir_place_again(struct weir_request request)
{
	if (request.target_kind == WEIR_TARGET_EVENT || request.status == 0)
		return request.status != 0;
	/* relaxed: this lane's, until the command ends */
	return weir_load_u32_relaxed_dev(weir_at(request.status, weir_shared_u32, 0)) != WEIR_OK;
}

/**
 * weir_place() - where the command of one lane goes
 * @disk: a storage with WEIR_DISK_PLACED
 * @request: already checked
 *
 * A join that it takes is the lane's until weir_place_sent() gave 0.
 */
WEIR_COLD struct weir_place weir_place(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	WEIR_GLOBAL struct weir_queue *forwarder = weir_disk_queue(disk, weir_wave());
	WEIR_GLOBAL struct weir_placed *placed = weir_placed_of(forwarder);
	struct weir_place_map map;
	struct weir_place place;
	u32 unit;

	place.queue = WEIR_ADDR(forwarder);
	place.lba = request.lba;
	place.join = 0;
	if (!forwarder->volume || /* it is closed */
	    (request.opcode != NVME_OPCODE_READ && request.opcode != NVME_OPCODE_WRITE) ||
	    weir_place_again(request))
		return place;
	unit = (u32)(request.lba >> placed->unit_log2);
	if (unit != (u32)((request.lba + request.blocks - 1) >> placed->unit_log2))
		return place;
	map = weir_place_engines(placed, request.lba);
	if (!map.known)
		return place;
	place = request.opcode == NVME_OPCODE_WRITE ? weir_place_write(placed, place, request, map.engines)
						    : weir_place_read(placed, place, map.engines, unit);
	if (place.queue != WEIR_ADDR(forwarder))
		place.lba |= (u64)map.epoch << 32;
	return place;
}

/**
 * struct weir_place_step - a write to several engines, from one to the next
 * @queue: the next one's queue pair; 0: no more
 * @submitted: the write is under way
 */
struct weir_place_step {
	weir_addr queue;
	u32 submitted;
};

/* The writer has sent what it could. Return: the write is under way, or done; 0: it has failed already. */
WEIR_FN u32 weir_place_all_sent(WEIR_GLOBAL struct weir_write_join *write)
{
	struct weir_answer answer = weir_join_leave(write, WEIR_OK);

	if (answer.kind == WEIR_TARGET_NONE)
		return 1;
	if (answer.status != WEIR_OK)
		return 0;
	weir_line_outcome(answer.kind, answer.target_status, WEIR_OK);
	weir_fence_to_lanes(); /* for event.E0, or writeback.W2 */
	weir_complete(answer.kind, answer.target, answer.target_status, WEIR_OK, WEIR_PATH_DIRECT);
	return 1;
}

/**
 * weir_place_sent() - the next step of a write to several engines
 * @join: its struct weir_write_join
 * @sent: this engine's command was submitted
 *
 * Where one engine has no slot, the write has those to wait for that it was sent to, and ends with an error,
 * so that the host carries it out. If they have answered already, or there are none, it was not submitted.
 * Until its last step the join is the writer's, too, however many have answered.
 */
WEIR_COLD struct weir_place_step weir_place_sent(weir_addr join, u32 sent)
{
	WEIR_GLOBAL struct weir_write_join *write = weir_at(join, struct weir_write_join, 0);
	struct weir_place_step step;

	step.queue = sent ? weir_join_next(write) : 0;
	step.submitted = 1;
	if (step.queue)
		return step;
	if (!sent) {
		weir_capsule_unequal(weir_at(write->placed, struct weir_placed, 0));
		do
			(void)weir_join_leave(write, weir_capsule_path_error());
		while (weir_join_next(write));
	}
	step.submitted = weir_place_all_sent(write);
	return step;
}

#endif
