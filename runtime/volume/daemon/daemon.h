/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.h: weir-volumed without its sockets: the volumes, permissions, leases and the map of an array.
 *
 * Owns: what the daemon knows, all of it read from the engines at its start, and how that changes. One thread
 * calls; volumed_step() does what is due. Before each command to an engine it may answer calls that change
 * nothing but the end of a lease (methods.h). A change is made at the engines first and noted here when all
 * engines of the map have it, so that a daemon that dies in between leaves a change that nobody was told of.
 *
 * Epochs and who may act on what (design: volumes.md):
 *  - A map counts when at least half of the engines that the map before had in have taken it; a daemon starts
 *    from the newest map that it sees, and needs more than half of the engines that it has in. Any such two
 *    sets have an engine in common: no map that counted is overlooked.
 *  - A lease epoch is odd. Even ones belong to the daemon: the one behind a lease keeps its writer off while
 *    blocks are made equal, and is the version of what the daemon then repairs (level.h).
 */
#ifndef WEIR_VOLUMED_H
#define WEIR_VOLUMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/core/volume/placement.h>

#include "level.h"
#include "link.h"

enum {
	VOLUMED_LEASE_MS = 300000,
	VOLUMED_HEARTBEAT_MS = 500,
	VOLUMED_MISSES = 3,
	VOLUMED_KEPT_OFF_MS = 100,
	VOLUMED_NOBODY = NVME_VOLUME_MOST, /* lease client: nobody, and blocks are to be made equal */
	VOLUMED_FIRST_DOMAIN = 2000000,    /* plus its number: of an engine that was given none */
};

/** VOLUMED_OWN_DOMAIN - failure domain of an engine that has no number yet: one that no other engine has */
#define VOLUMED_OWN_DOMAIN UINT32_MAX

/**
 * struct volumed_engine - an engine
 * @info: as maps have it
 * @answers: it did, the last time it was asked
 * @current: it has been given all volumes and the map of now
 * @spare: it is out until another one fails
 * @leaving: it is to go from the array, as maps say, too
 * @voter: the last map that counted has it in
 * @accepted: what it may lack, others may lack, too: it stays in
 * @misses: heartbeats that it has left unanswered, one after the other
 * @status: as of the last heartbeat
 */
struct volumed_engine {
	struct nvme_volume_engine info;
	struct volume_engine_link *link;
	bool answers;
	bool current;
	bool spare;
	bool leaving;
	bool voter;
	bool accepted;
	unsigned misses;
	struct nvme_volume_engine_status status;
};

/**
 * struct volumed_volume - a volume
 * @permissions: @count of them, by client
 * @lease_end_ms: of a lease that somebody has
 * @unclean: blocks with versions of at least @from may differ between replicas
 */
struct volumed_volume {
	struct nvme_volume info;
	struct nvme_volume_permission *permissions;
	size_t count;
	uint64_t lease_end_ms;
	bool unclean;
	u64 from;
};

/** enum volumed_task - copying that goes on: none, after a failure, before an engine comes in or goes */
enum volumed_task { VOLUMED_IDLE, VOLUMED_REBUILD, VOLUMED_JOIN, VOLUMED_LEAVE };

/**
 * struct volumed_copy - that copying
 * @engine: index of the engine that comes or goes
 * @next: volumes numbered below were copied
 * @open: @level is under way
 * @table: of the map that it leads to
 * @floors: by volume, versions from here on may have been written since; VOLUMED_JOIN and VOLUMED_LEAVE
 * @pass: of all volumes; from the second on lists begin with @since
 * @since, @written: by engine: what it had @written when the last pass began, and when this one did
 * @began_ms: when; @took_ms: the last one, 0: there was none
 * @compared, @copied: blocks
 * @credit: thousandths of steps that may be made now, as of @paced_ms
 * @again_ms: not before, after something failed
 * @complain_ms: nor is it said again before then
 */
