/* SPDX-License-Identifier: BSD-3-Clause */
/* engines.c: engines one by one: whether they answer, and what they have been given. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../backend/error.h"
#include "command.h"
#include "daemon.h"

bool volumed_engine_in(const struct volumed_engine *engine)
{
	return engine->info.state == NVME_VOLUME_ENGINE_IN;
}

struct volumed_engine *volumed_engine_of(struct volumed *d, u32 id)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (d->engines[i].info.id == id)
			return &d->engines[i];
	weir_fail(ENOENT, "there is no engine %u; weir-volume engines lists them", id);
	return NULL;
}

void volumed_engine_number(struct nvme_volume_engine *info, u32 id)
{
	info->id = (u16)id;
	if (info->domain == VOLUMED_OWN_DOMAIN)
		info->domain = VOLUMED_FIRST_DOMAIN + id;
}

static bool same_engine(const struct nvme_volume_engine *a, const struct nvme_volume_engine *b)
{
	return !strcmp(a->address, b->address) && !strcmp(a->nqn, b->nqn);
}

int volumed_engine_note(struct volumed *d, const struct nvme_volume_engine *info, bool spare)
{
	struct volumed_engine *engine = &d->engines[d->engine_count];
	int error;

	for (unsigned i = 0; i < d->engine_count; i++)
		if (same_engine(&d->engines[i].info, info))
			return weir_fail(EEXIST, "engine tcp://%s/%s is given twice", info->address,
					 info->nqn);
	if (d->engine_count == NVME_VOLUME_MOST_ENGINES)
		return weir_fail(ENOSPC, "an array has at most %d engines", NVME_VOLUME_MOST_ENGINES);
	*engine = (struct volumed_engine){ .info = *info, .spare = spare };
	error = d->options.linker->create(d->options.linker, info->address, info->nqn, &engine->link);
	if (error)
		return error;
	engine->link->between = &d->between;
	engine->link->epoch = &d->epoch;
	d->engine_count++;
	return 0;
}

/* What was copied to an engine that has started again since may be lost: all is compared once more. */
static void note_start(struct volumed *d, const struct volumed_engine *engine)
{
	bool joins = d->copy.task == VOLUMED_JOIN && engine == &d->engines[d->copy.engine];

	if (d->copy.task != VOLUMED_REBUILD && (joins || volumed_engine_in(engine)))
		volumed_copy_end(d);
}

/* Connect anew. Before anything else is asked, what a daemon before this one has sent is made void: else it
 * might be carried out after this one has seen what is there. At the daemon's start it has no epoch yet. */
static int reconnect(struct volumed *d, struct volumed_engine *engine,
		     struct nvme_volume_engine_status *status)
{
	int result = engine->link->ops->open(engine->link);

	if (!result)
		result = volume_engine_status(engine->link, status);
	if (!result && status->map_epoch < d->epoch && status->fence < d->epoch)
		result = volume_engine_fence(engine->link);
	return result;
}

bool volumed_engine_ask(struct volumed *d, struct volumed_engine *engine)
{
	struct nvme_volume_engine_status status = { .map_epoch = 0 };
	int result = engine->answers ? volume_engine_status(engine->link, &status) : -ENOTCONN;

	d->counts.heartbeats++;
	if (result < 0) {
		result = reconnect(d, engine, &status);
		engine->current = false;
	}
	engine->answers = result == 0;
	if (engine->answers) {
		engine->accepted = engine->accepted && status.has_map; /* else it has started again */
		if (!status.has_map)
			note_start(d, engine);
		engine->status = status;
		engine->misses = 0;
		engine->current = engine->current && status.map_epoch == d->epoch;
	}
	return engine->answers;
}

/* What it has and the array has not any more, or has under another name. */
static int delete_strangers(struct volumed *d, struct volumed_engine *engine)
{
	struct nvme_volume volume;
	int status = volume_engine_get(engine->link, 0, &volume);

	while (!status) {
		const struct volumed_volume *own = volumed_volume_numbered(d, volume.vid);

		if (!own || strcmp(own->info.name, volume.name) != 0)
			status = volume_engine_delete(engine->link, volume.vid);
		if (!status)
			status = volume_engine_get(engine->link, volume.vid + 1u, &volume);
	}
	return status == NVME_STATUS_VOLUME_UNKNOWN ? 0 : status;
}

static bool is_known(const struct volumed_volume *volume, u16 client)
{
	for (size_t i = 0; i < volume->count; i++)
		if (volume->permissions[i].client == client)
			return true;
	return false;
}

/* Rights that it has of a time before it was away, and that were taken away meanwhile. A daemon that has
 * started since does not know of them; those behind one that goes take its place. */
