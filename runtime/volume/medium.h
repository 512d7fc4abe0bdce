/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/medium.h: a volume as the medium of a virtual controller.
 *
 * Owns: what a volume consists of inside a client; private to runtime/volume and its tests. A controller
 * thread owns its struct volume_thread; the session's thread (session.h) opens and closes channels, and the
 * two hand them over by struct volume_link's state.
 */
#ifndef WEIR_VOLUME_MEDIUM_H
#define WEIR_VOLUME_MEDIUM_H

#include "../transport/medium/medium.h"
#include "channel.h"
#include "session.h"

enum {
	VOLUME_FRAGMENTS = 64,           /* of a thread, in flight */
	VOLUME_FRAGMENT_MOST = 64 << 10, /* bytes of one */
	VOLUME_CHANGING = 1 << 15,       /* bits, by block modulo that */
};

struct weir_lanes;
struct weir_storage;

/** enum volume_link_state - of a channel, with the thread that changes it next */
enum volume_link_state {
	VOLUME_LINK_ABSENT, /* session: open it */
	VOLUME_LINK_READY,  /* controller: commands go there */
	VOLUME_LINK_LOST,   /* session: halt it */
	VOLUME_LINK_HALTED, /* controller: end its commands */
	VOLUME_LINK_ENDED,  /* session: close it */
};

/**
 * struct volume_link - a thread's channel to the engine of a slot
 * @state: enum volume_link_state
 * @inflight: commands that the engine has
 * @oldest_ns: none of them was sent before
 * @again_ns: when to try to open it next
 */
struct volume_link {
	struct weir_channel *channel;
	struct shared_u32 state;
	u32 inflight;
	uint64_t oldest_ns;
	uint64_t again_ns;
};

/**
 * struct volume_fragment - of a request, what lies in one stripe unit
 * @next: of the free ones; @next_parked: of those that wait
 * @io: of a request; NULL: free
 * @io_offset: of its first byte in the request's data
 * @vba, @blocks: what it is about
 * @first, @count: of these, the part that is under way: all, or, once blocks have had different fates, one
 * @version: of its first block
 * @epoch: of the map that the attempt goes by
 * @todo, @waiting, @done, @tried, @bad: slots, as bits: still to be sent to, not answered, done, asked
 * before, whose block is damaged
 * @not_here: of @tried, those that may not have it yet
 * @again: the attempt is to be repeated
 * @repeats: how often it was, by the map of @epoch, as far as that matters
 * @old: a newer version is on some engine
 * @faulty: the medium of an engine has failed it
 * @parked: in the list of those that wait
 * @status: why it fails
 * @data: its bytes in the thread's memory; @list: its PRP list
 */
struct volume_fragment {
	struct volume_fragment *next;
	struct volume_fragment *next_parked;
	struct volume_thread *thread;
	struct weir_io *io;
	enum weir_io_kind kind;
	bool force_unit_access;
	uint64_t io_offset;
	uint64_t vba;
	u32 blocks;
	u32 first;
	u32 count;
	u64 version;
	u32 epoch;
	u64 todo;
	u64 waiting;
	u64 done;
	u64 tried;
	u64 bad;
	u64 not_here;
	bool again;
	u8 repeats;
	bool old;
	bool faulty;
	bool parked;
	u16 status;
	uint64_t retry_ns;
	uint64_t deadline_ns;
	unsigned char *data;
	u64 *list;
};

/** struct volume_command - what a channel gives back: @fragment's command to the engine of @slot */
struct volume_command {
	struct volume_fragment *fragment;
	u32 slot;
	uint64_t sent_ns;
};

/**
 * struct volume_thread - a controller thread's part
 * @commands: of fragment f and slot s: f * WEIR_SESSION_SLOTS + s
 * @memory: @memory_bytes that channels reach: data and PRP lists of all fragments
 * @first, @last: requests of which not all is cut into fragments
 * @parked: fragments that wait for a time, a map, a channel
 */