struct volumed_copy {
	enum volumed_task task;
	unsigned engine;
	u32 next;
	bool open;
	u32 *table;
	u64 *floors;
	unsigned pass;
	u64 since[NVME_VOLUME_MOST_ENGINES];
	u64 written[NVME_VOLUME_MOST_ENGINES];
	uint64_t began_ms;
	uint64_t took_ms;
	struct volumed_level level;
	u64 compared;
	u64 copied;
	uint64_t credit;
	uint64_t paced_ms;
	uint64_t again_ms;
	uint64_t complain_ms;
};

enum { VOLUMED_MOST_DAMAGE = 64 };

/** struct volumed_damage - blocks of which some are damaged on @engine, by its number, as a client says */
struct volumed_damage {
	u16 vid;
	u16 engine;
	u32 vba;
	u32 blocks;
};

/** struct volumed_counts - since the start */
struct volumed_counts {
	u64 maps;
	u64 heartbeats;
	u64 taken_out;
	u64 taken_in;
	u64 copied;    /* blocks, by rebuilds */
	u64 equalized; /* blocks, after a lease that ended uncleanly */
	u64 repaired;  /* damaged blocks, from other replicas */
	u64 leases;
};

/** struct volumed_options - @lease_ms, @heartbeat_ms, @misses: 0: the usual; @rebuild_blocks: copied in a
 * second at most while clients go on, 0: any; @kept_off_ms: clients may be kept off for about so long while
 * an engine joins or leaves, 0: the usual; @now_ms: a clock, NULL: the machine's; @alone: one engine that has
 * no map is a new array */
struct volumed_options {
	struct volume_linker *linker;
	uint64_t lease_ms;
	uint64_t heartbeat_ms;
	unsigned misses;
	uint64_t rebuild_blocks;
	uint64_t kept_off_ms;
	uint64_t (*now_ms)(void);
	bool alone;
};

/**
 * struct volumed - the daemon
 * @between: called before each command to an engine; set by whoever serves, once all is known
 * @failed: engines that were taken out since all blocks had all their replicas
 * @called: the spare that takes the place of the last of them, or NULL: until the next map
 * @damage: what is to be repaired, @damage_count of it
 */
struct volumed {
	struct volume_between between;
	struct volumed_options options;
	struct volumed_engine engines[NVME_VOLUME_MOST_ENGINES];
	unsigned engine_count;
	struct volumed_volume *volumes; /* by number */
	size_t volume_count;
	u32 last_vid;
	u32 epoch;
	bool counted; /* the map of now does; until then clients do not get it */
	bool rebuilding;
	bool changing; /* engines have blocks for the next map */
	unsigned failed;
	struct volumed_engine *called;
	u32 *table;
	struct volumed_copy copy;
	struct volumed_damage damage[VOLUMED_MOST_DAMAGE];
	unsigned damage_count;
	struct volumed_counts counts;
	uint64_t heartbeat_at_ms;
};

/* daemon.c */

int volumed_create(const struct volumed_options *options, struct volumed **out);
void volumed_destroy(struct volumed *d);
uint64_t volumed_now_ms(const struct volumed *d);
/** volumed_step() - heartbeats, leases that end, copying, as far as due. Return: ms until there is more to do
 */
unsigned volumed_step(struct volumed *d);

/* engines.c */

/** volumed_engine_number() - an engine gets a number, and a domain of its own for VOLUMED_OWN_DOMAIN */
void volumed_engine_number(struct nvme_volume_engine *info, u32 id);
/** volumed_engine_note() - make an engine known, without connecting; 0 or a negative errno with a sentence */
int volumed_engine_note(struct volumed *d, const struct nvme_volume_engine *info, bool spare);
/** volumed_engine_of() - by number; NULL with a sentence: none */
struct volumed_engine *volumed_engine_of(struct volumed *d, u32 id);
/** volumed_engine_ask() - whether it answers a STATUS, after a new connection if need be */
bool volumed_engine_ask(struct volumed *d, struct volumed_engine *engine);
/** volumed_engine_bring() - give it all volumes and permissions, and the map of now; 0 or a negative errno
 * with a sentence */
