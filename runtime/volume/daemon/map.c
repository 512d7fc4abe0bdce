/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c: epochs of the map, and their way to the engines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../backend/error.h"
#include "../placement.h"
#include "command.h"
#include "daemon.h"

void volumed_map_fill(const struct volumed *d, unsigned self, struct nvme_volume_map *map)
{
	*map = (struct nvme_volume_map){ .epoch = d->epoch,
					 .count = (u16)d->engine_count,
					 .self = (u16)self,
					 .uncounted = !d->counted,
					 .rebuilding = d->changing     ? NVME_VOLUME_CHANGING
						       : d->rebuilding ? NVME_VOLUME_REBUILDING
								       : 0 };
	for (unsigned i = 0; i < d->engine_count; i++) {
		map->engines[i] = d->engines[i].info;
		map->engines[i].leaving = d->engines[i].leaving;
	}
}

int volumed_map_table(const struct volumed *d, int engine, u8 state, u32 *table)
{
	struct nvme_volume_map map;

	volumed_map_fill(d, 0, &map);
	if (engine >= 0)
		map.engines[engine].state = state;
	return weir_placement_build(&map, table);
}

static int give(struct volumed *d, unsigned index)
{
	struct volumed_engine *engine = &d->engines[index];
	struct nvme_volume_map map;
	int status;

	volumed_map_fill(d, index, &map);
	status = volume_engine_map(engine->link, &map);
	engine->current = !status;
	if (status < 0)
		engine->answers = false;
	else if (status)
		weir_fail(EIO, "engine %u refuses map %u with status %#x", engine->info.id, d->epoch, status);
	return status;
}

/*
 * Engines first, then clients: a client gets the new epoch by a call, which waits for this. Until then an
 * engine that has taken it refuses clients, and the others take only commands of the old one: none is carried
 * out under both.
 */
int volumed_map_push(struct volumed *d)
{
	int error = volumed_map_table(d, -1, 0, d->table);

	if (error)
		return error;
	if (d->copy.task != VOLUMED_REBUILD && !d->changing)
		volumed_copy_end(d); /* engines drop the copies for a map to come: they are made again */
	d->epoch++;
	d->counted = false;
	d->counts.maps++;
	for (unsigned i = 0; i < d->engine_count; i++) {
		bool was_current = d->engines[i].current;

		d->engines[i].current = false;
		if (d->engines[i].answers && was_current)
			(void)give(d, i);
	}
	return volumed_map_count(d);
}

int volumed_map_count(struct volumed *d)
{
	unsigned voters = 0, taken = 0;

	for (unsigned i = 0; i < d->engine_count; i++) {
		voters += d->engines[i].voter;
		taken += d->engines[i].voter && d->engines[i].current;
	}
	if (!d->counted && (2 * taken < voters || !taken))
		return weir_fail(
			EAGAIN,
			"map %u has reached %u of %u engines: fewer than half; start those that are missing",
			d->epoch, taken, voters);
	if (!d->counted)
		for (unsigned i = 0; i < d->engine_count; i++)
			d->engines[i].voter = volumed_engine_in(&d->engines[i]);
	d->counted = true;
	return 0;
}

static struct volumed_engine *find_spare(struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (d->engines[i].spare && d->engines[i].current && !d->engines[i].leaving)
			return &d->engines[i];
	return NULL;
}

static unsigned count_in(const struct volumed *d)
{
	unsigned count = 0;

	for (unsigned i = 0; i < d->engine_count; i++)
		count += volumed_engine_in(&d->engines[i]);
	return count;
}

static const char *why_out(const struct volumed_engine *engine)
{
	if (!engine->answers)
		return "does not answer";
	return engine->status.write_faults ? "fails writes (is its disk full?)"
					   : "has started again, and may lack blocks";
}

/* An engine that is out and answers: it would serve readers of the map before, who have not asked for the
 * next one yet. Where that one does not count yet, it may be put back, and has to know what it lacks. */
static void shut_out(struct volumed *d, struct volumed_engine *engine)
{
	if (d->counted)
		(void)give(d, (unsigned)(engine - d->engines));
	engine->answers = engine->current = false; /* until it has what was written since */
}

