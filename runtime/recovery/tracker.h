/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/tracker.h: how long the controller has had each command.
 *
 * Owns: when each filled slot of a storage was first seen. Only looks: at tickets, slots and
 * completion rings, from the host, whoever else works with them meanwhile.
 */
#ifndef WEIR_RUNTIME_TRACKER_H
#define WEIR_RUNTIME_TRACKER_H

#include "../device/context.h"

struct weir_tracker;

/**
 * struct weir_tracked_command - a command that a controller has
 * @queue: index of its queue pair
 * @slot: of the queue pair
 * @sequence: the slot's: another one is another command
 * @cid: its identifier
 * @age_ns: since it was first seen; 0: the queue pair has none
 */
struct weir_tracked_command {
	uint32_t queue;
	uint32_t slot;
	uint32_t sequence;
	uint32_t cid;
	uint64_t age_ns;
};

/** weir_tracker_open() - for the queue pairs of @storage, which are created, and begin at @first_ticket */
int weir_tracker_open(struct weir_storage *storage, bool shared, uint64_t first_ticket,
		      struct weir_tracker **out);
/** weir_tracker_close() - NULL is fine */
void weir_tracker_close(struct weir_tracker *tracker);

/**
 * weir_tracker_poll() - look at all queue pairs
 * @tracker: what was seen before
 * @oldest: the command that the controller has had longest
 *
 * A command counts from the first look that finds it announced and not answered; one that was not
 * yet announced by its lanes, or whose completion is in the ring and not yet taken by them, is
 * theirs. While lanes leave completions where they are, the controller may lack room to answer:
 * that time does not count either.
 *
 * Return: 0, or a negative errno: the queue pairs cannot be read.
 */
int weir_tracker_poll(struct weir_tracker *tracker, struct weir_tracked_command *oldest);

/** weir_tracker_pending() - the controller still has @command and has not answered it */
bool weir_tracker_pending(struct weir_tracker *tracker, const struct weir_tracked_command *command);

/**
 * struct weir_tracker_slots - addresses of what others may read meanwhile (publish.h)
 * @seen: struct weir_tracker_seen[queue_count][depth]
 * @polled: u64: when all of it was last looked at; 0: not yet
 * @copies: struct weir_queue[queue_count] as fetched then; 0: they are read in their place
 * @first_ticket: of every queue pair
 */
struct weir_tracker_slots {
	uint64_t seen;
	uint64_t polled;
	uint64_t copies;
	uint64_t first_ticket;
};

/** weir_tracker_slots() - where they are, until weir_tracker_close() */
void weir_tracker_slots(const struct weir_tracker *tracker, struct weir_tracker_slots *locations);

/** weir_tracker_now_ns() - the clock of ages */
uint64_t weir_tracker_now_ns(void);

#endif
