/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/session.h: what a client of a volume has from the daemon: the volume, the lease, the map.
 *
 * Owns: the connection to the daemon and the thread that alone uses it once it runs: it renews the lease at
 * half its time, gets maps, reports engines. Others ask by words that it polls, and never wait for it.
 */
#ifndef WEIR_VOLUME_SESSION_H
#define WEIR_VOLUME_SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/nvme_volume.h>
#include <weir/weir.h>

#include "../transport/fabrics/identity.h"
#include "../transport/virtual/word.h"
#include "placement.h"
#include "rpc.h"

enum {
	WEIR_SESSION_SLOTS = 64,         /* engines that a client meets in its life */
	WEIR_SESSION_DAEMON_BYTES = 256, /* of an address, terminator included */
	WEIR_SESSION_SECRET_BYTES = 256,
	WEIR_SESSION_URI_BYTES = 1792,
	WEIR_SESSION_NO_SLOT = 0xff,
};

/**
 * struct weir_session_map - a map of the array; never changes
 * @references: of threads and the session; under the session's lock
 * @map: as the daemon gives it
 * @slot: of each engine, the number that it keeps in this client
 * @table: of core/volume/placement.h
 */
struct weir_session_map {
	unsigned references;
	struct nvme_volume_map map;
	u8 slot[NVME_VOLUME_MOST_ENGINES];
	u32 table[WEIR_PLACEMENT_GROUPS];
};

/**
 * struct weir_session_keys - how to open a volume
 * @name: of the volume
 * @daemon: its address, as weir_rpc_open() reads it
 * @host: who the client is
 * @secret, @controller_secret: files, by which it and engines authenticate (transport/fabrics/chap.h); empty:
 * not
 * @daemon_key, @engine_key: files with keys of TLS; empty: without it
 * @read_only: no lease is taken
 * @wait_ms: what a command may wait for a map, an engine or the daemon
 */
struct weir_session_keys {
	char name[NVME_VOLUME_NAME_BYTES];
	char daemon[WEIR_SESSION_DAEMON_BYTES];
	struct weir_host_identity host;
	char secret[WEIR_SESSION_SECRET_BYTES];
	char controller_secret[WEIR_SESSION_SECRET_BYTES];
	char daemon_key[WEIR_SESSION_SECRET_BYTES];
	char engine_key[WEIR_SESSION_SECRET_BYTES];
	bool read_only;
	uint64_t wait_ms;
};

/** enum weir_session_lease - of a client that may write */
enum weir_session_lease {
	WEIR_LEASE_HELD,
	WEIR_LEASE_NONE, /* opened for reading */
	WEIR_LEASE_LOST, /* another client has it, or its time is over */
};

enum { WEIR_SESSION_MOST_DAMAGE = 16 };

/** struct weir_session_damage - blocks that an engine could not read; @blocks 0: none; @said_ns: when it was
 * reported, 0: not yet */
struct weir_session_damage {
	u16 engine;
	u32 vba;
	u32 blocks;
	uint64_t said_ns;
};

/**
 * struct weir_session - a volume that is open
 * @slots: engines met so far, by slot; under @lock; @slot_count of them
 * @epoch: of the newest map
 * @asked_epoch: a thread knows that there is a newer map than this
 * @lease_end_ns: until when the lease holds, by this client's clock, counted from before it was asked for
 * @lost: the lease is lost for good
 * @unequal: a change failed: replicas may differ
 * @damage: to be reported, or reported not long ago; under @lock; @damage_waits: some is to be
 * @tick, @argument: what the session's thread calls every few milliseconds
 * @retire: what it calls before others can have a newer map; or NULL
 */
struct weir_session {
	struct weir_session_keys keys;
	struct weir_rpc *rpc;
	struct nvme_volume volume;
	u16 client;
	u32 lease_epoch;
	uint64_t lease_ms;
	struct shared_u64 lease_end_ns;
	struct shared_u32 lost;
	struct shared_u32 unequal;
	struct shared_u32 epoch;
	struct shared_u32 asked_epoch;
	pthread_mutex_t lock;
	struct weir_session_map *map;
	struct nvme_volume_engine slots[WEIR_SESSION_SLOTS];
	unsigned slot_count;
	struct weir_session_damage damage[WEIR_SESSION_MOST_DAMAGE];
	struct shared_u32 damage_waits;
	uint64_t renew_ns;
	uint64_t connect_ns;
	uint64_t map_ns;
	pthread_t thread;
	bool started;
	struct shared_u32 stop;
	void (*tick)(void *argument);
	void (*retire)(void *argument);
	void *argument;
};

/** weir_session_now_ns() - CLOCK_MONOTONIC */
uint64_t weir_session_now_ns(void);

/** weir_session_open() - open the volume at its daemon, with a lease unless it is for reading; 0 or a
 * negative errno with a sentence */
int weir_session_open(const struct weir_session_keys *keys, struct weir_session **out);
/** weir_session_start() - start its thread; 0 or a negative errno with a sentence */
int weir_session_start(struct weir_session *session, void (*tick)(void *argument),
		       void (*retire)(void *argument), void *argument);
/** weir_session_stop() - end its thread */
void weir_session_stop(struct weir_session *session);
/** weir_session_close() - give the lease back; its thread has ended, and no map of it is in use */
void weir_session_close(struct weir_session *session);

/**
 * weir_session_refresh() - exchange a thread's map for the newest
 * @held: NULL, or the map that this thread has
 *
 * At the price of one relaxed load when there is no newer one. Return: whether *@held changed.
 */
bool weir_session_refresh(struct weir_session *session, struct weir_session_map **held);
/** weir_session_put() - let go of a map */
void weir_session_put(struct weir_session *session, struct weir_session_map *map);
/** weir_session_want_map() - have a map newer than @epoch fetched; any thread */
void weir_session_want_map(struct weir_session *session, u32 epoch);
/** weir_session_suspect() - report that engine @id does not answer; the session's thread */
void weir_session_suspect(struct weir_session *session, u16 id);
/** weir_session_damaged() - have it reported that the engine of @slot could not read some of these blocks;
 * any thread */
void weir_session_damaged(struct weir_session *session, u32 slot, u32 vba, u32 blocks);
/** weir_session_lease() - whether blocks may be changed now; any thread */
enum weir_session_lease weir_session_lease(const struct weir_session *session);
/** weir_session_doubt() - an engine says that another lease is the volume's: it is lost; any thread
 */
void weir_session_doubt(struct weir_session *session);
/** weir_session_uri() - how @queues queue pairs reach engine @engine */
void weir_session_uri(const struct weir_session *session, const struct nvme_volume_engine *engine,
		      unsigned queues, char uri[WEIR_SESSION_URI_BYTES]);

#endif