int volumed_engine_bring(struct volumed *d, struct volumed_engine *engine);
bool volumed_engine_in(const struct volumed_engine *engine);
/** volumed_engine_return() - one that answers again: bring it, or take it out if it may lack what it had */
int volumed_engine_return(struct volumed *d, struct volumed_engine *engine);
/** volumed_engine_spared() - whether all blocks are on other engines, too, if @others have failed besides: of
 * volumes with at least @from_replicas */
bool volumed_engine_spared(const struct volumed *d, unsigned others, u32 from_replicas);
/** volumed_others_failed() - engines besides @engine that do not answer, were taken out and whose blocks have
 * not been copied yet, or may lack what they acknowledged */
unsigned volumed_others_failed(const struct volumed *d, const struct volumed_engine *engine);
/** volumed_heartbeat() - ask all engines, and act on what they say */
void volumed_heartbeat(struct volumed *d);
/**
 * volumed_each_in() - have each engine of the map carry @call out; one that does not answer is taken out
 * first. One that is out, and refuses, has no part in it: the heartbeat brings it all
 * @accepts: an NVMe status that is as good as success
 *
 * Return: 0 or a negative errno with a sentence: then some may have carried it out. -ESTALE: one has a newer
 * lease.
 */
int volumed_each_in(struct volumed *d, int (*call)(struct volume_engine_link *link, const void *argument),
		    const void *argument, int accepts, const char *what);
/** volumed_engine_add() - an engine for the array, which joins when it has its blocks; once it is in the
 * array, heartbeats do what it or others fail of that */
int volumed_engine_add(struct volumed *d, const struct nvme_volume_engine *info, bool spare, u32 *id);

/* leave.c */

/** volumed_engines_remaining() - how many are in, and are not to leave */
unsigned volumed_engines_remaining(const struct volumed *d);
/** volumed_engine_remove() - an engine leaves when others have its blocks, and a daemon that starts then goes
 * on with that; @lost: it does not answer, and leaves now, with all that no other engine has. 0; -EBUSY:
 * volumes need it, or it is not lost; -EAGAIN: it leaves, but not enough engines know that yet */
int volumed_engine_remove(struct volumed *d, u32 id, bool lost);
/** volumed_engine_keep() - an engine that was to leave stays; 0; -EINVAL: it was not; -EBUSY: it has left;
 * -EAGAIN: it stays, but not enough engines know that yet */
int volumed_engine_keep(struct volumed *d, u32 id);

/* gather.c */

/**
 * volumed_gather() - read everything from the engines, and give them a new map
 *
 * Return: 0; -EAGAIN with a sentence: too few engines answer, try later; or another negative errno.
 */
int volumed_gather(struct volumed *d);

/* map.c */

/** volumed_map_fill() - the map of now, for @self */
void volumed_map_fill(const struct volumed *d, unsigned self, struct nvme_volume_map *map);
/** volumed_map_push() - a new epoch, to all engines that answer; 0 or a negative errno with a sentence: it
 * does not count yet */
int volumed_map_push(struct volumed *d);
/** volumed_map_count() - whether the map of now counts; 0, or -EAGAIN with a sentence */
int volumed_map_count(struct volumed *d);
/** volumed_map_table() - the table of a map with the engines of now, @engine (or none: -1) in @state */
int volumed_map_table(const struct volumed *d, int engine, u8 state, u32 *table);
/** volumed_take_out() - an engine has failed: a new map without it, with a spare if there is one, and a
 * rebuild */
int volumed_take_out(struct volumed *d, struct volumed_engine *engine);
/** volumed_give_up() - volumed_take_out(), of one that does not answer, with all that it alone has; -EAGAIN
 * with a sentence: it is the last one */
int volumed_give_up(struct volumed *d, struct volumed_engine *engine);
/** volumed_put_back() - one that was taken out by the map of now, which does not count, and answers, is in
 * again; a spare that came in for it is out again */
void volumed_put_back(struct volumed *d, struct volumed_engine *engine);

/* copy.c */

