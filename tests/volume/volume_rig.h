/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_rig.h: engines and a daemon for tests of clients of volumes.
 *
 * Owns: engines in memory that do what their commands say and refuse what engines refuse, on request late, in
 * reverse order, or not at all; a daemon of one thread that keeps a map of them and takes out those that are
 * down.
 */
#ifndef WEIR_TESTS_VOLUME_RIG_H
#define WEIR_TESTS_VOLUME_RIG_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/nvme_volume.h>

#include "volume/medium.h"

enum {
	RIG_ENGINES = 4,
	RIG_BLOCKS = 512,
	RIG_UNIT_LOG2 = 2,
	RIG_VID = 9,
	RIG_CLIENT = 3,
	RIG_WAITING = 4096,
	RIG_LEASE_EPOCH = 5,
};

struct rig_block {
	u64 version; /* 0: not here */
	bool bad;
	unsigned char data[NVME_VOLUME_BLOCK_BYTES];
};

struct rig_command {
	struct nvme_sqe sqe;
	void *argument;
	u32 status;
	bool done;
};

/** struct rig_engine - @held: commands are not carried out until rig_release(); @slow: one answer a poll;
 * @faulty: its medium takes no writes; @opened: channels to it so far; @durable: changes that asked for FUA;
 * @newest: map that a command came by; @backward: commands by an older one than that; @halts: of its channels
 * so far; @unhalted: of these the first ones, which fail; @room: for commands of a channel; @refuses: status
 * of all commands that come, 0: it is as they deserve; @tried: how often a channel was to be opened
 */
struct rig_engine {
	struct rig *rig;
	pthread_mutex_t lock;
	struct rig_block blocks[RIG_BLOCKS];
	u32 map_epoch;
	u32 lease_epoch;
	bool down;
	bool held;
	bool slow;
	unsigned opened, tried;
	bool rebuilding;
	bool faulty;
	unsigned flushes;
	unsigned durable;
	unsigned reads;
	unsigned stale;
	u32 newest;
	unsigned backward;
	unsigned halts, unhalted;
	unsigned room;
	u32 refuses;
};

/** struct rig - @map: the daemon's; @refuse_renewal, @deaf: what it does not do any more; both of @lock;
 * @unit_log2: of the volume; @version: in the commands of requests; @durable: requests ask for FUA;
 * @on_lease: called before a lease is granted or renewed; @blocks: of the volume, of which engines have
 * RIG_BLOCKS, from @first on; @threads: of the client, of which @used_thread gets what is started */
struct rig {
	struct rig_engine engines[RIG_ENGINES];
	unsigned replicas;
	u32 unit_log2;
	u64 blocks;
	u64 first;
	unsigned threads;
	unsigned used_thread;
	pthread_mutex_t lock;
	struct nvme_volume_map map;
	unsigned lease_ms;
	u32 lease_epoch;
	bool refuse_open;
	bool refuse_renewal;
	bool gives_no_lease;
	bool keeps_dead; /* takes no engine out */
	bool durable;
	u64 version;
	size_t piece_bytes; /* of a request's memory; 0: it is one */
	void (*on_lease)(void);
	unsigned renewals;
	unsigned maps; /* that were asked for */
	unsigned releases;
	unsigned unequal; /* of these, of writers whose changes failed */
	unsigned reports; /* of damage; the last one: */
	json_int_t reported_id, reported_vba, reported_blocks;
	char path[64];
	int listener;
	int stop[2];
	pthread_t thread;
	struct weir_medium *medium;
};

void rig_begin(struct rig *rig, unsigned replicas);
void rig_end(struct rig *rig);
/** rig_stop_daemon() - it goes away */
void rig_stop_daemon(struct rig *rig);
/** rig_keys() - to open the volume */
struct weir_session_keys rig_keys(const struct rig *rig);
/** rig_open() - as a medium for its threads, commands wait for @wait_ms; rig_end() closes it */
void rig_open(struct rig *rig, bool read_only, unsigned wait_ms);
/** rig_try() - the same, where it may fail; its error */
int rig_try(struct rig *rig, bool read_only, unsigned wait_ms);
/** rig_new_epoch() - engines, if @engines, and the daemon have a newer map */
void rig_new_epoch(struct rig *rig, bool daemon, bool engines);
/** rig_take_out() - the daemon takes engine @index out of its map, which the engines have */
void rig_take_out(struct rig *rig, unsigned index);
/** rig_channel_open() - a channel to the engine at @uri; @argument: the rig */
int rig_channel_open(void *argument, const char *uri, void *memory, size_t bytes, struct weir_channel **out);
/** rig_daemon_behind() - the daemon's map is @epochs older than it was, as that of a daemon of yesterday */
void rig_daemon_behind(struct rig *rig, u32 epochs);
/** rig_release() - carry out what engine @index holds, the last first if @reverse */
void rig_release(struct rig *rig, unsigned index, bool reverse);

/** rig_start(), rig_wait() - a request of @blocks from @vba on; its status */
void rig_start(struct rig *rig, struct weir_io *io, enum weir_io_kind kind, u64 vba, u32 blocks, void *data);
u32 rig_wait(struct rig *rig, struct weir_io *io);
u32 rig_do(struct rig *rig, enum weir_io_kind kind, u64 vba, u32 blocks, void *data);
/** rig_poll() - a few polls */
void rig_poll(struct rig *rig);
/** rig_is_done() */
bool rig_is_done(const struct weir_io *io);
/** rig_replica() - index of the engine that has replica @replica of @vba, by the daemon's map */
unsigned rig_replica(struct rig *rig, u64 vba, unsigned replica);

/* Cases of volume_links.c. */
void a_channel_that_is_not_halted_keeps_its_memory(void **state);
void an_engine_that_is_out_is_not_waited_for(void **state);
void a_newer_map_is_asked_for_at_once(void **state);
void opens_that_fail_leave_nothing_behind(void **state);

#endif
