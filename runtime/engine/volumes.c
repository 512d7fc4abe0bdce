/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/volumes.c: volumes, who may do what with them, leases, and the map of the array.
 *
 * Owns: the tables that each command is checked against, and which changes of them are accepted. The caller
 * has the lock, and notes in the journal what was changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "../volume/placement.h"
#include "parts.h"

enum { UNIT_LOG2_MOST = 20, WEIGHT_MOST = 1000 };

static u32 refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

static bool is_number(u32 number)
{
	return number && number <= NVME_VOLUME_MOST;
}

struct engine_volume *engine_volume_find(const struct weir_engine *engine, u32 vid)
{
	return is_number(vid) ? engine->volumes[vid] : NULL;
}

u32 engine_volume_weight(const struct weir_engine *engine, u32 vid)
{
	const struct engine_volume *volume = engine_volume_find(engine, vid);

	return volume ? volume->is.weight : 1;
}

static bool is_volume(const struct nvme_volume *volume)
{
	return is_number(volume->vid) && volume->replicas && volume->replicas <= NVME_VOLUME_MOST_REPLICAS &&
	       volume->unit_log2 <= UNIT_LOG2_MOST && volume->blocks && volume->blocks <= (u64)1 << 32 &&
	       volume->weight && volume->weight <= WEIGHT_MOST &&
	       memchr(volume->name, 0, sizeof(volume->name)) && volume->lease_client <= NVME_VOLUME_MOST &&
	       volume->lease_epoch <= NVME_VOLUME_LAST_EPOCH;
}

/* A volume that is changed keeps its lease, unless a newer one is given, and its length, unless it grows: an
 * older command may be carried out once more, late, by a connection that is no more. */
static void change(struct engine_volume *volume, const struct nvme_volume *to)
{
	struct nvme_volume was = volume->is;

	volume->is = *to;
	if (to->blocks < was.blocks)
		volume->is.blocks = was.blocks;
	if (to->lease_epoch < was.lease_epoch) {
		volume->is.lease_epoch = was.lease_epoch;
		volume->is.lease_client = was.lease_client;
	}
}

/* Volumes and permissions have to fit into a checkpoint. */
static bool has_room(const struct weir_engine *engine)
{
	return (engine->entries + 1) * (sizeof(struct nvme_volume_permission) + sizeof(u64)) <=
	       engine_checkpoint_reserve(engine);
}

u32 engine_volume_set(struct weir_engine *engine, const struct nvme_volume *volume)
{
	struct engine_volume *at;

	if (!is_volume(volume))
		return refuse(NVME_STATUS_INVALID_FIELD);
	at = engine->volumes[volume->vid];
	if (at) {
		/* another stripe unit would have all blocks elsewhere */
		if (at->is.unit_log2 != volume->unit_log2)
			return refuse(NVME_STATUS_INVALID_FIELD);
		engine->strays |= at->is.replicas != volume->replicas;
		change(at, volume);
		return NVME_STATUS_SUCCESS;
	}
	if (!has_room(engine))
		return NVME_STATUS_CAPACITY_EXCEEDED;
	if (!engine_may_add(engine, volume->vid))
		return NVME_STATUS_COMMAND_INTERRUPTED;
	at = calloc(1, sizeof(*at));
	if (!at)
		return NVME_STATUS_INTERNAL_ERROR;
	at->is = *volume;
	engine->volumes[volume->vid] = at;
	if (volume->vid > engine->status.last_vid)
		engine->status.last_vid = volume->vid;
	engine->entries++;
	engine->status.volumes++;
	return NVME_STATUS_SUCCESS;
}

void engine_volume_delete(struct weir_engine *engine, u32 vid)
{
	struct engine_volume *volume = engine_volume_find(engine, vid);

	if (!volume)
		return;
	engine->entries -= 1 + volume->permission_count;
	free(volume->permissions);
	free(volume);
	engine->volumes[vid] = NULL;
	engine->status.volumes--;
}

