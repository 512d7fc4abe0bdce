/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/admit.c: whether a command may do what it asks.
 *
 * Owns: the order of the checks and the status of each refusal. A refusal has DNR where the same command
 * would be refused whatever happens: an epoch that has passed, a right that is missing. An epoch that the
 * engine has not heard of yet, a map that it waits for, a block that may be copied here: the command may be
 * repeated.
 */
#include <string.h>

#include <weir/core/volume/placement.h>

#include "parts.h"

static u32 refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

static bool is_host(const char *is, const char *wanted)
{
	return !is || !strcmp(is, wanted);
}

/* A host that calls itself client 0 is the manager, where one is named. */
static u32 check_manager(const struct weir_engine *engine, const struct weir_engine_access *access)
{
	return !engine->manager || is_host(access->host, engine->manager) ? NVME_STATUS_SUCCESS
									  : refuse(NVME_STATUS_VOLUME_CLIENT);
}

static u32 check_rights(const struct engine_volume *volume, const struct weir_engine_access *access)
{
	const struct nvme_volume_permission *permission = engine_permission_find(volume, access->client);
	u32 wanted = access->changes ? NVME_VOLUME_WRITE : NVME_VOLUME_READ;

	if (!permission)
		return refuse(NVME_STATUS_VOLUME_DENIED);
	if (!is_host(access->host, permission->hostnqn))
		return refuse(NVME_STATUS_VOLUME_CLIENT);
	return permission->rights & wanted ? NVME_STATUS_SUCCESS : refuse(NVME_STATUS_VOLUME_DENIED);
}

static u32 check_epoch(u32 given, u32 is, u32 status)
{
	if (given == is)
		return NVME_STATUS_SUCCESS;
	return given < is ? refuse(status) : status;
}

static u32 check_lease(const struct engine_volume *volume, const struct weir_engine_access *access)
{
	u32 status = check_epoch(access->lease_epoch, volume->is.lease_epoch, NVME_STATUS_VOLUME_STALE_LEASE);

	if (!status && volume->is.lease_client != access->client)
		status = refuse(NVME_STATUS_VOLUME_STALE_LEASE);
	return status;
}

static u32 check_range(const struct engine_volume *volume, const struct weir_engine_access *access)
{
	u64 last = access->vba + access->blocks - 1;

	if (!access->blocks)
		return NVME_STATUS_SUCCESS;
	if (access->vba >= volume->is.blocks || access->blocks > volume->is.blocks - access->vba)
		return refuse(NVME_STATUS_LBA_OUT_OF_RANGE);
	return access->vba >> volume->is.unit_log2 == last >> volume->is.unit_log2
		       ? NVME_STATUS_SUCCESS
		       : refuse(NVME_STATUS_INVALID_FIELD);
}

static u32 check_placement(const struct weir_engine *engine, const struct engine_volume *volume,
			   const struct weir_engine_access *access)
{
	u32 group = weir_placement_group(access->vid, access->vba, volume->is.unit_log2);

	for (u32 i = 0; i < volume->is.replicas; i++)
		if (weir_placement_engine((weir_addr)(uintptr_t)engine->placement, group, i) ==
		    engine->map.self)
			return NVME_STATUS_SUCCESS;
	return refuse(NVME_STATUS_VOLUME_MISPLACED);
}

static u32 check_who(const struct weir_engine *engine, const struct engine_volume *volume,
		     const struct weir_engine_access *access)
{
	u32 status;

	if (access->client == NVME_VOLUME_MANAGER)
		return check_manager(engine, access);
	status = check_rights(volume, access);
	if (!status)
		status = check_range(volume, access);
	return status || !access->changes ? status : check_lease(volume, access);
}

static u32 check_access(const struct weir_engine *engine, const struct weir_engine_access *access)
{
	const struct engine_volume *volume = engine_volume_find(engine, access->vid);
	u32 status;

	if (!engine->has_map)
		return NVME_STATUS_VOLUME_NO_MAP;
	if (!volume)
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	status = check_who(engine, volume, access);
	if (!status)
		status = check_range(volume, access);
	if (!status)
		status = check_epoch(access->map_epoch, engine->map.epoch, NVME_STATUS_VOLUME_STALE_MAP);
	/* the manager copies blocks to where the next map places them, and from where the last one did */
	if (status || access->client == NVME_VOLUME_MANAGER)
		return status;
	return check_placement(engine, volume, access);
}

/* An engine that was started again may have lost what a flush is to cover, until a map says that what it
 * lacks was written once more. */
static u32 check_flush(const struct weir_engine *engine, const struct weir_engine_access *access)
{
	if (access->client == NVME_VOLUME_MANAGER)
		return NVME_STATUS_SUCCESS;
	return engine->has_map
		       ? check_epoch(access->map_epoch, engine->map.epoch, NVME_STATUS_VOLUME_STALE_MAP)
		       : NVME_STATUS_VOLUME_NO_MAP;
}

static u32 check_expected(const struct weir_engine *engine, const struct weir_engine_access *access)
{
	engine_table_expect(engine, access->vid, access->vba, !access->changes);
	return check_access(engine, access);
}

static u32 admitted(struct weir_engine *engine, const struct weir_engine_access *access,
		    u32 (*check)(const struct weir_engine *, const struct weir_engine_access *))
{
	u32 status;

	engine_lock(engine);
	status = check(engine, access);
	engine->status.refused += status != 0;
	engine_unlock(engine);
	return status;
}

u32 weir_engine_admit(struct weir_engine *engine, const struct weir_engine_access *access)
{
	engine_table_prefetch(engine, access->vid, access->vba);
	return admitted(engine, access, check_expected);
}

u32 weir_engine_admit_flush(struct weir_engine *engine, const struct weir_engine_access *access)
{
	return admitted(engine, access, check_flush);
}

u32 engine_still(const struct weir_engine *engine, u32 vid, u64 epochs)
{
	const struct engine_volume *volume = engine_volume_find(engine, vid);
	u32 lease = (u32)epochs;

	if (!volume)
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	if (lease != ~(u32)0 && (lease != volume->is.lease_epoch || !volume->is.lease_client))
		return refuse(NVME_STATUS_VOLUME_STALE_LEASE);
	return epochs >> 32 == engine->map.epoch ? NVME_STATUS_SUCCESS : refuse(NVME_STATUS_VOLUME_STALE_MAP);
}