static int delete_rights(struct volumed_engine *engine, const struct volumed_volume *volume)
{
	struct nvme_volume_permission there;
	u32 index = 0;
	int status;

	while (!(status = volume_engine_get_permission(engine->link, volume->info.vid, index, &there))) {
		if (is_known(volume, there.client) || !there.rights) {
			index++;
			continue;
		}
		there.vid = volume->info.vid;
		there.rights = 0;
		status = volume_engine_chmod(engine->link, &there);
		if (status)
			return status;
	}
	return status == NVME_STATUS_VOLUME_UNKNOWN ? 0 : status;
}

static int bring_volume(struct volumed_engine *engine, const struct volumed_volume *volume)
{
	const struct nvme_volume *info = &volume->info;
	int status = volume_engine_add(engine->link, info);

	if (!status)
		status = delete_rights(engine, volume);
	for (size_t i = 0; i < volume->count && !status; i++)
		status = volume_engine_chmod(engine->link, &volume->permissions[i]);
	if (!status)
		status = volume_engine_lease(engine->link, info->vid, info->lease_epoch, info->lease_client);
	return status;
}

/*
 * One that has a lease that the daemon does not know of was given it by a call that failed elsewhere. If it
 * is in, it refuses the writer of before, and the next change of the lease goes above it (lease.c). If it is
 * out, its blocks of that volume are copied anew.
 *
 * A spare comes in at once when another one fails. What it has of a time when it was in would be read as the
 * newest.
 */
static int bring_again(struct volumed_engine *engine, const struct volumed_volume *volume)
{
	int status = 0;

	if (engine->spare && !volumed_engine_in(engine))
		status = volume_engine_delete(engine->link, volume->info.vid);
	if (!status || status == NVME_STATUS_VOLUME_UNKNOWN)
		status = bring_volume(engine, volume);
	if (status != NVME_STATUS_VOLUME_STALE_LEASE)
		return status;
	if (volumed_engine_in(engine))
		return 0;
	status = volume_engine_delete(engine->link, volume->info.vid);
	return status ? status : bring_volume(engine, volume);
}

/* An engine that is behind everyone's back ahead of the daemon had a map of a daemon before it that did not
 * count: this one's has to be newer. */
static int check_epoch(struct volumed *d, const struct volumed_engine *engine)
{
	const struct nvme_volume_engine_status *status = &engine->status;

	if (status->map_epoch >= d->epoch || status->fence > d->epoch) {
		d->epoch = status->map_epoch > status->fence ? status->map_epoch : status->fence;
		return volumed_map_push(d);
	}
	return 0;
}

int volumed_engine_bring(struct volumed *d, struct volumed_engine *engine)
{
	unsigned index = (unsigned)(engine - d->engines);
	struct nvme_volume_map map;
	int status = engine->status.map_epoch == d->epoch ? 0 : check_epoch(d, engine);

	if (!status && engine->status.map_epoch != d->epoch)
		status = volume_engine_fence(engine->link);
	if (!status)
		status = delete_strangers(d, engine);
	for (size_t i = 0; i < d->volume_count && !status; i++)
		status = bring_again(engine, &d->volumes[i]);
	volumed_map_fill(d, index, &map);
	if (!status)
		status = volume_engine_map(engine->link, &map);
	engine->current = !status;
	if (status < 0)
		engine->answers = false;
	else if (status)
		return weir_fail(EIO, "engine %u refuses the volumes or the map of the array: status %#x",
				 engine->info.id, status);
	else if (!volumed_engine_in(engine) && d->counted)
		engine->status.doubtful = 0;
	return status;
}

/* One that is in, and has another map than it was given, has started again: with all that it had? With a new
 * disk it has no map. A volume that one with a map lacks was deleted, or made, by a call that failed: none of
 * its blocks is there. One that does not say is asked again. */
static bool has_forgotten(struct volumed *d, struct volumed_engine *engine)
{
	for (size_t i = 0; i < d->volume_count; i++) {
		const struct nvme_volume *info = &d->volumes[i].info;
		struct nvme_volume there = { .vid = 0 };
		int status = volume_engine_get(engine->link, info->vid, &there);
		bool lacks = status == NVME_STATUS_VOLUME_UNKNOWN || (!status && there.vid != info->vid);

		if (status < 0) {
			engine->answers = false;
			return false;
		}
		if (lacks && engine->status.map_epoch)
			continue;
		if (status || lacks || strcmp(there.name, info->name) != 0)
			return true;
	}
	return false;
}

/* Fewer engines than replicas have one replica each. */
bool volumed_engine_spared(const struct volumed *d, unsigned others, u32 from_replicas)
{
	u32 least = NVME_VOLUME_MOST_REPLICAS + 1, engines = d->failed;

	for (unsigned i = 0; i < d->engine_count; i++)
		engines += volumed_engine_in(&d->engines[i]);
	least = engines < least ? engines : least;
	for (size_t i = 0; i < d->volume_count; i++) {
		u32 replicas = d->volumes[i].info.replicas;

		least = replicas >= from_replicas && replicas < least ? replicas : least;
	}
	return others + 1 < least;
}