struct volume_thread {
	struct volume *volume;
	struct weir_session_map *map;
	struct volume_link links[WEIR_SESSION_SLOTS];
	struct volume_fragment *fragments;
	struct volume_command *commands;
	unsigned char *memory;
	size_t memory_bytes;
	struct volume_fragment *free;
	struct volume_fragment *parked;
	struct weir_io *first;
	struct weir_io *last;
	unsigned ended; /* requests, in this poll */
	unsigned idle;  /* polls since the last answer */
};

/**
 * struct volume_options - what a test changes
 * @open: instead of weir_channel_open(); @argument: its first
 */
struct volume_options {
	int (*open)(void *argument, const char *uri, void *memory, size_t bytes, struct weir_channel **out);
	void *argument;
};

/**
 * struct volume - the medium
 * @fragment_bytes: of a fragment's data
 * @written: blocks that got a version under this lease
 * @changing: bits of blocks that a fragment changes, under @lock: the next one that does waits. Two that were
 * under way together, and met a new map, might come to an engine that has neither in the wrong order
 * @lanes: whose lanes send commands to engines themselves, or NULL: it changes while no lane runs; under
 * @lock, like the others
 * @update_lanes: have them know of map and lease, every few milliseconds, under @lock; or, @retire, go by no
 * map until they know of the one that comes; NULL: there are none
 * @wants_lanes: the URI asks for them
 * @lanes_map: that they go by; @lanes_engine: of a slot, the engine's number among theirs
 * @command_ms: what an engine may take for a command before its channel is given up
 */
struct volume {
	struct weir_medium medium;
	struct weir_session *session;
	struct volume_options options;
	u32 fragment_bytes;
	uint64_t command_ms;
	struct shared_u64 written;
	struct shared_u32 complained;
	pthread_mutex_t lock;
	u64 changing[VOLUME_CHANGING / 64];
	struct weir_lanes *lanes;
	void (*update_lanes)(struct volume *volume, bool retire);
	struct weir_session_map *lanes_map;
	u8 lanes_engine[WEIR_SESSION_SLOTS];
	bool wants_lanes;
	unsigned threads;
	struct volume_thread *thread;
	char path[120];
};

/* medium.c */

/** weir_volume_medium_open() - open volume @keys->name for @threads controller threads; 0 or a negative errno
 * with a sentence. @options: NULL, or a test's */
int weir_volume_medium_open(const struct weir_session_keys *keys, unsigned threads,
			    const struct volume_options *options, struct weir_medium **out);
/** weir_volume_from() - the volume that @medium is; NULL: it is none */
struct volume *weir_volume_from(const struct weir_medium *medium);
/** volume_complain() - say once why requests of this volume fail */
void volume_complain(struct volume *volume, const char *why);
/** volume_fragment_end() - a fragment is over; controller thread */
void volume_fragment_end(struct volume_fragment *fragment, u32 status);

/* link.c: channels */

/** volume_link_tick() - the session thread's part for all links of @volume */
void volume_link_tick(struct volume *volume);
/** volume_link_poll() - the controller thread's part; how many commands ended */
unsigned volume_link_poll(struct volume_thread *thread);
/** volume_link_close() - close all; no thread runs */
void volume_link_close(struct volume *volume);

/* attach.c: lanes that place blocks themselves */

/** volume_attach() - queue pairs to engines for lanes of @storage; 0 or a negative errno with a sentence */
int volume_attach(struct volume *volume, struct weir_storage *storage);
/** volume_detach() - no lane runs any more */
void volume_detach(struct volume *volume);

/* fragment.c: the attempts of a fragment */

/** volume_fragment_start() - its first attempt */
void volume_fragment_start(struct volume_fragment *fragment);
/** volume_fragment_answer() - of @slot; lost: NVME_STATUS_PATH_INTERNAL */
void volume_fragment_answer(struct volume_fragment *fragment, u32 slot, u32 status);
/** volume_fragment_go_on() - a parked one: try again, if it is time */
void volume_fragment_go_on(struct volume_fragment *fragment, uint64_t now);

#endif