/* Whether by table @next each group that has an engine with its blocks keeps one. */
static bool keeps_all(const struct volumed *d, u32 replicas, const u32 *next)
{
	for (u32 group = 0; group < WEIR_PLACEMENT_GROUPS; group++) {
		bool had = false, has = false;

		for (u32 i = 0; i < replicas; i++) {
			u32 engine = d->table[group] >> (8 * i) & 0xff;

			if (engine >= d->engine_count || !volumed_engine_in(&d->engines[engine]))
				continue;
			had = true;
			for (u32 j = 0; j < replicas; j++)
				has |= (next[group] >> (8 * j) & 0xff) == engine;
		}
		if (had && !has)
			return false;
	}
	return true;
}

/* Where all engines of a group lack its blocks, clients take "not here" from all of them for zeros. While a
 * rebuild goes on, an engine of a group may lack them, too. */
static bool may_come_in(struct volumed *d, const struct volumed_engine *spare)
{
	bool seen[NVME_VOLUME_MOST_REPLICAS + 1] = { false };
	int index = (int)(spare - d->engines);

	if (d->rebuilding || volumed_map_table(d, index, NVME_VOLUME_ENGINE_IN, d->copy.table) != 0)
		return false;
	for (size_t i = 0; i < d->volume_count; i++) {
		u32 replicas = d->volumes[i].info.replicas;

		if (!seen[replicas] && !keeps_all(d, replicas, d->copy.table))
			return false;
		seen[replicas] = true;
	}
	return true;
}

/* A spare has no blocks: reads of what it lacks it answers with "not here". It comes in at once if others
 * that have them stay; else it joins, once it has its blocks. */
static void call_spare(struct volumed *d, struct volumed_engine *spare)
{
	d->called = spare;
	if (!spare)
		return;
	if (may_come_in(d, spare))
		spare->info.state = NVME_VOLUME_ENGINE_IN;
	spare->spare = false;
}

/* Half of the engines of the map before have to take the new map, this one not counted: with two engines that
 * is the other one. */
static int take_out(struct volumed *d, struct volumed_engine *engine)
{
	struct volumed_engine *spare = find_spare(d);
	bool serves = engine->answers && engine->current;
	int error;

	fprintf(stderr, "weir-volumed: engine %u (%s) %s: taken out, map %u%s\n", engine->info.id,
		engine->info.address, why_out(engine), d->epoch + 1,
		spare ? "; a spare takes its place" : "");
	volumed_copy_end(d);
	engine->info.state = NVME_VOLUME_ENGINE_OUT;
	engine->answers = engine->current = false;
	call_spare(d, spare);
	d->rebuilding = true;
	d->failed++;
	d->counts.taken_out++;
	error = volumed_map_push(d);
	if (serves)
		shut_out(d, engine);
	(void)volumed_copy_begin(d, VOLUMED_REBUILD, 0); /* it waits until the map counts */
	return error;
}

static int check_not_last(const struct volumed *d, const struct volumed_engine *engine)
{
	if (count_in(d) > 1)
		return 0;
	return weir_fail(EAGAIN, "engine %u does not answer, and it is the last one; start it again",
			 engine->info.id);
}

int volumed_take_out(struct volumed *d, struct volumed_engine *engine)
{
	int error = check_not_last(d, engine);

	if (error)
		return error;
	if (!engine->answers && !volumed_engine_spared(d, volumed_others_failed(d, engine), 2))
		return weir_fail(
			EAGAIN,
			"engine %u does not answer, and may have the last replica of some blocks; start "
			"it again (if it is gone for good: weir-volume engines --remove %u --lost)",
			engine->info.id, engine->info.id);
	return take_out(d, engine);
}

int volumed_give_up(struct volumed *d, struct volumed_engine *engine)
{
	int error = check_not_last(d, engine);

	if (!error)
		(void)take_out(d, engine); /* the map may count later */
	return error;
}

/* With the spare in, too, groups may have it and no engine that has their blocks. */
void volumed_put_back(struct volumed *d, struct volumed_engine *engine)
{
	engine->info.state = NVME_VOLUME_ENGINE_IN;
	engine->answers = engine->current = true; /* so that it gets the map */
	if (d->called) {
		d->called->info.state = NVME_VOLUME_ENGINE_OUT;
		d->called->spare = true;
	}
	d->failed--;
	d->counts.taken_out--;
	(void)volumed_map_push(d);
	(void)volumed_copy_begin(d, VOLUMED_REBUILD, 0); /* to where this map places blocks */
	fprintf(stderr, "weir-volumed: engine %u (%s): another engine fails, too: in again, map %u\n",
		engine->info.id, engine->info.address, d->epoch);
}