/* One that was not closed in order may lack what it acknowledged. */
static bool is_doubtful(const struct volumed_engine *engine)
{
	return volumed_engine_in(engine) && engine->status.doubtful && !engine->accepted;
}

unsigned volumed_others_failed(const struct volumed *d, const struct volumed_engine *engine)
{
	unsigned count = d->failed;

	for (unsigned i = 0; i < d->engine_count; i++)
		count += &d->engines[i] != engine && volumed_engine_in(&d->engines[i]) &&
			 (!d->engines[i].answers || (!d->engines[i].current && is_doubtful(&d->engines[i])));
	return count;
}

/* The same, once all of them were asked: one that has started again since may have a new disk, or lack what
 * it acknowledged. */
static unsigned others_failed_now(struct volumed *d, const struct volumed_engine *engine)
{
	unsigned lacking = 0;

	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *other = &d->engines[i];

		if (other != engine && volumed_engine_in(other) && volumed_engine_ask(d, other) &&
		    !other->current)
			lacking += has_forgotten(d, other) && !is_doubtful(other);
	}
	return volumed_others_failed(d, engine) + lacking;
}

/* This engine may lack what one has that does not answer, as long as that one is in. */
static int check_others_answer(const struct volumed *d, const struct volumed_engine *engine)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *other = &d->engines[i];

		if (other != engine && volumed_engine_in(other) && !other->current && !other->answers)
			return weir_fail(EAGAIN,
					 "engine %u may lack what engine %u has, which does not answer: "
					 "start it again",
					 engine->info.id, other->info.id);
	}
	return 0;
}

/* Others whose connection was lost answer again, and have what this one lacks; or are in doubt themselves. */
static int bring_others(struct volumed *d, const struct volumed_engine *engine)
{
	int error = 0;

	for (unsigned i = 0; i < d->engine_count && !error; i++) {
		struct volumed_engine *other = &d->engines[i];

		if (other != engine && volumed_engine_in(other) && !other->current &&
		    !has_forgotten(d, other))
			error = volumed_engine_bring(d, other);
	}
	return error;
}

/* Engines in doubt that have the map. Those that were not compared may have old blocks: they keep the epoch
 * of before the next one, and refuse clients. */
static unsigned accept_doubtful(struct volumed *d, bool compared)
{
	unsigned count = 0;

	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		if (!engine->current || !is_doubtful(engine))
			continue;
		engine->accepted = engine->current = compared;
		count++;
	}
	return count;
}

/* What they have no room for they say that they do not have, in a map that is rebuilt. */
static int rebuild_accepted(struct volumed *d, unsigned count)
{
	int error;

	d->rebuilding = true;
	d->failed += count;
	error = volumed_map_push(d);
	(void)volumed_copy_begin(d, VOLUMED_REBUILD, 0);
	return error;
}

/* Clients are kept off by a new epoch, of which they learn by a call, until blocks are equal: what these
 * engines lack others have, or nobody. None in doubt is given the epoch that clients have. Where the map does
 * not count without this engine, it may with it. */
static int accept(struct volumed *d, struct volumed_engine *engine)
{
	int error = check_others_answer(d, engine);
	unsigned accepted;

	if (error)
		return error;
	error = volumed_map_push(d);
	if (!error || error == -EAGAIN)
		error = bring_others(d, engine);
	if (!error)
		error = volumed_engine_bring(d, engine);
	if (!error)
		error = volumed_equalize_all(d);
	accepted = accept_doubtful(d, !error || error == -ENOSPC);
	if (error == -ENOSPC)
		return rebuild_accepted(d, accepted);
	return error ? volumed_map_push(d) : 0;
}

int volumed_engine_return(struct volumed *d, struct volumed_engine *engine)
{
	if (volumed_engine_in(engine) && has_forgotten(d, engine))
		return volumed_take_out(d, engine);
	if (!engine->answers)
		return -ENOTCONN; /* with the link's sentence */
	if (!is_doubtful(engine))
		return volumed_engine_bring(d, engine);
	return volumed_engine_spared(d, others_failed_now(d, engine), 1) ? volumed_take_out(d, engine)
									 : accept(d, engine);
}

/* Its medium fails: writers wait until it is out. It stays where it may have the only replica, for reads. */
static bool is_to_leave(struct volumed *d, const struct volumed_engine *engine)
{
	return volumed_engine_in(engine) && engine->status.write_faults &&
	       volumed_engine_spared(d, others_failed_now(d, engine), 1);
}

