/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather.c: the daemon's start: all that it has to know, from the engines.
 *
 * Owns: which engines make the array (those of the newest map, and those given), what is there when they
 * disagree. An engine that missed a change was not told of as done, or was out: the union of what the engines
 * that are in have, less what one of them knows to be deleted, is a state that nobody can tell from the true
 * one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../backend/error.h"
#include "command.h"
#include "daemon.h"

/* A daemon leaves fewer maps behind that have not arrived anywhere. */
enum { EPOCHS_APART = 1 << 10 };

static struct volumed_engine *find(struct volumed *d, const struct nvme_volume_engine *info)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (!strcmp(d->engines[i].info.address, info->address) &&
		    !strcmp(d->engines[i].info.nqn, info->nqn))
			return &d->engines[i];
	return NULL;
}

/* What an engine does not say it may have all the same. */
static int check_said(const struct volumed_engine *engine, int status, const char *what)
{
	if (status < 0)
		return -EAGAIN; /* with the link's sentence */
	return status ? weir_fail(EAGAIN, "engine tcp://%s/%s does not say its %s: status %#x",
				  engine->info.address, engine->info.nqn, what, status)
		      : 0;
}

/* The newest map of engines that answer; its epoch 0: there is none. */
static int newest_map(struct volumed *d, struct nvme_volume_map *newest)
{
	newest->epoch = 0;
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct nvme_volume_map map = { .epoch = 0 };
		int status = volumed_engine_ask(d, &d->engines[i])
				     ? volume_engine_get_map(d->engines[i].link, &map)
				     : NVME_STATUS_VOLUME_NO_MAP;

		if (status == NVME_STATUS_VOLUME_NO_MAP)
			continue;
		if (status)
			return check_said(&d->engines[i], status, "map");
		if (map.count <= NVME_VOLUME_MOST_ENGINES && map.epoch > newest->epoch)
			*newest = map;
	}
	return 0;
}

/* Return: engines that were not known, or a negative errno with a sentence. */
static int take_engines(struct volumed *d, const struct nvme_volume_map *map)
{
	int fresh = 0;

	for (u32 i = 0; i < map->count; i++) {
		struct volumed_engine *engine = find(d, &map->engines[i]);
		int error = engine ? 0 : volumed_engine_note(d, &map->engines[i], false);

		if (error)
			return error;
		fresh += !engine;
		engine = engine ? engine : &d->engines[d->engine_count - 1];
		engine->info = map->engines[i];
		engine->leaving = map->engines[i].leaving;
		if (volumed_engine_in(engine))
			engine->spare = false;
	}
	return fresh;
}

/* The newest map, and all of its engines. */
static int find_engines(struct volumed *d, struct nvme_volume_map *map)
{
	int fresh = 1;

	while (fresh > 0) {
		fresh = newest_map(d, map);
		if (!fresh)
			fresh = take_engines(d, map);
	}
	return fresh;
}

static bool in_map(const struct nvme_volume_map *map, const struct volumed_engine *engine)
{
	for (u32 i = 0; i < map->count; i++)
		if (!strcmp(map->engines[i].address, engine->info.address) &&
		    !strcmp(map->engines[i].nqn, engine->info.nqn))
			return true;
	return false;
}

/* One engine is enough to find the others: with a new disk it knows of none. */
static int new_array(const struct volumed *d)
{
	if (d->engine_count > 1 || d->options.alone)
		return 0;
	return weir_fail(EAGAIN,
			 "engine tcp://%s/%s knows of no array, and may have a new disk: give other engines "
			 "of its array, or --alone "
			 "for a new array of this engine",
			 d->engines[0].info.address, d->engines[0].info.nqn);
}

static int enough(struct volumed *d, const struct nvme_volume_map *map)
{
	unsigned in = 0, answer = 0;

	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *engine = &d->engines[i];

		if (map->epoch && !(in_map(map, engine) && volumed_engine_in(engine)))
			continue;
		in++;
		answer += engine->answers;
	}
	if (map->epoch ? 2 * answer > in : answer == in)
		return map->epoch ? 0 : new_array(d);
	if (map->epoch)
		return weir_fail(
			EAGAIN, "%u of the %u engines of map %u answer; more than half have to: start others",
			answer, in, map->epoch);
	return weir_fail(EAGAIN, "%u of %u engines answer; a new array begins with all of them", answer, in);
}

/* Engines that no map has: of a new array all come in, later ones when they have their blocks. */
static int number_engines(struct volumed *d, const struct nvme_volume_map *map)
{
	u32 highest = 0;

	for (u32 i = 0; i < map->count; i++)
		if (map->engines[i].id > highest)
			highest = map->engines[i].id;
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		if (map->epoch && in_map(map, engine))
			continue;
		if (engine->answers && engine->status.volumes)
			return weir_fail(EEXIST,
					 "engine tcp://%s/%s has volumes of another array; format it first",
					 engine->info.address, engine->info.nqn);
		volumed_engine_number(&engine->info, ++highest);
		engine->info.state =
			map->epoch || engine->spare ? NVME_VOLUME_ENGINE_OUT : NVME_VOLUME_ENGINE_IN;
	}
	return 0;
}

