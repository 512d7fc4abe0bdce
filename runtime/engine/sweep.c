/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/sweep.c: blocks that are gone: those of deleted volumes, and those that a map places elsewhere.
 *
 * Owns: which these are, and dropping them in the background, a slice of all headers at a time. One that has
 * not been dropped yet is as good as dropped for whoever comes to it (engine_find(), engine_is_here()). A
 * change that would make it count again waits for the sweep: its command ends as interrupted and does a part
 * itself, so that an engine of any size answers soon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "../volume/placement.h"
#include "parts.h"

enum {
	SLICE = 2048,    /* headers that the worker, or a request without room, looks at under the lock */
	SHARE = 1 << 18, /* that a command does which waits for the end */
	BATCH = 64,      /* dropped together, so that the table's memory is there in time */
};

static u32 headers_of(const struct weir_engine *engine)
{
	return engine_blocks(engine) + engine->shape.tombstones;
}

static bool is_placed(const struct weir_engine *engine, const struct engine_volume *volume,
		      const struct engine_header *header)
{
	u32 group = weir_placement_group(header->vid, header->vba, volume->is.unit_log2);

	for (u32 i = 0; i < volume->is.replicas; i++)
		if ((engine->placement[group] >> (8 * i) & 0xff) == engine->map.self)
			return true;
	return false;
}

static bool is_in(const struct nvme_volume_map *map)
{
	return map->engines[map->self].state == NVME_VOLUME_ENGINE_IN;
}

/* Nothing is being copied any more: blocks that are placed elsewhere are there. Left here they would be read
 * as the newest when a later map places them here again. An engine that is out keeps what it has. */
static bool is_settled(const struct nvme_volume_map *map)
{
	return map->count && !map->rebuilding && is_in(map);
}

/* After a failure, copies that were made for a map which has not come are not written any more, and would be
 * read as the newest. */
static bool is_left(const struct nvme_volume_map *map, const struct nvme_volume_map *next)
{
	return map->count && map->rebuilding != NVME_VOLUME_REBUILDING &&
	       next->rebuilding == NVME_VOLUME_REBUILDING && is_in(map);
}

bool engine_is_gone(const struct weir_engine *engine, const struct engine_header *header)
{
	const struct engine_volume *volume = engine_volume_find(engine, header->vid);

	if (!volume)
		return true;
	return engine->sweep.misplaced && header->lap != engine->sweep.lap &&
	       !is_placed(engine, volume, header);
}

bool engine_is_here(struct weir_engine *engine, u32 index)
{
	if (engine_state(engine, index) != ENGINE_VALID)
		return false;
	if (!engine->sweep.left || !engine_is_gone(engine, engine_header(engine, index)))
		return true;
	engine_drop(engine, index);
	return false;
}

u32 engine_find(struct weir_engine *engine, u32 vid, u32 vba)
{
	u32 index = engine_table_find(engine, vid, vba);

	return index != ENGINE_NONE && engine_is_here(engine, index) ? index : ENGINE_NONE;
}

/* ---- the sweep ---- */

static void begin(struct weir_engine *engine)
{
	engine->sweep.left = headers_of(engine);
	pthread_cond_broadcast(&engine->changed);
}

static void begin_misplaced(struct weir_engine *engine)
{
	engine->sweep.misplaced = true;
	engine->sweep.lap ^= 1;
	engine->strays = false;
	begin(engine);
}

void engine_sweep_volume(struct weir_engine *engine, u32 vid)
{
	engine->sweep.deleted[vid / 8] |= (u8)(1u << vid % 8);
	begin(engine);
}

static void drop(struct weir_engine *engine, const u32 *indices, u32 count)
{
	for (u32 i = 0; i < count; i++)
		engine_drop(engine, indices[i]);
}

/* @count headers from the sweep's place on. */
static void drop_gone(struct weir_engine *engine, u32 count)
{
	u32 gone[BATCH], is = 0;

	for (u32 index = engine->sweep.at; count; count--, index++) {
		struct engine_header *header;

		if (engine_state(engine, index) != ENGINE_VALID)
			continue;
		header = engine_header(engine, index);
		if (!engine_is_gone(engine, header)) {
			header->lap = engine->sweep.lap;
			continue;
		}
		engine_table_prefetch(engine, header->vid, header->vba);
		gone[is++] = index;
		if (is == BATCH) {
			drop(engine, gone, is);
			is = 0;
		}
	}
	drop(engine, gone, is);
}

