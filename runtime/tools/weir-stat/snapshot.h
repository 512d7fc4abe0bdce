/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools/weir-stat/snapshot.h: the queue words of a process, read from outside while it runs, or does not.
 *
 * Owns: what they mean. Nothing is written, nobody is stopped; a word is read whole, several of
 * them may be of different moments, which is why a queue pair is looked at until it held still.
 */
#ifndef WEIR_STAT_LOOK_H
#define WEIR_STAT_LOOK_H

#include "note.h"

/** enum look_place - how far a command got */
enum look_place {
	LOOK_UNANNOUNCED, /* filled, and the doorbell does not tell of it yet: its lanes', or the combiner's */
	LOOK_CONTROLLER,  /* announced and not answered */
	LOOK_ANSWERED,    /* its completion is in the ring, and no lane has taken it */
	LOOK_PLACES,
};

/** enum look_words - how queue words were read */
enum look_words {
	LOOK_LIVE,
	LOOK_COPY, /* as the watchdog fetched them from the device last */
	LOOK_NONE,
};

/** enum look_moved - whether a queue pair's words were others a while later */
enum look_moved { LOOK_MOVED_UNKNOWN, LOOK_STOOD, LOOK_MOVED };

/** struct look_plain - the words of a queue pair that change; as in struct weir_queue */
struct look_plain {
	uint64_t tail;
	uint64_t pending;
	uint64_t committed;
	uint64_t reap;
	uint64_t rung;
	uint64_t completed;
	uint64_t failed;
	uint64_t rogue;
	uint64_t retried;
	uint64_t rings;
	uint64_t shadow;
	uint64_t dead;
};

/**
 * struct look_command - a command of a queue pair
 * @aged: @age_ns is known
 * @read: what it asks for is known: @opcode, @lba, @blocks
 */
struct look_command {
	enum look_place place;
	uint64_t ticket;
	uint32_t slot;
	uint32_t sequence;
	uint32_t cid;
	bool aged;
	uint64_t age_ns;
	bool read;
	uint32_t opcode;
	uint64_t lba;
	uint32_t blocks;
};

/**
 * struct look_queue - a queue pair
 * @counted: its slots could be read: @count, @reserved
 * @steady: words and slots are of one moment
 * @count: filled slots, by how far they are
 * @reserved: slots that lanes took a ticket for and have not filled
 * @any: there is a command: @oldest, which of the controller's, if there are any, has the lowest ticket
 */
struct look_queue {
	uint32_t id;
	struct look_plain words;
	bool counted;
	bool steady;
	enum look_moved moved;
	uint32_t count[LOOK_PLACES];
	uint32_t reserved;
	bool any;
	struct look_command oldest;
};

/** struct look_storage - a storage; @looked_ns: how long ago the watchdog looked, if @looked */
struct look_storage {
	enum look_words words;
	struct look_queue *queues; /* of as many as the note says, unless LOOK_NONE */
	bool looked;
	uint64_t looked_ns;
	bool recovered_read;
	uint64_t recovered[4];
	bool network_read;
	uint64_t network[WEIR_NETWORK_COUNTERS];
};

/** struct look_cache - a cache's counters, if @read */
struct look_cache {
	bool read;
	uint64_t misses, evictions, retracted, writebacks, write_errors;
};

/** look_at_storage() - 0; or a negative errno: this process may not be looked at. For look_release() in either case */
int look_at_storage(const struct note *note, const struct note_storage *storage, struct look_storage *look);
/** look_again() - a while later: what has moved since */
void look_again(const struct note *note, const struct note_storage *storage, struct look_storage *look);
/** look_release() - its memory */
void look_release(struct look_storage *look);
/** look_at_cache() - 0 or a negative errno, as of a storage */
int look_at_cache(const struct note *note, const struct note_cache *cache, struct look_cache *look);

#endif