/* The newest of what engines say of a volume. */
static void merge(struct nvme_volume *known, const struct nvme_volume *said)
{
	if (said->lease_epoch > known->lease_epoch ||
	    (said->lease_epoch == known->lease_epoch && said->lease_client == VOLUMED_NOBODY)) {
		known->lease_epoch = said->lease_epoch;
		known->lease_client = said->lease_client;
	}
	if (said->blocks > known->blocks)
		known->blocks = said->blocks;
}

static int read_permissions(struct volumed_engine *engine, struct volumed_volume *volume)
{
	struct nvme_volume_permission permission;
	int error = 0;

	for (u32 i = 0; !error; i++) {
		int status = volume_engine_get_permission(engine->link, volume->info.vid, i, &permission);

		if (status == NVME_STATUS_VOLUME_UNKNOWN)
			break;
		if (status)
			return check_said(engine, status, "permissions");
		permission.hostnqn[NVME_VOLUME_HOST_BYTES - 1] = '\0';
		error = volumed_permission_note(volume, &permission);
	}
	return error;
}

static int read_volumes(struct volumed *d, struct volumed_engine *engine)
{
	struct nvme_volume info;
	u32 vid = 0;
	int status;

	while (!(status = volume_engine_get(engine->link, vid, &info))) {
		struct volumed_volume *volume = volumed_volume_numbered(d, info.vid);
		int error;

		info.name[NVME_VOLUME_NAME_BYTES - 1] = '\0';
		if (volume)
			merge(&volume->info, &info);
		else
			volume = volumed_volume_insert(d, &info);
		if (!volume)
			return -ENOMEM;
		error = read_permissions(engine, volume);
		if (error)
			return error;
		vid = info.vid + 1u;
	}
	return status == NVME_STATUS_VOLUME_UNKNOWN ? 0 : check_said(engine, status, "volumes");
}

/* Numbers grow. What an engine does not have that has had a greater number was deleted, or its maker was told
 * of a failure: one that still has it was away. */
static bool was_deleted(const struct volumed *d, u32 vid)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *engine = &d->engines[i];
		struct nvme_volume there = { .vid = 0 };
		int status;

		if (!engine->answers || !volumed_engine_in(engine) || engine->status.last_vid < vid)
			continue;
		status = volume_engine_get(engine->link, vid, &there);
		if (status == NVME_STATUS_VOLUME_UNKNOWN || (!status && there.vid != vid))
			return true;
	}
	return false;
}

static void forget_deleted(struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (d->engines[i].answers && d->engines[i].status.last_vid > d->last_vid)
			d->last_vid = d->engines[i].status.last_vid;
	for (size_t i = d->volume_count; i-- > 0;)
		if (was_deleted(d, d->volumes[i].info.vid))
			volumed_volume_erase(d, &d->volumes[i]);
}

static int read_all(struct volumed *d)
{
	int error = 0;

	for (unsigned i = 0; i < d->engine_count && !error; i++)
		if (d->engines[i].answers && volumed_engine_in(&d->engines[i]))
			error = read_volumes(d, &d->engines[i]);
	forget_deleted(d);
	for (size_t i = 0; i < d->volume_count && !error; i++)
		volumed_lease_note(d, &d->volumes[i]);
	return error;
}

/* It was not closed in order, or it has lost all that it had, its maps too. */
static bool is_doubtful(const struct volumed_engine *engine)
{
	return engine->answers && (engine->status.doubtful || !engine->status.map_epoch);
}

/* Engines that may lack blocks, if others have all of these: they come in again later. Return: else, that all
 * are to be compared. */
static bool take_out_doubtful(struct volumed *d, struct nvme_volume_map *map)
{
	unsigned doubtful = 0, in = 0, empty = 0, silent = 0;

	d->failed = map->rebuilding ? NVME_VOLUME_MOST_REPLICAS : 0; /* how many have is not known */
	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *engine = &d->engines[i];

		in += volumed_engine_in(engine);
		doubtful += volumed_engine_in(engine) && (!engine->answers || is_doubtful(engine));
		empty += volumed_engine_in(engine) && engine->answers && !engine->status.map_epoch;
		silent += volumed_engine_in(engine) && !engine->answers;
	}
	if (!map->epoch || !doubtful)
		return false;
	for (size_t i = 0; i < d->volume_count; i++) { /* what all have lost, one that comes back may have */
		d->volumes[i].unclean = true;
		d->volumes[i].from = 0;
	}
	if (doubtful == in || !volumed_engine_spared(d, d->failed + doubtful - 1, 1)) {
		map->rebuilding = 1; /* what an engine lacks another one may have that does not answer yet */
		/* nor is it taken out before: it may have the last replica of what those in doubt lack */
		d->failed = d->failed ? d->failed : silent ? doubtful - silent : empty;
		return true;
	}
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		if (!volumed_engine_in(engine) || !is_doubtful(engine))
			continue;
		engine->info.state = NVME_VOLUME_ENGINE_OUT;
		map->rebuilding = 1;
		d->failed++;
		d->counts.taken_out++;
	}
	return false;
}