/* Return: whether all is done. */
static bool sweep(struct weir_engine *engine, u32 most)
{
	struct engine_sweep *sweep = &engine->sweep;
	u32 count;

	for (; sweep->left && most; most -= count) {
		count = headers_of(engine) - sweep->at; /* to the last one; the first follows */
		count = count < sweep->left ? count : sweep->left;
		count = count < most ? count : most;
		drop_gone(engine, count);
		sweep->left -= count;
		sweep->at = (sweep->at + count) % headers_of(engine);
	}
	if (sweep->left)
		return false;
	engine->blocked = false; /* there may be garbage now */
	sweep->misplaced = false;
	memset(sweep->deleted, 0, sizeof(sweep->deleted));
	return true;
}

bool engine_sweep_some(struct weir_engine *engine)
{
	if (!engine->sweep.left)
		return false;
	sweep(engine, SLICE);
	return true;
}

unsigned engine_sweep(struct weir_engine *engine)
{
	bool is;

	engine_lock(engine);
	is = !engine->failed && engine_sweep_some(engine);
	engine_unlock(engine);
	return is;
}

bool engine_may_add(struct weir_engine *engine, u32 vid)
{
	return !(engine->sweep.deleted[vid / 8] >> vid % 8 & 1) || sweep(engine, SHARE);
}

/* The sweep of before ends first: what it has not come to would have the next one's lap. */
bool engine_may_map(struct weir_engine *engine, const struct nvme_volume_map *next)
{
	if (engine->sweep.misplaced && !sweep(engine, SHARE))
		return false;
	if (engine->strays && is_left(&engine->map, next))
		begin_misplaced(engine);
	return !engine->sweep.misplaced || sweep(engine, SHARE);
}

void engine_sweep_map(struct weir_engine *engine)
{
	if (is_settled(&engine->map))
		begin_misplaced(engine);
	else
		engine->strays = true;
}

/* ---- while the engine is loaded: at once ---- */

void engine_drop_volume(struct weir_engine *engine, u32 vid)
{
	for (u32 i = 0; i < headers_of(engine); i++)
		if (engine_state(engine, i) == ENGINE_VALID && engine_header(engine, i)->vid == vid)
			engine_drop(engine, i);
}

static int build_placement(struct weir_engine *engine)
{
	free(engine->placement);
	engine->placement = malloc(WEIR_PLACEMENT_GROUPS * sizeof(*engine->placement));
	if (!engine->placement)
		return weir_fail(ENOMEM, "no memory for the map of an engine");
	return weir_placement_build(&engine->map, engine->placement);
}

static bool is_misplaced(const struct weir_engine *engine, u32 index, bool settled)
{
	const struct engine_header *header;
	const struct engine_volume *volume;

	if (engine_state(engine, index) != ENGINE_VALID)
		return false;
	header = engine_header(engine, index);
	volume = engine_volume_find(engine, header->vid);
	return !volume || (settled && !is_placed(engine, volume, header));
}

static int drop_misplaced(struct weir_engine *engine)
{
	int error = build_placement(engine);

	for (u32 i = 0; i < headers_of(engine) && !error; i++)
		if (is_misplaced(engine, i, true))
			engine_drop(engine, i);
	engine->strays = false;
	return error;
}

/* A map that came once more has dropped nothing. Where nothing was written since, and the next map places it
 * likewise, there is nothing to look for. */
int engine_map_comes(struct weir_engine *engine, const struct nvme_volume_map *next)
{
	const struct nvme_volume_map was = engine->map;
	bool again = was.epoch == next->epoch && was.rebuilding == next->rebuilding;
	int error = 0;

	if (engine->strays && is_left(&was, next))
		error = drop_misplaced(engine);
	engine->map = *next;
	engine->strays |= !is_settled(&was) || !weir_placement_is_same(&was, next);
	if (!error && was.count && !again && engine->strays && is_settled(next))
		error = drop_misplaced(engine);
	return error;
}

static void drop_of_erase(void *argument, u32 at, const struct engine_hand *hand)
{
	struct weir_engine *engine = argument;
	u32 first = at * engine->shape.erase_blocks;
	bool settled = is_settled(&engine->map);

	(void)hand;
	for (u32 i = first; i < first + engine->shape.erase_blocks; i++)
		if (is_misplaced(engine, i, settled)) {
			engine_lock(engine);
			engine_drop(engine, i);
			engine_unlock(engine);
		}
}

static void drop_of_tombstones(struct weir_engine *engine)
{
	bool settled = is_settled(&engine->map);

	for (u32 i = engine_blocks(engine); engine->tombstone_count && i < headers_of(engine); i++)
		if (is_misplaced(engine, i, settled))
			engine_drop(engine, i);
}

int engine_sweep_loaded(struct weir_engine *engine)
{
	int error = engine->map.count ? build_placement(engine) : 0;

	if (error)
		return error;
	engine_divide(engine, engine->shape.erase_count, drop_of_erase, engine);
	drop_of_tombstones(engine);
	engine->strays = !is_settled(&engine->map);
	return 0;
}
