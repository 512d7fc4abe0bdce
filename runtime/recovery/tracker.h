/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/tracker.h: how long the controller has had each command.
 *
 * Owns: when each filled slot of a storage was first seen. Only looks: at tickets, slots and
 * completion rings, from the host, whoever else works with them meanwhile.
 */
#ifndef WEIR_RUNTIME_LATE_H
#define WEIR_RUNTIME_LATE_H

#include "../device/context.h"

struct weir_late;

/**
 * struct weir_late_command - a command that a controller has
 * @queue: index of its queue pair
 * @slot: of the queue pair
 * @sequence: the slot's: another one is another command
 * @cid: its identifier
 * @age_ns: since it was first seen; 0: the queue pair has none
 */
struct weir_late_command {
	uint32_t queue;
	uint32_t slot;
	uint32_t sequence;
	uint32_t cid;
	uint64_t age_ns;
};

/** weir_late_open() - for the queue pairs of @storage, which are created, and begin at @first_ticket */
int weir_late_open(struct weir_storage *storage, bool shared, uint64_t first_ticket, struct weir_late **out);
/** weir_late_close() - NULL is fine */
void weir_late_close(struct weir_late *late);

/**
 * weir_late_look() - look at all queue pairs
 * @late: what was seen before
 * @oldest: the command that the controller has had longest
 *
 * A command counts from the first look that finds it announced and not answered; one that was not
 * yet announced by its lanes, or whose completion is in the ring and not yet taken by them, is
 * theirs. While lanes leave completions where they are, the controller may lack room to answer:
 * that time does not count either.
 *
 * Return: 0, or a negative errno: the queue pairs cannot be read.
 */
int weir_late_look(struct weir_late *late, struct weir_late_command *oldest);

/** weir_late_pending() - the controller still has @command and has not answered it */
bool weir_late_pending(struct weir_late *late, const struct weir_late_command *command);

/**
 * struct weir_late_places - addresses of what others may read meanwhile (publish.h)
 * @seen: struct weir_late_seen[queue_count][depth]
 * @looked: u64: when all of it was last looked at; 0: not yet
 * @copies: struct weir_queue[queue_count] as fetched then; 0: they are read in their place
 * @first_ticket: of every queue pair
 */
struct weir_late_places {
	uint64_t seen;
	uint64_t looked;
	uint64_t copies;
	uint64_t first_ticket;
};

/** weir_late_places() - where they are, until weir_late_close() */
void weir_late_places(const struct weir_late *late, struct weir_late_places *places);

/** weir_late_now_ns() - the clock of ages */
uint64_t weir_late_now_ns(void);

#endif