/* The epoch of the map to come is above all that engines have, and above those of maps that a daemon before
 * this one has sent and that have not arrived: an engine takes a map whose epoch is its fence's. After a
 * start of its own that failed the daemon goes on with the next number. */
static void choose_epoch(struct volumed *d, const struct nvme_volume_map *map)
{
	u32 own = d->epoch, newest = map->epoch;

	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct nvme_volume_engine_status *status = &d->engines[i].status;

		if (d->engines[i].answers && status->map_epoch > newest)
			newest = status->map_epoch;
		if (d->engines[i].answers && status->fence > newest)
			newest = status->fence;
	}
	d->epoch = own && newest <= own ? own + 1 : newest + EPOCHS_APART;
}

/* A daemon that was active before may have sent what has not arrived yet: it must not change what is read. */
static int fence_all(struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];
		int status = engine->answers ? volume_engine_fence(engine->link) : 0;

		if (status > 0)
			return weir_fail(EAGAIN, "engine %u refuses epoch %u with status %#x",
					 engine->info.id, d->epoch, status);
		if (status) {
			engine->answers = false;
			return -EAGAIN; /* with the link's sentence */
		}
	}
	return 0;
}

static void bring_all(struct volumed *d, bool in)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		if (engine->answers && volumed_engine_in(engine) == in)
			(void)volumed_engine_bring(d, engine);
	}
}

/* All get the same volumes, then the map. Those that are out get it when it counts: then an engine is in
 * doubt no more. */
static int give_all(struct volumed *d, const struct nvme_volume_map *map)
{
	int error;

	d->counted = false;
	d->rebuilding = map->rebuilding;
	d->counts.maps++;
	error = volumed_map_table(d, -1, 0, d->table);
	if (error)
		return error;
	for (unsigned i = 0; i < d->engine_count; i++)
		d->engines[i].voter = volumed_engine_in(&d->engines[i]);
	bring_all(d, true);
	error = volumed_map_count(d);
	if (!error)
		bring_all(d, false);
	return error;
}

static void forget_volumes(struct volumed *d)
{
	while (d->volume_count)
		volumed_volume_erase(d, &d->volumes[0]);
}

static bool is_any_silent(const struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (volumed_engine_in(&d->engines[i]) && !d->engines[i].answers)
			return true;
	return false;
}

/* What engines in doubt have may be older than what a silent one has: until that one answers, and they are
 * compared with it (engines.c), they keep the epoch of before the next map, and refuse clients. The next map
 * may count later. */
static void keep_doubtful_off(struct volumed *d)
{
	bool any = false;

	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		if (!engine->current || !volumed_engine_in(engine) || !engine->status.doubtful)
			continue;
		engine->current = false;
		any = true;
	}
	if (any)
		(void)volumed_map_push(d);
}

/* The map is one that is rebuilt: what an engine has no room for it says that it does not have. What engines
 * lack that have been compared with all others nobody has. */
static int compare_all(struct volumed *d)
{
	int error = volumed_equalize_all(d);
	bool silent = is_any_silent(d);

	for (unsigned i = 0; i < d->engine_count; i++) {
		struct volumed_engine *engine = &d->engines[i];

		engine->accepted = !error && !silent && engine->current && volumed_engine_in(engine);
	}
	if (error && error != -ENOSPC)
		return -EAGAIN;
	if (silent)
		keep_doubtful_off(d);
	return 0;
}

int volumed_gather(struct volumed *d)
{
	struct nvme_volume_map map = { .epoch = 0 };
	bool unequal = false;
	int error;

	forget_volumes(d);
	error = find_engines(d, &map);
	if (!error)
		error = enough(d, &map);
	if (!error)
		error = number_engines(d, &map);
	if (!error) {
		choose_epoch(d, &map);
		error = fence_all(d);
	}
	if (!error)
		error = read_all(d);
	if (!error) {
		unequal = take_out_doubtful(d, &map);
		error = give_all(d, &map);
	}
	if (!error && unequal)
		error = compare_all(d);
	if (!error && d->rebuilding)
		error = volumed_copy_begin(d, VOLUMED_REBUILD, 0);
	return error;
}
