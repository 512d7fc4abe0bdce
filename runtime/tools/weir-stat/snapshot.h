/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools/weir-stat/snapshot.h: the queue words of a process, read from outside while it runs, or does not.
 *
 * Owns: what they mean. Nothing is written, nobody is stopped; a word is read whole, several of
 * them may be of different moments, which is why a queue pair is looked at until it held still.
 */
#ifndef WEIR_STAT_SNAPSHOT_H
#define WEIR_STAT_SNAPSHOT_H

#include "note.h"

/** enum snapshot_place - how far a command got */
enum snapshot_place {
	SNAPSHOT_UNANNOUNCED, /* filled, and the doorbell does not tell of it yet: its lanes', or the
				 combiner's */
	SNAPSHOT_CONTROLLER,  /* announced and not answered */
	SNAPSHOT_ANSWERED,    /* its completion is in the ring, and no lane has taken it */
	SNAPSHOT_SLOTS,
};

/** enum snapshot_words - how queue words were read */
enum snapshot_words {
	SNAPSHOT_LIVE,
	SNAPSHOT_COPY, /* as the watchdog fetched them from the device last */
	SNAPSHOT_NONE,
};

/** enum snapshot_moved - whether a queue pair's words were others a while later */
enum snapshot_moved { SNAPSHOT_MOVED_UNKNOWN, SNAPSHOT_STOOD, SNAPSHOT_MOVED };

/** struct snapshot_plain - the words of a queue pair that change; as in struct weir_queue */
struct snapshot_plain {
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
 * struct snapshot_command - a command of a queue pair
 * @aged: @age_ns is known
 * @read: what it asks for is known: @opcode, @lba, @blocks
 */
struct snapshot_command {
	enum snapshot_place location;
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
 * struct snapshot_queue - a queue pair
 * @counted: its slots could be read: @count, @reserved
 * @steady: words and slots are of one moment
 * @count: filled slots, by how far they are
 * @reserved: slots that lanes took a ticket for and have not filled
 * @any: there is a command: @oldest, which of the controller's, if there are any, has the lowest ticket
 */
struct snapshot_queue {
	uint32_t id;
	struct snapshot_plain words;
	bool counted;
	bool steady;
	enum snapshot_moved moved;
	uint32_t count[SNAPSHOT_SLOTS];
	uint32_t reserved;
	bool any;
	struct snapshot_command oldest;
};

/** struct snapshot_storage - a storage; @polled_ns: how long ago the watchdog looked, if @snapped */
struct snapshot_storage {
	enum snapshot_words words;
	struct snapshot_queue *queues; /* of as many as the note says, unless SNAPSHOT_NONE */
	bool snapped;
	uint64_t polled_ns;
	bool recovered_read;
	uint64_t recovered[4];
	bool network_read;
	uint64_t network[WEIR_NETWORK_COUNTERS];
};

/** struct snapshot_cache - a cache's counters, if @read */
struct snapshot_cache {
	bool read;
	uint64_t misses, evictions, retracted, writebacks, write_errors;
};

/** snapshot_at_storage() - 0; or a negative errno: this process may not be looked at. For snapshot_release()
 * in either case */
int snapshot_at_storage(const struct note *note, const struct note_storage *storage,
			struct snapshot_storage *snapshot);
/** snapshot_again() - a while later: what has moved since */
void snapshot_again(const struct note *note, const struct note_storage *storage,
		    struct snapshot_storage *snapshot);
/** snapshot_release() - its memory */
void snapshot_release(struct snapshot_storage *snapshot);
/** snapshot_at_cache() - 0 or a negative errno, as of a storage */
int snapshot_at_cache(const struct note *note, const struct note_cache *cache,
		      struct snapshot_cache *snapshot);

enum { SNAPSHOT_TARGET_SUMS = WEIR_TARGET_COUNTERS - 1 };

/** struct snapshot_target - a target's counters, summed over its threads; @age_ms: of its oldest command */
struct snapshot_target {
	uint64_t sums[SNAPSHOT_TARGET_SUMS];
	uint64_t age_ms;
};

/** snapshot_at_target() - read them; 0 or a negative errno */
int snapshot_at_target(const struct note *note, struct snapshot_target *target);

#endif