/* Index of @client in @volume's list, which is sorted, or where it would be. */
static u32 permission_index(const struct engine_volume *volume, u32 client)
{
	u32 low = 0, high = volume->permission_count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (volume->permissions[middle].client < client)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct nvme_volume_permission *engine_permission_from(const struct engine_volume *volume, u32 client)
{
	u32 at = permission_index(volume, client);

	return at < volume->permission_count ? &volume->permissions[at] : NULL;
}

const struct nvme_volume_permission *engine_permission_find(const struct engine_volume *volume, u32 client)
{
	const struct nvme_volume_permission *from = engine_permission_from(volume, client);

	return from && from->client == client ? from : NULL;
}

static void permission_remove(struct engine_volume *volume, u32 at)
{
	memmove(&volume->permissions[at], &volume->permissions[at + 1],
		(volume->permission_count - at - 1) * sizeof(*volume->permissions));
	volume->permission_count--;
}

static bool permission_insert(struct engine_volume *volume, u32 at)
{
	struct nvme_volume_permission *more =
		realloc(volume->permissions, (volume->permission_count + 1) * sizeof(*volume->permissions));

	if (!more)
		return false;
	volume->permissions = more;
	memmove(&more[at + 1], &more[at], (volume->permission_count - at) * sizeof(*more));
	volume->permission_count++;
	return true;
}

u32 engine_permission_set(struct weir_engine *engine, const struct nvme_volume_permission *permission)
{
	struct engine_volume *volume = engine_volume_find(engine, permission->vid);
	bool there;
	u32 at;

	if (!volume)
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	if (!is_number(permission->client) ||
	    permission->rights & ~(u32)(NVME_VOLUME_READ | NVME_VOLUME_WRITE) ||
	    !memchr(permission->hostnqn, 0, sizeof(permission->hostnqn)))
		return refuse(NVME_STATUS_INVALID_FIELD);
	at = permission_index(volume, permission->client);
	there = at < volume->permission_count && volume->permissions[at].client == permission->client;
	if (!permission->rights) {
		engine->entries -= there;
		if (there)
			permission_remove(volume, at);
		return NVME_STATUS_SUCCESS;
	}
	if (!there && !has_room(engine))
		return NVME_STATUS_CAPACITY_EXCEEDED;
	if (!there && !permission_insert(volume, at))
		return NVME_STATUS_INTERNAL_ERROR;
	engine->entries += !there;
	volume->permissions[at] = *permission;
	return NVME_STATUS_SUCCESS;
}

u32 engine_lease_set(struct weir_engine *engine, u32 vid, u32 epoch, u32 client)
{
	struct engine_volume *volume = engine_volume_find(engine, vid);

	if (!volume)
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	if (client > NVME_VOLUME_MOST || epoch > NVME_VOLUME_LAST_EPOCH)
		return refuse(NVME_STATUS_INVALID_FIELD);
	/* one epoch has one client: nobody may come after it, and nobody else have it */
	if (epoch < volume->is.lease_epoch ||
	    (epoch == volume->is.lease_epoch && client && client != volume->is.lease_client))
		return refuse(NVME_STATUS_VOLUME_STALE_LEASE);
	volume->is.lease_epoch = epoch;
	volume->is.lease_client = (u16)client;
	return NVME_STATUS_SUCCESS;
}

/* The table of @map, in memory of its own; of one with the same engines it is there. */
static u32 renew_placement(struct weir_engine *engine, const struct nvme_volume_map *map)
{
	u32 *placement;

	if (engine->placement && weir_placement_is_same(&engine->map, map))
		return NVME_STATUS_SUCCESS;
	placement = malloc(WEIR_PLACEMENT_GROUPS * sizeof(*placement));
	if (!placement)
		return NVME_STATUS_INTERNAL_ERROR;
	if (weir_placement_build(map, placement) != 0) {
		free(placement);
		return refuse(NVME_STATUS_INVALID_FIELD);
	}
	free(engine->placement);
	engine->placement = placement;
	return NVME_STATUS_SUCCESS;
}

u32 engine_fence(const struct weir_engine *engine)
{
	return engine->status.fence > engine->map.epoch ? engine->status.fence : engine->map.epoch;
}

u32 engine_map_set(struct weir_engine *engine, const struct nvme_volume_map *map)
{
	bool again = engine->has_map && map->epoch == engine->map.epoch &&
		     map->rebuilding == engine->map.rebuilding;
	u32 status;

	if (!map->count || map->count > NVME_VOLUME_MOST_ENGINES || map->self >= map->count)
		return refuse(NVME_STATUS_INVALID_FIELD);
	if (map->epoch < engine_fence(engine))
		return refuse(NVME_STATUS_VOLUME_STALE_MAP);
	if (!again && !engine_may_map(engine, map))
		return NVME_STATUS_COMMAND_INTERRUPTED;
	status = renew_placement(engine, map);
	if (status)
		return status;
	engine->map = *map;
	engine->status.map_epoch = map->epoch;
	engine->has_map = true;
	engine->status.has_map = 1;
	if (map->engines[map->self].state != NVME_VOLUME_ENGINE_IN) {
		/* it gets what it lacks before it comes in again, if the next daemon hears of this map */
		engine->status.doubtful = engine->status.doubtful && map->uncounted;
		engine->status.write_faults = 0;
	}
	if (!again) /* else copies for a map to come may have been made under it */
		engine_sweep_map(engine);
	return NVME_STATUS_SUCCESS;
}

void engine_volumes_release(struct weir_engine *engine)
{
	for (u32 vid = 0; vid <= engine->status.last_vid; vid++) {
		if (engine->volumes[vid])
			free(engine->volumes[vid]->permissions);
		free(engine->volumes[vid]);
	}
	free(engine->placement);
}