/* Whether the others have durably what they and it have acknowledged: then its blocks are not needed. */
static bool others_keep(struct volumed *d, const struct volumed_engine *engine)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *other = &d->engines[i];

		if (other != engine && volumed_engine_in(other) && other->answers &&
		    volume_engine_flush(other->link) != 0)
			return false;
	}
	return true;
}

/* Another one whose medium fails may not keep the map, and what was acknowledged just before; or one may have
 * failed since it was asked: this one, which has it, is in again. Nobody was told of the map without it. */
static void leave(struct volumed *d, struct volumed_engine *engine)
{
	bool refused = false, silent = false;

	if (!others_keep(d, engine))
		return;
	(void)volumed_take_out(d, engine);
	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *other = &d->engines[i];

		silent |= volumed_engine_in(other) && !other->answers;
		refused |= volumed_engine_in(other) && other->answers && !other->current;
	}
	if (silent || (refused && !d->counted))
		volumed_put_back(d, engine);
}

/* It was given a map in which it is out before that one counted: its doubt ends when the map comes again. */
static bool is_out_in_doubt(const struct volumed *d, const struct volumed_engine *engine)
{
	return !volumed_engine_in(engine) && engine->status.doubtful && d->counted;
}

static void beat(struct volumed *d, struct volumed_engine *engine)
{
	if (volumed_engine_ask(d, engine)) {
		if (is_to_leave(d, engine))
			leave(d, engine);
		else if (!engine->current || is_out_in_doubt(d, engine))
			(void)volumed_engine_return(d, engine);
		return;
	}
	engine->misses++;
	if (volumed_engine_in(engine) && engine->misses >= d->options.misses)
		(void)volumed_take_out(d, engine);
}

void volumed_heartbeat(struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		beat(d, &d->engines[i]);
}

/* One that is out, and refuses, is passed over: the heartbeat brings it all once more before it comes in. */
static int each_once(struct volumed *d, int (*call)(struct volume_engine_link *link, const void *argument),
		     const void *argument, int accepts, const char *what, struct volumed_engine **silent)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];
		int status = -ENOTCONN;

		if (engine->current)
			status = call(engine->link, argument);
		else if (!volumed_engine_in(engine))
			continue;
		if (status < 0) {
			engine->answers = false;
			engine->current = false;
			*silent = engine;
			return status;
		}
		if (status && status != accepts && !volumed_engine_in(engine)) {
			engine->current = false;
			continue;
		}
		if (status && status != accepts)
			return weir_fail(status == NVME_STATUS_VOLUME_STALE_LEASE ? ESTALE : EIO,
					 "engine %u refuses to %s: status %#x", engine->info.id, what,
					 status);
	}
	return 0;
}

/* Calls change nothing where they were carried out already, so that they may be repeated. */
int volumed_each_in(struct volumed *d, int (*call)(struct volume_engine_link *link, const void *argument),
		    const void *argument, int accepts, const char *what)
{
	for (unsigned i = 0; i <= d->engine_count; i++) {
		struct volumed_engine *silent = NULL;
		int error = each_once(d, call, argument, accepts, what, &silent);

		if (!silent)
			return error;
		if (volumed_engine_ask(d, silent))
			(void)volumed_engine_return(d, silent);
		else if (volumed_engine_in(silent))
			error = volumed_take_out(d, silent);
		if (error == -EAGAIN)
			return error;
	}
	return weir_fail(EAGAIN, "engines come and go: the array could not %s; try again", what);
}

int volumed_engine_add(struct volumed *d, const struct nvme_volume_engine *info, bool spare, u32 *id)
{
	struct nvme_volume_engine copy = *info;
	struct volumed_engine *engine;
	u32 highest = 0;
	int error;

	for (unsigned i = 0; i < d->engine_count; i++)
		if (d->engines[i].info.id > highest)
			highest = d->engines[i].info.id;
	volumed_engine_number(&copy, highest + 1);
	copy.state = NVME_VOLUME_ENGINE_OUT;
	error = volumed_engine_note(d, &copy, spare);
	if (error)
		return error;
	engine = &d->engines[d->engine_count - 1];
	if (!volumed_engine_ask(d, engine))
		error = -ENOTCONN; /* with the link's sentence */
	else if (engine->status.volumes)
		error = weir_fail(EEXIST, "engine tcp://%s/%s has volumes of another array; format it first",
				  info->address, info->nqn);
	if (error) {
		engine->link->ops->close(engine->link);
		d->engine_count--;
		return error;
	}
	*id = copy.id;
	volumed_copy_end(d);
	/* It is in the array now, and all know it; it has no groups yet. Heartbeats do what fails here. */
	if (!volumed_map_push(d))
		(void)volumed_engine_bring(d, engine);
	return 0;
}