/** volumed_copy_begin() - after a map change; what was copied before counts no more */
int volumed_copy_begin(struct volumed *d, enum volumed_task task, unsigned engine);
void volumed_copy_end(struct volumed *d);
/** volumed_copy_step() - some of it; true: there is more, now */
bool volumed_copy_step(struct volumed *d);
/** volumed_copy_paced() - there is more, once a millisecond is over */
bool volumed_copy_paced(const struct volumed *d);
/** volumed_copy_choose() - begin what is to be copied next, if anything */
void volumed_copy_choose(struct volumed *d);
/** volumed_equalize() - make blocks of a volume with versions of at least volume->from the same on all
 * engines where they are placed; 0 or a negative errno with a sentence */
int volumed_equalize(struct volumed *d, struct volumed_volume *volume);

/**
 * volumed_equalize_all() - the same for all blocks of all volumes, on the engines that answer, when any of
 * them may lack any
 *
 * Return: 0; -ENOSPC: all were compared, and an engine does not have some blocks; or another negative errno.
 * Volumes that are not equal are unclean.
 */
int volumed_equalize_all(struct volumed *d);

/* repair.c */

/** volumed_repair_note() - have blocks repaired; what is known already, or too much, is left */
void volumed_repair_note(struct volumed *d, const struct volumed_damage *damage);
/** volumed_repair_step() - one block; true: there is more */
bool volumed_repair_step(struct volumed *d);

/* volumes.c */

struct volumed_volume *volumed_volume_of(struct volumed *d, const char *name);
struct volumed_volume *volumed_volume_numbered(struct volumed *d, u32 vid);
/** volumed_volume_insert() - note a volume; NULL with a sentence: no memory */
struct volumed_volume *volumed_volume_insert(struct volumed *d, const struct nvme_volume *info);
void volumed_volume_erase(struct volumed *d, struct volumed_volume *volume);
/** volumed_permission_note() - note what an engine has, too */
int volumed_permission_note(struct volumed_volume *volume, const struct nvme_volume_permission *permission);
/** volumed_engines_needed() - as many as a volume has replicas, at most, and 1 at least */
unsigned volumed_engines_needed(const struct volumed *d);
int volumed_volume_create(struct volumed *d, const char *name, u64 bytes, u32 replicas, u64 unit_bytes,
			  u32 weight, struct volumed_volume **out);
int volumed_volume_delete(struct volumed *d, const char *name);
int volumed_volume_resize(struct volumed *d, const char *name, u64 bytes);
int volumed_volume_chmod(struct volumed *d, const char *name, const char *hostnqn, u32 rights);
/** volumed_volume_client() - number of host @hostnqn if it has @rights; -EACCES with a sentence */
int volumed_volume_client(const struct volumed_volume *volume, const char *hostnqn, u32 rights, u16 *client);

/* lease.c */

int volumed_lease_grant(struct volumed *d, struct volumed_volume *volume, u16 client);
/** volumed_lease_renew() - 0; -ESTALE: it is over; -EACCES: @client may not write any more; with a sentence
 */
int volumed_lease_renew(struct volumed *d, const char *name, u16 client, u32 epoch);
int volumed_lease_release(struct volumed *d, const char *name, u16 client, u32 epoch);
/** volumed_lease_take_back() - one that was granted, and that its client was not told of; the last error
 * stays */
void volumed_lease_take_back(struct volumed *d, const char *name, u16 client, u32 epoch);
/** volumed_lease_abandon() - as volumed_lease_release(), of a client whose changes have failed: blocks are
 * made equal */
int volumed_lease_abandon(struct volumed *d, const char *name, u16 client, u32 epoch);
/** volumed_lease_end() - end it now, whoever has it, as if its time were over */
int volumed_lease_end(struct volumed *d, const char *name);
/** volumed_lease_note() - a lease that an engine tells of at the daemon's start */
void volumed_lease_note(struct volumed *d, struct volumed_volume *volume);
/** volumed_lease_step() - leases whose time is over */
void volumed_lease_step(struct volumed *d);

#endif
